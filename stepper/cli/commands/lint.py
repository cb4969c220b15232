"""`stepper lint MODEL...`: what is wrong with the file of a model, without inputs and without a run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, Final

from stepper.cli.findings import asked_rules, exit_code, finding_data, report, write_sarif
from stepper.cli.printing import say, wrapped
from stepper.cli.values import print_json
from stepper.diagnosis.findings import Severity
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.rule import Rule
from stepper.diagnosis.selection import rules_named
from stepper.errors import UsageError
from stepper.files.output import ProtectedFiles
from stepper.records import as_data

_NAMES: Final = {
    "counting": "Loop",
    "slicing": "TensorIterator",
    "choosing": "If",
    "remembering": "TensorIterator",
    "storing": "TensorIterator",
    "combining": "TensorIterator",
}


def execute(options: argparse.Namespace) -> int:
    """Report what is wrong. Return FINDING for errors and warnings, 0 for notes alone and for nothing."""
    if options.explain is not None:
        for rule in rules_named(options.explain):
            _explain(rule, as_json=options.json)
        return 0
    asked = asked_rules(options, of_runs=False)
    if options.rules:
        _list(asked, as_json=options.json)
        return 0
    if not options.models:
        raise UsageError("MODEL is missing: stepper lint MODEL...; --rules lists what is asked")
    found = [one for model in options.models for one in lint(model) if one.rule in asked]
    protected = sum((ProtectedFiles.of_model(model, "the model") for model in options.models), ProtectedFiles())
    write_sarif(options.sarif, found, asked, protected)
    if options.json:
        print_json({"findings": [finding_data(one) for one in found]})
    else:
        report(found, len(options.models))
    return exit_code(found, Severity.WARNING)


def _list(asked: Mapping[str, Rule], *, as_json: bool) -> None:
    if as_json:
        print_json({"rules": [_rule_data(rule) for rule in asked.values()]})
        return
    width = max(map(len, asked), default=0)
    for rule in asked.values():
        say(f"{rule.id}  {rule.name:{width}}  {rule.severity:7}  {rule.means}")


def _rule_data(rule: Rule) -> dict[str, Any]:
    found: dict[str, Any] = as_data(rule)
    return found


def _explain(rule: Rule, *, as_json: bool) -> None:
    if as_json:
        print_json({"rules": [_rule_data(rule)]})
        return
    for line in _explanation(rule):
        say(line)


def _explanation(rule: Rule) -> Iterator[str]:
    yield f"{rule.id} {rule.name} ({rule.severity})"
    for word, text in (("says", rule.says), ("so", rule.means), ("do", rule.do), ("see", rule.source)):
        first, *others = wrapped(text)
        yield f"  {word:5} {first}"
        yield from (f"        {line}" for line in others)
    example = rule.example
    if example is not None:
        yield f"  right (in a {_NAMES[example.base]})"
        yield from (f"        {line}" for line in _tags(example.right))
        yield "  wrong"
        yield from (f"        {line}" for line in _tags(example.wrong or "(nothing)"))


def _tags(text: str) -> list[str]:
    """Return a piece of XML in lines, a tag in each, with the dimensions of a port beside it."""
    lines = text.replace("><", ">\n<").replace("\n<dim>", "<dim>").replace("</dim>\n</port>", "</dim></port>")
    return lines.split("\n")
