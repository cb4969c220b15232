"""Run the model: walk a stack of frames, move by move, and keep no state in local variables.

    run ── advance ── _move ──┬─ _operate    operations, up to the next that opens a frame; (frame RUNNING, pc < end)
                              │    └─ _enter    a loop or a branch: a new frame;
                              ├─ _close      an iteration's Results: scans, condition, end; (frame RUNNING, pc = end)
                              ├─ begin       slices, back edges, iteration number;          (frame BETWEEN)
                              ├─ _iterate    begin, operate and close at once, if nobody asks for their events;
                              └─ _leave      the loop's outputs; the frame goes.            (frame LEAVING)

Each arrow is a move and makes one tick, whether or not its event is reported; so a tick names one fixed moment in every
replay. The state between two moves is the stack alone: `snapshot` copies it, `restore` puts it back.
"""

from __future__ import annotations

import contextvars
import itertools
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from stepper import element_types
from stepper.argument_checks import instance, whole_number
from stepper.element_types import Array
from stepper.engine import arithmetic, transitions
from stepper.engine.frames import (
    Activation,
    Constants,
    Event,
    EventKind,
    Every,
    Frame,
    Phase,
    RunObserver,
    Snapshot,
    Watcher,
    error_place,
    place,
)
from stepper.engine.inputs import owned
from stepper.engine.program import (
    CompiledModel,
    LoopPlan,
    Operation,
    OpKind,
    Program,
    Value,
    ensure_enough,
    execute,
    execute_any,
    execute_freeing,
)
from stepper.engine.rules import Notes, Rules
from stepper.errors import ExecutionError, LimitReached, StepperError, TensorTooLarge, UsageError, memory_reason
from stepper.ir.model import Layer
from stepper.ops.operands import form_text
from stepper.wording import excerpt

T = TypeVar("T")
_LONGEST_PLACE = 400
_LONGEST_MESSAGE = 800
_BETWEEN, _RUNNING = Phase.BETWEEN, Phase.RUNNING  # see transitions.py


class Machine:
    """Run a compiled model on given inputs; resumable at every event.

    `inputs` are arrays in the order of the model's Parameters, of their types and shapes (see inputs.bind_inputs).
    `max_iterations` ends the run with LimitReached if a loop exceeds it. `states` are the variables of ReadValue/Assign
    and the streams of random operations, carried over from an earlier run. `keep_values` keeps every value of the
    model's own graph; without it values go after their last use.
    """

    def __init__(
        self,
        compiled: CompiledModel,
        inputs: Sequence[Array],
        *,
        max_iterations: int | None = None,
        states: Mapping[str, Any] | None = None,
        keep_values: bool = True,
    ) -> None:
        self.compiled = instance("compiled", compiled, CompiledModel)
        self.rules = compiled.rules
        self.max_iterations = (
            max_iterations if max_iterations is None else whole_number("max_iterations", max_iterations, 1)
        )
        self.keep_values = keep_values
        self.notes = Notes()
        for where, text in compiled.notes:
            self.notes.add(where, text)
        self.initial_states: Mapping[str, Any] = {name: owned(value) for name, value in (states or {}).items()}
        self.states: dict[str, Any] = dict(self.initial_states)
        self.tick = 0
        self.outputs: tuple[Array, ...] | None = None
        self.observers: tuple[RunObserver, ...] = ()
        self.watcher: Watcher | None = None
        self._until = sys.maxsize
        self.pause_requested = False
        self.followers: tuple[Machine, ...] = ()
        """Machines that work for whoever drives this one: a pause of this one is theirs, too."""
        main = compiled.main
        frame = Frame(main, list(main.template))
        if len(inputs) != len(main.parameters):
            raise UsageError(f"inputs are {len(inputs)} arrays, the model has {len(main.parameters)}; see bind_inputs")
        for parameter, slot, value in zip(main.graph.parameters, main.parameters, inputs, strict=True):
            if self.rules is Rules.OPENVINO:
                self._note_width(parameter, value)
            value = owned(value)
            frame.values[slot] = value if self.rules is Rules.SPEC else arithmetic.narrowed(value)
        self.stack = [frame]
        self.constants: Mapping[int, Constants] = {}
        self._context = contextvars.copy_context()
        self._context.run(np.seterr, all="ignore")

    def __repr__(self) -> str:
        where = place(self.stack) if self.stack else "the end of the run"
        return f"<Machine at tick {self.tick}: {excerpt(where, _LONGEST_PLACE)}>"

    def __copy__(self) -> Machine:
        return self.twin()

    def __deepcopy__(self, _memo: dict[int, Any]) -> Machine:
        return self.twin()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Machine cannot be pickled; its snapshot() can, which a machine of the same model restores")

    # --- driving -------------------------------------------------------------------------------------------------

    def run(self, every: Every = Every.ITERATION) -> Iterator[Event]:
        """Walk to the end, telling the moves asked for. The generator may be dropped and another one taken any time.

        Raises ExecutionError, UnsupportedOperation or LimitReached with the place; the stack then stands where it was.
        """
        while self.stack:
            yield self.advance(every)

    def advance(self, every: Every = Every.OPERATION, until: int = sys.maxsize) -> Event:
        """Walk to the next move of the kind asked for, but not beyond the tick `until`.

        Ends earlier at the end of the run, where a pause was requested, and where the `watcher` says so (of those
        operations that it named).
        """
        self._until = until
        return self._context.run(self._advance, every)

    def request_pause(self, *, wanted: bool = True) -> None:
        """Make the running `advance` return with PAUSED before its next move; from any thread. Or take that back."""
        self.pause_requested = wanted
        for machine in self.followers:
            machine.pause_requested = wanted

    @property
    def program(self) -> Program:
        """The graph of the innermost frame; after the end the model's own."""
        return self.stack[-1].program if self.stack else self.compiled.main

    @property
    def finished(self) -> bool:
        """True if the run has come to its end and `outputs` are there."""
        return not self.stack

    # --- state ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the whole state of the run now; tensors are shared, not copied."""
        frames = tuple(frame.copy() for frame in self.stack)
        return Snapshot(self.tick, frames, dict(self.states), self.outputs, tuple(self.constants.values()))

    def restore(self, snapshot: Snapshot) -> None:
        """Put a state back; the snapshot is unchanged and may be used again. UsageError for a snapshot of another
        model.
        """
        frames, constants = snapshot.frames, snapshot.constants
        if frames and frames[0].program is not self.compiled.main:
            frames = tuple(frame.in_compiled(self.compiled) for frame in frames)
            constants = tuple(one.in_compiled(self.compiled) for one in constants)
        self.stack = [frame.copy() for frame in frames]
        self.tick = snapshot.tick
        self.states = dict(snapshot.states)
        self.outputs = snapshot.outputs
        self.constants = {id(one.program): one for one in constants}

    def twin(self) -> Machine:
        """Return another machine in the same state, without a watcher."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.restore(self.snapshot())
        other.pause_requested = False
        other.followers = ()
        other.watcher, other.observers = None, ()
        other._context = self._context.copy()
        return other

    def set_constant(self, program: Program, slot: int, value: Value) -> None:
        """Compute with another value of a constant from now on, also in bodies that are entered later. KernelError."""
        changed = transitions.with_constant(program, self.constants.get(id(program)), slot, value)
        self.constants = {**self.constants, id(program): changed}
        transitions.put_constants(self.stack, self.constants)

    # --- moves ---------------------------------------------------------------------------------------------------

    def _advance(self, every: Every) -> Event:
        while self.stack:
            if self.pause_requested:
                self.pause_requested = False
                return Event(EventKind.PAUSED, self.tick, self.stack[-1])
            if self.tick >= self._until:
                return Event(EventKind.REACHED, self.tick, self.stack[-1])
            frame = self.stack[-1]
            kind = self._move(frame, every)
            if kind is not None and kind.is_told(every):
                return Event(kind, self.tick, frame if kind is not EventKind.ENTERED else self.stack[-1])
        raise StepperError("the run has ended; there is nothing to advance")

    def _move(self, frame: Frame, every: Every) -> EventKind | None:
        """Make the next move, or several where no events are asked for. Return the last event kind."""
        if frame.phase is Phase.RUNNING:
            if frame.pc < len(frame.program.code):
                return self._operate(frame, every)
            return self._close(frame)
        if frame.phase is Phase.LEAVING:
            return self._leave(frame)
        if (
            every <= Every.ITERATION
            and frame.program.straight
            and self.tick + len(frame.program.code) + 2 <= self._until
        ):
            if self.watcher is not None and id(frame.program) in self.watcher.stops:
                return self._iterate_watched(frame, self.watcher)
            return self._iterate(frame, every)
        self._guarded(frame, self._begin, frame)
        self.tick += 1
        return EventKind.STOPPED if self._halts(frame, -1) else EventKind.BEGUN

    def _begin(self, frame: Frame) -> None:
        self._check_limit(frame.active)
        transitions.begin_iteration(frame)

    def _iterate(self, frame: Frame, every: Every) -> EventKind | None:
        """Run whole iterations of a body without nested graphs: one, or (without a watcher) as many as there are."""
        activation = frame.active
        watcher = self.watcher
        watch = watcher.iteration_watch(frame) if watcher is not None and watcher.watches_iterations else None
        cost, entered = len(frame.program.code) + 2, self.tick - _moves_made(frame)
        while frame.phase is Phase.BETWEEN and self.tick + cost <= self._until and not self.pause_requested:
            try:
                self._check_limit(activation)
                _iterate_once(frame, self.rules)
            except Exception as error:
                raise self._failed(frame, error) from error
            finally:
                self.tick = entered + _moves_made(frame)
            for observer in self.observers:
                observer.iteration_closed(frame)
            if watch is not None and watch(frame):
                return EventKind.STOPPED
            if every is Every.ITERATION:
                return EventKind.ITERATION
            if frame.phase is Phase.BETWEEN and self._iterate_on(frame, entered, watch):
                return EventKind.STOPPED
        return None

    def _iterate_on(self, frame: Frame, entered: int, watch: Callable[[Frame], bool] | None) -> bool:
        """Return the iterations that cannot be the last, of a loop entered at this tick; if the watcher stopped."""
        assert frame.activation is not None
        most = [
            _iterations_within(frame.activation, self.rules, self.max_iterations),
            (self._until - self.tick) // (len(frame.program.code) + 2),
        ]
        wanted = []
        for observer in self.observers:
            taps = observer.taps(frame)
            if taps is not None:
                wanted.append(taps)
                most.append(taps.most)
                watch = None if id(observer) == id(self.watcher) else watch
        try:
            return self._walk(frame, min(most), watch, [tap for taps in wanted for tap in taps.values])
        finally:
            self.tick = entered + _moves_made(frame)
            for taps in wanted:
                taps.done()

    def _walk(  # noqa: C901  # one loop: calls would be felt
        self,
        frame: Frame,
        most: int,
        watch: Callable[[Frame], bool] | None,
        taps: Sequence[tuple[Callable[[Any], object], int]],
    ) -> bool:
        """Make up to `most` iterations that are neither the first nor, by their number, the last.

        Return True if the watch stopped it. Each function of `taps` gets the value of its slot after each iteration.
        Ends earlier where a pause is requested, and before the close of an iteration whose condition does not hold or
        is none, or which gives a piece of another shape: what that means is for `close_iteration` to say. The frame is
        at every moment as it would be had each move been made by itself, also after an exception.
        """
        activation, values = frame.activation, frame.values
        assert activation is not None and activation.code is not None
        plan: Any = activation.plan
        code: Any = activation.code  # see Step for what is None where
        condition, carried, plain = plan.condition_result, plan.carried, transitions.only_carries(activation)
        shapes = [(scan.first_shape, scan.result) for scan in activation.scans]
        scans = [*((scan.append, scan.result) for scan in activation.scans), *taps]
        end = frame.pc = len(code)
        cost = end + 2
        first, running, between = activation.iteration + 1, _RUNNING, _BETWEEN
        for iteration in range(first, first + most):
            if self.pause_requested:
                return False
            try:
                if plain:
                    for parameter, result in carried:
                        values[parameter] = values[result]
                    activation.iteration = iteration
                    frame.phase = running
                else:
                    transitions.begin_iteration(frame)
                    frame.pc = end
                try:
                    for function, a, b, out in code:  # as `execute` does
                        if b is not None:
                            values[out] = function(values[a], values[b])
                        elif out is not None:
                            values[out] = function(values[a])
                        else:
                            execute_any(function, a, values)
                except BaseException:
                    frame.pc = code.index((function, a, b, out))
                    raise
                try:
                    if condition is not None and not values[condition]:
                        return False
                except ValueError:
                    return False
                for shape, slot in shapes:
                    if values[slot].shape != shape:
                        return False
                for append, slot in scans:
                    append(values[slot])
            except Exception as error:
                raise self._failed(frame, error) from error
            frame.phase = between
            if watch is not None:
                self.tick += cost
                if watch(frame):
                    return True
        return False

    def _iterate_watched(self, frame: Frame, watcher: Watcher) -> EventKind | None:
        """Return one iteration of a body without nested graphs, halting after each operation that the watcher named."""
        self._guarded(frame, self._begin, frame)
        self.tick += 1
        if self._halts(frame, -1):
            return EventKind.STOPPED
        while frame.pc < len(frame.program.code):
            if self._execute_straight(frame, watcher):
                return EventKind.STOPPED
        return self._close(frame)

    def _operate(self, frame: Frame, every: Every) -> EventKind | None:
        """Return one operation, or all up to the next that opens a frame."""
        program = frame.program
        one = every is Every.OPERATION
        if not one:
            if self._execute_straight(frame, self.watcher):
                return EventKind.STOPPED
            if frame.pc == len(program.code) or self.tick >= self._until:
                return None
        operation = program.operations[frame.pc]
        if operation.plans:
            self._guarded(frame, self._enter, frame, operation)
            self.tick += 1
            return EventKind.STOPPED if self._halts(self.stack[-1], -1) else EventKind.ENTERED
        if one or operation.kind is OpKind.STATEFUL:
            self._guarded(frame, self._execute_one, frame, operation)
            if self._halts(frame, frame.pc - 1):
                return EventKind.STOPPED
        return EventKind.OPERATION

    def _halts(self, frame: Frame, index: int) -> bool:
        """Return True if the watcher halts after this operation (-1: an iteration has begun, or a frame was opened)."""
        watcher = self.watcher
        if watcher is None or index not in watcher.stops.get(id(frame.program), ()):
            return False
        return watcher.after_operation(frame, index)

    def _execute_straight(self, frame: Frame, watcher: Watcher | None) -> bool:
        """Operations up to one that opens a frame, the tick asked for, or a stop; whether the watcher halts here."""
        code, first = frame.code, frame.pc
        end = min(len(code), first + self._until - self.tick)
        stops = () if watcher is None else watcher.stops.get(id(frame.program), ())
        stop = next((index for index in stops if index >= first), end)
        section: Sequence[Any] = code[first : min(end, stop + 1)]
        frees = not self.keep_values and frame.activation is None
        if frees:
            section = frame.program.without_tables(section, first)
        steps = iter(section)
        try:
            if frees:
                execute_freeing(steps, frame.values, itertools.islice(frame.program.dead_after, first, None))
            else:
                execute(steps, frame.values)
        except Exception as error:
            taken = len(section) - operator.length_hint(steps) - 1
            frame.pc += taken
            self.tick += taken
            if frees:
                frame.program.put_table(frame.pc, frame.values)
            raise self._failure(error, frame.program.operations[frame.pc]) from error
        taken = len(section) - operator.length_hint(steps)
        if taken and section[taken - 1][0] is None:
            taken -= 1  # the step that ended the walk is not for the hot loop and was not run
        frame.pc += taken
        self.tick += taken
        return watcher is not None and stop < end and frame.pc == stop + 1 and watcher.after_operation(frame, stop)

    def _execute_one(self, frame: Frame, operation: Operation) -> None:
        values = frame.values
        inputs = [values[slot] for slot in operation.inputs]
        assert operation.function is not None
        if operation.kind is OpKind.STATEFUL:
            results, state = operation.function(self.states.get(operation.state_key), *inputs)
            self.states[operation.state_key] = state
        else:
            results = operation.function(*inputs)
        outputs = results if operation.several_outputs else (results,)
        ensure_enough(outputs, len(operation.outputs))
        for slot, value in zip(operation.outputs, outputs, strict=False):
            values[slot] = value
        if not self.keep_values and frame.activation is None:
            for slot in frame.program.dead_after[frame.pc]:
                values[slot] = None
        frame.pc += 1
        self.tick += 1

    def _enter(self, frame: Frame, operation: Operation) -> None:
        if operation.kind is OpKind.LOOP:
            here = place(self.stack, operation, iterations=False)
            inner = transitions.enter_loop(operation, frame.values, self.rules, lambda text: self.notes.add(here, text))
        else:
            inner = transitions.enter_branch(operation, frame.values, self.rules)
        assert inner.activation is not None
        inner.activation.entered = self.tick + 1
        if self.constants:
            transitions.put_constants((inner,), self.constants)
        self.stack.append(inner)
        for observer in self.observers:
            observer.entered(self.stack)

    def _close(self, frame: Frame) -> EventKind | None:
        if frame.activation is None:
            self.tick += 1
            return self._guarded(frame, self._finish, frame)
        if isinstance(frame.activation.plan, LoopPlan):
            self._guarded(frame, transitions.close_iteration, frame, self.rules)
            self.tick += 1
            for observer in self.observers:
                observer.iteration_closed(frame)
            watcher = self.watcher
            if watcher is not None and watcher.watches_iterations and watcher.after_iteration(frame):
                return EventKind.STOPPED
            return EventKind.ITERATION
        self.tick += 1
        if self.tick >= self._until:  # a stop between the two is asked for
            frame.phase = Phase.LEAVING
            return None
        return self._leave(frame)

    def _leave(self, frame: Frame) -> EventKind:
        """Hand the outputs of a loop or branch to the frame below."""
        activation = frame.active
        operation, outer = activation.operation, self.stack[-2]

        def note(text: str) -> None:
            self.notes.add(place(self.stack[:-1], operation, iterations=False), text)

        found = self._guarded(frame, transitions.outputs, frame, self.rules, note)
        for output, value in found.items():
            outer.values[operation.outputs[output]] = value
        self.stack.pop()
        outer.pc += 1
        self.tick += 1
        for observer in self.observers:
            left = observer.loop_left if isinstance(activation.plan, LoopPlan) else observer.branch_left
            left(self.stack, activation)
        return EventKind.STOPPED if self._halts(outer, outer.pc - 1) else EventKind.LEFT

    def _finish(self, frame: Frame) -> EventKind:
        program = frame.program
        values = [frame.values[slot] for slot in program.results]
        declared = [program.declared(slot)[1] for slot in program.results]
        for result, value in zip(program.graph.results, values, strict=True):
            self._note_width(result, value)
        self.outputs = tuple(
            _read_only(arithmetic.restored(value, dtype, self.rules))
            for value, dtype in zip(values, declared, strict=True)
        )
        self.stack.pop()
        return EventKind.FINISHED

    def _note_width(self, layer: Layer, value: Any) -> None:
        if arithmetic.outside_int32(value):
            type = element_types.name_of(value.dtype)
            self.notes.add(str(layer), f"has values that i32 does not hold, in which OpenVINO computes {type}")

    # --- failures ------------------------------------------------------------------------------------------------

    def _check_limit(self, activation: Activation) -> None:
        if self.max_iterations is not None and activation.iteration + 1 >= self.max_iterations:
            raise LimitReached(f"the loop needs more than {self.max_iterations} iterations, the limit that was set")

    def _guarded(self, frame: Frame, function: Callable[..., T], *arguments: Any) -> T:
        """Call it; what goes wrong gets its place. The frame is left as it was before the move."""
        try:
            return function(*arguments)
        except Exception as error:
            raise self._failed(frame, error) from error

    def _failed(self, frame: Frame, error: Exception) -> StepperError:
        """Return the error with its place, and for an operation with the shapes and types of its inputs."""
        running = frame.phase is Phase.RUNNING and frame.pc < len(frame.program.operations)
        return self._failure(error, frame.program.operations[frame.pc] if running else None)

    def _failure(self, error: Exception, operation: Operation | None = None) -> StepperError:
        """Return the error with its place in words and as data, for an operation with its inputs."""
        found = self._worded(error, operation)
        found.place = error_place(self.stack, operation, str(self.compiled.model.path))
        return found

    def _worded(self, error: Exception, operation: Operation | None) -> StepperError:
        where = excerpt(place(self.stack, operation), _LONGEST_PLACE)
        text = memory_reason(error) if isinstance(error, MemoryError) else str(error) or type(error).__name__
        if isinstance(error, TypeError):  # numpy's own words for it speak of ufuncs and casting rules
            text = "takes no inputs of these types"
        if isinstance(error, StepperError):
            return _with_reason(type(error), where, excerpt(text, _LONGEST_MESSAGE))
        if operation is not None and operation.inputs and not operation.plans:
            values = self.stack[-1].values
            text += f" (inputs: {', '.join(_described(values[slot]) for slot in operation.inputs)})"
        text = excerpt(text, _LONGEST_MESSAGE)
        if isinstance(error, (TensorTooLarge, MemoryError)):
            return _with_reason(LimitReached, where, text)
        return _with_reason(ExecutionError, where, text)


def _moves_made(frame: Frame) -> int:
    """Return the moves since the loop was entered; of each iteration begin, operations, close."""
    assert frame.activation is not None
    each = len(frame.program.code) + 2
    return frame.activation.iteration * each + (1 + frame.pc if frame.phase is _RUNNING else each)


def _iterate_once(frame: Frame, rules: Rules) -> None:
    """Make one iteration, whatever it brings."""
    assert frame.activation is not None
    # The first iteration shows the element types, and with them faster functions for some operations.
    code = frame.activation.code or frame.code
    transitions.begin_iteration(frame)
    steps = iter(code)
    try:
        execute(steps, frame.values)
    except BaseException:
        frame.pc = len(code) - operator.length_hint(steps) - 1
        raise
    frame.pc = len(code)
    transitions.close_iteration(frame, rules)


def _iterations_within(activation: Activation, rules: Rules, limit: int | None) -> int:
    """Return the number of iterations that are neither the first nor, by their count, the last (nor beyond `limit`)."""
    plan: Any = activation.plan
    if activation.code is None or (rules is Rules.OPENVINO and plan.rigid):
        return 0
    ends = [count for count in (activation.limit, limit, activation.slice_count) if count is not None]
    return min(ends) - activation.iteration - 2


def _with_reason(kind: type[StepperError], where: str, reason: str) -> StepperError:
    error = kind(f"{where}: {reason}")
    error.reason = reason
    return error


def _described(value: Any) -> str:
    return "nothing" if value is None else form_text(value)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
