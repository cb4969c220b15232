"""Differences from a reference over inputs: outputs first, and where these differ the runs in lock step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from stepper.compare.align import Alignment
from stepper.compare.comparison import RunComparison, compare_models, compare_with
from stepper.compare.observations import named
from stepper.compare.references.openvino import OpenVINOReference
from stepper.compare.references.protocol import ReferenceFailed, ReferenceRun
from stepper.compare.references.reference_opening import ModelReference, model_title, open_reference
from stepper.compare.walk import LockstepWalk
from stepper.element_types import Array
from stepper.engine.inputs import variables_alone
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules
from stepper.engine.run import LoopLog
from stepper.errors import ExecutionError
from stepper.ir.reader import open_sequences, read
from stepper.openvino.partner import OPENVINO
from stepper.openvino.peer import OpenVINOPeer
from stepper.sweep import sweep_results
from stepper.sweep.sweep_inputs import Prepared
from stepper.sweep.sweep_results import SweepOutcome, SweepRow, name_and_type, row_text
from stepper.tensors.tolerances import Tolerances


class ModelJudge:
    """Compares with another model: the outputs first, and where these differ the runs in lock step."""

    def __init__(self, prepared: Prepared) -> None:
        job, rules, partner = prepared.job, Rules(prepared.job.rules), prepared.job.partner
        self._prepared = prepared
        theirs = read(job.reference)
        self._theirs = open_sequences(theirs) if job.open_sequences else theirs
        self._alignment = Alignment(prepared.model, self._theirs, prepared.compiled, rules, partner)
        self._title = model_title(Path(job.source or job.model), Path(job.reference))
        self._tolerances = job.tolerances or Tolerances()

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return the first place where the two part."""
        prepared, limit = self._prepared, self._prepared.job.max_iterations
        other = self._alignment.machine(inputs, limit, states)
        reference = ModelReference(other, self._alignment, self._title)
        with suppress(ExecutionError):  # that only the reference fails is a difference
            prepared.run(other)
        compared = partial(
            compare_models,
            prepared.model,
            self._theirs,
            inputs,
            title=self._title,
            rules=prepared.job.rules,
            tolerances=self._tolerances,
            max_iterations=limit,
            states=states,
            partner=prepared.job.partner,
        )
        return _row(name, prepared, prepared.machine(inputs, states), reference, self._tolerances, compared)


class ReferenceJudge:
    """Compares with what is no model of ours: OpenVINO, ONNX, values, a recording."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._peer: OpenVINOPeer | None = None

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return the first place where the two part."""
        prepared, reference = self._prepared, self._reference(inputs, states)
        tolerances = prepared.job.tolerances or Tolerances(exact=reference.is_exact)
        return _row(
            name,
            prepared,
            prepared.machine(inputs, states),
            reference,
            tolerances,
            lambda: compare_with(prepared.machine(inputs, states), reference, tolerances),
        )

    def _reference(self, inputs: Sequence[Array], states: dict[str, Any]) -> ReferenceRun:
        job, compiled = self._prepared.job, self._prepared.compiled
        runtime = job.partner.runtime
        if job.reference != OPENVINO:
            source, limit = job.source or job.model, job.max_iterations
            return open_reference(job.reference, compiled, inputs, runtime, source, limit, states=states)
        if states:
            peer = OpenVINOPeer(compiled.model, runtime, variables_alone(compiled.model, states))
        else:
            peer = self._peer = self._peer or OpenVINOPeer(compiled.model, runtime)  # which keeps what it compiles
        return OpenVINOReference(peer, inputs, str(runtime), seconds=job.seconds)


def _row(
    name: str,
    prepared: Prepared,
    machine: Machine,
    reference: ReferenceRun,
    tolerances: Tolerances,
    compared: Callable[[], RunComparison],
) -> SweepRow:
    """Run our side; where its outputs are not the reference's, compare the runs. The row says where they part."""
    log = LoopLog()
    machine.observers = (log,)
    walk = LockstepWalk(machine, reference, tolerances)
    prepared.run(machine)
    loops = sweep_results.counts_of_run(log.summaries)
    agrees = False
    with suppress(ReferenceFailed):
        agrees = all(one.theirs_known and not one.differs for one in walk.outputs_beside(reference.outputs()))
    verdict = None if agrees else compared().verdict
    if verdict is None:
        return sweep_results.clean_row(name, loops)
    layer = verdict.shows_at or verdict.layer or verdict.loop
    numbers = [step.iteration for step in verdict.path if step.iteration is not None]
    if verdict.iteration is not None:
        numbers = [*numbers[: max(sum(step.layer.is_loop for step in verdict.path) - 1, 0)], verdict.iteration]
    return SweepRow(
        name,
        SweepOutcome.DIFFERS,
        "values",
        *name_and_type(layer),
        tuple(named(step.layer) for step in verdict.path),
        tuple(numbers),
        text=row_text(verdict.reason),
        loops=loops,
    )
