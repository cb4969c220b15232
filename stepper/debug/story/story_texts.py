"""Give the answers to why a value is so, and where an element goes, in words and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from math import prod
from typing import Any, NamedTuple

from stepper.debug.causes.cause import (
    Arithmetic,
    Element,
    Link,
    LinkForm,
    LinkKind,
    LinkPart,
    Location,
    PartRole,
    Scalar,
)
from stepper.debug.causes.cause_texts import element_text, link_words, port_text, reason_text
from stepper.debug.causes.loop_ends import BY_CONDITION, end_text, set_end_text, verdict_text
from stepper.debug.story.story_facts import (
    Decision,
    ElementUse,
    Entry,
    Influence,
    LinkRole,
    OutputUse,
    Provenance,
    QuestionKind,
    SourceTensor,
    Story,
    StoryColumn,
    StoryEnd,
    StoryFactor,
    StoryLink,
    StoryOperand,
    StorySlices,
    Uses,
    is_bad,
)
from stepper.engine.loops import EndReason
from stepper.html_tables import html_table
from stepper.operation_types import COMPARISON_SIGNS
from stepper.ops.operands import shape_text
from stepper.query.short_names import last_part
from stepper.tensors.number_text import fitted, number_text, short_exponent
from stepper.wording import counted, enumerated, excerpt

_MOST_ELEMENTS = 8
_MOST_USES = 40
_MOST_LINKS = 80
_LAST_LINKS = 20
_PASSING = frozenset(
    (
        *(LinkKind.BACK_EDGE, LinkKind.INITIAL, LinkKind.SLICE, LinkKind.INVARIANT),
        *(LinkKind.BRANCH_INPUT, LinkKind.BRANCH_OUTPUT, LinkKind.LAST_VALUE, LinkKind.SCAN),
    )
)
_MOST_PASSING = 3
"""So many links in a row that only pass an element on are all printed."""
_MOST_CONSTANTS = 6
_MOST_SOURCES = 24
_MADE_BY = {
    LinkForm.SUM: "sum of",
    LinkForm.PRODUCT: "product of",
    LinkForm.QUOTIENT: "quotient of",
    LinkForm.FUNCTION: "of",
    LinkForm.CHOICE: "chosen:",
    LinkForm.COMPARISON: "compares",
    LinkForm.MOVE: "moved from",
    LinkForm.BROADCAST: "broadcast of",
    LinkForm.WHOLE: "of",
}


def why_lines(found: Provenance) -> list[str]:
    """Return the answer in lines: the way back, then all that it depends on, then how that was found."""
    lines = [_title(found)]
    lines += _which_axis(found)
    lines += _link_lines(found.chain.links, " ")
    lines += [f" {found.chain.stopped}"] if found.chain.stopped else []
    if found.behind.links:
        lines.append(" made of")
        lines += _link_lines(found.behind.links, "  ")
    begins_here = found.reference and not found.sources
    return [*lines, *([] if begins_here else source_lines(found.sources)), *_how(found)]


def why_html(found: Provenance) -> str:
    """Return the answer as a table: where, the value there, and why it is so; then the sources."""
    rows = [
        (_site(link.location, link.element, is_shape=link.is_shape), _values(link).strip(), link_reason(link))
        for link in found.links
    ]
    return html_table([*rows, *((line.strip(),) for line in source_lines(found.sources))], _title(found))


def _title(found: Provenance) -> str:
    if found.end is not None:
        end = found.end
        why = end_text(end.reason, end.limit, is_set=end.is_set)
        return f"why {end.iterations} iteration{'' if end.iterations == 1 else 's'} of {end.layer}: {why}"
    if found.asked is QuestionKind.SHAPE:
        return f"why the shape {shape_text(found.shape)} of {found.address}"
    return f"why {found.address}{_equals(found.value)}"


def _which_axis(found: Provenance) -> list[str]:
    """Return the axis that is followed of a shape that has several."""
    links = found.chain.links
    if found.asked is not QuestionKind.SHAPE or len(found.shape) < 2 or not links or not links[0].element:
        return []
    return [f" axis {links[0].element[0]}; 'shape of ADDR[AXIS]' follows another"]


def _link_lines(links: Sequence[Link], indent: str) -> list[str]:
    """Return the links of a chain; of many, and of those in a row that only pass an element on, the first and last."""
    lines = list[str]()
    for passes, group in groupby(links, _passes):
        run = list(group)
        if passes and len(run) > _MOST_PASSING:
            edges = sum(link.kind is LinkKind.BACK_EDGE for link in run[1:-1])
            over = f", over {counted(edges, 'back edge')}" if edges else ""
            between = f"... passed on unchanged by {len(run) - 2} links{over}; JSON has all"
            lines += [link_line(run[0]), between, link_line(run[-1])]
        else:
            lines += map(link_line, run)
    more = len(lines) - _MOST_LINKS
    if more > 0:
        lines[_MOST_LINKS - _LAST_LINKS : -_LAST_LINKS] = [f"... {more} links between; JSON has all"]
    return [f"{indent}{line}" for line in lines]


def _passes(link: Link) -> bool:
    """Return True if an element only comes in or goes out here, or is moved, as Squeeze and Transpose do."""
    is_moved = link.form is LinkForm.MOVE and not link_words(link)
    return link.decides is None and not link.is_shape and (is_moved or link.kind in _PASSING)


def link_line(link: Link) -> str:
    """Return a link in one line: `@7 Multiply 'gate'[0,3] = 0.5  product of x[0,3] = 2, w[3] = 0.25`."""
    reason = link_reason(link)
    site = _site(link.location, link.element, is_shape=link.is_shape)
    return f"{site}{_values(link)}{f'   {reason}' if reason else ''}"


def _site(location: Location, element: Element | None, *, is_shape: bool = False) -> str:
    """Return iterations, operation and element: `@2,@0 Add 'h'[0,3]`; `model` outside of all loops."""
    numbers = [f"@{one.iteration}" for one in location.path if one.iteration is not None]
    port = f"{port_text(location.output)}{'.shape' if is_shape else ''}"
    return f"{','.join(numbers) or 'model'} {location.operation}{port}{element_text(element)}"


def _values(link: Link) -> str:
    beside = "" if link.reference is None else f" (reference {number_text(link.reference)})"
    return f"{_equals(link.value)}{beside}"


def _equals(value: Scalar | None) -> str:
    return "" if value is None else f" = {number_text(value)}"


def link_reason(link: Link) -> str:
    """Return the reason of a link: how it first appeared, its contributions, or how it came in."""
    if link.decides is not None:
        made = _made(link) or link_words(link)
        return f"control: decides {link.decides}{f'; {made}' if made else ''}"
    said = link_words(link)
    if link.kind is LinkKind.DIVERGED:
        return f"{_made(link)}; {said}".removeprefix("; ")
    made = _made(link) if link.kind in (LinkKind.COMPUTED, LinkKind.STATE) and not said else ""
    return said or made or _followed(link)


def _followed(link: Link) -> str:
    """Return the operand that passes a NaN or Inf on."""
    one = next((one for one in link.operands if one.input == link.follows), None)
    if one is None:
        return ""
    return f"of {one.layer.name}{element_text(one.element)} = {number_text(one.value)}"


def _made(link: Link) -> str:
    if link.form is None:
        return ""
    shown = [part for part in link.parts if part.role is not PartRole.INDEX] or list(link.parts)
    parts = ", ".join(_part(part) for part in shown)
    others = link.count - len(link.parts)
    rest = "" if link.rest is None else f", the other {others:,} {_percent(link.rest)}"
    if link.rest is None and others > 0:
        rest = f", and {others:,} more"
    word = "of" if link.is_shape and link.form is LinkForm.MOVE else _MADE_BY[link.form]
    return f"{word} {parts}{rest}" if parts else ""


def _part(part: LinkPart) -> str:
    port = f":{part.output}" if part.output else ""
    share = "" if part.share is None else f" ({_percent(part.share)})"
    shape = ".shape" if part.is_shape else ""
    return f"{part.layer.name}{port}{shape}{element_text(part.element)}{_equals(part.value)}{share}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


# --- sources --------------------------------------------------------------------------------------------------------


def source_lines(found: Sequence[SourceTensor]) -> list[str]:
    """Return what it depends on: inputs and edits by their elements, constants by their names."""
    lines = []
    for part, title in (
        (Influence.DATA, "depends on"),
        (Influence.INDEX, "by index"),
        (Influence.CONTROL, "by whether and how often something runs"),
    ):
        sources = [one for one in found if one.first_part is part]
        others = [one for one in sources if one.kind != "constant"]
        constants = [one for one in sources if one.kind == "constant"]
        if not sources:
            continue
        lines.append(title)
        lines += [f" {_source(one)}" for one in others[:_MOST_SOURCES]]
        if len(others) > _MOST_SOURCES:
            lines.append(f" and {len(others) - _MOST_SOURCES} more")
        if constants:
            texts = list(dict.fromkeys(_constant(one) for one in constants))
            more = f" and {len(texts) - _MOST_CONSTANTS} more" if len(texts) > _MOST_CONSTANTS else ""
            word = "constant" if len(texts) == 1 else "constants"
            lines.append(f" {word} {', '.join(texts[:_MOST_CONSTANTS])}{more}")
    return lines or ["depends on no element of an input, constant or edit"]


def _extents(source: SourceTensor) -> str:
    return ", ".join(f"shape{element_text(one.index)} = {one.value}" for one in source.axes)


def _source(source: SourceTensor) -> str:
    size = prod(source.shape)
    whole = f"all {size} elements" if source.count == size and size > _MOST_ELEMENTS else ""
    shown = ", ".join(
        f"{element_text(one.index) or 'its value'}{_equals(one.value)}" for one in source.elements[:_MOST_ELEMENTS]
    )
    count = f"{source.count} of {size} elements: " if size > 1 else ""
    more = ", ..." if source.count > _MOST_ELEMENTS else ""
    others = [f"{count} by {part}" for part, count in source.counts[1:]]
    beside = f" ({', '.join(others)})" if others else ""
    tensor = f"{source.kind} {source.name} {source.type}{shape_text(source.shape)}"
    elements = f"{whole or f'{count}{shown}{more}'}{beside}" if source.elements else ""
    return f"{tensor}: {', '.join(filter(None, [_extents(source), elements]))}"


def _constant(source: SourceTensor) -> str:
    elements = source.elements
    if not elements:
        return f"{source.name}.{_extents(source)}"
    if source.shape == () and elements and elements[0].value is not None:
        return f"{source.name} = {number_text(elements[0].value)}"
    if source.count == 1 and elements:
        one = elements[0]
        return f"{source.name}{element_text(one.index)} = {number_text(one.value)}"
    size = prod(source.shape)
    return source.name if size == source.count else f"{source.name} ({source.count} of {size} elements)"


def _how(found: Provenance) -> list[str]:
    by_method: dict[str, list[str]] = {}
    for rule in found.rules:
        by_method.setdefault(rule.method, []).append(rule.type)
    trials = found.trials
    lines = []
    others = [f"{', '.join(types)} by {method}" for method, types in sorted(by_method.items()) if method != "rule"]
    if others:
        lines.append(f"found by rules, but {'; '.join(others)}")
    if trials.tried:
        excluded = f", {trials.excluded} elements do not matter alone" if trials.excluded else ""
        lines.append(f"elements of inputs tried: {trials.tried}, in {trials.runs} runs{excluded}")
    if trials.candidates and trials.reason:
        lines.append(f"not every element was tried: {trials.reason}")
    if found.stopped:
        lines.append(found.stopped)
    return lines


def _fields(record: Any, names: str) -> dict[str, Any]:
    """Return some fields of a record as JSON has them."""
    found = ((name, getattr(record, name)) for name in names.split())
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found}


def provenance_data(found: Provenance) -> dict[str, Any]:
    """Return the answer as JSON has it: `chain` with a link each, `sources` with an element each."""
    chain = [
        {
            "address": address,
            "value": link.value,
            "operation": str(link.location.operation or ""),
            "reason": link_reason(link),
            "is_shape": link.is_shape,
            "decides": None if link.decides is None else str(link.decides),
            "line": link.location.operation.line if link.location.operation is not None else 0,
            "parts": [
                {"name": part.layer.name, "index": None if part.element is None else list(part.element)}
                | _fields(part, "output value role share is_shape")
                for part in link.parts
            ],
            "count": link.count,
            "rest": link.rest,
            "reference": link.reference,
            "diverges": link.kind is LinkKind.DIVERGED,
        }
        for address, link in zip(found.addresses, found.links, strict=True)
    ]
    sources = found.sources
    end = found.end
    return {
        **_fields(found, "asked address type shape element value"),
        "chain": chain,
        "sources": [
            {"kind": one.kind, "name": one.name, "index": list(at.index), "value": at.value, "part": at.part}
            for one in sources
            for at in one.elements
        ],
        "complete": all(len(one.elements) == one.count for one in sources),
        "extents": [
            _fields(one, "kind name") | {"axis": axis.index[0]} | _fields(axis, "value part")
            for one in sources
            for axis in one.axes
        ],
        "tensors": [
            _fields(one, "kind name type shape")
            | {"elements": one.count, "listed": len(one.elements), "parts": {str(k): n for k, n in one.counts}}
            for one in sources
        ],
        "iterations": None if end is None else end.iterations,
        "ended": None if end is None else end.reason,
        "set_by_hand": end is not None and end.is_set,
        "rules": [_fields(one, "type method count") for one in found.rules],
        **_fields(found, "operations kernel_runs"),
        "trials": _fields(found.trials, "candidates tried excluded runs reason"),
        "stopped": found.stopped or found.chain.stopped or found.behind.stopped,
    }


# --- where an element goes --------------------------------------------------------------------------------------------


def uses_lines(found: Uses) -> list[str]:
    """Return where an element goes: the operations in the order in which it reaches them, then the outputs."""
    lines = [f"where {found.address} goes"]
    lines += [f" {_use(one)}" for one in found.uses[:_MOST_USES]]
    if len(found.uses) > _MOST_USES:
        lines.append(f" and {len(found.uses) - _MOST_USES} more operations")
    if not found.uses:
        lines.append(" no operation computes another result for it")
    if found.decisions:
        lines += ["decides", *(f" {_decision(one)}" for one in found.decisions)]
    if found.outputs:
        lines += ["reaches", *(f" {_output(one)}" for one in found.outputs)]
    else:
        lines.append("reaches no output of the model")
    return [*lines, found.stopped] if found.stopped else lines


def _use(use: ElementUse) -> str:
    elements = "" if use.count == 1 else f", {use.count} of {use.size} elements"
    last = f", in {use.times} iterations, the last {use.last}" if use.times > 1 else ""
    return f"{_site(use.location, use.element)}{elements}{last}"


def _decision(one: Decision) -> str:
    at = "" if one.iteration is None else f" (first in iteration {one.iteration})"
    return f"the {one.what} of {one.layer}{at}"


def _output(one: OutputUse) -> str:
    if one.count == prod(one.shape) and one.count > _MOST_ELEMENTS:
        return f"output {one.name}: all {one.count} elements"
    shown = ", ".join(element_text(element) or "its value" for element in one.elements[:_MOST_ELEMENTS])
    return f"output {one.name}: {shown}{', ...' if one.count > _MOST_ELEMENTS else ''}"


def uses_data(found: Uses) -> dict[str, Any]:
    """Return where an element goes as JSON has it."""
    return {
        "address": found.address,
        "uses": [
            {
                "operation": str(one.location.operation),
                "iteration": one.location.iteration,
                "index": list(one.element),
                "elements": one.count,
                "of": one.size,
                **_fields(one, "times last"),
            }
            for one in found.uses
        ],
        "decisions": [
            {"what": one.what, "operation": str(one.layer), "iteration": one.iteration} for one in found.decisions
        ],
        "outputs": [
            {"name": one.name, "elements": one.count, "indices": [list(element) for element in one.elements]}
            for one in found.outputs
        ],
        **_fields(found, "kernel_runs stopped"),
    }


_ENDLESS = 2**62
_LEAST_SHARE = 0.0005
_ROUNDING = 1e-9
"""How far a sum of whole numbers as f64 may be from exact, of its size; more than it is."""
"""Shares that are written."""
_SIGNS = {
    **COMPARISON_SIGNS,
    "LogicalAnd": "and",
    "LogicalOr": "or",
    "LogicalXor": "xor",
    "Power": "^",
    "Mod": "mod",
    "FloorMod": "mod",
}
_LARGEST = {"ReduceMax": "largest", "ReduceMin": "smallest", "Maximum": "larger", "Minimum": "smaller"}

# --- numbers and names ----------------------------------------------------------------------------------------------


def number(value: Scalar | None) -> str:
    """Return the number of a link: three decimals where they fit, `…` for one that is not known."""
    return "…" if value is None else fitted(value, 10, keep_decimals=True)


def short_number(value: Scalar | None) -> str:
    """Return a number within a formula, in three digits."""
    return "…" if value is None else short_exponent(number_text(value, 3))


def value_text(link: StoryLink) -> str:
    """Return the number of a link, or that it has none since it failed."""
    return "failed" if link.kind is LinkKind.FAILED else number(link.value)


def percent(share: float) -> str:
    """Return a share: a whole number, of what is below one in a hundred a decimal."""
    if abs(share) < _LEAST_SHARE:
        return "0%"
    return f"{share:.0%}" if abs(share) >= 0.01 else f"{share:.1%}"


def factor_text(factor: StoryFactor) -> str:
    """Return an element of an operation: `key[0,3]`."""
    return f"{factor.name}{port_text(factor.output)}{element_text(factor.element)}"


def iteration_text(path: Sequence[int]) -> str:
    """Return an iteration: `7`; of nested loops `1>0`; `model` outside of all."""
    return ">".join(map(str, path)) or "model"


def name_in_iteration(name: str, path: Sequence[int], loops: Sequence[str]) -> str:
    """Return an address of an iteration: `x@7`; in nested loops the outer ones are levels of it: `passes@1::x@0`."""
    (*outer, _last) = path or (0,)
    levels = "".join(f"{loop}@{iteration}::" for loop, iteration in zip(loops, outer, strict=False))
    return f"{levels}{name}{f'@{path[-1]}' if path else ''}"


def column_text(column: StoryColumn) -> str:
    """Return the innermost iteration of a column, or which of them: `8–10 ×3`."""
    last = "model" if not column.path else str(column.path[-1])
    if column.times > 1:
        return f"{column.first[-1]}–{last} ×{column.times}"
    return last


# --- a link ---------------------------------------------------------------------------------------------------------


def reason(link: StoryLink) -> str:
    """Return in a few words the reason of a link."""
    if link.role is LinkRole.BORN:
        if link.limit is not None and link.operands:
            return f"exp({short_number(link.operands[0].factor.value)}) > {link.type}"
        return link.formula or "of finite inputs"
    if link.kind is not LinkKind.COMPUTED:
        return _ending(link)
    if not link.operands:
        return ""
    if link.formula and link.arithmetic is not Arithmetic.UNKNOWN:
        return link.formula
    return _FORMS[link.form](link)


def _ending(link: StoryLink) -> str:
    words = {
        LinkKind.SLICE: "slice",
        LinkKind.INITIAL: "initial value",
        LinkKind.INVARIANT: "the same in all",
        LinkKind.CONSTANT: "constant",
        LinkKind.GIVEN: "model input",
        LinkKind.NUMBER: "iteration number",
        LinkKind.STATE: "kept from before",
        LinkKind.EDITED: "set by hand",
        LinkKind.NO_ITERATION: "no iteration ran",
        LinkKind.FAILED: "",
    }
    return words.get(link.kind, str(link.kind))


def followed(link: StoryLink) -> tuple[StoryOperand, ...]:
    """Return the operands of a link that were followed, in order."""
    return tuple(one for one in link.operands if one.link is not None)


def _main(link: StoryLink) -> StoryOperand:
    return next(iter(followed(link)), link.operands[0])


def _others(link: StoryLink) -> list[StoryOperand]:
    main = _main(link)
    return [one for one in link.operands if one is not main]


def _sum(link: StoryLink) -> str:
    main = _main(link)
    bad = [one for one in link.operands if is_bad(one.factor.value)]
    if link.count <= 2 and len(link.operands) == 2:
        (other,) = _others(link)
        amount = other.amount or 0.0
        value = f"-{short_number(abs(amount))}" if amount < 0 else short_number(amount)
        if link.times > 1:
            return f"{short_number(main.factor.value)} + {other.factor.name}"
        if link.is_bad:
            sign = "-" if value.startswith("-") else "+"
            return f"{short_number(main.factor.value)} {sign} {value.lstrip('-')}"
        if len(followed(link)) != 1:
            return " + ".join(short_number(one.amount) for one in link.operands).replace("+ -", "- ")
        is_whole = isinstance(link.value, int)
        return f"{'-' if amount < 0 else '+'} {int(abs(amount)) if is_whole else number(abs(amount))}"
    if bad:
        word = number_text(bad[0].factor.value)
        return f"Σ of {link.count}, {len(bad)} {word}"
    if main.share is None:
        return f"Σ of {link.count}"
    largest = "largest " if abs(main.share) < 0.1 else f"{element_text(main.factor.element)} is "
    return f"Σ of {link.count}: {largest}{percent(main.share)}"


def _product(link: StoryLink) -> str:
    main, others = _main(link), _others(link)
    if any(one.role is PartRole.DECIDES for one in link.operands):
        return f"× {short_number(main.factor.value)}: zero"
    names = [one.factor.name for one in others]
    factors = " × ".join(names if link.times > 1 else (_signed(one.factor.value) for one in others))
    return f"{short_number(main.factor.value)} × {factors}" if link.is_bad or not followed(link) else f"× {factors}"


def _signed(value: Scalar | None) -> str:
    return _in_brackets(short_number(value))


def _quotient(link: StoryLink) -> str:
    first, second = link.operands[0].factor.value, link.operands[1].factor.value
    return f"{short_number(first)} / {_signed(second)}"


def _function(link: StoryLink) -> str:
    kind = link.location.type
    name = kind.lower()
    if _is_of_extents(link):
        return f"of {enumerated([number(one.factor.value) for one in link.operands])}"
    if len(link.operands) == 2 and kind in _SIGNS:
        return _comparison(link)
    if link.count > len(link.operands) or any(one.role is PartRole.COMPARED for one in link.operands):
        return f"{name} of {link.count}"
    return f"{name}({', '.join(short_number(one.factor.value) for one in link.operands)})"


def _is_of_extents(link: StoryLink) -> bool:
    """True for an extent that follows from others alone: what the operation does to values is not said of these."""
    return link.is_shape and all(one.factor.is_shape for one in link.operands)


def _comparison(link: StoryLink) -> str:
    kind = link.location.type
    values = [short_number(one.factor.value) for one in link.operands]
    if kind == "NotEqual" and link.value is False:
        return f"{values[0]} = {values[1]}"
    return f" {_SIGNS.get(kind, kind)} ".join(values)


def _choice(link: StoryLink) -> str:
    kind = link.location.type
    decided = next((one for one in link.operands if one.role is PartRole.DECIDES), link.operands[0])
    if kind == "Select":
        condition = next((one for one in link.operands if one.role is PartRole.CONDITION), None)
        return (
            f"chosen: {factor_text(decided.factor)}"
            if condition is None
            else f"{factor_text(decided.factor)}: {condition.factor.name} is {number(condition.factor.value)}"
        )
    if link.count == 2:
        rival = next((one for one in link.operands if one.role is PartRole.COMPARED), None)
        return "decided" if rival is None else _beside(kind, rival)
    if kind in ("ReduceLogicalAnd", "ReduceLogicalOr") and bool(link.value) is (kind == "ReduceLogicalAnd"):
        return f"all {link.count} are {'true' if link.value else 'false'}"  # no single one decides
    word = _LARGEST.get(kind, "largest" if kind == "TopK" else "one")
    return f"{word} of {link.count}: {element_text(decided.factor.element)}"


def _beside(kind: str, rival: StoryOperand) -> str:
    sign = ">" if kind in ("ReduceMax", "Maximum") else "<" if kind in ("ReduceMin", "Minimum") else "beside"
    return f"{sign} {short_number(rival.factor.value)}"


def _broadcast(link: StoryLink) -> str:
    return f"broadcast of {enumerated([number(one.factor.value) for one in link.operands])}"


def _move(link: StoryLink) -> str:
    main = link.operands[0]
    return f"of {element_text(main.factor.element)}" if main.factor.element else f"of {main.factor.name}"


def _whole(link: StoryLink) -> str:
    return f"of {link.operands[0].factor.name}" if len(link.operands) == 1 else f"of {counted(link.count, 'tensor')}"


_FORMS = {
    LinkForm.SUM: _sum,
    LinkForm.PRODUCT: _product,
    LinkForm.QUOTIENT: _quotient,
    LinkForm.FUNCTION: _function,
    LinkForm.COMPARISON: _comparison,
    LinkForm.CHOICE: _choice,
    LinkForm.MOVE: _move,
    LinkForm.BROADCAST: _broadcast,
    LinkForm.WHOLE: _whole,
}


def entry_text(entry: Entry) -> str:
    """Return from where a value came into a body: `embedded[7,6]`."""
    if entry.factor is None:
        return entry.name
    kind = {LinkKind.SLICE: "", LinkKind.INITIAL: ", initial value", LinkKind.INVARIANT: ", from outside"}
    return f"{factor_text(entry.factor)}{kind.get(entry.kind, '')}"


class Formula(NamedTuple):
    """How a number follows from others: `exp(89.200)`, `=`, `+Inf`. Of a number with no operands it stands alone."""

    left: str
    sign: str
    value: str

    def __str__(self) -> str:
        return " ".join(filter(None, self))


def formula(link: StoryLink) -> Formula:
    """Return how a link follows from its operands, in numbers."""
    value = value_text(link)
    kind = link.location.type
    if not link.operands:
        return Formula("", "", ", ".join(filter(None, (value, reason(link)))))
    numbers = [number(one.factor.value) for one in link.operands]
    if link.form in (LinkForm.FUNCTION, LinkForm.COMPARISON) and kind in _SIGNS:
        return Formula(f" {_SIGNS[kind]} ".join(numbers), "is", value)
    sign = "" if link.kind is LinkKind.FAILED else "wraps around to" if _wraps(link) else "="
    return Formula(_left_of(link, kind, numbers), sign, value)


def _wraps(link: StoryLink) -> bool:
    """True if whole numbers of a product or a sum of two went beyond what their type holds."""
    numbers = [one.factor.value for one in link.operands]
    amounts = [one.amount for one in link.operands]
    if len(numbers) != link.count or not all(isinstance(one, int) for one in (*numbers, link.value)):
        return False
    if link.form is LinkForm.PRODUCT:
        return math.prod(one for one in numbers if isinstance(one, int)) != link.value
    if link.form is not LinkForm.SUM or link.count != 2 or isinstance(link.value, str | None):
        return False
    exact = sum(amount or 0.0 for amount in amounts)
    return abs(exact - link.value) > max(abs(exact) * _ROUNDING, 2**7)  # what wraps is 2^8 away, or more


def _left_of(link: StoryLink, kind: str, numbers: Sequence[str]) -> str:
    form = link.form
    if form is LinkForm.SUM and link.count == 2:
        whole = isinstance(link.value, int)
        known = [None if one.amount is None else int(one.amount) if whole else one.amount for one in link.operands]
        amounts = ["NaN" if amount is None else number(amount) for amount in known]
        return f"{amounts[0]} + {_in_brackets(amounts[1])}"
    if form is LinkForm.SUM:
        return f"sum of {link.count} {'products' if link.operands[0].beside else 'terms'}"
    if form is LinkForm.PRODUCT:
        return " × ".join(map(_in_brackets, numbers))
    if form is LinkForm.QUOTIENT:
        return f"{numbers[0]} / {_in_brackets(numbers[1])}"
    if form is LinkForm.CHOICE:
        return f"{kind}: {reason(link)}"
    if form is LinkForm.MOVE:
        return f"{kind} of {factor_text(link.operands[0].factor)}"
    if form is LinkForm.FUNCTION and not _is_of_extents(link):
        shown = [one for one in link.operands if one.role is PartRole.ARGUMENT]
        return f"{kind.lower()}({', '.join(number(one.factor.value) for one in shown)})"
    return f"{kind} of {', '.join(factor_text(one.factor) for one in link.operands[:4])}"


def _in_brackets(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


# --- the whole ------------------------------------------------------------------------------------------------------


def title(story: Story) -> str:
    """Return what was asked: `wkv@8[0,3] is NaN`, behind the word why."""
    if story.end is not None:
        end = story.end
        name = excerpt(last_part(end.layer.name))
        most = f" of at most {end.limit:,}" if end.limit is not None and end.limit < _ENDLESS else ""
        return (
            f"did {name} end after iteration {end.iteration}{most}" if end.iteration >= 0 else f"did {name} not begin"
        )
    link = story.links[story.asked]
    if story.failure:
        return f"{excerpt(story.name)} failed"
    return f"{excerpt(story.name)} is {number(link.value)}"


def end_word(end: StoryEnd) -> str:
    """Return what became of what ended a loop, in few words."""
    if end.is_undecided:
        return "made last"
    return "the condition is false" if end.reason in BY_CONDITION else "trip count"


def extent(story: Story) -> str:
    """Return how much an explanation has: `11 links, 2 of 12 iterations, 2 back edges`."""
    if not story.links:
        return ""
    links = sum(link.times for link in story.links)
    shown = [column for column in story.columns if column.phase == 0 and column.path]
    iterations = sum(column.times for column in shown)
    backs = back_edges(story)
    parts = [counted(links, "link")]
    if iterations:
        is_one_loop = all(len(column.path) == len(story.loops) for column in shown)  # those that `total` counts
        is_known = story.counts_all and story.total > 0 and is_one_loop
        of_all = f"{iterations} of {counted(story.total, 'iteration')}"
        parts.append(of_all if is_known else counted(iterations, "iteration"))
    if backs:
        parts.append(counted(backs, "back edge"))
    if story.pending:
        parts.append(f"{story.pending} more not looked at")
    if story.passed:
        parts.append(f"{len(story.passed)} only passed it on")
    return ", ".join(parts)


def back_edges(story: Story) -> int:
    """Return over how many back edges the value came, those of folded iterations too."""
    return sum(story.links[edge.target].times for edge in story.edges if edge.back is not None)


def verdict(story: Story) -> tuple[str, str]:
    """Return the answer in a sentence: what decided, and what became of it."""
    if story.end is not None and (story.end.is_set or story.end.reason is not EndReason.CONDITION):
        return _other_end(story, story.end)
    asked = story.links[story.asked]
    if story.end is not None:
        return _end_verdict(story, asked)
    if story.births:
        return _birth_verdict(story, asked)
    if asked.is_bad or story.failure:
        return (story.failure, "") if story.failure else _bad_verdict(story, asked)
    if len(story.links) == 1:
        return str(formula(asked)), ""
    sources = _sources(story)
    if sources:
        return sources
    return str(formula(asked)), f"; {extent(story)}" if story.pending else ""


def _other_end(story: Story, end: StoryEnd) -> tuple[str, str]:
    """Return what ended a loop other than what its body says."""
    reason = end.reason
    if end.is_set:
        return set_end_text(reason, end.limit), f", so no value decided it{_made_last(story)}"
    if reason is EndReason.SLICES:
        return str(reason), f"{_used_up(end)}, so no value decided it{_made_last(story)}"
    allowed = f": it allows {counted(end.limit, 'iteration')}" if reason is EndReason.TRIP_COUNT and end.limit else ""
    if not story.links:
        return str(reason), f"{allowed}, so no value decided it"
    asked = story.links[story.asked]
    return str(reason), f"{allowed}, for {asked.address} is {number(asked.value)}"


def _used_up(end: StoryEnd) -> str:
    found = [f"{counted(one.count, 'slice')} of {_cut_text(one)}" for one in end.sliced]
    return f": {' and '.join(found)}" if found else ""


def _made_last(story: Story) -> str:
    """Return the carried value of the last iteration, if the explanation has it."""
    if not story.links:
        return ""
    asked = story.links[story.asked]
    return f"; the last iteration made {asked.address} = {number(asked.value)}"


def _end_verdict(story: Story, asked: StoryLink) -> tuple[str, str]:
    end = story.end
    assert end is not None
    winner = next((link for link in story.links if link.form is LinkForm.CHOICE and link.count > 2), None)
    more = ""
    if winner is not None and len(winner.operands) > 1:
        first, second = winner.operands[0].factor, winner.operands[1].factor
        if isinstance(first.value, float) and isinstance(second.value, float):
            lead = abs(first.value - second.value)
            more = f": {element_text(first.element)} beat {element_text(second.element)} by {short_number(lead)}"
    more += f"; {', '.join(end.unasked)} was not asked" if end.unasked else ""
    compared = () if end.verdict is None else end.verdict.root.compared
    if end.verdict is not None and compared and all(one.value is not None for one in compared):
        return verdict_text(end.verdict), more
    source = asked.operands[0].factor if asked.form is LinkForm.MOVE and asked.operands else None
    shown = reason(asked) if source is None else f"{factor_text(source)} is {number(source.value)}"
    return shown, f", so the condition is false{more}"


def _birth_verdict(story: Story, asked: StoryLink) -> tuple[str, str]:
    born = min(story.births, key=lambda number: (story.links[number].column, story.links[number].row))
    first = story.links[born]
    word = number_text(first.value)
    at = iteration_text(story.columns[first.column].path)
    told = reason_text(first.arithmetic, first.formula, word) or f"{first.address} is {word} of finite inputs"
    if first is asked:
        return told, f", in iteration {at}" if at != "model" else ""
    way = story.between(born, story.asked)
    backs = sum(story.links[edge.target].times for edge in way if edge.back is not None)
    came = f" came over {counted(backs, 'back edge')}" if backs else " went on"
    went = [story.links[edge.target] for edge in way]
    nan = next((link for link in went if link.value == "NaN" and link.formula), None)
    where = f" of iteration {at}" if at != "model" else ""
    also = ""
    if nan is not None and first.value != "NaN":
        if nan.column == first.column:
            return told, f"{where and f', in iteration {at}'}; there {nan.formula} is NaN{_came_to(backs)}"
        also = f"; in iteration {iteration_text(story.columns[nan.column].path)} {nan.formula} is NaN"
    folds = max((story.columns[link.column].times for link in went), default=1)
    kept = f", through {folds} iterations that do the same" if folds > 1 else ""
    return told, f": the {word}{where}{came}{kept}{also}"


def _came_to(backs: int) -> str:
    return f", which came over {counted(backs, 'back edge')}" if backs else ""


def _bad_verdict(story: Story, asked: StoryLink) -> tuple[str, str]:
    if story.stopped:
        return story.stopped, ""
    made = {edge.target for edge in story.edges if story.links[edge.source].is_bad}
    first = [link for place, link in enumerate(story.links) if link.is_bad and place not in made] or [asked]
    last = min(first, key=lambda link: sum(story.columns[link.column].path))
    origin = f": {entry_text(last.entry)}" if last.entry is not None else ""
    place, how = f"{number(last.value)} in {last.address}{origin}", f" ({reason(last)})"
    made_of = [link for link in story.links if link.value == "NaN" and link.arithmetic is not None and link.formula]
    nan = min(made_of, key=lambda link: (story.columns[link.column].path, link.row), default=None)
    if nan is None or last.value == "NaN":
        return f"it is {place}", how
    at = iteration_text(story.columns[nan.column].path)
    return f"{nan.formula} is NaN{'' if at == 'model' else f', in iteration {at}'}", f"; it is {place}{how}"


def _sources(story: Story) -> tuple[str, str] | None:
    """Return what a finite value is: moved here from somewhere, or shares by iteration."""
    asked = story.links[story.asked]
    leaves = [k for k in range(len(story.links)) if not any(edge.target == k for edge in story.edges)]
    if len(leaves) == 1 and story.links[leaves[0]].value == asked.value:
        leaf = story.links[leaves[0]]
        if leaf.entry is not None:
            columns = counted(sum(one.times for one in story.columns), "iteration")
            return f"it is {entry_text(leaf.entry)}", f", which came through {columns}" if len(
                story.columns
            ) > 1 else ""
    shares = story.shares
    if len(shares) > 1:
        head, *rest = shares
        shown = [(path, share) for path, share in rest if abs(share) >= _LEAST_SHARE][:4]
        told = ", ".join(f"{percent(share)} from {iteration_text(path)}" for path, share in shown)
        left = 1 - head[1] - sum(share for _, share in shown)
        others = "others" if sum(abs(share) >= _LEAST_SHARE for _, share in rest) > len(shown) else "what is left out"
        beside = f"; {percent(left)} from {others}" if abs(left) >= _LEAST_SHARE else ""
        return f"{percent(head[1])} new in iteration {iteration_text(head[0])}", f"{', ' * bool(told)}{told}{beside}"
    return None


# --- lines ----------------------------------------------------------------------------------------------------------


def story_lines(story: Story) -> list[str]:
    """Return an explanation as plain sentences, one for each link, the earliest first.

    The question and the answer come before the links.
    """
    told, more = verdict(story)
    lines = [f"why {title(story)}", f"{told}{more}"]
    order = sorted(range(len(story.links)), key=lambda k: (story.links[k].column, story.links[k].row))
    lines += [] if story.end is None else [slices_text(one) for one in story.end.sliced]
    column = -1
    for k in order:
        link = story.links[k]
        if link.column != column:
            column = link.column
            into = [edge for edge in story.edges if story.links[edge.target].column == column]
            backs = {edge.back.name for edge in into if edge.back}
            over = f", over the back edge{'s' if len(backs) > 1 else ''} {', '.join(sorted(backs))}" if backs else ""
            shown = story.columns[column]
            outer = f"{iteration_text(shown.path[:-1])}>" if len(shown.path) > 1 else ""
            when = "" if not shown.phase else ", before the inner loop" if shown.phase < 0 else ", after the inner loop"
            at = f"iteration {outer}{column_text(shown)}{when}" if shown.path else "model"
            lines.append(f"{at}{over}")
        words = [word for word in (reason(link), "first appears here" if link.role is LinkRole.BORN else "") if word]
        entry = f"  from {entry_text(link.entry)}" if link.entry is not None else ""
        made = f"{story.rows[link.row].name}{element_text(link.element)} = {value_text(link)}"
        lines.append(f"  {made}  {', '.join(words)}{entry}".rstrip())
    if story.pending:
        lines.append(f"… {counted(story.pending, 'more link')}, not looked at")
    if story.stopped:
        lines.append(story.stopped)
    return [*lines, *source_lines(story.sources)] if story.sources else lines


def slices_text(one: StorySlices) -> str:
    """Return of an input how it was cut: `x f32[3,7,6]: 7 slices of 1 element along axis 1, all used`."""
    size = counted(one.size, "element")
    return f"{_form_text(one)}: {counted(one.count, 'slice')} of {size} along axis {one.axis}, all used"


def _cut_text(one: StorySlices) -> str:
    """Return which input the slices are of, and along which axis: `x f32[3,7,6] along axis 1`."""
    return f"{_form_text(one)} along axis {one.axis}"


def _form_text(one: StorySlices) -> str:
    return f"{one.name} {one.type}{shape_text(one.shape)}"


# --- what to try ----------------------------------------------------------------------------------------------------


def exceeded_by(link: StoryLink) -> float | None:
    """Return by which part of itself an argument exceeds what its operation can take; None where it does not."""
    value = link.operands[0].factor.value if link.operands else None
    if link.limit is None or not isinstance(value, (int, float)) or not value:
        return None
    return 1 - link.limit / value


def suggestion(story: Story, link: StoryLink) -> str:
    """Return the line that would keep a number from being born; empty where nothing is known to."""
    if link.limit is None or not link.operands:
        return ""
    operand = link.operands[0].factor
    return f"set {operand.name}{element_text(operand.element)} = {int(link.limit // 10 * 10)}"
