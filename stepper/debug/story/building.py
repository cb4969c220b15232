"""Build explanations of causal links: rows of operations, columns of iterations, row values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import closing
from time import perf_counter
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.debug.causes.cause import Arithmetic, Element, LinkForm, LinkKind, Scalar, Verdict
from stepper.debug.causes.cause_texts import element_text, port_text
from stepper.debug.causes.element_walks import (
    CausalLink,
    GraphWalk,
    fold_entries,
    fold_moves,
    lacking_at_entry,
    lacking_slices,
    shown_links,
    slot_name,
    unfit_condition,
)
from stepper.debug.causes.loop_ends import Verdicts, condition_limit
from stepper.debug.causes.nan_origins import scalar_of
from stepper.debug.causes.run_walk import (
    EarlierFrames,
    EndedLoop,
    Seat,
    ValueSpot,
    element_of,
    end_of_loop,
    ended_run,
    iterations_of,
    operation_of,
    out_of_body,
    producer,
    seat_of,
)
from stepper.debug.finding import tick_of_value
from stepper.debug.loop_runs import address_in_run, before_iteration, excursion, go_to_latest
from stepper.debug.provenance.answer import sources_of
from stepper.debug.provenance.mask_walk import MaskWalk, Trail
from stepper.debug.provenance.operation_at import (
    Contributions,
    Factor,
    address_at,
    file_of,
    inputs_of,
    location_of,
    output_named,
)
from stepper.debug.provenance.question import NoValueYet, element_asked, ended_loop, question_at, spot_of
from stepper.debug.story.story_facts import (
    Entry,
    LinkRole,
    OperandGroup,
    QuestionKind,
    Story,
    StoryColumn,
    StoryEdge,
    StoryEnd,
    StoryFactor,
    StoryLink,
    StoryOperand,
    StoryQuestion,
    StoryRow,
    StorySlices,
    folded,
    time_of,
)
from stepper.debug.story.story_texts import name_in_iteration
from stepper.debug.timeline import Timeline
from stepper.element_types import Indices, limits
from stepper.engine.frames import Event, EventKind, Every, Frame, Phase
from stepper.engine.loops import EndReason
from stepper.engine.program import LoopPlan, Operation, Program
from stepper.errors import Paused, StepperError, UsageError
from stepper.ir.model import Layer, Source, layer_site
from stepper.query import short_names
from stepper.query.address_resolution import Atlas, Target, moment_address, resolve
from stepper.query.address_syntax import Address, address_given, exact_name
from stepper.tensors.difference import index_of

MOST_BEFORE = 256
"""Most iterations before the path that are shown in part."""
MOST_SHOWN = 1024
SECONDS = 0.5
"""For how long iterations are computed anew."""


class ElementHistories:
    """The iterations of a loop around those of a path, and elements in them.

    The loop runs `total` iterations (of nested loops: those of the innermost), with that in which an error ends it;
    unless `counts_all`, at least so many.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.iterations: list[Indices] = []
        self.total = 0
        self.counts_all = False
        self._values: dict[Hashable, tuple[CausalLink, dict[Indices, Scalar | None]]] = {}

    def record(self, wanted: Iterable[CausalLink], entered: int, paths: list[Indices]) -> None:
        """Read elements in the run of the loop that was entered at a tick, around the iterations of `paths`.

        A pause or a lack of time ends it early.
        """
        self._values = {_key(link): (link, {}) for link in wanted}
        with excursion(self._timeline):
            try:
                self._timeline.goto(entered)
                first = min((path[0] for path in paths if path), default=0)
                begin = max(0, first - (MOST_BEFORE if max(map(len, paths), default=0) < 2 else 4))
                depth = next((k for k, frame in enumerate(self._timeline.machine.stack) if frame.loop), None)
                if begin and depth is not None:
                    before_iteration(self._timeline, depth, begin)
                self._read(max(map(len, paths), default=0), max(paths, default=()))
            except (Paused, StepperError):
                self._timeline.machine.request_pause(wanted=False)

    def _read(self, deepest: int, last: Indices) -> None:
        machine, started, counts_alone = self._timeline.machine, perf_counter(), False
        outermost = next((k for k, frame in enumerate(machine.stack) if frame.loop), len(machine.stack))
        begins = iterations_of(seat_of(machine.stack))[:1] in ((), (-1,))

        def see(event: Event) -> bool:
            if event.kind is EventKind.LEFT and len(machine.stack) <= outermost:
                self.counts_all = begins or deepest == 1
                return True
            is_late = perf_counter() - started > SECONDS or machine.pause_requested
            path, frame = iterations_of(seat_of(machine.stack)), machine.stack[-1]
            if counts_alone:
                self.total = max(self.total, path[0] + 1)
                return is_late
            if event.kind is not EventKind.ITERATION:
                return False
            if len(path) == deepest:
                self.iterations.append(path)
            for link, values in self._values.values():
                if link.program is frame.program:
                    spot = link.spot
                    found = element_of(frame.values[spot.slot], spot.element, is_shape=spot.is_shape)
                    values[path] = None if found is None else scalar_of(found)
            return path > last and (len(self.iterations) >= MOST_SHOWN or is_late)

        has_failed = self._has_failed(see)
        self.total = self.iterations[-1][0] + 1 if deepest == 1 and self.iterations else len(self.iterations)
        if not has_failed and deepest == 1 and not self.counts_all and not machine.finished:
            go_to_latest(self._timeline, outermost)
            counts_alone = True
            has_failed = self._has_failed(see)
        if has_failed:
            self._count_the_last(outermost, deepest, begins=begins)

    def _has_failed(self, see: Callable[[Event], bool]) -> bool:
        """Run on until an event is the one that is looked for; True if an error of the run comes before."""
        try:
            self._timeline.forward(Every.ITERATION, see)
        except Paused:
            raise
        except StepperError:
            return True
        return False

    def _count_the_last(self, outermost: int, deepest: int, *, begins: bool) -> None:
        """Count the iterations of a loop that an error has ended, with the one in which that was."""
        stack = self._timeline.machine.stack
        path = iterations_of(seat_of(stack))
        if len(stack) <= outermost or not path:
            return
        if deepest == 1:
            self.total, self.counts_all = path[0] + 1, True
        else:
            is_open = len(path) == deepest and path[-1] >= 0 and path not in self.iterations
            self.total, self.counts_all = len(self.iterations) + is_open, begins

    def of(self, link: CausalLink) -> tuple[Scalar | None, ...]:
        """Return an element in all iterations, None where it is not known."""
        _, known = self._values.get(_key(link), (link, {}))
        depth = _depth(link.program)
        return tuple(known.get(path[:depth]) for path in self.iterations)


MOST_ROWS = 12
"""Rows up to which operations that only move an element are shown."""
_MOST_OPERATIONS = 5_000
"""Operations behind an explanation that are looked at for the inputs that it depends on."""
_STANDS_OUT = 0.1
"""Part of a sum that its largest term has, below which the terms are added up by tensor."""
_MOST_GROUPED = 2**16
_MOST_READERS = 8

_RowKey = tuple[Indices, Element | None]


def story(timeline: Timeline, question: StoryQuestion) -> Story:
    """Return the explanation that answers a question. The present stays.

    UsageError for what has no value. A value that the present has not come to is looked for in the known part of the
    run beyond it; an iteration that is still to come is run, and forgotten.
    """
    furthest = timeline.furthest
    try:
        return _story_at(timeline, question, question.tick)
    except NoValueYet:
        if question.tick is not None:
            raise
        try:
            if furthest <= timeline.machine.tick:
                raise
            return _story_at(timeline, question, furthest)
        except NoValueYet:
            is_value = not (question.ends or question.fails)
            tick = tick_of_value(timeline, question_at(timeline, question.address).address if is_value else None)
            if tick is None:
                raise
    return _story_at(timeline, question, tick)


def _story_at(timeline: Timeline, question: StoryQuestion, tick: int | None) -> Story:
    with closing(EarlierFrames(timeline, tick)) as frames:
        return _Builder(timeline, frames, question).story()


class _ColumnKey(NamedTuple):
    """An iteration; sorted they are in the order of time."""

    path: Indices
    phase: int


class _Builder:
    """Build one explanation, in the frames of one walk back."""

    def __init__(self, timeline: Timeline, frames: EarlierFrames, question: StoryQuestion) -> None:
        self._timeline, self._frames, self._question = timeline, frames, question
        self._compiled = timeline.machine.compiled
        self._atlas = Atlas(self._compiled)
        self._file = file_of(self._compiled)
        self._present = iterations_of(seat_of(timeline.machine.stack))
        self._entered = 0
        self._walk = GraphWalk(timeline, frames, question.links, dict(question.wider))
        self._masks = MaskWalk(timeline, frames, most=_MOST_OPERATIONS)

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
            raise UsageError(f"'{target.named.name}' is a scalar: it has no axis to explain")
        self._walk.slice(spot)
        told = self._told(self._address(spot, target), self._called(spot, target.named, target.output), None)
        return self._with_sources(told, lambda: self._masks.trail(spot))

    def _of_failure(self) -> Story:
        """Return the explanation of the inputs of the operation at which the run fails next.

        UsageError if there is no such operation. Between two iterations the operation is the loop itself. For a
        condition of several elements, the explanation shows where these come from.
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
        tick = self._timeline.machine.tick if self._question.tick is None else self._question.tick
        if lacking is None:
            operation = frame.program.operations[index]
            lacking = lacking_at_entry(operation, inputs_of(frame, operation), self._timeline.machine.rules)
        if condition is None:
            self._walk.slice_failure(seat, index, tick, lacking)
        else:
            self._walk.slice(condition)
        path = iterations_of(seat)
        name = name_in_iteration(slot_name(frame.program, layer), path, self._loop_names(frame.program))
        return replace(self._told(name, name, None), failure=reason)

    def _ended_of_pieces(self, spot: ValueSpot) -> EndedLoop | None:
        """Return the loop whose pieces an extent counts: its end says how many there are; None for any other extent."""
        program = self._frames.at(spot.seat)[-1].program
        operation = operation_of(program, spot.slot)
        if operation is None or not operation.plans or not out_of_body(self._frames, spot, operation).decides:
            return None
        return ended_run(self._frames, self._frames.left(spot.seat, program.operations.index(operation))[0])

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
            is_set=ended.is_set,
            verdict=self._verdict(ended),
        )
        if ended.seat is not None:
            most = condition_limit(self._frames.at(ended.seat)[-1])
            if most is not None and (end.limit is None or most.iterations < end.limit):
                end = replace(end, limit=most.iterations)
        told = self._made_last(ended) if end.is_undecided else end_of_loop(self._frames, ended)
        name = layer.name
        if told is None:
            story = Story(name, name, loops=(layer,), present=self._present, end=end, question=self._question)
        else:
            self._walk.slice(told)
            unasked = tuple(short_names.last_part(one.name) for one in self._walk.unasked.values())
            story = self._told(name, name, replace(end, unasked=unasked))
        return self._with_sources(story, lambda: self._masks.end_of(ended))

    def _verdict(self, ended: EndedLoop) -> Verdict | None:
        """Return the verdict of the condition that ended a loop; None where something else did."""
        plan = ended.activation.plan
        slot = plan.condition_result if isinstance(plan, LoopPlan) else None
        if ended.seat is None or slot is None or ended.activation.ended is not EndReason.CONDITION:
            return None
        return Verdicts(self._frames.at(ended.seat)[-1], self._file, {}).of(slot)

    def _with_sources(self, told: Story, trail: Callable[[], Trail]) -> Story:
        """Return an explanation with the elements that it depends on; without them if too far away."""
        found = trail() if self._question.depends else None
        return told if found is None or found.stopped else replace(told, sources=sources_of(found, self._file))

    def _made_last(self, ended: EndedLoop) -> ValueSpot | None:
        """Return the carried value of the last iteration, or else its output.

        NaN or Inf is taken if there is one, else the largest element. None for a loop that ran no iteration, or gives
        nothing but texts.
        """
        plan = ended.activation.plan
        if ended.seat is None or not isinstance(plan, LoopPlan):
            return None
        values = self._frames.at(ended.seat)[-1].values
        slots = [entry.result for entry in plan.merged] + [entry.result for entry in plan.last_values]
        for slot in (*slots, *(entry.result for entry in plan.concatenated)):
            value = values[slot]
            if value is not None and value.size and element_types.is_number(value.dtype):
                element = element_asked(value, Address((), None, None, None, ()))
                largest = int(np.argmax(np.abs(np.asarray(value, np.float64))))
                return ValueSpot(ended.seat, slot, element or index_of(largest, value.shape))
        return None

    def _sliced_inputs(self, ended: EndedLoop) -> tuple[StorySlices, ...]:
        """Return the inputs whose slices a loop used up; none if something else ended it."""
        activation, around = ended.activation, self._frames.at(ended.outer)[-1].program
        plan = activation.plan
        if activation.ended is not EndReason.SLICES or not isinstance(plan, LoopPlan):
            return ()
        found = []
        for entry, slices in zip(plan.sliced, activation.slices, strict=True):
            layer, _ = producer(around, activation.operation.inputs[entry.input])
            value, walk = slices.source, slices.walk
            kind = element_types.name_of(value.dtype)
            found.append(StorySlices(slot_name(around, layer), kind, value.shape, walk.axis, walk.size, walk.count))
        return tuple(found)

    def _address(self, spot: ValueSpot, target: Target) -> str:
        """Return the address of an element: as short as one can type it where the run stands."""
        full = moment_address(target, self._compiled)
        numbers = iterations_of(spot.seat)
        iterations = numbers[-1] if numbers else None
        index = spot.element or ()
        if target.named is not target.layer:
            full = replace(full, operation=exact_name(target.named.name), port=None)
        short = Address((), full.operation, full.port, iterations, index)
        of_shape = "shape of " if spot.is_shape else ""
        if len(numbers) < 2 and self._is_clear(replace(short, index=()), target.program, target.slot):
            return f"{of_shape}{short}"
        around = [iteration for _, iteration in spot.seat]
        while around and around.pop() is None:  # an If in the innermost loop
            pass
        full = address_in_run(full, target.program, around, iterations)
        return f"{of_shape}{replace(full, index=index)}"

    def _called(self, spot: ValueSpot, layer: Layer, output: int) -> str:
        """Return an element of a layer's output as one may type it: in short where that is clear, else in full."""
        frames, path = self._frames.at(spot.seat), iterations_of(spot.seat)
        program, named = frames[-1].program, output_named(layer, output)
        loops, port, shape = self._loop_names(program), port_text(named), ".shape" if spot.is_shape else ""
        name = slot_name(program, layer)
        text = name_in_iteration(f"{name}{shape}{port}", path, loops)
        if not self._is_clear(name_in_iteration(f"{name}{port}", path, loops), program, spot.slot):
            text = f"{address_at(location_of(frames, self._file, layer, named), self._compiled, self._atlas)}{shape}"
        return f"{text}{element_text(spot.element)}"

    def _loop_names(self, program: Program) -> tuple[str, ...]:
        """Return how addresses call the loops around a program, from the outermost inwards."""
        path = program.path
        loops = ((self._atlas.ancestor(program, depth), layer) for depth, layer in enumerate(path) if layer.is_loop)
        return tuple(str(exact_name(slot_name(outside, layer))) for outside, layer in loops)

    def _is_clear(self, address: str | Address, program: Program, slot: int) -> bool:
        try:
            found = resolve(address_given(address), self._compiled)
        except UsageError:
            return False
        return found.program is program and found.slot == slot

    # --- the whole -----------------------------------------------------------------------------------------------

    def _told(self, address: str, name: str, end: StoryEnd | None) -> Story:
        found = self._walk
        links = found.links
        if not links:  # the first one is always there, unless something else goes first
            raise Paused
        if len({link.place for link in links}) > MOST_ROWS and not self._question.unfolds:
            fold_moves(links)
        kept = {*found.kept, *(seat for link in shown_links(links) for one in link.followed for seat in one.kept)}
        entries = fold_entries(links)
        shown = shown_links(links)
        numbers = {link.number: number for number, link in enumerate(shown)}
        split, inner = _split(shown), _inner_loops(shown)
        deepest = max(shown, key=lambda link: _depth(link.program)).program
        by_row: dict[_RowKey, list[CausalLink]] = {}
        for link in shown:
            by_row.setdefault(_row_key(link, split), []).append(link)
        keys = sorted(by_row, key=lambda key: (key[0], key[1] or ()))
        rows = {link.number: row for row, key in enumerate(keys) for link in by_row[key]}
        column_of = {link.number: _column_key(link, inner, _depth(deepest)) for link in shown}
        columns = sorted(set(column_of.values()), key=lambda one: time_of(*one))
        histories = self._histories(shown, [column.path for column in columns if column.path])
        passed = set(map(iterations_of, kept))
        made = Story(
            address=address,
            name=name,
            loops=tuple(layer_site(layer, self._file) for layer in deepest.path if layer.is_loop),
            rows=tuple(self._rows([by_row[key] for key in keys], histories)),
            columns=tuple(StoryColumn(*one, first=one.path) for one in columns),
            links=tuple(
                self._link(
                    link,
                    rows[link.number],
                    columns.index(column_of[link.number]),
                    {one.part: numbers[one.source.number] for one in link.followed},
                    link.entry or entries.get(link.number),
                )
                for link in shown
            ),
            edges=tuple(
                StoryEdge(
                    source=numbers[one.source.number],
                    target=numbers[link.number],
                    ways=one.ways,
                    share=None if link.making is None else link.making.parts[one.part].share,
                )
                for link in shown
                for one in link.followed
            ),
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

    def _histories(self, shown: list[CausalLink], paths: list[Indices]) -> ElementHistories:
        histories = ElementHistories(self._timeline)
        first = next((link for link in shown if _depth(link.program)), None)
        if first is None:
            return histories
        depth = next(k for k, (_, iteration) in enumerate(first.spot.seat) if iteration is not None)
        frame = self._frames.at(first.spot.seat[: depth + 1])[-1]
        self._entered = frame.active.entered
        if self._question.courses:
            histories.record((link for link in shown if link.spot.element is not None), self._entered, paths)
        return histories

    def _rows(self, rows: list[list[CausalLink]], histories: ElementHistories) -> Iterator[StoryRow]:
        before: CausalLink | None = None
        for links in rows:
            link = links[0]
            is_one = len({one.spot.element for one in links}) == 1 and link.spot.element is not None
            hidden = 0
            if before is not None and before.program is link.program:
                places = link.program.computed_at
                hidden = max(0, places.get(link.spot.slot, -1) - places.get(before.spot.slot, -1) - 1)
            yield StoryRow(
                name=slot_name(link.program, link.layer, is_shape=link.spot.is_shape),
                layer=layer_site(link.layer, self._file),
                output=output_named(link.layer, link.output),
                element=link.spot.element if is_one else None,
                hidden=hidden,
                is_shape=link.spot.is_shape,
                history=histories.of(link) if is_one else (),
            )
            before = link

    # --- a link --------------------------------------------------------------------------------------------------

    def _link(self, link: CausalLink, row: int, column: int, made_by: dict[int, int], entry: Entry | None) -> StoryLink:
        frames, spot, found = self._frames.at(link.spot.seat), link.spot, link.making
        frame, role = frames[-1], LinkRole.BORN if link.kind is LinkKind.BORN else LinkRole.PATH
        value = np.asarray(frame.values[spot.slot])
        made = StoryLink(
            key=link.key,
            address=self._called(spot, link.layer, link.output),
            row=row,
            column=column,
            location=location_of(frames, self._file, link.layer, output_named(link.layer, link.output)),
            type="" if link.kind is LinkKind.FAILED else element_types.name_of(value.dtype),
            shape=value.shape,
            element=spot.element,
            value=None if link.value is None else scalar_of(link.value),
            kind=link.kind,
            role=LinkRole.ASKED if link.number == 0 and role is LinkRole.PATH else role,
            form=LinkForm.WHOLE,
            arithmetic=link.arithmetic,
            formula=link.formula,
            limit=_limit(link, frame),
            share=link.share,
            entry=entry,
            readers=self._readers(link),
            finite_beside=int(np.isfinite(value).sum()) if role is LinkRole.BORN and found is not None else 0,
            tick=link.tick,
            is_shape=spot.is_shape,
        )
        if found is None:
            return made
        operation = operation_of(link.program, spot.slot)
        assert operation is not None, "it has operands"

        def factor_of(factor: Factor) -> StoryFactor:
            return self._walk.factor(link.program, operation.inputs[factor.input], factor)

        operands = tuple(
            StoryOperand(
                input=part.factor.input,
                factor=factor_of(part.factor),
                role=part.role,
                amount=part.amount,
                share=part.share,
                beside=None if part.beside is None else factor_of(part.beside),
                link=made_by.get(k),
            )
            for k, part in enumerate(found.parts)
        )
        made = replace(made, form=found.form, operands=operands, count=found.total)
        terms = found.terms
        if terms is None or not np.isfinite(terms).all():
            return made
        total, everything = float(np.sum(terms)), float(np.abs(terms).sum())
        return replace(
            made,
            rest=total - sum(part.amount or 0 for part in found.parts),
            cancelled=1 - abs(total) / everything if everything else None,
            positive=int((terms > 0).sum()),
            groups=self._groups(link, frame, operation, found),
        )

    def _readers(self, link: CausalLink) -> tuple[str, ...]:
        graph, source = link.program.graph, Source(link.layer.id, link.output)
        uses = ((layer, graph.sources[layer.id][index]) for layer, index in graph.readers[link.layer.id])
        readers = list({layer.id: layer for layer, read in uses if read == source}.values())
        return tuple(slot_name(link.program, layer) for layer in readers[:_MOST_READERS])

    def _groups(
        self, link: CausalLink, frame: Frame, operation: Operation, found: Contributions
    ) -> tuple[OperandGroup, ...]:
        """Return the terms of a sum by the tensor that they come from, where none of them stands out."""
        terms, at = found.terms, found.factor_at
        if terms is None or at is None or not found.weights or found.weights[0] >= _STANDS_OUT:
            return ()
        index = found.parts[0].factor.input
        joined = operation_of(link.program, operation.inputs[index])
        if joined is None or joined.layer.type != "Concat" or len(terms) > _MOST_GROUPED:
            return ()
        sizes = [np.asarray(frame.values[slot]).shape for slot in joined.inputs]
        axis = int(joined.layer.attributes.get("axis", "0"))
        ends = np.cumsum([shape[axis] for shape in sizes])
        factors = (next(one for one in at(k) if one is not None and one.input == index) for k in range(len(terms)))
        places = np.array([0 if one.element is None else one.element[axis] for one in factors])
        which = np.searchsorted(ends, places, side="right")
        total, counts = float(terms.sum()), Counter(which.tolist())
        groups = []
        for number, slot in enumerate(joined.inputs):
            amount = float(terms[which == number].sum())
            layer = producer(link.program, slot)[0]
            name = slot_name(link.program, layer)
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


def _split(shown: list[CausalLink]) -> set[Indices]:
    """Return the operations with several elements in one iteration: each gets a row of its own."""
    counts = Counter((link.place, link.output, iterations_of(link.spot.seat)) for link in shown)
    return {place for (place, _, _), count in counts.items() if count > 1}


def _row_key(link: CausalLink, split: set[Indices]) -> _RowKey:
    key = (*link.place, link.output, int(link.spot.is_shape))
    return key, link.spot.element if link.place in split else None


def _inner_loops(shown: list[CausalLink]) -> dict[Seat, int]:
    """Map the seat of a graph to the index of its first operation whose bodies are shown."""
    found: dict[Seat, int] = {}
    for link in shown:
        for depth, (index, _) in enumerate(link.spot.seat):
            outer = link.spot.seat[:depth]
            found[outer] = min(index, found.get(outer, index))
    return found


def _column_key(link: CausalLink, inner: dict[Seat, int], deepest: int) -> _ColumnKey:
    seat, path = link.spot.seat, iterations_of(link.spot.seat)
    if len(path) == deepest or seat not in inner:
        return _ColumnKey(path, 0)
    return _ColumnKey(path, -1 if link.order[-1] < inner[seat] else 1)


def _depth(program: Program) -> int:
    return sum(layer.is_loop for layer in program.path)


def _key(link: CausalLink) -> Hashable:
    return id(link.program), link.spot.slot, link.spot.element, link.spot.is_shape


def _limit(link: CausalLink, frame: Frame) -> float | None:
    """Return the largest argument of an exponential that overflowed."""
    if link.arithmetic is not Arithmetic.OVERFLOW or link.layer.type != "Exp":
        return None
    dtype = np.asarray(frame.values[link.spot.slot]).dtype
    return float(np.log(limits(dtype).largest))


def shares_by_iteration(story: Story) -> list[tuple[Indices, float]]:
    """Return how much each iteration added to the value that was asked about, the latest first.

    The amounts add up to the value that is shown. The list is empty unless all contributions are terms of sums with
    known exact shares.
    """
    found: dict[Indices, float] = {}
    known: dict[int, bool] = {}
    for link in story.links:
        if link.share is None or not _is_sum(link):
            continue
        if any(one.share is None for one in link.operands):
            return []
        if all(one.link is None for one in link.operands):
            own = link.share  # it is followed no further, and all of it is told of here
        else:
            here = [one for one in link.operands if one.link is None or not _leads_back(story, one.link, known)]
            own = sum(link.share * (one.share or 0.0) for one in here)
        if own:
            path = story.columns[link.column].path
            found[path] = found.get(path, 0.0) + own
    return sorted(found.items(), reverse=True)


def _is_sum(link: StoryLink) -> bool:
    return link.form is LinkForm.SUM and link.share is not None


def _leads_back(story: Story, start: int, known: dict[int, bool]) -> bool:
    """Return True if a link is made, through products and moves alone, of a sum that has a share of its own.

    `known` has what was found of links before.
    """
    way: list[int] = []
    here: int | None = start
    while here is not None and here not in known and not _is_sum(story.links[here]):
        way.append(here)
        link = story.links[here]
        followed = [one.link for one in link.operands if one.link is not None]
        passes = link.form in (LinkForm.PRODUCT, LinkForm.MOVE, LinkForm.CHOICE) and link.share is not None
        here = followed[0] if passes and followed else None
    found = here is not None and known.get(here, True)
    known.update(dict.fromkeys(way, found))
    return found
