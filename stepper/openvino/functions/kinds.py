"""Which function of a model is wanted, as it is said to another process."""

from __future__ import annotations

from msgspec import Struct

from stepper.ir.calls.plan import Calls


class FunctionKind(Struct, frozen=True):
    """Of a model's text: as it is; `stacked`: of many sets of inputs, those stacked that are said to be.

    `calls`: it is called so often, and gives those outputs that are `joined` of all calls.
    """

    stacked: tuple[bool, ...] = ()
    calls: Calls | None = None
    joined: tuple[int, ...] = ()


AS_IT_IS = FunctionKind()
