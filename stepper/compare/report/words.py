"""Names of layers and numbers as reports write them."""

from __future__ import annotations

from stepper.debug.reference_values import GraphPath, PathStep
from stepper.ir.model import Layer
from stepper.wording import excerpt

_LONGEST_NAME = 120


def kind(layer: Layer) -> str:
    """Return the type as the file writes it."""
    return "Const" if layer.type == "Constant" else layer.type


def named(layer: Layer) -> str:
    """Return `MatMul 'proj'`."""
    return f"{kind(layer)} '{excerpt(layer.name, _LONGEST_NAME)}'"


def numbered(layer: Layer) -> str:
    """Return `MatMul 'proj' (id 12)`."""
    return f"{named(layer)} (id {layer.id})"


def quoted(text: str | None) -> str:
    """Return an attribute's value; nothing where it is absent."""
    return "nothing" if text is None else f"'{excerpt(text, _LONGEST_NAME)}'"


def step_text(step: PathStep) -> str:
    """Return `Loop 'decoder' #3`, `If 'choice' (else)`."""
    if step.role == "body":
        return named(step.layer) + ("" if step.iteration is None else f" #{step.iteration}")
    return f"{named(step.layer)} ({step.role.removesuffix('_body')})"


def path_text(path: GraphPath) -> str:
    """Return the way to a graph, `model` for the model's own."""
    return " > ".join(step_text(step) for step in path) or "model"
