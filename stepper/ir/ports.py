"""The ports of a layer: those that plain.py has taken from the bytes, and those that are elements of the tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stepper import element_types
from stepper.ir import xml
from stepper.ir.model import Port, new
from stepper.ir.plain import PlainPort, split_names
from stepper.ir.xml import Element, FilePlace

_DIM_FAULTS: Final = {
    TypeError: "empty",
    ValueError: "no integer",
    OverflowError: "out of range, expected -1 or more",
}


def read_ports(
    place: FilePlace, side: Element, plain: Mapping[str, tuple[PlainPort, ...]], *, is_output: bool
) -> tuple[Port, ...]:
    """Return the ports of an `<input>` or `<output>`, which may be among the plain ones. ModelError for faults."""
    if listed := plain.get(mark := side.text or ""):
        first = xml.line_before(side, mark)
        return tuple(
            [new(Port, (id, element_type, dims, names, first + line)) for id, element_type, dims, names, line in listed]
        )
    return tuple([_port(place, element, is_output=is_output) for element in side if element.tag == "port"])


def _port(place: FilePlace, element: Element, *, is_output: bool) -> Port:
    written, names = element.get("precision"), element.get("names") if is_output else None
    element_type = None if written is None else element_types.by_precision(written)
    if element_type is None:
        _check_precision(place, element, written, is_output=is_output)
    identity = xml.integer(place, element, "id")
    if not 0 <= identity < 10**9:
        place.at(element).fail(f"the id of a port is '{identity}', expected a small non-negative integer")
    port_names = split_names(names) if names else ()
    return Port(identity, element_type, _dims(place, element, identity), port_names, xml.line_of(element))


def _check_precision(place: FilePlace, element: Element, written: str | None, *, is_output: bool) -> None:
    """Raise ModelError unless a missing or unknown element type is allowed here."""
    if written is None and is_output:
        place.at(element).fail("an output port has no attribute 'precision', which is mandatory")
    if written is not None and written.lower() not in element_types.UNKNOWN_NAMES:
        place.at(element).fail(f"the precision '{written}' is not an element type (FP32, I64, BOOL, ...)")


def _dims(place: FilePlace, element: Element, identity: int) -> tuple[int, ...]:
    texts = [dim.text for dim in element if dim.tag == "dim"]
    try:
        dims = tuple([int(text) for text in texts])  # type: ignore[arg-type]  # TypeError for an empty element
        if min(dims, default=0) < -1 or max(dims, default=0) >= 2**63:
            raise OverflowError
    except (TypeError, ValueError, OverflowError) as error:
        place.at(element).fail(f"a <dim> of port {identity} is {_DIM_FAULTS[type(error)]}")
    return dims
