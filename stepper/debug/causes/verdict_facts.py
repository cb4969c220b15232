"""The verdict of a condition as frozen data: the operation that decided, and its operands in values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepper.debug.causes.cause import Scalar, TensorBrief

if TYPE_CHECKING:
    from stepper.ir.model import LayerSite


class VerdictOperand(Struct, frozen=True):
    """An input of an operation of a condition: `layer` computes it, reshapes and conversions left out.

    `value` is that of a single element. `carried` is the Parameter into which a back edge carries it; `is_constant`: it
    follows from constants alone. `row` is the index of another row of the loop that shows it.
    """

    layer: LayerSite
    brief: TensorBrief
    value: Scalar | None
    carried: LayerSite | None
    is_constant: bool
    row: int | None = None


class Verdict(Struct, frozen=True):
    """A boolean and the operation that gave it, in values: `NotEqual` of 12 and 12 is false.

    `decided_by` are the inputs, of a LogicalAnd, an If and the like, that alone make it what it is. `compares`: it is a
    simple operation of the operands, all of which are known; else the value alone can be told, as of a loop.
    """

    layer: LayerSite
    value: bool
    operands: tuple[VerdictOperand, ...] = ()
    decided_by: tuple[Verdict, ...] = ()
    compares: bool = True

    @property
    def root(self) -> Verdict:
        """Return the verdict that decided: the first one without others behind it."""
        return self.decided_by[0].root if self.decided_by else self

    @property
    def compared(self) -> tuple[VerdictOperand, ...]:
        """The operands that explain the value; none where they do not."""
        return self.operands if self.compares else ()

    @property
    def told(self) -> tuple[VerdictOperand, ...]:
        """The operands whose values are told: those that are no constants, or all where there are no others."""
        return tuple(one for one in self.compared if not one.is_constant) or self.compared
