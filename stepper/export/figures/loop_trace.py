"""Trace one run of one loop for a figure or table; only shown iterations stay in memory."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct

from stepper.debug.causes.cause import Verdict
from stepper.debug.causes.loop_ends import ConditionLimit, Verdicts, condition_limit, verdict_text
from stepper.debug.inspection.inspecting import inspect_loop
from stepper.debug.inspection.views import LoopView, ScanView
from stepper.debug.provenance.operation_at import body_of_frame
from stepper.engine.frames import EventKind, Every, Frame
from stepper.engine.loops import EndReason
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan, Program
from stepper.errors import ExecutionError, LimitReached, UnsupportedOperation, UsageError
from stepper.export.figures.drawn_graph import ValueSummary, summary
from stepper.export.figures.figure import BodyPath, InnerBody
from stepper.export.options import ValueDetail
from stepper.ir.lowering import unopened
from stepper.ir.model import Body, Graph, Layer, Model
from stepper.ops.operands import form_text
from stepper.recording.origin import Iterations
from stepper.records import Record
from stepper.tensors.number_text import nested_text
from stepper.wording import counted, excerpt, near_text

Numbers = tuple[int, ...]
"""The iterations of the loops around something, from the outermost inwards."""


class LoopPath(Record):
    """A TensorIterator, Loop or If: the layers round it, itself, and the graph in which it stands."""

    around: tuple[Layer, ...]
    layer: Layer
    outer: Graph

    @property
    def name(self) -> str:
        """The names of all layers that lead to it, joined by slashes."""
        return "/".join(layer.name for layer in (*self.around, self.layer))

    @property
    def address(self) -> str:
        """The names as an address of the debugger joins them."""
        return "::".join(layer.name for layer in (*self.around, self.layer))

    @property
    def body(self) -> Body:
        """The loop's body (of an If the then side)."""
        return self.layer.bodies[0]

    @property
    def title(self) -> str:
        """Such as `Loop 'decoder'`, with the layers around it."""
        return " > ".join(f"{layer.type} '{excerpt(layer.name)}'" for layer in (*self.around, self.layer))


def loops_of(model: Model) -> list[LoopPath]:
    """Return every layer with a body, outer before inner."""
    return [LoopPath(path, layer, graph) for path, graph in model.graphs() for layer in graph.layers if layer.bodies]


def find_loop(model: Model, name: str | None) -> LoopPath:
    """Return the loop of that name (or of the end of its path); without a name the only one of the outermost.

    Raises UsageError, with those that there are, where that is none or several.
    """
    places = loops_of(model)
    if not places:
        hint = f"; {said}" if (said := unopened(model)) else ""
        raise UsageError(f"this model has no TensorIterator, Loop or If; --view model draws it{hint}")
    if name is None:
        outermost = min(len(place.around) for place in places)
        found = [place for place in places if len(place.around) == outermost]
        loops = [place for place in found if place.layer.is_loop]
        found = loops or found
    else:
        found = [place for place in places if name in (place.layer.name, place.name, place.address)]
        found = found or [place for place in places if place.address.endswith(f"::{name}")]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"'{excerpt(place.address)}'" for place in (found or places)[:20])
    if not found:
        near = near_text(str(name), [one for place in places for one in (place.address, place.name)])
        are = "is" if len(places) == 1 else "are"
        raise UsageError(f"no loop is called '{name}'; {f'{near}; ' if near else ''}there {are} {listed}")
    raise UsageError(f"which loop? Name one with --loop: {listed}")


class BranchValues(Record):
    """A side of an If at its end: references to its values, by slot."""

    program: Program
    frame_values: list[Any]


class InnerActivations(Struct):
    """Count inner activations of the current iteration.

    `sides` are the sides that ran; `loops` are the iterations of each loop.
    """

    sides: dict[BodyPath, BranchValues] = {}
    loops: dict[BodyPath, int] = {}

    def note(self, left: Frame, around: list[Frame]) -> None:
        """Note that a frame was left; `around` are the frames from the iteration's own to it, outer first."""
        if any(_body(frame).runs_often for frame in around):
            return  # inside of a loop, which runs it often
        inside = (*map(_body, around), _body(left))
        activation = left.active
        if inside[-1].runs_often:
            self.loops[inside] = activation.iteration + 1
        else:
            self.sides[inside] = BranchValues(left.program, list(left.values))


def _body(frame: Frame) -> InnerBody:
    """Return the body that a frame runs."""
    return InnerBody(frame.active.operation.layer.id, body_of_frame(frame).role)


def is_idle(inside: BodyPath, ran: Mapping[BodyPath, object]) -> bool:
    """True if a body is in a side that did not run, or is one; inside of a loop that is not known."""
    for depth, body in enumerate(inside, 1):
        if body.runs_often:
            return False
        if inside[:depth] not in ran:
            return True
    return False


WHOLE = 8
"""Runs of so many iterations are shown whole if nothing else is asked for; of longer ones the first and the last."""

ELIDED = "0:3,-1"
_EVER = 10**15
_ACTIVATION = re.compile(r"@([0-9]{1,15})")


class SliceRange(Record):
    """The elements [begin, end) of `extent` along an axis that a Parameter gets."""

    axis: int
    begin: int
    end: int
    extent: int


Summaries = Mapping[tuple[int, int], ValueSummary]
"""Summaries of values, by (layer id, output)."""


class IterationTrace(Record):
    """Hold an iteration: its values, slices by Parameter id, and the condition.

    The condition is None if the loop has none. `sides` are the values of the sides of Ifs that ran, `loops` the
    iterations of inner loops.
    """

    number: int
    values: Summaries
    slices: Mapping[int, SliceRange]
    condition: bool | None
    sides: Mapping[BodyPath, Summaries]
    loops: Mapping[BodyPath, int]


class ControlInput(Record):
    """Trip count or initial condition of a Loop: the index of its input, which of the two, the value and its words."""

    input: int
    name: str
    value: bool | int
    text: str


class LoopTrace(Record):
    """Hold one activation of a loop: its iteration count, kept iterations, and last state.

    `file` is the file of the model. `view` is the debugger's view of the loop after its last iteration (None: it ran
    none). `around` are the iterations of the loops around it. `ended` says in a sentence why it ended, or where the run
    `failed`. `controls` are trip count and initial condition if they are connected. `condition_limit` is the limit that
    its condition implies. For a run without iterations, `came` and `left` are its inputs and outputs by index.
    `verdict` is the verdict of the condition that ended the loop or kept it from beginning; `decided` is this verdict
    in words. `reason` is the end in few words.
    """

    loop: LoopPath
    file: str
    around: Numbers
    count: int
    iterations: tuple[IterationTrace, ...]
    view: LoopView | None
    ended: str
    by_condition: bool
    failed: bool = False
    controls: tuple[ControlInput, ...] = ()
    condition_limit: ConditionLimit | None = None
    came: Mapping[int, str] = {}
    left: Mapping[int, str] = {}
    verdict: Verdict | None = None
    decided: str = ""
    reason: str = ""

    def input_form(self, input: int) -> str:
        """Return type and shape of an input of the loop in the run; empty where they are not known."""
        views = (one.outer for one in (() if self.view is None else self.view.inputs) if one.input == input)
        return next((form_text(view.array) for view in views if view is not None and view.array is not None), "")

    def scan(self, output: int | None) -> ScanView | None:
        """Return what the debugger shows of a concatenated output."""
        scans = () if self.view is None else self.view.scans
        return next((scan for scan in scans if scan.output == output), None)

    @property
    def left_out(self) -> list[tuple[int, int]]:
        """The ranges [begin, end) of iterations that are not shown."""
        numbers = [-1, *(iteration.number for iteration in self.iterations), self.count]
        return [(a + 1, b) for a, b in pairwise(numbers) if b > a + 1]


class _Raw(Record):
    """Hold an iteration that may be shown later: references to its values and earlier values."""

    number: int
    frame_values: list[Any]
    before: list[Any] | None
    inner: InnerActivations


def split_activation(name: str | None) -> tuple[str | None, Numbers]:
    """Split `passes@1::pairs` (the run of `pairs` in iteration 1 of `passes`) into plain name and iterations."""
    if name is None:
        return None, ()
    return _ACTIVATION.sub("", name), tuple(int(number) for number in _ACTIVATION.findall(name))


class Tracer:
    """Steps a machine through one activation of a loop.

    `iterations` None keeps short runs whole, of longer ones the first and the last. UsageError where more than `most`
    iterations are chosen (None: any number may be).
    """

    def __init__(
        self,
        machine: Machine,
        loop: LoopPath,
        around: Numbers = (),
        iterations: Iterations | None = None,
        values: ValueDetail = ValueDetail.NONE,
        most: int | None = None,
    ) -> None:
        if not loop.layer.is_loop:
            raise UsageError(f"{loop.title} has no iterations; draw it with --view rolled")
        loops_around = sum(layer.is_loop for layer in loop.around)
        if len(around) > loops_around:
            raise UsageError(f"{loop.title} is inside of {loops_around} loops, but {len(around)} iterations are named")
        self.machine, self.loop, self.around = machine, loop, around
        self.wanted = iterations
        self.values, self.most = values, most
        self._entered: Frame | None = None
        self._around: Numbers = ()
        self._controls: tuple[ControlInput, ...] = ()
        self._done = 0
        self._limit: ConditionLimit | None = None
        self._outer: Frame | None = None
        self._came: Mapping[int, str] = {}
        self._kept: list[IterationTrace] = []
        self._open: deque[_Raw] = deque(maxlen=max(1, iterations.tail if iterations is not None else 1))

    def trace(self) -> LoopTrace:
        """Run to the end of the activation; a run that fails in it gives the trace up to there.

        UsageError where the run never enters the loop; else the run's own errors.
        """
        try:
            return self._walk()
        except (ExecutionError, LimitReached, UnsupportedOperation) as error:
            entered = self._entered
            if entered is None or not self._done:
                raise
            view = inspect_loop(self.machine, self._depth(entered))
            return self._finished(view, entered, f"stopped in iteration {self._done}: {str(error).splitlines()[0]}")

    def _walk(self) -> LoopTrace:
        before, inner = None, InnerActivations()
        for event in self.machine.run(Every.ITERATION):
            entered = self._entered
            if entered is not None and all(entered is not frame for frame in self.machine.stack):
                return self._finished(None, entered)  # it left without an iteration
            if entered is not None and event.kind is EventKind.LEFT:
                inner.note(event.frame, self.machine.stack[self._depth(entered) + 1 :])
            frame, activation = event.frame, event.frame.activation
            if activation is None or activation.operation.layer is not self.loop.layer:
                continue
            if event.kind is EventKind.ENTERED and entered is None:
                here = self._iterations_around()
                if here[: len(self.around)] == self.around:
                    self._entered, self._around = frame, here
                    self._outer = self.machine.stack[-2]
                    self._controls = tuple(_controls(frame, self._outer))
                    self._came = _told(self._outer, activation.operation.inputs)
            elif event.kind is EventKind.ITERATION and frame is entered:
                raw = _Raw(activation.iteration, list(frame.values), before, inner)
                before, inner, self._done = raw.frame_values, InnerActivations(), raw.number + 1
                self._limit = condition_limit(frame) if raw.number == 0 else self._limit
                self._keep(raw, frame)
                if activation.ended is not None:
                    return self._finished(inspect_loop(self.machine), frame)
        where = f" in iteration {', '.join(map(str, self.around))} of what is around it" if self.around else ""
        raise UsageError(f"the run never enters {self.loop.title}{where}")

    def _depth(self, entered: Frame) -> int:
        return next(index for index, frame in enumerate(self.machine.stack) if frame is entered)

    def _iterations_around(self) -> Numbers:
        loops = [frame.activation for frame in self.machine.stack[1:-1] if frame.activation is not None]
        return tuple(activation.iteration for activation in loops if isinstance(activation.plan, LoopPlan))

    def _keep(self, raw: _Raw, frame: Frame) -> None:
        sure = self.wanted.includes(raw.number, _EVER) if self.wanted is not None else raw.number < WHOLE
        if sure:
            if self.most is not None and len(self._kept) >= self.most:
                raise UsageError(
                    f"more than {self.most:,} iterations are chosen, and so many are drawn step by step at most; "
                    "choose fewer, such as --iters 0:20,-1"
                )
            self._kept.append(self._summarised(raw, frame))
        else:
            self._open.append(raw)

    def _finished(self, view: LoopView | None, frame: Frame, failure: str = "") -> LoopTrace:
        kept = [*self._kept, *(self._summarised(raw, frame) for raw in self._open)]
        activation, count = frame.activation, self._done
        assert activation is not None
        chosen = self.wanted or Iterations.parse("" if count <= WHOLE else ELIDED)
        ended = view.trip.sentence if view is not None else f"no iteration ran: {activation.ended}"
        verdict = None
        if not failure:
            verdict = self._initial_verdict(frame) if view is None else view.trip.verdict
        decided = "" if verdict is None else verdict_text(verdict, floats=self.values is not ValueDetail.SHAPE)
        if decided:
            begun = f"ended after {counted(count, 'iteration')}" if count else "no iteration ran"
            ended = f"{begun}: {decided}"
        return LoopTrace(
            loop=self.loop,
            file=str(self.machine.compiled.model.path),
            around=self._around,
            count=count,
            iterations=tuple(item for item in kept if chosen.includes(item.number, count)),
            view=view,
            ended=failure or ended,
            by_condition=activation.ended is EndReason.CONDITION,
            failed=bool(failure),
            controls=self._controls,
            condition_limit=self._limit,
            came={} if count else self._came,
            left={} if count or self._outer is None else _told(self._outer, activation.operation.outputs),
            verdict=verdict,
            decided=decided,
            reason="" if failure else str(activation.ended),
        )

    def _initial_verdict(self, frame: Frame) -> Verdict | None:
        """Return the verdict of the condition that kept a loop from beginning; None if none did."""
        activation, outer = frame.activation, self._outer
        if activation is None or outer is None or activation.ended is not EndReason.INITIAL_CONDITION:
            return None
        plan = activation.plan
        assert isinstance(plan, LoopPlan) and plan.condition is not None
        file = str(self.machine.compiled.model.path)
        return Verdicts(outer, file, {}).of(activation.operation.inputs[plan.condition])

    def _summarised(self, raw: _Raw, frame: Frame) -> IterationTrace:
        activation, program = frame.activation, frame.program
        assert activation is not None and isinstance(activation.plan, LoopPlan)
        slices = {
            program.parameter(taken.parameter).id: SliceRange(
                taken.walk.axis, *taken.walk.range(raw.number), taken.source.shape[taken.walk.axis]
            )
            for taken in activation.slices
        }
        condition = activation.plan.condition_result
        truth = None if condition is None else bool(np.all(raw.frame_values[condition]))
        return IterationTrace(
            number=raw.number,
            values=self._summaries(program, raw.frame_values, raw.before),
            slices=slices,
            condition=truth,
            sides={key: self._summaries(side.program, side.frame_values) for key, side in raw.inner.sides.items()},
            loops=raw.inner.loops,
        )

    def _summaries(self, program: Program, now: list[Any], before: list[Any] | None = None) -> Summaries:
        return {
            key: summary(now[slot], None if before is None else before[slot], self.values)
            for key, slot in program.slots.items()
            if now[slot] is not None
        }


def _told(frame: Frame, slots: Sequence[int]) -> dict[int, str]:
    """Return type and shape of the values in slots, by their place, and the number of one that is alone."""
    found = {}
    for index, slot in enumerate(slots):
        value = frame.values[slot]
        if value is not None:
            number = f" = {nested_text(np.asarray(value))}" if np.asarray(value).size == 1 else ""
            found[index] = f"{form_text(value)}{number}"
    return found


def _controls(frame: Frame, outer: Frame) -> Iterator[ControlInput]:
    """Yield trip count and initial condition of a loop that was just entered."""
    activation = frame.active
    plan = activation.plan
    if not isinstance(plan, LoopPlan):
        return
    for index, name in ((plan.trip_count, "trip count"), (plan.condition, "initial condition")):
        value = None if index is None else outer.values[activation.operation.inputs[index]]
        if index is not None and value is not None:
            single = np.asarray(value).reshape(-1)[0]
            text = f"{name} {nested_text(np.asarray(single))}"
            if index == plan.trip_count:  # the values that converters write for no limit are named
                text += ": no limit" if activation.limit is None else ""
                text = f"{name}: the largest i64, no limit" if single == np.iinfo(np.int64).max else text
            yield ControlInput(index, name, single.item(), text)
