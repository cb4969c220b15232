"""Why a run of a loop ended, in words and in values: `tok = 12, so NotEqual(tok, 12) is false`."""

from __future__ import annotations

from typing import Final

from stepper.debug.causes.texts import scalar_text
from stepper.debug.overview.facts import Verdict, VerdictOperand
from stepper.export.figures.labels import shortened
from stepper.query.short_names import last_part, without_number
from stepper.wording import excerpt

_LONGEST: Final = 24


def verdict_text(verdict: Verdict, *, floats: bool = True) -> str:
    """Return the comparison that decided, with what it compares; of what compares nothing its name and value.

    Without `floats`, whose last digits may differ from processor to processor, these are named alone.
    """
    root = verdict.root
    word = "true" if root.value else "false"
    if not root.operands:
        return f"{_name(root.layer.name)} is {word}"
    inside = ", ".join(_inside(one) for one in root.operands)
    told = compared_text(root, floats=floats)
    return f"{told}{', so ' if told else ''}{excerpt(root.layer.type)}({inside}) is {word}"


def compared_text(verdict: Verdict, *, floats: bool = True) -> str:
    """Return what the comparison that decided compares, Constants left out: `tok = 12`; empty where it has nothing."""
    operands = verdict.root.operands
    named = [one for one in operands if not one.is_constant] or operands
    told = (one for one in named if floats or isinstance(one.value, int))
    return ", ".join(f"{_operand_name(one)} = {_value(one)}" for one in told)


def _inside(one: VerdictOperand) -> str:
    return scalar_text(one.value) if one.is_constant and one.value is not None else _operand_name(one)


def _operand_name(one: VerdictOperand) -> str:
    return _name((one.layer if one.carried is None else one.carried).name)


def _value(one: VerdictOperand) -> str:
    return excerpt(one.brief.text) if one.value is None else scalar_text(one.value)


def _name(name: str) -> str:
    return shortened(excerpt(without_number(last_part(name))), _LONGEST)
