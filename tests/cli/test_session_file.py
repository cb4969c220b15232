"""`stepper debug --session FILE`, and how lines fit a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from pathlib import Path

from tests.cli.conftest import ROOT, Called, ended, program
from tests.terminals import is_readable

NESTED = "sample_models/nested_loop/model.xml"
INPUTS = ("--inputs", "sample_models/nested_loop/inputs.npz")


def debugged(commands: str, *words: object, model: str = NESTED) -> Called:
    process = program("debug", ROOT / model, *words, stdin=subprocess.PIPE, cwd=ROOT)
    assert process.stdin is not None
    process.stdin.write(commands.encode())
    process.stdin.close()
    process.stdin = None
    return ended(process)


def test_a_session_goes_on_in_another_program_without_naming_the_inputs(tmp_path: Path) -> None:
    file = tmp_path / "work.session"
    first = debugged(
        "break swaps_next if swaps_next > 1\ncontinue\nwatch order\nmark here\n", *INPUTS, "--session", file
    )
    assert first.err == f"a new session, to be kept in {file}\n" and first.code == 0
    second = debugged("info breaks\nwhere\ngoto 'here\ncontinue\nquit\n", "--session", file)
    assert second.err.startswith(f"session restored from {file}: tick 29, model > Loop 'passes' #0 > ")
    assert second.code == 0
    assert "1  break swaps_next if swaps_next > 1  (1 hit)" in second.out and "tick 29" in second.out
    assert "tick 42" in second.out and "watch 1  order = [5., 1., 4., 2., 8.]" in second.out
    third = debugged("info breaks\n", "--session", file)
    assert "(2 hits)" in third.out


def test_what_does_not_fit_a_session_is_refused_with_code_3(tmp_path: Path) -> None:
    file = tmp_path / "work.session"
    debugged("step\n", *INPUTS, "--session", file)
    other = debugged("", "--session", file, model="sample_models/while_loop/model.xml")
    assert other.code == 3 and "model.xml has other contents" in other.err
    values = debugged("", "--input", "values=[1,2,3,4,5]", "--session", file)
    assert values.code == 3 and "the input 'values' is not the one that was recorded: its values differ" in values.err
    rules = debugged("", "--rules", "openvino", "--session", file)
    assert rules.code == 3 and "under --rules spec, this one is under openvino" in rules.err
    (tmp_path / "text").write_text("hello")
    assert debugged("", "--session", tmp_path / "text").code == 3
    assert debugged("", *INPUTS, "--session", tmp_path / "nowhere" / "s").code == 2


def test_a_script_that_fails_does_not_touch_the_session(tmp_path: Path) -> None:
    file, script = tmp_path / "work.session", tmp_path / "commands"
    debugged("step 3\n", *INPUTS, "--session", file)
    script.write_text("step\nnonsense\n", encoding="utf-8")
    assert ended(program("debug", ROOT / NESTED, "--session", file, "--script", script)).code == 2
    assert debugged("session save\n", "--session", file).out == f"session saved in {file}\n"
    assert "tick 3  " in debugged("next\nreverse-next\n", "--session", file).out


def test_what_breakpoints_of_a_file_do_is_shown_and_waits_for_the_user(tmp_path: Path) -> None:
    file = tmp_path / "work.session"
    debugged("break swaps_next if swaps_next > 1\ncommands 1 print `order`\n", *INPUTS, "--session", file)
    waiting = "breakpoint 1 has commands of the file; `trust 1` lets it do: print `order`"
    second = debugged("continue\n", "--session", file, "--no-keep")
    assert waiting not in second.err + second.out  # nothing is put back
    third = debugged("continue\n", "--session", file)
    assert third.err.endswith(f"; {waiting}\n") and third.out.endswith(f"{waiting}\n")
    fourth = debugged("reverse-continue\ncontinue\n", "--session", file, "--trust-session")
    assert waiting not in fourth.out + fourth.err and fourth.out.endswith("[5., 1., 4., 2., 8.]\n")


def test_rules_and_opened_sequences_are_those_of_the_session(tmp_path: Path) -> None:
    file = tmp_path / "work.session"
    debugged("step\n", *INPUTS, "--rules", "openvino", "--session", file)
    assert debugged("step\n", "--session", file).code == 0


# --- a terminal of 80 columns ---------------------------------------------------------------------------------------


def on_terminal(commands: str, columns: int) -> list[str]:
    """The lines of a conversation on a terminal of this width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    words = ("debug", ROOT / "sample_models/specification_lstm/model.xml")
    given = ("--inputs", ROOT / "sample_models/specification_lstm/inputs.npz")
    environment = {**os.environ, "TERM": "dumb"}
    environment.pop("COLUMNS", None)
    process = program(*words, *given, stdin=slave, stdout=slave, stderr=slave, env={**environment, "COLUMNS": ""})
    os.close(slave)
    out = b""
    os.write(master, commands.encode())
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if is_readable(master, 0.2):
            try:
                part = os.read(master, 65536)
            except OSError:
                break
            if not part:
                break
            out += part
        elif process.poll() is not None:
            break
    process.wait(timeout=10)
    os.close(master)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.decode()).replace("\r", "").splitlines()


def test_no_line_is_wider_than_the_terminal() -> None:
    commands = "until iter == 3\nwatch iter\nstep 4\nprint X\nexplain\ninfo ports\nprint no_such_name_here\nquit\n"
    for columns in (80, 60):
        lines = on_terminal(commands, columns)
        assert len(lines) > 20
        assert max(len(line) for line in lines if "(stepper)" not in line) <= columns
