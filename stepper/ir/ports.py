"""The ports of a layer: the most of what a large file holds, so that each is read with as few calls as can be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from stepper import element_types
from stepper.ir import xml
from stepper.ir.model import Port, new
from stepper.ir.plain import PlainPort, split_names
from stepper.ir.xml import Element, Place

_NOT_BLANK: Final = re.compile(r"\S+")
_NUMBERS: Final = {str(number): number for number in range(100)}
_DIM_FAULTS: Final = {
    TypeError: "empty",
    ValueError: "no integer",
    OverflowError: "out of range, expected -1 or more",
}


def read_ports(
    place: Place, side: Element, plain: Mapping[str, tuple[PlainPort, ...]], *, is_output: bool
) -> tuple[Port, ...]:
    """The ports of an `<input>` or `<output>`, which may be among the plain ones. ModelError for what is wrong."""
    if listed := plain.get(mark := side.text or ""):
        first = xml.line_before(side, mark)
        return tuple(
            [new(Port, (id, element_type, dims, names, first + line)) for id, element_type, dims, names, line in listed]
        )
    ports = []
    for element in side:
        if element.tag != "port":
            continue
        get = element.get
        written, names = get("precision"), get("names") if is_output else None
        element_type = None if written is None else element_types.by_precision(written)
        if element_type is None:
            _check_precision(place, element, written, is_output=is_output)
        identity = _NUMBERS.get(get("id", ""))
        if identity is None:
            identity = _unusual_id(place, element)
        dims, newlines = _dims_in(xml.text_within(element))
        line = element.sourceline
        if newlines < 0 or len(dims) != len(element) or line is None:
            dims, line = _dims_one_by_one(place, element, identity), xml.line_of(element)
        elif line >= xml.FAR_DOWN:
            line -= newlines
        port_names = split_names(names) if names else ()
        ports.append(new(Port, (identity, element_type, dims, port_names, line)))
    return tuple(ports)


def _unusual_id(place: Place, element: Element) -> int:
    number = xml.integer(place, element, "id")
    if not 0 <= number < 10**9:
        place.at(element).fail(f"the id of a port is '{number}', expected a small non-negative integer")
    return number


def _check_precision(place: Place, element: Element, written: str | None, *, is_output: bool) -> None:
    """Raise ModelError unless a missing or unknown element type is allowed here."""
    if written is None and is_output:
        place.at(element).fail("an output port has no attribute 'precision', which is mandatory")
    if written is not None and written.lower() not in element_types.UNKNOWN_NAMES:
        place.at(element).fail(f"the precision '{written}' is no element type (FP32, I64, BOOL, ...)")


@lru_cache(maxsize=4096)
def _dims_in(text: str) -> tuple[tuple[int, ...], int]:
    """The numbers in all the text of a port, and how many lines before the first of them it begins.

    Many ports are of one shape, written alike. -1 lines where there is anything else, or the numbers are not written
    in lines of the same distance: such a port is looked through element by element. No other element there has text.
    """
    gaps = {gap.count("\n") for gap in _NOT_BLANK.split(text)}
    try:
        dims = _checked_dims(text.split())
    except (ValueError, OverflowError):
        return (), -1
    return dims, gaps.pop() if dims and len(gaps) == 1 else -1


def _dims_one_by_one(place: Place, element: Element, identity: int) -> tuple[int, ...]:
    """The same of a port that has other elements besides its dimensions, or a wrong one."""
    try:
        return _checked_dims([dim.text for dim in element if dim.tag == "dim"])
    except (TypeError, ValueError, OverflowError) as error:
        return place.at(element).fail(f"a <dim> of port {identity} is {_DIM_FAULTS[type(error)]}")


def _checked_dims(texts: Sequence[str | None]) -> tuple[int, ...]:
    """The numbers that the <dim> elements of a port hold; TypeError, ValueError or OverflowError for what is none."""
    dims = tuple([int(text) for text in texts])  # type: ignore[arg-type]  # TypeError for an empty element
    if dims and not (min(dims) >= -1 and max(dims) < 2**63):
        raise OverflowError
    return dims
