"""A side of an If at a stop: the condition, which side runs and why, and its port map."""

from __future__ import annotations

from stepper.debug.inspection import explanations
from stepper.debug.inspection.inside import Inside
from stepper.debug.inspection.values import input_view
from stepper.debug.inspection.views import BranchView, ConditionView, InputView, OutputView
from stepper.engine.loops import OutputRole, Role
from stepper.engine.program import BranchPlan
from stepper.ir.model import InputMapping, OutputMapping


def branch_view(inside: Inside) -> BranchView:
    """Return the side of an If that runs in the frame."""
    assert isinstance(inside.activation.plan, BranchPlan)
    value = input_view(inside.outer, inside.layer, 0)
    side = inside.body.role
    sentence = explanations.branch(inside.layer, side, value, taken=inside.activation.condition)
    return BranchView(
        level=inside.level,
        layer=inside.layer,
        condition=ConditionView(inside.activation.condition, f"input 0, {value.source}", None, sentence),
        side=side,
        inputs=tuple(_input(inside, entry) for entry in inside.body.inputs),
        outputs=tuple(_output(inside, entry) for entry in inside.body.outputs),
    )


def _output(inside: Inside, entry: OutputMapping) -> OutputView:
    inner = inside.inner(entry.result)
    why = "leads to no output" if entry.output is None else f"what Result '{inner.name}' is"
    return OutputView(OutputRole.BRANCH, entry.output, entry.line, inner, inside.output(entry.output), why)


def _input(inside: Inside, entry: InputMapping) -> InputView:
    outer = None if entry.input is None else input_view(inside.outer, inside.layer, entry.input)
    why = "not connected" if entry.input is None else f"gets input {entry.input} as it is"
    return InputView(Role.BRANCH, entry.input, entry.line, outer, inside.inner(entry.parameter), None, None, why)
