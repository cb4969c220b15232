"""Seeded damage to a model: `mutant(seed)` is always the same .xml and .bin for the same seed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lxml import etree

from stepper.element_types import ELEMENT_TYPES
from stepper.operation_types import DEFINITIONS
from stepper.ops import registry

Element = etree._Element
"""What the standard library's parser would call an element too."""

NUMBERS = [
    *("0", "-1", "1", "2", "-2", "3", "5", "7", "64", "100", "1000", "65536", "100000", "1000000", "2147483647"),
    *("2147483648", "-2147483648", "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("100000000000000000000", "", " ", "abc", "1.5", "-0.0", "1e9", "1e400", "nan", "inf", " 4 ", "0x10", "١", "1,2"),
    "9" * 5000,
]
SHAPES = [
    *("", "0", "1", "3", "?", "-1", "...", "1,1", "2,0,3", "4,2", "?,?", "1..3", "5..", "..7", "8..2", "1,,2", "a"),
    *("100000", "1000000,1000000", "2147483648", "9223372036854775807,2", "3,3,3,3,3", ",".join(["1"] * 70)),
]
WORDS = ["true", "false", "numpy", "none", "explicit", "same_upper", "ceil", "max", "f32", "i64", "tanh", "?"]
SLICING = ["axis", "start", "end", "stride", "part_size"]
TYPES = [*ELEMENT_TYPES, "dynamic", "undefined", "FP32", "BOOL", "f33", ""]
OPERATIONS = [*DEFINITIONS, "Const", "Nothing"]
VALUES = [
    *(b"\xff", b"\0", b"\x7f", b"\x80", b"\1", b"\xe8\3\0\0", b"\0\0\xc0\x7f", b"\0\0\0\x10", b"\0\0\0\0\x10"),
    *(number.to_bytes(8, "little", signed=True) for number in (-1, 0, 3, 2**20, 2**28, 2**31, 2**40, 2**62, -(2**63))),
]


@dataclass(frozen=True, slots=True)
class Files:
    """What stands in the .xml and the .bin."""

    xml: bytes
    weights: bytes

    def write(self, folder: Path) -> Path:
        """Write both into the folder; the path of the .xml."""
        path = folder / "model.xml"
        path.write_bytes(self.xml)
        path.with_suffix(".bin").write_bytes(self.weights)
        return path


def mutated(files: Files, seed: int) -> tuple[Files, list[str]]:
    """The files with one to four kinds of damage, and what was done."""
    chance = random.Random(seed)
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 2, 4))):
        kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
        files = kind(chance, files)
        done.append(kind.__name__)
    return files, done


# --- the XML as a tree ------------------------------------------------------------------------------------------------


def _of_tree(change: Callable[[random.Random, Element], None]) -> Callable[[random.Random, Files], Files]:
    """Damage to the tree; where an earlier one has left no XML, nothing is done."""

    def kind(chance: random.Random, files: Files) -> Files:
        try:
            root = etree.fromstring(files.xml, etree.XMLParser(resolve_entities=False, huge_tree=True))
        except etree.XMLSyntaxError:
            return files
        try:
            change(chance, root)
        except ValueError:  # what cannot be written in XML
            return files
        return Files(etree.tostring(root), files.weights)

    kind.__name__ = change.__name__
    return kind


def _any(chance: random.Random, root: Element, *tags: str) -> Element:
    found = list(root.iter(*tags))
    return chance.choice(found) if found else root


def _with_attributes(chance: random.Random, root: Element) -> Element:
    found = [element for element in root.iter() if element.attrib]
    return chance.choice(found) if found else root


def drop_attribute(chance: random.Random, root: Element) -> None:
    element = _with_attributes(chance, root)
    if element.attrib:
        del element.attrib[chance.choice(list(element.attrib))]


def swap_attributes(chance: random.Random, root: Element) -> None:
    """Two attributes of one element exchange their values, or one takes that of another element."""
    element = _with_attributes(chance, root)
    other = chance.choice([element, _with_attributes(chance, root)])
    if element.attrib and other.attrib:
        a, b = chance.choice(list(element.attrib)), chance.choice(list(other.attrib))
        element.attrib[a], other.attrib[b] = other.attrib[b], element.attrib[a]


def copy_attribute(chance: random.Random, root: Element) -> None:
    source, target = _with_attributes(chance, root), _with_attributes(chance, root)
    for name in source.attrib:
        target.attrib[name] = source.attrib[name]


def change_number(chance: random.Random, root: Element) -> None:
    numeric = [
        (element, name)
        for element in root.iter()
        for name, value in element.attrib.items()
        if value.lstrip("-").isdecimal() or "," in value
    ]
    if numeric:
        element, name = chance.choice(numeric)
        element.attrib[name] = chance.choice(NUMBERS)


def change_dimension(chance: random.Random, root: Element) -> None:
    element = _any(chance, root, "dim")
    element.text = chance.choice(NUMBERS)


def change_shape(chance: random.Random, root: Element) -> None:
    element = chance.choice([element for element in root.iter("data") if "shape" in element.attrib] or [root])
    element.attrib["shape"] = chance.choice(SHAPES)


def change_data(chance: random.Random, root: Element) -> None:
    element = _any(chance, root, "data")
    names = [*element.attrib, "axis", "mode", "auto_broadcast"]
    element.attrib[chance.choice(names)] = chance.choice([*NUMBERS, *WORDS, *TYPES])


def change_element_type(chance: random.Random, root: Element) -> None:
    typed = [
        (element, name)
        for element in root.iter()
        for name in ("element_type", "precision", "destination_type")
        if name in element.attrib
    ]
    if typed:
        element, name = chance.choice(typed)
        element.attrib[name] = chance.choice(TYPES)


def change_operation(chance: random.Random, root: Element) -> None:
    element = _any(chance, root, "layer", "operation")
    if chance.random() < 0.7:
        inputs = len(element.findall("input/port"))
        element.attrib["type"] = chance.choice(_taking(inputs) or OPERATIONS)
        element.attrib["version"] = "opset16"
        return
    element.attrib["type"] = chance.choice(OPERATIONS)
    if chance.random() < 0.7:
        element.attrib["version"] = chance.choice(["opset16", "opset1", "opset5", "opset99", "extension", "opset0"])


@cache
def _taking(inputs: int) -> list[str]:
    """The types of operations that may have this many inputs."""
    found = []
    for type in DEFINITIONS:
        kernel = registry.find(type, 16)
        least, most = kernel.accepted_inputs() if kernel is not None else (1, 0)
        if least <= inputs and (most is None or inputs <= most):
            found.append(type)
    return found


def add_port(chance: random.Random, root: Element) -> None:
    element = _any(chance, root, "input", "output")
    port = etree.SubElement(element, "port", id=chance.choice(NUMBERS[:8]), precision="FP32")
    etree.SubElement(port, "dim").text = "1"


def remove_element(chance: random.Random, root: Element) -> None:
    element = _any(chance, root)
    if (parent := element.getparent()) is not None:
        parent.remove(element)


def duplicate_element(chance: random.Random, root: Element) -> None:
    element = _any(chance, root)
    if element.getparent() is not None:
        element.addnext(etree.fromstring(etree.tostring(element, with_tail=False)))


def move_element(chance: random.Random, root: Element) -> None:
    element, target = _any(chance, root), _any(chance, root)
    if element is not root and element not in target.iterancestors() and element is not target:
        target.insert(0, element)


def rename_element(chance: random.Random, root: Element) -> None:
    _any(chance, root).tag = _any(chance, root).tag


def rewire_edge(chance: random.Random, root: Element) -> None:
    element = _any(chance, root, "edge")
    other = _any(chance, root, "edge")
    for name in chance.sample(["from-layer", "from-port", "to-layer", "to-port"], chance.choice((1, 2))):
        if name in other.attrib:
            element.attrib[name] = other.attrib[name]


def remap_port(chance: random.Random, root: Element) -> None:
    """An entry of a port map gets other attributes: ids of other entries, slicing, a purpose."""
    entries = [element for element in root.iter("input", "output") if "external_port_id" in element.attrib]
    if not entries:
        return
    entry, other = chance.choice(entries), chance.choice(entries)
    name = chance.choice(["external_port_id", "internal_layer_id", *SLICING, "purpose"])
    if name == "purpose":
        entry.attrib[name] = chance.choice(["current_iteration", "execution_condition"])
    else:
        entry.attrib[name] = other.attrib.get(name, chance.choice(NUMBERS[:8]))


# --- bytes ------------------------------------------------------------------------------------------------------------


def flip_bytes(chance: random.Random, files: Files) -> Files:
    content = bytearray(files.xml)
    for _ in range(chance.choice((1, 1, 2, 5))):
        if content:
            other = chance.choice((chance.randrange(256), chance.choice(b'<>"&=/ 09-')))
            content[chance.randrange(len(content))] = other
    return Files(bytes(content), files.weights)


def cut_text(chance: random.Random, files: Files) -> Files:
    """A stretch of the .xml is lost, or stands there twice."""
    begin = chance.randrange(len(files.xml) + 1)
    end = min(len(files.xml), begin + chance.choice((1, 10, 100, 10_000_000)))
    twice = files.xml[begin:end] if chance.random() < 0.5 else b""
    return Files(files.xml[:begin] + twice + twice + files.xml[end:], files.weights)


def cut_weights(chance: random.Random, files: Files) -> Files:
    return Files(files.xml, files.weights[: chance.randrange(len(files.weights) + 1)])


def change_weights(chance: random.Random, files: Files) -> Files:
    content = bytearray(files.weights)
    for _ in range(chance.choice((1, 1, 3, 10))):
        if content:
            offsets = [int(offset) for offset in re.findall(rb'offset="([0-9]{1,6})"', files.xml)]
            begin = chance.choice([*offsets, chance.randrange(len(content))]) % len(content)
            value = chance.choice(VALUES)
            content[begin : begin + len(value)] = value[: len(content) - begin]
    return Files(files.xml, bytes(content))


KINDS: dict[Callable[[random.Random, Files], Files], int] = {
    flip_bytes: 3,
    cut_text: 1,
    cut_weights: 1,
    change_weights: 20,
    **dict.fromkeys(map(_of_tree, (change_operation, rewire_edge, remap_port)), 14),
    **dict.fromkeys(map(_of_tree, (change_element_type, change_data, change_shape)), 8),
    **dict.fromkeys(map(_of_tree, (drop_attribute, swap_attributes, copy_attribute, change_number)), 4),
    **dict.fromkeys(map(_of_tree, (change_dimension, add_port)), 3),
    **dict.fromkeys(map(_of_tree, (remove_element, duplicate_element, move_element, rename_element)), 2),
}
"""Every kind of damage with its weight; what leads deep into the program comes more often."""
