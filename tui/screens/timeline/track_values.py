"""Values over the iterations as one number each: of watches and of what a loop carries."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

from stepper.debug.inspection.run_views import WatchView
from stepper.debug.stop_scope import WatchReading
from stepper.element_types import Array
from stepper.ir.model import Layer
from stepper.tensors.statistics import number_of
from tui.paint.rows import cell_len, clip
from tui.state import State


def value_of(watch: WatchView) -> Array | None:
    """Return the present value of a watch; None where it is not kept."""
    return None if watch.now is None or watch.now.error else watch.now.value


_NUMBERS: Final[WeakKeyDictionary[WatchReading, float | None]] = WeakKeyDictionary()
"""Each key shows all of them again."""


def number_in(reading: WatchReading) -> float | None:
    """Return a reading as one number; None where it is none."""
    if reading not in _NUMBERS:
        value = reading.value
        _NUMBERS[reading] = None if value is None or value.dtype.names is not None else number_of(value)
    return _NUMBERS[reading]


def measured(name: str, value: Array | None, room: int) -> str:
    """Return the name of a track, and of a tensor, where there is room, which number of it is shown (number_of)."""
    whole = name if value is None or value.size <= 1 else f"{name} rms"
    return whole if cell_len(whole) <= room else clip(name, room)


def carried_value(state: State, parameter: Layer | None) -> Array | None:
    """Return the value of a Parameter in this iteration."""
    edges = () if state.loop is None else state.loop.back_edges
    return next((edge.came_in for edge in edges if edge.parameter.layer is parameter), None)
