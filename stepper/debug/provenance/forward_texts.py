"""Where an element goes, in words and as JSON."""

from __future__ import annotations

from typing import Any

from stepper.debug.causes.texts import element_text, moment_text
from stepper.debug.provenance.facts import Decision, ElementUse, OutputUse, Uses

_MOST_LINES = 40
_MOST_ELEMENTS = 8


def uses_lines(found: Uses) -> list[str]:
    """Return where an element goes: the operations in the order in which it reaches them, then the outputs."""
    lines = [f"where {found.address} goes"]
    lines += [f" {_use(one)}" for one in found.uses[:_MOST_LINES]]
    if len(found.uses) > _MOST_LINES:
        lines.append(f" and {len(found.uses) - _MOST_LINES} more operations")
    if not found.uses:
        lines.append(" no operation computes another result for it")
    if found.decisions:
        lines += ["decides", *(f" {_decision(one)}" for one in found.decisions)]
    if found.outputs:
        lines += ["reaches", *(f" {_output(one)}" for one in found.outputs)]
    else:
        lines.append("reaches no output of the model")
    return [*lines, found.stopped] if found.stopped else lines


def _use(use: ElementUse) -> str:
    port = "" if use.location.output is None else f":{use.location.output}"
    elements = "" if use.count == 1 else f", {use.count} of {use.size} elements"
    last = f", in {use.times} iterations, the last {use.last}" if use.times > 1 else ""
    return f"{moment_text(use.location)} {use.location.operation}{port}{element_text(use.element)}{elements}{last}"


def _decision(one: Decision) -> str:
    at = "" if one.iteration is None else f" (first in iteration {one.iteration})"
    return f"the {one.what} of {one.layer}{at}"


def _output(one: OutputUse) -> str:
    shown = ", ".join(element_text(element) or "its value" for element in one.elements[:_MOST_ELEMENTS])
    size = 1
    for extent in one.shape:
        size *= extent
    if one.count == size and size > _MOST_ELEMENTS:
        return f"output {one.name}: all {size} elements"
    return f"output {one.name}: {shown}{', ...' if one.count > _MOST_ELEMENTS else ''}"


def uses_data(found: Uses) -> dict[str, Any]:
    """Return the answer as JSON has it."""
    return {
        "address": found.address,
        "uses": [
            {
                "operation": str(one.location.operation),
                "iteration": one.location.iteration,
                "index": list(one.element),
                "elements": one.count,
                "of": one.size,
                "times": one.times,
                "last": one.last,
            }
            for one in found.uses
        ],
        "decisions": [
            {"what": one.what, "operation": str(one.layer), "iteration": one.iteration} for one in found.decisions
        ],
        "outputs": [
            {"name": one.name, "elements": one.count, "indices": [list(element) for element in one.elements]}
            for one in found.outputs
        ],
        "kernel_runs": found.kernel_runs,
        "stopped": found.stopped,
    }
