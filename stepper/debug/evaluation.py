"""One value of a run for a program that asks: what an expression is now, and what an address names."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from stepper.arguments import text
from stepper.debug.iterations.series import over_iterations, part_of, value_in
from stepper.debug.results import Evaluated, Series
from stepper.debug.scopes import Names
from stepper.debug.stop_scope import StopScope
from stepper.debug.timeline import Timeline
from stepper.element_types import Array, read_only
from stepper.errors import UsageError
from stepper.query.address_resolution import resolve
from stepper.query.address_syntax import Address, IterationRange, address_given
from stepper.query.expressions import parse


def evaluate(timeline: Timeline, expression: str) -> Evaluated:
    """Return the value of an expression now.

    Raise ExpressionError, and UsageError where something in it has no value.
    """
    value = parse(text("expression", expression)).evaluate(StopScope(timeline, Names(timeline.machine.compiled)))
    return _plain(value)


def _plain(value: Any) -> Evaluated:
    if not isinstance(value, np.ndarray | np.generic):
        found: Evaluated = value
        return found
    if value.ndim or value.dtype.names is not None:
        return read_only(value)
    number: Evaluated = value.item()
    return number


def value_of(timeline: Timeline, address: str | Address) -> Array | Series:
    """Return the value that an address names, now or in the iterations that it says."""
    address = address_given(address)
    if not isinstance(address.iterations, IterationRange):
        target = resolve(address, timeline.machine.compiled, timeline.machine.program)
        return part_of(address, value_in(timeline, target))
    series = over_iterations(timeline, address, most=sys.maxsize, whole=True)
    if series.stopped:
        known = f"the last that has one is {series.iterations[-1]}" if series.iterations else "none has one"
        raise UsageError(f"'{address}' has no value in all of its iterations ({known}): {series.stopped}")
    if not series.values:
        raise UsageError(f"'{address}' has no value: the loop has no such iteration")
    first, last = series.iterations[0], series.iterations[-1]
    is_even = len({(value.shape, value.dtype) for value in series.values}) == 1
    if not is_even or len(series.values) != last - first + 1 or series.in_branch:
        return series
    return read_only(np.stack(series.values))
