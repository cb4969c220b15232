"""What the README alone promises: its command and the output shown below it. Its examples run in tests/test_docs.py."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path

import pytest

from stepper.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks() -> list[str]:
    return re.findall(r"^```\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


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


def test_the_readme_can_be_read_in_one_go() -> None:
    assert len(README.splitlines()) <= 150
