"""What a run can be compared with: the protocol that a second model, OpenVINO, a recording and an archive all fulfil.

A `Walk` (walk.py) drives our run and asks the reference at each of its moments for its side of the same moment. A
reference answers with a `Counterpart`, from which single values are taken; whatever it does not know is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from stepper.debug.reference_values import GraphPath
from stepper.element_types import Array
from stepper.engine.frames import Frame
from stepper.engine.program import Operation
from stepper.ir.model import Layer, LoopKey

if TYPE_CHECKING:
    from stepper.openvino.native_text import NativeText


def loop_key(path: GraphPath, layer: Layer) -> LoopKey:
    """The key of a loop in the graph to which a path leads."""
    steps = ((step.layer.id,) if step.layer.is_loop else (step.layer.id, step.role) for step in path)
    return (*(part for step in steps for part in step), layer.id)


class MomentKind(Enum):
    """What our run has just done.

    ENTERED: it begins a nested graph; the graph *around* it is asked about, as far as it was computed.
    ITERATION: an iteration of a loop has run. LEFT: a loop or a branch has ended. FINISHED: the whole run.
    """

    ENTERED = auto()
    ITERATION = auto()
    LEFT = auto()
    FINISHED = auto()


class Moment(Struct, frozen=True):
    """A moment of our run.

    `path` leads to the graph that `frame` runs; `frame` is live state (for ENTERED the frame around the nested graph).
    `operation` is the loop or If of which this tells, None for FINISHED.
    """

    kind: MomentKind
    path: GraphPath
    frame: Frame
    operation: Operation | None = None


class Outcome(Struct, frozen=True):
    """How one run of a loop ended: its iterations and why in words (empty: not known).

    `complete` is False where it was given up, so that there may be more iterations. `slices` is how many its sliced
    inputs suffice for, None where it has none or that is not known.
    """

    iterations: int
    ended: str
    complete: bool = True
    slices: int | None = None


class Counterpart(Protocol):
    """The reference's side of a moment."""

    def value(self, layer: Layer, output: int) -> Array | None:
        """What it has for the output of this layer of our graph; None where it has none, or not yet."""

    def earlier(self, layer: Layer, output: int) -> Array | None:
        """What it had one iteration before; None where it has none."""

    @property
    def outcome(self) -> Outcome | None:
        """Of LEFT: how the loop ended; None where that is not known."""

    @property
    def branch(self) -> bool | None:
        """Of ENTERED: the condition of the If; None for a loop, or where it is not known."""


class Reference(Protocol):
    """Another run of the same model, or of one that is like it."""

    @property
    def title(self) -> str:
        """What reports call it: a file's name, or `OpenVINO 2026.4`."""

    @property
    def is_exact(self) -> bool:
        """Whether it computes with our kernels, so that equal operations give equal bits (tight tolerances)."""

    @property
    def shares_inputs(self) -> bool:
        """Whether each iteration is computed from *our* values of the body's Parameters, so that no error is carried
        from one iteration to the next on its side."""

    @property
    def knows_all_iterations(self) -> bool:
        """Whether None for ITERATION means that the reference has ended, not that it does not know."""

    @property
    def notes(self) -> Sequence[str]:
        """What is to be said beside any difference: where it could not compute something. Asked after FINISHED."""

    def at(self, moment: Moment) -> Counterpart | None:
        """Its side of the moment; None where it has no such moment. Moments are told in the order of our run.

        Raises ReferenceFailed where the reference's own run stops with an error.
        """

    def totals(self) -> Mapping[LoopKey, int]:
        """The iterations of loops in all their runs together, of those of which no single run is known; asked after
        FINISHED."""

    def outputs(self) -> Mapping[int, Array]:
        """Its values of the model's outputs by position, as far as known; asked after FINISHED. Raises ReferenceFailed
        where its own run stopped with an error."""


@runtime_checkable
class Repeatable(Protocol):
    """A reference whose own run can be made once more, otherwise, so that what makes it differ is found."""

    def again(self, text: NativeText | None = None, properties: Mapping[str, str] | None = None) -> Sequence[Array]:
        """The model's outputs from a changed text, or compiled with further properties. ExecutionError where that
        fails."""

    def run_changed(self, text: NativeText, inputs: Sequence[Array]) -> Sequence[Array]:
        """The outputs of another model on other inputs. ExecutionError where that fails."""


class ReferenceFailed(Exception):
    """The reference's own run stopped with an error; `str()` of it is the whole message."""
