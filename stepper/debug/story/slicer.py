"""The way back of a story: from one element to the elements that it was made of, over borders of bodies, as a graph.

What is not finite is followed first, all of it, back to its birth; then what is finite, the largest part first. The
result is a list of `CausalLink`s, of which nothing else of this module is known outside.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct, field

from stepper import element_types
from stepper.debug.branches.edits import ConstantEdit, ValueEdit
from stepper.debug.causes.cause import Arithmetic, Element, LinkKind
from stepper.debug.causes.crossings import (
    Crossing,
    ValueSpot,
    held,
    into_body,
    operation_of,
    out_of_body,
    producer,
    with_rank_of,
)
from stepper.debug.causes.earlier_frames import EarlierFrames, Seat
from stepper.debug.causes.nan_origins import nan_origin
from stepper.debug.story.failures import InputExtent
from stepper.debug.story.forms import LinkForm, PartRole
from stepper.debug.story.making import MadeOf, Making, failed_making, making, shape_making
from stepper.debug.timeline import Timeline
from stepper.element_types import FLOATING
from stepper.engine.frames import Frame
from stepper.engine.program import BranchPlan, LoopPlan, Operation, OpKind, Program
from stepper.errors import Paused
from stepper.ir.model import Layer

MOST_FOLLOWED: Final = 3
"""Operands that are followed of one element."""
ENOUGH: Final = 0.8
"""Part of all magnitudes that the followed terms of a sum make up."""
LEAST_WEIGHT: Final = 0.05
"""Part of what was asked about below which nothing is followed further."""
BEHIND_A_BIRTH: Final = 8
"""Links that are looked for behind the birth of a NaN or Inf, of what is finite."""
_MOST_NODES: Final = 20_000
_MOST_FRAMES: Final = 256

Order = tuple[int, ...]


class Way(Struct, frozen=True):
    """A border of a body on the way of a value: how, over which layer, and (to outside of all loops) from where."""

    kind: LinkKind
    layer: Layer
    program: Program
    line: int
    outside: ValueSpot | None = None


class Followed(Struct, frozen=True):
    """An operand that is followed: which part of the making, the link that made it, and the way between them.

    `kept` are the iterations in which it was only passed on.
    """

    part: int
    source: ValueSpot
    ways: tuple[Way, ...] = ()
    kept: tuple[Seat, ...] = ()


class CausalLink(Struct, eq=False):
    """An element on the way back, and what it is made of; the narrow interface of the way back to all else.

    `place` is that of the operation in the order of the bodies, whatever the iteration; the sides of an If are two.
    `kind` is COMPUTED, BORN, or the reason for which it goes back no further. `share` is the exact part of what was
    asked about (None: that has no meaning). `is_fixed_move`: the operation only moves elements, always the same way.
    """

    spot: ValueSpot
    program: Program
    layer: Layer
    output: int
    value: Any
    shape: tuple[int, ...]
    order: Order
    place: tuple[int, ...]
    kind: LinkKind = LinkKind.COMPUTED
    making: Making | None = None
    followed: list[Followed] = field(default_factory=list)
    arithmetic: Arithmetic | None = None
    formula: str = ""
    share: float | None = None
    weight: float = 0.0
    entry: Way | None = None
    is_bad: bool = False
    is_fixed_move: bool = False
    finite_beside: int = 0
    unasked: tuple[Layer, ...] = ()
    tick: int = 0
    number: int = 0

    @property
    def key(self) -> str:
        """Return a text that is the same for the same element of the same operation in the same iteration."""
        iterations = ">".join("" if iteration is None else str(iteration) for _, iteration in self.spot.seat)
        of_shape = ".shape" if self.spot.is_shape else ""
        return (
            f"{self.program.name}:{self.layer.id}:{self.output}{of_shape}@{iterations}{list(self.spot.element or ())}"
        )


class CausalSlice(Struct, eq=False):
    """All links found, the one that was asked about first; `pending` are known but not looked at."""

    links: list[CausalLink]
    ways: tuple[Way, ...]
    kept: tuple[Seat, ...]
    pending: int
    stopped: str
    unasked: tuple[Layer, ...] = ()


class _Gone(Exception):
    """A value on the way is not kept by the run."""


class _Source(Struct, eq=False):
    """Where a value is made: the spot of an operation's output, or of what it ends at for the reason `kind`."""

    spot: ValueSpot
    kind: LinkKind
    ways: tuple[Way, ...]
    kept: tuple[Seat, ...]
    entry: Way | None = None
    formula: str = ""


class Slicer:
    """One walk back from a spot, in frames that replays fetch."""

    def __init__(self, timeline: Timeline, frames: EarlierFrames, most: int, wider: dict[str, int]) -> None:
        self._timeline, self._frames, self._most, self._wider = timeline, frames, most, wider
        contents = [edit for made in timeline.edits.values() for edit in made]
        self._edits = [edit for edit in contents if isinstance(edit, ValueEdit | ConstantEdit)]
        self._links: dict[ValueSpot, CausalLink] = {}
        self._ordered: list[CausalLink] = []
        self._heap: list[tuple[int, float, Order, int]] = []
        self._expanded: set[int] = set()
        self._cache: dict[Seat, list[Frame]] = {}
        self._moving: dict[int, frozenset[int]] = {}
        self._unasked: dict[int, Layer] = {}
        self._factors: dict[tuple[int, int], int] = {}

    def slice(self, spot: ValueSpot) -> CausalSlice:
        """Return the links behind a spot. A pause ends the walk early; what was found by then is returned."""
        return self._sliced(lambda: self._begin(spot))

    def slice_failure(self, seat: Seat, index: int, tick: int, lacking: Sequence[InputExtent]) -> CausalSlice:
        """Return the links behind what an operation of the frame at a seat was given, at which the run failed.

        `lacking` are extents of its inputs: where these are the reason they are followed, and nothing else.
        """
        return self._sliced(lambda: self._begin_at_failure(seat, index, tick, lacking))

    def _begin(self, spot: ValueSpot) -> tuple[tuple[Way, ...], tuple[Seat, ...]]:
        source = self._source(spot, is_root=True)
        self._add(source, weight=1.0, share=1.0)
        return source.ways, source.kept

    def _begin_at_failure(
        self, seat: Seat, index: int, tick: int, lacking: Sequence[InputExtent]
    ) -> tuple[tuple[Way, ...], tuple[Seat, ...]]:
        frame = self._frame(seat)
        operation = frame.program.operations[index]
        values = [frame.values[slot] if slot >= 0 else None for slot in operation.inputs]
        spot = ValueSpot(seat, operation.outputs[0], None)
        order = self._order(spot, frame.program)
        link = CausalLink(
            spot=spot,
            program=frame.program,
            layer=operation.layer,
            output=0,
            value=None,
            shape=(),
            order=order,
            place=(*self._seat_place(seat), order[-1]),
            kind=LinkKind.FAILED,
            making=failed_making(values, lacking),
            weight=1.0,
            tick=tick,
        )
        self._ordered.append(link)
        self._expanded.add(link.number)
        told = self._told_apart(link, operation, frame) if not lacking else list(range(len(lacking)))[:MOST_FOLLOWED]
        self._follow(link, operation, told)
        return (), ()

    def _told_apart(self, link: CausalLink, operation: Operation, frame: Frame) -> list[int]:
        """Return the parts of what an operation was given that are followed: numbers first, and one extent of each.

        Then numbers that are the same in all iterations of the loop, but no constants: one of them may be what does not
        fit, as a shape that a loop around computed.
        """
        found, moving, template = link.making, self._moving_slots(frame.program), frame.program.template
        assert found is not None
        living = [k for k, part in enumerate(found.parts) if operation.inputs[part.factor.input] in moving]
        numbers = [k for k in living if not found.parts[k].factor.is_shape]
        inputs = dict[int, int]()
        for k in living:
            if found.parts[k].factor.is_shape:
                inputs.setdefault(found.parts[k].factor.input, k)
        others = [
            k
            for k, part in enumerate(found.parts)
            if k not in living and not part.factor.is_shape and template[operation.inputs[part.factor.input]] is None
        ]
        return [*[*numbers, *inputs.values()][:MOST_FOLLOWED], *others[:MOST_FOLLOWED]]

    def _sliced(self, begin: Callable[[], tuple[tuple[Way, ...], tuple[Seat, ...]]]) -> CausalSlice:
        stopped = ""
        ways: tuple[Way, ...] = ()
        kept: tuple[Seat, ...] = ()
        try:
            ways, kept = begin()
            stopped = self._walk()
        except Paused:
            self._timeline.machine.request_pause(wanted=False)
            stopped = "paused before its beginning was found"
        except _Gone:
            stopped = "what it was computed of was not kept by the run"
        self._settle_shares()
        pending = len({number for *_, number in self._heap if number not in self._expanded})
        return CausalSlice(self._ordered, ways, kept, pending, stopped, tuple(self._unasked.values()))

    def _walk(self) -> str:
        finite = behind = 0
        is_fault = self._ordered[0].is_bad
        while self._heap:
            if self._timeline.machine.pause_requested:
                raise Paused
            phase, _, _, number = self._heap[0]
            if phase and (finite >= self._most or (is_fault and behind >= BEHIND_A_BIRTH * self._most // 40)):
                return ""
            heapq.heappop(self._heap)
            if number in self._expanded:
                continue
            self._expanded.add(number)
            finite += 1
            behind += phase
            self._expand(number)
            if len(self._ordered) >= _MOST_NODES:
                return f"{len(self._ordered):,} links were looked at"
        return ""

    def _add(self, source: _Source, weight: float, share: float | None) -> CausalLink:
        known = self._links.get(source.spot)
        if known is not None:
            known.weight = max(known.weight, weight)
            known.share = None if share is None or known.share is None else known.share + share
            return known
        spot = source.spot
        frame = self._frame(spot.seat)
        layer, output = producer(frame.program, spot.slot)
        array = np.asarray(frame.values[spot.slot])
        value = None if spot.element is None else held(frame, spot)[spot.element]
        is_bad = _is_bad(value)
        order = self._order(spot, frame.program)
        link = CausalLink(
            spot=spot,
            program=frame.program,
            layer=layer,
            output=output,
            value=value,
            shape=tuple(array.shape),
            order=order,
            place=(*self._seat_place(spot.seat), order[-1]),
            kind=source.kind,
            share=share,
            weight=weight,
            entry=source.entry,
            is_bad=is_bad,
            formula=source.formula,
            tick=self._tick(spot, frame),
        )
        number = link.number = len(self._ordered)
        self._links[spot] = link
        self._ordered.append(link)
        if source.kind is LinkKind.BORN:
            link.arithmetic = Arithmetic.OVERFLOW
        if source.kind is LinkKind.COMPUTED:
            self._make(link, frame)
            if (
                is_bad
                or max(weight, abs(share or 0.0)) >= LEAST_WEIGHT
                or link.is_fixed_move
                or link.key in self._wider
            ):
                later = tuple(-place for place in link.order)
                is_certain = is_bad or link.key in self._wider  # what is asked for by name is looked at at any rate
                heapq.heappush(self._heap, (0, 0.0, later, number) if is_certain else (1, -weight, later, number))
        return link

    def _frame(self, seat: Seat) -> Frame:
        if seat not in self._cache:
            while len(self._cache) >= _MOST_FRAMES:
                del self._cache[next(iter(self._cache))]
            self._cache[seat] = self._frames.at(seat)
        return self._cache[seat][-1]

    def _seat_place(self, seat: Seat) -> Iterator[int]:
        """Yield of each level which operation has the body, and which of its bodies it is."""
        self._frame(seat)
        for (index, _), frame in zip(seat, self._cache[seat][1:], strict=True):
            assert frame.activation is not None, "a body has one"
            plan = frame.activation.plan
            yield index
            yield next(k for k, one in enumerate(frame.activation.operation.plans) if one is plan)

    @staticmethod
    def _order(spot: ValueSpot, program: Program) -> Order:
        """Return a tuple that is larger for what was computed later."""
        seats = [part for index, iteration in spot.seat for part in (index, iteration or 0)]
        place = program.computed_at.get(spot.slot)
        if place is None:
            place = spot.slot - len(program.template) - 1
        return (*seats, place)

    def _tick(self, spot: ValueSpot, frame: Frame) -> int:
        """Return the tick at which it was computed, where that is known without a replay."""
        closed = self._frames.closed_at(spot.seat)
        index = frame.program.computed_at.get(spot.slot, -1)
        if closed is None or not frame.program.straight:
            return 0
        return closed - len(frame.program.code) + index

    # --- where a value is made -----------------------------------------------------------------------------------

    def _source(self, spot: ValueSpot, *, is_root: bool = False) -> _Source:
        """Follow a value over borders of bodies to the operation that computed it, or to where it enters."""
        ways: list[Way] = []
        kept: list[Seat] = []
        while True:
            frame = self._frame(spot.seat)
            operation = operation_of(frame.program, spot.slot)
            kind = self._made_here(spot, frame, operation)
            if kind is LinkKind.COMPUTED and operation is not None and (ways or not is_root):
                passed = self._passed_on(spot, frame, operation)
                if passed is not None:
                    kept.append(spot.seat)
                    spot = passed
                    continue
            if kind is not None:
                return _Source(spot, kind, tuple(ways), tuple(kept))
            way, step = self._step(spot, frame, operation)
            if step is None or way.following is None:
                return _Source(spot, way.kind, tuple(ways), tuple(kept))
            end = self._ends_here(spot, way.following, step)
            if end is not None:
                formula = self._overflow(spot, way.following) if end is LinkKind.BORN else ""
                return _Source(spot, end, tuple(ways), tuple(kept), step, formula)
            ways.append(step)
            spot = way.following

    def _made_here(self, spot: ValueSpot, frame: Frame, operation: Operation | None) -> LinkKind | None:
        """Return how a value came to be in its own graph; None where it came over a border."""
        program, value = frame.program, frame.values[spot.slot]
        if value is None:
            raise _Gone
        if any(one.program is program and one.slot == spot.slot and one.value is value for one in self._edits):
            return LinkKind.EDITED
        if operation is not None:
            if operation.plans:
                return None
            return LinkKind.COMPUTED if spot.slot in program.computed_at else LinkKind.CONSTANT
        if spot.slot not in program.parameters:
            return LinkKind.CONSTANT
        return LinkKind.GIVEN if frame.activation is None else None

    def _step(self, spot: ValueSpot, frame: Frame, operation: Operation | None) -> tuple[Crossing, Way | None]:
        """Return the border that a value came over, with where it was before."""
        if operation is not None:
            way, owner = self._out(spot, operation, frame), operation.layer
        else:
            way, owner = into_body(frame, spot), frame.program.parameter(spot.slot)
        if way.following is None:
            return way, None
        following = self._fitted(way.following)
        is_outside = not any(iteration is not None for _, iteration in following.seat) and bool(spot.seat)
        step = Way(way.kind, owner, frame.program, way.line, following if is_outside else None)
        return way._replace(following=following), step

    def _ends_here(self, spot: ValueSpot, following: ValueSpot, step: Way) -> LinkKind | None:
        """Return why a value is followed no further: what is finite not to outside of all loops."""
        is_bad = self._is_bad(spot)
        if following.element is None:
            return step.kind
        if is_bad and not self._is_bad(following):
            return LinkKind.BORN
        into = step.kind in (LinkKind.INITIAL, LinkKind.SLICE, LinkKind.INVARIANT)
        return step.kind if into and step.outside is not None and not is_bad else None

    def _overflow(self, spot: ValueSpot, following: ValueSpot) -> str:
        dtype = np.asarray(self._frame(spot.seat).values[spot.slot]).dtype
        return f"{float(self._value(following)):.4g} becomes {element_types.name_of(dtype)}"

    def _out(self, spot: ValueSpot, operation: Operation, frame: Frame) -> Crossing:
        """Return the way out of a loop or If; of a branch that gives a constant, the condition that chose it."""
        way = out_of_body(self._frames, spot, operation)
        following = way.following
        if way.kind is not LinkKind.BRANCH_OUTPUT or following is None:
            return way
        inner = self._frames.at(following.seat)[-1].program
        if inner.template[following.slot] is None:
            return way
        for plan in operation.plans:
            if plan.program is not inner and isinstance(plan, BranchPlan):
                output = operation.outputs.index(spot.slot)
                result = next(slot for index, slot in plan.outputs if index == output)
                if plan.program.template[result] is None:
                    layer, _ = producer(plan.program, result)
                    self._unasked[layer.id] = layer
        condition = operation.inputs[0]
        shape = np.asarray(frame.values[condition]).shape
        return way._replace(following=ValueSpot(spot.seat, condition, (0,) * len(shape)))

    def _passed_on(self, spot: ValueSpot, frame: Frame, operation: Operation) -> ValueSpot | None:
        """Return the spot of an element that an operation which writes into a tensor left as it was; None otherwise."""
        kind = operation.layer.type
        if spot.element is None or spot.is_shape or not kind.startswith(("Scatter", "SliceScatter")):
            return None
        found = self._making_of(spot, frame, operation)
        if found.form is not LinkForm.MOVE or not found.parts or found.parts[0].factor.input:
            return None
        return ValueSpot(spot.seat, operation.inputs[0], found.parts[0].factor.element)

    def _fitted(self, spot: ValueSpot) -> ValueSpot:
        frame = self._frame(spot.seat)
        if frame.values[spot.slot] is None:
            raise _Gone
        return with_rank_of(held(frame, spot), spot)

    def _value(self, spot: ValueSpot) -> Any:
        frame = self._frame(spot.seat)
        is_there = frame.values[spot.slot] is not None and spot.element is not None
        return held(frame, spot)[spot.element] if is_there else None

    def _is_bad(self, spot: ValueSpot) -> bool:
        return _is_bad(self._value(spot))

    # --- what it is made of --------------------------------------------------------------------------------------

    def _making_of(self, spot: ValueSpot, frame: Frame, operation: Operation) -> Making:
        assert spot.element is not None
        values = [frame.values[slot] if slot >= 0 else None for slot in operation.inputs]
        if any(slot >= 0 and value is None for slot, value in zip(operation.inputs, values, strict=True)):
            raise _Gone
        results = [frame.values[slot] for slot in operation.outputs]
        output = operation.outputs.index(spot.slot)
        return (shape_making if spot.is_shape else making)(operation, values, results, output, spot.element)

    def _make(self, link: CausalLink, frame: Frame) -> None:
        operation = operation_of(frame.program, link.spot.slot)
        if operation is None or link.spot.element is None:
            return
        found = link.making = self._making_of(link.spot, frame, operation)
        if found.form is LinkForm.MOVE:
            moving = self._moving_slots(frame.program)
            inputs = [operation.inputs[part.factor.input] for part in found.parts if not part.is_value]
            link.is_fixed_move = not any(slot in moving for slot in inputs)

    def _expand(self, number: int) -> None:
        link = self._ordered[number]
        frame = self._frame(link.spot.seat)
        operation = operation_of(frame.program, link.spot.slot)
        if operation is None or link.making is None:
            return
        parts = self._behind_fault(link, frame, operation) if link.is_bad else self._chosen(link, frame, operation)
        if link.key in self._wider:
            more = [
                k for k in range(len(link.making.parts)) if k not in parts and self._can_follow(link.making.parts[k])
            ]
            count = self._wider[link.key]
            parts = [*parts, *more[:count]] if count >= 0 else parts[: max(0, len(parts) + count)]
        self._follow(link, operation, parts)

    def _follow(self, link: CausalLink, operation: Operation, parts: list[int]) -> None:
        """Go back to where some parts of a link were made."""
        assert link.making is not None
        shares = [self._share(link, part, parts) for part in parts]
        for part, (weight, share) in zip(parts, shares, strict=True):
            factor = link.making.parts[part].factor
            spot = ValueSpot(link.spot.seat, operation.inputs[factor.input], factor.element, factor.is_shape)
            source = self._source(spot)
            if source.kind is LinkKind.CONSTANT and not link.is_bad:
                continue  # there is nothing behind it
            self._add(source, link.weight * weight, share)
            link.followed.append(Followed(part, source.spot, source.ways, source.kept))

    @staticmethod
    def _can_follow(part: MadeOf) -> bool:
        return part.factor.element is not None

    def _behind_fault(self, link: CausalLink, frame: Frame, operation: Operation) -> list[int]:
        """Return the parts that are not finite; of a birth the parts that made it, with the reason."""
        found = link.making
        assert found is not None and link.spot.element is not None
        array = np.asarray(frame.values[link.spot.slot])
        output = operation.outputs.index(link.spot.slot)
        bad = [k for k, part in enumerate(found.parts) if part.is_value and _is_bad(part.factor.value)]
        if found.form is LinkForm.SUM:
            bad, found = self._bad_terms(link)
        if bad and (not np.isnan(link.value) or any(np.isnan(found.parts[k].factor.value) for k in bad)):
            return bad[:MOST_FOLLOWED]
        origin = nan_origin(frame, operation, output, link.spot.element, "")
        link.arithmetic, link.formula = origin.arithmetic, origin.formula
        if bad:
            return bad[:MOST_FOLLOWED]
        if origin.follows is not None:  # of an operation that is not known by elements
            element = next(one.element for one in origin.operands if one.input == origin.follows)
            return self._with_element(link, frame, operation, origin.follows, element)
        link.kind = LinkKind.STATE if operation.kind is OpKind.STATEFUL else LinkKind.BORN
        link.finite_beside = int(np.isfinite(array).sum())
        return self._chosen(link, frame, operation)

    def _bad_terms(self, link: CausalLink) -> tuple[list[int], Making]:
        """Return the terms that are not finite; where the other factor of one is to blame, it becomes the first."""
        found = link.making
        assert found is not None
        parts = list(found.parts)
        for k, part in enumerate(parts):
            if part.beside is not None and _is_bad(part.beside.value) and not _is_bad(part.factor.value):
                parts[k] = part._replace(factor=part.beside, beside=part.factor)
        link.making = found = found._replace(parts=tuple(parts))
        return [k for k, part in enumerate(parts) if _is_bad(part.factor.value)], found

    def _with_element(
        self, link: CausalLink, frame: Frame, operation: Operation, index: int, element: Element | None
    ) -> list[int]:
        """Put an element in the place of the whole tensor of an input."""
        found = link.making
        assert found is not None
        value = np.asarray(frame.values[operation.inputs[index]])
        parts = list(found.parts)
        for k, part in enumerate(parts):
            if part.factor.input == index and element is not None:
                parts[k] = part._replace(factor=part.factor._replace(element=element, value=value[element]))
                link.making = found._replace(parts=tuple(parts))
                return [k]
        return []

    def _chosen(self, link: CausalLink, frame: Frame, operation: Operation) -> list[int]:
        """Return the parts of a finite element that are followed."""
        found = link.making
        assert found is not None
        moving = self._moving_slots(frame.program)

        def moves(part: MadeOf) -> bool:
            return operation.inputs[part.factor.input] in moving

        parts = [k for k, part in enumerate(found.parts) if part.is_value and self._can_follow(part)]
        if found.form is LinkForm.SUM:
            return self._standing_out(link, [self._turned(link, k, moves) for k in parts], moves)
        if found.form is LinkForm.PRODUCT:
            decisive = [k for k in parts if found.parts[k].role is PartRole.DECIDES]
            living = [k for k in decisive or parts if moves(found.parts[k])]
            states = self._states(frame.program)
            kept = [k for k in living if operation.inputs[found.parts[k].factor.input] in states]
            same = self._factors.get((id(frame.program), link.spot.slot))
            usual = [k for k in decisive or parts if found.parts[k].factor.input == same]
            chosen = (kept or usual or living or decisive or parts)[:1]
            self._factors.update({(id(frame.program), link.spot.slot): found.parts[k].factor.input for k in chosen})
            return chosen
        if found.form is LinkForm.CHOICE:
            return [k for k in parts if found.parts[k].role is PartRole.DECIDES][:MOST_FOLLOWED]
        is_function = found.form in (LinkForm.FUNCTION, LinkForm.BROADCAST)
        if found.form is LinkForm.WHOLE or (is_function and link.weight < 1):
            return []  # a part of a sum is followed to where its share ends
        living = [k for k in parts if moves(found.parts[k])]
        return (living or parts[:1])[:MOST_FOLLOWED]

    def _turned(self, link: CausalLink, k: int, moves: Any) -> int:
        """Make the factor of a term that changes the one that is followed."""
        found = link.making
        assert found is not None
        part = found.parts[k]
        if part.beside is not None and not moves(part) and moves(part._replace(factor=part.beside)):
            parts = list(found.parts)
            parts[k] = part._replace(factor=part.beside, beside=part.factor)
            link.making = found._replace(parts=tuple(parts))
        return k

    def _standing_out(self, link: CausalLink, parts: list[int], moves: Any) -> list[int]:
        """Return the fewest terms that make up most of a sum; where that takes too many, the largest alone."""
        found = link.making
        assert found is not None
        total = 0.0
        for count, k in enumerate(parts[:MOST_FOLLOWED], 1):
            total += found.weights[k] if k < len(found.weights) else 0.0
            if total >= ENOUGH:
                chosen = parts[:count]
                living = [one for one in chosen if moves(found.parts[one])]
                return living or chosen[:1]
        return parts[:1]

    @staticmethod
    def _share(link: CausalLink, k: int, followed: Sequence[int]) -> tuple[float, float | None]:
        """Return the weight of a part, and its exact share of what was asked about; `followed` are all such parts."""
        found = link.making
        assert found is not None
        part = found.parts[k]
        if part.role is PartRole.TERM:
            share = None if link.share is None or part.share is None else link.share * part.share
            return (found.weights[k] if k < len(found.weights) else 1.0), share
        is_alone = part.is_value and sum(found.parts[one].is_value for one in followed) == 1
        is_whole = is_alone and found.form in (LinkForm.MOVE, LinkForm.CHOICE, LinkForm.PRODUCT)
        return 1.0, link.share if is_whole else None

    def _settle_shares(self) -> None:
        """Add up the shares of all links over all ways, each before what it is made of.

        What the walk has added up lacks the ways that were found after a link had been followed.
        """
        for spot in {one.source for link in self._ordered for one in link.followed}:
            self._links[spot].share = 0.0
        for link in sorted(self._ordered, key=lambda link: link.order, reverse=True):
            for one in link.followed:
                source = self._links[one.source]
                _, share = self._share(link, one.part, [each.part for each in link.followed])
                source.share = None if share is None or source.share is None else source.share + share

    def _moving_slots(self, program: Program) -> frozenset[int]:
        """Return the slots whose values differ by iteration, or by run: all but constants and what never changes."""
        known = self._moving.get(id(program))
        if known is None:
            known = self._moving[id(program)] = frozenset(_moving(program, self._plan_of(program)))
        return known

    def _states(self, program: Program) -> frozenset[int]:
        """Return the Parameters into which back edges carry a value: of a gate times a state the state is followed."""
        plan = self._plan_of(program)
        return frozenset(parameter for parameter, _ in plan.carried) if isinstance(plan, LoopPlan) else frozenset()

    def _plan_of(self, program: Program) -> LoopPlan | BranchPlan | None:
        for frames in self._cache.values():
            frame = frames[-1]
            if frame.program is program:
                return None if frame.activation is None else frame.activation.plan
        return None


def _moving(program: Program, plan: LoopPlan | BranchPlan | None) -> Iterator[int]:
    fixed = {one.parameter for one in plan.invariant} if isinstance(plan, LoopPlan) else set()
    found = {slot for slot in program.parameters if slot not in fixed}
    yield from found
    for operation in program.operations:
        if any(slot in found for slot in operation.inputs) or operation.kind is OpKind.STATEFUL:
            found |= set(operation.outputs)
            yield from operation.outputs


def _is_bad(value: Any) -> bool:
    return value is not None and np.asarray(value).dtype in FLOATING and not bool(np.isfinite(value))
