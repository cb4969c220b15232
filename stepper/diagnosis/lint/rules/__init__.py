"""The rules by subject; each module adds its own to the list when it is imported."""

from __future__ import annotations

from stepper.diagnosis.lint.rules import (
    back_edges,
    cells,
    constants,
    control,
    file,
    operations,
    patterns,
    port_map,
    runtime,
    slices,
    state,
    types,
    wiring,
)

__all__ = [
    "back_edges",
    "cells",
    "constants",
    "control",
    "file",
    "operations",
    "patterns",
    "port_map",
    "runtime",
    "slices",
    "state",
    "types",
    "wiring",
]
