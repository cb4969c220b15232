"""How far a generator leaves the ground on which every runtime is known to agree."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Freedom(Struct, frozen=True):
    """Probabilities, each of something that a careful generator leaves out. With 0 nothing is drawn for it.

    `idle`: a loop keeps inputs, states and Results that nothing needs. `shared`: a Constant is read by several
    operations. `in_place`: what a Parameter holds goes on without an operation that computes. `order`: Parameters
    stand in any order. `slices`: parts overlap or leave gaps. `tied`: products share a matrix, plain or transposed.
    """

    idle: float = 0.0
    shared: float = 0.0
    in_place: float = 0.0
    order: float = 0.0
    slices: float = 0.0
    tied: float = 0.0


CAREFUL: Final = Freedom()
FREE: Final = Freedom(idle=0.1, shared=0.2, in_place=0.05, order=0.1, slices=0.05, tied=0.3)
PORT_MAPS: Final = Freedom(idle=0.2, in_place=0.05, order=0.3, slices=0.5)
