"""Protocol of a reference, which a second model, OpenVINO, ONNX, a recording and an archive fulfil.

A `LockstepWalk` (walk.py) drives our run and asks the reference at each of its points for its side of the same point. A
reference answers with a `ReferenceFrame`, from which single values are taken; whatever it does not know is None.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from stepper.debug.scopes import GraphPath, ValuePlace
from stepper.element_types import Array, Indices
from stepper.engine.frames import Frame
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Operation
from stepper.ir.model import Layer, LoopKey
from stepper.records import Record

if TYPE_CHECKING:
    from stepper.tensors.tolerances import Tolerances


def loop_key(path: GraphPath, layer: Layer) -> LoopKey:
    """Return the key of a loop in the graph to which a path leads."""
    steps = ((step.layer.id,) if step.layer.is_loop else (step.layer.id, step.role) for step in path)
    return (*(part for step in steps for part in step), layer.id)


_MOST_ALONE = 100_000


def most_alone(machine: Machine) -> int:
    """Return after how many iterations a loop of one side alone is given up."""
    return machine.max_iterations or _MOST_ALONE


def endless_text(layer: Layer, count: int) -> str:
    """Return the sentence on a loop that was given up."""
    return f"{layer.type} '{layer.name}' does not end: it was stopped after {count} iterations"


class SyncKind(Enum):
    """Kind of a point that our run has reached.

    ENTERED: it begins a nested graph; the graph *around* it is asked about, as far as it was computed.
    ITERATION: an iteration of a loop has run. LEFT: a loop or a branch has ended. FINISHED: the whole run.
    """

    ENTERED = auto()
    ITERATION = auto()
    LEFT = auto()
    FINISHED = auto()


class SyncPoint(Record):
    """A point of our run that the reference may have, too.

    `path` leads to the graph that `frame` runs; `frame` is live state (for ENTERED the frame around the nested graph).
    `operation` is the loop or If at this point, None for FINISHED.
    """

    kind: SyncKind
    path: GraphPath
    frame: Frame
    operation: Operation | None = None


class LoopOutcome(Record):
    """End of one run of a loop: its iterations and why in words (empty: not known).

    `complete` is False where it was given up, so that there may be more iterations. `slices` is how many its sliced
    inputs suffice for, None where it has none or that is not known.
    """

    iterations: int
    ended: str
    complete: bool = True
    slices: int | None = None


class ReferenceFrame(Protocol):
    """Values of the reference at a point."""

    def value(self, layer: Layer, output: int) -> Array | None:
        """Return its value of this output of a layer of our graph; None where it has none, or not yet."""

    def earlier(self, layer: Layer, output: int) -> Array | None:
        """Return its value of one iteration before; None where it has none."""

    @property
    def outcome(self) -> LoopOutcome | None:
        """Return how the loop ended, for LEFT; None if that is not known."""

    @property
    def branch(self) -> bool | None:
        """Return the condition of the If, for ENTERED; None for a loop, or if it is not known."""


class BodyIterations(Record):
    """Our values of a body in a block of iterations of a loop: of the loop's own, or of a branch of an If in that.

    `steps` lead from the loop's body to this one, whose frame is `frame`. Sorted by `order`, with its index behind it,
    operations of all bodies are in the order in which they run. `rows` are the iterations in which the body ran,
    counted from the first of the block. `stacked` are the values that change from one to another, by slot, on a new
    first axis; all others are the frame's.
    """

    frame: Frame
    steps: GraphPath
    order: Indices
    rows: Array
    stacked: Mapping[int, Array]

    def of(self, slot: int) -> Array | None:
        """Return the values of a slot on a new first axis; None where it has none."""
        if slot in self.stacked:
            return self.stacked[slot]
        value = self.frame.values[slot]
        return None if value is None else np.broadcast_to(np.asarray(value), (len(self.rows), *value.shape))


class ReferenceRun(ABC):
    """Another run of the same model, or of one that is like it; `title` is its name in reports."""

    title: str
    is_exact = False
    """It computes with our kernels, so that equal operations give equal bits (tight tolerances)."""
    shares_inputs = False
    """Each iteration is computed from *our* values of the body's Parameters: no error is carried on its side."""

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on what it could not compute, to be said beside any difference; known after FINISHED."""
        return ()

    def agree_within(self, _tolerances: Tolerances) -> None:
        """Take note that ours may stand for a value that agrees with it within these."""
        return

    @abstractmethod
    def at(self, point: SyncPoint) -> ReferenceFrame | None:
        """Return its side of the point; None where it has no such point. Points come in the order of our run.

        Raises ReferenceFailed where the reference's own run stops with an error.
        """

    def has_loop(self, _path: GraphPath, _frame: Frame) -> bool:
        """Return True if it has this run of a loop: None for ITERATION then means that it has ended there."""
        return False

    def value_at(self, place: ValuePlace) -> Array | None:
        """Return the value at a place whose iteration has run; None if the body has no known values."""
        if place.frame is None:
            return None
        found = self.at(SyncPoint(SyncKind.ITERATION if place.path else SyncKind.FINISHED, place.path, place.frame))
        return None if found is None else found.value(place.layer, place.output)

    def alone(self, _frame: Frame, _layer: Layer, _output: int) -> Array | None:
        """Return another value for one that its frames had from computing several at once: the one that counts.

        None where it was computed by itself, as from then on.
        """
        return None

    def block(self, _first: int, _bodies: Sequence[BodyIterations]) -> object:
        """Return its values of a block of iterations of a loop, from the iteration `first` on; None where it cannot.

        `bodies` are ours: those of the loop's own body, and then of the branches of Ifs that were taken in it.
        """
        return None

    def totals(self) -> Mapping[LoopKey, int]:
        """Return iterations in all runs together, of loops whose single runs are not known. After FINISHED."""
        return {}

    @abstractmethod
    def outputs(self) -> Mapping[int, Array]:
        """Return its values of the model's outputs by position, as far as known. After FINISHED.

        Raises ReferenceFailed where its own run stopped with an error.
        """

    def outputs_anew(self) -> Mapping[int, Array] | None:
        """Return other outputs for those that rest on what an earlier run has kept: those that count.

        None where nothing is kept. Raises as `outputs` does.
        """
        return None


class PlacedRun(ReferenceRun):
    """A run whose values are found by their place alone; `compiled` is our model."""

    compiled: CompiledModel

    def value_at(self, place: ValuePlace) -> Array | None:
        """Return its value at a place; in the model's own graph also what an output takes."""
        found = self.value(place.path, place.layer, place.output, 0)
        main = self.compiled.main
        slot = None if place.path else main.slots.get((place.layer.id, place.output))
        if found is None and slot in main.results:
            return self._outputs_known.get(main.results.index(slot))
        return found

    @cached_property
    def _outputs_known(self) -> Mapping[int, Array]:
        """Read once: some references have them in a file."""
        return self.outputs()

    @abstractmethod
    def value(self, path: GraphPath, layer: Layer, output: int, shift: int) -> Array | None:
        """Return the value at a place, `shift` iterations later; None where there is none."""


class PlacedFrame(Record):
    """The values of one iteration of such a run."""

    run: PlacedRun
    path: GraphPath
    outcome: LoopOutcome | None = None
    branch: bool | None = None

    def value(self, layer: Layer, output: int) -> Array | None:
        """Return the value that the run has."""
        return self.run.value(self.path, layer, output, 0)

    def earlier(self, layer: Layer, output: int) -> Array | None:
        """Return the value of the iteration before."""
        return self.run.value(self.path, layer, output, -1)


class ReferenceFailed(Exception):
    """The reference's own run stopped with an error; `str()` of it is the whole message."""
