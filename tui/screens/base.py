"""DebugScreen: what every screen has. The line above, the prompt and the keys below, sizes, and where keys go.

A new screen is a subclass in a file of its own and a line in registry.py:

    class GridScreen(DebugScreen):
        view_name = "grid"
        def body(self) -> ComposeResult:
            yield Grid(self.host, id="grid")                  # a Pane; it gets every new state by itself
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widget import Widget

from stepper.debug.causes.cause import Reason
from tui.keys.keymap import Dispatcher, Situation
from tui.paint.names import layer_name
from tui.paint.painter import BatchedPaint, Guarded, Horizontal, Vertical
from tui.paint.pane import Host, Pane
from tui.screens.bars import AnswerLine, KeysLine, TopBar
from tui.screens.picks import PickList
from tui.screens.prompt import Prompt

if TYPE_CHECKING:  # what the first picture does not need is imported where it is called for
    from stepper.commands.completion import Completion
    from stepper.debug.overview.facts import Overview
    from stepper.session.input_choices import InputChoices
    from tui.paint.rows import Row
    from tui.screens.answer_card import AnswerCard
    from tui.state import Running, State

_LONG: Final = 0.5
"""Seconds after which a movement says how far it is."""
LEAST: tuple[int, int] = (60, 18)
"""Columns and rows below which a sentence stands instead of the screen."""


class ScreenHost(Host, Protocol):
    """The application as screens see it.

    `answered` is the last answer and its tone, `asked_pane` the pane that had the focus when the prompt or another
    screen was opened.
    """

    answered: tuple[str, str]
    asked_pane: Pane | None

    @property
    def focused_pane(self) -> Pane | None:
        """The pane with the focus."""

    def select(self, index: int | None) -> None:
        """Select an operation of the frame that is looked at; None follows the moment."""

    def close_view(self) -> bool:
        """Close the screen in front; False if it is the last."""
        ...

    def release_keys(self) -> None:
        """Carry out the keys that were typed before the screen had its parts."""
        ...

    def to_choose(self) -> InputChoices | None:
        """Return what was chosen for the inputs, also on the command line; None where nothing can be chosen."""


class DebugScreen(Guarded, Screen[None]):
    """A screen of the debugger."""

    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    DebugScreen { background: $background; layout: vertical; layers: default over; }
    DebugScreen #content { height: 1fr; }
    DebugScreen #bottom { height: auto; background: $surface; }
    DebugScreen #prompt-row { height: 1; }
    DebugScreen #colon { width: 3; height: 1; padding: 0 1; background: $surface; }
    DebugScreen .rule { border-left: solid $foreground 14%; }
    DebugScreen.-ascii .rule { border-left: ascii $foreground 14%; }
    DebugScreen.-ascii PortDetail, DebugScreen.-ascii GridDetail { border-top: ascii $foreground 14%; }
    DebugScreen.-ascii AnswerCard { border-top: ascii $primary; }
    DebugScreen #too-small { display: none; height: 1fr; }
    DebugScreen.-small > * { display: none; }
    DebugScreen.-small > #too-small { display: block; }
    DebugScreen.-maximized-view { hatch: none; layout: vertical; }
    DebugScreen.-maximized-view Pane.-maximized { height: 1fr !important; max-height: 100% !important; }
    DebugScreen.-short Grid, DebugScreen.-short #more, DebugScreen.-short TimelineChart { margin-top: 0; }
    DebugScreen.-short PortMap, DebugScreen.-short GivenInputs, DebugScreen.-short InputsTable { margin-top: 0; }
    DebugScreen.-low #answer { display: none; }
    DebugScreen.-low #picks { margin-bottom: 2; }
    DebugScreen.-ascii #picks { border-top: ascii $primary; }
    DebugScreen.-ascii #picks.below-a-rule { border-top: blank; }
    """
    ALLOW_IN_MAXIMIZED_VIEW: ClassVar[str] = "#bottom, #card, #picks"
    """Beside a pane that is alone on the screen: answers, what is there to choose, prompt and keys."""
    view_name: ClassVar[str] = ""

    host: ScreenHost
    tab: str = ""
    """The tab that is shown, on a screen with tabs."""

    def __init__(self, host: ScreenHost) -> None:
        super().__init__()
        self.host = host
        self.dispatcher = Dispatcher()
        self._has_parts = False
        self._panes: tuple[Pane, ...] = ()
        self._batched = BatchedPaint()
        self._following = ""
        self._answer_card: AnswerCard | None = None
        self._mounted_with: State | None = None
        """What it showed when it was mounted, until it is in front."""

    # --- parts ---------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """The lines around, and the body."""
        self._set_size_classes(update=False)  # before there is anything to style
        yield TopBar(self.host, self.view_name, id="top")
        with Vertical(id="content"):
            yield from self.body()
        yield from self.below()
        with Vertical(id="bottom"):
            yield AnswerLine(self.host, id="answer")
            with Horizontal(id="prompt-row"):
                yield Colon(self.host, id="colon")
                yield Prompt(self.host, id="prompt")
            yield KeysLine(self.host, id="keys")
        yield PickList(self.host, id="picks")
        yield TooSmall(self.host, id="too-small")

    def adopt(self, pane: Pane, parent: Widget, after: Widget | None = None) -> None:
        """Show one more pane in a container: after another one, or at the end."""
        pane.batched = self._batched
        parent.mount(pane, after=after)
        self._panes = (*self._panes, pane)
        pane.call_after_refresh(lambda: self._update(pane, self.host.state))

    def body(self) -> ComposeResult:
        """Yield the panes."""
        yield from ()

    def below(self) -> ComposeResult:
        """Yield the panes between the body and the prompt."""
        yield from ()

    def first_pane(self) -> Pane | None:
        """Return the pane that gets the focus when the screen opens."""
        return next((pane for pane in self.query(Pane) if pane.focusable), None)

    # --- state ---------------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """True if its parts are there: no longer when it is being closed, or the application left."""
        return self._has_parts and self.display and self.app.is_running

    def show(self, state: State) -> None:
        """There is something new to show."""
        if not self.is_ready:
            return
        with self._painting():
            for pane in self._panes:
                self._update(pane, state)
        self.show_keys()

    def _painting(self) -> AbstractContextManager[None]:
        """Paint what changes as one; a pane that is alone on the screen paints itself."""
        return nullcontext() if self.maximized is not None else self._batched.painted_by(self.query_one("#content"))

    def show_running(self, state: State) -> None:
        """A movement is under way."""
        if not self.is_ready:
            return
        with self._painting():
            for pane in self._panes:
                if pane.shows_running:
                    self._update(pane, state)
        self.show_keys()
        running = state.running
        if running is not None and running.seconds > _LONG:
            self.put_answer(*running_text(running, state.overview))

    def _update(self, pane: Pane, state: State) -> None:
        if pane.looks_inside or (pane.looks_ahead and state.looks_ahead):
            state = state.inside
        try:
            if not pane.follows_selection and state.differs_in_selection_alone(pane.state):
                pane.state = state
                return
            pane.update(state)
        except Exception as error:  # a fault in one pane must not keep the others from showing
            pane.report_fault(error)

    def grew(self, overview: Overview) -> None:
        """More is known of the whole run, while it is made."""

    def put_answer(self, text: str, tone: str) -> None:
        """Show the last answer in one line."""
        if self.is_ready:
            self.query_one("#answer", AnswerLine).put(text, tone)

    def put_card(self, title: str, lines: tuple[str, ...]) -> bool:
        """Show an answer of several lines above the prompt, without any none; True if this screen can."""
        if not self.is_ready:
            return False
        card = self._answer_card
        if card is None:
            if not lines:
                return True
            from tui.screens.answer_card import AnswerCard  # the first picture has no answers

            card = self._answer_card = AnswerCard(self.host, id="card")
            card.batched = self._batched
            self.mount(card, before="#bottom")
            self._panes = (*self._panes, card)
        card.most = max(6, self.app.size.height // 3)
        card.put(title, lines)
        card.display = bool(lines)
        return True

    @property
    def has_answer(self) -> bool:
        """True if an answer of several lines is open."""
        return self._answer_card is not None and self._answer_card.display

    def close_card(self) -> bool:
        """Close what covers something; True if there was anything."""
        card = self._answer_card
        if card is None or not self.has_answer:
            return False
        had_focus = card.has_focus
        self.put_card("", ())
        pane = self.first_pane()
        if had_focus and pane is not None:
            pane.focus()
        return True

    def come_out(self) -> bool:
        """Come out of what was gone into on this screen; False where there is nothing."""
        return False

    def pick(self, title: str, picks: Sequence[Completion]) -> None:
        """Let the user choose one of several lines."""
        if self.is_ready:
            listed = self.query_one("#picks", PickList)
            listed.put(title, picks, is_focused=True)
            self.set_focus(listed)

    def close_picks(self) -> bool:
        """Close the list of lines to choose from; False if there is none."""
        if not self.is_ready:
            return False
        listed = self.query_one("#picks", PickList)
        was_open, had_focus = listed.is_open, listed.has_focus
        listed.put("", ())
        if had_focus:
            self.host.close_prompt()
        return was_open

    def kept(self) -> dict[str, str | int]:
        """Return what is to be kept of this screen with the session: plain values by name."""
        return {}

    def put_kept(self, kept: Mapping[str, object]) -> None:
        """Show what was kept, before the screen has its parts; what cannot be is passed over."""

    @property
    def awaits_answer(self) -> bool:
        """True while what the keys act on is not here yet: they wait for it."""
        return False

    def own_line(self, line: str) -> str:
        """Return what a line means on this screen: `h` in it is of the iteration of a cursor that is in one."""
        looked_at = ((pane.iteration_looked_at, pane.shows_handed_on) for pane in self._panes)
        found, at_end = next(((one, at_end) for one, at_end in looked_at if one is not None), (None, False))
        if found is None:
            return line
        from stepper.debug.iterations.far_runs import LookedAt  # loaded with the first line that is typed
        from tui.screens.cursor_lines import in_iterations

        return in_iterations(line, LookedAt(self.host.driver.compiled, *found, at_end=at_end))

    def words_behind(self) -> Mapping[str, Sequence[str]]:
        """Return what may stand behind a command on this screen, by the name of that."""
        return {}

    def lines_before(self, text: str) -> tuple[str, ...]:
        """Return the lines to be carried out before a command of the debugger that was given here."""
        return ()

    def show_tab(self, name: str) -> None:
        """Show a tab, on a screen with tabs."""

    def move_tab(self, by: int) -> bool:
        """Show the next tab; False on a screen without tabs."""
        return False

    @property
    def prompt(self) -> Prompt:
        """The line to type in."""
        return self.query_one("#prompt", Prompt)

    # --- events --------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Show what there is. All panes are there from the beginning, unless it was closed before it was there."""
        if self not in self.app.screen_stack:
            return
        self._panes = tuple(self.query(Pane))
        for pane in self._panes:
            pane.batched = self._batched
        self._has_parts = True
        self.dispatcher.keymap = self.host.keymap
        self.prompt.history = self.host.typed
        self.put_answer(*self.host.answered)
        self._fit()
        self.show(self.host.state)
        self._mounted_with = self.host.state
        first = self.first_pane()
        if first is not None:
            self.set_focus(first)  # at once: a key that was typed ahead may give it to the prompt
        self.host.release_keys()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Time may have gone on while another screen was in front; a new one has just been styled and shown."""
        is_as_mounted, self._mounted_with = self._mounted_with is self.host.state, None
        if is_as_mounted:
            event.refresh_styles = False
        else:
            self.put_answer(*self.host.answered)
            self.show(self.host.state)
        self.show_keys()

    def on_resize(self, _event: events.Resize) -> None:
        """Another size, perhaps another arrangement."""
        self._fit()

    def _fit(self) -> None:
        if not self.is_ready:
            return
        self._set_size_classes()
        self.fit(*self.app.size)

    def _set_size_classes(self, *, update: bool = True) -> None:
        self.update_classes(self.size_classes(*self.app.size), update=update)

    def size_classes(self, width: int, height: int) -> dict[str, bool]:
        """Return the classes by which the arrangement of the parts depends on the size."""
        return {
            "-small": width < LEAST[0] or height < LEAST[1],
            "-tiny": width < 100,
            "-narrow": 100 <= width < 150,
            "-huge": width >= 190,
            "-short": height < 30,
            "-low": height < 24,
            "-ascii": self.host.look.ascii,
        }

    def fit(self, width: int, height: int) -> None:
        """Arrange the parts for a size; the classes are set already."""

    def on_descendant_focus(self) -> None:
        """The last line names the keys of the focused pane, and where Tab leads."""
        self._following = self.following()
        self.show_keys()

    def situation(self) -> str:
        """Return how the run stands, as footers have it."""
        return run_situation(self.host.state)

    def following(self) -> str:
        """Return the name of the pane, or the tab, to which Tab leads."""
        chain = [pane for pane in self.focus_chain if isinstance(pane, Pane)]
        if self.focused not in chain or len(chain) < 2 or isinstance(self.focused, PickList):
            return ""
        return chain[(chain.index(self.focused) + 1) % len(chain)].name_for_tab

    def is_alone(self) -> bool:
        """Return True if Tab leads nowhere."""
        return False

    def show_keys(self) -> None:
        """Name the keys that hold now."""
        if not self.is_ready:
            return
        pane = self.host.focused_pane
        kind = "" if pane is None else "line" if pane.is_typing else pane.kind
        if isinstance(self.focused, Prompt):
            kind = "completing" if self.query_one("#picks", PickList).is_open else "prompt"
        kind = "letter" if self.dispatcher.takes_letter else kind
        situation = Situation(self.situation(), self._following, self.is_alone(), () if pane is None else pane.idle)
        self.query_one("#keys", KeysLine).put(kind, self.dispatcher.pending, self.host.keymap, situation)

    def on_key(self, event: events.Key) -> None:
        """A key that no widget wanted for itself."""
        if isinstance(self.focused, Prompt):
            if event.key in ("ctrl+c", "ctrl+q", "ctrl+z", "f5", "f9", "f10", "f11"):
                self.heed(event)
            return
        self.heed(event)

    def heed(self, event: events.Key) -> bool:
        """Do what a key means in the focused pane; True if it means anything."""
        pane = self.host.focused_pane
        command = self.dispatcher.feed(event, "" if pane is None else pane.kind)
        self.show_keys()
        if command is None:
            return False
        event.stop()
        event.prevent_default()
        if command:
            self.host.perform(command, echo=False)
        return True


def running_text(running: Running, overview: Overview | None) -> tuple[str, str]:
    """Return how far a movement has come that takes long, and what ends it; with the tone of that.

    `overview` may know of a state that comes again.
    """
    glance = running.glance
    key = "Esc pauses"
    if glance.loop is None or glance.iteration is None:
        return f"{running.command} goes on, tick {glance.tick:,}; {key}", "dim"
    where = f"{layer_name(glance.loop)} is in iteration {glance.iteration:,}"
    from stepper.debug.overview.facts import recurrence_in  # few runs take so long
    from stepper.debug.overview.texts import recurrence_text

    again = recurrence_in(overview, glance)
    state = "" if again is None else recurrence_text(again, brief=True)
    if glance.endless is not None and (glance.endless is not glance.loop or not state):
        name = "it" if glance.endless is glance.loop else layer_name(glance.endless)
        return f"{where}; {name} can never end: there is no trip count and no condition that ends it; {key}", "edit"
    if again is not None:
        what = "what decides that" if again.decides else "nothing ends it, and its state"
        return f"{where}; it can never end: {what} {state}; {key}", "edit"
    return f"{where}; {key}", "dim"


def run_situation(state: State) -> str:
    """Return how the run stands, as footers have it."""
    if state.running is not None:
        return "running"
    if state.failure or (state.stop is not None and state.stop.is_interrupted):
        return "stop"
    if state.view is not None and state.view.outputs is not None:
        return "ended"
    return "start" if state.stop is not None and state.stop.reason is Reason.START else ""


class Colon(Pane, can_focus=False):
    """The sign before the prompt."""

    follows_selection: ClassVar[bool] = False
    narrowest: ClassVar[int] = 1

    def rows(self, width: int) -> list[Row]:
        """Return the one row."""
        return [[(":", "key")]]


class TooSmall(Pane, can_focus=False):
    """A sentence where nothing else has room."""

    follows_selection: ClassVar[bool] = False

    def rows(self, width: int) -> list[Row]:
        """Return a sentence."""
        columns, rows = self.app.size
        return [[(f"{LEAST[0]}x{LEAST[1]} is needed, this is {columns}x{rows}", "")]]
