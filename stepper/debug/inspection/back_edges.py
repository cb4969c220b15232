"""A back edge at a stop: what came in, what goes out, what comes in next, and how the two differ."""

from __future__ import annotations

import numpy as np

from stepper import element_types
from stepper.debug.inspection import explanations
from stepper.debug.inspection.inside import Inside
from stepper.debug.inspection.values import value_view
from stepper.debug.inspection.views import BackEdgeView, ValueView
from stepper.debug.iterations import slots
from stepper.element_types import STRING_DTYPE, Array
from stepper.engine.loops import NoEffect, Roles, without_effect
from stepper.ir.model import BackEdge
from stepper.tensors.difference import largest_gap


def back_edge_view(inside: Inside, roles: Roles, edge: BackEdge, *, differences: bool) -> BackEdgeView:
    """Return the back edge; `differences`: with what it changes."""
    effect = _no_effect(inside, roles, edge)
    result, parameter = (_edge_end(inside, identity) for identity in (edge.from_layer, edge.to_layer))
    began = inside.activation.iteration >= 0
    came_in = parameter.array if began else None
    goes_out = result.array if began else None
    comes_next = None
    if not effect and not explanations.is_last(inside.activation):
        comes_next = _carried(goes_out, came_in) if began else parameter.array
    return BackEdgeView(
        result=result,
        parameter=parameter,
        line=edge.line,
        came_in=came_in,
        goes_out=goes_out,
        comes_next=comes_next,
        change=None if not differences or came_in is None or goes_out is None else largest_gap(goes_out, came_in),
        marks=_marks(came_in, goes_out, thorough=differences),
        counts=not effect,
        why=effect or explanations.carried(inside.frame, result.name, parameter.name, edge.line, result.absent),
    )


def _edge_end(inside: Inside, identity: int) -> ValueView:
    """Return an end of a back edge; the file may name a layer that is none, where that has no effect."""
    if identity in inside.body.graph.by_id and (identity, 0) in inside.frame.program.slots:
        return inside.inner(identity)
    return value_view(inside.frame, None, f"layer {identity}")


def _no_effect(inside: Inside, roles: Roles, edge: BackEdge) -> str:
    """Return why a back edge does not count; empty where it does."""
    reason = without_effect(inside.body, roles, edge)
    if reason is None:
        return ""
    first = next(other for other in inside.body.back_edges if other.to_layer == edge.to_layer)
    return f"has no effect: {reason}{f' (line {first.line})' if reason is NoEffect.EARLIER else ''}"


def _carried(goes_out: Array | None, came_in: Array | None) -> Array | None:
    """Return what a Result becomes as the next value of a Parameter, which keeps the type that it began with."""
    if goes_out is None or came_in is None or goes_out.dtype == came_in.dtype:
        return goes_out
    return slots.read_only(goes_out.astype(came_in.dtype))


def _marks(came_in: Array | None, goes_out: Array | None, *, thorough: bool) -> tuple[str, ...]:
    """Return what is remarkable; `thorough`: found by looking through the tensors, too."""
    if goes_out is None or came_in is None:
        return ()
    found = []
    if goes_out.shape != came_in.shape:
        found.append("shape changed")
    if goes_out.dtype != came_in.dtype:
        found.append("type changed")
    if thorough and not found and np.array_equal(goes_out, came_in, equal_nan=_is_float(goes_out)):
        found.append("unchanged")
    if thorough and _is_float(goes_out):
        found += [name for name, test in (("NaN", np.isnan), ("Inf", np.isinf)) if bool(test(goes_out).any())]
    return tuple(found)


def _is_float(array: Array) -> bool:
    return array.dtype != STRING_DTYPE and element_types.is_floating(array.dtype)
