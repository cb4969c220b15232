"""Sentences on the facts of a run that every overview shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from stepper.debug.causes.cause_texts import word_of
from stepper.debug.overview.overview_facts import ConstantFacts, Overview, StateRecurrence
from stepper.ir.model import LayerSite
from stepper.wording import enumerated

_MOST_NAMED: Final = 3


def none_born(overview: Overview, named: Callable[[LayerSite], str], so_far: str = "") -> str:
    """Return that no operation makes a NaN or Inf, and which there are all the same: came in, or are in Constants.

    `named` gives the names of layers; `so_far` is said where more may be found.
    """
    given = [word_of(kind) for kind in overview.seen_non_finite]
    constants = constants_text(overview, named)
    if not given and not constants:
        return f"no NaN, no Inf {so_far}".rstrip()
    came = f"{' and '.join(given)} came in, " if given else ""
    other = "other " if any(one.output is not None for one in overview.constants or ()) else ""
    none = ", ".join(filter(None, (f"{came}no {other}operation makes NaN or Inf", so_far)))
    return "; ".join(filter(None, (none, constants)))


def constants_text(overview: Overview, named: Callable[[LayerSite], str]) -> str:
    """Return which Constants have NaN or Inf, and which operations make them of Constants alone; or nothing."""
    found = overview.constants or ()
    told = [" ".join(_words(one, named)) for one in found[:_MOST_NAMED]]
    more = len(found) - len(told)
    return ", ".join([*told, *([f"{more} more"] if more else [])])


def _words(one: ConstantFacts, named: Callable[[LayerSite], str]) -> Iterator[str]:
    """Yield the words on a Constant, or an operation: neutral ones, for a mask is meant to have Inf."""
    counts = " and ".join(f"{word} in {count:,}" for word, count in (("NaN", one.nan), ("Inf", one.infinite)) if count)
    yield f"{one.layer.type} {named(one.layer)}"
    yield (
        f"has {counts} of {one.size:,}" if one.output is None else f"makes {counts} of {one.size:,} of Constants alone"
    )


def recurrence_text(found: StateRecurrence, *, plural: bool = False, brief: bool = False) -> str:
    """Return how a state comes again, and from which iteration on, for a sentence that begins with what it is.

    Where that is not known, when it was noticed.
    """
    s, which = "" if plural else "s", "" if brief else "iteration "
    how = f"stay{s} the same" if found.period == 1 else f"repeat{s} every {found.period:,} iterations"
    if found.since is None:
        return f"{how}, as was noticed in {which}{found.iteration:,}"
    return f"{how} from {which}{found.since:,} on"


def state_named(found: StateRecurrence, named: Callable[[LayerSite], str]) -> str:
    """Return what comes again: the values by name, of many how many there are; `its state` where that is the whole."""
    if not found.decides:
        return "its state"
    names = [named(one) for one in found.values]
    return enumerated(names) if len(names) < 4 else f"{names[0]}, {names[1]} and {len(names) - 2} more"


def state_sentence(found: StateRecurrence, named: Callable[[LayerSite], str]) -> str:
    """Return what comes again, how, and from when on: `x and y repeat every 2 iterations from iteration 5 on`."""
    is_several = found.decides and len(found.values) > 1
    return f"{state_named(found, named)} {recurrence_text(found, plural=is_several)}"
