"""Parts of a compiled expression: the scope that it reads, and the parts of its code."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from msgspec import Struct

from stepper.query.address_syntax import Address
from stepper.query.expression_values import Value


class Scope(Protocol):
    """Names that an expression reads. Values are ndarrays, or numpy scalars for rank 0; an address has no index here.

    A method may raise any StepperError where there is no such value (no iteration before, no reference); `and` and
    `or` do not read what they need not, so `iter > 0 and x > prev(x)` is safe in the first iteration.
    """

    def value(self, address: Address, /) -> Value:
        """Return the value at the address, here and now where the address does not say."""

    def previous(self, address: Address, /) -> Value:
        """Return the same one iteration before."""

    def reference(self, address: Address, /) -> Value:
        """Return the same in the run that this one is compared with."""

    def iteration(self) -> int:
        """Return the number of the innermost loop's iteration."""

    def iteration_of(self, loop: str, /) -> int:
        """Return that of the loop of a name around."""


Code = Callable[[Scope], Value]


class Moment(Enum):
    """Which method of the scope reads an address."""

    NOW = auto()
    PREVIOUS = auto()
    REFERENCE = auto()


class Kind(Enum):
    """Kind of a part's result; PLAIN is a number of Python's."""

    PLAIN = "a number"
    TENSOR = "a tensor"
    TYPE = "a type"
    SHAPE = "a shape"


class Part(Struct, frozen=True):
    """A compiled part. `constant` is its value if that is known; `raw`: a tensor as it was read, maybe packed codes."""

    code: Code
    kind: Kind
    constant: Value = None
    raw: bool = False


def constant_part(value: Value) -> Part:
    """Return a number of the text, or what follows from such alone."""
    return Part(lambda _scope: value, Kind.PLAIN, value)


def type_part(name: str) -> Part:
    """Return an element type of the text."""
    return Part(lambda _scope: name, Kind.TYPE, name)
