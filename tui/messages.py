"""Messages of the worker to the application."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.message import Message

from stepper.records import Record

if TYPE_CHECKING:
    from stepper.debug.overview.facts import Overview
    from stepper.errors import StepperError
    from stepper.session.input_choices import Load, LoadOutcome
    from tui.state import Running, State


class Reply(Record):
    """Answer to a line at the prompt. `moved`: it was a movement, of which the screen shows the rest but the notes.

    `refused` is an error that has candidates to choose from, `watch` the number of a watch that was just set.
    """

    line: str
    lines: tuple[str, ...]
    is_error: bool = False
    moved: bool = False
    ended: bool = False
    echo: bool = True
    notes: tuple[str, ...] = ()
    refused: StepperError | None = None
    watch: int | None = None


class StateChanged(Message):
    """The run stands somewhere, or more is known of it; with the reply to the command that did it, if one did."""

    def __init__(self, state: State, reply: Reply | None = None) -> None:
        super().__init__()
        self.state = state
        self.reply = reply


class RunProgress(Message):
    """A movement is under way; at most 30 of these a second."""

    def __init__(self, running: Running) -> None:
        super().__init__()
        self.running = running


class OverviewGrew(Message):
    """More is known of the whole run; at most 30 of these a second."""

    def __init__(self, overview: Overview) -> None:
        super().__init__()
        self.overview = overview

    def can_replace(self, message: Message) -> bool:
        """True if a later picture waits already, which knows all that this one does."""
        return isinstance(message, OverviewGrew | StateChanged)


class Answered(Message):
    """The answer to a question that was asked of the debugger; an error is a text.

    `refused` is an error that has candidates to choose from, in what the `line` asked about.
    """

    def __init__(
        self,
        question: str,
        then: Callable[[Any], None],
        answer: Any,
        error: str = "",
        refused: StepperError | None = None,
        line: str = "",
    ) -> None:
        super().__init__()
        self.refused, self.line = refused, line
        self.question = question
        self.then = then
        self.answer = answer
        self.error = error


class EditorCame(Message):
    """An editor has joined the run, or has left it."""

    def __init__(self, *, joined: bool) -> None:
        super().__init__()
        self.joined = joined


class EditorMoves(Message):
    """An editor has asked for a movement."""


class FaultFound(Message):
    """A fault of the program itself, told and survived."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__()
        self.where = where
        self.text = text


class InputsRefused(Message):
    """The model cannot be run on its inputs."""

    def __init__(self, text: str, error: Exception) -> None:
        super().__init__()
        self.text = text
        self.error = error


class InputLoaded(Message):
    """The value of an input is made, or will not be."""

    def __init__(self, load: Load, outcome: LoadOutcome) -> None:
        super().__init__()
        self.load = load
        self.outcome = outcome
