"""Iterations of a story that do the same as one column: `8-10 x3`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from stepper.debug.story.facts import Story, StoryEdge, StoryLink

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
    links = [_renumbered(link, numbers) for link in links]
    return replace(
        story, asked=numbers[story.asked], columns=tuple(columns), links=tuple(links), edges=tuple(edges.values())
    )


def _renumbered(link: StoryLink, numbers: dict[int, int]) -> StoryLink:
    operands = (one if one.link is None else replace(one, link=numbers[one.link]) for one in link.operands)
    return replace(link, operands=tuple(operands))


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
