"""How an operation's kernel is held against OpenVINO: a list of cases in code, the runtime's answers in one small file.

A family's cases stand in `tests/ops/cases_FAMILY.py` as `CASES`, what OpenVINO computed for them in
`tests/ops/recorded/FAMILY.npz` (keys `NAME/k` for output k), written by `python -m tests.ops.record FAMILY`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from stepper import element_types
from stepper.element_types import Array

RECORDED = Path(__file__).parent / "recorded"


@dataclass(frozen=True)
class Case:
    """One operation with its inputs; `constant` are the inputs that the runtime wants as Constants, not Parameters."""

    name: str
    type: str
    version: int
    inputs: Sequence[Array]
    attributes: dict[str, str] = field(default_factory=dict)
    outputs: int = 1
    constant: frozenset[int] | set[int] = frozenset()
    rtol: float = 1e-4
    atol: float = 1e-5


def cases(family: str) -> list[Case]:
    """The cases of one family, names unique."""
    listed: list[Case] = importlib.import_module(f"tests.ops.cases_{family}").CASES
    assert len({case.name for case in listed}) == len(listed), f"{family}: two cases of one name"
    return listed


def families() -> list[str]:
    """Every family that has cases."""
    return sorted(path.stem.removeprefix("cases_") for path in Path(__file__).parent.glob("cases_*.py"))


def one_operation_model(case: Case) -> tuple[bytes, bytes]:
    """The case as IR: the text of the .xml and the bytes of the .bin."""
    net = ElementTree.Element("net", name=case.name, version="11")
    layers, edges = ElementTree.SubElement(net, "layers"), ElementTree.SubElement(net, "edges")
    weights = b""
    for index, value in enumerate(case.inputs):
        layer = _layer(layers, index, f"in{index}", "Const" if index in case.constant else "Parameter", 1)
        data = {"element_type": element_types.of(value).name, "shape": ",".join(map(str, value.shape))}
        if index in case.constant:
            data |= {"offset": str(len(weights)), "size": str(value.nbytes)}
            weights += value.tobytes()
        ElementTree.SubElement(layer, "data", data)
        _ports(layer, "output", 0, [value])
        _edge(edges, index, 0, len(case.inputs), index)
    operation = _layer(layers, len(case.inputs), case.type, case.type, case.version)
    ElementTree.SubElement(operation, "data", case.attributes)
    _ports(operation, "input", 0, case.inputs)
    _ports(operation, "output", len(case.inputs), [np.zeros((), np.float32)] * case.outputs)
    for output in range(case.outputs):
        identity = len(case.inputs) + 1 + output
        _ports(_layer(layers, identity, f"out{output}", "Result", 1), "input", 0, [np.zeros((), np.float32)])
        _edge(edges, len(case.inputs), len(case.inputs) + output, identity, 0)
    return ElementTree.tostring(net), weights


def _layer(parent: ElementTree.Element, identity: int, name: str, type: str, version: int) -> ElementTree.Element:
    return ElementTree.SubElement(parent, "layer", id=str(identity), name=name, type=type, version=f"opset{version}")


def _ports(layer: ElementTree.Element, side: str, first: int, values: Sequence[Any]) -> None:
    ports = ElementTree.SubElement(layer, side)
    for index, value in enumerate(values, first):
        port = ElementTree.SubElement(ports, "port", id=str(index), precision=element_types.of(value).name)
        for dim in value.shape:
            ElementTree.SubElement(port, "dim").text = str(dim)


def _edge(parent: ElementTree.Element, from_layer: int, from_port: int, to_layer: int, to_port: int) -> None:
    ends = {"from-layer": from_layer, "from-port": from_port, "to-layer": to_layer, "to-port": to_port}
    ElementTree.SubElement(parent, "edge", {key: str(value) for key, value in ends.items()})
