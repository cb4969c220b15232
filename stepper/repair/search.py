"""The search: edits in the order of their price, each compared with the reference, within a limit of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain, combinations, product

from msgspec import Struct, field
from msgspec.structs import replace

from stepper.ir.model import Source
from stepper.records import Record
from stepper.repair.catalogue.attribute_edits import attribute_edits
from stepper.repair.catalogue.constant_edits import constant_edits
from stepper.repair.catalogue.damaged_constants import damaged_constant_edits
from stepper.repair.catalogue.feedback_edits import feedback_edits
from stepper.repair.catalogue.insertion_edits import insertion_edits
from stepper.repair.catalogue.length_edits import length_edits
from stepper.repair.catalogue.loop_edits import body_edits, loop_edits
from stepper.repair.catalogue.missing_weights import missing_weight_edits
from stepper.repair.catalogue.operand_edits import operand_edits
from stepper.repair.catalogue.operation_edits import operation_edits
from stepper.repair.catalogue.rewrite_edits import rewrite_edits
from stepper.repair.catalogue.type_edits import type_edits
from stepper.repair.catalogue.unknown_numbers import unknown_edits
from stepper.repair.edit import EditKind, GraphSite, RepairEdit, patched, sites_of
from stepper.repair.influence import LayerKey, reached_outputs
from stepper.repair.replay import FAILED, Agreement, Replayer, differs
from stepper.repair.side_by_side import can_fork, tried_in_processes
from stepper.repair.solve import solved

_FAMILIES = (
    attribute_edits,
    operand_edits,
    operation_edits,
    insertion_edits,
    constant_edits,
    loop_edits,
    body_edits,
    type_edits,
    length_edits,
    feedback_edits,
    rewrite_edits,
)
_OTHER_OUTPUTS = 0.5
"""Added to the price if outputs that agree can change with the edit."""
_ELSEWHERE = 6.0
"""Added to the price of an edit where the values of the reference do not begin to differ."""
_FURTHER = 3.0
_FURTHER_SOLVED = 0.5
"""How much dearer than the first repair an edit may be that is tried after it, without and with unknown numbers."""
_FIRST = 256
_SHORT = 2.0
_LONG = 20.0
"""Edits that are tried here before processes are started, seconds that these take, and that all will take."""
_PATIENCE = 5.0
"""Minimum seconds after the first repair; the search continues as long as that repair took."""
_HEADS = 6
_CHEAP = 2.5
"""The closest edits that are paired with all others, and the most that such another edit may cost."""
_CLOSEST = 24
"""Edits that bring outputs closer, from which pairs are made."""


class SearchProgress(Record):
    """How far a search has come: edits tried, of how many, and how many make the outputs equal."""

    tried: int
    count: int
    found: int
    seconds: float


class Trial(Record, eq=False):
    """Edits that were made together, and how the outputs agree with them."""

    edits: tuple[RepairEdit, ...]
    agreement: Agreement
    number: int

    @property
    def price(self) -> float:
        """The price of all edits."""
        return sum(edit.price for edit in self.edits) + 2.0 * (len(self.edits) - 1)


class SearchResult(Struct):
    """The trials of a search: those that make all outputs equal, and the closest of the others."""

    found: list[Trial] = field(default_factory=list)
    closest: list[Trial] = field(default_factory=list)
    singles: int = 0
    tried: int = 0
    pairs: int = 0
    first_s: float = 0.0
    is_interrupted: bool = False
    is_complete: bool = False


def candidates(replayer: Replayer) -> list[RepairEdit]:
    """Return the edits that can change outputs which differ, in the order in which they are tried.

    Those that cannot change all of them are parts of pairs at most.
    """
    model = replayer.model
    reached = reached_outputs(model)
    differing = replayer.base.differing
    found, sites = list[RepairEdit](), sites_of(model, replayer.known[0])
    origins = frozenset(key for site in sites for key in _origins(site, replayer))
    for site in sites:
        for edit in _of_site(site, replayer.reference_size):
            reaches = _reaches(edit, reached)
            if reaches & differing or not differing:
                further = bool(differing) and reaches != differing
                is_part = not differing <= reaches
                price = edit.price + _OTHER_OUTPUTS * further
                if origins:
                    price += 0.0 if not origins.isdisjoint(_keys(edit)) else _ELSEWHERE
                found.append(replace(edit, price=price, is_part=is_part))
    return sorted(found, key=lambda one: one.price)


def _of_site(site: GraphSite, reference_size: int) -> Iterator[RepairEdit]:
    yield from chain.from_iterable(family(site) for family in _FAMILIES)
    yield from unknown_edits(site, reference_size // 2)
    yield from missing_weight_edits(site, reference_size * 3 // 4)
    yield from damaged_constant_edits(site, reference_size // 2)


def _origins(site: GraphSite, replayer: Replayer) -> Iterator[LayerKey]:
    """Yield the layers that have other values than in the reference, though what they read is the same there."""
    names, theirs = tuple(layer.name for layer in site.path), replayer.values
    differing = set[int]()
    for layer in site.graph.layers if theirs else ():
        for output in range(len(layer.outputs)):
            value, other = site.value(Source(layer.id, output)), theirs.get((*names, layer.name, str(output)))
            if value is not None and other is not None and differs(value, other, replayer.tolerances):
                differing.add(layer.id)
    for key in differing:
        if not any(source is not None and source.layer in differing for source in site.graph.sources[key]):
            yield site.scope, key


def _keys(edit: RepairEdit) -> Iterator[LayerKey]:
    """Yield the layers whose values change first with an edit, and the loops and Ifs around it for port maps."""
    scope = edit.address.scope
    yield from ((scope, key) for key in (edit.address.layer, *edit.roots))
    if scope and edit.kind in (EditKind.BACK_EDGE, EditKind.LOOP_OUTPUT):
        yield scope[:-1], scope[-1][0]


def _reaches(edit: RepairEdit, reached: dict[LayerKey, frozenset[int]]) -> frozenset[int]:
    scope = edit.address.scope
    keys = {edit.address.layer, *edit.roots}
    return frozenset(position for key in keys for position in reached.get((scope, key), ()))


def search(
    replayer: Replayer,
    edits: Sequence[RepairEdit],
    progress: Callable[[SearchProgress], object] | None = None,
) -> SearchResult:
    """Try edits and pairs of them until the replayer's time is up. Ctrl+C ends the search with what is found so far."""
    begun = time.monotonic()
    whole, parts = [one for one in edits if not one.is_part], [one for one in edits if one.is_part]
    result = SearchResult(singles=len(whole))
    try:
        result.is_complete = _singles(replayer, whole, result, begun, progress)
        if not result.found and result.is_complete:
            cheap = [one for one in parts if one.unknowns is None and one.price <= _CHEAP]
            if _singles(replayer, cheap, result, begun, progress):
                _pairs(replayer, edits, result)
    except KeyboardInterrupt:
        result.is_interrupted = True
    return result


def _singles(
    replayer: Replayer,
    edits: Sequence[RepairEdit],
    result: SearchResult,
    begun: float,
    progress: Callable[[SearchProgress], object] | None,
) -> bool:
    trials = _trials(replayer, edits, result)
    try:
        for made, agreement in trials:
            result.tried += 1
            _take(result, Trial((made,), agreement, result.tried), replayer.base)
            if progress is not None and result.tried % 16 == 0:
                progress(SearchProgress(result.tried, len(edits), len(result.found), time.monotonic() - begun))
            if result.found and made.price > result.found[0].price + _FURTHER:
                return True  # the others are dearer still
            now = time.monotonic()
            if result.found and not result.first_s:
                result.first_s = now - begun
            if now > replayer.deadline or (
                result.found and now - begun > result.first_s + max(_PATIENCE, result.first_s)
            ):
                return bool(result.found)
    finally:
        trials.close()
    return True


def _trials(
    replayer: Replayer, edits: Sequence[RepairEdit], result: SearchResult
) -> Generator[tuple[RepairEdit, Agreement]]:
    """Yield edits with what becomes of them: the first ones here, the others in processes if they take long.

    If they take longer than there is time, each ends at the first slice that disagrees, and none of these is close.
    """
    begun, waiting = time.monotonic(), list(edits)
    for count, edit in enumerate(waiting[:_FIRST]):
        if not _is_too_dear(edit, result):
            yield tried(replayer, edit)
        took = time.monotonic() - begun
        if took > _SHORT and took * len(waiting) / (count + 1) > _LONG and can_fork():
            rest = [one for one in waiting[count + 1 :] if not _is_too_dear(one, result)]
            replayer.stops_early = took * len(rest) / (count + 1) > replayer.deadline - time.monotonic()
            yield from tried_in_processes(replayer, rest, tried)
            return
    for edit in waiting[_FIRST:]:
        if not _is_too_dear(edit, result):
            yield tried(replayer, edit)


def _is_too_dear(edit: RepairEdit, result: SearchResult) -> bool:
    further = _FURTHER if edit.unknowns is None else _FURTHER_SOLVED
    return bool(result.found) and edit.price > result.found[0].price + further


def tried(replayer: Replayer, edit: RepairEdit) -> tuple[RepairEdit, Agreement]:
    """Return an edit, with its numbers if they are solved for, and how the outputs agree with it."""
    if edit.unknowns is not None:
        return solved(edit, replayer) or (edit, FAILED)
    try:
        return edit, replayer.compare(edit.patch(replayer.model), until_first=replayer.stops_early)
    except (LookupError, ValueError):
        return edit, FAILED


def _take(result: SearchResult, trial: Trial, base: Agreement) -> None:
    if trial.agreement.agrees:
        result.found.append(trial)
    elif trial.agreement.distance < base.distance:
        result.closest = sorted([*result.closest, trial], key=_closeness)[:_CLOSEST]


def _closeness(trial: Trial) -> tuple[int, float]:
    return len(trial.agreement.differing), trial.agreement.distance


def _pairs(replayer: Replayer, edits: Sequence[RepairEdit], result: SearchResult) -> None:
    """Try pairs: the closest edits with each other, then the very closest with all cheap ones, up to a repair."""
    beam = [trial.edits[0] for trial in result.closest]
    heads = [edit for edit in beam if len(edit.numbers) < 2][:_HEADS]
    cheap = [edit for edit in edits if edit.unknowns is None and edit.price <= _CHEAP]
    for first, second in chain(combinations(beam, 2), product(heads, cheap)):
        if time.monotonic() > replayer.deadline:
            return
        if result.found and first.price + second.price > sum(edit.price for edit in result.found[0].edits) + 1:
            continue
        result.pairs += 1
        try:
            is_solved = bool(first.numbers or second.numbers)
            agreement = replayer.compare(patched(replayer.model, (first, second)), is_solved=is_solved)
        except (LookupError, ValueError):
            continue
        _take(result, Trial((first, second), agreement, result.pairs), replayer.base)
