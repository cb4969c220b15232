"""docs/develop/add-a-figure-format.md, done in a copy of the program: one new file and one line are enough."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from lxml import etree

from tests.export.runs import SAMPLES, picture

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "develop" / "add-a-figure-format.md"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, to which the page has been applied."""
    folder = tmp_path_factory.mktemp("added")
    shutil.copytree(ROOT / "stepper", folder / "stepper", ignore=shutil.ignore_patterns("__pycache__"))
    fences = re.findall(
        r"^    ```(?:py|text)\n(.*?)^    ```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    module, line = map(textwrap.dedent, fences)
    (folder / "stepper" / "export" / "writers" / "graphml.py").write_text(module)
    kinds = folder / "stepper" / "files" / "file_kinds.py"
    kinds.write_text(kinds.read_text().replace("_FORMATS = (\n", f"_FORMATS = (\n    {line}", 1))
    return folder


def export(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stepper", "export", *words]
    return subprocess.run(command, cwd=program, capture_output=True, text=True, timeout=120, check=False)


def test_the_new_format_is_written_by_its_suffix_and_by_its_name(program: Path, tmp_path: Path) -> None:
    model, file = SAMPLES / "for_loop" / "model.xml", tmp_path / "figure.graphml"
    written = export(program, str(model), "--view", "rolled", "-o", str(file))
    assert written.returncode == 0, written.stderr
    printed = export(program, str(model), "--view", "rolled", "--as", "graphml", "-q")
    assert printed.stdout == file.read_text()
    tree, figure = etree.fromstring(file.read_bytes()), picture("for_loop", "rolled").figure
    assert [node.get("id") for node in tree.iter("{*}node")] == [node.id for node in figure.nodes]
    assert sum(1 for _ in tree.iter("{*}edge")) == len(figure.edges)


def test_the_new_format_is_among_the_choices_and_its_suffix_is_its_own(program: Path, tmp_path: Path) -> None:
    model = str(SAMPLES / "for_loop" / "model.xml")
    assert "graphml" in export(program, "--help").stdout
    assert "graphml" in export(program, model, "--as", "nonsense").stderr
    refused = export(program, model, "--as", "svg", "-o", str(tmp_path / "x.graphml"))
    assert refused.returncode == 2 and ".graphml is the suffix of GraphML" in refused.stderr
