"""Edits of constants: integers beside the one that is there, factors, orders of gates, transposes, zero points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, permutations

import numpy as np

from stepper.element_types import Array
from stepper.ir.model import Layer, Source
from stepper.operation_types import CELLS
from stepper.repair.changes import set_value, set_values, swapped
from stepper.repair.edit import EditKind, GraphSite, RepairEdit
from stepper.repair.patch import ModelPatch

_MOST_ELEMENTS = 2**20
_FEW = 16
_GATES = {"LSTMCell": 4, "LSTMSequence": 4, "GRUCell": 3, "GRUSequence": 3}
_FACTORS = ((2.0, "2"), (0.5, "1/2"), (10.0, "10"), (0.1, "1/10"), (100.0, "100"), (0.01, "1/100"))
_EPS = (1e-3, 1e-5, 1e-6, 1e-12, 1e-8, 1e-7, 1e-9)
Make = Callable[[Array], Array]
Changed = tuple[Make, str, float]
"""Function that makes another value of a Constant, its description, and its price."""


def constant_edits(site: GraphSite) -> Iterator[RepairEdit]:
    """Yield the edits of the Constants of a graph."""
    sizes = _sizes(site)
    for layer in site.graph.layers:
        if layer.type != "Constant" or not site.readers(Source(layer.id, 0)):
            continue
        value = site.value(Source(layer.id, 0))
        if value is None or not 0 < value.size <= _MOST_ELEMENTS:
            continue
        for make, what, price in _changed(value, sizes):
            made = _made(make, value) if value.size <= _FEW else None
            if value.size > _FEW or (made is not None and not _is_equal(made, value)):
                yield _edit(site, layer, value, make, what, price)
    for layer in site.operations:
        if layer.type in _GATES:
            yield from _gate_orders(site, layer)


def _made(make: Make, value: Array) -> Array | None:
    """Return the changed value; None if its type has no such number."""
    try:
        with np.errstate(all="ignore"):
            made = make(value)
        return np.ascontiguousarray(made).reshape(made.shape)
    except (OverflowError, ValueError):
        return None


def _is_equal(a: Array, b: Array) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and bool((a == b).all())


def _edit(site: GraphSite, layer: Layer, value: Array, make: Make, what: str, price: float) -> RepairEdit:
    source, is_short = Source(layer.id, 0), value.size <= 8
    return site.edit(
        EditKind.CONSTANT,
        layer,
        price,
        partial(_put, site, source, make),
        subject=what,
        before=number_text(value) if is_short else "",
        after=number_text(_made(make, value)) if is_short else "",
        roots=site.reader_ids(source),
    )


def _put(site: GraphSite, source: Source, make: Make, patch: ModelPatch) -> None:
    old = site.value(source)
    assert old is not None
    new = _made(make, old)
    if new is None or _is_equal(new, old):
        raise ValueError("the value is the same, or its type has no such number")
    set_value(site.scope, source.layer, new, patch)


def number_text(value: Array | None) -> str:
    """Return a few numbers of a tensor."""
    if value is None or value.size > _FEW:
        return ""
    if value.ndim == 0:
        return f"{value.item():.6g}" if value.dtype.kind == "f" else str(value.item())
    texts = (f"{one:.6g}" if value.dtype.kind == "f" else str(one) for one in value.reshape(-1).tolist())
    return f"[{', '.join(texts)}]"


def _sizes(site: GraphSite) -> tuple[int, ...]:
    """Return the lengths of axes of values of the graph, as numbers that a Constant may stand for."""
    found = {size for form in site.by_form for size in form.shape if 1 < size < 2**20}
    return tuple(sorted(found))


def _changed(value: Array, sizes: tuple[int, ...]) -> Iterator[Changed]:
    if value.dtype == np.bool_:
        if value.size <= _FEW:
            yield np.logical_not, "negated", 2.0
        return
    if value.dtype.kind in "iu":
        yield from _integer(value, sizes) if value.size == 1 else _integers(value)
    elif value.dtype.kind == "f":
        yield from _number(value, sizes) if value.size == 1 else _numbers(value)
        yield from _scaled(sizes)
    yield from _orders(value)


def _filled(number: float) -> Make:
    return lambda value: np.full_like(value, number)


def _times(factor: float) -> Make:
    return lambda value: (value * value.dtype.type(factor)).astype(value.dtype)


def _plus(step: float) -> Make:
    return lambda value: (value + np.asarray(step)).astype(value.dtype)


def _complement(value: Array) -> Array:
    return (1 - value).astype(value.dtype)


def _in_order(order: Sequence[int], axis: int = 0) -> Make:
    return lambda value: np.take(value, order, axis)


def _integer(value: Array, sizes: tuple[int, ...]) -> Iterator[Changed]:
    bits, now = np.iinfo(value.dtype), int(value.reshape(-1)[0])
    others = {now + step: 1.0 + 0.5 * (abs(step) - 1) for step in (1, -1, 2, -2)}
    further = [(-now, 2.0), (0, 2.0), (-1, 2.0), (1, 2.0), (128, 2.5), (now * 2, 2.5), (now // 2, 2.5), (10 * now, 2.5)]
    further += [(size - less, 2.5) for size in sizes for less in (0, 1)]
    for number, price in further:
        others.setdefault(number, price)
    for number, price in others.items():
        if number != now and int(bits.min) <= number <= int(bits.max):
            yield _filled(number), "", price


def _integers(value: Array) -> Iterator[Changed]:
    for step in (1, -1):
        yield _plus(step), f"{step:+d}", 2.0
    if value.dtype in (np.int8, np.uint8):
        yield from ((_plus(shift), f"{shift:+d}", 2.0) for shift in (128, -128))
        other = np.uint8 if value.dtype == np.int8 else np.int8
        yield lambda old: old.view(other), f"read as {np.dtype(other).name}", 2.0
    if value.ndim == 1 and value.size <= 8:
        for index in range(value.size):
            yield from ((_stepped(index, step), f"element {index} {step:+d}", 2.0) for step in (1, -1))
    if value.ndim == 1 and value.size <= 4:
        yield from ((_in_order(order), "in another order", 1.5) for order in permutations(range(value.size)))


def _stepped(index: int, step: int) -> Make:
    def make(value: Array) -> Array:
        changed = value.copy()
        changed[index] += step
        return changed

    return make


def _number(value: Array, sizes: tuple[int, ...]) -> Iterator[Changed]:
    now = float(value.reshape(-1)[0])
    if not np.isfinite(now):
        return
    others = {1 - now: "1 - value", 0.0: "0", 1.0: "1", abs(now) ** 0.5: "its square root", now * now: "its square"}
    if now:
        others[1 / now] = "its inverse"
    yield from ((_filled(number), text, 2.5) for number, text in others.items())
    if 0 <= abs(now) <= 1e-2:
        yield from ((_filled(eps), "", 2.0) for eps in _EPS)
    for size in sizes:
        for number, text in ((size, f"{size}"), (1 / size, f"1/{size}"), *_roots(size)):
            yield _filled(number), text, 3.0
    yield from ((_plus(step), f"{step:+d}", 3.0) for step in (128, -128))


def _roots(size: int) -> tuple[tuple[float, str], ...]:
    return (size**0.5, f"the root of {size}"), (size**-0.5, f"1 by the root of {size}")


def _numbers(value: Array) -> Iterator[Changed]:
    yield _complement, "1 - value", 3.5
    if not value.any():
        yield _filled(1.0), "1", 2.5
        yield _filled(-np.inf), "minus infinity", 3.5
    else:
        yield _filled(0.0), "0", 3.0
        if (value == value.reshape(-1)[0]).all():
            yield _filled(1.0), "1", 2.5


def _scaled(sizes: tuple[int, ...]) -> Iterator[Changed]:
    yield np.negative, "negated", 2.0
    yield from ((_times(factor), f"times {text}", 2.0) for factor, text in _FACTORS)
    for size in sizes:
        whole = ((float(size), f"{size}"), (1 / size, f"1/{size}"))
        yield from ((_times(number), f"times {text}", 3.0) for number, text in (*_roots(size), *whole))


def _orders(value: Array) -> Iterator[Changed]:
    """Yield the same elements in another order: transposed, reversed, blocks exchanged."""
    shape = value.shape
    for a, b in combinations(range(value.ndim), 2):
        if shape[a] == shape[b] > 1:
            yield partial(np.swapaxes, axis1=a, axis2=b), f"transposed (axes {a} and {b})", 1.5
    if value.dtype.kind != "f" and value.ndim < 2:
        return
    for axis, size in enumerate(shape[:4]):
        if size > 1:
            yield partial(np.flip, axis=axis), f"reversed along axis {axis}", 3.0
            for parts in (2, 3, 4):
                if size % parts == 0 and (size > parts or parts == 2):
                    yield from _blocks(value, axis, parts)


def _blocks(value: Array, axis: int, parts: int) -> Iterator[Changed]:
    names, size = {2: "halves", 3: "thirds", 4: "quarters"}[parts], value.shape[axis] // parts
    for a, b in combinations(range(parts), 2):
        elements = [one * size + at for one in swapped(range(parts), a, b) for at in range(size)]
        yield _in_order(elements, axis), f"{names} {a} and {b} of axis {axis} exchanged", 2.5
    if parts == 4 and value.size == value.shape[axis] and value.dtype.kind == "f":
        for a, b in permutations(range(4), 2):
            yield _moved_bias(axis, a, b), f"1 moved from quarter {a} to quarter {b} of the bias", 2.5


def _moved_bias(axis: int, a: int, b: int) -> Make:
    """Return a change of a bias whose forget bias of 1 is on another gate."""

    def make(value: Array) -> Array:
        pieces = [piece.copy() for piece in np.split(value, 4, axis)]
        pieces[a], pieces[b] = pieces[a] - 1, pieces[b] + 1
        return np.concatenate(pieces, axis).astype(value.dtype)

    return make


def _gate_orders(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    """Yield other orders of the gates in all weights of a recurrent cell at once."""
    gates, is_cell = _GATES[layer.type], layer.type in CELLS
    held = list[tuple[int, Array, int]]()
    for source in site.sources(layer)[-3:]:
        found = constant_of(site, source)
        value = None if found is None else site.value(found)
        axis = 0 if is_cell else 1
        if found is None or value is None or value.ndim <= axis or value.shape[axis] % gates:
            return
        held.append((found.layer, value, axis))
    for order in list(permutations(range(gates)))[1:]:
        values = []
        for key, value, axis in held:
            pieces = np.split(value, gates, axis)
            values.append((site.scope, key, np.concatenate([pieces[one] for one in order], axis)))
        yield site.edit(
            EditKind.CONSTANT,
            layer,
            2.0 if sum(one != at for at, one in enumerate(order)) == 2 else 2.5,
            partial(set_values, values),
            subject=f"gates of its weights in the order {', '.join(map(str, order))}",
        )


def constant_of(site: GraphSite, source: Source | None) -> Source | None:
    """Return the Constant that a value is, maybe behind a Convert; None for another value."""
    layer = site.graph.layer_of(source)
    while layer.type == "Convert":
        source = site.sources(layer)[0]
        layer = site.graph.layer_of(source)
    return source if layer.type == "Constant" else None
