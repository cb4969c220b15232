"""One comparison from its beginning to its verdict: `compare_models`, and `compare_with` any other reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from stepper.compare.align import Alignment
from stepper.compare.file_differences import FileCauses, FileDifference, file_differences
from stepper.compare.observations import ErrorOrigin, Observations, SideFailure, ValueMismatch, path_text
from stepper.compare.references.model_reference import ModelReference
from stepper.compare.references.onnx import OnnxReference
from stepper.compare.references.openvino import OpenVINOReference
from stepper.compare.references.protocol import ReferenceRun
from stepper.compare.rerun import ExplanationKind, bisect, explain, steps_to_blame
from stepper.compare.verdict import ComparisonVerdict, steps_text, verdict
from stepper.compare.walk import LockstepWalk
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_inputs, bind_states
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Partner, operations_elsewhere
from stepper.engine.rules import Rules, rules_called
from stepper.errors import ModelError
from stepper.ir.model import Layer
from stepper.ir.reader import ModelSource, opened
from stepper.ops.precision import emulated_dtype
from stepper.records import Record
from stepper.tensors.tolerances import Tolerances
from stepper.wording import excerpt

_MORE_ITERATIONS: Final = 100
"""By which a loop may run longer with other last digits; one that then has no end is given up."""


class RunComparison(Record):
    """The whole result. `file` is that of our model. `verdict` is None where nothing is outside of the tolerances.
    `file_differences` are those of two models, whether or not they have an effect on these inputs. `notes` say what the
    reference could not compute.
    """

    title: str
    file: str
    observations: Observations
    verdict: ComparisonVerdict | None
    file_differences: tuple[FileDifference, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        found = "no difference" if self.verdict is None else excerpt(self.verdict.reason, 300)
        return f"<Comparison with {excerpt(self.title)}: {found}>"

    @property
    def differs(self) -> bool:
        """True if something is outside of the tolerances, or a side stopped."""
        return self.verdict is not None


def compare_models(
    ours: ModelSource,
    theirs: ModelSource,
    inputs: Mapping[str | int, Any] | Sequence[Array],
    *,
    title: str = "",
    rules: str | Rules = Rules.SPEC,
    tolerances: Tolerances | None = None,
    given: Mapping[str, str] | None = None,
    max_iterations: int | None = None,
    states: Mapping[str, Any] | None = None,
    partner: Partner | None = None,
    reference_partner: Partner | None = None,
    reference_inputs: Mapping[int, Array] | None = None,
) -> RunComparison:
    """Run two models on the same inputs, in lock step, and return where they part first, and why.

    `inputs` map names of ours to arrays, or are bound to ours already, in the order of its Parameters; `given` are
    pairs of names of layers that stand for each other; `partner` computes operations on both sides, unless there is a
    `reference_partner`. `reference_inputs` are values of the reference's own inputs, by position, which go before those
    of ours. Raises ModelError where the reference cannot be run; that ours cannot is a finding.
    """
    ours, theirs, rules = opened(ours), opened(theirs), rules_called(rules)
    inputs = bind_inputs(ours, inputs) if isinstance(inputs, Mapping) else inputs
    observations = Observations()
    try:
        compiled = compile_model(ours, rules, partner)
    except ModelError as error:
        compiled, observations.findings = None, [SideFailure((), None, str(error), ours=True)]
    alignment = Alignment(ours, theirs, compiled, rules, reference_partner or partner, given)
    differences = file_differences(alignment)
    causes = FileCauses(ours, differences)
    title = title or theirs.path.name
    if compiled is not None:
        own = bind_states(compiled, states)
        machine = Machine(compiled, inputs, max_iterations=max_iterations, states=own)
        other = alignment.machine(inputs, max_iterations, own, reference_inputs)
        followed = ModelReference(other, alignment, title)
        observations = LockstepWalk(machine, followed, tolerances or Tolerances()).run()
    found = verdict(observations, causes, title)
    notes = () if compiled is None else emulation_notes(compiled)
    return RunComparison(title, str(ours.path), observations, found, tuple(differences), notes)


def compare_with(
    machine: Machine, reference: ReferenceRun, tolerances: Tolerances | None = None, *, only_outputs: bool = False
) -> RunComparison:
    """Run a machine that stands at its beginning beside a reference of any kind; return the result.

    `only_outputs`: values inside are compared only where an output differs, to find out why.
    """
    chosen = tolerances or Tolerances(exact=reference.is_exact)
    start = machine.snapshot()
    if only_outputs:
        if (agreed := LockstepWalk(machine, reference, chosen).look_at_outputs()) is not None:
            model, notes = machine.compiled.model, (*emulation_notes(machine.compiled), *reference.notes)
            found = verdict(agreed, FileCauses(model, ()), reference.title, exact=reference.is_exact)
            return RunComparison(reference.title, str(model.path), agreed, found, notes=notes)
        machine.restore(start)
    inputs = [machine.stack[0].values[slot] for slot in machine.compiled.main.parameters]
    walk = LockstepWalk(machine, reference, chosen)
    observations = walk.run()
    observations.is_source = isinstance(reference, OnnxReference)
    causes = FileCauses(machine.compiled.model, ())
    explanation = bisection = None
    emulated = emulation_notes(machine.compiled)
    differs = observations.outputs_differ
    if isinstance(reference, OpenVINOReference) and (differs or _has_stopped(observations)) and not emulated:
        explanation = explain(
            machine.compiled.model, reference, observations.outputs, walk.outputs_beside, observations.loops
        )
        loop = _loop_to_blame(observations, causes) if differs else None
        if loop is not None and (explanation is None or explanation.reason is ExplanationKind.SNIPPETS):
            count = observations.loops[id(loop)].iterations
            bisection = bisect(machine.compiled, inputs, loop, count, reference, chosen, machine.initial_states)
    file = str(machine.compiled.model.path)
    if differs and not (reference.is_exact or emulated) and (explanation is None or not explanation.agrees):
        most = _MORE_ITERATIONS + 2 * max((one.iterations for one in observations.loops.values()), default=0)
        steps = steps_to_blame(
            machine.compiled, inputs, machine.initial_states, observations.outputs, walk.outputs_beside, most
        )
        if steps:
            notes = (steps_text(steps, observations.outputs), *reference.notes)
            return RunComparison(reference.title, file, observations, None, notes=notes)
    found = verdict(
        observations, causes, reference.title, exact=reference.is_exact, explanation=explanation, bisection=bisection
    )
    if found is not None and _has_grown(observations) and not (reference.is_exact or reference.shares_inputs):
        machine.restore(start)
        closer = LockstepWalk(machine, reference, chosen.closer()).run()
        closer.is_source = observations.is_source
        earlier = verdict(closer, causes, reference.title, exact=False)
        if earlier is not None and not _has_grown(closer):
            place = path_text(found.path)
            detail = f"that is within the tolerance; a tenth of the tolerance is exceeded in {place}"
            found = replace(earlier, details=(*earlier.details[:1], detail, *found.details[1:]))
        elif not any(isinstance(one, ValueMismatch) and one.origin is ErrorOrigin.HERE for one in closer.findings):
            grows = "it is rounding that grows"
            detail = f"each operation agrees on the reference's inputs, to a tenth of the tolerance: {grows}"
            found = replace(found, details=(detail, *found.details))
    return RunComparison(reference.title, file, observations, found, notes=(*emulated, *reference.notes))


def emulation_notes(compiled: CompiledModel) -> tuple[str, ...]:
    """Return who computed our side, where that emulates a device of less precision."""
    found = {operation.computed_by for _program, operation in operations_elsewhere(compiled)}
    return tuple(f"our side is {one}" for one in sorted(found) if emulated_dtype(one) is not None)


def _has_stopped(observations: Observations) -> bool:
    """True if the reference alone has stopped, before it gave an output."""
    failures = [one for one in observations.findings if isinstance(one, SideFailure)]
    return bool(failures) and not any(one.ours for one in failures)


def _loop_to_blame(observations: Observations, causes: FileCauses) -> Layer | None:
    """Return the loop of the main graph that gives the first output that differs, if no value in it does."""
    if any(isinstance(one, ValueMismatch) and one.path for one in observations.ordered(exact=False)):
        return None
    position = next(k for k, one in enumerate(observations.outputs) if one.differs)
    before = causes.loop_before(causes.model.graph.results[position])
    record = None if before is None else observations.loops.get(id(before[0]))
    same = record is not None and all(theirs is None or theirs == ours for ours, theirs, _count in record.runs)
    if before is None or record is None or not same or record.iterations == 0 or before[0].opened_from is not None:
        return None
    return before[0]


def _has_grown(observations: Observations) -> bool:
    """True if what is outside of the tolerance first came in with inputs, all of which are within it."""
    findings = observations.ordered(exact=False)
    return bool(findings) and isinstance(findings[0], ValueMismatch) and findings[0].origin is ErrorOrigin.CARRIED
