"""Cards of the overview as data: the loops of a run with the rows that are drawn, and what is said of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.overview.facts import ActivationFacts, BranchFacts, LoopFacts, Overview, Row, RowKind
from stepper.engine.program import BranchPlan, CompiledModel, LoopPlan, Program
from stepper.query.address_resolution import MAIN, Target, address_of
from stepper.query.address_syntax import Address, Level, Name, NameKind
from stepper.tensors.histories import ValueHistory
from stepper.tensors.pictures import Form, form_of
from tui.paint.names import layer_name, row_name
from tui.paint.rows import shape_of
from tui.theme import GLYPHS

_GLYPHS: Final = {
    RowKind.CONDITION: " ",
    RowKind.BACK_EDGE: GLYPHS["back"],
    RowKind.CONCATENATED: GLYPHS["scan"],
    RowKind.LAST_VALUE: GLYPHS["scan"],
}
GROUPS: Final = {
    RowKind.BACK_EDGE: "back edges",
    RowKind.CONCATENATED: "outputs",
    RowKind.LAST_VALUE: "outputs",
    RowKind.SLICE: "slices",
}
_ORDER: Final = {kind: place for place, kind in enumerate(RowKind)}
_ORDER_OF_OUTPUTS: Final = {RowKind.LAST_VALUE: _ORDER[RowKind.CONCATENATED]}


class Line(NamedTuple):
    """A row of a card. `row` is its index among those of the loop; `labels` are the words for its numbers."""

    row: int
    kind: RowKind
    form: Form
    glyph: str
    name: str
    shape: str
    words: str = ""
    labels: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """Return the word above the first row of its kind."""
        return GROUPS.get(self.kind, "")


class Card(Struct, frozen=True, eq=False):
    """A loop: `index` among those of the overview, `program` its body's, `runs` what is known of its runs."""

    index: int
    facts: LoopFacts
    program: Program | None
    name: str
    lines: tuple[Line, ...]

    @property
    def runs(self) -> tuple[ActivationFacts, ...]:
        """Return the runs of which values are kept."""
        return self.facts.activations

    def history(self, line: Line, run: int) -> ValueHistory | None:
        """Return the values of a row in one of the kept runs; None where no iteration has run."""
        known = self.runs[run].values[line.row] if 0 <= run < len(self.runs) else None
        return known if known is not None and known.count else None


def cards_of(
    overview: Overview, compiled: CompiledModel, labels: Mapping[tuple[int, int], tuple[str, ...]]
) -> list[Card]:
    """Return the loops as cards, inner ones behind the outer one."""
    programs = programs_of(overview, compiled)
    order = sorted(range(len(overview.loops)), key=lambda index: _way(overview, index))
    return [_card(index, overview.loops[index], programs[index], labels) for index in order]


def _way(overview: Overview, index: int) -> tuple[int, ...]:
    """Return the positions of a loop and of all that it is in, from the outside inwards."""
    around = _around(overview)
    found, at = [], index
    while True:
        found.append(around[at].position)
        parent = around[at].parent
        if parent is None:
            return (*reversed(found), index)
        at = parent


def _around(overview: Overview) -> tuple[LoopFacts | BranchFacts, ...]:
    return (*overview.loops, *overview.branches)


def programs_of(overview: Overview, compiled: CompiledModel) -> list[Program | None]:
    """Return the programs of the bodies of all loops."""
    around = _around(overview)
    known: dict[int | None, tuple[Program, ...]] = {None: (compiled.main,)}

    def bodies(index: int | None) -> tuple[Program, ...]:
        if index is not None and index not in known:
            facts = around[index]
            known[index] = tuple(
                plan.program
                for program in bodies(facts.parent)
                for operation in program.operations[facts.position : facts.position + 1]
                if operation.layer.id == facts.layer.id
                for plan in operation.plans
                if isinstance(plan, LoopPlan | BranchPlan)
            )
        return known[index]

    return [next(iter(bodies(index)), None) for index in range(len(overview.loops))]


def parent_loop(overview: Overview, index: int) -> int | None:
    """Return the index of the loop directly around a loop; None of one in an If too."""
    parent = overview.loops[index].parent
    return parent if parent is not None and parent < len(overview.loops) else None


# --- lines ----------------------------------------------------------------------------------------------------------


def _card(
    index: int, facts: LoopFacts, program: Program | None, labels: Mapping[tuple[int, int], tuple[str, ...]]
) -> Card:
    card = Card(index, facts, program, layer_name(facts.layer), ())
    read = _read_by_condition(facts)
    chosen = _chosen(facts.rows)
    lines = [
        (_place(facts, row, place, read), line)
        for place, row in enumerate(facts.rows)
        if (line := _line(card, place, row, chosen, labels)) is not None
    ]
    return replace(card, lines=tuple(line for _, line in sorted(lines, key=lambda pair: pair[0])))


def _read_by_condition(facts: LoopFacts) -> set[int]:
    """Return the Parameters that the comparison behind the last verdict reads."""
    endings = (run.ending for run in reversed(facts.activations) if run.ending is not None)
    ending = next(endings, None)
    if ending is None or ending.verdict is None:
        return set()
    return {one.carried.id for one in ending.verdict.root.operands if one.carried is not None}


def _place(facts: LoopFacts, row: Row, place: int, read: set[int]) -> tuple[int, int, int, int]:
    history = _any_history(facts, place)
    kind = _ORDER_OF_OUTPUTS.get(row.kind, _ORDER[row.kind])
    if row.appends:
        kind = _ORDER[RowKind.CONCATENATED]
    size = 0 if history is None else int(np.prod(history.shape, dtype=np.int64))
    return kind, 0 if row.inner.id in read and row.kind is RowKind.BACK_EDGE else 1, size, place


def _chosen(rows: Sequence[Row]) -> dict[int, int]:
    """Return, for rows that are the same as others, the one that is drawn: a value rather than its pieces."""
    groups: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(place if row.same_as is None else row.same_as, []).append(place)
    found = {}
    for places in groups.values():
        best = min(places, key=lambda place: (rows[place].appends, place))
        found.update(dict.fromkeys(places, best))
    return found


def _any_history(facts: LoopFacts, place: int) -> ValueHistory | None:
    known = [one for run in facts.activations if (one := run.values[place]) is not None]
    return next((one for one in known if one.count), known[0] if known else None)


def _line(
    card: Card, place: int, row: Row, chosen: Mapping[int, int], labels: Mapping[tuple[int, int], tuple[str, ...]]
) -> Line | None:
    facts, other = card.facts, card.facts.rows[chosen[place]]
    if row.kind is RowKind.CONDITION:
        return _condition(card, place, row)
    if row.kind is RowKind.LAST_VALUE and any(
        one.result is not None and one.result.id == row.inner.id for one in facts.rows
    ):
        return None  # the back edge shows it
    history = _any_history(facts, place)
    kind = RowKind.CONCATENATED if row.appends else row.kind
    glyph = _GLYPHS.get(kind, "")
    if row.kind is RowKind.SLICE:
        glyph = "←" if row.slicing is not None and row.slicing.stride < 0 else "→"
    name = row_name(row)
    line = Line(place, kind, Form.WORDS, glyph, name, "" if history is None else shape_of(history.shape))
    if history is None:
        return line._replace(words="no numbers" if facts.total else "empty: no piece")
    if not history.count:
        return line._replace(words="entered, and is what leaves the loop")
    if chosen[place] != place:
        joined = ", joined" if kind is RowKind.CONCATENATED and other.kind is not RowKind.CONCATENATED else ""
        if kind is RowKind.CONCATENATED and row.slicing is not None and row.slicing.stride < 0:
            joined += " from the last place back to the first"
        return line._replace(words=f"the same as {row_name(other)}{joined}")
    return _drawn(card, line, row, history, labels)


def _drawn(
    card: Card, line: Line, row: Row, history: ValueHistory, labels: Mapping[tuple[int, int], tuple[str, ...]]
) -> Line:
    runs = [one for run in card.runs if (one := run.values[line.row]) is not None]
    if history.shape_changes:
        line = line._replace(glyph="~", shape="max")
    form = form_of(history.type, history.elements)
    if form is Form.WORDS:
        return line._replace(words="no elements")
    if form in (Form.PICTURE, Form.TRUTH):
        return line._replace(form=form)
    if len(runs) == 1 and history.counter is not None:
        counter = history.counter
        second = counter.first + counter.step
        return line._replace(words=f"counts {counter.first:,}, {second:,}, … {counter.last:,}")
    if len(runs) == 1 and history.is_constant and history.count > 1 and not history.shape_changes:
        return line._replace(words=f"always {float(history.numbers[0, 0, 0]):g}")
    return line._replace(form=form, labels=_labels(card.program, row, labels) if form is Form.NUMBERS else ())


def _labels(program: Program | None, row: Row, labels: Mapping[tuple[int, int], tuple[str, ...]]) -> tuple[str, ...]:
    """Return the words for the numbers of a row, given for its Parameter or for what computes it."""
    if program is None or not labels:
        return ()
    sites = [row.inner.id, *(() if row.producer is None else (row.producer.id,))]
    slots = (slot for site in sites for (layer, _), slot in program.slots.items() if layer == site)
    return next((labels[id(program), slot] for slot in slots if (id(program), slot) in labels), ())


def _condition(card: Card, place: int, row: Row) -> Line | None:
    goes_on = card.facts.control.goes_on
    if not any(run.condition is not None for run in card.runs):
        return None
    if goes_on is not None and goes_on.value is not None and not card.facts.never_ends:
        return None  # it says nothing: a Constant is true each time
    form = Form.TRUTH if card.facts.total else Form.WORDS
    return Line(place, row.kind, form, " ", "go on?", "bool", "no iteration ran")


# --- values ---------------------------------------------------------------------------------------------------------


def is_true_over(run: ActivationFacts, first: int, last: int) -> bool | None:
    """Return the condition's verdict over iterations: false only in the last one; None where they have not run."""
    if first >= run.iterations or run.condition is None:
        return None
    return run.condition if last >= run.iterations else True


# --- places ---------------------------------------------------------------------------------------------------------


def address(card: Card, line: Line | None, run: int, iteration: int, compiled: CompiledModel) -> str:
    """Return where a value is made: after its operation, in this iteration; of one without it is the iteration."""
    program = card.program
    if program is None or not program.operations:
        return ""
    row = None if line is None else card.facts.rows[line.row]
    site = None if row is None or row.kind is RowKind.SLICE else row.producer
    computing = (one.layer for one in program.operations if site is not None and one.layer.id == site.id)
    layer = next(computing, None)
    named = program.operations[0].layer if layer is None else layer
    slot = program.slots.get((named.id, 0), -1)
    place = address_of(Target(program, named, 0, slot, named, (None,) * len(program.path)), compiled)
    outer = iter(card.runs[run].outer if run < len(card.runs) else ())
    levels, known = [], iter(place.levels)
    for around in program.path:
        level = next(known)
        if around.type == "If":
            levels += [level, next(known)]
        else:
            levels.append(Level(level.name, None if around is program.path[-1] else next(outer, None)))
    if layer is None:
        main = Level(Name(NameKind.PLAIN, MAIN))
        return str(Address(tuple(levels[:-1]) or (main,), levels[-1].name, None, iteration))
    return str(Address(tuple(levels), place.operation, None, iteration))


def short_address(cards: Sequence[Card], card: Card, line: Line, run: int, iteration: int) -> str:
    """Return a name for the reader: with the loop's where there are several, and the outer iterations."""
    at = f"{line.name}@{iteration}"
    outer = card.runs[run].outer if run < len(card.runs) else ()
    if outer:
        around = [one for one in cards if one.index == card.facts.parent]
        level = around[0].name if around else card.name
        return f"{level}@{outer[-1]}::{at}"
    return f"{card.name}::{at}" if len(cards) > 1 else at
