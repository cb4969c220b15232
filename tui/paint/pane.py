"""Pane: the base of every widget that shows something. Line API: only the rows that are visible are built.

A subclass says what it shows as rows of (text, token), as a pure function of `self.state`:

    class Frames(Pane):
        title = "frames"
        def rows(self, width: int) -> list[Row]: ...            # few rows: all of them
    class Operations(Pane):
        def count(self, width: int) -> int: ...                  # many rows: how many there are,
        def row(self, index: int, width: int) -> Row: ...        # and one of them

A heading line, then the rows. No box: a heading, air and one hairline between columns keep panes apart.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.color import Color
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Region, Size, Spacing
from textual.strip import Strip
from textual.widget import Widget

from tui.keys.keymap import Keymap
from tui.paint import inks
from tui.paint.guard import FaultReporter, Guarded
from tui.paint.listing import Folding
from tui.paint.rows import Cell, Row, Token, spread, width_of
from tui.paint.together import Together, runs
from tui.state import State
from tui.theme import GLYPHS, Look, in_ascii
from tui.worker.driver import Driver

if TYPE_CHECKING:  # what the first picture does not need is imported where it is called for
    from tui.screens.inputs.choices import InputChoices

_MOST_COLOURS: Final = 4_096
_segment: Final = partial(tuple.__new__, Segment)
"""A Segment of its three parts; thousands are made at each paint."""


class Host(FaultReporter, Protocol):
    """The application as panes and the prompt see it.

    `state` is what is shown, `keymap` which key does what, `folding` which groups of shape arithmetic are open, `typed`
    the lines that were typed at the prompt.
    """

    look: Look
    keymap: Keymap
    state: State
    driver: Driver
    folding: Folding
    typed: list[str]

    @property
    def inputs(self) -> InputChoices | None:
        """The choices for the model's inputs; None if they cannot be chosen, or nobody has asked."""

    def words(self) -> list[str]:
        """Return the words with which a line can begin."""
        ...

    def perform(self, line: str, *, echo: bool = True) -> None:
        """Carry out a line: an action of the screen, or else a command of the debugger."""

    def submit(self, line: str) -> None:
        """Carry out a line that was typed at the prompt."""

    def close_prompt(self) -> None:
        """Focus the pane from which the prompt was opened."""

    def heed(self, event: events.Key) -> bool:
        """Carry out what a key means in the focused pane; True if it means anything."""
        ...

    def show_keys(self) -> None:
        """Name the keys that hold now in the last line of the screen."""


class Pane(Guarded, Widget, can_focus=True):
    """A heading and rows. `note` stands at the right of the heading."""

    DEFAULT_CSS = "Pane { height: auto; padding: 0 1; background: $background; color: $foreground; }"
    host: Host
    title: str = ""
    note: str = ""
    kind: ClassVar[str] = ""
    """How keys.py calls the pane."""
    shows_running: ClassVar[bool] = False
    """Whether it is to be told of a movement under way, thirty times a second."""
    follows_selection: ClassVar[bool] = True
    """Whether it shows anything of the selected operation; one that does not is spared its changes."""
    help_text: ClassVar[str] = ""
    """What the pane shows, for `?`: one line of text a line."""

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.host = host
        self.look: Look = host.look
        self.state = State()
        self.top = 0
        self._rows: tuple[int, list[Row]] | None = None
        self._lines: list[Row] = []
        self._finished: dict[tuple[int, int], Strip] = {}
        self._colours: dict[object, Color] = {}
        self._tiles: dict[object, Cell] = {}
        self._filters: tuple[Color, tuple[LineFilter, ...]] | None = None
        self._styles: dict[Token, Style] = {}
        self._sizes: tuple[Size, Size] | None = None
        self._is_shown = True
        self._tall = -1
        self._has_sides = False
        self.together: Together | None = None

    @property
    def is_typing(self) -> bool:
        """Whether a line is being typed in the pane, so that keys are letters."""
        return False

    # --- what a subclass says ------------------------------------------------------------------------------------

    def rows(self, width: int) -> list[Row]:
        """All rows below the heading, for a pane of few."""
        return []

    def count(self, width: int) -> int:
        """How many rows there are below the heading."""
        return len(self._all(width))

    def row(self, index: int, width: int) -> Row:
        """One of the rows below the heading."""
        return self._all(width)[index]

    def heading(self, width: int) -> list[Row]:
        """The rows above the others, which do not scroll."""
        if not self.title:
            return []
        mark: Cell = (GLYPHS["focus"], "accent") if self.has_focus else (" ", "")
        title: Cell = (self.title, "title-on" if self.has_focus else "title")
        return [spread([mark, title], [(self.note, "note")] if self.note else [], width)]

    def update(self, state: State) -> None:
        """The moment, the selection or anything else has changed. A subclass may look at the old `self.state` first."""
        self.state = state
        self.changed()

    @property
    def chosen_name(self) -> str:
        """What {row} stands for in a line; empty in a pane without rows to choose."""
        return ""

    def show_statistic(self, name: str) -> bool:
        """Another number is to stand for a tensor; whether it is one that only this pane knows, and shows now."""
        return False

    # --- what the base does --------------------------------------------------------------------------------------

    def _all(self, width: int) -> list[Row]:
        if self._rows is None or self._rows[0] != width:
            self._rows = width, self.rows(width)
        return self._rows[1]

    def changed(self) -> None:
        """Build the rows anew, and paint those that are others than before."""
        self._rows = None
        width, height = self.size
        grows = self.styles.height is not None and self.styles.height.is_auto
        # A layout costs more than all painting.
        if not width or (grows and self._height(width) != self._tall):
            self._lines = []
            self._repaint(layout=grows and self.display)
            return
        before, self._lines = self._lines, []
        try:
            self._lines = self._window(width, height)
        except Exception as error:  # painting reports it in place
            self.report_fault(error)
        if len(self._lines) != len(before):
            self._repaint()
            return
        others = [y for y, row in enumerate(self._lines) if row != before[y]]
        for y in others:
            self._finished.pop((y, width), None)
        if others:
            regions = [Region(0, begin, width, end - begin) for begin, end in runs(others)]
            if self._has_sides or self.together is None or not self.together.take(self, regions):
                self.refresh(*regions)

    def _repaint(self, *, layout: bool = False) -> None:
        """Paint everything."""
        self._finished.clear()
        self.refresh(layout=layout)

    def _height(self, width: int) -> int:
        try:
            return len(self.heading(width)) + self.count(width)
        except Exception as error:
            self.report_fault(error)
            return 1

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as there are."""
        self._tall = self._height(width)
        return self._tall

    def notify_style_update(self) -> None:
        """Another theme, or another focus."""
        super().notify_style_update()
        self._rows = None
        self._lines = []
        self._finished.clear()
        self._styles.clear()
        self._colours.clear()
        self._tiles.clear()
        self._filters = None
        self._sizes = None

    def on_focus(self) -> None:
        """The heading shows it."""
        self.changed()

    def on_blur(self) -> None:
        """The heading shows it."""
        self.changed()

    def on_resize(self, _event: events.Resize) -> None:
        """Rows depend on the width."""
        self._is_shown = True
        self.changed()

    def scroll_rows(self, by: int) -> None:
        """Show rows further down, or up."""
        width, height = self.size
        room = height - len(self.heading(width))
        self.top = max(0, min(self.top + by, self.count(width) - room))
        self.changed()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel scrolls."""
        self.scroll_rows(3)
        event.stop()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls."""
        self.scroll_rows(-3)
        event.stop()

    def post_line(self, line: str) -> None:
        """Have a line carried out as if it were typed at the prompt."""
        self.host.perform(line)

    def row_at(self, y: int) -> int | None:
        """The index of the row in a line of the pane; None in the heading and below the last."""
        width = self.size.width
        index = y - len(self.heading(width)) + self.top
        return index if self.top <= index < self.count(width) else None

    # --- painting ------------------------------------------------------------------------------------------------

    @property
    def size(self) -> Size:
        """The size of what it shows. Textual would look for the pane on the screen each time that it is asked."""
        outer = self.outer_size
        if self._sizes is None or self._sizes[0] != outer:
            gutter = self.styles.gutter
            inner = Size(max(outer.width - gutter.width, 0), max(outer.height - gutter.height, 0))
            self._sizes = outer, inner
        return self._sizes[1] if self._is_shown else Size(0, 0)

    def on_hide(self) -> None:
        """It is not on the screen, and has no size, until Textual asks for its lines again."""
        self._is_shown = False

    def render_lines(self, crop: Region) -> list[Strip]:
        """What Textual asks for at each paint, of all panes. Lines that are as before are known here already.

        Without a border at the sides a line is what the pane shows and blanks beside it; what stands above or below
        the lines is left to Textual.
        """
        self._is_shown = True
        styles = self.styles
        padding, gutter = styles.padding, styles.gutter
        self._has_sides = (gutter.left, gutter.right) != (padding.left, padding.right)
        if self._has_sides:
            return super().render_lines(crop)
        width, height = self.size
        known, above = self._finished, gutter.top
        lines = [
            (known.get((y - above, width)) or self._paint(y - above, width, padding))
            if 0 <= y - above < height
            else super(Pane, self).render_lines(Region(0, y, width + padding.width, 1))[0]
            for y in crop.line_range
        ]
        if crop.column_span != (0, width + padding.width):
            lines = [line.crop(*crop.column_span) for line in lines]
        return lines

    def _paint(self, y: int, width: int, padding: Spacing) -> Strip:
        """A line with the blanks beside it, in colours that the terminal has."""
        if self._filters is None:
            # All colours of a pane are true ones already.
            wanted = (one for one in self.get_line_filters() if not isinstance(one, ANSIToTruecolor))
            self._filters = self.background_colors[1], tuple(wanted)
        ground = self.style_of("")
        left, right = (Segment(" " * blanks, ground) for blanks in (padding.left, padding.right))
        line = Strip([left, *self._segments(y, width), right], width + padding.width)
        background, filters = self._filters
        for one in filters:
            line = line.apply_filter(one, background)
        self._finished[y, width] = line
        return line

    def render_line(self, y: int) -> Strip:
        """One line of the pane, for Textual, where there are borders at the sides."""
        width = self.size.width
        return Strip(self._segments(y, width), width)

    def _segments(self, y: int, width: int) -> list[Segment]:
        """A line; a fault in the pane is shown in its place and nowhere else."""
        try:
            if not self._lines:
                self._lines = self._window(width, self.size.height)
            return self.segments_of(self._lines[y] if y < len(self._lines) else [], width)
        except Exception as error:  # whatever a pane does wrong must not end the session
            self.report_fault(error)
            return self.segments_of([(f" {type(self).__name__}: {error!r}" if y < 2 else "", "bad")], width)

    def report_fault(self, error: Exception) -> None:
        """Say once what went wrong."""
        self.host.report_fault(type(self).__name__, error)

    def _window(self, width: int, height: int) -> list[Row]:
        """All lines that are to be seen."""
        heading = self.heading(width)
        end = min(self.top + height - len(heading), self.count(width))
        lines = [*heading, *(self.row(index, width) for index in range(self.top, end))][:height]
        return lines + [[] for _ in range(height - len(lines))]

    def segments_of(self, row: Row, width: int) -> list[Segment]:
        """A row as what Textual paints, in exactly so many cells."""
        if self.look.ascii:
            row = [(in_ascii(text), token) for text, token in row]
        known, style_of = self._styles.get, self.style_of
        segments = [_segment((text, known(token) or style_of(token), None)) for text, token in row if text]
        cells = width_of(row)
        if cells <= width:
            if cells < width:
                segments.append(_segment((" " * (width - cells), self.style_of(""), None)))
            return segments
        strip = Strip(segments, cells)
        if width and strip.crop(width, cells).text.strip():
            # What does not fit is seen to be cut, whatever a pane has not thought of.
            kept = strip.crop(0, width - 1)
            last = strip.crop(width - 1, width)
            style = next((segment.style for segment in last if segment.style is not None), self.style_of(""))
            strip = Strip.join([kept, Strip([Segment(in_ascii("…") if self.look.ascii else "…", style)])])
        return list(strip.adjust_cell_length(width, self.style_of("")).crop(0, width))

    def style_of(self, token: Token) -> Style:
        """The style of a token, or of several that are laid over one another."""
        if type(token) is not str:
            assert isinstance(token, Style)
            return token
        style = self._styles.get(token)
        if style is None:
            style = self.rich_style
            _, ground = self.background_colors
            for part in token.split():
                style += inks.style_of(part, ground, self.app.theme_variables)
            self._styles[token] = style
        return style

    # --- colours that are computed -------------------------------------------------------------------------------

    def colour(self, name: str) -> Color:
        """A colour of the theme."""
        found = self._colours.get(name)
        if found is None:
            found = self._colours[name] = Color.parse(self.app.theme_variables[name])
        return found

    def ramp(self, level: float, *, signed: bool = False) -> Color:
        """The shade of a number between -1 and 1: zero is the ground, magnitude moves away from it."""
        key = level, signed
        found = self._colours.get(key)
        if found is None:
            if len(self._colours) > _MOST_COLOURS:
                self._colours.clear()
            found = self._colours[key] = self._ramped(level, signed=signed)
        return found

    def _ramped(self, level: float, *, signed: bool) -> Color:
        ground = self.colour("background").blend(self.colour("foreground"), 0.07)
        if level != level or level in (float("inf"), float("-inf")):
            return self.colour("error")
        end = self.colour("primary" if not signed else "warm" if level >= 0 else "cool")
        return ground.blend(end, min(abs(level), 1.0) ** 0.8)

    def tile(self, level: float, width: int = 2, *, signed: bool = False) -> Cell:
        """One element as a shade; without colours also as a figure from 0 to 9 with its sign."""
        key = level, width, signed
        found = self._tiles.get(key)
        if found is None:
            if len(self._tiles) > _MOST_COLOURS:
                self._tiles.clear()
            found = self._tiles[key] = self._tile(level, width, signed=signed)
        return found

    def _tile(self, level: float, width: int, *, signed: bool) -> Cell:
        shade = self.ramp(level, signed=signed)
        text = ""
        if level != level:
            text = "N"
        elif level in (float("inf"), float("-inf")):
            text = "I"
        elif self.look.plain and abs(level) >= 0.05:
            text = f"{'-' if signed and level < 0 and width > 1 else ''}{min(9, int(abs(level) * 10))}"
        style = Style(bgcolor=shade.rich_color, color=shade.get_contrast_text().rich_color, bold=not text.isdigit())
        return f"{text:>{width}}"[:width], style


class Line(Pane, can_focus=False):
    """One line across the screen."""

    DEFAULT_CSS = "Line { height: 1; background: $surface; }"
