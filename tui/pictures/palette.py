"""Colours of a theme for pictures of values: shades, half blocks, letters, rails of a cursor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color

if TYPE_CHECKING:
    from tui.theme import Look

_GRAIN: Final = 64


def _parts(style: Style) -> tuple[RichColor | None, RichColor | None]:
    return style.color, style.bgcolor


class Palette:
    """Colours of a theme for pictures; shades are kept."""

    def __init__(self, colour: Callable[[str], Color], look: Look) -> None:
        self.look = look
        self.background = colour("background")
        self.primary = colour("primary")
        self._colour = colour
        self._ground = self.background.blend(colour("foreground"), 0.07)
        self._shades: dict[tuple[int, bool], Color] = {}
        self._styles: dict[object, Style] = {}

    def shade(self, level: float, *, is_signed: bool, is_first: bool = False) -> Color:
        """Return the colour of a shade; of NaN and Inf that of errors, loud in the first column that has any."""
        if not math.isfinite(level):
            return self._colour("error") if is_first else self.background.blend(self._colour("error"), 0.38)
        key = round(level * _GRAIN), is_signed
        found = self._shades.get(key)
        if found is None:
            found = self._shades[key] = self._shaded(key[0] / _GRAIN, is_signed=is_signed)
        return found

    def _shaded(self, level: float, *, is_signed: bool) -> Color:
        if is_signed:
            return self._ground.blend(self._colour("warm" if level >= 0 else "cool"), abs(level) * 0.9)
        middle, end = self._colour("secondary"), self._colour("foreground")
        return self._ground.blend(middle, level / 0.7) if level < 0.7 else middle.blend(end, (level - 0.7) / 0.3 * 0.8)

    def pair(self, top: Color, bottom: Color) -> Style:
        """Return the style of an upper half block."""
        key = top, bottom
        if key not in self._styles:
            self._styles[key] = Style(color=top.rich_color, bgcolor=bottom.rich_color)
        return self._styles[key]

    def halves(self, top: float, low: float, *, is_signed: bool) -> Style:
        """Return the style of an upper half block with these two shades, which are finite."""
        key = round(top * _GRAIN), round(low * _GRAIN), is_signed
        found = self._styles.get(key)
        if found is None:
            colours = [self.shade(one / _GRAIN, is_signed=is_signed) for one in key[:2]]
            found = self._styles[key] = self.pair(*colours)
        return found

    def faded(self, style: Style) -> Style:
        """Return the style of a shade, half as strong."""
        key = "faded", style
        found = self._styles.get(key)
        if found is None:
            parts = (one and Color.from_rich_color(one).blend(self.background, 0.5) for one in _parts(style))
            ink, ground = (one and one.rich_color for one in parts)
            found = self._styles[key] = Style(color=ink, bgcolor=ground, bold=style.bold)
        return found

    def on(self, ground: Color, *, bold: bool = False) -> Style:
        """Return the style of text on a shade."""
        key = ground, bold
        if key not in self._styles:
            ink = ground.get_contrast_text(0.85)
            self._styles[key] = Style(color=(ground + ink).rich_color, bgcolor=ground.rich_color, bold=bold or None)
        return self._styles[key]

    def letter(self, *, is_first: bool) -> Style:
        """Return the style of an N or I."""
        error = self._colour("error")
        ground = error if is_first else self.background.blend(error, 0.38)
        ink = self.background if is_first else error
        return Style(color=ink.rich_color, bgcolor=ground.rich_color, bold=is_first or None)

    def tinted(self, style: Style, share: float, *, is_a: bool = False) -> Style:
        """Return the style of a shade with so much of the accent in it, or of the colour of A."""
        if style.color is None or style.bgcolor is None:
            return style
        mark = self._colour("warning") if is_a else self.primary
        top, low = (Color.from_rich_color(one).blend(mark, share) for one in (style.color, style.bgcolor))
        return self.pair(top, low)

    def rail(self, under: Style | None, *, is_half: bool, is_selected: bool, is_a: bool = False) -> Style:
        """Return the style of the mark at a side of the cursor's column or of that of A, over a style or nothing."""
        ground = self.background
        if under is not None and under.bgcolor is not None:
            ground = Color.from_rich_color(under.bgcolor)
            if is_half and under.color is not None:
                ground = ground.blend(Color.from_rich_color(under.color), 0.5)
        mark = self._colour("warning") if is_a else self.primary
        return self.pair(mark if is_selected else self.background.blend(mark, 0.6), ground)
