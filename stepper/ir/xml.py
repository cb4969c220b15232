"""The XML of an untrusted file: parsed without DTD, entities or network, and read with the place in every complaint."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NoReturn

from lxml import etree

from stepper.errors import ModelError
from stepper.ir.dialects import FIRST_DRAFT_ATTRIBUTES, FIRST_DRAFT_TAGS

Element = etree._Element

_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")
_INT64: Final = range(-(2**63), 2**63)


def parse(path: Path) -> Element:
    """The root element of the file.

    Raises ModelError for a file that cannot be read, is no XML, or holds a document type (the door to entities).
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    # A document type must stand before the root element and may be written in UTF-16, where zero bytes lie between.
    head = content.replace(b"\0", b"")
    if b"<!DOCTYPE" in head or b"<!ENTITY" in head:
        raise ModelError(f"{path}: holds a document type (<!DOCTYPE>), which no IR has and this reader refuses")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        line = error.lineno or 1
        raise ModelError(f"{path}:{line}: is not well-formed XML: {error.msg}") from None


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the file the reader is: what every message begins with."""

    path: Path
    line: int = 0
    layer: str = ""

    def at(self, element: Element, layer: str | None = None) -> Place:
        """The same place, moved to `element` (and into a layer)."""
        return replace(self, line=line_of(element), layer=self.layer if layer is None else layer)

    def fail(self, message: str) -> NoReturn:
        """Raise a ModelError that says where."""
        where = f"{self.path}:{self.line}: " if self.line else f"{self.path}: "
        raise ModelError(where + (f"{self.layer}: " if self.layer else "") + message)


def line_of(element: Element) -> int:
    """The line on which the element begins."""
    return element.sourceline or 0


def child(element: Element, name: str) -> Element | None:
    """The first child of this name, or of the name that the first draft had for it."""
    found = element.find(name)
    if found is None and name in FIRST_DRAFT_TAGS:
        found = element.find(FIRST_DRAFT_TAGS[name])
    return found


def text(place: Place, element: Element, name: str) -> str:
    """A mandatory attribute."""
    value = element.get(name)
    if value is None and name in FIRST_DRAFT_ATTRIBUTES:
        value = element.get(FIRST_DRAFT_ATTRIBUTES[name])
    if value is None:
        place.at(element).fail(f"<{element.tag!s}> has no attribute '{name}', which is mandatory")
    return value


def integer(place: Place, element: Element, name: str) -> int:
    """A mandatory attribute that is a 64-bit integer."""
    value = text(place, element, name)
    if len(value) < 16 and value.isdecimal() and value.isascii():
        return int(value)
    return to_integer(place, element, name, value)


def optional_integer(place: Place, element: Element, name: str) -> int | None:
    """An attribute that is a 64-bit integer, None where it is missing."""
    value = element.get(name)
    return None if value is None else to_integer(place, element, name, value)


def to_integer(place: Place, element: Element, name: str, value: str) -> int:
    """The 64-bit integer that `value`, the attribute `name` of `element`, is."""
    if not _INTEGER.fullmatch(value) or int(value) not in _INT64:
        place.at(element).fail(
            f"the attribute '{name}' of <{element.tag!s}> is '{value[:80]}', expected a 64-bit integer"
        )
    return int(value)
