"""How the cells of a grid look: a glyph over a shade for each code."""

from __future__ import annotations

from rich.style import Style

from tui.panes.base import Pane
from tui.panes.grid_part import CHANGED, DIFFERS, FOLDED, LEVELS, ODD, UNKNOWN
from tui.rows import Row, Token
from tui.theme import GLYPHS

LETTERS = "IN"


class CellPaint:
    """Paints the codes of a GridPart, each once."""

    def __init__(self, pane: Pane) -> None:
        self._pane = pane
        self._cells: dict[tuple[int, int], Row] = {}

    def forget(self) -> None:
        """Another theme."""
        self._cells = {}

    def cell(self, code: int, wide: int) -> Row:
        """A cell of this code, and where it is wide the air behind it."""
        found = self._cells.get((code, wide))
        if found is None:
            width = wide - 1 if wide > 3 else wide
            glyph, tone = self._look_of(code)
            found = [(f"{glyph:^{width}}"[:width], tone)]
            self._cells[code, wide] = found = found if width == wide else [*found, (" ", "")]
        return found

    def _look_of(self, code: int) -> tuple[str, Token]:
        """A glyph and how it is painted."""
        if code >= DIFFERS:
            level, begins = divmod(code - DIFFERS, 2)
            figure = str(level * 9 // (LEVELS - 1)) if self._pane.look.plain else ""
            return f"{GLYPHS['diff']}{figure}", self._front(level / (LEVELS - 1), loud=bool(begins))
        if code >= ODD:
            kind, begins = divmod(code - ODD, 2)
            return LETTERS[kind - 1], self._front(loud=bool(begins))
        if code in (UNKNOWN, FOLDED):
            return GLYPHS["free"] if code == UNKNOWN else "", "faint"
        is_changed = code >= CHANGED - 1
        level = code - CHANGED if is_changed else code
        glyph = GLYPHS["shape"] if is_changed else ""
        if not glyph and self._pane.look.plain and level >= 0:
            glyph = str(level * 9 // (LEVELS - 1))
        return glyph, self._shade(level)

    def _front(self, share: float = 0.0, *, loud: bool) -> Style:
        """What is wrong: bold where it begins, thin where it lasts; the tint is that, and more for a larger share."""
        ground, error = self._pane.colour("background"), self._pane.colour("error")
        tint = ground.blend(error, (0.30 if loud else 0.06) + 0.20 * share)
        ink = error if loud else ground.blend(error, 0.55 + 0.35 * share)
        return Style(color=ink.rich_color, bgcolor=tint.rich_color, bold=loud)

    def _shade(self, level: int) -> Style:
        """A level from 0; -1: there is a value, but no number."""
        share = 0.04 if level < 0 else 0.10 + 0.62 * level / (LEVELS - 1)
        ground = self._pane.colour("background").blend(self._pane.colour("secondary"), share)
        ink = self._pane.colour("foreground").rich_color
        return Style(color=ink, bgcolor=ground.rich_color, bold=not self._pane.look.plain)

    def shades(self) -> list[Style]:
        """From low to high, for the legend."""
        return [self._shade(level) for level in (0, 4, 7, LEVELS - 1)]
