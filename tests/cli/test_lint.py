"""`stepper lint`: exit codes, selection, settings of a project, explanations, JSON and SARIF."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepper.diagnosis.rule import Rule, rules
from tests.cli.conftest import Call
from tests.diagnosis.lint.rule_examples import broken, sound, weights
from tests.json_answers import checked
from tests.tables import each_row

OF_FILES = [name for name, rule in rules().items() if not rule.scope.is_of_runs]


def model(folder: Path, *names: str) -> Path:
    """A model that breaks these rules, of which the first gives the model."""
    chosen = [rules()[name] for name in names]
    text = sound("counting") if not chosen else broken(_example(chosen[0]))
    for rule in chosen[1:]:
        example = _example(rule)
        assert example.right in text
        text = text.replace(example.right, example.wrong, 1)
    path = folder / "model.xml"
    path.write_text(text)
    path.with_suffix(".bin").write_bytes(weights("counting"))
    return path


def _example(rule: Rule):  # type: ignore[no-untyped-def]
    assert rule.example is not None and rule.example.base == "counting"
    return rule.example


def test_the_exit_code_is_that_of_the_gravest(call: Call, tmp_path: Path) -> None:
    assert call("lint", model(tmp_path)).code == 0
    assert call("lint", model(tmp_path)).out == "nothing is wrong\n"
    noted = call("lint", model(tmp_path, "output-from-old-state"), "--ignore", "N204")
    assert noted.code == 0 and noted.out.endswith("1 note\n")
    assert call("lint", model(tmp_path, "trip-count-negative")).code == 1
    two = call("lint", model(tmp_path, "two-back-edges-to-one-parameter", "unknown-purpose"))
    assert two.code == 1 and "B201" in two.out and "P210" in two.out, "all faults in one go"
    assert "Loop 'counting': two back edges lead to Parameter 'h'" in two.out


def test_rules_are_selected_and_ignored_by_name_id_and_beginning(call: Call, tmp_path: Path) -> None:
    path = model(tmp_path, "two-back-edges-to-one-parameter", "trip-count-negative")
    for words, left in (
        (("--select", "B"), {"B201"}),
        (("--select", "trip-count-negative"), {"C205"}),
        (("--ignore", "C2"), {"B201"}),
        (("--select", "C205", "--ignore", "C205"), set()),
    ):
        answer = checked("lint", call("lint", path, *words, "--json").out)
        assert {one["id"] for one in answer["findings"]} == left, words
    wrong = call("lint", path, "--select", "loop-never-end")
    assert wrong.code == 2 and "near are loop-never-ends" in wrong.err


@each_row(
    ("name", "text"),
    [
        ("stepper.toml", '[lint]\nignore = ["C205"]\n'),
        ("pyproject.toml", '[tool.stepper.lint]\nselect = ["B"]\n'),
    ],
)
def test_a_project_has_settings(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    path = model(tmp_path, "two-back-edges-to-one-parameter", "trip-count-negative")
    (tmp_path / name).write_text(text)
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    answer = checked("lint", call("lint", path, "--json").out)
    assert {one["id"] for one in answer["findings"]} == {"B201"}
    (tmp_path / name).write_text(text.replace("ignore", "ignores").replace("select", "selects"))
    assert call("lint", path).code == 2 and "it may have select and ignore" in call("lint", path).err


def test_a_finding_says_where_it_stands_and_what_to_do(call: Call, tmp_path: Path) -> None:
    path = model(tmp_path, "two-back-edges-to-one-parameter")
    (found,) = checked("lint", call("lint", path, "--json").out)["findings"]
    assert 'to-layer="2"' in path.read_text().splitlines()[found["line"] - 1]
    assert found["loop"]["name"] == "counting" and found["layer"]["name"] == "h" and found["part"] == "back edge"
    assert found["details"]["second"]["name"] == "y" and found["remedy"]


def test_every_rule_is_listed_and_explained(call: Call) -> None:
    listed = checked("lint", call("lint", "--rules", "--json").out)["rules"]
    assert [one["name"] for one in listed] == OF_FILES
    explained = call("lint", "--explain", "B201").out
    assert "right (in a Loop)" in explained and 'from-layer="12"' in explained
    assert call("lint").code == 2


@each_row("name", OF_FILES)
def test_the_examples_of_an_explanation_have_a_tag_in_each_line(call: Call, name: str) -> None:
    example = call("lint", "--explain", name).out.partition("\n  right (in a ")[2]
    assert example and max(map(len, example.splitlines())) <= 160


SARIF = Path(__file__).parent / "sarif-2.1.0.json"
"""The schema of the standard, as `@microsoft/sarif-multitool-linux` 5.7.0 ships it (MIT License)."""


def test_sarif_is_as_its_standard_says(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SARIF.read_text(encoding="utf-8"))
    folder = tmp_path / "a b#ü"
    folder.mkdir()
    path = model(folder, "two-back-edges-to-one-parameter", "trip-count-negative")
    monkeypatch.chdir(tmp_path)
    for name in (path, path.relative_to(tmp_path)):
        call("lint", name, "--sarif", tmp_path / "found.sarif")
        log = json.loads((tmp_path / "found.sarif").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(log)
        uris = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in log["runs"][0]["results"]}
        assert uris == {path.as_uri() if name is path else "a%20b%23%C3%BC/model.xml"}


def test_sarif_names_rules_and_lines(call: Call, tmp_path: Path) -> None:
    path = model(tmp_path, "two-back-edges-to-one-parameter", "trip-count-negative")
    assert call("lint", path, "--sarif", tmp_path / "found.sarif").code == 1
    log = json.loads((tmp_path / "found.sarif").read_text())
    (run,) = log["runs"]
    known = run["tool"]["driver"]["rules"]
    assert log["version"] == "2.1.0" and len(known) == len(OF_FILES)
    assert {one["ruleId"]: one["level"] for one in run["results"]} == {"B201": "error", "C205": "warning"}
    for one in run["results"]:
        assert known[one["ruleIndex"]]["id"] == one["ruleId"]
        place = one["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == path.as_uri() and place["region"]["startLine"] > 1
    over = call("lint", path, "--sarif", path)
    assert over.code == 2 and path.read_text().startswith("<?xml"), "a model is not written over"


def test_a_file_that_is_no_model_is_a_finding(call: Call, tmp_path: Path) -> None:
    (tmp_path / "broken.xml").write_text("<net")
    found = call("lint", tmp_path / "broken.xml")
    assert found.code == 1 and "F101 not-an-ir" in found.out
    absent = call("lint", tmp_path / "absent.xml")
    assert absent.code == 3 and "there is no such file" in absent.err
