"""Lines of the prompt and of keys: filled in, and carried out as an action of the screen or a debugger command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepper.errors import StepperError, UsageError
from tui.actions.registry import Action, actions
from tui.keys.key_files import PANES
from tui.registry import VIEWS

if TYPE_CHECKING:
    from stepper.commands.completion import Completer, Completion
    from tui.application import Application


class CommandLine:
    """Carries out lines on an application."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._completer: Completer | None = None

    def completions(self, line: str, most: int) -> list[Completion]:
        """Return how a line can go on where the run is looked at."""
        from stepper.commands.completion import Completion, LineWord
        from stepper.commands.session import commands
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
        from stepper.commands.completion import Completer

        compiled = self._app.driver.compiled
        if self._completer is None or self._completer.compiled is not compiled:
            self._completer = Completer(compiled)
        return self._completer

    def perform(self, line: str, *, echo: bool = True) -> None:
        """Carry out a line; the name of a page alone shows it. StepperError for one that cannot be."""
        if line.startswith("!"):
            line = f"! {line[1:]}"
        is_typing = line.startswith("!") or (line.startswith("prompt ") and "{row}" not in line)
        text = line if is_typing else self.filled(line) if line.startswith("prompt ") else self.filled(line).strip()
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
                self._app.driver.execute(line, echo=False)
            self._app.driver.execute(text, echo=echo)

    def _help_on_screen(self, name: str) -> list[str]:
        """Return the help for an action, a page with its keys, or for no name for all; empty for what is none.

        What a command of the debugger or a topic of its help has for a name means that.
        """
        from stepper.commands.session import commands
        from stepper.commands.session_commands import help_answer, topics, two_columns
        from tui.keys.page_help import page_lines

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
        """Return the line with what is selected in it, a row too. UsageError where there is none."""
        if line == "why {op}" and self._is_at_failure:
            return "why failure"
        if "{row}" in line:
            line = line.replace("{row}", self._chosen_row())
        if "{value}" in line:
            line = line.replace("{value}", _in_all_iterations(self._selected()))
        return line.replace("{op}", self._selected()) if "{op}" in line else line

    @property
    def _is_at_failure(self) -> bool:
        """True if the run cannot go on here, and nothing else is selected."""
        state = self._app.state
        return bool(state.failure) and state.selected is None and not self.chosen_address and not self._app.found

    @property
    def chosen_address(self) -> str:
        """The address under the cursor of the focused pane; empty where that has none, or stood there at a search."""
        pane = self._app.focused_pane
        address = "" if pane is None else pane.chosen_address
        return "" if self._app.found and address == self._app.found_from else address

    def _selected(self) -> str:
        """Return the address of what is selected. UsageError where nothing is."""
        address = self.chosen_address
        if address:
            return address
        if self._app.found:
            return self._app.found
        state, pane = self._app.state, self._app.focused_pane
        if pane is not None and pane.selects_nothing:
            raise UsageError(pane.selects_nothing)
        if state.frame is None or state.cursor is None:
            ended = state.view is not None and state.view.outputs is not None
            raise UsageError(f"nothing is selected{': the run has ended' if ended else ' yet'}")
        return state.frame.address(state.cursor, self._app.driver.compiled)

    def _chosen_row(self) -> str:
        pane = self._app.focused_pane
        name = "" if pane is None else pane.chosen_name
        if not name:
            raise UsageError("no row of a list is chosen")
        return name


def _in_all_iterations(address: str) -> str:
    from stepper.query.address_syntax import parse_address, without_iterations

    try:
        return str(without_iterations(parse_address(address)))
    except UsageError:  # several, as of a watch
        return address


def _is_page_alone(line: str) -> bool:
    """Return True if a line is the name of a page, and means nothing else."""
    from stepper.commands.session import commands

    return line in VIEWS and line not in actions() and all(line != command.name for command in commands())


def _action_beginning(word: str) -> Action | None:
    """Return the only action that begins so; of the debugger's command that does, the action in its place."""
    from stepper.commands.session import command_called

    if not word:
        return None
    try:
        return actions().get(command_called(word).name)
    except StepperError:
        fitting = [name for name in actions() if name.startswith(word)]
        return actions()[fitting[0]] if len(fitting) == 1 else None
