"""Conversions of models of other formats: made by OpenVINO once, where it runs, and kept.

A conversion is kept in the folder `.stepper` beside the model, or (where that cannot be written) in `stepper` in the
user's cache folder, under the model's name and a hash of its contents; it may be deleted at any time. A conversion
beside the model is used only if a record in the cache folder says that this user made it: a folder may come from
anywhere, with another model under that name. Nothing is compressed, and the names are those of the model, so that one
finds one's own nodes. Integer divisions of ONNX are corrected: Div truncates, what the converter writes floors.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import NoneType
from typing import Any, Final, TypeVar

import numpy as np
from lxml import etree
from msgspec import Struct

from stepper.element_types import Array
from stepper.errors import ModelError, UsageError
from stepper.files.kinds import CONVERTED, WEIGHTS_BESIDE, ensure_no_pipe
from stepper.files.own_files import is_own, note_own
from stepper.files.user_cache import user_cache
from stepper.openvino import runtime
from stepper.openvino.program import shared_worker
from stepper.openvino.runtime import Convert, FindNode, OpenVINOAct, Rewrite, Runtime, ensure_installed
from stepper.processes.messages import CONVERTING, ConversionEnded
from stepper.records import Record
from stepper.wording import excerpt, reason_of

# Looking into ONNX files that OpenVINO does not convert, and writing them so that it does; in the worker process.
#
# `find_node` says where a node is: in which branch of which If. `rewritten` puts operations that the converter has in
# the place of an STFT, which the converter takes only with all sizes fixed: a convolution with the waves of its window.
# Needs the package `onnx`.

_LARGEST_WINDOW: Final = 8192
"""Of an STFT that becomes a convolution: the filters grow with its square."""


class NodeScope(Struct, frozen=True, array_like=True):
    """A node that holds a graph, and the attribute in which it does: the `then_branch` of an If."""

    type: str
    name: str
    attribute: str


class NodeFacts(Record):
    """A node of an ONNX file: the holders of its graph from the outside in, and the nearest If that it depends on.

    `open_inputs` are the inputs of the model of which the file leaves sizes open.
    """

    type: str
    name: str
    scopes: tuple[NodeScope, ...]
    decided_by: str | None
    open_inputs: tuple[str, ...]


class Replacements(Record):
    """Nodes that were replaced, as texts; none where nothing was written."""

    nodes: tuple[str, ...]


def find_node(path: str, output: str) -> NodeFacts | None:
    """Return the node that has this name or an output of it; None where there is none, or no package to read the file.

    OpenVINO calls a node by its name, or by its first output.
    """
    try:
        import onnx

        model = onnx.load(path, load_external_data=False)
    except Exception:  # no package, or what the package cannot read: then there is nothing to be told
        return None
    for scopes, graphs, node in _nodes(model.graph):
        if output == node.name or output in node.output:
            open_inputs = tuple(
                one.name
                for one in model.graph.input
                if any(not size.HasField("dim_value") or size.dim_value <= 0 for size in one.type.tensor_type.shape.dim)
            )
            return NodeFacts(node.op_type, node.name or output, scopes, _decided_by(graphs, node), open_inputs)
    return None


def _nodes(
    graph: Any, scopes: tuple[NodeScope, ...] = (), graphs: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[NodeScope, ...], tuple[Any, ...], Any]]:
    """Yield all nodes at every depth, with the holders and the graphs around each, from the outside in."""
    graphs = (*graphs, graph)
    for node in graph.node:
        yield scopes, graphs, node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                holder = NodeScope(node.op_type, node.name, attribute.name)
                yield from _nodes(attribute.g, (*scopes, holder), graphs)


def _decided_by(graphs: Sequence[Any], node: Any) -> str | None:
    """Return the name of the nearest If that a node gets its inputs from; None where there is none."""
    makers = {output: one for graph in graphs for one in graph.node for output in one.output}
    waiting, seen = list(node.input), set(node.input)
    for name in waiting:  # which grows: the nearest come first
        maker = makers.get(name)
        if maker is None:
            continue
        if maker.op_type == "If":
            return str(maker.name or name)
        waiting.extend(one for one in maker.input if one not in seen)
        seen.update(maker.input)
    return None


# --- writing a file anew ----------------------------------------------------------------------------------------------


def rewritten(source: str, target: str) -> Replacements:
    """Write the model with other operations in the place of those that OpenVINO lacks; nothing where it has none."""
    try:
        import onnx

        model = onnx.load(source)
    except Exception:  # as in find_node
        return Replacements(())
    if not any(node.op_type == "STFT" for node in model.graph.node):
        return Replacements(())
    facts = _TensorFacts(onnx.shape_inference.infer_shapes(model, data_prop=True).graph)
    replaced, nodes = [], []
    for node in model.graph.node:
        found = _by_convolution(node, facts) if node.op_type == "STFT" else None
        if found is not None:
            replaced.append(f"{node.op_type} '{node.name or node.output[0]}'")
        nodes.extend([node] if found is None else found)
    if replaced:
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        onnx.save(model, target)
    return Replacements(tuple(replaced))


class _TensorFacts:
    """Facts of the tensors of a graph: constants, element types and sizes, as far as the file tells them."""

    def __init__(self, graph: Any) -> None:
        self.constants = dict(_constants(graph))
        declared = (*graph.input, *graph.output, *graph.value_info)
        self._types = {one.name: one.type.tensor_type for one in declared}

    def element_type(self, name: str) -> int | None:
        """Return ONNX's number of the element type."""
        return self._types[name].elem_type if name in self._types else None

    def sizes(self, name: str) -> list[int] | None:
        """Return the sizes, 0 for one that is open; None where not even their number is known."""
        if name in self.constants:
            return list(self.constants[name].shape)
        if name not in self._types or not self._types[name].HasField("shape"):
            return None
        return [size.dim_value for size in self._types[name].shape.dim]


def _constants(graph: Any) -> Iterator[tuple[str, Array]]:
    from onnx import numpy_helper

    for one in graph.initializer:
        yield one.name, numpy_helper.to_array(one)
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            yield node.output[0], numpy_helper.to_array(node.attribute[0].t)


def _made(type: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    from onnx import helper

    return helper.make_node(type, inputs, [output], name=output, **attributes)


def _constant(name: str, array: Array) -> Any:
    from onnx import helper, numpy_helper

    return helper.make_node("Constant", [], [name], name=name, value=numpy_helper.from_array(array, name))


def _by_convolution(node: Any, facts: _TensorFacts) -> list[Any] | None:
    """Return an STFT as a convolution; None where step, window or length are computed, or the window is large.

    Filter 2k is the window times the cosine of frequency k, filter 2k + 1 minus its sine: the real and the imaginary
    part. The signal is [batch, length] or [batch, length, 1]; one with an imaginary part has no such form here.
    """
    from onnx import TensorProto

    signal, *rest = list(node.input) + [""] * (4 - len(node.input))
    step, window, length = (facts.constants.get(name) for name in rest)
    sizes = facts.sizes(signal)
    is_real = sizes is not None and (len(sizes) == 2 or (len(sizes) == 3 and sizes[2] == 1))
    if not is_real or facts.element_type(signal) != TensorProto.FLOAT or step is None:
        return None
    if any(name and array is None for name, array in zip(rest, (step, window, length), strict=True)):
        return None
    size = int(length) if length is not None else 0 if window is None else len(window)
    if not 0 < size <= _LARGEST_WINDOW or (window is not None and len(window) != size):
        return None
    is_onesided = next((one.i for one in node.attribute if one.name == "onesided"), 1)
    bins = size // 2 + 1 if is_onesided else size
    angles = 2 * np.pi * (np.outer(np.arange(bins), np.arange(size)) % size) / size
    weights = np.ones(size) if window is None else np.asarray(window, np.float64)
    filters = np.stack([np.cos(angles), -np.sin(angles)], axis=1) * weights
    name = node.output[0]
    return [
        _constant(f"{name}/filters", filters.reshape(2 * bins, 1, size).astype(np.float32)),
        _constant(f"{name}/row", np.array([0, 1, -1])),
        _constant(f"{name}/pairs", np.array([0, 0, bins, 2])),
        _made("Reshape", [signal, f"{name}/row"], f"{name}/signal"),
        _made("Conv", [f"{name}/signal", f"{name}/filters"], f"{name}/waves", strides=[int(step)], kernel_shape=[size]),
        _made("Transpose", [f"{name}/waves"], f"{name}/frames", perm=[0, 2, 1]),
        _made("Reshape", [f"{name}/frames", f"{name}/pairs"], name),
    ]


T = TypeVar("T")

FOLDER: Final = ".stepper"
_TFLITE: Final = b"TFL3"

_REVISION: Final = b"2"
"""Of what is done to a conversion after the converter; one that was kept by an earlier revision is made anew."""


def converted(
    path: Path,
    told: Callable[[str], None] | None = None,
    timeout: float | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Path:
    """Return the .xml into which OpenVINO converts a model: the one that is kept, or a new one.

    Only where the model is refused as it is, its inputs have the shapes that are given; that is another conversion.
    """
    name = f"{path.stem[:80]}-{_content_hash(path)}"
    given = {key: tuple(shape) for key, shape in sorted((shapes or {}).items())}
    fixed = f"{name}-{hashlib.blake2b(repr(given).encode(), digest_size=4).hexdigest()}" if given else name
    places = [path.parent / FOLDER, user_cache()]
    if (kept := _kept(places, (name, fixed))) is not None:
        return kept
    ensure_installed(f"{path}: opening a model of {CONVERTED[path.suffix.lower()]}")
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            temporary = tempfile.TemporaryDirectory(dir=place, prefix=f".{name[:40]}.")
        except OSError:
            continue
        with temporary as folder:
            target = Path(folder).resolve() / "model.xml"
            try:
                replaced = _convert(path, target, timeout, {})
            except ModelError:
                if not given:
                    raise
                replaced, name = _convert(path, target, timeout, given), fixed
            if path.suffix.lower() == ".onnx":
                truncate_divisions(Path(folder) / "model.xml")
            for suffix in (".bin", ".xml"):  # the .xml last: where it stands, all is there
                (Path(folder) / f"model{suffix}").replace(place / f"{name}{suffix}")
            note_own(place / f"{name}.xml", place / f"{name}.bin")
        if told is not None:
            also = f"; {', '.join(replaced)} as a convolution" if replaced else ""
            told(f"converted {path} with OpenVINO, kept as {place / name}.xml{also}")
        return place / f"{name}.xml"
    raise UsageError(f"{path}: its conversion can be written neither to {places[0]} nor to {places[1]}")


def _kept(places: Sequence[Path], names: Sequence[str]) -> Path | None:
    """Return the first conversion that is there whole, by these names in turn."""
    candidates = (place / f"{name}.xml" for name in names for place in places)
    return next((path for path in candidates if _is_own(path)), None)


def _is_own(path: Path) -> bool:
    """True if a conversion is there whole, and is the one that was made here."""
    weights = path.with_suffix(".bin")
    return path.is_file() and weights.is_file() and (path.parent == user_cache() or is_own(path, weights))


def _convert(path: Path, target: Path, timeout: float | None, shapes: dict[str, tuple[int, ...]]) -> tuple[str, ...]:
    """Let OpenVINO write the model as an IR, in a process of its own; return the nodes that were replaced before.

    ModelError where it cannot or crashes.
    """
    if path.suffix.lower() == ".tflite":
        with path.open("rb") as file:
            if (
                file.read(8)[4:] != _TFLITE
            ):  # else each of OpenVINO's readers would say on stderr that it is not its own
                raise ModelError(
                    f"{path}: is not a {CONVERTED['.tflite']} model: its bytes 4 to 7 are not {_TFLITE.decode()}"
                )
    # The parts of a saved model of TensorFlow are found by their folder.
    source = (path.parent if path.name == "saved_model.pb" else path).resolve()
    folder, limits = str(target.parent), Runtime(timeout=timeout).limits

    def ask_for(facts: type[T], act: OpenVINOAct) -> T:
        return shared_worker().ask_for(facts, act, subject=f"{path}", limits=limits)[0]

    is_onnx = path.suffix.lower() == ".onnx"
    try:
        try:
            ask_for(NoneType, Convert(str(source), str(target), folder, shapes))
            return ()
        except RuntimeError:
            other = target.with_name("rewritten.onnx")
            replaced = ask_for(Replacements, Rewrite(str(source), str(other), folder)).nodes if is_onnx else ()
            if not replaced:
                raise
            ask_for(NoneType, Convert(str(other), str(target), folder, shapes))
            return replaced
    except RuntimeError as error:
        find = partial(_node, ask_for, str(source)) if is_onnx else None
        raise ModelError(f"{path}: {conversion_complaint(error, find, are_fixed=bool(shapes))}") from None
    except ConversionEnded as error:
        advice = "convert it where it was made (openvino.convert_model, openvino.save_model), and open the .xml"
        raise ConversionEnded(f"{error}; {advice}") from None


def _node(ask_for: Callable[..., Any], path: str, output: str) -> NodeFacts | None:
    found: NodeFacts | None = ask_for(NodeFacts | None, FindNode(path, output))
    return found


def _content_hash(path: Path) -> str:
    """Return a hash of the file, and of name, size and time of those beside it that may hold its weights.

    The contents of these may be large, so that size and time must do.
    """
    try:
        ensure_no_pipe(path)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=12, salt=_REVISION))
        for other in sorted(_weights_beside(path)):
            status = other.stat()
            digest.update(f"{other.name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    except OSError as error:
        raise ModelError(f"{excerpt(str(path))}: cannot be read: {reason_of(path, error)}") from None
    return digest.hexdigest()


def _weights_beside(path: Path) -> Iterator[Path]:
    yield from (other for other in path.parent.iterdir() if other.suffix.lower() in WEIGHTS_BESIDE and other.is_file())
    if path.name == "saved_model.pb" and (variables := path.parent / "variables").is_dir():
        yield from (other for other in variables.iterdir() if other.is_file())


_UNKNOWN: Final = re.compile(r"No conversion rule found for operations: (.+)")
_FAILED: Final = re.compile(r"Conversion is failed for: (.+)")
_NODE: Final = re.compile(r"<Node\(([^)]*)\): ([^>]*)>")
_MESSAGE: Final = re.compile(r"(?m)^-- \S+ with a message:$")
_FOLLOWS: Final = "Unsupported input type dynamic"
_OF_SHAPE: Final = re.compile(r"\b(rank|shape|static)\b", re.IGNORECASE)
_CORRECT: Final = "correct that operation in the model, or convert it where it was made and open the .xml"
_DETAILS: Final = re.compile(r"(?s)\n(?:\s*\n)?Summary:.*")
_FRAME: Final = ("Exception", "Check '", "FrontEnd API", "Model wasn't", "While validating", "-- ")
_LONGEST_NAMES: Final = 120
_LONGEST_REASON: Final = 160


def convert(source: str, target: str, shapes: Mapping[str, Sequence[int]]) -> None:
    """Read the model and write it as an IR, nothing compressed. RuntimeError with OpenVINO's words.

    Inputs have the shapes that are given before anything is converted, since operations may need to know them.
    """
    import openvino

    core = openvino.Core()
    runtime.announce(CONVERTING)
    # The same front ends as openvino.convert_model has, which would tell its makers of each use.
    model = _of_shapes(source, shapes) if shapes else core.read_model(source)
    openvino.save_model(model, target, compress_to_fp16=False)


def _of_shapes(source: str, shapes: Mapping[str, Sequence[int]]) -> Any:
    import openvino

    front = openvino.frontend.FrontEndManager().load_by_model(source)
    loaded = front.load(source)
    places = {name: place for place in loaded.get_inputs() for name in place.get_names()}
    if unknown := [name for name in shapes if name not in places]:
        raise RuntimeError(f"it has no input '{unknown[0]}', for which a shape is given; there are {', '.join(places)}")
    for name, shape in shapes.items():
        loaded.set_partial_shape(places[name], openvino.PartialShape(list(shape)))
    try:
        return front.convert(loaded)
    except Exception as error:  # of classes of its own
        raise RuntimeError(str(error)) from None


def conversion_complaint(
    error: BaseException, find: Callable[[str], NodeFacts | None] | None = None, *, are_fixed: bool = False
) -> str:
    """Return why a model is not converted, and what can be done, from an exception of OpenVINO's converter.

    `find` finds a node of an ONNX file by the name that OpenVINO gives it; `are_fixed`: shapes of inputs were given.
    """
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
    lines = (line.strip() for line in _DETAILS.sub("", message).splitlines())
    said = [line for line in lines if line and not line.startswith(_FRAME)]
    node, why = (
        _NODE.search(message),
        (excerpt(said[-1].rstrip("."), _LONGEST_REASON) if said else "it gives no reason"),
    )
    if node is None:
        return f"OpenVINO cannot convert {excerpt(failed[1].strip(), _LONGEST_NAMES)}: {why}; {_CORRECT}"
    facts = None if find is None else find(node[2])
    if facts is None:
        hint = (
            "" if find is None or find_spec("onnx") else "; with `pip install onnx` it is said in which branch that is"
        )
        return f"OpenVINO cannot convert {node[1]} '{excerpt(node[2])}': {why}; {_CORRECT}{hint}"
    where = "".join(f" in {one.attribute} of {one.type} '{excerpt(one.name)}'" for one in reversed(facts.scopes))
    which = f"{facts.type} '{excerpt(facts.name)}'{where}"
    if are_fixed or _OF_SHAPE.search(why) is None or not facts.open_inputs:
        return f"OpenVINO cannot convert {which}: {why}; {_CORRECT}"
    decided = "" if facts.decided_by is None else f" (it comes from If '{excerpt(facts.decided_by)}')"
    sizes = " ".join(f"--shape '{excerpt(name)}=...'" for name in facts.open_inputs)
    return (
        f"OpenVINO cannot convert {which}: {why}{decided}; give the inputs the sizes that the file leaves open, as "
        f"`stepper run` takes them ({sizes}; in Python: open_model with shapes)"
    )


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
