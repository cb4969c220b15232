"""Why a run stopped, in words: what all causes share, and the words of those that every run knows.

The cause of a kind of data breakpoint has its words in the file of the kind (`stepper/debug/breakpoints/kinds/`): a
function for each class of causes, entered with `@words.register`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import NamedTuple

from stepper.debug.causes.cause import (
    Arithmetic,
    Became,
    Carried,
    Cause,
    Chain,
    Element,
    Enclosure,
    Link,
    LinkKind,
    Location,
    NonFinite,
    NonFiniteKind,
    OperandValue,
    PlaceEvent,
    Reached,
    RunFailed,
    Trigger,
    Unevaluated,
    ValueChange,
)
from stepper.ir.model import LayerSite
from stepper.tensors.number_text import number_text

# --- a stop ---------------------------------------------------------------------------------------------------------


class Words(NamedTuple):
    """A cause in words: `what` held and `where`, what is to be said `beside` it, and further sentences."""

    what: str
    where: str = ""
    beside: str = ""
    others: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """Return what held, and where."""
        return f"{self.what} {self.where}" if self.where else self.what


@singledispatch
def words(cause: Cause, *, named: bool) -> Words:
    """Return a cause in words; `named`: with the names of layers, not their types alone."""
    raise TypeError(f"there are no words for {type(cause).__name__}")


def sentences(cause: Cause) -> tuple[str, ...]:
    """Return what held, in sentences; the first says what and where, the others how it came to it."""
    found = words(cause, named=True)
    return (f"{found.headline}: {found.beside}" if found.beside else found.headline, *found.others)


def stop_sentences(causes: Sequence[Cause]) -> tuple[str, ...]:
    """Return all that is to be said of why a run stopped, each sentence with what waited for it."""
    return tuple(
        f"{name_of(cause)}: {text}" if name_of(cause) else text for cause in causes for text in sentences(cause)
    )


def name_of(cause: Cause) -> str:
    """Return what waited for it: `breakpoint 2`, `anomaly`; empty for the aim of a movement."""
    if cause.trigger is Trigger.BREAKPOINT:
        return f"breakpoint {cause.number}"
    return str(cause.trigger) if cause.trigger is Trigger.ANOMALY else ""


def title(cause: Cause, *, is_short: bool = False) -> str:
    """Return what happened in a few words, without names: `NaN appears in Divide in iteration 2 of Loop`.

    `is_short` leaves out where.
    """
    found = words(cause, named=False)
    return found.what if is_short else found.headline


# --- parts ----------------------------------------------------------------------------------------------------------


def layer_text(layer: LayerSite | None, *, named: bool) -> str:
    """Return the layer of a cause: `MatMul 'proj'`; not `named`: `MatMul`."""
    assert layer is not None, "such a cause is about one"
    return str(layer) if named else layer.type


def where(location: Location, *, named: bool = True) -> str:
    """Return the innermost graph: `in iteration 7 of Loop 'decoder'`; not `named`: `in iteration 7 of Loop`."""
    if not location.path:
        return "in the model's own graph"
    inner = location.path[-1]
    text = str(inner.layer) if named else inner.layer.type
    return f"in iteration {inner.iteration} of {text}" if inner.body == "body" else f"in {text}"


def run_text(outer: Sequence[Enclosure]) -> str:
    """Return which run of a loop it is, by those around it: `in iteration 7 of Loop 'decoder'`; empty for none."""
    said = ", ".join(f"iteration {one.iteration} of {one.layer}" for one in outer)
    return f"in {said}" if said else ""


def element_text(element: Element | None) -> str:
    """Return the index of an element: `[0,3]`; empty for the element of a scalar, and for None."""
    return f"[{','.join(map(str, element))}]" if element else ""


def port_text(output: int | None) -> str:
    """Return the output of an operation that has several: `:1`."""
    return "" if output is None else f":{output}"


def _listed(operands: Sequence[OperandValue]) -> str:
    return ", ".join(f"{one.layer} (input {one.input})" for one in operands)


def carried_text(carried: Carried | None, address: str, *, named: bool) -> str:
    """Return what a cause is about: the carried value `the carried value 'h'`, or the one at an address."""
    if carried is None:
        return address
    return f"the carried value '{carried.parameter.name}'" if named else "the carried value"


def change_text(change: ValueChange) -> str:
    """Return from what to what: of several elements the first that differs, and how many."""
    if change.first is None and change.size:
        return "in nothing but the sign of a zero or the bits of a NaN"
    if change.first is None:
        return f"from {change.before.text} to {change.now.text}"
    numbers = f"from {change.first_before} to {change.first_now}"
    return f"{change.count} of {change.size} elements, the first at {element_text(change.first)} {numbers}"


# --- places and expressions -----------------------------------------------------------------------------------------


@words.register
def _reached(cause: Reached, *, named: bool) -> Words:
    layer, path = layer_text(cause.location.operation, named=named), cause.location.path
    if cause.what is PlaceEvent.BEGAN and path:
        found = Words(f"iteration {path[-1].iteration} of {layer} begins")
    else:
        found = Words(f"{layer} {cause.what}", where(cause.location, named=named))
    passes: tuple[str, ...] = ()
    if cause.edge is not None and cause.passing is not None:
        from_to = f"carries it from iteration {cause.passing} to {cause.passing + 1}"
        passes = (f"the back edge on line {cause.edge.line} {from_to}",)
    return found._replace(beside=f"'{cause.condition}' is true" if cause.condition else "", others=passes)


@words.register
def _became(cause: Became, *, named: bool) -> Words:
    is_true = "became" if cause.was_false else "is"
    return Words(f"'{cause.expression}' {is_true} true", where(cause.location, named=named))


@words.register
def _unevaluated(cause: Unevaluated, *, named: bool) -> Words:
    return Words(f"the condition '{cause.expression}' cannot be evaluated here", beside=cause.message)


@words.register
def _run_failed(cause: RunFailed, *, named: bool) -> Words:
    return Words(cause.message)


# --- NaN and Inf ----------------------------------------------------------------------------------------------------

_WORDS = {NonFiniteKind.NAN: "NaN", NonFiniteKind.INF: "Inf"}


def word_of(kind: NonFiniteKind) -> str:
    """Return NaN or Inf."""
    return _WORDS[kind]


@words.register
def _non_finite(cause: NonFinite, *, named: bool) -> Words:
    text, output = layer_text(cause.location.operation, named=named), cause.location.output
    port = f", output {output}" if output is not None and named else ""
    at = f"element [{','.join(map(str, cause.element))}], {cause.count} of {cause.size} elements"
    others = how_sentence(cause), inputs_sentence(cause), chain_sentence(cause.chain), clean_sentence(cause)
    inside = where(cause.location, named=named)
    return Words(f"{_WORDS[cause.kind]} appears in {text}{port}", inside, at, tuple(filter(None, others)))


def how_sentence(cause: NonFinite) -> str:
    """Return how it is made: `Inf / Inf gives NaN`; empty where an input has it already, or nothing is known."""
    return "" if cause.given else reason_text(cause.arithmetic, cause.formula, _result_of(cause))


def _result_of(cause: NonFinite) -> str:
    """Return NaN or Inf with the sign that the operands give it."""
    word = _WORDS[cause.kind]
    if cause.kind is NonFiniteKind.NAN:
        return word
    if cause.arithmetic is Arithmetic.LOG_OF_ZERO:
        return f"-{word}"
    numbers = [one.value for one in cause.operands]
    if cause.arithmetic is Arithmetic.DIVISION_BY_ZERO and cause.location.type == "Divide":
        signs = [math.copysign(1, one) for one in numbers if isinstance(one, int | float)]
        return f"-{word}" if len(signs) == 2 and signs[0] != signs[1] else word
    return word


def reason_text(arithmetic: Arithmetic | None, formula: str, result: str) -> str:
    """Return a reason with its result; return an overflow unchanged, for it says what it exceeds."""
    if not formula or arithmetic is None:
        return ""
    return formula if arithmetic is Arithmetic.OVERFLOW else f"{formula} gives {result}"


def operands_text(operands: Sequence[OperandValue]) -> str:
    """Return what went into an element: `Subtract 'stepped' is 0`, or its name alone if it is not a single element."""
    return ", ".join(
        str(one.layer) if one.value is None else f"{one.layer} is {number_text(one.value)}" for one in operands
    )


def inputs_sentence(cause: NonFinite) -> str:
    """Return which inputs have NaN or Inf, and which are clean: have neither."""
    if not cause.operands:
        return "the operation has no inputs"
    clean = [one for one in cause.operands if one.is_finite]
    if len(clean) == len(cause.operands):
        return f"all its inputs were clean: {_listed(clean)}"
    parts = []
    with_nan = [one for one in cause.operands if one.nan]
    with_inf = [one for one in cause.operands if one.inf]
    for word, dirty in (("NaN", with_nan), ("Inf", with_inf)):
        if dirty:
            by = "file has" if all(one.layer.type == "Constant" for one in dirty) else "run was given"
            given = f", as the {by} it" if cause.given and word == _WORDS[cause.kind] else ""
            parts.append(f"{word} was in {_listed(dirty)} already{given}")
    return "; ".join([*parts, f"clean: {_listed(clean)}" if clean else "no input was clean"])


def clean_sentence(cause: NonFinite) -> str:
    """Return which operation gave finite numbers last before the first NaN or Inf.

    Empty if that is not known.
    """
    if cause.last_clean is None:
        return ""
    return f"the last operation before with finite results is {cause.last_clean.operation} {where(cause.last_clean)}"


# --- chains ---------------------------------------------------------------------------------------------------------


_LINKS: dict[LinkKind, str] = {
    LinkKind.BACK_EDGE: "came over the back edge",
    LinkKind.INITIAL: "the initial value of what the loop carries",
    LinkKind.SLICE: "a slice of an input of the loop",
    LinkKind.INVARIANT: "an input of the loop, the same in every iteration",
    LinkKind.BRANCH_INPUT: "an input of the If",
    LinkKind.BRANCH_OUTPUT: "what the branch gave",
    LinkKind.LAST_VALUE: "the value of the last iteration",
    LinkKind.SCAN: "joined from the pieces of all iterations",
    LinkKind.NO_ITERATION: "no iteration ran, so it is the initial value",
    LinkKind.NUMBER: "the number of the iteration",
    LinkKind.GIVEN: "as the run was given it",
    LinkKind.CONSTANT: "a constant of the model",
    LinkKind.STATE: "kept from an earlier call",
    LinkKind.EDITED: "set by the user",
    LinkKind.DIVERGED: "the difference begins here: the reference reads the same",
}
_PASSING = {
    LinkKind.BACK_EDGE: "came over the back edge to '{0}' on line {1}",
    LinkKind.INITIAL: "was the initial value of '{0}' (line {1})",
    LinkKind.SLICE: "came in as a slice, '{0}' (line {1})",
    LinkKind.INVARIANT: "came in from outside of the loop, as '{0}' (line {1})",
    LinkKind.LAST_VALUE: "came out of '{0}' after its last iteration (line {1})",
    LinkKind.SCAN: "came out of '{0}' in a scan output (line {1})",
}
"""How a value passes a border, for a sentence about a whole chain."""


def link_words(link: Link) -> str:
    """Return how the value of a link came in or first appeared; empty if finite numbers gave it."""
    line = f" (line {link.line})" if link.line else ""
    if link.kind is LinkKind.BORN:
        return f"first appears here{_reason(link)}"
    if link.kind is LinkKind.COMPUTED:
        return reason_text(link.arithmetic, link.formula, number_text(link.value))
    if link.through is not None:
        first, last = link.through
        iterations = f"iteration {first}" if first == last else f"iterations {first} to {last}"
        return f"{_LINKS[link.kind]}{line}, as it did into {iterations}"
    return f"{_LINKS[link.kind]}{line}"


def _reason(link: Link) -> str:
    text = reason_text(link.arithmetic, link.formula, number_text(link.value))
    return f": {text}" if text else ", of finite inputs"


def chain_sentence(chain: Chain) -> str:
    """Return where what was in the inputs of the first link came from, in one sentence; empty where nothing was."""
    if len(chain.links) < 2:
        return ""
    followed, last, ways = chain.links[1], chain.links[-1], _ways(chain)
    which = f"the {number_text(followed.value)} in input {chain.links[0].follows}"
    inside = where(last.location)
    element = f", element {element_text(last.element)}" if last.element else ""
    site = f"{last.location.operation} {inside}{element}"
    if chain.stopped:
        end = f"{chain.stopped}: {site}"
    elif last.kind is LinkKind.BORN:
        end = f"first appeared in {site}{_reason(last)}"
    else:
        end = f"is in {site}: {_LINKS[last.kind]}"
    return f"{which} {', '.join(ways)}{' and ' if ways else ''}{end}"


def _ways(chain: Chain) -> list[str]:
    """Return how a value passed the borders of bodies; of many the first and the last."""
    passed = (link for link in chain.links if link.kind in _PASSING)
    sites = ((link, link.location.operation) for link in passed)
    found = (_PASSING[link.kind].format("" if site is None else site.name, link.line) for link, site in sites)
    ways = list(dict.fromkeys(found))
    return [ways[0], f"passed {len(ways) - 2} borders more", ways[-1]] if len(ways) > 3 else ways
