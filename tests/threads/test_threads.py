"""Each thread: its model, the commands by which it is found, and the page of the documentation that tells of them.

STEPPER_RECORD=1 writes the page anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from stepper.cli import main
from tests.threads.threads import THREADS, Thread

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "threads.md"
_INTRODUCTION = """# What people lost time with

In these threads people looked for the fault of a loop. `tests/threads/` has a small model of each fault, and a test
runs the command that finds it. For thread 8 the command names only the output.

| thread | what went wrong | command | what it says |
|---|---|---|---|
"""


@pytest.mark.parametrize("thread", THREADS, ids=lambda one: str(one.number))
def test_the_command_says_what_is_wrong(
    thread: Thread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    thread.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    code, out = 0, ""
    for command in thread.commands:
        code = main(command.split())
        out = capsys.readouterr().out
    assert " ".join(thread.says.split()) in " ".join(_said_first(thread.commands[-1], out).split()), out
    assert code == thread.code


def _said_first(command: str, out: str) -> str:
    """The first finding, or all of an answer that is no finding."""
    name = command.partition(" ")[0]
    if name in ("lint", "check", "inspect"):
        return out.splitlines()[0]
    return out.partition("\niterations (ours")[0].partition("\noutputs")[0] if name == "compare" else out


def test_an_entry_to_no_layer_is_told_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The input, whose entry it is, has one: only an input beside it that has none is told, too."""
    THREADS[12].make(tmp_path)
    path = tmp_path / "model.xml"
    assert main(["lint", str(path)]) == 1
    said = capsys.readouterr().out
    assert "unknown-body-layer" in said.splitlines()[0] and "input-without-entry" not in said
    text = path.read_text(encoding="utf-8")
    text, removed = re.subn(r'<input external_port_id="1"[^>]*>', "", text)
    assert removed == 1
    path.write_text(text, encoding="utf-8")
    assert main(["lint", str(path)]) == 1
    assert "input 1 has no entry in the port map" in capsys.readouterr().out


def test_all_threads_are_there_with_a_command() -> None:
    assert [one.number for one in THREADS] == list(range(1, 36))
    assert all(one.commands and one.says for one in THREADS)


def row(thread: Thread) -> str:
    links = ", ".join(
        f"[{repository.partition('/')[2]}#{number}](https://github.com/{repository}/issues/{number})"
        for repository, number in thread.links
    )
    commands = "<br>".join(f"`stepper {command}`" for command in thread.commands)
    return f"| {thread.number}: {links} | {thread.fault} | {commands} | `{thread.says}` |"


def test_the_page_tells_of_each() -> None:
    text = _INTRODUCTION + "\n".join(map(row, THREADS)) + "\n"
    if os.environ.get("STEPPER_RECORD"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text
