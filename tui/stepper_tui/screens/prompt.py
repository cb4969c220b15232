"""The prompt, what it can be completed with, and answers of several lines above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.suggester import Suggester
from textual.widgets import Input

from stepper_tui.paint.pane import ListPane, Pane, TableColumn, written
from stepper_tui.paint.rows import Row, cell_len, clip, clip_end, printable, wrapped
from stepper_tui.theme import key_text

if TYPE_CHECKING:
    from stepper.commands.command_completion import Completion
    from stepper_tui.app import StepperApp
    from stepper_tui.state import State


MOST_REMEMBERED = 500


class Prompt(Input):
    """A line. Enter carries it out, an empty one repeats the last movement; Esc leaves."""

    DEFAULT_CSS = """
    Prompt, Prompt:focus { height: 1; border: none; padding: 0; background: $surface; color: $foreground; }
    Prompt > .input--placeholder { color: $foreground 66%; }
    Prompt > .input--suggestion { color: $foreground 40%; }
    """

    def __init__(self, host: StepperApp, *, id: str | None = None) -> None:
        hint = f"type a command, Tab completes, {key_text('↑', ascii=host.look.ascii)} history"
        super().__init__(
            placeholder=hint,
            suggester=_Suggester(self),
            select_on_focus=False,
            compact=True,
            id=id,
        )
        self.host = host
        self.history: list[str] = []
        self._place: int | None = None
        self._typed = ""

    @property
    def picks(self) -> PickList:
        """The list of what the line may become."""
        return self.screen.query_one(PickList)

    def take(self, completion: Completion) -> None:
        """Put a completion into the line."""
        self.value = completion.line
        self.cursor_position = len(self.value)

    def remember(self, line: str) -> None:
        """Keep a line for the arrows."""
        if line and (not self.history or self.history[-1] != line):
            self.history.append(line)
            del self.history[:-MOST_REMEMBERED]
        self._place = None

    async def _on_key(self, event: events.Key) -> None:
        if self.screen.focused is not self:  # typed before Enter was heeded, and so after it
            self.host.heed(event)
            event.stop()
            event.prevent_default()
            return
        picks = self.picks
        if event.key == "enter":
            picks.put("", ())
            line, self.value = self.value.strip(), ""
            self.host.submit(line)
        elif event.key == "escape" and picks.is_open:
            picks.put("", ())
            self.host.show_keys()
            self.value = self._typed
            self.cursor_position = len(self.value)
        elif event.key == "escape":
            self.host.close_prompt()
        elif event.key in ("up", "down") and not picks.is_open:
            self._recall(-1 if event.key == "up" else 1)
        elif event.key in ("tab", "down"):
            self._complete(1)
        elif event.key in ("shift+tab", "up"):
            self._complete(-1)
        else:
            picks.put("", ())
            self.host.show_keys()
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()

    def _recall(self, by: int) -> None:
        if not self.history:
            return
        place = len(self.history) if self._place is None else self._place
        place = max(0, min(place + by, len(self.history)))
        self._place = place
        self.value = self.history[place] if place < len(self.history) else ""
        self.cursor_position = len(self.value)

    def _complete(self, by: int) -> None:
        """The next of what the word may become, or the one before; of several all are listed."""
        picks = self.picks
        if not picks.is_open:
            from stepper.query.known_names import MOST

            found = self.host.completions(self.value, MOST)
            if not found:
                return
            self._typed = self.value
            picks.put("completions", found if len(found) > 1 else ())
            self.host.show_keys()
            self.take(found[0])
            return
        entries = picks.entries()
        picks.choose((picks.cursor + by) % len(entries))
        self.take(entries[picks.cursor])


class _Suggester(Suggester):
    """The latest line of the history that begins so, else the first that the text may become."""

    def __init__(self, prompt: Prompt) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._prompt = prompt

    async def get_suggestion(self, value: str) -> str | None:
        """The whole line as it may be."""
        for line in reversed(self._prompt.history):
            if line.startswith(value):
                return line
        return next((one.line for one in self._prompt.host.completions(value, 1) if one.line.startswith(value)), None)


_MOST_WORD = 48


class PickList(ListPane["Completion"]):
    """Each with its kind, its type and shape, and what it is now. While one types the prompt keeps the focus."""

    DEFAULT_CSS = """
    PickList {
        layer: over; dock: bottom; display: none; height: auto; max-height: 12; margin-bottom: 3;
        background: $surface; border-top: solid $primary;
    }
    PickList.open { display: block; }
    PickList.below-a-rule { border-top: blank; }
    """
    kind: ClassVar[str] = "picks"
    follows_selection: ClassVar[bool] = False
    help_text: ClassVar[str] = "Completions of the line, or corrections. Enter takes the chosen one, Esc none."

    def __init__(self, host: StepperApp, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._picks: Sequence[Completion] = ()
        self._word = 0

    def put(self, title: str, picks: Sequence[Completion], *, is_focused: bool = False) -> None:
        """Show these, the first of them chosen; none closes the list. While one types the prompt has the focus."""
        self.can_focus = is_focused
        self._picks, self.title, self.cursor, self.top = picks, title, 0, 0
        self._word = min(max((cell_len(one.word) for one in picks), default=0) + 2, _MOST_WORD)
        self.note = f"{len(picks)} " if picks else ""
        self.update_classes({"open": bool(picks), "below-a-rule": bool(picks) and self._lies_below_a_rule()})
        self.changed()

    def _lies_below_a_rule(self) -> bool:
        """True if the line above another part of the screen is left to be seen just above the line of the list."""
        room, most = self.screen.size, self.styles.max_height
        height = len(self._picks) + 2 if most is None else min(len(self._picks) + 2, int(most.value))
        y = room.height - self.styles.margin.bottom - height - 1
        parts = (part for part in self.screen.query("*") if part.display and part is not self)
        return any(
            (part.region.y, part.region.width) == (y, room.width) and part.styles.border_top[0] for part in parts
        )

    @property
    def is_open(self) -> bool:
        """True if there is anything to pick."""
        return bool(self._picks)

    def entries(self) -> Sequence[Completion]:
        """Return what there is to pick."""
        return self._picks

    def columns(self) -> Sequence[TableColumn[Completion]]:
        """Return the word, its type and shape, what it is now, and its kind."""
        return (
            TableColumn("", lambda width: min(self._word, width // 2), _word),
            TableColumn("", 16 if any(one.form for one in self._picks) else 0, _form),
            TableColumn("", lambda width: max((width - self._word - 16) // 2, 0) if self._has_values else 0, _value),
            TableColumn("", None, lambda one, width: written(clip_end(printable(one.what), width), width, "dim")),
        )

    @property
    def _has_values(self) -> bool:
        return any(one.array is not None for one in self._picks)

    def update(self, state: State) -> None:
        """Keep what was put."""
        self.state = state

    def open_chosen(self) -> None:
        """Carry out the chosen line."""
        chosen = self.chosen
        self.put("", ())
        if chosen is not None:
            self.host.submit(chosen.line)

    def clicked(self, index: int) -> None:
        """While one types, the prompt takes what is clicked."""
        self.host.take_completion(self._picks[index])


def _word(one: Completion, width: int) -> Row:
    return written(clip(printable(one.word), width - 1), width, "strong")


def _form(one: Completion, width: int) -> Row:
    return written(clip_end(one.form, width - 1), width, "dim")


def _value(one: Completion, width: int) -> Row:
    return written(clip_end(printable(one.value_text(width - 2)), width - 2), width)


_WIDE = 66
"""Cells from which on it says how many lines there are."""


class AnswerCard(Pane):
    """Answer of a command in several lines. Esc closes it."""

    DEFAULT_CSS = "AnswerCard { border-top: solid $primary; }"
    kind: ClassVar[str] = "card"
    help_text: ClassVar[str] = "The answer of the last command."
    most: int = 14

    def __init__(self, host: StepperApp, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.lines: tuple[str, ...] = ()

    def put(self, title: str, lines: tuple[str, ...]) -> None:
        """Show these lines."""
        self.title, self.lines, self.top = clip(printable(title), 60), tuple(map(printable, lines)), 0
        self.changed()

    def heading(self, width: int) -> list[Row]:
        """Return how much there is, and how to see the rest."""
        keys = key_text("↓ ↑" if self.has_focus else "Tab, ↓", ascii=self.look.ascii)
        more = f"{keys} scroll   "
        more = more if self.count(width) > self.size.height else ""
        count = f"{len(self.lines)} lines   " if width >= _WIDE else ""
        self.note = f"{count}{more}Esc closes "
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return the lines; a long one continues below, further in than it begins."""
        return [[("  ", ""), (part, "")] for line in self.lines for part in wrapped(line, width - 3)]

    def line_count(self, width: int) -> int:
        """Return how many rows there are, as far as there is room for them."""
        return min(super().line_count(width), self.most)
