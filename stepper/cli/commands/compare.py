"""`stepper compare MODEL --with REFERENCE`: the first place where two runs part, and why."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from stepper.collector import collector_off
from stepper.errors import FINDING, InputError, StepperError, UsageError
from stepper.openvino.program import OPENVINO, start_loading

if TYPE_CHECKING:
    from stepper.compare.comparison import RunComparison


def execute(options: Namespace) -> int:
    """Compare and report; 0 where nothing differs, 1 where something does."""
    if options.reference is None and Path(options.model).suffix.lower() != ".onnx":
        options.reference = OPENVINO
    if options.reference == OPENVINO:
        start_loading()
    # Not before: OpenVINO loads while numpy does.
    with collector_off():
        from stepper.cli.comparing import compared
        from stepper.cli.printing import print_json
        from stepper.compare import comparison
        from stepper.terminal import say

    found = compared(options) if options.reference else _with_the_usual(options)
    _note_another_model(options)
    _note_precision(options)
    if options.json:
        print_json({**comparison.as_json(found, per_operation=options.per_op), "model": options.model})
    else:
        for place, line in enumerate(comparison.text_lines(found, per_operation=options.per_op)):
            say(line, marks={} if place else {line: "error" if found.differs else "good"})
    return FINDING if found.differs else 0


def _with_the_usual(options: Namespace) -> RunComparison:
    """Compare with the first of the usual references that can run the model; say why an earlier one cannot."""
    from stepper.cli.comparing import compared, usual_references
    from stepper.terminal import say

    *others, last = usual_references(options)
    for options.reference in others:
        try:
            return compared(options)
        except (UsageError, InputError):
            raise
        except StepperError as error:
            say(f"stepper: {error}; another reference is asked", file=sys.stderr)
    options.reference = last
    return compared(options)


def _note_precision(options: Namespace) -> None:
    """Say in what the application of a case computed, where that is not f32, and what that means here."""
    from stepper.terminal import say

    case = getattr(options, "case", None)
    precision = None if case is None or case.facts is None else case.facts.precision
    if precision is None or options.quiet:
        return
    if options.reference == OPENVINO:
        asked = options.precision or "f32"
        means = (
            "" if asked == precision else f"; OpenVINO is asked for {asked} here: --precision {precision} asks for that"
        )
    else:
        means = f"; values are compared with the tolerances of {precision}"
    say(f"stepper: the application computed in {precision} (INFERENCE_PRECISION_HINT){means}", file=sys.stderr)


def _note_another_model(options: Namespace) -> None:
    """Say that the model of a case was changed since it ran in the application whose outputs it is compared with."""
    from stepper.terminal import say

    case = getattr(options, "case", None)
    is_beside_application = case is not None and options.reference in map(str, (case.outputs, case.calls_outputs))
    if case is not None and is_beside_application and case.has_another_model:
        say(f"note: {case.folder}: its model is not the one that the application ran", file=sys.stderr)
