"""The XML of an untrusted file: parsed without DTD, entities or network, and read with the place in every complaint.

The names in it are OpenVINO's, or those of the first text of Loop-5 (specification/Loop-5, 2020), where operations were
not yet called layers and the condition was marked on its Parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, NoReturn, TypeVar

from lxml import etree

from stepper import element_types, operation_types
from stepper.element_types import ElementType, Shape
from stepper.errors import ErrorPlace, LayerPlace, ModelError
from stepper.files.file_kinds import ensure_no_pipe
from stepper.files.recognition import ensure_model, folder_sentence
from stepper.ir.model import BODIES, NO_ATTRIBUTES, Layer, Port, new
from stepper.wording import excerpt, reason_of

# Ports, edges and layers in the plain form in which nearly all files write them, read before the XML is parsed.
#
# They are the most of a large file, and as elements of a tree they would cost more time than all the rest. The parser
# is given the same file with a mark in place of each such list of `<port>` or `<edge>`, and of each row of layers that
# have nothing else in them: a text that stands for it, of as many lines, so that every line number stays. What is
# written in any other way is left as it is and read from the tree.
#
# A list is taken only if it is whole and well-formed in itself: so the rest is well-formed exactly if the file is, and
# a mark that is found as the text of an `<input>`, `<output>` or `<edges>`, or between layers, stands for what was in
# it.

PlainPort = tuple[int, ElementType, Shape, tuple[str, ...], int]
"""Parts of a Port; the line counts from the line of the `<input>` or `<output>`."""

_MARK = b"\x7f"
"""Mark character, which hardly any XML file has; a file that has it gets no marks."""
_MARK_BY_NUMBER = re.compile(rb"&#(?:0*127|x0*7[fF]);")

# Nothing here can match in two ways, and what is kept for its repetition is bounded: no file makes this slow or large.
_SPACE = rb"[ \t\n]{0,100}+"
_DIMS = rb"(?:%s<dim>(?:-1|[0-9]{1,18})</dim>){0,64}" % _SPACE
_PORT = re.compile(
    rb'<port id="([0-9]{1,9})" precision="(\w{1,20})"(?: names="([ !#-%%\'-;=-~]*+)")? ?(?:/>|>(%s)%s</port>)'
    % (_DIMS, _SPACE)
)
_PORTS = re.compile(rb"(?:%s%s){1,1000}%s</(in|out)" % (_SPACE, re.sub(rb"\((?!\?)", rb"(?:", _PORT.pattern), _SPACE))
_EDGE = rb'<edge from-layer="N" from-port="N" to-layer="N" to-port="N" ?/>'.replace(b"N", b"[0-9]{1,15}")
_SOME_EDGES = re.compile(rb"(?:[ \t]*+\n[ \t]*+%s){1,1000}" % _EDGE)
_VALUE = rb"[ !#-%'-;=-~]*+"
_GAP = rb"[ \t\n]*+"
_ATTRIBUTE = rb' (?!xmlns)[A-Za-z_][\w.-]*+="%s"' % _VALUE
_SIDES = b"".join(rb"(?:<%s>(\x7f[0-9]+\n*+)</%s>%s)?" % (side, side, _GAP) for side in (b"input", b"output"))
_LAYER = re.compile(
    rb'<layer id="([0-9]{1,15})" name="(%s)" type="(\w{1,99})" version="(opset[0-9]{1,4})">%s' % (_VALUE, _GAP)
    + rb"(?:<data((?:%s)*+) ?/>%s)?%s</layer>" % (_ATTRIBUTE, _GAP, _SIDES)
)
_BEFORE_ROWS = (b"<layers>", b"</layer>")
_ROW = re.compile("\x7fL[0-9]+")
_DIGITS = bytes(byte if byte in b"0123456789" else 32 for byte in range(256))
_NUMBERS = bytes(byte if byte in b"-0123456789" else 32 for byte in range(256))
"""Tables for bytes.translate, which turns all other bytes into spaces."""


class PlainLists:
    """Lists that the marks stand for, by the text of the element in which they are."""

    def __init__(self) -> None:
        self.ports: dict[str, tuple[PlainPort, ...]] = {}
        self.edges: dict[str, Sequence[int]] = {}
        """The four numbers of each edge, one after another; the first stands on the line after `<edges>`, and so on."""
        self._rows: dict[str, list[Layer]] = {}

    def take_from(self, content: bytes) -> bytes:
        """Return the file with marks, or unchanged if marks would be ambiguous.

        UTF-16 is an example, because it is full of zeros.
        """
        if _MARK in content or b"\0" in content or (b"&" in content and _MARK_BY_NUMBER.search(content)):
            return content
        content = self._take_edges(self._take_ports(content))
        return content if b"<![CDATA[" in content else self._take_layers(content)

    def layers(self, text: str | None) -> list[Layer]:
        """Return the layers that stand in a text between elements of `<layers>`; they are given once."""
        found: list[Layer] = []
        for mark in _ROW.findall(text) if text and "\x7f" in text else ():
            found += self._rows.pop(mark, ())  # of a mark of its own there is none
        return found

    def _take_layers(self, content: bytes) -> bytes:
        kept: list[bytes] = []
        row: list[Layer] = []
        attributes = _Attributes()
        begin = end = at = 0  # of the row, and how far lines are counted
        line = 1
        for match in _LAYER.finditer(content):
            identity, name, type, version, data, *sides = match.groups()
            known = _operation(type, version)
            read = NO_ATTRIBUTES if data is None else attributes[data]
            if known is None or read is None:
                continue
            start = match.start()
            if not row or content[end:start].strip(b" \t\n"):
                self._end_row(row, kept, content[begin:end])
                row = []
                between = content[end:start]
                if not between[-200:].rstrip(b" \t\n").endswith(_BEFORE_ROWS):
                    continue
                kept.append(between)
                begin = start
            line += content.count(b"\n", at, start)
            at = start
            ports = [
                ()
                if mark is None
                else ports_at(self.ports[mark.decode()], line + content.count(b"\n", at, match.start(group)))
                for group, mark in enumerate(sides, 6)
            ]
            canonical, opset, definition = known
            row.append(
                new(Layer, (int(identity), name.decode(), canonical, opset, definition, read, *ports, (), line, None))
            )
            end = match.end()
        self._end_row(row, kept, content[begin:end])
        return b"".join((*kept, content[end:]))

    def _end_row(self, row: list[Layer], kept: list[bytes], written: bytes) -> None:
        if row:
            mark = b"%sL%d" % (_MARK, len(self._rows))
            self._rows[mark.decode()] = row
            kept.append(mark + b"\n" * written.count(b"\n"))

    def _take_edges(self, content: bytes) -> bytes:
        parts = content.split(b"<edges>")
        for index in range(1, len(parts)):
            written, end, after = parts[index].partition(b"</edges>")
            written = written.replace(b"\r\n", b"\n")
            if end and _are_edges(written):
                mark = _mark(len(self.edges), written)
                self.edges[mark.decode()] = [int(number) for number in written.translate(_DIGITS).split()]
                parts[index] = mark + end + after
        return b"<edges>".join(parts)

    def _take_ports(self, content: bytes) -> bytes:
        parts = content.split(b"put>")
        marked = _Marked(self.ports)
        opened = False
        for index, part in enumerate(parts):
            if opened:
                parts[index] = marked[part]
            opened = part.endswith((b"<in", b"<out"))
        return b"put>".join(parts)


def ports_at(listed: Sequence[PlainPort], first: int) -> tuple[Port, ...]:
    """Return the ports of an `<input>` or `<output>` that begins on the line `first`."""
    return tuple(
        [new(Port, (id, element_type, dims, names, first + line)) for id, element_type, dims, names, line in listed]
    )


@lru_cache(maxsize=1024)
def _operation(type: bytes, version: bytes) -> tuple[str, str, int] | None:
    """Return type, version and definition of a layer that has no bodies; None for others, and for unknown ones."""
    canonical, opset = operation_types.canonical_type(type.decode()), operation_types.opset_number(version.decode())
    definition = None if opset is None else operation_types.definition(canonical, opset)
    return None if definition is None or canonical in BODIES else (canonical, version.decode(), definition)


class _Attributes(dict[bytes, Mapping[str, str] | None]):
    """The attributes of `<data>` by their text; None where one is there twice."""

    def __missing__(self, written: bytes) -> Mapping[str, str] | None:
        parts = written.decode().split('"')
        values = parts[1::2]
        read = dict(zip([part[1:-1] for part in parts[:-1:2]], values, strict=True))
        self[written] = found = MappingProxyType(read) if len(read) == len(values) else None
        return found


def _are_edges(written: bytes) -> bool:
    end = 0
    while some := _SOME_EDGES.match(written, end):
        end = some.end()
    return end > 0 and not written[end:].strip(b" \t\n")


class _Marked(dict[bytes, bytes]):
    """Text with marks for all that stands between `<input>` and the last four letters of `</input>`.

    The same list has the same mark wherever it stands: large models repeat their shapes.
    """

    def __init__(self, ports: dict[str, tuple[PlainPort, ...]]) -> None:
        self._ports = ports

    def __missing__(self, part: bytes) -> bytes:
        given = part
        written = part.replace(b"\r\n", b"\n")
        if (end := _PORTS.fullmatch(written)) and (ports := _ports(written, is_output=end[1] == b"out")):
            mark = _mark(len(self._ports), written)
            self._ports[mark.decode()] = ports
            given = mark + b"</" + end[1]
        self[part] = given
        return given


def _mark(number: int, written: bytes) -> bytes:
    return b"%s%d%s" % (_MARK, number, b"\n" * written.count(b"\n"))


def _ports(written: bytes, *, is_output: bool) -> tuple[PlainPort, ...]:
    """Return the ports of a plain list; none where one has an element type that is not known."""
    ports: list[PlainPort] = []
    line = end = 0
    for port in _PORT.finditer(written):
        identity, precision, names, dims = port.groups()
        element_type = element_types.by_precision(precision.decode())
        if element_type is None:
            return ()
        line += written.count(b"\n", end, port.start())
        end = port.start()
        port_names = split_names(names.decode()) if names and is_output else ()
        ports.append((int(identity), element_type, _dims(dims or b""), port_names, line))
    return tuple(ports)


@lru_cache(maxsize=4096)
def _dims(written: bytes) -> Shape:
    return tuple([int(number) for number in written.translate(_NUMBERS).split()])


def split_names(text: str) -> tuple[str, ...]:
    """Return the tensor names of a port: separated by commas, a comma in a name escaped by a backslash."""
    if "\\" not in text:
        return tuple(text.split(",")) if text else ()
    parts = text.replace("\\,", "\0").split(",")
    return tuple(part.replace("\0", ",") for part in parts)


FIRST_DRAFT_TAGS = {"layers": "operations", "layer": "operation"}
"""Element names of the first draft by their current names."""

FIRST_DRAFT_ATTRIBUTES = {
    "internal_layer_id": "internal_operation_id",
    "from-layer": "from-operation",
    "to-layer": "to-operation",
}
"""Attribute names of the first draft by their current names."""

NOT_AN_IR = "not-an-ir"
MALFORMED_ELEMENT = "malformed-element"
"""Rules of the format that any part of the reader may find broken."""

READABLE_VERSIONS = (10, 11)

Element = etree._Element

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")

_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")
_INT64 = range(-(2**63), 2**63)
_FAR_DOWN = 65535
"""From this line on libxml2 gives the line on which the next text ends."""
_LONGEST_PLACE = 400
_LONGEST_MESSAGE = 600

_ENCODING = re.compile(rb"<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([^\"'>]{0,40})")
_ENCODINGS = frozenset({b"utf-8", b"utf8", b"utf-16", b"us-ascii", b"ascii", b"iso-8859-1", b"windows-1252"})
"""Encodings in which `<!DOCTYPE` always has these bytes (maybe with zeros between them)."""


def content_of(path: Path) -> bytes:
    """Return what the file holds.

    Raises ModelError for a file that cannot be read, or holds a document type (the door to entities).
    """
    try:
        ensure_no_pipe(path)
        content = path.read_bytes()
    except OSError as error:
        why = folder_sentence(path) if path.is_dir() else f"cannot be read: {reason_of(path, error)}"
        unreadable = ModelError(f"{path}: {why}")
        unreadable.place = ErrorPlace(str(path))
        raise unreadable from None
    except ValueError as error:
        raise ModelError(f"{str(path)!r} names no file: {error}") from None
    if not content.startswith(b"<?xml"):
        ensure_model(path)
    _refuse_document_type(FilePlace(path, 1), content)
    return content


def parse(path: Path, plain: PlainLists | None = None) -> Element:
    """Return the root element of the file; the plain lists in it are given to `plain`, and marks stand for them.

    Raises ModelError as `content_of` does, and for a file that is not XML.
    """
    content = content_of(path)
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        collect_ids=False,
        remove_comments=True,
        remove_pis=True,
    )
    if plain is not None:
        # What is not well-formed is parsed again, for a message about the file as it is.
        with suppress(etree.XMLSyntaxError):
            return etree.fromstring(plain.take_from(content), parser)
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        FilePlace(path, error.lineno or 1).fail(f"is not well-formed XML: {error.msg}", NOT_AN_IR)


def _refuse_document_type(place: FilePlace, content: bytes) -> None:
    """Raise ModelError where a document type stands; it may be written in UTF-16, where zero bytes lie between."""
    plain = content.replace(b"\0", b"") if b"\0" in content else content
    if (encoding := _ENCODING.search(plain[:400])) and encoding[1].lower() not in _ENCODINGS:
        place.fail(f"is written in {encoding[1].decode('latin-1')}, expected UTF-8", NOT_AN_IR)
    for door in (b"<!DOCTYPE", b"<!ENTITY") if b"!" in plain else ():
        if door in plain:
            line = plain.count(b"\n", 0, plain.index(door)) + 1
            message = "holds a document type (<!DOCTYPE>), which no IR has, and is refused"
            FilePlace(place.path, line).fail(message, NOT_AN_IR)
    if not plain.lstrip(b"\xef\xbb\xff\xfe\xbf \t\r\n").startswith(b"<"):
        place.fail("is not well-formed XML: does not begin with '<'", NOT_AN_IR)


class FilePlace(NamedTuple):
    """Place of the reader in the file, with which every message begins.

    `layer` says in which layer, in words or as its id, name and type: only a message makes words of these. Beside words
    `known` has these three, where they are known.
    """

    path: Path
    line: int = 0
    layer: str | tuple[int, str, str] = ""
    known: tuple[int, str, str] | None = None

    def at(self, element: Element, layer: str | None = None) -> FilePlace:
        """Return the same place, moved to `element` (and into a layer)."""
        return FilePlace(self.path, line_of(element), self.layer if layer is None else layer)

    def text(self) -> str:
        """Return what a message begins with: file, line and layer."""
        where = f"{self.path}:{self.line}: " if self.line else f"{self.path}: "
        words = self.layer if isinstance(self.layer, str) else "layer {} '{}' ({})".format(*self.layer)
        return f"{where}{excerpt(words, _LONGEST_PLACE)}: " if words else where

    def fail(self, message: str, rule: str = "") -> NoReturn:
        """Raise a ModelError that says where, and which `rule` of the format is broken."""
        error = ModelError(self.text() + excerpt(message, _LONGEST_MESSAGE))
        file = str(self.path)
        known = self.known if isinstance(self.layer, str) else self.layer
        error.place = ErrorPlace(file, self.line, None if known is None else LayerPlace(*known, file, self.line))
        error.rule = rule
        error.reason = message
        raise error


Faults = list[ModelError] | None
"""Faults of a file that is read to its end, for all of them; None where the first one ends the reading."""


@contextmanager
def tolerated(faults: Faults) -> Iterator[None]:
    """Keep a fault that is met, and go on after it, where they are kept."""
    try:
        yield
    except ModelError as error:
        if faults is None:
            raise
        faults.append(error)


def each(faults: Faults, function: Callable[[_Item], _Found], items: Iterable[_Item]) -> list[_Found]:
    """Return what the function gives for each item; where faults are kept, without those that have one."""
    if faults is None:
        return [function(item) for item in items]
    found = []
    for item in items:
        with tolerated(faults):
            found.append(function(item))
    return found


def line_of(element: Element) -> int:
    """Return the line on which the element begins."""
    line = element.sourceline or 0
    return line if line < _FAR_DOWN else _line_far_down(element, line)


def line_before(element: Element, text: str) -> int:
    """Return the same, where the text with which the element begins is at hand."""
    line = element.sourceline or 0
    return line if line < _FAR_DOWN else line - text.count("\n")


def _line_far_down(element: Element, line: int) -> int:
    """Return the same from line 65535 on, where libxml2 gives the line on which the next text ends."""
    while not (text := element.text):
        if len(element):
            element = element[0]
        elif tail := element.tail:
            return line - tail.count("\n")
        elif (following := element.getnext()) is not None:
            element = following
        else:
            return line
    return line - text.count("\n")


def child(element: Element, name: str) -> Element | None:
    """Return the first child of this name, or of the name that the first draft had for it."""
    found = element.find(name)
    if found is None and name in FIRST_DRAFT_TAGS:
        found = element.find(FIRST_DRAFT_TAGS[name])
    return found


def text(place: FilePlace, element: Element, name: str) -> str:
    """Return a mandatory attribute."""
    value = element.get(name)
    if value is None and name in FIRST_DRAFT_ATTRIBUTES:
        value = element.get(FIRST_DRAFT_ATTRIBUTES[name])
    if value is None:
        place.at(element).fail(f"<{element.tag!s}> has no attribute '{name}', which is mandatory", MALFORMED_ELEMENT)
    return value


def integer(place: FilePlace, element: Element, name: str) -> int:
    """Return a mandatory attribute that is a 64-bit integer."""
    value = element.get(name) or text(place, element, name)
    if len(value) < 16 and value.isdecimal() and value.isascii():
        return int(value)
    return to_integer(place, element, name, value)


def optional_integer(place: FilePlace, element: Element, name: str) -> int | None:
    """Return an attribute that is a 64-bit integer, None where it is missing."""
    value = element.get(name)
    return None if value is None else to_integer(place, element, name, value)


def to_integer(place: FilePlace, element: Element, name: str, value: str) -> int:
    """Return the 64-bit integer that `value`, the attribute `name` of `element`, is."""
    if not _INTEGER.fullmatch(value) or int(value) not in _INT64:
        place.at(element).fail(
            f"the attribute '{name}' of <{element.tag!s}> is '{value[:80]}', expected a 64-bit integer",
            MALFORMED_ELEMENT,
        )
    return int(value)
