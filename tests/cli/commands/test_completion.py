"""Completion, tried in the shells themselves: what stands on the line after a Tab."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepper.cli.parser import command_parsers
from stepper.cli.shell_completion import _COMPLETERS
from tests.cli.conftest import ROOT, Call
from tests.terminals import is_readable

SECONDS = 60.0
MODEL = "sample_models/for_loop/model.xml"
COMPLETED = {
    "stepper compl": "stepper completion",
    "stepper run --rul": "stepper run --rules",
    "stepper run --rules op": "stepper run --rules openvino",
    "stepper inspect sample_models/neste": "stepper inspect sample_models/nested_loop/",
    "stepper inspect sample_models/for_loop/m": f"stepper inspect {MODEL}",
    "stepper sample_models/for_loop/m": f"stepper {MODEL}",
    f"stepper {MODEL} --asc": f"stepper {MODEL} --ascii",
    f"stepper run {MODEL} --inputs sample_models/for_loop/inp": (
        f"stepper run {MODEL} --inputs sample_models/for_loop/inputs.npz"
    ),
    f"stepper run {MODEL} --input princ": f"stepper run {MODEL} --input principal=",
    f"stepper run {MODEL} --break stu": f"stepper run {MODEL} --break stuck",
    f"stepper export {MODEL} --loop y": f"stepper export {MODEL} --loop years",
    "stepper print run.sqlite balance_r": "stepper print run.sqlite balance_row",
    "stepper help expr": "stepper help expressions",
    "stepper run sample_models/for_loop --input princ": "stepper run sample_models/for_loop --input principal=",
    "stepper sample_models/for_loop --asc": "stepper sample_models/for_loop --ascii",
    "stepper capture --when err": "stepper capture --when error",
    "stepper cases sample_mod": "stepper cases sample_models/",
}
"""A line as it is typed, and as it is after a Tab."""

needs_fish = pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, the samples, and a recording."""
    path = tmp_path_factory.mktemp("shell")
    program = path / "bin" / "stepper"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m stepper "$@"\n')
    program.chmod(0o755)
    (path / "sample_models").symlink_to(ROOT / "sample_models")
    words = ["run", MODEL, "--inputs", "sample_models/for_loop/inputs.npz", "--trace", "run.sqlite", "-q"]
    subprocess.run([program, *words], cwd=path, check=True, capture_output=True, timeout=SECONDS)
    return path


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), "TERM": "dumb"}


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self._terminal, theirs = pty.openpty()
        self._program = subprocess.Popen(
            words,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=environment(folder),
            start_new_session=True,
        )
        os.close(theirs)

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def read_to(self, pattern: str) -> str:
        """What the first group of the pattern is, once it is printed."""
        printed, end = "", time.monotonic() + SECONDS
        while time.monotonic() < end:
            if is_readable(self._terminal, 0.2):
                printed += os.read(self._terminal, 4096).decode(errors="replace")
                if found := re.search(pattern, printed.replace("\r", "")):
                    return found[1]
        pytest.fail(f"{pattern} was not printed: {printed[-2000:]!r}")

    def close(self) -> None:
        self._program.kill()
        self._program.wait(SECONDS)
        os.close(self._terminal)


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], ""),
    "zsh": (["zsh", "-f", "-i"], "unsetopt zle_bracketed_paste 2>/dev/null; autoload -Uz compinit; compinit -u -D; "),
}


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest, folder: Path) -> Iterator[Shell]:
    words, prepared = SHELLS[request.param]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    opened = Shell(words, folder)
    opened.type(f'{prepared}eval "$(stepper completion {request.param})"; echo rea""dy\n')
    opened.read_to("(ready)")
    yield opened
    opened.close()


@pytest.mark.parametrize("typed", COMPLETED)
def test_bash_and_zsh_complete_the_line(shell: Shell, typed: str) -> None:
    # Ctrl+A goes to the beginning of the line, which then is printed.
    shell.type(f"{typed}\t\x01echo '<'\n")
    shell.type("\n")
    assert shell.read_to(r"\n< *(stepper[^\n]*?) *\n") == COMPLETED[typed]


@needs_fish
@pytest.mark.parametrize("typed", COMPLETED)
def test_fish_completes_the_line(folder: Path, typed: str) -> None:
    command = f"stepper completion fish | source; complete -C '{typed}'"
    words = ["fish", "--no-config", "-c", command]
    printed = subprocess.run(
        words, cwd=folder, env=environment(folder), capture_output=True, text=True, check=True, timeout=SECONDS
    ).stdout
    last = typed.rpartition(" ")[2]
    offered = [line.partition("\t")[0] for line in printed.splitlines()]
    assert [typed.removesuffix(last) + one for one in offered] == [COMPLETED[typed]]


def test_the_script_is_one_that_bash_can_read(call: Call) -> None:
    printed = call("completion", "bash")
    assert printed.code == 0
    assert subprocess.run(["bash", "-n"], input=printed.out, text=True, check=False, timeout=SECONDS).returncode == 0


def test_completers_are_of_options_that_there_are() -> None:
    known = {action.dest for one in command_parsers().values() for action in one.actions}
    assert set(_COMPLETERS) <= known
