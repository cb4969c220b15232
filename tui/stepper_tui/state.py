"""All that goes between the screens and the driver: the state, messages, and requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import field
from textual.message import Message

from stepper.errors import StepperError
from stepper.integrations.dap import Visit
from stepper.records import Record

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger
    from stepper.debug.inspection.views import BreakView, FrameView, Glance, LoopView, MarkView, StopView
    from stepper.debug.moments.spread import MomentView
    from stepper.debug.overview.overview_facts import Overview
    from stepper.debug.stop import Stop
    from stepper.debug.timeline import RunCourse
    from stepper.diagnosis.rule import Finding
    from stepper.engine.frames import LoopRun
    from stepper.errors import StepperError
    from stepper.session.input_choices import Load, LoadOutcome
    from stepper.tensors.tolerances import Tolerances


class Lists(Record, eq=False):
    """Marks, and what was found.

    `findings` are those of the file, and of the run of the overview when that is over; `checked` names what
    was looked for in the run.
    """

    marks: tuple[MarkView, ...] = ()
    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()


NO_LISTS = Lists()


class Running(Record):
    """A movement under way: how far it is, iterations per second (None: not known yet), and for how long."""

    command: str
    glance: Glance
    rate: float | None
    seconds: float


class State(Record, eq=False):
    """Everything that a screen shows.

    `engine` says which partner computes what, empty where all is numpy. `frames` are the stack; `depth` that which is
    looked at (`up` and `down` move it). `loop` runs in or around that frame, at `loop_depth`.
    `selected` is the operation selected in the frame (None: it follows the moment).
    `failure` is the message of an error of the run that was met here. `a` is the baseline. `overview` is there while a
    screen asks for it (ShowOverview); `opening` is how far the inputs are chosen, before there is a run. `course` is
    which way the run goes: an edit that is undone leads back to an earlier one in the same branch. `is_edited` is of
    this branch, `has_edits` of any, `has_unkept_edits` of what is in no session.
    """

    model: str = ""
    rules: str = "spec"
    engine: str = ""
    view: StopView | None = None
    stop: Stop | None = None
    frames: tuple[FrameView, ...] = ()
    depth: int = 0
    loop: LoopView | None = None
    loop_depth: int | None = None
    breaks: tuple[BreakView, ...] = ()
    lists: Lists = NO_LISTS
    course: RunCourse | None = None
    is_edited: bool = False
    has_edits: bool = False
    has_unkept_edits: bool = False
    furthest: int = 0
    failure: str = ""
    selected: int | None = None
    a: MomentView | None = None
    labels: Mapping[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)
    running: Running | None = None
    overview: Overview | None = None
    opening: str = ""
    editor: str = ""

    @property
    def frame(self) -> FrameView | None:
        """The frame that is looked at; None at the end of the run."""
        return self.frames[self.depth] if self.depth < len(self.frames) else None

    @property
    def cursor(self) -> int | None:
        """The operation that is shown: the selected one, else the operation of the moment."""
        frame = self.frame
        if frame is None or not frame.layers:
            return None
        if self.selected is not None and self.selected < len(frame.layers):
            return self.selected
        return max(frame.moment, 0)

    def differs_in_selection_alone(self, other: State) -> bool:
        """True if all else is the very same."""
        return all(getattr(self, name) is getattr(other, name) for name in _BUT_SELECTION)

    @property
    def iteration(self) -> int | None:
        """The iteration of the loop that is shown, in which the run stands."""
        if self.running is not None and self.loop_depth is not None:
            iterations = self.running.glance.iterations
            if self.loop_depth < len(iterations):
                return iterations[self.loop_depth]
        return None if self.loop is None else self.loop.level.iteration

    @property
    def loop_run(self) -> LoopRun | None:
        """The run of the loop that is shown; None where none is."""
        return None if self.loop is None else self.loop.level.run

    def breaks_at(self, index: int) -> tuple[BreakView, ...]:
        """Return the breakpoints that sit at an operation of the frame that is looked at."""
        frame = self.frame if self.breaks else None
        return () if frame is None else tuple(one for one in self.breaks if one.is_at(frame.program, index))


_BUT_SELECTION = tuple(name for name in State.__struct_fields__ if name != "selected")


class Reply(Record):
    """Answer to a line at the prompt. `moved`: it was a movement; the screen shows all of it but the notes.

    `command` is the full name of the command, empty where the line has none or an editor moved the run. `logged` are
    the lines that breakpoints wrote on the way. `refused` is an error that has candidates to choose from, `watch` the
    number of a watch that was just set.
    """

    line: str
    lines: tuple[str, ...]
    is_error: bool = False
    moved: bool = False
    ended: bool = False
    command: str = ""
    notes: tuple[str, ...] = ()
    logged: tuple[str, ...] = ()
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


Answer_co = TypeVar("Answer_co", covariant=True)


class ExecuteLine(Record):
    """A line for the interpreter."""

    line: str


class Question(Protocol[Answer_co]):
    """Something to find out: a frozen Struct beside whoever wants to know."""

    def answer(self, debugger: Debugger, /) -> Answer_co:
        """Return the answer; called in the worker. StepperError where there is none."""
        ...


class Asked(Record):
    """A question, and who gets the answer, in the application. One with a `title` is shown like a movement.

    `gives_way`: whatever else comes goes first. `line` was typed, if its names may be ambiguous.
    """

    question: Question[Any]
    then: Callable[[Any], None]
    title: str = ""
    gives_way: bool = False
    line: str = ""


# --- other pictures from now on: carried out by Snapshots.adjust ------------------------------------------------------


class ShowOverview(Record):
    """Have `State.overview` show what is known of the whole run, or no longer.

    `runs`: a run that is not known yet is made by itself, while nothing else is asked for.
    """

    wanted: bool
    runs: bool = True


class GoOnWithOverview(Record):
    """Go on with the run of the overview, while nothing else is asked for."""


class ShowAgain(Record):
    """Show the same once more: something has changed that nobody was told of."""


class CompareWithin(Record):
    """Compare with other tolerances."""

    tolerances: Tolerances


Adjustment = ShowOverview | GoOnWithOverview | ShowAgain | CompareWithin
Request = ExecuteLine | Asked | Adjustment | Visit


def name_of(request: Request) -> str:
    """Return the name of a request, for a message about it."""
    if isinstance(request, ExecuteLine):
        return request.line.split(maxsplit=1)[0] if request.line.strip() else "again"
    if isinstance(request, Visit):
        return request.title or "a question of the editor"
    return type(request.question if isinstance(request, Asked) else request).__name__
