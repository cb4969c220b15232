"""The verdict: the first place that differs, joined with what differs in the files there, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepper.compare.file_differences import FileCauses, FileDifference, FileDifferenceKind, graph_at, result_text
from stepper.compare.observations import (
    BranchMismatch,
    ErrorOrigin,
    Finding,
    LoopMismatch,
    Observations,
    OutputComparison,
    SideFailure,
    ValueMismatch,
    kind,
    named,
    numbered,
    path_text,
)
from stepper.compare.references.protocol import LoopOutcome
from stepper.compare.rerun import (
    FAULT_TRIALS,
    ExplanationKind,
    FlippedStep,
    LoopBisection,
    RuntimeExplanation,
    described_fault,
)
from stepper.debug.scopes import GraphPath, PathStep, loop_steps
from stepper.element_types import Indices
from stepper.engine.compiler import ancestors
from stepper.engine.loops import EndReason, roles_of
from stepper.ir.model import Layer
from stepper.records import Record
from stepper.tensors.difference import Distance

# --- The evidence in words: how far values are apart, where a difference comes from, which side iterates longer ------
from stepper.tensors.number_text import number_text
from stepper.wording import enumerated

_MOST_ULP = 10_000_000
_MOST_UNSEEN = 3


def difference_text(difference: ValueMismatch, *, origin: bool = True) -> str:
    """Return `MatMul 'proj' is 0.5 where the reference has 0.25 at [0, 3] (...); made here: its inputs agree`.

    `origin`: with that last part, which need not be said twice.
    """
    layer, distance = difference.layer, difference.measure
    output = f" (output {difference.output})" if len(layer.outputs) > 1 else ""
    text = f"{named(layer)}{output} {apart(distance)}"
    for pattern in difference.patterns[:2]:
        text += f"; it {pattern}"
    if origin and layer.type != "Parameter" and not layer.bodies:
        text += f"; {made_text(difference)}"
    return text


def apart(distance: Distance) -> str:
    """Return how far two values are apart, with the numbers."""
    if distance.problem:
        return f"has another {distance.problem}" if distance.problem.startswith("shape") else distance.problem
    where = f" at {list(distance.index)}" if distance.index else ""
    count = f", {distance.outside} of {distance.size} values outside of the tolerance" if distance.size > 1 else ""
    values = f"is {number_text(distance.ours, 7)} where the reference has {number_text(distance.theirs, 7)}{where}"
    return f"{values} ({figures(distance)}){count}"


def figures(distance: Distance) -> str:
    """Return `absolute 0.1, relative 0.2, 300 ulp, cosine 0.99`."""
    parts = [f"absolute {distance.absolute:.3g}"]
    if math.isfinite(distance.relative) and distance.relative < 1e9:
        parts.append(f"relative {distance.relative:.3g}")
    if distance.ulp is not None and distance.ulp < _MOST_ULP:
        parts.append(f"{distance.ulp} ulp")
    if distance.cosine is not None and distance.size > 1:
        parts.append(f"cosine {distance.cosine:.6g}")
    return ", ".join(parts)


ORIGIN_TEXTS = {
    ErrorOrigin.HERE: "made here: on the reference's inputs it still gives something else",
    ErrorOrigin.CARRIED: "carried in: on the reference's inputs it gives what the reference has",
    ErrorOrigin.OVERFLOW: (
        f"{ErrorOrigin.OVERFLOW}: it computes integers of 64 bits in i32, and the value is beyond 2^31"
    ),
    ErrorOrigin.DEPARTURE: str(ErrorOrigin.DEPARTURE),
    ErrorOrigin.UNKNOWN: "carried in or made here, its inputs differ too",
}
"""Sentences on where a mismatch comes from."""


def made_text(difference: ValueMismatch) -> str:
    """Return where the error comes from: made here, or came in with the inputs."""
    if difference.origin is ErrorOrigin.HERE and difference.layer.type == "Result":
        return "made in the body as a whole: on the same inputs it gives something else"
    if difference.origin is ErrorOrigin.HERE and difference.inputs_agree:
        return "made here: its computed inputs agree"
    return ORIGIN_TEXTS[difference.origin]


def loop_text(difference: LoopMismatch) -> str:
    """Return `Loop 'x' runs 7 iterations (trip count reached), the reference 8 (...): one too few`."""
    ours, theirs = difference.ours, difference.theirs
    assert theirs is not None, "only what both sides know is compared"
    gap = ours.iterations - theirs.iterations
    if not ours.complete:
        words = "it does not end (runs without bound)"
    elif not theirs.complete:
        words = "the reference does not end (runs without bound)"
    else:
        count = "one iteration" if abs(gap) == 1 else f"{abs(gap)} iterations"
        words = f"{count} too {'many' if gap > 0 else 'few'}"
        alone = "our run" if gap > 0 else "the reference"
        if difference.iteration is not None:
            words += f" (iteration {difference.iteration} is the first that {alone} alone has)"
        if ours.slices is not None:
            words += f"; the sliced inputs have {ours.slices} slices"
    layer = difference.layer
    return f"{kind(layer)} '{layer.name}' {_runs(ours)}, the reference {_runs(theirs)}: {words}"


def _runs(outcome: LoopOutcome) -> str:
    plural = "iteration" if outcome.iterations == 1 else "iterations"
    ended = f" ({outcome.ended})" if outcome.ended else ""
    if not outcome.complete:
        return f"runs more than {outcome.iterations - 1} {plural}"
    return f"runs {outcome.iterations} {plural}{ended}"


def origin_text(finding: Finding, causes: FileCauses, observations: Observations) -> str:
    """Return what the values alone show, if nothing in the files explains the difference."""
    if isinstance(finding, LoopMismatch):
        return loop_text(finding) + _decided_by(finding, causes)
    if isinstance(finding, BranchMismatch):
        return f"{numbered(finding.layer)} takes another branch than in the reference"
    if isinstance(finding, SideFailure):
        side = "our run" if finding.ours else "the reference"
        if finding.layer is None:
            return f"{side} stops: {finding.message}"
        return f"{side} stops at {numbered(finding.layer)}{_unseen(finding.unknown)}"
    if finding.layer.type == "Parameter":
        return _of_parameter(finding, causes)
    if finding.layer.is_loop:
        text = f"the output {finding.output} of {numbered(finding.layer)} differs from the reference"
        if all(finding.layer not in record.loops for record in observations.records.values()):
            return f"{text}; what happens inside of it is not known to the reference"
        result = output_result(finding.layer, finding.output)
        which = "" if result is None else f" of {numbered(result)}"
        return (
            f"{text}, though no value in its body was seen to differ: its port map's output entry{which} joins or "
            "takes something else"
        )
    text = f"{numbered(finding.layer)} differs from the reference; {made_text(finding)}"
    if finding.origin is not ErrorOrigin.HERE or observations.each_alone:
        return text  # of the very same operations attributes and constants are shared
    if observations.is_source:
        return text + _conversion_text(finding)
    suspects = [
        f"its input {numbered(layer)}, which the reference does not have" for layer in finding.unknown[:_MOST_UNSEEN]
    ]
    suspects += [f"its constant {constant}" for constant in _constants(finding, causes)[:_MOST_UNSEEN]]
    return f"{text}; the cause is then what the two do not share: {' or '.join([*suspects, 'its attributes'])}"


def _conversion_text(finding: ValueMismatch) -> str:
    """Return the part for a reference from which the model was converted: it has what the converter added as one."""
    added = " and ".join(numbered(layer) for layer in finding.unknown[:_MOST_UNSEEN])
    with_these = f", together with {added}, which its converter added," if added else ""
    return f"; OpenVINO's conversion of that node{with_these} computes something else than the reference's own kernel"


def _unseen(layers: Sequence[Layer]) -> str:
    """Return what goes into a failing layer that the reference has no value of; of a loop the part of its port map."""
    said = []
    for layer in layers[:_MOST_UNSEEN]:
        bodies = layer.bodies if layer.is_loop else ()
        inner = [numbered(body.graph.by_id[entry.result]) for body in bodies for entry in body.outputs if entry.slicing]
        said.append(numbered(layer) + (f" (its port map joins {' and '.join(inner)})" if inner else ""))
    return f"; the reference has no value of {' and '.join(said)}, which goes into it" if said else ""


def _decided_by(difference: LoopMismatch, causes: FileCauses) -> str:
    """Return what computes the condition, where that ended the loop on our side and nothing is known of its value."""
    if difference.ours.ended not in (EndReason.CONDITION, EndReason.TRIP_COUNT):
        return ""
    found = causes.what_limits(difference, by_condition=difference.ours.ended == EndReason.CONDITION)
    if found is None:
        return ""
    if difference.ours.ended == EndReason.TRIP_COUNT:
        return f"; its trip count is {numbered(found)}"
    return f"; its condition is {numbered(found)}"


def unfound_text(observations: Observations, *, in_a_loop: bool) -> str:
    """Return what is known where outputs differ and nothing inside of the model was found to."""
    if not observations.compared:
        return "nothing inside of the model could be compared"
    if not observations.each_alone:
        return "no value inside of the model was found to differ"
    if in_a_loop:
        return (
            "each operation and each body alone agrees on the same inputs: the difference is in how the runtime runs "
            "the loop, or fuses operations around it"
        )
    return (
        "each operation alone agrees on the same inputs: the difference is where the runtime fuses or replaces several"
    )


def bisection_text(found: LoopBisection) -> str:
    """Return `Loop 'decode' agrees after 15 iterations and differs after 16: iteration 15 is ...`."""
    name, count = named(found.loop), found.iteration
    if count == 0:
        begin = f"{name} differs after its first iteration"
    else:
        plural = "iteration" if count == 1 else "iterations"
        begin = (
            f"with fewer iterations on both sides, {name} agrees after {count} {plural} and differs after {count + 1}"
        )
    distance = f"{found.before:.2g} and {found.after:.2g} of the largest element"
    if found.is_gradual:
        return f"{begin} ({distance}): the distance grows with each iteration, it is rounding that the loop amplifies"
    return f"{begin} ({distance}): iteration {count} is the first that differs in the runtime"


def explanation_text(found: RuntimeExplanation) -> str:
    """Return what makes the runtime agree, as one sentence."""
    settings = ", ".join(f"{name}={value}" for name, value in found.properties.items())
    result = "agrees"
    if not found.agrees and found.outputs:
        left = max((one.measure for one in found.outputs if one.measure), key=lambda one: one.ratio)
        result = f"comes closer ({figures(left)}, {left.outside} of {left.size} values outside of the tolerance)"
    if found.reason in FAULT_TRIALS:
        fault, change = described_fault(FAULT_TRIALS[found.reason].fault), FAULT_TRIALS[found.reason].change
        tried = f". With {change} the runtime {result}" if found.outputs else ""
        places = enumerated([numbered(one) for one in found.layers])
        known = f"a known fault of OpenVINO {fault.versions} ({fault.id})"
        return f"{known} in {places}: {fault.what}. It comes from {fault.where}{tried}"
    return f"compiled with {settings} the runtime {result}: {SWITCHED_OFF[found.reason]}"


SWITCHED_OFF = {
    ExplanationKind.DYNAMIC_QUANTIZATION: ("otherwise it quantises the operands of compressed weights at run time"),
    ExplanationKind.CACHE_IN_EIGHT_BITS: "otherwise it keeps keys and values of the cache in 8 bits, also in f32",
    ExplanationKind.LOW_PRECISION: (
        "otherwise its low-precision transformations compute values that FakeQuantize marks in 8 bits"
    ),
    ExplanationKind.BOTH_QUANTISATIONS: (
        "otherwise it quantises the operands of compressed weights at run time, and computes values that FakeQuantize "
        "marks in 8 bits"
    ),
    ExplanationKind.SNIPPETS: ("a kernel that it generates for several operations together (a snippet) differs"),
}
"""Part of the runtime that a property switches off."""


def steps_text(steps: Sequence[FlippedStep], outputs: Sequence[OutputComparison]) -> str:
    """Return `output 'y' is ...: differences of the last digit, made large by Round 'q' (3 of 64 values ...)`."""
    far = max((one for one in outputs if one.measure), key=lambda one: one.measure.ratio if one.measure else 0.0)
    named_steps = ", ".join(f"{named(one.layer)} ({one.flipped:,} of {one.size:,} values)" for one in steps[:3])
    more = f" and {len(steps) - 3} more" if len(steps) > 3 else ""
    distance = "" if far.measure is None else f"output '{far.name}' {apart(far.measure)}: "
    return (
        f"{distance}differences of the last digit, made large where a value is at a step, such as a half that is "
        f"rounded: {named_steps}{more}; other last digits there move our own outputs as far"
    )


def output_result(loop: Layer, output: int) -> Layer | None:
    """Return the Result of the body that an output of a loop is made of."""
    found = (body.graph.by_id[entry.result] for body in loop.bodies for entry in body.outputs if entry.output == output)
    return next(found, None)


def _constants(difference: ValueMismatch, causes: FileCauses) -> list[str]:
    """Return the constants that go into an operation, those that are stored in another type with that."""
    graph = graph_at(causes.model, difference.path)
    found = []
    for source in graph.sources[difference.layer.id]:
        layer = graph.layer_of(source)
        converted = layer.type == "Convert"
        layer = graph.maker(layer) if converted else layer
        if layer.type == "Constant":
            stored = f", which is stored as {layer.outputs[0].element_type}" if converted else ""
            found.append(f"{numbered(layer)}{stored}")
    return found


def _of_parameter(difference: ValueMismatch, causes: FileCauses) -> str:
    """Return through which entry of the port map or back edge a difference came into the body."""
    layer, name = difference.layer, numbered(difference.layer)
    path = difference.path
    if not path or not path[-1].layer.is_loop:
        where = "the branch" if path else "the model"
        return f"the input {name} of {where} differs from the reference"
    loop, iteration = path[-1].layer, path[-1].iteration or 0
    graph = graph_at(causes.model, path)
    roles = roles_of(loop)
    entry = next((one for one in roles.fed if one.parameter == layer.id), None)
    role = "" if entry is None else str(roles.role_of(entry))
    if role == "merged" and iteration == 0:
        return f"the initial value of {name} differs from the reference (port map, line {_line(entry)})"
    if role == "merged":
        carried = result_text(graph, roles.merged_from[layer.id])
        return f"{name} differs from the reference as it comes over the back edge from {carried}"
    if role == "sliced":
        return f"{name} gets another slice than in the reference (port map, line {_line(entry)})"
    what = f"{role} input" if role else "input"
    return f"the {what} {name} differs from the reference"


def _line(entry: object) -> int:
    return int(getattr(entry, "line", 0))


# ---------------------------------------------------------------------------------------------------------------------


class ComparisonVerdict(Record):
    """First place to look at.

    `reason` is one sentence, `details` are further sentences. `path` leads into the loop (empty: the model's own
    graph). `iteration` is an iteration of the innermost loop of `path`, None if the difference is bound to no
    iteration. `layer` is to blame, `shows_at` is where values differ first, `related` have a part in it. `entry` is the
    part of a port map, if that is to blame. `explanation` is the change that makes another runtime agree, `bisection`
    the iteration that the runtime computes otherwise; each is None if not known.
    """

    reason: str
    details: tuple[str, ...]
    path: GraphPath = ()
    iteration: int | None = None
    layer: Layer | None = None
    shows_at: Layer | None = None
    related: tuple[Layer, ...] = ()
    entry: str = ""
    line: int = 0
    explanation: RuntimeExplanation | None = None
    bisection: LoopBisection | None = None

    @property
    def loop(self) -> Layer | None:
        """The innermost loop."""
        return next((step.layer for step in reversed(self.path) if step.layer.is_loop), None)


def verdict(
    observations: Observations,
    causes: FileCauses,
    title: str,
    *,
    exact: bool = True,
    explanation: RuntimeExplanation | None = None,
    bisection: LoopBisection | None = None,
) -> ComparisonVerdict | None:
    """Return the verdict of a comparison; None where nothing differs. `exact`: both sides compute with the same
    kernels.

    `explanation` and `bisection` are what further runs of the reference showed.
    """
    findings = observations.ordered(exact=exact)
    if explanation is not None and (explanation.agrees or not findings):
        return _explained(observations, causes, explanation, bisection, findings)
    if not findings:
        return _of_outputs(observations, causes, title, bisection)
    first = findings[0]
    found = causes.of(first)
    traced = _traced(first, found, observations)
    shown = first if traced is not first else next((one for one in findings if _place(one)[0]), first)
    path, iteration = _place(traced if traced is not first else shown)
    cause = found[0] if found else None
    extra = _first_extra_iteration(first, causes, observations)
    if extra is not None:
        iteration = extra
    if not path and cause is not None:
        path = tuple(PathStep(layer, "body", None) for layer in cause.path)
    layer = _guilty(cause, first)
    details = [origin.text for origin in observations.reported_non_finite]
    details += [*_details(first, traced, found, causes), *_consequences(first, shown, observations)]
    if observations.each_alone and observations.outputs_agree:
        details.append("the outputs of the whole model agree all the same")
    related = _related(cause, first, shown, layer)
    reason = cause.text if cause is not None else origin_text(first, causes, observations)
    entry = "" if cause is None else cause.entry
    line = cause.line if cause is not None else 0 if layer is None else layer.line
    return ComparisonVerdict(reason, tuple(details), path, iteration, layer, first.layer, related, entry, line)


def _explained(
    observations: Observations,
    causes: FileCauses,
    explanation: RuntimeExplanation,
    bisection: LoopBisection | None,
    findings: Sequence[Finding],
) -> ComparisonVerdict:
    """Return what makes the runtime agree, how far its outputs are else, and where that shows."""
    output = next((one for one in observations.outputs if one.differs), None)
    path: GraphPath = tuple(PathStep(layer, "body", None) for layer in explanation.path)
    layer = explanation.layers[0] if explanation.layers else None
    if output is not None and explanation.reason is ExplanationKind.SHARED_CONSTANT and not path:
        graph = causes.model.graph
        before = ancestors(graph, graph.source(graph.results[observations.outputs.index(output)].id))
        leading = [one for one in explanation.layers[:2] if one.id in before]
        layer = leading[0] if leading else layer
    iteration, shown = None, None
    if bisection is not None:
        path, iteration = (PathStep(bisection.loop, "body", bisection.iteration),), bisection.iteration
    if findings and not explanation.layers:
        shown = findings[0]
        path, iteration = _place(shown)
        layer = shown.layer
    details = [f"output '{one.name}' {apart(one.measure)}" for one in (output,) if one and one.measure]
    details += [f"the reference stops: {one.message}" for one in findings if isinstance(one, SideFailure)]
    if bisection is not None:
        details.append(bisection_text(bisection))
    details += [difference_text(one) for one in (shown,) if isinstance(one, ValueMismatch)]
    details += [loop_text(one) for one in findings[:1] if isinstance(one, LoopMismatch)]
    related = tuple(one for one in explanation.layers if one is not layer)
    reason, line = explanation_text(explanation), 0 if layer is None else layer.line
    shows_at = None if shown is None else shown.layer
    return ComparisonVerdict(
        reason,
        tuple(details),
        path,
        iteration,
        layer,
        shows_at,
        related,
        line=line,
        explanation=explanation,
        bisection=bisection,
    )


def _of_outputs(
    observations: Observations, causes: FileCauses, title: str, bisection: LoopBisection | None
) -> ComparisonVerdict | None:
    wrong = [one for one in observations.outputs if one.differs]
    if not wrong:
        return None
    first = wrong[0]
    assert first.measure is not None, "it differs"
    patterns = "".join(f"; it {text}" for text in first.patterns)
    reason = f"output '{first.name}' differs from {title}{patterns}"
    position = next(index for index, one in enumerate(observations.outputs) if one is first)
    before = causes.loop_before(causes.model.graph.results[position])
    seen = before is not None and any(before[0] in record.loops for record in observations.records.values())
    detail = unfound_text(observations, in_a_loop=before is not None and (seen or observations.each_alone))
    details = [f"it {apart(first.measure)}", *([bisection_text(bisection)] if bisection else [detail])]
    details += observations.notes[:2]
    if before is None:
        return ComparisonVerdict(reason, tuple(details))
    loop, output = before
    iteration = None if bisection is None else bisection.iteration
    path, result = (PathStep(loop, "body", iteration),), output_result(loop, output)
    if result is None or not seen or observations.each_alone:
        return ComparisonVerdict(reason, tuple(details), path, iteration, loop, line=loop.line, bisection=bisection)
    reason += f"; it comes from output {output} of the loop: its port map's entry joins or takes something else"
    return ComparisonVerdict(
        reason, tuple(details), path, layer=result, related=(loop,), entry="output", line=loop.line
    )


def _traced(first: Finding, found: Sequence[FileDifference], observations: Observations) -> Finding:
    """Return where a difference of the files first shows, within the tolerance too; else `first`."""
    if not isinstance(first, ValueMismatch) or not found:
        return first
    touched = found[0].touches
    traces = [
        record.trace
        for (program, _slot), record in observations.records.items()
        if record.trace is not None and (observations.graphs[program], record.layer.id) in touched
    ]
    same = [trace for trace in traces if _loops(trace) == _loops(first) and _time(trace) < _time(first)]
    return min(same, key=_time, default=first)


def _first_extra_iteration(first: Finding, causes: FileCauses, observations: Observations) -> int | None:
    """Return the iteration that only our loop runs, if the condition before it differs first."""
    if not isinstance(first, ValueMismatch) or not first.path:
        return None
    if not causes.is_condition(graph_at(causes.model, first.path), first.layer):
        return None
    for one in observations.findings:
        if isinstance(one, LoopMismatch) and one.layer is first.path[-1].layer and one.theirs is not None:
            longer = one.ours.iterations > one.theirs.iterations or not one.ours.complete
            return one.iteration if longer and one.iteration == (first.path[-1].iteration or 0) + 1 else None
    return None


def _loops(finding: Finding) -> list[int]:
    return [id(step.layer) for step in finding.path]


def _time(finding: Finding) -> Indices:
    return tuple(step.iteration or 0 for step in finding.path)


def _place(finding: Finding) -> tuple[GraphPath, int | None]:
    """Return the path into the loop that a finding is about, and the iteration there."""
    path, layer = finding.path, finding.layer
    if isinstance(finding, LoopMismatch):
        return (*path, PathStep(finding.layer, "body", finding.iteration)), finding.iteration
    if isinstance(finding, ValueMismatch) and layer is not None and layer.is_loop:
        return (*path, PathStep(layer, "body", None)), None
    loops = loop_steps(path)
    return (path, loops[-1].iteration) if loops else ((), None)


def _guilty(cause: FileDifference | None, first: Finding) -> Layer | None:
    if cause is None:
        return first.layer
    control = cause.entry in ("trip count", "execution condition")
    if cause.related and (control or (cause.kind is FileDifferenceKind.CONSTANT and not cause.entry)):
        return cause.related[0]
    return cause.layer


def _related(cause: FileDifference | None, first: Finding, shown: Finding, layer: Layer | None) -> tuple[Layer, ...]:
    found = [*(cause.related if cause else ()), *([cause.layer] if cause else []), first.layer, shown.layer]
    unique: list[Layer] = []
    for one in found:
        if one is not None and one is not layer and all(one is not other for other in unique):
            unique.append(one)
    return tuple(unique)


def _details(first: Finding, traced: Finding, found: Sequence[FileDifference], causes: FileCauses) -> list[str]:
    details = [f"also {one.text}" for one in found[1:3]]
    if isinstance(first, ValueMismatch):
        if isinstance(traced, ValueMismatch) and traced is not first:
            details.append(difference_text(traced))
            details.append(f"the tolerance is exceeded first in iteration {_place(first)[1]}")
        details.append(difference_text(first, origin=bool(found)))  # else it is in the reason
        if causes.is_condition(graph_at(causes.model, first.path), first.layer):
            decided = f", decided in iteration {first.path[-1].iteration}" if first.path else ""
            details.append(f"{named(first.layer)} is part of the execution condition of the loop{decided}")
    elif isinstance(first, LoopMismatch) and found:  # else it is the reason
        details.append(loop_text(first))
    elif isinstance(first, BranchMismatch):
        taken, other = ("then", "else") if first.ours else ("else", "then")
        details.append(f"{named(first.layer)} takes its {taken} branch, in the reference the {other} branch")
    elif isinstance(first, SideFailure) and (found or first.layer is not None):  # else it is the reason
        details.append(f"{'our run' if first.ours else 'the reference'} stops: {first.message}")
    return details


def _consequences(first: Finding, shown: Finding, observations: Observations) -> list[str]:
    """Return what follows: the way into the loop, and iterations that are too many or too few."""
    found = []
    if shown is not first and shown.layer is not None:
        found.append(f"from there it enters the loop, first at {numbered(shown.layer)}")
    loops = [one for one in observations.findings if isinstance(one, LoopMismatch) and one is not first]
    if loops:
        found.append(loop_text(loops[0]))
    origins = observations.reported_non_finite
    special = observations.first_special
    if special is not None and special is not first and isinstance(first, ValueMismatch) and not origins:
        found.append(
            f"NaN or Inf on our side alone first at {numbered(special.layer)} in {path_text(special.path)}: "
            f"{', '.join(special.patterns[:1]) or apart(special.measure)}"
        )
    failures = [one for one in observations.findings if isinstance(one, SideFailure) and one is not first]
    if failures:
        found.append(f"{'our run' if failures[0].ours else 'the reference'} stops: {failures[0].message}")
    return found
