"""Run a comparison from its beginning to its report.

`compare_models` compares two models, `compare_with` takes any other reference.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from stepper.compare.align import Alignment
from stepper.compare.file_differences import FileCauses, FileDifference, file_differences
from stepper.compare.observations import (
    ErrorOrigin,
    LoopRecord,
    Observations,
    OutputComparison,
    OutputRecord,
    SideFailure,
    ValueMismatch,
    kind,
    named,
    numbered,
    path_text,
)
from stepper.compare.references.onnx import OnnxReference
from stepper.compare.references.openvino import OpenVINOReference
from stepper.compare.references.protocol import LoopOutcome, ReferenceRun
from stepper.compare.references.reference_opening import ModelReference
from stepper.compare.rerun import ExplanationKind, RuntimeExplanation, bisect, explain, steps_to_blame
from stepper.compare.verdict import ComparisonVerdict, figures, steps_text, verdict
from stepper.compare.walk import LockstepWalk
from stepper.debug.causes.cause import cause_data
from stepper.debug.scopes import GraphPath
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_inputs, bind_states
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Partner, operations_elsewhere
from stepper.engine.rules import Rules, rules_called
from stepper.errors import ModelError
from stepper.ir.model import Layer, layer_site
from stepper.ir.reader import ModelSource, opened
from stepper.ops.precision import emulated_dtype
from stepper.records import Record, as_data
from stepper.tensors.difference import Distance
from stepper.tensors.tolerances import Tolerances
from stepper.wording import excerpt

_MORE_ITERATIONS = 100
"""By which a loop may run longer with other last digits; one that then has no end is given up."""


class RunComparison(Record):
    """Hold the whole result of a comparison.

    `file` is the file of our model. `verdict` is None if nothing is outside of the tolerances. `file_differences` are
    the differences between two models, whether or not they have an effect on these inputs. `notes` say what the
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
    """Run two models on the same inputs, in lock step, and return where they diverge first, and why.

    `inputs` map names of ours to arrays, or are bound to ours already, in the order of its Parameters. `given` are
    pairs of names of layers that stand for each other. `partner` computes operations on both sides, unless there is a
    `reference_partner`. `reference_inputs` are values of the reference's own inputs, by position; they take precedence.
    Raises ModelError if the reference cannot be run; a failure of ours is a finding.
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
    compiled = machine.compiled
    title = reference.title
    if only_outputs:
        if (agreed := LockstepWalk(machine, reference, chosen).look_at_outputs()) is not None:
            model, notes = compiled.model, (*emulation_notes(compiled), *reference.notes)
            found = verdict(agreed, FileCauses(model, ()), title, exact=reference.is_exact)
            return RunComparison(title, str(model.path), agreed, found, notes=notes)
        machine.restore(start)
    inputs = [machine.stack[0].values[slot] for slot in compiled.main.parameters]
    walk = LockstepWalk(machine, reference, chosen)
    observations = walk.run()
    observations.is_source = isinstance(reference, OnnxReference)
    causes = FileCauses(compiled.model, ())
    explanation = bisection = None
    emulated = emulation_notes(compiled)
    differs = observations.outputs_differ
    if isinstance(reference, OpenVINOReference) and (differs or _has_stopped(observations)) and not emulated:
        explanation = explain(compiled.model, reference, observations.outputs, walk.outputs_beside, observations.loops)
        loop = _loop_to_blame(observations, causes) if differs else None
        if loop is not None and (explanation is None or explanation.reason is ExplanationKind.SNIPPETS):
            count = observations.loops[id(loop)].iterations
            bisection = bisect(compiled, inputs, loop, count, reference, chosen, machine.initial_states)
    file = str(compiled.model.path)
    if differs and not (reference.is_exact or emulated) and (explanation is None or not explanation.agrees):
        most = _MORE_ITERATIONS + 2 * max((one.iterations for one in observations.loops.values()), default=0)
        steps = steps_to_blame(
            compiled, inputs, machine.initial_states, observations.outputs, walk.outputs_beside, most
        )
        if steps:
            notes = (steps_text(steps, observations.outputs), *reference.notes)
            return RunComparison(title, file, observations, None, notes=notes)
    found = verdict(observations, causes, title, exact=reference.is_exact, explanation=explanation, bisection=bisection)
    if found is not None and _has_grown(observations) and not (reference.is_exact or reference.shares_inputs):
        machine.restore(start)
        closer = LockstepWalk(machine, reference, chosen.closer()).run()
        closer.is_source = observations.is_source
        earlier = verdict(closer, causes, title, exact=False)
        if earlier is not None and not _has_grown(closer):
            place = path_text(found.path)
            detail = f"that is within the tolerance; a tenth of the tolerance is exceeded in {place}"
            found = replace(earlier, details=(*earlier.details[:1], detail, *found.details[1:]))
        elif not any(isinstance(one, ValueMismatch) and one.origin is ErrorOrigin.HERE for one in closer.findings):
            grows = "it is rounding that grows"
            detail = f"each operation agrees on the reference's inputs, to a tenth of the tolerance: {grows}"
            found = replace(found, details=(detail, *found.details))
    return RunComparison(title, file, observations, found, notes=(*emulated, *reference.notes))


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
    """True if inputs within the tolerance led to the first value outside of the tolerance."""
    findings = observations.ordered(exact=False)
    return bool(findings) and isinstance(findings[0], ValueMismatch) and findings[0].origin is ErrorOrigin.CARRIED


WIDTH = 80
_MOST_WORST = 10
_MOST_FILES = 10
_MOST_RUNS = 6
_GLUE = "\ue000"
_TOGETHER = re.compile(r"iteration [0-9]+|\(id [0-9]+\)|\(line [0-9]+\)|(?:absolute|relative|cosine) [-0-9.e+]+")
"""Words that stay together at the end of a line; joined by a letter that stands for nothing."""


def text_lines(comparison: RunComparison, *, per_operation: bool = False) -> list[str]:
    """Return the whole report; one line where nothing differs."""
    found = comparison.verdict
    observations = comparison.observations
    if found is None:
        begins = "no difference but of rounding" if observations.outputs_differ else "no difference"
        lines = [f"{begins} from {comparison.title}: {_counted(comparison)}"]
        if comparison.file_differences:
            lines += _wrapped(f"the files differ, without effect on these inputs: {_first_texts(comparison)}", "")
        for origin in observations.reported_non_finite:
            lines += _wrapped(f"note: on both sides {origin.text}", "")
        return lines + _note_lines(comparison) + (_each_operation(comparison) if per_operation else [])
    lines = [*_verdict_lines(found, comparison.title)]
    if observations.given_up:
        lines += _wrapped(f"{observations.given_up}; what follows was not compared", "  ")
    lines += _loop_lines(comparison)
    lines += _output_lines(observations.outputs)
    lines += _worst_lines(comparison)
    lines += _file_lines(comparison) + _note_lines(comparison)
    return lines + (_each_operation(comparison) if per_operation else [])


def _note_lines(comparison: RunComparison) -> list[str]:
    """Return what the reference could not compute, each once."""
    return [line for note in comparison.notes for line in _wrapped(f"note: {note}", "")]


def _wrapped(text: str, indent: str) -> list[str]:
    lines = textwrap.wrap(
        _TOGETHER.sub(_joined, text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines] or [""]


def _joined(match: re.Match[str]) -> str:
    return match[0].replace(" ", _GLUE)


def _counted(comparison: RunComparison) -> str:
    observations = comparison.observations
    known = sum(one.theirs_known and not one.differs for one in observations.outputs)
    iterations = sum(record.iterations for record in observations.loops.values())
    values, counted = observations.compared, f"in {_number(iterations, 'iteration')} " if observations.loops else ""
    agree = "agrees" if values + known == 1 else "agree"
    return f"{_number(values, 'value')} {counted}and {_number(known, 'output')} {agree}"


def _number(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _first_texts(comparison: RunComparison) -> str:
    texts = [one.text for one in comparison.file_differences[:3]]
    rest = len(comparison.file_differences) - len(texts)
    return "; ".join(texts) + (f"; and {rest} more" if rest > 0 else "")


# --- the verdict ----------------------------------------------------------------------------------------------------


def place_text(found: ComparisonVerdict) -> str:
    """Return where the first difference is, in one line."""
    parts = []
    if found.loop is not None:
        parts.append(f"{kind(found.loop)} '{found.loop.name}' (id {found.loop.id})")
        if found.iteration is not None:
            parts.append(f"iteration {found.iteration}")
    elif found.layer is not None:
        parts.append("the model's own graph")
    if found.layer is not None and found.layer is not found.loop:
        entry = {"": "", "back edge": "back edge of "}.get(found.entry, f"port map, {found.entry} ")
        parts.append(f"{entry}{numbered(found.layer)}")
    return ", ".join(parts) or "the outputs"


def _verdict_lines(found: ComparisonVerdict, title: str) -> Iterator[str]:
    yield from _wrapped(f"first difference from {title}: {place_text(found)}", "")
    line = f" (line {found.line})" if found.line else ""
    yield from _wrapped(f"{found.reason}{line}", "  ")
    if len(found.path) > 1:
        yield from _wrapped(f"in {path_text(found.path)}", "  ")
    for detail in found.details:
        yield from _wrapped(detail, "  ")


# --- iterations -----------------------------------------------------------------------------------------------------


def _loop_lines(comparison: RunComparison) -> list[str]:
    # Outer before inner: the outer one ends last.
    loops = sorted(comparison.observations.loops.values(), key=lambda record: len(record.path))
    if not loops:
        return []
    lines = ["iterations (ours | the reference)"]
    for record in loops:
        lines += _wrapped(named(record.layer), "  ")
        for ours, theirs, count in record.runs[:_MOST_RUNS]:
            times = f"  ({count} runs)" if count > 1 else ""
            mark = "" if theirs is None or theirs.iterations == ours.iterations else "  <- differs"
            lines.append(f"    {_outcome(ours)} | {_outcome(theirs)}{times}{mark}")
        if len(record.runs) > _MOST_RUNS:
            lines.append(f"    ... and {len(record.runs) - _MOST_RUNS} more")
        if record.total is not None:
            mark = "" if record.total == record.iterations else "  <- differs"
            lines.append(f"    {record.iterations} in all | {record.total} in all{mark}")
    return lines


def _outcome(outcome: LoopOutcome | None) -> str:
    if outcome is None:
        return "not known"
    if not outcome.complete:
        return f"more than {outcome.iterations - 1}"
    return f"{outcome.iterations}{', ' + outcome.ended if outcome.ended else ''}"


# --- tables ---------------------------------------------------------------------------------------------------------


SHORT_ORIGINS = {
    ErrorOrigin.OVERFLOW: "overflow",
    ErrorOrigin.DEPARTURE: "departure",
    ErrorOrigin.UNKNOWN: "not known",
}
"""Where the whole words are too long for a column."""

_COLUMNS = f"{'absolute':>11}{'relative':>11}{'ulp':>12}{'cosine':>12}"


def _numbers(distance: Distance) -> str:
    """Return the four distances in their columns."""
    if distance.problem:
        return f"  {distance.problem}"
    relative = f"{distance.relative:.3g}" if distance.relative < 1e9 else "-"
    cosine = "-" if distance.cosine is None else f"{distance.cosine:.7g}"
    ulp = "-" if distance.ulp is None else str(distance.ulp)
    return f"{distance.absolute:>11.3g}{relative:>11}{ulp:>12}{cosine:>12}"


def _output_lines(outputs: list[OutputComparison]) -> list[str]:
    if not outputs:
        return []
    lines = [f"outputs           {_COLUMNS}"] if any(one.measure for one in outputs) else ["outputs"]
    for one in outputs:
        if one.measure is None:
            lines += _wrapped(f"{one.name}  {'the same' if one.theirs_known else 'not known to the reference'}", "  ")
            continue
        lines += _wrapped(one.name, "  ")
        lines.append(f"    {'differs' if one.measure.differs else 'agrees':14}{_numbers(one.measure)}")
        for pattern in one.patterns[:2]:
            lines += _wrapped(f"it {pattern}", "    ")
    return lines


def _ranked(comparison: RunComparison) -> list[OutputRecord]:
    records = [one for one in comparison.observations.records.values() if one.worst is not None]
    return sorted(records, key=lambda one: -one.worst.measure.ratio if one.worst else 0.0)


def _worst_lines(comparison: RunComparison) -> list[str]:
    """Return the values furthest outside of their tolerance: where, how far, how often, and from where."""
    records = _ranked(comparison)
    if not records:
        return []
    lines = [f"worst             {_COLUMNS}  outside"]
    for record in records[:_MOST_WORST]:
        worst = record.worst
        assert worst is not None
        where = f" in {path_text(worst.path)}" if worst.path else ""
        lines += _wrapped(f"{named(record.layer)}{_port(record)}{where}", "  ")
        origin = (
            "as it entered" if record.layer.type == "Parameter" else SHORT_ORIGINS.get(worst.origin, str(worst.origin))
        )
        if record.layer.bodies and worst.origin is ErrorOrigin.HERE:
            origin = "made inside"
        lines.append(f"    {origin:14}{_numbers(worst.measure)}  {record.differing} of {record.compared}")
    if len(records) > _MOST_WORST:
        lines.append(f"  ... and {len(records) - _MOST_WORST} more values")
    return lines


def _port(record: OutputRecord) -> str:
    return f":{record.output}" if len(record.layer.outputs) > 1 else ""


def _file_lines(comparison: RunComparison) -> list[str]:
    differences = comparison.file_differences
    if len(differences) < 2:
        return []
    lines = [f"the files differ in {len(differences)} places"]
    for one in differences[:_MOST_FILES]:
        lines += _wrapped(f"line {one.line}: {one.text}" if one.line else one.text, "  ")
    if len(differences) > _MOST_FILES:
        lines.append(f"  ... and {len(differences) - _MOST_FILES} more")
    return lines


def _each_operation(comparison: RunComparison) -> list[str]:
    lines = ["every operation (compared, outside of the tolerance, first, worst)"]
    for record in comparison.observations.records.values():
        loops = " > ".join(named(layer) for layer in record.loops)
        place = f"{loops} > " if loops else ""
        text = f"{place}{named(record.layer)}{_port(record)}: {record.compared}, {record.differing}"
        if record.first is not None and record.worst is not None:
            text += f", {path_text(record.first.path)}, {record.worst.measure.problem or figures(record.worst.measure)}"
        lines += _wrapped(text, "  ")
    return lines


# --- JSON -----------------------------------------------------------------------------------------------------------


def as_json(comparison: RunComparison, *, per_operation: bool = False) -> dict[str, Any]:
    """Return the same facts for scripts."""
    observations, file = comparison.observations, comparison.file
    records = list(observations.records.values()) if per_operation else []
    return {
        "reference": comparison.title,
        "different": comparison.differs,
        "compared": observations.compared,
        "verdict": None if comparison.verdict is None else _verdict_json(comparison.verdict, file),
        "born": [
            {
                "layer": _layer_json(one.layer, file),
                "path": _path_json(one.path, file),
                "shared": one.shared,
                "text": one.text,
                "cause": cause_data(one.cause),
            }
            for one in observations.reported_non_finite
        ],
        "given_up": observations.given_up or None,
        "notes": list(comparison.notes),
        "loops": [_loop_json(record, file) for record in observations.loops.values()],
        "outputs": [_output_json(one) for one in observations.outputs],
        "worst": [_record_json(record, file) for record in _ranked(comparison)[:_MOST_WORST]],
        "file_differences": [
            {
                "kind": str(one.kind),
                "path": [layer.name for layer in one.path],
                "layer": _layer_json(one.layer, file),
                "line": one.line,
                "text": one.text,
            }
            for one in comparison.file_differences
        ],
        **({"operations": [_record_json(record, file) for record in records]} if per_operation else {}),
    }


def _layer_json(layer: Layer | None, file: str) -> dict[str, Any] | None:
    return None if layer is None else as_data(layer_site(layer, file))


def _path_json(path: GraphPath, file: str) -> list[dict[str, Any]]:
    return [{"layer": _layer_json(step.layer, file), "body": step.role, "iteration": step.iteration} for step in path]


def _verdict_json(found: ComparisonVerdict, file: str) -> dict[str, Any]:
    loop = found.loop
    loops = [step.layer.name for step in found.path if step.layer.is_loop]
    return {
        "place": place_text(found),
        "loop": None if loop is None else {**(_layer_json(loop, file) or {}), "path": loops},
        "path": _path_json(found.path, file),
        "iteration": found.iteration,
        "layer": _layer_json(found.layer, file),
        "port_map": found.entry or None,
        "shows_at": _layer_json(found.shows_at, file),
        "related": [_layer_json(layer, file) for layer in found.related],
        "line": found.line or None,
        "reason": found.reason,
        "details": list(found.details),
        "explanation": None if found.explanation is None else _explanation_json(found.explanation, file),
        "bisection": None
        if (bisection := found.bisection) is None
        else {
            "loop": _layer_json(bisection.loop, file),
            "iteration": bisection.iteration,
            "before": bisection.before,
            "after": bisection.after,
            "gradual": bisection.is_gradual,
            "runs": bisection.runs,
        },
        "statement": f"{place_text(found)}: {found.reason}",
    }


def _explanation_json(found: RuntimeExplanation, file: str) -> dict[str, Any]:
    return {
        "reason": str(found.reason),
        "known_fault": found.is_fault,
        "agrees": found.agrees,
        "properties": dict(found.properties),
        "path": [layer.name for layer in found.path],
        "layers": [_layer_json(layer, file) for layer in found.layers],
        "outputs": [_output_json(one) for one in found.outputs],
    }


def _loop_json(record: LoopRecord, file: str) -> dict[str, Any]:
    return {
        "loop": _layer_json(record.layer, file),
        "path": [layer.name for layer in record.path],
        "iterations": {"ours": record.iterations, "reference": record.total},
        "runs": [
            {"count": count, "ours": _outcome_json(ours), "reference": _outcome_json(theirs)}
            for ours, theirs, count in record.runs
        ],
    }


def _outcome_json(outcome: LoopOutcome | None) -> dict[str, Any] | None:
    if outcome is None:
        return None
    return {"iterations": outcome.iterations, "ended": outcome.ended or None, "complete": outcome.complete}


def _measure_json(measure: Distance | None) -> dict[str, Any] | None:
    from stepper.plain_values import json_number

    if measure is None:
        return None
    names = ("absolute", "relative", "ulp", "cosine", "outside", "size")
    found = {name: json_number(getattr(measure, name)) for name in names}
    return {**found, "index": list(measure.index), "problem": measure.problem or None}


def _output_json(one: OutputComparison) -> dict[str, Any]:
    return {
        "name": one.name,
        "known": one.theirs_known,
        "differs": one.differs,
        "measure": _measure_json(one.measure),
        "patterns": list(one.patterns),
    }


def _record_json(record: OutputRecord, file: str) -> dict[str, Any]:
    worst = record.worst
    return {
        "path": [layer.name for layer in record.loops],
        "layer": _layer_json(record.layer, file),
        "output": record.output,
        "compared": record.compared,
        "differing": record.differing,
        "first": None if record.first is None else _path_json(record.first.path, file),
        "worst": None if worst is None else _measure_json(worst.measure),
        "worst_at": None if worst is None else _path_json(worst.path, file),
        "origin": None if worst is None else str(worst.origin),
    }
