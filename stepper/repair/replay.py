"""Runs of edited models: what lies behind an edit runs again, everything else keeps the values of the first run."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper.diagnosis.reduce.trials import ObservedKey, RunSettings, ValueLog, log_values
from stepper.element_types import Array, Ints, is_floating
from stepper.engine.compiler import changed_program, compile_model, whole_program
from stepper.engine.frames import Event, EventKind, Every
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, LoopPlan, Partner, Program
from stepper.engine.rules import Rules
from stepper.errors import LimitReached, StepperError
from stepper.ir.model import Layer, Model, Scope, Source
from stepper.operation_types import VIEWS
from stepper.records import Record
from stepper.repair.patch import ModelPatch
from stepper.tensors.difference import agree_exactly, measure, rough_ratio
from stepper.tensors.tolerances import Tolerance, Tolerances

_FIRST_RUN = 0.2
"""Part of the time that runs without an edit may take, which may never end."""
_SLICE = 20_000
"""Moves after which a run looks at the clock."""
_LEAST_SECONDS = 0.3
_TIMES_LONGER = 12.0
_FURTHER_ITERATIONS = 512
_WORST = 2.0
"""Distance of an output that has another shape, or of a run that fails."""


class GivenExample(Record, eq=False):
    """Hold an input of the model with the reference's outputs by position; `name` is its origin."""

    name: str
    inputs: tuple[Array, ...]
    expected: Mapping[int, Array]


class Agreement(Record):
    """How far outputs are from those of the reference.

    `ratio` is the largest distance as a multiple of the tolerance: up to 1 they agree. `distance` is 0 to 1 for the
    mean relative error of an output (2: another shape), over all outputs. `differing` are positions of outputs.
    """

    ratio: float
    distance: float
    differing: frozenset[int] = frozenset()

    @property
    def agrees(self) -> bool:
        """True if all outputs are within the tolerance."""
        return self.ratio <= 1


FAILED = Agreement(math.inf, _WORST)
"""The agreement of a run that stops with an error."""


class KnownRun(Struct):
    """The run of the model without an edit on one example; `failure` is empty if it came to its end."""

    example: GivenExample
    log: ValueLog
    outputs: dict[int, Array]
    states: dict[str, Any]
    ticks: int
    seconds: float
    failure: str = ""

    def value(self, scope: Scope, source: Source, *, is_last: bool = False) -> Array | None:
        """Return the first (or the last) value of an output; None if the run has none."""
        values = self.log.last if is_last else self.log.first
        return values.get(ObservedKey(scope, source.layer, source.output, is_last=False))


NamedValues = Mapping[tuple[str, ...], Array]
"""First values of a run, by the names of outer layers, the layer's name, and the output."""


NO_VALUES: Final[NamedValues] = {}


def first_values(
    compiled: CompiledModel, inputs: Sequence[Array], max_iterations: int | None, states: Mapping[str, Any]
) -> NamedValues:
    """Return the first value of each output of a run, by names."""
    settings = RunSettings(max_iterations=max_iterations, most_moves=2**40)
    log, _machine = log_values(compiled, inputs, settings, states)
    return named_values(compiled.model, log)


def named_values(model: Model, log: ValueLog) -> NamedValues:
    """Return the first values of a run by names; those whose name comes again are left out."""
    names = {scope: (tuple(layer.name for layer in path), graph) for scope, path, graph in model.scopes()}
    found, again = dict[tuple[str, ...], Array](), set[tuple[str, ...]]()
    for key, value in log.first.items():
        path_names, graph = names[key.scope]
        name = (*path_names, graph.by_id[key.layer].name, str(key.output))
        again.update([name] if name in found else [])
        found[name] = value
    return {name: value for name, value in found.items() if name not in again}


def agreement(outputs: Mapping[int, Array], expected: Mapping[int, Array], tolerances: Tolerances) -> Agreement:
    """Compare outputs with those of a reference."""
    ratio, distance, differing = 0.0, 0.0, set[int]()
    for position, theirs in expected.items():
        ours = outputs[position]
        far = _ratio(ours, theirs, tolerances.of(None, ours))
        if far > 1:
            differing.add(position)
        ratio = max(ratio, far)
        distance += _distance(ours, theirs)
    return Agreement(ratio, distance / max(1, len(expected)), frozenset(differing))


def _ratio(ours: Array, theirs: Array, tolerance: Tolerance) -> float:
    if agree_exactly(ours, theirs):
        return 0.0
    found = rough_ratio(ours, theirs, tolerance)
    if found is not None:
        return found
    far = measure(np.asarray(ours), np.asarray(theirs), tolerance)
    if far is None:
        return 0.0
    return math.inf if far.problem else max(float(far.ratio), 1.5 if far.differs else 0.0)


def differs(ours: Array, theirs: Array, tolerances: Tolerances) -> bool:
    """Return True if two values are not within the tolerance of each other."""
    return ours.shape != theirs.shape or _ratio(ours, theirs, tolerances.of(None, ours)) > 1


def _distance(ours: Array, theirs: Array) -> float:
    """Return an output's relative error: the difference's norm over the reference's, at most 1."""
    if ours.shape != theirs.shape:
        return _WORST
    with np.errstate(all="ignore"):
        a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
        wrong = np.isfinite(a) != np.isfinite(b)
        gap = np.where(wrong | ~np.isfinite(b), 0.0, a - b)
        size = float(np.sqrt(np.mean(np.square(np.where(np.isfinite(b), b, 0.0))))) if b.size else 0.0
        error = float(np.sqrt(np.mean(np.square(gap)))) if b.size else 0.0
    share = float(wrong.mean()) if wrong.size else 0.0
    return min(1.0, share + error / (size + error + 1e-30))


class Replayer:
    """Runs edited models on examples and compares their outputs with the reference."""

    def __init__(
        self,
        model: Model,
        examples: Sequence[GivenExample],
        tolerances: Tolerances,
        *,
        rules: str = "spec",
        partner: Partner | None = None,
        max_iterations: int | None = None,
        states: Mapping[str, Any] | None = None,
        values: NamedValues = NO_VALUES,
        deadline: float = math.inf,
    ) -> None:
        self.values = values
        self.model, self.tolerances, self.rules, self.partner = model, tolerances, Rules(rules), partner
        self.compiled = compile_model(model, self.rules, partner)
        self.programs: dict[int, Program] = {id(one.graph): one for one in self.compiled.programs}
        self.is_stateful = self.compiled.main.has_memory
        self.initial_states = dict(states or {})
        self._limit = max_iterations
        self.deadline = deadline
        """The monotonic time at which trials end."""
        self.stops_early = False
        """True while a trial ends at the first slice of an output that disagrees."""
        self.known = self._known(examples)
        self._by_slot: dict[int, list[Any]] = {}
        self._misses: dict[int, bool] = {}

    def _known(self, examples: Sequence[GivenExample]) -> list[KnownRun]:
        found, states = list[KnownRun](), self.initial_states
        settings = RunSettings(self.rules.value, self._limit, most_moves=2**40)
        for example in examples:
            begun, now = time.thread_time(), time.monotonic()
            until = now + _FIRST_RUN * (self.deadline - now) / len(examples)
            log, machine = log_values(self.compiled, example.inputs, settings, states, until)
            outputs = {} if machine is None or machine.outputs is None else dict(enumerate(machine.outputs))
            ticks = 0 if machine is None or time.monotonic() >= until else machine.tick  # 0: it may never end
            states = {} if machine is None else dict(machine.states)
            failure = "" if outputs else "the run of the model does not come to its end"
            took = time.thread_time() - begun if outputs else 0.0
            found.append(KnownRun(example, log, outputs, states, ticks, took, failure))
        return found if self.is_stateful else sorted(found, key=lambda one: one.seconds)

    @cached_property
    def base(self) -> Agreement:
        """The agreement of the model without an edit."""
        return joined(
            FAILED if one.failure else agreement(one.outputs, one.example.expected, self.tolerances)
            for one in self.known
        )

    @property
    def reference_size(self) -> int:
        """How many numbers the reference has."""
        return sum(array.size for one in self.known for array in one.example.expected.values())

    def allowed(self, *, is_solved: bool) -> Tolerances:
        """Return the tolerances: for numbers that were solved for those of other kernels, as they are no closer."""
        return replace(self.tolerances, exact=False) if is_solved else self.tolerances

    def compare(self, patch: ModelPatch, *, until_first: bool = False, is_solved: bool = False) -> Agreement:
        """Run an edited model on the examples, up to the first that disagrees, and compare its outputs.

        `until_first`: a run ends at the first slice of an output that disagrees.
        """
        found = list[Agreement]()
        try:
            for known, outputs in self._outputs(patch, until_first=until_first):
                found.append(agreement(outputs, known.example.expected, self.allowed(is_solved=is_solved)))
                if not found[-1].agrees:
                    break
        except _Failures:
            return FAILED
        return joined(found)

    def outputs(self, patch: ModelPatch) -> list[dict[int, Array]] | None:
        """Return the outputs of an edited model for all examples; None if a run fails."""
        try:
            return [outputs for _known, outputs in self._outputs(patch)]
        except _Failures:
            return None

    def outputs_on(self, patch: ModelPatch, inputs: Sequence[Array]) -> dict[int, Array] | None:
        """Return the outputs on an input that is none of the examples; None if the run fails."""
        try:
            compiled = compile_model(patch.model(), self.rules, self.partner, self.programs)
            machine = Machine(compiled, inputs, max_iterations=self._most_iterations, states=self.initial_states)
            self._finish(machine, 1.0)
        except _Failures:
            return None
        return None if machine.outputs is None else dict(enumerate(machine.outputs))

    def first_divergence(self) -> tuple[Layer, int] | None:
        """Return the loop with the first slice of an output that differs, and the iteration of the slice."""
        for known in self.known:
            machine = Machine(
                self.compiled, known.example.inputs, max_iterations=self._limit, states=self.initial_states
            )
            try:
                self._check_slices(self.compiled.main, machine, (), known)
            except _Disagrees as found:
                return found.layer, found.iteration
            except StepperError:
                return None
        return None

    def _outputs(self, patch: ModelPatch, *, until_first: bool = False) -> Iterable[tuple[KnownRun, dict[int, Array]]]:
        states = self.initial_states
        main, changed = self._compiled(patch)
        for known in self.known:
            if self.is_stateful:
                compiled = replace(self.compiled, main=main)
                machine = Machine(compiled, known.example.inputs, max_iterations=self._most_iterations, states=states)
                self._finish(machine, known.seconds)
                states = machine.states
                yield known, dict(enumerate(machine.outputs or ()))
            else:
                yield known, self._behind(main, changed, patch, known, until_first=until_first)

    def _compiled(self, patch: ModelPatch) -> tuple[Program, frozenset[int]]:
        """Return the program of the edited model's own graph, and the slots with other values in it."""
        programs, base = dict(self.programs), self.compiled
        model = replace(self.model, weights=patch.weights, reopen=None)
        for scope in patch.edited():
            before = self.programs[id(patch.graph(scope).base)]
            if scope and patch.has_other_ends(scope):
                graph = patch.put_body(scope)
                programs[id(graph)] = whole_program(base, before, model, graph, programs)
            elif scope:
                edited = patch.graph(scope)
                program, _changed = changed_program(base, before, model, edited.graph(), edited.changed, programs)
                programs[id(before.graph)] = program
        top = patch.graph(())
        return changed_program(base, base.main, model, top.graph(), top.changed, programs)

    def _behind(
        self, main: Program, changed: frozenset[int], patch: ModelPatch, known: KnownRun, *, until_first: bool
    ) -> dict[int, Array]:
        """Return the outputs of a run of what lies behind the edits; the rest has the values of the first run."""
        affected, chosen = {*changed}, list[int]()
        for index, operation in enumerate(main.operations):
            if not affected.isdisjoint(operation.inputs) or not affected.isdisjoint(operation.outputs):
                chosen.append(index)
                affected.update(operation.outputs)
        again = [one for one, slot in enumerate(main.results) if slot in affected or slot != self._results[one]]
        if not again:
            return known.outputs
        before = self._values(known)
        values = [*before, *main.template[len(before) :]]
        for slot in changed & self.compiled.main.constant_slots:
            values[slot] = main.template[slot]
        if self._misses[id(known)]:
            chosen = _with_missing(main, chosen, values)
        part = replace(
            main,
            operations=tuple(main.operations[index] for index in chosen),
            code=tuple(main.code[index] for index in chosen),
            straight=False,
            template=tuple(values),
        )
        compiled = replace(self.compiled, main=part)
        machine = Machine(compiled, known.example.inputs, max_iterations=self._most_iterations)
        if until_first:
            self._check_slices(main, machine, patch.graph(()).changed, known)
        self._finish(machine, known.seconds)
        outputs = machine.outputs or ()
        return {**known.outputs, **{position: outputs[position] for position in again}}

    @property
    def _results(self) -> Ints:
        return self.compiled.main.results

    def _values(self, known: KnownRun) -> list[Any]:
        """Return the values of the model's own graph by slot, None for those that the run did not keep."""
        if id(known) not in self._by_slot:
            main = self.compiled.main
            found: list[Any] = list(main.template)
            for slot, value in zip(main.results, known.outputs.values(), strict=False):
                found[slot] = value
            for (layer, output), slot in main.slots.items():
                if found[slot] is None:
                    found[slot] = known.value((), Source(layer, output))
            self._misses[id(known)] = any(found[slot] is None for one in main.operations for slot in one.outputs)
            self._by_slot[id(known)] = found
        return self._by_slot[id(known)]

    @cached_property
    def _most_iterations(self) -> int:
        """The most iterations that one loop of a trial may make."""
        most = max((known.ticks for known in self.known), default=0)
        asked = self._limit or 10**9
        return min(asked, most + _FURTHER_ITERATIONS)

    def _finish(self, machine: Machine, usual_s: float) -> None:
        """Run a machine to its end. LimitReached if it takes many times as long as the model, or at the deadline."""
        deadline = time.thread_time() + max(_LEAST_SECONDS, _TIMES_LONGER * usual_s)
        while not machine.finished:
            machine.advance(Every.END, until=machine.tick + _SLICE)
            is_over = time.thread_time() > deadline or time.monotonic() > self.deadline
            if is_over and not machine.finished:
                raise LimitReached("the edited model takes much longer, or the time is up")

    def _check_slices(self, main: Program, machine: Machine, changed: Collection[int], known: KnownRun) -> None:
        """Run the first iterations and raise _Disagrees at the first slice of an output that disagrees."""
        scans = list(self._scans(main, changed, known))
        if not scans:
            return
        most = machine.tick + _SLICE
        while not machine.finished and machine.tick < most:
            event = machine.advance(Every.ITERATION, until=most)
            if event.kind is EventKind.ITERATION and len(machine.stack) == 2:
                self._check_slice(event, scans)

    def _check_slice(self, event: Event, scans: Sequence[_Scan]) -> None:
        activation = event.frame.active
        for scan in scans:
            if scan.loop != activation.operation.layer.id:
                continue
            piece = event.frame.values[scan.slot]
            if piece is None or np.ndim(piece) != scan.whole.ndim:
                continue
            length, size = scan.whole.shape[scan.axis], np.shape(piece)[scan.axis]
            begin = activation.iteration * size
            begin = length - begin - size if scan.is_backward else begin
            if begin < 0 or begin + size > length:
                continue
            theirs = np.take(scan.whole, range(begin, begin + size), scan.axis)
            ours = np.asarray(piece)
            if _ratio(ours, theirs, self.tolerances.of(None, ours)) > 1:
                raise _Disagrees(activation.operation.layer, activation.iteration)

    def _scans(self, main: Program, changed: Collection[int], known: KnownRun) -> Iterator[_Scan]:
        """Yield the outputs of loops that are outputs of the model, maybe reshaped, with what they should be."""
        for operation in main.operations:
            for plan in operation.plans:
                for entry in plan.concatenated if isinstance(plan, LoopPlan) else ():
                    for position, between in self._ends.get(Source(operation.layer.id, entry.output), ()):
                        whole = None if {*between} & {*changed} else self._before(position, between, known)
                        if whole is not None:
                            is_backward = entry.slicing.stride < 0
                            yield _Scan(operation.layer.id, entry.result, entry.slicing.axis, is_backward, whole)

    @cached_property
    def _ends(self) -> dict[Source, list[tuple[int, tuple[int, ...]]]]:
        """The outputs of the model that are an output of a loop, with the layers between, from the end on."""
        found, graph = dict[Source, list[tuple[int, tuple[int, ...]]]](), self.model.graph
        for position, result in enumerate(graph.results):
            between, source = list[int](), graph.source(result.id)
            while graph.layer_of(source).type in (*VIEWS, "Transpose"):
                between.append(graph.layer_of(source).id)
                source = graph.source(between[-1])
            if source is not None and graph.layer_of(source).is_loop:
                found.setdefault(source, []).append((position, tuple(between)))
        return found

    def _before(self, position: int, between: Sequence[int], known: KnownRun) -> Array | None:
        """Return what an output of a loop should be, of the output of the model that layers make of it."""
        value, graph = known.example.expected.get(position), self.model.graph
        for key in between:
            before = known.value((), graph.sources[key][0] or Source(-1, 0))
            if value is None or before is None or before.size != value.size:
                return None
            if graph.by_id[key].type == "Transpose":
                source = graph.sources[key][1] or Source(-1, 0)
                order = self.compiled.main.template[self.compiled.main.slots[source]]
                if order is None:
                    return None
                value = value.transpose(np.argsort(order))
            value = value.reshape(before.shape)
        return value


class _Scan(Record, eq=False):
    """A scan output of a loop, and what it should be as a whole."""

    loop: int
    slot: int
    axis: int
    is_backward: bool
    whole: Array


class _Disagrees(Exception):  # no error: the run is not needed any further
    """A slice of an output disagrees in this iteration."""

    def __init__(self, layer: Layer, iteration: int) -> None:
        super().__init__(layer, iteration)
        self.layer, self.iteration = layer, iteration


_Failures: Final = (
    StepperError,
    _Disagrees,
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
    MemoryError,
)


def _with_missing(program: Program, chosen: Sequence[int], values: Sequence[Any]) -> list[int]:
    """Return operations and those that give what they read, where no value is known of it."""
    makers = {slot: index for index, operation in enumerate(program.operations) for slot in operation.outputs}
    found, waiting = {*chosen}, list(chosen)
    while waiting:
        for slot in program.operations[waiting.pop()].inputs:
            index = makers.get(slot, -1) if slot >= 0 and values[slot] is None else -1
            if index >= 0 and index not in found:
                found.add(index)
                waiting.append(index)
    return sorted(found)


def joined(found: Iterable[Agreement]) -> Agreement:
    """Return the agreement over several examples: the largest ratio, the mean distance."""
    each = list(found)
    differing = frozenset(position for one in each for position in one.differing)
    return Agreement(
        max((one.ratio for one in each), default=0.0),
        sum(one.distance for one in each) / max(1, len(each)),
        differing,
    )


def residual(
    outputs: Sequence[Mapping[int, Array]], known: Sequence[KnownRun], first: tuple[int, int] | None = None
) -> Array | None:
    """Return all differences from the reference in one vector, each output by its size; None for another shape.

    `first` limits them to so many first rows of the outputs that have so many rows in all.
    """
    parts = list[Array]()
    for given, run in zip(outputs, known, strict=True):
        for position, theirs in run.example.expected.items():
            ours = given[position]
            if ours.shape != theirs.shape:
                return None
            if not is_floating(theirs.dtype) or (first is not None and theirs.shape[:1] != first[1:]):
                continue
            if first is not None:
                ours, theirs = ours[: first[0]], theirs[: first[0]]
            with np.errstate(all="ignore"):
                a, b = np.asarray(ours, np.float64).reshape(-1), np.asarray(theirs, np.float64).reshape(-1)
                is_known = np.isfinite(b)
                if not np.isfinite(a[is_known]).all():
                    return None
                size = math.sqrt(float(np.mean(np.square(b[is_known])))) if is_known.any() else 1.0
                parts.append((a[is_known] - b[is_known]) / (size or 1.0))
    return np.concatenate(parts) if parts else np.empty(0)
