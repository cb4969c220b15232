"""The words of findings."""

from __future__ import annotations

from stepper.diagnosis.findings import Finding
from stepper.diagnosis.registry import rules


def sentence(finding: Finding) -> str:
    """Return what is wrong."""
    return rules()[finding.rule].says.format(**finding.details)


def remedy(finding: Finding) -> str:
    """Return what to do."""
    return rules()[finding.rule].do.format(**finding.details)
