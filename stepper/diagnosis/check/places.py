"""Places in the runs of loops."""

from __future__ import annotations

from stepper.diagnosis.check.hits import RunPlace
from stepper.diagnosis.check.subject import RunOfLoop
from stepper.ir.model import LayerSite


def place_of(run: RunOfLoop, layer: LayerSite | None, iteration: int | None) -> RunPlace:
    """Return a place in an iteration of the loop's last run."""
    outer = run.activation.outer
    iterations = (*outer, iteration) if iteration is not None else outer
    name = "" if layer is None else layer.name
    address = f"{name}@{iteration}" if name and iteration is not None else name
    return RunPlace(layer, (run.facts.layer,), iterations, address, run.activation.tick, run.facts.layer)
