"""The rule that the documentation adds is found in its example: in a copy of the program with the page's three blocks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "develop" / "add-a-lint-rule.md"
SCRIPT = """
import json, sys
from pathlib import Path
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.rule import rules
from stepper.diagnosis.texts import sentence
from tests.diagnosis.lint.rule_examples import broken
from tests.diagnosis.lint.test_rules import written
example = rules()[sys.argv[1]].example
found = lint(written(Path(sys.argv[2]), example.base, broken(example)))
print(json.dumps([[rules()[one.rule].id, sentence(one)] for one in found if one.rule == sys.argv[1]]))
"""


def block(language: str) -> str:
    """The only block of a language on the page, without its indentation."""
    (found,) = re.findall(
        rf"^    ```{language}\n(.*?)^    ```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return re.sub("^    ", "", found, flags=re.MULTILINE)


@pytest.mark.slow
def test_the_rule_of_the_page_is_found_in_its_example(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "stepper", tmp_path / "stepper", ignore=shutil.ignore_patterns("__pycache__"))
    diagnosis, rule = tmp_path / "stepper" / "diagnosis", json.loads(block("json"))
    texts = diagnosis / "rules.json"
    texts.write_text(json.dumps([*json.loads(texts.read_text(encoding="utf-8")), rule]), encoding="utf-8")
    for file, language in (("lint/control.py", "py"), ("lint/examples/examples.toml", "toml")):
        with (diagnosis / file).open("a", encoding="utf-8") as end:
            end.write(f"\n\n{block(language)}")
    paths = os.pathsep.join((str(tmp_path), str(ROOT)))
    command = [sys.executable, "-P", "-c", SCRIPT, rule["name"], str(tmp_path)]
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": paths}
    )
    assert answer.returncode == 0, answer.stderr
    ((identity, told),) = json.loads(answer.stdout)
    assert identity == rule["id"] and told == "Parameter 'x' reads its slices from the last to the first"
