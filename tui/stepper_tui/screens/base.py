"""The base of all screens: the bars above and below, the prompt, and panes that take turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widget import Widget

from stepper.debug.moments.moment import MomentKind
from stepper_tui.keymap import Dispatcher, Situation, footer, gap_of
from stepper_tui.keys import KEYS, Keymap
from stepper_tui.paint.painter import Guarded, Horizontal, Vertical
from stepper_tui.paint.pane import BarPane, Pane
from stepper_tui.paint.rows import (
    Cell,
    Row,
    cell_len,
    clip,
    clip_head,
    key_button,
    layer_name,
    printable,
    spread,
    width_of,
)
from stepper_tui.screens.prompt import PickList, Prompt

if TYPE_CHECKING:
    from stepper.commands.command_completion import Completion
    from stepper.debug.moments.spread import MomentView
    from stepper.debug.overview.overview_facts import Overview
    from stepper_tui.app import StepperApp
    from stepper_tui.screens.prompt import AnswerCard
    from stepper_tui.state import Running, State


_LEAST_PATH = 35
"""Columns for the name of the model and of the last part of the path."""


class TopBar(BarPane):
    """The model, and the way to what is shown; at the right what was found, the baseline, how the run stands."""

    shows_running: ClassVar[bool] = True

    def __init__(self, host: StepperApp, path: Callable[[], list[str]], *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._path = path

    def rows(self, width: int) -> list[Row]:
        """Return the one row."""
        groups = self._right()
        parts = [printable(self.state.model), *self._path()]
        while len(groups) > 1 and sum(map(width_of, groups)) + _LEAST_PATH > width:
            groups.pop()
        right = [cell for group in groups for cell in group]
        room = width - width_of(right) - 12
        while len(parts) > 2 and sum(cell_len(part) + 3 for part in parts) > room:
            del parts[1]
        left: Row = [(" stepper ", "accent")]
        for place, part in enumerate(parts):
            left.append((" › " if place else " ", "faint"))
            left.append((clip(part, max(room // 2, 10)), "strong" if place == len(parts) - 1 else "dim"))
        return [spread(left, [*right, (" ", "")], width)]

    def _right(self) -> list[Row]:
        """Return the parts at the right; the last ones are the first to be left out."""
        state = self.state
        if state.opening:
            return [[(state.opening, "dim")]]
        rows: list[Row] = [[self._reason()]]
        births = () if state.overview is None else state.overview.births
        from stepper.debug.causes.cause_texts import word_of

        if kinds := sorted({word_of(birth.cause.kind) for birth in births}, reverse=True):
            rows.insert(0, [(", ".join(kinds), "bad"), ("   ", "")])
        if state.a is not None:
            rows.append([("   A ", "a-on"), (f" {a_text(state.a)}", "a")])
        if state.is_edited:
            rows.append([("   edited*", "edit")])
        if state.editor:
            rows.append([(f"   {state.editor}", "accent" if state.editor == "editor" else "dim")])
        if state.engine or state.rules != "spec":
            rules = "" if state.rules == "spec" else f"{state.rules} rules"
            rows.append([(f"   {', '.join(filter(None, (state.engine, rules)))}", "dim")])
        return rows

    def _reason(self) -> Cell:
        """Return how the run stands: what stopped it, else how far the whole of it is known."""
        state, stop = self.state, self.state.stop
        if state.running is not None:
            rate = "" if state.running.rate is None else f" {state.running.rate:,.0f}/s"
            return f"running{rate}", "accent"
        if state.failure:
            return "stopped: error", "bad"
        if stop is not None and stop.cause is not None and stop.is_interrupted:
            from stepper.debug.causes.cause_texts import name_of

            return f"stopped: {name_of(stop.cause)}", "bad"
        if state.overview is None:
            return ("reading" if stop is None else ""), "dim"
        from stepper_tui.screens.sheet.headline import status

        return status(state.overview)


def a_text(a: MomentView, width: int = 20) -> str:
    """Return what A is, in a few words."""
    match a.moment.kind:
        case MomentKind.BRANCH:
            return f"branch {clip(printable(a.moment.branch), width - 7)}"
        case MomentKind.REFERENCE:
            return clip_head(printable(a.title or "reference"), width)
    from stepper.debug.moments.moment_texts import moment_text, path_text  # the first picture has no A

    if a.iteration is None:
        return "no iteration before" if a.moment.kind is MomentKind.BEFORE else moment_text(a.moment)
    return f"iteration {a.iteration if a.path is None else path_text(a.path[0])}"


class AnswerLine(BarPane):
    """The last answer in one line."""

    follows_selection: ClassVar[bool] = False

    def __init__(self, host: StepperApp, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._text, self._tone = "", "dim"

    def put(self, text: str, tone: str = "dim") -> None:
        """Show this."""
        self._text, self._tone = printable(text), tone
        self.changed()

    def update(self, state: State) -> None:
        """Keep what was put."""
        self.state = state

    def rows(self, width: int) -> list[Row]:
        """Return the one row."""
        return [
            [("  ", ""), (self._text if len(self._text) < width - 2 else self._text[: width - 3] + "…", self._tone)]
        ]


class KeysLine(BarPane):
    """Six to eight keys of the focused pane, help always; what was typed of a command that is not complete."""

    follows_selection: ClassVar[bool] = False

    def __init__(self, host: StepperApp, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._pane, self._pending = "", ""
        self._keymap: Keymap = KEYS
        self._situation = Situation()
        self._known: dict[tuple[str, Situation, int], Row] = {}

    def put(self, pane: str, pending: str, keymap: Keymap, situation: Situation) -> None:
        """The pane has the focus; this was typed and waits."""
        wanted = (pane, pending, keymap, situation)
        if wanted != (self._pane, self._pending, self._keymap, self._situation):
            if keymap is not self._keymap:
                self._known.clear()
            self._pane, self._pending, self._keymap, self._situation = wanted
            self.changed()

    def update(self, state: State) -> None:
        """Keep what was put."""
        self.state = state

    def rows(self, width: int) -> list[Row]:
        """Return the one row."""
        room = width - len(self._pending) - 2
        known = self._pane, self._situation, room
        if known not in self._known:
            shown = footer(self._pane, self._keymap, room, self._situation, ascii=self.look.ascii)
            self._known[known] = [
                cell for key, word in shown for cell in (*key_button(key, word, self._keymap), (" " * gap_of(room), ""))
            ]
        row = self._known[known]
        return [spread(row, [(self._pending, "accent")], width)] if self._pending else [row]


_LONG = 0.5
"""Seconds after which a movement says how far it is."""
LEAST: tuple[int, int] = (60, 18)
"""Columns and rows below which a sentence stands instead of the screen."""


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
    DebugScreen.-ascii AnswerCard { border-top: ascii $primary; }
    DebugScreen #too-small { display: none; height: 1fr; }
    DebugScreen.-small > * { display: none; }
    DebugScreen.-small > #too-small { display: block; }
    DebugScreen.-short GivenInputs, DebugScreen.-short InputsTable { margin-top: 0; }
    DebugScreen.-low #answer { display: none; }
    DebugScreen.-low #picks { margin-bottom: 2; }
    DebugScreen.-ascii #picks { border-top: ascii $primary; }
    DebugScreen.-ascii #picks.below-a-rule { border-top: blank; }
    """
    view_name: ClassVar[str] = ""

    host: StepperApp

    def __init__(self, host: StepperApp) -> None:
        super().__init__()
        self.host = host
        self.dispatcher = Dispatcher()
        self._has_parts = False
        self._panes: tuple[Pane, ...] = ()
        self._following = ""
        self._answer_card: AnswerCard | None = None
        self._mounted_with: State | None = None
        """The state that it showed when it was mounted, until it is in front."""

    # --- parts ---------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """The lines around, and the body."""
        self._set_size_classes(update=False)  # before there is anything to style
        yield TopBar(self.host, self.path, id="top")
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
        parent.mount(pane, after=after)
        self._panes = (*self._panes, pane)
        pane.call_after_refresh(lambda: pane.renew(self.host.state))

    def path(self) -> list[str]:
        """Return what the top line names behind the model: where one is in it, or what is shown."""
        return [self.view_name]

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
        for pane in self._panes:
            pane.renew(state)
        self.show_keys()

    def show_running(self, state: State) -> None:
        """A movement is under way."""
        if not self.is_ready:
            return
        for pane in self._panes:
            if pane.shows_running:
                pane.renew(state)
        self.show_keys()
        running = state.running
        if running is not None and running.seconds > _LONG:
            self.put_answer(*running_text(running, state.overview))

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
            from stepper_tui.screens.prompt import AnswerCard  # the first picture has no answers

            card = self._answer_card = AnswerCard(self.host, id="card")
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
        found = next((one for pane in self._panes if (one := pane.iteration_looked_at) is not None), None)
        if found is None:
            return line
        from stepper.debug.table.columns import LookedAt  # loaded with the first line that is typed
        from stepper_tui.screens.cursor_lines import in_iterations

        return in_iterations(line, LookedAt(self.host.driver.compiled, *found))

    def words_behind(self) -> Mapping[str, Sequence[str]]:
        """Return what may stand behind a command on this screen, by the name of that."""
        return {}

    def lines_before(self, text: str) -> tuple[str, ...]:
        """Return the lines to be carried out before a command of the debugger that was given here."""
        return ()

    def run_moved(self, command: str) -> None:
        """The run stands elsewhere, after a command (empty: another reason)."""

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

    def following(self) -> str:
        """Return the name of the pane to which Tab leads."""
        chain = [pane for pane in self.focus_chain if isinstance(pane, Pane)]
        if self.focused not in chain or len(chain) < 2 or isinstance(self.focused, PickList):
            return ""
        return chain[(chain.index(self.focused) + 1) % len(chain)].name_for_tab

    def show_keys(self) -> None:
        """Name the keys that hold now."""
        if not self.is_ready:
            return
        pane = self.host.focused_pane
        kind = "" if pane is None else "line" if pane.is_typing else pane.kind
        if isinstance(self.focused, Prompt):
            kind = "completing" if self.query_one("#picks", PickList).is_open else "prompt"
        kind = "letter" if self.dispatcher.takes_letter else kind
        situation = Situation(self.host.state.running is not None, self._following)
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
            self.host.perform(command)
        return True


def running_text(running: Running, overview: Overview | None) -> tuple[str, str]:
    """Return how far a movement has come that takes long, and what ends it; with the tone of that.

    `overview` may know of a state that comes again.
    """
    glance = running.glance
    key = "Esc pauses"
    if glance.loop is None or glance.iteration is None:
        return f"{running.command} runs, tick {glance.tick:,}; {key}", "dim"
    where = f"{layer_name(glance.loop)} is in iteration {glance.iteration:,}"
    from stepper.debug.inspection.text import recurrence_text
    from stepper.debug.overview.overview_facts import recurrence_in  # few runs take so long

    again = recurrence_in(overview, glance)
    state = "" if again is None else recurrence_text(again, brief=True)
    if glance.endless is not None and (glance.endless is not glance.loop or not state):
        name = "it" if glance.endless is glance.loop else layer_name(glance.endless)
        return f"{where}; {name} can never end: there is no trip count and no condition that ends it; {key}", "edit"
    if again is not None:
        what = "what decides that" if again.decides else "nothing ends it, and its state"
        return f"{where}; it can never end: {what} {state}; {key}", "edit"
    return f"{where}; {key}", "dim"


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
