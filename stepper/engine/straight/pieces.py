"""Pieces of concatenated outputs that a written function puts into plain lists, of many iterations at once.

A piece may be what an operation computes in another shape alone (a scan output of ONNX is: the converter inserts the
axis along which it is joined). Nobody else reads that, so the function collects what it was made of. The operations
between are made once, for the last iteration, and the pieces take their shape when they are handed to their scan.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from stepper.engine.frames import Frame
from stepper.engine.scans import Scan

LEAST_BATCH: Final = 32
"""Pieces that a scan must take at once, so that handing them over together spares more than it takes."""


class Collected(NamedTuple):
    """A scan whose pieces are collected: the values of `slot`, which take the shape of the first piece.

    `views` are the operations, by index, that give them this shape in the body.
    """

    scan: Scan
    slot: int
    views: tuple[int, ...]
    pieces: list[Any]

    def hand_over(self, but: int = 0) -> None:
        """Add the pieces, `but` the last ones, to those of the scan. TensorTooLarge as `Scan.append`."""
        pieces = self.pieces[: len(self.pieces) - but]
        self.pieces.clear()
        if pieces:
            self.scan.extend(pieces)


def collected_of(frame: Frame, read: Container[int]) -> list[Collected]:
    """Return those of a running loop's scans whose pieces can be collected. Others read what is in the slots `read`.

    These are pieces that a ufunc computes, since others may show a part of a tensor, which is not to be kept alive.
    """
    activation, program = frame.activation, frame.program
    assert activation is not None and activation.code is not None
    found = []
    for scan in activation.scans:
        views = program.views_before(scan.result)
        if any(slot in read for index in views for slot in program.operations[index].outputs):
            views = ()
        slot = program.operations[views[0]].inputs[0] if views else scan.result
        computed = program.computed_at.get(slot)
        value = frame.values[scan.result]
        if (
            computed is not None
            and isinstance(activation.code[computed][0], np.ufunc)
            and scan.batch >= LEAST_BATCH
            and value is not None
            and value.shape == scan.first_shape
        ):
            found.append(Collected(scan, slot, views, []))
    return found


class Piece(NamedTuple):
    """A value that a written function hands on for a scan after each iteration: that of a slot, if of this shape."""

    take: Callable[[Any], object]
    slot: int
    shape: tuple[int, ...] | None


def pieces_of(frame: Frame, collected: Sequence[Collected]) -> list[Piece]:
    """Return the pieces of all scans of a running loop, whether they are collected or not."""
    activation, by_scan = frame.activation, {id(one.scan): one for one in collected}
    assert activation is not None
    return [
        Piece(scan.append, scan.result, scan.first_shape)
        if one is None
        else Piece(one.pieces.append, one.slot, frame.values[one.slot].shape)
        for scan, one in ((scan, by_scan.get(id(scan))) for scan in activation.scans)
    ]


def hand_over(collected: Sequence[Collected]) -> None:
    """Hand all pieces over. Where those of one scan are too large, the others have none of the last iteration."""
    rest = iter(collected)
    try:
        for one in rest:
            one.hand_over()
    except BaseException:
        _hand_over_earlier(rest)
        raise


def _hand_over_earlier(collected: Iterable[Collected]) -> None:
    for one in collected:
        one.hand_over(but=1)
