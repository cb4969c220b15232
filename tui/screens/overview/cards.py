"""Cards of the overview as data: the loops of a run with their rows, and which history each row is drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from stepper.debug.overview.facts import ActivationFacts, LoopFacts, RowKind
from stepper.records import Record

if TYPE_CHECKING:
    from stepper.engine.program import Program
    from stepper.ir.model import LayerSite
    from stepper.tensors.histories import ShapeChange, ValueHistory
    from stepper.tensors.pictures import Form

MOST_CARDS: Final = 8
"""Loops from which on the others are a list."""


class RowGroup(Enum):
    """Rows of a kind, which stand together: the word for one of them, and for several."""

    BACK_EDGES = ("back edge", "back edges")
    OUTPUTS = ("output", "outputs")
    SLICES = ("slice", "slices")
    BRANCHES = ("branch", "branches")
    OTHERS = ("other row", "other rows")

    def counted(self, count: int) -> str:
        """Return how many more of them there are."""
        return f"{count} more {self.value[count != 1]}"

    @property
    def heading(self) -> str:
        """The word above the first of them, empty for rows that have nothing in common."""
        return "" if self is RowGroup.OTHERS else self.value[1]


_GROUPS: Final = {
    RowKind.BACK_EDGE: RowGroup.BACK_EDGES,
    RowKind.CONCATENATED: RowGroup.OUTPUTS,
    RowKind.LAST_VALUE: RowGroup.OUTPUTS,
    RowKind.SLICE: RowGroup.SLICES,
}


class LinePart(IntEnum):
    """Which numbers of a row of a loop are shown: its values, how they change, what they grow by.

    Or of an If in the loop the sides that ran, and what an output was.
    """

    VALUE = 0
    CHANGE = 1
    GROWTH = 2
    CHOICE = 3
    OUTCOME = 4


class Rank(IntEnum):
    """Order in which rows stay where there is no room for all: the first ones do."""

    CONDITION = 0
    BIRTH = 1
    READ_BY_CONDITION = 2
    LABELLED = 3
    READ_BY_OUTPUT = 4
    VALUE = 5
    CHANGE = 6
    CHOICE = 7
    SLICE = 8
    WORDS = 9


RowKey = tuple[int, int, int]
"""A row of the page: the index of the loop, that of its row, and the part; what the user chose for it stays with it."""


BORN: Final = "born here"
"""The note of a row of an operation that makes a NaN or Inf of what has none."""


class Line(NamedTuple):
    """A row of a card. `row` is its index among those of the loop, of an If that among the branches of the overview.

    Of an output of an If it is the index among the outcomes of the card.

    `labels` are the words for its numbers, `places` those for its elements. `words` stand instead of a picture
    (`brief`: in little room); of an If they say how often each side ran. `came` is what entered, in few letters; `note`
    follows the shape.
    """

    row: int
    kind: RowKind
    form: Form
    glyph: str
    name: str
    shape: str
    part: LinePart = LinePart.VALUE
    rank: Rank = Rank.VALUE
    words: str = ""
    brief: str = ""
    came: str = ""
    labels: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    note: str = ""

    @property
    def group(self) -> RowGroup:
        """Return with which rows it stands."""
        if self.part in (LinePart.CHOICE, LinePart.OUTCOME):
            return RowGroup.BRANCHES
        return _GROUPS.get(self.kind, RowGroup.OTHERS)

    @property
    def is_born(self) -> bool:
        """True if a NaN or Inf is born in it."""
        return self.kind is RowKind.BIRTH


class IfOutcome(NamedTuple):
    """An output of an If in a loop: the index of the If, which output, and what it was in each kept run of the loop."""

    branch: int
    output: int
    values: tuple[ValueHistory | None, ...]


class Card(Record, eq=False):
    """A loop: `index` among those of the overview, `program` its body's, `runs` what is known of its runs.

    `choices` are the sides of the Ifs that stand in it, by index of the If, of each run; `ifs` their layers, `outcomes`
    those of their outputs that no row of the loop shows.
    """

    index: int
    facts: LoopFacts
    program: Program | None
    name: str
    lines: tuple[Line, ...] = ()
    choices: Mapping[int, tuple[ValueHistory | None, ...]] = {}
    ifs: Mapping[int, LayerSite] = {}
    outcomes: tuple[IfOutcome, ...] = ()

    @property
    def runs(self) -> tuple[ActivationFacts, ...]:
        """Return the runs of which values are kept."""
        return self.facts.activations

    @property
    def has_ended(self) -> bool:
        """True if a run of it has come to its end, also one without iterations."""
        return any(one.ending is not None for one in self.runs)

    def made_by(self, line: Line) -> LayerSite | None:
        """Return the layer of the body that makes the values of a row; None of a slice."""
        if line.part is LinePart.CHOICE:
            return self.ifs[line.row]
        if line.part is LinePart.OUTCOME:
            return self.ifs[self.outcomes[line.row].branch]
        return None if line.kind is RowKind.SLICE else self.facts.rows[line.row].producer

    def output_of(self, line: Line) -> int:
        """Return which output of that layer they are."""
        if line.part is LinePart.OUTCOME:
            return self.outcomes[line.row].output
        return 0 if line.part is LinePart.CHOICE else self.facts.rows[line.row].output

    def key(self, line: Line) -> RowKey:
        """Return what a row is known by."""
        return self.index, line.row, line.part

    def history(self, line: Line, run: int) -> ValueHistory | None:
        """Return the numbers of a row in one of the kept runs; None where no iteration has run."""
        if not 0 <= run < len(self.runs):
            return None
        if line.part is LinePart.CHOICE:
            return self.choices[line.row][run]
        if line.part is LinePart.OUTCOME:
            known = self.outcomes[line.row].values[run]
            return None if known is None or not known.count else known
        known = self.runs[run].values[line.row]
        if known is None or not known.count:
            return None
        return {LinePart.CHANGE: known.changes, LinePart.GROWTH: known.growth}.get(line.part, known)

    def shapes(self, line: Line, run: int) -> tuple[ShapeChange, ...]:
        """Return the first changes of the shape of a value in one of the kept runs."""
        if line.part in (LinePart.CHOICE, LinePart.OUTCOME) or not 0 <= run < len(self.runs):
            return ()
        known = self.runs[run].values[line.row]
        return () if known is None else known.shapes

    def has_growth(self, line: Line) -> bool:
        """True if what a value grows by has a row of its own."""
        return any(one.row == line.row and one.part is LinePart.GROWTH for one in self.lines)

    def histories(self, line: Line) -> list[ValueHistory]:
        """Return the numbers of a row in all kept runs that have any."""
        known = (self.history(line, run) for run in range(len(self.runs)))
        return [one for one in known if one is not None]


def is_true_over(run: ActivationFacts, first: int, last: int) -> bool | None:
    """Return the condition's verdict over iterations: false only in the last one; None where they have not run."""
    if first >= run.iterations or run.condition is None:
        return None
    return run.condition if last >= run.iterations else True
