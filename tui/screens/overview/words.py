"""Sentences of the overview, from its facts: what ended a loop, what stands before and after, what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from stepper.debug.causes.texts import element_text, scalar_text, word_of
from stepper.debug.overview.facts import (
    ActivationFacts,
    Birth,
    BranchFacts,
    Ending,
    Failure,
    LoopFacts,
    ModelPortFacts,
    Overview,
    RunState,
    VerdictOperand,
)
from stepper.element_types import Array
from stepper.engine.loops import EndReason
from stepper.tensors.histories import ColumnStatistics, ValueHistory
from tui.paint.names import carried_name, layer_name
from tui.paint.rows import Cell, Row, clip, clip_end, number, printable, width_of
from tui.screens.overview.cards import Card, Line
from tui.theme import GLYPHS

LARGEST_LIMIT: Final = 10**12
"""A trip count from here on is no limit that anybody means."""
UNCHANGED_FROM: Final = 1_000
"""Iterations without any change from which on that is said."""
_FLOW: Final[Cell] = ("  →  ", "faint")
_BETWEEN: Final[Cell] = ("  ·  ", "faint")


# --- a card ---------------------------------------------------------------------------------------------------------


def about(facts: LoopFacts) -> str:
    """Return the type of a loop, what it was opened from, and its operations."""
    opened = f" opened from {facts.opened_from}" if facts.opened_from else ""
    inner = "".join(f", {count} {name}" for name, count in facts.inner.items())
    operations = f"{facts.operations} {_plural('operation', facts.operations)}"
    return f"{facts.layer.type} {facts.layer.id}{opened} · {operations}{inner}"


def count_of(facts: LoopFacts, *, is_running: bool) -> Row:
    """Return how many iterations ran, of how many."""
    runs = facts.activations
    if not runs:
        return [("not run", "dim")]
    if facts.runs > 1:
        return _counts(facts)
    (run,) = runs
    word = _plural("iteration", run.iterations)
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
        return [(", ".join(map(str, lengths)), "strong"), (f" iterations in {facts.runs} runs", "")]
    each = f"{facts.fewest:,}" if facts.fewest == facts.most else f"{facts.fewest:,} to {facts.most:,}"
    return [(f"{facts.total:,}", "strong"), (f" iterations in {facts.runs:,} runs, {each} each", "")]


def limit_of(run: ActivationFacts) -> int | None:
    """Return the most iterations that count, slices or a counter of the condition allow; None: no such number."""
    known = [run.limit, None if run.condition_limit is None else run.condition_limit.iterations]
    return min((one for one in known if one is not None and one < LARGEST_LIMIT), default=None)


def ended(card: Card, overview: Overview, run: int, labels: Mapping[int, tuple[str, ...]], *, room: int) -> Row:
    """Return why a run of a loop ended, in values; `labels` are the words for carried numbers, by Parameter."""
    facts = card.facts
    activation = card.runs[run] if run < len(card.runs) else None
    if activation is None:
        is_open = overview.state in (RunState.NOT_RUN, RunState.RUNNING)
        return [("not run yet" if is_open else "the run did not come to it", "dim")]
    ending = activation.ending
    if ending is None:
        return _not_ended(facts, overview)
    if len(facts.ended) == 1 and facts.runs > 1 and ending.reason in (EndReason.TRIP_COUNT, EndReason.SLICES):
        return [("ended each time, ", ""), *_limit_words(facts, ending, activation)]
    row: Row = []
    if ending.iteration < 0:
        return [("did not begin: ", "edit"), *_not_begun(facts, ending)]
    row.append((f"ended at {ending.iteration:,}: ", ""))
    if ending.reason is not EndReason.CONDITION:
        count = activation.iterations
        row += [(f"{count:,} = {count:,}", "strong"), (", ", ""), *_limit_words(facts, ending, activation)]
        return row
    told = [*row, *_verdict(ending, labels)]
    if width_of(told) > room:
        return [*row, *_verdict(ending, labels, is_short=True)]
    limit = activation.condition_limit
    if limit is not None and activation.iterations < limit.iterations:
        otherwise = f"      otherwise after {limit.iterations:,} iterations ({printable(limit.text)})"
        if width_of(told) + len(otherwise) <= room - 20:
            told.append((otherwise, "dim"))
    return told


def which_run(card: Card, run: int) -> Row:
    """Return which run of a loop is shown where it is one of several, and in which iterations of those around it."""
    if card.facts.runs < 2 or run >= len(card.runs):
        return []
    activation = card.runs[run]
    around = ", ".join(f"@{one:,}" for one in activation.outer)
    where = f" ({around})" if around else ""
    return [(f"run {activation.number + 1:,} of {card.facts.runs:,}{where}", "accent"), ("   ", "")]


def _limit_words(facts: LoopFacts, ending: Ending, run: ActivationFacts) -> Row:
    if ending.reason is EndReason.SLICES:
        inputs = ", ".join(map(str, facts.control.slices_of))
        return [("no slice is left", ""), (f" of input {inputs}" if inputs else "", "dim")]
    origin = facts.control.trip_count
    return [("the trip count", ""), ("" if origin is None else f" {printable(str(origin.layer))}", "dim")]


def _not_begun(facts: LoopFacts, ending: Ending) -> Row:
    if ending.reason is EndReason.NO_ITERATIONS:
        return (
            [("0", "strong"), (" is the trip count", "")] if facts.control.trip_count else [("there is no slice", "")]
        )
    origin = facts.control.condition
    who = "the condition" if origin is None else printable(str(origin.layer))
    if ending.verdict is not None and ending.verdict.root.operands:
        return _verdict(ending, {})
    return [(who, "strong"), (" is false before the first iteration", "")]


def _not_ended(facts: LoopFacts, overview: Overview) -> Row:
    if facts.never_ends:
        goes_on = facts.control.goes_on
        who = "" if goes_on is None else f", and the body's condition is {printable(str(goes_on.layer))} = true"
        return [("can never end: ", "edit"), ("there is no trip count", ""), (who, "")]
    if overview.failure is not None:
        return [("ended by an error: ", "bad"), *failed_at(overview.failure)]
    return [("not at its end yet", "dim")]


def _verdict(ending: Ending, labels: Mapping[int, tuple[str, ...]], *, is_short: bool = False) -> Row:
    """Return the comparison that decided: `tok = 12, so NotEqual(tok, 12) is false`."""
    if ending.verdict is None:
        return [("the condition is false", "")]
    root = ending.verdict.root
    word = "true" if root.value else "false"
    if not root.operands:
        return [(printable(str(root.layer)), "strong"), (f" is {word}", "")]
    named = [one for one in root.operands if not one.is_constant] or list(root.operands)
    told = ", ".join(_operand(one, labels) for one in named)
    inside = ", ".join(_short_operand(one) for one in root.operands)
    operation = root.layer.type if is_short else f"{root.layer.type}({inside})"
    return [(told, "strong"), (", so ", "dim"), (operation, ""), (f" is {word}", "dim")]


def _operand(one: VerdictOperand, labels: Mapping[int, tuple[str, ...]]) -> str:
    name = _operand_name(one)
    text = printable(one.brief.text) if one.value is None else scalar_text(one.value)
    words = () if one.carried is None else labels.get(one.carried.id, ())
    label = f" '{printable(words[one.value])}'" if isinstance(one.value, int) and 0 <= one.value < len(words) else ""
    return f"{name} = {text}{label}"


def _short_operand(one: VerdictOperand) -> str:
    return scalar_text(one.value) if one.is_constant and one.value is not None else _operand_name(one)


def _operand_name(one: VerdictOperand) -> str:
    return carried_name(one.layer if one.carried is None else one.carried) if one.carried else layer_name(one.layer)


def branch(facts: BranchFacts) -> Row:
    """Return an If of the model in a line: its sides, and how often each ran."""
    sides = f"  If {facts.layer.id} · then {facts.then_operations}, else {facts.else_operations} operations   "
    counts = (("then", facts.then_runs), ("else", facts.else_runs))
    times = [f"{side} ran {count:,} {_plural('time', count)}" for side, count in counts if count]
    return [(f" {clip(layer_name(facts.layer), 40)}", "title"), (sides, "dim"), (", ".join(times) or "did not run", "")]


# --- around the cards -----------------------------------------------------------------------------------------------


def before(overview: Overview, room: int, *, short: bool) -> Row:
    """Return inputs, operations and sequences of the model's own graph; `short`: the outputs as well."""
    row: Row = [(" before  ", "dim")]
    for place, port in enumerate(overview.inputs):
        part = _port(port, max(min(60, room - 56), 12))
        if place and width_of(row) + width_of(part) > room - 48:
            more = len(overview.inputs) - place
            row.append((f"{_BETWEEN[0]}{more} more {_plural('input', more)}", "dim"))
            break
        row += [*([_BETWEEN] if place else []), *part]
    loops = sum(one.parent is None for one in overview.loops)
    count = sum(overview.operations.values()) - loops
    row += [_FLOW, (f"{count or 'no'} {_plural('operation', count)}", "")]
    if overview.sequences and not short:
        names = ", ".join(sorted({one.type for one in overview.sequences}))
        row.append((f", of them {names}", "dim"))
    ends: Row = [("   after ", "dim"), (f"{len(overview.outputs)} {_plural('output', len(overview.outputs))}", "")]
    return [*row, *ends] if short and width_of(row) + width_of(ends) + 2 < room else row


def after(overview: Overview, cards: Sequence[Card], room: int) -> Row:
    """Return the outputs of the model, and what they are in a loop."""
    row: Row = [(" after   ", "dim")]
    names = {(card.index, line.row): line.name for card in cards for line in card.lines}
    for place, port in enumerate(overview.outputs):
        part: Row = []
        same = "" if port.loop is None or port.row is None else _source(overview, names, port.loop, port.row)
        if same:
            part = [(f"{printable(port.name)} ", ""), (f"= {same} ", "dim")]
            if port.brief is not None:
                part.append((f"{port.brief.type}{list(port.brief.shape)}".replace(" ", ""), "dim"))
            part += _spoilt(port)
        else:
            part = _port(port, 60)
        if place and width_of(row) + width_of(part) > room - 16:
            row.append((f"{_BETWEEN[0]}{len(overview.outputs) - place} more", "dim"))
            break
        row += [*([_BETWEEN] if place else []), *part]
    return row


def _source(overview: Overview, names: Mapping[tuple[int, int], str], loop: int, row: int) -> str:
    """Return the name of the row of a loop whose end an output of the model is."""
    rows = overview.loops[loop].rows
    if (loop, row) in names:
        return names[loop, row]
    site = rows[row].inner
    edges = (k for k, one in enumerate(rows) if one.result is not None and one.result.id == site.id)
    edge = next(edges, None)
    return "" if edge is None else names.get((loop, edge), "")


def _port(port: ModelPortFacts, room: int) -> Row:
    name = clip(printable(port.name), 24)
    if port.brief is None:
        return [(f"{name} ", ""), ("not computed", "dim")]
    plain = f"{port.brief.type}{list(port.brief.shape)}".replace(" ", "")
    text = printable(port.brief.text)
    return [(f"{name} ", ""), (clip_end(text, room), "dim" if text == plain else "strong"), *_spoilt(port)]


def _spoilt(port: ModelPortFacts) -> Row:
    words = [(word, count) for word, count in (("NaN", port.nan), ("Inf", port.infinite)) if count]
    return [(f" {word} in {count} of {port.size}", "bad") for word, count in words]


def status(overview: Overview, *, short: bool) -> Row:
    """Return how the run went, or goes: time, rate, ticks, and in red what was found."""
    kinds = {word_of(birth.cause.kind) for birth in overview.births}
    row: Row = [(", ".join(sorted(kinds, reverse=True)), "bad"), ("   ", "")] if kinds else []
    ticks = f"{overview.ticks:,} ticks "
    if overview.state is RunState.RUNNING and short:
        return [*row, (" running ", "now"), (f"  {overview.rate:,.0f}/s ", "strong")]
    if overview.state is RunState.RUNNING:
        mega = overview.bytes / 2**20
        return [
            *row,
            (" running ", "now"),
            (f"  {overview.rate:,.0f} iterations/s", "strong"),
            (f"   {ticks}  {mega:,.0f} MB kept ", "dim"),
        ]
    words = {
        RunState.NOT_RUN: "not run, c runs it",
        RunState.FINISHED: "" if short else f"ran in {overview.seconds:.2g} s",
        RunState.FAILED: "ended by an error",
        RunState.PAUSED: f"paused at {overview.iterations:,}",
        RunState.OUT_OF_TIME: f"paused at {overview.iterations:,} after {overview.seconds:.2g} s",
        RunState.OUT_OF_MEMORY: f"paused at {overview.iterations:,}: {overview.bytes / 2**20:,.0f} MB are kept",
    }
    going = overview.state in (RunState.PAUSED, RunState.OUT_OF_TIME, RunState.OUT_OF_MEMORY)
    tone = "edit" if going else "bad" if overview.state is RunState.FAILED else "dim"
    row.append((words[overview.state] + (", c goes on" if going else ""), tone))
    return [*row, (" " if short and going else f"   {ticks}", "dim")]


def failed_at(failure: Failure) -> Row:
    """Return which operation failed, and in which iteration."""
    place = failure.place
    if place is None or place.layer is None:
        return [(failure.type, "strong")]
    around = [one for one in place.path if one.iteration is not None]
    where = ", ".join(f"iteration {one.iteration:,} of {printable(one.layer.name)}" for one in reversed(around))
    name = f"{place.layer.type} {printable(place.layer.name)}"
    return [(name, "strong"), (f" failed{' in ' if where else ''}{where}", "")]


def found(overview: Overview, cards: Sequence[Card], *, short: bool) -> list[Row]:
    """Return what was found in the run, in one or two lines."""
    head: Cell = (" found   ", "dim")
    if overview.failure is not None:
        told: Row = [head, ("error", "bad"), (": ", "bad"), *failed_at(overview.failure)]
        return [told] if short else [told, [(f"         {printable(overview.failure.reason)}", "")]]
    if overview.births:
        return _births(overview.births, overview.outputs, head, short=short)
    row: Row = [head]
    still = [cell for card in cards for cell in _unchanged(card)]
    if still and short:
        return [[head, *still]]
    if overview.births_complete:
        row += [("✓", "accent"), (" no NaN, no Inf", "")]
    elif overview.state is RunState.NOT_RUN:
        row.append(("nothing yet", "dim"))
    else:
        row.append(("no NaN, no Inf so far", "dim"))
    changing = [line.name for card in cards for line in card.lines if line.glyph == "~"]
    row.append((f"   {GLYPHS['shape']} {', '.join(changing[:4])}: another shape" if changing else "", ""))
    if not changing and overview.births_complete:
        row += [("   ✓", "accent"), (" shapes stay", "")]
    row += still
    row += [(f"   {card.name} did not begin", "edit") for card in cards if _did_not_begin(card)]
    return [row]


def _did_not_begin(card: Card) -> bool:
    return card.facts.runs > 0 and card.facts.total == 0


def _unchanged(card: Card) -> Row:
    """Return since when carried values have the same bits, if that is long."""
    told = []
    for line in card.lines:
        history = card.history(line, len(card.runs) - 1)
        since = None if history is None or line.group != "back edges" or line.words else history.unchanged_since
        if since and history is not None and history.count - since >= UNCHANGED_FROM:
            told.append((history.count - since, since, line.name))
    if not told:
        return []
    count, since, _ = min(told)
    names = ", ".join(name for _, _, name in told[:4])
    return [
        ("   =", "edit"),
        (f" {names} unchanged, bit for bit, for {count:,} iterations", ""),
        (f", since {since:,}", "dim"),
    ]


def _births(births: Sequence[Birth], outputs: Sequence[ModelPortFacts], head: Cell, *, short: bool) -> list[Row]:
    row: Row = [head]
    for place, birth in enumerate(births[:3]):
        cause, layer = birth.cause, birth.cause.location.operation
        at = "" if cause.location.iteration is None else f"@{cause.location.iteration}"
        name = "an input" if layer is None else f"{layer_name(layer)}{at}"
        kind = "" if layer is None else f"{layer.type} "
        row += [("  →  ", "dim")] if place else []
        row += [(word_of(cause.kind), "bad"), (f" {'in' if place else 'born in'} {kind}", ""), (name, "strong")]
        row.append((f" {element_text(cause.element)}" + (f" ({cause.arithmetic})" if cause.arithmetic else ""), "dim"))
    if len(births) > 3:
        row.append((f"  … {len(births) - 3} more", "dim"))
    spoilt = [f"{port.nan + port.infinite} in {printable(port.name)}" for port in outputs if port.nan or port.infinite]
    row.append((f"  →  {', '.join(spoilt[:3])}" if spoilt else "", "dim"))
    if short:
        return [row]
    operands = [one for one in births[0].cause.operands if one.value is not None]
    values = "   ".join(
        f"{layer_name(one.layer)}{element_text(one.element)} = {scalar_text(one.value)}" for one in operands
    )
    return [
        row,
        [("         ", ""), (f"{values}   " if values else "", "dim"), ("x", "key"), (" walks these in time", "dim")],
    ]


# --- a value --------------------------------------------------------------------------------------------------------


def value_lines(line: Line, history: ValueHistory, values: Array, found: ColumnStatistics) -> list[Row]:
    """Return what stands beside a picture of the value at the cursor: rms, largest with its place, change."""
    if line.labels or values.size == 1:
        return [[(number(float(values[0]), 9), ""), (labels_in(line, values), "strong")]]
    if found.nan or found.infinite:
        word, count = ("NaN", found.nan) if found.nan else ("Inf", found.infinite)
        unit = "" if history.is_whole else " buckets"
        return [[(word, "bad"), (f" in {count} of {found.numbers}{unit}", "")]]
    place = "" if found.place is None else f" at [{','.join(map(str, found.place))}]"
    rows: list[Row] = [
        [("rms ", "dim"), (f"{number(found.rms):>6}", "")],
        [("max ", "dim"), (f"{number(found.largest):>6}", ""), (place, "dim")],
    ]
    if found.change is not None and np.isfinite(found.change):
        rows.append([("chg ", "dim"), (f"{number(found.change):>6}", "")])
    return rows


def numbers_in(values: Array, room: int) -> str:
    """Return as many numbers as fit, and how many more there are."""
    shown: list[str] = []
    used = 0
    for place, one in enumerate(values.tolist()):
        text = number(float(one))
        if used + len(text) + 2 > room - 10 and place < len(values):
            return "  ".join([*shown, f"… {len(values) - place} more"])
        shown.append(text)
        used += len(text) + 2
    return "  ".join(shown)


def type_text(history: ValueHistory) -> str:
    """Return type and shape of a value."""
    return f"{history.type}[{','.join(map(str, history.shape))}]"


def doing(line: Line, iteration: int) -> str:
    """Return what the value of a row is."""
    if line.group == "slices":
        return f"the slice that iteration {iteration:,} gets"
    if line.group == "outputs":
        return f"the piece of iteration {iteration:,}"
    return f"handed on by iteration {iteration:,}" if line.group else f"verdict of iteration {iteration:,}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def labels_in(line: Line, values: Array) -> str:
    """Return the labels of whole numbers, for the value at the cursor."""
    named = [f"'{printable(line.labels[int(one)])}'" for one in values[:8].tolist() if 0 <= one < len(line.labels)]
    return "".join(["  ", *named]) if named else ""
