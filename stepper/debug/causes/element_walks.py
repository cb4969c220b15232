"""The walks back from one element: a chain, which follows one operand, and a graph, which follows up to three.

A NaN or Inf is followed to where it first appears, through elements that are NaN or infinite alone; a finite element
through the largest of what it is made of, to where it enters the run.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from stepper import element_types
from stepper.debug.causes.cause import (
    Arithmetic,
    Cause,
    Chain,
    Element,
    Link,
    LinkForm,
    LinkKind,
    LinkPart,
    Location,
    NonFinite,
    PartRole,
    Scalar,
)
from stepper.debug.causes.nan_origins import is_non_finite, nan_origin, operands_of, scalar_of
from stepper.debug.causes.run_walk import (
    LEAST_WEIGHT,
    Crossing,
    EarlierFrames,
    ReferenceSlots,
    RunWalk,
    Seat,
    ValueSpot,
    condition_of,
    is_bad,
    iterations_of,
    operation_of,
    producer,
)
from stepper.debug.provenance.dependence_rules import MOST_PARTS
from stepper.debug.provenance.operation_at import (
    Contribution,
    Contributions,
    Factor,
    ValueNotKept,
    ensure_kept,
    inputs_of,
    location_of,
    output_named,
)
from stepper.debug.story.story_facts import Entry, StoryFactor
from stepper.debug.timeline import Timeline
from stepper.element_types import Indices, Shape
from stepper.engine import loops
from stepper.engine.frames import Activation, Frame
from stepper.engine.program import BranchPlan, LoopPlan, Operation, OpKind, Program, Value
from stepper.engine.rules import Rules
from stepper.errors import KernelError
from stepper.ir.model import Layer, layer_site
from stepper.query.short_names import short_names_of

FARTHEST = 20_000
"""Iterations back over which `why` looks."""
FARTHEST_AT_A_STOP = 500
"""Iterations back over which a breakpoint looks for what was in the inputs of its operation."""
_NEAR = 16
"""Operations among which the last one with finite results is looked for."""
_MOST_LINKS = 1000
"""Most links of a chain; links that are left out are not counted."""
_MOST_PARTS = 5
"""Parts of a finite element that are named."""


def chain_of(frames: EarlierFrames, timeline: Timeline, spot: ValueSpot, *, farthest: int = FARTHEST) -> Chain:
    """Return where an element comes from.

    The chain leads a NaN or Inf to its origin, and a finite element to where it enters the run.
    """
    return _ChainWalk(timeline, frames, farthest=farthest).chain(spot)


def birth_of(frames: EarlierFrames, timeline: Timeline, spot: ValueSpot) -> Link | None:
    """Return where a NaN or Inf first appears; None where that is too far, or not kept. Raise Paused."""
    return _ChainWalk(timeline, frames, farthest=FARTHEST_AT_A_STOP).birth(spot)


def chains_of(
    frames: EarlierFrames, timeline: Timeline, spot: ValueSpot, reference: ReferenceSlots | None
) -> tuple[Chain, Chain]:
    """Return the chain of an element, and a second chain behind the origin of a NaN or Inf.

    The second chain follows the largest finite element that led to the first NaN or Inf. With a `reference`, follow the
    elements that differ from it.
    """
    walk = _ChainWalk(timeline, frames, reference)
    chain = walk.chain(spot)
    behind = walk.behind(chain)
    return chain, Chain(()) if behind is None else walk.chain(behind)


def with_origins(timeline: Timeline, causes: list[Cause]) -> tuple[Cause, ...]:
    """Return the causes of a stop, with the way back of what was NaN or infinite in the inputs of an operation."""
    return tuple(_with_origin(timeline, cause) if isinstance(cause, NonFinite) else cause for cause in causes)


def _with_origin(timeline: Timeline, cause: NonFinite) -> NonFinite:
    with closing(EarlierFrames(timeline)) as frames:
        walk, seat = _ChainWalk(timeline, frames, farthest=FARTHEST_AT_A_STOP), frames.present
        frame, site = frames.frame(seat), cause.location.operation
        operation = frame.program.operations[frame.pc - 1] if frame.pc else None
        if operation is None or site is None or operation.layer.id != site.id:
            return cause
        chain = walk.chain(ValueSpot(seat, operation.outputs[cause.location.output or 0], cause.element))
        return replace(cause, chain=chain, last_clean=walk.last_clean(chain))


class _ChainWalk(RunWalk):
    """The way back of one operand. It makes a link of each spot and says which spot is the next."""

    def __init__(
        self,
        timeline: Timeline,
        frames: EarlierFrames,
        reference: ReferenceSlots | None = None,
        farthest: int = FARTHEST,
    ) -> None:
        super().__init__(timeline, frames, reference)
        self._farthest = farthest
        self._finite = False
        self._last: ValueSpot | None = None
        self._decides: Layer | None = None

    def chain(self, spot: ValueSpot) -> Chain:
        """Return all links from a spot to where it begins; from a NaN or Inf those that are finite end it."""
        self._finite = not self._is_bad(spot)
        laps = _Laps()
        stopped = self._ended(lambda: self._walk(spot, laps))
        return Chain(laps.links(), stopped or laps.stopped)

    def birth(self, spot: ValueSpot) -> Link | None:
        """Return where a NaN or Inf first appears, if that is near. Raise Paused."""
        laps = _Laps()
        try:
            self._walk(spot, laps)
        except ValueNotKept:
            return None
        return Chain(laps.links(), laps.stopped).birth

    def _walk(self, spot: ValueSpot, laps: _Laps) -> None:
        following: ValueSpot | None = spot
        decides: Layer | None = None
        edges = 0
        while following is not None and not laps.stopped:
            here = self._last = following
            link, following = self._link(here)
            if decides is not None:
                link = replace(link, decides=layer_site(decides, self._file))
            decides = self._decides
            if not self._goes_on(here):
                following = None
            edges += link.kind is LinkKind.BACK_EDGE
            laps.stopped = self._stopped(edges, laps) if following is not None else ""
            laps.add(here, link, is_last=following is None or bool(laps.stopped))

    def behind(self, chain: Chain) -> ValueSpot | None:
        """Return the spot of the largest finite element behind the NaN or Inf at the end of a chain.

        The chain is the one that was just made.
        """
        birth, last = chain.birth, self._last
        if birth is None or birth.kind is not LinkKind.BORN or last is None or last.element is None:
            return None
        frame = self._frame(last.seat)
        operation = operation_of(frame.program, last.slot)
        return None if operation is None or operation.plans else self._made(last, birth, frame, operation)[1]

    def last_clean(self, chain: Chain) -> Location | None:
        """Return the last operation with finite results before the origin at the end of a chain.

        The chain is the one that was just made.
        """
        birth, kinds = chain.birth, (LinkKind.BORN, LinkKind.EDITED)
        if birth is None or len(chain.links) < 2 or birth.kind not in kinds or self._last is None:
            return None
        frames = self._frames.at(self._last.seat)
        frame, program = frames[-1], frames[-1].program
        before = program.computed_at.get(self._last.slot, 0)
        for operation in reversed(program.operations[max(before - _NEAR, 0) : before]):
            values = [frame.values[slot] for slot in operation.outputs]
            if values and not any(map(is_non_finite, values)):
                return location_of(frames, self._file, operation.layer)
        return None

    def _stopped(self, edges: int, laps: _Laps) -> str:
        """Return why the walk ends before the beginning; empty where it continues. Raise Paused."""
        self._heed_pause()
        if edges >= self._farthest or len(laps) >= _MOST_LINKS:
            return f"looked back over {edges} iterations, and already in the earliest of them"
        return ""

    def _goes_on(self, spot: ValueSpot) -> bool:
        return spot.element is not None and (self._finite or self._is_bad(spot))

    # --- links ---------------------------------------------------------------------------------------------------

    def _link(self, spot: ValueSpot) -> tuple[Link, ValueSpot | None]:
        frames = self._frames.at(spot.seat)
        frame, program = frames[-1], frames[-1].program
        operation = operation_of(program, spot.slot)
        way = self._step(spot, frame, operation)
        layer, output = producer(program, spot.slot)
        value = np.asarray(frame.values[spot.slot])
        link = Link(
            location=location_of(frames, self._file, layer, output_named(layer, output)),
            type=element_types.name_of(value.dtype),
            shape=value.shape,
            element=spot.element,
            value=None if spot.element is None else scalar_of(self.element(spot)),
            kind=LinkKind.BORN if way.becomes else way.kind,
            line=way.line,
            arithmetic=Arithmetic.OVERFLOW if way.becomes else None,
            formula=way.becomes,
            is_shape=spot.is_shape,
            reference=self._in_reference(spot),
        )
        self._decides = layer if way.decides else None
        if way.kind is LinkKind.COMPUTED and operation is not None:
            return self._computed(spot, link, frame, operation)
        if way.kind is LinkKind.CONSTANT:
            return link, self._chosen_by(spot)
        return link, None if way.becomes else way.following

    def _in_reference(self, spot: ValueSpot) -> Scalar | None:
        """Return an element in the reference; None where it has none there."""
        if self._reference is None or spot.element is None or spot.is_shape:
            return None
        found = self._reference.value(spot.seat, spot.slot)
        is_alike = found is not None and found.shape == np.shape(self._value(spot.seat, spot.slot))
        return scalar_of(found[spot.element]) if found is not None and is_alike else None

    def _diverges(self, spot: ValueSpot, frame: Frame, operation: Operation) -> bool:
        """Return True if an element differs from the reference, and nothing of what the operation reads does."""
        if self._reference is None or not self._is_different(spot):
            return False
        computed = [slot for slot in operation.inputs if slot >= 0 and frame.program.template[slot] is None]
        found = [self._reference.differs(spot.seat, slot, np.asarray(frame.values[slot])) for slot in computed]
        return all(one is not None and not one.any() for one in found)

    def _chosen_by(self, spot: ValueSpot) -> ValueSpot | None:
        """Return, of a constant in a branch, the condition for which that branch ran; None where it is the same."""
        found = condition_of(self._frames, spot.seat) if self._finite else None
        if found is None or not self._is_different(found[0]):
            return None
        self._decides = found[1].layer
        return found[0]

    def _computed(
        self, spot: ValueSpot, link: Link, frame: Frame, operation: Operation
    ) -> tuple[Link, ValueSpot | None]:
        ensure_kept(frame, operation)
        if spot.element is None or not self._goes_on(spot):
            return replace(link, operands=operands_of(frame, operation, self._file)), None
        if not self._is_bad(spot):
            return self._made(spot, link, frame, operation)
        origin = nan_origin(frame, operation, operation.outputs.index(spot.slot), spot.element, self._file)
        link = replace(link, operands=origin.operands, arithmetic=origin.arithmetic, formula=origin.formula)
        if origin.follows is None:
            is_state = operation.kind is OpKind.STATEFUL
            return replace(link, kind=LinkKind.STATE if is_state else LinkKind.BORN), None
        following = ValueSpot(spot.seat, operation.inputs[origin.follows], origin.element)
        return replace(link, follows=origin.follows), following

    def _made(self, spot: ValueSpot, link: Link, frame: Frame, operation: Operation) -> tuple[Link, ValueSpot | None]:
        """Return the link of a finite element with its largest parts, and the one of them that is followed."""
        found = self._contributions(spot, frame, operation)
        diverges = self._diverges(spot, frame, operation)
        followed = () if diverges else self._followed(found, spot.seat, operation)
        chosen = next((found.parts[k].factor for k in followed), None)
        shares: list[float | None] = [*found.weights, *[None] * len(found.parts)]
        parts = tuple(
            self._part(part, frame, operation, share)
            for part, share in zip(found.parts[:_MOST_PARTS], shares, strict=False)
        )
        known = sum(part.share for part in parts if part.share is not None)
        link = replace(
            link,
            kind=LinkKind.DIVERGED if diverges else LinkKind.STATE if operation.kind is OpKind.STATEFUL else link.kind,
            operands=() if spot.is_shape else link.operands or operands_of(frame, operation, self._file),
            form=found.form,
            parts=parts,
            count=found.total,
            rest=max(0.0, 1.0 - known) if found.weights and found.total > len(parts) else None,
            follows=None if chosen is None else chosen.input,
        )
        if chosen is None:
            return link, None
        return link, ValueSpot(spot.seat, operation.inputs[chosen.input], chosen.element, chosen.is_shape)

    def _part(self, part: Contribution, frame: Frame, operation: Operation, share: float | None) -> LinkPart:
        factor = part.factor
        layer, output = producer(frame.program, operation.inputs[factor.input])
        value = None if factor.element is None else scalar_of(factor.value)
        site = layer_site(layer, self._file)
        return LinkPart(
            factor.input, site, output, factor.element, value, part.role, part.amount, share, factor.is_shape
        )


class _Laps:
    """The links of a chain, those left out of iterations that only repeat what the one after them says."""

    def __init__(self) -> None:
        self._links: list[Link] = []
        self._lap: list[Link] = []
        self._begun: tuple[int, Element | None, int] | None = None
        self._before: list[tuple[str, int, Element | None]] = []
        self.stopped = ""

    def __len__(self) -> int:
        return len(self._links) + len(self._lap)

    def add(self, spot: ValueSpot, link: Link, *, is_last: bool) -> None:
        """Take the next link; a lap ends with a back edge."""
        self._lap.append(link)
        if link.kind is not LinkKind.BACK_EDGE or is_last:
            return
        said = [(str(one.location.operation), one.line, one.element) for one in self._lap]
        depth = len(spot.seat)
        begun = (spot.slot, spot.element, depth)
        edge = next((one for one in reversed(self._links) if one.kind is LinkKind.BACK_EDGE), None)
        if edge is not None and self._links[-1] is edge and begun == self._begun and self._before[-len(said) :] == said:
            iteration = link.location.iteration or 0
            last = iteration if edge.through is None else edge.through[1]
            self._links[-1] = replace(edge, through=(iteration, last))
        else:
            self._links += self._lap
        self._begun, self._before, self._lap = begun, said, []

    def links(self) -> tuple[Link, ...]:
        """Return all that were not left out."""
        return (*self._links, *self._lap)


MOST_FOLLOWED = 3
"""Operands that are followed of one element."""
ENOUGH = 0.8
"""Part of all magnitudes that the followed terms of a sum make up."""
BEHIND_A_BIRTH = 8
"""Links that are followed behind the origin of a NaN or Inf, through finite elements."""
_MOST_NODES = 20_000


class Followed(Struct, eq=False):
    """Follow a value to the output that made it, or to where the path ends for the reason `kind`.

    `spot` is the place of the output or end. `ways` are the borders on the path to it, `kept` the iterations in which
    it was only passed on. `entry` is the border beyond which the value is not followed. For an operand, `part` is its
    index among the contributions, and `link` the link of the spot.
    """

    spot: ValueSpot
    kind: LinkKind
    ways: tuple[Entry, ...] = ()
    kept: tuple[Seat, ...] = ()
    entry: Entry | None = None
    formula: str = ""
    part: int = 0
    link: CausalLink | None = None

    @property
    def source(self) -> CausalLink:
        """Return the link that made an operand."""
        assert self.link is not None, "it was followed"
        return self.link


class CausalLink(Struct, eq=False):
    """Describe an element on the way back, and its contributions.

    This is the narrow interface of the way back to all else. `place` is the place of the operation in the order of the
    bodies, whatever the iteration; the sides of an If are two. `kind` is COMPUTED, BORN, or the reason for which the
    path goes back no further. `share` is the exact part of what was asked about (None: that has no meaning).
    `is_fixed_move`: the operation only moves elements, always in one way.
    """

    spot: ValueSpot
    program: Program
    layer: Layer
    output: int
    value: Any
    order: Indices
    place: Indices
    kind: LinkKind
    making: Contributions | None = None
    followed: list[Followed] = field(default_factory=list)
    arithmetic: Arithmetic | None = None
    formula: str = ""
    share: float | None = None
    weight: float = 0.0
    entry: Entry | None = None
    is_bad: bool = False
    is_fixed_move: bool = False
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


class GraphWalk(RunWalk):
    """Walk back from a spot for an explanation, over up to three operands of each link."""

    def __init__(self, timeline: Timeline, frames: EarlierFrames, most: int, wider: dict[str, int]) -> None:
        super().__init__(timeline, frames)
        self._most, self._wider = most, wider
        self.links: list[CausalLink] = []
        self.kept: tuple[Seat, ...] = ()
        self.unasked: dict[int, Layer] = {}
        self.stopped = ""
        self._known: dict[ValueSpot, CausalLink] = {}
        self._heap: list[tuple[int, float, Indices, int]] = []
        self._pushed: set[int] = set()

    @property
    def pending(self) -> int:
        """Return how many links are known, but were not looked at."""
        return len(self._heap)

    def slice(self, spot: ValueSpot) -> None:
        """Find the links behind a spot. A pause ends the walk early, and `stopped` says so."""

        def begin() -> None:
            source = self._source(spot, is_root=True)
            self.kept = source.kept
            self._add(source, weight=1.0, share=1.0)

        self._find(begin)

    def slice_failure(self, seat: Seat, index: int, tick: int, lacking: Sequence[InputExtent]) -> None:
        """Find the links behind what an operation of the frame at a seat was given, at which the run failed.

        `lacking` are extents of its inputs: where these are the reason they are followed, and nothing else.
        """
        self._find(lambda: self._begin_at_failure(seat, index, tick, lacking))

    def _find(self, begin: Callable[[], None]) -> None:
        def walk() -> None:
            begin()
            self._walk()

        self.stopped = self._ended(walk) or self.stopped
        self._settle_shares()

    def _begin_at_failure(self, seat: Seat, index: int, tick: int, lacking: Sequence[InputExtent]) -> None:
        frame = self._frame(seat)
        operation = frame.program.operations[index]
        source = Followed(ValueSpot(seat, operation.outputs[0], None), LinkKind.FAILED)
        link = self._new_link(source, frame, 1.0, None, None)
        link.tick = tick
        link.making = failed_making(inputs_of(frame, operation), lacking)
        self.links.append(link)
        told = list(range(len(lacking)))[:MOST_FOLLOWED] or self._told_apart(link.making, operation, frame)
        self._follow(link, operation, told)

    def _told_apart(self, found: Contributions, operation: Operation, frame: Frame) -> list[int]:
        """Return the parts of what an operation was given that are followed: numbers first, and one extent of each.

        Then numbers that are the same in all iterations of the loop, but no constants: one of them may be what does not
        fit, as a shape that a loop around computed.
        """
        moving, template = self._moving_slots(frame.program), frame.program.template
        numbers, others = list[int](), list[int]()
        inputs = dict[int, int]()
        for k, part in enumerate(found.parts):
            slot = operation.inputs[part.factor.input]
            if slot in moving and part.factor.is_shape:
                inputs.setdefault(part.factor.input, k)
            elif slot in moving:
                numbers.append(k)
            elif not part.factor.is_shape and template[slot] is None:
                others.append(k)
        return [*[*numbers, *inputs.values()][:MOST_FOLLOWED], *others[:MOST_FOLLOWED]]

    def _walk(self) -> None:
        finite = behind = 0
        is_fault = self.links[0].is_bad
        while self._heap:
            self._heed_pause()
            phase, _, _, number = self._heap[0]
            if phase and (finite >= self._most or (is_fault and behind >= BEHIND_A_BIRTH * self._most // 40)):
                return
            heapq.heappop(self._heap)
            finite += 1
            behind += phase
            self._expand(self.links[number])
            if len(self.links) >= _MOST_NODES:
                self.stopped = f"{len(self.links):,} links were looked at"
                return

    def _add(self, source: Followed, weight: float, share: float | None) -> CausalLink:
        known = self._known.get(source.spot)
        if known is not None:
            known.weight = max(known.weight, weight)
            known.share = None if share is None or known.share is None else known.share + share
            self._look_later(known)
            return known
        frame, value = self._frame(source.spot.seat), self.element(source.spot)
        link = self._known[source.spot] = self._new_link(source, frame, weight, share, value)
        self.links.append(link)
        if source.kind is LinkKind.BORN:
            link.arithmetic = Arithmetic.OVERFLOW
        if source.kind is LinkKind.COMPUTED:
            self._make(link, frame)
            self._look_later(link)
        return link

    def _look_later(self, link: CausalLink) -> None:
        """Look at a link once, if it matters by now: on a further way to it its weight and share may be larger."""
        if link.kind is not LinkKind.COMPUTED or link.number in self._pushed:
            return
        is_certain = link.is_bad or link.key in self._wider  # what is asked for by name is looked at at any rate
        if is_certain or max(link.weight, abs(link.share or 0.0)) >= LEAST_WEIGHT or link.is_fixed_move:
            self._pushed.add(link.number)
            later = tuple(-place for place in link.order)
            heapq.heappush(self._heap, (int(not is_certain), 0.0 if is_certain else -link.weight, later, link.number))

    def _new_link(self, source: Followed, frame: Frame, weight: float, share: float | None, value: Any) -> CausalLink:
        spot = source.spot
        layer, output = producer(frame.program, spot.slot)
        order = self._order(spot, frame.program)
        return CausalLink(
            spot=spot,
            program=frame.program,
            layer=layer,
            output=output,
            value=value,
            order=order,
            place=(*self._seat_place(spot.seat), order[-1]),
            kind=source.kind,
            share=share,
            weight=weight,
            entry=source.entry,
            is_bad=is_bad(value),
            formula=source.formula,
            number=len(self.links),
        )

    def _seat_place(self, seat: Seat) -> Iterator[int]:
        """Yield of each level which operation has the body, and which of its bodies it is."""
        for (index, _), frame in zip(seat, self._frames.at(seat)[1:], strict=True):
            plan = frame.active.plan
            yield index
            yield next(k for k, one in enumerate(frame.active.operation.plans) if one is plan)

    @staticmethod
    def _order(spot: ValueSpot, program: Program) -> Indices:
        """Return a tuple that is larger for what was computed later."""
        seats = [part for index, iteration in spot.seat for part in (index, iteration or 0)]
        return (*seats, program.computed_at.get(spot.slot, spot.slot - len(program.template) - 1))

    # --- where a value is made -----------------------------------------------------------------------------------

    def _source(self, spot: ValueSpot, *, is_root: bool = False) -> Followed:
        """Follow a value over borders of bodies to the operation that computed it, or to where it enters."""
        ways: list[Entry] = []
        kept: list[Seat] = []
        while True:
            frame = self._frame(spot.seat)
            operation = operation_of(frame.program, spot.slot)
            way = self._step(spot, frame, operation)
            if way.kind is LinkKind.COMPUTED and operation is not None and (ways or not is_root):
                passed = self._passed_on(spot, frame, operation)
                if passed is not None:
                    kept.append(spot.seat)
                    spot = passed
                    continue
            if way.kind is LinkKind.CONSTANT and ways and ways[-1].kind is LinkKind.BRANCH_OUTPUT:
                chosen = self._chosen_by(spot, frame)
                if chosen is not None:
                    spot = chosen
                    continue
            following = way.following
            if following is None:
                return Followed(spot, way.kind, tuple(ways), tuple(kept))
            owner = frame.program.parameter(spot.slot) if operation is None else operation.layer
            is_outside = bool(spot.seat) and not iterations_of(following.seat)
            step = self._entry(way, owner, frame.program, following if is_outside else None)
            into = step.kind in (LinkKind.INITIAL, LinkKind.SLICE, LinkKind.INVARIANT) and is_outside
            if following.element is None or way.becomes or (into and not self._is_bad(spot)):
                kind = LinkKind.BORN if way.becomes else way.kind
                return Followed(spot, kind, tuple(ways), tuple(kept), step, way.becomes)
            ways.append(step)
            spot = following

    def _entry(self, way: Crossing, owner: Layer, program: Program, outside: ValueSpot | None) -> Entry:
        factor = None
        if outside is not None:
            held = Factor(0, outside.element, self.element(outside), outside.is_shape)
            factor = self.factor(self._frame(outside.seat).program, outside.slot, held)
        return Entry(way.kind, slot_name(program, owner), layer_site(owner, self._file), way.line, factor)

    def factor(self, program: Program, slot: int, factor: Factor) -> StoryFactor:
        """Return a factor, which a slot holds, with its names."""
        layer, output = producer(program, slot)
        return StoryFactor(
            slot_name(program, layer, is_shape=factor.is_shape),
            layer_site(layer, self._file),
            output_named(layer, output),
            factor.element,
            None if factor.value is None else scalar_of(factor.value),
            factor.is_shape,
        )

    def _chosen_by(self, spot: ValueSpot, frame: Frame) -> ValueSpot | None:
        """Return the condition for which the branch ran that gives a constant; note what the other side gives."""
        found, ran = condition_of(self._frames, spot.seat), frame.active.plan
        for plan in frame.active.operation.plans:
            if plan is not ran and isinstance(plan, BranchPlan) and isinstance(ran, BranchPlan):
                output = next(index for index, slot in ran.outputs if slot == spot.slot)
                result = next(slot for index, slot in plan.outputs if index == output)
                if plan.program.template[result] is None:
                    layer, _ = producer(plan.program, result)
                    self.unasked[layer.id] = layer
        return None if found is None else found[0]

    def _passed_on(self, spot: ValueSpot, frame: Frame, operation: Operation) -> ValueSpot | None:
        """Return the spot of an element that an operation which writes into a tensor left as it was; None otherwise."""
        is_written = operation.layer.type.startswith(("Scatter", "SliceScatter"))
        if spot.element is None or spot.is_shape or not is_written:
            return None
        found = self._contributions(spot, frame, operation)
        if found.form is not LinkForm.MOVE or not found.parts or found.parts[0].factor.input:
            return None
        return ValueSpot(spot.seat, operation.inputs[0], found.parts[0].factor.element)

    # --- what it is made of --------------------------------------------------------------------------------------

    def _make(self, link: CausalLink, frame: Frame) -> None:
        operation = operation_of(frame.program, link.spot.slot)
        if operation is None or link.spot.element is None:
            return
        found = link.making = self._contributions(link.spot, frame, operation)
        if found.form is LinkForm.MOVE:
            moving = self._moving_slots(frame.program)
            inputs = [operation.inputs[part.factor.input] for part in found.parts if not part.is_value]
            link.is_fixed_move = not any(slot in moving for slot in inputs)

    def _expand(self, link: CausalLink) -> None:
        frame = self._frame(link.spot.seat)
        operation, found = operation_of(frame.program, link.spot.slot), link.making
        if operation is None or found is None:
            return
        parts = self._behind_fault(link, found, frame, operation) if link.is_bad else self._chosen(link, operation)
        if link.key in self._wider and link.making is not None:
            known = enumerate(link.making.parts)
            more = [k for k, part in known if k not in parts and part.factor.element is not None]
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
            source.part, source.link = part, self._add(source, link.weight * weight, share)
            link.followed.append(source)

    def _behind_fault(self, link: CausalLink, found: Contributions, frame: Frame, operation: Operation) -> list[int]:
        """Return the parts that are not finite; for an origin its parts, and set the reason."""
        assert link.spot.element is not None
        parts = found.parts
        bad = [k for k, part in enumerate(parts) if part.is_value and is_bad(part.factor.value)]
        if bad and (not np.isnan(link.value) or any(np.isnan(parts[k].factor.value) for k in bad)):
            return bad[:MOST_FOLLOWED]
        origin = nan_origin(frame, operation, operation.outputs.index(link.spot.slot), link.spot.element, "")
        link.arithmetic, link.formula = origin.arithmetic, origin.formula
        if bad:
            return bad[:MOST_FOLLOWED]
        if origin.follows is not None:  # of an operation that is not known by elements
            element = origin.element
            places = [k for k, part in enumerate(parts) if part.factor.input == origin.follows]
            if element is None or not places:
                return []
            value = np.asarray(frame.values[operation.inputs[origin.follows]])[element]
            factor = parts[places[0]].factor._replace(element=element, value=value)
            turned = parts[places[0]]._replace(factor=factor)
            link.making = found._replace(parts=(*parts[: places[0]], turned, *parts[places[0] + 1 :]))
            return places[:1]
        link.kind = LinkKind.STATE if operation.kind is OpKind.STATEFUL else LinkKind.BORN
        return self._chosen(link, operation)

    def _chosen(self, link: CausalLink, operation: Operation) -> list[int]:
        """Return the parts of a finite element that are followed."""
        found, moving = link.making, self._moving_slots(link.program)
        assert found is not None
        order = [k for k in self._followed(found, link.spot.seat, operation) if found.parts[k].is_value]
        living = [k for k in order if operation.inputs[found.parts[k].factor.input] in moving]
        if found.form is LinkForm.SUM:
            return self._standing_out(found, sorted(order), living)
        if found.form is LinkForm.CHOICE:
            return [k for k in order if found.parts[k].role is PartRole.DECIDES][:MOST_FOLLOWED]
        is_function = found.form in (LinkForm.FUNCTION, LinkForm.BROADCAST)
        if found.form is LinkForm.WHOLE or (is_function and link.weight < 1 and link.spot.seat):
            return []  # inside of a loop a part of a sum is followed to where its share ends
        return (living or order[:1])[: 1 if found.form is LinkForm.PRODUCT else MOST_FOLLOWED]

    @staticmethod
    def _standing_out(found: Contributions, parts: list[int], living: list[int]) -> list[int]:
        """Return the fewest terms that make up most of a sum; where that takes too many, the largest alone."""
        total = 0.0
        for count, k in enumerate(parts[:MOST_FOLLOWED], 1):
            total += found.weights[k] if k < len(found.weights) else 0.0
            if total >= ENOUGH:
                chosen = parts[:count]
                return [one for one in chosen if one in living] or chosen[:1]
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
        for link in self.links:
            for one in link.followed:
                one.source.share = 0.0
        for link in sorted(self.links, key=lambda link: link.order, reverse=True):
            for one in link.followed:
                source = one.source
                _, share = self._share(link, one.part, [each.part for each in link.followed])
                source.share = None if share is None or source.share is None else source.share + share


def slot_name(program: Program, layer: Layer, *, is_shape: bool = False) -> str:
    """Return the name of a value, or of its shape, as lists have it.

    A carried value has a name without its number.
    """
    return f"{short_names_of(program.graph)[layer.id]}{'.shape' if is_shape else ''}"


def fold_moves(links: list[CausalLink]) -> None:
    """Pass over what only moves an element the same way each time, and has one source."""
    for link in links:
        for one in link.followed:
            while (between := one.source).is_fixed_move and between.kind is LinkKind.COMPUTED:
                if len(between.followed) != 1 or between is links[0]:
                    break
                (before,) = between.followed
                one.ways, one.kept = (*one.ways, *before.ways), (*one.kept, *before.kept)
                one.link = before.link


def fold_entries(links: list[CausalLink]) -> dict[int, Entry]:
    """Take out Parameters that bring a value in, in another iteration than their one reader.

    Return the borders by the numbers of these readers.
    """
    shown = shown_links(links)
    readers: dict[int, list[tuple[CausalLink, Followed]]] = {}
    for target in shown:
        for one in target.followed:
            readers.setdefault(one.source.number, []).append((target, one))
    entries = {}
    for link in shown:
        if link.entry is None or link.kind is LinkKind.BORN or len(readers.get(link.number, ())) != 1:
            continue
        ((target, one),) = readers[link.number]
        if iterations_of(target.spot.seat) != iterations_of(link.spot.seat):
            entries[target.number] = link.entry
            target.followed.remove(one)
    return entries


def shown_links(links: list[CausalLink]) -> list[CausalLink]:
    """Return the links that the first one leads to."""
    found, left = {links[0].number}, [links[0]]
    while left:
        new = [one.source for one in left.pop().followed if one.source.number not in found]
        found |= {link.number for link in new}
        left += new
    return [link for link in links if link.number in found]


class InputExtent(NamedTuple):
    """The extent of an operation's input along an axis."""

    input: int
    axis: int


def lacking_slices(activation: Activation) -> tuple[InputExtent, ...]:
    """Return the extents along which the next iteration of a loop finds no slice; none where all have one."""
    plan, iteration = activation.plan, activation.iteration + 1
    if not isinstance(plan, LoopPlan):
        return ()
    taken = zip(plan.sliced, activation.slices, strict=True)
    return tuple(InputExtent(entry.input, one.walk.axis) for entry, one in taken if iteration >= one.walk.count)


def lacking_at_entry(operation: Operation, values: Sequence[Value | None], rules: Rules) -> tuple[InputExtent, ...]:
    """Return the extents for which a loop or If does not begin; none where these are not the reason.

    `values` are those of its inputs.
    """
    plan = operation.plans[0] if operation.plans else None
    if isinstance(plan, BranchPlan):
        return _several(0, values[0])
    if not isinstance(plan, LoopPlan):
        return ()
    counts = []
    for entry in plan.sliced:
        value = values[entry.input]
        if value is None:
            return ()
        count = _slice_count(plan, entry, value, rules)
        if count is None:
            return _cut(entry, value)
        counts.append(count)
    if plan.is_loop:
        controls = [one for one in (plan.trip_count, plan.condition) if one is not None]
        return next((found for one in controls if (found := _several(one, values[one]))), ())
    other = next((k for k, count in enumerate(counts) if count != counts[0]), None)
    both = () if other is None else (plan.sliced[0], plan.sliced[other])
    return tuple(one for entry in both if (value := values[entry.input]) is not None for one in _cut(entry, value))


def unfit_condition(frame: Frame) -> tuple[int, Element] | None:
    """Return the slot of a body's condition that is not one element, and an axis of it for which it is not.

    None where the condition is one element, or has no axis.
    """
    plan = frame.loop
    slot = plan.condition_result if plan else None
    found = () if slot is None else _several(0, frame.values[slot])
    return (slot, (found[0].axis,)) if slot is not None and found else None


def failed_making(values: Sequence[Value], lacking: Sequence[InputExtent]) -> Contributions:
    """Return what an operation that failed was given: elements where they are few whole numbers, else extents.

    The extents that are `lacking` come first. Of inputs of one rank then those in which they differ, for these mostly
    do not fit.
    """
    elements: list[Contribution] = []
    extents: list[Contribution] = []
    for index, value in enumerate(values):
        if value is None:
            continue
        array = np.asarray(value)
        if array.dtype.kind in "biu" and 0 < array.size <= MOST_PARTS:
            elements += [Contribution(Factor(index, at, array[at])) for at in np.ndindex(array.shape)]
        extents += [
            Contribution(Factor(index, (axis,), size, is_shape=True))
            for axis, size in enumerate(array.shape)
            if array.dtype.kind not in "biu" or array.size > MOST_PARTS
        ]
    differ = _differing_axes([np.shape(values[one]) for one in sorted({part.factor.input for part in extents})])
    extents.sort(key=lambda part: part.factor.element is not None and part.factor.element[0] not in differ)
    first = [
        Contribution(Factor(one.input, (one.axis,), np.shape(values[one.input])[one.axis], is_shape=True))
        for one in lacking
    ]
    extents = [part for part in extents if part not in first]
    parts = [*first, *extents[: MOST_PARTS // 2], *elements, *extents[MOST_PARTS // 2 :]]
    return Contributions(LinkForm.WHOLE, tuple(parts[:MOST_PARTS]), len(parts))


def _differing_axes(shapes: Sequence[Shape]) -> set[int]:
    """Return the axes along which shapes of one rank differ; none where the ranks differ."""
    if len({len(shape) for shape in shapes}) != 1:
        return set()
    return {axis for axis, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1}


def _several(index: int, value: Value | None) -> tuple[InputExtent, ...]:
    """Return the extents for which a value that should be a single element is none."""
    if value is None or loops.is_single(value):
        return ()
    shape = np.shape(value)
    axes = [axis for axis, size in enumerate(shape) if size != 1] or range(len(shape))
    return tuple(InputExtent(index, axis) for axis in axes)


def _slice_count(plan: LoopPlan, entry: loops.SlicedInput, value: Value, rules: Rules) -> int | None:
    """Return how many slices an input gives; None where it cannot be cut."""
    try:
        count = loops.slice_walk(entry.slicing, np.shape(value), rules, is_loop=plan.is_loop).count
    except KernelError:
        return None
    return None if not plan.is_loop and not count and rules is Rules.OPENVINO else count


def _cut(entry: loops.SlicedInput, value: Value) -> tuple[InputExtent, ...]:
    """Return the extent of an input along the axis that is cut; all of them where it has no such axis."""
    rank, axis = np.ndim(value), entry.slicing.axis
    axes = [axis % rank] if -rank <= axis < rank else range(rank)
    return tuple(InputExtent(entry.input, one) for one in axes)
