"""The place of a slice on its axis, in words."""

from __future__ import annotations

from stepper.debug.inspection.views import SliceView
from stepper.engine.loops import is_backward
from stepper.ir.model import Slicing


def slice_words(slicing: Slicing, taken: SliceView) -> tuple[str, ...]:
    """Return the slice of this iteration, at several lengths."""
    last = taken.extent - 1
    one = taken.end - taken.begin == 1
    piece = f"piece {taken.begin}" if one else f"elements {taken.begin}–{taken.end - 1}"
    short = str(taken.begin) if one else f"{taken.begin}–{taken.end - 1}"
    stride = f", stride {slicing.stride}" if is_backward(slicing) else ""
    return (
        f"{piece} of 0–{last}, axis {taken.axis}{stride}",
        f"{piece} of 0–{last}, axis {taken.axis}",
        f"{short} of 0–{last}, axis {taken.axis}",
        f"{short} of 0–{last}",
    )
