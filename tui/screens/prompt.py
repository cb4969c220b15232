"""The line to type in: history, completion, and the suggestion in ghost text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual import events
from textual.suggester import Suggester
from textual.widgets import Input

from tui.screens.picks import PickList
from tui.theme import key_text

if TYPE_CHECKING:
    from stepper.commands.completion import Completion
    from tui.paint.pane import Host

MOST_REMEMBERED: Final = 500


class Prompt(Input):
    """One line. Enter carries it out, an empty one repeats the last movement; Esc leaves."""

    DEFAULT_CSS = """
    Prompt, Prompt:focus { height: 1; border: none; padding: 0; background: $surface; color: $foreground; }
    Prompt > .input--placeholder { color: $foreground 66%; }
    Prompt > .input--suggestion { color: $foreground 40%; }
    """

    def __init__(self, host: Host, *, id: str | None = None) -> None:
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
            picks.put("ways to go on", found if len(found) > 1 else ())
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
