"""Why OpenVINO does not convert a model, in words: what is wrong with the file, or what the converter cannot do."""

from __future__ import annotations

import mmap
import re
import stat
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import NamedTuple

from stepper.files.recognition import pointer_text
from stepper.openvino import runtime
from stepper.openvino.onnx_file import OnnxFile, OnnxGraph, OnnxNode, OnnxTensor, PlacedNode
from stepper.openvino.onnx_rewriting import OtherReader
from stepper.wording import excerpt

_UNKNOWN = re.compile(r"No conversion rule found for operations: (.+)")
_FAILED = re.compile(r"Conversion is failed for: (.+)")
_NODE = re.compile(r"<Node\(([^)]*)\): ([^>]*)>")
_MESSAGE = re.compile(r"(?m)^-- \S+ with a message:$")
_FOLLOWS = "Unsupported input type dynamic"
_OF_SHAPE = re.compile(r"\b(rank|shape|static)\b", re.IGNORECASE)
_CORRECT = "correct that operation in the model, or convert it where it was made and open the .xml"
_DETAILS = re.compile(r"(?s)\n(?:\s*\n)?Summary:.*")
_FRAME = ("Exception", "Check '", "FrontEnd API", "Model wasn't", "While validating", "-- ")
_BEHIND = re.compile(r"^While validating ONNX node '<.*?>': (?!Check ')(.+)")
_PUT = "put other operations in its place, or convert it where it was made and open the .xml"
_WITHOUT_PACKAGE = "; with `pip install onnxruntime` the message says if the model is wrong"
_MOST_FLEX = 10_000
_LONGEST_NAMES = 120
_LONGEST_REASON = 160


def refused_types(error: BaseException) -> tuple[str, ...]:
    """Return the types of ONNX's own operations that a converter's message says it refuses."""
    found = [match[1] for match in (_UNKNOWN.search(str(error)), _FAILED.search(str(error))) if match is not None]
    words = (re.fullmatch(r"(\w{1,60})(?:-\d+)?", word.strip()) for text in found for word in text.split(","))
    return tuple(dict.fromkeys(word[1] for word in words if word is not None))


def file_fault(path: Path, file: OnnxFile) -> str | None:
    """Return what is wrong with an ONNX file by what stands in it, and which types of it OpenVINO lacks; None where
    nothing is seen.
    """
    return next(chain(_without_weights(path, file), _unknown_names(file), _unread_types(file)), None)


_FLEX = re.compile(rb"Flex[A-Z][A-Za-z0-9]{1,60}")


def flex_fault(path: Path) -> str | None:
    """Return which operations of TensorFlow itself a TensorFlow Lite file has; None where it has none."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        names = sorted({one[0].decode() for one in islice(_FLEX.finditer(content), _MOST_FLEX)})
    if not names:
        return None
    return (
        f"has operations of TensorFlow itself ({excerpt(', '.join(names), _LONGEST_NAMES)}), which OpenVINO does not "
        "read in TensorFlow Lite: open the SavedModel, or convert without SELECT_TF_OPS (a fixed batch size, or "
        "unroll=True)"
    )


def _tensors(file: OnnxFile) -> Iterator[tuple[OnnxTensor, PlacedNode | None]]:
    """Yield the tensors of a file, each with the node that has it, or of an initializer the node that reads it."""
    placed = list(file.nodes())
    readers = {name: one for one in reversed(placed) for name in one.node.inputs}
    graphs = [file.graph, *(graph for one in placed for graph in one.node.graphs.values())]
    yield from ((tensor, readers.get(tensor.name)) for graph in graphs for tensor in graph.initializers)
    yield from ((tensor, one) for one in placed for tensor in one.node.tensors)


def _without_weights(path: Path, file: OnnxFile) -> Iterator[str]:
    for tensor, _reader in _tensors(file):
        if not tensor.location:
            continue
        named, end = f"initializer '{excerpt(tensor.name)}'", tensor.offset + (tensor.length or 0)
        there = excerpt(tensor.location)
        place = PurePath(tensor.location)
        if place.is_absolute() or ".." in place.parts:
            yield f"its weights are in {there}, outside of its folder ({named}): save them beside it"
            continue
        beside = path.parent / place
        try:
            found = beside.stat()
            if not stat.S_ISREG(found.st_mode):
                raise ValueError("no file")
            with beside.open("rb") as opened:
                pointer, size = pointer_text(beside, opened.read(1024)), found.st_size
        except (OSError, ValueError):
            yield f"its weights are in {there}, which is not beside it ({named}): copy both files into one folder"
            continue
        if pointer or end > size:
            short = f"{beside} has {size:,} bytes, and {named} ends at byte {end:,}: it is cut off; copy it again"
            yield pointer or short


def _unknown_names(file: OnnxFile) -> Iterator[str]:
    """Yield what a node reads that neither its graph nor one around it gives."""
    known = {id(graph): _given(graph) for one in file.nodes() for graph in one.graphs}
    for one in file.nodes():
        for name in one.node.inputs:
            if name and not any(name in known[id(graph)] for graph in one.graphs):
                yield f"{placed_text(one)} reads '{excerpt(name)}', which no operation, input or initializer gives"


def _given(graph: OnnxGraph) -> frozenset[str]:
    made = (name for node in graph.nodes for name in node.outputs)
    return frozenset((*made, *graph.inputs, *(tensor.name for tensor in graph.initializers)))


_UNREAD = ("complex64", "complex128", "float8e4m3fnuz", "float8e5m2fnuz", "uint2", "int2")


def _unread_types(file: OnnxFile) -> Iterator[str]:
    for tensor, reader in _tensors(file):
        if tensor.type_name in _UNREAD:
            read = "" if reader is None else f" (read by {placed_text(reader)})"
            named = f"initializer '{excerpt(tensor.name)}'" if tensor.name else "a Constant"
            yield f"{named} is of type {tensor.type_name}{read}, which OpenVINO does not have: store it in another type"


def placed_text(one: PlacedNode) -> str:
    """Return a node with where it is: `Conv 'front' in then_branch of If 'rate'`."""
    where = "".join(f" in {scope.attribute} of {scope.type} '{excerpt(scope.name)}'" for scope in reversed(one.scopes))
    return f"{one.node.type} '{excerpt(one.node.title)}'{where}"


def found_node(file: OnnxFile, name: str) -> PlacedNode | None:
    """Return the node that has this name or an output of it; OpenVINO calls a node by either."""
    return next((one for one in file.nodes() if name == one.node.name or name in one.node.outputs), None)


def deciding_if(one: PlacedNode) -> str | None:
    """Return the name of the nearest If that a node gets its inputs from; None where there is none."""
    makers: dict[str, OnnxNode] = {
        output: node for graph in one.graphs for node in graph.nodes for output in node.outputs
    }
    waiting, seen = list(one.node.inputs), set(one.node.inputs)
    for name in waiting:  # which grows: the nearest come first
        maker = makers.get(name)
        if maker is None:
            continue
        if maker.type == "If":
            return maker.name or name
        waiting.extend(one for one in maker.inputs if one not in seen)
        seen.update(maker.inputs)
    return None


class Refusal(NamedTuple):
    """Facts about a file that is not converted: what stands in it, and what another reader of ONNX says."""

    file: OnnxFile | None = None
    other: OtherReader | None = None
    are_fixed: bool = False

    @property
    def advice(self) -> str:
        """Advice about an operation that is not converted."""
        other = self.other
        if other is None:
            hint = "" if self.file is None or find_spec("onnx") else _WITHOUT_PACKAGE
            return f"{_CORRECT}{hint}"
        if other.complaint is None:
            return f"{other.name} opens the model: this is most likely a limit of OpenVINO's converter; {_PUT}"
        return (
            f"{other.name} refuses it too ({excerpt(' '.join(other.complaint.split()), _LONGEST_REASON)}); {_CORRECT}"
        )


_NOTHING_KNOWN = Refusal()


def conversion_complaint(error: BaseException, known: Refusal = _NOTHING_KNOWN) -> str:
    """Return why a model is not converted, and what can be done, from an exception of OpenVINO's converter."""
    text = str(error)
    if "Unable to read the model" in text:
        return "is not a model that OpenVINO can read: the file is damaged, or of another format than its suffix says"
    without_rule, failed = _UNKNOWN.search(text), _FAILED.search(text)
    if without_rule is None and failed is None:
        return f"OpenVINO cannot convert it: {runtime.complaint(error)}"
    if without_rule is not None:
        names = excerpt(without_rule[1].strip(), _LONGEST_NAMES)
        return (
            f"OpenVINO cannot convert it: it has no rule for {names}; put other operations in their place before, or "
            "convert it with an extension that has them (openvino.convert_model) and open the .xml"
        )
    assert failed is not None
    begins = [match.end() for match in _MESSAGE.finditer(text)]
    messages = [text[begin:end] for begin, end in zip(begins, [*begins[1:], len(text)], strict=True)] or [text]
    message = next((message for message in messages if _FOLLOWS not in message), messages[0])
    node, why = _NODE.search(message), _reason(message)
    if node is None:
        return f"OpenVINO cannot convert {excerpt(failed[1].strip(), _LONGEST_NAMES)}: {why}; {known.advice}"
    one = None if known.file is None else found_node(known.file, node[2])
    if one is None or known.file is None:
        return f"OpenVINO cannot convert {node[1]} '{excerpt(node[2])}': {why}; {known.advice}"
    which = placed_text(one)
    why = why.removeprefix(f"{node[2]} ")  # some reasons begin with the name of an output
    open_inputs = [name for name, is_open in known.file.graph.inputs.items() if is_open]
    if known.are_fixed or _OF_SHAPE.search(why) is None or not open_inputs:
        return f"OpenVINO cannot convert {which}: {why}; {known.advice}"
    decided = "" if (conditional := deciding_if(one)) is None else f" (it comes from If '{excerpt(conditional)}')"
    sizes = " ".join(f"--shape '{excerpt(name)}=...'" for name in open_inputs)
    return (
        f"OpenVINO cannot convert {which}: {why}{decided}; give the inputs, or the sizes that the file leaves open, "
        f"as `stepper run` takes them ({sizes}; in Python: open_model with shapes)"
    )


def _reason(message: str) -> str:
    """Return the last sentence that OpenVINO says of an operation; it may stand behind the place in its sources."""
    lines = [line.strip() for line in _DETAILS.sub("", message).splitlines()]
    said = [line for line in lines if line and not line.startswith(_FRAME)]
    behind = [end[1] for line in lines if (end := _BEHIND.search(line))]
    found = next((one for one in (*reversed(said), *reversed(behind)) if one), "it gives no reason")
    return excerpt(found.rstrip("."), _LONGEST_REASON)
