"""Requests of the application to the worker, as frozen values with names: they can be logged, compared and tested."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from stepper.integrations.dap.visits import Visit
from stepper.records import Record

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger
    from stepper.debug.iterations.far_runs import LoopOfRun
    from stepper.engine.program import Program
    from stepper.tensors.tolerances import Tolerances

Answer_co = TypeVar("Answer_co", covariant=True)


class ExecuteLine(Record):
    """A line for the interpreter; `echo`: its answer is to be shown."""

    line: str
    echo: bool = True


class Question(Protocol[Answer_co]):
    """Something to find out: a frozen Struct beside whoever wants to know."""

    def answer(self, debugger: Debugger, /) -> Answer_co:
        """Return the answer; called in the worker. StepperError where there is none."""
        ...


class Asked(Record):
    """A question, and who gets the answer, in the application. One with a `title` is shown like a movement.

    `gives_way`: whatever else comes goes first. `line` is what was typed, if its names may be ambiguous.
    """

    question: Question[Any]
    then: Callable[[Any], None]
    title: str = ""
    gives_way: bool = False
    line: str = ""


# --- other pictures from now on: carried out by Snapshots.adjust ------------------------------------------------------


class ShowStatistic(Record):
    """Show another number for each tensor."""

    name: str


class ShowValues(Record, eq=False):
    """Have `HistoryView.values` and `CellsView.values` show these operations of a graph, for one of those who look."""

    who: str
    program: Program | None
    operations: tuple[int, ...] = ()


class ShowTime(Record):
    """Have `State.sweep` show all iterations, and these ones closely; None: no longer."""

    span: tuple[int, int] | None


class ShowWatches(Record):
    """Have `State.watch_runs` show the watches of other loops than the one that is shown, or no longer."""

    wanted: bool


class ShowRun(Record, eq=False):
    """Have `State.far` show this run of a loop; None: the one that is nearest, and only where the run is in none."""

    loop: LoopOfRun | None


class ShowOverview(Record):
    """Have `State.overview` show what is known of the whole run, or no longer.

    `runs`: a run of which nothing is known is made by itself, while nothing else is asked for.
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


Adjustment = (
    ShowRun
    | ShowStatistic
    | ShowValues
    | ShowTime
    | ShowWatches
    | ShowOverview
    | GoOnWithOverview
    | ShowAgain
    | CompareWithin
)
Request = ExecuteLine | Asked | Adjustment | Visit


def name_of(request: Request) -> str:
    """Return the name of a request, for a message about it."""
    if isinstance(request, ExecuteLine):
        return request.line.split(maxsplit=1)[0] if request.line.strip() else "again"
    if isinstance(request, Visit):
        return request.title or "a question of the editor"
    return type(request.question if isinstance(request, Asked) else request).__name__
