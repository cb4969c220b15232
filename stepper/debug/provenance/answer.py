"""Explain a value: the question resolved, the way back walked, the elements of inputs tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.debug.causes.cause import Chain, Element
from stepper.debug.causes.element_walks import FARTHEST, chain_of, chains_of
from stepper.debug.causes.nan_origins import scalar_of
from stepper.debug.causes.run_walk import (
    EarlierFrames,
    EndedLoop,
    Seat,
    ValueSpot,
    closed_seat,
    element_of,
    end_of_loop,
    held,
    is_bad,
    iterations_of,
    producer,
)
from stepper.debug.finding import tick_of_value
from stepper.debug.loop_runs import excursion
from stepper.debug.provenance.dependence_rules import changes_of, mattering, same_values
from stepper.debug.provenance.mask_walk import MaskWalk, ReachedTensor, SourceKind, Strength, Trail
from stepper.debug.provenance.operation_at import address_at, file_of
from stepper.debug.provenance.question import NoValueYet, WhyQuestion, ended_loop, question_at, spot_of
from stepper.debug.scopes import ValuePlace, path_of
from stepper.debug.story.story_facts import (
    Influence,
    LoopEnd,
    Provenance,
    QuestionKind,
    RuleCount,
    SourceElement,
    SourceTensor,
    TrialCounts,
)
from stepper.debug.timeline import Timeline
from stepper.element_types import FLOATING, Array, Shape
from stepper.engine.frames import Event, EventKind, Every, Frame
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.errors import Paused, StepperError, UsageError
from stepper.ir.model import layer_site
from stepper.operation_types import COMPARISON_SIGNS
from stepper.query.address_resolution import Atlas
from stepper.query.address_syntax import Address, exact_name

MOST_ELEMENTS = 20_000
"""Elements of a source that are listed."""
MOST_COST = 1_500_000
"""Moves of the machine, in all trials together, one with large tensors counting for several."""
_BYTES_OF_A_MOVE = 20_000
_MOST_COMPARED = 8
_ALONE = 0.75
"""Part of all moves for which elements are tried one by one."""
_RELATIVE = 1e-4
_ABSOLUTE = 1e-5


def provenance(timeline: Timeline, question: str | Address, *, tries: bool) -> Provenance:
    """Explain a value, a shape or the end of a loop, with all that it depends on.

    The present stays. Without an index it is the first element that is NaN, else infinite, else the first. `tries`:
    elements of inputs are tried by running the model again. A pause ends it early: what was found by then is returned,
    and `stopped` says so. An iteration that is still to come is run, and forgotten. Raise UsageError for what has no
    value.
    """
    asked = question_at(timeline, question)
    try:
        return _answered(timeline, asked, tries=tries)
    except NoValueYet:
        tick = tick_of_value(timeline, asked.address)
        if tick is None:
            raise
        with excursion(timeline):
            timeline.goto(tick)
            return _answered(timeline, asked, tries=tries)


def _answered(timeline: Timeline, asked: WhyQuestion, *, tries: bool) -> Provenance:
    with closing(EarlierFrames(timeline, wants_all=True)) as frames:
        return _Answering(timeline, frames, asked, tries=tries).answer()


def chain_at(timeline: Timeline, address: str | Address, *, farthest: int = FARTHEST) -> Chain:
    """Return the way back of an element alone, for a NaN or Inf to its origin.

    The way back crosses at most `farthest` iterations. An iteration that is still to come is run, and forgotten. Raise
    UsageError for what has no value.
    """
    question = question_at(timeline, address)
    asked = question.address
    if asked is None:
        raise UsageError(f"'{address}' is no address of a value")

    def chain(tick: int | None) -> Chain:
        with closing(EarlierFrames(timeline, tick)) as frames:
            spot, _ = spot_of(frames, timeline.machine.compiled, asked, told=question.told)
            return chain_of(frames, timeline, spot, farthest=farthest)

    try:
        return chain(None)
    except NoValueYet:
        tick = tick_of_value(timeline, asked)
        if tick is None:
            raise
        return chain(tick)


class _Answering:
    def __init__(self, timeline: Timeline, frames: EarlierFrames, question: WhyQuestion, *, tries: bool) -> None:
        self._timeline, self._frames, self._question, self._tries = timeline, frames, question, tries
        self._compiled = timeline.machine.compiled
        self._reference = None if timeline.reference is None else _ValuesOfReference(timeline, frames)
        self._walk = MaskWalk(timeline, frames, self._reference)
        self._stopped = ""

    def answer(self) -> Provenance:
        """Return the answer."""
        question = self._question
        if question.kind is QuestionKind.END:
            return self._of_end(ended_loop(self._frames, self._compiled, question.loop, question.iterations))
        assert question.address is not None
        is_shape, is_whole = question.kind is QuestionKind.SHAPE, not question.address.index
        spot, _ = spot_of(
            self._frames, self._compiled, question.address, self._reference, of_shape=is_shape, told=question.told
        )
        frame = self._frames.at(spot.seat)[-1]
        value = np.asarray(frame.values[spot.slot])
        address = self._address(question.address, spot)
        reference = None if is_shape else self._reference
        other = None if reference is None else reference.differs(spot.seat, spot.slot, value)
        if other is not None and not other[spot.element]:
            raise UsageError(f"'{address}' does not differ from the reference")
        chains = self._chains(spot)
        trail = self._walk.trail(spot._replace(element=None) if is_shape and is_whole else spot)

        def read(frame: Frame) -> Array | None:
            held_now = frame.values[spot.slot]
            if is_shape and is_whole and held_now is not None:
                return held(frame, spot)
            found = element_of(held_now, spot.element, is_shape=is_shape)
            return None if found is None else np.asarray(found)

        element = None if is_shape else spot.element
        number = None if element is None else value[element]
        trials = self._try(trail, spot.seat, read, read(frame), is_fault=is_bad(number))
        kind = element_types.name_of(value.dtype)
        return self._provenance(str(address), chains, trail, trials, number, kind, value.shape, element)

    def _address(self, asked: Address, spot: ValueSpot) -> Address:
        iterations = next(reversed(iterations_of(spot.seat)), None)
        named = asked.iterations if isinstance(asked.iterations, int) and asked.iterations >= 0 else iterations
        is_whole_shape = self._question.kind is QuestionKind.SHAPE and not asked.index
        if self._question.output:
            asked = replace(asked, levels=(), operation=exact_name(self._question.output))
        return replace(asked, iterations=named, index=() if is_whole_shape else spot.element or ())

    def _of_end(self, ended: EndedLoop) -> Provenance:
        activation = ended.activation
        assert activation.ended is not None, "it has ended"
        spot = end_of_loop(self._frames, ended)
        chains = self._chains(spot)
        trail = self._walk.end_of(ended)
        index = self._frames.at(ended.outer)[-1].program.operations.index(activation.operation)

        def read(frame: Frame) -> Array | None:
            return None if frame.activation is None else np.array(frame.activation.iteration)

        left: Seat = (*ended.outer, (index, None))
        trials = self._try(trail, left, read, np.array(activation.iteration), is_fault=False)
        layer = layer_site(activation.operation.layer, file_of(self._compiled))
        end = LoopEnd(layer, activation.iteration + 1, activation.ended, activation.limit, ended.is_set)
        number = None if spot is None else held(self._frames.at(spot.seat)[-1], spot)[spot.element]
        return self._provenance(layer.name, chains, trail, trials, number, end=end)

    def _provenance(
        self,
        address: str,
        chains: tuple[Chain, Chain],
        trail: Trail,
        trials: TrialCounts,
        number: Any,
        type: str = "",
        shape: Shape = (),
        element: Element | None = None,
        end: LoopEnd | None = None,
    ) -> Provenance:
        return Provenance(
            asked=self._question.kind,
            address=address,
            type=type,
            shape=shape,
            element=element,
            value=None if number is None else scalar_of(number),
            chain=chains[0],
            behind=chains[1],
            addresses=self._addresses(*chains),
            sources=sources_of(trail, file_of(self._compiled)),
            rules=tuple(RuleCount(*use, count) for use, count in sorted(trail.rules.items())),
            operations=trail.steps,
            kernel_runs=trail.kernel_runs,
            trials=trials,
            end=end,
            reference="" if self._reference is None or end is not None else "reference",
            stopped=trail.stopped or self._stopped,
        )

    # --- the way back ---------------------------------------------------------------------------------------------

    def _chains(self, spot: ValueSpot | None) -> tuple[Chain, Chain]:
        if spot is None or spot.element is None:
            return Chain(()), Chain(())
        return chains_of(self._frames, self._timeline, spot, self._reference)

    def _addresses(self, *chains: Chain) -> tuple[str, ...]:
        found, atlas = [], Atlas(self._compiled)
        for link in (link for chain in chains for link in chain.links):
            address = address_at(link.location, self._compiled, atlas)
            at = "" if address is None else replace(address, index=link.element or ())
            found.append(f"{'shape of ' if link.is_shape else ''}{at}")
        return tuple(found)

    def _try(self, trail: Trail, seat: Seat, read: _Reading, expected: Array | None, *, is_fault: bool) -> TrialCounts:
        """Try the elements of inputs that the rules left, and drop from the trail what does not matter.

        What was asked about is read when the iteration, the branch or (without iteration) the loop of a seat is left.
        """
        main = self._frames.at(())[-1]
        inputs = {one.slot: one for one in trail.reached.values() if one.kind is SourceKind.INPUT}
        candidates = sum(int((one.levels > 0).sum()) for one in inputs.values())
        if not candidates or not self._tries or trail.stopped or self._reference is not None:
            return TrialCounts(candidates)
        if self._timeline.edits:
            return TrialCounts(candidates, reason="the run was edited")
        tester = _Tester(self._compiled, main, self._timeline.machine, seat, read, is_fault=is_fault)
        reason = tester.begin(expected)
        if reason:
            return TrialCounts(candidates, runs=tester.runs, reason=reason)
        slots = main.program.parameters
        try:
            kept, tried = tester.mattering({k: inputs[slot].levels for k, slot in enumerate(slots) if slot in inputs})
        except Paused:
            self._timeline.machine.request_pause(wanted=False)
            self._stopped = "paused before all elements were tried"
            return TrialCounts(candidates, runs=tester.runs, reason="paused")
        left = sum(int(mask.sum()) for mask in kept.values())
        if is_fault and not left:
            return TrialCounts(candidates, tried, 0, tester.runs, "no element alone makes it finite")
        for k, mask in kept.items():
            one = inputs[slots[k]]
            one.levels = np.where(mask, one.levels, np.uint8(0))
        reason = "" if tried == candidates else "too many to run the model for each"
        return TrialCounts(candidates, tried, candidates - left, tester.runs, reason)


def sources_of(trail: Trail, file: str) -> tuple[SourceTensor, ...]:
    """Return the tensors at which a way back ended, by kinds, data first; `file` names the model."""
    reached = [one for one in trail.reached.values() if one.levels.any() or one.axes.any()]
    found = sorted(((one.kind, _source(one, file)) for one in reached), key=_source_order)
    return tuple(source for _, source in found)


def _source(reached: ReachedTensor, file: str) -> SourceTensor:
    value, levels = reached.value, reached.levels.reshape(-1)
    listed = np.argsort(-levels.astype(np.int8), kind="stable")[: min(MOST_ELEMENTS, np.count_nonzero(levels))]
    places = np.stack(np.unravel_index(listed, value.shape), -1).tolist() if value.ndim else [[]] * listed.size
    numbers, strengths = value.reshape(-1)[listed], levels[listed].tolist()
    each = np.bincount(levels, minlength=len(Strength)).tolist()
    return SourceTensor(
        kind=reached.kind.name.lower(),
        name=reached.layer.name,
        layer=layer_site(reached.layer, file),
        output=reached.output,
        type=element_types.name_of(value.dtype),
        shape=value.shape,
        counts=tuple((part, each[level]) for level, part in _INFLUENCES.items() if each[level]),
        elements=tuple(
            SourceElement(tuple(index), scalar_of(number), _INFLUENCES[level])
            for index, number, level in zip(places, numbers, strengths, strict=True)
        ),
        axes=tuple(
            SourceElement((axis,), value.shape[axis], _INFLUENCES[int(reached.axes[axis])])
            for axis in np.flatnonzero(reached.axes).tolist()
        ),
    )


_INFLUENCES = {int(Strength[part.name]): part for part in Influence}


def _source_order(found: tuple[SourceKind, SourceTensor]) -> tuple[Any, ...]:
    kind, source = found
    return kind, list(Influence).index(source.first_part), source.layer.line, source.name, source.output


# --- a reference ------------------------------------------------------------------------------------------------------


class _ValuesOfReference:
    """Values of the reference of a run, each asked for once."""

    def __init__(self, timeline: Timeline, frames: EarlierFrames) -> None:
        self._reference, self._frames = timeline.reference, frames
        self._known: dict[tuple[Seat, int], Array | None] = {}

    def value(self, seat: Seat, slot: int) -> Array | None:
        """Return what the reference has in a slot; None where that is not known."""
        if (seat, slot) not in self._known:
            assert self._reference is not None
            stack = self._frames.at(seat)
            layer, output = producer(stack[-1].program, slot)
            try:
                other = self._reference.value_at(ValuePlace(path_of(stack), layer, output, stack[-1]))
            except StepperError:
                other = None
            self._known[seat, slot] = None if other is None else np.asarray(other)
        return self._known[seat, slot]

    def differs(self, seat: Seat, slot: int, value: Array) -> Array | None:
        """Return in which elements a value differs from the reference; None where that is not known."""
        other = self.value(seat, slot)
        return None if other is None else _mask(value, other)


def _mask(value: Array, other: Array) -> Array:
    """Return where two tensors differ by more than rounding."""
    if value.shape != other.shape:
        return np.ones(value.shape, bool)
    if value.dtype in FLOATING and other.dtype in FLOATING:
        a, b = value.astype(np.float64), other.astype(np.float64)
        with np.errstate(all="ignore"):
            return np.asarray(~np.isclose(a, b, _RELATIVE, _ABSOLUTE, equal_nan=True))
    return np.asarray(value != other)


# --- trials: does an element matter when the model runs again? --------------------------------------------------------

_Reading = Callable[[Frame], Array | None]
"""Return what was asked about, given the frame that has it; None where that has none."""


class _Tester:
    """Runs of a model beside a run, each with other inputs."""

    def __init__(
        self, compiled: CompiledModel, main: Frame, owner: Machine, seat: Seat, read: _Reading, *, is_fault: bool
    ) -> None:
        self._compiled, self._owner, self._seat, self._read = compiled, owner, seat, read
        self._inputs = [np.asarray(main.values[slot]) for slot in main.program.parameters]
        self._most_moves = 4 * owner.tick + 1000
        self.runs = 0
        self._spent = 0
        self._each = sum(np.asarray(value).nbytes for value in main.values if value is not None) // _BYTES_OF_A_MOVE
        self._base: Array | None = None
        self._compared, self._is_fault = _compared_with(compiled), is_fault

    def begin(self, expected: Array | None) -> str:
        """Run once as it was. Return why elements cannot be tried; empty where they can."""
        try:
            self._base = self._reading(self._inputs)
        except StepperError:
            self._base = None
        if self._base is None or expected is None or not same_values(self._base, expected):
            return "the run cannot be made again from its inputs alone"
        return ""

    def mattering(self, levels: Mapping[int, Array]) -> tuple[dict[int, Array], int]:
        """Return the elements that matter, of those with a level above 0, by input; and how many were tried.

        Each is tried alone; when most of the room is gone those that are left are tried in groups, which are halved
        where they matter. What there is no room for at all counts as mattering.
        """
        found = {index: np.zeros(level.size, bool) for index, level in levels.items()}
        alone = [
            (index, place) for index, level in levels.items() for place in np.flatnonzero(level.reshape(-1)).tolist()
        ]
        tried = 0
        while alone and self._spent < MOST_COST * _ALONE:
            index, place = alone.pop(0)
            found[index][place] = self._matters(index, np.array([place]))
            tried += 1
        for index in reversed(list(levels)):
            places = np.array([at for own, at in alone if own == index], np.int64)
            kept, more = mattering(
                places, found[index].size, partial(self._matters, index), lambda: self._spent < MOST_COST
            )
            found[index] |= kept
            tried += more
        return {index: mask.reshape(levels[index].shape) for index, mask in found.items()}, tried

    def _matters(self, index: int, group: Array) -> bool:
        value = np.asarray(self._inputs[index])
        return any(
            self._differs(index, one.reshape(value.shape))
            for one in changes_of(value, group, compared=self._compared, is_wide=not self._is_fault)
        )

    def _differs(self, index: int, changed: Array) -> bool:
        try:
            got = self._reading([*self._inputs[:index], changed, *self._inputs[index + 1 :]])
        except Paused:
            raise
        except StepperError:  # with other numbers a model may refuse what it has accepted
            return True
        assert self._base is not None
        return got is None or not same_values(got, self._base)

    def _reading(self, inputs: list[Array]) -> Array | None:
        """Return what is read in a run with these inputs; None where the run does not come to it."""
        if self._owner.pause_requested:
            raise Paused
        self.runs += 1
        machine = Machine(self._compiled, inputs, states=self._owner.initial_states)
        machine.max_iterations = self._owner.max_iterations
        every = Every.END if not self._seat else Every.LOOP if self._seat[-1][1] is None else Every.ITERATION
        self._owner.followers = (machine, *self._owner.followers)
        try:
            while machine.stack and machine.tick < self._most_moves:
                event = machine.advance(every, self._most_moves)
                if event.kind is EventKind.PAUSED:
                    raise Paused
                if self._is_there(machine, event):
                    return self._read(event.frame)
            return None
        finally:
            self._owner.followers = tuple(one for one in self._owner.followers if one is not machine)
            self._spent += machine.tick + self._each

    def _is_there(self, machine: Machine, event: Event) -> bool:
        if not self._seat:
            return event.kind is EventKind.FINISHED
        seat = closed_seat(event, machine.stack)
        if seat is not None and event.kind is EventKind.LEFT:  # in whichever iteration that was
            seat = (*seat[:-1], (seat[-1][0], None))
        return seat == self._seat


def _compared_with(compiled: CompiledModel) -> tuple[float, ...]:
    """Return the finite numbers that the model compares values with: the ends of sequences, and thresholds."""
    found: dict[float, None] = {}
    for program in compiled.programs:
        for operation in program.operations:
            if operation.layer.type in COMPARISON_SIGNS:
                values = (program.template[slot] for slot in operation.inputs)
                for value in map(np.asarray, (one for one in values if one is not None)):
                    if value.size == 1 and (value.dtype.kind in "iu" or value.dtype in FLOATING) and np.isfinite(value):
                        found[value.reshape(()).item()] = None
    return tuple(found)[:_MOST_COMPARED]
