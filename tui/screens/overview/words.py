"""Sentences of the overview, from its facts: what ended a loop, what stands before and after, what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from stepper.debug.causes.cause import Verdict, VerdictOperand
from stepper.debug.overview.facts import (
    ActivationFacts,
    Ending,
    Failure,
    LoopFacts,
    Overview,
    RowKind,
    RunState,
)
from stepper.debug.overview.facts import Row as FactsRow
from stepper.debug.overview.texts import recurrence_text, state_named, state_sentence
from stepper.engine.loops import EndReason
from stepper.tensors.number_text import fitted, number_text
from stepper.tensors.pictures import Form
from stepper.wording import enumerated
from tui.paint.links import Destination, LinkText
from tui.paint.names import carried_name, layer_name, row_name
from tui.paint.rows import Row, printable, width_of
from tui.pictures.drawing import brief_way, first_bad
from tui.screens.overview.cards import BORN, Card, Line, LinePart
from tui.screens.overview.links import LinkOf, name_linked, nowhere
from tui.theme import GLYPHS

if TYPE_CHECKING:
    from stepper.element_types import Array
    from stepper.tensors.histories import ColumnStatistics, ValueHistory

_LEAST_OF_FINITE: Final = 4
"""Lines from which on it is told of a value with NaN or Inf what the finite elements are."""
LARGEST_LIMIT: Final = 10**12
"""A trip count from here on is no limit that anybody means."""

# --- a card ---------------------------------------------------------------------------------------------------------


def about(facts: LoopFacts, room: int) -> str:
    """Return the type of a loop, what it was opened from, and its operations; as much of that as has room."""
    opened = f" opened from {facts.opened_from}" if facts.opened_from else ""
    if facts.is_over_calls:
        opened = " over calls of the model"
    inner = "".join(f", {count} {name}" for name, count in facts.inner.items())
    operations = f"{facts.operations} {_plural('operation', facts.operations)}"
    kind = f"{facts.layer.type} {facts.layer.id}"
    texts = (f"{kind}{opened} · {operations}{inner}", f"{kind} · {operations}{inner}", f"{kind} · {operations}", kind)
    return next((f"  {text}" for text in texts if len(text) <= room), "")


def count_of(facts: LoopFacts, *, is_running: bool) -> Row:
    """Return how many iterations ran, of how many."""
    runs = facts.activations
    if not runs:
        return [("not run", "dim")]
    if facts.runs > 1:
        return _counts(facts)
    (run,) = runs
    word = _plural(facts.iteration_word, run.iterations)
    if run.ending is None:
        limit = limit_of(run)
        so_far = " so far" if is_running else ""
        return [
            (f"{run.iterations:,}", "strong"),
            (f" {word}{so_far}, {'no limit' if limit is None else f'at most {limit:,}'}", ""),
        ]
    if run.ending.reason in (EndReason.TRIP_COUNT, EndReason.SLICES, EndReason.NO_ITERATIONS):
        return [(f"{run.iterations:,}", "strong"), (f" {word} of {run.iterations:,}", "")]
    limit = limit_of(run)
    return [
        (f"{run.iterations:,}", "strong"),
        (f" {word}{', no limit' if limit is None else f' of at most {limit:,}'}", ""),
    ]


def _counts(facts: LoopFacts) -> Row:
    lengths = [run.iterations for run in facts.activations]
    if len(lengths) == facts.runs <= 6:
        return [(", ".join(map(str, lengths)), "strong"), (f" {facts.iteration_word}s in {facts.runs} runs", "")]
    each = f"{facts.fewest:,}" if facts.fewest == facts.most else f"{facts.fewest:,} to {facts.most:,}"
    return [(f"{facts.total:,}", "strong"), (f" {facts.iteration_word}s in {facts.runs:,} runs, {each} each", "")]


def limit_of(run: ActivationFacts) -> int | None:
    """Return the most iterations that count, slices or a counter of the condition allow; None: no such number."""
    known = [run.limit, None if run.condition_limit is None else run.condition_limit.iterations]
    return min((one for one in known if one is not None and one < LARGEST_LIMIT), default=None)


def ended(
    card: Card,
    overview: Overview,
    run: int,
    labels: Mapping[int, tuple[str, ...]],
    *,
    room: int,
    link: LinkOf = nowhere,
) -> Row:
    """Return why a run of a loop ended, in values; `labels` are the words for carried numbers, by Parameter.

    `link` says where the name of an operation in the iteration that was the last leads.
    """
    facts = card.facts
    activation = card.runs[run] if run < len(card.runs) else None
    if activation is None:
        return _not_come_to(facts, overview)
    ending = activation.ending
    if ending is None:
        return _not_ended(facts, activation, overview, room)
    if ending.is_set:
        begun = ("did not begin: ", "edit") if ending.iteration < 0 else (f"ended at {ending.iteration:,}: ", "")
        from stepper.debug.causes.verdicts import set_end_text  # the first picture has no use for it

        return [begun, (set_end_text(ending.reason, ending.limit), "")]
    if len(facts.ended) == 1 and facts.runs > 1 and ending.reason in (EndReason.TRIP_COUNT, EndReason.SLICES):
        return [("ended each time, ", ""), *_limit_words(facts, ending, activation, link)]
    row: Row = []
    if ending.iteration < 0:
        told = [("did not begin: ", "edit"), *_not_begun(facts, ending)]
        when = " before the first iteration"
        is_tested = ending.reason is EndReason.INITIAL_CONDITION
        return [*told, (when, "")] if is_tested and width_of(told) + len(when) <= room else told
    row.append((f"ended at {ending.iteration:,}: ", ""))
    if ending.reason is not EndReason.CONDITION:
        count = activation.iterations
        row += [(f"{count:,} = {count:,}", "strong"), (", ", ""), *_limit_words(facts, ending, activation, link)]
        return row
    told = [*row, *_verdict(facts, ending, labels, link)]
    if width_of(told) > room:
        return [*row, *_verdict(facts, ending, labels, link, is_short=True)]
    limit = activation.condition_limit
    if limit is not None and activation.iterations < limit.iterations:
        otherwise = f"      otherwise after {limit.iterations:,} iterations ({printable(limit.text)})"
        if width_of(told) + len(otherwise) <= room - 20:
            told.append((otherwise, "dim"))
    return told


def _not_come_to(facts: LoopFacts, overview: Overview) -> Row:
    """Return why there is no run of a loop."""
    is_open = overview.state in (RunState.NOT_RUN, RunState.RUNNING)
    failure = overview.failure
    if failure is not None and failure.is_of(facts.layer):
        return [("ended by an error before iteration 0: ", "bad"), (printable(failure.reason), "")]
    return [("not run yet" if is_open else "the run did not come to it", "dim")]


def ended_in_short(card: Card) -> Row:
    """Return why the runs of a loop ended, in few words."""
    facts = card.facts
    if facts.never_ends:
        return [("can never end", "edit")]
    if facts.runs and not facts.total:
        return [("did not begin", "edit")]
    words = list(map(str, facts.ended))
    slices = [row.slicing for row in facts.rows if row.kind is RowKind.SLICE and row.slicing is not None]
    if slices and all(one.stride < 0 for one in slices):
        words.append("← from the last")
    return [("  ".join(words), "dim")]


def found_in(card: Card) -> Row:
    """Return where NaN or Inf appears first in a card; empty without any."""
    found = []
    for line in card.lines:
        for history in card.histories(line):
            found += [(one, "Inf") for one in (history.first_infinite,) if one is not None]
            found += [(one, "NaN") for one in (history.first_nan,) if one is not None]
    if not found:
        return []
    iteration, word = min(found)
    return [(word, "bad"), (f" at {iteration:,}", "")]


def folded(card: Card, places: Sequence[int], pad: int) -> Row:
    """Return how many rows are counted instead of shown."""
    groups = Counter(card.lines[k].group for k in places)
    still = sum(card.lines[k].form is Form.WORDS for k in places)
    told = ", ".join(group.counted(count) for group, count in groups.items())
    also = f", {still} of them in words" if still else ""
    return [(f"   {' ' * pad}… {told}{also} (Space)", "dim")]


def body(card: Card) -> Row:
    """Return the operations of a body of which no iteration has ended."""
    operations = () if card.program is None else card.program.operations
    names = "  ".join(printable(one.layer.type) for one in operations[:40])
    has_begun = bool(card.runs) and not card.has_ended
    return [(" body    ", "dim"), (names, ""), ("   no iteration has ended" if has_begun else "   not run", "dim")]


def which_run(card: Card, run: int) -> Row:
    """Return which run of a loop is shown where it is one of several, and in which iterations of those around it."""
    if card.facts.runs < 2 or run >= len(card.runs):
        return []
    activation = card.runs[run]
    around = ", ".join(f"@{one:,}" for one in activation.outer)
    where = f" ({around})" if around else ""
    return [(f"run {activation.number + 1:,} of {card.facts.runs:,}{where}", "accent"), ("   ", "")]


def _limit_words(facts: LoopFacts, ending: Ending, run: ActivationFacts, link: LinkOf) -> Row:
    if ending.reason is EndReason.SLICES:
        inputs = ", ".join(map(str, facts.control.slices_of))
        return [("no slice is left", ""), (f" of input {inputs}" if inputs else "", "dim")]
    origin = facts.control.trip_count
    if origin is None:
        return [("the trip count", "")]
    return [("the trip count", ""), (" ", ""), (name_linked(printable(str(origin.layer)), link(origin.layer)), "dim")]


def _not_begun(facts: LoopFacts, ending: Ending) -> Row:
    if ending.reason is EndReason.NO_ITERATIONS:
        return (
            [("0", "strong"), (" is the trip count", "")] if facts.control.trip_count else [("there is no slice", "")]
        )
    origin = facts.control.condition
    who = "the condition" if origin is None else printable(str(origin.layer))
    if ending.verdict is not None and ending.verdict.root.compared:
        return _verdict(facts, ending, {})
    return [(who, "strong"), (" is false", "")]


def _not_ended(facts: LoopFacts, activation: ActivationFacts, overview: Overview, room: int) -> Row:
    if facts.never_ends:
        return _never_ends(facts, activation, room)
    if overview.failure is not None:
        is_own = overview.failure.is_of(facts.layer) and overview.failure.reason
        told = [(printable(overview.failure.reason), "")] if is_own else failed_at(overview.failure)
        return [("ended by an error: ", "bad"), *told]
    return [("not at its end yet", "dim")]


def _never_ends(facts: LoopFacts, activation: ActivationFacts, room: int) -> Row:
    """Return why a loop can never end, and from when on its state comes again, without what has no room."""
    again, goes_on = activation.recurrence, facts.control.goes_on
    told: Row = [("can never end: ", "edit")]
    if again is None or not again.decides:
        state = "" if again is None else state_sentence(again, layer_name)
        reasons = [f"there is no trip count{_always_true(facts)}", "there is no trip count", ""]
        texts = ["; ".join(filter(None, (reason, state))) for reason in (reasons if state else reasons[:1])]
        fits = (text for text in texts if width_of(told) + len(text) <= room)
        return [*told, (next(fits, texts[-1]), "")]  # from when on is to be read before why
    alone = "" if goes_on is None else f", and {layer_name(goes_on.layer)} depends on nothing else"
    told += [(state_named(again, layer_name), "strong")]
    told += [(f" {recurrence_text(again, plural=len(again.values) > 1)}", ""), (alone, "")]
    return told if width_of(told) <= room else told[:-1]


def _always_true(facts: LoopFacts) -> str:
    """Return why the body's condition does not end the loop."""
    goes_on = facts.control.goes_on
    if goes_on is None:
        return ""
    if goes_on.value is not None:
        return f", and the body's condition is {printable(str(goes_on.layer))} = true"
    name, names = layer_name(goes_on.layer), enumerated([layer_name(one) for one in facts.fixed_by])
    return f", and {name} stays true: " + (
        f"no back edge leads to {names}, which it reads" if names else "nothing that it reads changes"
    )


def failed_at(failure: Failure) -> Row:
    """Return which operation failed, and in which iteration."""
    place = failure.place
    if place is None or place.layer is None:
        return [(failure.type, "strong")]
    around = [one for one in place.path if one.iteration is not None]
    where = ", ".join(f"iteration {one.iteration:,} of {printable(one.layer.name)}" for one in reversed(around))
    name = f"{place.layer.type} {printable(place.layer.name)}"
    target = Destination("overview failure")
    return [(LinkText(name, target), "strong"), (f" failed{' in ' if where else ''}{where}", "")]


def _verdict(
    facts: LoopFacts,
    ending: Ending,
    labels: Mapping[int, tuple[str, ...]],
    link: LinkOf = nowhere,
    *,
    is_short: bool = False,
) -> Row:
    """Return the comparison that ended a loop."""
    if ending.verdict is None:
        return [("the condition is false", "")]
    return verdict(ending.verdict, facts.rows, labels, link, is_short=is_short)


def verdict(
    found: Verdict,
    rows: Sequence[FactsRow],
    labels: Mapping[int, tuple[str, ...]],
    link: LinkOf = nowhere,
    *,
    is_short: bool = False,
) -> Row:
    """Return the comparison that decided: `tok' = 12, so NotEqual(tok', 12) is false`; `rows` are those of its loop."""
    from stepper.debug.causes.verdicts import verdict_parts  # the first picture has no use for it

    def name(one: VerdictOperand) -> str:
        if one.carried is not None:
            return f"{carried_name(one.carried)}'"
        return layer_name(one.layer) if one.row is None else row_name(rows[one.row])

    def value(one: VerdictOperand) -> str:
        text = printable(one.brief.text) if one.value is None else number_text(one.value)
        words = () if one.carried is None else labels.get(one.carried.id, ())
        label = (
            f" '{printable(words[one.value])}'" if isinstance(one.value, int) and 0 <= one.value < len(words) else ""
        )
        return f"{text}{label}"

    return [
        (part.text if part.layer is None else name_linked(part.text, link(part.layer)), part.emphasis)
        for part in verdict_parts(found, name, value, lambda layer: printable(str(layer)), is_short=is_short)
    ]


# --- a value --------------------------------------------------------------------------------------------------------


def value_lines(
    line: Line, history: ValueHistory, values: Array, found: ColumnStatistics, room: int, height: int, way: str
) -> list[Row]:
    """Return what stands beside a picture of the value at the cursor: rms, largest with its place, change.

    Of a value whose number of elements changes it is the number that stands for all of them. In more lines the mean and
    the deviation, and below NaN and Inf what the finite elements are.
    """
    if line.labels or values.size == 1:
        by = "" if history.is_whole else f"{brief_way(way)} "
        return [[(by, "dim"), (fitted(float(values[0]), 9), ""), (labels_in(line, values), "strong")]]
    if found.nan or found.infinite:
        word, count = ("NaN", found.nan) if found.nan else ("Inf", found.infinite)
        unit = "" if history.is_whole else " buckets"
        told: list[Row] = [[(word, "bad"), (f" in {count} of {found.numbers}{unit}", "")]]
        if height < _LEAST_OF_FINITE or found.nan + found.infinite >= found.numbers:
            return told
        told.append([("finite", "dim")])
        for text, one in (("rms ", found.rms), ("max ", found.largest)):
            told.append([(text, "dim"), (f"{fitted(one):>6}", "")])
        return told
    place = "" if found.place is None else f" at [{','.join(map(str, found.place))}]"
    if line.places and history.is_whole and len(line.places) == values.size:
        place = f" at '{line.places[int(np.abs(values.astype(np.float64)).argmax())]}'"
    if len(place) + 12 > room:
        place = place.replace(" at ", " ")
    rows: list[Row] = [
        [("rms ", "dim"), (f"{fitted(found.rms):>6}", "")],
        [("max ", "dim"), (f"{fitted(found.largest):>6}", ""), (place, "dim")],
    ]
    if found.change is not None and np.isfinite(found.change) and history.type != "boolean":
        rows.append([("chg ", "dim"), (f"{fitted(found.change):>6}", "")])
    if history.is_whole and len(rows) + 2 <= height:
        plain = values.astype(np.float64)
        for word, one in (("avg ", plain.mean()), ("std ", plain.std())):
            rows.append([(word, "dim"), (f"{fitted(float(one)):>6}", "")])
    return rows


def strongest_of(history: ValueHistory, iteration: int) -> tuple[str, ...]:
    """Return of which iterations the numbers at the cursor are the largest, at several lengths.

    Nothing where they are those of the iteration itself.
    """
    span = history.bin_of(iteration)
    if span is None:
        return ()
    first, last = span[0], span[1] - 1
    return (
        f"largest of iterations {first:,} to {last:,}",
        f"largest of {first:,}–{last:,}",
        f"max {first:,}–{last:,}",
        f"max of {last + 1 - first:,}",
    )


def numbers_in(values: Array, room: int, written: Callable[[float], str] = fitted) -> str:
    """Return as many numbers as fit, and how many more there are; `written` says how each is."""
    shown: list[str] = []
    used = 0
    for place, one in enumerate(values.tolist()):
        text = written(float(one))
        if used + len(text) + 2 > room - 10 and place < len(values):
            return "  ".join([*shown, f"… {len(values) - place} more"])
        shown.append(text)
        used += len(text) + 2
    return "  ".join(shown)


def writer_of(history: ValueHistory) -> Callable[[float], str]:
    """Return how an element is written: a boolean as T or F; where none are kept, how a number is."""
    return truth_letter if history.type == "boolean" and history.is_whole else fitted


def truth_letter(value: float) -> str:
    """Return T or F."""
    return GLYPHS["true" if value else "false"]


def type_text(history: ValueHistory, iteration: int) -> str:
    """Return type and shape of a value in an iteration."""
    shape = history.shape_at(iteration)
    return f"{history.type} of another shape" if shape is None else f"{history.type}[{','.join(map(str, shape))}]"


def reduced_by(history: ValueHistory, way: str) -> str:
    """Return of what the numbers are that are kept of a value, where they are not its elements."""
    if history.is_whole:
        return ""
    return f"{way} of all elements: " if history.elements == 1 else f"{history.elements} buckets by {way}: "


def place_of_slice(card: Card, line: Line, run: int, iteration: int) -> tuple[str, ...]:
    """Return where the slice of an iteration lies on its axis, at several lengths; nothing for another row."""
    if line.part is not LinePart.VALUE or line.kind is not RowKind.SLICE or run >= len(card.runs):
        return ()
    slicing, slices = card.facts.rows[line.row].slicing, card.runs[run].slices
    first = slices[line.row] if line.row < len(slices) else None
    if slicing is None or first is None or iteration >= first.walk.count:
        return ()
    from tui.paint.slices import slice_words

    return slice_words(slicing, replace(first, iteration=iteration))


def entered(card: Card, line: Line) -> str:
    """Return what the value of a row is of a loop of which no iteration has run."""
    how = ", and no iteration changed it" if card.has_ended else "; no iteration has ended"
    return f"entered{how}" if numbers_entered(card, line, 1) else ""


def numbers_entered(card: Card, line: Line, room: int) -> Row:
    """Return the numbers that entered a loop in a row; nothing where they are not known."""
    if line.part is not LinePart.VALUE or card.facts.rows[line.row].appends:  # pieces do not enter
        return []
    known = (run.values[line.row] for run in card.runs)
    found = next((one for one in known if one is not None and one.entered is not None), None)
    if found is None or found.entered is None or not found.is_whole:
        return []
    return [(numbers_in(found.entered.reshape(-1), room), "")]


def doing(card: Card, line: Line, run: int, iteration: int) -> str:
    """Return what the value of a row is."""
    at = f"{card.facts.iteration_word} {iteration:,}"
    parts = {
        LinePart.OUTCOME: f"what the side gave that ran in {at}",
        LinePart.CHOICE: f"the side that ran in {at}; {line.words}",
        LinePart.CHANGE: f"the largest change of an element in {at}",
        LinePart.GROWTH: f"what {at} has more than the one before",
    }
    if line.part in parts:
        return parts[line.part]
    row, history = card.facts.rows[line.row], card.history(line, run)
    if history is not None and iteration in (history.first_nan, history.first_infinite):
        word = "NaN" if iteration == history.first_nan else "Inf"
        how = f"is {BORN}" if line.note == BORN else line.note
        return f"the first {word} {how}" if line.is_born else f"the first {word} of this row"
    if line.kind is RowKind.SLICE:
        place = place_of_slice(card, line, run, iteration)
        return f"the slice that {at} gets{f': {place[0]}' if place else ''}"
    if line.kind in (RowKind.CONCATENATED, RowKind.LAST_VALUE):
        along = "" if row is None or row.axis is None else f" on axis {row.axis}"
        is_piece = row is not None and (row.appends or row.kind is RowKind.CONCATENATED)
        return f"the piece of {at}{along}" if is_piece else f"left by {at}"
    if line.kind is RowKind.BIRTH:
        bad = None if history is None else first_bad(history)
        if history is None or bad is None:
            return f"made in {at}"
        stays = history.is_spoilt_from(bad, iteration)
        return f"made in {at}, {'not finite since' if stays else 'first not finite in'} {bad:,}"
    if line.kind is RowKind.CONDITION:
        return f"verdict of {at}"
    return f"carried on by {at} as {line.name}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def labels_in(line: Line, values: Array) -> str:
    """Return the labels of whole numbers, for the value at the cursor."""
    named = [f"'{printable(line.labels[int(one)])}'" for one in values[:8].tolist() if 0 <= one < len(line.labels)]
    return "".join(["  ", *named]) if named else ""
