"""A run in sentences: what was found, what ended the loop, what went in and came out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from stepper.debug.causes.cause import VerdictOperand
from stepper.debug.causes.cause_texts import element_text, word_of
from stepper.debug.inspection.text import (
    constants_text,
    none_born,
    recurrence_text,
    state_named,
    state_sentence,
)
from stepper.debug.labels import label_of
from stepper.debug.overview.overview_facts import (
    ActivationFacts,
    Ending,
    Failure,
    LoopFacts,
    ModelPortFacts,
    Overview,
    RowKind,
    RunState,
    programs_of,
)
from stepper.debug.overview.overview_facts import Row as FactsRow
from stepper.debug.story.story_texts import entry_text, iteration_text, title, value_text, verdict
from stepper.engine.loops import EndReason
from stepper.tensors.number_text import fitted, number_text
from stepper.wording import counted, enumerated
from stepper_tui.paint.pane import Pane
from stepper_tui.paint.rows import (
    Cell,
    Destination,
    Row,
    carried_name,
    clip,
    layer_name,
    linked,
    printable,
    row_name,
    shortened,
    width_of,
    wrapped,
)
from stepper_tui.screens.sheet.model import SheetModel
from stepper_tui.theme import GLYPHS

if TYPE_CHECKING:
    from stepper.debug.causes.cause import OperandValue
    from stepper.debug.story.story_facts import Story
    from stepper.debug.table.row_sets import RowsFound, SheetFrame
    from stepper.diagnosis.rule import Finding
    from stepper.engine.program import CompiledModel, Program
    from stepper.tensors.histories import ValueHistory
    from stepper_tui.app import StepperApp
    from stepper_tui.state import State


LARGEST_LIMIT = 10**12
"""A trip count from here on is no limit that anybody means."""
_UNCHANGED_FROM = 1_000
"""Iterations without a changed bit from which on the headline says so."""
_BETWEEN: Final[Cell] = ("  ·  ", "faint")
_MOST = 4
_SHORT = 20


# --- iterations -----------------------------------------------------------------------------------------------------


def count_of(facts: LoopFacts, *, is_running: bool) -> Row:
    """Return how many iterations ran, of how many."""
    runs = facts.activations
    if not runs:
        return [("not run", "dim")]
    if facts.runs > 1:
        return _counts(facts)
    (run,) = runs
    word = facts.iteration_word if run.iterations == 1 else f"{facts.iteration_word}s"
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


# --- why a loop ended -----------------------------------------------------------------------------------------------


def _end(
    facts: LoopFacts,
    run: int,
    overview: Overview,
    labels: Mapping[int, tuple[str, ...]],
    *,
    room: int,
) -> Row:
    """Return why a kept run of a loop ended, in values; `labels` are the words for carried numbers, by Parameter."""
    activation = facts.activations[run] if run < len(facts.activations) else None
    if activation is None:
        return _not_come_to(facts, overview)
    ending = activation.ending
    if ending is None:
        return _not_ended(facts, activation, overview, room)
    if ending.is_set:
        begun = ("did not begin: ", "edit") if ending.iteration < 0 else (f"ended at {ending.iteration:,}: ", "")
        from stepper.debug.causes.loop_ends import set_end_text  # the first picture has no use for it

        return [begun, (set_end_text(ending.reason, ending.limit), "")]
    if len(facts.ended) == 1 and facts.runs > 1 and ending.reason in (EndReason.TRIP_COUNT, EndReason.SLICES):
        return [("ended each time, ", ""), *_limit_words(facts, ending)]
    row: Row = []
    if ending.iteration < 0:
        told = [("did not begin: ", "edit"), *_not_begun(facts, ending)]
        when = " before the first iteration"
        is_tested = ending.reason is EndReason.INITIAL_CONDITION
        return [*told, (when, "")] if is_tested and width_of(told) + len(when) <= room else told
    row.append((f"ended at {ending.iteration:,}: ", ""))
    if ending.reason is not EndReason.CONDITION:
        count = activation.iterations
        row += [(f"{count:,} = {count:,}", "strong"), (", ", ""), *_limit_words(facts, ending)]
        return row
    told = [*row, *_verdict(facts, ending, labels)]
    if width_of(told) > room:
        return [*row, *_verdict(facts, ending, labels, is_short=True)]
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


def _limit_words(facts: LoopFacts, ending: Ending) -> Row:
    if ending.reason is EndReason.SLICES:
        inputs = ", ".join(map(str, facts.control.slices_of))
        return [("no slice is left", ""), (f" of input {inputs}" if inputs else "", "dim")]
    origin = facts.control.trip_count
    if origin is None:
        return [("the trip count", "")]
    return [("the trip count ", ""), (printable(str(origin.layer)), "dim")]


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
    return [(name, "strong"), (f" failed{' in ' if where else ''}{where}", "")]


def _verdict(
    facts: LoopFacts,
    ending: Ending,
    labels: Mapping[int, tuple[str, ...]],
    *,
    is_short: bool = False,
) -> Row:
    """Return the comparison that ended a loop: `tok' = 12, so NotEqual(tok', 12) is false`."""
    if ending.verdict is None:
        return [("the condition is false", "")]
    from stepper.debug.causes.loop_ends import verdict_parts  # the first picture has no use for it

    def name(one: VerdictOperand) -> str:
        if one.carried is not None:
            return f"{carried_name(one.carried)}'"
        return layer_name(one.layer) if one.row is None else row_name(facts.rows[one.row])

    def value(one: VerdictOperand) -> str:
        text = printable(one.brief.text) if one.value is None else number_text(one.value)
        words = () if one.carried is None else labels.get(one.carried.id, ())
        label = (
            f" '{printable(words[one.value])}'" if isinstance(one.value, int) and 0 <= one.value < len(words) else ""
        )
        return f"{text}{label}"

    return [
        (part.text, part.emphasis)
        for part in verdict_parts(ending.verdict, name, value, lambda layer: printable(str(layer)), is_short=is_short)
    ]


# --- what was found -------------------------------------------------------------------------------------------------


def _found(overview: Overview, *, short: bool, findings: Sequence[Finding] = ()) -> list[Row]:
    """Return what was found in the run, in one or two lines; `findings` are those of the rules."""
    if overview.failure is not None:
        told: Row = [("error: ", "bad"), *failed_at(overview.failure)]
        return [told] if short else [told, [(f"  {printable(overview.failure.reason)}", "")]]
    if overview.births:
        return _births(overview, short=short)
    row: Row = []
    still = [cell for facts in overview.loops for cell in _unchanged(facts)]
    if still and short:
        return [still]
    if overview.births_complete:
        row += [("✓", "accent"), (f" {none_born(overview, layer_name)}", "")]
    elif overview.state is RunState.NOT_RUN:
        row.append(("not run yet", "dim"))
    else:
        row.append((none_born(overview, layer_name, f"so far{_looked(overview)}"), "dim"))
    reshaped = _reshaped(overview)
    if reshaped:
        row += reshaped
    elif overview.births_complete:
        row += [("   ✓", "accent"), (" shapes stay", ""), *_grown(overview)]
    row += still or [cell for facts in overview.loops[:_MOST] for cell in _settled(facts)]
    idle = [one for one in overview.loops if one.runs and not one.total]
    row += [(f"   {layer_name(one.layer)} did not begin", "edit") for one in idle]
    notes = [one for one in findings if one.severity == "note" and one.iterations and not one.is_birth]
    if not notes:
        return [row]
    from stepper.diagnosis.texts import sentence  # the first picture has no findings

    more = f" +{len(notes) - 1} more (x)" if len(notes) > 1 else ""
    told = [(f"at {notes[0].iterations[-1]:,}: {printable(sentence(notes[0]))}{more}", "edit")]
    return [told, row]


def _listed(names: Sequence[str]) -> str:
    """Return the first of several names, and how many more there are."""
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"{', '.join(names[:_MOST])}{more}"


def _histories(facts: LoopFacts) -> Iterator[tuple[FactsRow, ValueHistory]]:
    """Yield the rows of a loop that no earlier one equals, each with its values in the last kept run."""
    values = facts.activations[-1].values if facts.activations else ()
    pairs = zip(facts.rows, values, strict=False)
    yield from ((row, one) for row, one in pairs if one is not None and one.count and row.same_as is None)


def _reshaped(overview: Overview) -> Row:
    """Return which values change their shape; one that an inner loop returns as well is named once."""
    names, grows = [], True
    for facts in overview.loops:
        for row, history in _histories(facts):
            if history.shapes:
                shapes = (history.first_shape or history.shape, *(one.shape for one in history.shapes), history.shape)
                sizes = [math.prod(one) for one in shapes]
                grows &= sizes == sorted(sizes)
                names.append(f"{row_name(row)} {min(sizes)}–{max(sizes)}")
    names = list(dict.fromkeys(names))
    change = "another shape" if not grows else "grows" if len(names) == 1 else "grow"
    return [(f"   {GLYPHS['shape']} ", "edit"), (f"{_listed(names)}: {change}", "")] if names else []


def _grown(overview: Overview) -> Row:
    """Return whose shapes do not stay as the loop means them to: values to which each iteration joins a piece."""
    names = [
        row_name(row)
        for facts in overview.loops
        if facts.total
        for row in facts.rows
        if row.appends and row.same_as is None
    ]
    return [(f", but {_listed(names)} {'grows' if len(names) == 1 else 'grow'}", "")] if names else []


def _settled(facts: LoopFacts) -> Row:
    """Return which carried values settle, and since when they change little."""
    row: Row = []
    for one, history in _histories(facts):
        changes, since = history.changes, history.settled_from
        if one.kind is RowKind.BACK_EDGE and changes is not None and since is not None:
            last = fitted(float(changes.numbers[0, -1, 0]))
            row += [("   ✓ ", "accent"), (f"{row_name(one)} settles from {since:,} on", "")]
            row.append((f": less than 1 % of its change, {last} at the end", "dim"))
    return row


def _looked(overview: Overview) -> str:
    """Return how much of the run was searched for first NaN and Inf, if not all."""
    share = overview.births_share
    if overview.state is RunState.RUNNING or share >= 1:
        return ""
    return f" ({int(100 * share)} % looked through)"


def _unchanged(facts: LoopFacts) -> Row:
    """Return since when carried values have the same bits, if that is long."""
    told = []
    for one, history in _histories(facts):
        since = history.unchanged_since if one.kind is RowKind.BACK_EDGE and not history.is_constant else None
        if since and history.count - since >= _UNCHANGED_FROM:
            told.append((history.count - since, since, row_name(one)))
    if not told:
        return []
    count, since, _ = min(told)
    words = f" unchanged, bit for bit, for {count:,} iterations"
    return [("   = ", "edit"), (_listed([name for _, _, name in told]) + words, ""), (f", since {since:,}", "dim")]


def _births(overview: Overview, *, short: bool) -> list[Row]:
    births = overview.births
    row: Row = []
    for place, birth in enumerate(births[:3]):
        cause, layer = birth.cause, birth.cause.location.operation
        at = "" if cause.location.iteration is None else f"@{cause.location.iteration}"
        name = "an input" if layer is None else f"{layer_name(layer)}{at}"
        kind = "" if layer is None else f"{layer.type} "
        before = next((k for k, one in enumerate(births[:place]) if one.tick == birth.after), None)
        row += [("  →  " if before == place - 1 else "  ·  ", "dim")] if place else []
        how = f" ({cause.arithmetic})" if cause.arithmetic and not short else ""
        given = cause.came_with
        came = "" if given is None else f" came in with {_given(given)}, first read by"
        told: Row = [
            (word_of(cause.kind), "bad"),
            (f"{came or (' first in' if before is None else ' in')} {kind}", ""),
            (name, "strong"),
            ("" if short and place else f" {element_text(cause.element)}{how}", "dim"),
        ]
        if before is not None and before < place - 1:
            source = births[before].cause.location.operation
            told.append((f" from {'an input' if source is None else layer_name(source)}", "dim"))
        row += linked(told, Destination(f"goto tick {birth.tick}", at_once=True))
    if len(births) > 3:
        row.append((f"  … {len(births) - 3} more", "dim"))
    spoilt = [port for port in overview.outputs if port.nan or port.infinite]
    for count, port in enumerate(spoilt[:3]):
        row.append((f"{', ' if count else '  →  '}{port.nan + port.infinite} in {printable(port.name)}", "dim"))
    constants = constants_text(overview, layer_name)
    row.append((f"  ·  {constants}" if constants else "", "dim"))
    row.append((_looked(overview), "dim"))
    if short:
        return [row]
    cause = births[0].cause
    operands = ", ".join(
        f"{layer_name(one.layer)}{element_text(one.element)} = {number_text(one.value)}"
        for one in cause.operands
        if one.value is not None
    )
    operands += f": {cause.formula}" if cause.formula and operands else cause.formula
    keys: Row = [("x", "key"), (" next   ", "dim"), ("o", "key"), (" causes", "dim")]
    return [row, [(f"  {operands}   " if operands else "  ", "dim"), *keys]]


def _given(operand: OperandValue) -> str:
    return f"{operand.layer.type} {layer_name(operand.layer)}{element_text(operand.element)}"


# --- the model ------------------------------------------------------------------------------------------------------


def status(overview: Overview) -> Cell:
    """Return how the run goes, or how it ended."""
    match overview.state:
        case RunState.RUNNING:
            return f"running {overview.rate:,.0f}/s, {counted(overview.iterations, 'iteration')}", "accent"
        case RunState.NOT_RUN:
            return "not run, c runs it", "dim"
        case RunState.FINISHED:
            return "complete", "dim"
        case RunState.FAILED:
            return "ended by an error", "bad"
        case RunState.OUT_OF_MEMORY:
            kept = f": {overview.bytes / 2**20:,.0f} MB are kept"
            return f"paused at {overview.iterations:,}{kept}, c continues", "edit"
    return f"paused at {overview.iterations:,}, c continues", "edit"


def _ports(overview: Overview, letters: Mapping[int, str], room: int) -> Row:
    """Return the inputs and outputs of the model, as many as have room; `letters` are the words of inputs by index."""
    row: Row = []
    for word, listed in (("in ", overview.inputs), ("out ", overview.outputs)):
        shown: Row = [(f"{'  →  ' if row else ''}{word}", "dim")]
        for place, port in enumerate(listed):
            part = _port(port, letters.get(place, "") if word == "in " else "")
            if place and width_of([*row, *shown, *part]) > room - 30 * (word == "in "):
                shown.append((f"{_BETWEEN[0]}{len(listed) - place} more", "dim"))
                break
            shown += [*([_BETWEEN] if place else []), *part]
        row += shown if listed else []
    return row


def _port(port: ModelPortFacts, letters: str) -> Row:
    """Return an input or output: name, type, its numbers or its text where they are short, how many are not finite."""
    name = f"{clip(printable(port.name), 24)} "
    if port.brief is None:
        return [(name, ""), ("has no value", "dim")]
    row: Row = [(name, ""), (f"{port.brief.type}[{','.join(map(str, port.brief.shape))}]", "dim")]
    text = f'"{printable(port.text or letters)}"' if port.text or letters else ""
    if not text and len(port.brief.shape) < 2:
        text = "  ".join(fitted(float(one) if isinstance(one, str) else one) for one in port.numbers)
    if text and len(text) <= _SHORT:
        row.append((f" {text}", "strong"))
        row += [(" ", "")] if port.nan or port.infinite else []  # values are apart from their count
    return [*row, *_spoilt(port)]


def _spoilt(port: ModelPortFacts) -> Row:
    words = [(word, count) for word, count in (("NaN", port.nan), ("Inf", port.infinite)) if count]
    told = ", ".join(f"{word} in {count} of {port.size}" for word, count in words)
    return [(f" {told}", "bad")] if told else []


_PARTS = (
    ((RowKind.SLICE,), "takes a slice of"),
    ((RowKind.BACK_EDGE,), "carries"),
    ((RowKind.CONCATENATED,), "collects"),
)
_MOST_NAMES = 4


class Headline(Pane, can_focus=False):
    """The findings, why the loop ended, what it does; of a path the answer to why. Across the whole screen."""

    DEFAULT_CSS = "Headline { height: auto; }"
    follows_selection: ClassVar[bool] = False

    def __init__(self, host: StepperApp, model: SheetModel, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.model = model

    def rows(self, width: int) -> list[Row]:
        """Return the lines; on a low terminal two."""
        found, is_low = self.model.found, self.app.size.height < 30
        if found is None:
            return []
        if found.story is not None:
            strong, rest = verdict(found.story)
            lines = wrapped(printable(f"why {title(found.story)}: {strong}{rest}"), width - 2)
            most = 2 if is_low else 3
            rows: list[Row] = [[(f" {line}", "")] for line in lines[:most]]
            rows[-1] += [("…", "")] if len(lines) > most else []
            return [*rows, *outside(found, width)]
        return headline(self.state, self.host.driver.compiled, found, width, is_low=is_low)


def outside(found: RowsFound, width: int) -> list[Row]:
    """Return what a path begins with, its back edges and links in other graphs, and what is not followed."""
    story = found.story
    if story is None:
        return []
    told = [
        f"{entry_text(link.entry)} = {value_text(link)}"
        for link in story.links
        if link.entry is not None and link.entry.factor is not None
    ]
    told += [
        f"{GLYPHS['back']} {edge.back.name} {_iteration(story, edge.source)} → {_iteration(story, edge.target)}"
        for edge in story.edges
        if edge.back is not None
    ]
    told += [f"{story.links[k].address} = {value_text(story.links[k])}" for k in found.outside]
    told += [counted(story.pending, "operand") + " not followed"] if story.pending else []
    return [[(f" from {clip(printable(', '.join(told)), width - 7)}", "dim")]] if told else []


def _iteration(story: Story, link: int) -> str:
    return iteration_text(story.columns[story.links[link].column].path)


def headline(state: State, compiled: CompiledModel, found: RowsFound, width: int, *, is_low: bool) -> list[Row]:
    """Return what was found, why the loop of the rows ended and what it does; on a low terminal in two lines."""
    overview, frame = state.overview, found.question.frame
    if overview is None:
        return []
    rows = _of_a(state) or _found(overview, short=is_low, findings=state.lists.findings)[: 2 - is_low]
    facts = loop_facts(overview, compiled, frame.body(compiled))
    if facts is not None:
        rows.append(_ended(state, compiled, overview, facts, frame, width))
    if not is_low:
        does = sentence(found) if facts is not None else ""
        rows += [[(does, "dim")]] if does else []
        rows.append(_ports(overview, _letters(overview, compiled, state), width - 2))
    return [shortened([(" ", ""), *row], width) for row in rows if row]


def loop_facts(overview: Overview, compiled: CompiledModel, body: Program) -> LoopFacts | None:
    """Return what is known of the loop of a body; None for the model's own graph."""
    pairs = zip(programs_of(compiled), overview.loops, strict=True)
    return next((facts for program, facts in pairs if program is body), None)


def run_of(facts: LoopFacts, outer: Sequence[int | None]) -> int:
    """Return which of the kept runs of a loop is the one in these iterations around it; the last where none is."""
    runs = facts.activations
    return next((k for k, one in enumerate(runs) if _fits(one.outer, outer)), max(len(runs) - 1, 0))


def _fits(known: Sequence[int], asked: Sequence[int | None]) -> bool:
    return all(one is None or one == at for at, one in zip(known, asked, strict=False))


def _of_a(state: State) -> list[Row]:
    """Return where the run begins to differ from A, and what became of the outputs, where A is another run."""
    spread = None if state.a is None else state.a.spread
    if spread is None:
        return []
    from stepper.debug.moments.moment_texts import spread_sentence  # the first picture has no A

    first, row = spread.first, list[tuple[str, str]]()
    name = printable(spread.a) if spread.is_reference else "A"
    if first is not None:
        cells, iteration, index = first
        layer = cells.program.operations[index].layer
        at = f"@{iteration:,}" if cells.program.path else ""
        row = [(f"first differs from {name} in {layer.type} ", ""), (f"{layer_name(layer)}{at}", "strong")]
    elif spread.is_complete:
        row = [("✓", "accent"), (f" agrees with {name}: {counted(spread.compared, 'iteration')} compared", "")]
    told = spread_sentence(spread)
    return [[*row, (f"   {printable(told)}" if told else "", "")]] if row or told else []


def _ended(
    state: State, compiled: CompiledModel, overview: Overview, facts: LoopFacts, frame: SheetFrame, width: int
) -> Row:
    body = frame.body(compiled)
    slots = {row.inner.id: body.slots.get((row.inner.id, 0), -1) for row in facts.rows}
    labels = {site: state.labels.get((id(body), slot), ()) for site, slot in slots.items()}
    return _end(facts, run_of(facts, frame.outer), overview, labels, room=width - 2)


def _letters(overview: Overview, compiled: CompiledModel, state: State) -> dict[int, str]:
    """Return the words for the elements of the model's inputs that have labels, by index."""
    found = {}
    for index, (port, slot) in enumerate(zip(overview.inputs, compiled.main.parameters, strict=True)):
        words = state.labels.get((id(compiled.main), slot), ())
        if words and port.numbers:
            numbers = (float(one) if isinstance(one, int | float) else math.nan for one in port.numbers)
            texts = [label_of(words, one) for one in numbers]
            found[index] = ("" if all(len(one) == 1 for one in texts) else " ").join(texts)
    return found


def sentence(found: RowsFound) -> str:
    """Return in plain words what an iteration of a loop takes, carries and collects."""
    parts = []
    for kinds, verb in _PARTS:
        names = [
            carried_name(mark.inner) if mark.kind is RowKind.BACK_EDGE else printable(value.title)
            for value, mark in zip(found.topic.values, found.marks, strict=True)
            if mark is not None and mark.kind in kinds
        ]
        if names:
            more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
            parts.append(f"{verb} {enumerated([*names[:_MOST_NAMES], *more])}")
    return f"each iteration {enumerated(parts)}" if parts else ""
