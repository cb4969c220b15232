"""A story without the iterations in the middle of its path, for a page that has no room for all of them."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.story.facts import Story, StoryEdge, StoryLink, StoryRow


class ShortStory(Struct, frozen=True):
    """A story of the columns that are left, and what was between them.

    `torn` is the column behind which `left_out` columns are missing (-1: before the first; None: all are there);
    `leading` are its links that lead to what is left out, `coming` those that come from there.
    """

    story: Story
    torn: int | None = None
    left_out: int = 0
    leading: tuple[int, ...] = ()
    coming: tuple[int, ...] = ()


def shortened_story(story: Story, count: int) -> ShortStory:
    """Return a story with so many columns, the last ones and that of the first birth; all where it has no more.

    Without a birth, and of three columns or more, the first one is kept.
    """
    total = len(story.columns)
    if count >= total:
        return ShortStory(story)
    order = sorted(range(total), key=lambda column: story.columns[column].time)
    origins = [story.links[link].column for link in story.births] or order[: int(count >= 3)]
    origin = min(origins, key=order.index, default=None) if count > 1 else None
    first = int(origin is not None and origin in order[: total - count + 1])
    kept = {*([] if origin is None or not first else [origin]), *order[total - (count - first) :]}
    columns = {column: place for place, column in enumerate(sorted(kept))}
    taken = [k for k, link in enumerate(story.links) if link.column in kept]
    if story.asked not in taken:
        return ShortStory(story)
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
        asked=numbers[story.asked],
        rows=_rows(story, rows),
        columns=tuple(story.columns[column] for column in columns),
        links=links,
        edges=edges,
        passed=(),
    )
    cut: list[StoryEdge] = [edge for edge in story.edges if (edge.source in numbers) != (edge.target in numbers)]
    return ShortStory(
        made,
        torn=first - 1,
        left_out=sum(column.times for number, column in enumerate(story.columns) if number not in kept),
        leading=tuple(sorted({numbers[edge.source] for edge in cut if edge.source in numbers})),
        coming=tuple(sorted({numbers[edge.target] for edge in cut if edge.target in numbers})),
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
