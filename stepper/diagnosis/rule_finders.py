"""Finders: functions that find the places where each rule is broken."""

from __future__ import annotations

from collections.abc import Sequence

import stepper.diagnosis.check.rules
import stepper.diagnosis.lint.rules
import stepper.diagnosis.precision.precision_finders  # noqa: F401  # each of its modules adds its own
from stepper.diagnosis.rule import FINDERS, RuleFinder, SubjectKind


def rule_finders(scope: SubjectKind) -> Sequence[RuleFinder]:
    """Return the rules that are asked about each of these, with what finds the places."""
    return FINDERS[scope]
