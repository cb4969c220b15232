"""A comparison with a reference as a finding: the first place where the two runs part."""

from __future__ import annotations

from msgspec.structs import replace

from stepper.compare.report.verdict import ComparisonVerdict
from stepper.compare.run.comparison import RunComparison
from stepper.compare.run.observations import SideFailure
from stepper.diagnosis.check.places import moment_address
from stepper.diagnosis.findings import FilePart, Finding, Severity
from stepper.diagnosis.rule import Rule, SubjectKind, add
from stepper.ir.model import layer_site

DIFFERS = Rule(
    "D501",
    "differs-from-reference",
    SubjectKind.RUN,
    Severity.ERROR,
    says="the run parts from {reference}: {reason}",
    means="the model does not compute what the reference does",
    do="look at both sides there: stepper compare {model} --with {reference}",
    source="the reference",
)
add(DIFFERS)
REFUSED = Rule(
    "D502",
    "reference-stops",
    SubjectKind.RUN,
    Severity.WARNING,
    says="{reference} stops: {reason}",
    means="the model runs here and not there",
    do="look at what the message names; stepper lint tells what OpenVINO refuses",
    source="the reference",
)
add(REFUSED)


_DEPARTS = Rule(
    "D503",
    "runtime-departs",
    SubjectKind.RUN,
    Severity.NOTE,
    says="the run parts from {reference}: {reason}",
    means="OpenVINO computes this otherwise than the specification says; with --rules openvino both agree",
    do="write the model so that both mean the same; stepper lint names what is known",
    source="semantics 11",
)
add(_DEPARTS)


def departure_finding(compared: RunComparison, reference: str) -> Finding | None:
    """Return the same of a run that agrees with the reference under its own rule book."""
    found = comparison_finding(compared, reference)
    return None if found is None else replace(found, rule=_DEPARTS.name, severity=_DEPARTS.severity)


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
