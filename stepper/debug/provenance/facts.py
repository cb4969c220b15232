"""The answer to why a value is what it is, as plain frozen data; without words of a screen."""

from __future__ import annotations

from enum import StrEnum

from stepper.debug.causes.cause import Chain, Element, Link, Location, Scalar
from stepper.engine.loops import EndReason
from stepper.ir.model import LayerSite
from stepper.records import Record


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
    shape: tuple[int, ...]
    counts: tuple[tuple[Influence, int], ...]
    elements: tuple[SourceElement, ...]
    axes: tuple[SourceElement, ...] = ()

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
    limit: int | None = None
    is_set: bool = False


class TrialCounts(Record):
    """How elements were tried: how many `candidates` rules left, how many of them were `tried` in how many `runs`.

    `excluded` of them do not matter alone. `reason` says why not all were tried.
    """

    candidates: int = 0
    tried: int = 0
    excluded: int = 0
    runs: int = 0
    reason: str = ""


class Provenance(Record):
    """Why a value is what it is: `chain` is the way back, of a NaN or Inf to its birth; `behind` goes on from there.

    `sources` are all elements of inputs, constants and edits that it depends on, data before indices before control.
    `rules` says how these were found, in `operations` looked at with `kernel_runs`; `trials` which of the elements of
    inputs were tried by running the model again. `stopped` says why not all was found. `addresses` are those of the
    links of the chain, then of those behind it.
    """

    asked: QuestionKind
    address: str
    type: str
    shape: tuple[int, ...]
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
    end: LoopEnd | None = None
    reference: str = ""
    stopped: str = ""

    @property
    def links(self) -> tuple[Link, ...]:
        """Return all links, from what was asked about to the source that it most depends on."""
        return (*self.chain.links, *self.behind.links)

    def source(self, name: str) -> SourceTensor | None:
        """Return the source of this name; None where nothing of it matters."""
        return next((one for one in self.sources if one.name == name), None)

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
    times: int = 1
    last: int | None = None


class OutputUse(Record):
    """An output of the model that an element reaches, and which of its elements."""

    name: str
    shape: tuple[int, ...]
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
    stopped: str = ""
