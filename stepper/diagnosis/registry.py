"""All rules, and what finds the places where each is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import stepper.diagnosis.check.rules
import stepper.diagnosis.lint.rules
import stepper.diagnosis.precision.rules  # noqa: F401  # each of its modules adds its own
from stepper.diagnosis.rule import FINDERS, REGISTERED, Rule, RuleFinder, SubjectKind


def rules() -> Mapping[str, Rule]:
    """Return all rules by name, in the order of their ids."""
    return MappingProxyType(dict(sorted(REGISTERED.items(), key=lambda item: item[1].id)))


def rule_finders(scope: SubjectKind) -> Sequence[RuleFinder]:
    """Return the rules that are asked about each of these, with what finds the places."""
    return FINDERS[scope]
