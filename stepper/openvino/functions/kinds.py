"""Which function of a model is wanted, as it is said to another process."""

from __future__ import annotations

from msgspec import Struct

from stepper.ir.model import Calls
from stepper.tensors.tolerances import Tolerance


class Judgement(Struct, frozen=True):
    """Of an output: which of the function's arguments it is compared with, and the tolerance."""

    place: int
    tolerance: Tolerance


class FunctionKind(Struct, frozen=True):
    """Of a model's text: as it is; `stacked`: of many sets of inputs, those stacked that are said to be.

    `calls`: it is called so often, and gives those outputs that are `joined` of all calls.
    `judged`: it gives booleans, for outputs within a tolerance of one of its arguments, and then those that are not;
    of the arguments the first `taken` are its inputs.
    """

    stacked: tuple[bool, ...] = ()
    calls: Calls | None = None
    joined: tuple[int, ...] = ()
    judged: tuple[Judgement, ...] = ()
    taken: int = 0


AS_IT_IS = FunctionKind()
