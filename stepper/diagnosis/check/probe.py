"""One more run that looks at what the bodies of loops compute: gates, additions, differences, whole numbers.

Values are looked at between two iterations, in some of them: the first and the last, and some between. A whole number
is computed once more in f64, by the kernel of its operation where that has no short form; an element that is clearly
beyond its type there has left it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from time import perf_counter, thread_time
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.debug.breakpoints.watcher import BreakpointWatcher
from stepper.debug.overview.births import births_watcher
from stepper.debug.overview.facts import Birth, LoopFacts
from stepper.element_types import Array, is_floating
from stepper.engine.arithmetic import outside_int32
from stepper.engine.frames import Every, Frame
from stepper.engine.machine import Machine
from stepper.engine.program import Operation, Program
from stepper.errors import StepperError

# Observations of whole numbers in the bodies of loops: results beyond their type, divisions by 0, wrong elements.


_LARGE: Final = 1_000_000
_MOST_TRIED: Final = 16
_EXACT: Final[Mapping[str, Callable[[Any, Any], Any]]] = MappingProxyType({
    "Add": operator.add,
    "Subtract": operator.sub,
    "Multiply": operator.mul,
})  # fmt: skip
_OF_ONE: Final = ("CumSum", "ReduceL1", "ReduceProd", "ReduceSum")
"""Operations of which the first input alone holds the numbers; the others are axes."""
_OF_ALL: Final = ("Abs", "MatMul", "Negative", "Power")
_DIVISIONS: Final = ("Divide", "FloorMod", "Mod")


class Wrap(Struct):
    """The first iteration in which a number leaves its type, with the exact number and what becomes of it."""

    iteration: int
    exact: int | float
    becomes: int


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


class Wide(Struct):
    """The first iteration in which a result is beyond i32, and the number that is furthest from 0."""

    iteration: int
    number: int


class WholeNumbers(Struct):
    """Observations of a body by the id of the layer; of divisions by 0 the first iteration."""

    wraps: dict[int, Wrap] = {}
    by_zero: dict[int, int] = {}
    indices: dict[int, IndexWrap] = {}
    outside: dict[int, Outside] = {}
    wide: dict[int, Wide] = {}


Look = Callable[[list[Any], int], None]


def look_at(operation: Operation, constants: frozenset[int], found: WholeNumbers) -> Look | None:
    """Return what looks at an operation after each iteration; None for one that can lose nothing so."""
    layer = operation.layer
    declared = layer.outputs[0].element_type if layer.outputs else None
    if declared is None or operation.plans or operation.function is None:
        return None
    dtype, inputs = declared.dtype, len(operation.inputs)
    if layer.type == "Gather" and inputs == 3 and operation.inputs[1] not in constants:
        return _index(operation, found)
    if dtype.kind not in "iu":
        return None
    if layer.type in _EXACT and inputs == 2:
        return _sum_or_product(operation, dtype, found.wraps)
    if layer.type == "Convert" and inputs == 1:
        return _conversion(operation, dtype, found.wraps)
    if layer.type in _DIVISIONS and inputs == 2:
        return _division(operation, found.by_zero)
    if layer.type in _OF_ONE or layer.type in _OF_ALL:
        return _computed(operation, dtype, found.wraps)
    return None


def look_at_width(operation: Operation, found: WholeNumbers) -> Look | None:
    """Return what looks for results beyond i32 after each iteration; None for an operation that computes none.

    Movements are not looked at, and the ends of the type are no results: they stand for no limit.
    """
    layer, key = operation.layer, operation.layer.id
    computes = bool(operation.plans) or layer.type in (*_EXACT, *_OF_ONE, *_OF_ALL, *_DIVISIONS, "Convert")
    slots = [
        slot
        for slot, port in zip(operation.outputs, layer.outputs, strict=False)
        if slot >= 0 and port.element_type is not None and port.element_type.name in ("i64", "u64", "u32")
    ]
    if not computes or not slots:
        return None

    def look(values: list[Any], iteration: int) -> None:
        if key in found.wide:
            return
        for slot in slots:
            value = np.asarray(values[slot])
            if value.size > _LARGE or not outside_int32(value):
                continue
            ends = np.iinfo(value.dtype)
            number = max((int(value.min()), int(value.max())), key=abs)
            if ends.min < number < ends.max:
                found.wide[key] = Wide(iteration, number)

    return look


def _sum_or_product(operation: Operation, dtype: np.dtype[Any], wraps: dict[int, Wrap]) -> Look:
    a, b = operation.inputs
    out, exact, key = operation.outputs[0], _EXACT[operation.layer.type], operation.layer.id
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    low, high = _surely(least), _surely(most)

    def look(values: list[Any], iteration: int) -> None:
        if key in wraps:
            return
        x, y = np.asarray(values[a]), np.asarray(values[b])
        if max(x.size, y.size) > _LARGE or not x.size or not y.size:
            return
        about = exact(x.astype(np.float64), y.astype(np.float64))
        beyond = (about >= high) | (about <= low)
        if not beyond.any():
            return
        left, right = np.broadcast_to(x, about.shape), np.broadcast_to(y, about.shape)
        result = np.broadcast_to(np.asarray(values[out]), about.shape)
        for place in map(tuple, np.argwhere(beyond)[:_MOST_TRIED].tolist()):
            number = int(exact(int(left[place]), int(right[place])))
            if not least <= number <= most:
                wraps[key] = Wrap(iteration, number, int(result[place]))
                return

    return look


def _surely(bound: int) -> float:
    """Return a bound in f64, nearer to 0 by what f64 may round; the exact number decides then."""
    return float(bound) * (1 - 1e-12)


def _computed(operation: Operation, dtype: np.dtype[Any], wraps: dict[int, Wrap]) -> Look:
    function, slots, out = operation.function, operation.inputs, operation.outputs[0]
    key, first_alone = operation.layer.id, operation.layer.type in _OF_ONE
    low, high = float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)
    assert function is not None

    def look(values: list[Any], iteration: int) -> None:
        if key in wraps:
            return
        given = [np.asarray(values[slot]) for slot in slots]
        if any(one.size > _LARGE or not one.size for one in given):
            return
        with np.errstate(all="ignore"):
            wide = [one if index and first_alone else one.astype(np.float64) for index, one in enumerate(given)]
            about = np.asarray(function(*wide))
        result = np.asarray(values[out])
        if about.shape == result.shape and about.dtype == np.float64:
            _note_beyond(wraps, key, iteration, (about, result), (about > high) | (about < low))

    return look


def _note_beyond(wraps: dict[int, Wrap], key: int, iteration: int, of: tuple[Array, Array], beyond: Array) -> None:
    """Note the first element of a result that is another number than the one that it should be."""
    should, result = of
    for place in map(tuple, np.argwhere(beyond)[:_MOST_TRIED].tolist()):
        exact, becomes = should[place].item(), int(result[place])
        if isinstance(exact, float) and np.isfinite(exact):
            exact = int(exact)
        if exact != becomes:
            wraps[key] = Wrap(iteration, exact, becomes)
            return


def _conversion(operation: Operation, dtype: np.dtype[Any], wraps: dict[int, Wrap]) -> Look:
    slot, out, key = operation.inputs[0], operation.outputs[0], operation.layer.id
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)

    def look(values: list[Any], iteration: int) -> None:
        if key in wraps:
            return
        x = np.asarray(values[slot])
        if not x.size or x.size > _LARGE:
            return
        if is_floating(x.dtype):
            number = np.trunc(x.astype(np.float64))
            beyond = ~((number >= least) & (number < most + 1.0))
        elif x.dtype.kind in "iu":
            number = x
            if int(x.min()) >= least and int(x.max()) <= most:
                return
            beyond = np.array([not least <= int(one) <= most for one in x.reshape(-1)], bool).reshape(x.shape)
        else:
            return
        if beyond.any():
            _note_beyond(wraps, key, iteration, (number, np.asarray(values[out])), beyond)

    return look


def _division(operation: Operation, by_zero: dict[int, int]) -> Look:
    slot, key = operation.inputs[1], operation.layer.id

    def look(values: list[Any], iteration: int) -> None:
        if key not in by_zero:
            divisor = np.asarray(values[slot])
            if divisor.size and not divisor.all():
                by_zero[key] = iteration

    return look


def _index(operation: Operation, whole_numbers: WholeNumbers) -> Look:
    data, slot, axes = operation.inputs
    key = operation.layer.id
    found, outside = whole_numbers.indices.setdefault(key, IndexWrap()), whole_numbers.outside

    def look(values: list[Any], iteration: int) -> None:
        index, axis = np.asarray(values[slot]), np.asarray(values[axes])
        if not index.size or index.size > _LARGE or index.dtype.kind not in "iu" or axis.size != 1:
            return
        least, most, along = int(index.min()), int(index.max()), int(axis.reshape(-1)[0])
        size = np.shape(values[data])[along]
        if key not in outside and (most >= size or least < -size):
            outside[key] = Outside(iteration, most if most >= size else least, along, size)
        found.from_start += most >= 0
        if least < 0:
            found.from_end += 1
            if found.from_end == 1:
                found.iteration, found.index = iteration, least

    return look


# One more run that looks at what the bodies of loops compute: gates, additions, differences, whole numbers.


_MOST_TIMES: Final = 4.0
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


_EDGE: Final = 16
"""Iterations that are looked at from the beginning and from the end; and as many between."""
_MOST_LOOKS: Final = 512
"""Looks at one body; an inner loop runs often."""
_MOST_ITERATIONS: Final = 10_000
_NEAR: Final = 1e-6
_MASKED: Final = 1e4
"""A score that is so much below the largest is masked."""
_CELLS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "LSTMCell": ("forget", "input", "cell", "output"),
    "GRUCell": ("update", "reset"),
})  # fmt: skip
"""Gates of cells in the order of their weights, as far as they follow from one product."""
_FAR: Final = -math.log(_NEAR)
"""Arguments from which on a sigmoid is as near to 0 or 1 as that."""


class Saturation(Struct):
    """In how many of the iterations that were looked at all elements of a gate were saturated."""

    looked: int = 0
    saturated: int = 0
    low: float = math.inf
    high: float = -math.inf


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


class Probed(Struct):
    """Observations of the operations of a body, by the id of their layers; of cells by id and gate."""

    wholes: WholeNumbers
    gates: dict[tuple[int, str], Saturation] = {}
    sums: dict[tuple[int, int], Absorption] = {}
    differences: dict[int, Cancellation] = {}
    choices: dict[int, Saturation] = {}
    alone: dict[int, Saturation] = {}


class BodyValues(NamedTuple):
    """All values of a body after an iteration."""

    program: Program
    iteration: int
    values: tuple[Any, ...]


class _Meters(NamedTuple):
    sampled: tuple[Look, ...]
    always: tuple[Look, ...]


class Probe:
    """A watcher that looks at the bodies of loops and stops nothing but at its deadline."""

    stops: Mapping[int, tuple[int, ...]] = MappingProxyType({})
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
        if births is not None:
            self.stops = births.stops
        self.is_whole = False
        """True once the run has come to its end."""
        self.outputs: tuple[Array, ...] | None = None
        self._lengths = {facts.layer.line: facts.most for facts in loops}
        self.found: dict[int, Probed] = {}
        """By the line of the loop in the file."""
        self._meters: dict[int, _Meters] = {}
        self._looks: dict[int, int] = {}
        self.bodies: dict[tuple[int, int], BodyValues] = {}
        """By line and iteration, of the first run of each loop."""
        self.slice_counts: dict[int, int] = {}
        """How many slices the latest run of a loop had, by line, where it had any."""

    def iteration_watch(self, frame: Frame) -> Callable[[Frame], bool] | None:
        """Look at some of the iterations of a loop's run."""
        activation, key = frame.activation, id(frame.program)
        assert activation is not None
        meters = self._meters.get(key)
        if meters is None:
            found = self.found.setdefault(
                activation.operation.layer.line, Probed(WholeNumbers({}, {}, {}, {}), {}, {}, {}, {}, {})
            )
            meters = self._meters[key] = _meters(frame.program, found) if self._measures else _Meters((), ())
        look_for_births = None if self._births is None else self._births.iteration_watch(frame)
        if self._looks.setdefault(key, 0) >= _MOST_LOOKS:
            return look_for_births
        line = activation.operation.layer.line
        if activation.slices:
            self.slice_counts[line] = activation.slice_count
        length = self._lengths.get(activation.operation.layer.line, 0)
        step, end = max(length // _EDGE, 1), length - _EDGE
        sampled, always = meters

        def watch(frame: Frame) -> bool:
            iteration = frame.active.iteration
            if look_for_births is not None:
                look_for_births(frame)
            if iteration < _MOST_ITERATIONS:
                for look in always:
                    look(frame.values, iteration)
            if iteration < _EDGE or iteration >= end or not iteration % step:
                self._looks[key] += 1
                self.bodies.setdefault((line, iteration), BodyValues(frame.program, iteration, tuple(frame.values)))
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
    """Run a machine to its end, or to a deadline, and return what was seen; `measures`: of the operations.

    Where NaN and Inf are born is added to `births`, if that is given.
    """
    watcher = None if births is None else births_watcher(machine, births)
    probe = Probe(loops, deadline, measures=measures, births=watcher)
    machine.watcher = probe
    if watcher is not None:
        watcher.forward()
    with suppress(StepperError):  # it is known already
        machine.advance(Every.END)
        probe.is_whole, probe.outputs = machine.finished, machine.outputs
    if watcher is not None and not machine.finished:
        watcher.examine()
    return probe


def _meters(program: Program, found: Probed) -> _Meters:
    sampled, always = list[Look](), list[Look]()
    constants = frozenset(slot for slot, value in enumerate(program.template) if value is not None)
    for one in program.operations:
        if (look := look_at_width(one, found.wholes)) is not None:
            always.append(look)
        declared = one.layer.outputs[0].element_type if one.layer.outputs else None
        if declared is None or one.plans:
            continue
        real = is_floating(declared.dtype)
        if one.layer.type in ("Sigmoid", "Tanh", "HardSigmoid") and real:
            sampled.append(_gate(one, found.gates.setdefault((one.layer.id, ""), Saturation())))
        elif one.layer.type in ("Softmax", "LogSoftmax") and real and len(one.inputs) == 1:
            sampled.append(_choice(one, found.choices.setdefault(one.layer.id, Saturation())))
            sampled.append(_extent(one, found.alone.setdefault(one.layer.id, Saturation())))
        elif one.layer.type == "MVN" and real and len(one.inputs) == 2:
            sampled.append(_extent(one, found.alone.setdefault(one.layer.id, Saturation())))
        elif one.layer.type in _CELLS and len(one.inputs) == (6 if one.layer.type == "LSTMCell" else 5):
            sampled.append(_cell(one, found))
        elif one.layer.type in ("Add", "Subtract") and real and len(one.inputs) == 2:
            sampled.extend(_sums(one, found))
        if (look := look_at(one, constants, found.wholes)) is not None:
            always.append(look)
    return _Meters(tuple(sampled), tuple(always))


def _gate(operation: Operation, found: Saturation) -> Look:
    slot, low = operation.outputs[0], -1.0 if operation.layer.type == "Tanh" else 0.0

    def look(values: list[Any], _iteration: int) -> None:
        value = np.asarray(values[slot])
        if value.size and value.dtype.kind == "f":
            _note(found, bool(((value <= low + _NEAR) | (value >= 1 - _NEAR)).all()), value)

    return look


def _choice(operation: Operation, found: Saturation) -> Look:
    """Look at a Softmax that has the choice of several elements: those that a mask leaves."""
    slot, out = operation.inputs[0], operation.outputs[0]
    axis = int(operation.layer.attributes.get("axis", "1"))

    def look(values: list[Any], _iteration: int) -> None:
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
            _note(found, bool((highest >= 1 - _NEAR).all()), highest)

    return look


def _extent(operation: Operation, found: Saturation) -> Look:
    """Look at how many elements a Softmax or an MVN normalises together: saturated, if it is one."""
    slot, axes = operation.inputs[0], operation.inputs[1:]
    axis = np.array([int(operation.layer.attributes.get("axis", "1"))])

    def look(values: list[Any], _iteration: int) -> None:
        shape = np.shape(values[slot])
        along = np.asarray(values[axes[0]]).reshape(-1) if axes else axis
        if all(-len(shape) <= one < len(shape) for one in along):
            found.looked += 1
            found.saturated += math.prod(shape[one] for one in along) == 1

    return look


def _note(found: Saturation, saturated: bool, value: Array) -> None:
    found.looked += 1
    found.saturated += saturated
    found.low = min(found.low, float(value.min()))
    found.high = max(found.high, float(value.max()))


def _cell(operation: Operation, found: Probed) -> Look:
    names, slots = _CELLS[operation.layer.type], operation.inputs
    lstm = operation.layer.type == "LSTMCell"
    gates = {name: found.gates.setdefault((operation.layer.id, name), Saturation()) for name in names if name != "cell"}

    def look(values: list[Any], _iteration: int) -> None:
        x, h = (np.asarray(values[slot]) for slot in slots[:2])
        w, r, b = (np.asarray(values[slot]) for slot in slots[3 if lstm else 2 :][:3])
        parts = w.shape[0] // h.shape[-1] if h.shape[-1] else 0
        if x.dtype.kind != "f" or parts != (4 if lstm else 3) or b.size < w.shape[0]:
            return
        argument = x @ w.T + h @ r.T + b.reshape(-1)[: w.shape[0]]
        for name, part in zip(names, np.split(argument, parts, axis=-1), strict=False):
            if name in gates:
                with np.errstate(over="ignore"):
                    _note(gates[name], bool((np.abs(part) >= _FAR).all()), 1 / (1 + np.exp(-part)))

    return look


def _sums(operation: Operation, found: Probed) -> Iterator[Look]:
    a, b = operation.inputs
    out, key = operation.outputs[0], operation.layer.id
    kept = [found.sums.setdefault((key, index), Absorption()) for index in (0, 1)]
    difference = found.differences.setdefault(key, Cancellation())
    is_difference = operation.layer.type == "Subtract"

    def look(values: list[Any], iteration: int) -> None:
        x, y, result = (np.asarray(values[slot]) for slot in (a, b, out))
        if not result.size or result.dtype.kind != "f" or not x.size or not y.size:
            return
        for total, added, absorbed in ((x, y, kept[0]), (y, x, kept[1])):
            if absorbed is kept[1] and is_difference:
                continue
            _absorbed(absorbed, total, added, result, iteration)
        with np.errstate(all="ignore"):
            left, size = float(np.abs(result).max()), float(min(np.abs(x).max(), np.abs(y).max()))
        difference.looked += 1
        if 0 < left <= size * 16 * np.finfo(result.dtype).eps:
            difference.often += 1
            if difference.often == 1:
                difference.iteration, difference.operands, difference.left = iteration, size, left

    yield look


def _absorbed(found: Absorption, total: Array, added: Array, result: Array, iteration: int) -> None:
    size = float(np.abs(added).max())
    found.looked += 1
    if found.looked == 1 or not found.first:
        found.first = size
    found.latest = size
    counts = added != 0
    if total.shape != result.shape or not size or not np.isfinite(size):
        found.since, found.times = None, 0
        return
    same = result == total
    if bool((same | ~np.broadcast_to(counts, same.shape)).all()):
        if found.since is None:
            found.since, found.of = iteration, float(np.abs(total).max())
        found.times += 1
    else:
        found.since, found.times = None, 0
