"""The state of a run: a stack of frames. A frame is one activation of one graph; nothing of a run lives elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from stepper.element_types import Array, DType, Ints, read_only
from stepper.engine.program import (
    BranchPlan,
    CompiledModel,
    LoopPlan,
    Operation,
    Program,
    Step,
    Value,
    host_of,
    program_again,
)
from stepper.errors import BodyPlace, ErrorPlace, LayerPlace, UsageError
from stepper.records import Record

if TYPE_CHECKING:
    from stepper.element_types import Array
    from stepper.engine.loops import EndReason, Scan, SliceWalk
    from stepper.ir.model import Layer


class Phase(Enum):
    """Next move of a frame: begin an iteration (or leave the loop), run operations, or close what it ran."""

    BETWEEN = auto()
    RUNNING = auto()
    LEAVING = auto()


class Slices(NamedTuple):
    """Hold a sliced input of a running loop: the slot that gets the slices, and the tensor."""

    parameter: int
    source: Array
    walk: SliceWalk
    prefix: tuple[slice, ...]


class Activation:
    """Hold one run of a loop or of a branch of an If, as the frame sees it.

    `iteration` is the current or just closed iteration (-1 before the first); `limit` is the maximum number of
    iterations, None for unlimited. `condition` is the last value of the condition; `ended` is the reason why no further
    iteration follows. `slice_count` is the number of iterations that the sliced inputs allow. `casts` lists Parameters
    into which a back edge carries a type other than the initial type: slot and type. `code` is the body's code for the
    element types of its first iteration. `entered` is the tick at which the frame was entered (0: unknown). `decided`
    is the condition at the close of this iteration, whatever the body computes; None if the body decides. `changed`
    names the values set by hand since the frame was entered (see interventions.py).
    """

    __slots__ = (
        "casts",
        "changed",
        "code",
        "condition",
        "decided",
        "ended",
        "entered",
        "iteration",
        "limit",
        "operation",
        "plan",
        "scans",
        "slice_count",
        "slices",
    )

    def __init__(
        self,
        operation: Operation,
        plan: LoopPlan | BranchPlan,
        *,
        condition: bool = True,
        slices: tuple[Slices, ...] = (),
        scans: Sequence[Scan] = (),
    ) -> None:
        self.operation = operation
        self.plan = plan
        self.iteration = -1
        self.limit: int | None = None
        self.condition = condition
        self.ended: EndReason | None = None
        self.slices = slices
        self.slice_count = sys.maxsize
        self.code: tuple[Step, ...] | None = None
        self.entered = 0
        self.scans = list(scans)
        self.casts: tuple[tuple[int, DType], ...] = ()
        self.decided: bool | None = None
        self.changed: frozenset[str] = frozenset()

    def copy(self) -> Activation:
        """Return an independent copy; tensors are shared, as nothing writes to them."""
        copied = Activation.__new__(Activation)
        for name in self.__slots__:
            setattr(copied, name, getattr(self, name))
        copied.scans = [scan.copy() for scan in self.scans]
        return copied


class Frame:
    """Hold one activation of a graph: its program, the value of every slot, and its progress.

    `pc` is the index of the next operation. `activation` is None for the model's own graph. `code` is the program's
    code, unless a constant was changed with which it was compiled.
    """

    __slots__ = ("activation", "code", "pc", "phase", "program", "values")

    def __init__(
        self,
        program: Program,
        values: list[Value],
        pc: int = 0,
        phase: Phase = Phase.RUNNING,
        activation: Activation | None = None,
    ) -> None:
        self.program = program
        self.values = values
        self.pc = pc
        self.phase = phase
        self.activation = activation
        self.code = program.code

    @property
    def active(self) -> Activation:
        """Return the activation of a frame that has one: of any but the model's own graph."""
        assert self.activation is not None
        return self.activation

    @property
    def loop(self) -> LoopPlan | None:
        """Return the plan of the loop whose body this frame runs.

        Returns None for a side of an If and for the model's graph.
        """
        plan = self.activation.plan if self.activation else None
        return plan if isinstance(plan, LoopPlan) else None

    @property
    def entered(self) -> int:
        """Return the tick at which it was entered."""
        return self.activation.entered if self.activation else 0

    def is_current(self, slot: int) -> bool:
        """Return True if the present iteration, or the one just closed, computed the value of a slot.

        An operation: once it has run. A Parameter: once the iteration has begun, and before the first iteration what
        the loop was entered with. A constant: always.
        """
        if slot < 0 or self.values[slot] is None:
            return False
        index = self.program.computed_at.get(slot)
        return index is None or index < self.computed

    @property
    def computed(self) -> int:
        """Return how many operations have run in the present iteration, or in the one just closed."""
        if self.phase is Phase.RUNNING:
            return self.pc
        return len(self.program.operations) if self.activation is not None and self.activation.iteration >= 0 else 0

    def current(self, slot: int) -> Array | None:
        """Return the present value of a slot as a read-only view; None if it is not computed yet."""
        return read_only(self.values[slot]) if self.is_current(slot) else None

    def before(self, slot: int) -> Array | None:
        """Return the value that a slot still holds from the iteration before; None if it holds a present value."""
        stale = slot >= 0 and self.values[slot] is not None and not self.is_current(slot)
        return read_only(self.values[slot]) if stale else None

    def why_absent(self, slot: int) -> str:
        """Return why a slot has no present value, in words; empty if it has one."""
        if slot < 0:
            return "not connected"
        if self.is_current(slot):
            return ""
        index, activation = self.program.computed_at.get(slot), self.activation
        if activation is None or not isinstance(activation.plan, LoopPlan):
            return "no longer kept" if index is None or index < self.pc else "not computed yet"
        if self.phase is Phase.LEAVING:
            return "never computed: no iteration ran"
        if activation.iteration < 0:
            return "nothing yet: no iteration has begun"
        return f"not computed yet in iteration {activation.iteration}"

    def __deepcopy__(self, _memo: dict[int, Any]) -> Frame:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return _frame_again, (*self.program.origin_to_pickle(), *self._content())

    def in_compiled(self, compiled: CompiledModel) -> Frame:
        """Return the same frame of a model that was compiled again. UsageError for another model, or other rules."""
        origin = self.program.origin
        if origin is None or origin[0] != compiled.recipe:
            raise UsageError("the snapshot is of a run of another model, or under other rules")
        return _frame_again(lambda: compiled, origin[1], *self._content())

    def _content(self) -> tuple[Any, ...]:
        """Return all but the program, without what follows from that."""
        template = enumerate(zip(self.values, self.program.template, strict=True))
        values = {slot: value for slot, (value, constant) in template if value is not constant}
        activation = self.activation
        run: dict[str, Any] | None = None
        if activation is not None:
            run = {name: getattr(activation, name) for name in Activation.__slots__ if name not in _COMPILED}
        is_specialised = activation is not None and activation.code is not None
        return values, self.pc, self.phase, run, is_specialised

    def __repr__(self) -> str:
        return f"<Frame of {self.program.name}: {self.phase.name}, operation {self.pc}>"

    def copy(self) -> Frame:
        """Return an independent copy; tensors are shared, as nothing writes to them."""
        activation = self.activation.copy() if self.activation else None
        copied = Frame(self.program, self.values.copy(), self.pc, self.phase, activation)
        copied.code = self.code
        return copied


Frames = Sequence[Frame]
"""A stack of frames, the model's own graph first."""


class Constants(Record):
    """The constants of one program that have other values than in the model, and its code without the old ones.

    `values` are those of slots, of what was computed from the constants beforehand too.
    """

    program: Program
    values: Mapping[int, Value]
    code: tuple[Step, ...]

    @classmethod
    def of(cls, program: Program, values: Mapping[int, Value]) -> Constants:
        """Return the values with the code that reads them."""
        return cls(program, values, program.unsettled(values))

    def __reduce__(self) -> tuple[Any, ...]:
        return Constants.of, (self.program, dict(self.values))

    def in_compiled(self, compiled: CompiledModel) -> Constants:
        """Return the same of a model that was compiled again."""
        return Constants.of(compiled.programs[self.program.origin_to_pickle()[1]], self.values)


_COMPILED = ("code", "operation", "plan")
"""Fields of an activation that belong to the compiled model and are found there again."""


def _frame_again(
    recipe: Callable[[], CompiledModel],
    index: int,
    values: dict[int, Value],
    pc: int,
    phase: Phase,
    run: dict[str, Any] | None,
    is_specialised: bool,
) -> Frame:
    """Return a frame that was pickled, of the compiled model that this process has."""
    compiled, program = program_again(recipe, index)
    frame = Frame(program, list(program.template), pc, phase)
    for slot, value in values.items():
        frame.values[slot] = value
    changed = [slot for slot in values if program.template[slot] is not None]
    if changed:
        frame.code = program.unsettled(changed)
    if run is not None:
        activation = frame.activation = Activation(*host_of(compiled, program))
        for name, value in run.items():
            setattr(activation, name, value)
        if is_specialised:
            activation.code = program.specialised(frame.values, frame.code)
    return frame


class Snapshot(Record):
    """All of a machine's state at one tick; to be put back with `Machine.restore`, any number of times.

    `constants` are those that were changed.
    """

    tick: int
    frames: tuple[Frame, ...]
    states: dict[str, Any]
    outputs: tuple[Array, ...] | None
    constants: tuple[Constants, ...] = ()

    def __deepcopy__(self, _memo: dict[int, Any]) -> Snapshot:
        frames = tuple(frame.copy() for frame in self.frames)
        return Snapshot(self.tick, frames, dict(self.states), self.outputs, self.constants)

    def __repr__(self) -> str:
        where = place(list(self.frames)) if self.frames else "the end of the run"
        return f"<Snapshot at tick {self.tick}: {where}>"


class LoopRun(NamedTuple):
    """Identify one run of a loop: the loops and Ifs around it, and its id.

    `around` holds layer ids with their iterations (None: an If). All iterations of one run share this key. Another run
    of the loop, in another outer iteration, has another key.
    """

    around: tuple[tuple[int, int | None], ...]
    loop: int


def loop_run(frames: Sequence[Frame]) -> LoopRun | None:
    """Return the run of the innermost loop of a stack; None outside of every loop."""
    layers = [frame.activation for frame in frames if frame.activation is not None]
    depths = [depth for depth, one in enumerate(layers) if one.operation.layer.is_loop]
    if not depths:
        return None
    around = [(one.operation.layer.id, one.iteration if one.operation.layer.is_loop else None) for one in layers]
    return LoopRun(tuple(around[: depths[-1]]), around[depths[-1]][0])


def place(frames: Sequence[Frame], operation: Operation | None = None, *, iterations: bool = True) -> str:
    """Return the place of a run for messages: `model > Loop 'decoder' #17 > MatMul 'proj'`, or without iterations."""
    parts = ["model"]
    for frame in frames[1:]:
        layer = frame.active.operation.layer
        number = frame.active.iteration
        shown = f" #{number}" if iterations and layer.is_loop and number >= 0 else ""
        parts.append(f"{layer.type} '{layer.name}'{shown}")
    if operation is not None:
        parts.append(f"{operation.layer.type} '{operation.layer.name}'")
    return " > ".join(parts)


def error_place(frames: Sequence[Frame], operation: Operation | None, file: str) -> ErrorPlace:
    """Return the place of an error as data: the operation that failed, or else the loop that runs in these frames."""
    path = tuple(_body_place(frame, file) for frame in frames[1:])
    if operation is not None:
        failed: LayerPlace | None = _layer_place(operation.layer, file)
    else:
        failed, path = (path[-1].layer, path[:-1]) if path else (None, path)
    return ErrorPlace(file, 0 if failed is None else failed.line, failed, path)


def _body_place(frame: Frame, file: str) -> BodyPlace:
    layer, number = frame.active.operation.layer, frame.active.iteration
    role = next(body.role for body in layer.bodies if body.graph is frame.program.graph)
    return BodyPlace(_layer_place(layer, file), role, number if layer.is_loop and number >= 0 else None)


def _layer_place(layer: Layer, file: str) -> LayerPlace:
    return LayerPlace(layer.id, layer.name, layer.type, file, layer.line)


# Events of a running machine: one for each move that is asked for.


class Every(IntEnum):
    """Granularity of the events of a run, from nothing but the end to every operation."""

    END = 0
    LOOP = 1
    ITERATION = 2
    OPERATION = 3


class EventKind(IntEnum):
    """Kind of an event. The tens are the coarsest `Every` under which it is yielded."""

    FINISHED = 0
    PAUSED = 1
    STOPPED = 2
    REACHED = 3
    ENTERED = 10
    LEFT = 11
    ITERATION = 20
    OPERATION = 30
    BEGUN = 31

    def is_told(self, every: Every) -> bool:
        """Return True if a run that asks for `every` hears of it."""
        return self // 10 <= every


class Watcher(Protocol):
    """Looks on while a machine runs and may stop it; asked only about what it names, so that the rest costs nothing."""

    @property
    def stops(self) -> Mapping[int, Ints]:
        """By `id` of a program, ascending: the operations after which `after_operation` is asked.

        -1: after an iteration has got its inputs, and after a frame was opened (a loop's, without an iteration yet).
        """

    @property
    def watches_iterations(self) -> bool:
        """True if `after_iteration` is to be asked."""

    def iteration_watch(self, frame: Frame) -> Callable[[Frame], bool] | None:
        """`after_iteration` for this frame alone, as fast as may be; None where its iterations are of no interest."""

    def after_operation(self, frame: Frame, index: int) -> bool:
        """Return an operation that it named has run; whether to stop."""

    def after_iteration(self, frame: Frame) -> bool:
        """Take note of a closed iteration of a loop. Return True to stop."""


class Taps(NamedTuple):
    """Values of a straight body to be handed over after each of up to `most` iterations: (function, slot) pairs.

    `done` is called when so many were made, or fewer.
    """

    values: Sequence[tuple[Callable[[Any], object], int]]
    most: int
    done: Callable[[], None]


class RunObserver:
    """Observe loops and branches of a run as they begin, continue and end, without stopping it.

    The last frame of `stack` is the frame of the loop or branch; after the loop or branch was left, it is the outer
    frame.
    """

    def entered(self, stack: Sequence[Frame]) -> None:
        """A loop or a branch was entered."""

    def iteration_closed(self, frame: Frame) -> None:
        """An iteration of a loop was closed."""

    def taps(self, frame: Frame) -> Taps | None:
        """Return the taps for the next iterations of a fast body.

        `iteration_closed` is not called for these iterations.

        A watcher that is also an observer is not asked about iterations that its taps receive.
        """
        return None

    def loop_left(self, stack: Sequence[Frame], activation: Activation) -> None:
        """A loop was left."""

    def branch_left(self, stack: Sequence[Frame], activation: Activation) -> None:
        """A branch was left."""

    def changed(self, frame: Frame, slot: int | None) -> None:
        """Report a value of a frame's slot that was changed by hand; None: the length of its loop."""


class LoopEndObserver(RunObserver):
    """Calls a function with (stack, activation) when a loop was left."""

    def __init__(self, call: Callable[[Sequence[Frame], Activation], None]) -> None:
        self._call = call

    def loop_left(self, stack: Sequence[Frame], activation: Activation) -> None:
        """Call the function."""
        self._call(stack, activation)


class Event(NamedTuple):
    """A move of the machine, just made.

    PAUSED: a pause was asked for; STOPPED: the watcher did so; REACHED: the tick that was asked for has come.
    ENTERED and LEFT: a loop or a branch of an If; BEGUN: an iteration has got its inputs; ITERATION: it has run, its
    pieces are recorded, and whether it was the last is known; OPERATION: one operation has run.
    `tick` is the number of moves so far, the same in every replay. `frame` is where it happened: live state, to be
    looked at before the next event.
    """

    kind: EventKind
    tick: int
    frame: Frame
