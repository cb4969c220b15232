"""Syntax of a breakpoint as one text: `TARGET [if EXPR] [hit N [exactly]] [once]`, or what to wait for.

h_next if max(h_next) > 2 hit 3      @7      MatMul once
nan   cond my_loop   grow>1e3        a kind of data breakpoint
when max(h) > 2                      where an expression becomes true
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from stepper.debug.breakpoints.breakpoint import BreakDescription, BreakKind
from stepper.debug.breakpoints.data_breakpoints import data_breakpoint
from stepper.errors import UsageError

_ONCE: Final = re.compile(r"(.*\S)\s+once")
_HIT: Final = re.compile(r"(.*\S)\s+hit\s+([0-9]{1,18})(\s+exactly)?")
_WHEN: Final = re.compile(r"(?:when|if)\s+(\S.*)")
_QUOTED: Final = re.compile(r"`[^`]*`|/(?:[^/\s]|\\/)+/")
_IF: Final = re.compile(r"\sif(?:\s|$)")


def break_description(text: str) -> BreakDescription:
    """Return the breakpoint that is written there; whether its target exists is for `Breakpoints.add` to say.

    UsageError.
    """
    rest, once, hit, exactly = text.strip(), False, 0, False
    while True:
        if match := _ONCE.fullmatch(rest):
            rest, once = match[1], True
        elif match := _HIT.fullmatch(rest):
            rest, hit, exactly = match[1], int(match[2]), match[3] is not None
            if hit < 1:
                raise UsageError("hit 0: the first moment is 1, as in hit 1")
        else:
            break
    return replace(_plain(rest), hit=hit, exactly=exactly, once=once)


def _plain(text: str) -> BreakDescription:
    if match := _WHEN.fullmatch(text):
        return BreakDescription(BreakKind.WHEN, match[1])
    place = _IF.search(_QUOTED.sub(lambda quoted: "x" * len(quoted[0]), text))
    target, condition = (text, "") if place is None else (text[: place.start()].strip(), text[place.end() :].strip())
    if place is not None and not condition:
        raise UsageError(f"'{text}': the condition behind 'if' is missing")
    if data_breakpoint(target) is None:
        return BreakDescription(BreakKind.AT, target, condition)
    if condition:
        raise UsageError(f"'{target}' is a condition itself; write both as one: break when EXPR")
    return BreakDescription(BreakKind.WHEN, target)
