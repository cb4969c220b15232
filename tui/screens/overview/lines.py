"""From the facts of a run to the rows of cards: which values get a row, how each is drawn, and what is said instead."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from stepper.debug.causes.cause import NonFiniteKind
from stepper.debug.labels import label_of
from stepper.debug.overview.facts import (
    BranchFacts,
    LoopFacts,
    Overview,
    Row,
    RowKind,
    branches_inside,
    choices_in,
    outcomes_in,
)
from stepper.debug.overview.programs import in_order, programs_of
from stepper.engine.loops import EndReason
from stepper.query import short_names
from stepper.tensors.number_text import number_text
from stepper.tensors.pictures import Form
from tui.paint.names import carried_name, layer_name, row_name
from tui.paint.rows import clip, printable, shape_of
from tui.pictures.drawing import form_in
from tui.screens.overview.cards import BORN, Card, IfOutcome, Line, LinePart, Rank
from tui.theme import GLYPHS

if TYPE_CHECKING:
    from stepper.engine.program import CompiledModel
    from stepper.tensors.histories import ValueHistory

Labels = Mapping[tuple[int, int], tuple[str, ...]]
_ORDER: Final = (
    RowKind.CONDITION,
    RowKind.BACK_EDGE,
    RowKind.BIRTH,
    RowKind.CONCATENATED,
    RowKind.SLICE,
    RowKind.BRANCH_OUTPUT,
)
_GLYPHS: Final = {
    RowKind.BACK_EDGE: GLYPHS["back"],
    RowKind.CONCATENATED: GLYPHS["scan"],
    RowKind.LAST_VALUE: GLYPHS["scan"],
}


def cards_of(overview: Overview, compiled: CompiledModel, labels: Labels) -> list[Card]:
    """Return the loops as cards, inner ones behind the outer one."""
    programs = programs_of(overview, compiled)
    letters = input_letters(overview, compiled, labels)
    from stepper.debug.overview.programs import places_named  # the first picture has no lines

    places = places_named(overview, compiled, letters.keys())
    choices = {branch: choices_in(overview, branch) for branch in range(len(overview.branches))}
    names = loop_names(overview)
    found = []
    for index in in_order(overview):
        facts = overview.loops[index]
        inside = {branch: choices[branch] for branch in branches_inside(overview, index)}
        ifs = {branch: overview.branches[branch].layer for branch in inside}
        outcomes = tuple(_outcomes(overview, facts, inside)) if facts.total else ()
        card = Card(index, facts, programs[index], names[index], choices=inside, ifs=ifs, outcomes=outcomes)
        named = {row: letters[source] for (loop, row), source in places.items() if loop == index}
        found.append(replace(card, lines=tuple(_Lines(card, overview, labels, named).all())))
    return found


def loop_names(overview: Overview) -> list[str]:
    """Return the names of the loops, by index: of those whose last part is that of others, the part that tells."""
    names = [layer_name(facts.layer) for facts in overview.loops]
    counts = Counter(names)
    if len(counts) == len(names):
        return names
    telling = _telling(tuple(facts.layer.name for facts in overview.loops))
    return [told if counts[name] > 1 else name for name, told in zip(names, telling, strict=True)]


@lru_cache(maxsize=8)
def _telling(names: tuple[str, ...]) -> list[str]:
    """Return the parts of names that tell; a run that goes on asks for those of one model again and again."""
    return [printable(name) for name in short_names.short_names(names)]


def input_letters(overview: Overview, compiled: CompiledModel, labels: Labels) -> dict[int, tuple[str, ...]]:
    """Return the words for the elements of the model's inputs that have labels, by index."""
    main = compiled.main
    found = {}
    for index, (port, slot) in enumerate(zip(overview.inputs, main.parameters, strict=True)):
        words = labels.get((id(main), slot), ())
        if words and port.numbers:
            numbers = (float(one) if isinstance(one, int | float) else math.nan for one in port.numbers)
            found[index] = tuple(printable(label_of(words, one)) for one in numbers)
    return found


_BRIEF_NAME: Final = 12
"""Cells of a name where there is little room."""


class _Lines:
    """The rows of one card."""

    def __init__(self, card: Card, overview: Overview, labels: Labels, named: Mapping[int, tuple[str, ...]]) -> None:
        self._card, self._overview, self._labels, self._named = card, overview, labels, named
        self._facts = card.facts
        self._read = _read_by_condition(self._facts)
        self._chosen = _chosen(self._facts.rows)

    def all(self) -> list[Line]:
        """Return them in the order in which they stand."""
        found: list[tuple[tuple[int, ...], Line]] = []
        for place, row in enumerate(self._facts.rows):
            for part, line in enumerate(self._of_row(place, row)):
                found.append(((*self._place(row, place, line), part), line))
        lines = [line for _, line in sorted(found, key=lambda pair: pair[0])]
        return [*lines, *self._branches()]

    def _place(self, row: Row, place: int, line: Line) -> tuple[int, ...]:
        kind = RowKind.CONCATENATED if row.appends or row.kind is RowKind.LAST_VALUE else row.kind
        history = self._any_history(place)
        size = 0 if history is None else math.prod(history.shape)
        is_read = line.rank is Rank.READ_BY_CONDITION or (row.kind is RowKind.BACK_EDGE and row.inner.id in self._read)
        return _ORDER.index(kind), 0 if is_read else 1, size, place

    def _any_history(self, place: int) -> ValueHistory | None:
        known = [one for run in self._card.runs if (one := run.values[place]) is not None]
        return next((one for one in known if one.count), known[0] if known else None)

    # --- a row ---------------------------------------------------------------------------------------------------

    def _of_row(self, place: int, row: Row) -> Iterator[Line]:
        if row.kind is RowKind.CONDITION:
            yield from self._condition(place, row)
            return
        rows = self._facts.rows
        if row.kind is RowKind.LAST_VALUE and any(
            one.result is not None and one.result.id == row.inner.id for one in rows
        ):
            return  # the back edge shows it
        history = self._any_history(place)
        kind = RowKind.CONCATENATED if row.appends else row.kind
        glyph = _GLYPHS.get(kind, "")
        if row.kind is RowKind.SLICE:
            glyph = "←" if row.slicing is not None and row.slicing.stride < 0 else "→"
        shape = "" if history is None else shape_of(self._whole_shape(row, history))
        line = Line(place, kind, Form.WORDS, glyph, row_name(row), shape, rank=Rank.WORDS)
        if history is None or (not history.count and kind is RowKind.CONCATENATED):
            empty = "as it entered: no piece was joined" if row.appends else "empty: no piece"
            none = empty if self._card.has_ended else "no piece yet"
            yield line._replace(
                words="no numbers" if self._facts.total else none if self._facts.runs else "not run yet"
            )
        elif not history.count:
            left = ", and is what leaves the loop" if self._card.has_ended else "; no iteration has ended"
            yield line._replace(name=carried_name(row.inner), words=f"entered{left}", came=_came(history))
        elif self._chosen[place] != place:
            other = rows[self._chosen[place]]
            name, how = row_name(other), self._how_joined(row, kind, other)
            yield line._replace(words=f"the same as {name}{how}", brief=f"= {clip(name, _BRIEF_NAME)}{how}")
        else:
            yield from self._drawn(line, row, history)

    def _whole_shape(self, row: Row, history: ValueHistory) -> tuple[int, ...]:
        """Return the shape of an output that is joined of pieces, as far as it is known; else that of the value."""
        same = row.inner.id if row.result is None else row.result.id
        outputs = (RowKind.LAST_VALUE,) if row.appends else (RowKind.CONCATENATED,)
        if row.appends or row.kind in outputs:
            ends = [k for k, one in enumerate(self._facts.rows) if one.kind in outputs and one.inner.id == same]
            ports = (one for one in self._overview.outputs if one.loop == self._card.index and one.row in ends)
            shape = next((one.brief.shape for one in ports if one.brief is not None), None)
            if shape is not None or row.appends:
                return history.shape if shape is None else shape
        run = next((one for one in reversed(self._card.runs) if one.ending is not None), None)
        is_joined = row.kind is RowKind.CONCATENATED and run is not None
        if run is None or not is_joined or row.axis is None or not 0 <= row.axis < len(history.shape):
            return history.shape
        axis, pieces = row.axis, run.iterations
        return tuple(size * pieces if at == axis else size for at, size in enumerate(history.shape))

    def _how_joined(self, row: Row, kind: RowKind, other: Row) -> str:
        """Return how an output is made of what another row shows, if it is not that itself."""
        other_kind = RowKind.CONCATENATED if other.appends else other.kind
        words = ""
        if kind is RowKind.CONCATENATED and other_kind is not RowKind.CONCATENATED:
            words += ", joined" + (f" on axis {row.axis}" if row.axis else "")
        if kind is RowKind.CONCATENATED and row.slicing is not None and row.slicing.stride < 0:
            words += " from the last place back to the first"
        return words

    def _drawn(self, line: Line, row: Row, history: ValueHistory) -> Iterator[Line]:
        card = self._card
        runs = [one for run in card.runs if (one := run.values[line.row]) is not None and one.count]
        form = form_in(history)
        line = line._replace(rank=self._rank(row), came=_came(history))
        if row.kind is RowKind.BIRTH:
            letter, note = self._birth(row)
            line = line._replace(glyph=letter, note=note)
        if history.growth is not None:
            sizes = {math.prod(one.shape) for one in runs}
            sizes |= {math.prod(one.first_shape) for one in runs if one.first_shape is not None}
            sizes |= {math.prod(change.shape) for one in runs for change in one.shapes}
            line = line._replace(glyph=GLYPHS["shape"], shape="–".join(map(str, sorted({min(sizes), max(sizes)}))))
            if len(runs) == 1:
                yield line._replace(form=Form.NUMBERS, part=LinePart.GROWTH)
                glyph = _GLYPHS.get(line.kind, line.glyph)
                line = line._replace(glyph=glyph, shape=shape_of(history.shape), came="")
        if form is Form.WORDS:
            yield line._replace(words="no elements", rank=Rank.WORDS)
        elif form in (Form.PICTURE, Form.TRUTH):
            yield line._replace(form=form, places=self._named.get(line.row, ()))
        elif len(runs) == 1 and history.counter is not None:
            counter = history.counter
            second = counter.first + counter.step
            told = f"counts {counter.first:,}, {second:,}, … {counter.last:,}"
            yield line._replace(words=told, rank=Rank.WORDS, came="")
        elif len(runs) == 1 and history.is_constant and history.count > 1:
            value = float(history.numbers[0, 0, 0])
            yield line._replace(words=f"always {number_text(value)}", rank=Rank.WORDS)
        else:
            labels = self._words(row) if form is Form.NUMBERS else ()
            rank = min(line.rank, Rank.LABELLED) if labels else line.rank
            yield line._replace(form=form, labels=labels, rank=rank)
        if row.kind is RowKind.BACK_EDGE and any(one.settled_from is not None for one in runs):
            name = f"{line.name} change"
            yield Line(line.row, row.kind, Form.BARS, "Δ", name, "", LinePart.CHANGE, Rank.CHANGE, note="each time")

    def _rank(self, row: Row) -> Rank:
        if row.kind is RowKind.BIRTH:
            return Rank.BIRTH
        if row.kind is RowKind.SLICE:
            return Rank.SLICE
        if row.kind is not RowKind.BACK_EDGE:
            return Rank.VALUE
        if row.inner.id in self._read:
            return Rank.READ_BY_CONDITION
        results = {one.inner.id for one in self._facts.rows if one.kind is RowKind.LAST_VALUE}
        return Rank.READ_BY_OUTPUT if row.result is not None and row.result.id in results else Rank.VALUE

    def _birth(self, row: Row) -> tuple[str, str]:
        """Return the letter of what is born in an operation, or came in there, and the words for it."""
        causes = [one.cause for one in self._overview.births if one.cause.location.operation == row.producer]
        letter = "N" if causes and causes[0].kind == NonFiniteKind.NAN else "I"
        return letter, "came in here" if causes and causes[0].came_with is not None else BORN

    def _words(self, row: Row) -> tuple[str, ...]:
        """Return the words for the numbers of a row, given for its Parameter or for what computes it."""
        program = self._card.program
        if program is None or not self._labels:
            return ()
        sites = [row.inner.id, *(() if row.producer is None else (row.producer.id,))]
        slots = (slot for site in sites for (layer, _), slot in program.slots.items() if layer == site)
        return next((self._labels[id(program), slot] for slot in slots if (id(program), slot) in self._labels), ())

    # --- the condition, and Ifs ----------------------------------------------------------------------------------

    def _condition(self, place: int, row: Row) -> Iterator[Line]:
        goes_on, runs = self._facts.control.goes_on, self._card.runs
        line = Line(place, row.kind, Form.TRUTH, " ", "go on?", "bool", rank=Rank.CONDITION)
        if not self._facts.total:
            if any(one.ending is not None and one.ending.reason is EndReason.INITIAL_CONDITION for one in runs):
                yield line._replace(form=Form.WORDS, words="before the first iteration", came=GLYPHS["false"])
            return
        is_constant = goes_on is not None and goes_on.value is not None
        if any(run.condition is not None for run in runs) and not (is_constant and not self._facts.never_ends):
            yield line  # else it says nothing: a Constant is true each time

    def _branches(self) -> Iterator[Line]:
        for branch, one in enumerate(self._overview.branches):
            if branch not in self._card.choices:
                continue
            told = " · ".join(
                f"{side} {count:,} of {one.then_runs + one.else_runs:,}"
                for side, count in (("then", one.then_runs), ("else", one.else_runs))
            )
            line = Line(
                branch,
                RowKind.BRANCH_OUTPUT,
                Form.TRUTH,
                " ",
                layer_name(one.layer),
                "then?",
                LinePart.CHOICE,
                Rank.CHOICE,
            )
            histories = [history for history in self._card.choices[branch] if history is not None]
            if not one.then_runs or not one.else_runs or len(histories) < len(self._card.runs):
                side = "then" if one.then_runs else "else"
                always = not one.then_runs or not one.else_runs
                words = "did not run" if not one.runs else f"always {side}" if always else told
                if one.runs or self._facts.total:
                    yield line._replace(form=Form.WORDS, words=words, rank=Rank.WORDS)
            elif self._is_the_condition(histories):
                yield line._replace(form=Form.WORDS, words="the same as go on?", rank=Rank.WORDS)
            else:
                yield line._replace(words=told)
            yield from self._outputs_of(branch, one)

    def _outputs_of(self, branch: int, facts: BranchFacts) -> Iterator[Line]:
        """Return rows for the outputs of an If that no other row shows."""
        for place, one in enumerate(self._card.outcomes):
            known = next((history for history in one.values if history is not None), None)
            if one.branch != branch or known is None or not known.elements:
                continue
            name = layer_name(facts.layer) + (f":{one.output}" if len(facts.values) > 1 else "")
            line = Line(
                place,
                RowKind.BRANCH_OUTPUT,
                form_in(known),
                GLYPHS["scan"],
                name,
                shape_of(known.shape),
                LinePart.OUTCOME,
                Rank.CHOICE,
            )
            yield line._replace(words="no elements", rank=Rank.WORDS) if line.form is Form.WORDS else line

    def _is_the_condition(self, choices: Sequence[ValueHistory]) -> bool:
        """True if an If takes its first side in all iterations but the last, as the condition is true in them."""
        ends = all(run.condition is False for run in self._card.runs)
        return ends and all(bool(one.numbers[0, :-1, 0].all()) and not one.numbers[0, -1, 0] for one in choices)


def _outcomes(overview: Overview, loop: LoopFacts, inside: Iterable[int]) -> Iterator[IfOutcome]:
    """Return the outputs of the Ifs in a loop that no row of it shows, where they are known by iteration."""
    shown = {(row.producer.id, row.output) for row in loop.rows if row.producer is not None}
    for branch in inside:
        facts = overview.branches[branch]
        is_direct = facts.parent is not None and facts.parent < len(overview.loops)
        for output in range(len(facts.values)) if is_direct else ():
            values = outcomes_in(overview, branch, output)
            if (facts.layer.id, output) not in shown and any(one is not None for one in values):
                yield IfOutcome(branch, output, values)


def _came(history: ValueHistory) -> str:
    """Return what entered, if that is a single number."""
    known = history.entered
    if known is None or known.size != 1:
        return ""
    value = float(known.reshape(-1)[0])
    return str(int(value)) if value == int(value) else number_text(value)


def _read_by_condition(facts: LoopFacts) -> set[int]:
    """Return the Parameters that the comparison behind the last verdict reads."""
    endings = (run.ending for run in reversed(facts.activations) if run.ending is not None)
    ending = next(endings, None)
    if ending is None or ending.verdict is None:
        return set()
    return {one.carried.id for one in ending.verdict.root.operands if one.carried is not None}


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
