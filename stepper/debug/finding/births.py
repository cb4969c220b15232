"""The moments of a run at which NaN or Inf is born: `find nan`, `find inf`."""

from __future__ import annotations

import sys
from typing import Final

from stepper.debug.causes.cause import NonFiniteKind
from stepper.debug.causes.texts import title
from stepper.debug.overview.births import MOST_BIRTHS, BirthSearch
from stepper.debug.results import Found, FoundMoment, Which
from stepper.debug.timeline import Timeline
from stepper.debug.visits import PAUSED, excursion
from stepper.engine.frames import place

WORDS: Final = tuple(str(kind) for kind in NonFiniteKind)
"""Expressions that ask for births instead of a condition."""


def find_births(timeline: Timeline, word: str, which: Which, limit: int, until: int | None) -> Found:
    """Return the moments at which an operation gives the first NaN (or Inf) of its own, where its inputs have none.

    The whole run is looked through, at most up to tick `until`; the present stays.
    """
    machine = timeline.machine
    present, search = machine.tick, BirthSearch(timeline)

    def is_wanted(tick: int) -> bool:
        return tick > present if which is Which.NEXT else tick < present if which is Which.PREVIOUS else True

    def ticks() -> list[int]:
        return [one.tick for one in search.found if one.cause.kind == word and is_wanted(one.tick)]

    def enough() -> bool:
        return which in (Which.FIRST, Which.NEXT) and bool(ticks())

    end = present if which is Which.PREVIOUS else sys.maxsize if until is None else until
    with excursion(timeline):
        search.look(end, None, enough)
        is_through = machine.finished or search.tick >= end or enough() or len(search.found) >= MOST_BIRTHS
        found = [one for one in search.found if one.cause.kind == word and is_wanted(one.tick)]
        count = len(found)
        is_last = which in (Which.LAST, Which.PREVIOUS)
        chosen = found[:limit] if which is Which.ALL else found[-1:] if is_last else found[:1]
        moments = []
        for one in chosen:
            timeline.goto(one.tick)
            told = f"{place(machine.stack)}: {title(one.cause, is_short=True)}"
            moments.append(FoundMoment(one.tick, one.cause.location.iteration, told))
    return Found(tuple(moments), count, count > len(chosen), "" if is_through else PAUSED, 0, "")
