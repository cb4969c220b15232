"""A case in place of a model: its files, for the options that do not name others."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stepper.errors import InputError
from stepper.files.file_kinds import CASE_MODEL, is_case
from stepper.files.recognition import model_folder
from stepper.terminal import say

if TYPE_CHECKING:
    from stepper.cases.case import Case


_MOST_LISTED: Final = 10
_ALONE: Final = ["1"]
"""Words of --calls that have the last call of a case run, without those before it."""


def put_case(options: Namespace) -> None:
    """Put the files of a case in the place of the folder that was named as the model, and of what was not named.

    Raises what reading a case raises, and InputError for a case without a model.
    """
    words, reference = getattr(options, "models", None), getattr(options, "reference", None)
    if isinstance(words, list):
        options.models = [_named(one, options) for one in words]
    if isinstance(reference, str):
        options.reference = _named(reference, options)
    word = getattr(options, "model", None)
    if not isinstance(word, str):
        return
    if not is_case(word):
        options.model = _named(word, options)
        return
    case = options.case = _read(word)
    options.model = _model_of(word)
    inputs, states, outputs = case.inputs, case.states, case.outputs
    if _opens_as_loop(case, options):
        if not options.carry and case.facts is not None:
            options.carry = list(case.facts.carried)
        inputs, states, outputs = None, case.calls_states, case.calls_outputs
    for name, path in (("inputs", inputs), ("states", states)):
        if getattr(options, name, "") is None and path is not None:
            setattr(options, name, str(path))
    if options.command == "compare" and options.reference is None and outputs is not None:
        options.reference = str(outputs)
        options.reference_precision = None if case.facts is None else case.facts.precision


def _opens_as_loop(case: Case, options: Namespace) -> bool:
    """Have the calls of a case made, where it has some and nothing else is asked for."""
    asked = getattr(options, "calls", None)
    if case.calls is None or asked not in ([], _ALONE):
        return False
    options.calls = [str(case.calls)] if asked == [] else []  # alone, not as a loop of one
    return bool(options.calls)


def _read(word: str) -> Case:
    from stepper.cases.case import read_case  # few commands are given one

    return read_case(Path(word))


def _named(word: str, options: Namespace) -> str:
    """Return the file of the model that a word means, which may be a case or a folder with models."""
    if is_case(word):
        return _model_of(word)
    found = model_folder(Path(word))
    if found is None or found.model is None:
        return word
    if found.others and not getattr(options, "quiet", False):
        beside = f"; there {'is' if len(found.others) == 1 else 'are'} also {', '.join(found.others[:_MOST_LISTED])}"
        say(f"stepper: {word}: opens {found.model.name}{beside}", file=sys.stderr)
    return str(found.model)


def _model_of(word: str) -> str:
    case = _read(word)
    if case.model is None:
        trouble = "" if case.facts is None or not case.facts.trouble else f": {case.facts.trouble[0]}"
        raise InputError(f"{case.folder} has no {CASE_MODEL}{trouble}")
    return str(case.model)
