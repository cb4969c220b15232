"""Findings as JUnit XML, which Jenkins, GitLab and others show as tests that failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lxml import etree

from stepper.diagnosis.findings import GRAVITY, Finding, Severity
from stepper.diagnosis.rule import Rule
from stepper.diagnosis.texts import consequence, headline, remedy
from stepper.wording import printable


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
        _add_suite(root, file, findings, rules, least)
    _count(root)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)


def _add_suite(
    root: etree._Element, file: str, findings: Sequence[Finding], rules: Mapping[str, Rule], least: Severity
) -> None:
    name = printable(file)
    suite = etree.SubElement(root, "testsuite", name=name, file=name)
    for rule in dict.fromkeys(one.rule for one in findings):
        _add_case(suite, name, rules[rule], [one for one in findings if one.rule == rule], least)
    if not findings:
        etree.SubElement(suite, "testcase", name="nothing is wrong", classname=name)
    _count(suite)


def _add_case(suite: etree._Element, file: str, rule: Rule, findings: Sequence[Finding], least: Severity) -> None:
    case = etree.SubElement(suite, "testcase", name=f"{rule.id} {rule.name}", classname=file)
    gravest = min(findings, key=lambda one: GRAVITY[one.severity])
    if GRAVITY[gravest.severity] <= GRAVITY[least]:
        told = etree.SubElement(case, "failure", type=str(gravest.severity), message=printable(headline(gravest)))
    else:
        told = etree.SubElement(case, "system-out")
    told.text = "\n".join(printable(line) for one in findings for line in _lines(one))


def _lines(one: Finding) -> Iterable[str]:
    place = f"{one.spot.file}:{one.spot.line}" if one.spot.line else one.spot.file
    yield f"{place}: {one.severity}: {headline(one)}"
    yield f"so: {consequence(one)}"
    yield f"do: {remedy(one)}"
    if one.address:
        yield f"see: goto {one.address}"


def _count(element: etree._Element) -> None:
    element.set("tests", str(sum(1 for _case in element.iter("testcase"))))
    element.set("failures", str(sum(1 for _failure in element.iter("failure"))))
    element.set("errors", "0")
