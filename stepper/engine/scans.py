"""The pieces of a concatenated (scan) output: appended in constant time, copied with a frame without being copied."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.engine.rules import Rules
from stepper.errors import KernelError
from stepper.ir.model import Slicing
from stepper.ops.axes import normalize_axis, shape_text
from stepper.ops.limits import LARGEST_TENSOR, ensure_allocatable

Note = Callable[[str], None]

_SHAPE_OF = attrgetter("shape")
_MANY_PIECES = 4096


class Scan:
    """The Results of the iterations so far; `result` is the slot of the body from which they come.

    A list that only grows. Copies share it: each knows how many pieces are its own, and one that is to grow where
    another has grown already takes a list of its own first (this happens when a run goes back in time and then does
    something else).
    """

    __slots__ = ("_bytes", "_limit", "_pieces", "length", "result")

    def __init__(self, result: int) -> None:
        self.result = result
        self.length = 0
        self._pieces: list[Any] = []
        self._bytes = 0
        self._limit = LARGEST_TENSOR.get()

    def copy(self) -> Scan:
        """The same pieces; growing one of the two does not change the other."""
        twin = Scan(self.result)
        twin._pieces, twin.length = self._pieces, self.length
        twin._bytes, twin._limit = self._bytes, self._limit
        return twin

    @property
    def identity(self) -> int:
        """Tells buffers apart: copies that share one have the same."""
        return id(self._pieces)

    @property
    def nbytes(self) -> int:
        """What the shared pieces hold, in bytes, as far as the first one tells."""
        return len(self._pieces) * (self._pieces[0].nbytes + 128) if self._pieces else 0

    def append(self, piece: Any) -> None:
        """Add the Result of one more iteration. TensorTooLarge where all together pass the limit."""
        pieces, length = self._pieces, self.length
        size = self._bytes + piece.nbytes
        if size > self._limit:
            ensure_allocatable((size,))
        if len(pieces) != length:
            pieces = self._pieces = pieces[:length]
        # A view would keep all of the tensor alive of which it shows a part.
        pieces.append(piece if piece.base is None else piece.copy())
        self.length = length + 1
        self._bytes = size

    def piece(self, iteration: int) -> Array:
        """The piece of one iteration, a read-only view."""
        if not 0 <= iteration < self.length:
            raise IndexError(f"iteration {iteration} has no piece, there are {self.length}")
        view = np.asarray(self._pieces[iteration]).view()
        view.flags.writeable = False
        return view

    def shape(self, axis: int) -> tuple[int, ...] | None:
        """The shape of the pieces joined along the axis; None where there is none, or they cannot be joined.

        Nothing is joined for it, and of very many pieces only the first and their bytes are looked at.
        """
        if not self.length:
            return None
        first = self._pieces[0].shape or (1,)
        if not -len(first) <= axis < len(first):
            return None
        axis %= len(first)
        per_unit = int(np.prod(_beside(first, axis), dtype=np.int64)) * self._pieces[0].itemsize
        if self.length > _MANY_PIECES and per_unit and self._bytes % per_unit == 0:
            return (*first[:axis], self._bytes // per_unit, *first[axis + 1 :])
        shapes = [piece.shape or (1,) for piece in self._pieces[: self.length]]
        if any(len(shape) != len(first) or _beside(shape, axis) != _beside(first, axis) for shape in shapes):
            return None
        return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])

    def concatenated(self, slicing: Slicing, rules: Rules, note: Note) -> Array:
        """All pieces joined along the axis, in iteration order, reversed for a negative stride (semantics 2.2, 2.4).

        A scalar piece counts as one of shape [1]. KernelError for shapes that cannot be joined, and for an axis out of
        range. Pieces of the right length that differ elsewhere OpenVINO leaves to chance; here they are filled up with
        zeros, and `note` is told; as it is of pieces of another length, which only OpenVINO refuses.
        """
        first = self.piece(0)
        axis = normalize_axis(slicing.axis, max(first.ndim, 1))
        pieces = self._pieces[: self.length]
        if len(set(map(_SHAPE_OF, pieces))) == 1:
            _check_lengths([first], axis, abs(slicing.stride), rules, note)
        else:
            pieces = [np.atleast_1d(piece) for piece in pieces]
            pieces = _joinable(pieces, axis, abs(slicing.stride), rules, note)
        if slicing.stride < 0:
            pieces.reverse()
        return np.concatenate(pieces, axis=axis) if pieces[0].ndim else np.stack(pieces)


def _check_lengths(pieces: list[Array], axis: int, size: int, rules: Rules, note: Note) -> None:
    """Each piece as long as the stride: the plugin refuses others, the specification does not say."""
    lengths = (piece.shape[axis] for piece in pieces if piece.ndim > axis)
    odd = next((length for length in lengths if length != size), size)
    if odd != size:
        text = f"a piece is {odd} long along axis {axis}, OpenVINO expects the stride, {size}"
        if rules is Rules.OPENVINO:
            raise KernelError(text)
        note(text)


def _joinable(pieces: list[Array], axis: int, size: int, rules: Rules, note: Note) -> list[Array]:
    """The pieces as they are, or filled up to one shape where they differ beside the axis."""
    first = pieces[0].shape
    _check_lengths(pieces, axis, size, rules, note)
    for iteration, piece in enumerate(pieces):
        same_elsewhere = piece.ndim == len(first) and _beside(piece.shape, axis) == _beside(first, axis)
        fillable = piece.ndim == len(first) and piece.shape[axis] == size
        if not same_elsewhere and not fillable:
            text = f"the piece of iteration {iteration} has shape {shape_text(piece.shape)}"
            raise KernelError(f"{text}, that of iteration 0 {shape_text(first)}: they cannot be joined")
    if len({_beside(piece.shape, axis) for piece in pieces}) == 1:
        return pieces
    note("its pieces differ in shape and cannot be joined: the output is undefined, shorter ones are filled with zeros")
    largest = np.max([piece.shape for piece in pieces], axis=0)
    ensure_allocatable((len(pieces), *largest.tolist()), pieces[0].dtype)
    return [_filled_up(piece, axis, largest) for piece in pieces]


def _beside(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _filled_up(piece: Array, axis: int, largest: Array) -> Array:
    shape = [int(size) for size in largest]
    shape[axis] = piece.shape[axis]
    whole = np.zeros(shape, piece.dtype)
    whole[tuple(slice(size) for size in piece.shape)] = piece
    return whole
