"""The subject of rules of a run: its overview, and the facts of the file for each of its loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from stepper.debug.causes.cause import Chain, Location
from stepper.debug.debugger import Debugger
from stepper.debug.overview.facts import ActivationFacts, LoopFacts, Overview, Row, RowKind, RunState
from stepper.diagnosis.check.deadline import Deadline
from stepper.diagnosis.check.probe import Probe, Probed, probe_run
from stepper.diagnosis.lint.subjects import LoopSubject
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_states
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules
from stepper.errors import StepperError
from stepper.ir.model import Layer, LayerSite, Model
from stepper.tensors.difference import measure
from stepper.tensors.histories import Counter, ValueHistory
from stepper.tensors.tolerances import Tolerance

_SHIFT: Final = 0.03125
_TIMES_OURS: Final = 3.0
_LARGEST_REPEATED: Final = 2**27
"""Bytes of outputs: what is held of two runs with larger ones takes a multiple of the largest tensor."""
_NEAR: Final = Tolerance(1e-3, 1e-5)
REAL: Final = ("f16", "bf16", "f32", "f64")


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
    """One run of a loop with what the file says of the loop."""

    facts: LoopFacts
    activation: ActivationFacts
    subject: LoopSubject | None

    def carried(self) -> Iterator[CarriedRow]:
        """Yield what it carries, as far as that is known."""
        for row, history in zip(self.facts.rows, self.activation.values, strict=True):
            if row.kind is RowKind.BACK_EDGE and history is not None and history.count:
                yield CarriedRow(row, history)


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
    """A run that was made; without a debugger only its facts are known, and no value that they do not have.

    Further runs end at the deadline; one `cost` so many seconds of the processor.
    """

    def __init__(
        self,
        model: Model,
        overview: Overview,
        debugger: Debugger | None = None,
        *,
        deadline: Deadline | None = None,
        cost: float = 0.0,
        probe: Probe | None = None,
    ) -> None:
        self.model, self.overview, self._debugger = model, overview, debugger
        self._deadline, self._cost, self._probe = deadline, cost, probe

    @cached_property
    def _subjects(self) -> dict[int, LoopSubject]:
        """Loops of the file by line; several layers of a line (of a sequence that was opened) are none."""
        model = self.model
        found: dict[int, LoopSubject] = {}
        for path, graph in model.graphs():
            for layer in graph.layers:
                if layer.is_loop:
                    found[layer.line] = LoopSubject(model, path, graph, layer)
        return found

    @cached_property
    def is_probed(self) -> bool:
        """True if the run was short and small enough, and ended as it should, to be made once or twice more."""
        overview = self.overview
        if self._debugger is None or sum(one.nbytes for one in self.outputs or ()) > _LARGEST_REPEATED:
            return False
        return overview.state is RunState.FINISHED and not overview.births

    @property
    def probe(self) -> Probe | None:
        """Observations of one more run, of the operations in the bodies."""
        return self._probe if self.is_probed else None

    def probed(self, loop: RunOfLoop) -> Probed | None:
        """Return what was seen of the operations in the body of a loop."""
        return None if self.probe is None else self.probe.found.get(loop.facts.layer.line)

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
        if not self.is_probed or self._deadline is None or self._deadline.left < self._cost:
            return None
        assert self._debugger is not None, "it is probed"
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
        if self._debugger is None or self._deadline is None or self.outputs is None:
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
        return None if self._debugger is None else self._debugger.machine.outputs

    def loops(self) -> Iterator[RunOfLoop]:
        """Yield the last run of each loop that ran."""
        for facts in self.overview.loops:
            if facts.activations:
                yield RunOfLoop(facts, facts.activations[-1], self._subjects.get(facts.layer.line))

    def value(self, loop: RunOfLoop, name: str, iteration: int) -> Array | None:
        """Return a value in the last run of a loop; None where it has none that can be named."""
        body = (
            None
            if self.probe is None or loop.facts.total != loop.activation.iterations
            else self.probe.bodies.get((loop.facts.layer.line, iteration))
        )
        named = [] if body is None else [one for one in body.program.graph.layers if one.name == name and one.outputs]
        if body is not None and len(named) == 1:
            found = body.values[body.program.slot(named[0].id)]
            return found if isinstance(found, np.ndarray) else None
        return self._value(f"`{loop.facts.layer.name}`::`{name}`@{iteration}")

    def values(self, loop: RunOfLoop, name: str, count: int) -> Array | None:
        """Return a value in the first so many iterations, these along a new first axis; None where shapes change."""
        return self._value(f"`{loop.facts.layer.name}`::`{name}`@0:{count}")

    def _value(self, address: str) -> Array | None:
        if self._debugger is None:
            return None
        try:
            found = self._debugger.value(address)
        except StepperError:
            return None
        return found if isinstance(found, np.ndarray) else None

    def chain_of(self, address: str, tick: int | None = None) -> Chain | None:
        """Return where a value comes from, as it is at a tick (None: now); None where that cannot be told."""
        if self._debugger is None:
            return None
        try:
            if tick is not None:
                self._debugger.goto_tick(tick)
            return self._debugger.chain_of(address)
        except StepperError:
            return None


def _another(value: Any) -> Array | None:
    """Return other numbers of the same kind; None for a value of which there are none that surely fit."""
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
