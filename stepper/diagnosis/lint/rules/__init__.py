"""The rules by subject; each module says what finds the places where they are broken when it is imported."""

from __future__ import annotations

from stepper.diagnosis.lint.rules import carried, control, edges, operations, port_map

__all__ = ["carried", "control", "edges", "operations", "port_map"]
