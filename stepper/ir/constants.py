"""Tensors of Constants and Parameters: what the file must say of them, checked when it is read."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from stepper import element_types
from stepper.element_types import LARGEST_RANK, STRING_DTYPE, Array, ElementType, Shape
from stepper.errors import LimitReached, memory_reason
from stepper.ir.model import LARGEST_DIMENSION, Layer, Model, PartialShape, Port
from stepper.ir.weights import Weights, packed_size
from stepper.ir.xml import FilePlace

_NUMBER = re.compile(r"\s*[0-9]{1,19}\s*")


def constant_type(constant: Layer) -> ElementType | None:
    """Return a Constant's element type: from its <data>, else (older files) its output port."""
    text = constant.attributes.get("element_type")
    if text is not None:
        return element_types.by_name(text)
    return constant.outputs[0].element_type if constant.outputs else None


def constant_shape(constant: Layer) -> Shape | None:
    """Return the shape of a Constant: of its <data>, else (older files) of its output port; None without either."""
    text = constant.attributes.get("shape")
    if text is None:
        dims = constant.outputs[0].dims if constant.outputs else (-1,)
        return None if any(dim < 0 for dim in dims) else dims
    return _static_shape(text)


@lru_cache(maxsize=1024)
def _static_shape(text: str) -> Shape | None:
    try:
        return PartialShape.parse(text).static
    except ValueError:
        return None


def constant_value(model: Model, constant: Layer) -> Array:
    """Return the tensor of a Constant, a view of the mapped .bin if its type allows. ModelError if there is no .bin."""
    if (literal := _literal_value(constant)) is not None:
        return literal
    place = FilePlace(model.path, constant.line, str(constant))
    if model.weights is None:
        place.fail(f"its value is in {model.path.with_suffix('.bin')}, which does not exist", "weights-missing")
    element_type, shape = constant_type(constant), constant_shape(constant)
    assert element_type is not None and shape is not None, "check_constant has seen to it"
    offset, size = int(constant.attributes["offset"]), int(constant.attributes["size"])
    try:
        return model.weights.constant(element_type, shape, offset, size)
    except MemoryError as error:
        raise LimitReached(f"{place.text()}{element_type}{list(shape)}: {memory_reason(error)}") from None
    except ValueError as error:
        place.fail(f"its bytes in the .bin are not a tensor of type {element_type} of this shape: {error}")


def small_constant(constant: Layer, weights: Weights | None) -> Array | None:
    """Return the tensor of a sound Constant of a few bytes, one for all of the same bytes; None for any other.

    What a file has by the thousand, axes and shapes, is so read and checked once.
    """
    attributes = constant.attributes
    offset, size = attributes.get("offset", ""), attributes.get("size", "")
    if weights is None or len(size) > 2 or not (size.isdecimal() and offset.isdecimal()) or len(offset) > 18:
        return None
    raw = weights.raw(int(offset), int(size))
    if len(constant.outputs) != 1 or len(raw) != int(size):
        return None
    return _of_bytes(attributes.get("element_type", ""), attributes.get("shape"), raw)


@lru_cache(maxsize=4096)
def _of_bytes(type_name: str, shape_text: str | None, raw: bytes) -> Array | None:
    element_type = element_types.by_name(type_name)
    shape = None if shape_text is None else _static_shape(shape_text)
    if element_type is None or shape is None or element_type.bits < 8 or element_type.dtype.kind not in "iuf":
        return None
    if math.prod(shape) * element_type.dtype.itemsize != len(raw) or not raw or len(shape) > LARGEST_RANK:
        return None
    return np.frombuffer(raw, element_type.dtype).reshape(shape)


def literal_constant(
    identity: int, name: str, values: Sequence[int] | int, element_type: ElementType, line: int
) -> Layer:
    """Return a Constant that no file has: its numbers stand in its attribute `value`, not in a .bin."""
    numbers = (values,) if isinstance(values, int) else tuple(values)
    dims = () if isinstance(values, int) else (len(numbers),)
    texts = {
        "element_type": element_type.name,
        "shape": ",".join(map(str, dims)),
        "value": ",".join(map(str, numbers)),
    }
    output = Port(0, element_type, dims, (), line)
    return Layer(identity, name, "Constant", "opset1", 1, MappingProxyType(texts), (), (output,), (), line)


def _literal_value(constant: Layer) -> Array | None:
    """Return the tensor of a literal constant; None for one of a file, which has an offset."""
    if "offset" in constant.attributes:
        return None
    element_type, shape = constant_type(constant), constant_shape(constant)
    assert element_type is not None and shape is not None, "literal_constant has seen to it"
    numbers = [int(text) for text in constant.attributes["value"].split(",") if text]
    value = np.array(numbers, element_type.dtype).reshape(shape)
    value.flags.writeable = False
    return value


def check_constant(place: FilePlace, constant: Layer, weights: Weights | None) -> None:
    """Element type, shape, offset and size: present, sound, in agreement, and inside the .bin."""
    _check_ports(place, constant, "malformed-constant")
    element_type, shape = constant_type(constant), constant_shape(constant)
    if element_type is None:
        written = constant.attributes.get("element_type", "")
        place.fail(
            f"the element type '{written}' does not exist; expected one of {', '.join(element_types.ELEMENT_TYPES)}",
            "malformed-constant",
        )
    if shape is None:
        place.fail(
            f"the shape '{constant.attributes.get('shape', '')}' is not a list of non-negative integers",
            "malformed-constant",
        )
    offset, size = _byte_count(place, constant, "offset"), _byte_count(place, constant, "size")
    _check_rank(place, len(shape), "malformed-constant")
    needed = _bytes_needed(element_type.name, shape)
    if needed is None:
        place.fail(f"the shape {list(shape)} is larger than any memory", "malformed-constant")
    if size < needed:
        place.fail(
            f"{size} bytes are too few for {element_type}{list(shape)}, which needs {needed}", "malformed-constant"
        )
    # An empty constant is written with size 1 (measured), maybe behind the last byte.
    if weights is not None and offset + size > weights.size and 0 not in shape:
        message = f"bytes {offset} to {offset + size} lie outside {weights.path.name}, which has {weights.size}"
        place.fail(message, "weights-truncated")


@lru_cache(maxsize=1024)
def _bytes_needed(type_name: str, shape: Shape) -> int | None:
    """Return the least number of bytes that hold such a tensor; None for one that no memory holds."""
    element_type, count = element_types.ELEMENT_TYPES[type_name], math.prod(shape)
    if max(shape, default=0) * max(count, 1) > LARGEST_DIMENSION:
        return None
    return 4 * (count + 2) if element_type.dtype == STRING_DTYPE else packed_size(element_type, count)


def _byte_count(place: FilePlace, constant: Layer, name: str) -> int:
    text = constant.attributes.get(name)
    if text is None:
        place.fail(f"<data> has no attribute '{name}', which is mandatory", "malformed-constant")
    if len(text) < 16 and text.isdecimal() and text.isascii():
        return int(text)
    if not _NUMBER.fullmatch(text) or int(text) > LARGEST_DIMENSION:
        place.fail(f"the attribute '{name}' is '{text[:80]}', expected a number of bytes", "malformed-constant")
    return int(text)


def _check_ports(place: FilePlace, layer: Layer, rule: str) -> None:
    if len(layer.outputs) != 1:
        place.fail(f"has {len(layer.outputs)} output ports, expected one", rule)
    if layer.inputs:
        place.fail(f"has {len(layer.inputs)} input ports, expected none", rule)


def _check_rank(place: FilePlace, rank: int, rule: str) -> None:
    if rank > LARGEST_RANK:
        place.fail(f"the shape has {rank} dimensions, expected at most {LARGEST_RANK}", rule)


def check_parameter(place: FilePlace, parameter: Layer, *, in_body: bool) -> None:
    """Element type and shape: sound, and present, but that a body's Parameter may leave them to its output port."""
    _check_ports(place, parameter, "malformed-parameter")
    attributes = parameter.attributes
    for name in ("element_type", "shape"):
        if name not in attributes and not in_body:
            place.fail(f"<data> has no attribute '{name}', which is mandatory", "malformed-parameter")
    written = attributes.get("element_type")
    known = written is None or written in element_types.UNKNOWN_NAMES or element_types.by_name(written) is not None
    if not known:
        expected = ", ".join(element_types.ELEMENT_TYPES)
        place.fail(f"the element type '{written}' does not exist; expected one of {expected}", "malformed-parameter")
    if "shape" in attributes:
        try:
            dimensions = PartialShape.parse(attributes["shape"]).dimensions
        except ValueError:
            place.fail(
                f"the shape '{attributes['shape'][:80]}' cannot be read, expected for example '1,?,2..8'",
                "malformed-parameter",
            )
        _check_rank(place, len(dimensions or ()), "malformed-parameter")
