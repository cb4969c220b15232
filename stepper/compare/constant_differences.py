"""Description of a constant that differs from the reference's: one element, rounded, transposed, gates swapped ..."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np

from stepper.compare.observations import NARROW, SPECIALS
from stepper.element_types import STRING_DTYPE, Array, have_same_bits, is_floating, name_of
from stepper.engine.program import CompiledModel
from stepper.errors import ModelError
from stepper.ir.constants import constant_value
from stepper.ir.model import Graph, Layer, Model, Source
from stepper.ops.operands import shape_text
from stepper.plain_values import storable
from stepper.tensors.difference import agree_exactly
from stepper.tensors.number_text import number_text

# --- Constant values of a graph: the Constants of the file, and in bodies whatever follows from them alone -----------


class ConstantValues:
    """Constant values of one model, by graph and layer. Without `compiled`, of the file's Constants alone."""

    def __init__(self, model: Model, compiled: CompiledModel | None = None) -> None:
        self._model = model
        self._programs = {id(program.graph): program for program in compiled.programs} if compiled else {}
        self._digests: dict[tuple[int, Source], str] = {}

    def value(self, graph: Graph, source: Source | None) -> Any:
        """Return the constant value of an output of a layer; None where it is computed by the run."""
        if source is None:
            return None
        layer = graph.by_id[source.layer]
        if layer.type in ("Parameter", "Result"):
            return None
        program = self._programs.get(id(graph))
        slot = None if program is None else program.slots.get(source)
        if program is not None and slot is not None:
            return program.template[slot]
        return self.of_layer(layer)

    def of_layer(self, layer: Layer) -> Any:
        """Return the value of a Constant; None for anything else, or where the .bin does not have it."""
        if layer.type != "Constant":
            return None
        try:
            return constant_value(self._model, layer)
        except ModelError:
            return None

    def digest(self, graph: Graph, source: Source) -> str | None:
        """Return a hash of type, shape and content of a constant; None where it is computed by the run."""
        key = id(graph), source
        if key not in self._digests:
            value = self.value(graph, source)
            if value is None:
                return None
            self._digests[key] = _digest(np.asarray(value))
        return self._digests[key]


def _digest(value: np.ndarray[Any, Any]) -> str:
    content = "\0".join(map(str, value.reshape(-1))).encode() if value.dtype == STRING_DTYPE else value.tobytes()
    return f"{value.dtype}{value.shape}{hashlib.blake2b(content, digest_size=12).hexdigest()}"


def same_numbers(ours: Any, theirs: Any) -> bool:
    """True if two constants are the same, bit for bit."""
    a, b = np.asarray(ours), np.asarray(theirs)
    return agree_exactly(a, b) or have_same_bits(a, b)


# ---------------------------------------------------------------------------------------------------------------------


_GATES: Final = {
    "LSTMCell": ("f", "i", "c", "o"),
    "LSTMSequence": ("f", "i", "c", "o"),
    "GRUCell": ("z", "r", "h"),
    "GRUSequence": ("z", "r", "h"),
}
"""The order in which the specification has the blocks of W, R and B."""

_BLOCKS: Final = (2, 3, 4)


def described(ours: Array, theirs: Array, consumer: Layer) -> str:
    """Return the difference as the end of a sentence that begins with the constant's name."""
    if ours.shape != theirs.shape:
        return f"has shape {shape_text(ours.shape)} instead of {shape_text(theirs.shape)} in the reference"
    if STRING_DTYPE in (ours.dtype, theirs.dtype):
        return "holds another text than in the reference"
    if ours.size == 1:
        a, b = ours.reshape(-1)[0], theirs.reshape(-1)[0]
        kind = "" if ours.dtype == theirs.dtype else f" ({name_of(ours.dtype)} instead of {name_of(theirs.dtype)})"
        return f"has the value {number_text(a, 7)} instead of {number_text(b, 7)} in the reference{kind}"
    if bool((storable(ours) == storable(theirs)).all()):
        return f"has the type {name_of(ours.dtype)} instead of {name_of(theirs.dtype)}, the values are the same"
    return _of_many(ours, theirs, consumer)


def _of_many(ours: Array, theirs: Array, consumer: Layer) -> str:
    a, b = storable(ours).astype(np.float64), storable(theirs).astype(np.float64)
    different = ~((a == b) | ((a != a) & (b != b)))
    count = int(different.sum())
    where = tuple(int(index) for index in np.argwhere(different)[0])
    special = _specials(a, b)
    if special:
        return special
    gap = float(np.abs(a - b).max())
    if (a == a.reshape(-1)[0]).all() and (b == b.reshape(-1)[0]).all():
        values = f"{number_text(ours.reshape(-1)[0], 7)} throughout instead of {number_text(theirs.reshape(-1)[0], 7)}"
        return f"has the value {values} in the reference"
    if not a.any():
        return f"is zero throughout, in the reference its values reach {number_text(np.abs(b).max(), 7)} (dropped)"
    if count == 1:
        values = f"{number_text(ours[where], 7)} instead of {number_text(theirs[where], 7)} in the reference"
        return f"differs in one element, {list(where)}: the value is {values} (by {gap:.3g})"
    text = _rearranged(ours, theirs, consumer) or _scaled(a, b, ours) or _rounded(ours, theirs)
    if text:
        return text
    values = f"{number_text(ours[where], 7)} instead of {number_text(theirs[where], 7)}"
    spread = f"in {count} of {ours.size} values, by up to {gap:.3g}"
    return f"differs from the reference {spread}; first {list(where)}: {values}"


def _specials(a: Any, b: Any) -> str:
    for what, test in SPECIALS:
        if test(a).any() and not test(b).any():
            where = [int(index) for index in np.argwhere(test(a))[0]]
            return f"has {what} in {int(test(a).sum())} of {a.size} values, first {where}, where the reference has none"
        if test(b).any() and not test(a).any():
            return f"has finite values where the reference has {what}"
    return (
        "" if np.isfinite(a).all() and np.isfinite(b).all() else "has other values than the reference, not all finite"
    )


def _rearranged(ours: Array, theirs: Array, consumer: Layer) -> str:
    if ours.ndim == 2 and ours.shape[0] == ours.shape[1] and bool((ours == theirs.T).all()):
        return "is stored transposed (rows and columns exchanged against the reference)"
    for axis in range(ours.ndim):
        if ours.shape[axis] > 1 and bool((ours == np.flip(theirs, axis)).all()):
            return f"is the reference's in reversed order along axis {axis}"
    for axis in range(ours.ndim):
        counts = sorted({*_BLOCKS, len(_GATES.get(consumer.type, ()))} - {0}, reverse=True)
        for blocks in counts:
            text = _blocks(ours, theirs, axis, blocks, consumer)
            if text:
                return text
    for axis in range(ours.ndim):
        text = _permuted(ours, theirs, axis)
        if text:
            return text
    if ours.ndim > 1 and ours.size < 2**20 and bool((np.sort(ours, axis=None) == np.sort(theirs, axis=None)).all()):
        return "has the reference's values in another order"
    return ""


def _blocks(ours: Array, theirs: Array, axis: int, blocks: int, consumer: Layer) -> str:
    """Return that it consists of the reference's blocks (gates) in another order; empty if it does not."""
    if ours.shape[axis] % blocks or ours.shape[axis] == blocks:
        return ""
    mine, others = np.split(ours, blocks, axis), np.split(theirs, blocks, axis)
    order = []
    for block in mine:
        found = [k for k, other in enumerate(others) if k not in order and bool((block == other).all())]
        if not found:
            return ""
        order.append(found[0])
    if order == sorted(order):
        return ""
    letters = _GATES.get(consumer.type, ())
    names = letters if len(letters) == blocks else tuple(map(str, range(blocks)))
    written, expected = ",".join(names[k] for k in order), ",".join(names)
    moved = [names[k] for k in range(blocks) if order[k] != k]
    pair = f"blocks {' and '.join(moved)} exchanged (swapped): " if len(moved) == 2 else ""
    what = "gate blocks" if len(letters) == blocks else f"{blocks} blocks along axis {axis} (gates)"
    return f"has its {what} permuted, {pair}order {written} instead of {expected} in the reference"


def _permuted(ours: Array, theirs: Array, axis: int) -> str:
    size = ours.shape[axis]
    if size < 2 or size > 4096 or ours.ndim < 2:
        return ""
    mine = [np.take(ours, k, axis).tobytes() for k in range(size)]
    others = [np.take(theirs, k, axis).tobytes() for k in range(size)]
    if sorted(mine) != sorted(others):
        return ""
    moved = [k for k in range(size) if mine[k] != others[k]]
    what = {0: "rows", 1: "columns"}.get(axis, f"slices along axis {axis}")
    if len(moved) == 2:
        return f"has {what} {moved[0]} and {moved[1]} exchanged (swapped) against the reference"
    return f"has {len(moved)} of its {size} {what} in another order than the reference (permuted)"


def _scaled(a: Any, b: Any, ours: Array) -> str:
    if not is_floating(ours.dtype):
        return ""
    with np.errstate(all="ignore"):
        if bool((a == -b).all()):
            return "has the sign of every value flipped against the reference"
        nonzero = b != 0
        if not nonzero.any():
            return "has values where the reference is zero throughout"
        factor = float(np.median(a[nonzero] / b[nonzero]))
        if np.allclose(a, factor * b, rtol=1e-5, atol=0):
            return f"is {factor:.6g} times the reference's value everywhere (another scale)"
        flipped = int((a == -b).sum() - ((a == 0) & (b == 0)).sum())
        if flipped and bool(((a == -b) | (a == b)).all()):
            return f"has the sign of {flipped} of {a.size} values flipped against the reference"
        gap = float(np.median(a - b))
        if np.allclose(a - gap, b, rtol=1e-5, atol=1e-7 * float(np.abs(b).max())):
            return f"has {gap:+.6g} added to every value of the reference (offset)"
    return ""


def _rounded(ours: Array, theirs: Array) -> str:
    if not is_floating(theirs.dtype):
        return ""
    for name, narrow in NARROW:
        with np.errstate(all="ignore"):
            if bool((theirs.astype(narrow).astype(np.float64) == storable(ours).astype(np.float64)).all()):
                gap = float(np.abs(storable(ours).astype(np.float64) - storable(theirs).astype(np.float64)).max())
                long = {"f16": "float16", "bf16": "bfloat16"}[name]
                return f"is the reference's value rounded to {name} ({long}): the weights differ by up to {gap:.3g}"
    return ""
