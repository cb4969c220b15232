"""Sentences about cases."""

from __future__ import annotations

from typing import Final

from stepper.cases.case import CallTrigger
from stepper.wording import excerpt

_LONGEST_MESSAGE: Final = 160
_KINDS: Final = {"nan": "NaN", "inf": "Inf"}


def trigger_text(trigger: CallTrigger) -> str:
    """Return why a call was kept."""
    if trigger.kind in _KINDS:
        where = f"output {trigger.output} '{excerpt(trigger.name)}'"
        place = f", first at [{','.join(map(str, trigger.first))}]" if trigger.first else ""
        return f"{_KINDS[trigger.kind]} in {trigger.count:,} of {trigger.elements:,} elements of {where}{place}"
    if trigger.kind == "error":
        lines = [line.strip() for line in trigger.message.splitlines() if line.strip()]
        return f"it failed: {excerpt(lines[-1] if lines else 'without a message', _LONGEST_MESSAGE)}"
    return {"condition": "the condition held", "number": "its number was asked for"}.get(
        trigger.kind, "any call is kept"
    )
