"""Sentences on the facts of a run that every overview shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from stepper.debug.causes.texts import word_of

if TYPE_CHECKING:
    from stepper.debug.overview.facts import ConstantFacts, Overview
    from stepper.ir.model import LayerSite

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
