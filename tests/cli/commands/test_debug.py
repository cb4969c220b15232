"""`stepper debug` and `stepper run --break`: scripts, JSON, exit codes, the prompt on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call, ended, program
from tests.engine.subjects import endless, endless_with_branch
from tests.models import Graph
from tests.terminals import is_readable

ROOT = Path(__file__).parents[3]
X = "x=[1,2,3,4,5]"
COLLATZ = ("sample_models/while_loop/model.xml", "--input", "start=27")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "commands"


# --- scripts --------------------------------------------------------------------------------------------------------


def test_a_script_answers_on_stdout(call: Call, model: Path, script: Path) -> None:
    script.write_text("break added if total < -4  # comment\n\ncontinue\nprint total\nquit\nnonsense\n", "utf-8")
    answers = (
        "breakpoint 1: break added if total < -4\n"
        "tick 12  model > Loop 'sums' #2\n"
        "  after Add 'added' = f32[1] [-11.]\n"
        "  next  Multiply 'doubled'\n"
        "  breakpoint 1: Add 'added' ran in iteration 2 of Loop 'sums': 'total < -4' is true\n"
        "f32[1]\n"
        "[-8.]\n"
    )
    assert call("debug", model, "--input", X, "--script", script) == (0, answers, "")


def test_a_script_that_fails_ends_with_the_line_and_code_2(model: Path, script: Path) -> None:
    script.write_text("step\n\nprint added +\nstep\n", encoding="utf-8")
    called = ended(program("debug", model, "--input", X, "--script", script))
    assert called.code == 2 and called.out.startswith("tick 1  model\n") and "tick 2" not in called.out
    assert (
        called.err
        == f"stepper: {script}, line 3: expected a number, a name or '(', found the end\n  added +\n         ^\n"
    )


def test_a_failing_model_ends_a_script_with_its_own_code(call: Call, model: Path, script: Path) -> None:
    script.write_text("last\n", encoding="utf-8")
    called = call("debug", model, "--input", X, "--max-iterations", 2, "--script", script)
    assert called.code == 4 and "line 1" in called.err


def test_a_script_comes_from_stdin(model: Path) -> None:
    process = program("debug", model, "--input", X, "--script", "-", stdin=-1)
    assert process.stdin is not None
    process.stdin.write(b"step 2\nnonsense\n")
    process.stdin.close()
    process.stdin = None
    called = ended(process)
    assert called.code == 2 and called.err.startswith("stepper: stdin, line 2: there is no command 'nonsense'")


def test_errors_do_not_end_a_conversation(model: Path) -> None:
    process = program("debug", model, "--input", X, stdin=-1)
    assert process.stdin is not None
    process.stdin.write(b"nonsense\nstep\n\nprint )\nstep\n")
    process.stdin.close()
    process.stdin = None
    called = ended(process)
    assert called.code == 2 and [line for line in called.out.splitlines() if line.startswith("tick")] == [
        "tick 1  model",
        "tick 2  model > Loop 'sums'",
        "tick 3  model > Loop 'sums' #0",
    ]
    lines = called.err.splitlines()
    assert lines[0].startswith("line 1: there is no command 'nonsense'") and "^" in called.err
    assert any(line.startswith("line 4: ") for line in lines)


@pytest.mark.parametrize("words", [(), ("--script", "-"), ("--script", "commands")])
def test_a_byte_order_mark_before_the_commands_is_none_of_them(
    model: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    content = b"\xef\xbb\xbfstep\nstep\n"
    (tmp_path / "commands").write_bytes(content)
    process = program("debug", model, "--input", X, *words, stdin=-1, cwd=tmp_path)
    assert process.stdin is not None
    process.stdin.write(content)
    process.stdin.close()
    process.stdin = None
    called = ended(process)
    assert called.code == 0 and "tick 2  model > Loop 'sums'" in called.out and not called.err


def test_a_missing_input_or_script_is_said_at_once(call: Call, model: Path) -> None:
    assert "--input 'x=" in call("debug", model, "--script", "-").err
    called = call("debug", model, "--input", X, "--script", "nowhere")
    assert called.code == 2 and called.err == "stepper: nowhere: cannot be read: there is no such file\n"


# --- JSON -----------------------------------------------------------------------------------------------------------


def strict(text: str) -> list[Any]:
    def refuse(word: str) -> None:
        raise ValueError(word)

    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def test_json_is_one_object_a_line(call: Call, model: Path, script: Path) -> None:
    script.write_text('log added "{iter}: {added}"\nwatch total\nrun-to sums@2\np total / 0\nfind added < 0\n', "utf-8")
    called = call("debug", model, "--input", X, "--script", script, "--json")
    answers = strict(called.out)
    assert called.code == 0 and all(answer["schema"] == 1 for answer in answers)
    logged = [answer["log"] for answer in answers if "log" in answer]
    assert [(one["text"], one["breakpoint"], one["tick"]) for one in logged] == [("0: -1.0", 1, 4), ("1: -4.0", 1, 8)]
    spoken = [answer for answer in answers if "command" in answer]
    assert [answer["command"] for answer in spoken] == script.read_text(encoding="utf-8").splitlines()
    assert spoken[2]["stop"]["iteration"] == 2 and spoken[2]["stop"]["watches"]["total"]["text"] == "[-8.]"
    assert spoken[3]["answer"]["values"] == ["-Infinity"]
    assert spoken[4]["answer"]["moments"][0]["iteration"] == 0


def test_an_error_is_an_object_too(call: Call, script: Path, model: Path) -> None:
    script.write_text("print (\n", encoding="utf-8")
    called = call("debug", model, "--input", X, "--script", script, "--json")
    (answer,) = strict(called.out)
    assert called.code == answer["error"]["exit_code"] == 2 and "^" in answer["error"]["message"]


# --- run --break ----------------------------------------------------------------------------------------------------


def test_a_break_that_is_hit_is_a_finding(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    called = call("run", *COLLATZ, "--break", "when number_next > 9000")
    assert called.code == 1 and called.err == ""
    assert called.out == (
        "tick 878  model > Loop 'until_one' #76\n"
        "  after If 'number_next' = i64[] 9232\n"
        "  next  Maximum 'peak_next'\n"
        "  breakpoint 1: 'number_next > 9000' became true in iteration 76 of Loop 'until_one'\n"
    )


def test_breaks_that_are_not_hit_change_nothing_of_the_report(call: Call, model: Path) -> None:
    plain = call("run", model, "--input", X)
    assert call("run", model, "--input", X, "--break", "nan", "--break", "inf", "--break", "added if iter > 7") == plain


def test_the_first_of_several_breaks_counts_also_as_json(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    called = call("run", *COLLATZ, "--break", "nan", "--break", "until_one@5", "--json")
    found = json.loads(called.out)["break"]
    assert called.code == 1 and found["iteration"] == 5 and found["details"][0].startswith("breakpoint 2: ")


@pytest.mark.parametrize("spec", ["nothing_like_it", "added if max(", "when", ""])
def test_a_wrong_break_is_refused(call: Call, model: Path, spec: str) -> None:
    assert call("run", model, "--input", X, "--break", spec).code == 2


# --- the prompt on a terminal ---------------------------------------------------------------------------------------


class Terminal:
    """`stepper debug` at a terminal of its own."""

    def __init__(self, *words: object, state: Path | None = None) -> None:
        self._mine, theirs = pty.openpty()
        environment = {"TERM": "dumb", "PYTHONPATH": str(ROOT)}
        environment |= {} if state is None else {"XDG_STATE_HOME": str(state)}
        words = (*words, *(["--no-keep"] if state is None else []))
        self.process = program("debug", *words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)

    def until(self, pattern: str, seconds: float = 60) -> str:
        """What comes up to the pattern."""
        text, end = "", time.monotonic() + seconds
        while not re.search(pattern, text):
            ready = is_readable(self._mine, max(0.0, end - time.monotonic()))
            if not ready:
                pytest.fail(f"no {pattern!r} in {text!r}")
            try:
                text += os.read(self._mine, 4096).decode()
            except OSError:  # the other side is closed
                pytest.fail(f"ended without {pattern!r}: {text!r}")
        return text

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._mine)

    def type(self, text: str) -> None:
        os.write(self._mine, text.encode())

    def interrupt(self) -> None:
        """As Ctrl+C a moment after what was shown last."""
        time.sleep(0.3)
        self.process.send_signal(signal.SIGINT)

    def runs(self, command: str) -> None:
        """Type a command that computes, and wait until it does: on a busy machine that takes a while."""
        self.type(f"{command}\n")
        self.until(re.escape(command) + r"\r?\n")
        begun, end = self._computed(), time.monotonic() + 20
        while self._computed() < begun + 10 and time.monotonic() < end:
            time.sleep(0.02)

    def _computed(self) -> int:
        """The time that the program has computed, in hundredths of a second; the clock's where the system has none."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        if not stat.exists():
            return int(time.monotonic() * 10)
        fields = stat.read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def code(self) -> int:
        """The exit code, once it has ended."""
        end = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < end:
            if is_readable(self._mine, 0.05):
                try:
                    os.read(self._mine, 4096)
                except OSError:
                    break
        return self.process.wait(timeout=60)


PROMPT = r"\(stepper\) $"


def test_the_prompt_repeats_and_leaves(model: Path) -> None:
    with Terminal(model, "--input", X) as terminal:
        assert "tick 0  model  (start of the run)" in terminal.until(PROMPT)
        terminal.type("step\n")
        assert "tick 1 " in terminal.until(r"tick 1 [\s\S]*" + PROMPT)
        terminal.type("\n")
        terminal.until(r"tick 2 [\s\S]*" + PROMPT)
        terminal.type("quit\n")
        assert terminal.code() == 0


@pytest.mark.parametrize("graph", [endless(), endless_with_branch()], ids=["straight", "branch"])
def test_ctrl_c_pauses_an_endless_loop_and_clears_the_line_at_the_prompt(graph: Graph, tmp_path: Path) -> None:
    with Terminal(graph.write(tmp_path)) as terminal:
        terminal.until(PROMPT)
        ticks = []
        for _ in range(2):
            terminal.runs("continue")
            terminal.interrupt()
            text = terminal.until(r"\(paused\)[\s\S]*" + PROMPT)
            ticks += [int(number) for number in re.findall(r"tick (\d+) ", text)]
        assert 0 < ticks[0] < ticks[1]
        terminal.type("break endless@5\n")
        terminal.until(r"breakpoint 1[\s\S]*" + PROMPT)
        terminal.type("half a line")
        terminal.until("half a line")
        terminal.interrupt()
        terminal.until(PROMPT)
        terminal.runs("find iter < 0 all")
        terminal.interrupt()
        terminal.until(r"not to the end of the run: paused[\s\S]*" + PROMPT)
        terminal.type("info breaks\n")
        assert "break endless@5" in terminal.until(r"hits?\)[\s\S]*" + PROMPT)
        terminal.type("quit\n")
        assert terminal.code() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("is_moving", [False, True])
def test_a_signal_that_ends_the_program_keeps_the_session_first(
    tmp_path: Path, number: signal.Signals, is_moving: bool
) -> None:
    model, state = endless().write(tmp_path), tmp_path / "state"
    with Terminal(model, state=state) as terminal:
        terminal.until(PROMPT)
        terminal.type("run-to endless@4\n")
        terminal.until(r"#4[\s\S]*" + PROMPT)
        if is_moving:
            terminal.runs("continue")
        terminal.process.send_signal(number)
        assert f"ended by {number.name}; the session is kept in {state}" in terminal.until("kept in .*/state")
        assert terminal.code() == 128 + number
    with Terminal(model, state=state) as terminal:
        told = terminal.until(PROMPT)
        assert "session restored: tick " in told and (is_moving or "Loop 'endless' #4" in told)
        terminal.type("quit\n")
        assert terminal.code() == 0


def test_a_killed_debugger_loses_nothing_of_what_was_set_up(tmp_path: Path) -> None:
    model, state = endless().write(tmp_path), tmp_path / "state"
    with Terminal(model, state=state) as terminal:
        terminal.until(PROMPT)
        for line in ("run-to endless@4", "break endless@9", "mark here", "branch other", "watch iter"):
            terminal.type(f"{line}\n")
            terminal.until(re.escape(line) + r"[\s\S]*" + PROMPT)
        terminal.process.kill()
        assert terminal.code() == -signal.SIGKILL
    with Terminal(model, state=state) as terminal:
        assert "session restored: tick 14, model > Loop 'endless' #4, branch other" in terminal.until(PROMPT)
        terminal.type("info breaks\n")
        terminal.until(r"break endless@9[\s\S]*" + PROMPT)
        terminal.type("info marks\n")
        terminal.until(r"here  tick 14[\s\S]*" + PROMPT)


def test_the_end_of_the_input_leaves(model: Path) -> None:
    with Terminal(model, "--input", X) as terminal:
        terminal.until(PROMPT)
        terminal.type("\x04")
        assert terminal.code() == 0


def test_ctrl_c_ends_a_script(tmp_path: Path) -> None:
    script = tmp_path / "commands"
    script.write_text("step\ncontinue\nstep\n", encoding="utf-8")
    process = program("debug", endless().write(tmp_path), "--script", script)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"tick 1 ")
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    called = ended(process)
    assert called.code == 130 and called.err.startswith("stepper: interrupted at line 2: model > Loop 'endless' #")
