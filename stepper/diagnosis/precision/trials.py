"""Runs in fewer bits, each with another set of operations (or weights) left in f32, held against the plain run."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from functools import cached_property
from threading import Timer
from typing import Final, NamedTuple

from stepper.debug.debugger import Debugger
from stepper.diagnosis.precision.losses import Loss, losses
from stepper.diagnosis.precision.narrowing import (
    LayerKey,
    Narrowing,
    NarrowPartner,
    crossing_inputs,
    layer_key,
    narrowed_operations,
)
from stepper.diagnosis.precision.weights import Weight, in_eight_bits, weights_of
from stepper.element_types import Array
from stepper.engine.compiler import compile_model, partner_in
from stepper.engine.frames import Every
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.engine.run import output_names
from stepper.errors import StepperError
from stepper.ir.model import Layer
from stepper.ops.emulation import rounded

_MOVES: Final = 1_000
"""How many moves more than twice those of the plain run a run in fewer bits may make."""


class Outcome(NamedTuple):
    """Result of a run in fewer bits: the loss of each output; none where it failed, or did not end in time."""

    losses: tuple[Loss, ...] | None
    failed: str = ""

    @property
    def error(self) -> float:
        """The largest error of an output; Inf where there are none."""
        return float("inf") if self.losses is None else max((one.error for one in self.losses), default=0.0)


class Trials:
    """A model on given inputs, run plainly once, and in fewer bits as often as asked for, within so many seconds."""

    def __init__(self, debugger: Debugger, narrowing: Narrowing, seconds: float) -> None:
        self.narrowing, self.runs = narrowing, 0
        self._start = debugger.machine
        self._inputs: Sequence[Array] = debugger.inputs
        self.compiled = self._start.compiled
        self._deadline = time.monotonic() + seconds
        self._moves = 0
        self._outcomes: dict[frozenset[LayerKey], Outcome] = {}

    @property
    def in_time(self) -> bool:
        """True while there is time for another run."""
        return time.monotonic() < self._deadline

    @cached_property
    def plain(self) -> tuple[Array, ...] | None:
        """The outputs of the plain run; None where it does not come to its end, or not in time."""
        machine = self.machine()
        timer = Timer(max(self._deadline - time.monotonic(), 0.0), machine.request_pause)
        timer.start()
        try:
            machine.advance(Every.END)
        except StepperError:
            return None
        finally:
            timer.cancel()
        self._moves = machine.tick
        return machine.outputs

    @cached_property
    def candidates(self) -> dict[LayerKey, Layer]:
        """The layers that may be left in f32: operations that are narrowed, or weights."""
        if self.narrowing is Narrowing.I8_WEIGHTS:
            return {layer_key(one.layer): one.layer for one in self._weights}
        return {layer_key(one.layer): one.layer for one in narrowed_operations(self.compiled)}

    def readers(self, key: LayerKey) -> Layer:
        """Return the operation that computes with a candidate: itself, or the one that reads the weights."""
        found = (one.read_by.layer for one in self._weights if layer_key(one.layer) == key)
        return next(found, self.candidates[key])

    @cached_property
    def _weights(self) -> Sequence[Weight]:
        return weights_of(self.compiled) if self.narrowing is Narrowing.I8_WEIGHTS else ()

    def machine(self) -> Machine:
        """Return a machine of the plain model at its start."""
        return self._made(self.compiled)

    def narrowed(self, kept: Collection[LayerKey]) -> Machine:
        """Return a machine at its start that computes all but these in fewer bits."""
        if self.narrowing is not Narrowing.I8_WEIGHTS:
            partner = NarrowPartner(self.compiled.model, self.narrowing, kept, partner_in(self.compiled))
            return self._made(compile_model(self.compiled.model, self.compiled.rules, partner))
        machine = self.machine()
        for weight in self._weights:
            if layer_key(weight.layer) not in kept:
                machine.set_constant(weight.program, weight.slot, in_eight_bits(weight))
        return machine

    def run(self, kept: Collection[LayerKey]) -> Outcome:
        """Return what comes of a run with these left in f32."""
        key = frozenset(kept)
        if key not in self._outcomes:
            self._outcomes[key] = self._run(key)
        return self._outcomes[key]

    def _run(self, kept: frozenset[LayerKey]) -> Outcome:
        assert self.plain is not None
        self.runs += 1
        machine = self.narrowed(kept)
        try:
            machine.advance(Every.END, until=2 * self._moves + _MOVES)
        except StepperError as error:
            return Outcome(None, str(error))
        if machine.outputs is None:
            return Outcome(None)
        return Outcome(losses(output_names(self.compiled.model), self.plain, self._given_out(machine.outputs)))

    def _given_out(self, outputs: Sequence[Array]) -> list[Array]:
        """Return the model's outputs, with what comes straight out of a loop or an If in fewer bits, as its ports."""
        dtype, graph = self.narrowing.dtype, self.compiled.model.graph
        if dtype is None:
            return list(outputs)
        crossing = [bool(crossing_inputs(graph, result)) for result in graph.results]
        return [rounded(one, dtype) if crosses else one for one, crosses in zip(outputs, crossing, strict=True)]

    def _made(self, compiled: CompiledModel) -> Machine:
        start = self._start
        return Machine(
            compiled,
            self._inputs,
            max_iterations=start.max_iterations,
            states=start.initial_states,
            keep_values=False,
        )
