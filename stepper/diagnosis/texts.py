"""The words of findings."""

from __future__ import annotations

from stepper.diagnosis.findings import Finding
from stepper.diagnosis.registry import rules


def sentence(finding: Finding) -> str:
    """Return what is wrong."""
    return rules()[finding.rule].says.format(**finding.details)


def headline(finding: Finding) -> str:
    """Return in which loop and iteration it shows, and what is wrong."""
    iterations = ", ".join(map(str, finding.iterations))
    where = f"iteration{'s' if len(finding.iterations) > 1 else ''} {iterations}" if iterations else ""
    loop = "" if finding.spot.loop is None else str(finding.spot.loop)
    place = ", ".join(part for part in (loop, where) if part)
    return f"{place}: {sentence(finding)}" if place else sentence(finding)


def remedy(finding: Finding) -> str:
    """Return what to do."""
    return rules()[finding.rule].do.format(**finding.details)
