"""Parts of a graph that repeat: copies of one block, in a row or side by side, found by structure alone.

The nodes are put in an order that follows from the structure, whatever the order of the file: from the end backwards,
of several inputs the deepest first. Copies of a block then stand one behind the other, as a part of the sequence of
looks that has a period. Each such part is checked edge by edge; then copies at both ends that the sequence has not
shown are added, and nodes beside it of which each copy has one. All of it is linear in the size of the graph, but for
the number of periods that are tried, which is bounded.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.element_types import Array
from stepper.export.layout.ranking import topological_order

LEAST_SAVED: Final = 6
"""Nodes that are left out at least where a block is drawn once."""
_LEAST_SIZE: Final = 3
_MOST_PERIODS: Final = 48
"""Periods that are tried, the most promising ones."""
_MOST_TRIES: Final = 400
"""Parts of the sequence that are checked."""
_MOST_CUTS: Final = 4
_MOST_ROUNDS: Final = 64

Read = tuple[int, int]
"""What a node reads: the node, and which output of it."""


class RepeatedBlock(Struct, frozen=True):
    """Copies of one block, each with its nodes in one order; in a row where each copy reads the one before."""

    copies: tuple[tuple[int, ...], ...]
    is_row: bool

    @property
    def saved(self) -> int:
        """How many nodes need not be drawn."""
        return len(self.copies[0]) * (len(self.copies) - 1)


def repeats_of(
    inputs: Mapping[int, Sequence[Read]], looks: Mapping[int, Hashable], fixed: Set[int] = frozenset()
) -> tuple[RepeatedBlock, ...]:
    """Return the blocks that repeat, the largest saving first; no node is in two of them.

    `inputs` are those of each node in their order, without cycles; two nodes of one look can stand for each other.
    Nodes that are `fixed` are in no block.
    """
    return tuple(_Finder(inputs, looks, fixed).found())


class _SourcePlace(NamedTuple):
    """Position of a source seen from a reader in a copy: `back` copies before; `at` is the place in the block.

    Outside of all copies `back` is -1, and `at` the node.
    """

    back: int
    at: int
    output: int


class _Finder:
    """The graph in the order of its structure, and which nodes are in a block already."""

    def __init__(self, inputs: Mapping[int, Sequence[Read]], looks: Mapping[int, Hashable], fixed: Set[int]) -> None:
        self._inputs = inputs
        self._readers: dict[int, list[tuple[int, int]]] = {node: [] for node in inputs}
        for node, read in inputs.items():
            for index, (source, _) in enumerate(read):
                self._readers[source].append((node, index))
        known: dict[Hashable, int] = {}
        self._look = {
            node: known.setdefault((looks[node], tuple(output for _, output in read)), len(known))
            for node, read in inputs.items()
        }
        self._order = [node for node in _structural_order(inputs, self._readers) if node not in fixed]
        self._place = {node: at for at, node in enumerate(self._order)}
        self._used = np.zeros(len(self._order), bool)
        self._frame: dict[int, int] = {}

    def found(self) -> Iterator[RepeatedBlock]:
        """Yield the blocks, those that save the most first."""
        looks = np.array([self._look[node] for node in self._order], np.int64)
        crossing = self._crossing()
        waiting = [(-saved, period, begin, length) for saved, period, begin, length in _periodic(looks)]
        heapq.heapify(waiting)
        for _ in range(_MOST_TRIES):
            if not waiting:
                return
            _, period, begin, length = heapq.heappop(waiting)
            free = list(_free_parts(self._used, begin, begin + length))
            if free != [(begin, begin + length)]:
                for start, end in free:
                    self._push(waiting, period, start, end - start)
                continue
            made = self._checked(begin, length, period, crossing)
            if made is None or made.saved < LEAST_SAVED or not self._is_apart(made):
                continue
            number = len(self._frame) + 1
            for copy in made.copies:
                for node in copy:
                    self._used[self._place[node]] = True
                    self._frame[node] = -number
            yield made

    @staticmethod
    def _push(waiting: list[tuple[int, int, int, int]], period: int, begin: int, length: int) -> None:
        saved = period * (length // period - 1)
        if saved >= LEAST_SAVED:
            heapq.heappush(waiting, (-saved, period, begin, length))

    def _crossing(self) -> tuple[Array, Array]:
        """Return for each place of the order how many nodes before it are read at or behind it, and how often."""
        nodes, reads = np.zeros((2, len(self._order) + 2), np.int64)
        for at, node in enumerate(self._order):
            places = [self._place[reader] for reader, _ in self._readers[node] if reader in self._place]
            for place in places:
                reads[at + 1] += 1
                reads[place + 1] -= 1
            if places:
                nodes[at + 1] += 1
                nodes[max(places) + 1] -= 1
        return np.cumsum(nodes), np.cumsum(reads)

    # --- one part of the sequence ----------------------------------------------------------------------------------

    def _checked(self, begin: int, length: int, period: int, crossing: tuple[Array, Array]) -> RepeatedBlock | None:
        """Return the copies in a part of the order; None where they differ.

        They are cut where the fewest tensors cross, best of all where these fork; of several cuts the one that saves
        most.
        """
        (nodes, reads), inner = crossing, begin + period
        slack = length % period
        key = {at: (int(nodes[inner + at]), -int(reads[inner + at]), at > slack) for at in range(period)}
        least = min(key.values())[0]
        offsets = sorted((at for at in range(period) if key[at][0] == least), key=lambda at: (*key[at], at))
        found: list[RepeatedBlock] = []
        for offset in offsets[:_MOST_CUTS]:
            starts = range(begin + offset, begin + length - period + 1, period)
            alike = self._alike([tuple(self._order[at : at + period]) for at in starts])
            if len(alike) < 2:
                continue
            grown = self._grown(self._extended(alike))
            if len(grown[0]) >= _LEAST_SIZE:
                found.append(RepeatedBlock(tuple(grown), self._is_row(grown)))
        return max(found, key=lambda one: one.saved, default=None)

    def _alike(self, copies: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the longest stretch of copies of which each is wired as the one before."""
        where = {node: (copy, at) for copy, nodes in enumerate(copies) for at, node in enumerate(nodes)}
        refs = [[self._refs(node, copy, where) for node in nodes] for copy, nodes in enumerate(copies)]
        best, start = (0, 0), 0
        for copy in range(1, len(copies) + 1):
            is_first = copy - 1 == start
            if copy == len(copies) or not self._is_alike(refs[copy - 1], refs[copy], may_enter=is_first):
                best = max(best, (start, copy), key=lambda part: part[1] - part[0])
                lenient = copy < len(copies) and self._is_alike(refs[copy - 1], refs[copy], may_enter=True)
                start = copy - 1 if lenient else copy
        return list(copies[best[0] : best[1]])

    def _refs(self, node: int, copy: int, where: Mapping[int, tuple[int, int]]) -> list[_SourcePlace]:
        found = []
        for source, output in self._inputs[node]:
            place = where.get(source)
            inside = place is not None and place[0] <= copy
            found.append(
                _SourcePlace(copy - place[0], place[1], output)
                if place is not None and inside
                else _SourcePlace(-1, source, output)
            )
        return found

    def _is_alike(self, one: list[list[_SourcePlace]], other: list[list[_SourcePlace]], *, may_enter: bool) -> bool:
        """True if two copies are wired alike; the first of a row may read what is before it wherever that is."""
        for mine, theirs in zip(one, other, strict=True):
            if len(mine) != len(theirs):
                return False
            for a, b in zip(mine, theirs, strict=True):
                if a == b or (may_enter and a.back < 0 and b.back == 1):
                    continue
                if a.back < 0 and b.back < 0 and self._look[a.at] == self._look[b.at] and a.output == b.output:
                    continue
                return False
        return True

    def _is_row(self, copies: Sequence[tuple[int, ...]]) -> bool:
        before = set(copies[0])
        return any(source in before for node in copies[1] for source, _ in self._inputs[node])

    # --- further copies at both ends -------------------------------------------------------------------------------

    def _extended(self, copies: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the copies with those before and behind them that are wired alike."""
        taken = {node for copy in copies for node in copy}
        while (before := self._matched(copies, self._seeds_before(copies), taken, is_before=True)) is not None:
            taken.update(before)
            copies = [before, *copies]
        while (behind := self._matched(copies, self._seeds_behind(copies, taken), taken, is_before=False)) is not None:
            taken.update(behind)
            copies = [*copies, behind]
        return copies

    def _seeds_before(self, copies: Sequence[tuple[int, ...]]) -> dict[int, int]:
        """Return what the first copy reads where the second reads the first, by the place in the block."""
        places = {node: at for at, node in enumerate(copies[0])}
        seeds: dict[int, int] = {}
        for first, second in zip(copies[0], copies[1], strict=True):
            for (mine, _), (theirs, _) in zip(self._inputs[first], self._inputs[second], strict=True):
                if theirs in places and seeds.setdefault(places[theirs], mine) != mine:
                    return {}
        return seeds

    def _seeds_behind(self, copies: Sequence[tuple[int, ...]], taken: Set[int]) -> dict[int, int]:
        """Return what reads the last copy as that reads the one before, by the place in the block."""
        places = {node: at for at, node in enumerate(copies[-2])}
        seeds: dict[int, int] = {}
        for at, node in enumerate(copies[-1]):
            for index, (source, _) in enumerate(self._inputs[node]):
                if source not in places:
                    continue
                found = [one for one in self._like(copies[-1][places[source]], index, node) if one not in taken]
                if len(found) != 1 or seeds.setdefault(at, found[0]) != found[0]:
                    return {}
        return seeds

    def _like(self, source: int, index: int, pattern: int) -> list[int]:
        """Return what reads a node with this input and looks as the pattern."""
        look = self._look[pattern]
        return [reader for reader, slot in self._readers[source] if slot == index and self._look[reader] == look]

    def _matched(
        self, copies: Sequence[tuple[int, ...]], seeds: Mapping[int, int], taken: Set[int], *, is_before: bool
    ) -> tuple[int, ...] | None:
        """Return another copy that has these nodes at these places, found along its edges; None where there is none."""
        model = copies[1]
        places = {node: at for at, node in enumerate(model)}
        found, waiting, done = dict(seeds), list(seeds), set[int]()
        while waiting:
            at = waiting.pop()
            if at in done:
                continue
            done.add(at)
            node, pattern = found[at], model[at]
            if self._look[node] != self._look[pattern] or node in taken or not self._is_free(node):
                return None
            steps = [
                (places[theirs], mine)
                for (mine, _), (theirs, _) in zip(self._inputs[node], self._inputs[pattern], strict=True)
                if theirs in places
            ]
            for reader, index in self._readers[pattern]:
                if reader in places and places[reader] not in found:
                    fitting = self._like(node, index, reader)
                    steps += [(places[reader], fitting[0])] if len(fitting) == 1 else []
            for place, candidate in steps:
                if found.setdefault(place, candidate) != candidate:
                    return None
                waiting.append(place)
        if len(found) < len(model) or len(set(found.values())) < len(model):
            return None
        made = tuple(found[at] for at in range(len(model)))
        pair = [made, copies[0]] if is_before else [copies[-1], made]
        where = {node: (copy, at) for copy, nodes in enumerate(pair) for at, node in enumerate(nodes)}
        one, other = ([self._refs(node, copy, where) for node in nodes] for copy, nodes in enumerate(pair))
        return made if self._is_alike(one, other, may_enter=True) else None

    # --- nodes beside the copies -----------------------------------------------------------------------------------

    def _grown(self, copies: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the copies with the nodes around them of which each copy has one of its own."""
        columns = list(zip(*copies, strict=True))
        copy_of = {node: copy for copy, nodes in enumerate(copies) for node in nodes}
        new = columns
        for _ in range(_MOST_ROUNDS):
            beside = [found for column in new for found in (*self._sources(column), *self._sinks(column, copy_of))]
            new = []
            for column in beside:
                if all(self._belongs(node, copy, copy_of) for copy, node in enumerate(column)):
                    copy_of.update((node, copy) for copy, node in enumerate(column))
                    new.append(column)
            if not new:
                break
            columns += new
        return list(zip(*columns, strict=True))

    def _sources(self, column: Sequence[int]) -> Iterator[tuple[int, ...]]:
        for read in zip(*(self._inputs[node] for node in column), strict=True):
            yield tuple(source for source, _ in read)

    def _sinks(self, column: Sequence[int], copy_of: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
        """Yield what reads each copy's node, and nothing but its copy and what all share."""
        for pattern, index in self._readers[column[0]]:
            found = [[one for one in self._like(node, index, pattern) if one not in copy_of] for node in column]
            if all(len(fitting) == 1 for fitting in found):
                readers = tuple(fitting[0] for fitting in found)
                others = zip(*(self._inputs[node] for node in readers), strict=True)
                if all(len(set(read)) == 1 or self._is_own(read, copy_of) for read in others):
                    yield readers

    @staticmethod
    def _is_own(read: Sequence[Read], copy_of: Mapping[int, int]) -> bool:
        return all(copy_of.get(source) == copy for copy, (source, _) in enumerate(read))

    def _belongs(self, node: int, copy: int, copy_of: Mapping[int, int]) -> bool:
        """True if a node is free, and nothing but its own copy reads it."""
        if node in copy_of or not self._is_free(node):
            return False
        return all(copy_of.get(reader) == copy for reader, _ in self._readers[node])

    def _is_free(self, node: int) -> bool:
        return node in self._place and not self._used[self._place[node]]

    def _is_apart(self, made: RepeatedBlock) -> bool:
        """True if the block can be one box: nothing that reads it is read by it."""
        frame = {**self._frame, **{node: -len(self._frame) - 1 for copy in made.copies for node in copy}}
        links: dict[int, set[int]] = {}
        for node, read in self._inputs.items():
            here = links.setdefault(frame.get(node, node), set())
            here.update(frame.get(source, source) for source, _ in read)
        for key, sources in links.items():
            sources.discard(key)
        try:
            return len(topological_order({key: list(sources) for key, sources in links.items()})) == len(links)
        except ValueError:
            return False


def _structural_order(
    inputs: Mapping[int, Sequence[Read]], readers: Mapping[int, Sequence[tuple[int, int]]]
) -> Iterator[int]:
    """Yield the nodes, each after its inputs, from the deepest end backwards, of several inputs the deepest first."""
    depth: dict[int, int] = {}
    for node in topological_order({node: [source for source, _ in read] for node, read in inputs.items()}):
        depth[node] = 1 + max((depth[source] for source, _ in inputs[node]), default=0)
    done: set[int] = set()

    def deepest(node: int) -> Iterator[int]:
        sources = dict.fromkeys(source for source, _ in inputs[node])
        return iter(sorted(sources, key=lambda source: -depth[source]))

    for end in sorted((node for node in inputs if not readers[node]), key=lambda node: -depth[node]):
        stack = [(end, deepest(end))]
        while stack:
            node, rest = stack[-1]
            source = next((one for one in rest if one not in done), None)
            if source is not None:
                stack.append((source, deepest(source)))
                continue
            stack.pop()
            if node not in done:
                done.add(node)
                yield node


def _periodic(looks: Array) -> Iterator[tuple[int, int, int, int]]:
    """Yield the parts that have a period, twice at least: what it saves, the period, where it begins, its length."""
    order = np.argsort(looks, kind="stable")
    gaps = np.diff(order)[np.diff(looks[order]) == 0]
    periods, counts = np.unique(gaps[gaps >= _LEAST_SIZE], return_counts=True)
    for at in np.argsort(-periods * counts, kind="stable")[:_MOST_PERIODS]:
        period = int(periods[at])
        same = np.concatenate(([False], looks[:-period] == looks[period:], [False]))
        edges = np.flatnonzero(np.diff(same.astype(np.int8)))
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            length = int(end - begin) + period
            saved = period * (length // period - 1)
            if end - begin >= period and saved >= LEAST_SAVED:
                yield saved, period, int(begin), length


def _free_parts(used: Array, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range in which nothing is used."""
    free = np.concatenate(([False], ~used[begin:end], [False]))
    edges = np.flatnonzero(np.diff(free.astype(np.int8)))
    for one, other in zip(edges[::2], edges[1::2], strict=True):
        yield begin + int(one), begin + int(other)
