"""The pieces of a concatenated (scan) output: appended in constant time, copied with a frame without being copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.engine.rules import Rules
from stepper.errors import KernelError
from stepper.ir.model import Slicing
from stepper.ops.axes import normalize_axis, shape_text

Note = Callable[[str], None]


class Scan:
    """The Results of the iterations so far.

    Pieces of one shape go into a buffer that doubles when it is full, so n of them cost O(n) and little memory each.
    Copies share the buffer: each knows how many pieces are its own, and one that is to grow where another has grown
    already takes a buffer of its own first (this happens when a run goes back in time and then does something else).
    """

    __slots__ = ("_buffer", "_filled", "length")

    def __init__(self) -> None:
        self._buffer: Any = None
        self._filled: list[int] = [0]
        self.length = 0

    def copy(self) -> Scan:
        """The same pieces; growing one of the two does not change the other."""
        twin = Scan()
        twin._buffer, twin._filled, twin.length = self._buffer, self._filled, self.length
        return twin

    def append(self, piece: Any) -> None:
        """Add the Result of one more iteration."""
        length, buffer = self.length, self._buffer
        if buffer is None or self._filled[0] != length or length == len(buffer) or not self._fits(piece):
            self._make_room(piece)
            buffer = self._buffer
        buffer[length] = piece
        self.length = length + 1
        self._filled[0] = length + 1

    def _fits(self, piece: Any) -> bool:
        buffer = self._buffer
        return type(buffer) is list or (buffer.shape[1:] == piece.shape and buffer.dtype == piece.dtype)

    def _make_room(self, piece: Any) -> None:
        length = self.length
        if self._buffer is None:
            self._buffer = np.empty((8, *piece.shape), piece.dtype)
        elif type(self._buffer) is list or not self._fits(piece):
            # Pieces of different shapes: a plain list of references, with room at its end.
            self._buffer = [*self._buffer[:length], *([None] * max(8, length))]
        else:
            grown = np.empty((max(8, 2 * length), *piece.shape), piece.dtype)
            grown[:length] = self._buffer[:length]
            self._buffer = grown
        self._filled = [length]

    def piece(self, iteration: int) -> Array:
        """The piece of one iteration, a read-only view."""
        if not 0 <= iteration < self.length:
            raise IndexError(f"iteration {iteration} has no piece, there are {self.length}")
        view = np.asarray(self._buffer[iteration]).view()
        view.flags.writeable = False
        return view

    def concatenated(self, slicing: Slicing, rules: Rules, note: Note) -> Array:
        """All pieces joined along the axis, in iteration order, reversed for a negative stride (semantics 2.2, 2.4).

        A scalar piece counts as one of shape [1]. KernelError for shapes that cannot be joined, and for an axis out of
        range. Pieces of the right length that differ elsewhere OpenVINO leaves to chance; here they are filled up with
        zeros, and `note` is told.
        """
        first = self.piece(0)
        axis = normalize_axis(slicing.axis, max(first.ndim, 1))
        order = slice(None, None, 1 if slicing.stride > 0 else -1)
        if type(self._buffer) is list:
            pieces = [np.atleast_1d(piece) for piece in self._buffer[: self.length]]
            return np.concatenate(_joinable(pieces, axis, abs(slicing.stride), rules, note)[order], axis=axis)
        _check_length(first, axis, abs(slicing.stride), rules)
        buffer: Array = self._buffer[: self.length][order]
        if first.ndim == 0:
            return buffer.copy()
        shape = (*first.shape[:axis], self.length * first.shape[axis], *first.shape[axis + 1 :])
        joined = np.moveaxis(buffer, 0, axis).reshape(shape)
        return joined.copy() if np.may_share_memory(joined, self._buffer) else joined


def _check_length(piece: Array, axis: int, size: int, rules: Rules) -> None:
    length = piece.shape[axis] if piece.ndim else 1
    if rules is Rules.OPENVINO and length != size:
        raise KernelError(f"a piece is {length} long along axis {axis}, OpenVINO expects the stride, {size}")


def _joinable(pieces: list[Array], axis: int, size: int, rules: Rules, note: Note) -> list[Array]:
    """The pieces as they are, or filled up to one shape where they differ beside the axis."""
    first = pieces[0].shape
    for iteration, piece in enumerate(pieces):
        if piece.ndim == len(first):
            _check_length(piece, axis, size, rules)
        same_elsewhere = piece.ndim == len(first) and _beside(piece.shape, axis) == _beside(first, axis)
        fillable = piece.ndim == len(first) and piece.shape[axis] == size
        if not same_elsewhere and not fillable:
            text = f"the piece of iteration {iteration} has shape {shape_text(piece.shape)}"
            raise KernelError(f"{text}, that of iteration 0 {shape_text(first)}: they cannot be joined")
    if len({_beside(piece.shape, axis) for piece in pieces}) == 1:
        return pieces
    note("its pieces differ in shape and cannot be joined: the output is undefined, shorter ones are filled with zeros")
    largest = np.max([piece.shape for piece in pieces], axis=0)
    return [_filled_up(piece, axis, largest) for piece in pieces]


def _beside(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _filled_up(piece: Array, axis: int, largest: Array) -> Array:
    shape = [int(size) for size in largest]
    shape[axis] = piece.shape[axis]
    whole = np.zeros(shape, piece.dtype)
    whole[tuple(slice(size) for size in piece.shape)] = piece
    return whole
