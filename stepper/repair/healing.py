"""Repairs without a reference: rewrites after which a run has no NaN and no Inf, and healthy runs stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from stepper.diagnosis.reduce.draft import LayerAddress
from stepper.diagnosis.reduce.reductions import is_finite
from stepper.diagnosis.reduce.trials import ValueLog
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.frames import EventKind, Every, Frame
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Partner
from stepper.ir.model import Model
from stepper.repair.catalogue.rewrite_edits import rewrite_edits
from stepper.repair.edit import RepairEdit, sites_of
from stepper.repair.expected_outputs import RUN_ERRORS, other_inputs
from stepper.repair.repairing import EditFacts, edit_facts
from stepper.repair.replay import GivenExample, KnownRun
from stepper.tensors.difference import measure
from stepper.tensors.tolerances import EXACT

_HEALTHY = 20
"""Inputs on which a healthy run may not change."""
_MOST_INPUTS = 60
_SCALES = (1.0, 0.5, 0.1)
_MOST_ULP = 64


class Heal(Struct, frozen=True):
    """A rewrite that heals a run: `healed` of `iterations` with NaN or Inf in what is carried or given are finite now.

    `healthy` inputs gave finite outputs before; these change by at most `ulp` units in the last place.
    """

    edit: EditFacts
    healed: int
    iterations: int
    healthy: int
    ulp: int


class HealAnswer(Struct, frozen=True):
    """All rewrites that heal a run. `origins` are rewrites at layers where numbers that are not finite begin.

    `refused` rewrites heal and change healthy outputs.
    """

    iterations: int
    origins: tuple[EditFacts, ...]
    heals: tuple[Heal, ...]
    refused: int
    tried: int


class FoundHeal(Struct):
    """An answer and the edit of the first rewrite in it."""

    answer: HealAnswer
    edits: tuple[RepairEdit, ...] = ()


class _Observed(Struct):
    """A run: how many iterations hold a number that is not finite, the layers where it begins, the outputs."""

    sick: int = 0
    origins: set[LayerAddress] = field(default_factory=set)
    outputs: tuple[Array, ...] = ()
    log: ValueLog | None = None

    @property
    def is_finite(self) -> bool:
        """True if the outputs and what is carried are finite."""
        return not self.sick and all(map(is_finite, self.outputs))


_Compile = Callable[[Model], CompiledModel]
_Observe = Callable[[CompiledModel, Sequence[Array]], _Observed]


def healed(
    model: Model,
    inputs: Sequence[Array],
    layers: Iterable[str] = (),
    *,
    rules: str = "spec",
    partner: Partner | None = None,
    max_iterations: int | None = None,
    states: Mapping[str, Any] | None = None,
) -> FoundHeal:
    """Return the rewrites that heal the run of a model on these inputs; `layers` are the only ones to rewrite.

    Raises what the run without an edit raises.
    """

    def compiled(one: Model) -> CompiledModel:
        return compile_model(one, rules, partner)

    def observe(one: CompiledModel, arrays: Sequence[Array]) -> _Observed:
        return _observed(Machine(one, arrays, max_iterations=max_iterations, states=states))

    names, original = {*layers}, compiled(model)
    before = observe(original, inputs)
    assert before.log is not None
    run = KnownRun(GivenExample("inputs", tuple(inputs), {}), before.log, {}, {}, 0, 0.0)
    edits = [edit for site in sites_of(model, run) for edit in rewrite_edits(site)]
    chosen = [edit for edit in edits if not names or edit.layer.name in names]
    healthy = _healthy(original, inputs, observe) if chosen else []
    found, refused = list[tuple[int, float, RepairEdit, Heal]](), 0
    for edit in chosen:
        heal = _heal(model, edit, before, inputs, healthy, compiled, observe)
        if heal is None:
            continue
        if heal.ulp > _MOST_ULP:
            refused += 1
            continue
        found.append((-heal.healed, edit.price, edit, heal))
    found.sort(key=lambda one: one[:2])
    origins = tuple(edit_facts(model, edit) for edit in edits if edit.address in before.origins)
    answer = HealAnswer(before.sick, origins, tuple(one[3] for one in found), refused, len(chosen))
    return FoundHeal(answer, tuple(one[2] for one in found[:1]))


def _heal(
    model: Model,
    edit: RepairEdit,
    before: _Observed,
    inputs: Sequence[Array],
    healthy: Sequence[tuple[Sequence[Array], _Observed]],
    compiled: _Compile,
    observe: _Observe,
) -> Heal | None:
    """Return how a rewrite heals a run; None if it does not."""
    try:
        edited = compiled(edit.patch(model).model())
        after = observe(edited, inputs)
        if after.sick >= before.sick or not after.is_finite:
            return None
        ulp = 0
        for arrays, known in healthy:
            again = observe(edited, arrays)
            ulp = max([ulp, *(_ulps(a, b) for a, b in zip(again.outputs, known.outputs, strict=True))])
    except (*RUN_ERRORS, LookupError):
        return None
    facts = edit_facts(model, edit)
    return Heal(facts, before.sick - after.sick, before.sick, len(healthy), ulp)


def _healthy(
    compiled: CompiledModel, inputs: Sequence[Array], observe: _Observe
) -> list[tuple[Sequence[Array], _Observed]]:
    """Return inputs like these on which the run is finite, with their runs."""
    found = list[tuple[Sequence[Array], _Observed]]()
    for seed in range(1, _MOST_INPUTS + 1):
        scale = _SCALES[seed % len(_SCALES)]
        arrays = [
            np.asarray(value * scale, value.dtype) if value.dtype.kind == "f" else value
            for value in other_inputs([np.nan_to_num(one) if one.dtype.kind == "f" else one for one in inputs], seed)
        ]
        try:
            run = observe(compiled, arrays)
        except RUN_ERRORS:
            continue
        if run.is_finite:
            found.append((arrays, run))
        if len(found) == _HEALTHY:
            break
    return found


def _observed(machine: Machine) -> _Observed:
    found, log = _Observed(), ValueLog(machine.compiled.model)
    frames = machine.stack
    while machine.stack:
        event = machine.advance(Every.ITERATION)
        if event.kind is EventKind.ITERATION or not event.frame.loop:
            log.take(event.frame)
            _note(found, event.frame, log)
    for frame in frames:
        log.take(frame)
    found.outputs, found.log = machine.outputs or (), log
    if not found.sick and not all(map(is_finite, found.outputs)):
        found.sick = 1  # the run itself, outside of every loop
    return found


def _note(found: _Observed, frame: Frame, log: ValueLog) -> None:
    """Take note of what is not finite in an iteration: carried or given, and where it begins."""
    program, values = frame.program, frame.values
    if frame.loop is not None and not _are_finite(values, program.results):
        found.sick += 1
    for operation in program.operations:
        if _are_finite(values, operation.inputs) and not _are_finite(values, operation.outputs):
            found.origins.add(LayerAddress(log.scopes[id(program.graph)], operation.layer.id))


def _are_finite(values: Sequence[Any], slots: Iterable[int]) -> bool:
    return all(slot < 0 or values[slot] is None or is_finite(values[slot]) for slot in slots)


def _ulps(ours: Array, theirs: Array) -> int:
    """Return how many units in the last place two outputs are apart; a large number for another shape or NaN."""
    far = measure(ours, theirs, EXACT)
    if far is None:
        return 0
    return 2**31 if far.problem or far.ours_special or far.ulp is None else far.ulp
