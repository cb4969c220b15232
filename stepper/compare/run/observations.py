"""Observations of a comparison: mismatches of values, ends of loops on either side, where one side stopped."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from stepper.compare.references.protocol import LoopOutcome
from stepper.compare.run.metrics import Distance
from stepper.compare.run.nan_origins import NonFiniteOrigin
from stepper.debug.reference_values import GraphPath
from stepper.ir.model import Layer


class ErrorOrigin(StrEnum):
    """Origin of a mismatch."""

    HERE = "made here"
    CARRIED = "carried in"
    DEPARTURE = "a known departure of OpenVINO's CPU plugin"
    OVERFLOW = "an overflow in OpenVINO's 32 bits"
    UNKNOWN = "origin not known"


class ValueMismatch(Struct, frozen=True, eq=False):
    """One value outside of its tolerance: of an output of a layer (a Parameter: as it entered the body).

    `ours` and `theirs` are the values. `inputs_agree`: every input of the operation that could be compared is within
    its tolerance, `unknown` are computed ones that could not. `patterns` are what the two values have to do with each
    other, in words.
    """

    path: GraphPath
    layer: Layer
    output: int
    measure: Distance
    ours: Any
    theirs: Any
    origin: ErrorOrigin = ErrorOrigin.UNKNOWN
    inputs_agree: bool = False
    unknown: tuple[Layer, ...] = ()
    patterns: tuple[str, ...] = ()


class LoopMismatch(Struct, frozen=True, eq=False):
    """A loop that ran more or fewer iterations than in the reference; `iteration` is the first that only one side ran,
    None where the two outcomes are of all its runs together.

    `path` leads to the graph in which the loop is.
    """

    path: GraphPath
    layer: Layer
    iteration: int | None
    ours: LoopOutcome
    theirs: LoopOutcome | None


class BranchMismatch(Struct, frozen=True, eq=False):
    """An If that takes another branch than in the reference; `path` leads to the graph in which it is."""

    path: GraphPath
    layer: Layer
    ours: bool
    theirs: bool


class SideFailure(Struct, frozen=True, eq=False):
    """One side stopped with an error. `path` and `layer` are where ours was (layer None: between operations).

    `unknown` are the layers behind its inputs of which the reference has no value.
    """

    path: GraphPath
    layer: Layer | None
    message: str
    ours: bool
    unknown: tuple[Layer, ...] = ()


Finding = ValueMismatch | LoopMismatch | BranchMismatch | SideFailure


class OutputRecord(Struct):
    """One output of one layer over the whole run: how often it was compared and differed, first and worst.

    The worst is measured at the end of the run: until then `candidate` has its ratio, path and the two values, and
    their distance where that is known already.
    `trace` is where it differed at all for the first time, within the tolerance too (of runs with the same kernels).
    """

    layer: Layer
    output: int
    loops: tuple[Layer, ...]
    compared: int = 0
    differing: int = 0
    trace: ValueMismatch | None = None
    first: ValueMismatch | None = None
    worst: ValueMismatch | None = None
    candidate: tuple[float, GraphPath, Any, Any, Distance | None] | None = None

    def propose(self, ratio: float, path: GraphPath, ours: Any, theirs: Any, distance: Distance | None = None) -> None:
        """One more value outside of its tolerance, which may be the worst."""
        self.differing += 1
        if self.candidate is None or ratio > self.candidate[0]:
            self.candidate = (ratio, path, ours, theirs, distance)


class LoopRecord(Struct):
    """All runs of one loop on either side, in order, equal neighbours together: (ours, theirs, how often).

    `total` are the reference's iterations in all runs, where only these are known.
    """

    path: tuple[Layer, ...]
    layer: Layer
    runs: list[tuple[LoopOutcome, LoopOutcome | None, int]] = field(default_factory=list)
    total: int | None = None

    @property
    def iterations(self) -> int:
        """Ours, in all runs."""
        return sum(ours.iterations * count for ours, _theirs, count in self.runs)

    def add(self, ours: LoopOutcome, theirs: LoopOutcome | None) -> None:
        """One more run."""
        if self.runs and self.runs[-1][:2] == (ours, theirs):
            self.runs[-1] = (ours, theirs, self.runs[-1][2] + 1)
        else:
            self.runs.append((ours, theirs, 1))


class OutputComparison(Struct, frozen=True):
    """One of the model's outputs: None where it agrees exactly; `theirs_known` False where the reference has none."""

    name: str
    measure: Distance | None
    theirs_known: bool = True
    patterns: tuple[str, ...] = ()


class Observations(Struct):
    """Observations of a comparison, in the order of our run.

    `findings` has the first of each place, at most as many as are kept. `records` are by `id()` of the program and
    slot, `graphs` map that to `id()` of the program's graph. `first_special` is where NaN or an infinity first stands
    against a number of the reference; `non_finite` are the first NaN and the first infinity of our run, the earliest
    first, and `nan_in_outputs` is True if the model's outputs have any. `each_alone` is True if the reference computed
    every operation from our inputs, `is_source` if it ran the file from which our model was converted. `notes` are
    those of our run on the other rule book.
    """

    findings: list[Finding] = field(default_factory=list)
    records: dict[tuple[int, int], OutputRecord] = field(default_factory=dict)
    graphs: dict[int, int] = field(default_factory=dict)
    loops: dict[int, LoopRecord] = field(default_factory=dict)
    outputs: list[OutputComparison] = field(default_factory=list)
    compared: int = 0
    given_up: str = ""
    first_special: ValueMismatch | None = None
    non_finite: tuple[NonFiniteOrigin, ...] = ()
    nan_in_outputs: bool = False
    each_alone: bool = False
    is_source: bool = False
    notes: tuple[str, ...] = ()

    @property
    def reported_non_finite(self) -> tuple[NonFiniteOrigin, ...]:
        """Origins that the reference does not have, or all where NaN comes out of the model on both sides."""
        return tuple(one for one in self.non_finite if self.nan_in_outputs or not one.shared)

    @property
    def outputs_differ(self) -> bool:
        """True if an output of the model is outside of its tolerance."""
        return any(one.measure is not None and one.measure.differs for one in self.outputs)

    @property
    def outputs_agree(self) -> bool:
        """True if all outputs of the model are known to be within their tolerances."""
        return bool(self.outputs) and all(one.theirs_known for one in self.outputs) and not self.outputs_differ

    def ordered(self, *, exact: bool) -> list[Finding]:
        """Return the findings that count, that with which the others begin first.

        `exact`: of two runs with the same kernels, where each counts. Else rounding that a loop amplifies, and what
        OpenVINO is known to compute otherwise, are findings only where they reach the outputs.
        """
        if exact:
            return self.findings
        counted = {ErrorOrigin.HERE, ErrorOrigin.OVERFLOW} if self.outputs_differ else {ErrorOrigin.HERE}
        roots = [one for one in self.findings if not isinstance(one, ValueMismatch) or one.origin in counted]
        if not roots:
            return self.findings if self.outputs_differ else []
        if isinstance(roots[0], SideFailure) and roots[0].ours:
            return self.findings  # what differed before may be why
        return [*roots, *(one for one in self.findings if one not in roots)]
