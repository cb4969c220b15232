"""The answer to why a value is what it is, as JSON has it."""

from __future__ import annotations

from typing import Any

from stepper.debug.provenance.facts import Provenance
from stepper.debug.provenance.texts import link_reason, operation_text


def provenance_data(found: Provenance) -> dict[str, Any]:
    """Return the answer as JSON has it: `chain` with a link each, `sources` with an element each."""
    value = [
        {
            "address": address,
            "value": link.value,
            "operation": operation_text(link),
            "reason": link_reason(link),
            "is_shape": link.is_shape,
            "decides": None if link.decides is None else str(link.decides),
            "line": link.location.operation.line if link.location.operation is not None else 0,
            "parts": [
                {"name": part.layer.name, "output": part.output, "value": part.value, "role": part.role}
                | {"index": None if part.element is None else list(part.element), "share": part.share}
                | {"is_shape": part.is_shape}
                for part in link.parts
            ],
            "count": link.count,
            "rest": link.rest,
        }
        for address, link in zip(found.addresses, found.links, strict=True)
    ]
    return {
        "asked": found.asked,
        "address": found.address,
        "type": found.type,
        "shape": list(found.shape),
        "element": None if found.element is None else list(found.element),
        "value": found.value,
        "chain": value,
        "sources": [
            {"kind": one.kind, "name": one.name, "index": list(element.index), "value": element.value}
            | {"part": element.part}
            for one in found.sources
            for element in one.elements
        ],
        "complete": all(len(one.elements) == one.count for one in found.sources),
        "extents": [
            {"kind": one.kind, "name": one.name, "axis": axis.index[0], "value": axis.value, "part": axis.part}
            for one in found.sources
            for axis in one.axes
        ],
        "tensors": [
            {"kind": one.kind, "name": one.name, "type": one.type, "shape": list(one.shape)}
            | {"elements": one.count, "listed": len(one.elements), "parts": {str(k): n for k, n in one.counts}}
            for one in found.sources
        ],
        "iterations": None if found.end is None else found.end.iterations,
        "ended": None if found.end is None else found.end.reason,
        "set_by_hand": found.end is not None and found.end.is_set,
        "rules": [{"type": one.type, "method": one.method, "count": one.count} for one in found.rules],
        "operations": found.operations,
        "kernel_runs": found.kernel_runs,
        "trials": {
            "candidates": found.trials.candidates,
            "tried": found.trials.tried,
            "excluded": found.trials.excluded,
            "runs": found.trials.runs,
            "reason": found.trials.reason,
        },
        "stopped": found.stopped or found.chain.stopped or found.behind.stopped,
    }
