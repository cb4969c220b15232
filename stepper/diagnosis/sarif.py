"""Findings as SARIF 2.1.0, which code hosts and editors show beside the lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from stepper.diagnosis.findings import Finding, Severity
from stepper.diagnosis.rule import Rule
from stepper.diagnosis.texts import EXAMPLE_LOOPS, consequence, example_lines, remedy, sentence

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_SPECIFICATION: Final = "specification/"
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
        "rules": [_rule(rule) for rule in rules.values()],
    }
    results = [_result(finding, index[finding.rule], rules[finding.rule]) for finding in findings]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _rule(rule: Rule) -> dict[str, Any]:
    page = _PAGE_OF.get(rule.source.removeprefix(_SPECIFICATION).partition(",")[0])
    return {
        "id": rule.id,
        "name": rule.name,
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
