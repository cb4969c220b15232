"""`stepper lint MODEL...`: what is wrong with the file of a model, without inputs and without a run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from stepper import __version__
from stepper.cli.printing import say, wrapped
from stepper.cli.values import print_json
from stepper.diagnosis.findings import GRAVITY, Finding, Severity
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.lint.registry import rules
from stepper.diagnosis.lint.rule import Rule
from stepper.diagnosis.lint.selection import Selection, rules_named, settings
from stepper.diagnosis.lint.texts import remedy, sentence
from stepper.diagnosis.sarif import sarif
from stepper.errors import FINDING, UsageError
from stepper.files.kinds import FORMATS
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.records import as_data
from stepper.wording import counted

_NAMES: Final = {"counting": "Loop", "slicing": "TensorIterator", "choosing": "If", "remembering": "TensorIterator"}


def execute(options: argparse.Namespace) -> int:
    """Report what is wrong. Return FINDING for errors and warnings, 0 for notes alone and for nothing."""
    if options.explain is not None:
        for rule in rules_named(options.explain):
            _explain(rule, as_json=options.json)
        return 0
    select, ignore = settings(Path.cwd())
    chosen = Selection.of(options.select or select, (*ignore, *(options.ignore or ())))
    asked = {name: rule for name, rule in rules().items() if name in chosen.names}
    if options.rules:
        _list(asked, as_json=options.json)
        return 0
    if not options.models:
        raise UsageError("MODEL is missing: stepper lint MODEL...; --rules lists what is asked")
    found = [one for model in options.models for one in lint(model) if one.rule in chosen.names]
    if options.sarif:
        log = json.dumps(sarif(found, asked, __version__), indent=2, ensure_ascii=False)
        protected = sum((ProtectedFiles.of_model(model, "the model") for model in options.models), ProtectedFiles())
        OutputFile(Path(options.sarif), FORMATS["json"].kind, protected, "--sarif").write(f"{log}\n".encode())
    if options.json:
        print_json({"findings": [_data(one) for one in found]})
    else:
        _report(found, options.models)
    return FINDING if any(one.severity is not Severity.NOTE for one in found) else 0


def _report(found: Sequence[Finding], models: Sequence[str]) -> None:
    known = rules()
    for one in found:
        rule = known[one.rule]
        loop = "" if one.spot.loop is None else f"{one.spot.loop}: "
        say(f"{one.spot.file}:{one.spot.line}: {one.severity} {rule.id} {rule.name}")
        for text in (f"{loop}{sentence(one)}", f"so: {rule.means.format(**one.details)}", f"do: {remedy(one)}"):
            for line in wrapped(text):
                say(f"    {line}")
    say(_total(found, models))


def _total(found: Sequence[Finding], models: Sequence[str]) -> str:
    where = "" if len(models) == 1 else f" in {counted(len(models), 'model')}"
    if not found:
        return f"nothing is wrong{where}"
    counts = [(severity, sum(one.severity is severity for one in found)) for severity in GRAVITY]
    return ", ".join(counted(count, str(severity)) for severity, count in counts if count) + where


def _data(one: Finding) -> dict[str, Any]:
    rule = rules()[one.rule]
    return {
        "rule": rule.name,
        "id": rule.id,
        "severity": str(one.severity),
        "file": one.spot.file,
        "line": one.spot.line,
        "part": one.spot.part,
        "loop": as_data(one.spot.loop),
        "path": as_data(one.spot.path),
        "layer": as_data(one.spot.layer),
        "details": as_data(one.details),
        "text": sentence(one),
        "means": rule.means.format(**one.details),
        "remedy": remedy(one),
    }


def _list(asked: dict[str, Rule], *, as_json: bool) -> None:
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
        yield from (f"        {line}" for line in example.right.split("\n"))
        yield "  wrong"
        yield from (f"        {line}" for line in (example.wrong or "(nothing)").split("\n"))
