"""Lines of formulas with indices below the base line: pieces of text, each at its own place, alike in all renderers.

Indices are as large as the smallest letters that are drawn, so that they can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from stepper.export.drawing.shapes import Group, TextLine
from stepper.export.fonts import advance

_INDEX: Final = re.compile(r"_(?:\{([^{}]*)\}|(t)(?!\w))")
"""An index in the notation of formulas: `h_t`, `h_{t−1}`."""


class FormulaForm(NamedTuple):
    """Styles of letters and of indices with their sizes, how far indices are lowered, and from line to line."""

    style: str
    index_style: str
    size: float
    index_size: float
    lowered: float
    line: float


class _FormulaPiece(NamedTuple):
    text: str
    is_index: bool


def formula_line(x: float, base: float, text: str, form: FormulaForm, *, is_centred: bool = False) -> Group:
    """Return a line of a formula that begins at `x`, or has its middle there; its title is the whole text."""
    pieces = list(_pieces(text))
    left = x - sum(_width(piece, form) for piece in pieces) / 2 if is_centred else x
    lines = []
    for piece in pieces:
        style, lower = (form.index_style, form.lowered) if piece.is_index else (form.style, 0.0)
        if piece.text.strip():
            indent = len(piece.text) - len(piece.text.lstrip())  # spaces at the beginning are not drawn by all
            at = left + advance(" ", form.size) * indent
            lines.append(TextLine(style, at, base + lower, piece.text.strip()))
        left += _width(piece, form)
    return Group(tuple(lines), title=text)


def formula_width(text: str, form: FormulaForm) -> float:
    """Return the width of a line of a formula."""
    return sum(_width(piece, form) for piece in _pieces(text))


def _width(piece: _FormulaPiece, form: FormulaForm) -> float:
    return advance(piece.text, form.index_size if piece.is_index else form.size)


def _pieces(text: str) -> Iterator[_FormulaPiece]:
    """Yield letters and indices in turn."""
    at = 0
    for found in _INDEX.finditer(text):
        yield _FormulaPiece(text[at : found.start()], is_index=False)
        yield _FormulaPiece(found[1] or found[2], is_index=True)
        at = found.end()
    yield _FormulaPiece(text[at:], is_index=False)
