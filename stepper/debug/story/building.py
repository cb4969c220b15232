"""Stories out of causal links: rows of operations, columns of iterations, with the histories of the rows."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.debug.causes.cause import Arithmetic, Element, LinkKind
from stepper.debug.causes.crossings import (
    ValueSpot,
    body_values,
    end_of_loop,
    held,
    operation_of,
    out_of_body,
    producer,
)
from stepper.debug.causes.earlier_frames import EarlierFrames, Seat
from stepper.debug.causes.locations import file_of, location_of
from stepper.debug.causes.nan_origins import first_element, scalar_of
from stepper.debug.causes.overrides import is_end_set
from stepper.debug.causes.texts import element_text
from stepper.debug.causes.why import NoValueYet, element_asked
from stepper.debug.loop_limits import condition_limit
from stepper.debug.provenance.facts import QuestionKind
from stepper.debug.provenance.question import question_at
from stepper.debug.story.facts import (
    Entry,
    LinkRole,
    OperandGroup,
    Story,
    StoryColumn,
    StoryEdge,
    StoryEnd,
    StoryFactor,
    StoryLink,
    StoryOperand,
    StoryRow,
    StorySlices,
    time_of,
)
from stepper.debug.story.failures import lacking_at_entry, lacking_slices, unfit_condition
from stepper.debug.story.folding import folded
from stepper.debug.story.forms import LinkForm
from stepper.debug.story.histories import ElementHistories, HistoryWish, Path, path_of
from stepper.debug.story.linking import CausalGraph
from stepper.debug.story.making import Factor, MadeOf, Making
from stepper.debug.story.places import EndedLoop, ended_loop, spot_of
from stepper.debug.story.question import StoryQuestion
from stepper.debug.story.shares import shares_by_iteration
from stepper.debug.story.slicer import CausalLink, CausalSlice, Slicer, Way
from stepper.debug.story.texts import name_in_iteration
from stepper.debug.timeline import Timeline
from stepper.debug.visits import excursion
from stepper.element_types import Array, limits
from stepper.engine.events import Every
from stepper.engine.frames import Frame, Phase
from stepper.engine.loops import EndReason
from stepper.engine.program import LoopPlan, Program
from stepper.errors import StepperError, UsageError
from stepper.ir.model import Layer, LayerSite, Source, layer_site
from stepper.query import short_names
from stepper.query.address_resolution import Target, moment_address, resolve
from stepper.query.address_syntax import Address, exact_name
from stepper.query.atlas import Atlas

MOST_ROWS: Final = 12
"""Rows up to which operations that only move an element are shown."""
_STANDS_OUT: Final = 0.1
"""Part of a sum that its largest term has, below which the terms are added up by tensor."""
_MOST_GROUPED: Final = 2**16
_MOST_READERS: Final = 8

_RowKey = tuple[tuple[int, ...], Element | None]


def story(timeline: Timeline, question: StoryQuestion) -> Story:
    """Return the story that answers a question. The present stays. UsageError for what has no value.

    What the present has not come to is looked for in what is known of the run beyond it.
    """
    furthest = timeline.furthest
    try:
        return _story_at(timeline, question, question.tick)
    except NoValueYet:
        if question.tick is not None or furthest <= timeline.machine.tick:
            raise
    return _story_at(timeline, question, furthest)


def _story_at(timeline: Timeline, question: StoryQuestion, tick: int | None) -> Story:
    with closing(EarlierFrames(timeline, tick)) as frames:
        return _Builder(timeline, frames, question).story()


class _ColumnKey(NamedTuple):
    """An iteration; sorted they are in the order of time."""

    path: Path
    phase: int


class _Builder:
    """The making of one story, in the frames of one walk back."""

    def __init__(self, timeline: Timeline, frames: EarlierFrames, question: StoryQuestion) -> None:
        self._timeline, self._frames, self._question = timeline, frames, question
        self._compiled = timeline.machine.compiled
        self._file = file_of(self._compiled)
        self._present = path_of(timeline.machine.stack)
        self._entered = 0

    def story(self) -> Story:
        """Return the story."""
        question = self._question
        if question.fails:
            return self._of_failure()
        if question.ends:
            return self._of_end(ended_loop(self._frames, self._compiled, question.address))
        asked = question_at(self._timeline, question.address)
        if asked.kind is QuestionKind.END:
            return self._of_end(ended_loop(self._frames, self._compiled, asked.loop, asked.iterations))
        assert asked.address is not None, "it is about a value"
        of_shape = asked.kind is QuestionKind.SHAPE
        spot, target = spot_of(self._frames, self._compiled, asked.address, of_shape=of_shape, told=asked.told)
        pieces = self._ended_of_pieces(spot) if of_shape else None
        if pieces is not None:
            return self._of_end(pieces)
        if spot.element is None:
            raise UsageError(f"'{target.named.name}' is a scalar: it has no axis whose extent has a story")
        return self._told(self._sliced(spot), self._address(spot, target), self._short(spot, target), None)

    def _of_failure(self) -> Story:
        """Return the story of what the operation was given at which the run fails next. UsageError for none.

        Between two iterations that is the loop itself; of a condition of several elements it is where these come from.
        """
        seat = self._frames.present
        frame = self._frames.at(seat)[-1]
        index, condition, lacking = frame.pc, None, None
        if frame.activation is not None and (
            frame.phase is not Phase.RUNNING or index >= len(frame.program.operations)
        ):
            found = unfit_condition(frame) if frame.phase is Phase.RUNNING else None
            condition = None if found is None else ValueSpot(seat, *found, is_shape=True)
            lacking = lacking_slices(frame.activation) if frame.phase is Phase.BETWEEN else ()
            operation, seat = frame.activation.operation, seat[:-1]
            frame = self._frames.at(seat)[-1]
            index = frame.program.operations.index(operation)
        if index >= len(frame.program.operations):
            raise UsageError("no operation fails here")
        layer = frame.program.operations[index].layer
        reason = _reason_to_fail(self._timeline, self._question.tick)
        if not reason:
            raise UsageError(f"{layer.type} '{layer.name}' does not fail here")
        slicer = Slicer(self._timeline, self._frames, self._question.links, dict(self._question.wider))
        tick = self._timeline.machine.tick if self._question.tick is None else self._question.tick
        if lacking is None:
            operation = frame.program.operations[index]
            values = [frame.values[slot] if slot >= 0 else None for slot in operation.inputs]
            lacking = lacking_at_entry(operation, values, self._timeline.machine.rules)
        asked = slicer.slice_failure(seat, index, tick, lacking) if condition is None else slicer.slice(condition)
        path = _path(seat)
        name = name_in_iteration(self._name(frame.program, layer), path, self._loop_names(frame.program))
        return replace(self._told(asked, name, name, None), failure=reason)

    def _ended_of_pieces(self, spot: ValueSpot) -> EndedLoop | None:
        """Return the loop whose pieces an extent counts: its end says how many there are; None for any other extent."""
        program = self._frames.at(spot.seat)[-1].program
        operation = operation_of(program, spot.slot)
        if operation is None or not operation.plans or not out_of_body(self._frames, spot, operation).decides:
            return None
        inner, frame = self._frames.left(spot.seat, program.operations.index(operation))
        assert frame.activation is not None, "a body has one"
        return EndedLoop(spot.seat, inner if frame.activation.iteration >= 0 else None, frame.activation)

    def _sliced(self, spot: ValueSpot) -> CausalSlice:
        return Slicer(self._timeline, self._frames, self._question.links, dict(self._question.wider)).slice(spot)

    def _of_end(self, ended: EndedLoop) -> Story:
        activation = ended.activation
        assert activation.ended is not None, "it has ended"
        layer = layer_site(activation.operation.layer, self._file)
        end = StoryEnd(
            layer,
            activation.ended,
            activation.iteration,
            activation.limit,
            sliced=self._sliced_inputs(ended),
            is_set=is_end_set(activation, body_values(self._frames, ended.seat)),
        )
        if ended.seat is not None:
            most = condition_limit(self._frames.at(ended.seat)[-1])
            if most is not None and (end.limit is None or most.iterations < end.limit):
                end = replace(end, limit=most.iterations)
        told = (
            self._made_last(ended)
            if end.is_undecided
            else end_of_loop(self._frames, ended.outer, ended.seat, activation)
        )
        if told is None:
            empty: tuple[()] = ()
            return Story(
                address=layer.name,
                name=layer.name,
                asked=0,
                loops=(layer,),
                rows=empty,
                columns=empty,
                links=empty,
                edges=empty,
                present=self._present,
                end=end,
                question=self._question,
            )
        found = self._sliced(told)
        unasked = tuple(short_names.last_part(one.name) for one in found.unasked)
        return self._told(found, layer.name, layer.name, replace(end, unasked=unasked))

    def _made_last(self, ended: EndedLoop) -> ValueSpot | None:
        """Return what the last iteration handed on, or else gave: NaN or Inf if there is one, else the largest element.

        None of a loop that ran no iteration, or gives nothing but texts.
        """
        plan = ended.activation.plan
        if ended.seat is None or not isinstance(plan, LoopPlan):
            return None
        values = self._frames.at(ended.seat)[-1].values
        slots = [entry.result for entry in plan.merged] + [entry.result for entry in plan.last_values]
        for slot in (*slots, *(entry.result for entry in plan.concatenated)):
            value = values[slot]
            if value is not None and value.size and value.dtype.kind in "biuf":
                element = element_asked(value, Address((), None, None, None, ()))
                return ValueSpot(ended.seat, slot, element or first_element(_is_largest(value)))
        return None

    def _sliced_inputs(self, ended: EndedLoop) -> tuple[StorySlices, ...]:
        """Return the inputs of which a loop used up the slices; none where something else ended it."""
        activation, around = ended.activation, self._frames.at(ended.outer)[-1].program
        plan = activation.plan
        if activation.ended is not EndReason.SLICES or not isinstance(plan, LoopPlan):
            return ()
        found = []
        for entry, slices in zip(plan.sliced, activation.slices, strict=True):
            layer, _ = producer(around, activation.operation.inputs[entry.input])
            value, walk = slices.source, slices.walk
            kind = element_types.name_of(value.dtype)
            found.append(StorySlices(self._name(around, layer), kind, value.shape, walk.axis, walk.size, walk.count))
        return tuple(found)

    def _address(self, spot: ValueSpot, target: Target) -> str:
        """Return the address of an element: as short as one can type it where the run stands."""
        full = moment_address(target, self._compiled)
        numbers = [iteration for _, iteration in spot.seat if iteration is not None]
        iterations = numbers[-1] if numbers else None
        index = spot.element or ()
        if target.named is not target.layer:
            full = replace(full, operation=exact_name(target.named.name), port=None)
        short = Address((), full.operation, full.port, iterations, index)
        of_shape = "shape of " if spot.is_shape else ""
        if len(numbers) < 2 and self._is_clear(short, target):
            return f"{of_shape}{short}"
        levels, outer = [], iter(numbers[:-1])
        sides = {layer.name for layer in target.program.path if layer.is_loop}
        for level in full.levels:
            is_loop = level.name.text in sides or level.name.text.isdigit()
            levels.append(replace(level, iterations=next(outer, None)) if is_loop else level)
        return f"{of_shape}{Address(tuple(levels), full.operation, full.port, iterations, index)}"

    def _short(self, spot: ValueSpot, target: Target) -> str:
        """Return the same as it is called in lists."""
        named = target.named
        port = f":{target.output}" if len(named.outputs) > 1 else ""
        path = _path(spot.seat)
        name = self._name(target.program, named)
        name = f"{name}.shape" if spot.is_shape else name
        name = name_in_iteration(f"{name}{port}", path, self._loop_names(target.program))
        return f"{name}{element_text(spot.element)}"

    def _loop_names(self, program: Program) -> tuple[str, ...]:
        """Return how addresses call the loops around a program, from the outermost inwards."""
        atlas, path = Atlas(self._compiled), program.path
        loops = ((atlas.ancestor(program, depth), layer) for depth, layer in enumerate(path) if layer.is_loop)
        return tuple(str(exact_name(self._name(outside, layer))) for outside, layer in loops)

    def _is_clear(self, address: Address, target: Target) -> bool:
        try:
            return resolve(replace(address, index=()), self._compiled).slot == target.slot
        except UsageError:
            return False

    # --- the whole -----------------------------------------------------------------------------------------------

    def _told(self, found: CausalSlice, address: str, name: str, end: StoryEnd | None) -> Story:
        graph = CausalGraph(found.links)
        if len({link.place for link in found.links}) > MOST_ROWS and not self._question.unfolds:
            graph.fold_moves()
        graph.fold_entries()
        shown = [link for link in found.links if link.number in graph.alive]
        numbers = {link.number: number for number, link in enumerate(shown)}
        split = _split(shown)
        keys = sorted({_row_key(link, split) for link in shown}, key=lambda key: (key[0], key[1] or ()))
        deepest = max(_depth(link.program) for link in shown)
        inner = _inner_loops(shown)
        column_of = {link.number: _column_key(link, inner, deepest) for link in shown}
        columns = sorted(set(column_of.values()), key=lambda one: time_of(*one))
        row_numbers = {key: number for number, key in enumerate(keys)}
        column_numbers = {key: number for number, key in enumerate(columns)}
        made_by: dict[int, dict[int, int]] = {}
        for edge in graph.edges:
            made_by.setdefault(edge.target, {})[edge.part] = numbers[edge.source]
        histories = self._histories(shown, [column.path for column in columns if column.path])
        edges = tuple(
            StoryEdge(
                source=numbers[edge.source],
                target=numbers[edge.target],
                ways=tuple(self._entry(way) for way in edge.ways),
                share=edge.share,
                moves=edge.moves,
                kept=len(edge.kept),
            )
            for edge in graph.edges
        )
        passed = {_path(seat) for seat in (*graph.kept, *found.kept)}
        links = tuple(
            self._link(
                link,
                row_numbers[_row_key(link, split)],
                column_numbers[column_of[link.number]],
                made_by.get(link.number, {}),
                link.entry or graph.entries.get(link.number),
            )
            for link in shown
        )
        made = Story(
            address=address,
            name=name,
            asked=0,
            loops=self._loops(shown),
            rows=tuple(self._rows(keys, shown, split, histories)),
            columns=tuple(StoryColumn(*one, first=one.path, tick=histories.closed_at(one.path)) for one in columns),
            links=links,
            edges=edges,
            loop_names=self._loop_names(max(shown, key=lambda link: _depth(link.program)).program),
            iterations=tuple(histories.iterations),
            total=histories.total,
            counts_all=histories.counts_all,
            present=self._present,
            passed=tuple(sorted(passed - {column.path for column in columns})),
            pending=found.pending,
            stopped=found.stopped,
            end=end,
            question=self._question,
            entered=self._entered,
        )
        made = replace(made, shares=tuple(shares_by_iteration(made)))
        return made if self._question.unfolds else folded(made)

    def _loops(self, shown: list[CausalLink]) -> tuple[LayerSite, ...]:
        deepest = max(shown, key=lambda link: _depth(link.program))
        return tuple(layer_site(layer, self._file) for layer in deepest.program.path if layer.is_loop)

    def _histories(self, shown: list[CausalLink], paths: list[Path]) -> ElementHistories:
        histories = ElementHistories(self._timeline)
        first = next((link for link in shown if _depth(link.program)), None)
        if first is None:
            return histories
        depth = next(k for k, (_, iteration) in enumerate(first.spot.seat) if iteration is not None)
        frame = self._frames.at(first.spot.seat[: depth + 1])[-1]
        assert frame.activation is not None
        self._entered = frame.activation.entered
        wanted = [
            HistoryWish(link.program, link.spot.slot, link.spot.element, link.spot.is_shape)
            for link in shown
            if link.spot.element is not None
        ]
        histories.record({one.key: one for one in wanted}.values(), frame.activation.entered, paths)
        return histories

    def _rows(
        self, keys: list[_RowKey], shown: list[CausalLink], split: set[tuple[int, ...]], histories: ElementHistories
    ) -> list[StoryRow]:
        rows: list[StoryRow] = []
        before: CausalLink | None = None
        by_row: dict[_RowKey, list[CausalLink]] = {}
        for link in shown:
            by_row.setdefault(_row_key(link, split), []).append(link)
        for key in keys:
            links = by_row[key]
            link, elements = links[0], {one.spot.element for one in links}
            element = next(iter(elements)) if len(elements) == 1 else None
            hidden = 0
            if before is not None and before.program is link.program:
                places = link.program.computed_at
                hidden = max(0, places.get(link.spot.slot, -1) - places.get(before.spot.slot, -1) - 1)
            rows.append(
                StoryRow(
                    name=self._called(link),
                    layer=layer_site(link.layer, self._file),
                    output=link.output if len(link.layer.outputs) > 1 else None,
                    element=element,
                    depth=_depth(link.program),
                    hidden=hidden,
                    is_shape=link.spot.is_shape,
                    history=()
                    if element is None
                    else histories.of(HistoryWish(link.program, link.spot.slot, element, link.spot.is_shape)),
                )
            )
            before = link
        return rows

    # --- a link --------------------------------------------------------------------------------------------------

    def _link(self, link: CausalLink, row: int, column: int, made_by: dict[int, int], entry: Way | None) -> StoryLink:
        frames = self._frames.at(link.spot.seat)
        frame, found = frames[-1], link.making
        total = None if found is None or found.terms is None else found.terms
        is_sum = total is not None and bool(np.isfinite(total).all())
        listed = found.parts if found is not None else ()
        role = LinkRole.BORN if link.kind is LinkKind.BORN else LinkRole.PATH
        return StoryLink(
            key=link.key,
            row=row,
            column=column,
            location=location_of(frames, self._file, link.layer, link.output if len(link.layer.outputs) > 1 else None),
            type=""
            if link.kind is LinkKind.FAILED
            else element_types.name_of(np.asarray(frame.values[link.spot.slot]).dtype),
            shape=link.shape,
            element=link.spot.element,
            value=None if link.value is None else scalar_of(link.value),
            kind=link.kind,
            role=LinkRole.ASKED if link.number == 0 and role is LinkRole.PATH else role,
            form=LinkForm.WHOLE if found is None else found.form,
            operands=tuple(self._operand(link, frame, part, made_by.get(k)) for k, part in enumerate(listed)),
            count=0 if found is None else found.total,
            rest=float(np.sum(total)) - sum(part.amount or 0 for part in listed)
            if is_sum and total is not None
            else None,
            cancelled=_cancelled(found) if is_sum else None,
            positive=int((total > 0).sum()) if total is not None and is_sum else None,
            groups=self._groups(link, frame, found) if is_sum and found is not None else (),
            arithmetic=link.arithmetic,
            formula=link.formula,
            limit=_limit(link, frame),
            share=link.share,
            entry=None if entry is None else self._entry(entry),
            readers=self._readers(link),
            finite_beside=link.finite_beside,
            tick=link.tick,
            is_shape=link.spot.is_shape,
        )

    def _operand(self, link: CausalLink, frame: Frame, part: MadeOf, made_by: int | None) -> StoryOperand:
        return StoryOperand(
            input=part.factor.input,
            factor=self._factor(link, frame, part.factor),
            role=part.role,
            amount=part.amount,
            share=part.share,
            beside=None if part.beside is None else self._factor(link, frame, part.beside),
            link=made_by,
        )

    def _factor(self, link: CausalLink, frame: Frame, factor: Factor) -> StoryFactor:
        operation = operation_of(link.program, link.spot.slot)
        assert operation is not None, "it has operands"
        spot = ValueSpot((), operation.inputs[factor.input], factor.element, factor.is_shape)
        return self._made(frame.program, spot, factor.value)

    def _called(self, link: CausalLink) -> str:
        """Return the name of a row: that of the operation, or of its shape."""
        name = self._name(link.program, link.layer)
        return f"{name}.shape" if link.spot.is_shape else name

    def _made(self, program: Program, spot: ValueSpot, value: Any) -> StoryFactor:
        layer, output = producer(program, spot.slot)
        several = output if len(layer.outputs) > 1 else None
        name = self._name(program, layer)
        return StoryFactor(
            f"{name}.shape" if spot.is_shape else name,
            layer_site(layer, self._file),
            several,
            spot.element,
            None if value is None else scalar_of(value),
            spot.is_shape,
        )

    def _entry(self, way: Way) -> Entry:
        factor = None
        if way.outside is not None:
            frame = self._frames.at(way.outside.seat)[-1]
            element = way.outside.element
            is_there = frame.values[way.outside.slot] is not None and element is not None
            factor = self._made(frame.program, way.outside, held(frame, way.outside)[element] if is_there else None)
        return Entry(way.kind, self._name(way.program, way.layer), layer_site(way.layer, self._file), way.line, factor)

    def _name(self, program: Program, layer: Layer) -> str:
        """Return the name of a layer as lists have it, that of what is carried without its number."""
        return short_names.short_names_of(program.graph)[layer.id]

    def _readers(self, link: CausalLink) -> tuple[str, ...]:
        graph, source = link.program.graph, Source(link.layer.id, link.output)
        readers = [layer for layer in graph.layers if source in graph.sources[layer.id]]
        return tuple(self._name(link.program, layer) for layer in readers[:_MOST_READERS])

    def _groups(self, link: CausalLink, frame: Frame, found: Making) -> tuple[OperandGroup, ...]:
        """Return the terms of a sum by the tensor that they come from, where none of them stands out."""
        terms, at = found.terms, found.factor_at
        if terms is None or at is None or not found.weights or found.weights[0] >= _STANDS_OUT:
            return ()
        operation = operation_of(link.program, link.spot.slot)
        joined = (
            None if operation is None else operation_of(link.program, operation.inputs[found.parts[0].factor.input])
        )
        if joined is None or joined.layer.type != "Concat" or len(terms) > _MOST_GROUPED:
            return ()
        sizes = [np.asarray(frame.values[slot]).shape for slot in joined.inputs]
        axis = int(joined.layer.attributes.get("axis", "0"))
        ends = np.cumsum([shape[axis] for shape in sizes])
        index = found.parts[0].factor.input
        factors = (next(one for one in at(k) if one is not None and one.input == index) for k in range(len(terms)))
        places = np.array([0 if one.element is None else one.element[axis] for one in factors])
        which = np.searchsorted(ends, places, side="right")
        total, counts = float(terms.sum()), Counter(which.tolist())
        groups = []
        for number, slot in enumerate(joined.inputs):
            amount = float(terms[which == number].sum())
            layer = producer(link.program, slot)[0]
            name = self._name(link.program, layer)
            groups.append(
                OperandGroup(
                    name, layer_site(layer, self._file), counts[number], amount, amount / total if total else None
                )
            )
        return tuple(sorted(groups, key=lambda group: -abs(group.amount)))


def _reason_to_fail(timeline: Timeline, tick: int | None) -> str:
    """Return with which message the next move of the run fails; empty where it does not. The present stays."""
    machine = timeline.machine
    with excursion(timeline):
        if tick is not None:
            timeline.goto(tick)
        try:
            timeline.forward(Every.END, lambda _event: False, machine.tick + 1)
        except StepperError as error:
            return error.reason
    return ""


# --- keys -----------------------------------------------------------------------------------------------------------


def _split(shown: list[CausalLink]) -> set[tuple[int, ...]]:
    """Return the operations of which one iteration has several elements: each has a row of its own."""
    counts = Counter((link.place, link.output, _path(link.spot.seat)) for link in shown)
    return {place for (place, _, _), count in counts.items() if count > 1}


def _row_key(link: CausalLink, split: set[tuple[int, ...]]) -> _RowKey:
    key = (*link.place, link.output, int(link.spot.is_shape))
    return key, link.spot.element if link.place in split else None


def _inner_loops(shown: list[CausalLink]) -> dict[Seat, int]:
    """Return for the seat of a graph the index of the first operation in it of which bodies are shown."""
    found: dict[Seat, int] = {}
    for link in shown:
        for depth, (index, _) in enumerate(link.spot.seat):
            outer = link.spot.seat[:depth]
            found[outer] = min(index, found.get(outer, index))
    return found


def _column_key(link: CausalLink, inner: dict[Seat, int], deepest: int) -> _ColumnKey:
    seat, path = link.spot.seat, _path(link.spot.seat)
    if len(path) == deepest or seat not in inner:
        return _ColumnKey(path, 0)
    return _ColumnKey(path, -1 if link.order[-1] < inner[seat] else 1)


def _path(seat: Seat) -> Path:
    return tuple(iteration for _, iteration in seat if iteration is not None)


def _depth(program: Program) -> int:
    return sum(layer.is_loop for layer in program.path)


def _cancelled(found: Making | None) -> float | None:
    if found is None or found.terms is None:
        return None
    everything = float(np.abs(found.terms).sum())
    return 1 - abs(float(found.terms.sum())) / everything if everything else None


def _limit(link: CausalLink, frame: Frame) -> float | None:
    """Return the largest argument of an exponential that overflowed."""
    if link.arithmetic is not Arithmetic.OVERFLOW or link.layer.type != "Exp":
        return None
    dtype = np.asarray(frame.values[link.spot.slot]).dtype
    return float(np.log(limits(dtype).largest))


def _is_largest(value: Array) -> Array:
    """Return where the elements of the largest magnitude are."""
    size = np.abs(np.asarray(value, np.float64))
    mask: Array = size == size.max()
    return mask
