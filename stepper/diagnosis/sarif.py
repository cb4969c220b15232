"""Findings as SARIF 2.1.0, which code hosts and editors show beside the lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from stepper.diagnosis.findings import Finding, Severity
from stepper.diagnosis.rule import Rule
from stepper.diagnosis.texts import consequence, remedy, sentence

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def sarif(findings: Iterable[Finding], rules: Mapping[str, Rule], version: str) -> dict[str, Any]:
    """Return a log of one run with all rules that were asked, in their order, and a result for each finding."""
    index = {name: number for number, name in enumerate(rules)}
    driver = {
        "name": "stepper",
        "version": version,
        "rules": [_rule(rule) for rule in rules.values()],
    }
    results = [_result(finding, index[finding.rule], rules[finding.rule]) for finding in findings]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.name.replace("-", " ")},
        "fullDescription": {"text": rule.means},
        "help": {"text": f"{rule.means}. {rule.do}. ({rule.source})"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


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
