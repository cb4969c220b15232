"""The rules by subject; each module adds its own to the list when it is imported."""

from __future__ import annotations

from stepper.diagnosis.check.rules import comparison, dependence, endings, losses, numbers, states

__all__ = ["comparison", "dependence", "endings", "losses", "numbers", "states"]
