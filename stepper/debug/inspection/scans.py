"""The concatenated outputs of a loop at a stop: pieces so far, order, and the shape now and at the end."""

from __future__ import annotations

from stepper.debug.inspection import explanations
from stepper.debug.inspection.views import ScanView
from stepper.engine import loops
from stepper.engine.frames import Activation, Frame
from stepper.engine.loops import ConcatenatedOutput, Scan
from stepper.engine.program import LoopPlan
from stepper.engine.rules import Rules
from stepper.errors import KernelError
from stepper.ir.model import Body, OutputMapping
from stepper.ops.operands import normalize_axis

Shape = tuple[int, ...]


def scan_views(frame: Frame, body: Body, rules: Rules) -> tuple[ScanView, ...]:
    """Return all of them, in the order of the file."""
    activation = frame.activation
    assert activation is not None and isinstance(activation.plan, LoopPlan)
    entries = [entry for entry in body.outputs if entry.output is not None and entry.slicing is not None]
    parts = zip(entries, activation.plan.concatenated, activation.scans, strict=True)
    return tuple(_scan_view(activation, body, entry, planned, scan.copy(), rules) for entry, planned, scan in parts)


def _scan_view(
    activation: Activation,
    body: Body,
    entry: OutputMapping,
    planned: ConcatenatedOutput,
    scan: Scan,
    rules: Rules,
) -> ScanView:
    plan = activation.plan
    assert isinstance(plan, LoopPlan)
    slicing = planned.slicing
    axis = _axis(slicing.axis, _piece_shape(plan, planned, scan))
    now = scan.shape(axis)
    return ScanView(
        output=planned.output,
        line=planned.line,
        result=body.graph.by_id[entry.result].name,
        axis=axis,
        order=explanations.order(scan.length, slicing),
        pieces=scan.length,
        shape=now,
        final_shape=_final_shape(activation, plan, planned, scan, axis, now),
        declared=scan.length == 0,
        why=explanations.concatenated(activation.operation.layer, slicing, axis, scan.length),
        _scan=scan,
        _plan=plan,
        _entry=planned,
        _rules=rules,
    )


def _axis(axis: int, shape: Shape) -> int:
    try:
        return normalize_axis(axis, len(shape))
    except KernelError:
        return axis


def _piece_shape(plan: LoopPlan, planned: ConcatenatedOutput, scan: Scan) -> Shape:
    """Return the shape of the first piece; before there is one, that which the file declares.

    A scalar counts as [1].
    """
    shape = scan.piece(0).shape if scan.length else plan.program.declared(planned.result)[0]
    return shape or (1,)


def _final_shape(
    activation: Activation, plan: LoopPlan, planned: ConcatenatedOutput, scan: Scan, axis: int, now: Shape | None
) -> Shape | None:
    """Return the shape at the end, unknown dimensions negative; None where the pieces cannot be joined."""
    if activation.ended is not None and scan.length:
        return now
    piece = _piece_shape(plan, planned, scan)
    if not 0 <= axis < len(piece) or (scan.length and now is None):
        return None
    total = explanations.total(activation)
    if total == 0:
        shape, dtype = plan.program.declared(planned.result)
        empty: Shape = loops.empty_concatenation(planned.slicing.axis, shape, dtype).shape
        return empty
    alike = now is None or (now[axis] == scan.length * piece[axis] and scan.piece(scan.length - 1).shape == piece)
    known = total is not None and alike and piece[axis] >= 0
    return (*piece[:axis], total * piece[axis] if known and total is not None else -1, *piece[axis + 1 :])
