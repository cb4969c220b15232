"""Results of a debugger's questions: moments at which something holds, values over iterations."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from stepper.element_types import Array, Indices
from stepper.html_tables import html_table
from stepper.ops.operands import form_text
from stepper.records import OneLine, Record

if TYPE_CHECKING:
    from stepper.debug.causes.cause import Enclosure


Evaluated: TypeAlias = Array | float | int | bool | str | Indices
"""Result of an expression: a tensor of rank 1 or more as a read-only array, a single number as that of Python, a type
by its name, a shape as a tuple."""


class Which(StrEnum):
    """Which of the moments: of the whole run, or counted from the present."""

    FIRST = "first"
    NEXT = "next"
    PREVIOUS = "previous"
    LAST = "last"
    ALL = "all"


class FoundMoment(Record):
    """Position of the run: `goto_tick(tick)` leads there. `iteration` is the innermost loop's, None outside."""

    tick: int
    iteration: int | None
    place: str


class Found(OneLine, eq=True):
    """Moments that were found. `asked` counts the moments at which the expression was evaluated.

    `more` says that there were more than the limit; `stopped` why the run did not get to its end: a pause, an error,
    the tick that was set; empty where it did, or was not asked to. `failures` counts the moments at which the
    expression had no value, `failure` is the first reason.
    """

    moments: tuple[FoundMoment, ...]
    asked: int
    more: bool
    stopped: str
    failures: int
    failure: str


def cell_text(array: Array) -> str:
    """Return type and shape of a tensor and some of its numbers, as a cell of a table shows them."""
    return f"{form_text(array)} {np.array2string(array.reshape(-1), threshold=8)}"


class Series(OneLine):
    """Values over iterations; `values[k]` is that of iteration `iterations[k]`.

    Iterations in which nothing computed the value (the other side of an If ran) are left out. `step` is 1, or more
    where there were too many iterations to keep: every `step`-th of the `total` that had a value. `stopped` says why
    the run did not get through all that were asked for: a pause, or an error; empty where it did. `in_branch`: the
    value is one of an If, which may leave iterations out. `outer` are the loops around that of the iterations, from the
    outside inwards, each in the iteration in which this run of it is.
    """

    name: str
    iterations: Indices
    values: tuple[Array, ...]
    step: int
    stopped: str
    total: int
    in_branch: bool = False
    outer: tuple[Enclosure, ...] = ()

    def _repr_html_(self) -> str:
        """Return a table of the values, for notebooks."""
        pairs = zip(self.iterations, self.values, strict=True)
        rows = [(f"@{at}", cell_text(one)) for at, one in pairs]
        return html_table([*rows, *([("", self.stopped)] if self.stopped else [])], self.name)


class PreviousValue(OneLine):
    """A value now and one iteration before; `change` is the largest difference, None where shapes differ.

    `now` is None where it was not computed yet in the present iteration.
    """

    iteration: int
    now: Array | None
    before: Array
    change: float | None
