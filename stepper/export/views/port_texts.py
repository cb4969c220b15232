"""Entries of a port map in a few words, as boxes and tables say them."""

from __future__ import annotations

from stepper.ir.model import Slicing


def input_text(role: str, slicing: Slicing | None) -> str:
    """Such as `merged`, or `sliced, axis 1`."""
    return role if slicing is None else f"{role}, {axis_text(slicing)}"


def output_text(role: str, slicing: Slicing | None) -> str:
    """Such as `last value`, or `concatenated, axis 0, reversed`."""
    return role if slicing is None else f"{role}, {axis_text(slicing)}"


def axis_text(slicing: Slicing) -> str:
    """The axis, and the direction where it is backward."""
    return f"axis {slicing.axis}" + (", reversed" if slicing.stride < 0 else "")


def slicing_text(slicing: Slicing) -> str:
    """Everything that the file says of a slicing."""
    part = "" if slicing.part_size is None else f", part_size {slicing.part_size}"
    return f"axis {slicing.axis}, start {slicing.start}, end {slicing.end}, stride {slicing.stride}{part}"
