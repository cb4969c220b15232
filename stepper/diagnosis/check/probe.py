"""Observe gates, additions, differences and whole numbers of loop bodies in one more run.

The probe reads values between two iterations: after the first, the last, and some in between. It recomputes a whole
number in f64, by the kernel of its operation if there is no short form. An element that is clearly beyond its type in
f64 has overflowed.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from time import perf_counter, thread_time
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct

from stepper.debug.breakpoints.breakpoints import BreakpointWatcher
from stepper.debug.overview.overview_facts import Birth, LoopFacts
from stepper.debug.overview.runs import births_watcher
from stepper.element_types import Array, is_floating
from stepper.engine.arithmetic import outside_int32
from stepper.engine.frames import EventKind, Every, Frame
from stepper.engine.machine import Machine
from stepper.engine.program import Operation, Program
from stepper.errors import StepperError

_MOST_TIMES = 4.0
"""Times as long that it may take where something else is waited for."""


class Deadline:
    """So many seconds of work from now on."""

    def __init__(self, seconds: float) -> None:
        self._work, self._wall = thread_time() + seconds, perf_counter() + _MOST_TIMES * seconds

    @property
    def left(self) -> float:
        """Return how many seconds are left; 0 or less where there are none."""
        return min(self._work - thread_time(), (self._wall - perf_counter()) / _MOST_TIMES)

    @property
    def is_over(self) -> bool:
        """True if no time is left."""
        return self.left <= 0


# Observations of the operations in the bodies of loops.


class Wrap(Struct):
    """The first iteration in which a number leaves its type, with the exact number and what becomes of it."""

    iteration: int
    exact: int | float
    becomes: int


class ZeroDivisor(Struct):
    """The first iteration in which whole numbers are divided by 0."""

    iteration: int


class IndexWrap(Struct):
    """How often an index is from the end and how often from the start, and the first one from the end."""

    from_end: int = 0
    from_start: int = 0
    iteration: int = 0
    index: int = 0


class Outside(Struct):
    """The first iteration in which an index points outside, the index, the axis, and how long that is."""

    iteration: int
    index: int
    axis: int
    size: int


class Held(Struct):
    """The first iteration in which a bound holds a whole number back, the number, and the bound."""

    iteration: int
    number: int
    bound: int


class Wide(Struct):
    """The first iteration in which a result is beyond i32, and the number that is furthest from 0."""

    iteration: int
    number: int


class Saturation(Struct):
    """In how many of the iterations that were looked at all elements of a gate were saturated."""

    looked: int = 0
    saturated: int = 0
    low: float = math.inf
    high: float = -math.inf

    def note(self, value: Array, *, saturated: bool) -> None:
        """Take note of one more iteration."""
        self.looked += 1
        self.saturated += saturated
        self.low = min(self.low, float(value.min()))
        self.high = max(self.high, float(value.max()))


class SoftmaxPeak(Saturation):
    """The same of a Softmax, which leaves nothing to all elements but one."""


class Extent(Struct):
    """In how many of the iterations that were looked at elements were normalised alone."""

    looked: int = 0
    alone: int = 0


class Absorption(Struct):
    """Since which iteration the sum is the first operand, though the second is not 0; and sizes of the second.

    `of` is the magnitude of the first operand then.
    """

    looked: int = 0
    since: int | None = None
    times: int = 0
    first: float = 0.0
    latest: float = 0.0
    of: float = 0.0


class Cancellation(Struct):
    """The iteration in which a difference is smallest beside its operands; and how often it is very small."""

    looked: int = 0
    often: int = 0
    iteration: int = 0
    operands: float = 0.0
    left: float = 0.0


_T = TypeVar("_T")


class Probed:
    """Observations of a body, of each kind by the id of the layer, or by a key that begins so."""

    def __init__(self) -> None:
        self._found: dict[type[Any], dict[Any, Any]] = defaultdict(dict)

    def of(self, kind: type[_T]) -> dict[Any, _T]:
        """Return what was seen of a kind, in the order in which it was."""
        return self._found[kind]

    def kept(self, kind: type[_T], key: Hashable) -> _T:
        """Return the observation of a key, to be added to."""
        return self.of(kind).setdefault(key, kind())


Values = list[Any]
Look = Callable[[Values, int], None]


def _first(kind: type[_T], operation: Operation, probed: Probed, see: Callable[[Values, int], _T | None]) -> Look:
    """Return what looks at an operation until something is seen."""
    key, found = operation.layer.id, probed.of(kind)

    def look(values: Values, iteration: int) -> None:
        if key not in found and (seen := see(values, iteration)) is not None:
            found[key] = seen

    return look


# Whole numbers: results beyond their type, divisions by 0, wrong elements.


_LARGE = 1_000_000
_MOST_TRIED = 16
_EXACT: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "Add": operator.add,
    "Subtract": operator.sub,
    "Multiply": operator.mul,
}  # fmt: skip
_OF_ONE = ("CumSum", "ReduceL1", "ReduceProd", "ReduceSum")
"""Operations whose numbers come from the first input alone; the other inputs are axes."""
_OF_ALL = ("Abs", "MatMul", "Negative", "Power")
_DIVISIONS = ("Divide", "FloorMod", "Mod")


def look_at(operation: Operation, constants: frozenset[int], found: Probed) -> Look | None:
    """Return what looks at an operation after each iteration; None for one that can lose nothing so."""
    layer, inputs = operation.layer, len(operation.inputs)
    declared = layer.outputs[0].element_type if layer.outputs else None
    if declared is None or operation.plans or operation.function is None:
        return None
    if layer.type == "Gather" and inputs == 3 and operation.inputs[1] not in constants:
        return _index(operation, found)
    if layer.type == "OneHot" and operation.inputs[0] not in constants:
        return _class(operation, found)
    if declared.dtype.kind not in "iu":
        return None
    if layer.type in ("Minimum", "Clamp"):
        return _bound(operation, constants, found)
    if layer.type in _DIVISIONS and inputs == 2:
        slot = operation.inputs[1]
        return _first(
            ZeroDivisor,
            operation,
            found,
            lambda values, iteration: None if np.asarray(values[slot]).all() else ZeroDivisor(iteration),
        )
    if layer.type == "Convert" and inputs == 1:
        return _conversion(operation, declared.dtype, found)
    if (layer.type in _EXACT and inputs == 2) or layer.type in (*_OF_ONE, *_OF_ALL):
        return _computed(operation, declared.dtype, found)
    return None


def look_at_width(operation: Operation, found: Probed) -> Look | None:
    """Return what looks for results beyond i32 after each iteration; None for an operation that computes none.

    Movements are not looked at, and the ends of the type are no results: they stand for no limit.
    """
    layer = operation.layer
    computes = bool(operation.plans) or layer.type in (*_EXACT, *_OF_ONE, *_OF_ALL, *_DIVISIONS, "Convert")
    slots = [
        slot
        for slot, port in zip(operation.outputs, layer.outputs, strict=False)
        if slot >= 0 and port.element_type is not None and port.element_type.name in ("i64", "u64", "u32")
    ]
    if not computes or not slots:
        return None

    def see(values: Values, iteration: int) -> Wide | None:
        for slot in slots:
            value = np.asarray(values[slot])
            if value.size <= _LARGE and outside_int32(value):
                ends, number = np.iinfo(value.dtype), max((int(value.min()), int(value.max())), key=abs)
                if ends.min < number < ends.max:
                    return Wide(iteration, number)
        return None

    return _first(Wide, operation, found, see)


_NEARLY = 1 - 1e-12
"""Share of a bound that f64 may round to it; the exact number decides then."""


def _computed(operation: Operation, dtype: np.dtype[Any], found: Probed) -> Look:
    kind, slots, out = operation.layer.type, operation.inputs, operation.outputs[0]
    exact = _EXACT.get(kind)
    function: Callable[..., Any] | None = exact or operation.function
    share = 1.0 if exact is None else _NEARLY
    low, high = float(np.iinfo(dtype).min) * share, float(np.iinfo(dtype).max) * share
    assert function is not None

    def see(values: Values, iteration: int) -> Wrap | None:
        given = [np.asarray(values[slot]) for slot in slots]
        if any(not 0 < one.size <= _LARGE for one in given):
            return None
        with np.errstate(all="ignore"):
            wide = [one if index and kind in _OF_ONE else one.astype(np.float64) for index, one in enumerate(given)]
            about = np.asarray(function(*wide))
        result = np.asarray(values[out])
        if about.shape != result.shape or about.dtype != np.float64:
            return None

        def number(place: tuple[int, ...]) -> Any:
            if exact is None:
                return about[place].item()
            return exact(*(int(np.broadcast_to(one, about.shape)[place]) for one in given))

        return _wrapped(iteration, (about > high) | (about < low), result, number)

    return _first(Wrap, operation, found, see)


def _wrapped(
    iteration: int, beyond: Array, result: Array, number: Callable[[tuple[int, ...]], int | float]
) -> Wrap | None:
    """Return the first element of a result that is another number than the one that it should be."""
    for place in map(tuple, np.argwhere(beyond)[:_MOST_TRIED].tolist()):
        exact, becomes = number(place), int(result[place])
        if math.isfinite(exact):
            exact = int(exact)
        if exact != becomes:
            return Wrap(iteration, exact, becomes)
    return None


def _conversion(operation: Operation, dtype: np.dtype[Any], found: Probed) -> Look:
    slot, out = operation.inputs[0], operation.outputs[0]
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)

    def see(values: Values, iteration: int) -> Wrap | None:
        x: Any = np.asarray(values[slot])
        if not 0 < x.size <= _LARGE or not (is_floating(x.dtype) or x.dtype.kind in "iu"):
            return None
        if is_floating(x.dtype):
            x = np.trunc(x.astype(np.float64))
            beyond = ~((x >= least) & (x < most + 1.0))
        else:
            beyond = (x < least) | (x > most)
        return _wrapped(iteration, beyond, np.asarray(values[out]), lambda place: x[place].item())

    return _first(Wrap, operation, found, see)


def _bound(operation: Operation, constants: frozenset[int], probed: Probed) -> Look:
    """Look for whole numbers above a bound: the other input of a Minimum, or the most of a Clamp."""
    slots, out = [slot for slot in operation.inputs if slot not in constants], operation.outputs[0]

    def see(values: Values, iteration: int) -> Held | None:
        given, made = np.asarray(values[slots[0]]), np.asarray(values[out])
        if not 0 < given.size <= _LARGE or int(given.max()) <= int(made.max()):
            return None
        return Held(iteration, int(given.max()), int(made.max()))

    return _first(Held, operation, probed, see if len(slots) == 1 else lambda _values, _iteration: None)


def _class(operation: Operation, probed: Probed) -> Look:
    """Look for indices of a OneHot from its depth on; what is below 0 is mostly no class on purpose."""
    indices, depth, key = operation.inputs[0], operation.inputs[1], operation.layer.id
    axis = int(operation.layer.attributes.get("axis", "-1"))
    outside = probed.of(Outside)

    def look(values: Values, iteration: int) -> None:
        index, size = np.asarray(values[indices]), int(np.reshape(values[depth], -1)[0])
        if index.size and index.size <= _LARGE and int(index.max()) >= size:
            outside.setdefault(key, Outside(iteration, int(index.max()), axis, size))

    return look


def _index(operation: Operation, probed: Probed) -> Look:
    data, slot, axes = operation.inputs
    key = operation.layer.id
    found, outside = probed.kept(IndexWrap, key), probed.of(Outside)

    def look(values: Values, iteration: int) -> None:
        index, axis = np.asarray(values[slot]), np.asarray(values[axes])
        if not index.size or index.size > _LARGE or index.dtype.kind not in "iu" or axis.size != 1:
            return
        least, most, along = int(index.min()), int(index.max()), int(axis.reshape(-1)[0])
        size = np.shape(values[data])[along]
        if most >= size or least < -size:
            outside.setdefault(key, Outside(iteration, most if most >= size else least, along, size))
        found.from_start += most >= 0
        if least < 0:
            found.from_end += 1
            if found.from_end == 1:
                found.iteration, found.index = iteration, least

    return look


# One more run.


_EDGE = 16
"""Iterations that are looked at from the beginning and from the end; and as many between."""
_MOST_LOOKS = 512
"""Looks at one body; an inner loop runs often."""
_TICKS = 2**13
"""Moves of the run between two looks at the deadline."""
_MOST_ITERATIONS = 10_000
_NEAR = 1e-6
_MASKED = 1e4
"""A score that is so much below the largest is masked."""
_CELLS: Final[Mapping[str, tuple[str, ...]]] = {
    "LSTMCell": ("forget", "input", "cell", "output"),
    "GRUCell": ("update", "reset"),
}  # fmt: skip
"""Gates of cells in the order of their weights, as far as they follow from one product."""
_FAR = -math.log(_NEAR)
"""Arguments from which on a sigmoid is as near to 0 or 1 as that."""


class BodyValues(NamedTuple):
    """All values of a body after an iteration."""

    program: Program
    iteration: int
    values: tuple[Any, ...]


LoopPlace = tuple[str, int, int]
"""Loop of a file: the path to its body in words, its line, and its id, for a line may have several loops."""


def place_of(facts: LoopFacts) -> LoopPlace:
    """Return which loop of the file the facts are of."""
    return facts.path, facts.layer.line, facts.layer.id


class _Meters(NamedTuple):
    place: LoopPlace
    sampled: tuple[Look, ...]
    always: tuple[Look, ...]


class Probe:
    """A watcher that looks at the bodies of loops and stops nothing but at its deadline."""

    watches_iterations = True

    def __init__(
        self,
        loops: tuple[LoopFacts, ...],
        deadline: Deadline,
        *,
        measures: bool,
        births: BreakpointWatcher | None = None,
    ) -> None:
        self._deadline, self._measures, self._births = deadline, measures, births
        self.stops: Mapping[int, tuple[int, ...]] = {} if births is None else births.stops
        self.is_whole = False
        """True once the run has come to its end."""
        self.outputs: tuple[Array, ...] | None = None
        self._lengths = {place_of(facts): facts.most for facts in loops}
        self.found: dict[LoopPlace, Probed] = {}
        self._meters: dict[int, _Meters] = {}
        self._looks: dict[int, int] = {}
        self.bodies: dict[tuple[LoopPlace, int], BodyValues] = {}
        """By loop and iteration, of the first run of each loop."""
        self.slice_counts: dict[LoopPlace, int] = {}
        """How many slices the latest run of a loop had, where it had any."""

    def iteration_watch(self, frame: Frame) -> Callable[[Frame], bool] | None:
        """Look at some of the iterations of a loop's run."""
        activation, key = frame.activation, id(frame.program)
        assert activation is not None
        meters = self._meters.get(key)
        if meters is None:
            layer = activation.operation.layer
            place = frame.program.name, layer.line, layer.id
            found = self.found.setdefault(place, Probed())
            looks = _looks(frame.program, found) if self._measures else ((), ())
            meters = self._meters[key] = _Meters(place, *looks)
        look_for_births = None if self._births is None else self._births.iteration_watch(frame)
        if self._looks.setdefault(key, 0) >= _MOST_LOOKS:
            return look_for_births
        place, sampled, always = meters
        if activation.slices:
            self.slice_counts[place] = activation.slice_count
        length = self._lengths.get(place, 0)
        step, end = max(length // _EDGE, 1), length - _EDGE

        def watch(frame: Frame) -> bool:
            iteration = frame.active.iteration
            if look_for_births is not None:
                look_for_births(frame)
            if iteration < _MOST_ITERATIONS:
                for look in always:
                    look(frame.values, iteration)
            if iteration < _EDGE or iteration >= end or not iteration % step:
                self._looks[key] += 1
                self.bodies.setdefault((place, iteration), BodyValues(frame.program, iteration, tuple(frame.values)))
                for look in sampled:
                    look(frame.values, iteration)
                return self._deadline.is_over
            return False

        return watch

    def after_iteration(self, frame: Frame) -> bool:
        """Look at an iteration of a loop with nested graphs."""
        watch = self.iteration_watch(frame)
        return watch is not None and watch(frame)

    def after_operation(self, frame: Frame, index: int) -> bool:
        """Look for births alone."""
        return self._births is not None and self._births.after_operation(frame, index)


def probe_run(
    machine: Machine,
    loops: tuple[LoopFacts, ...],
    deadline: Deadline,
    *,
    measures: bool = True,
    births: list[Birth] | None = None,
) -> Probe:
    """Run a machine to its end or a deadline and return the probe.

    `measures`: also measure operations.

    The first NaN and Inf are added to the list, if it is given.
    """
    watcher = None if births is None else births_watcher(machine, births)
    probe = Probe(loops, deadline, measures=measures, births=watcher)
    machine.watcher = probe
    if watcher is not None:
        watcher.forward()
    with suppress(StepperError):  # it is known already
        while not deadline.is_over and machine.advance(Every.END, machine.tick + _TICKS).kind is EventKind.REACHED:
            pass
        probe.is_whole, probe.outputs = machine.finished, machine.outputs
    if watcher is not None and not machine.finished:
        watcher.examine()
    return probe


def _looks(program: Program, found: Probed) -> tuple[tuple[Look, ...], tuple[Look, ...]]:
    sampled, always = list[Look](), list[Look]()
    constants = frozenset(slot for slot, value in enumerate(program.template) if value is not None)
    for one in program.operations:
        kind, inputs = one.layer.type, len(one.inputs)
        declared = one.layer.outputs[0].element_type if one.layer.outputs else None
        always += filter(None, (look_at_width(one, found), look_at(one, constants, found)))
        if declared is None or one.plans:
            continue
        if kind in _CELLS and inputs == (6 if kind == "LSTMCell" else 5):
            sampled.append(_cell(one, found))
        elif is_floating(declared.dtype):
            if kind in ("Sigmoid", "Tanh", "HardSigmoid"):
                sampled.append(_gate(one, found))
            elif kind in ("Softmax", "LogSoftmax") and inputs == 1:
                sampled += [_choice(one, found), _extent(one, found)]
            elif kind == "MVN" and inputs == 2:
                sampled.append(_extent(one, found))
            elif kind in ("Add", "Subtract") and inputs == 2:
                sampled.append(_sum(one, found))
    return tuple(sampled), tuple(always)


def _gate(operation: Operation, probed: Probed) -> Look:
    slot, low = operation.outputs[0], -1.0 if operation.layer.type == "Tanh" else 0.0
    found = probed.kept(Saturation, (operation.layer.id, ""))

    def look(values: Values, _iteration: int) -> None:
        value = np.asarray(values[slot])
        if value.size and value.dtype.kind == "f":
            found.note(value, saturated=bool(((value <= low + _NEAR) | (value >= 1 - _NEAR)).all()))

    return look


def _choice(operation: Operation, probed: Probed) -> Look:
    """Look at a Softmax that has the choice of several elements: those that a mask leaves."""
    slot, out = operation.inputs[0], operation.outputs[0]
    axis, found = int(operation.layer.attributes.get("axis", "1")), probed.kept(SoftmaxPeak, operation.layer.id)

    def look(values: Values, _iteration: int) -> None:
        x, given = np.asarray(values[slot]), np.asarray(values[out])
        if not x.size or x.size > _LARGE or x.dtype.kind != "f" or not -x.ndim <= axis < x.ndim:
            return
        largest = x.max(axis=axis, keepdims=True)
        with np.errstate(all="ignore"):
            choices = (np.isfinite(x) & (x > largest - _MASKED)).sum(axis=axis) > 1
        if operation.layer.type == "LogSoftmax":
            given = np.exp(given)
        highest = given.max(axis=axis)[choices]
        if highest.size:
            found.note(highest, saturated=bool((highest >= 1 - _NEAR).all()))

    return look


def _extent(operation: Operation, probed: Probed) -> Look:
    """Look at how many elements a Softmax or an MVN normalises together."""
    slot, axes = operation.inputs[0], operation.inputs[1:]
    axis, found = int(operation.layer.attributes.get("axis", "1")), probed.kept(Extent, operation.layer.id)

    def look(values: Values, _iteration: int) -> None:
        shape = np.shape(values[slot])
        along = np.asarray(values[axes[0]]).reshape(-1) if axes else [axis]
        if all(-len(shape) <= one < len(shape) for one in along):
            found.looked += 1
            found.alone += math.prod(shape[one] for one in along) == 1

    return look


def _cell(operation: Operation, found: Probed) -> Look:
    names, slots = _CELLS[operation.layer.type], operation.inputs
    lstm = operation.layer.type == "LSTMCell"
    gates = {name: found.kept(Saturation, (operation.layer.id, name)) for name in names if name != "cell"}

    def look(values: Values, _iteration: int) -> None:
        x, h = (np.asarray(values[slot]) for slot in slots[:2])
        w, r, b = (np.asarray(values[slot]) for slot in slots[3 if lstm else 2 :][:3])
        parts = w.shape[0] // h.shape[-1] if h.shape[-1] else 0
        if x.dtype.kind != "f" or parts != (4 if lstm else 3) or b.size < w.shape[0]:
            return
        argument = x @ w.T + h @ r.T + b.reshape(-1)[: w.shape[0]]
        for name, part in zip(names, np.split(argument, parts, axis=-1), strict=False):
            if name in gates:
                with np.errstate(over="ignore"):
                    gates[name].note(1 / (1 + np.exp(-part)), saturated=bool((np.abs(part) >= _FAR).all()))

    return look


def _sum(operation: Operation, found: Probed) -> Look:
    (a, b), out, key = operation.inputs, operation.outputs[0], operation.layer.id
    kept = [found.kept(Absorption, (key, index)) for index in (0, 1)]
    difference = found.kept(Cancellation, key)
    is_difference = operation.layer.type == "Subtract"

    def look(values: Values, iteration: int) -> None:
        x, y, result = (np.asarray(values[slot]) for slot in (a, b, out))
        if not result.size or result.dtype.kind != "f" or not x.size or not y.size:
            return
        _note_absorbed(kept[0], x, y, result, iteration)
        if not is_difference:
            _note_absorbed(kept[1], y, x, result, iteration)
        with np.errstate(all="ignore"):
            left, size = float(np.abs(result).max()), float(min(np.abs(x).max(), np.abs(y).max()))
        difference.looked += 1
        if 0 < left <= size * 16 * np.finfo(result.dtype).eps:
            difference.often += 1
            if difference.often == 1:
                difference.iteration, difference.operands, difference.left = iteration, size, left

    return look


def _note_absorbed(found: Absorption, total: Array, added: Array, result: Array, iteration: int) -> None:
    size = float(np.abs(added).max())
    found.looked += 1
    if found.looked == 1 or not found.first:
        found.first = size
    found.latest = size
    is_absorbed = total.shape == result.shape and size > 0 and bool(np.isfinite(size))
    if is_absorbed and bool(((result == total) | (added == 0)).all()):
        if found.since is None:
            found.since, found.of = iteration, float(np.abs(total).max())
        found.times += 1
    else:
        found.since, found.times = None, 0
