"""When several values, iteration by iteration, together have the bits again that they had in an iteration before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from stepper.element_types import Array

_FIRST_REACH: Final = 64
"""Iterations after which the state that is remembered is another one for the first time; then twice as many."""


class Return(NamedTuple):
    """After `iteration` all has the bits that it had after the iteration `before`; no nearer one has them."""

    iteration: int
    before: int


class _SettledBits(NamedTuple):
    """One value in successive iterations: its type and shape, and its bits as [iteration, word]."""

    kind: object
    bits: Array


class RecurrenceSearch:
    """Looks for the first return of a state, of which one iteration is remembered (Brent's way) beside those at hand.

    `note` takes what each of so many values was in the iterations since `look` was called last.
    """

    def __init__(self, values: int) -> None:
        self._noted: list[list[_SettledBits]] = [[] for _ in range(values)]
        self._remembered: list[_SettledBits] | None = None
        self._at, self._reach = 0, _FIRST_REACH
        self._count = 0
        self.found: Return | None = None

    def note(self, value: int, kind: object, bits: Array) -> None:
        """Take the bits of a value, by its place, of type and shape `kind`."""
        if self.found is None:
            self._noted[value].append(_SettledBits(kind, bits))

    def look(self, count: int) -> None:
        """Compare what was noted of the iterations up to `count`, and forget all but the state that is remembered."""
        noted = self._noted
        if self.found is not None or count == self._count:
            return
        first, made = self._count, count - self._count
        self._count, self._noted = count, [[] for _ in noted]
        if any(len(parts) != 1 or len(parts[0].bits) != made for parts in noted):
            self._remembered = None  # texts, or values that change their shapes
            return
        state = [parts[0] for parts in noted]
        remembered = self._remembered
        if remembered is not None and [one.kind for one in remembered] == [one.kind for one in state]:
            again = _same(state, [one.bits[0] for one in remembered], made)
            if again.size:
                self._found(Return(first + int(again[0]), self._at))
                return
        again = _same(state, [one.bits[-1] for one in state], made - 1)
        if again.size:
            self._found(Return(count - 1, first + int(again[-1])))
        elif remembered is None or count - 1 - self._at >= self._reach:
            self._remembered = [_SettledBits(one.kind, one.bits[-1:].copy()) for one in state]
            self._at, self._reach = count - 1, self._reach if remembered is None else 2 * self._reach

    def _found(self, one: Return) -> None:
        self.found, self._remembered = one, None


def _same(state: list[_SettledBits], row: list[Array], count: int) -> Array:
    """Return the places among the first `count` iterations at which all bits are those of a row."""
    places = np.arange(count)
    for part, one in sorted(zip(state, row, strict=True), key=lambda pair: pair[0].bits.shape[1]):
        if part.bits.shape[1]:
            places = places[part.bits[places, 0] == one[0]]  # most differ in their first word
            places = places[(part.bits[places] == one).all(axis=1)]
    return places
