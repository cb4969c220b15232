"""Integer division of models that come from ONNX: Div truncates, what the converter writes floors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree


def truncate_divisions(path: Path) -> None:
    """Let the integer divisions of a converted model at `path` round towards zero, as ONNX's Div does.

    A BitShift to the right becomes a division by a Power; that one is to round down, and stays as it is.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    tree = etree.parse(path, parser)
    changed = False
    for layers in tree.iter("layers"):
        for data in _divisions(layers):
            data.set("m_pythondiv", "false")
            changed = True
    if changed:
        tree.write(path, xml_declaration=True, encoding="utf-8")


def _divisions(layers: etree._Element) -> Iterator[etree._Element]:
    """Yield the attributes of the divisions of one graph that are to truncate."""
    types = {layer.get("id"): layer.get("type") for layer in layers.iterchildren("layer")}
    edges = layers.getnext()
    divisors = {
        edge.get("to-layer"): types.get(edge.get("from-layer"))
        for edge in (() if edges is None else edges.iterchildren("edge"))
        if edge.get("to-port") == "1"
    }
    for layer in layers.iterchildren("layer"):
        data, precision = layer.find("data"), layer.find("output/port[@precision]")
        if layer.get("type") != "Divide" or data is None or precision is None:
            continue
        if precision.get("precision", "")[:1] in "IU" and divisors.get(layer.get("id")) != "Power":
            yield data
