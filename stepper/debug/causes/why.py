"""The way back of one element, link by link, over operations, back edges and port maps.

A NaN or Inf is followed to its birth, through elements that are NaN or infinite alone; a finite element through the
largest of what it is made of, to where it enters the run. Earlier iterations, and loops that were left, are looked at
in replays beside the run, which stays where it is.
"""

from __future__ import annotations

from contextlib import closing
from typing import Final

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.debug.causes.cause import (
    Arithmetic,
    Cause,
    Chain,
    Element,
    Link,
    LinkKind,
    LinkPart,
    Location,
    NonFinite,
)
from stepper.debug.causes.crossings import (
    ValueSpot,
    condition_of,
    operation_of,
    producer,
)
from stepper.debug.causes.earlier_frames import EarlierFrames
from stepper.debug.causes.locations import location_of, output_named
from stepper.debug.causes.nan_origins import first_element, is_non_finite, nan_origin, operands_of, scalar_of
from stepper.debug.causes.run_walk import Differs, RunWalk
from stepper.debug.provenance.operation_at import Contribution, inputs_of
from stepper.debug.timeline import Timeline
from stepper.element_types import FLOATING, Array
from stepper.engine.frames import Frame
from stepper.engine.program import Operation, OpKind
from stepper.errors import UsageError
from stepper.ir.model import Layer, layer_site
from stepper.ops.operands import shape_text
from stepper.query.address_syntax import Address, numpy_index

FARTHEST: Final = 20_000
"""Iterations back over which `why` looks."""
FARTHEST_AT_A_STOP: Final = 500
"""Iterations back over which a breakpoint looks for what was in the inputs of its operation."""
_NEAR: Final = 16
"""Operations among which the last one with finite results is looked for."""
_MOST_LINKS: Final = 1000
"""Of a chain, those left out not counted."""
_MOST_PARTS: Final = 5
"""Parts of a finite element that are named."""


def chain_of(
    frames: EarlierFrames,
    timeline: Timeline,
    spot: ValueSpot,
    differs: Differs | None = None,
    *,
    farthest: int = FARTHEST,
) -> Chain:
    """Return where an element comes from: a NaN or Inf to its birth, a finite one to where it enters the run.

    `differs` says where a value differs from a reference: then what differs is followed.
    """
    return _ChainWalk(timeline, frames, differs, farthest).chain(spot, is_finite_followed=True)


def chain_behind(frames: EarlierFrames, timeline: Timeline, spot: ValueSpot, differs: Differs | None = None) -> Chain:
    """Return where the largest of the finite elements comes from of which a NaN or Inf was born; empty for none."""
    walk = _ChainWalk(timeline, frames, differs)
    following = walk.chain_with_end(spot)
    return Chain(()) if following is None else walk.chain(following, is_finite_followed=True)


def with_origins(timeline: Timeline, causes: list[Cause]) -> tuple[Cause, ...]:
    """Return the causes of a stop, with the way back of what was NaN or infinite in the inputs of an operation."""
    return tuple(_with_origin(timeline, cause) if isinstance(cause, NonFinite) else cause for cause in causes)


def _with_origin(timeline: Timeline, cause: NonFinite) -> NonFinite:
    with closing(EarlierFrames(timeline)) as frames:
        walk, seat = _ChainWalk(timeline, frames, farthest=FARTHEST_AT_A_STOP), frames.present
        frame, site = frames.at(seat)[-1], cause.location.operation
        operation = frame.program.operations[frame.pc - 1] if frame.pc else None
        if operation is None or site is None or operation.layer.id != site.id:
            return cause
        chain = walk.chain(ValueSpot(seat, operation.outputs[cause.location.output or 0], cause.element))
        return replace(cause, chain=chain, last_clean=walk.last_clean(chain))


def element_asked(value: Array, address: Address, told: str = "") -> Element | None:
    """Return the element that an address names; without one the first that is NaN, else infinite; None for none.

    `told` is what a message calls it.
    """
    if address.index:
        index = numpy_index(address.index)
        try:
            chosen = np.arange(value.size).reshape(value.shape)[index]
        except IndexError:
            problem = f"there is no such element in the shape {shape_text(value.shape)}"
            raise UsageError(f"'{told or address}': {problem}") from None
        among = np.zeros(value.size, bool)
        among[chosen] = True
        if np.size(chosen) == 1:
            return first_element(among.reshape(value.shape))
    else:
        among = np.ones(value.size, bool)
    if value.dtype not in FLOATING:
        return None
    for test in (np.isnan, np.isinf):
        bad = test(value) & among.reshape(value.shape)
        if bad.any():
            return first_element(bad)
    return None


class NoValueYet(UsageError):
    """A value that is not computed at this moment."""


class _ChainWalk(RunWalk):
    """The way back of one operand. It makes a link of each spot and says which spot is the next."""

    def __init__(
        self,
        timeline: Timeline,
        frames: EarlierFrames,
        differs: Differs | None = None,
        farthest: int = FARTHEST,
    ) -> None:
        super().__init__(timeline, frames, differs)
        self._farthest = farthest
        self._finite = False
        self._last: ValueSpot | None = None
        self._decides: Layer | None = None

    def chain(self, spot: ValueSpot, *, is_finite_followed: bool = False) -> Chain:
        """Return all links from a spot to where it begins; what is finite is followed where that is asked for."""
        self._finite = is_finite_followed and not self._is_bad(spot)
        laps = _Laps()
        stopped = self._ended(lambda: self._walk(spot, laps))
        return Chain(laps.links(), stopped or laps.stopped)

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

    def chain_with_end(self, spot: ValueSpot) -> ValueSpot | None:
        """Return the spot of the largest finite element of which the NaN or Inf at the end of the chain was born."""
        birth, last = self.chain(spot).birth, self._last
        if birth is None or birth.kind is not LinkKind.BORN or last is None or last.element is None:
            return None
        frame = self._frame(last.seat)
        operation = operation_of(frame.program, last.slot)
        return None if operation is None or operation.plans else self._made(last, birth, frame, operation)[1]

    def last_clean(self, chain: Chain) -> Location | None:
        """Return the operation that gave finite numbers last before the birth at the end of a chain just made."""
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
        """Return why the walk ends before the beginning; empty where it goes on."""
        machine = self._timeline.machine
        if machine.pause_requested:
            machine.request_pause(wanted=False)
            return f"paused, having looked back over {edges} iterations"
        if edges >= self._farthest or len(laps) >= _MOST_LINKS:
            return f"looked back over {edges} iterations, in the earliest of which it was so already"
        return ""

    def _goes_on(self, spot: ValueSpot) -> bool:
        return spot.element is not None and (self._finite or self._is_bad(spot))

    # --- links ---------------------------------------------------------------------------------------------------

    def _link(self, spot: ValueSpot) -> tuple[Link, ValueSpot | None]:
        frames = self._frames.at(spot.seat)
        frame, program = frames[-1], frames[-1].program
        operation = operation_of(program, spot.slot)
        kind, self._decides = self._made_here(frame, spot.slot, operation), None
        layer, output = producer(program, spot.slot)
        value = np.asarray(frame.values[spot.slot])
        link = Link(
            location=location_of(frames, self._file, layer, output_named(layer, output)),
            type=element_types.name_of(value.dtype),
            shape=value.shape,
            element=spot.element,
            value=None if spot.element is None else scalar_of(self.element(spot)),
            kind=kind or LinkKind.CONSTANT,
            is_shape=spot.is_shape,
        )
        if kind is LinkKind.COMPUTED and operation is not None:
            return self._computed(spot, link, frame, operation)
        if kind is not None:
            return link, self._chosen_by(spot) if kind is LinkKind.CONSTANT else None
        way = self._crossing(spot, frame, operation)
        link, following = replace(link, kind=way.kind, line=way.line), way.following
        self._decides = operation.layer if operation is not None and way.decides else None
        becomes = "" if following is None else self._becomes(spot, following)
        if becomes:
            return replace(link, kind=LinkKind.BORN, arithmetic=Arithmetic.OVERFLOW, formula=becomes), None
        return link, following

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
        inputs_of(frame, operation)
        if spot.element is None or not self._goes_on(spot):
            return replace(link, kind=LinkKind.COMPUTED, operands=operands_of(frame, operation, self._file)), None
        if not self._is_bad(spot):
            return self._made(spot, link, frame, operation)
        origin = nan_origin(frame, operation, operation.outputs.index(spot.slot), spot.element, self._file)
        link = replace(link, operands=origin.operands, arithmetic=origin.arithmetic, formula=origin.formula)
        if origin.follows is None:
            step = LinkKind.STATE if operation.kind is OpKind.STATEFUL else LinkKind.BORN
            return replace(link, kind=step), None
        element = next(one.element for one in origin.operands if one.input == origin.follows)
        following = ValueSpot(spot.seat, operation.inputs[origin.follows], element)
        return replace(link, kind=LinkKind.COMPUTED, follows=origin.follows), following

    def _made(self, spot: ValueSpot, link: Link, frame: Frame, operation: Operation) -> tuple[Link, ValueSpot | None]:
        """Return the link of a finite element with its largest parts, and the one of them that is followed."""
        found = self._contributions(spot, frame, operation)
        chosen = next((found.parts[k].factor for k in self._followed(found, spot.seat, operation)), None)
        shares: list[float | None] = [*found.weights, *[None] * len(found.parts)]
        parts = tuple(
            self._part(part, frame, operation, share)
            for part, share in zip(found.parts[:_MOST_PARTS], shares, strict=False)
        )
        known = sum(part.share for part in parts if part.share is not None)
        is_state = operation.kind is OpKind.STATEFUL
        link = replace(
            link,
            kind=link.kind if link.kind is LinkKind.BORN else LinkKind.STATE if is_state else LinkKind.COMPUTED,
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
