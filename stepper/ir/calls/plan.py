"""Plan of many calls: how many, which inputs each gets a part of, which outputs come back as inputs of the next."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Final

from msgspec import Struct

from stepper.errors import UsageError
from stepper.wording import counted

CALLS: Final = "calls"
"""Name of the loop, where the model has no layer of this name; and what the loop was before it was one."""

MOST_CALLS: Final = 10**7


def iteration_word(opened_from: str | None) -> str:
    """Return what an iteration is called of a loop that stands for this: call, or iteration."""
    return "call" if opened_from == CALLS else "iteration"


class CallParts(Struct, frozen=True):
    """How calls get their parts of the input at a position: one behind the other along an axis.

    `lengths` is that of every part, or one for each call. With `own_axis` the axis is one of the calls alone, which
    what a call gets does not have; each part is then 1 long.
    """

    input: int
    axis: int
    lengths: tuple[int, ...]
    own_axis: bool = False

    def extent(self, count: int) -> int:
        """Return the length of the axis over so many calls."""
        return self.lengths[0] * count if len(self.lengths) == 1 else sum(self.lengths)

    def part(self, whole: Any, number: int) -> Any:
        """Return the part of a call, of an array with the parts of all."""
        begin = self.lengths[0] * number if len(self.lengths) == 1 else sum(self.lengths[:number])
        along = (slice(None),) * self.axis
        if self.own_axis:
            return whole[(*along, begin)]
        return whole[(*along, slice(begin, begin + self.lengths[0 if len(self.lengths) == 1 else number]))]

    @property
    def ends(self) -> tuple[int, ...]:
        """Where the part of each call ends, of parts that differ in length."""
        return tuple(accumulate(self.lengths))


class CarriedOutput(Struct, frozen=True):
    """An output that is an input of the next call; by their positions."""

    output: int
    input: int


class Calls(Struct, frozen=True):
    """Calls of a model, one after the other; an input that is in neither list is the same for all."""

    count: int
    parts: tuple[CallParts, ...] = ()
    carried: tuple[CarriedOutput, ...] = ()

    def check(self, inputs: int, outputs: int) -> None:
        """Raise UsageError for what cannot be of a model with so many inputs and outputs."""
        if not 1 <= self.count <= MOST_CALLS:
            raise UsageError(f"there are {counted(self.count, 'call')}; from 1 to {MOST_CALLS:,} can be")
        fed = [part.input for part in self.parts] + [one.input for one in self.carried]
        given = [one.output for one in self.carried]
        if not all(0 <= one < inputs for one in fed) or not all(0 <= one < outputs for one in given):
            raise UsageError("the calls name an input or an output that the model does not have")
        if len(set(fed)) != len(fed):
            raise UsageError("an input gets its value in two ways: parts, or what an output was, once")
        for part in self.parts:
            lengths = part.lengths
            if len(lengths) not in (1, self.count) or part.axis < 0 or not all(0 <= n < 2**62 for n in lengths):
                raise UsageError("the calls have parts that cannot be")
            if len(lengths) == 1 and (lengths[0] < 1 or (part.own_axis and lengths[0] != 1)):
                raise UsageError("the calls have parts that cannot be")
