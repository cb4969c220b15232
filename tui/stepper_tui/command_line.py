"""The screens by name, and lines of the prompt, of keys and of the palette: filled in, and carried out."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from stepper.errors import StepperError, UsageError
from stepper.records import Record
from stepper_tui.keymap import PANES
from stepper_tui.paint.pane import Pane
from stepper_tui.registry import Action, actions
from stepper_tui.screens.base import DebugScreen
from stepper_tui.theme import in_ascii, key_text

if TYPE_CHECKING:
    from stepper.commands.command_completion import Completer, Completion
    from stepper_tui.app import StepperApp


class View(Record):
    """A screen: its name at the prompt, where its class is (imported when it is opened), and what it shows.

    `panes` are those of its panes that have keys, by the names under which keys.py knows them.
    """

    name: str
    place: str
    help: str
    panes: tuple[str, ...]

    def load(self) -> type[DebugScreen]:
        """Return its class."""
        module, _, name = self.place.partition(":")
        found: type[DebugScreen] = getattr(import_module(module), name)
        return found


VIEWS = {
    view.name: view
    for view in (
        View(
            "sheet",
            "stepper_tui.screens.sheet.screen:SheetScreen",
            "values by iterations: what is carried, all operations, the path of a value, elements",
            ("sheet",),
        ),
        View(
            "value",
            "stepper_tui.screens.value.screen:ValueScreen",
            "one tensor: colours, numbers, difference, statistics",
            ("tensor",),
        ),
        View("graph", "stepper_tui.screens.graph.pane:GraphScreen", "the graph of the body", ("graph",)),
        View(
            "inputs",
            "stepper_tui.screens.inputs:InputsScreen",
            "what was chosen for the model's inputs",
            ("inputs", "dimensions"),
        ),
        View("help", "stepper_tui.screens.help:HelpScreen", "the keys that hold here, and the signs", ("card",)),
    )
}


class CommandLine:
    """Carries out lines on an application."""

    def __init__(self, app: StepperApp) -> None:
        self._app = app
        self._completer: Completer | None = None

    def completions(self, line: str, most: int) -> list[Completion]:
        """Return how a line can go on where the run is looked at."""
        from stepper.commands.command_completion import Completion, LineWord
        from stepper.commands.command_session import commands
        from stepper.commands.session_commands import topics

        app, state = self._app, self._app.state
        if not app.driver.is_open:
            words = sorted({*actions(), *(command.name for command in commands())})
            return [Completion(word, word) for word in words if word.startswith(line)]
        words_behind = {
            "view": list(VIEWS),
            "theme": sorted(app.available_themes),
            "help": sorted({*VIEWS, *actions(), *topics(), *(command.name for command in commands())}),
            **app.front.words_behind(),
            "goto": [f"'{mark.name}" for mark in state.lists.marks],
        }
        more = (LineWord(one.name, one.syntax, one.help) for one in actions().values())
        frames = state.frames[: state.depth + 1]
        return self.completer.completions(line, frames, more=more, words=words_behind, most=most)

    @property
    def completer(self) -> Completer:
        """Names of the model that runs."""
        from stepper.commands.command_completion import Completer

        compiled = self._app.driver.compiled
        if self._completer is None or self._completer.compiled is not compiled:
            self._completer = Completer(compiled)
        return self._completer

    def perform(self, line: str) -> None:
        """Carry out a line; the name of a page alone shows it. StepperError for one that cannot be."""
        if line.startswith("!"):
            line = f"! {line[1:]}"
        is_typing = line.startswith(("!", "prompt "))
        text = line if is_typing else self.filled(line).strip()
        if text.startswith("@"):
            text = f"@ {text[1:]}"
        if text.isdecimal():
            text = f"goto {text}"
        text = self._app.front.own_line(text)
        if _is_page_alone(text):
            text = f"view {text}"
        word, _, rest = text.partition(" ")
        action = actions().get(word) or _action_beginning(word)
        if word == "help" and (lines := self._help_on_screen(rest.strip())):
            self._app.show_card(text.strip(), tuple(lines))
        elif action is not None:
            action.carry_out(self._app, rest if action.name == "prompt" else rest.strip())
        else:
            for line in self._app.front.lines_before(text):
                self._app.driver.execute(line)
            self._app.driver.execute(text)

    def _help_on_screen(self, name: str) -> list[str]:
        """Return the help for an action, a page with its keys, or for no name for all; empty for what is none.

        What a command of the debugger or a topic of its help has for a name means that.
        """
        from stepper.commands.command_session import commands
        from stepper.commands.session_commands import help_answer, topics
        from stepper.wording import two_columns
        from stepper_tui.screens.help import page_lines

        keymap, width = self._app.keymap, self._app.size.width - 4
        if not name:
            words = two_columns([(f"{one.name} {one.syntax}".rstrip(), one.help) for one in actions().values()], width)
            pages = f"help PAGE: its keys; there are {', '.join(VIEWS)}"
            return [*help_answer("", width).lines, pages, "", "beside these on the screen:", *words]
        if name in {*topics(), *(short for one in commands() for short in (one.name, *one.abbreviations))}:
            return []
        asked, view = actions().get(name), VIEWS.get(name)
        lines = [] if asked is None else [f"{asked.name} {asked.syntax}".rstrip(), asked.help]
        panes = view.panes if view is not None else (name,) if name in PANES else ()
        lines += [] if view is None else [f"view {name}: {view.help}"]
        return [*lines, *page_lines(panes, keymap, width, ascii=self._app.look.ascii)]

    def filled(self, line: str) -> str:
        """Return the line with what is selected in it. UsageError where there is none."""
        if line == "why {op}" and self._is_at_failure:
            return "why failure"
        if "{value}" in line:
            line = line.replace("{value}", _in_all_iterations(self._selected()))
        return line.replace("{op}", self._selected()) if "{op}" in line else line

    @property
    def _is_at_failure(self) -> bool:
        """True if the run cannot go on here, and nothing else is selected."""
        state = self._app.state
        return bool(state.failure) and state.selected is None and not self.chosen_address

    @property
    def chosen_address(self) -> str:
        """The address under the cursor of the focused pane; empty where that has none."""
        pane = self._app.focused_pane
        return "" if pane is None else pane.chosen_address

    def _selected(self) -> str:
        """Return the address of what is selected. UsageError where nothing is."""
        address = self.chosen_address
        if address:
            return address
        state = self._app.state
        if state.frame is None or state.cursor is None:
            ended = state.view is not None and state.view.outputs is not None
            raise UsageError(f"nothing is selected{': the run has ended' if ended else ' yet'}")
        return state.frame.address(state.cursor, self._app.driver.compiled)


def _in_all_iterations(address: str) -> str:
    from stepper.query.address_syntax import parse_address, without_iterations

    try:
        return str(without_iterations(parse_address(address)))
    except UsageError:  # several, as of a watch
        return address


def _is_page_alone(line: str) -> bool:
    """Return True if a line is the name of a page, and means nothing else."""
    from stepper.commands.command_session import commands

    return line in VIEWS and line not in actions() and all(line != command.name for command in commands())


def _action_beginning(word: str) -> Action | None:
    """Return the only action that begins so; of the debugger's command that does, the action in its place."""
    from stepper.commands.command_session import command_called

    if not word:
        return None
    try:
        return actions().get(command_called(word).name)
    except StepperError:
        fitting = [name for name in actions() if name.startswith(word)]
        return actions()[fitting[0]] if len(fitting) == 1 else None


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
    def _host(self) -> StepperApp:
        assert isinstance(self.screen, DebugScreen), "the palette lies over one"
        return self.screen.host

    def _lines(self) -> list[tuple[str, str]]:
        """Return each line and what it does; keys first, for they have their objects filled in."""
        from stepper.commands.command_session import commands  # the screen is painted before

        found: dict[str, str] = {}
        pane = self.screen.focused
        kind = pane.kind if isinstance(pane, Pane) else ""
        for key in self._host.keymap:
            if not key.takes_letter and (not key.panes or kind in key.panes):
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
    line = line.replace("{op}", "selected operation")
    return line.removesuffix(" +1").removeprefix("prompt ").strip() or "prompt"
