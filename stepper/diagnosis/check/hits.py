"""Places in a run where a rule is broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stepper.diagnosis.findings import Detail, FilePart, Finding, Severity
from stepper.diagnosis.rule import Rule
from stepper.ir.model import LayerSite


class RunPlace(NamedTuple):
    """A layer, the loops around it with their iterations, and what to look at; `loop` is the one that it is about."""

    layer: LayerSite | None
    path: tuple[LayerSite, ...] = ()
    iterations: tuple[int, ...] = ()
    address: str = ""
    tick: int = 0
    loop: LayerSite | None = None


class RunFinding(NamedTuple):
    """A rule that is broken at a place; `severity` where it is another than that of the rule."""

    place: RunPlace
    details: Mapping[str, Detail]
    severity: Severity | None = None


def finding_of(rule: Rule, file: str, hit: RunFinding) -> Finding:
    """Return the finding of a rule at a place."""
    place = hit.place
    loop = place.loop or (place.path[-1] if place.path else None)
    line = place.layer.line if place.layer is not None else 0
    spot = FilePart(file, line, "run", place.path, place.layer, loop)
    severity = hit.severity or rule.severity
    return Finding(rule.name, severity, spot, dict(hit.details), place.iterations, place.address, place.tick)


def shown(place: RunPlace, severity: Severity | None = None, **details: Detail) -> RunFinding:
    """Return what a rule has found."""
    return RunFinding(place, details, severity)
