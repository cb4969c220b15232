"""The line to type in: history, completion, and the suggestion in ghost text."""

from __future__ import annotations

from typing import Final

from textual import events
from textual.suggester import Suggester
from textual.widgets import Input

from tui.paint.names import operation_names
from tui.paint.pane import Host
from tui.theme import in_ascii

MOST_REMEMBERED: Final = 500


class Prompt(Input):
    """One line. Enter carries it out, an empty one repeats the last movement; Esc leaves."""

    DEFAULT_CSS = """
    Prompt, Prompt:focus { height: 1; border: none; padding: 0; background: $surface; color: $foreground; }
    Prompt > .input--placeholder { color: $foreground 66%; }
    Prompt > .input--suggestion { color: $foreground 40%; }
    """

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        hint = "type a command, Tab completes, ↑ history"
        super().__init__(
            placeholder=in_ascii(hint) if host.look.ascii else hint,
            suggester=_Suggester(self),
            select_on_focus=False,
            compact=True,
            id=id,
        )
        self.host = host
        self.history: list[str] = []
        self._place: int | None = None
        self._tabs: list[str] = []

    def candidates(self, text: str) -> list[str]:
        """Return the completions of a text: a command, or for its object an operation."""
        head, _, word = text.rpartition(" ")
        if not head:
            return [name for name in self.host.words() if name.startswith(word)]
        state = self.host.state
        names = list(operation_names(state.frame.program)) if state.frame is not None else []
        return [f"{head} {name}" for name in names if word and name.startswith(word) and " " not in name]

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
        if event.key == "enter":
            line, self.value, self._tabs = self.value.strip(), "", []
            self.host.submit(line)
        elif event.key == "escape":
            self.host.close_prompt()
        elif event.key in ("up", "down"):
            self._recall(-1 if event.key == "up" else 1)
        elif event.key == "tab":
            self._complete()
        else:
            self._tabs = []
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

    def _complete(self) -> None:
        """The next of what the word may become."""
        if self.value not in self._tabs:
            self._tabs = self.candidates(self.value)
            found = self._tabs[0] if self._tabs else self.value
        else:
            found = self._tabs[(self._tabs.index(self.value) + 1) % len(self._tabs)]
        self.value = found
        self.cursor_position = len(found)


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
        return next(iter(self._prompt.candidates(value)), None)
