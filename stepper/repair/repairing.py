"""The answer of a repair: edits that make the outputs equal, grouped by their outputs on other inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from stepper.element_types import Array
from stepper.engine.program import Partner
from stepper.ir.model import LayerSite, Model, layer_site
from stepper.repair.edit import EditKind, RepairEdit, patched
from stepper.repair.expected_outputs import RUN_ERRORS, Ask, RepairReference, other_inputs
from stepper.repair.replay import Agreement, Replayer, agreement
from stepper.repair.search import SearchProgress, SearchResult, Trial, candidates, search
from stepper.tensors.tolerances import Tolerances

_PROBES = 4
"""Other inputs on which edits are compared with each other, and with a reference that can be asked."""
_MOST_FOUND = 40
_MOST_CLOSEST = 3
_CLOSER = 20.0
_VERIFYING = 0.2
"""Part of the time of the search that comparing what was found on other inputs may take."""
"""How many times closer to the reference an edit must be to stand before a cheaper one."""


class FixStatus(StrEnum):
    """The outcome of a repair."""

    AGREE = "agree"
    REPAIRED = "repaired"
    UNEXPLAINED = "unexplained"


class EditFacts(Struct, frozen=True):
    """Hold the facts of an edit: its change and its layer; `around` are the outer loops and Ifs, outermost first.

    `subject` is the attribute, the operand or the value that changes. `before` and `after` are its old and new content;
    `numbers` are the numbers that were solved for. The lower the `price`, the likelier the mistake.
    """

    kind: EditKind
    layer: LayerSite
    around: tuple[LayerSite, ...]
    subject: str
    before: str
    after: str
    numbers: tuple[float, ...]
    price: float


class Repair(Struct, frozen=True):
    """Edits that make all given outputs equal.

    `ratio` is the largest difference that is left, as a multiple of the tolerance. `verified` is on how many other
    inputs the reference was asked and agrees. `equivalents` are other edits with the same outputs on all inputs tried.
    """

    edits: tuple[EditFacts, ...]
    ratio: float
    verified: int
    equivalents: tuple[tuple[EditFacts, ...], ...]


class Closest(Struct, frozen=True):
    """Edits that bring the outputs closer but do not explain the difference. `distance` is the relative error left."""

    edits: tuple[EditFacts, ...]
    distance: float


class FixAnswer(Struct, frozen=True):
    """All that a repair has found.

    `differing` are outputs, by position, that differ without an edit; `distance` is their relative error. `iteration`
    is the first in which a slice of an output differs, of the loop `loop`. `refuted` is how many edits made the given
    outputs equal and others not. `tried` of `singles` edits and `pairs` pairs were compared.
    """

    status: FixStatus
    reference: str
    examples: int
    numbers: int
    ratio: float
    distance: float
    differing: tuple[int, ...]
    iteration: int | None
    loop: LayerSite | None
    repairs: tuple[Repair, ...]
    closest: tuple[Closest, ...]
    refuted: int
    singles: int
    tried: int
    pairs: int
    seconds: float
    is_complete: bool
    is_interrupted: bool


class FoundFix(Struct):
    """An answer, the edits of the first repair, and an input on which the first repairs differ (if there is one)."""

    answer: FixAnswer
    edits: tuple[RepairEdit, ...] = ()
    distinguishing: tuple[Array, ...] | None = None


class _Group(Struct):
    trials: list[Trial]
    probes: list[Any]
    verified: int = 0


def repaired(
    model: Model,
    reference: RepairReference,
    tolerances: Tolerances,
    *,
    seconds: float = 300.0,
    rules: str = "spec",
    partner: Partner | None = None,
    max_iterations: int | None = None,
    states: Mapping[str, Any] | None = None,
    progress: Callable[[SearchProgress], object] | None = None,
) -> FoundFix:
    """Return the edits of a model that make its outputs equal to those of a reference.

    `seconds` limits all of it. Raises what compiling and running the model without an edit raises.
    """
    begun = time.monotonic()
    replayer = Replayer(
        model,
        reference.examples,
        tolerances,
        rules=rules,
        partner=partner,
        max_iterations=max_iterations,
        states=states,
        values=reference.values,
        deadline=begun + seconds,
    )
    if replayer.base.agrees:
        return FoundFix(_answer(replayer, reference, SearchResult(), [], 0, FixStatus.AGREE, begun))
    edits = candidates(replayer)
    result = search(replayer, edits, progress)
    replayer.deadline = time.monotonic() + _VERIFYING * seconds
    groups, refuted = _grouped(replayer, reference, _ranked(result.found))
    status = FixStatus.REPAIRED if groups else FixStatus.UNEXPLAINED
    answer = _answer(replayer, reference, result, groups, refuted, status, begun)
    chosen = groups[0].trials[0].edits if groups else ()
    return FoundFix(answer, chosen, _distinguishing(replayer, groups))


def _ranked(found: Sequence[Trial]) -> list[Trial]:
    """Return trials by price; one that leaves a much larger difference stands behind."""
    if not found:
        return []
    least = max(min(trial.agreement.ratio for trial in found), 1e-3)
    return sorted(found, key=lambda one: (one.agreement.ratio > _CLOSER * least, one.price))[:_MOST_FOUND]


def _probes(replayer: Replayer) -> list[tuple[Array, ...]]:
    """Return other inputs."""
    first = replayer.known[0].example.inputs
    return [tuple(other_inputs(first, seed)) for seed in range(1, _PROBES + 1)]


def _grouped(replayer: Replayer, reference: RepairReference, trials: Sequence[Trial]) -> tuple[list[_Group], int]:
    """Return trials in groups with equal outputs on other inputs, without those that the reference refutes there."""
    probes = _probes(replayer)
    expected = [_asked(reference.ask, probe) for probe in probes]
    groups, refuted = list[_Group](), 0
    for trial in trials:
        allowed = replayer.allowed(is_solved=any(edit.numbers for edit in trial.edits))
        outputs = [replayer.outputs_on(patched(replayer.model, trial.edits), probe) for probe in probes]
        verdicts = [
            None if theirs is None else _agree(ours, theirs, allowed)
            for ours, theirs in zip(outputs, expected, strict=True)
        ]
        if False in verdicts:
            refuted += 1
            continue
        alike = next((one for one in groups if _are_alike(one.probes, outputs, replayer.tolerances)), None)
        if alike is None:
            groups.append(_Group([trial], outputs, verdicts.count(True)))
        elif _signature(trial) not in map(_signature, alike.trials):
            alike.trials.append(trial)
    return groups, refuted


def _signature(trial: Trial) -> tuple[object, ...]:
    """Return what tells two trials apart in words, apart from how a number was arrived at."""
    return tuple((edit.kind, edit.address, edit.after or edit.subject, edit.before) for edit in trial.edits)


def _asked(ask: Ask | None, inputs: Sequence[Array]) -> Any:
    if ask is None:
        return None
    try:
        return ask(inputs)
    except RUN_ERRORS:
        return None


def _agree(ours: Any, theirs: Any, tolerances: Tolerances) -> bool:
    return ours is not None and agreement(ours, theirs, tolerances).agrees


def _are_alike(a: Iterable[Any], b: Iterable[Any], tolerances: Tolerances) -> bool:
    return all(
        one is other if one is None or other is None else agreement(one, other, tolerances).agrees
        for one, other in zip(a, b, strict=True)
    )


def _distinguishing(replayer: Replayer, groups: Sequence[_Group]) -> tuple[Array, ...] | None:
    """Return the other input on which most groups differ from the first one; None where there is one group."""
    if len(groups) < 2 or any(one.verified for one in groups):
        return None
    first, counts = groups[0], list[int]()
    for index in range(len(first.probes)):
        pairs = ((first.probes[index], other.probes[index]) for other in groups[1:])
        counts.append(sum(not _are_alike([one], [other], replayer.tolerances) for one, other in pairs))
    return _probes(replayer)[counts.index(max(counts))]


def _answer(
    replayer: Replayer,
    reference: RepairReference,
    result: SearchResult,
    groups: Sequence[_Group],
    refuted: int,
    status: FixStatus,
    begun: float,
) -> FixAnswer:
    base = replayer.base
    divergence = None if base.agrees else replayer.first_divergence()
    site = None if divergence is None else layer_site(divergence[0], str(replayer.model.path))
    return FixAnswer(
        status=status,
        reference=reference.title,
        examples=len(reference.examples),
        numbers=replayer.reference_size,
        ratio=base.ratio,
        distance=base.distance,
        differing=tuple(sorted(base.differing)),
        iteration=None if divergence is None else divergence[1],
        loop=site,
        repairs=tuple(_repair(replayer.model, group) for group in groups),
        closest=() if groups else tuple(_closest(replayer.model, one) for one in result.closest[:_MOST_CLOSEST]),
        refuted=refuted,
        singles=result.singles,
        tried=result.tried,
        pairs=result.pairs,
        seconds=time.monotonic() - begun,
        is_complete=result.is_complete,
        is_interrupted=result.is_interrupted,
    )


def _repair(model: Model, group: _Group) -> Repair:
    each = [tuple(edit_facts(model, edit) for edit in trial.edits) for trial in group.trials]
    first: Agreement = group.trials[0].agreement
    return Repair(each[0], first.ratio, group.verified, tuple(each[1:]))


def _closest(model: Model, trial: Trial) -> Closest:
    return Closest(tuple(edit_facts(model, edit) for edit in trial.edits), trial.agreement.distance)


def edit_facts(model: Model, edit: RepairEdit) -> EditFacts:
    """Return the facts of an edit, with the loops and Ifs that lead to it."""
    around, graph = list[LayerSite](), model.graph
    for key, role in edit.address.scope:
        layer = graph.by_id[key]
        around.append(layer_site(layer, str(model.path)))
        graph = next(body.graph for body in layer.bodies if body.role == role)
    return EditFacts(
        edit.kind, edit.layer, tuple(around), edit.subject, edit.before, edit.after, edit.numbers, edit.price
    )
