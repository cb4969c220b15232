"""The program as a shell sees it: streams, signals, exit codes, files that cannot be written."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stepper.cli import main
from tests.cli.conftest import Call, ended, program
from tests.engine.subjects import endless, endless_with_branch
from tests.models import Graph
from tests.tables import each_row

INPUT = ("--input", "x=[1,2,3,4,5]")


def test_a_run_succeeds_with_code_0(model: Path) -> None:
    called = ended(program("run", model, *INPUT))
    assert (called.code, called.err) == (0, "") and called.out.startswith("outputs\n  final  f32[1]  114\n")


@each_row(
    "words",
    [
        [],
        ["unknown"],
        ["run"],
        ["run", "m.xml", "--unknown"],
        ["run", "m.xml", "--rules", "other"],
        ["run", "m.xml", "--max-iterations", "0"],
        ["run", "m.xml", "--max-iterations", "-1"],
        ["run", "m.xml", "--largest-tensor", "much"],
        ["run", "m.xml", "--largest-tensor", "0GB"],
        ["run", "m.xml", "--json", "-o", "-"],
        ["inspect"],
    ],
)
def test_wrong_words_end_with_code_2(call: Call, words: list[str]) -> None:
    called = call(*words)
    assert called.code == 2 and called.err


@each_row("word", ["--help", "--version", "run --help", "inspect --help"])
def test_help_and_version_are_data(call: Call, word: str) -> None:
    called = call(*word.split())
    assert called.code == 0 and called.out and not called.err


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; from stepper.cli.parser import parser; parser(); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode == 0


@each_row("command", ["run", "inspect"])
def test_a_model_that_cannot_be_read_ends_with_code_3(call: Call, tmp_path: Path, command: str) -> None:
    missing = call(command, tmp_path / "none.xml")
    assert missing.code == 3 and missing.err.startswith("stepper: ") and "none.xml" in missing.err
    (tmp_path / "bad.xml").write_text("<net version='11'><layers>")
    bad = call(command, tmp_path / "bad.xml")
    assert bad.code == 3 and "bad.xml" in bad.err and bad.err.count("\n") == 1


def wait_until_it_runs(process: subprocess.Popen[bytes]) -> None:
    """Until an endless run has taken more of the processor than it takes to start; on a busy machine that is long."""
    account = Path(f"/proc/{process.pid}/stat")
    if not account.exists():
        time.sleep(3)
        return
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        user, system = account.read_text().rpartition(")")[2].split()[11:13]
        if (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") > 1:
            return
        time.sleep(0.05)


@each_row("graph", [endless, endless_with_branch])
def test_an_interrupt_ends_an_endless_loop_with_code_130_and_its_place(
    tmp_path: Path, graph: Callable[[], Graph]
) -> None:
    path = graph().write(tmp_path)
    process = program("run", path, "-o", tmp_path / "out.npz")
    wait_until_it_runs(process)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    called = ended(process)
    assert called.code == 130 and time.monotonic() - begun < 10  # of a loop without an end
    assert called.err.startswith("stepper: interrupted at model > Loop 'endless' #") and called.err.count("\n") == 1
    assert called.err.endswith("; no outputs were written\n") and not called.out
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.bin", "model.xml"]


def test_an_interrupt_in_this_process_is_reported_too(call: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_path: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stepper.cli.commands.run.opened_model", interrupted)
    assert call("run", model, *INPUT) == (130, "", "stepper: interrupted\n")


def on_a_terminal(path: Path, *words: str) -> str:
    """What an endless run writes to stderr where that is a terminal, until it is interrupted; without its colours."""
    ours, theirs = pty.openpty()
    process = program("run", path, *words, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    wait_until_it_runs(process)
    time.sleep(1)  # progress comes after half a second, and then every fifth of one
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=10) == 130
    found = b""
    try:
        while chunk := os.read(ours, 4096):
            found += chunk
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", found.decode())


def test_a_terminal_shows_where_a_long_run_is_and_is_cleared_at_the_end(tmp_path: Path) -> None:
    text = on_a_terminal(endless().write(tmp_path))
    assert text.startswith("\r\x1b[2Kmodel > Loop 'endless' #")
    progress, message = text.rsplit("\r\x1b[2K", 1)
    assert progress.count("\x1b[2K") >= 2 and message.startswith("stepper: interrupted at model > Loop 'endless'")


def test_a_quiet_run_shows_nothing_on_a_terminal(tmp_path: Path) -> None:
    assert on_a_terminal(endless().write(tmp_path), "--quiet").startswith("stepper: interrupted at ")


def test_outputs_can_go_to_stdout_and_the_report_then_to_stderr(model: Path) -> None:
    process = program("run", model, *INPUT, "--outputs", "-")
    out, err = process.communicate(timeout=30)
    with np.load(io.BytesIO(out)) as arrays:
        assert list(arrays) == ["final", "scan"] and arrays["final"].tolist() == [114]
    assert process.returncode == 0 and err.decode().startswith("outputs\n  final  f32[1]  114\n")


@each_row("words", [(), ("--json",), ("-o", "-")])
def test_a_reader_that_goes_away_ends_the_program_quietly(tmp_path: Path, words: tuple[str, ...]) -> None:
    net = Graph()
    for index in range(200):
        net.result(net.parameter(f"x{index}", dims=(1000,)), f"out{index}")
    reader, writer = os.pipe()
    os.close(reader)
    process = program("run", net.write(tmp_path), "--input", "*=ones", *words, stdout=writer)
    os.close(writer)
    called = ended(process)
    assert called.code == 0 and (called.err == "" or words == ("-o", "-"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("words", [(), ("--json",), ("-o", "-")])
def test_a_full_disk_is_a_message(model: Path, words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        called = ended(program("run", model, *INPUT, *words, stdout=full))
    assert called.code == 2
    assert called.err.endswith("stepper: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_stream_that_the_shell_closed_is_no_failure(model: Path, tmp_path: Path, stream: str) -> None:
    target = tmp_path / "out.npz"
    command = f'exec "$0" -m stepper run "$1" "$2" "$3" -o "$4" {stream}>&-'
    root = Path(__file__).parents[2]
    shell = ["sh", "-c", command, sys.executable, str(model), *INPUT, str(target)]
    found = subprocess.run(shell, capture_output=True, cwd=root, check=False, timeout=30)
    assert found.returncode == 0 and target.exists()
    assert found.stdout.startswith(b"outputs") == (stream == "2") and found.stderr == b""


@each_row("json_wanted", [True, False])
def test_letters_that_the_output_lacks_are_written_as_escapes(tmp_path: Path, json_wanted: bool) -> None:
    net = Graph()
    net.result(net.parameter("é"), "ü∑")
    words = ["run", net.write(tmp_path), "--input", "é=1", *(["--json"] if json_wanted else [])]
    called = ended(program(*words, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}))
    assert called.code == 0 and called.out.isascii()
    if json_wanted:
        assert json.loads(called.out)["outputs"][0]["name"] == "ü∑"


@pytest.mark.parametrize("target", ["none/out.npz", "folder"])
def test_outputs_that_cannot_be_written_leave_nothing_behind(
    call: Call, model: Path, tmp_path: Path, target: str
) -> None:
    (tmp_path / "folder").mkdir()
    called = call("run", model, *INPUT, "-o", tmp_path / target)
    assert called.code == 2 and called.err.startswith(f"stepper: {tmp_path / target}: cannot be written: ")
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["folder", "model.bin", "model.xml"]


def test_a_failure_while_writing_leaves_the_old_file_and_no_partial_one(
    call: Call, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.npz"
    target.write_bytes(b"old")

    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.lib.format.write_array", full)
    called = call("run", model, *INPUT, "-o", target)
    assert called.code == 2 and called.err == f"stepper: {target}: cannot be written: No space left on device\n"
    assert called.out.startswith("outputs\n  final  f32[1]  114\n")
    assert target.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 3


def test_a_written_file_has_the_usual_rights(call: Call, model: Path, tmp_path: Path) -> None:
    target, plain = tmp_path / "out.npz", tmp_path / "plain"
    plain.touch()
    call("run", model, *INPUT, "-o", target)
    assert target.stat().st_mode == plain.stat().st_mode


def test_running_out_of_memory_ends_with_code_4(call: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(_path: object) -> None:
        raise MemoryError("too much")

    monkeypatch.setattr("stepper.cli.commands.run.opened_model", exhausted)
    assert call("run", model, *INPUT) == (4, "", "stepper: out of memory: too much\n")


def test_main_takes_its_words_from_the_command_line(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["stepper", "inspect", str(model)])
    assert main() == 0 and capsys.readouterr().out.startswith("model tiny, IR version 11")


@each_row(("command", "own", "wanted"), [("run", "", "20"), ("run", "7", "7"), ("capture", "", None)])
def test_idle_threads_of_blas_sleep_early_unless_the_environment_says_how_long(
    model: Path, command: str, own: str, wanted: str | None
) -> None:
    """What the environment says when numpy, and with it BLAS, is loaded, which reads it only then."""
    looks = (
        "import os, sys; from importlib import abc\n"
        "class Look(abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'numpy': print('loaded with', os.environ.get('OPENBLAS_THREAD_TIMEOUT'))\n"
        "sys.meta_path.insert(0, Look())\n"
        "from stepper.cli import main; main()"
    )
    says = "import os; print('loaded with', os.environ.get('OPENBLAS_THREAD_TIMEOUT'))"
    words = {"run": ["run", str(model), *INPUT], "capture": ["capture", "--", sys.executable, "-c", says]}[command]
    environment = {name: text for name, text in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    environment |= {"OPENBLAS_THREAD_TIMEOUT": own} if own else {}
    done = subprocess.run(
        [sys.executable, "-c", looks, *words], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert f"loaded with {wanted}" in done.stdout.splitlines(), done.stderr
