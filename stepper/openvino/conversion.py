"""Convert models of other formats with OpenVINO, once, where it runs, and keep the result.

The folder `.stepper` beside the model holds the conversion, or `stepper` in the user's cache folder if the first is
read-only. Its name is the model's name and a hash of its contents; users may delete it at any time. stepper uses a
conversion beside the model only if a record in the cache folder says that this user made it. The reason is that a
folder may come from anywhere, with another model under that name. The conversion compresses nothing and keeps the
names of the model, so that users find their own nodes: a layer that the converter named after an output gets the
name of its node. The conversion corrects integer divisions of ONNX: Div truncates, but the converter's layers floor.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from lxml import etree

from stepper.element_types import Array, Shape
from stepper.engine.array_files import StoredArray
from stepper.errors import ModelError, UsageError
from stepper.files.file_kinds import CONVERTED, WEIGHTS_BESIDE, ensure_no_pipe
from stepper.files.own_files import is_own, note_own, user_cache
from stepper.files.recognition import ensure_model
from stepper.openvino import runtime
from stepper.openvino.ignored import ignored_parts
from stepper.openvino.onnx_file import OnnxFile, OnnxNode, read_onnx
from stepper.openvino.onnx_rewriting import OtherReader, Replacements
from stepper.openvino.program import shared_worker
from stepper.openvino.refusals import Refusal, conversion_complaint, file_fault, flex_fault, refused_types
from stepper.openvino.runtime import AskOtherReader, Convert, OpenVINOAct, Rewrite, Runtime, ensure_installed
from stepper.processes.process_messages import CONVERTING, ConversionEnded
from stepper.processes.worker import Limits
from stepper.records import Record
from stepper.wording import excerpt, reason_of

T = TypeVar("T")

FOLDER = ".stepper"

_REVISION = b"3"
"""Revision of the corrections after the converter; older conversions are redone."""


def converted(
    path: Path,
    told: Callable[[str], None] | None = None,
    timeout: float | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    inputs: Mapping[str, Array | StoredArray] | None = None,
) -> Path:
    """Return the .xml into which OpenVINO converts a model: a kept conversion, or a new one.

    If OpenVINO refuses the model, it is converted again with fixed inputs. The given shapes, or the shapes of given
    arrays, fix the inputs, and the values of small arrays fix branches. This gives another conversion.
    """
    name = f"{path.stem[:80]}-{_content_hash(path)}"
    given = KnownInputs.of(shapes or {}, inputs or {})
    fixed = name if given == _NOTHING_GIVEN else f"{name}-{given.digest}"
    places = [path.parent / FOLDER, user_cache()]
    if (kept := _kept(places, (name, fixed))) is not None:
        return kept
    ensure_model(path)
    ensure_installed(f"{path}: opening a model of {CONVERTED[path.suffix.lower()]}")
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            temporary = tempfile.TemporaryDirectory(dir=place, prefix=f".{name[:40]}.")
        except OSError:
            continue
        with temporary as folder:
            target = Path(folder).resolve() / "model.xml"
            notes, is_fixed = _convert(path, target, timeout, given)
            if path.suffix.lower() == ".onnx":
                stands = read_onnx(path)
                correct(Path(folder) / "model.xml", stands)
                ignored = () if stands is None else ignored_parts(stands)
                notes = (*notes, *(f"OpenVINO ignores {one.part} of {one.node}" for one in ignored))
            name = fixed if is_fixed else name
            for suffix in (".bin", ".xml"):  # the .xml last: where it stands, all is there
                (Path(folder) / f"model{suffix}").replace(place / f"{name}{suffix}")
            note_own(place / f"{name}.xml", place / f"{name}.bin")
        if told is not None:
            also = "".join(f"; {one}" for one in notes)
            told(f"converted {path} with OpenVINO, kept as {place / name}.xml{also}")
        return place / f"{name}.xml"
    raise UsageError(f"{path}: its conversion can be written neither to {places[0]} nor to {places[1]}")


class KnownInputs(Record):
    """Hold facts about inputs for a model that is refused without them.

    The facts are shapes that a user gives, shapes of given arrays, and the values of small arrays.
    """

    shapes: dict[str, Shape]
    of_arrays: dict[str, Shape]
    values: dict[str, Array]

    @classmethod
    def of(cls, shapes: Mapping[str, Sequence[int]], arrays: Mapping[str, Array | StoredArray]) -> KnownInputs:
        """Return what is known by shapes and arrays that are given."""
        small = {
            name: np.asarray(one)
            for name, one in sorted(arrays.items())
            if one.dtype.kind in "biu" and math.prod(one.shape) <= _MOST_ELEMENTS
        }
        of_arrays = {name: tuple(one.shape) for name, one in sorted(arrays.items()) if name not in shapes}
        return cls({name: tuple(shape) for name, shape in sorted(shapes.items())}, of_arrays, small)

    @property
    def digest(self) -> str:
        """A text that tells conversions with others from this one."""
        values = {name: one.tolist() for name, one in self.values.items()}
        known = repr((self.shapes, self.of_arrays, values))
        return hashlib.blake2b(known.encode(), digest_size=4).hexdigest()

    def among(self, names: Collection[str]) -> KnownInputs:
        """Return what is known of inputs with these names, besides the shapes that a user gives."""
        shapes = self.shapes | {name: shape for name, shape in self.of_arrays.items() if name in names}
        return KnownInputs(shapes, {}, {name: one for name, one in self.values.items() if name in names})


_NOTHING_GIVEN = KnownInputs({}, {}, {})
_MOST_ELEMENTS = 64
"""Maximum size of an input whose value may decide the branch that a model takes."""


def _kept(places: Sequence[Path], names: Sequence[str]) -> Path | None:
    """Return the first conversion that is there whole, by these names in turn."""
    candidates = (place / f"{name}.xml" for name in names for place in places)
    return next((path for path in candidates if _is_own(path)), None)


def _is_own(path: Path) -> bool:
    """True if a conversion is there whole, and is the one that was made here."""
    weights = path.with_suffix(".bin")
    return path.is_file() and weights.is_file() and (path.parent == user_cache() or is_own(path, weights))


def _convert(path: Path, target: Path, timeout: float | None, given: KnownInputs) -> tuple[tuple[str, ...], bool]:
    """Let OpenVINO write the model as an IR, in a process of its own; return what was replaced before, and whether the
    model has what is given fixed.

    ModelError where it cannot or crashes.
    """
    # The parts of a saved model of TensorFlow are found by their folder.
    source = (path.parent if path.name == "saved_model.pb" else path).resolve()
    asks = _Asks(f"{path}", Runtime(timeout=timeout).limits)
    stands: OnnxFile | None = None
    try:
        try:
            return _tried(source, target, _NOTHING_GIVEN, asks), False
        except RuntimeError:
            stands = read_onnx(path) if path.suffix.lower() == ".onnx" else None
            given = given.among(() if stands is None else stands.graph.inputs)
            if given == _NOTHING_GIVEN:
                raise
            return _tried(source, target, given, asks), True
    except RuntimeError as error:
        raise ModelError(f"{path}: {_refusal(path, stands, error, asks, are_fixed=bool(given.shapes))}") from None
    except ConversionEnded as error:
        advice = "convert it where it was made (openvino.convert_model, openvino.save_model), and open the .xml"
        raise ConversionEnded(f"{error}; {advice}") from None


class _Asks(NamedTuple):
    """Questions to OpenVINO's process about one file."""

    subject: str
    limits: Limits

    def __call__(self, facts: type[T], act: OpenVINOAct, arrays: Sequence[Array] = ()) -> T:
        return shared_worker().ask_for(facts, act, arrays, subject=self.subject, limits=self.limits)[0]


_MOST_REWRITES = 4
"""Maximum number of rewrites; a rewrite may add operations that are refused in turn."""


def _tried(source: Path, target: Path, given: KnownInputs, ask: _Asks) -> tuple[str, ...]:
    """Convert a model, or else what it is rewritten to; return what was replaced."""
    folder, now = str(target.parent), source
    replaced: list[str] = []
    for attempt in range(_MOST_REWRITES + 1):
        try:
            ask(NoneType, Convert(str(now), str(target), folder, given.shapes))
            break
        except RuntimeError as error:
            if source.suffix.lower() != ".onnx" or attempt == _MOST_REWRITES:
                raise
            other = target.with_name(f"rewritten{attempt}.onnx")
            types = refused_types(error)
            rewrite = Rewrite(str(now), str(other), folder, given.shapes, tuple(given.values), types)
            nodes = ask(Replacements, rewrite, tuple(given.values.values())).nodes
            if not nodes:
                raise
            replaced += nodes
            now = other
    return tuple(replaced)


def _refusal(path: Path, stands: OnnxFile | None, error: RuntimeError, ask: _Asks, *, are_fixed: bool) -> str:
    """Return why a model is not converted, with facts from its ONNX file."""
    if path.suffix.lower() == ".tflite" and (fault := flex_fault(path)) is not None:
        return fault
    if stands is None:
        return conversion_complaint(error)
    if (fault := file_fault(path, stands)) is not None:
        return fault
    other: OtherReader | None = ask(OtherReader | None, AskOtherReader(str(path.resolve())))  # type: ignore[arg-type]
    return conversion_complaint(error, Refusal(stands, other, are_fixed))


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


def correct(path: Path, file: OnnxFile | None = None) -> None:
    """Correct the converted model at `path`: integer divisions and layer names.

    Integer divisions round towards zero, as ONNX's Div does. Layers that the converter named after an output get the
    names of the nodes of the ONNX file. A BitShift to the right becomes a division by a Power; this division must round
    down and stays unchanged.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    tree = etree.parse(path, parser)
    nodes = {} if file is None else _named_nodes(file)
    changed = False
    for layers in tree.iter("layers"):
        changes = [(data, "m_pythondiv", "false") for data in _divisions(layers)]
        changes += [(layer, "name", name) for layer, name in _node_names(layers, nodes)]
        for element, attribute, value in changes:
            element.set(attribute, value)
        changed |= bool(changes)
    if changed:
        tree.write(path, xml_declaration=True, encoding="utf-8")


def _named_nodes(file: OnnxFile) -> dict[str, OnnxNode]:
    """Return the nodes with a name by their outputs; not those of outputs that several graphs have."""
    found: dict[str, OnnxNode] = {}
    several: set[str] = set()
    for one in file.nodes():
        for output in one.node.outputs:
            if found.setdefault(output, one.node).name != one.node.name:
                several.add(output)
    return {name: node for name, node in found.items() if node.name and name not in several}


_VALUES = ("Parameter", "Result", "Const")
_RECURRENT = ("LSTM", "GRU", "RNN")
_MOST_BEHIND = 6
"""Operations that the converter puts behind a recurrent sequence, which bring its outputs into ONNX's form."""


def _node_names(layers: etree._Element, nodes: Mapping[str, OnnxNode]) -> Iterator[tuple[etree._Element, str]]:
    """Yield layers of one graph that the converter called by an output of a node, with the name of the node."""
    by_id = {layer.get("id"): layer for layer in layers.iterchildren("layer")}
    names = {layer.get("name") for layer in by_id.values()}
    found: dict[str, dict[str | None, etree._Element]] = {}
    for layer in by_id.values():
        node = nodes.get(layer.get("name", ""))
        if node is None or node.name in names or layer.get("type") in _VALUES:
            continue
        source = _sequence_behind(layers, layer, by_id, node.type) if node.type in _RECURRENT else layer
        found.setdefault(node.name, {})[source.get("id")] = source
    for name, candidates in found.items():
        if len(candidates) == 1:
            yield next(iter(candidates.values())), name


def _sequence_behind(
    layers: etree._Element, layer: etree._Element, by_id: Mapping[str | None, etree._Element], type: str
) -> etree._Element:
    """Return the sequence whose output a layer passes on; the layer itself if there is none."""
    edges = layers.getnext()
    first = {} if edges is None else {
        edge.get("to-layer"): edge.get("from-layer")
        for edge in edges.iterchildren("edge")
        if edge.get("to-port") == "0"
    }  # fmt: skip
    source: etree._Element | None = layer
    for _ in range(_MOST_BEHIND):
        if source is None or source.get("type") == f"{type}Sequence":
            break
        source = by_id.get(first.get(source.get("id")))
    return layer if source is None or source.get("type") != f"{type}Sequence" else source


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
