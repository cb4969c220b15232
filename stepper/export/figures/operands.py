"""Operands of an operation as a figure writes them: `Divide(·, 2)`, where `·` comes by wire and 2 is a constant."""

from __future__ import annotations

from typing import Final

import numpy as np

from stepper.element_types import Array
from stepper.errors import StepperError
from stepper.export.figures.drawn_graph import shortened
from stepper.ir.constants import constant_shape, constant_type, constant_value
from stepper.ir.model import Graph, Layer, Model
from stepper.ops.operands import shape_text
from stepper.query.short_names import is_automatic, last_part
from stepper.tensors.number_text import nested_text
from stepper.wording import excerpt

WIRED: Final = "·"
_MOST: Final = 4
"""Elements of a constant that is written out."""
_LONGEST: Final = 14
"""Characters of a constant that is written out, or of its name."""
_WIDEST: Final = 44
"""Characters of all operands; above, names of constants are left out first, then all but the first operands."""


def operands_text(model: Model, graph: Graph, layer: Layer) -> str:
    """Return the operands of an operation in brackets; "" where all come by wires of their own, which say enough."""
    sources = graph.sources[layer.id]
    wired = [source for source in sources if source is not None and graph.by_id[source.layer].type != "Constant"]
    if len(wired) == len(sources) == len(set(wired)):
        return ""
    for names in (True, False):
        texts = [
            "" if source is None else _operand(model, graph.by_id[source.layer], names=names) for source in sources
        ]
        while texts and not texts[-1]:
            texts.pop()
        text = f"({', '.join(texts)})"
        if len(text) <= _WIDEST:
            return text
    return f"({', '.join(texts[:2])}, … {len(texts) - 2} more)" if len(texts) > 3 else shortened(text, _WIDEST)


def _operand(model: Model, source: Layer, *, names: bool) -> str:
    return constant_text(model, source, names=names) if source.type == "Constant" else WIRED


def constant_text(model: Model, source: Layer, *, names: bool = True) -> str:
    """Return a constant of a few elements written out, another one by its name, type and shape: `W f32[192,64]`."""
    value = _small(model, source)
    if value is not None:
        text = nested_text(value.reshape(-1))
        if len(text) <= _LONGEST:
            return text
    element_type, shape = constant_type(source), constant_shape(source)
    form = f"{'?' if element_type is None else element_type.name}{'' if shape is None else shape_text(shape)}"
    name = excerpt(last_part(source.name))
    if not names or is_automatic(source) or name.isdigit():
        return form
    return f"{shortened(name, _LONGEST)} {form}"


def constant_symbol(model: Model, source: Layer) -> str:
    """Return a constant in a formula: a few elements written out, another one by its name, or by its type and shape."""
    value = _small(model, source)
    if value is not None and len(text := nested_text(value.reshape(-1))) <= _LONGEST:
        return text
    name = excerpt(last_part(source.name))
    return constant_text(model, source, names=False) if is_automatic(source) or name.isdigit() else name


def _small(model: Model, constant: Layer) -> Array | None:
    """Return the value of a constant of a few elements; None for others, and where there is no .bin."""
    shape = constant_shape(constant)
    if shape is None or int(np.prod(shape)) > _MOST or len([extent for extent in shape if extent != 1]) > 1:
        return None
    try:
        return constant_value(model, constant)
    except StepperError:
        return None
