"""The state that panes show: one frozen picture of the moment, the selection and the run. Panes are functions of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import field
from msgspec.structs import replace

from stepper.records import Record
from stepper.tensors.statistics import FITTING

if TYPE_CHECKING:
    from stepper.compare.stops import StopComparison
    from stepper.debug.branches.edits import RunCourse
    from stepper.debug.inspection.views import (
        BreakView,
        FrameView,
        Glance,
        LoopView,
        MarkView,
        StopView,
        VariableView,
        WatchView,
    )
    from stepper.debug.iterations.cell_store import HistoryView
    from stepper.debug.iterations.sweep import SweepView
    from stepper.debug.moments.spread import MomentView
    from stepper.debug.overview.facts import Overview, Row
    from stepper.debug.run_summary import RunSummary
    from stepper.debug.stop import Stop
    from stepper.diagnosis.findings import Finding
    from stepper.engine.frames import LoopRun
    from stepper.engine.program import Program
    from stepper.ir.model import Layer
    from stepper.tensors.histories import ValueHistory
    from tui.worker.event_log import LogEntry


class TimelineEventKind(Enum):
    """Kind of an event on the timeline."""

    STOP = auto()
    EDIT = auto()


class TimelineEvent(Record):
    """Something that happened in an iteration of a run of a loop.

    `place` is the operation at which it did, as (id of the program, index); `breakpoint` the number of what stopped.
    """

    tick: int
    run: LoopRun | None
    iteration: int
    kind: TimelineEventKind
    place: tuple[int, int] | None = None
    breakpoint: int | None = None


class FirstPlace(NamedTuple):
    """The operation and the iteration of the first difference."""

    layer: Layer
    iteration: int | None


class Lists(Record, eq=False):
    """Variables, marks and the log; `expected` are the patterns of operations in which NaN and Inf stop nothing.

    `findings` are those of the file, and of the run of the overview when that is over; `checked` is what was looked for
    in the run.
    """

    variables: tuple[VariableView, ...] = ()
    marks: tuple[MarkView, ...] = ()
    expected: tuple[str, ...] = ()
    log: tuple[LogEntry, ...] = ()
    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()


NO_LISTS: Final = Lists()


class Running(Record):
    """A movement under way: how far it is, iterations per second (None: not known yet), and for how long."""

    command: str
    glance: Glance
    rate: float | None
    seconds: float


class FarState(Record, eq=False):
    """A run of a loop that is looked at from elsewhere, as it stands at its end: fields as those of the state.

    `outer` are the iterations around it; `around` is how many the loop around it has, None where there is none.
    `is_chosen`: by the user. `a` has where it differs from A, where A is another run. Without a `loop` it is the
    model's own graph at its end, and `now` is the operation of the moment in it (None: the run has ended).
    """

    outer: tuple[int | None, ...]
    around: int | None
    is_chosen: bool
    frames: tuple[FrameView, ...]
    depth: int
    loop: LoopView | None
    history: HistoryView
    sweep: SweepView | None
    watches: tuple[WatchView, ...]
    a: MomentView | None = None
    now: int | None = None


class State(Record, eq=False):
    """Everything that a screen shows.

    `engine` says which partner computes what, empty where all is numpy. `frames` are the stack; `depth` is that which
    is looked at (u and d move it). `loop` is the loop that runs in or around that frame, at the depth `loop_depth`.
    `history` is of the frame that is looked at, `loop_history` of the loop's. `sweep` is there while
    a screen asks for them (ShowTime), as is `overview` (ShowOverview).
    `selected` is the operation selected in the frame (None: it follows the moment). `failure` is the message of an
    error of the run that was met here. `a` is the moment that is held against now. `ending` is there at the end of the
    run. `output_names` are those of the model's
    outputs; `watch_runs` has watches, by number, over the iterations of other loops than the one that is shown;
    `opening` is how far the inputs are chosen, before there is a run. `without_loops` is for a model that has
    no loop, and says so; `is_loopless`: nothing in it can be opened as one, either. `course` is which way the run
    goes: an edit that is undone leads back to an earlier one in the same branch. `is_edited` is of this branch,
    `has_edits` of any, `has_unkept_edits` of what is in no session. `far` is a run of a loop that is looked at from
    elsewhere; `is_far`: this is what `inside` returned of one.
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
    history: HistoryView | None = None
    loop_history: HistoryView | None = None
    sweep: SweepView | None = None
    breaks: tuple[BreakView, ...] = ()
    watches: tuple[WatchView, ...] = ()
    lists: Lists = NO_LISTS
    watch_runs: Mapping[int, ValueHistory] = field(default_factory=dict)
    events: tuple[TimelineEvent, ...] = ()
    branch: str = ""
    course: RunCourse | None = None
    is_edited: bool = False
    has_edits: bool = False
    has_unkept_edits: bool = False
    furthest: int = 0
    statistic: str = FITTING
    failure: str = ""
    output_names: tuple[str, ...] = ()
    selected: int | None = None
    comparison: StopComparison | None = None
    a: MomentView | None = None
    labels: Mapping[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)
    ending: RunSummary | None = None
    running: Running | None = None
    overview: Overview | None = None
    opening: str = ""
    without_loops: str = ""
    is_loopless: bool = False
    far: FarState | None = None
    is_far: bool = False
    editor: str = ""

    @property
    def inside(self) -> State:
        """The state for panes with iterations: where the run is in no loop that of the run of one, as if in it."""
        far = self.far
        if far is None:
            return self
        return replace(
            self,
            frames=far.frames,
            depth=far.depth,
            loop=far.loop,
            loop_depth=None if far.loop is None else far.depth,
            history=far.history,
            loop_history=far.history,
            sweep=far.sweep,
            watches=far.watches,
            selected=None,
            comparison=None,
            a=far.a,
            running=None,
            is_far=True,
        )

    @property
    def looks_ahead(self) -> bool:
        """True if the run stands still outside of all loops, and is not at its end."""
        return self.loop is None and self.running is None and self.ending is None

    @property
    def seen_to(self) -> int:
        """The iteration of the moment, or the last of a run of a loop that is looked at from afar; 0 before any."""
        last = self.loop.level.iteration if self.is_far and self.loop is not None else self.iteration
        return max(last or 0, 0)

    @property
    def frame(self) -> FrameView | None:
        """The frame that is looked at; None at the end of the run."""
        return self.frames[self.depth] if self.depth < len(self.frames) else None

    @property
    def now(self) -> int | None:
        """The operation of the moment in the frame that is looked at, -1 before the first; None from afar."""
        if self.is_far:
            return None if self.far is None else self.far.now
        return None if self.frame is None else self.frame.moment

    @property
    def cursor(self) -> int | None:
        """The operation that is shown: the selected one, else that of the moment."""
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
        """The iteration of the loop that is shown, in which the run stands; None where it is looked at from afar."""
        if self.is_far:
            return None
        if self.running is not None and self.loop_depth is not None:
            iterations = self.running.glance.iterations
            if self.loop_depth < len(iterations):
                return iterations[self.loop_depth]
        return None if self.loop is None else self.loop.level.iteration

    @property
    def beside(self) -> MomentView | None:
        """A, where that can be held against now: another run, or an iteration of a loop in which the run stands."""
        return None if self.a is None or self.a.is_elsewhere else self.a

    @property
    def iterations_of_a(self) -> tuple[int, ...]:
        """The iteration of A, where that is another one in the same run of the loop that is shown."""
        a = self.a
        if a is None or a.iteration is None or not a.is_in_this_run or a.iteration == self.iteration:
            return ()
        return (a.iteration,)

    @property
    def loop_run(self) -> LoopRun | None:
        """The run of the loop that is shown; None where none is."""
        return None if self.loop is None else self.loop.level.run

    @property
    def first_difference(self) -> FirstPlace | None:
        """Where this run of the loop leaves the reference, if it is here that the whole run first does."""
        first = None if self.comparison is None else self.comparison.first
        if first is None or first.difference is None or first.run != self.loop_run:
            return None
        return FirstPlace(first.difference.layer, first.iteration)

    def labels_of(self, program: Program | None, layer: Layer | None, output: int = 0) -> tuple[str, ...]:
        """Return the words for the numbers of a value; empty where it has none."""
        if not self.labels or program is None or layer is None:
            return ()
        return self.labels.get((id(program), program.slots.get((layer.id, output), -1)), ())

    def labels_at(self, row: Row) -> tuple[str, ...]:
        """Return the words for the numbers of a row of the loop: given for its Parameter, or for what computes it."""
        program = self.loop_program
        if program is None or not self.labels:
            return ()
        sites = [row.inner.id, *(() if row.producer is None else (row.producer.id,))]
        slots = (slot for site in sites for (layer, _), slot in program.slots.items() if layer == site)
        return next((self.labels[id(program), slot] for slot in slots if (id(program), slot) in self.labels), ())

    @property
    def loop_program(self) -> Program | None:
        """The program of the body of the loop that is shown."""
        return None if self.loop_depth is None else self.frames[self.loop_depth].program

    def breaks_at(self, index: int) -> tuple[BreakView, ...]:
        """Return the breakpoints that sit at an operation of the frame that is looked at."""
        frame = self.frame if self.breaks else None
        return () if frame is None else tuple(one for one in self.breaks if one.is_at(frame.program, index))


_BUT_SELECTION: Final = tuple(name for name in State.__struct_fields__ if name != "selected")
