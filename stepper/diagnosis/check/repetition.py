"""Loops that go round in a circle: all that they carry repeats with a period."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stepper.diagnosis.check.subject import CarriedRow, RunOfLoop
from stepper.tensors.histories import ValueHistory

_LONGEST: Final = 64
"""The longest period that is looked for."""
_LEAST_REPEATED: Final = 4


class Repetition(NamedTuple):
    """Everything that a loop carries repeats, from an iteration to the end; `value` is one that does not stay."""

    period: int
    since: int
    value: CarriedRow


def repetition(loop: RunOfLoop) -> Repetition | None:
    """Return with which period all that is carried repeats to the end; None if it does not.

    Counters and what never changes are left out; a value that settles is none.
    """
    found: Repetition | None = None
    for value in loop.carried():
        if value.counter is not None or value.history.unchanged_since == 0:
            continue
        one = _period(value.history)
        if one is None:
            return None
        period, since = one
        if found is None or period > found.period:
            found = Repetition(period, since if found is None else max(found.since, since), value)
    return found if found is not None and found.period > 1 else None


def _period(history: ValueHistory) -> tuple[int, int] | None:
    """Return the period of the last iterations, and since when it holds; None without one, or of too few iterations."""
    exact = history.spans[:, 1] - history.spans[:, 0] == 1
    begin = int(np.flatnonzero(~exact)[-1]) + 1 if not exact.all() else 0
    columns = history.numbers[:, begin:]
    count = columns.shape[1]
    for period in range(1, min(count // 2, _LONGEST) + 1):
        same = (columns[:, period:] == columns[:, :-period]).all(axis=(0, 2))
        run = int(same[::-1].argmin()) if not same.all() else len(same)
        if run >= max(2 * period, _LEAST_REPEATED):
            return period, int(history.spans[begin, 0]) + count - run - period
    return None
