"""The verdict: the first place that differs, joined with what differs in the files there, in words."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from stepper.compare.files.causes import FileCauses, graph_at
from stepper.compare.files.graphs import FileDifference, FileDifferenceKind
from stepper.compare.report.evidence import (
    apart,
    bisection_text,
    difference_text,
    explanation_text,
    loop_text,
    origin_text,
    output_result,
    unfound_text,
)
from stepper.compare.report.explanations import ExplanationKind, RuntimeExplanation
from stepper.compare.report.words import named, numbered, path_text
from stepper.compare.run.bisection import LoopBisection
from stepper.compare.run.observations import (
    BranchMismatch,
    Finding,
    LoopMismatch,
    Observations,
    SideFailure,
    ValueMismatch,
)
from stepper.debug.reference_values import GraphPath, PathStep, loop_steps
from stepper.ir.model import Layer


class ComparisonVerdict(Struct, frozen=True):
    """First place to look at.

    `reason` is one sentence, `details` are further ones. `path` leads into the loop (empty: the model's own graph),
    `iteration` is that of its innermost loop, None where the difference is bound to none. `layer` is to blame,
    `shows_at` is where values differ first, `related` have a part in it. `entry` is the part of a port map, if that is
    to blame. `explanation` is what makes another runtime agree, `bisection` the iteration that it computes otherwise,
    where these are known.
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
    causes: tuple[FileDifference, ...] = ()
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
    shown = first if traced is not first else _in_a_loop(findings) or first
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
    return ComparisonVerdict(
        reason, tuple(details), path, iteration, layer, first.layer, related, entry, line, causes=found
    )


def _explained(
    observations: Observations,
    causes: FileCauses,
    explanation: RuntimeExplanation,
    bisection: LoopBisection | None,
    findings: Sequence[Finding],
) -> ComparisonVerdict:
    """Return what makes the runtime agree, how far its outputs are else, and where that shows."""
    output = next(one for one in observations.outputs if one.measure is not None and one.measure.differs)
    assert output.measure is not None, "it differs"
    path: GraphPath = tuple(PathStep(layer, "body", None) for layer in explanation.path)
    layer = explanation.layers[0] if explanation.layers else None
    if explanation.reason is ExplanationKind.SHARED_CONSTANT and not path:
        result = causes.model.graph.results[observations.outputs.index(output)]
        leading = [one for one in explanation.layers[:2] if causes.leads_to(one, result)]
        layer = leading[0] if leading else layer
    iteration, shown = None, None
    if bisection is not None:
        path, iteration = (PathStep(bisection.loop, "body", bisection.iteration),), bisection.iteration
    if findings and not explanation.layers:
        shown = findings[0]
        path, iteration = _place(shown)
        layer = shown.layer
    details = [f"output '{output.name}' {apart(output.measure)}"]
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
    wrong = [one for one in observations.outputs if one.measure is not None and one.measure.differs]
    if not wrong:
        return None
    first = wrong[0]
    assert first.measure is not None, "it differs"
    patterns = "".join(f"; it {text}" for text in first.patterns)
    reason = f"output '{first.name}' differs from that of {title}{patterns}"
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


def _in_a_loop(findings: Sequence[Finding]) -> Finding | None:
    """Return the first finding inside of a loop or about one, where the first of all is before any loop."""
    return next((one for one in findings if _place(one)[0]), None)


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
    """Return the iteration that should not run, after the condition by which our loop goes on alone."""
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


def _time(finding: Finding) -> tuple[int, ...]:
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
