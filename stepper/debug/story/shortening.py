"""A story without the iterations in the middle of its path, for a page that has no room for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec.structs import replace

from stepper.debug.story.facts import Story, StoryEdge, StoryLink, StoryRow
from stepper.records import Record


class CutEdge(NamedTuple):
    """An edge of which one end is left out: the number of the link at the other end, and the edge of the whole story.

    `is_bad`: what it carries is not finite.
    """

    link: int
    edge: StoryEdge
    is_bad: bool


class ShortStory(Record):
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
    links = tuple(
        _renumbered(story.links[k], numbers, rows[story.links[k].row], columns[story.links[k].column]) for k in taken
    )
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


LEAST_FOLDED: Final = 3
"""Iterations that do the same with numbers that are not finite, from which on they are one column."""
LEAST_FOLDED_FINITE: Final = 5

_Signature = tuple[object, ...]


def folded(story: Story) -> Story:
    """Return a story with each run of iterations that have the same links as one column, that of the last of them."""
    runs = list(_runs(story))
    if not runs:
        return story
    cells = {(link.row, link.column): number for number, link in enumerate(story.links)}
    run_at = {run[-1]: run for run in runs}
    last_of = {column: run[-1] for run in runs for column in run}
    kept = [column for column in range(len(story.columns)) if last_of.get(column, column) == column]
    places = {column: place for place, column in enumerate(kept)}
    numbers: dict[int, int] = {}
    links: list[StoryLink] = []
    for number, link in enumerate(story.links):
        run = run_at.get(link.column)
        if link.column not in places:
            continue
        numbers[number] = len(links)
        first = story.links[cells[link.row, run[0]]] if run else None
        times = 1 if run is None else len(run)
        links.append(replace(link, column=places[link.column], times=times, first=first.value if first else None))
    for number, link in enumerate(story.links):
        if link.column not in places:
            numbers[number] = numbers[cells[link.row, last_of[link.column]]]
    edges = {}
    for edge in story.edges:
        source, target = story.links[edge.source].column, story.links[edge.target].column
        if source != target and last_of.get(source, -1) == last_of.get(target, -2):
            continue
        moved = replace(edge, source=numbers[edge.source], target=numbers[edge.target])
        edges[moved.source, moved.target, bool(moved.back)] = moved
    columns = []
    for column in kept:
        run = run_at.get(column)
        shown = story.columns[column]
        columns.append(shown if run is None else replace(shown, times=len(run), first=story.columns[run[0]].path))
    links = [_renumbered(link, numbers, link.row, link.column) for link in links]
    return replace(
        story, asked=numbers[story.asked], columns=tuple(columns), links=tuple(links), edges=tuple(edges.values())
    )


def _renumbered(link: StoryLink, numbers: dict[int, int], row: int, column: int) -> StoryLink:
    operands = (one if one.link is None else replace(one, link=numbers.get(one.link)) for one in link.operands)
    return replace(link, row=row, column=column, operands=tuple(operands))


def _runs(story: Story) -> Iterator[list[int]]:
    """Yield runs of columns that do the same."""
    links: list[list[StoryLink]] = [[] for _ in story.columns]
    edges: list[list[StoryEdge]] = [[] for _ in story.columns]
    for link in story.links:
        links[link.column].append(link)
    for edge in story.edges:
        edges[story.links[edge.target].column].append(edge)
    signatures = [_signature(story, *both) for both in zip(links, edges, strict=True)]
    run = [0]
    for before, column in pairwise([*range(len(story.columns)), len(story.columns)]):
        is_same = (
            column < len(story.columns)
            and signatures[before] == signatures[column]
            and _follows(story.columns[before].path, story.columns[column].path)
        )
        if is_same:
            run.append(column)
            continue
        own = links[run[0]]
        least = LEAST_FOLDED if own and all(link.is_bad for link in own) else LEAST_FOLDED_FINITE
        if own and len(run) >= least:
            yield run
        run = [column]


def _follows(before: tuple[int, ...], path: tuple[int, ...]) -> bool:
    return bool(path) and before[:-1] == path[:-1] and before[-1:] == (path[-1] - 1,)


def _signature(story: Story, links: list[StoryLink], edges: list[StoryEdge]) -> _Signature:
    kinds = frozenset(
        (link.row, link.kind, link.role, link.form, link.element, link.value if link.is_bad else None) for link in links
    )
    return kinds, frozenset(_edge_kind(story, edge) for edge in edges)


def _edge_kind(story: Story, edge: StoryEdge) -> tuple[object, ...]:
    source, target = story.links[edge.source], story.links[edge.target]
    # where the value comes from in the iteration before the first of a run may be another operation
    is_inner = source.column == target.column
    return source.row if is_inner else None, target.row, tuple((way.kind, way.layer) for way in edge.ways)
