"""The words of findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from stepper.debug.causes.cause import NonFinite
from stepper.debug.causes.cause_texts import how_sentence, operands_text
from stepper.diagnosis.findings import Finding
from stepper.diagnosis.rule import rules
from stepper.html_tables import html_table
from stepper.ir.model import LayerSite
from stepper.tensors.number_text import number_text
from stepper.wording import enumerated

_MOST_NAMED: Final = 12
_MANY: Final = 2**31


def sentence(finding: Finding) -> str:
    """Return what is wrong."""
    return rules()[finding.rule].says.format_map(_worded(finding))


def consequence(finding: Finding) -> str:
    """Return what comes of it."""
    return rules()[finding.rule].means.format_map(_worded(finding))


def headline(finding: Finding) -> str:
    """Return in which loop and iteration it shows, and what is wrong."""
    iterations = ", ".join(map(str, finding.iterations))
    where = f"iteration{'s' if len(finding.iterations) > 1 else ''} {iterations}" if iterations else ""
    loops = [*finding.spot.path, *([] if finding.spot.loop is None else [finding.spot.loop])]
    path = " > ".join(dict.fromkeys(map(str, loops)))
    place = ", ".join(part for part in (path, where) if part)
    return f"{place}: {sentence(finding)}" if place else sentence(finding)


def findings_html(findings: Iterable[Finding], title: str = "") -> str:
    """Return a table of findings."""
    return html_table([(str(one.severity), headline(one), consequence(one), remedy(one)) for one in findings], title)


def remedy(finding: Finding) -> str:
    """Return what to do."""
    return rules()[finding.rule].do.format_map(_worded(finding))


EXAMPLE_LOOPS: Final = {
    "counting": "Loop",
    "slicing": "TensorIterator",
    "choosing": "If",
    "remembering": "TensorIterator",
    "storing": "TensorIterator",
    "combining": "TensorIterator",
}
"""Types of the loops, or of the If, that the models of examples are made from, by their names."""


def example_lines(text: str) -> list[str]:
    """Return a piece of XML of an example in lines, a tag in each, with the dimensions of a port beside it."""
    lines = text.replace("><", ">\n<").replace("\n<dim>", "<dim>").replace("</dim>\n</port>", "</dim></port>")
    return lines.split("\n")


def report_lines(finding: Finding) -> tuple[str, ...]:
    """Return the whole report: where in the file, what is wrong, what comes of it, what to do, and what shows it."""
    rule = rules()[finding.rule]
    head = f"{finding.spot}: {finding.severity} {rule.id} {rule.name}: {headline(finding)}"
    see = (f"    see: goto {finding.address}",) if finding.address else ()
    return (head, f"    so: {consequence(finding)}", f"    do: {remedy(finding)}", *see)


def _worded(finding: Finding) -> Mapping[str, Any]:
    return _Worded(finding.details)


class _Worded(dict[str, Any]):
    """Details as sentences have them: some in words of their own, and phrases that are made of several."""

    def __getitem__(self, name: str) -> Any:
        if name not in self and name in _PHRASES:
            return _PHRASES[name](self)
        value = super().__getitem__(name)
        return _WORDS[name](value) if name in _WORDS else value


def _element(indices: Sequence[int]) -> str:
    return f"element [{', '.join(map(str, indices))}]" if indices else "it"


def _layers(layers: Sequence[LayerSite]) -> str:
    named = [f"'{layer.name}'" for layer in layers[:_MOST_NAMED]]
    more = [f"{len(layers) - _MOST_NAMED} more"] if len(layers) > _MOST_NAMED else []
    return ", ".join(named + more)


def _loss(error: float) -> str:
    return f"is off by {error:.2%}" if math.isfinite(error) else "is lost"


_DROPPED: Final = "no output and no carried value has it: it is masked away, or tested for"

_WORDS: Final[Mapping[str, Callable[[Any], str]]] = {
    "index": _element,
    "layers": _layers,
    "is_dropped": lambda is_dropped: _DROPPED if is_dropped else "values computed from it are NaN too",
    "is_otherwise_there": lambda differs: ", and the outputs are others there" if differs else "",
    "known": lambda text: f" (known: {text})" if text else "",
    "loss": _loss,
    "most": lambda error: f" by more than {error:.2%}" if error else " at all",
}  # fmt: skip
"""How details of these names are written, where it is not as Python writes them."""


# --- phrases that are made of several details -------------------------------------------------------------------------


def _reason(details: Mapping[str, Any]) -> str:
    return how_sentence(details["cause"]) or "of numbers that have none"


def _follows(details: Mapping[str, Any]) -> str:
    later: NonFinite | None = details["follows"]
    if later is None:
        return ""
    at = ", ".join(str(one.iteration) for one in later.location.path if one.iteration is not None)
    where = f" in iteration {at}" if at else ""
    return f". It makes NaN in {later.location.operation}{where}: {how_sentence(later)}"


def _goes_on(details: Mapping[str, Any]) -> str:
    if not details["has_condition"]:
        return "nothing limits it"
    asked = "".join(f" {one}" for one in details["conditions"])
    return f"its condition{asked} is always true"


def _state(details: Mapping[str, Any]) -> str:
    stuck, growing = details["stuck"], details["growing"]
    found = ""
    if stuck:
        told = [
            f"'{one.name}' has been unchanged since iteration {at}"
            for one, at in zip(stuck, details["since"], strict=True)
        ]
        found = f"; {enumerated(told)}{', so it can never become false' if details['is_final'] else ''}"
    if growing:
        names = enumerated([repr(one.name) for one in growing])
        found += f"; {names} grows by a piece in each, without bound"
    if details["fixed"]:
        names = enumerated([str(one) for one in details["fixed"]])
        found += f"; no back edge leads to {names}, which it reads"
    if details["counters"]:
        told = [
            f"'{one.name}' goes by {step:+}" for one, step in zip(details["counters"], details["steps"], strict=True)
        ]
        found += f"; {enumerated(told)} in each, and away from or past what it is compared with"
    return found


def _way_out(details: Mapping[str, Any]) -> str:
    if details["stuck"]:
        return "let the state that the condition reads change: an addition may be below the resolution of its type"
    return "let the condition read a value that shows the end of the work, or give a trip count"


def _why_stuck(details: Mapping[str, Any]) -> str:
    added = "" if details["zero"] is None else f" by adding {details['zero']}, which is 0"
    return f"{details['maker']} makes it{added}"


def _ends(details: Mapping[str, Any]) -> str:
    low, high = details["low"], details["high"]
    return f"{low:.4g}" if low == high else f"{low:.3g} or {high:.3g}"


_PHRASES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "reason_of_cause": _reason,
    "operands_of_cause": lambda details: operands_text(details["cause"].operands),
    "after": _follows,
    "of_layer": lambda details: "" if details["faulty"] is None else f"{details['faulty']}: ",
    "in_layer": lambda details: "" if details["faulty"] is None else f" in {details['faulty']}",
    "given": lambda details: "an input" if details["origin"] is None else str(details["origin"]),
    "goes_on": _goes_on,
    "ends_so": lambda details: "; no output and no carried value has it" if details["is_dropped"] else "",
    "awaited": lambda details: "true" if details["is_negated"] else "false",
    "state": _state,
    "way_out": _way_out,
    "asked": lambda details: enumerated([str(one) for one in details["conditions"]]),
    "repeats": lambda details: (
        "" if details["period"] is None else f"; what it carries repeats with period {details['period']}"
    ),
    "at_most": lambda details: (
        "many" if details["limit"] is None or details["limit"] > _MANY else str(details["limit"])
    ),
    "sides": lambda details: (
        "" if details["left"] is None else f": {number_text(details['left'])} against {number_text(details['right'])}"
    ),
    "why": _why_stuck,
    "which_gate": lambda details: f" ({details['gate']} gate)" if details["gate"] else "",
    "ends": _ends,
    "blocked": lambda details: (
        "" if details["operation"] is None else f"; {details['operation']} gives the same whatever comes in"
    ),
    "whatever": lambda details: (
        "on other inputs" if details["input"] is None else f"with other numbers in {details['input']}"
    ),
    "limit_of": lambda details: "condition, which counts" if details["by_condition"] else "trip count",
}  # fmt: skip
"""Words for places of the sentences of rules that are no details."""
