"""The palette: every action and every command by name, with its key."""

from __future__ import annotations

from functools import partial

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from tui.actions.registry import actions
from tui.registry import VIEWS
from tui.screens.base import DebugScreen, ScreenHost
from tui.theme import in_ascii, key_text


class ActionPalette(CommandPalette):
    """The list of actions that lies over a screen."""

    DEFAULT_CSS = """
    ActionPalette SearchIcon { display: none; }
    ActionPalette > Vertical { background: $surface; &:dark { background: $surface; } }
    ActionPalette #--input { border: hkey $foreground 26%; border-bottom: none; }
    ActionPalette CommandList { border-bottom: hkey $panel; scrollbar-color: $panel; scrollbar-background: $surface; }
    ActionPalette.-ascii #--input { border: ascii $foreground 66%; border-bottom: none; }
    ActionPalette.-ascii CommandList { border: ascii $foreground 66%; scrollbar-size: 0 0; }
    """


class Actions(Provider):
    """Everything that can be done, as lines for the prompt."""

    @property
    def _host(self) -> ScreenHost:
        assert isinstance(self.screen, DebugScreen), "the palette lies over one"
        return self.screen.host

    def _lines(self) -> list[tuple[str, str]]:
        """Return each line and what it does; keys first, for they have their objects filled in."""
        from stepper.commands.session import commands  # the screen is painted before

        found: dict[str, str] = {}
        for key in self._host.keymap:
            if not key.takes_letter:
                line = key.command.replace(" {n}", "").replace("{n}", "1")
                found.setdefault(line, f"{key.help}  ({key_text(key.shown, ascii=self._host.look.ascii)})")
        for view in VIEWS.values():
            found.setdefault(f"view {view.name}", view.help)
        for command in commands():
            found.setdefault(command.name if not command.syntax else f"prompt {command.name}", command.help)
        for action in actions().values():
            if not action.syntax:
                found.setdefault(action.name, action.help)
        found.setdefault("theme", actions()["theme"].help)
        return [(line, in_ascii(help)) for line, help in found.items()] if self._host.look.ascii else [*found.items()]

    async def discover(self) -> Hits:
        """Before anything is typed: all."""
        for line, help in self._lines():
            yield DiscoveryHit(Content(_shown(line)), partial(self._perform, line), text=line, help=help)

    async def search(self, query: str) -> Hits:
        """Yield those that fit the text."""
        matcher = self.matcher(query)
        for line, help in self._lines():
            score = max(matcher.match(line), matcher.match(help) * 0.8)
            if score > 0:
                yield Hit(score, Content(_shown(line)), partial(self._perform, line), text=line, help=help)

    def _perform(self, line: str) -> None:
        self._host.perform(line)


def _shown(line: str) -> str:
    """Return the line as a name for what it does."""
    line = line.replace("{op}", "selected operation").replace("{row}", "chosen row")
    return line.removesuffix(" +1").removeprefix("prompt ").strip() or "prompt"
