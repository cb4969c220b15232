"""The XML of an untrusted file: parsed without DTD, entities or network, and read with the place in every complaint.

The names in it are OpenVINO's, or those of the first text of Loop-5 (specification/Loop-5, 2020), where operations were
not yet called layers and the condition was marked on its Parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple, NoReturn, TypeVar

from lxml import etree

from stepper.errors import ErrorPlace, LayerPlace, ModelError
from stepper.files.kinds import ensure_no_pipe, folder_text
from stepper.ir.plain import PlainLists
from stepper.wording import excerpt, reason_of

FIRST_DRAFT_TAGS: Final = {"layers": "operations", "layer": "operation"}
"""Element names of the first draft by their current names."""

FIRST_DRAFT_ATTRIBUTES: Final = {
    "internal_layer_id": "internal_operation_id",
    "from-layer": "from-operation",
    "to-layer": "to-operation",
}
"""Attribute names of the first draft by their current names."""

NOT_AN_IR: Final = "not-an-ir"
MALFORMED_ELEMENT: Final = "malformed-element"
"""Rules of the format that any part of the reader may find broken."""

CURRENT_ITERATION: Final = "current_iteration"
EXECUTION_CONDITION: Final = "execution_condition"

READABLE_VERSIONS: Final = (10, 11)

Element = etree._Element

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")

_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")
_INT64: Final = range(-(2**63), 2**63)
_FAR_DOWN: Final = 65535
"""From this line on libxml2 gives the line on which the next text ends."""
_LONGEST_PLACE: Final = 400
_LONGEST_MESSAGE: Final = 600

_ENCODING: Final = re.compile(rb"<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([^\"'>]{0,40})")
_ENCODINGS: Final = frozenset({b"utf-8", b"utf8", b"utf-16", b"us-ascii", b"ascii", b"iso-8859-1", b"windows-1252"})
"""Those in which `<!DOCTYPE` cannot be written but as these bytes (with zeros between them, maybe)."""


_NO_MODELS: Final = {
    b"SQLite format 3\0": "a database: a recording or a session of stepper",
    b"PK\x03\x04": "an archive, such as .npz: values for inputs are given with --inputs",
    b"\x93NUMPY": "an array: a value for an input is given with --input NAME=FILE.npy",
}
"""How files begin that are easily taken for a model, and what they are."""


def content_of(path: Path) -> bytes:
    """Return what the file holds.

    Raises ModelError for a file that cannot be read, or holds a document type (the door to entities).
    """
    try:
        ensure_no_pipe(path)
        content = path.read_bytes()
    except OSError as error:
        why = folder_text(path) if path.is_dir() else f"cannot be read: {reason_of(path, error)}"
        unreadable = ModelError(f"{path}: {why}")
        unreadable.place = ErrorPlace(str(path))
        raise unreadable from None
    except ValueError as error:
        raise ModelError(f"{str(path)!r} names no file: {error}") from None
    for beginning, what in _NO_MODELS.items():
        if content.startswith(beginning):
            raise ModelError(f"{path}:1: is not a model, it is {what}")
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
