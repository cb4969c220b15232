"""The debugger: a run that stops wherever one wants, and goes forward and backward in time. Plain Python, no screen.

Every verb returns the `Stop` at which it ended. A moment is a tick; "operation" moments are after each operation, after
an iteration got its inputs, after it was closed, and after a nested loop or branch was entered or left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

from msgspec.structs import replace

from stepper.argument_checks import function, text, whole_number
from stepper.debug.branches import Branches, condition_edit, edit_of, trip_count_edit
from stepper.debug.breakpoints.breakpoint import BreakDescription, BreakKind, Breakpoint
from stepper.debug.breakpoints.breakpoints import Breakpoints, BreakpointWatcher
from stepper.debug.causes.cause import Cause, Chain, NonFinite, RunFailed, Trigger
from stepper.debug.finding import tick_of_address, tick_of_iteration
from stepper.debug.inspection.inspecting import inspect, inspect_loop
from stepper.debug.inspection.views import Evaluated, Found, LoopView, PreviousValue, Series, StopView
from stepper.debug.labels import Labels
from stepper.debug.loop_runs import PAUSED, before_iteration
from stepper.debug.moments.moment import GraphPlace, Moment, MomentKind, place_of_stack
from stepper.debug.moments.moments import Moments
from stepper.debug.moments.spread import MomentView, SpreadView
from stepper.debug.overview.overview_facts import Overview
from stepper.debug.scopes import ReferenceValues, innermost_loop
from stepper.debug.stop import Mark, Reason, SearchedRange, Stop, describe, iteration_of, reason_of
from stepper.debug.stop_scope import Watch, Watches, evaluate, over_iterations, previous_value, value_of
from stepper.debug.story.story_facts import Provenance, Story, StoryQuestion, Uses
from stepper.debug.timeline import ORIGINAL, Edit, LoopEndLog, PausedSearch, RunSummary, Search, Timeline
from stepper.element_types import Array
from stepper.engine.compiler import compile_model, compiled_alike
from stepper.engine.frames import Event, EventKind, Every, Frame, Frames, Phase
from stepper.engine.inputs import bind_inputs, bind_states
from stepper.engine.machine import Machine
from stepper.engine.program import Partner, Program
from stepper.engine.rules import Rules
from stepper.errors import Paused, StepperError, UsageError
from stepper.files.output import ProtectedFiles
from stepper.ir.lowering import without_loops
from stepper.ir.model import Model
from stepper.ir.reader import ModelSource, opened
from stepper.query.address_syntax import Address
from stepper.wording import counted, excerpt, install_line

if TYPE_CHECKING:
    from stepper.debug.overview.runs import OverviewRun
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_ELSEWHERE = (
    "the debugger is at work in the thread '{}'; only pause() may be called meanwhile: wait until it is done there, or "
    "give each thread a debugger of its own"
)


class ThreadGuard:
    """The turns that threads take at one debugger. `pause` asks the run under way to pause, or takes that back."""

    def __init__(self, pause: Callable[[bool], None]) -> None:
        self._pause = pause
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Work with the debugger in this block; blocks may be inside of one another.

        A pause that was asked for before the outermost block is forgotten, and so is a pause that no block has heeded.
        UsageError where another thread is at work.
        """
        me = threading.current_thread()
        if self._worker is me:
            yield
            return
        if not self._lock.acquire(blocking=False):
            worker = self._worker
            raise UsageError(_ELSEWHERE.format("another" if worker is None else worker.name))
        self._worker = me
        self._pause(False)
        try:
            with np.errstate(all="ignore"):  # values of a run are looked at as they are, NaN and Inf among them
                yield
        finally:
            self._pause(False)
            self._worker = None
            self._lock.release()


DEFAULT_MEMORY = 256 * 2**20

_ENDLESS = 2**62
"""A trip count that limits nothing."""

_Places = list[tuple[Program, int, Phase]]
"""Where frames stand, one inside the other."""

_WIDGETS = "stepper.integrations.notebook.loop_widget"
"""Stands above the debugger and is loaded when a notebook asks for it."""
P = ParamSpec("P")
T = TypeVar("T")


def _taking_turns(method: Callable[Concatenate[Debugger, P], T]) -> Callable[Concatenate[Debugger, P], T]:
    """Return a method that one thread at a time may call."""

    @wraps(method)
    def called(self: Debugger, /, *arguments: P.args, **options: P.kwargs) -> T:
        with self.working():
            return method(self, *arguments, **options)

    return called


def _verb(method: Callable[Concatenate[Debugger, P], Stop]) -> Callable[Concatenate[Debugger, P], Stop]:
    """Return a movement: one thread at a time, and where a pause is heeded it says so."""

    @wraps(method)
    def called(self: Debugger, /, *arguments: P.args, **options: P.kwargs) -> Stop:
        try:
            return method(self, *arguments, **options)
        except Paused as paused:
            return self.paused(paused)

    return _taking_turns(called)


class Debugger:
    """Debug a run of a model (or of the path of one) on given inputs.

    `memory` bounds the history of the run, in bytes; `states` are variables of an earlier run; `partner` computes the
    operations that it claims. The run stands at its start: nothing has run yet. The verb that meets an error of the run
    raises it. The run then stands before the operation that failed, and every backward verb still works.

    `pause`, from another thread, makes the current verb return with the reason PAUSED. A forward verb then stands where
    it has come, a backward verb where it began. The same verb again continues after what a search has looked at
    (`Stop.searched`). Nothing else may be called while another thread is at work.
    """

    def __init__(
        self,
        model: ModelSource,
        inputs: Mapping[str | int, Any],
        rules: str | Rules = Rules.SPEC,
        *,
        memory: int = DEFAULT_MEMORY,
        max_iterations: int | None = None,
        states: Mapping[str, Any] | None = None,
        partner: Partner | None = None,
    ) -> None:
        model = opened(model)
        bound = bind_inputs(model, inputs)
        compiled = compile_model(model, rules, partner)
        machine = Machine(compiled, bound, max_iterations=max_iterations, states=bind_states(compiled, states))
        self._take(machine, bound, whole_number("memory", memory, 1))

    @classmethod
    def of(cls, machine: Machine, inputs: Sequence[Array], *, memory: int = DEFAULT_MEMORY) -> Debugger:
        """Return a debugger of a machine that was made elsewhere, with these inputs, and which stands at its start."""
        debugger = cls.__new__(cls)
        debugger._take(machine, inputs, memory)
        return debugger

    def on_form(self, model: Model) -> Debugger:
        """Return a debugger of another form of the model, as with its sequences opened, at its start.

        Inputs, rules, limits, variables and partner are the same.
        """
        machine = self.machine
        other = Machine(
            compiled_alike(machine.compiled, model),
            self.inputs,
            max_iterations=machine.max_iterations,
            states=machine.initial_states,
        )
        debugger = Debugger.of(other, self.inputs, memory=self.timeline.history.budget)
        debugger.protected += self.protected
        return debugger

    def _take(self, machine: Machine, inputs: Sequence[Array], memory: int) -> None:
        self.model, self.inputs, self.machine = machine.compiled.model, inputs, machine
        self.timeline = Timeline(self.machine, memory)
        self.watches = Watches(machine.compiled)
        self.watcher = self.timeline.watcher = self.machine.watcher = BreakpointWatcher(self.machine)
        self.timeline.loop_ends = LoopEndLog(self.machine)
        self.breakpoints = Breakpoints(self.timeline, self.watcher)
        self.branches = Branches(self.timeline)
        self.marks: dict[str, Mark] = {}
        self._overview: OverviewRun | None = None
        self._moments: Moments | None = None
        self._pinned: Moment | None = None
        self._is_pinned = False
        self.labels = Labels(self.machine.compiled.programs)
        self.protected = ProtectedFiles.of_model(self.model.path)
        self._turns = ThreadGuard(lambda wanted: machine.request_pause(wanted=wanted))
        self.stop = describe(self.machine, Reason.START)

    @property
    def reference(self) -> ReferenceValues | None:
        """Another run to compare with, which the timeline keeps, or None.

        With it `ref(x)` in expressions is its value, and `break diff>X` means the distance from it.
        """
        return self.timeline.reference

    @reference.setter
    def reference(self, reference: ReferenceValues | None) -> None:
        self.timeline.reference = reference

    def __repr__(self) -> str:
        return f"<Debugger of '{excerpt(self.model.name or self.model.path.stem)}': {repr(self.stop)[1:-1]}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Debugger cannot be pickled or copied; its model, inputs and stops can, and machine.snapshot(), which "
            "a machine of the same model takes back with restore()"
        )

    # --- looking -------------------------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        """Return the innermost frame. UsageError at the end of the run, where there is none."""
        if not self.machine.stack:
            raise UsageError("the run has ended; go back first (reverse-step, goto, first)")
        return self.machine.stack[-1]

    @property
    def depth(self) -> int:
        """Return how many frames are on the stack: 1 in the model's own graph."""
        return len(self.machine.stack)

    def _repr_html_(self) -> str:
        """Return what this stop shows, for notebooks."""
        return self.view()._repr_html_()

    def widget(self) -> Any:
        """Return this debugger as a widget of a notebook.

        The widget has a slider, steps, a figure, values over the iterations, and the explanation. Needs the extra
        `stepper[notebook]`. Raise UsageError without it.
        """
        try:
            return import_module(_WIDGETS).LoopWidget(self)
        except ModuleNotFoundError as error:
            raise UsageError(f"a widget needs {error.name}: {install_line('notebook')}") from None

    @_taking_turns
    def view(self, *, differences: bool = True) -> StopView:
        """Return everything that this stop shows; without differences nothing looks through the tensors."""
        return inspect(self.machine, differences=differences)

    @_taking_turns
    def loop(self, depth: int | None = None, *, differences: bool = True) -> LoopView:
        """Return the loop at this depth of the stack (0: the model's own graph), by default the innermost one."""
        return inspect_loop(self.machine, depth, differences=differences)

    @_taking_turns
    def run_summary(self) -> RunSummary | None:
        """Return how the loops of the run ended, with notes on the other rule book; None before the end of the run."""
        return None if self.timeline.loop_ends is None else self.timeline.loop_ends.summary()

    def overview(self) -> Overview:
        """Return the facts of the whole run as far as `run_overview` has come; any thread may ask while it is at work.

        Nothing is known of another branch until it is run.
        """
        return self._overview_run().latest

    @_taking_turns
    def run_overview(
        self,
        *,
        seconds: float | None = None,
        endless_seconds: float | None = None,
        memory: int | None = None,
        progress: Callable[[Overview], object] | None = None,
        births: bool = True,
    ) -> Overview:
        """Run to the end beside the present, and return the facts of the run.

        The facts are the loops, the values, how the run ended, NaN and Inf. The present stays, and breakpoints stop
        nothing. An error of the run is one of the facts. The run ends early at a pause, after so many `seconds`
        (`endless_seconds` if a loop can never end), or beyond `memory` bytes. The next call continues it. `progress` is
        called in this thread with the newest facts, at most 30 times a second. Without the option `births`,
        `look_through` searches for NaN and Inf.
        """
        if progress is not None:
            function("progress", progress)
        return self._overview_run().go(seconds, memory, progress, endless_seconds=endless_seconds, births=births)

    @_taking_turns
    def look_through(self, *, seconds: float | None = None) -> Overview:
        """Look further for where NaN and Inf first appear in what `run_overview` has run, and return the facts of the
        run.

        Constants that have some come last. The present stays. The search ends early after so many `seconds`, and at a
        pause. The next call continues it.
        """
        return self._overview_run().look_through(seconds)

    def _overview_run(self) -> OverviewRun:
        if self._overview is None:
            from stepper.debug.overview.runs import OverviewRun  # a run without one begins sooner

            self._overview = OverviewRun(self.timeline)
        return self._overview

    @_taking_turns
    def evaluate(self, expression: str) -> Evaluated:
        """Return the value of an expression here and now, such as "max(h)": an array, or a number of Python's. Nothing
        moves.

        Raise ExpressionError for a text that is none, UsageError where it has no value here.
        """
        return evaluate(self.timeline, expression)

    @_taking_turns
    def value(self, address: str | Address) -> Array | Series:
        """Return the value that an address names, read-only; of several iterations ("h@2:5") along a new first axis.

        The result is a `Series`, with an array for each iteration, if shapes change or an If does not run a branch in
        each. Iterations still to come are computed; nothing moves. Raise UsageError if there is
        no value, and if the run fails before the last of the iterations.
        """
        return value_of(self.timeline, address)

    @_taking_turns
    def watch(self, expression: str, format: str = "") -> Watch:
        """Evaluate an expression at every stop from now on. ExpressionError for a text that is none.

        `format` is how its value is shown: x (hexadecimal), e3, f2 (so many digits), b (true or false), s (statistics).
        """
        return self.watches.add(text("expression", expression), self.timeline, text("format", format))

    @_taking_turns
    def find(
        self, expression: str, which: str = "first", *, limit: int | None = None, until: int | None = None
    ) -> Found:
        """Return the positions where an expression holds: first, next, previous, last, all. The present stays."""
        from stepper.debug.finding import find

        return find(self.timeline, expression, which, limit=limit, until=until)

    @_taking_turns
    def why(self, question: str | Address, *, tries: bool = True) -> Provenance:
        """Return why a value is so: the path back, and all elements of inputs, constants and edits behind it.

        The question is an address (`h[0,3]@7`), `shape of ADDR`, `condition`, `end of LOOP` or `11 iterations`. Without
        an index it is the first element that is NaN, else infinite, else the first. With a `reference` only differences
        are followed. `tries`: run the model again to try whether an element of an input matters. The present stays. A
        pause ends it early. UsageError.
        """
        from stepper.debug.provenance.answer import provenance

        return provenance(self.timeline, question, tries=tries)

    @_taking_turns
    def chain_of(self, address: str | Address) -> Chain:
        """Return the path back of one element alone; from a NaN or Inf to its origin. The present stays. UsageError."""
        from stepper.debug.provenance.answer import chain_at

        return chain_at(self.timeline, address)

    @_taking_turns
    def uses(self, address: str | Address) -> Uses:
        """Return where an element goes: operations and iterations that it reaches, outputs of the model, conditions.

        It may be asked as `where does x[3] go`. Without an index it is where all elements go. The present stays. A
        pause ends it early. UsageError.
        """
        from stepper.debug.provenance.mask_walk import uses

        return uses(self.timeline, address)

    @_taking_turns
    def story(
        self,
        address: str = "",
        *,
        ends: bool = False,
        fails: bool = False,
        tick: int | None = None,
        links: int = 40,
        wider: Sequence[tuple[str, int]] = (),
        unfolds: bool = False,
    ) -> Story:
        """Explain a value across iterations, or (`ends`) why the loop of that name ended, or (`fails`) why the next
        operation fails.

        The address may be any question of `why`. Without an index it is the first element that is NaN, else infinite,
        else the first. Without a name it is the loop that runs here, else the last that ended. `tick` is the position
        of the address, by default now. At most so many `links` are looked for. A link with a key in `wider` follows so
        many operands more than usual. `unfolds`: show moves of elements and equal iterations singly. The present stays.
        UsageError.
        """
        from stepper.debug.story.building import story

        whole_number("links", links, 1)
        question = StoryQuestion(text("address", address), ends, fails, tick, links, tuple(wider), unfolds)
        return story(self.timeline, question)

    @_taking_turns
    def over_iterations(
        self, address: str | Address, statistic: str | None = None, *, most: int | None = None
    ) -> Series:
        """Return a value, a part or a statistic of it over the iterations of the loop that runs here.

        The present stays.
        """
        return over_iterations(self.timeline, address, statistic, most=most)

    @_taking_turns
    def previous_value(self, address: str | Address, *, compared: bool = True) -> PreviousValue:
        """Return a value now and one iteration before, and (unless not `compared`) their difference.

        The present stays.
        """
        return previous_value(self.timeline, address, compared=compared)

    # --- stopping ------------------------------------------------------------------------------------------------

    @_taking_turns
    def break_at(
        self, target: str, *, condition: str = "", hit: int = 0, exactly: bool = False, once: bool = False
    ) -> Breakpoint:
        """Stop after an operation, all of a type or pattern, or in an iteration. UsageError for what is wrong.

        `hit`: from the N-th hit on, with `exactly` at that hit alone, counted from where the run stands now.
        """
        text("target", target), text("condition", condition), whole_number("hit", hit, 0)
        return self.breakpoints.add(BreakDescription(BreakKind.AT, target, condition, hit, exactly, once=once))

    @_taking_turns
    def break_when(self, what: str, *, hit: int = 0, exactly: bool = False, once: bool = False) -> Breakpoint:
        """Stop for something about values: a word of data_break_words, or an expression that becomes true."""
        text("what", what), whole_number("hit", hit, 0)
        return self.breakpoints.add(BreakDescription(BreakKind.WHEN, what, hit=hit, exactly=exactly, once=once))

    @_taking_turns
    def log_at(self, target: str, line: str, *, condition: str = "") -> Breakpoint:
        """Write a line with `{EXPRESSION}` parts to the sink of the breakpoints each time, and never stop."""
        text("target", target), text("line", line), text("condition", condition)
        return self.breakpoints.add(BreakDescription(BreakKind.LOG, target, condition, line=line))

    def pause(self) -> None:
        """Make the verb or the question that is under way return; from any thread. Nothing where there is none."""
        self.machine.request_pause()

    def working(self) -> AbstractContextManager[None]:
        """Make several verbs and questions one: a pause within the block is for all of it. UsageError where
        another thread is at work."""
        return self._turns.taken()

    def paused(self, paused: Paused) -> Stop:
        """Return the stop where a pause was heeded."""
        searched = paused.searched if isinstance(paused, PausedSearch) else None
        return self._stopped(None, Reason.PAUSED, searched)

    # --- forward -------------------------------------------------------------------------------------------------

    @_verb
    def step(self, count: int = 1) -> Stop:
        """Go to the next operation, into nested bodies."""
        return self._repeated(count, self._single)

    def _single(self) -> Event | None:
        """Go on by one operation moment. A breakpoint there is shown, but there is nothing that it could stop."""
        event = self._ahead(Every.OPERATION, lambda event: True)
        is_stop = event is not None and event.kind is EventKind.STOPPED
        return event._replace(kind=EventKind.OPERATION) if event is not None and is_stop else event

    @_verb
    def next(self, count: int = 1) -> Stop:
        """Go to the next operation of this frame; a nested loop or branch is run as one."""
        return self._repeated(count, self._next)

    def _next(self) -> Event | None:
        depth = self.depth
        event = self._single()
        if event is not None and self.depth > depth:
            return self._out_of(depth + 1)
        return event

    @_verb
    def finish(self) -> Stop:
        """Go to after the last iteration of this loop; from there, and in a branch, out to the frame around it."""
        depth, frame, begun = self.depth, self.frame, self.machine.tick
        if depth == 1:
            return self.continue_()
        event = self._out_of(depth)
        is_loop = frame.activation is not None and frame.activation.operation.layer.is_loop
        if event is not None and event.kind is EventKind.LEFT and is_loop and begun + 1 < event.tick:
            self.timeline.back(event.tick - 1, begun)
        return self._stopped(event)

    @_verb
    def next_iteration(self, count: int = 1) -> Stop:
        """Go to the same place in a later iteration of this loop; outside, to where one of any loop begins.

        UsageError where there is none; the present then stays.
        """
        count, depth = _repeats(count), self._iterating()
        if depth is None:
            return self._stopped(self._to_any_iteration(count))
        return self.goto_iteration(self._iteration(depth) + count)

    def _to_any_iteration(self, count: int) -> Event | None:
        begun, begins = self.machine.tick, 0

        def fits(event: Event) -> bool:
            nonlocal begins
            begins += event.kind is EventKind.BEGUN and iteration_of(event.frame) is not None
            return begins == count

        event = self._ahead(Every.OPERATION, fits)
        if event is None or event.kind is EventKind.FINISHED:
            self.timeline.return_to(begun)
            raise UsageError(without_loops(self.model) or "no loop runs an iteration after this position")
        return event

    @_verb
    def continue_(self, hear: Callable[[Event], bool] | None = None, *, until: int | None = None) -> Stop:
        """Run to the next stop of a breakpoint, or to the end of the run; `hear` gets each frame entered and left.

        With `until` the run stops at that tick at the latest.
        """
        if hear is not None:
            function("hear", hear)
        elif until is None and self.timeline.to_known_end(watched=True):
            return self._stopped(None)
        every = Every.LOOP if hear else Every.END
        return self._stopped(self._ahead(every, hear or (lambda event: False), until=until))

    @_verb
    def goto_tick(self, tick: int) -> Stop:
        """Go to the position after exactly `tick` moves, in the past or future; the end if the run has fewer."""
        if whole_number("tick", tick) < 0:
            raise UsageError(f"tick {tick} is before the start of the run, which is tick 0")
        self.timeline.goto(tick)
        return self._stopped(None)

    @_verb
    def first(self) -> Stop:
        """Go to the start of the run."""
        return self.goto_tick(0)

    @_verb
    def last(self) -> Stop:
        """Go to the end of the run, whatever would stop on the way."""
        if self.timeline.to_known_end(watched=False):
            return self._stopped(None)
        return self._stopped(self._ahead(Every.END, lambda event: False, watched=False))

    @_verb
    def goto(self, address: str) -> Stop:
        """Go to after the operation that an address names, or into a loop. UsageError where the run never comes."""
        return self.goto_tick(tick_of_address(self.timeline, text("address", address)))

    @_verb
    def goto_iteration(self, iteration: int) -> Stop:
        """Go to the same place in iteration N of this loop, counted from 0; negative: from the last one that it runs.

        Outside of loops the one that can be meant: to where its iteration begins.
        UsageError where the loop has no such iteration; the present then stays.
        """
        begun, wanted, at = self.machine.tick, whole_number("iteration", iteration), self._iterating()
        if at is None:
            return self._goto_iteration_of_the_loop(iteration)
        depth, current = at + 1, self._iteration(at)
        if iteration < 0:
            event = self._out_of(depth, watched=False)
            if event is None or event.kind is not EventKind.LEFT:
                return self._stopped(event)
            iteration += _iterations_run(event)
            self.timeline.return_to(begun)
            if iteration < 0:
                raise _no_iteration(wanted, _iterations_run(event))
        # UsageError for an iteration that the trip count or the slices of the loop exclude
        frame = self.machine.stack[at]
        activation = frame.active
        most = min(activation.slice_count, _ENDLESS if activation.limit is None else activation.limit)
        if iteration >= most < _ENDLESS:
            raise UsageError(f"there is no iteration {iteration:,}: the loop runs at most {counted(most, 'iteration')}")
        if self.frame.program.straight and depth == self.depth:
            event = self._jump(iteration - current)
        else:
            event = (
                self._walk_to(depth, iteration, self._places(depth))
                if iteration > current
                else self._back_to(depth, iteration)
            )
        if event is not None and event.kind is EventKind.LEFT and self.depth < depth:
            self.timeline.return_to(begun)
            raise _no_iteration(wanted, _iterations_run(event))
        return self._stopped(event)

    def _goto_iteration_of_the_loop(self, iteration: int) -> Stop:
        begun = self.machine.tick
        self.timeline.goto(tick_of_iteration(self.timeline, max(iteration, 0)))
        if iteration >= 0:
            return self._stopped(None)
        try:
            return self.goto_iteration(iteration)
        except BaseException:
            self.timeline.return_to(begun)
            raise

    @_verb
    def until(self, expression: str) -> Stop:
        """Go on to where the expression holds, or to the next stop. UsageError for one that is wrong."""
        with self.breakpoints.until(text("expression", expression)):
            return self.continue_()

    @_verb
    def run_to(self, address: str) -> Stop:
        """Run to the next position that the address names (as a breakpoint does), or to the next stop.

        A loop that does not run means its first iteration. UsageError if the address does not follow; the present
        stays.
        """
        if self.machine.finished:
            raise UsageError(f"the run has ended, nothing follows; goto {address} goes back to it")
        before = self.stop
        with self.breakpoints.target(text("address", address)):
            stop = self.continue_()
        if stop.reason is not Reason.END:
            return stop
        self.timeline.return_to(before.tick)
        self.stop = before
        self.watches.see(self.timeline)
        raise UsageError(f"the run does not come to '{address}' after this position; goto {address} goes back to it")

    # --- backward ------------------------------------------------------------------------------------------------

    @_verb
    def reverse_step(self, count: int = 1) -> Stop:
        """Go back by an operation, in nested bodies too."""
        search = _search("reverse-step", count)
        found = self.timeline.backward(Every.OPERATION, lambda event: True, search, count)
        return self._stopped(None) if found else self._before_all()

    @_verb
    def reverse_next(self, count: int = 1) -> Stop:
        """Go back by an operation in this frame; a nested loop or branch is one."""
        found = self.timeline.steps_backward(_search("reverse-next", count), count, self._reverse_next)
        return self._stopped(None) if found else self._before_all()

    def _reverse_next(self) -> bool:
        depth = max(self.depth, 1)  # at the end of the run there is no frame
        if not self.timeline.backward(Every.OPERATION, lambda event: True):
            return False
        if self.depth > depth:
            self.timeline.goto(self._entry(depth) - 1)
        return True

    def _before_all(self) -> Stop:
        return self.first() if self.machine.tick else self._stopped(None, Reason.NOWHERE)

    @_verb
    def reverse_finish(self) -> Stop:
        """Go back to the entry of this loop or branch, before its first iteration; from there, to the position before
        it.
        """
        depth = self.depth
        if depth <= 1:
            return self.first()
        entry = self._entry(depth - 1)
        return self.goto_tick(entry if self.machine.tick > entry else entry - 1)

    def _entry(self, depth: int) -> int:
        """Return the tick at which the frame above `depth` frames was entered."""
        activation = self.machine.stack[depth].active
        if activation.entered == 0:
            raise UsageError("this run was resumed inside of the loop; where it was entered is not known")
        return activation.entered

    @_verb
    def previous_iteration(self, count: int = 1) -> Stop:
        """Go back to the same place in an earlier iteration of this loop; outside, to where one of any loop ended.

        UsageError where there is none.
        """
        count, depth = _repeats(count), self._iterating()
        if depth is None:
            if not self.timeline.backward(Every.ITERATION, _closes, Search(f"iter -{count}"), count):
                raise UsageError(without_loops(self.model) or "no loop has run an iteration before this position")
            return self._stopped(None)
        iteration = self._iteration(depth)
        if count > iteration:
            raise UsageError(f"the loop is in iteration {iteration}; there is none {count} before it")
        return self.goto_iteration(iteration - count)

    @_verb
    def reverse_continue(self) -> Stop:
        """Go back to the last stop that a breakpoint would have made, or to the start of the run."""
        verb = "reverse-to-anomaly" if self.breakpoints.seeks_anomaly else "reverse-continue"
        if self.timeline.backward_to_stop(verb):
            return self._stopped(None, Reason.BREAK)
        return self.first()

    # --- two moments ---------------------------------------------------------------------------------------------

    @property
    def moments(self) -> Moments:
        """Return the reader of baselines, which compares them with now."""
        if self._moments is None:
            self._moments = Moments(self.branches)
        return self._moments

    @property
    def pinned(self) -> Moment | None:
        """The baseline; without `pin` it is a reference, or the original beside a branch with edits."""
        if self._is_pinned or (self.reference is None and not self.timeline.edits):
            return self._pinned
        return self.moments.by_itself()

    @pinned.setter
    def pinned(self, moment: Moment | None) -> None:
        self._pinned, self._is_pinned = moment, True

    @_taking_turns
    def pin(self, moment: str | Moment = "") -> Moment | None:
        """Set the baseline that `difference` compares with now: by default the present iteration.

        As text: `off`, `reference`, the name of a branch, `before` (the iteration before now). Or an iteration (`4`),
        so many later than the baseline (`+1`), an address with iterations (`decode@4`), `next` for the next kind.
        UsageError.
        """
        self.pinned = self.moments.called(text("moment", moment), self.pinned) if isinstance(moment, str) else moment
        return self.pinned

    @_taking_turns
    def difference(self, moment: str | Moment = "", *, depth: int | None = None) -> MomentView:
        """Return how the values of now differ from a baseline, by default the pinned one. The present stays.

        The frame is the one at this depth (0: the model's own graph), by default the innermost. UsageError without a
        baseline.
        """
        found = self.moments.called(moment, self.pinned) if isinstance(moment, str) and moment else moment
        found = found or self.pinned
        if found is None or isinstance(found, str):
            raise UsageError("there is no baseline: pin one, or name an iteration, a branch or reference")
        return self.moments.view(found, depth, compares=True)

    @_taking_turns
    def spread(self, branch: str = "") -> SpreadView:
        """Return where the present branch differs from another one, by default the baseline, and what became of the
        outputs.

        Both branches run to their ends beside the present, which stays. A pause ends that early; the next call
        continues. UsageError if the baseline is not another branch.
        """
        moment = Moment(MomentKind.BRANCH, text("branch", branch)) if branch else self.pinned
        found = None if moment is None else self.moments.spread(moment)
        if found is None:
            raise UsageError("an edit spreads between two branches: name another one, or make it the baseline")
        found.go(lambda: self.machine.pause_requested)
        return found.view()

    @_verb
    def goto_pinned(self) -> Stop:
        """Go to the baseline; the present position becomes the baseline: twice is nothing. UsageError if the run
        cannot go there.
        """
        a, machine, left = self.pinned, self.machine, self.branches.name
        if a is None:
            raise UsageError("there is no baseline: mark A takes this position, A N an iteration, A NAME a branch")
        if a.kind is MomentKind.REFERENCE:
            raise UsageError("A is the reference, which is no position of this run")
        stack, tick = machine.stack, machine.tick
        place = place_of_stack(stack)
        if a.kind is MomentKind.BRANCH:
            self.branch(a.branch)
            self.goto_tick(tick)
            if place_of_stack(machine.stack) != place:
                self._goto_place(a, place)
            self.pinned = Moment(MomentKind.BRANCH, left)
            return self.stop
        now, beside = self.moments.here(), a.seen_from(place)
        if beside is None:
            raise UsageError(
                "A is in a loop that does not run here"
                if a.kind is MomentKind.ITERATION
                else "there is no iteration before this"
            )
        if a.branch not in ("", left):
            self.branch(a.branch)
        if a.tick is not None:
            self.goto_tick(a.tick)
        elif beside[:-1] == place[:-1] and beside[-1].iteration is not None:
            self.goto_iteration(beside[-1].iteration)
        else:
            self._goto_place(a, beside)
        self.pinned = now
        return self.stop

    def _goto_place(self, a: Moment, place: GraphPlace) -> None:
        found = self.moments.frame(a, place)
        if found is None:
            raise Paused
        if found.frame is None:
            raise UsageError(found.problem)
        self.goto_tick(found.tick)

    # --- what if -------------------------------------------------------------------------------------------------

    @_verb
    def set_value(self, address: str | Address, value: Any) -> Stop:
        """Put another content into a value or constant, or a part of it, in a branch that begins here. UsageError.

        A constant changes from here on, in every iteration and run of its body.
        """
        return self._edited(edit_of(self.machine, address, value))

    @_verb
    def set_trip_count(self, count: int, loop: str = "") -> Stop:
        """Let a loop that runs (the innermost, or the one named) run so many iterations, -1: any number. UsageError.

        As every edit in a branch of its own; its sliced inputs bound the number.
        """
        return self._edited(trip_count_edit(self.machine, count, loop))

    @_verb
    def set_condition(self, holds: bool, loop: str = "") -> Stop:  # as with set_value
        """Let a loop that runs end or continue: after the current iteration, between two at once. UsageError."""
        return self._edited(condition_edit(self.machine, holds=holds, loop=loop))

    def _edited(self, edit: Edit) -> Stop:
        self.branches.make_room()
        self.timeline.edit(edit)
        a = self.pinned
        self.pinned = a if a is not None and a.kind is MomentKind.BRANCH else Moment(MomentKind.BRANCH, ORIGINAL)
        return self._on_another_course(self.machine.tick)

    @_verb
    def undo(self) -> Stop:
        """Take back the last edit of this branch, and stand where it was made. UsageError where there is none."""
        return self._on_another_course(self.branches.undo())

    @_taking_turns
    def rename_branch(self, name: str, to: str) -> None:
        """Give a branch another name; marks and A follow. UsageError for the original, and for a name that is taken."""
        self.branches.rename(text("name", name), text("to", to))
        for mark, where in self.marks.items():
            if where.branch == name:
                self.marks[mark] = Mark(where.tick, to)
        if self.pinned is not None and self.pinned.branch == name:
            self.pinned = replace(self.pinned, branch=to)

    @_taking_turns
    def delete_branch(self, name: str, *, descendants: bool = False) -> tuple[str, ...]:
        """Forget a branch with its marks, and with `descendants` those that left it; the names of all that are gone.

        UsageError for the original, for the present one, and for one that others left, unless these go, too.
        """
        gone = self.branches.delete(text("name", name), descendants=descendants)
        for mark in [mark for mark, where in self.marks.items() if where.branch in gone]:
            del self.marks[mark]
        return gone

    @_verb
    def branch(self, name: str) -> Stop:
        """Go on in another branch, where that stands; for a new name, in a new branch from here.

        Where A was that branch, it becomes the one that is left.
        """
        left = self.branches.name
        parting = self.branches.go(text("name", name))
        a = self.pinned
        self.pinned = Moment(MomentKind.BRANCH, left) if a == Moment(MomentKind.BRANCH, name) else a
        return self._on_another_course(parting)

    def _on_another_course(self, tick: int | None) -> Stop:
        if tick is not None:
            self.watches.forget_after(tick)
        return self._stopped(None)

    # --- how -----------------------------------------------------------------------------------------------------

    def _out_of(self, depth: int, *, watched: bool = True) -> Event | None:
        """Forward to where fewer frames than these are on the stack."""
        return self._ahead(Every.LOOP, self._leaves(depth), watched=watched)

    def _leaves(self, depth: int) -> Callable[[Event], bool]:
        return lambda event: event.kind is EventKind.LEFT and self.depth < depth

    def _ahead(
        self, every: Every, fits: Callable[[Event], bool], *, watched: bool = True, until: int | None = None
    ) -> Event | None:
        """Forward; None where the run has ended already."""
        if self.machine.finished:
            return None
        watcher = self.machine.watcher
        if not watched:
            self.machine.watcher = None
        try:
            return self.timeline.forward(every, fits, until)
        except Paused:
            self._stopped(None)
            raise
        except StepperError as error:
            self._stopped(None)
            self.stop = replace(self.stop, causes=(self._failed(error),))
            raise
        finally:
            self.machine.watcher = watcher

    def _repeated(self, count: int, move: Callable[[], Event | None]) -> Stop:
        event = None
        for _ in range(_repeats(count)):
            event = move()
            if event is None or event.kind <= EventKind.STOPPED:
                break
        return self._stopped(event)

    def _stopped(
        self, event: Event | None, reason: Reason | None = None, searched: SearchedRange | None = None
    ) -> Stop:
        if reason is None:
            reason = reason_of(self.machine, event, self.watcher.found_at)
        found = self.watcher.found if reason is Reason.BREAK else None
        causes = () if found is None else self._explained(found.causes)
        self.stop = describe(self.machine, reason, causes, searched)
        if found is not None:
            self.breakpoints.stopped()
        self.timeline.show()
        self.watches.see(self.timeline)
        return self.stop

    def _failed(self, error: StepperError) -> Cause:
        """Return the error of the run as the cause of its stop before the operation that failed."""
        from stepper.debug.provenance.operation_at import file_of, location_of

        following = self.stop.next
        layer = None if following is None else following.layer
        location = location_of(self.machine.stack, file_of(self.machine.compiled), layer)
        return RunFailed(trigger=Trigger.ERROR, location=location, message=str(error))

    def _explained(self, causes: list[Cause]) -> tuple[Cause, ...]:
        """Return the causes of a stop, with where a NaN or Inf in the inputs of an operation came from."""
        if not any(isinstance(cause, NonFinite) for cause in causes):
            return tuple(causes)
        from stepper.debug.causes.element_walks import with_origins

        return with_origins(self.timeline, causes)

    def _iterating(self) -> int | None:
        """Return the depth (0: the model's own graph) of the innermost loop, if one of its iterations has begun."""
        depth = innermost_loop(self.machine.stack)
        return None if depth is None or iteration_of(self.machine.stack[depth]) is None else depth

    def _iteration(self, depth: int) -> int:
        iteration = iteration_of(self.machine.stack[depth])
        assert iteration is not None, "it has begun"
        return iteration

    def _jump(self, iterations: int) -> Event | None:
        """In a body without nested graphs every iteration has as many ticks."""
        present, depth = self.machine.tick, self.depth
        target = present + iterations * (len(self.frame.program.code) + 2)
        if iterations <= 0 or target <= self.timeline.furthest:
            wanted, entry = self._iteration(depth - 1) + iterations, self._entry(depth - 1)
            self.timeline.goto(target)
            if self.depth == depth and self._entry(depth - 1) == entry and iteration_of(self.frame) == wanted:
                return None
            self.timeline.return_to(present)  # the loop ends before
        return self._ahead(Every.LOOP, self._leaves(depth), until=target)

    def _walk_to(self, depth: int, iteration: int, wanted: _Places, *, watched: bool = True) -> Event | None:
        """Forward to a place in an iteration of the loop whose frame is the `depth`-th; or out of the loop.

        Where it does not come by the place, because another side of an If runs, to after that.
        """

        def fits(event: Event) -> bool:
            if self.depth < depth:
                return True
            stack = self.machine.stack[depth - 1 :]  # a LEFT event has the frame that is gone
            return iteration_of(stack[0]) == iteration and _is_past(stack, wanted)

        return self._ahead(Every.OPERATION, fits, watched=watched)

    def _back_to(self, depth: int, iteration: int) -> Event | None:
        if depth < self.depth:
            return self._back_into(depth, iteration)
        frame = self.frame
        pc, phase = frame.pc, frame.phase
        closed = phase is not Phase.RUNNING

        def fits(event: Event) -> bool:
            frame = self.frame
            if self.depth != depth or iteration_of(frame) != iteration:
                return False
            return event.kind is EventKind.ITERATION if closed else frame.pc == pc and frame.phase is Phase.RUNNING

        search = Search(f"goto {iteration}", (depth, pc, phase))
        self.timeline.backward(Every.ITERATION if closed else Every.OPERATION, fits, search)
        return None

    def _back_into(self, depth: int, iteration: int) -> Event | None:
        """Back to the present place inside of an If, in an earlier iteration of the loop around it."""
        present, place = self.machine.tick, self._places(depth)
        try:
            if before_iteration(self.timeline, depth - 1, iteration) == PAUSED:
                raise Paused
            event = self._walk_to(depth, iteration, place, watched=False)
            if event is not None and event.kind is EventKind.PAUSED:
                raise Paused
        except BaseException:
            self.timeline.return_to(present)
            raise
        return event

    def _places(self, depth: int) -> _Places:
        """Return where the frames from the `depth`-th inwards stand."""
        return [(frame.program, frame.pc, frame.phase) for frame in self.machine.stack[depth - 1 :]]


def _closes(event: Event) -> bool:
    """True if an iteration has been closed."""
    return event.kind is EventKind.ITERATION


def _is_past(stack: Frames, wanted: _Places) -> bool:
    """True at a place of a frame and those inside it, and where the run has passed that."""
    for frame, (program, pc, phase) in zip(stack, wanted, strict=False):
        if frame.program is not program:
            return False  # another side of an If
        if phase is not Phase.RUNNING:
            return frame.phase is not Phase.RUNNING and len(stack) == len(wanted)
        if frame.pc != pc:
            return frame.pc > pc
    return len(stack) == len(wanted)


def _search(command: str, count: int) -> Search:
    return Search(command if _repeats(count) == 1 else f"{command} {count}")


def _iterations_run(left: Event) -> int:
    """Return how many iterations the loop ran that was just left."""
    return left.frame.active.iteration + 1


def _no_iteration(wanted: int, count: int) -> UsageError:
    known = f"the loop runs {counted(count, 'iteration')}" + (f", 0 to {count - 1:,}" if count > 1 else "")
    return UsageError(f"there is no iteration {wanted:,}: {known}")


def _repeats(count: int) -> int:
    if whole_number("count", count) < 1:
        raise UsageError(f"a repeat count is 1 or more, not {count}")
    return count


def open_debugger(source: ModelSource, inputs: Mapping[str | int, Any], **options: Any) -> Debugger:
    """Return a debugger of anything that `open_model` opens; `options` are options of `Debugger`."""
    return Debugger(source, inputs, **options)
