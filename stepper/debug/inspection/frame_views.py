"""A frame of the stack as plain frozen data: its operations, how far it has come, and what every one of them gave.

Tensors are shared with the run, never copied: a view of a moment costs a few references and stays true afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.branches.edits import Edit, ValueEdit
from stepper.debug.causes.nan_origins import NonFiniteOutput, non_finite_output
from stepper.debug.inspection.values import operation_view, value_view
from stepper.debug.inspection.views import OperationView, ValueView
from stepper.debug.iterations import slots
from stepper.debug.stop import iteration_of
from stepper.element_types import Array
from stepper.engine.frames import Frame, Phase
from stepper.engine.program import CompiledModel, Program
from stepper.ir.model import Graph, Layer, Source
from stepper.query.address_resolution import Target, address_of, moment_address
from stepper.query.address_syntax import Address
from stepper.records import Brief

_QUICKLY_TESTED: Final = 100_000
"""Elements of an input that are looked through for a screen."""
_QUICKLY_TRIED: Final = 2**14
"""Elements of the inputs of an operation that is run again while a screen waits."""


class FrameView(Brief, Struct, frozen=True, eq=False):
    """One frame at one moment; `depth` 0 is the model's own graph.

    `last` is the index of the operation that was executed last in this iteration (-1: none yet), `running` that of the
    loop or If that is under way in it. `closed`: the iteration is over, or has not begun. `edited` are the slots whose
    value the user put there.
    """

    unshown: ClassVar = ("program", "_frame")

    depth: int
    program: Program
    iteration: int | None
    last: int
    running: int | None
    closed: bool
    _frame: Frame
    edited: frozenset[int] = frozenset()

    @property
    def graph(self) -> Graph:
        """Return the graph that runs in it."""
        return self.program.graph

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Return the operations in the order of execution."""
        return self.program.layers

    @property
    def moment(self) -> int:
        """Return the operation at which the frame stands: the one under way, else the one executed last; -1: before
        all.
        """
        return self.last if self.running is None else self.running

    def operation(self, index: int) -> OperationView:
        """Return an operation with its inputs and outputs as they are now."""
        return operation_view(self._frame, index)

    def non_finite(self, index: int) -> NonFiniteOutput | None:
        """Return what is NaN or infinite in an operation's first output, and where that comes from; quickly, for a
        screen.
        """
        if not self.program.operations[index].outputs or not self.is_done(index):
            return None
        return non_finite_output(self._frame, index, "", most=_QUICKLY_TRIED)

    def came_in(self, index: int, kind: str) -> bool:
        """True if an input of an operation has NaN, or Inf, already; large inputs are not looked through.

        `kind` is NaN or Inf.
        """
        test = np.isnan if kind == "NaN" else np.isinf
        arrays = [value.array for value in self.operation(index).inputs]
        small = (one for one in arrays if one is not None and one.dtype.kind == "f" and one.size <= _QUICKLY_TESTED)
        return any(bool(test(one).any()) for one in small)

    def output(self, index: int, output: int = 0) -> ValueView:
        """Return what an operation gave in this iteration."""
        return value_view(self._frame, Source(self.program.operations[index].layer.id, output))

    def value(self, layer: int, output: int = 0) -> ValueView:
        """Return the value of a layer's output, by the layer's id: a Parameter, a Constant or an operation."""
        return value_view(self._frame, Source(layer, output))

    def held(self, index: int, output: int = 0) -> Array | None:
        """Return the value that is there: of this iteration, or of the one before if the operation has not run yet."""
        outputs = self.program.operations[index].outputs
        value = self._frame.values[outputs[output]] if output < len(outputs) else None
        return None if value is None else slots.read_only(value)

    def kept(self, layer: int, output: int = 0) -> Array | None:
        """Return the same by a layer's id: what its output holds, of this iteration or still of the one before."""
        slot = self.program.slots.get((layer, output), -1)
        value = self._frame.values[slot] if slot >= 0 else None
        return None if value is None else slots.read_only(value)

    def is_done(self, index: int) -> bool:
        """True if the operation has run in this iteration."""
        return index <= self.last

    def is_edited(self, index: int) -> bool:
        """True if what the operation holds is not what it gave: the user changed it."""
        return bool(self.edited) and not self.edited.isdisjoint(self.program.operations[index].outputs)

    def address(self, index: int, compiled: CompiledModel) -> str:
        """Return how the operation is written at the prompt, wherever the run stands."""
        layer = self.program.operations[index].layer
        text = self.address_of(layer, 0, compiled)
        return text.rsplit(":", 1)[0] if len(layer.outputs) > 1 else text

    def moment_address(self, index: int, compiled: CompiledModel) -> Address:
        """Return the moment just after the operation, without an iteration: of a loop that after it, not inside."""
        layer = self.program.operations[index].layer
        found = moment_address(self._target(layer, 0), compiled)
        return found if layer.is_loop else replace(found, port=None)

    def address_of(self, layer: Layer, output: int, compiled: CompiledModel) -> str:
        """Return how an output of a layer of this graph is written at the prompt, wherever the run stands."""
        return str(address_of(self._target(layer, output), compiled))

    def _target(self, layer: Layer, output: int) -> Target:
        slot = self.program.slots.get((layer.id, output), -1)
        return Target(self.program, layer, output, slot, layer, (None,) * len(self.program.path))


def frame_views(stack: Sequence[Frame], edits: Iterable[Edit] = ()) -> tuple[FrameView, ...]:
    """Return all frames of a stack, from the model's own graph inwards; `edits` are those of the run."""
    made = tuple(edits)
    return tuple(_frame_view(stack, depth, made) for depth in range(len(stack)))


def _frame_view(stack: Sequence[Frame], depth: int, edits: Sequence[Edit]) -> FrameView:
    frame = stack[depth].copy()
    running = frame.phase is Phase.RUNNING
    nested = depth < len(stack) - 1
    iteration = iteration_of(frame)
    began = frame.activation is None or iteration is not None or running
    last = frame.pc - 1 if running else (len(frame.program.operations) - 1 if began else -1)
    # A value that was computed anew is another object, even where it is the same.
    values = [edit for edit in edits if isinstance(edit, ValueEdit) and edit.program is frame.program]
    edited = frozenset(edit.slot for edit in values if frame.values[edit.slot] is edit.value)
    return FrameView(depth, frame.program, iteration, last, frame.pc if nested else None, not running, frame, edited)
