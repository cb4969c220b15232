"""How a data breakpoint is written: a word, a limit where it has one, and what it is about.

nan  inf                             one appears in any value
shape  cond  limit  last  end        of any loop, or of the one that is named
stuck  period                        of what a loop carries
grow>1e3  diff>0.1                   of what loops carry, or of the value that is named; with a reference run `diff` is
                                     the distance from it, of any value, of a loop's, or of the one that is named
changes h_next[0,3]                  a value or an element
anything else                        an expression: when it becomes true
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from stepper.debug.causes.cause import CauseKind
from stepper.near_names import near_text
from stepper.query.addresses import Address, parse_address

MEANINGS: Final[Mapping[CauseKind, str]] = MappingProxyType({
    CauseKind.NAN: "an operation gives a NaN and had none in its inputs",
    CauseKind.INF: "an operation gives an Inf and had none in its inputs",
    CauseKind.SHAPE: "a value of a body has another shape or type than one iteration before",
    CauseKind.CONDITION: "the condition of a loop turns false",
    CauseKind.LIMIT: "a loop ends because its trip count, or the slices of its inputs, are used up",
    CauseKind.LAST: "the last iteration of a loop is closed, whatever ends it",
    CauseKind.END: "a loop ends, also one that ran no iteration",
    CauseKind.STUCK: "what a loop carries does not change from one iteration to the next",
    CauseKind.PERIOD: "all that a loop carries is as it was a few iterations before",
    CauseKind.GROW: "what is carried, or the value named, grows beyond that many times its first",
    CauseKind.DIFF: "a value is farther from the reference than that, or, without one, changes by more",
    CauseKind.CHANGES: "a value or an element is another than one iteration before",
})  # fmt: skip
"""What can be waited for by its name, and when the run stops for it, in a sentence."""


class DataBreak(Struct, frozen=True):
    """A data breakpoint that is no expression. `limit` is what has to be exceeded, `address` what it is about."""

    word: CauseKind
    limit: float = 0.0
    address: Address | None = None


_NUMBER: Final = r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?"
_LIMITED: Final = re.compile(rf"(grow|diff)\s*>\s*({_NUMBER})(?:\s+(\S.*))?")
_ALONE: Final = re.compile(r"nan|inf")
_ABOUT: Final = re.compile(r"(shape|cond|limit|last|end|stuck|period)(?:\s+([^\s<>=!+*/%-].*))?")
_CHANGES: Final = re.compile(r"changes\s+(\S.*)")


def data_break(text: str) -> DataBreak | None:
    """The data breakpoint that is written there; None for what must be an expression. Raises AddressError."""
    text = text.strip()
    if match := _LIMITED.fullmatch(text):
        return DataBreak(CauseKind(match[1]), float(match[2]), _address(match[3]))
    if _ALONE.fullmatch(text):
        return DataBreak(CauseKind(text))
    if match := _ABOUT.fullmatch(text):
        return DataBreak(CauseKind(match[1]), address=_address(match[2]))
    if match := _CHANGES.fullmatch(text):
        return DataBreak(CauseKind.CHANGES, address=_address(match[1]))
    return None


_UNFINISHED: Final = re.compile(r"(grow|diff|changes)\b[\s>=<]*(.*)")


def unfinished(text: str) -> str:
    """What a text that begins as a data breakpoint lacks, in a sentence; empty for any other."""
    match = _UNFINISHED.fullmatch(text.strip())
    if match is None or data_break(text) is not None:
        return ""
    word, rest = match.groups()
    if word == CauseKind.CHANGES:
        return "'changes' needs a value: changes h_next, or changes h_next[0,3] for an element"
    limit = "1e3" if word == CauseKind.GROW else "1e-4"
    about = f"'{rest}' is no number" if rest else "it needs one"
    return f"'{word}' has a limit, and {about}: {word}>{limit}, or {word}>{limit} h_next for one value"


def near_word(text: str) -> str:
    """Return which data breakpoint a misspelt word looks like, as `near is nan`; empty where none does."""
    match = re.match(r"[A-Za-z]{3,}", text.strip())
    return near_text(match[0], CauseKind, 0.7) if match else ""


def _address(text: str | None) -> Address | None:
    return None if text is None else parse_address(text)
