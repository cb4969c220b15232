"""Everything that replaces how Textual paints and handles events, in one place.

The reason is speed: from a key to the painted frame there are 16 ms. Textual asks each widget on the screen for all of
its lines at each paint. So lines that are as before are kept, only lines that have changed are painted, and containers
keep their ground and border. Each of the three was measured alone, from a key to the painted frame (medians on the
graph and the value at 160x48): without kept lines 2 to 4 ms more, without painting by lines 2 to 9 ms, without kept
grounds 2 to 8 ms. Sizes that are kept and lines of several panes that are painted as one gained nothing, and are gone.

None of this is promised by Textual from one version to the next: pyproject.toml bounds it below the next major one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from rich.segment import Segment
from rich.style import Style
from textual import containers, events
from textual.color import Color
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Region, Size, Spacing
from textual.strip import Strip
from textual.widget import Widget

from stepper.records import Record
from stepper_tui.paint.rows import Row, Token, width_of
from stepper_tui.theme import Look, in_ascii

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    _Pump = MessagePump
    _Widget = Widget
else:
    _Pump = _Widget = object


_segment: Final = partial(tuple.__new__, Segment)
"""A Segment of its three parts; thousands are made at each paint."""


_LEFT = {"": "", "solid": "│", "ascii": "|"}
"""Borders at the left of panes, as Textual draws them."""
_MOST_RUNS = 4
"""Runs of lines that are painted each by itself."""


class TokenStyle(Record):
    """A colour of the theme, so many percent of it; maybe on a ground of its own; `""`: as the pane has it."""

    colour: str = ""
    percent: int = 100
    ground: str = ""
    ground_percent: int = 100
    bold: bool = False


TOKEN_STYLES: Final[Mapping[str, TokenStyle]] = {
    "title": TokenStyle("foreground", bold=True),
    "title-on": TokenStyle("primary", bold=True),
    "strong": TokenStyle("foreground", bold=True),
    "note": TokenStyle("foreground", 66),
    "dim": TokenStyle("foreground", 68),
    "faint": TokenStyle("foreground", 26),
    "ghost": TokenStyle("foreground", 13),
    "now": TokenStyle("background", ground="primary", bold=True),
    "accent": TokenStyle("primary"),
    "bar": TokenStyle("secondary"),
    "bad": TokenStyle("error", bold=True),
    "edit": TokenStyle("warning"),
    "a": TokenStyle("warning"),
    "a-on": TokenStyle("background", ground="warning", bold=True),
    "cursor": TokenStyle(ground="primary", ground_percent=22),
    "stripe": TokenStyle(ground="foreground", ground_percent=5),
    "key": TokenStyle("primary", bold=True),
    # of the body graph
    "wire": TokenStyle("foreground", 30),
    "fresh": TokenStyle("foreground", 62),
    "out": TokenStyle("foreground", 90, bold=True),
    "back": TokenStyle("foreground", 55),
    "box": TokenStyle("foreground", 66),
    "done": TokenStyle("foreground"),
    "port": TokenStyle("foreground", bold=True),
    "hit": TokenStyle("warning", bold=True),
    "away": TokenStyle("foreground", 50),
    "on": TokenStyle("primary", bold=True),
    "badbox": TokenStyle("background", ground="error", bold=True),
}


def style_of(token: str, ground: Color, theme: Mapping[str, str]) -> Style:
    """Return the style that a token adds to a pane's own. KeyError for a token that there is not.

    `ground` is the background of the pane; `theme` has the theme's colours by name.
    """
    style = TOKEN_STYLES[token]
    if style.ground:
        ground += Color.parse(theme[style.ground]).multiply_alpha(style.ground_percent / 100)
    colour = ground + Color.parse(theme[style.colour]).multiply_alpha(style.percent / 100) if style.colour else None
    return Style.from_color(
        None if colour is None else colour.rich_color, ground.rich_color if style.ground else None
    ) + Style(bold=style.bold or None)


class FaultReporter(Protocol):
    """The application, as far as faults are concerned."""

    def report_fault(self, where: str, error: Exception) -> None:
        """Show once that a part of the program failed; the session continues, and is saved."""


class Guarded(_Pump):
    """To be named before a class of widgets: a fault in handling an event is reported, and does not end the session."""

    host: FaultReporter

    async def on_event(self, event: events.Event) -> None:
        """Handle an event."""
        try:
            await super().on_event(event)
        except Exception as error:
            self.host.report_fault(type(self).__name__, error)


class PaintedWidget(Guarded, Widget):
    """A widget of lines that are kept as long as they are as before."""

    narrowest: ClassVar[int] = 12
    """Cells below which nothing is drawn."""

    def __init__(self, look: Look, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.look = look
        self._lines: list[Row] = []
        self._finished: dict[tuple[int, int], Strip] = {}
        self._filters: tuple[Color, tuple[LineFilter, ...]] | None = None
        self._styles: dict[Token, Style] = {}
        self._tall = -1

    # --- what a subclass says ------------------------------------------------------------------------------------

    def visible_lines(self, width: int, height: int) -> list[Row]:
        """Return all lines that are to be seen, exactly `height` of them."""
        return [[] for _ in range(height)]

    def line_count(self, width: int) -> int:
        """Return how many lines there are, for a widget that is as high as they are."""
        return 0

    # --- what has changed ----------------------------------------------------------------------------------------

    def changed(self) -> None:
        """Build the lines anew, and paint those that are others than before."""
        width, height = self.size
        grows = self.styles.height is not None and self.styles.height.is_auto
        # A layout costs more than all painting.
        if not width or (grows and self._height(width) != self._tall):
            self._lines = []
            self._finished.clear()
            if grows and self.display:
                self.refresh(layout=True)  # all else that has no size is painted when it gets one
            return
        before, self._lines = self._lines, []
        try:
            self._lines = self._lines_of(width, height)
        except Exception as error:  # painting reports it in place
            self.report_fault(error)
        if len(self._lines) != len(before):
            self._finished.clear()
            self.refresh()
            return
        others = [y for y, row in enumerate(self._lines) if row != before[y]]
        for y in others:
            self._finished.pop((y, width), None)
        if others:
            runs = [*_runs(others)]
            if len(runs) > _MOST_RUNS:  # each costs more than a line that is painted again
                runs = [(others[0], others[-1] + 1)]
            self.refresh(*(Region(0, begin, width, end - begin) for begin, end in runs))

    def _lines_of(self, width: int, height: int) -> list[Row]:
        """Return the lines; none in a few cells, which a widget may have while another size of screen is laid out."""
        return self.visible_lines(width, height) if width >= self.narrowest else [[] for _ in range(height)]

    def _height(self, width: int) -> int:
        if width < self.narrowest:
            return 1
        try:
            return self.line_count(width)
        except Exception as error:
            self.report_fault(error)
            return 1

    def report_fault(self, error: Exception) -> None:
        """Say once what went wrong."""
        self.host.report_fault(type(self).__name__, error)

    # --- tokens as styles ----------------------------------------------------------------------------------------

    def segments_of(self, row: Row, width: int) -> list[Segment]:
        """Return a row as what Textual paints, in exactly so many cells."""
        if self.look.ascii:
            row = _row_in_ascii(row)
        known, style_of = self._styles.get, self.style_of
        # Rich and Textual keep texts for longer than the application: not with what a link leads to.
        segments = [_segment((str(text), known(token) or style_of(token), None)) for text, token in row if text]
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
        """Return the style of a token, or of several that are laid over one another."""
        if type(token) is not str:
            assert isinstance(token, Style)
            return token
        style = self._styles.get(token)
        if style is None:
            style = self.rich_style
            _, ground = self.background_colors
            for part in token.split():
                style += style_of(part, ground, self.app.theme_variables)
            self._styles[token] = style
        return style

    # --- what Textual calls --------------------------------------------------------------------------------------

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return as many rows as there are."""
        self._tall = self._height(width)
        return self._tall

    def notify_style_update(self) -> None:
        """Paint with another theme, or another focus."""
        super().notify_style_update()
        self._lines = []
        self._finished.clear()
        self._styles.clear()
        self._filters = None

    def on_resize(self, _event: events.Resize) -> None:
        """Build the lines for another width."""
        self.changed()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the lines of a region.

        Without a border at the right a line has one at the left, if there is one, the text of the widget and blanks
        beside it; what stands above or below the lines is left to Textual.
        """
        styles = self.styles
        padding, gutter = styles.padding, styles.gutter
        if gutter.right != padding.right or styles.border_left[0] not in _LEFT:
            return super().render_lines(crop)
        width, height = self.size
        known, above, whole = self._finished, gutter.top, self.size.width + gutter.width
        lines = [
            (known.get((y - above, width)) or self._painted(y - above, width, padding))
            if 0 <= y - above < height
            else super(PaintedWidget, self).render_lines(Region(0, y, whole, 1))[0]
            for y in crop.line_range
        ]
        if crop.column_span != (0, whole):
            lines = [line.crop(*crop.column_span) for line in lines]
        return lines

    def _painted(self, y: int, width: int, padding: Spacing) -> Strip:
        """Return a line with the blanks beside it, in colours that the terminal has."""
        if self._filters is None:
            # All colours of a pane are true ones already.
            wanted = (one for one in self.get_line_filters() if not isinstance(one, ANSIToTruecolor))
            self._filters = self.background_colors[1], tuple(wanted)
        ground = self.style_of("")
        left, right = (Segment(" " * blanks, ground) for blanks in (padding.left, padding.right))
        kind, colour = self.styles.border_left
        base, around = self.background_colors
        rule = Style.from_color((base + colour).rich_color, around.rich_color)
        border = [Segment(_LEFT[kind], rule)] if kind else []
        line = Strip([*border, left, *self._segments(y, width), right], width + padding.width + len(border))
        background, filters = self._filters
        for one in filters:
            line = line.apply_filter(one, background)
        self._finished[y, width] = line
        return line

    def render_line(self, y: int) -> Strip:
        """Return one line, where there are borders at the sides."""
        width = self.size.width
        return Strip(self._segments(y, width), width)

    def _segments(self, y: int, width: int) -> list[Segment]:
        """Return a line; a fault in the widget is shown in its place and nowhere else."""
        try:
            if not self._lines:
                self._lines = self._lines_of(width, self.size.height)
            return self.segments_of(self._lines[y] if y < len(self._lines) else [], width)
        except Exception as error:  # whatever a pane does wrong must not end the session
            self.report_fault(error)
            return self.segments_of([(f" {type(self).__name__}: {error!r}" if y < 2 else "", "bad")], width)


def _runs(lines: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield lines in order as runs of them: the first, and the one behind the last."""
    for _, run in groupby(enumerate(lines), lambda pair: pair[1] - pair[0]):
        found = [line for _, line in run]
        yield found[0], found[-1] + 1


class _Still(_Widget):
    """To be named before a container: its ground and its border only change with its style and its size.

    At each paint Textual asks all containers for them, line by line.
    """

    _ground: tuple[Region, list[Strip]] | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the lines of a region."""
        whole = self.outer_size.region
        if self._ground is None or self._ground[0] != whole:
            self._ground = whole, self._whole(whole)
        lines = self._ground[1][crop.y : crop.bottom]
        return lines if crop.column_span == whole.column_span else [line.crop(*crop.column_span) for line in lines]

    def _whole(self, whole: Region) -> list[Strip]:
        """Return all lines; those between the edges are one line again and again."""
        gutter = self.styles.gutter
        between = whole.height - gutter.height
        if between < 2:
            return super().render_lines(whole)
        above = super().render_lines(Region(0, 0, whole.width, gutter.top + 1))
        bottom = Region(0, whole.height - gutter.bottom, whole.width, gutter.bottom)
        below = super().render_lines(bottom) if gutter.bottom else []
        return [*above[:-1], *(between * above[-1:]), *below]

    def notify_style_update(self) -> None:
        """Paint with another theme."""
        super().notify_style_update()
        self._ground = None


class Horizontal(_Still, containers.Horizontal):
    """Side by side."""


class Vertical(_Still, containers.Vertical):
    """One below another."""


def _row_in_ascii(row: Row) -> Row:
    """Return the row with twins for the glyphs; what one becomes depends on what stands beside it."""
    text, found, at = in_ascii("".join(part for part, _ in row)), [], 0
    for part, token in row:
        found.append((text[at : at + len(part)], token))
        at += len(part)
    return found
