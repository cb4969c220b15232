"""Sentences around the cards of the overview: before and after the loops, how the run went, what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from stepper.debug.causes.texts import element_text, word_of
from stepper.debug.overview.facts import ModelPortFacts, Overview, RunState
from stepper.debug.overview.texts import constants_text, none_born
from stepper.tensors.number_text import fitted, number_text
from stepper.wording import counted
from tui.paint.links import Destination, LinkText, linked
from tui.paint.names import layer_name
from tui.paint.rows import Cell, Row, clip, clip_end, printable, width_of
from tui.screens.overview.cards import MOST_CARDS, Card, LinePart, RowGroup
from tui.screens.overview.cursor import UNCHANGED_FROM
from tui.screens.overview.links import NO_LINKS, PortLinks, moment_link, name_linked, row_link, row_shown
from tui.screens.overview.words import failed_at
from tui.theme import GLYPHS

if TYPE_CHECKING:
    from stepper.debug.causes.cause import OperandValue
    from stepper.debug.moments.spread import MomentView
    from stepper.diagnosis.findings import Finding
    from stepper.session.input_choices import InputChoices

Letters = Mapping[int, tuple[str, ...]]
"""The words for the elements of inputs of the model, by index."""
_FLOW: Final[Cell] = ("  →  ", "faint")
_SEQUENCES: Final = Destination("overview sequences", at_once=True)
_BETWEEN: Final[Cell] = ("  ·  ", "faint")


# --- before and after -----------------------------------------------------------------------------------------------


def before(overview: Overview, letters: Letters, room: int, *, short: bool, links: PortLinks = NO_LINKS) -> Row:
    """Return inputs, operations and sequences of the model's own graph; `short`: the outputs as well."""
    row: Row = [(" before  ", "dim"), ("" if overview.inputs else "no inputs", "dim")]
    loops = sum(one.parent is None for one in overview.loops)
    count = sum(overview.operations.values()) - loops
    listed = f", {len(overview.loops)} loops" if len(overview.loops) > MOST_CARDS else ""
    into: Row = [_FLOW, (f"{count or 'no'} {_plural('operation', count)}{listed}", "")]
    for place, port in enumerate(overview.inputs):
        more = len(overview.inputs) - place
        rest: Row = [(f"{_BETWEEN[0]}{more} more {_plural('input', more)}", "dim")]
        wide = max(min(60, room - 56), 12)
        part = _port(port, letters.get(place, ()), wide, short=short, absent="not given", target=links.input(place))
        if place and width_of([*row, *part, *into, *rest]) > room:
            row += rest if width_of([*row, *rest]) <= room else [(f" +{more}", "dim")]
            break
        row += [*([_BETWEEN] if place else []), *part]
    if width_of([*row, *into]) > room:
        return row
    row += into
    if not short:
        row += _sequences(overview, room - width_of(row))
    ends: Row = [("   after ", "dim"), (f"{len(overview.outputs)} {_plural('output', len(overview.outputs))}", "")]
    return [*row, *ends] if short and width_of(row) + width_of(ends) + 2 < room else row


def has_sequences(overview: Overview) -> bool:
    """True if the model has recurrent sequences that can be opened as loops, or are open."""
    return bool(overview.sequences) or any(one.opened_from and not one.is_over_calls for one in overview.loops)


def _sequences(overview: Overview, room: int) -> Row:
    """Return which sequences can be opened, or are open."""
    opened = sorted({one.opened_from for one in overview.loops if one.opened_from and not one.is_over_calls})
    closed = sorted({one.type for one in overview.sequences})
    row: Row = []
    if closed:
        word = "them" if len(overview.sequences) > 1 else "it"
        told = f" (Space opens {word} as loops)" if len(overview.sequences) > 1 else " (Space opens it as a loop)"
        row += [(", ", "dim"), (LinkText(", ".join(closed), _SEQUENCES), ""), (LinkText(told, _SEQUENCES), "dim")]
    if opened:
        row += [(", ", "dim"), (", ".join(opened), ""), (LinkText(" is open: Space closes it", _SEQUENCES), "dim")]
    return row if width_of(row) < room else row[:-1]


def without_loops(overview: Overview) -> Row:
    """Return that a model has no loop, and which sequences can be opened as such."""
    closed = sorted({one.type for one in overview.sequences})
    row: Row = [(" this model has no loop", "dim")]
    if closed:
        word = "one" if len(overview.sequences) == 1 else "loops"
        told = f" opens {' and '.join(closed)} as {word}"
        row += [("; ", "dim"), (LinkText("Space", _SEQUENCES), "key"), (LinkText(told, _SEQUENCES), "dim")]
    return row


def after(overview: Overview, cards: Sequence[Card], room: int, links: PortLinks = NO_LINKS) -> Row:
    """Return the outputs of the model, and what they are in a loop."""
    row: Row = [(" after   ", "dim")]
    values = (LinePart.VALUE, LinePart.GROWTH)
    names = {
        (card.index, line.row): LinkText(line.name, row_link(card.index, place))
        for card in cards
        for place, line in enumerate(card.lines)
        if line.part in values
    }
    for place, port in enumerate(overview.outputs):
        part = _port(port, (), 60, short=False, target=links.output(place))
        same = "" if port.loop is None or port.row is None else _source(overview, names, port.loop, port.row)
        if same and same != printable(port.name):
            part = [part[0], ("= ", ""), (same, "dim"), (" ", ""), *part[1:]]
        if place and width_of(row) + width_of(part) > room - 16:
            row.append((f"{_BETWEEN[0]}{len(overview.outputs) - place} more", "dim"))
            break
        row += [*([_BETWEEN] if place else []), *part]
    return row


def _source(overview: Overview, names: Mapping[tuple[int, int], LinkText], loop: int, row: int) -> str:
    """Return the name of the row of a loop whose end an output of the model is."""
    at = row_shown(overview, names, loop, row)
    return "" if at is None else names[at]


def _port(
    port: ModelPortFacts,
    letters: tuple[str, ...],
    room: int,
    *,
    short: bool,
    absent: str = "not computed",
    target: Destination | None = None,
) -> Row:
    """Return an input or output: name, type, its numbers or its text where they are short, how many are not finite."""
    name = name_linked(f"{clip(printable(port.name), 24)} ", target)
    if port.brief is None:
        return [(name, ""), (absent, "dim")]
    kind = f"{port.brief.type}[{','.join(map(str, port.brief.shape))}]"
    text = f'"{"".join(letters)}"' if letters and all(len(one) == 1 for one in letters) else " ".join(letters)
    if not text and port.text:
        text = f'"{printable(port.text)}"'
    if not text and len(port.brief.shape) < 2:
        text = "  ".join(fitted(float(one) if isinstance(one, str) else one) for one in port.numbers)
        if len(text) > max(room // 2, 20):
            text = ""
    row: Row = [(name, "")]
    if not short or not text:
        row.append((kind, "dim"))
    if port.size == 0:
        row.append((" empty", "dim"))
    elif text:
        row.append(("" if short else " ", ""))
        row.append((clip_end(text, room), "strong"))
    return [*row, (" " if text and (port.nan or port.infinite) else "", ""), *_spoilt(port)]


def _spoilt(port: ModelPortFacts) -> Row:
    words = [(word, count) for word, count in (("NaN", port.nan), ("Inf", port.infinite)) if count]
    told = ", ".join(f"{word} in {count} of {port.size}" for word, count in words)
    return [(f" {told}", "bad")] if told else []


def lacking(inputs: InputChoices, room: int) -> Row:
    """Return which inputs have no value yet, so that there is no run, and the key that leads to their choice."""
    count = len(inputs.missing)
    names = ", ".join(printable(name) for name in inputs.missing)
    told: Row = [("q", "key"), (" chooses ", "dim"), ("it" if count == 1 else "them", "dim"), (" ", "")]
    if not count:
        return [("not run: ", "edit"), ("q", "key"), (" and F5 run it ", "dim")]
    words = f"not run: {names} {'is' if count == 1 else 'are'} missing"
    if len(words) + width_of(told) + 2 > room:
        words = f"not run: {count} {_plural('input', count)} missing"
    return [(words, "edit"), (", ", "dim"), *told]


def status(overview: Overview, *, short: bool) -> Row:
    """Return how the run went, or goes: time, rate, ticks, and in red what was found."""
    row: Row = []
    ticks = f"{counted(overview.ticks, 'tick')} "
    if overview.state is RunState.RUNNING and short:
        return [*row, (" running ", "now"), (f"  {overview.rate:,.0f}/s ", "strong")]
    if overview.state is RunState.RUNNING:
        kept = f"{overview.bytes / 2**20:,.0f}" + (f" of {overview.memory / 2**20:,.0f}" if overview.memory else "")
        return [
            *row,
            (" running ", "now"),
            (f"  {overview.rate:,.0f} iterations/s", "strong"),
            (f"   {ticks}  {kept} MB kept ", "dim"),
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


def against(a: MomentView | None) -> list[Row]:
    """Return what became of the outputs of the model beside A, where A is another run."""
    spread = None if a is None else a.spread
    if spread is None or not spread.is_of_runs:
        return []
    from stepper.debug.moments.texts import spread_sentence  # the first picture has no A

    told = spread_sentence(spread)
    return [[(" differs " if spread.is_reference else " edit    ", "a"), (printable(told), "")]] if told else []


def found(
    overview: Overview,
    cards: Sequence[Card],
    *,
    short: bool,
    links: PortLinks = NO_LINKS,
    findings: Sequence[Finding] = (),
) -> list[Row]:
    """Return what was found in the run, in one or two lines; `findings` are those of the rules."""
    head: Cell = (" found   ", "dim")
    if overview.failure is not None:
        told: Row = [head, ("error", "bad"), (": ", "bad"), *failed_at(overview.failure)]
        return [told] if short else [told, [(f"         {printable(overview.failure.reason)}", "")]]
    if overview.births:
        return _births(overview, head, links, short=short, has_cards=bool(cards))
    row: Row = [head]
    still = [cell for card in cards for cell in _unchanged(card)]
    if still and short:
        return [[head, *still]]
    if overview.births_complete:
        row += [("✓", "accent"), (f" {none_born(overview, layer_name)}", "")]
    elif overview.state is RunState.NOT_RUN:
        row.append(("nothing yet", "dim"))
    else:
        row.append((none_born(overview, layer_name, f"so far{_looked(overview)}"), "dim"))
    reshaped = _reshaped(cards)
    if reshaped:
        row += reshaped
    elif overview.births_complete:
        row += [("   ✓", "accent"), (" shapes stay", ""), *_grown(cards)]
    row += [] if still else [cell for card in cards[:4] for cell in _settled(card)]
    row += still
    row += [(f"   {card.name} did not begin", "edit") for card in cards if _did_not_begin(card)]
    notes = [one for one in findings if one.severity == "note" and one.iterations and not one.is_birth]
    if notes:
        from stepper.diagnosis.texts import sentence  # the first picture has no findings

        more = f" +{len(notes) - 1} more" if len(notes) > 1 else ""
        text = f"note at {notes[0].iterations[-1]:,}: {printable(sentence(notes[0]))}{more}"
        row += [("   ", ""), (LinkText(text, Destination("view findings")), "edit")]
    return [row]


def _reshaped(cards: Sequence[Card]) -> Row:
    """Return which values change their shape; one that an inner loop hands on as well is told once."""
    found: dict[tuple[str, str], Destination] = {}
    for card in cards:
        for place, line in enumerate(card.lines):
            if line.glyph == GLYPHS["shape"]:
                found.setdefault((line.name, line.shape), row_link(card.index, place))
    row: Row = [(f"   {GLYPHS['shape']} ", "edit")] if found else []
    for place, ((name, shape), target) in enumerate(list(found.items())[:4]):
        row += [(", ", "")] if place else []
        row += [(LinkText(name, target), ""), (f" {shape}", "")]
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    return [*row, (f"{more}: another shape", "")] if found else []


def _grown(cards: Sequence[Card]) -> Row:
    """Return whose shapes do not stay as the loop means them to: values to which each iteration joins a piece."""
    grown = [
        (card, place, line)
        for card in cards
        for place, line in enumerate(card.lines)
        if line.part is LinePart.VALUE and card.facts.rows[line.row].appends and card.facts.total
    ]
    row: Row = []
    for count, (card, place, line) in enumerate(grown[:3]):
        row += [(", but " if not count else ", ", ""), (LinkText(line.name, row_link(card.index, place)), "")]
    more = f" and {len(grown) - 3} more" if len(grown) > 3 else ""
    return [*row, (f"{more} {'grows' if len(grown) == 1 else 'grow'}", "")] if grown else []


def _settled(card: Card) -> Row:
    """Return which carried values settle, and since when they change little."""
    row: Row = []
    for line in card.lines:
        history = card.history(line, len(card.runs) - 1) if line.part is LinePart.CHANGE else None
        parent = card.runs[-1].values[line.row] if history is not None else None
        since = None if parent is None else parent.settled_from
        if history is not None and since is not None:
            last = fitted(float(history.numbers[0, -1, 0]))
            name = next(one.name for one in card.lines if one.row == line.row and one.part is LinePart.VALUE)
            target = row_link(card.index, card.lines.index(line))
            row += [("   ✓ ", "accent"), (LinkText(name, target), ""), (f" settles from {since:,} on", "")]
            row.append((f": less than 1 % of its change, {last} at the end", "dim"))
    return row


def _looked(overview: Overview) -> str:
    """Return in how much of the run it was looked for births, if not in all."""
    share = overview.births_share
    if overview.state is RunState.RUNNING or share >= 1:
        return ""
    return f" ({int(100 * share)} % looked through)"


def _did_not_begin(card: Card) -> bool:
    return card.facts.runs > 0 and card.facts.total == 0


def _unchanged(card: Card) -> Row:
    """Return since when carried values have the same bits, if that is long."""
    told = []
    for line in card.lines:
        history = card.history(line, len(card.runs) - 1)
        since = (
            None
            if history is None or line.group is not RowGroup.BACK_EDGES or line.words or line.part is not LinePart.VALUE
            else history.unchanged_since
        )
        if since and history is not None and history.count - since >= UNCHANGED_FROM:
            target = row_link(card.index, card.lines.index(line))
            told.append((history.count - since, since, LinkText(line.name, target)))
    if not told:
        return []
    count, since, _ = min(told, key=lambda one: one[:2])
    names: Row = []
    for place, (_, _, name) in enumerate(told[:4]):
        names += [(", ", ""), (name, "")] if place else [(name, "")]
    return [
        ("   = ", "edit"),
        *names,
        (f" unchanged, bit for bit, for {count:,} iterations", ""),
        (f", since {since:,}", "dim"),
    ]


def _births(overview: Overview, head: Cell, links: PortLinks, *, short: bool, has_cards: bool) -> list[Row]:
    births, outputs = overview.births, overview.outputs
    row: Row = [head]
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
            (f"{came or (' born in' if before is None else ' in')} {kind}", ""),
            (name, "strong"),
            ("" if short and place else f" {element_text(cause.element)}{how}", "dim"),
        ]
        if before is not None and before < place - 1:
            source = births[before].cause.location.operation
            told.append((f" from {'an input' if source is None else layer_name(source)}", "dim"))
        row += linked(told, moment_link(f"goto tick {birth.tick}"))
    if len(births) > 3:
        row.append((f"  … {len(births) - 3} more", "dim"))
    spoilt = [(place, port) for place, port in enumerate(outputs) if port.nan or port.infinite]
    for count, (place, port) in enumerate(spoilt[:3]):
        row.append((", " if count else "  →  ", "dim"))
        row.append((name_linked(f"{port.nan + port.infinite} in {printable(port.name)}", links.output(place)), "dim"))
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
    walk = ("x", " walks these in time   ") if has_cards else ("Enter", " goes to the first   ")
    keys: Row = [(walk[0], "key"), (walk[1], "dim"), ("o", "key"), (" causes", "dim")]
    return [row, [("         ", ""), (f"{operands}   " if operands else "", "dim"), *keys]]


def _given(operand: OperandValue) -> str:
    return f"{operand.layer.type} {layer_name(operand.layer)}{element_text(operand.element)}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
