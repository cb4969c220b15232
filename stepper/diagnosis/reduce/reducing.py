"""`reduce_model`: the smallest model that still has a fault, by delta debugging.

    found = reduce_model("model.xml", inputs, DisagreesWith("openvino"), seconds=60)
    if found is not None:                       # None: the condition does not hold
        found.fault, found.operations, found.model   # what it is, from how many to how many, the DraftModel
        write_case(found, Path("case"))         # case.py: model.xml, inputs.npz, reproduce.py, ...

Operations are cut to Constants in groups, halved down to one; then each alone, with simpler values, or bypassed; loops
and Ifs are opened; entries of port maps, back edges, inputs and outputs dropped; dims, trip counts and values made
small; and all again, until nothing more goes. Each candidate that is smaller and has the same fault is taken. The order
is fixed, so that the result is the same each time.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepper.diagnosis.reduce import reductions
from stepper.diagnosis.reduce.draft import DraftLayer, DraftModel, LayerAddress
from stepper.diagnosis.reduce.trials import (
    OPENVINO,
    AnyFault,
    ChosenKernel,
    DisagreesWith,
    EndsInError,
    FaultCondition,
    FaultKind,
    FoundFault,
    ObservedRun,
    Pair,
    RunSettings,
    StopsAt,
    TrialOutcome,
    TrialRunner,
)
from stepper.element_types import STRING_DTYPE, Array, is_floating
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_inputs, bind_states
from stepper.engine.rules import Rules
from stepper.ir.model import Scope
from stepper.ir.reader import ModelSource, opened
from stepper.records import Record

SECONDS = 300.0
"""Seconds that a reduction may take, unless another number is asked for."""

_MOST_ZEROS = 2**22
_DECLARING_S = 10.0
"""Seconds in which shapes are declared when the time is up."""
_LEAST_LIMIT = 5.0
_MORE_MOVES = 1_000
_MOST_PASSES = 1000


class ReductionProgress(Record):
    """How far a reduction has come."""

    operations: int
    trials: int
    seconds: float


class Reduction(Record):
    """The smallest candidate with the fault. `operations` are how many there were, and how many there are.

    `expected` and `given` are the outputs on both sides (ours or the twin's, and those that are wrong), where there are
    any. `kept` counts the changes that were kept, by what they do, and `tried` those that were tried. `kernels` are
    those that OpenVINO chose for what is left, where the fault is in its results.
    `is_smallest`: nothing more goes; else time was up, or it was interrupted.
    """

    model: DraftModel
    twin: DraftModel | None
    condition: FaultCondition
    fault: FoundFault
    settings: RunSettings
    operations: tuple[int, int]
    trials: int
    seconds: float
    is_smallest: bool
    is_interrupted: bool
    expected: tuple[Array, ...]
    given: tuple[Array, ...]
    tried: Mapping[str, int]
    kept: Mapping[str, int]
    kernels: tuple[ChosenKernel, ...] = ()


def reduce_model(
    model: ModelSource,
    inputs: Mapping[str | int, Any],
    condition: FaultCondition | None = None,
    settings: RunSettings | None = None,
    *,
    seconds: float = SECONDS,
    states: Mapping[str, Any] | None = None,
    admits: Callable[[DraftModel], bool] | None = None,
    progress: Callable[[ReductionProgress], object] | None = None,
) -> Reduction | None:
    """Return the smallest model found within so many seconds that has the same fault; None where it has none.

    `condition` is one of `conditions`: StopsAt("nan"), EndsInError(), DisagreesWith("openvino"), DisagreesWith(PATH of
    a healthy model), or None for whichever holds. `settings` say how candidates are run. `states` are what variables
    begin with, which become Constants of the model. `admits` says which candidates may be taken. Ctrl+C ends it with
    the best so far (`is_interrupted`). Raises what reading the model and its inputs raises.
    """
    subject = opened(model)
    draft = DraftModel.of(subject, bind_inputs(subject, inputs))
    begins = bind_states(compile_model(subject), states) if states else {}
    reductions.begin_with(draft, begins)
    condition = condition or AnyFault()
    twin = None
    if isinstance(condition, DisagreesWith) and condition.reference != OPENVINO:
        other = opened(condition.reference)
        twin = DraftModel.of(other, bind_inputs(other, dict(enumerate(draft.inputs))))
        reductions.begin_with(twin, begins)
    runner = TrialRunner(condition, settings or RunSettings())
    try:
        return _Reducer(Pair(draft, twin), runner, seconds, admits, progress).reduction()
    finally:
        runner.close()


class _OutOfTime(Exception):
    """Time is up."""


class _Side:
    """Apply a change to one model of a pair; addresses belong to the model under reduction.

    `done` are the changed layers, if a change affects several.
    """

    def __init__(
        self, draft: DraftModel, at: Callable[[LayerAddress], LayerAddress], value_of: reductions.ValueOf
    ) -> None:
        self.draft, self.at, self.value_of = draft, at, value_of
        self.done: set[LayerAddress] = set()

    def scope(self, scope: Scope) -> Scope:
        """Return a scope in this model. LookupError where it has none."""
        if not scope:
            return ()
        owner = self.at(LayerAddress(scope[:-1], scope[-1][0]))
        return (*owner.scope, (owner.layer, scope[-1][1]))


Change = Callable[[_Side], object]
"""Changes a side; raises LookupError where it does not apply."""


class _Reducer:
    def __init__(
        self,
        pair: Pair,
        runner: TrialRunner,
        seconds: float,
        admits: Callable[[DraftModel], bool] | None,
        progress: Callable[[ReductionProgress], object] | None,
    ) -> None:
        self._pair, self._runner, self._admits, self._progress = pair, runner, admits, progress
        self._began = time.monotonic()
        self._deadline = self._began + seconds
        self._size = _size(pair)
        self._tried: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        self._observed = self._twin_observed = ObservedRun({}, {})

    def reduction(self) -> Reduction | None:
        before = self._pair.model.operation_count
        start = self._first()
        if start is None:
            return None
        self._fault, interrupted, complete = start, False, False
        try:
            with suppress(_OutOfTime):
                complete = self._to_a_fixed_point()
            self._deadline = max(self._deadline, time.monotonic() + _DECLARING_S)
            with suppress(_OutOfTime):
                self._declare()
        except KeyboardInterrupt:
            interrupted = True
        outcome = self._outcome(interrupted=interrupted)
        return Reduction(
            self._pair.model,
            self._pair.twin,
            self._runner.condition,
            outcome.fault or self._fault,
            self._runner.settings,
            (before, self._pair.model.operation_count),
            self._runner.trials,
            time.monotonic() - self._began,
            complete,
            interrupted,
            outcome.expected,
            outcome.given,
            dict(self._tried),
            dict(self._kept),
            self._kernels(interrupted=interrupted),
        )

    def _kernels(self, *, interrupted: bool) -> tuple[ChosenKernel, ...]:
        is_computed = self._fault.kind in (FaultKind.VALUES, FaultKind.SHAPES) and self._fault.program == "OpenVINO"
        return self._runner.kernels(self._pair.model) if is_computed and not interrupted else ()

    def _outcome(self, *, interrupted: bool) -> TrialOutcome:
        try:
            return self._runner.tried(self._pair, wants_outputs=True)
        except KeyboardInterrupt:
            if not interrupted:
                raise
            return TrialOutcome(None)

    def _first(self) -> FoundFault | None:
        """Return the fault of the whole model; the condition becomes that kind, the limits what it needs."""
        runner = self._runner
        outcome = runner.tried(self._pair)
        if outcome.fault is None:
            return None
        self._fault = fault = outcome.fault
        if fault.kind is FaultKind.ENDED:
            runner.limit(2 * _LEAST_LIMIT)
        if isinstance(runner.condition, AnyFault):
            conditions: dict[FaultKind, FaultCondition] = {
                FaultKind.STOP: StopsAt("nan"),
                FaultKind.ERROR: EndsInError(),
            }
            runner.condition = conditions.get(fault.kind, DisagreesWith(OPENVINO))
        if outcome.moves:
            runner.settings = replace(runner.settings, most_moves=2 * outcome.moves + _MORE_MOVES)
        settings, began = runner.settings, time.monotonic()
        if isinstance(runner.condition, DisagreesWith) and settings.rules == Rules.SPEC.value:
            # A disagreement that no known departure explains is not to become one that it does.
            runner.settings = replace(settings, rules=Rules.OPENVINO.value)
        again = runner.tried(self._pair).fault
        if again is None or not fault.is_same(again):
            runner.settings = settings
        took = 1.0 if fault.kind is FaultKind.ENDED else time.monotonic() - began  # a hang takes as long as it may
        runner.limit(max(_LEAST_LIMIT, 10 * took))
        return fault

    def _to_a_fixed_point(self) -> bool:
        for _ in range(_MOST_PASSES):
            before = self._size
            self._observe()
            self._open_bodies()
            self._drop_results()
            self._cut_in_groups()
            self._hoist()
            self._open_bodies()
            self._drop_connections()
            self._cut_alone()
            self._and_observe(self._shorten)
            if self._size[0] == before[0]:  # these take a trial for each tensor
                self._and_observe(self._shorten_each)
                self._round()
            if self._size == before:
                return True
        return False

    # --- one candidate ------------------------------------------------------------------------------------------------

    def _attempt(self, what: str, change: Change, *, any_size: bool = False) -> bool:
        """Try a change, and keep it where the fault stays and the model is smaller."""
        if time.monotonic() > self._deadline:
            raise _OutOfTime
        try:
            candidate = self._changed(change)
        except LookupError:
            return False
        size = _size(candidate)
        if size >= self._size and not any_size:
            return False
        if self._admits is not None and not self._admits(candidate.model):
            return False
        trials = self._runner.trials
        found = self._runner.fault(candidate)
        self._tried[what] += self._runner.trials - trials
        self._tell()
        if found is None or not self._fault.is_same(found):
            return False
        self._pair, self._size = candidate, size
        self._kept[what] += 1
        return True

    def _changed(self, change: Change) -> Pair:
        """Return the changed pair. LookupError where the change does not apply to both sides alike."""
        old, healthy = self._pair
        model, twin = old.copy(), healthy

        def shared(address: LayerAddress) -> LayerAddress:
            if healthy is not None:  # what one side alone has is what they differ in
                old.counterpart(address, healthy)
            return address

        side = _Side(model, shared, self._value)
        change(side)
        model.graph.prune()
        if healthy is not None:
            twin = healthy.copy()
            there = _Side(twin, lambda address: old.counterpart(address, healthy), self._twin_value)
            change(there)
            twin.graph.prune()
            reductions.require(there.done == side.done and len(twin.inputs) == len(model.inputs))
            reductions.require(
                all(a is b or np.array_equal(a, b) for a, b in zip(model.inputs, twin.inputs, strict=True))
            )
        return Pair(model, twin)

    def _value(self, address: LayerAddress, output: int) -> Array | None:
        """Return a value for the model: the healthy twin's value if there is a twin."""
        if self._pair.twin is not None:
            there = self._pair.model.counterpart(address, self._pair.twin)
            return self._twin_value(there, output)
        found = self._observed.value(address, output, at_last=self._at_last)
        return self._declared(address, output) if found is None else found

    def _declared(self, address: LayerAddress, output: int) -> Array | None:
        """Return zeros of the declared form, for what the run does not come to."""
        port = self._pair.model.layer_at(address).outputs[output]
        if port.element_type is None or min(port.dims, default=0) < 0:
            return None
        if math.prod(port.dims) > _MOST_ZEROS or port.element_type.dtype == STRING_DTYPE:
            return None
        return np.zeros(port.dims, port.element_type.dtype)

    def _twin_value(self, address: LayerAddress, output: int) -> Array | None:
        return self._twin_observed.value(address, output, at_last=self._at_last)

    _at_last = False

    def _observe(self) -> None:
        self._observed = self._runner.observed(self._pair.model)
        if self._pair.twin is not None:
            self._twin_observed = self._runner.observed(self._pair.twin)

    def _tell(self) -> None:
        if self._progress is not None:
            seconds = time.monotonic() - self._began
            self._progress(ReductionProgress(self._size[0], self._runner.trials, seconds))

    # --- the passes ---------------------------------------------------------------------------------------------------

    def _drop_results(self) -> None:
        keys = [layer.id for layer in self._pair.model.graph.of_type("Result")]
        if len(keys) > 1:
            for kept in keys:
                if self._attempt("drop outputs", partial(_keep_result, key=kept)):
                    return
        for key in keys:
            self._attempt("drop outputs", partial(_drop_result, key=key))

    def _hoist(self) -> None:
        """Let outputs come from further up."""
        graphs = self._pair.model.graphs()
        for address in [LayerAddress(scope, one.id) for scope, graph in graphs for one in graph.of_type("Result")]:
            while self._first_of("outputs from further up", self._hoists(address)):
                pass

    def _hoists(self, address: LayerAddress) -> Iterator[Change]:
        model = self._pair.model
        source = model.layer_at(address).sources[0] if model.has(address) else None
        if source is not None:
            made = model.layer_at(LayerAddress(address.scope, source.layer))
            yield from (_edited(reductions.hoist, address, index) for index in range(len(made.sources)))
            yield from (_edited(reductions.read_other_output, address, output) for output in range(len(made.outputs)))

    def _cut_in_groups(self) -> None:
        addresses = [address for address, _layer in self._pair.model.operations()]
        size = len(addresses) // 2
        while size > 1:
            for begin in range(0, len(addresses), size):
                group = [one for one in addresses[begin : begin + size] if self._pair.model.has(one)]
                if len(group) > 1:
                    self._attempt("cut to constants", partial(_cut, addresses=group))
            size //= 2

    def _cut_alone(self) -> None:
        addresses = [address for address, _layer in self._pair.model.operations()]
        for address in reversed(addresses):
            self._smaller_here(address)
        for scope, graph in list(self._pair.model.graphs()):
            for parameter in graph.of_type("Parameter"):
                address = LayerAddress(scope, parameter.id)
                if not self._attempt("drop inputs", _edited(reductions.unmap, address)):
                    self._attempt("inputs to constants", partial(_cut, addresses=[address]))

    def _smaller_here(self, address: LayerAddress) -> None:
        if not self._pair.model.has(address):
            return
        layer = self._pair.model.layer_at(address)
        if layer.type == "Assign":
            self._attempt("drop variables", _edited(reductions.drop_assigns, address))
            return
        if self._attempt("cut to constants", partial(_cut, addresses=[address])):
            return
        self._at_last = True
        try:
            if self._attempt("cut to constants", partial(_cut, addresses=[address])):
                return
        finally:
            self._at_last = False
        for index in range(len(layer.sources)):
            if self._attempt("bypass", _edited(reductions.bypass, address, index, valued=True)):
                return
        for simple in (0, 1):
            if self._attempt("cut to constants", partial(_cut_to, address=address, number=simple)):
                return

    def _open_bodies(self) -> None:
        again = True
        while again:
            again = False
            for address, layer in list(self._pair.model.operations()):
                for body in layer.bodies:
                    again = again or self._opens(address, body.role)
                if again:
                    break

    def _opens(self, address: LayerAddress, role: str) -> bool:
        """Put the first iteration in the place of a loop, or else the last one, or a branch in the place of an If."""
        what = "open loops and Ifs"
        found = self._attempt(what, _edited(reductions.inline, address, role, valued=True))
        if not found and role == "body":
            self._at_last = True
            found = self._attempt(what, _edited(reductions.inline, address, role, valued=True, recorded=True))
            self._at_last = False
        if found:
            self._observe()
        return found

    def _drop_connections(self) -> None:
        for address, layer in list(self._pair.model.operations()):
            for output in reversed(range(len(layer.outputs) if layer.bodies else 0)):
                self._attempt("drop entries", _edited(reductions.drop_output, address, output))
        for scope, _graph in list(self._pair.model.graphs())[1:]:
            if not self._pair.model.has(LayerAddress(scope[:-1], scope[-1][0])):
                continue
            body = self._pair.model.body_at(scope)[1]
            inputs, outputs = range(len(body.inputs)), range(len(body.outputs))
            for index in reversed(range(len(body.back_edges))):
                self._attempt("drop back edges", _edited(reductions.drop_back_edge, scope, index))
            for index in inputs:
                self._attempt("drop slices", _edited(reductions.drop_slicing, scope, index, valued=True))
            for index in outputs:
                self._attempt("drop slices", _edited(reductions.output_of_last, scope, index))
            for is_input in (True, False):
                for index in inputs if is_input else outputs:
                    self._attempt("plain slices", _edited(reductions.plain_slicing, scope, index, is_input=is_input))
        self._attempt("merge constants", _everywhere(reductions.merge_constants))

    def _shorten(self) -> None:
        """Make trip counts and dims small."""
        for address, value in list(_values(self._pair.model)):
            if value.size == 1 and value.dtype.kind in "iu" and abs(int(value.reshape(-1)[0])) > 1:
                smaller = (np.full(value.shape, one, value.dtype) for one in _below(int(value.reshape(-1)[0])))
                self._first_of("smaller counts", (_edited(reductions.set_value, address, one) for one in smaller))
        sizes = {size for _address, value in _values(self._pair.model) for size in value.shape if size > 1}
        for size in sorted(sizes, reverse=True):
            shrunk = (_everywhere(reductions.shrink_everywhere, size, one, at_end=end) for one, end in _parts(size))
            self._first_of("smaller dims", shrunk)

    def _shorten_each(self) -> None:
        """Make single axes of Constants and inputs short."""
        for address, value in list(_values(self._pair.model)):
            for axis, size in enumerate(value.shape):
                shrunk = (_edited(reductions.shrink_axis, address, axis, one, at_end=end) for one, end in _parts(size))
                self._first_of("smaller dims", shrunk)

    def _and_observe(self, shorten: Callable[[], None]) -> None:
        before = sum(self._kept.values())
        shorten()
        if sum(self._kept.values()) > before:
            self._observe()

    def _first_of(self, what: str, changes: Iterable[Change]) -> bool:
        return any(self._attempt(what, change) for change in changes)

    def _round(self) -> None:
        for address, value in list(_values(self._pair.model)):
            rounder = (_edited(reductions.set_value, address, one) for one in reductions.rounder(value))
            self._first_of("round values", rounder)

    def _declare(self) -> None:
        """Let ports and Parameters of bodies say the shapes that are there; one by one where all hide the fault."""
        self._observe()
        what = "declare shapes"
        if not self._attempt(what, lambda side: _declare_shapes(side, self._observed), any_size=True):
            layers = [LayerAddress(scope, key) for scope, graph in self._pair.model.graphs() for key in graph.layers]
            for one in layers:
                self._attempt(what, partial(_declare_shapes, observed=self._observed, only=one), any_size=True)


# --- changes, for either side -----------------------------------------------------------------------------------------


def _edited(
    edit: Callable[..., None], place: LayerAddress | Scope, *arguments: Any, valued: bool = False, **options: Any
) -> Change:
    """Return the change that makes an edit at a layer or in a body; `valued`: with the values of the side."""

    def change(side: _Side) -> None:
        found = side.at(place) if isinstance(place, LayerAddress) else side.scope(place)
        edit(side.draft, found, *arguments, *([side.value_of] if valued else []), **options)

    return change


def _everywhere(edit: Callable[..., None], *arguments: Any, **options: Any) -> Change:
    """Return the change that makes an edit in the whole of a side."""
    return lambda side: edit(side.draft, *arguments, **options)


def _keep_result(side: _Side, key: int) -> None:
    kept = side.at(LayerAddress((), key)).layer
    reductions.drop_results(side.draft, [one.id for one in side.draft.graph.of_type("Result") if one.id != kept])


def _drop_result(side: _Side, key: int) -> None:
    reductions.drop_results(side.draft, [side.at(LayerAddress((), key)).layer])


def _cut(side: _Side, addresses: list[LayerAddress]) -> None:
    for address in addresses:
        with suppress(LookupError):
            reductions.cut(side.draft, side.at(address), side.value_of)
            side.done.add(address)
    reductions.require(bool(side.done))


def _cut_to(side: _Side, address: LayerAddress, number: int) -> None:
    def simple(there: LayerAddress, output: int) -> Array | None:
        value = side.value_of(there, output)
        if value is None or value.dtype == STRING_DTYPE or value.dtype.names:
            return None
        return np.full(value.shape, number, value.dtype)

    reductions.cut(side.draft, side.at(address), simple)


def _declare_shapes(side: _Side, observed: ObservedRun, only: LayerAddress | None = None) -> None:
    changed = False
    for scope, graph in side.draft.graphs():
        for layer in graph.layers.values():
            try:
                address = side.at(LayerAddress(scope, layer.id))
            except LookupError:
                continue
            if only not in (None, address) or (layer.type == "Parameter" and not scope):
                continue
            for index, port in enumerate(layer.outputs):
                dims = _dims_there(layer, address, index, observed)
                if dims is not None and (dims != port.dims or layer.type == "Parameter"):
                    layer.outputs[index] = port._replace(dims=dims)
                    if layer.type == "Parameter":
                        layer.attributes["shape"] = ",".join(map(str, dims))
                    changed = True
    reductions.require(changed)


def _dims_there(layer: DraftLayer, address: LayerAddress, output: int, observed: ObservedRun) -> tuple[int, ...] | None:
    """Return the dims that an output has, -1 for one that changes; None where the rank does, or nothing is known."""
    first = layer.value if layer.value is not None else observed.value(address, output)
    last = layer.value if layer.value is not None else observed.value(address, output, at_last=True)
    if first is None or last is None or first.ndim != last.ndim:
        return None
    return tuple(a if a == b else -1 for a, b in zip(first.shape, last.shape, strict=True))


# --- sizes ------------------------------------------------------------------------------------------------------------


def _values(draft: DraftModel) -> Iterator[tuple[LayerAddress, Array]]:
    for scope, graph in draft.graphs():
        for layer in graph.layers.values():
            if layer.value is not None:
                yield LayerAddress(scope, layer.id), layer.value


def _below(number: int) -> tuple[int, ...]:
    """Return smaller numbers to try, the smallest first."""
    return tuple(one for one in dict.fromkeys((1, 2, number // 2, number - 1)) if 0 < one < number)


def _parts(size: int) -> Iterator[tuple[int, bool]]:
    """Yield shorter lengths to try for an axis, each with what is first and with what is last."""
    for length in _below(size):
        yield length, False
        yield length, True


def _size(pair: Pair) -> tuple[int, ...]:
    """Return how large a candidate is: operations, connections, Constants, elements, digits of values."""
    found = [_size_of(draft) for draft in pair if draft is not None]
    return tuple(map(sum, zip(*found, strict=True)))


def _size_of(draft: DraftModel) -> tuple[int, ...]:
    connections = constants = elements = 0
    digits = 0.0
    for scope, graph in draft.graphs():
        kinds = Counter(layer.type for layer in graph.layers.values())
        constants += kinds["Constant"]
        if not scope:
            connections += 2 * (kinds["Parameter"] + kinds["Result"])
        for layer in graph.layers.values():
            for body in layer.bodies:
                slicings = [*(one.slicing for one in body.inputs), *(one.slicing for one in body.outputs)]
                sliced = sum(reductions.slicing_size(one) for one in slicings)
                connections += 2 * (len(body.inputs) + len(body.outputs) + len(body.back_edges)) + sliced
            if layer.value is not None:
                elements += layer.value.size
                digits += _digits(layer.value)
    return draft.operation_count, connections, constants, elements, round(digits)


def _digits(value: Array) -> float:
    """Return how far from simple numbers a tensor is: 0 for zeros."""
    if value.dtype == STRING_DTYPE or value.dtype.names or not value.size:
        return 0.0
    wide = np.nan_to_num(np.asarray(value, np.float64), posinf=1e300, neginf=-1e300)
    sizes = np.where(wide == 0, 0.0, 1 + np.log2(np.maximum(np.abs(wide), 1)))
    if is_floating(value.dtype):
        for step, cost in ((1.0, 2.0), (0.125, 4.0), (2.0**-10, 8.0)):
            sizes += np.where(wide == np.round(wide / step) * step, 0.0, cost)
    return float(sizes.sum()) + (8.0 if value.size > 1 and (value != value.reshape(-1)[0]).any() else 0.0)
