"""The README's commands and the output that it shows are those of the product."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.cli import main
from tests.debug.transcript import PROMPT, commands_in, held

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str = "") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_main_command_prints_what_the_readme_shows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, shown = blocks()[0], blocks()[1]
    words = shlex.split(command.split("&&")[-1])
    assert words[0] == ".venv/bin/stepper"
    monkeypatch.chdir(ROOT)
    assert main(words[1:]) == 0
    printed = capsys.readouterr().out.split()
    expected = shown.split()
    assert len(printed) == len(expected)
    for actual, wanted in zip(printed, expected, strict=True):
        assert actual == wanted or math.isclose(float(actual), float(wanted), rel_tol=1e-3), (actual, wanted)


def test_the_inspect_lines_are_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["inspect", "sample_models/while_loop/model.xml"]) == 0
    printed = capsys.readouterr().out.splitlines()
    shown = next(block for block in blocks() if "trip count" in block)
    assert set(shown.splitlines()) <= set(printed)


def test_the_conversation_goes_as_it_is_shown() -> None:
    shown = next(block for block in blocks() if block.startswith(PROMPT))
    assert held("nested_loop", commands_in(shown)) == shown


def test_the_comparison_says_what_the_readme_shows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of the sample `for_loop` and a copy of it that has lost its back edge."""
    folder = ROOT / "sample_models" / "for_loop"
    text = (folder / "model.xml").read_text(encoding="utf-8")
    (tmp_path / "converted.xml").write_text(re.sub(r"(<back_edges>)\s*<edge [^>]*/>", r"\1", text), encoding="utf-8")
    (tmp_path / "converted.bin").write_bytes((folder / "model.bin").read_bytes())
    monkeypatch.chdir(folder)
    assert main(["compare", str(tmp_path / "converted.xml"), "--with", "model.xml", "--inputs", "inputs.npz"]) == 1
    shown = next(block for block in blocks() if block.startswith("first difference"))
    assert capsys.readouterr().out.startswith(shown)


def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(blocks("python")[0], names)
    printed = len(capsys.readouterr().out.splitlines())
    outputs = names["outputs"]
    assert isinstance(outputs, dict)
    np.testing.assert_allclose(outputs["final_balance"], [100 * 1.01**10, 200 * 1.02**10, 300 * 1.03**10], rtol=1e-5)
    assert printed == 10
    exec(blocks("python")[1], names)
    details, iteration = capsys.readouterr().out.splitlines()
    assert "iteration 2" in details and iteration == "1"


def test_every_option_of_run_is_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    options = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out)) - {"--help", "--quiet"}
    assert options <= set(re.findall(r"--[a-z][a-z-]+", README))


def test_the_public_names_are_documented() -> None:
    assert all(f"stepper.{name}" in README for name in stepper.__all__ if name != "StepperError")
