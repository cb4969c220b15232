"""A story: the causes of a value, or of the end of a loop, as rows of operations by columns of iterations.

Frozen data without words of a screen, which can be written as JSON; `Debugger.story` returns it, layouts and texts are
made of it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, Literal

from stepper.debug.causes.cause import (
    Arithmetic,
    Element,
    LinkForm,
    LinkKind,
    Location,
    PartRole,
    Scalar,
    Verdict,
)
from stepper.debug.provenance.facts import SourceTensor
from stepper.engine.loops import EndReason
from stepper.ir.model import LayerSite
from stepper.plain_values import plain_data
from stepper.records import Record, as_data

_AFTER_ALL: Final = 2**62


MOST_LINKS: Final = 40
"""Links of a story that are looked for at first."""


class StoryQuestion(Record):
    """A question: why the value at an `address` is what it is, or (`ends`) why the loop of that name ended.

    Without a name it is the loop around the present, else the last one that ended. `fails`: why the operation that
    comes next fails. `tick` is where that is meant (None: at the present). `links` is how many are looked for;
    `wider` has for the keys of links how many operands more than usual are followed; `unfolds`: mere moves of
    elements and equal iterations are shown singly.
    """

    address: str = ""
    ends: bool = False
    fails: bool = False
    tick: int | None = None
    links: int = MOST_LINKS
    wider: tuple[tuple[str, int], ...] = ()
    unfolds: bool = False


class LinkRole(StrEnum):
    """Place of a link in a story: what was asked about, where a NaN or Inf was born, or on the way."""

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
    is_shape: bool = False


class StoryOperand(Record):
    """A part of a link: `amount` is the term that it stands for, `share` that of the result, `beside` the other factor.

    `link` is the number of the link that made it (None: it was not followed).
    """

    input: int
    factor: StoryFactor
    role: PartRole
    amount: float | None = None
    share: float | None = None
    beside: StoryFactor | None = None
    link: int | None = None


class OperandGroup(Record):
    """Sum of all `count` terms that come from one tensor."""

    name: str
    layer: LayerSite
    count: int
    amount: float
    share: float | None


class Entry(Record):
    """A way of a value into or out of a body: over which Parameter or port, and the line of the file that says so.

    `factor` is what was handed over, outside of a loop; of a back edge `None`.
    """

    kind: LinkKind
    name: str
    layer: LayerSite
    line: int
    factor: StoryFactor | None = None


class StoryLink(Record):
    """One element of one operation in one iteration. `key` is the same in every story that it is in.

    `row` and `column` are its place; `share` is its exact part of what was asked about (None: that has no meaning).
    `form` and `operands` say what it is made of, the largest part first; of `count` parts `rest` is what those not in
    `operands` add up to, `cancelled` how much of all magnitudes cancels out, `positive` how many terms are above 0;
    `groups` has the terms by tensor where none stands out. `arithmetic` and `formula` are those of a birth; `limit` is
    the number that an argument exceeded. `entry` is how it came in from outside.
    `readers` are the operations that it goes to; `finite_beside` counts the finite elements beside one that is born.
    `times` links of as many iterations are this one, of which `first` was the value of the first. `tick` is when it
    was computed (0: not known without a replay).
    """

    key: str
    row: int
    column: int
    location: Location
    type: str
    shape: tuple[int, ...]
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
    before: Scalar | None = None
    is_shape: bool = False

    @property
    def is_bad(self) -> bool:
        """True if it is NaN or infinite, or an operation that failed."""
        return is_bad(self.value) or self.kind is LinkKind.FAILED

    @property
    def unfollowed(self) -> tuple[StoryOperand, ...]:
        """Return the operands that it follows from and that were not followed; there is nothing behind a constant."""
        return tuple(
            one
            for one in self.operands
            if one.link is None
            and one.role is not PartRole.COMPARED
            and one.factor.element is not None
            and one.factor.layer.type != "Constant"
        )


class StoryEdge(Record):
    """From the link that made a value to the one that it went into; `ways` are the borders of bodies that it passed.

    `moves` counts the operations on the way that only moved it, `kept` the iterations that only passed it on.
    """

    source: int
    target: int
    ways: tuple[Entry, ...] = ()
    share: float | None = None
    moves: int = 0
    kept: int = 0

    @property
    def back(self) -> Entry | None:
        """Return the last back edge on the way; None where it stays within an iteration."""
        return next((way for way in self.ways if way.kind is LinkKind.BACK_EDGE), None)


class StoryRow(Record):
    """An operation (or Parameter) on the path, and which element of it; None where that differs by column.

    `history` is the element in the iterations of `Story.iterations`, None where it is not known. `hidden` operations of
    the body between the row before and this one are not on the path. `depth` is how many loops are around it.
    """

    name: str
    layer: LayerSite
    output: int | None
    element: Element | None
    depth: int
    hidden: int = 0
    history: tuple[Scalar | None, ...] = ()
    is_shape: bool = False


class StoryColumn(Record):
    """An iteration: its number in each loop from the outermost inwards; () is the model's own graph.

    `phase` is -1 or 1 for what a graph does before or after the loop in it that has columns of its own. Of a run of
    iterations that do the same, `path` is the last, `first` the first one, and `times` how many they are. `tick` is
    when the iteration was closed (0: not known).
    """

    path: tuple[int, ...]
    phase: int = 0
    times: int = 1
    first: tuple[int, ...] = ()
    tick: int = 0

    @property
    def time(self) -> tuple[int, ...]:
        """Return a key by which columns are in the order of time."""
        return time_of(self.path, self.phase)


def time_of(path: tuple[int, ...], phase: int) -> tuple[int, ...]:
    """Return a key by which iterations, and what is before and after them, are in the order of time."""
    return (*path, phase * _AFTER_ALL) if phase else path


class StorySlices(Record):
    """An input of a loop that is cut along an axis: its short name, `count` slices of `size` elements each."""

    name: str
    type: str
    shape: tuple[int, ...]
    axis: int
    size: int
    count: int


class StoryEnd(Record):
    """The end of a loop that was asked about: why, after which iteration (-1: none ran), of at most how many.

    `unasked` are comparisons of the side of an If that did not run, and so did not count. `sliced` are the inputs whose
    slices were used up, where that is the reason. `is_set`: the trip count or the condition was set by hand, as
    `limit`, or to false whatever the body said. `verdict` is that of the condition, where that is the reason.
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
    """Why a value is what it is, or why a loop ended.

    `address` is what was asked about, `name` the same in short; `asked` the number of its link. `loops` are the loops
    of the columns from the outermost inwards, `loop_names` how addresses call them; `iterations` the paths of all
    iterations that the histories are of, which may be a part of the `total` that the loop runs (unless `counts_all`, of
    at least so many); `present` where the run stands; in those of `passed` the element was only passed on. `pending`
    links were not looked at, `stopped` says why the way back ends early. `end` is of a question for the end of a loop.
    `entered` is the tick at which the outermost of the loops was entered. `is_preview`: the values are those after an
    edit, `before` of each link what it was. `shares` says how much of it each iteration brought, the latest first,
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
    loop_names: tuple[str, ...] = ()
    iterations: tuple[tuple[int, ...], ...] = ()
    total: int = 0
    counts_all: bool = True
    present: tuple[int, ...] = ()
    passed: tuple[tuple[int, ...], ...] = ()
    pending: int = 0
    stopped: str = ""
    end: StoryEnd | None = None
    question: StoryQuestion = StoryQuestion()
    entered: int = 0
    is_preview: bool = False
    shares: tuple[tuple[tuple[int, ...], float], ...] = ()
    failure: str = ""
    sources: tuple[SourceTensor, ...] = ()

    @property
    def births(self) -> tuple[int, ...]:
        """Return the numbers of the links where a NaN or Inf was born."""
        return tuple(k for k, link in enumerate(self.links) if link.role is LinkRole.BORN)

    def at(self, row: int, column: int) -> int | None:
        """Return the number of the link in a cell; None where there is none."""
        return next((k for k, link in enumerate(self.links) if (link.row, link.column) == (row, column)), None)

    def into(self, link: int) -> tuple[StoryEdge, ...]:
        """Return the edges to a link, that of the largest share first."""
        found = [edge for edge in self.edges if edge.target == link]
        return tuple(sorted(found, key=lambda edge: -abs(edge.share or 0)))

    def between(self, source: int, target: int) -> tuple[StoryEdge, ...]:
        """Return the edges on all ways from a link to another one, those into the earliest iteration first."""
        behind, before = self._reached(source, "target"), self._reached(target, "source")
        found = [edge for edge in self.edges if edge.source in behind and edge.target in before]
        return tuple(sorted(found, key=lambda edge: (self.links[edge.target].column, self.links[edge.target].row)))

    def _reached(self, link: int, end: Literal["source", "target"]) -> set[int]:
        """Return a link and all that edges lead to from it, towards this end of them."""
        found, left = {link}, [link]
        while left:
            at = left.pop()
            edges = self.out_of(at) if end == "target" else self.into(at)
            new = {edge.target if end == "target" else edge.source for edge in edges} - found
            found |= new
            left += new
        return found

    def out_of(self, link: int) -> tuple[StoryEdge, ...]:
        """Return the edges from a link."""
        return tuple(edge for edge in self.edges if edge.source == link)


def is_bad(value: Scalar | None) -> bool:
    """True for NaN and the infinities, which are text."""
    return isinstance(value, str)


def story_data(story: Story) -> dict[str, Any]:
    """Return a story as JSON has it."""
    found: dict[str, Any] = plain_data(as_data(story))
    return found
