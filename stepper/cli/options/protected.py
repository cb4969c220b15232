"""Files that the options of a command name to be read: no command writes over them."""

from __future__ import annotations

import argparse
from typing import Final

from stepper.cli.options.specs import pairs
from stepper.engine.inputs import file_of
from stepper.files.kinds import is_model_path
from stepper.files.output import RECORDING_FILE, REFERENCE_FILE, SESSION_FILE, ProtectedFiles

_FILES: Final = {
    "inputs": "the file of --inputs",
    "states": "the file of --states",
    "script": "the script",
    "session": SESSION_FILE,
    "keys": "the file of keys",
    "align": "the file of --align",
    "resume": "the recording that the run goes on with",
}
"""Options with the name of a file, and what that file is."""

_MODELS: Final = {
    "model": RECORDING_FILE,
    "model_path": "the model",
    "reference": REFERENCE_FILE,
    "diff": REFERENCE_FILE,
    "trace": RECORDING_FILE,
}
"""Options with the name of a model or of a recording, and what it is where it is not a model."""

OPTIONS_WITH_A_PATH: Final = frozenset((*_FILES, *_MODELS, "extension"))
"""Options whose whole value may be a path."""


def protected_files(options: argparse.Namespace) -> ProtectedFiles:
    """Return all files that a command with these options reads, or keeps a session in; opens none."""
    found = ProtectedFiles()
    for name, what in _MODELS.items():
        path = getattr(options, name, None)
        if path is not None:
            named = "the model" if name == "model" else what
            found += ProtectedFiles.of_model(path, named) if is_model_path(path) else ProtectedFiles.of_file(path, what)
    for name, what in _FILES.items():
        path = getattr(options, name, None)
        if path not in (None, "-"):
            found += ProtectedFiles.of_file(path, what)
    for what, specs in (("input", getattr(options, "input", [])), ("state", getattr(options, "state", []))):
        for name, text in pairs(specs, f"--{what}").items():
            file = file_of(text)
            if file is not None:
                found += ProtectedFiles.of_file(file, f"{what} '{name}'")
    if getattr(options, "calls", None):
        from stepper.cli.options.calls import files_of_calls  # few runs are of many calls

        found += files_of_calls(options)
    for library in getattr(options, "extension", []):
        found += ProtectedFiles.of_file(library, "an extension of OpenVINO")
    return found + _files_of_case(options)


def _files_of_case(options: argparse.Namespace) -> ProtectedFiles:
    """Return the files of a case that stands in place of the model: what the application got is one of them."""
    case, found = getattr(options, "case", None), ProtectedFiles()
    for path in () if case is None else case.files:
        found += ProtectedFiles.of_file(path, "a file of the case")
    return found
