"""The plain run and one in fewer bits, operation by operation, on the same way: where they part, and how far."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import numpy as np
from msgspec import Struct

from stepper.diagnosis.precision.losses import relative_error
from stepper.diagnosis.precision.narrowing import LayerKey, layer_key
from stepper.element_types import is_floating
from stepper.engine.frames import Event, EventKind, Every, Frame
from stepper.engine.machine import Machine
from stepper.errors import StepperError
from stepper.ir.model import Layer, LayerSite, layer_site
from stepper.ops.emulation import rounded


class Harm(StrEnum):
    """Ways in which fewer bits harm a result, the gravest first."""

    OVERFLOW = "overflow"
    """A number that is finite in the plain run is not."""
    UNDERFLOW = "underflow"
    """A number other than 0 is 0."""
    LOSS = "loss"
    """The result is further off than is allowed."""
    OTHER = "other value"
    """An integer or a boolean is another one."""


class Parting(Struct, frozen=True):
    """Where the result of an operation was harmed first: the loops around it with their iterations, the element.

    `error` is the norm of the difference over that of the plain result.
    """

    harm: Harm
    layer: Layer
    path: tuple[LayerSite, ...]
    iterations: tuple[int, ...]
    tick: int
    element: tuple[int, ...]
    plain: float
    narrow: float
    error: float


class OtherWay(Struct, frozen=True):
    """Where the two runs do not do the same things any more: in this loop, or at this If, in these iterations."""

    layer: LayerSite
    path: tuple[LayerSite, ...]
    iterations: tuple[int, ...]
    tick: int


class SideBySide(Struct, frozen=True):
    """The first harm of each kind to each operation, in the order of time; `other_way` None: to the end alike."""

    partings: tuple[Parting, ...]
    other_way: OtherWay | None

    def first(self, key: LayerKey, harm: Harm) -> Parting | None:
        """Return the first harm of a kind to an operation."""
        return next((one for one in self.partings if one.harm is harm and layer_key(one.layer) == key), None)


def walk(
    plain: Machine,
    narrow: Machine,
    allowed: float,
    go_on: Callable[[], bool],
    ported: np.dtype[Any] | None = None,
) -> SideBySide:
    """Run both to the end, or as long as `go_on` is true; `allowed` is how far a result may be off.

    `ported` is the type in which values come into a body: Parameters are looked at as well then.
    """
    file = str(plain.compiled.model.path)
    found: dict[tuple[LayerKey, Harm], Parting] = {}
    while plain.stack and narrow.stack and go_on():
        try:
            ours, theirs = plain.advance(Every.OPERATION), narrow.advance(Every.OPERATION)
        except StepperError:
            break
        if not _same(ours, theirs):
            return SideBySide(tuple(found.values()), _other_way(plain, narrow, ours, file))
        if ours.kind is EventKind.OPERATION:
            _look(plain, ours, theirs, allowed, found)
        elif ours.kind is EventKind.BEGUN and ported is not None:
            _look_at_ports(plain, ours, theirs, allowed, ported, found)
    return SideBySide(tuple(found.values()), None)


def _same(ours: Event, theirs: Event) -> bool:
    """Return True if both have made the same move."""
    one, other = ours.frame, theirs.frame
    if ours.kind is not theirs.kind or one.program.graph is not other.program.graph or one.pc != other.pc:
        return False
    return one.phase is other.phase


def _look(
    machine: Machine, ours: Event, theirs: Event, allowed: float, found: dict[tuple[LayerKey, Harm], Parting]
) -> None:
    operation = ours.frame.program.operations[ours.frame.pc - 1]
    other = theirs.frame.program.operations[theirs.frame.pc - 1]
    for slot, their_slot in zip(operation.outputs, other.outputs, strict=True):
        exact, narrow = _value(ours.frame, slot), _value(theirs.frame, their_slot)
        if exact is not None and narrow is not None:
            _compare(machine, operation.layer, exact, narrow, allowed, found)


def _look_at_ports(
    machine: Machine,
    ours: Event,
    theirs: Event,
    allowed: float,
    dtype: np.dtype[Any],
    found: dict[tuple[LayerKey, Harm], Parting],
) -> None:
    program, other = ours.frame.program, theirs.frame.program
    slots = zip(program.graph.parameters, program.parameters, other.parameters, strict=True)
    for layer, slot, their_slot in slots:
        exact, given = _value(ours.frame, slot), _value(theirs.frame, their_slot)
        if exact is not None and given is not None:
            _compare(machine, layer, exact, rounded(given, dtype), allowed, found)


def _compare(
    machine: Machine,
    layer: Layer,
    exact: Any,
    narrow: Any,
    allowed: float,
    found: dict[tuple[LayerKey, Harm], Parting],
) -> None:
    """Take note of the harms that a layer's value has for the first time."""
    if exact is narrow or exact.shape != narrow.shape or exact.dtype != narrow.dtype:
        return
    if np.array_equal(exact, narrow, equal_nan=is_floating(exact.dtype)):
        return
    key = layer_key(layer)
    for harm, places in _harms(exact, narrow, allowed):
        if (key, harm) not in found:
            found[key, harm] = _parting(machine, layer, harm, places, exact, narrow)


def _value(frame: Frame, slot: int) -> Any:
    value = frame.values[slot]
    return None if value is None else np.asarray(value)


def _harms(exact: Any, narrow: Any, allowed: float) -> list[tuple[Harm, Any]]:
    """Return how a result was harmed, each with the elements that were (True), the most of them first."""
    if not is_floating(exact.dtype):
        return [(Harm.OTHER, exact != narrow)] if exact.dtype.kind in "biu" else []
    harms = []
    broken = np.isfinite(exact) & ~np.isfinite(narrow)
    if broken.any():
        harms.append((Harm.OVERFLOW, broken))
    gone = (exact != 0) & (narrow == 0)
    if gone.any():
        harms.append((Harm.UNDERFLOW, gone))
    if relative_error(exact, narrow) > allowed:
        with np.errstate(all="ignore"):
            distance = np.abs(narrow.astype(np.float64) - exact.astype(np.float64))
        distance = np.where(np.isfinite(distance), distance, 0)
        harms.append((Harm.LOSS, (distance == distance.max()) & (distance > 0)))
    return harms


def _parting(machine: Machine, layer: Layer, harm: Harm, places: Any, exact: Any, narrow: Any) -> Parting:
    flat = int(np.argmax(places))
    path, iterations = _around(machine, str(machine.compiled.model.path))
    return Parting(
        harm,
        layer,
        path,
        iterations,
        machine.tick,
        tuple(int(one) for one in np.unravel_index(flat, exact.shape)),
        float(exact.reshape(-1)[flat]),
        float(narrow.reshape(-1)[flat]),
        relative_error(exact, narrow),
    )


def _around(machine: Machine, file: str) -> tuple[tuple[LayerSite, ...], tuple[int, ...]]:
    """Return the loops and Ifs around where a machine stands, and the iterations of the loops."""
    activations = [frame.activation for frame in machine.stack if frame.activation is not None]
    path = tuple(layer_site(one.operation.layer, file) for one in activations)
    return path, tuple(max(one.iteration, 0) for one in activations if one.operation.layer.is_loop)


def _other_way(plain: Machine, narrow: Machine, ours: Event, file: str) -> OtherWay | None:
    """Return the innermost loop or If that both have been in, and did not go on with alike."""
    machine = plain if len(plain.stack) >= len(narrow.stack) else narrow
    path, iterations = _around(machine, file)
    if not path:
        return None
    return OtherWay(path[-1], path[:-1], iterations, ours.tick)
