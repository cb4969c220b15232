"""A case in place of a model: its files, for the options that do not name others."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from stepper.errors import InputError
from stepper.files.kinds import CASE_MODEL, is_case

if TYPE_CHECKING:
    from stepper.cases.case import Case


def put_case(options: argparse.Namespace) -> None:
    """Put the files of a case in the place of the folder that was named as the model, and of what was not named.

    Raises what reading a case raises, and InputError for a case without a model.
    """
    word, words = getattr(options, "model", None), getattr(options, "models", None)
    if isinstance(words, list):
        options.models = [_model_of(one) if is_case(one) else one for one in words]
    if isinstance(word, str) and is_case(word):
        case = _read(word)
        options.model = _model_of(word)
        inputs, states, outputs = case.inputs, case.states, case.outputs
        if case.calls is not None and getattr(options, "calls", None) == []:
            options.calls = [str(case.calls)]
            if not options.carry and case.facts is not None:
                options.carry = list(case.facts.carried)
            inputs, states, outputs = None, case.calls_states, case.calls_outputs
        for name, path in (("inputs", inputs), ("states", states)):
            if getattr(options, name, "") is None and path is not None:
                setattr(options, name, str(path))
        if options.command == "compare" and options.reference is None and outputs is not None:
            options.reference = str(outputs)
            options.reference_precision = None if case.facts is None else case.facts.precision


def _read(word: str) -> Case:
    from stepper.cases.case import read_case  # few commands are given one

    return read_case(Path(word))


def _model_of(word: str) -> str:
    case = _read(word)
    if case.model is None:
        trouble = "" if case.facts is None or not case.facts.trouble else f": {case.facts.trouble[0]}"
        raise InputError(f"{case.folder} has no {CASE_MODEL}{trouble}")
    return str(case.model)
