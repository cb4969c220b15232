"""The answers to why a value is what it is, and where an element goes, in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from stepper.debug.causes.cause import Link, LinkForm, LinkKind, LinkPart, PartRole
from stepper.debug.causes.texts import element_text, link_words, moment_text, value_text
from stepper.debug.causes.verdicts import end_text
from stepper.debug.provenance.facts import (
    Decision,
    ElementUse,
    Influence,
    OutputUse,
    Provenance,
    QuestionKind,
    SourceTensor,
    Uses,
)
from stepper.ops.operands import shape_text
from stepper.tensors.number_text import number_text

_MOST_ELEMENTS: Final = 8
_MOST_USES: Final = 40
_MOST_LINKS: Final = 80
_LAST_LINKS: Final = 20
_MOST_CONSTANTS: Final = 6
_MOST_SOURCES: Final = 24
_FORMS: Final = {
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
    return [*lines, *source_lines(found.sources), *_how(found)]


def _title(found: Provenance) -> str:
    if found.end is not None:
        end = found.end
        why = end_text(end.reason, end.limit, is_set=end.is_set)
        return f"why {end.iterations} iteration{'' if end.iterations == 1 else 's'} of {end.layer}: {why}"
    if found.asked is QuestionKind.SHAPE:
        return f"why the shape {shape_text(found.shape)} of {found.address}"
    value = "" if found.value is None else f" = {number_text(found.value)}"
    return f"why {found.address}{value}"


def _which_axis(found: Provenance) -> list[str]:
    """Return the axis that is followed of a shape that has several."""
    links = found.chain.links
    if found.asked is not QuestionKind.SHAPE or len(found.shape) < 2 or not links or not links[0].element:
        return []
    return [f" axis {links[0].element[0]}; 'shape of ADDR[AXIS]' follows another"]


def _link_lines(links: Sequence[Link], indent: str) -> list[str]:
    """Return the links of a chain; of many the first and the last."""
    lines = [f"{indent}{link_line(link)}" for link in links[:_MOST_LINKS]]
    if len(links) > _MOST_LINKS:
        last = [f"{indent}{link_line(link)}" for link in links[-_LAST_LINKS:]]
        between = len(links) - _MOST_LINKS
        gap = f"{indent}... {between} links between; JSON has all"
        return [*lines[:-_LAST_LINKS], gap, *last]
    return lines


def link_line(link: Link) -> str:
    """Return a link in one line: `@7 Multiply 'gate'[0,3] = 0.5  product of x[0,3] = 2, w[3] = 0.25`."""
    value = "" if link.value is None else f" = {number_text(link.value)}"
    reason = link_reason(link)
    return f"{moment_text(link.location)} {value_text(link)}{value}{f'   {reason}' if reason else ''}"


def link_reason(link: Link) -> str:
    """Return why a link is what it is: how it was born, what it is made of, or how it came in."""
    if link.decides is not None:
        made = _made(link) or link_words(link)
        return f"control: decides {link.decides}{f'; {made}' if made else ''}"
    said = link_words(link)
    made = _made(link) if link.kind in (LinkKind.COMPUTED, LinkKind.STATE) and not said else ""
    return said or made or _followed(link)


def _followed(link: Link) -> str:
    """Return the operand of which a NaN or Inf is passed on."""
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
    word = "of" if link.is_shape and link.form is LinkForm.MOVE else _FORMS[link.form]
    return f"{word} {parts}{rest}" if parts else ""


def _part(part: LinkPart) -> str:
    port = f":{part.output}" if part.output else ""
    value = "" if part.value is None else f" = {number_text(part.value)}"
    share = "" if part.share is None else f" ({_percent(part.share)})"
    shape = ".shape" if part.is_shape else ""
    return f"{part.layer.name}{port}{shape}{element_text(part.element)}{value}{share}"


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
        f"{element_text(one.index) or 'its value'}{'' if one.value is None else f' = {number_text(one.value)}'}"
        for one in source.elements[:_MOST_ELEMENTS]
    )
    count = f"{source.count} of {size} elements: " if size > 1 else ""
    more = ", ..." if source.count > _MOST_ELEMENTS else ""
    others = [f"{count} by {part}" for part, count in source.counts[1:]]
    beside = f" ({', '.join(others)})" if others else ""
    tensor = f"{source.kind} {source.name} {source.type}{shape_text(source.shape)}"
    elements = f"{whole or f'{count}{shown}{more}'}{beside}" if source.elements else ""
    return f"{tensor}: {', '.join(filter(None, [_extents(source), elements]))}"


def _constant(source: SourceTensor) -> str:
    if not source.elements:
        return f"{source.name}.{_extents(source)}"
    if source.shape == () and source.elements and source.elements[0].value is not None:
        return f"{source.name} = {number_text(source.elements[0].value)}"
    if source.count == 1 and source.elements:
        one = source.elements[0]
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
        excluded = f", {trials.excluded} of which do not matter alone" if trials.excluded else ""
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
        }
        for address, link in zip(found.addresses, found.links, strict=True)
    ]
    sources = found.sources
    return {
        **_fields(found, "asked address type shape element value"),
        "chain": chain,
        "sources": [
            _fields(one, "kind name") | _fields(element, "index value part")
            for one in sources
            for element in one.elements
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
        "iterations": None if found.end is None else found.end.iterations,
        "ended": None if found.end is None else found.end.reason,
        "set_by_hand": found.end is not None and found.end.is_set,
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
    port = "" if use.location.output is None else f":{use.location.output}"
    elements = "" if use.count == 1 else f", {use.count} of {use.size} elements"
    last = f", in {use.times} iterations, the last {use.last}" if use.times > 1 else ""
    return f"{moment_text(use.location)} {use.location.operation}{port}{element_text(use.element)}{elements}{last}"


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
