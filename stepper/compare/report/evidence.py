"""The evidence in words: how far values are apart, where a difference comes from, which side iterates longer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from stepper.compare.files.causes import FileCauses, graph_at
from stepper.compare.references.protocol import LoopOutcome
from stepper.compare.report.explanations import OPENVINO_VERSION, ExplanationKind, RuntimeExplanation
from stepper.compare.report.words import kind, named, numbered
from stepper.compare.run.bisection import LoopBisection
from stepper.compare.run.metrics import Distance
from stepper.compare.run.observations import (
    BranchMismatch,
    ErrorOrigin,
    Finding,
    LoopMismatch,
    Observations,
    SideFailure,
    ValueMismatch,
)
from stepper.engine.loops import EndReason
from stepper.engine.roles import RoleError, roles_of
from stepper.ir.model import Layer
from stepper.tensors.number_text import number_text

_MOST_ULP: Final = 10_000_000
_MOST_UNSEEN: Final = 3


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


ORIGIN_TEXTS: Final = {
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
    """Return the reason where nothing in the files explains it: what can be told from the values alone."""
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
        f"its input {numbered(layer)}, of which the reference has no value" for layer in finding.unknown[:_MOST_UNSEEN]
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
            "each operation and each body alone agrees on the same inputs: they part in how the runtime runs the loop, "
            "or fuses operations around it"
        )
    return (
        "each operation alone agrees on the same inputs: they part where the runtime fuses or replaces several of them"
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
    return f"{begin} ({distance}): iteration {count} is the first that the runtime computes otherwise"


def explanation_text(found: RuntimeExplanation) -> str:
    """Return what makes the runtime agree, as one sentence."""
    settings = ", ".join(f"{name}={value}" for name, value in found.properties.items())
    result = "agrees"
    if not found.agrees:
        left = max((one.measure for one in found.outputs if one.measure), key=lambda one: one.ratio)
        result = f"comes closer ({figures(left)}, {left.outside} of {left.size} values outside of the tolerance)"
    if found.reason is ExplanationKind.SHARED_CONSTANT:
        first, second, constant = found.layers
        return (
            f"a known fault of OpenVINO {OPENVINO_VERSION}: {numbered(first)} and {numbered(second)} share the square "
            f"{numbered(constant)}, which one of them transposes; one is computed with the matrix as it was "
            f"packed for the other. With a copy of the constant the runtime {result}"
        )
    if found.reason is ExplanationKind.UNUSED_SLICES:
        return (
            f"a known fault of OpenVINO {OPENVINO_VERSION}: the body of {numbered(found.layers[0])} uses none of its "
            "sliced inputs, so that the pass EliminateLoopInputsOutputs drops them, and the number of iterations with "
            f"them. With the slices used the runtime {result}"
        )
    return f"compiled with {settings} the runtime {result}: {SWITCHED_OFF[found.reason]}"


SWITCHED_OFF: Final = {
    ExplanationKind.DYNAMIC_QUANTIZATION: (
        "otherwise it quantises at run time what is multiplied with compressed weights"
    ),
    ExplanationKind.LOW_PRECISION: (
        "otherwise its low-precision transformations compute in 8 bits what FakeQuantize marks"
    ),
    ExplanationKind.BOTH_QUANTISATIONS: (
        "otherwise it quantises at run time what is multiplied with compressed weights, and computes in 8 bits what "
        "FakeQuantize marks"
    ),
    ExplanationKind.SNIPPETS: (
        "a kernel that it generates for several operations together (a snippet) computes otherwise"
    ),
}
"""Part of the runtime that a property switches off."""


def output_result(loop: Layer, output: int) -> Layer | None:
    """Return the Result of the body that an output of a loop is made of."""
    found = (body.graph.by_id[entry.result] for body in loop.bodies for entry in body.outputs if entry.output == output)
    return next(found, None)


def _constants(difference: ValueMismatch, causes: FileCauses) -> list[str]:
    """Return the constants that go into an operation, those that are stored in another type with that."""
    graph = graph_at(causes.model, difference.path)
    found = []
    for source in graph.sources[difference.layer.id]:
        layer = None if source is None else graph.by_id[source.layer]
        converted = layer is not None and layer.type == "Convert"
        if layer is not None and converted:
            source = graph.sources[layer.id][0]
            layer = None if source is None else graph.by_id[source.layer]
        if layer is not None and layer.type == "Constant":
            stored = f", which is stored as {layer.outputs[0].element_type}" if converted else ""
            found.append(f"{numbered(layer)}{stored}")
    return found


def _of_parameter(difference: ValueMismatch, causes: FileCauses) -> str:
    """Return through which entry of the port map or back edge a difference came into the body."""
    layer, name = difference.layer, numbered(difference.layer)
    if not difference.path or not difference.path[-1].layer.is_loop:
        where = "the branch" if difference.path else "the model"
        return f"the input {name} of {where} differs from the reference"
    loop, iteration = difference.path[-1].layer, difference.path[-1].iteration or 0
    graph = graph_at(causes.model, difference.path)
    try:
        roles = roles_of(loop)
    except RoleError:
        return f"{name} gets another value than in the reference"
    entry = next((one for one in roles.fed if one.parameter == layer.id), None)
    role = "" if entry is None else str(roles.role_of(entry))
    if role == "merged" and iteration == 0:
        return f"the initial value of {name} differs from the reference (port map, line {_line(entry)})"
    if role == "merged":
        result = graph.by_id[roles.merged_from[layer.id]]
        carried = _carried(result, causes, difference)
        return f"{name} differs from the reference as it comes over the back edge from {carried}"
    if role == "sliced":
        return f"{name} gets another slice than in the reference (port map, line {_line(entry)})"
    what = f"{role} input" if role else "input"
    return f"the {what} {name} differs from the reference"


def _line(entry: object) -> int:
    return int(getattr(entry, "line", 0))


def _carried(result: Layer, causes: FileCauses, difference: ValueMismatch) -> str:
    graph = graph_at(causes.model, difference.path)
    source = graph.sources[result.id][0]
    return named(result) if source is None else f"{named(result)} ({named(graph.by_id[source.layer])})"
