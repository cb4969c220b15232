"""The words of findings.

Findings as logs of other programs: SARIF, and JUnit XML, which Jenkins and GitLab show as tests that failed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from lxml import etree

from stepper.debug.causes.cause import NonFinite
from stepper.debug.causes.cause_texts import how_sentence, operands_text
from stepper.diagnosis.rule import GRAVITY, Finding, Rule, Severity, rules
from stepper.html_tables import html_table
from stepper.ir.model import LayerSite
from stepper.tensors.number_text import number_text
from stepper.wording import DISTRIBUTION, enumerated, printable

_MOST_NAMED = 12
_MANY = 2**31


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


EXAMPLE_LOOPS = {
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


_DROPPED = "no output and no carried value has it: it is masked away, or tested for"

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


# Findings as SARIF 2.1.0, which code hosts and editors show beside the lines.


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_PROJECT = f"https://pypi.org/project/{DISTRIBUTION}/"
_SPECIFICATION = "the specification of "
_PAGES = "https://docs.openvino.ai/2024/documentation/openvino-ir-format/operation-sets/operation-specs/infrastructure/"
_PAGE_OF = {"Loop-5": "loop-5.html", "TensorIterator-1": "tensor-iterator-1.html"}
"""Pages of the specification, by the names that sources of rules give them."""
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def sarif(findings: Iterable[Finding], rules: Mapping[str, Rule], version: str) -> dict[str, Any]:
    """Return a log of one run with all rules that were asked, in their order, and a result for each finding."""
    index = {name: number for number, name in enumerate(rules)}
    driver = {
        "name": "stepper",
        "version": version,
        "informationUri": _PROJECT,
        "rules": [_rule(rule) for rule in rules.values()],
    }
    results = [_result(finding, index[finding.rule], rules[finding.rule]) for finding in findings]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _rule(rule: Rule) -> dict[str, Any]:
    page = _PAGE_OF.get(re.split(",| and ", rule.source.removeprefix(_SPECIFICATION))[0])
    return {
        "id": rule.id,
        "name": rule.name.title().replace("-", ""),
        "shortDescription": {"text": rule.name.replace("-", " ")},
        "fullDescription": {"text": rule.means},
        "help": {"text": f"{rule.means}. To do: {rule.do}. ({rule.source})", "markdown": "\n".join(_help(rule))},
        **({} if page is None else {"helpUri": f"{_PAGES}{page}"}),
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _help(rule: Rule) -> Iterator[str]:
    """Yield lines of Markdown: what comes of breaking the rule, what to do, what says so, and how it looks."""
    for word, text in (("So", rule.means), ("Do", rule.do), ("See", rule.source)):
        yield from (f"**{word}:** {_plain(text)}", "")
    example = rule.example
    if example is not None:
        for word, tags in ((f"Right (in a {EXAMPLE_LOOPS[example.base]})", example.right), ("Wrong", example.wrong)):
            yield from (f"{word}:", "", "```xml", *example_lines(tags or "<!-- nothing -->"), "```", "")


def _plain(text: str) -> str:
    """Return text as Markdown that shows each of its letters: tags and names in it are not obeyed."""
    return re.sub(r"([\\`*_\[\]<>&|])", r"\\\1", text)


def _uri(file: str) -> str:
    """Return a path as a URI, a relative one as a reference."""
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _result(finding: Finding, index: int, rule: Rule) -> dict[str, Any]:
    spot = finding.spot
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(spot.file)}}}
    if spot.line:
        location["physicalLocation"]["region"] = {"startLine": spot.line}
    if spot.loop is not None:
        location["logicalLocations"] = [{"name": spot.loop.name, "kind": "function"}]
    text = f"{sentence(finding)}. {consequence(finding)}. To do: {remedy(finding)}."
    return {
        "ruleId": rule.id,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [location],
    }


# Findings as JUnit XML, which Jenkins, GitLab and others show as tests that failed.


def junit(found: Mapping[str, Sequence[Finding]], rules: Mapping[str, Rule], least: Severity) -> bytes:
    """Return a suite for each model (by its file) with a test for each rule broken in it.

    A test fails if a finding reaches the severity `least`; otherwise it passes, with the text in `system-out`. A model
    without findings has one test, which passes, because readers treat a suite without tests as a fault. A report
    without models has one test, too. The format follows the schema `junit-10.xsd`, which Jenkins' xUnit plugin checks.
    """
    root = etree.Element("testsuites", name="stepper")
    if not found:
        suite = etree.SubElement(root, "testsuite", name="models")
        etree.SubElement(suite, "testcase", name="no model was to be looked at", classname="models")
        _count(suite)
    for file, findings in found.items():
        name = printable(file)
        suite = etree.SubElement(root, "testsuite", name=name, file=name)
        for rule in dict.fromkeys(one.rule for one in findings):
            _add_case(suite, name, rules[rule], [one for one in findings if one.rule == rule], least)
        if not findings:
            etree.SubElement(suite, "testcase", name="nothing is wrong", classname=name)
        _count(suite)
    _count(root)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)


def _add_case(suite: etree._Element, file: str, rule: Rule, findings: Sequence[Finding], least: Severity) -> None:
    case = etree.SubElement(suite, "testcase", name=f"{rule.id} {rule.name}", classname=file)
    gravest = min(findings, key=lambda one: GRAVITY[one.severity])
    if GRAVITY[gravest.severity] <= GRAVITY[least]:
        told = etree.SubElement(case, "failure", type=str(gravest.severity), message=printable(headline(gravest)))
    else:
        told = etree.SubElement(case, "system-out")
    told.text = "\n".join(printable(line) for one in findings for line in _lines(one))


def _lines(one: Finding) -> Iterable[str]:
    yield f"{one.spot}: {one.severity}: {headline(one)}"
    yield from map(str.strip, report_lines(one)[1:])


def _count(element: etree._Element) -> None:
    element.set("tests", str(sum(1 for _case in element.iter("testcase"))))
    element.set("failures", str(sum(1 for _failure in element.iter("failure"))))
    element.set("errors", "0")
