"""The rules by subject; each module says what finds the places where they are broken when it is imported."""

from __future__ import annotations

from stepper.diagnosis.check.rules import numbers, states

__all__ = ["numbers", "states"]
