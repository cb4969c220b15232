"""Which fault is to be kept: the condition that a user gives, and the fault that a trial finds."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

OPENVINO: Final = "openvino"
_LARGE: Final = 100.0
"""Times the tolerance from which a disagreement is a large one, which is not to become a small one."""


class StopsAt(Struct, frozen=True, tag="break"):
    """The run stops at a breakpoint: `--break nan`."""

    spec: str


class EndsInError(Struct, frozen=True, tag="error"):
    """The run ends in an error; where ours does not, OpenVINO refuses the model, fails or crashes: `--error`."""


class DisagreesWith(Struct, frozen=True, tag="differs"):
    """The outputs differ from those of OpenVINO, or of another model, by its path: `--differs`.

    Beside OpenVINO: or one of the two refuses, fails or crashes where the other computes.
    """

    reference: str = OPENVINO


class AnyFault(Struct, frozen=True, tag="any"):
    """Whichever of these holds: an error, another result than OpenVINO's, a NaN."""


FaultCondition = StopsAt | EndsInError | DisagreesWith | AnyFault


class FaultKind(StrEnum):
    """Kind of a fault."""

    STOP = "stop"
    ERROR = "error"
    REFUSED = "refused"
    ENDED = "ended"
    VALUES = "values"
    SHAPES = "shapes"


class FoundFault(Struct, frozen=True):
    """A fault as a trial finds it; `program` is what has it: stepper, OpenVINO, or the path of a reference.

    `what` is the class of the error, the place in OpenVINO's sources that refuses, the signal, or which numbers differ;
    `layer_type` that of the operation where it stops. `message` is for people. `ratio` is how many times the tolerance
    is exceeded, most of all in the output of this index. `skips_a_loop`: a loop ran no iteration in our run. `is_seen`:
    an output of the run that stops at a NaN or Inf is not finite, so that other programs show it.
    """

    kind: FaultKind
    program: str
    what: str = ""
    layer_type: str = ""
    message: str = ""
    ratio: float = 0.0
    output: int = 0
    skips_a_loop: bool = False
    is_seen: bool = False

    def is_same(self, other: FoundFault) -> bool:
        """True if another is the same fault, and as clear as this one."""
        mine, theirs = ((one.kind, one.program, one.what, one.layer_type) for one in (self, other))
        if other.skips_a_loop and not self.skips_a_loop:  # what is undefined there is another matter
            return False
        if self.is_seen and not other.is_seen:
            return False
        return mine == theirs and other.ratio >= min(self.ratio / 10, _LARGE)
