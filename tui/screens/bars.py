"""The lines around the panes of a screen: where one is, above; answers, keys and tabs, below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from stepper.debug.branches.edits import ORIGINAL
from stepper.debug.causes.cause import Reason
from stepper.debug.moments.moment import MomentKind
from tui.keys.keymap import Keymap, Situation, footer, gap_of
from tui.keys.keys import KEYS
from tui.paint.links import Destination, LinkText, key_button
from tui.paint.names import operation_names, running_name
from tui.paint.pane import BarPane, Host
from tui.paint.rows import Cell, Row, cell_len, clip, clip_head, printable, spread, width_of
from tui.screens.main.frames import limit_text

if TYPE_CHECKING:
    from stepper.debug.moments.spread import MomentView
    from tui.state import State

_LEAST_PATH: Final = 35
"""Columns for the name of the model and of the last part of the path."""
_WITH_TICK: Final = 100
"""Columns from which on the top bar has the tick."""
_REASONS: Final = {
    Reason.MOVED: "paused",
    Reason.PAUSED: "paused on the way",
    Reason.END: "ended",
    Reason.START: "at the start",
    Reason.NOWHERE: "paused",
    Reason.BREAK: "stopped",
}


class TopBar(BarPane):
    """Model, loop and iteration, operation, view; at the right the state, the tick, what computes."""

    shows_running: ClassVar[bool] = True

    def __init__(self, host: Host, view: str = "", *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.view_name = view

    def rows(self, width: int) -> list[Row]:
        """Return the one row."""
        parts = self._parts(width)
        least = sum(cell_len(part) + 3 for part in {parts[0]: None, parts[-1]: None}) + 12
        groups = [self._found(), *self._right(width)]
        while len(groups) > 2 and sum(map(width_of, groups)) + _LEAST_PATH > width:
            groups.pop(-1 if len(groups) > 3 else 0)
        right = [cell for group in groups for cell in group]
        beside = self._beside() if width >= _WITH_TICK else []
        while beside and width_of([*right, *beside]) + least > width:
            beside.pop()
        right += beside
        room = width - width_of(right) - 12
        while sum(cell_len(part) + 3 for part in parts) > room and len(parts) > 2:
            del parts[1]
        left: Row = [(" stepper ", "accent")]
        for place, part in enumerate(parts):
            last = place == len(parts) - 1
            text = clip(part, max(room // 2, 10))
            shown = LinkText(text, part.target) if isinstance(part, LinkText) else text
            left += [(" › " if place else " ", "faint"), (shown, "strong" if last else "dim")]
        return [spread(left, [*right, (" ", "")], width)]

    def _found(self) -> Row:
        """Return what is wrong in the run that the overview shows."""
        births = () if self.state.overview is None else self.state.overview.births
        from stepper.debug.causes.texts import word_of

        kinds = sorted({word_of(birth.cause.kind) for birth in births}, reverse=True)
        return [(", ".join(kinds), "bad"), ("   ", "")] if kinds else []

    def _parts(self, width: int) -> list[str]:
        """From the model inwards; with room the innermost loop's limit too."""
        state = self.state
        model = printable(state.model)
        parts: list[str] = [LinkText(model, Destination("frame 0", at_once=True)) if state.frames else model]
        for depth, frame in enumerate(state.frames[: state.depth + 1]):
            if depth:
                number = "" if frame.iteration is None else f" {frame.iteration}"
                if number and width >= 110 and depth == state.loop_depth and state.view is not None:
                    number += limit_text(state.view.levels[depth])
                name = running_name(state.frames[depth - 1])
                parts.append(LinkText(f"{name}{number}", Destination(f"frame {depth}", at_once=True)))
        looked_at, cursor = state.frame, state.cursor
        if looked_at is not None and looked_at.closed and looked_at.iteration is not None and state.selected is None:
            parts.append("end of the iteration")
        elif looked_at is not None and cursor is not None and (looked_at.moment >= 0 or state.selected is not None):
            parts.append(operation_names(looked_at.program)[cursor])
        return [*parts, self.view_name] if self.view_name else parts

    def _right(self, width: int) -> list[Row]:
        """Return the moments, the state, and whether anything is edited; the last ones are the first to be left out."""
        state = self.state
        if state.opening:
            return [[], [(state.opening, "dim")]]
        rows = [moments_row(state, " " if width < _WITH_TICK else "  ")]
        if state.running is not None:
            rate = "" if state.running.rate is None else f" {state.running.rate:,.0f}/s"
            rows.append([(f"running{rate}", "accent")])
        else:
            word, tone = self._reason()
            rows.append([(LinkText(word, Destination("explain", at_once=True)), tone)])
        if state.is_edited or state.branch not in ("", ORIGINAL):
            is_named = state.a is not None and state.a.moment.kind is MomentKind.BRANCH
            words = [] if is_named else [clip(printable(state.branch), 12)]
            words += ["edited*"] if state.is_edited else []
            rows.append([(f"   {', '.join(words)}", "edit")])
        if state.editor:
            rows.append([(f"   {state.editor}", "accent" if state.editor == "editor" else "dim")])
        return rows

    def _beside(self) -> Row:
        """Return the tick, and what computes."""
        state = self.state
        tick = state.running.glance.tick if state.running is not None else state.view.tick if state.view else 0
        who = state.engine or "numpy"
        rules = who if state.rules == "spec" else f"{who}, {state.rules} rules"
        return [] if state.opening else [(f"   tick {tick}", "dim"), (f"   {rules}", "dim")]

    def _reason(self) -> Cell:
        state = self.state
        if state.failure:
            return "stopped: error", "bad"
        if state.stop is None:
            return "reading", "dim"
        word = _REASONS[state.stop.reason]
        cause = state.stop.cause
        if state.stop.reason is Reason.BREAK and (cause is None or not state.stop.is_interrupted):
            return "paused", "dim"
        if cause is not None and state.stop.is_interrupted:
            from stepper.debug.causes.texts import name_of

            return f"{word}: {name_of(cause)}", "bad"
        return word, "dim"


def moments_row(state: State, gap: str = "  ") -> Row:
    """Return what A and now are, wherever A is held against now; empty where it is not."""
    a = state.a
    if a is None:
        return []
    now = "outside of loops" if state.iteration is None else f"iteration {state.iteration}"
    if a.path is not None:
        from stepper.debug.moments.texts import path_text  # the first picture has no A

        now = f"iteration {path_text(a.path[1])}"
    row: Row = [(" A ", "a-on"), (f" {a_text(a)} {gap}", "a"), ("now", "accent")]
    if a.moment.kind is MomentKind.BRANCH:
        now = f"branch {clip(printable(state.branch), 12)}"
    elif a.moment.kind is MomentKind.REFERENCE:
        now = "this run"
    return [*row, (f" {now}  {gap}", "")]


def a_text(a: MomentView, width: int = 20) -> str:
    """Return what A is, in a few words."""
    match a.moment.kind:
        case MomentKind.BRANCH:
            return f"branch {clip(printable(a.moment.branch), width - 7)}"
        case MomentKind.REFERENCE:
            return clip_head(printable(a.title or "reference"), width)
    from stepper.debug.moments.texts import moment_text, path_text  # the first picture has no A

    if a.iteration is None:
        return "no iteration before" if a.moment.kind is MomentKind.BEFORE else moment_text(a.moment)
    return f"iteration {a.iteration if a.path is None else path_text(a.path[0])}"


class AnswerLine(BarPane):
    """The last answer in one line."""

    follows_selection: ClassVar[bool] = False

    def __init__(self, host: Host, *, id: str | None = None) -> None:
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

    def __init__(self, host: Host, *, id: str | None = None) -> None:
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


class Tabs(BarPane):
    """Where there is room for one pane only: which there are, and which is shown."""

    follows_selection: ClassVar[bool] = False
    NAMES: ClassVar = ("body", "ops", "value", "loop", "time")
    """Those of a model with loops; the last two show iterations alone."""

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.shown = "ops"

    @property
    def names(self) -> Sequence[str]:
        """The tabs that have something to show."""
        names: Sequence[str] = self.NAMES
        return names[:3] if self.state.is_loopless else names

    def rows(self, width: int) -> list[Row]:
        """Return the one row."""
        row: Row = []
        for name in self.names:
            on = name == self.shown
            row += [
                ("[" if on else " ", "accent"),
                (name, "title-on" if on else ""),
                ("]   " if on else "    ", "accent"),
            ]
        iteration = self.state.iteration
        loop = self.state.loop
        right: Row = []
        if loop is not None and iteration is not None:
            limit = limit_text(loop.level)
            right = [(str(iteration), "accent"), (f"{limit} ", "dim")]
        return [spread(row, right, width)]
