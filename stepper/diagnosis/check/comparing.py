"""A comparison with a reference as a finding: the first place where the two runs part."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from stepper.compare.comparison import RunComparison
from stepper.compare.observations import SideFailure
from stepper.compare.verdict import ComparisonVerdict
from stepper.diagnosis.check.places import moment_address
from stepper.diagnosis.check.rules.comparison import DEPARTS, DIFFERS, REFUSED
from stepper.diagnosis.findings import FilePart, Finding, Severity
from stepper.engine.rules import Rules
from stepper.errors import StepperError
from stepper.ir.model import layer_site
from stepper.openvino.partner import OPENVINO


def compared_finding(
    compare: Callable[[Rules | None], RunComparison], reference: str, *, was_asked: bool
) -> Finding | None:
    """Return where a run parts from a reference, by its name; None where it does not.

    `compare` runs both, under a rule book (None: as the user asks). What OpenVINO alone computes otherwise, so that
    both agree under its rules, is a departure. Where nobody `was_asked` for it, what stops the reference is a note, and
    a comparison that fails is none; else raises what `compare` does.
    """
    try:
        compared = compare(None)
    except StepperError:
        if was_asked:
            raise
        return None
    found = comparison_finding(compared, reference)
    if found is None:
        return None
    if found.rule == REFUSED.name:
        return found if was_asked else replace(found, severity=Severity.NOTE)
    if reference == OPENVINO:
        with suppress(StepperError):  # of a model that may not run so
            if not compare(Rules.OPENVINO).differs:
                return replace(found, rule=DEPARTS.name, severity=DEPARTS.severity)
    return found


def comparison_finding(compared: RunComparison, reference: str) -> Finding | None:
    """Return where a run parts from the reference that the user knows by this name; None where it does not."""
    found = compared.verdict
    if found is None:
        return None
    stopped = next((one for one in compared.observations.findings if isinstance(one, SideFailure)), None)
    rule, reason = DIFFERS, found.reason
    if stopped is not None and not stopped.ours:
        rule, reason = REFUSED, stopped.message
    details = {"reference": reference, "reason": reason, "model": compared.file}
    if rule is REFUSED:  # no place of ours is to blame
        return Finding(rule.name, rule.severity, FilePart(compared.file, 0, "run"), dict(details))
    path = tuple(layer_site(step.layer, compared.file) for step in found.path)
    iterations = tuple(step.iteration for step in found.path if step.iteration is not None)
    layer = None if found.layer is None else layer_site(found.layer, compared.file)
    loop = None if found.loop is None else layer_site(found.loop, compared.file)
    spot = FilePart(compared.file, found.line, "run", path, layer, loop)
    return Finding(rule.name, rule.severity, spot, dict(details), iterations, _address(found))


def _address(found: ComparisonVerdict) -> str:
    """Return where values differ first, as the debugger knows it."""
    shown = found.shows_at or found.layer
    if shown is None or shown.type == "Result":
        return ""
    if not found.path:
        return moment_address(shown.name, ())
    around = found.path[-1].layer
    if found.iteration is None or not any(shown in body.graph.layers for body in around.bodies):
        return moment_address(around.name, ())
    return moment_address(shown.name, (found.iteration,))
