"""Findings as logs of other programs: SARIF, and JUnit XML, which Jenkins and GitLab show as tests that failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from lxml import etree

from stepper.diagnosis.findings import GRAVITY, Finding, Severity
from stepper.diagnosis.rule import Rule
from stepper.diagnosis.texts import EXAMPLE_LOOPS, consequence, example_lines, headline, remedy, report_lines, sentence
from stepper.wording import DISTRIBUTION, printable

# Findings as SARIF 2.1.0, which code hosts and editors show beside the lines.


_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_PROJECT: Final = f"https://pypi.org/project/{DISTRIBUTION}/"
_SPECIFICATION: Final = "the specification of "
_PAGES: Final = (
    "https://docs.openvino.ai/2024/documentation/openvino-ir-format/operation-sets/operation-specs/infrastructure/"
)
_PAGE_OF: Final = {"Loop-5": "loop-5.html", "TensorIterator-1": "tensor-iterator-1.html"}
"""Pages of the specification, by the names that sources of rules give them."""
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


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
    """Return a suite for each model (by its file) with a test for each rule that is broken in it.

    A test fails where a finding is as grave as `least`; it passes, with the text in `system-out`, where none is. A
    model in which nothing is wrong has one test, which passes, since readers take a suite without tests for a fault;
    so it is where there is no model.
    The form is that of the schema `junit-10.xsd`, which Jenkins' xUnit plugin holds a file against.
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
