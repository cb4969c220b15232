"""The subject of rules of a run: its overview, and the facts of the file for each of its loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from stepper.debug.causes.cause import Chain, Location
from stepper.debug.debugger import Debugger
from stepper.debug.overview.overview_facts import ActivationFacts, LoopFacts, Overview, Row, RowKind, RunState
from stepper.diagnosis.check.probe import Deadline, LoopPlace, Probe, Probed, place_of, probe_run
from stepper.diagnosis.lint.subjects import LoopSubject
from stepper.diagnosis.rule import Detail, FilePart, Finding, Rule, Severity
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_states
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules
from stepper.errors import StepperError
from stepper.ir.model import Layer, LayerSite, Model, path_text
from stepper.query.address_syntax import exact_name
from stepper.tensors.difference import measure
from stepper.tensors.histories import Counter, ValueHistory
from stepper.tensors.tolerances import Tolerance

_SHIFT = 0.03125
_TIMES_OURS = 3.0
_LARGEST_REPEATED = 2**27
"""Bytes of outputs: what is held of two runs with larger ones takes a multiple of the largest tensor."""
_NEAR = Tolerance(1e-3, 1e-5)
REAL = ("f16", "bf16", "f32", "f64")
T = TypeVar("T")


class CarriedRow(NamedTuple):
    """A value that a loop carries, in one of its runs."""

    row: Row
    history: ValueHistory

    @property
    def is_real(self) -> bool:
        """True for floating point."""
        return self.history.type in REAL

    @property
    def counter(self) -> Counter | None:
        """How it counts, if it does."""
        return self.history.counter


class RunOfLoop(NamedTuple):
    """Hold one run of a loop and the loop's definition in the file."""

    facts: LoopFacts
    activation: ActivationFacts
    subject: LoopSubject | None

    def carried(self) -> Iterator[CarriedRow]:
        """Yield what it carries, as far as that is known."""
        for row, history in zip(self.facts.rows, self.activation.values, strict=True):
            if row.kind is RowKind.BACK_EDGE and history is not None and history.count:
                yield CarriedRow(row, history)

    def shown(
        self, layer: LayerSite | None, iteration: int | None, severity: Severity | None = None, /, **details: Detail
    ) -> RunFinding:
        """Return a finding at a layer in an iteration."""
        outer = self.activation.outer
        iterations = (*outer, iteration) if iteration is not None else outer
        address = "" if layer is None else moment_address(layer.name, iterations)
        place = RunPlace(layer, (self.facts.layer,), iterations, address, self.activation.tick, self.facts.layer)
        return shown(place, severity, **details)


class Observed(NamedTuple, Generic[T]):
    """Observation of an operation in the body of a loop."""

    loop: RunOfLoop
    subject: LoopSubject
    key: Any
    layer: Layer
    found: T

    def shown(self, iteration: int, severity: Severity | None = None, **details: Detail) -> RunFinding:
        """Return a finding about the operation in an iteration."""
        return self.loop.shown(self.subject.site(self.layer), iteration, severity, **details)

    @property
    def type(self) -> str:
        """Return the declared element type of the output; empty if it is not declared."""
        declared = self.layer.outputs[0].element_type
        return "" if declared is None else declared.name


class Elsewhere(NamedTuple):
    """A run on other inputs: those that are others, what came out, and what was seen."""

    inputs: tuple[Layer, ...]
    outputs: tuple[Array, ...]
    probe: Probe


def beginning(debugger: Debugger) -> Machine:
    """Return a machine of its own at the beginning of the run."""
    machine = debugger.machine.twin()
    machine.restore(debugger.timeline.history.before(0))
    return machine


class RunSubject:
    """A run that was made. Unless it `moves` the debugger, only values that a probe has seen are known.

    Further runs end at the deadline; one `cost` so many seconds of the processor.
    """

    def __init__(
        self,
        model: Model,
        overview: Overview,
        debugger: Debugger,
        *,
        deadline: Deadline,
        cost: float,
        probe: Probe | None,
        moves: bool,
    ) -> None:
        self.model, self.overview, self._debugger = model, overview, debugger
        self._deadline, self._cost, self._probe, self._moves = deadline, cost, probe, moves

    @cached_property
    def _subjects(self) -> dict[LoopPlace, LoopSubject]:
        """Loops of the file."""
        model = self.model
        found: dict[LoopPlace, LoopSubject] = {}
        for path, graph in model.graphs():
            for layer in graph.layers:
                if layer.is_loop:
                    found[path_text((*path, layer)), layer.line, layer.id] = LoopSubject(model, path, graph, layer)
        return found

    @cached_property
    def is_probed(self) -> bool:
        """True if the run was short and small enough, and ended as it should, to be made once or twice more."""
        overview = self.overview
        if sum(one.nbytes for one in self.outputs or ()) > _LARGEST_REPEATED:
            return False
        return overview.state is RunState.FINISHED and not overview.births

    @cached_property
    def ends_finite(self) -> bool:
        """True if the run has ended and neither its outputs nor the values that loops carry have NaN or Inf."""
        if self.overview.state is not RunState.FINISHED or any(
            one.nan or one.infinite for one in self.overview.outputs
        ):
            return False
        carried = (value.history.numbers for loop in self.loops() for value in loop.carried() if value.is_real)
        return all(np.isfinite(np.asarray(numbers, np.float64)).all() for numbers in carried)

    @property
    def probe(self) -> Probe | None:
        """Observations of one more run, of the operations in the bodies."""
        return self._probe if self.is_probed else None

    def probed(self, loop: RunOfLoop) -> Probed | None:
        """Return what was seen of the operations in the body of a loop."""
        return None if self.probe is None else self.probe.found.get(place_of(loop.facts))

    def observed(self, kind: type[T]) -> Iterator[Observed[T]]:
        """Yield what was seen of the operations in the last run of each loop; keys are ids of layers, or begin so."""
        for loop in self.loops():
            seen, subject = self.probed(loop), loop.subject
            if seen is not None and subject is not None:
                for key, found in seen.of(kind).items():
                    layer = key[0] if isinstance(key, tuple) else key
                    yield Observed(loop, subject, key, subject.inner.by_id[layer], found)

    @cached_property
    def elsewhere(self) -> Elsewhere | None:
        """A run on other inputs, as far as they can be others; None where that is not made, or fails."""
        return self._run_on(self.model.graph.parameters)

    def elsewhere_alone(self) -> Iterator[Elsewhere]:
        """Yield a run for each input that alone is another one, where there are several, as long as there is time."""
        inputs = () if self.elsewhere is None else self.elsewhere.inputs
        for one in inputs if len(inputs) > 1 else ():
            run = self._run_on([one])
            if run is not None:
                yield run

    def _run_on(self, parameters: Sequence[Layer]) -> Elsewhere | None:
        """Return a run on other values for these inputs; None where that is not made, or fails."""
        if self.probe is None or self._deadline.left < self._cost:
            return None
        machine = beginning(self._debugger)
        frame = machine.stack[0]
        changed = []
        for one in parameters:
            slot = frame.program.slot(one.id)
            other = _another(frame.values[slot])
            if other is not None:
                frame.values[slot] = other
                changed.append(one)
        if not changed:
            return None
        probe = probe_run(machine, self.overview.loops, self._deadline, measures=False)
        if not machine.finished or machine.outputs is None:
            return None
        return Elsewhere(tuple(changed), machine.outputs, probe)

    @cached_property
    def differs_in_openvino(self) -> bool:
        """True if the outputs are others by the rules of OpenVINO, or do not come in a few times as long."""
        if self.outputs is None:
            return False
        ours, states = self._debugger.machine, self._debugger.machine.initial_states
        if ours.rules is Rules.OPENVINO:
            return False
        compiled = compile_model(self.model, Rules.OPENVINO)
        machine = Machine(compiled, self._debugger.inputs, states=bind_states(compiled, states))
        probe_run(machine, self.overview.loops, Deadline(_TIMES_OURS * self._cost), measures=False)
        if machine.outputs is None:
            return True
        pairs = zip(self.outputs, machine.outputs, strict=True)
        return any((one := measure(*pair, _NEAR)) is not None and one.differs for pair in pairs)

    @property
    def outputs(self) -> tuple[Any, ...] | None:
        """The outputs of the run; None where they are not known."""
        if self._moves:
            return self._debugger.machine.outputs
        return None if self._probe is None else self._probe.outputs

    def loops(self) -> Iterator[RunOfLoop]:
        """Yield the last run of each loop that ran."""
        for facts in self.overview.loops:
            if facts.activations:
                yield RunOfLoop(facts, facts.activations[-1], self._subjects.get(place_of(facts)))

    def value(self, loop: RunOfLoop, name: str, iteration: int) -> Array | None:
        """Return a value in the last run of a loop; None where it has none that can be named."""
        body = None
        if self.probe is not None and loop.facts.total == loop.activation.iterations:
            body = self.probe.bodies.get((place_of(loop.facts), iteration))
        named = [] if body is None else [one for one in body.program.graph.layers if one.name == name and one.outputs]
        found: Any = None
        if body is not None and len(named) == 1:
            found = body.values[body.program.slot(named[0].id)]
        elif self._moves:
            with suppress(StepperError):
                found = self._debugger.value(f"`{loop.facts.layer.name}`::`{name}`@{iteration}")
        return found if isinstance(found, np.ndarray) else None

    def chain_of(self, address: str, tick: int | None = None) -> Chain | None:
        """Return the origin of a value at a tick (None: now); None if it is unknown."""
        if not self._moves:
            return None
        with suppress(StepperError):
            if tick is not None:
                self._debugger.goto_tick(tick)
            return self._debugger.chain_of(address)
        return None


def _another(value: Any) -> Array | None:
    """Return other numbers of the same kind; None if no other numbers surely fit."""
    if not isinstance(value, np.ndarray) or not value.size or value.dtype.kind != "f" or not np.isfinite(value).all():
        return None
    wide = value.astype(np.float64)
    other = np.roll(wide.reshape(-1), 1).reshape(wide.shape) * 0.7 + wide * 0.2 + _SHIFT
    found: Array = np.array(other, value.dtype)
    found.flags.writeable = False
    return found


def iterations_around(location: Location) -> tuple[int, ...]:
    """Return the iterations of the loops around a place."""
    return tuple(one.iteration for one in location.path if one.iteration is not None)


def loops_around(location: Location) -> tuple[LayerSite, ...]:
    """Return the loops and Ifs around a place."""
    return tuple(one.layer for one in location.path)


# --- findings of a run ----------------------------------------------------------------------------------------------


class RunPlace(NamedTuple):
    """A layer, the loops around it with their iterations, and what to look at; `loop` is the one that it is about."""

    layer: LayerSite | None
    path: tuple[LayerSite, ...] = ()
    iterations: tuple[int, ...] = ()
    address: str = ""
    tick: int = 0
    loop: LayerSite | None = None


class RunFinding(NamedTuple):
    """Hold a place where a rule is broken; `severity` is set if it differs from the rule's.

    In the texts of the rule, {layer}, {parameter} and {result} mean the layer of the place, unless the details define
    them.
    """

    place: RunPlace
    details: Mapping[str, Detail]
    severity: Severity | None = None


RunFindings: TypeAlias = Iterator[RunFinding]


def finding_of(rule: Rule, file: str, hit: RunFinding) -> Finding:
    """Return the finding of a rule at a place."""
    place = hit.place
    loop = place.loop or (place.path[-1] if place.path else None)
    line = place.layer.line if place.layer is not None else 0
    spot = FilePart(file, line, "run", place.path, place.layer, loop)
    severity = hit.severity or rule.severity
    named: dict[str, Detail] = dict.fromkeys(("layer", "parameter", "result"), place.layer)
    details = rule.named(named) | dict(hit.details)
    return Finding(rule.name, severity, spot, details, place.iterations, place.address, place.tick)


def shown(place: RunPlace, severity: Severity | None = None, **details: Detail) -> RunFinding:
    """Return what a rule has found."""
    return RunFinding(place, details, severity)


def moment_address(name: str, iterations: Sequence[int]) -> str:
    """Return what leads the debugger to an operation, in the last of these iterations."""
    operation = str(exact_name(name))
    return f"{operation}@{iterations[-1]}" if name and iterations else operation if name else ""


# --- rows that repeat -----------------------------------------------------------------------------------------------


_LONGEST = 64
"""The longest period that is looked for."""
_LEAST_REPEATED = 4


class Repetition(NamedTuple):
    """Everything that a loop carries repeats, from an iteration to the end; `value` is one that does not stay."""

    period: int
    since: int
    value: CarriedRow


def repetition(loop: RunOfLoop) -> Repetition | None:
    """Return with which period all that is carried repeats to the end; None if it does not.

    Counters and what never changes are left out; a value that settles is none.
    """
    found: Repetition | None = None
    for value in loop.carried():
        if value.counter is not None or value.history.unchanged_since == 0:
            continue
        one = _period(value.history)
        if one is None:
            return None
        period, since = one
        if found is None or period > found.period:
            found = Repetition(period, since if found is None else max(found.since, since), value)
    return found if found is not None and found.period > 1 else None


def _period(history: ValueHistory) -> tuple[int, int] | None:
    """Return the period of the last iterations, and since when it holds; None without one, or of too few iterations."""
    exact = history.spans[:, 1] - history.spans[:, 0] == 1
    begin = int(np.flatnonzero(~exact)[-1]) + 1 if not exact.all() else 0
    columns = history.numbers[:, begin:]
    count = columns.shape[1]
    for period in range(1, min(count // 2, _LONGEST) + 1):
        same = (columns[:, period:] == columns[:, :-period]).all(axis=(0, 2))
        run = int(same[::-1].argmin()) if not same.all() else len(same)
        if run >= max(2 * period, _LEAST_REPEATED):
            return period, int(history.spans[begin, 0]) + count - run - period
    return None
