"""A layer by its place in the file: the one form in which answers, findings and causes name an operation."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from stepper.ir.model import Layer, Model
from stepper.records import as_data


class LayerSite(Struct, frozen=True):
    """A layer as plain data: its id, name and type, the XML file that it stands in, and the line there."""

    id: int
    name: str
    type: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.type} '{self.name}'"


def layer_site(layer: Layer, file: str) -> LayerSite:
    """Return the site of a layer of the model that stands in this file."""
    return LayerSite(layer.id, layer.name, layer.type, file, layer.line)


def layer_data(layer: Layer, model: Model) -> dict[str, Any]:
    """Return a layer as JSON has it in every answer: {"id", "name", "type", "file", "line"}."""
    found: dict[str, Any] = as_data(layer_site(layer, str(model.path)))
    return found
