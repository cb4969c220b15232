"""Why a value is what it is: the question resolved, the way back walked, the elements of inputs tried."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.debug.causes.cause import Chain, LinkKind
from stepper.debug.causes.crossings import ValueSpot, body_values, end_of_loop, held
from stepper.debug.causes.earlier_frames import EarlierFrames
from stepper.debug.causes.locations import address_at, file_of
from stepper.debug.causes.nan_origins import scalar_of
from stepper.debug.causes.overrides import is_end_set
from stepper.debug.causes.why import FARTHEST, NoValueYet, chain_behind, chain_of
from stepper.debug.finding.goto import tick_of_address
from stepper.debug.provenance.facts import (
    Influence,
    LoopEnd,
    Provenance,
    QuestionKind,
    RuleCount,
    SourceElement,
    SourceTensor,
    TrialCounts,
)
from stepper.debug.provenance.question import WhyQuestion, question_at
from stepper.debug.provenance.references import differs_from
from stepper.debug.provenance.trials import Tester, TrialMoment
from stepper.debug.provenance.walk import MaskWalk, ReachedTensor, SourceKind, Strength, Trail
from stepper.debug.story.places import EndedLoop, ended_loop, spot_of
from stepper.debug.timeline import Timeline
from stepper.debug.visits import excursion
from stepper.element_types import FLOATING, Array
from stepper.engine.frames import Frame
from stepper.errors import Paused, UsageError
from stepper.ir.model import layer_site
from stepper.query.address_syntax import Address, exact_name
from stepper.query.atlas import Atlas

MOST_ELEMENTS: Final = 20_000
"""Elements of a source that are listed."""
_PARTS: Final = {Strength.DATA: Influence.DATA, Strength.INDEX: Influence.INDEX, Strength.CONTROL: Influence.CONTROL}
_KINDS: Final = {
    SourceKind.INPUT: "input",
    SourceKind.CONSTANT: "constant",
    SourceKind.EDIT: "edit",
    SourceKind.VARIABLE: "variable",
}


def provenance(timeline: Timeline, question: str | Address, *, tries: bool = True) -> Provenance:
    """Return why a value, a shape or the end of a loop is what it is, and what it depends on. The present stays.

    Without an index it is the first element that is NaN, else infinite, else the first. `tries`: elements of inputs are
    tried by running the model again. A pause ends it early: what was found by then is returned, and `stopped` says so.
    An iteration that is still to come is run, and forgotten. Raise UsageError for what has no value.
    """
    asked = question_at(timeline, question)
    try:
        return _answered(timeline, asked, tries=tries)
    except NoValueYet:
        if timeline.machine.finished or asked.address is None or not isinstance(asked.address.iterations, int):
            raise
        with excursion(timeline):
            timeline.goto(tick_of_address(timeline, str(replace(asked.address, index=()))))
            return _answered(timeline, asked, tries=tries)


def _answered(timeline: Timeline, asked: WhyQuestion, *, tries: bool) -> Provenance:
    with closing(EarlierFrames(timeline, wants_all=True)) as frames:
        return _Answering(timeline, frames, asked, tries=tries).answer()


def chain_at(timeline: Timeline, address: str | Address, *, farthest: int = FARTHEST) -> Chain:
    """Return the way back of an element alone, of a NaN or Inf to its birth, over at most so many iterations.

    Raise UsageError for what has no value.
    """
    question = question_at(timeline, address)
    if question.address is None:
        raise UsageError(f"'{address}' is no address of a value")
    with closing(EarlierFrames(timeline)) as frames:
        spot, _ = spot_of(frames, timeline.machine.compiled, question.address, told=question.told)
        return chain_of(frames, timeline, spot, farthest=farthest)


class _Answering:
    def __init__(self, timeline: Timeline, frames: EarlierFrames, question: WhyQuestion, *, tries: bool) -> None:
        self._timeline, self._frames, self._question, self._tries = timeline, frames, question, tries
        self._compiled = timeline.machine.compiled
        self._differs = differs_from(timeline, frames)
        self._stopped = ""

    def answer(self) -> Provenance:
        """Return the answer."""
        question = self._question
        if question.kind is QuestionKind.END:
            return self._of_end(ended_loop(self._frames, self._compiled, question.loop, question.iterations))
        assert question.address is not None
        is_shape = question.kind is QuestionKind.SHAPE
        spot, _ = spot_of(
            self._frames, self._compiled, question.address, self._differs, of_shape=is_shape, told=question.told
        )
        value = np.asarray(self._frames.at(spot.seat)[-1].values[spot.slot])
        other = None if self._differs is None or is_shape else self._differs(spot.seat, spot.slot, value)
        if other is not None and not other[spot.element]:
            raise UsageError(f"'{self._address(question.address, spot)}' does not differ from the reference")
        chain, behind = self._chains(spot) if spot.element is not None else (Chain(()), Chain(()))
        trail = self._trail(spot, value, is_whole=not question.address.index)
        element = None if is_shape else spot.element
        is_bad = not is_shape and value.dtype in FLOATING and not np.isfinite(value[spot.element])
        if is_bad:
            _keep_data(trail)

        def read(frame: Frame) -> Array | None:
            if frame.values[spot.slot] is None:
                return None
            array = held(frame, spot)
            if is_shape and not (question.address is not None and question.address.index):
                return array
            assert spot.element is not None
            is_inside = len(spot.element) == array.ndim and all(map(int.__lt__, spot.element, array.shape))
            return np.asarray(array[spot.element]) if is_inside else None

        frame = self._frames.at(spot.seat)[-1]
        trials = self._try(trail, TrialMoment(spot.seat, read), read(frame), is_fault=is_bad)
        return Provenance(
            asked=question.kind,
            address=str(self._address(question.address, spot)),
            type=element_types.name_of(value.dtype),
            shape=tuple(value.shape),
            element=element,
            value=None if element is None else scalar_of(value[element]),
            chain=chain,
            behind=behind,
            addresses=self._addresses(chain, behind),
            trials=trials,
            reference="" if self._differs is None or self._timeline.reference is None else "reference",
            **self._found(trail),
        )

    def _address(self, asked: Address, spot: ValueSpot) -> Address:
        iterations = next((number for _, number in reversed(spot.seat) if number is not None), None)
        named = asked.iterations if isinstance(asked.iterations, int) and asked.iterations >= 0 else iterations
        is_whole_shape = self._question.kind is QuestionKind.SHAPE and not asked.index
        index = () if is_whole_shape else spot.element or ()
        if self._question.output:
            asked = replace(asked, levels=(), operation=exact_name(self._question.output))
        return replace(asked, iterations=named, index=index)

    def _of_end(self, ended: EndedLoop) -> Provenance:
        activation = ended.activation
        assert activation.ended is not None, "it has ended"
        count = activation.iteration + 1
        spot = end_of_loop(self._frames, ended.outer, ended.seat, activation)
        chain = behind = Chain(())
        value: Any = None
        if spot is not None:
            chain, behind = self._chains(spot)
            value = scalar_of(held(self._frames.at(spot.seat)[-1], spot)[spot.element])
        trail = MaskWalk(self._timeline, self._frames, self._differs).end_of(ended.outer, ended.seat, activation)
        index = self._frames.at(ended.outer)[-1].program.operations.index(activation.operation)
        for one in trail.reached.values():  # all that matters does so for whether an iteration ran
            one.levels = np.where(one.levels > 0, np.uint8(Strength.DATA), np.uint8(0))
            one.axes = np.where(one.axes > 0, np.uint8(Strength.DATA), np.uint8(0))

        def read(frame: Frame) -> Array | None:
            return None if frame.activation is None else np.array(frame.activation.iteration)

        moment = TrialMoment(ended.outer, read, index)
        trials = self._try(trail, moment, np.array(activation.iteration), is_fault=False)
        layer = layer_site(activation.operation.layer, file_of(self._compiled))
        is_set = is_end_set(activation, body_values(self._frames, ended.seat))
        return Provenance(
            asked=QuestionKind.END,
            address=layer.name,
            type="",
            shape=(),
            element=None,
            value=value,
            chain=chain,
            behind=behind,
            addresses=self._addresses(chain, behind),
            trials=trials,
            end=LoopEnd(layer, count, activation.ended, activation.limit, is_set),
            **self._found(trail),
        )

    # --- the way back ---------------------------------------------------------------------------------------------

    def _chains(self, spot: ValueSpot) -> tuple[Chain, Chain]:
        chain = chain_of(self._frames, self._timeline, spot, self._differs)
        behind = Chain(())
        if chain.birth is not None and chain.birth.kind is LinkKind.BORN:
            behind = chain_behind(self._frames, self._timeline, spot, self._differs)
        return chain, behind

    def _addresses(self, *chains: Chain) -> tuple[str, ...]:
        found, atlas = [], Atlas(self._compiled)
        for chain in chains:
            for link in chain.links:
                address = address_at(link.location, self._compiled, atlas)
                index = f"[{','.join(map(str, link.element))}]" if link.element else ""
                of_shape = "shape of " if link.is_shape else ""
                found.append(f"{of_shape}{'' if address is None else address}{index}")
        return tuple(found)

    def _trail(self, spot: ValueSpot, value: Array, *, is_whole: bool) -> Trail:
        levels = np.zeros(value.ndim if spot.is_shape else value.shape, np.uint8)
        if spot.is_shape and is_whole:
            levels[...] = Strength.DATA
        elif spot.element is not None:
            levels[spot.element] = Strength.DATA
        walk = MaskWalk(self._timeline, self._frames, self._differs)
        return walk.trail(spot.seat, spot.slot, levels, is_shape=spot.is_shape)

    def _try(self, trail: Trail, moment: TrialMoment, expected: Array | None, *, is_fault: bool) -> TrialCounts:
        """Try the elements of inputs that the rules left, and drop from the trail what does not matter."""
        main = self._frames.at(())[-1]
        slots = main.program.parameters
        inputs = [one for one in trail.reached.values() if one.kind is SourceKind.INPUT]
        candidates = sum(int((one.levels > 0).sum()) for one in inputs)
        if not candidates or not self._tries or self._stopped or trail.stopped or self._differs is not None:
            return TrialCounts(candidates)
        if self._timeline.edits:
            return TrialCounts(candidates, reason="the run was edited")
        given = [np.asarray(main.values[slot]) for slot in slots]
        size = sum(np.asarray(value).nbytes for value in main.values if value is not None)
        tester = Tester(self._compiled, given, self._timeline.machine, moment, size)
        reason = tester.begin(expected)
        if reason:
            return TrialCounts(candidates, runs=tester.runs, reason=reason)
        by_slot = {one.slot: one for one in inputs}
        levels = {k: by_slot[slot].levels for k, slot in enumerate(slots) if slot in by_slot}
        try:
            kept, tried = tester.mattering(levels)
        except Paused:
            self._timeline.machine.request_pause(wanted=False)
            self._stopped = "paused before all elements were tried"
            return TrialCounts(candidates, runs=tester.runs, reason="paused")
        left = sum(int(mask.sum()) for mask in kept.values())
        if is_fault and not left:
            return TrialCounts(candidates, tried, 0, tester.runs, "no element alone makes it finite")
        for k, mask in kept.items():
            one = by_slot[slots[k]]
            one.levels = np.where(mask, one.levels, np.uint8(0))
        reason = "" if tried == candidates else "too many to run the model for each"
        return TrialCounts(candidates, tried, candidates - left, tester.runs, reason)

    def _found(self, trail: Trail) -> dict[str, Any]:
        rules = sorted(trail.rules.items())
        return {
            "sources": self._sources(trail),
            "rules": tuple(RuleCount(use.type, use.method, count) for use, count in rules),
            "operations": trail.steps,
            "kernel_runs": trail.kernel_runs,
            "stopped": trail.stopped or self._stopped,
        }

    def _sources(self, trail: Trail) -> tuple[SourceTensor, ...]:
        found = [
            self._source(reached) for reached in trail.reached.values() if reached.levels.any() or reached.axes.any()
        ]
        order = list(_KINDS.values())
        return tuple(
            sorted(found, key=lambda one: (order.index(one.kind), -_rank(one), one.layer.line, one.name, one.output))
        )

    def _source(self, reached: ReachedTensor) -> SourceTensor:
        value, levels = reached.value, reached.levels
        places = sorted(np.flatnonzero(levels).tolist(), key=lambda at: -int(levels.reshape(-1)[at]))
        listed = places[:MOST_ELEMENTS]
        flat, ranks = value.reshape(-1), levels.reshape(-1)
        indices = np.array(np.unravel_index(np.array(listed, np.int64), value.shape)).T.tolist() if value.ndim else [()]
        elements = tuple(
            SourceElement(tuple(index), scalar_of(flat[at]), _PARTS[Strength(int(ranks[at]))])
            for at, index in zip(listed, indices, strict=True)
        )
        counts = tuple((part, count) for level, part in _PARTS.items() if (count := int((levels == level).sum())))
        return SourceTensor(
            kind=_KINDS[reached.kind],
            name=reached.layer.name,
            layer=layer_site(reached.layer, file_of(self._compiled)),
            output=reached.output,
            type=element_types.name_of(value.dtype),
            shape=tuple(value.shape),
            counts=counts,
            elements=elements,
            axes=tuple(
                SourceElement((axis,), value.shape[axis], _PARTS[Strength(int(reached.axes[axis]))])
                for axis in np.flatnonzero(reached.axes).tolist()
            ),
        )


def _rank(source: SourceTensor) -> int:
    order = list(_PARTS.values())
    parts = [*(part for part, _ in source.counts), *(one.part for one in source.axes)]
    return len(order) - min(map(order.index, parts))


def _keep_data(trail: Trail) -> None:
    """Leave of what was reached what a NaN or Inf is made of: not what says where from, or whether something ran."""
    for one in trail.reached.values():
        one.levels = np.where(one.levels == Strength.DATA, one.levels, np.uint8(0))
        one.axes = np.zeros_like(one.axes)
