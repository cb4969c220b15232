"""Pane: the base of every widget that shows something. BarPane API: only the rows that are visible are built.

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

from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from rich.style import Style
from textual import events
from textual.color import Color

from tui.paint.links import Destination, link_in
from tui.paint.painter import FaultReporter, PaintedWidget
from tui.paint.rows import Cell, Row, cell_len, clip_end, figure, spread
from tui.pictures.palette import Palette
from tui.state import State
from tui.theme import GLYPHS, Look

if TYPE_CHECKING:  # what the first picture does not need is imported where it is called for
    from stepper.commands.completion import Completion
    from stepper.debug.iterations.far_runs import LoopOfRun
    from stepper.element_types import Array
    from stepper.engine.program import Program
    from stepper.session.input_choices import InputChoices
    from tui.keys.keymap import Keymap
    from tui.paint.folding import Folding
    from tui.worker.driver import Driver

_MOST_COLOURS: Final = 4_096
NAMES_FOR_TAB: Final = {"graph": "body", "scans": "outputs", "stop": "stop", "value": "value", "node": "node"}
"""By kind of pane: the word where Tab leads there, if that is not its title."""


class Host(FaultReporter, Protocol):
    """The application as panes and the prompt see it.

    `state` is what is shown, `keymap` which key does what, `folding` which groups of shape arithmetic are open, `typed`
    the lines that were typed at the prompt. `runs`: the overview's run is made at once (True), when the overview is
    opened (None), when it is asked for (False).
    """

    look: Look
    keymap: Keymap
    state: State
    driver: Driver
    folding: Folding
    typed: list[str]
    runs: bool | None

    @property
    def inputs(self) -> InputChoices | None:
        """The choices for the model's inputs; None if they cannot be chosen, or nobody has asked."""

    def completions(self, line: str, most: int) -> list[Completion]:
        """Return how a line can go on, with what its names are now."""
        ...

    def take_completion(self, completion: Completion) -> None:
        """Put a completion into the line that is typed."""

    def perform(self, line: str, *, echo: bool = True) -> None:
        """Carry out a line: an action of the screen, or else a command of the debugger."""

    def say(self, text: str, tone: str = "dim") -> None:
        """Show a line above the prompt."""

    def submit(self, line: str) -> None:
        """Carry out a line that was typed at the prompt."""

    def close_prompt(self) -> None:
        """Focus the pane from which the prompt was opened."""

    def heed(self, event: events.Key) -> bool:
        """Carry out what a key means in the focused pane; True if it means anything."""
        ...

    def show_keys(self) -> None:
        """Name the keys that hold now in the last line of the screen."""


class Pane(PaintedWidget, can_focus=True):
    """A heading and rows. `note` stands at the right of the heading."""

    DEFAULT_CSS = "Pane { height: auto; padding: 0 1; background: $background; color: $foreground; }"
    host: Host
    title: str = ""
    note: str = ""
    kind: ClassVar[str] = ""
    """How keys.py calls the pane."""
    shows_running: ClassVar[bool] = False
    """True if it is to be told of a movement under way, thirty times a second."""
    follows_selection: ClassVar[bool] = True
    """True if it shows anything of the selected operation; one that does not is spared its changes."""
    shows_handed_on: ClassVar[bool] = False
    """Whether what a loop carries is shown as an iteration hands it on, so that its name means that at the prompt."""
    opened_by: ClassVar[str | None] = None
    """The line that two clicks anywhere in it carry out."""
    looks_inside: ClassVar[bool] = False
    """True if it shows iterations: where the run is in no loop those of a run of one, as it is seen from there."""
    looks_ahead: ClassVar[bool] = False
    """True if it does so where the run is in no loop and stands still, and shows nothing else of a run from afar."""
    help_text: ClassVar[str] = ""
    """Content of the pane, for `?`: one line of text a line."""

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host.look, id=id)
        self.host = host
        self.state = State()
        self.top = 0
        self._rows: tuple[int, list[Row]] | None = None
        self._colours: dict[object, Color] = {}
        self._tiles: dict[object, Cell] = {}
        self._palette: Palette | None = None

    @property
    def is_typing(self) -> bool:
        """True if a line is being typed in the pane, so that keys are letters."""
        return False

    @property
    def idle(self) -> tuple[str, ...]:
        """Commands of the pane that do nothing for what is selected in it: their keys are not named."""
        return ()

    # --- what a subclass says ------------------------------------------------------------------------------------

    def rows(self, width: int) -> list[Row]:
        """Return all rows below the heading, for a pane of few."""
        return []

    def count(self, width: int) -> int:
        """Return how many rows there are below the heading."""
        return len(self._all(width))

    def row(self, index: int, width: int) -> Row:
        """Return one of the rows below the heading."""
        return self._all(width)[index]

    def heading(self, width: int) -> list[Row]:
        """Return the rows above the others, which do not scroll."""
        if not self.title:
            return []
        mark: Cell = (GLYPHS["focus"], "accent") if self.has_focus else (" ", "")
        title: Cell = (self.title, "title-on" if self.has_focus else "title")
        note = clip_end(self.note, max(width - cell_len(self.title) - 2, 0))
        return [spread([mark, title], [(note, "note")] if note else [], width)]

    def update(self, state: State) -> None:
        """The moment, the selection or anything else has changed. A subclass may look at the old `self.state` first."""
        self.state = state
        self.changed()

    @property
    def name_for_tab(self) -> str:
        """The word for the pane where Tab leads to it."""
        return NAMES_FOR_TAB.get(self.kind) or self.title or self.kind

    @property
    def chosen_name(self) -> str:
        """The text for {row} in a line; empty in a pane without rows to choose."""
        return ""

    @property
    def chosen_address(self) -> str:
        """The address for {op} in a line, where the pane has a cursor of its own on a value; else empty."""
        return ""

    @property
    def run_looked_at(self) -> LoopOfRun | None:
        """The run of a loop that the pane's cursor is in, wherever the run stands; None in a pane of the moment."""
        return None

    @property
    def iteration_looked_at(self) -> tuple[Program, tuple[int, ...]] | None:
        """The body of the loop that the cursor is in, and the iterations from the outside inwards; None as above."""
        return None

    @property
    def selects_nothing(self) -> str:
        """Why the operation that is selected at the moment is not what a key means here; empty where it is."""
        return ""

    @property
    def chosen_array(self) -> Array | None:
        """The value at that address, where the pane knows it of a moment of its own; else None."""
        return None

    @property
    def chosen_element(self) -> tuple[int, ...] | None:
        """The element that stands out in that value, where the pane knows it; else None."""
        return None

    # --- what the base does --------------------------------------------------------------------------------------

    def _all(self, width: int) -> list[Row]:
        if self._rows is None or self._rows[0] != width:
            self._rows = width, self.rows(width)
        return self._rows[1]

    def changed(self) -> None:
        """Build the rows anew, and paint those that are others than before."""
        self._rows = None
        super().changed()

    def line_count(self, width: int) -> int:
        """Return how many rows there are, with those of the heading."""
        return len(self.heading(width)) + self.count(width)

    def notify_style_update(self) -> None:
        """Paint with another theme, or another focus."""
        super().notify_style_update()
        self._rows = None
        self._colours.clear()
        self._tiles.clear()
        self._palette = None

    def on_focus(self) -> None:
        """The heading shows it."""
        self.changed()

    def on_blur(self) -> None:
        """The heading shows it."""
        self.changed()

    def scroll_rows(self, by: int) -> None:
        """Show rows further down, or up."""
        width, height = self.size
        room = height - len(self.heading(width))
        self.top = max(0, min(self.top + by, self.count(width) - room))
        self.changed()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel, down."""
        self.wheel(event, 1)
        event.stop()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel, up."""
        self.wheel(event, -1)
        event.stop()

    def wheel(self, _event: events.MouseEvent, way: int) -> None:
        """The wheel scrolls: down (1) or up (-1). A subclass may do something else; it has no other handler for it."""
        self.scroll_rows(3 * way)

    def destination_under(self, event: events.MouseEvent) -> Destination | None:
        """Return where the link under the mouse leads."""
        place = event.get_content_offset(self)
        if place is None:
            return None
        lines = self.visible_lines(*self.size)
        return link_in(lines[place.y], place.x) if place.y < len(lines) else None

    def on_click(self, event: events.Click) -> None:
        """A click on a button presses its key, one on a link that wants no second one carries it out."""
        target = self.destination_under(event)
        if target is not None and (target.key or target.at_once):
            event.stop()
            if target.key:
                self.app.simulate_key(target.key)
            else:
                self.post_line(target.line)
        elif self.opened_by is not None and event.chain >= 2:
            self.post_line(self.opened_by)

    def post_line(self, line: str) -> None:
        """Have a line carried out as if it were typed at the prompt."""
        self.host.perform(line)

    def row_at(self, y: int) -> int | None:
        """Return the index of the row in a line of the pane; None in the heading and below the last."""
        width = self.size.width
        index = y - len(self.heading(width)) + self.top
        return index if self.top <= index < self.count(width) else None

    def visible_lines(self, width: int, height: int) -> list[Row]:
        """Return the heading, and those of the rows that are to be seen, which may change what the heading says."""
        count, heading = self.count(width), self.heading(width)
        end = min(self.top + height - len(heading), count)
        lines = [*heading, *(self.row(index, width) for index in range(self.top, end))][:height]
        return lines + [[] for _ in range(height - len(lines))]

    # --- colours that are computed -------------------------------------------------------------------------------

    def colour(self, name: str) -> Color:
        """Return a colour of the theme."""
        found = self._colours.get(name)
        if found is None:
            found = self._colours[name] = Color.parse(self.app.theme_variables[name])
        return found

    @property
    def palette(self) -> Palette:
        """The colours of pictures of values."""
        if self._palette is None:
            self._palette = Palette(self.colour, self.look)
        return self._palette

    def ramp(self, level: float, *, signed: bool = False) -> Color:
        """Return the shade of a number between -1 and 1: zero is the ground, magnitude moves away from it."""
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
        """Return one element as a shade; without colours also as a figure from 0 to 9 with its sign."""
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
            shown = min(9, int(abs(level) * 10))
            text = figure(-shown if signed and level < 0 else shown, width)
        style = Style(bgcolor=shade.rich_color, color=shade.get_contrast_text().rich_color, bold=not text.isdigit())
        return f"{text:>{width}}"[:width], style


class BarPane(Pane, can_focus=False):
    """One line across the screen."""

    DEFAULT_CSS = "BarPane { height: 1; background: $surface; }"
