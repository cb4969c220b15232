"""Motion of an SVG without a script: groups that are visible for a while, in CSS that an `<img>` plays, too.

It stands still in print, for readers who want no motion, and in programs that know no animation: attributes hide what
is not in the still picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

MOVING: Final = "@media screen and (prefers-reduced-motion: no-preference)"
"""The readers for whom pictures move."""


class VisibleTimes(NamedTuple):
    """When the shapes of a class are visible: changes at times, as parts of the whole time, the first at 0."""

    name: str
    changes: tuple[tuple[float, bool], ...]


def visible_times(name: str, shown: Iterable[int], seconds: Sequence[float]) -> VisibleTimes:
    """Return the times of what is shown in some of the steps, which last so many seconds each."""
    total, chosen, changes, at, before = sum(seconds), set(shown), [], 0.0, None
    for index, duration in enumerate(seconds):
        now = index in chosen
        if now is not before:
            changes.append((at / total, now))
        at, before = at + duration, now
    return VisibleTimes(name, tuple(changes))


def motion_rules(times: Iterable[VisibleTimes], seconds: float, scope: str = "") -> str:
    """Return the style sheet that plays them for so many seconds, again and again; `scope` is a class ("": none).

    Names of its rules begin with the scope, so that several pictures can stand in one page.
    """
    frames, rules = [], []
    prefix, within = (f"{scope}-", f".{scope} ") if scope else ("", "")
    for one in times:
        steps = " ".join(f"{at:.3%} {{ visibility: {'visible' if on else 'hidden'} }}" for at, on in one.changes)
        frames.append(f"@keyframes {prefix}{one.name} {{ {steps} }}")
        rules.append(f"{within}.{one.name} {{ animation: {prefix}{one.name} {seconds:g}s step-end infinite }}")
    return "\n".join([*frames, f"{MOVING} {{", *rules, "}", ""])
