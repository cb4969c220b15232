"""A story as a list, a line a link, with lanes at the left as of a version history: for where there is little room."""

from __future__ import annotations

from typing import NamedTuple

from stepper.debug.story.facts import Story, StoryEdge
from stepper.records import Record

NODE = "●"


class LaneCell(NamedTuple):
    """A character of a lane; `bad`: it carries what is not finite."""

    text: str
    bad: bool


class LaneLine(Record):
    """A line: of a link by number, or (None) of the beginning of a column, over which `backs` carry something."""

    link: int | None
    column: int
    cells: tuple[LaneCell, ...]
    backs: tuple[StoryEdge, ...] = ()
    opens: bool = False


class _Lanes:
    """Edges under way, each in a lane."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.order = sorted(
            range(len(story.links)),
            key=lambda k: (story.links[k].column, story.links[k].row),
        )
        self.place = {number: place for place, number in enumerate(self.order)}
        self.under_way: list[int | None] = []

    def lines(self) -> list[LaneLine]:
        """Return all lines, the earliest link first."""
        found: list[LaneLine] = []
        column = -1
        for number in self.order:
            link = self.story.links[number]
            opens = link.column != column
            if opens and column >= 0:
                backs = [e for e in self.story.edges if e.back is not None and self._column(e.target) == link.column]
                found.append(LaneLine(None, link.column, tuple(self._passing()), tuple(backs)))
            column = link.column
            is_first = opens and not (found and found[-1].link is None)
            found.append(LaneLine(number, column, tuple(self._taken(number)), (), is_first))
        return found

    def _column(self, number: int) -> int:
        return self.story.links[number].column

    def _passing(self) -> list[LaneCell]:
        cells: list[LaneCell] = []
        for edge in self.under_way:
            cells += [self._through(edge), LaneCell(" ", False)]
        return cells

    def _through(self, edge: int | None) -> LaneCell:
        if edge is None:
            return LaneCell(" ", False)
        found = self.story.edges[edge]
        across = self._column(found.source) != self._column(found.target)
        return LaneCell("╎" if across else "│", self.story.links[found.source].is_bad)

    def _taken(self, number: int) -> list[LaneCell]:
        """Take the edges that end here out of their lanes, put those that begin into lanes, and draw the line."""
        story, lanes = self.story, self.under_way
        ending = [lane for lane, edge in enumerate(lanes) if edge is not None and story.edges[edge].target == number]
        own = ending[0] if ending else next((k for k, edge in enumerate(lanes) if edge is None), len(lanes))
        if own == len(lanes):
            lanes.append(None)
        before = list(lanes)
        for lane in ending:
            lanes[lane] = None
        leaving = [k for k, edge in enumerate(story.edges) if edge.source == number]
        leaving.sort(key=lambda k: -self.place[story.edges[k].target])
        opened: list[int] = []
        for index, edge in enumerate(leaving):
            lane = own if not index else next((k for k, e in enumerate(lanes) if e is None and k > own), len(lanes))
            if lane == len(lanes):
                lanes.append(None)
                before.append(None)
            lanes[lane] = edge
            if index:
                opened.append(lane)
        while lanes and lanes[-1] is None:
            lanes.pop()
        return self._drawn(number, own, before, set(ending[1:]), set(opened))

    def _drawn(
        self, number: int, own: int, before: list[int | None], merged: set[int], opened: set[int]
    ) -> list[LaneCell]:
        bad = self.story.links[number].is_bad
        farthest = max(merged | opened, default=own)
        cells: list[LaneCell] = []
        for lane, edge in enumerate(before):
            inside = own < lane <= farthest
            if lane == own:
                cells.append(LaneCell(NODE, bad))
            elif lane in merged and lane in opened:
                cells.append(LaneCell("┤", bad))
            elif lane in merged:
                cells.append(LaneCell("╯" if lane == farthest else "┴", bad))
            elif lane in opened:
                cells.append(LaneCell("╮" if lane == farthest else "┬", bad))
            elif inside and edge is None:
                cells.append(LaneCell("─", bad))
            else:
                cells.append(self._through(edge))
            joins = own <= lane < farthest
            cells.append(LaneCell("─" if joins else " ", bad))
        return cells


def lane_lines(story: Story) -> tuple[LaneLine, ...]:
    """Return a story as lines with lanes, the earliest link first."""
    return tuple(_Lanes(story).lines())
