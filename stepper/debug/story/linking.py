"""The links of a way back as a graph of edges: links that only move an element, or only bring one in, are taken out."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.causes.cause import LinkKind
from stepper.debug.causes.earlier_frames import Seat
from stepper.debug.story.slicer import CausalLink, Way


class CausalEdge(Struct, frozen=True):
    """An operand that was followed: from the link that made it to the link whose part it is."""

    source: int
    target: int
    part: int
    ways: tuple[Way, ...]
    kept: tuple[Seat, ...]
    share: float | None
    moves: int = 0


class CausalGraph:
    """Links by number, of which `alive` are shown, and the edges between these.

    `entries` are those taken into readers; `kept` has the iterations in which an element was only passed on.
    """

    def __init__(self, links: list[CausalLink]) -> None:
        self._links = links
        self.alive = {link.number for link in links}
        numbers = {link.spot: link.number for link in links}
        self.edges = [
            CausalEdge(numbers[one.source], link.number, one.part, one.ways, one.kept, _share(link, one.part))
            for link in links
            for one in link.followed
        ]
        self.entries: dict[int, Way] = {}
        self.kept: list[Seat] = [seat for edge in self.edges for seat in edge.kept]

    def fold_moves(self) -> None:
        """Take out what only moves an element the same way each time, and has one source."""
        into: dict[int, list[CausalEdge]] = {}
        for edge in self.edges:
            into.setdefault(edge.target, []).append(edge)
        folded = {
            link.number: into[link.number][0]
            for link in self._links[1:]
            if link.is_fixed_move and link.kind is LinkKind.COMPUTED and len(into.get(link.number, ())) == 1
        }
        self.alive -= set(folded)
        self.edges = [self._shortened(edge, folded) for edge in self.edges if edge.target not in folded]

    @staticmethod
    def _shortened(edge: CausalEdge, folded: dict[int, CausalEdge]) -> CausalEdge:
        """Return an edge from what a move got its element from."""
        while edge.source in folded:
            before = folded[edge.source]
            ways, kept = (*edge.ways, *before.ways), (*edge.kept, *before.kept)
            edge = replace(edge, source=before.source, ways=ways, kept=kept, moves=edge.moves + 1)
        return edge

    def fold_entries(self) -> None:
        """Take out Parameters that bring a value in, in an iteration other than that of their one reader."""
        for link in self._links[1:]:
            if link.entry is None or link.kind is LinkKind.BORN:
                continue
            out = [edge for edge in self.edges if edge.source == link.number]
            if len(out) != 1:
                continue
            target = self._links[out[0].target]
            if _iterations(target.spot.seat) == _iterations(link.spot.seat):
                continue
            self.entries[target.number] = link.entry
            self.edges.remove(out[0])
            self.alive.discard(link.number)


def _share(link: CausalLink, part: int) -> float | None:
    return None if link.making is None else link.making.parts[part].share


def _iterations(seat: Seat) -> tuple[int, ...]:
    return tuple(iteration for _, iteration in seat if iteration is not None)
