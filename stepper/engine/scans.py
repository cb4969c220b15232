"""The pieces of a concatenated (scan) output: appended in constant time, copied with a frame without being copied."""

from __future__ import annotations

import bisect
import copy
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from stepper.element_types import LARGEST_RANK
from stepper.engine.loops import in_axis_order
from stepper.engine.rules import Rules
from stepper.errors import KernelError
from stepper.ops.operands import LARGEST_TENSOR, ensure_allocatable, normalize_axis, shape_text

if TYPE_CHECKING:
    from stepper.element_types import Array
    from stepper.ir.model import Slicing

Note = Callable[[str], None]

_SHAPE_OF = attrgetter("shape")
_MOST_WAITING, _BYTES_WAITING = 256, 2**20
_SMALL_PIECE = 4096


class Scan:
    """The Results of the iterations so far; `result` is the slot of the body from which they come.

    The newest pieces wait in a list; when there are enough of them they become one block, in which small pieces take no
    more memory than their numbers. Copies share the blocks: each knows how many are its own, and one that is to grow
    where another has grown already takes a list of its own first (this happens when a run goes back in time and then
    does something else).
    """

    __slots__ = ("_batch", "_block_count", "_blocks", "_bytes", "_ends", "_first", "_limit", "_waiting", "result")

    def __init__(self, result: int) -> None:
        self.result = result
        self._waiting: list[Any] = []
        self._batch = 1
        self._blocks: list[Any] = []
        self._ends: list[int] = []
        self._block_count = 0
        self._bytes = 0
        self._first: tuple[int, ...] | None = None
        self._limit = LARGEST_TENSOR.get()

    def copy(self) -> Scan:
        """Return the same pieces; growing one of the two does not change the other."""
        twin = copy.copy(self)
        twin._waiting = self._waiting.copy()
        return twin

    @property
    def length(self) -> int:
        """The number of pieces."""
        return self._closed + len(self._waiting)

    @property
    def _closed(self) -> int:
        return self._ends[self._block_count - 1] if self._block_count else 0

    @property
    def identity(self) -> int:
        """Tells the shared blocks apart: copies that share them have the same."""
        return id(self._blocks)

    @property
    def nbytes(self) -> int:
        """The size of the blocks, in bytes."""
        return self._bytes

    def append(self, piece: Any) -> None:
        """Add the Result of one more iteration. TensorTooLarge where all together pass the limit."""
        waiting = self._waiting
        base = piece.base
        # A view would keep all of the tensor alive of which it shows a part.
        waiting.append(piece if base is None or getattr(base, "size", 0) == piece.size else piece.copy())
        if len(waiting) >= self._batch:
            self._close_block()

    @property
    def first_shape(self) -> tuple[int, ...] | None:
        """Return the shape of the first piece; None where there is none."""
        if self._first is None and self.length:
            self._first = self.piece(0).shape
        return self._first

    def ensure_joins(self, piece: Any, slicing: Slicing) -> None:
        """Raise KernelError for a piece that cannot be joined to the others, in the iteration that gives it."""
        first = self.first_shape
        if first is None or piece.shape == first:
            return
        shape, first = piece.shape or (1,), first or (1,)
        if -len(first) <= slicing.axis < len(first):
            _ensure_joins(shape, first, slicing.axis % len(first), abs(slicing.stride), self.length)

    def _close_block(self) -> None:
        """Make a block of all pieces that wait."""
        pieces = self._waiting
        stack, count = _stack(pieces), len(pieces)
        size = sum(piece.nbytes for piece in pieces) if stack is None else stack.nbytes
        if self._bytes + size > self._limit:
            pieces.pop()  # the one that is too much was not added
            ensure_allocatable((self._bytes + size,))
        if len(self._blocks) != self._block_count:
            self._blocks = self._blocks[: self._block_count]
            self._ends = self._ends[: self._block_count]
        self._ends.append(self._closed + count)
        self._blocks.append(pieces if stack is None else stack)
        self._block_count += 1
        self._bytes += size
        self._waiting = []
        each = 1 + size // count
        self._batch = max(1, min(_MOST_WAITING, _BYTES_WAITING // each, 1 + (self._limit - self._bytes) // each))

    def piece(self, iteration: int) -> Array:
        """Return the piece of one iteration, a read-only view."""
        if not 0 <= iteration < self.length:
            raise IndexError(f"iteration {iteration} has no piece, there are {self.length}")
        if iteration >= self._closed:
            piece = self._waiting[iteration - self._closed]
        else:
            index = bisect.bisect_right(self._ends, iteration, hi=self._block_count)
            piece = self._blocks[index][iteration - (self._ends[index - 1] if index else 0)]
        view = np.asarray(piece).view()
        view.flags.writeable = False
        return view

    def _parts(self) -> list[Any]:
        """Return the blocks of this copy, the pieces that still wait as the last one."""
        return [*self._blocks[: self._block_count], *([self._waiting] if self._waiting else [])]

    def shape(self, axis: int) -> tuple[int, ...] | None:
        """Return the shape of the pieces joined along the axis; None where there is none, or they cannot be joined.

        Nothing is joined for it, and of a block of like pieces only one is looked at.
        """
        if not self.length:
            return None
        first = self.piece(0).shape or (1,)
        if not -len(first) <= axis < len(first):
            return None
        axis %= len(first)
        total = 0
        for count, shape in self._shapes():
            if len(shape) != len(first) or _beside(shape, axis) != _beside(first, axis):
                return None
            total += count * shape[axis]
        return (*first[:axis], total, *first[axis + 1 :])

    def _shapes(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield how many pieces in a row have which shape; a scalar counts as [1]."""
        for part in self._parts():
            if type(part) is list:
                yield from ((1, piece.shape or (1,)) for piece in part)
            else:
                yield len(part), part.shape[1:] or (1,)

    def parts(self, begin: int, end: int | None = None) -> Iterator[Any]:
        """Yield the pieces of the iterations [begin, end), several at a time: lists, or stacks on a leading axis."""
        end = self.length if end is None else min(end, self.length)
        index = bisect.bisect_right(self._ends, begin, hi=self._block_count)
        first = self._ends[index - 1] if index else 0
        while max(begin, first) < end:
            part = self._blocks[index] if index < self._block_count else self._waiting
            yield part[max(begin - first, 0) : end - first]
            first += len(part)
            index += 1

    def stacks(self, begin: int, end: int) -> Iterator[Array]:
        """Yield the pieces of the iterations [begin, end), a new axis first: as many together as are alike."""
        parts: list[Array] = []
        for part in self.parts(begin, end):
            whole = _stack(part) if type(part) is list else part
            parts += [_alone(piece) for piece in part] if whole is None else [whole]
        for _, alike in groupby(parts, key=lambda one: (one.shape[1:], one.dtype)):
            together = list(alike)
            yield together[0] if len(together) == 1 else np.concatenate(together)

    def concatenated(self, slicing: Slicing, rules: Rules, note: Note) -> Array:
        """Return all pieces joined along the axis, in iteration order or reversed (semantics 2.2, 2.4).

        A scalar piece counts as one of shape [1]. KernelError for shapes that cannot be joined, and for an axis out of
        range. Pieces of the right length that differ elsewhere OpenVINO leaves to chance; here they are filled up with
        zeros, and `note` is told; as it is of pieces of another length, which only OpenVINO refuses.
        """
        first = self.piece(0)
        axis = normalize_axis(slicing.axis, max(first.ndim, 1))
        if len({shape for _, shape in self._shapes()}) > 1:
            pieces = [np.atleast_1d(piece) for part in self._parts() for piece in part]
            return np.concatenate(_joinable(pieces, axis, slicing, rules, note), axis=axis)
        _check_lengths([first], axis, abs(slicing.stride), rules, note)
        parts = [_stacked(part) if type(part) is list else part for part in self._parts()]
        stacked = in_axis_order(np.concatenate(parts), slicing)
        if first.ndim == 0:
            return np.ascontiguousarray(stacked)
        shape = (*first.shape[:axis], len(stacked) * first.shape[axis], *first.shape[axis + 1 :])
        return np.ascontiguousarray(np.moveaxis(stacked, 0, axis).reshape(shape))


def _stack(pieces: list[Any]) -> Array | None:
    """Small pieces of one shape as one tensor, a new axis first; None for others."""
    first = pieces[0]
    if first.nbytes > _SMALL_PIECE:
        return None
    try:
        if len(set(map(len if first.ndim else _SHAPE_OF, pieces))) > 1:
            return None
        return _stacked(pieces)  # which looks at all dimensions but the first, and faster than can be done here
    except (TypeError, ValueError):
        return None


def _stacked(pieces: list[Any]) -> Array:
    """Pieces of one shape as one tensor, a new axis first; concatenate is several times as fast as stack."""
    first = pieces[0]
    if first.ndim == 0:
        return np.array(pieces, first.dtype)
    return np.concatenate(pieces).reshape(len(pieces), *first.shape)


def _check_lengths(pieces: list[Array], axis: int, size: int, rules: Rules, note: Note) -> None:
    """Each piece as long as the stride: the plugin refuses others, the specification does not say."""
    lengths = (piece.shape[axis] for piece in pieces if piece.ndim > axis)
    odd = next((length for length in lengths if length != size), size)
    if odd != size:
        text = f"a piece is {odd} long along axis {axis}, OpenVINO expects the stride, {size}"
        if rules is Rules.OPENVINO:
            raise KernelError(text)
        note(text)


def _joinable(pieces: list[Array], axis: int, slicing: Slicing, rules: Rules, note: Note) -> list[Array]:
    """Return the pieces in the order of joining, filled up to one shape where they differ beside the axis."""
    first, size = pieces[0].shape, abs(slicing.stride)
    _check_lengths(pieces, axis, size, rules, note)
    for iteration, piece in enumerate(pieces):
        _ensure_joins(piece.shape, first, axis, size, iteration)
    if len({_beside(piece.shape, axis) for piece in pieces}) == 1:
        return in_axis_order(pieces, slicing)
    note("its pieces differ in shape and cannot be joined: the output is undefined, shorter ones are filled with zeros")
    largest = np.max([piece.shape for piece in pieces], axis=0)
    ensure_allocatable((len(pieces), *largest.tolist()), pieces[0].dtype)
    return [_filled_up(piece, axis, largest) for piece in in_axis_order(pieces, slicing)]


def _alone(piece: Any) -> Array:
    """Return a piece with a new axis first. Of 64 dimensions the last two become one: numpy has no 65th."""
    if np.ndim(piece) == LARGEST_RANK:
        piece = piece.reshape(*piece.shape[:-2], -1)
    found: Array = piece[np.newaxis]
    return found


def _ensure_joins(shape: tuple[int, ...], first: tuple[int, ...], axis: int, size: int, iteration: int) -> None:
    """Raise KernelError for a piece that can neither be joined to the first one nor be filled up."""
    if len(shape) == len(first) and (_beside(shape, axis) == _beside(first, axis) or shape[axis] == size):
        return
    text = f"the piece of iteration {iteration} has shape {shape_text(shape)}"
    raise KernelError(f"{text}, that of iteration 0 {shape_text(first)}: they cannot be joined")


def _beside(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _filled_up(piece: Array, axis: int, largest: Array) -> Array:
    shape = [int(size) for size in largest]
    shape[axis] = piece.shape[axis]
    whole = np.zeros(shape, piece.dtype)
    whole[tuple(slice(size) for size in piece.shape)] = piece
    return whole
