"""The pages that add a lint rule, a command and a column of the sheet, done in a copy of the program."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "develop"
DATES = ROOT / "sample_models" / "date_normaliser"
RULE = """
import sys
from pathlib import Path
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.rule import rules
from stepper.diagnosis.texts import sentence
from tests.diagnosis.lint.rule_examples import broken
from tests.diagnosis.lint.test_rules import written
example = rules()["slices-run-backwards"].example
found = lint(written(Path(sys.argv[1]), example.base, broken(example)))
print([sentence(one) for one in found if rules()[one.rule].id == "N299"])
"""
COLUMN = """
import sys
import numpy as np
import stepper
from stepper.debug.table.columns import topic_of
from stepper.debug.table.sheets import Sheet
run = stepper.open_debugger(f"{sys.argv[1]}/model.xml", dict(np.load(f"{sys.argv[1]}/inputs.npz")))
run.last()
sheet = Sheet(run.timeline, topic_of(run.timeline, "median(h)"))
sheet.read_on(60)
print([round(one, 4) for one in sheet.cells(0, range(3))])
print([round(float(np.median(run.value(f"h@{k}"))), 4) for k in range(3)])
"""


def block(page: str, language: str) -> str:
    """The only block of a language on a page, without its indentation."""
    text = (PAGES / page).read_text(encoding="utf-8")
    (found,) = re.findall(rf"^ *```{language}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return textwrap.dedent(found)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, to which the pages have been applied."""
    folder = tmp_path_factory.mktemp("added")
    shutil.copytree(ROOT / "stepper", folder / "stepper", ignore=shutil.ignore_patterns("__pycache__"))

    def change(file: str, old: str, new: str) -> None:
        path = folder / "stepper" / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def append(file: str, text: str) -> None:
        with (folder / "stepper" / file).open("a", encoding="utf-8") as end:
            end.write(f"\n\n{text}")

    texts = folder / "stepper" / "diagnosis" / "rules.json"
    rules = [*json.loads(texts.read_text(encoding="utf-8")), json.loads(block("add-a-lint-rule.md", "json"))]
    texts.write_text(json.dumps(rules), encoding="utf-8")
    append("diagnosis/lint/control.py", block("add-a-lint-rule.md", "py"))
    append("diagnosis/lint/examples/examples.toml", block("add-a-lint-rule.md", "toml"))
    end = "COMMANDS = MappingProxyType"
    change("cli/parser.py", end, f"{block('add-a-command.md', 'py')}\n{end}")
    change("cli/parser.py", '"look": (', '"look": ("loops", ')
    append("cli/commands/loops.py", block("add-a-command.md", "python"))
    change(
        "tensors/statistics.py", '    Statistic("peak"', f'{block("add-a-table-column.md", "text")}    Statistic("peak"'
    )
    return folder


def answer(program: Path, *words: str) -> str:
    """What a run of Python with the copy prints."""
    paths = os.pathsep.join((str(program), str(ROOT)))
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-P", *words]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.slow
def test_the_rule_is_found_in_its_example(program: Path, tmp_path: Path) -> None:
    assert answer(program, "-c", RULE, str(tmp_path)) == (
        "[\"Parameter 'x' reads its slices from the last to the first\"]\n"
    )


@pytest.mark.slow
def test_the_command_answers_and_is_listed(program: Path) -> None:
    model, stepper = str(DATES / "model.xml"), ("-m", "stepper")
    assert "count the operations of loops" in answer(program, *stepper, "--help")
    told = json.loads(answer(program, *stepper, "loops", model, "--json"))
    assert answer(program, *stepper, "loops", model).splitlines() == [
        f"{one['path']}: {one['operations']} operation{'s' if one['operations'] > 1 else ''}" for one in told["loops"]
    ]
    assert max(one["operations"] for one in told["loops"]) > 50


@pytest.mark.slow
def test_the_column_has_the_numbers_of_numpy(program: Path) -> None:
    column, numpy = answer(program, "-c", COLUMN, str(DATES)).splitlines()
    assert column == numpy
