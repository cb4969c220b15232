"""`stepper lint MODEL...`: what is wrong with the file of a model, without inputs and without a run."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepper import __version__
from stepper.cli.printing import print_json, wrapped
from stepper.cli.specs import ir_of
from stepper.debug.causes.cause import NonFinite, cause_data
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.rule import GRAVITY, Detail, Finding, Rule, Severity, chosen_rules, rules, rules_named
from stepper.diagnosis.texts import (
    EXAMPLE_LOOPS,
    consequence,
    example_lines,
    junit,
    remedy,
    report_lines,
    sarif,
    sentence,
)
from stepper.errors import FINDING, OutputError, UsageError
from stepper.files.file_kinds import FORMATS, IR_SUFFIX, JUNIT, WEIGHTS_SUFFIX, is_ir
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.files.work_tree import changed_files
from stepper.plain_values import json_text
from stepper.records import as_data
from stepper.tensors.number_text import in_columns
from stepper.terminal import say
from stepper.wording import counted


def execute(options: Namespace) -> int:
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
    by_model = {model: [one for one in lint(ir_of(model, options)) if one.rule in asked] for model in models}
    protected = sum((ProtectedFiles.of_model(model, "the model") for model in models), ProtectedFiles())
    write_logs(options, by_model, asked, Severity.WARNING, protected)
    found = [one for findings in by_model.values() for one in findings]
    if options.json:
        print_json({"findings": [finding_data(one) for one in found]})
    else:
        report(found, len(models))
    return exit_code(found, Severity.WARNING)


def _models(options: Namespace) -> list[str]:
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
    for line in in_columns((rule.id, rule.name, f"{rule.severity:7}", rule.means) for rule in asked.values()):
        say(line)


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


def asked_rules(options: Namespace, *, of_runs: bool) -> Mapping[str, Rule]:
    """Return the rules that options and the settings of the project choose, those of runs only where one is made."""
    chosen, known = chosen_rules(options.select or (), options.ignore or ()), rules().items()
    return {name: rule for name, rule in known if name in chosen and (of_runs or not rule.scope.is_of_runs)}


def exit_code(found: Sequence[Finding], least: Severity) -> int:
    """Return FINDING where one is as grave as that, else 0."""
    return FINDING if any(GRAVITY[one.severity] <= GRAVITY[least] for one in found) else 0


def write_logs(
    options: Namespace,
    found: Mapping[str, Sequence[Finding]],
    asked: Mapping[str, Rule],
    least: Severity,
    protected: ProtectedFiles,
) -> None:
    """Write the findings of models, by file, as --sarif and --junit name files; in JUnit they fail from `least` on.

    Raises OutputError.
    """
    if options.sarif is not None:
        every = [one for findings in found.values() for one in findings]
        log = json_text(sarif(every, asked, __version__), 2)
        OutputFile(Path(options.sarif), FORMATS["json"].kind, protected, "--sarif").write(f"{log}\n".encode())
        protected += ProtectedFiles.of_file(options.sarif, "the file of --sarif")
    if options.junit is not None:
        target = OutputFile(Path(options.junit), JUNIT, protected, "--junit")
        if is_ir(target.path):  # of the same suffix, and maybe of another model
            raise OutputError(f"{target}: that is a model; choose another file")
        target.write(junit(found, asked, least))


def report(found: Sequence[Finding], models: int = 1) -> None:
    """Print findings, each with what comes of it, what to do, and what shows it in the debugger; then how many."""
    for one in found:
        name = "" if one.spot.layer is None else f"'{one.spot.layer.name}'"
        marks = {f" {one.severity} ": str(one.severity), name: "name"}
        for place, line in enumerate(report_lines(one)):
            is_pasted = line.startswith("    see: ")
            for part in [line] if is_pasted else wrapped(line):
                say(part, marks={} if place and not is_pasted else {one.address: "key"} if place else marks)
    total = _total(found, models)
    say(total, marks={} if found else {total: "good"})


def _total(found: Sequence[Finding], models: int) -> str:
    where = "" if models == 1 else f" in {counted(models, 'model')}"
    if not found:
        return f"nothing is wrong{where}"
    counts = [(severity, sum(one.severity is severity for one in found)) for severity in GRAVITY]
    return ", ".join(counted(count, str(severity)) for severity, count in counts if count) + where


def _detail(value: Detail) -> Any:
    return cause_data(value) if isinstance(value, NonFinite) else as_data(value)


def finding_data(one: Finding) -> dict[str, Any]:
    """Return a finding as JSON has it."""
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
        "iterations": list(one.iterations),
        "address": one.address,
        "details": {name: _detail(value) for name, value in one.details.items()},
        "text": sentence(one),
        "means": consequence(one),
        "remedy": remedy(one),
    }
