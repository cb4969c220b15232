"""The past of a run: snapshots at ever wider distances, within a budget of memory.

The distance is as many moves as a replay makes in a few milliseconds: fast loops are hardly slowed down, slow ones are
not replayed for long. A snapshot shares its tensors with the machine and with its neighbours; what it costs is what
only it still holds. When there are too many, or they cost too much, every second one goes and the distance doubles; so
the cost of going anywhere is one restore and a replay of at most one distance, and the memory stays bounded however
long the run is.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from stepper.engine.frames import Frame, Snapshot

_MOST_SNAPSHOTS: Final = 512
_SHORTEST: Final = 16
_REPLAY_SECONDS: Final = 0.004
_PER_SNAPSHOT: Final = 2000
_SCALAR: Final = 32


class History:
    """Snapshots of one run by tick. The first one, of the start, always stays."""

    def __init__(self, start: Snapshot, budget: int) -> None:
        self.budget = budget
        self.distance = self._narrowest = _SHORTEST
        self._snapshots: list[Snapshot] = []
        self._ticks: list[int] = []
        self._holders: Counter[int] = Counter()
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self.add(start)

    @property
    def bytes(self) -> int:
        """Return what the snapshots hold, in bytes; tensors that several hold count once, constants not at all."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._snapshots)

    def due(self, tick: int) -> int:
        """Return the tick at which the next snapshot is to be taken, for a machine that is at `tick`."""
        return (tick // self.distance + 1) * self.distance

    def took(self, moves: int, seconds: float, keeping: float = 0.0) -> None:
        """A stretch of the run took that long: set the distance for a replay of the right length, if memory allows.

        `keeping` is what its snapshot took: of a body of thousands of operations more than a few moves, and no run
        shall spend more time on its snapshots than on itself.
        """
        right = max(_REPLAY_SECONDS, 2 * keeping)
        if seconds < right / 2 and moves >= self.distance:
            self.distance *= 2
        elif seconds > right * 4 and self.distance > self._narrowest:
            self.distance //= 2

    def add(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, unless there is one of its tick already; then thin out if that is too much."""
        index = bisect.bisect_left(self._ticks, snapshot.tick)
        if index < len(self._ticks) and self._ticks[index] == snapshot.tick:
            return
        self._snapshots.insert(index, snapshot)
        self._ticks.insert(index, snapshot.tick)
        self._count(snapshot, 1)
        self._fit()

    def limit(self, budget: int) -> None:
        """From now on hold at most that many bytes."""
        self.budget = budget
        self._fit()

    def _fit(self) -> None:
        while (self._bytes > self.budget or len(self) > _MOST_SNAPSHOTS) and len(self) > 2:
            self._thin_out()

    def at(self, tick: int) -> Snapshot | None:
        """Return the snapshot of exactly this tick, if there is one."""
        snapshot = self.before(tick)
        return snapshot if snapshot.tick == tick else None

    def before(self, tick: int) -> Snapshot:
        """Return the latest snapshot whose tick is not above `tick`."""
        return self._snapshots[bisect.bisect_right(self._ticks, tick) - 1]

    def latest(self, fits: Callable[[Snapshot], bool]) -> Snapshot | None:
        """Return the latest snapshot that fits."""
        return next((one for one in reversed(self._snapshots) if fits(one)), None)

    def forget_after(self, tick: int) -> None:
        """Drop the snapshots of later ticks: the run is about to take another course."""
        keep = bisect.bisect_right(self._ticks, tick)
        for snapshot in self._snapshots[keep:]:
            self._count(snapshot, -1)
        del self._snapshots[keep:], self._ticks[keep:]

    def copy(self) -> History:
        """Return the same past, to go on differently from here; snapshots are shared."""
        twin = History(self._snapshots[0], self.budget)
        twin.distance, twin._narrowest = self.distance, self._narrowest
        for snapshot in self._snapshots[1:]:
            twin.add(snapshot)
        return twin

    def _thin_out(self) -> None:
        """Keep the first, and of the others those that fit a distance twice as wide."""
        self.distance = self._narrowest = self.distance * 2
        kept = [self._snapshots[0]]
        for snapshot in self._snapshots[1:]:
            # One of each stretch of the new distance; the last one stays, or the run would lose its newest past.
            if snapshot.tick // self.distance != kept[-1].tick // self.distance:
                kept.append(snapshot)
            else:
                self._count(snapshot, -1)
        self._snapshots = kept
        self._ticks = [snapshot.tick for snapshot in kept]

    def _count(self, snapshot: Snapshot, sign: int) -> None:
        self._bytes += sign * _PER_SNAPSHOT
        for identity, size in _held(snapshot):
            before = self._holders[identity]
            self._holders[identity] = before + sign
            if before + sign == 0:
                self._bytes -= size
                del self._holders[identity]
            elif before == 0:
                self._bytes += size


def _held(snapshot: Snapshot) -> Iterator[tuple[int, int]]:
    """Identity and size of every buffer that a snapshot keeps alive, the model's constants left out."""
    for frame in snapshot.frames:
        yield from _held_by_frame(frame)


def _held_by_frame(frame: Frame) -> Iterator[tuple[int, int]]:
    for value, constant in zip(frame.values, frame.program.template, strict=True):
        if value is not None and value is not constant:
            yield _buffer(value)
    if frame.activation is not None:
        for scan in frame.activation.scans:
            yield scan.identity, scan.nbytes


def _buffer(value: Any) -> tuple[int, int]:
    """Return the memory behind an array: that of its base, of which many views may share one."""
    if not isinstance(value, np.ndarray):
        return id(value), _SCALAR
    while isinstance(value.base, np.ndarray):
        value = value.base
    return id(value), value.nbytes + _SCALAR
