"""Facts of a whole sweep: outcomes by count, where and in which iteration, and which inputs run on or end early."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from msgspec import Struct

from stepper.sweep.rows import LoopCount, SweepOutcome
from stepper.sweep.table_file import StoredRow


class IterationCount(Struct, frozen=True):
    """How many inputs show something in an iteration of the innermost loop; None: in no loop."""

    iteration: int | None
    inputs: int


class PlaceCount(Struct, frozen=True):
    """A place where something shows: what, in which layer, with how many inputs, in which iterations.

    `first` is the number of the first input with it.
    """

    outcome: SweepOutcome
    what: str
    operation: str
    type: str
    path: tuple[str, ...]
    inputs: int
    iterations: tuple[IterationCount, ...]
    first: int


class LengthCount(Struct, frozen=True):
    """How many inputs make a loop run so many iterations in all."""

    iterations: int
    inputs: int
    first: int


class LoopSpread(Struct, frozen=True):
    """The iterations of a loop over all inputs with which the run came to its end, the most frequent first."""

    path: str
    lengths: tuple[LengthCount, ...]


class SweepSummary(Struct, frozen=True):
    """The facts of a sweep. `count` inputs, of which `done` have a row.

    `unusual` are the numbers of those that show nothing, but whose loops ran otherwise than with most inputs: other
    numbers of iterations, or another end.
    """

    count: int
    done: int
    outcomes: dict[SweepOutcome, int]
    places: tuple[PlaceCount, ...]
    loops: tuple[LoopSpread, ...]
    unusual: tuple[int, ...]

    @property
    def found(self) -> int:
        """Return how many inputs show something."""
        return self.done - self.outcomes.get(SweepOutcome.NOTHING, 0)


def summary(rows: Sequence[StoredRow], count: int) -> SweepSummary:
    """Return the facts of these rows, of so many inputs."""
    outcomes = Counter(stored.row.outcome for stored in rows)
    ordered = {outcome: outcomes[outcome] for outcome in SweepOutcome if outcomes[outcome]}
    usual = _usual(rows)
    unusual = tuple(
        stored.number for stored in rows if stored.row.outcome is SweepOutcome.NOTHING and stored.row.loops != usual
    )
    return SweepSummary(count, len(rows), ordered, _places(rows), _spreads(rows), unusual)


def _usual(rows: Sequence[StoredRow]) -> tuple[LoopCount, ...]:
    counts = Counter(stored.row.loops for stored in rows if stored.row.outcome is SweepOutcome.NOTHING)
    if not counts:
        return ()
    most = max(counts.values())
    return next(loops for loops, inputs in counts.items() if inputs == most)  # the first of them, by number


def _places(rows: Sequence[StoredRow]) -> tuple[PlaceCount, ...]:
    groups: dict[tuple[SweepOutcome, str, str, str, tuple[str, ...]], list[StoredRow]] = defaultdict(list)
    for stored in rows:
        row = stored.row
        if row.outcome is not SweepOutcome.NOTHING:
            groups[row.outcome, row.what, row.operation, row.type, row.path].append(stored)
    found = []
    for (outcome, what, operation, type, path), members in groups.items():
        counts = Counter(stored.row.iteration for stored in members)
        iterations = tuple(
            IterationCount(iteration, counts[iteration])
            for iteration in sorted(counts, key=lambda one: -1 if one is None else one)
        )
        found.append(PlaceCount(outcome, what, operation, type, path, len(members), iterations, members[0].number))
    return tuple(sorted(found, key=lambda one: (-one.inputs, one.first)))


def _spreads(rows: Sequence[StoredRow]) -> tuple[LoopSpread, ...]:
    lengths: dict[str, dict[int, list[int]]] = {}
    for stored in rows:
        for loop in stored.row.loops:
            lengths.setdefault(loop.path, {}).setdefault(loop.iterations, []).append(stored.number)
    return tuple(
        LoopSpread(
            path,
            tuple(
                sorted(
                    (LengthCount(iterations, len(numbers), numbers[0]) for iterations, numbers in found.items()),
                    key=lambda one: (-one.inputs, one.iterations),
                )
            ),
        )
        for path, found in sorted(lengths.items())
    )
