"""Places in the runs of loops."""

from __future__ import annotations

from collections.abc import Sequence

from stepper.diagnosis.check.hits import RunPlace
from stepper.diagnosis.check.subject import RunOfLoop
from stepper.ir.model import LayerSite
from stepper.query.address_syntax import exact_name


def place_of(run: RunOfLoop, layer: LayerSite | None, iteration: int | None) -> RunPlace:
    """Return a place in an iteration of the loop's last run."""
    outer = run.activation.outer
    iterations = (*outer, iteration) if iteration is not None else outer
    address = "" if layer is None else moment_address(layer.name, iterations)
    return RunPlace(layer, (run.facts.layer,), iterations, address, run.activation.tick, run.facts.layer)


def moment_address(name: str, iterations: Sequence[int]) -> str:
    """Return what leads the debugger to an operation, in the last of these iterations."""
    operation = str(exact_name(name))
    return f"{operation}@{iterations[-1]}" if name and iterations else operation if name else ""
