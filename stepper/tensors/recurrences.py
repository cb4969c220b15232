"""When several values, iteration by iteration, together have the bits again that they had in an iteration before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepper.element_types import Array

_BYTES_KEPT: Final = 2**22
"""Of the last states, among which it is looked for the first that comes again; one state at least."""


class Return(NamedTuple):
    """After `iteration` all has the bits that it had after the iteration `before`; no nearer one has them.

    What depends on nothing else repeats from the iteration `since` on (None: that is too long ago to be known).
    """

    iteration: int
    before: int
    since: int | None


class _SettledBits(NamedTuple):
    """One value in successive iterations: its type and shape, and its bits as [iteration, word]."""

    kind: object
    bits: Array


_States = list[_SettledBits]
"""All values, in the same iterations."""


class RecurrenceSearch:
    """Looks for the first return of a state, of which one iteration is remembered (Brent's way) beside those at hand.

    `note` takes what each of so many values was in the iterations since `look` was called last.
    """

    def __init__(self, values: int) -> None:
        self._noted: list[_States] = [[] for _ in range(values)]
        self._remembered: _States | None = None
        self._at, self._reach = 0, 0
        self._count = 0
        self._last: list[_States] = []
        """The last states before those that are noted, from the iteration `_begin` on."""
        self._begin, self._is_first = 0, True
        self.found: Return | None = None

    def note(self, value: int, kind: object, bits: Array) -> None:
        """Take the bits of a value, by its place, of type and shape `kind`."""
        if self.found is None:
            self._noted[value].append(_SettledBits(kind, bits))

    def forget(self) -> None:
        """Let go of all states: nothing comes any more, or nothing is looked for."""
        self._noted, self._remembered, self._last = [[] for _ in self._noted], None, []

    def look(self, count: int) -> None:
        """Compare what was noted of the iterations up to `count`, and forget most of it."""
        if self.found is not None or count == self._count:
            return
        first, made = self._count, count - self._count
        noted, self._count = self._noted, count
        self._noted = [[] for _ in noted]
        joined = [_joined(parts) for parts in noted]
        state = [one for one in joined if one is not None and len(one.bits) == made]
        if len(state) < len(noted):  # texts, or values that change their shapes
            self.forget()
            self._begin, self._is_first = count, False
            return
        if self._last and not _are_alike(self._last[-1], state):  # none of them comes again, as far as is known
            self._last, self._begin, self._is_first = [], first, True
        again = self._return_in(state, first)
        if again is not None:
            self.found = Return(*again, self._since(state, again[0] - again[1]))
            self.forget()
            return
        if self._remembered is None or count - 1 - self._at >= self._reach:
            self._reach = 2 * (count - 1 - self._at) if self._remembered is not None else made
            self._remembered = [_SettledBits(one.kind, one.bits[-1:].copy()) for one in state]
            self._at = count - 1
        self._keep(state)

    def _return_in(self, state: _States, first: int) -> tuple[int, int] | None:
        """Return an iteration of these, from `first` on, and the nearest one before it in which all was the same."""
        remembered, made = self._remembered, len(state[0].bits)
        if remembered is not None and _are_alike(remembered, state):
            again = _same(state, [one.bits[0] for one in remembered], made)
            if again.size:
                return first + int(again[0]), self._at
        again = _same(state, [one.bits[-1] for one in state], made - 1)
        return (first + made - 1, first + int(again[-1])) if again.size else None

    def _since(self, state: _States, period: int) -> int | None:
        """Return from which iteration on all is as it is after a period; None where it was so before what is known."""
        count = self._count - self._begin - period
        if count <= 0:
            return None
        differs = np.zeros(count, np.bool_)
        for place in range(len(state)):
            bits = np.concatenate([*(states[place].bits for states in self._last), state[place].bits])
            differs |= (bits[period:] != bits[:count]).any(axis=1)
        if differs[-1]:
            return None
        if not differs.any():
            return self._begin if self._is_first else None
        return self._begin + int(np.flatnonzero(differs)[-1]) + 1

    def _keep(self, state: _States) -> None:
        """Keep the last of these states with those before, as many as have room."""
        each = sum(one.bits[:1].nbytes for one in state) + 1
        kept, made = max(_BYTES_KEPT // each, 1), len(state[0].bits)
        self._last.append([_SettledBits(one.kind, one.bits[-kept:].copy()) for one in state])
        while len(self._last) > 1 and self._count - self._begin > kept:
            self._begin, self._is_first = self._begin + len(self._last.pop(0)[0].bits), False
        if made > kept:
            self._begin, self._is_first = self._count - kept, False


def _joined(parts: Sequence[_SettledBits]) -> _SettledBits | None:
    """Return what was noted of one value as one; None where it has several types or shapes, or nothing was noted."""
    if not parts or any(one.kind != parts[0].kind for one in parts):
        return None
    return parts[0] if len(parts) == 1 else _SettledBits(parts[0].kind, np.concatenate([one.bits for one in parts]))


def _are_alike(one: _States, other: _States) -> bool:
    """True if all values have the types and shapes of others."""
    return [value.kind for value in one] == [value.kind for value in other]


def _same(state: _States, row: list[Array], count: int) -> Array:
    """Return the places among the first `count` iterations at which all bits are those of a row."""
    places = np.arange(count)
    for part, one in sorted(zip(state, row, strict=True), key=lambda pair: pair[0].bits.shape[1]):
        if part.bits.shape[1]:
            places = places[part.bits[places, 0] == one[0]]  # most differ in their first word
            places = places[(part.bits[places] == one).all(axis=1)]
    return places
