"""The model's outputs on both sides, when all has run."""

from __future__ import annotations

from collections.abc import Mapping

from stepper.compare.references.protocol import Reference
from stepper.compare.report import patterns
from stepper.compare.run.observations import Observations, OutputComparison
from stepper.compare.run.rounding import Rounded, behind_sums, measure_whole
from stepper.compare.run.tolerances import Tolerances
from stepper.debug.breakpoints.non_finite import holds_any
from stepper.debug.causes.cause import CauseKind
from stepper.element_types import Array
from stepper.engine.frames import Frame
from stepper.engine.machine import Machine
from stepper.engine.run import output_names


def compare_outputs(
    machine: Machine, main: Frame, reference: Reference, tolerances: Tolerances, rounded: Rounded, seen: Observations
) -> None:
    """Add a comparison of each to what was seen; `main` is the frame of the model's own graph, `rounded` what rounding
    left in the bodies of its loops.

    Raises ReferenceFailed where the reference's own run did not end.
    """
    for ours in machine.outputs or ():
        seen.nan_in_outputs |= holds_any(CauseKind.NAN, ours)
    seen.outputs += compared_outputs(machine, main, reference.outputs(), tolerances, rounded)


def compared_outputs(
    machine: Machine, main: Frame, theirs: Mapping[int, Array], tolerances: Tolerances, rounded: Rounded
) -> list[OutputComparison]:
    """Each output of a machine that has run beside the one at its position."""
    found, sums = [], behind_sums(main.program)
    names = zip(main.program.results, output_names(machine.compiled.model), strict=True)
    for position, ((slot, name), ours) in enumerate(zip(names, machine.outputs or (), strict=True)):
        other = theirs.get(position)
        if other is None:
            found.append(OutputComparison(name, None, theirs_known=False))
            continue
        tolerance = tolerances.of(None, other.dtype)
        distance = measure_whole(main, slot, ours, other, tolerance, sums, rounded)
        named = () if distance is None or not distance.differs else patterns.of_sequences(ours, other, tolerance)
        found.append(OutputComparison(name, distance, patterns=named))
    return found
