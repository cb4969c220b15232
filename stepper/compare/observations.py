"""Observations of a comparison: mismatches of values, ends of loops on either side, where one side stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct, field

from stepper.compare.references.protocol import LoopOutcome, ReferenceFrame
from stepper.debug.breakpoints.breakpoint import Check, Guard
from stepper.debug.breakpoints.kinds.non_finite import holds_any, non_finite_checks
from stepper.debug.causes.cause import NonFinite, NonFiniteKind
from stepper.debug.causes.cause_texts import how_sentence, operands_text
from stepper.debug.scopes import GraphPath, PathStep
from stepper.element_types import STRING_DTYPE, Array, is_floating
from stepper.engine.frames import Frames
from stepper.engine.program import CompiledModel
from stepper.ir.model import Layer
from stepper.plain_values import storable
from stepper.records import Record
from stepper.tensors.difference import Distance, measure
from stepper.tensors.tolerances import Tolerance
from stepper.wording import excerpt

# --- Names of layers and numbers as reports write them ---------------------------------------------------------------


_LONGEST_NAME = 120


def kind(layer: Layer) -> str:
    """Return the type as the file writes it."""
    return "Const" if layer.type == "Constant" else layer.type


def named(layer: Layer) -> str:
    """Return `MatMul 'proj'`."""
    return f"{kind(layer)} '{excerpt(layer.name, _LONGEST_NAME)}'"


def numbered(layer: Layer) -> str:
    """Return `MatMul 'proj' (id 12)`."""
    return f"{named(layer)} (id {layer.id})"


def quoted(text: str | None) -> str:
    """Return an attribute's value; nothing where it is absent."""
    return "nothing" if text is None else f"'{excerpt(text, _LONGEST_NAME)}'"


def step_text(step: PathStep) -> str:
    """Return `Loop 'decoder' #3`, `If 'choice' (else)`."""
    if step.role == "body":
        return named(step.layer) + ("" if step.iteration is None else f" #{step.iteration}")
    return f"{named(step.layer)} ({step.role.removesuffix('_body')})"


def path_text(path: GraphPath) -> str:
    """Return the way to a graph, `model` for the model's own."""
    return " > ".join(step_text(step) for step in path) or "model"


# --- Origins of NaN and infinities in our run: the first operation that gives one though no input has one ------------
#
# The reference may have them as well; whether it does at the same place is told by asking it.


_WORDS = (NonFiniteKind.NAN, NonFiniteKind.INF)


class NonFiniteOrigin(Record, eq=False):
    """The first NaN (or infinity) that an operation made of others: `cause` says where and of what.

    `shared`: the reference has one there, too.
    """

    path: GraphPath
    layer: Layer
    cause: NonFinite
    shared: bool

    @property
    def text(self) -> str:
        """The whole of it in a sentence."""
        cause = self.cause
        title = "NaN (not a number)" if cause.kind is NonFiniteKind.NAN else "Inf"
        begins = "comes in with the model's inputs, first read by" if cause.given else "first appears in"
        at = f" at {list(cause.element)}" if cause.element else ""
        text = f"{title} {begins} {numbered(self.layer)} in {path_text(self.path)}{at}"
        return ": ".join(filter(None, (text, how_sentence(cause), operands_text(cause.operands))))


class NonFiniteOrigins:
    """Looks at operations in the order in which they ran, until it has seen one origin of each kind."""

    def __init__(self, compiled: CompiledModel) -> None:
        self._found: dict[NonFiniteKind, tuple[tuple[int, int], NonFiniteOrigin]] = {}
        self._looks = 0
        self._checks: dict[tuple[NonFiniteKind, int], list[Check]] = {}
        self._guards: dict[int, Guard] = {}
        """By program: whether all of its values are finite, which serves both kinds."""
        for word in _WORDS:
            for check in non_finite_checks(word, compiled, frozenset()):
                self._checks.setdefault((word, id(check.program)), []).append(check)
                if check.guard is not None:
                    self._guards[id(check.program)] = check.guard

    def look(self, stack: Frames, path: GraphPath, first: int, end: int, theirs: ReferenceFrame | None) -> None:
        """At the operations `first` to `end` (not included) of the innermost frame, which have run."""
        self._looks += 1
        if self.is_complete:
            return
        program = stack[-1].program
        with np.errstate(all="ignore"):
            guard = self._guards.get(id(program))
            if guard is None or not guard.may_hold(stack, first, end - 1):
                return
            for word in [word for word in _WORDS if word not in self._found]:
                for check in self._checks[word, id(program)]:
                    causes = check.test(stack) if first <= check.index < end else None
                    if causes is not None and isinstance(causes[0], NonFinite):
                        cause, layer = causes[0], program.operations[check.index].layer
                        other = None if theirs is None else theirs.value(layer, cause.location.output or 0)
                        origin = NonFiniteOrigin(path, layer, cause, holds_any(cause.kind, other))
                        self._found[word] = ((self._looks, check.index), origin)
                        break

    @property
    def is_complete(self) -> bool:
        """True if there is nothing left to look for."""
        return len(self._found) == len(_WORDS)

    def in_order(self) -> tuple[NonFiniteOrigin, ...]:
        """Return what was found, the earliest first."""
        return tuple(origin for _time, origin in sorted(self._found.values(), key=lambda pair: pair[0]))


# ---------------------------------------------------------------------------------------------------------------------


class ErrorOrigin(StrEnum):
    """Origin of a mismatch."""

    HERE = "made here"
    CARRIED = "carried in"
    DEPARTURE = "a known departure of OpenVINO's CPU plugin"
    OVERFLOW = "an overflow in OpenVINO's 32 bits"
    UNKNOWN = "origin not known"


class ValueMismatch(Record, eq=False):
    """Describe a value outside of its tolerance: an output of a layer.

    The value of a Parameter is the value that entered the body. `ours` and `theirs` are the values. `inputs_agree`:
    every input of the operation that could be compared is within its tolerance, `unknown` are computed ones that could
    not. `patterns` say in words how the two values relate.
    """

    path: GraphPath
    layer: Layer
    output: int
    measure: Distance
    ours: Any
    theirs: Any
    origin: ErrorOrigin = ErrorOrigin.UNKNOWN
    inputs_agree: bool = False
    unknown: tuple[Layer, ...] = ()
    patterns: tuple[str, ...] = ()


class LoopMismatch(Record, eq=False):
    """A loop that ran more or fewer iterations than in the reference; `iteration` is the first that only one side ran,
    None where the two outcomes are of all its runs together.

    `path` leads to the graph in which the loop is.
    """

    path: GraphPath
    layer: Layer
    iteration: int | None
    ours: LoopOutcome
    theirs: LoopOutcome | None


class BranchMismatch(Record, eq=False):
    """An If that takes another branch than in the reference; `path` leads to the graph in which it is."""

    path: GraphPath
    layer: Layer
    ours: bool
    theirs: bool


class SideFailure(Record, eq=False):
    """Report that one side stopped with an error.

    `path` and `layer` are where our run was (layer None: between operations). `unknown` are the layers behind the
    inputs of `layer` that have no value in the reference.
    """

    path: GraphPath
    layer: Layer | None
    message: str
    ours: bool
    unknown: tuple[Layer, ...] = ()


Finding = ValueMismatch | LoopMismatch | BranchMismatch | SideFailure


class OutputRecord(Struct):
    """Count how often an output of a layer differed, and keep the first and worst.

    The counts of comparisons and differences are over the whole run. The worst is measured at the end of the run: until
    then `candidate` has its ratio, path and the two values, and their distance where that is known already. `trace` is
    where it differed at all for the first time, within the tolerance too (of runs with the same kernels).
    """

    layer: Layer
    output: int
    loops: tuple[Layer, ...]
    compared: int = 0
    differing: int = 0
    trace: ValueMismatch | None = None
    first: ValueMismatch | None = None
    worst: ValueMismatch | None = None
    candidate: tuple[float, GraphPath, Any, Any, Distance | None] | None = None

    def propose(self, ratio: float, path: GraphPath, ours: Any, theirs: Any, distance: Distance | None = None) -> None:
        """Propose a value outside of its tolerance, which may be the worst."""
        self.differing += 1
        if self.candidate is None or ratio > self.candidate[0]:
            self.candidate = (ratio, path, ours, theirs, distance)


class LoopRecord(Struct):
    """All runs of one loop on either side, in order, equal neighbours together: (ours, theirs, how often).

    `total` are the reference's iterations in all runs, where only these are known.
    """

    path: tuple[Layer, ...]
    layer: Layer
    runs: list[tuple[LoopOutcome, LoopOutcome | None, int]] = field(default_factory=list)
    total: int | None = None

    @property
    def iterations(self) -> int:
        """Ours, in all runs."""
        return sum(ours.iterations * count for ours, _theirs, count in self.runs)

    def add(self, ours: LoopOutcome, theirs: LoopOutcome | None) -> None:
        """One more run."""
        if self.runs and self.runs[-1][:2] == (ours, theirs):
            self.runs[-1] = (ours, theirs, self.runs[-1][2] + 1)
        else:
            self.runs.append((ours, theirs, 1))


class OutputComparison(Record):
    """Compare an output of the model: None if it agrees exactly.

    `theirs_known` is False if the reference has no such output.
    """

    name: str
    measure: Distance | None
    theirs_known: bool = True
    patterns: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """True if it is known to be outside of its tolerance."""
        return self.measure is not None and self.measure.differs


class Observations(Struct):
    """Observations of a comparison, in the order of our run.

    `findings` has the first of each place, at most as many as are kept. `records` are by `id()` of the program and
    slot, `graphs` map that to `id()` of the program's graph. `first_special` is where NaN or an infinity first stands
    against a number of the reference; `non_finite` are the first NaN and the first infinity of our run, the earliest
    first, and `nan_in_outputs` is True if the model's outputs have any. `each_alone` is True if the reference computed
    every operation from our inputs, `is_source` if it ran the file from which our model was converted. `notes` are
    those of our run on the other rule book.
    """

    findings: list[Finding] = field(default_factory=list)
    records: dict[tuple[int, int], OutputRecord] = field(default_factory=dict)
    graphs: dict[int, int] = field(default_factory=dict)
    loops: dict[int, LoopRecord] = field(default_factory=dict)
    outputs: list[OutputComparison] = field(default_factory=list)
    compared: int = 0
    given_up: str = ""
    first_special: ValueMismatch | None = None
    non_finite: tuple[NonFiniteOrigin, ...] = ()
    nan_in_outputs: bool = False
    each_alone: bool = False
    is_source: bool = False
    notes: tuple[str, ...] = ()

    @property
    def reported_non_finite(self) -> tuple[NonFiniteOrigin, ...]:
        """Origins that the reference does not have, or all where NaN comes out of the model on both sides."""
        return tuple(one for one in self.non_finite if self.nan_in_outputs or not one.shared)

    @property
    def outputs_differ(self) -> bool:
        """True if an output of the model is outside of its tolerance."""
        return any(one.differs for one in self.outputs)

    @property
    def outputs_agree(self) -> bool:
        """True if all outputs of the model are known to be within their tolerances."""
        return bool(self.outputs) and all(one.theirs_known for one in self.outputs) and not self.outputs_differ

    def ordered(self, *, exact: bool) -> list[Finding]:
        """Return the findings that count, that with which the others begin first.

        `exact`: of two runs with the same kernels, where each counts. Else rounding that a loop amplifies, and what
        OpenVINO is known to compute otherwise, are findings only where they reach the outputs.
        """
        if exact:
            return self.findings
        counted = {ErrorOrigin.HERE, ErrorOrigin.OVERFLOW} if self.outputs_differ else {ErrorOrigin.HERE}
        roots = [one for one in self.findings if not isinstance(one, ValueMismatch) or one.origin in counted]
        if not roots:
            return self.findings if self.outputs_differ else []
        if isinstance(roots[0], SideFailure) and roots[0].ours:
            return self.findings  # what differed before may be why
        return [*roots, *(one for one in self.findings if one not in roots)]


# --- Patterns of two values that differ, in words: shifted, reversed, scaled, rounded  -------------------------------


_LARGEST = 2**22
"""Elements; of larger values only the beginning would be worth the time."""

NARROW = (("f16", np.float16), ("bf16", ml_dtypes.bfloat16))
SPECIALS = (("NaN (not a number)", np.isnan), ("Inf", np.isinf))


def is_telling(value: Any) -> bool:
    """True if a value can be recognised in another place: its finite numbers are not one and the same throughout."""
    flat = np.asarray(value).reshape(-1)
    if flat.dtype == STRING_DTYPE:
        return False
    flat = flat[np.isfinite(storable(flat).astype(np.float64))] if is_floating(flat.dtype) else flat
    if flat.size == 0:
        return False
    return bool((flat != flat[0]).any()) or (flat.size == 1 and bool(flat[0] != 0) and is_floating(flat.dtype))


def patterns_of_values(ours: Any, theirs: Any, earlier: Any, tolerance: Tolerance) -> tuple[str, ...]:
    """Return the patterns of a value inside a body; `earlier` is the reference's one iteration before."""
    found: list[str] = []
    if earlier is not None and is_telling(ours) and _same(ours, earlier, tolerance):
        found.append("equals the reference one iteration earlier (shifted by one: the old value, before the update)")
    return (*found, *patterns_of_sequences(ours, theirs, tolerance))


def patterns_of_sequences(ours: Any, theirs: Any, tolerance: Tolerance) -> tuple[str, ...]:
    """Return the patterns of two values in themselves."""
    a, b = np.asarray(ours), np.asarray(theirs)
    if STRING_DTYPE in (a.dtype, b.dtype) or max(a.size, b.size) > _LARGEST or not a.size or not b.size:
        return ()
    if a.shape != b.shape:
        return tuple(_of_shapes(a, b, tolerance))
    special = tuple(_of_specials(a, b))
    if special:
        return special
    return tuple(dict.fromkeys([*_of_order(a, b, tolerance), *_of_numbers(a, b, tolerance)]))


def _same(ours: Any, theirs: Any, tolerance: Tolerance) -> bool:
    distance = measure(ours, theirs, tolerance)
    return distance is None or not distance.differs


# --- shapes ---------------------------------------------------------------------------------------------------------


def _of_shapes(a: Array, b: Array, tolerance: Tolerance) -> Iterator[str]:
    if a.ndim == b.ndim:
        axes = [axis for axis in range(a.ndim) if a.shape[axis] != b.shape[axis]]
        if len(axes) == 1:
            yield from _of_length(a, b, axes[0], tolerance)
        if sorted(a.shape) == sorted(b.shape):
            yield from _of_axes(a, b, tolerance)
    if a.size == b.size and _same(a.reshape(-1), b.reshape(-1), tolerance):
        yield "has the same numbers in another shape"


def _of_length(a: Array, b: Array, axis: int, tolerance: Tolerance) -> Iterator[str]:
    short = min(a.shape[axis], b.shape[axis])
    difference = a.shape[axis] - b.shape[axis]
    words = f"is {abs(difference)} {'longer' if difference > 0 else 'shorter'} along axis {axis}"
    first = _cut(a, axis, 0, short), _cut(b, axis, 0, short)
    if _same(*first, tolerance):
        yield f"{words}, the first {short} agree ({'too many' if difference > 0 else 'too few'} iterations)"
    elif _same(_cut(a, axis, -short, None), _cut(b, axis, -short, None), tolerance):
        yield f"{words}, the last {short} agree (it begins elsewhere)"
    else:
        yield words


def _of_axes(a: Array, b: Array, tolerance: Tolerance) -> Iterator[str]:
    for i in range(a.ndim):
        for j in range(i + 1, a.ndim):
            if np.swapaxes(a, i, j).shape == b.shape and _same(np.swapaxes(a, i, j), b, tolerance):
                yield f"is the reference's transposed: axes {i} and {j} are exchanged (wrong axis)"


# --- NaN and infinities ---------------------------------------------------------------------------------------------


def _of_specials(a: Array, b: Array) -> Iterator[str]:
    if not (is_floating(a.dtype) and is_floating(b.dtype)):
        return
    x, y = storable(a), storable(b)
    for what, test in SPECIALS:
        mine, others = int(test(x).sum()), int(test(y).sum())
        if mine and not others:
            yield f"has {what} in {mine} of {a.size} elements where the reference has finite numbers"
        elif others and not mine:
            yield f"is finite where the reference has {what} in {others} of {a.size} elements"


# --- order ----------------------------------------------------------------------------------------------------------


def _of_order(a: Array, b: Array, tolerance: Tolerance) -> Iterator[str]:
    if a.size < 2 or not is_telling(a):
        return
    for axis in range(a.ndim):
        if a.shape[axis] > 1 and not _same(np.flip(b, axis), b, tolerance) and _same(a, np.flip(b, axis), tolerance):
            yield f"is the reference's in reversed order along axis {axis}"
        yield from _of_shift(a, b, axis, tolerance)
    if a.ndim > 1:
        yield from _of_axes(a, b, tolerance)


def _of_shift(a: Array, b: Array, axis: int, tolerance: Tolerance) -> Iterator[str]:
    size = a.shape[axis]
    if size < 3:
        return
    late = _cut(a, axis, 1, None), _cut(b, axis, 0, size - 1)
    early = _cut(a, axis, 0, size - 1), _cut(b, axis, 1, None)
    if is_telling(late[0]) and _same(*late, tolerance):
        yield f"lags by one along axis {axis}: element t is the reference's t-1 (shifted by one, the old value)"
    elif is_telling(early[0]) and _same(*early, tolerance):
        yield f"is ahead by one along axis {axis}: element t is the reference's t+1 (shifted by one iteration)"


def _cut(value: Array, axis: int, begin: int, end: int | None) -> Array:
    cut: Array = value[(slice(None),) * axis + (slice(begin, end),)]
    return cut


# --- numbers --------------------------------------------------------------------------------------------------------


def _of_numbers(a: Array, b: Array, tolerance: Tolerance) -> Iterator[str]:
    if a.dtype == np.bool_ or b.dtype == np.bool_:
        if a.dtype == b.dtype and bool((a != b).all()):
            yield "is inverted: true where the reference has false"
        return
    x, y = storable(a).astype(np.float64), storable(b).astype(np.float64)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return
    with np.errstate(all="ignore"):
        for rule in (_zero, _sign, _offset, _factor, _clipped, _rounded):
            text = rule(x, y, _near(tolerance), a)
            if text:
                yield text
                return


Near = Callable[[Any, Any], bool]


def _near(tolerance: Tolerance) -> Near:
    """Return a test for agreement a little wider than the tolerance."""
    relative = 4 * min(max(tolerance.relative, 1e-12), 1e-4)
    return lambda a, b: bool((np.abs(a - b) <= tolerance.absolute + relative * np.abs(b)).all())


def _zero(x: Any, y: Any, _near: Near, ours: Array) -> str:
    if ours.size == 1 and not is_floating(ours.dtype):
        return ""  # by how much it is off says more
    if not x.any():
        return "is zero throughout"
    return "is not zero, but the reference is zero throughout" if not y.any() else ""


def _sign(x: Any, y: Any, near: Near, _ours: Array) -> str:
    return "has the sign flipped" if near(-x, y) and y.any() else ""


def _offset(x: Any, y: Any, near: Near, ours: Array) -> str:
    gap = float(np.median(x - y))
    if gap == 0 or not near(x - gap, y) or near(x, y):
        return ""
    if abs(gap) < 1e-3 * float(np.abs(x - y).max()):
        return ""
    if ours.size == 1:
        whole = float(x.reshape(-1)[0] - y.reshape(-1)[0])
        return f"is off by {whole:+g} (an offset)" if not is_floating(ours.dtype) else ""
    return f"is off by {gap:+.6g} everywhere (constant offset)"


def _factor(x: Any, y: Any, near: Near, ours: Array) -> str:
    nonzero = y != 0
    if ours.size < 2 or not nonzero.any() or not is_floating(ours.dtype):
        return ""
    factor = float(np.median(x[nonzero] / y[nonzero]))
    if abs(factor - 1) < 1e-3 or not near(x, factor * y):
        return ""
    return f"is {factor:.6g} times the reference's everywhere (constant scale)"


def _clipped(x: Any, y: Any, near: Near, ours: Array) -> str:
    """Return that ours is the reference's, limited from above or below; empty if it is not."""
    if ours.size < 2 or not is_floating(ours.dtype):
        return ""
    low, high = float(x.min()), float(x.max())
    if low < high and near(np.clip(y, low, high), x):
        # What is cut off must be more than what agreement leaves open.
        limits = [f"at {high:.6g} from above"] if y.max() > high and not near(high, y.max()) else []
        limits += [f"at {low:.6g} from below"] if y.min() < low and not near(low, y.min()) else []
        if limits:
            return f"is the reference's clipped (saturated) {' and '.join(limits)}"
    return ""


def _rounded(_x: Any, y: Any, _near: Near, ours: Array) -> str:
    if ours.dtype != np.float32 or ours.size < 2 or not ours.any():
        return ""
    theirs = y.astype(np.float32)
    for name, narrow in NARROW:
        rounded = theirs.astype(narrow).astype(np.float32)
        if bool((rounded == ours).all()) and bool((rounded != theirs).any()):
            return f"has only numbers of {name}: it was rounded to lower precision"
    return ""
