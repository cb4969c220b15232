"""Protocol of a reference, which a second model, OpenVINO, ONNX, a recording and an archive fulfil.

A `LockstepWalk` (walk.py) drives our run and asks the reference at each of its points for its side of the same point. A
reference answers with a `ReferenceFrame`, from which single values are taken; whatever it does not know is None.
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
    """Return the key of a loop in the graph to which a path leads."""
    steps = ((step.layer.id,) if step.layer.is_loop else (step.layer.id, step.role) for step in path)
    return (*(part for step in steps for part in step), layer.id)


class SyncKind(Enum):
    """Kind of a point that our run has reached.

    ENTERED: it begins a nested graph; the graph *around* it is asked about, as far as it was computed.
    ITERATION: an iteration of a loop has run. LEFT: a loop or a branch has ended. FINISHED: the whole run.
    """

    ENTERED = auto()
    ITERATION = auto()
    LEFT = auto()
    FINISHED = auto()


class SyncPoint(Struct, frozen=True):
    """A point of our run that the reference may have, too.

    `path` leads to the graph that `frame` runs; `frame` is live state (for ENTERED the frame around the nested graph).
    `operation` is the loop or If of which this tells, None for FINISHED.
    """

    kind: SyncKind
    path: GraphPath
    frame: Frame
    operation: Operation | None = None


class LoopOutcome(Struct, frozen=True):
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
        """Of LEFT: how the loop ended; None where that is not known."""

    @property
    def branch(self) -> bool | None:
        """Of ENTERED: the condition of the If; None for a loop, or where it is not known."""


class ReferenceRun(Protocol):
    """Another run of the same model, or of one that is like it."""

    @property
    def title(self) -> str:
        """Name in reports: a file's, or `OpenVINO 2026.4`."""

    @property
    def is_exact(self) -> bool:
        """True if it computes with our kernels, so that equal operations give equal bits (tight tolerances)."""

    @property
    def shares_inputs(self) -> bool:
        """True if each iteration is computed from *our* values of the body's Parameters, so that no error is carried
        from one iteration to the next on its side."""

    @property
    def knows_all_iterations(self) -> bool:
        """True if None for ITERATION means that the reference has ended, not that it does not know."""

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on what it could not compute, to be said beside any difference; known after FINISHED."""

    def at(self, point: SyncPoint) -> ReferenceFrame | None:
        """Return its side of the point; None where it has no such point. Points come in the order of our run.

        Raises ReferenceFailed where the reference's own run stops with an error.
        """

    def totals(self) -> Mapping[LoopKey, int]:
        """Return the iterations of loops in all their runs together, of those of which no single run is known; asked
        after FINISHED."""

    def outputs(self) -> Mapping[int, Array]:
        """Return its values of the model's outputs by position, as far as known; asked after FINISHED. Raises
        ReferenceFailed where its own run stopped with an error."""


@runtime_checkable
class RepeatableRun(Protocol):
    """A reference whose own run can be made once more, otherwise, so that what makes it differ is found."""

    def again(self, text: NativeText | None = None, properties: Mapping[str, str] | None = None) -> Sequence[Array]:
        """Return the model's outputs from a changed text, or compiled with further properties. ExecutionError where
        that fails."""

    def run_changed(self, text: NativeText, inputs: Sequence[Array]) -> Sequence[Array]:
        """Return the outputs of another model on other inputs. ExecutionError where that fails."""


class ReferenceFailed(Exception):
    """The reference's own run stopped with an error; `str()` of it is the whole message."""
