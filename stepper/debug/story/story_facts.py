"""Hold the findings of the walks back and forward, as frozen data without words of a screen.

They can be written as JSON. A `Provenance` has all that a value depends on. A `Story` is the explanation: its causes as
rows of operations by columns of iterations. A `ShortStory` is an explanation without some of its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from enum import StrEnum
from importlib import import_module
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from stepper.debug.causes.cause import (
    Arithmetic,
    Chain,
    Element,
    Link,
    LinkForm,
    LinkKind,
    Location,
    PartRole,
    Scalar,
    Verdict,
)
from stepper.element_types import Indices, Shape
from stepper.engine.loops import EndReason
from stepper.ir.model import LayerSite
from stepper.records import Record

_TEXTS = "stepper.debug.story.story_texts"
"""Loaded by notebooks alone; facts import no texts."""


class QuestionKind(StrEnum):
    """Subject of a question: an element, the shape of a value, or how often a loop ran."""

    VALUE = "value"
    SHAPE = "shape"
    END = "iterations"


class Influence(StrEnum):
    """How an element of a source matters: for the number, for which element it is, or for whether something ran."""

    DATA = "data"
    INDEX = "index"
    CONTROL = "control"


class SourceElement(Record):
    """An element that what was asked about depends on."""

    index: Element
    value: Scalar | None
    part: Influence


class SourceTensor(Record):
    """A tensor at which the way back ends: an input, a constant, a value that was edited, or a variable.

    `counts` says how many of its elements matter, by how they do; `elements` are these, all of them unless that are
    too many. `axes` are the extents of its shape that matter: the index of each is the axis.
    """

    kind: str
    name: str
    layer: LayerSite
    output: int
    type: str
    shape: Shape
    counts: tuple[tuple[Influence, int], ...]
    elements: tuple[SourceElement, ...]
    axes: tuple[SourceElement, ...]

    @property
    def count(self) -> int:
        """Return how many of its elements matter."""
        return sum(count for _, count in self.counts)

    @property
    def first_part(self) -> Influence:
        """Return the strongest way in which it matters, by an element or an extent."""
        parts = [*(part for part, _ in self.counts), *(one.part for one in self.axes)]
        return min(parts, key=list(Influence).index)


class RuleCount(Record):
    """How often the elements behind a type of operation were found by a method."""

    type: str
    method: str
    count: int


class LoopEnd(Record):
    """The end of a loop that was asked about: after how many iterations, and why.

    `is_set`: the trip count or the condition was set by hand, as `limit`, or to false whatever the body said.
    """

    layer: LayerSite
    iterations: int
    reason: EndReason
    limit: int | None
    is_set: bool


class TrialCounts(Record):
    """How elements were tried: how many `candidates` rules left, how many of them were `tried` in how many `runs`.

    `excluded` of them do not matter alone. `reason` says why not all were tried.
    """

    candidates: int
    tried: int = 0
    excluded: int = 0
    runs: int = 0
    reason: str = ""


class Provenance(Record):
    """Explain a value: `chain` is the way back, for a NaN or Inf to its origin.

    `behind` continues from the origin. `sources` are all elements of inputs, constants and edits that the value depends
    on, data before indices before control. `rules` says how these were found, in `operations` looked at with
    `kernel_runs`. `trials` lists the elements of inputs that were tried by running the model again. `stopped` says why
    not all was found. `addresses` are the addresses of the links of the chain, then of the links behind it.
    """

    asked: QuestionKind
    address: str
    type: str
    shape: Shape
    element: Element | None
    value: Scalar | None
    chain: Chain
    behind: Chain
    addresses: tuple[str, ...]
    sources: tuple[SourceTensor, ...]
    rules: tuple[RuleCount, ...]
    operations: int
    kernel_runs: int
    trials: TrialCounts
    end: LoopEnd | None
    reference: str
    stopped: str

    @property
    def links(self) -> tuple[Link, ...]:
        """Return all links, from what was asked about to the source that it most depends on."""
        return (*self.chain.links, *self.behind.links)

    def _repr_html_(self) -> str:
        """Return the way back and the sources as a table, for notebooks."""
        html: str = import_module(_TEXTS).why_html(self)
        return html

    def __repr__(self) -> str:
        elements = sum(one.count for one in self.sources)
        return f"<Provenance of {self.address}: {len(self.links)} links, {elements} elements of {len(self.sources)}>"


class ElementUse(Record):
    """An operation that an element reaches: `count` of `size` elements of its output in the iteration of `location`.

    `times` is in how many iterations it is reached, `last` the last of them (None: it is outside of all loops).
    """

    location: Location
    element: Element
    count: int
    size: int
    times: int
    last: int | None


class OutputUse(Record):
    """An output of the model that an element reaches, and which of its elements."""

    name: str
    shape: Shape
    count: int
    elements: tuple[Element, ...]


class Decision(Record):
    """A loop or If whose condition, trip count or choice an element reaches, first in this iteration."""

    layer: LayerSite
    what: str
    iteration: int | None


class Uses(Record):
    """Where an element goes: the operations in the order in which it reaches them, outputs of the model, decisions."""

    address: str
    uses: tuple[ElementUse, ...]
    outputs: tuple[OutputUse, ...]
    decisions: tuple[Decision, ...]
    kernel_runs: int
    stopped: str


_AFTER_ALL = 2**62


MOST_LINKS = 40
"""Links of an explanation that are looked for at first."""


class StoryQuestion(Record):
    """Ask why the value at an `address` is so, or (`ends`) why the loop of that name ended.

    Without a name it is the loop around the present, else the last loop that ended. `fails`: why the operation that
    comes next fails. `tick` is the moment of that (None: the present). `links` is how many links are looked for.
    `wider` maps the keys of links to how many operands more than usual are followed. `unfolds`: mere moves of elements
    and equal iterations are shown singly. `depends`: the elements that it depends on are looked for. `courses`: the
    elements of the path are read over the iterations around it.
    """

    address: str = ""
    ends: bool = False
    fails: bool = False
    tick: int | None = None
    links: int = MOST_LINKS
    wider: tuple[tuple[str, int], ...] = ()
    unfolds: bool = False
    depends: bool = True
    courses: bool = True


class LinkRole(StrEnum):
    """Place of a link in an explanation: value asked about, first NaN or Inf, or on the way."""

    ASKED = "asked"
    BORN = "born"
    PATH = "path"


class StoryFactor(Record):
    """An element of an operation's output (element None: the whole tensor), and its value; `name` is the short name.

    `is_shape`: it is an extent of that output, and `element` says along which axis.
    """

    name: str
    layer: LayerSite
    output: int | None
    element: Element | None
    value: Scalar | None
    is_shape: bool


class StoryOperand(Record):
    """Describe a part of a link.

    `amount` is the term that it stands for, `share` its share of the result, `beside` the other factor. `link` is the
    number of the link that made it (None: it was not followed).
    """

    input: int
    factor: StoryFactor
    role: PartRole
    amount: float | None
    share: float | None
    beside: StoryFactor | None
    link: int | None


class OperandGroup(Record):
    """Sum of all `count` terms that come from one tensor."""

    name: str
    layer: LayerSite
    count: int
    amount: float
    share: float | None


class Entry(Record):
    """A path of a value into or out of a body: its Parameter or port, and the line of the file.

    `factor` is the value that passed, outside of a loop; None for a back edge.
    """

    kind: LinkKind
    name: str
    layer: LayerSite
    line: int
    factor: StoryFactor | None = None


class StoryLink(Record):
    """An element of one operation in one iteration.

    `key` is equal in every explanation, `address` can be typed. `row` and `column` are its place; `share` is its exact
    part of the value asked about (None: that has no meaning). `form` and `operands` list its contributions, the largest
    part first. `rest` is the sum of the parts, out of `count`, that are not in `operands`. `cancelled` says how much of
    all magnitudes cancels out, `positive` how many terms are above 0; `groups` has the terms by tensor if none stands
    out. `arithmetic` and `formula` are the reason at an origin; `limit` is the number that an argument exceeded.
    `entry` is how it came in from outside. `readers` are the operations that it goes to; `finite_beside` counts the
    finite elements beside the element that is NaN or Inf. `times` links of as many iterations are this link; `first`
    was the value of the first link. `tick` is when it failed (0: it did not).
    """

    key: str
    address: str
    row: int
    column: int
    location: Location
    type: str
    shape: Shape
    element: Element | None
    value: Scalar | None
    kind: LinkKind
    role: LinkRole
    form: LinkForm
    operands: tuple[StoryOperand, ...] = ()
    count: int = 0
    rest: float | None = None
    cancelled: float | None = None
    positive: int | None = None
    groups: tuple[OperandGroup, ...] = ()
    arithmetic: Arithmetic | None = None
    formula: str = ""
    limit: float | None = None
    share: float | None = None
    entry: Entry | None = None
    readers: tuple[str, ...] = ()
    finite_beside: int = 0
    times: int = 1
    first: Scalar | None = None
    tick: int = 0
    is_shape: bool = False

    @property
    def is_bad(self) -> bool:
        """True if it is NaN or infinite, or an operation that failed."""
        return is_bad(self.value) or self.kind is LinkKind.FAILED


class StoryEdge(Record):
    """From the link that made a value to the one that it went into; `ways` are the borders of bodies that it passed."""

    source: int
    target: int
    ways: tuple[Entry, ...]
    share: float | None

    @property
    def back(self) -> Entry | None:
        """Return the last back edge on the way; None where it stays within an iteration."""
        return next((way for way in self.ways if way.kind is LinkKind.BACK_EDGE), None)


class StoryRow(Record):
    """Describe an operation (or Parameter) on the path, and its element.

    The element is None if it differs by column. `history` is the element in the iterations of `iterations` of the
    explanation, None where it is not known. `hidden` operations of the body between the row before and this row are not
    on the path.
    """

    name: str
    layer: LayerSite
    output: int | None
    element: Element | None
    hidden: int
    history: tuple[Scalar | None, ...]
    is_shape: bool


class StoryColumn(Record):
    """An iteration: its number in each loop from the outermost inwards; () is the model's own graph.

    `phase` is -1 or 1 for what a graph does before or after the loop in it that has columns of its own. Of a run of
    iterations that do the same, `path` is the last, `first` the first one, and `times` how many they are.
    """

    path: Indices
    phase: int = 0
    times: int = 1
    first: Indices = ()

    @property
    def time(self) -> Indices:
        """Return a key by which columns are in the order of time."""
        return time_of(self.path, self.phase)


def time_of(path: Indices, phase: int) -> Indices:
    """Return a key by which iterations, and what is before and after them, are in the order of time."""
    return (*path, phase * _AFTER_ALL) if phase else path


class StorySlices(Record):
    """An input of a loop that is cut along an axis: its short name, `count` slices of `size` elements each."""

    name: str
    type: str
    shape: Shape
    axis: int
    size: int
    count: int


class StoryEnd(Record):
    """Explain the end of a loop: why, after which iteration (-1: none ran), of at most how many.

    `unasked` are comparisons of the side of an If that did not run, and so did not count. `sliced` are the inputs whose
    slices were used up, where that is the reason. `is_set`: the trip count or the condition was set by hand, as
    `limit`, or to false whatever the body said. `verdict` is the verdict on the condition, where that is the reason.
    """

    layer: LayerSite
    reason: EndReason
    iteration: int
    limit: int | None
    unasked: tuple[str, ...] = ()
    sliced: tuple[StorySlices, ...] = ()
    is_set: bool = False
    verdict: Verdict | None = None

    @property
    def is_undecided(self) -> bool:
        """True if no value of the run decided it."""
        return self.is_set or self.reason is EndReason.SLICES


class Story(Record):
    """Explain a value, or the end of a loop.

    `address` is the value that was asked about, `name` its short name; `asked` the number of its link. `loops` are the
    loops of the columns from the outermost inwards. `iterations` are the paths of the iterations that rows have values
    of, which may be a part of the `total` that the loop runs (unless `counts_all`, of at least so many). `present` is
    where the run stands; in the iterations of `passed` the element was only passed on. `pending` links were not looked
    at, `stopped` says why the way back ends early. `end` belongs to a question for the end of a loop. `entered` is the
    tick at which the outermost loop was entered. `shares` says how much of it each iteration brought, the latest first,
    where that is known. `failure` is the message of the error with which the operation that was asked about failed.
    `sources` are the elements of inputs, constants and edits that it depends on; none where these are too far away.
    """

    address: str
    name: str
    asked: int = 0
    loops: tuple[LayerSite, ...] = ()
    rows: tuple[StoryRow, ...] = ()
    columns: tuple[StoryColumn, ...] = ()
    links: tuple[StoryLink, ...] = ()
    edges: tuple[StoryEdge, ...] = ()
    iterations: tuple[Indices, ...] = ()
    total: int = 0
    counts_all: bool = True
    present: Indices = ()
    passed: tuple[Indices, ...] = ()
    pending: int = 0
    stopped: str = ""
    end: StoryEnd | None = None
    question: StoryQuestion = StoryQuestion()
    entered: int = 0
    shares: tuple[tuple[Indices, float], ...] = ()
    failure: str = ""
    sources: tuple[SourceTensor, ...] = ()

    @property
    def births(self) -> Indices:
        """Return the numbers of the links where a NaN or Inf first appears."""
        return tuple(k for k, link in enumerate(self.links) if link.role is LinkRole.BORN)

    def into(self, link: int) -> tuple[StoryEdge, ...]:
        """Return the edges to a link; the edge of the largest share is first."""
        found = [edge for edge in self.edges if edge.target == link]
        return tuple(sorted(found, key=lambda edge: -abs(edge.share or 0)))

    def between(self, source: int, target: int) -> tuple[StoryEdge, ...]:
        """Return the edges on all ways from a link to another one, those into the earliest iteration first."""
        behind, before = self._reached(source, "source", "target"), self._reached(target, "target", "source")
        found = [edge for edge in self.edges if edge.source in behind and edge.target in before]
        return tuple(sorted(found, key=lambda edge: (self.links[edge.target].column, self.links[edge.target].row)))

    def _reached(self, link: int, begin: str, end: str) -> set[int]:
        """Return a link and all that edges lead to from it, from one of their ends to the other."""
        found, left = {link}, [link]
        while left:
            at = left.pop()
            new = {getattr(edge, end) for edge in self.edges if getattr(edge, begin) == at} - found
            found |= new
            left += new
        return found


def is_bad(value: Scalar | None) -> bool:
    """True for NaN and the infinities, which are text."""
    return isinstance(value, str)


class CutEdge(NamedTuple):
    """An edge with one end left out: the number of the link at the other end, and the whole edge.

    The edge belongs to the whole explanation. `is_bad`: what it carries is not finite.
    """

    link: int
    edge: StoryEdge
    is_bad: bool


class ShortStory(Record):
    """An explanation of the columns that are left, and what was between them.

    `torn` is the column behind which `left_out` columns are missing (-1: before the first; None: all are there).
    `leading` are edges from its links to what is left out, `coming` edges that come from there. `farther` counts the
    links that are left out of the columns that are here, farther from the value asked about than the others.
    """

    story: Story
    torn: int | None = None
    left_out: int = 0
    leading: tuple[CutEdge, ...] = ()
    coming: tuple[CutEdge, ...] = ()
    farther: int = 0


def shortened_story(story: Story, count: int) -> ShortStory:
    """Return an explanation with so many columns.

    The last columns stay, and the column of the first origin. All columns stay if there are no more. Without an origin,
    and with three columns or more, the first column is kept.
    """
    kept = kept_columns(story, count)
    asked = story.links[story.asked].column
    return part_of_story(story, kept) if asked in kept.columns else ShortStory(story)


class KeptColumns(NamedTuple):
    """Columns that a short explanation keeps, by their numbers.

    `torn` and `left_out` are as in `ShortStory`.
    """

    columns: Indices
    torn: int | None = None
    left_out: int = 0


def kept_columns(story: Story, count: int) -> KeptColumns:
    """Return which columns are left of an explanation that is to have so many."""
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
    """Return an explanation of some columns, and of their links the chosen links (None: all).

    If the value asked about is not in them, their first link stands for it.
    """
    columns = {column: place for place, column in enumerate(kept.columns)}
    if len(columns) == len(story.columns) and chosen is None:
        return ShortStory(story)
    there = {k for k, link in enumerate(story.links) if link.column in columns}
    taken = [k for k in sorted(there) if chosen is None or k in chosen]
    numbers = {k: place for place, k in enumerate(taken)}
    rows = {row: place for place, row in enumerate(sorted({story.links[k].row for k in taken}))}
    inside = [edge for edge in story.edges if edge.source in numbers and edge.target in numbers]
    made = replace(_moved(story, numbers, columns, inside, rows), rows=_rows(story, rows), passed=())
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


LEAST_FOLDED = 3
"""Iterations that do the same with numbers that are not finite, from which on they are one column."""
LEAST_FOLDED_FINITE = 5

_Signature = tuple[object, ...]


def folded(story: Story) -> Story:
    """Return an explanation with each run of iterations that have equal links as one column.

    The column is the column of the last iteration of the run.
    """
    runs = list(_runs(story))
    if not runs:
        return story
    cells = {(link.row, link.column): number for number, link in enumerate(story.links)}
    last_of = {column: run[-1] for run in runs for column in run}
    links, columns = list(story.links), list(story.columns)
    for run in runs:
        columns[run[-1]] = replace(columns[run[-1]], times=len(run), first=columns[run[0]].path)
        for row in {row for row, column in cells if column == run[-1]}:
            number, first = cells[row, run[-1]], story.links[cells[row, run[0]]].value
            links[number] = replace(links[number], times=len(run), first=first)
    kept = [column for column in range(len(columns)) if last_of.get(column, column) == column]
    numbers = {k: place for place, k in enumerate(k for k, link in enumerate(links) if link.column in kept)}
    places = numbers | {
        k: numbers[cells[link.row, last_of[link.column]]] for k, link in enumerate(links) if k not in numbers
    }
    edges = {}
    for edge in story.edges:
        source, target = links[edge.source].column, links[edge.target].column
        if source == target or last_of.get(source, -1) != last_of.get(target, -2):
            edges[places[edge.source], places[edge.target], bool(edge.back)] = edge
    whole = replace(story, links=tuple(links), columns=tuple(columns))
    return _moved(whole, places, {column: place for place, column in enumerate(kept)}, edges.values())


def _moved(
    story: Story,
    numbers: Mapping[int, int],
    columns: Mapping[int, int],
    edges: Iterable[StoryEdge],
    rows: Mapping[int, int] | None = None,
) -> Story:
    """Return an explanation of these columns, and of their links that have a new number.

    Without `rows`, the rows stay as before.
    """
    links = []
    for k, link in enumerate(story.links):
        if link.column in columns and k in numbers:
            operands = (one if one.link is None else replace(one, link=numbers.get(one.link)) for one in link.operands)
            row = link.row if rows is None else rows[link.row]
            links.append(replace(link, row=row, column=columns[link.column], operands=tuple(operands)))
    return replace(
        story,
        asked=numbers.get(story.asked, 0),
        columns=tuple(story.columns[column] for column in columns),
        links=tuple(links),
        edges=tuple(replace(one, source=numbers[one.source], target=numbers[one.target]) for one in edges),
    )


def _runs(story: Story) -> Iterator[list[int]]:
    """Yield runs of columns that do the same."""
    columns = story.columns
    links: list[list[StoryLink]] = [[] for _ in columns]
    edges: list[list[StoryEdge]] = [[] for _ in columns]
    for link in story.links:
        links[link.column].append(link)
    for edge in story.edges:
        edges[story.links[edge.target].column].append(edge)
    signatures = [_signature(story, *both) for both in zip(links, edges, strict=True)]
    run = [0]
    for before, column in pairwise([*range(len(columns)), len(columns)]):
        is_same = (
            column < len(columns)
            and signatures[before] == signatures[column]
            and _follows(columns[before].path, columns[column].path)
        )
        if is_same:
            run.append(column)
            continue
        own = links[run[0]]
        least = LEAST_FOLDED if own and all(link.is_bad for link in own) else LEAST_FOLDED_FINITE
        if own and len(run) >= least:
            yield run
        run = [column]


def _follows(before: Indices, path: Indices) -> bool:
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
