"""A value over the iterations as a picture of a page: a column an iteration, a row an element or a bucket of them.

Shades, scales and bars are those of the application (`stepper.tensors.pictures`). Numbers above zero are warm, those
below cool, and zero is the ground, whatever colour that has; NaN and Inf are filled.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape
from typing import Final

import numpy as np

from stepper.element_types import Array
from stepper.tensors.histories import KeptStatistic, ValueHistory
from stepper.tensors.number_text import number_text
from stepper.tensors.pictures import (
    Form,
    ScaleKind,
    bar_scale,
    form_of,
    heights,
    letters,
    scale_of,
    shades,
    share_text,
)

_WARM: Final = (214, 128, 28)
_COOL: Final = (62, 118, 209)
_NAN: Final = (200, 30, 60)
_INF: Final = (222, 84, 140)
_MOST_NUMBERS: Final = 64
"""Columns up to which numbers are written."""


def strip(history: ValueHistory, inner: str = "") -> str:
    """Return the picture of a value, of the width of all its columns; `inner` is laid over it."""
    numbers = _numbers(history)
    columns = numbers.shape[0]
    form = form_of(history.type, numbers.shape[1], is_whole=history.is_whole)
    if not columns or form is Form.WORDS:
        return f'<span class="words">{_entered(history)}</span>'
    if form in (Form.TRUTH, Form.NUMBERS) and columns <= _MOST_NUMBERS:
        return _cells([_word(one, form) for one in numbers[:, 0]]) + inner
    if form in (Form.TRUTH, Form.NUMBERS, Form.BARS):
        return _bars(numbers[:, 0]) + inner
    return f'<img alt="" src="{_png(_colours(numbers.T))}">{inner}'


def scale_text(history: ValueHistory) -> str:
    """Return between which numbers the shades or bars of a value are; empty where its numbers are written.

    Where not all of the numbers are between them, also how many are.
    """
    numbers = _numbers(history)
    form = form_of(history.type, numbers.shape[1] if numbers.size else 0, is_whole=history.is_whole)
    if form is Form.PICTURE:
        scale = scale_of(numbers)
        if not scale.share or not scale.low:
            return "0" if scale.share else ""
        ends = f"{'±' if scale.signed else '0 to '}{number_text(float(scale.full))}"
        return ends + _tail(scale.share, is_log=scale.kind is ScaleKind.LOG)
    if form is Form.BARS:
        bars = bar_scale(numbers)
        if not bars.share:
            return ""
        both = " to ".join(dict.fromkeys((number_text(bars.low), number_text(bars.high))))
        return both + _tail(bars.share, is_log=bars.log)
    return ""


def _tail(share: float, *, is_log: bool) -> str:
    return f"{' log' if is_log else ''}{f' {told}' if (told := share_text(share)) else ''}"


def _numbers(history: ValueHistory) -> Array:
    """Return the numbers of a history, [column, element or bucket]; of buckets their largest."""
    kept: Array = history.numbers[0 if history.is_whole else KeptStatistic.LARGEST]
    return np.asarray(kept, np.float64).reshape(len(kept), -1)


def _entered(history: ValueHistory) -> str:
    return escape(f"{history.type}[{','.join(map(str, history.shape))}]")


def _word(value: float, form: Form) -> str:
    if form is Form.TRUTH:
        return "T" if value else "F"
    return f"{value:.0f}"


def _cells(words: Sequence[str]) -> str:
    return f'<span class="cells">{"".join(f"<span>{escape(word)}</span>" for word in words)}</span>'


def _bars(numbers: Array) -> str:
    scale = bar_scale(numbers)
    found = heights(numbers, scale)
    parts = []
    for column, (height, letter) in enumerate(zip(found, letters(numbers), strict=True)):
        high = 1.0 if letter else 0.06 + 0.94 * float(height)
        name = {"N": ' class="nan"', "I": ' class="inf"'}.get(str(letter), "")
        parts.append(f'<rect{name} x="{column}" y="{1 - high:.3f}" width="0.92" height="{high:.3f}"/>')
    box = f'viewBox="0 0 {len(numbers)} 1" preserveAspectRatio="none"'
    return f'<svg class="bars" aria-hidden="true" {box}>{"".join(parts)}</svg>'


def _colours(numbers: Array) -> Array:
    """Return the pixels of numbers as [row, column, RGBA] of bytes."""
    found = shades(numbers, scale_of(numbers))
    pixels = np.zeros((*numbers.shape, 4), np.uint8)
    pixels[found > 0, :3], pixels[found < 0, :3] = _WARM, _COOL
    strength = np.where(np.isfinite(found), np.abs(np.nan_to_num(found)), 1.0)
    pixels[..., 3] = np.rint(255 * strength)
    pixels[np.isinf(numbers)] = (*_INF, 255)
    pixels[np.isnan(numbers)] = (*_NAN, 255)
    return pixels


def _png(pixels: Array) -> str:
    """Return pixels as the address of an image that carries its own bytes."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">2I5B", width, height, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    content = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"
