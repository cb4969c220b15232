"""What we and the process that runs OpenVINO say to each other: typed messages, with arrays as their bytes.

A message is a head of fixed length, a msgpack text of one of the types below, and the bytes of its arrays one after the
other. Nothing is ever executed that comes over the pipe. What does not follow the format raises `Garbled`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from types import MappingProxyType
from typing import IO, Any, Final

import msgspec
import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.element_types import STRING, STRING_DTYPE, Array
from stepper.ir.model import Layer, Port

_HEAD: Final = struct.Struct("<4sIQ")
_MAGIC: Final = b"ovw1"
_LARGEST: Final = 2**48

LOADING: Final = "being loaded for"
READING: Final = "reading"
CONVERTING: Final = "converting"
COMPILING: Final = "compiling"
RUNNING: Final = "running"
STAGES: Final = (READING, CONVERTING, COMPILING, RUNNING)
"""What the process says that it begins with; it may end at each of them."""


class Garbled(Exception):
    """What came is no message."""


class RuntimeFacts(Struct, frozen=True):
    """How OpenVINO is to compute; the fields of a `Runtime` that cross to another process."""

    device: str
    precision: str
    extensions: tuple[str, ...]
    properties: dict[str, str]


class PortFacts(Struct, frozen=True, array_like=True):
    """A port of a layer."""

    id: int
    element_type: str | None
    dims: tuple[int, ...]


class LayerFacts(Struct, frozen=True):
    """A layer without bodies."""

    id: int
    name: str
    type: str
    version: str
    definition: int | None
    attributes: dict[str, str]
    inputs: tuple[PortFacts, ...]
    outputs: tuple[PortFacts, ...]
    line: int


class Check(Struct, frozen=True, tag=True):
    """Is there such a device, and does it compute in that precision?"""

    runtime: RuntimeFacts


class Convert(Struct, frozen=True, tag=True):
    """Read a model of any format and write it as an IR. `folder` is deleted where whoever asked has ended."""

    source: str
    target: str
    folder: str


class CompileFile(Struct, frozen=True, tag=True):
    """Read and compile an IR, for the sake of what OpenVINO writes meanwhile. `folder` as for `Convert`."""

    runtime: RuntimeFacts
    path: str
    folder: str


class DefineModel(Struct, frozen=True, tag=True):
    """A model by the text of its IR and the path of its .bin (empty: it has none)."""

    key: int
    runtime: RuntimeFacts
    text: str
    weights: str


class DefineLayer(Struct, frozen=True, tag=True):
    """A layer; the arrays of the message are its constant inputs, at these places."""

    key: int
    runtime: RuntimeFacts
    layer: LayerFacts
    constants: tuple[int, ...]
    is_last_resort: bool


class Call(Struct, frozen=True, tag=True):
    """Compute what was defined under a key on the arrays of the message; the answer has its outputs, if `wanted`."""

    key: int
    wanted: bool = True


Act = Check | Convert | CompileFile | DefineModel | DefineLayer | Call


class Request(Struct, frozen=True):
    """Something to do, what that is in words, and the keys of what is not needed any more."""

    act: Act
    subject: str
    forget: tuple[int, ...] = ()


class Began(Struct, frozen=True, tag=True):
    """Not an answer yet: the process begins with a stage."""

    stage: str


class Done(Struct, frozen=True, tag=True):
    """It is done."""


class Refused(Struct, frozen=True, tag=True):
    """It was refused; `error` is the name of one of our exceptions, or empty for words of OpenVINO's own."""

    error: str
    text: str


class OutOfMemory(Struct, frozen=True, tag=True):
    """Memory did not suffice, and the process lives on."""


Reply = Began | Done | Refused | OutOfMemory


class _ArrayFacts(Struct, frozen=True, array_like=True):
    element_type: str
    shape: tuple[int, ...]
    size: int
    texts: list[str] | None = None


class _RequestFrame(Struct, frozen=True, array_like=True):
    message: Request
    arrays: tuple[_ArrayFacts, ...]


class _ReplyFrame(Struct, frozen=True, array_like=True):
    message: Reply
    arrays: tuple[_ArrayFacts, ...]


def write(stream: IO[bytes], message: Request | Reply, arrays: Sequence[Any] = ()) -> None:
    """Write one message whole."""
    facts, parts = [], []
    for array in map(np.asarray, arrays):
        element_type, texts = element_types.of(array), None
        if element_type is STRING:
            texts = [str(text) for text in array.reshape(-1).tolist()]
        elif array.size:
            parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        size = 0 if texts is not None else array.nbytes
        facts.append(_ArrayFacts(element_type.name, array.shape, size, texts))
    frame = (_RequestFrame if isinstance(message, Request) else _ReplyFrame)(message, tuple(facts))  # type: ignore[arg-type]  # as it is
    content = msgspec.msgpack.encode(frame)
    stream.write(_HEAD.pack(_MAGIC, len(content), sum(map(len, parts))))
    stream.write(content)
    for part in parts:
        stream.write(part)
    stream.flush()


def read_request(stream: IO[bytes]) -> tuple[Request, list[Array]] | None:
    """The next request and its arrays; None at the end of the stream."""
    found = _read(stream, _RequestFrame)
    return None if found is None else (found[0].message, found[1])


def read_reply(stream: IO[bytes]) -> tuple[Reply, list[Array]] | None:
    """The next reply and its arrays; None at the end of the stream."""
    found = _read(stream, _ReplyFrame)
    return None if found is None else (found[0].message, found[1])


def _read(stream: IO[bytes], kind: Any) -> Any:
    head = _exactly(stream, _HEAD.size)
    if head is None:
        return None
    magic, length, size = _HEAD.unpack(head)
    if magic != _MAGIC or size > _LARGEST:
        raise Garbled("it has no head")
    content = _exactly(stream, length)
    payload = None if content is None else _exactly(stream, size)
    if content is None or payload is None:
        return None
    try:
        frame = msgspec.msgpack.decode(content, type=kind)
        return frame, _arrays(frame.arrays, payload)
    except (msgspec.MsgspecError, ValueError, KeyError) as error:
        raise Garbled(str(error)) from None


def _arrays(facts: Sequence[_ArrayFacts], payload: bytearray) -> list[Array]:
    found, offset = [], 0
    for fact in facts:
        dtype = element_types.ELEMENT_TYPES[fact.element_type].dtype
        if dtype == STRING_DTYPE:
            found.append(np.array(fact.texts or [], dtype).reshape(fact.shape))
            continue
        if not 0 <= fact.size <= len(payload) - offset:
            raise ValueError("an array is longer than the message")
        part = np.frombuffer(payload, np.uint8, fact.size, offset)
        found.append(part.view(dtype).reshape(fact.shape) if fact.size else np.empty(fact.shape, dtype))
        offset += fact.size
    return found


def _exactly(stream: IO[bytes], count: int) -> bytearray | None:
    """So many bytes; None where the stream ends before."""
    buffer = bytearray(count)
    view, done = memoryview(buffer), 0
    while done < count:
        got = stream.readinto(view[done:])  # type: ignore[attr-defined]  # streams of bytes have it
        if not got:
            return None
        done += got
    return buffer


def layer_facts(layer: Layer) -> LayerFacts:
    """A layer as it crosses to another process."""
    inputs, outputs = (tuple(map(_port_facts, ports)) for ports in (layer.inputs, layer.outputs))
    head = (layer.id, layer.name, layer.type, layer.version, layer.definition, dict(layer.attributes))
    return LayerFacts(*head, inputs, outputs, layer.line)


def _port_facts(port: Port) -> PortFacts:
    return PortFacts(port.id, None if port.element_type is None else port.element_type.name, port.dims)


def layer_of(facts: LayerFacts) -> Layer:
    """The layer again."""
    inputs, outputs = (
        tuple(
            Port(port.id, element_types.by_name(port.element_type or ""), port.dims, (), facts.line) for port in ports
        )
        for ports in (facts.inputs, facts.outputs)
    )
    attributes = MappingProxyType(facts.attributes)
    head = (facts.id, facts.name, facts.type, facts.version, facts.definition, attributes)
    return Layer(*head, inputs, outputs, (), facts.line)
