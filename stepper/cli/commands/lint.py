"""`stepper lint MODEL...`: what is wrong with the file of a model, without inputs and without a run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from stepper.cli.findings import asked_rules, exit_code, finding_data, report, write_logs
from stepper.cli.printing import wrapped
from stepper.cli.values import print_json
from stepper.diagnosis.findings import Severity
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.rule import Rule
from stepper.diagnosis.selection import rules_named
from stepper.diagnosis.texts import EXAMPLE_LOOPS, example_lines
from stepper.errors import UsageError
from stepper.files.kinds import IR_SUFFIX, WEIGHTS_SUFFIX, is_ir
from stepper.files.output import ProtectedFiles
from stepper.files.work_tree import changed_files
from stepper.records import as_data
from stepper.terminal import say


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
    models = _models(options)
    by_model = {model: [one for one in lint(model) if one.rule in asked] for model in models}
    protected = sum((ProtectedFiles.of_model(model, "the model") for model in models), ProtectedFiles())
    write_logs(options, by_model, asked, Severity.WARNING, protected)
    found = [one for findings in by_model.values() for one in findings]
    if options.json:
        print_json({"findings": [finding_data(one) for one in found]})
    else:
        report(found, len(models))
    return exit_code(found, Severity.WARNING)


def _models(options: argparse.Namespace) -> list[str]:
    """Return the files to look at, each once."""
    if options.changed is None:
        if not options.models:
            raise UsageError("MODEL is missing: stepper lint MODEL...; --rules lists what is asked")
        models = dict.fromkeys(options.models)
        return [model for model in models if not options.skip_others or not Path(model).is_file() or is_ir(Path(model))]
    if options.models:
        raise UsageError("--changed finds the models itself: leave MODEL out, or name a commit: --changed main")
    changed = changed_files(options.changed, Path.cwd())
    described = (path.with_suffix(IR_SUFFIX) if path.suffix == WEIGHTS_SUFFIX else path for path in changed)
    return [str(path) for path in dict.fromkeys(described) if path.suffix.lower() == IR_SUFFIX and is_ir(path)]


def _list(asked: Mapping[str, Rule], *, as_json: bool) -> None:
    if as_json:
        print_json({"rules": [as_data(rule) | {"example": as_data(rule.example)} for rule in asked.values()]})
        return
    width = max(map(len, asked), default=0)
    for rule in asked.values():
        say(f"{rule.id}  {rule.name:{width}}  {rule.severity:7}  {rule.means}")


def _explain(rule: Rule, *, as_json: bool) -> None:
    if as_json:
        _list({rule.name: rule}, as_json=True)
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
        yield f"  right (in a {EXAMPLE_LOOPS[example.base]})"
        yield from (f"        {line}" for line in example_lines(example.right))
        yield "  wrong"
        yield from (f"        {line}" for line in example_lines(example.wrong or "(nothing)"))
