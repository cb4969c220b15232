"""Every rule has an example that breaks it, in a model that breaks none."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from stepper.diagnosis.lint.linting import lint, rule_finders
from stepper.diagnosis.rule import Rule, Severity, SubjectKind, rules
from stepper.diagnosis.texts import remedy, sentence
from tests.debug.debugged import SAMPLES
from tests.diagnosis.lint.rule_examples import broken, sound, weights
from tests.tables import each_row

BASES = ("choosing", "combining", "counting", "remembering", "slicing", "storing")


def written(folder: Path, base: str, text: str) -> Path:
    (folder / "model.xml").write_text(text)
    (folder / "model.bin").write_bytes(weights(base))
    return folder / "model.xml"


@each_row("base", BASES)
def test_the_models_of_the_examples_break_no_rule(base: str, tmp_path: Path) -> None:
    assert lint(written(tmp_path, base, sound(base))) == ()


OF_FILES = [rule for rule in rules().values() if not rule.scope.is_of_runs]


@each_row("rule", OF_FILES, ids=lambda rule: rule.name)
def test_each_example_breaks_its_rule(rule: Rule, tmp_path: Path) -> None:
    assert rule.example is not None
    found = lint(written(tmp_path, rule.example.base, broken(rule.example)))
    mine = [one for one in found if one.rule == rule.name]
    assert mine, [sentence(one) for one in found]
    lines = (tmp_path / "model.xml").read_text().splitlines()
    for one in mine:
        assert "{" not in sentence(one) + remedy(one)
        assert (sentence(one) != rule.says) == ("{" in rule.says)
        assert 1 <= one.spot.line <= len(lines)


def test_of_a_value_that_makes_the_next_one_nothing_is_said() -> None:
    """The condition of `while_loop` reads the new number, which an If makes of the old one."""
    assert lint(SAMPLES / "while_loop" / "model.xml") == ()


@each_row("name", sorted(path.parent.name for path in SAMPLES.glob("*/model.xml")))
def test_samples_break_no_rule_but_for_notes(name: str, tmp_path: Path) -> None:
    found = lint(SAMPLES / name / "model.xml")
    assert {one.severity for one in found} <= {Severity.NOTE}, [sentence(one) for one in found]
    (tmp_path / "model.xml").write_bytes((SAMPLES / name / "model.xml").read_bytes())
    without = lint(tmp_path / "model.xml")  # without the .bin, too
    assert {one.severity for one in without} <= {Severity.NOTE}, [sentence(one) for one in without]


def test_ids_and_names_are_unique_and_there_are_enough() -> None:
    known = rules()
    assert len({rule.id for rule in known.values()}) == len(known) >= 50
    assert {rule.severity for rule in known.values()} == set(Severity)


def test_ids_and_names_are_unique_and_each_rule_is_asked() -> None:
    content = json.loads((files("stepper.diagnosis") / "rules.json").read_text())
    ids = [one["id"] for one in content]
    assert ids == sorted(set(ids)) and len(rules()) == len(content)
    asked = {finder.rule.name for scope in SubjectKind for finder in rule_finders(scope)}
    of_comparisons = {"differs-from-reference", "reference-stops", "runtime-departs"}
    others = of_comparisons | {"converter-ignores", "state-not-given-back"}
    assert asked == {rule.name for rule in rules().values() if rule.scope is not SubjectKind.FILE} - others
