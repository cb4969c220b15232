"""The last calls of each stream of calls, in order: what a case of many calls is made of.

A stream is what goes through one infer request; of a queue of requests without variables, all that goes through it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.cases.hooks import ObservedCall
from stepper.element_types import Array, have_same_bits

_MOST_STREAMS: Final = 256


class HeardCall(Struct):
    """A call, and copies of its outputs by name once it has ended well; `is_over`: it has ended in any way."""

    call: ObservedCall
    outputs: Mapping[str, Array] | None = None
    is_over: bool = False


class CallWindow(NamedTuple):
    """Calls in order that can be repeated one behind the other; `cut` says why there are no more, if there could be."""

    calls: list[HeardCall]
    cut: str


class CallRing:
    """Keeps so many of the last calls of each stream; who uses it from several threads locks it."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._streams: OrderedDict[int, deque[HeardCall]] = OrderedDict()

    def begun(self, call: ObservedCall) -> None:
        """Add a call, with its inputs; the oldest one of its stream goes where there are too many."""
        self._streams.setdefault(call.stream, deque(maxlen=self._length)).append(HeardCall(call))
        self._streams.move_to_end(call.stream)
        if len(self._streams) > _MOST_STREAMS:
            self._streams.popitem(last=False)

    def gone(self, stream: int) -> None:
        """Let the calls of a stream go."""
        self._streams.pop(stream, None)

    def ended(self, call: ObservedCall, outputs: Mapping[str, Array] | None) -> None:
        """Add what came out of a call, if it is still there; None of one that failed."""
        for heard in reversed(self._streams.get(call.stream, ())):
            if heard.call is call:
                heard.is_over = True
                heard.outputs = None if outputs is None else {name: np.array(one) for name, one in outputs.items()}

    def up_to(self, call: ObservedCall) -> CallWindow:
        """Return the calls of a stream up to this one, as far back as one follows from the other.

        They begin behind the last time that the application reset or set a variable, behind a call that failed, and
        behind one whose inputs cannot be joined with those of the later ones. It alone where it has gone.
        """
        heard = list(self._streams.get(call.stream, ()))
        places = [place for place, one in enumerate(heard) if one.call is call]
        if not places:
            return CallWindow([HeardCall(call)], "")
        found, earlier = [heard[places[0]]], heard[: places[0]]
        while earlier:
            cut = _cut_between(earlier[-1], found)
            if cut:
                return CallWindow(found, cut)
            found.insert(0, earlier.pop())
        return CallWindow(found, "")


def _cut_between(one: HeardCall, later: Sequence[HeardCall]) -> str:
    """Return why a call does not go with those behind it; empty where it does."""
    number = later[0].call.number
    if one.is_over and one.outputs is None:
        return f"call {one.call.number} before call {number} failed"
    if not later[0].call.follows:
        return f"the application reset or set a variable before call {number}"
    calls = [one, *later]
    if len({tuple((name, value.dtype) for name, value in each.call.inputs.items()) for each in calls}) > 1:
        return f"call {one.call.number} has inputs of another type than call {number}"
    for name in one.call.inputs:
        shapes = {each.call.inputs[name].shape for each in calls}
        sizes = list(zip(*shapes, strict=True)) if len({len(shape) for shape in shapes}) == 1 else None
        if sizes is None or sum(len(set(along)) > 1 for along in sizes) > 1:
            return f"input '{name}' of call {one.call.number} differs in more than one axis from later ones"
    return ""


def carried_names(calls: Sequence[HeardCall]) -> tuple[tuple[str, str], ...]:
    """Return the outputs that the application gave back as inputs of the next call, each time, with those inputs.

    Inputs that never change are none of them.
    """
    found = []
    for name, first in calls[0].call.inputs.items() if len(calls) > 1 else ():
        if all(have_same_bits(one.call.inputs[name], first) for one in calls):
            continue
        given = [one.call.inputs[name] for one in calls[1:]]
        for output in calls[0].outputs or ():
            made = [None if one.outputs is None else one.outputs[output] for one in calls[:-1]]
            if all(one is not None and have_same_bits(one, other) for one, other in zip(made, given, strict=True)):
                found.append((output, name))
                break
    return tuple(found)


def outputs_of_all(calls: Sequence[HeardCall], carried: Sequence[tuple[str, str]]) -> list[Array]:
    """Return the outputs as the loop over the calls gives them; none where a call did not end well.

    Of all calls, joined along the first axis; of the last call where they are carried or cannot be joined.
    """
    outputs = [one.outputs for one in calls]
    if any(one is None for one in outputs):
        return []
    only_last = {output for output, _input in carried}
    return [_joined([one[name] for one in outputs if one], only_last=name in only_last) for name in outputs[0] or ()]


def _joined(values: Sequence[Array], *, only_last: bool) -> Array:
    if only_last or len(values) == 1:
        return values[-1]
    pieces = [np.atleast_1d(value) for value in values]
    same = len({(piece.ndim, piece.shape[1:]) for piece in pieces}) == 1
    return np.concatenate(pieces) if same else values[-1]
