"""Wrong constants in place of operands: `outcome(seed)` gives one operand of one operation one of them.

The operations are those of the recorded cases of the kernels (`tests/ops`), which are all, each operand a Constant, and
those of the base models, where they stand in loops as well. As many seeds as there are pairs take each once; above,
another operand of the model is wrong as well.
"""

from __future__ import annotations

import random
import struct
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from lxml import etree

from stepper.element_types import ELEMENT_TYPES, STRING_DTYPE
from tests.mutation.bases import bases
from tests.mutation.commands import outcome_of_command, outcome_of_lint
from tests.mutation.examine import Outcome, examine
from tests.mutation.mutate import Files
from tests.ops.recording import cases, families, one_operation_model

_CONSTANTS: Final = ("Constant", "Const")
_LONGEST_SIZE: Final = 6


@dataclass(frozen=True, slots=True)
class Content:
    """What a Constant holds: element type, shape and bytes."""

    type: str
    shape: tuple[int, ...]
    raw: bytes


Wrong = Callable[[Content], Content]
"""From the right content of an operand to a wrong one."""


def _given(type: str, values: Any, _right: Content) -> Content:
    array = np.array(values, ELEMENT_TYPES[type].dtype)
    return Content(type, array.shape, array.tobytes())


def _texts(texts: tuple[str, ...], shape: tuple[int, ...], _right: Content) -> Content:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)]).astype("<i4")
    return Content("string", shape, struct.pack("<i", len(texts)) + ends.tobytes() + b"".join(encoded))


def _filled(number: float, right: Content) -> Content:
    """The right type and shape, each element this number as far as the type holds it."""
    dtype = ELEMENT_TYPES[right.type].dtype
    if dtype == STRING_DTYPE or ELEMENT_TYPES[right.type].bits < 8:
        return _given("i64", 7, right)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        number = 0 if number != number else int(max(limits.min, min(limits.max, number)))
    with np.errstate(all="ignore"):
        return Content(right.type, right.shape, np.full(right.shape, number).astype(dtype).tobytes())


def _reshaped(shape: Callable[[tuple[int, ...]], tuple[int, ...]], right: Content) -> Content:
    """The right type and as many elements of the right bytes as another shape takes, zeros after them."""
    other = shape(right.shape)
    size = max(1, int(np.prod(other, dtype=object)) * ELEMENT_TYPES[right.type].dtype.itemsize)
    if right.type == "string":
        return _texts(("a",) * int(np.prod(other, dtype=object)), other, right)
    return Content(right.type, other, right.raw[:size].ljust(size, b"\0"))


def _retyped(type: str, right: Content) -> Content:
    """The right numbers in another type; ones where they are no numbers."""
    known = ELEMENT_TYPES[right.type]
    if known.dtype.kind not in "biuf" or known.bits < 8 or 0 in right.shape:
        return _given(type, np.ones(right.shape), right)
    with np.errstate(all="ignore"):
        known_numbers = np.frombuffer(
            right.raw[: len(right.raw) // known.dtype.itemsize * known.dtype.itemsize], known.dtype
        )
        numbers = np.resize(known_numbers, right.shape).astype(ELEMENT_TYPES[type].dtype)
    return Content(type, right.shape, numbers.tobytes())


_INTEGERS: Final = (
    *(-(2**63), -(2**62), -600_000_000, -65, -1, 0, 1, 7, 65, 2**31 - 1, 2**31, 600_000_000, 2**40, 2**62, 2**63 - 1),
)
_LISTS: Final = ([], [-1], [0, 0], [1, 2, 3], [-5, 5], [2**40, 2**40], [2**62] * 4, [1] * 70, [2] * 65, [1] * 100_000)
_NUMBERS: Final = (float("nan"), float("inf"), -float("inf"), 0.5, -1, 0, 1, 3, 1e9, -1e9, 1e30, -1e30)
_SHAPES: Final[tuple[Callable[[tuple[int, ...]], tuple[int, ...]], ...]] = (
    *(
        lambda _shape: (),
        lambda _shape: (0,),
        lambda _shape: (3, 0),
        lambda shape: (*shape, 1),
        lambda shape: (1, *shape),
    ),
    *(lambda shape: (*shape, 2), lambda shape: shape[1:], lambda _shape: (2, 3, 4), lambda _shape: (1,) * 64),
)
WRONG: Final[tuple[Wrong, ...]] = (
    *(partial(_filled, number) for number in _NUMBERS),
    *(partial(_given, "i64", number) for number in (*_INTEGERS, *_LISTS)),
    *(partial(_given, "f32", number) for number in (float("nan"), float("inf"), 1.5, 1e38, [], [float("nan")] * 3)),
    *(partial(_given, "f64", -1e308), partial(_given, "u64", 2**64 - 1), partial(_given, "boolean", True)),
    *(partial(_texts, ("a",), ()), partial(_texts, ("1",), (1,)), partial(_texts, ("", "b"), (2,))),
    *(partial(_texts, (), (0,)), *(partial(_reshaped, shape) for shape in _SHAPES)),
    *(partial(_retyped, type) for type in ("f32", "f64", "f16", "bf16", "i32", "u8", "i8", "u64", "boolean", "f8e4m3")),
)
"""Every wrong constant that an operand may be."""


@dataclass(frozen=True, slots=True)
class Operand:
    """The Constant that stands at this place among the layers of a model, and what reads it."""

    model: Callable[[], Files]
    at: int
    reader: str


def _kernel_model(family: str, index: int) -> Files:
    case = cases(family)[index]
    return Files(*one_operation_model(replace(case, constant=set(range(1, len(case.inputs))) or {0})))


def _models() -> Iterator[Callable[[], Files]]:
    for family in families():
        usable = (i for i, one in enumerate(cases(family)) if all(x.dtype != STRING_DTYPE for x in one.inputs))
        yield from (partial(_kernel_model, family, index) for index in usable)
    yield from bases().values()


@cache
def operands() -> tuple[Operand, ...]:
    """Every Constant that an operation reads, in all models."""
    return tuple(one for model in _models() for one in _operands(model))


def _operands(model: Callable[[], Files]) -> Iterator[Operand]:
    try:
        root = etree.fromstring(model().xml, etree.XMLParser(huge_tree=True))
    except etree.XMLSyntaxError:
        return
    for at, layer in enumerate(root.iter("layer")):
        data = layer.find("data")
        if layer.get("type") not in _CONSTANTS or data is None or len(data.get("size", "")) > _LONGEST_SIZE:
            continue
        holder = layer.getparent().getparent()  # type: ignore[union-attr]  # a layer stands in a graph
        for edge in holder.findall("edges/edge") if holder is not None else ():
            reader = holder.find(f"layers/layer[@id='{edge.get('to-layer')}']")
            if edge.get("from-layer") == layer.get("id") and reader is not None and reader.get("type") != "Result":
                yield Operand(model, at, f"{reader.get('type')} '{reader.get('name')}':{edge.get('to-port')}")
                break


def with_wrong(files: Files, at: int, wrong: Wrong) -> Files:
    """The files with a wrong constant in place of the one there; as they are where that says no whole numbers."""
    try:
        return _with_wrong(files, at, wrong)
    except ValueError:
        return files


def _with_wrong(files: Files, at: int, wrong: Wrong) -> Files:
    root = etree.fromstring(files.xml, etree.XMLParser(huge_tree=True))
    layer = list(root.iter("layer"))[at]
    data, port = layer.find("data"), layer.find("output/port")
    if data is None or port is None or data.get("element_type") not in ELEMENT_TYPES:
        return files
    offset, size = int(data.get("offset", "0")), int(data.get("size", "0"))
    shape = tuple(int(dim) for dim in data.get("shape", "").split(",") if dim.strip())
    content = wrong(Content(data.get("element_type", ""), shape, files.weights[offset : offset + size]))
    weights = files.weights + b"\0" * (-len(files.weights) % 8)
    data.set("element_type", content.type)
    data.set("shape", ",".join(map(str, content.shape)))
    data.set("offset", str(len(weights)))
    data.set("size", str(max(1, len(content.raw))))
    port.set("precision", content.type.upper())
    for dim in port.findall("dim"):
        port.remove(dim)
    for number in content.shape:
        etree.SubElement(port, "dim").text = str(number)
    return Files(etree.tostring(root), weights + (content.raw or b"\0"))


def _chosen(seed: int) -> tuple[Operand, int, Operand | None]:
    known = operands()
    round, at = divmod(seed, len(known))
    one = known[at]
    beside = [other for other in known[max(0, at - 5) : at + 5] if other.model is one.model and other is not one]
    second = random.Random(seed).choice(beside) if round >= len(WRONG) and beside else None
    return one, (round + at) % len(WRONG), second


def outcome(seed: int) -> Outcome:
    """Make the model of this seed, examine it, and lint it, too."""
    one, wrong, second = _chosen(seed)
    files = with_wrong(one.model(), one.at, WRONG[wrong])
    if second is not None:
        files = with_wrong(files, second.at, random.Random(seed).choice(WRONG))
    with tempfile.TemporaryDirectory() as folder:
        path = files.write(Path(folder))
        found = examine(path).unless_fault(lambda: outcome_of_lint(path))
        return found.unless_fault(lambda: outcome_of_command(path, seed))


def describe(seed: int) -> str:
    """Which operand is wrong: `Split 'Split':1 wrong constant 12`."""
    one, wrong, second = _chosen(seed)
    return f"{one.reader} wrong constant {wrong}{'' if second is None else f' and {second.reader}'}"
