"""Unknown numbers of an edit: the ones that bring the outputs closest to the reference, by Gauss-Newton steps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from operator import itemgetter

import numpy as np
from msgspec.structs import replace

from stepper.element_types import Array
from stepper.repair.edit import RepairEdit, Unknowns
from stepper.repair.patch import ModelPatch
from stepper.repair.replay import Agreement, Replayer, residual

_Rows = tuple[int, int]
"""The first rows of outputs to compare, and how many these outputs have."""
_MOST_STEPS = 20
_HALVINGS = 4
_STEP = 1e-3
_SMALL = 1e-6
"""Error of outputs of size 1 that is none."""
_MOST_ITERATIONS = 64
_FEW = 4
_CUTS = (1e-5, 1e-3, 1e-2)
"""Least singular values that count of slopes by many numbers, which are as rough as the numbers of a run."""
_ROUGH = 1e-3
"""Least singular value that counts while few rows are compared, by the largest."""
_HOPELESS = 0.97
_HOPELESS_FIRST = 0.9
"""Share of the error that may be left after all steps, and after the first one as the slopes foretell it."""


def solved(edit: RepairEdit, replayer: Replayer) -> tuple[RepairEdit, Agreement] | None:
    """Return the edit with its numbers and how its outputs agree; None if no numbers bring them any closer."""
    unknowns = edit.unknowns
    assert unknowns is not None, "the edit has unknown numbers"
    if unknowns.is_one:
        return _one_solved(edit, unknowns, replayer)
    best: tuple[float, Array] | None = None
    for start in unknowns.starts:
        found = _from(edit, replayer, np.asarray(start, np.float64))
        if len(start) > 1 and (found is None or found[0] > _SMALL) and _steps(replayer) > 1:
            found = _by_steps(edit, replayer, np.asarray(start, np.float64)) or found
        if found is not None and (best is None or found[0] < best[0]):
            best = found
            if best[0] < _SMALL:
                break
    if best is None:
        return None
    made = edit.solved(best[1].tolist())
    agreement = replayer.compare(made.patch(replayer.model), is_solved=True)
    if agreement.agrees and unknowns.rounds:
        return _rounded(edit, replayer, best[1], agreement)
    return made, agreement


def _steps(replayer: Replayer) -> int:
    """Return how many rows an output of integers has: what is decided in one step is an input of the next; else 0."""
    expected = replayer.known[0].example.expected.values()
    lengths = {one.shape[0] for one in expected if one.dtype.kind in "iu" and one.ndim}
    return max((one.shape[0] for one in expected if one.dtype.kind == "f" and {*one.shape[:1]} & lengths), default=0)


def _by_steps(edit: RepairEdit, replayer: Replayer, start: Array) -> tuple[float, Array] | None:
    """Solve for the first step, then for one more each time, so that all decisions before it are right."""
    numbers, length = start, _steps(replayer)
    for count in range(1, min(length, _MOST_ITERATIONS) + 1):
        found = _from(edit, replayer, numbers, (count, length))
        numbers = numbers if found is None else found[1]
    return _from(edit, replayer, numbers)


def _one_solved(edit: RepairEdit, unknowns: Unknowns, replayer: Replayer) -> tuple[RepairEdit, Agreement] | None:
    """Return the edit with the place and the value of one number: the place at which slopes foretell the outputs."""
    start = np.asarray(unknowns.starts[0], np.float64)
    error = _error(edit, replayer, np.asarray([0, start[0]]))
    if error is None or not error.size:
        return None
    best = 0.0, 0
    for index, number in enumerate(start.tolist()):
        step = _STEP * max(abs(number), 0.1)
        beside = _error(edit, replayer, np.asarray([index, number + step]))
        if beside is None or beside.shape != error.shape or time.monotonic() > replayer.deadline:
            return None
        slope = beside - error
        size = float(np.linalg.norm(slope))
        best = max(best, (abs(float(error @ slope)) / size if size else 0.0, index))
    place = best[1]

    def put(patch: ModelPatch, numbers: Array) -> object:
        return unknowns.put(patch, np.asarray([place, numbers[0]]))

    alone = replace(edit, unknowns=Unknowns(((float(start[place]),),), put))
    found = solved(alone, replayer)
    return None if found is None else (edit.solved((place, found[0].numbers[0])), found[1])


def _from(edit: RepairEdit, replayer: Replayer, start: Array, first: _Rows | None = None) -> tuple[float, Array] | None:
    """Return the error and the numbers to which the search from a start leads; None where it leads nowhere."""
    numbers = start
    error = _error(edit, replayer, numbers, first)
    if error is None or not error.size:
        return None
    size = before = float(np.linalg.norm(error))
    for count in range(_MOST_STEPS):
        if size < 1e-7 * max(1.0, np.sqrt(error.size)):
            break
        slopes = _slopes(edit, replayer, numbers, error, first)
        if slopes is None or not np.any(slopes):
            break
        step = np.linalg.lstsq(slopes, -error, rcond=1e-7 if first is None else _ROUGH)[0]
        left = float(np.linalg.norm(error + slopes @ step))
        if count == 0 and left > _HOPELESS_FIRST * size:
            return None
        further = [np.linalg.lstsq(slopes, -error, rcond=one)[0] for one in _CUTS] if len(numbers) > _FEW else []
        tried = (_moved(edit, replayer, numbers, one, size, first) for one in (step, *further))
        moved = min((one for one in tried if one is not None), key=itemgetter(0), default=None)
        if moved is None:
            break
        gain = moved[0] / size
        size, numbers, error = moved
        if gain > 0.95 and count > 1:
            break
    return (size, numbers) if size < before * _HOPELESS or size < _SMALL else None


def _moved(
    edit: RepairEdit, replayer: Replayer, numbers: Array, step: Array, size: float, first: _Rows | None
) -> tuple[float, Array, Array] | None:
    """Return error, numbers and differences after a step that makes the error smaller; None without one."""
    for halving in range(_HALVINGS):
        candidate = numbers + step * 0.5**halving
        error = _error(edit, replayer, candidate, first)
        if error is not None and (length := float(np.linalg.norm(error))) < size:
            return length, candidate, error
    return None


def _error(edit: RepairEdit, replayer: Replayer, numbers: Array, first: _Rows | None = None) -> Array | None:
    try:
        patch = edit.solved(numbers.tolist()).patch(replayer.model)
    except (LookupError, ValueError):
        return None
    outputs = replayer.outputs(patch)
    return None if outputs is None else residual(outputs, replayer.known, first)


def _slopes(
    edit: RepairEdit, replayer: Replayer, numbers: Array, error: Array, first: _Rows | None = None
) -> Array | None:
    columns = list[Array]()
    for index in range(len(numbers)):
        if time.monotonic() > replayer.deadline:
            return None
        step = _STEP * max(abs(float(numbers[index])), 0.1)
        changed = numbers.copy()
        changed[index] += step
        beside = _error(edit, replayer, changed, first)
        if beside is None or beside.shape != error.shape:
            return None
        columns.append((beside - error) / step)
    return np.stack(columns, 1)


def _rounded(
    edit: RepairEdit, replayer: Replayer, numbers: Array, agreement: Agreement
) -> tuple[RepairEdit, Agreement]:
    """Return the numbers with as few digits as keep the outputs as close."""
    allowed = min(1.0, max(0.05, 2 * agreement.ratio))
    for digits in range(1, 7):
        short = [float(f"{one:.{digits}g}") for one in numbers.tolist()]
        made = edit.solved(short)
        found = replayer.compare(made.patch(replayer.model), is_solved=True)
        if found.ratio <= allowed:
            return made, found
    return edit.solved(numbers.tolist()), agreement


def texts_of(numbers: Sequence[float]) -> str:
    """Return solved numbers in words."""
    shown = [f"{one:.6g}" for one in numbers[:8]]
    return shown[0] if len(numbers) == 1 else f"[{', '.join(shown)}{', ...' if len(numbers) > 8 else ''}]"
