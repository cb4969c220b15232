"""Forms of a story for a page: whole, in bands one below the other, with fewer columns, with less beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise
from typing import Final, NamedTuple

from stepper.debug.story.facts import Story
from stepper.debug.story.shortening import (
    KeptColumns,
    ShortStory,
    kept_columns,
    last_links,
    part_of_story,
    shortened_story,
)
from stepper.debug.story.strip.layout import Options, Placement, Tone, place

_SHORT_NAMES: Final = (10, 8)
_LEAST_WITH_REASONS: Final = 4
_USUAL_HEIGHT: Final = 20
"""Lines of bands on a page that has no height."""
_LEAD: Final = 4
"""Free cells before the first column of a band that goes on from the one above."""


class StoryBand(NamedTuple):
    """Columns of a story that stand side by side, and where they lie."""

    short: ShortStory
    placement: Placement


def story_forms(
    story: Story, room: int, *, is_usual: bool, height: float | None, measure: Callable[[str, Tone], int]
) -> Iterator[tuple[StoryBand, ...]]:
    """Yield a story with fewer and fewer columns and less beside them; `room` is in cells, `height` in lines.

    Columns stand in bands one below the other where the page has a height, or where few have room side by side.
    """
    whole = Options(width=None if is_usual else max(60, room), now=False, measure=measure)
    plain = Options(now=False, histories=False, context=False, measure=measure)
    narrow = plain._replace(width=room)
    dense = narrow._replace(height=1)  # no free lines between the rows
    short = dense._replace(names=_SHORT_NAMES[0])
    total = len(story.columns)
    counts = range(total - 1, _LEAST_WITH_REASONS - 1, -1)  # as long as so many have room their reasons are whole
    yield (_band(ShortStory(story), whole),)
    if height is not None:
        yield from _in_bands(story, [total], plain, room, height)
        yield (_band(ShortStory(story), dense),)
        yield from _in_bands(story, range(2, total), plain, room, height)
    yield from ((_band(shortened_story(story, count), plain),) for count in counts)
    if height is None:
        for options in (plain, plain._replace(height=1), short):
            yield from _in_bands(story, range(2, total + 1), options, room, _USUAL_HEIGHT)
    for options in (narrow, *(narrow._replace(names=letters) for letters in _SHORT_NAMES), dense):
        yield from ((_band(shortened_story(story, count), options),) for count in range(total, 0, -1))
    for count in range(len(story.links) - 1, 0, -1):
        short_story = last_links(story, count)
        yield (_band(short_story, narrow),)
        yield (_band(short_story, narrow._replace(names=_SHORT_NAMES[-1])),)


def _band(short: ShortStory, options: Options) -> StoryBand:
    return StoryBand(short, place(short.story, options._replace(torn=short.torn)))


def _in_bands(
    story: Story, counts: Iterable[int], options: Options, room: int, height: float
) -> Iterator[tuple[StoryBand, ...]]:
    """Yield a story in bands, each as full as may be, with as many of its columns as these numbers say, most first."""
    found = list[tuple[StoryBand, ...]]()
    for count in counts:
        kept = kept_columns(story, count)
        made = _banded(story, kept, options, room, height)
        if not made:
            break
        if len(made) > 1 and story.links[story.asked].column in kept.columns and _goes_on(story, kept.columns, made):
            found.append(made)
    yield from reversed(found)


def _banded(story: Story, kept: KeptColumns, options: Options, room: int, height: float) -> tuple[StoryBand, ...]:
    """Return columns in bands; none where they have no room."""
    bands = list[StoryBand]()
    rest = kept
    while rest.columns:
        made = _widest(story, rest, options._replace(lead=_LEAD if bands else 0), room)
        height -= math.inf if made is None else made.placement.height
        if made is None or height < 0:
            return ()
        bands.append(made)
        rest = KeptColumns(rest.columns[len(made.short.story.columns) :])
    return tuple(bands)


def _widest(story: Story, rest: KeptColumns, options: Options, room: int) -> StoryBand | None:
    """Return the band of as many of the first columns as have room; None where not even those around a gap have."""
    found = None
    for size in range(1 if rest.torn is None else rest.torn + 2, len(rest.columns) + 1):
        made = _band(part_of_story(story, rest._replace(columns=rest.columns[:size])), options)
        if made.placement.width > room:
            break
        found = made
    return found


def _goes_on(story: Story, columns: tuple[int, ...], bands: tuple[StoryBand, ...]) -> bool:
    """True if what leads from a band to another one leads from its last column to the first one of the next."""
    parts = iter(columns)
    band = {
        column: number for number, made in enumerate(bands) for column in islice(parts, len(made.short.story.columns))
    }
    ways = {(a, b) for a, b in pairwise(columns) if band[a] != band[b]}
    for edge in story.edges:
        source, target = story.links[edge.source].column, story.links[edge.target].column
        is_apart = source in band and target in band and band[source] != band[target]
        if is_apart and (source, target) not in ways:
            return False
    return True
