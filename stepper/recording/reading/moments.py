"""The recorded moments of one graph, in the order of time: each iteration of a loop, each run of a branch.

A moment is one of the iterations of a row of the table `runs`; those of the loops around it are found by way of the
activations. Nothing is held but the row that is looked at, however long the recording is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from stepper.errors import SessionError
from stepper.ir.model import Layer
from stepper.query.address_syntax import IterationRange
from stepper.recording.reading.recording import Recording

_MOST_UNFINISHED: Final = 64
_LONGEST_RUN: Final = 2**20
"""Far more iterations than are written at once."""

Asked = int | IterationRange | None
"""Iterations of one loop that are asked for: one, several, or all."""


class RecordedMoment(NamedTuple):
    """A moment at which values were recorded; `id` counts them, and `tick` is when the iteration was closed.

    `activations` and `numbers` have for each layer of the graph's path which run of its body this is (the number of
    its activation) and, of a loop, in which iteration.
    """

    id: int
    tick: int
    activations: tuple[int, ...]
    numbers: tuple[int | None, ...]

    @property
    def iteration(self) -> int | None:
        """Iteration of the innermost loop; None outside of all."""
        run, number = self.innermost
        return None if run is None else number

    @property
    def innermost(self) -> tuple[int | None, int]:
        """The activation of the innermost loop, and its iteration; None outside of all."""
        pairs = zip(reversed(self.activations), reversed(self.numbers), strict=True)
        return next(((run, number) for run, number in pairs if number is not None), (None, -1))


def moments(
    recording: Recording, level: int, path: Sequence[Layer], asked: Sequence[Asked]
) -> Iterator[RecordedMoment]:
    """Return all moments of a level that were asked for. `path` are the layers that lead to it."""
    within, where = _conditions(recording, path, asked)
    query = f"{_selection(path, within)} WHERE a{len(path)}.level = ?{where} ORDER BY r.id"
    return (one for row in recording.stream(query, (level,)) for one in _run(recording, row, path))


def count(recording: Recording, level: int, path: Sequence[Layer], asked: Sequence[Asked]) -> int:
    """Return how many there are."""
    within, where = _conditions(recording, path, asked)
    query = f"SELECT sum({within.stop} - {within.start}) FROM {_tables(path)} WHERE a{len(path)}.level = ?{where}"
    return int(recording.query(query, (level,))[0][0] or 0)


def moment(recording: Recording, identity: int, path: Sequence[Layer]) -> RecordedMoment:
    """Return the moment of this id. SessionError where there is none."""
    run = "(SELECT max(id) FROM runs WHERE id <= ?)"
    for row in recording.query(f"{_selection(path, _WHOLE)} WHERE r.id = {run}", (identity,)):
        for one in _run(recording, row, path):
            if one.id == identity:
                return one
    raise SessionError(f"{recording.path}: has values of an iteration that is missing ({identity})")


def most_iterations(recording: Recording, level: int) -> int:
    """Return how many iterations the longest run of this level's loop had, as far as it was recorded."""
    finished = recording.query("SELECT max(iterations) FROM activations WHERE level = ?", (level,))[0][0]
    return max([finished or 0, *_unfinished(recording, level).values()])


# --- SQL ------------------------------------------------------------------------------------------------------------
# The activation at depth d (1: the outermost) is a{d}; the iteration of a loop on the way is what the activation inside
# it names as the one around it.


class _Within(NamedTuple):
    """Terms of SQL for the first iteration of a run that is wanted, and the one behind the last."""

    start: str
    stop: str


_FIRST: Final = "coalesce(r.iteration, 0)"
_WHOLE: Final = _Within(_FIRST, f"{_FIRST} + r.count")


def _tables(path: Sequence[Layer]) -> str:
    depth = len(path)
    joins = [f"CROSS JOIN activations AS a{depth} ON a{depth}.id = r.activation"]
    joins += [f"CROSS JOIN activations AS a{d} ON a{d}.id = a{d + 1}.parent" for d in reversed(range(1, depth))]
    return " ".join(["runs AS r", *joins])


def _selection(path: Sequence[Layer], within: _Within) -> str:
    columns = [f"a{depth}.id" for depth in range(1, len(path) + 1)]
    columns += [f"a{depth}.parent_iteration" for depth in range(2, len(path) + 1)]
    own = ["r.id", "r.tick", "r.step", _FIRST, within.start, within.stop]
    return f"SELECT {', '.join([*own, *columns])} FROM {_tables(path)}"


def _run(recording: Recording, row: tuple[Any, ...], path: Sequence[Layer]) -> Iterator[RecordedMoment]:
    """Yield the moments of one row."""
    identity, tick, step, first, start, stop = row[:6]
    activations, outer = row[6 : 6 + len(path)], row[6 + len(path) :]
    around = tuple(number if layer.is_loop else None for layer, number in zip(path[:-1], outer, strict=True))
    fits = all(type(one) is int for one in (*row[:6], *activations)) and 0 <= stop - first <= _LONGEST_RUN
    if not fits or any(layer.is_loop is not (type(one) is int) for layer, one in zip(path[:-1], around, strict=True)):
        raise SessionError(f"{recording.path}: its table of runs is damaged")
    is_loop = path[-1].is_loop
    for number in range(start, stop):
        offset = number - first
        numbers = (*around, number if is_loop else None)
        yield RecordedMoment(identity + offset, tick + offset * step, activations, numbers)


def _conditions(recording: Recording, path: Sequence[Layer], asked: Sequence[Asked]) -> tuple[_Within, str]:
    """Return which iterations of each run are wanted, and the condition for the runs that have any of them."""
    conditions: list[str] = []
    starts, stops = [_WHOLE.start], [_WHOLE.stop]
    unfinished: dict[int, int] | None = None
    for place, iterations in enumerate(asked):
        if iterations is None:
            continue
        for bound, is_start in zip(_bounds(iterations), (True, False), strict=True):
            if bound is None:
                continue
            term = str(bound)
            if bound < 0:
                unfinished = _unfinished(recording) if unfinished is None else unfinished
                term = f"{_count(place + 1, unfinished)} + {bound}"
            if place == len(path) - 1:
                (starts if is_start else stops).append(term)
            else:
                conditions.append(f"a{place + 2}.parent_iteration {'>=' if is_start else '<'} {term}")
    within = _Within(_of("max", starts), _of("min", stops))
    if within != _WHOLE:
        conditions.append(f"{within.start} < {within.stop}")
    return within, "".join(f" AND {condition}" for condition in conditions)


def _of(choice: str, terms: Sequence[str]) -> str:
    return f"{choice}({', '.join(terms)})" if len(terms) > 1 else terms[0]


def _bounds(iterations: int | IterationRange) -> tuple[int | None, int | None]:
    if isinstance(iterations, int):
        return iterations, None if iterations == -1 else iterations + 1
    return iterations.start, iterations.stop


def _count(depth: int, unfinished: dict[int, int]) -> str:
    """Return how many iterations an activation ran."""
    if not unfinished:
        return f"a{depth}.iterations"
    cases = " ".join(f"WHEN {activation} THEN {count}" for activation, count in unfinished.items())
    return f"CASE a{depth}.id {cases} ELSE a{depth}.iterations END"


def _unfinished(recording: Recording, level: int | None = None) -> dict[int, int]:
    """Return how many iterations the activations (of a level) have run that were under way when the recording ended."""
    query = "SELECT id FROM activations WHERE closed IS NULL AND level = coalesce(?, level)"
    rows = recording.query(f"{query} LIMIT {_MOST_UNFINISHED + 1}", (level,))
    if len(rows) > _MOST_UNFINISHED:
        raise SessionError(f"{recording.path}: its table of activations is damaged")
    counts: dict[int, int] = {}
    for (activation,) in rows:
        own = "SELECT max(iteration + count - 1) FROM runs WHERE activation = ?"
        inside = "SELECT max(parent_iteration) FROM activations WHERE parent = ?"
        last = recording.query(f"SELECT max(coalesce(({own}), -1), coalesce(({inside}), -1))", (activation,) * 2)[0][0]
        if type(last) is not int:
            raise SessionError(f"{recording.path}: its table of activations is damaged")
        counts[activation] = last + 1
    return counts
