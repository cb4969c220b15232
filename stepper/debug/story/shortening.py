"""A story without the iterations in the middle of its path, for a page that has no room for all of them."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.story.facts import Story, StoryEdge, StoryLink, StoryRow


class CutEdge(NamedTuple):
    """An edge of which one end is left out: the number of the link at the other end, and the edge of the whole story.

    `is_bad`: what it carries is not finite.
    """

    link: int
    edge: StoryEdge
    is_bad: bool


class ShortStory(Struct, frozen=True):
    """A story of the columns that are left, and what was between them.

    `torn` is the column behind which `left_out` columns are missing (-1: before the first; None: all are there);
    `leading` are edges from its links to what is left out, `coming` those that come from there. `farther` counts the
    links that are left out of the columns that are here, farther from what was asked than the others.
    """

    story: Story
    torn: int | None = None
    left_out: int = 0
    leading: tuple[CutEdge, ...] = ()
    coming: tuple[CutEdge, ...] = ()
    farther: int = 0


def shortened_story(story: Story, count: int) -> ShortStory:
    """Return a story with so many columns, the last ones and that of the first birth; all where it has no more.

    Without a birth, and of three columns or more, the first one is kept.
    """
    kept = kept_columns(story, count)
    asked = story.links[story.asked].column
    return part_of_story(story, kept) if asked in kept.columns else ShortStory(story)


class KeptColumns(NamedTuple):
    """The columns that a short story keeps, by their numbers; `torn` and `left_out` are those of `ShortStory`."""

    columns: tuple[int, ...]
    torn: int | None = None
    left_out: int = 0


def kept_columns(story: Story, count: int) -> KeptColumns:
    """Return which columns are left of a story where it is to have so many."""
    total = len(story.columns)
    if count >= total:
        return KeptColumns(tuple(range(total)))
    order = sorted(range(total), key=lambda column: story.columns[column].time)
    origins = [story.links[link].column for link in story.births] or order[: int(count >= 3)]
    origin = min(origins, key=order.index, default=None) if count > 1 else None
    first = int(origin is not None and origin in order[: total - count + 1])
    kept = {*([] if origin is None or not first else [origin]), *order[total - (count - first) :]}
    left_out = sum(column.times for number, column in enumerate(story.columns) if number not in kept)
    return KeptColumns(tuple(sorted(kept)), first - 1, left_out)


def last_links(story: Story, count: int) -> ShortStory:
    """Return the column of what was asked with so many of its links, the nearest ones, largest shares first."""
    column = story.links[story.asked].column
    chosen, at = [story.asked], 0
    while at < len(chosen):
        nearer = (edge.source for edge in story.into(chosen[at]))
        chosen += [link for link in nearer if story.links[link].column == column and link not in chosen]
        at += 1
    kept = kept_columns(story, 1)
    return part_of_story(story, kept if kept.columns == (column,) else KeptColumns((column,)), {*chosen[:count]})


def part_of_story(story: Story, kept: KeptColumns, chosen: Set[int] | None = None) -> ShortStory:
    """Return a story of some of its columns, and of their links the chosen ones (None: all).

    Where what was asked is not in them, its first link stands for that.
    """
    columns = {column: place for place, column in enumerate(kept.columns)}
    if len(columns) == len(story.columns) and chosen is None:
        return ShortStory(story)
    there = {k for k, link in enumerate(story.links) if link.column in columns}
    taken = [k for k in sorted(there) if chosen is None or k in chosen]
    numbers = {k: place for place, k in enumerate(taken)}
    rows = {row: place for place, row in enumerate(sorted({story.links[k].row for k in taken}))}
    links = tuple(_moved(story.links[k], rows, columns, numbers) for k in taken)
    edges = tuple(
        replace(edge, source=numbers[edge.source], target=numbers[edge.target])
        for edge in story.edges
        if edge.source in numbers and edge.target in numbers
    )
    made = replace(
        story,
        asked=numbers.get(story.asked, 0),
        rows=_rows(story, rows),
        columns=tuple(story.columns[column] for column in columns),
        links=links,
        edges=edges,
        passed=(),
    )
    return ShortStory(
        made,
        torn=kept.torn,
        left_out=kept.left_out,
        farther=len(there) - len(taken),
        leading=tuple(
            CutEdge(numbers[edge.source], edge, story.links[edge.source].is_bad)
            for edge in story.edges
            if edge.source in numbers and edge.target not in there
        ),
        coming=tuple(
            CutEdge(numbers[edge.target], edge, story.links[edge.source].is_bad)
            for edge in story.edges
            if edge.target in numbers and edge.source not in there
        ),
    )


def _moved(link: StoryLink, rows: dict[int, int], columns: dict[int, int], numbers: dict[int, int]) -> StoryLink:
    operands = tuple(
        replace(operand, link=None if operand.link is None else numbers.get(operand.link)) for operand in link.operands
    )
    return replace(link, row=rows[link.row], column=columns[link.column], operands=operands)


def _rows(story: Story, rows: dict[int, int]) -> tuple[StoryRow, ...]:
    """Return the rows that are left; those in between count as hidden operations."""
    found, hidden = [], 0
    for number, row in enumerate(story.rows):
        if number in rows:
            found.append(replace(row, hidden=row.hidden + hidden))
            hidden = 0
        else:
            hidden += row.hidden + 1
    return tuple(found)
