"""Facts of a reduced model, by which known faults are recognised."""

from __future__ import annotations

from pathlib import Path

from stepper.diagnosis.hunt.faults import ShownFacts
from stepper.diagnosis.hunt.features import features_of
from stepper.diagnosis.reduce.case import first_changing_pass
from stepper.diagnosis.reduce.conditions import FaultKind, FoundFault
from stepper.diagnosis.reduce.draft import DraftModel
from stepper.diagnosis.reduce.trial_acts import RunSettings


def shown_facts(model: DraftModel, path: Path, fault: FoundFault, settings: RunSettings) -> ShownFacts:
    """Return what a reduced model with this fault shows."""
    changes = fault.kind in (FaultKind.VALUES, FaultKind.SHAPES) and fault.program == "OpenVINO"
    found = first_changing_pass(path, model.inputs, settings) if changes else None
    types = frozenset(layer.type for _address, layer in model.operations())
    return ShownFacts(types, "" if found is None else found.name, features_of(model))
