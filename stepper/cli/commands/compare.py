"""`stepper compare MODEL --with REFERENCE`: the first place where two runs part, and why."""

from __future__ import annotations

import sys
from argparse import Namespace

from stepper.collector import collector_off
from stepper.errors import FINDING
from stepper.openvino.program import OPENVINO, start_loading


def execute(options: Namespace) -> int:
    """Compare and report; 0 where nothing differs, 1 where something does."""
    options.reference = options.reference or OPENVINO
    if options.reference == OPENVINO:
        start_loading()
    # Not before: OpenVINO loads while numpy does.
    with collector_off():
        from stepper.cli.comparing import compared
        from stepper.cli.values import print_json
        from stepper.compare import report
        from stepper.terminal import say

    found = compared(options)
    _note_another_model(options)
    if options.json:
        print_json({**report.as_json(found, per_operation=options.per_op), "model": options.model})
    else:
        for line in report.text_lines(found, per_operation=options.per_op):
            say(line)
    return FINDING if found.differs else 0


def _note_another_model(options: Namespace) -> None:
    """Say that the model of a case was changed since it ran in the application whose outputs it is held against."""
    from stepper.terminal import say

    case = getattr(options, "case", None)
    is_beside_application = case is not None and options.reference in map(str, (case.outputs, case.calls_outputs))
    if case is not None and is_beside_application and case.has_another_model:
        say(f"note: {case.folder}: its model is not the one that the application ran", file=sys.stderr)
