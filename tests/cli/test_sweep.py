"""`stepper sweep` as it is called: its report, its answer as JSON, its exit codes, and going on after a kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.cli.commands.sweep import opening_words
from stepper.sweep.sweep_inputs import SeedInput
from stepper.sweep.sweep_results import SweepAbout, read_about, read_row, read_rows
from tests.cli.conftest import ROOT, Call, ended, program
from tests.json_answers import checked
from tests.sweep.sweeping import NoProcesses, balances, written_inputs


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in the present folder, with inputs in `set`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set").mkdir()
    written_inputs(tmp_path / "set", 30)
    return balances(tmp_path)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No processes: what is done in them is the same."""
    monkeypatch.setattr("stepper.cli.commands.sweep.workers_of", lambda _on, _jobs: NoProcesses())


def table(file: Path) -> list[Any]:
    return [(stored.number, stored.row, stored.stamp) for stored in read_rows(file)]


def test_two_processes_say_what_a_run_of_each_input_says(call: Call, model: Path) -> None:
    answer = checked("sweep", call("sweep", model, "--inputs", "set/*.npz", "--jobs", 2, "--json").out)
    paths = sorted(Path("set").glob("*.npz"))
    for row in answer["rows"]:
        debugger = stepper.Debugger(model, dict(np.load(paths[row["number"] - 1])))
        debugger.break_when("nan")
        assert [debugger.continue_().iteration] == row["iterations"]
    assert len(answer["rows"]) == answer["outcomes"]["stopped"] == answer["places"][0]["inputs"] > 0
    assert sum(answer["outcomes"].values()) == answer["inputs"] == 30
    shown = call("sweep", "sweep.sqlite")
    assert shown.code == 1 and "nan in Divide 'ratio'" in shown.out and "unlike most: " in shown.out
    screen = call("sweep", "sweep.sqlite", "--open")
    assert screen.code == 2 and "no terminal to draw on; stepper sweep sweep.sqlite --json has the table" in screen.err
    again = call("sweep", "sweep.sqlite", "--json")
    assert json.loads(again.out) == answer


def test_a_sweep_that_is_killed_goes_on_to_the_same_table(
    call: Call, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("stepper.cli.commands.sweep.workers_of", lambda _on, _jobs: NoProcesses())
        call("sweep", model, "--random", 600, "--break", "inf", "--out", "whole.sqlite")
    words = ("sweep", model, "--random", 600, "--break", "inf", "--jobs", 1, "--out", "parts.sqlite")
    process = program(*words)
    parts = Path("parts.sqlite")
    deadline = time.monotonic() + 60
    while not (parts.exists() and parts.stat().st_size and _count(parts)) and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    done = _count(parts)
    assert done > 0
    call(*words)
    assert table(parts) == table(Path("whole.sqlite"))


def _count(file: Path) -> int:
    try:
        return len(read_rows(file))
    except stepper.StepperError:
        return 0


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(model: Path) -> None:
    process = program("sweep", model, "--random", 100000, "--jobs", 1)
    file = Path("sweep.sqlite")
    deadline = time.monotonic() + 60
    while not _count(file) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    _out, error = process.communicate()
    assert b"interrupted: " in error and b"are done and kept in sweep.sqlite; the same command continues" in error
    assert b"Traceback" not in error and _count(file)


@pytest.mark.parametrize("later", [0.0, 0.15, 0.3, 0.5])
def test_ctrl_c_that_is_pressed_twice_is_one_line_whatever_has_begun(model: Path, later: float) -> None:
    """As of a terminal: the sweep and its processes, which may only begin, hear of it."""
    process = program("sweep", model, "--random", 100000, "--jobs", 2, start_new_session=True)
    while not Path("sweep.sqlite").exists():
        time.sleep(0.005)
    time.sleep(0.1 + later)
    for pause in (0.02, 0.0):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(pause)
    code, _out, error = (process.wait(30), *process.communicate())
    assert code in (130, -signal.SIGINT)  # the second one may come when all is done
    assert error.startswith(b"stepper: interrupted") and error.count(b"\n") == 1, error


def test_what_would_be_the_same_row_of_every_input_is_said_once(call: Call, model: Path, here: None) -> None:
    told = call("sweep", model, "--inputs", "set/*.npz", "--with", "onnx")
    assert told.code == 2 and "--with onnx compares a model that came from ONNX" in told.err
    assert not Path("sweep.sqlite").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text here")
def test_a_name_that_is_no_text_is_refused_before_anything_runs(call: Call, model: Path, here: None) -> None:
    Path("set/in000.npz").rename(os.fsdecode(b"set/bad\xff.npz"))
    told = call("sweep", model, "--inputs", "set/*.npz")
    assert told.code == 2 and told.err.startswith("stepper: set/bad .npz: its name is not UTF-8")


def test_a_folder_of_cases_is_a_set(call: Call, model: Path, here: None) -> None:
    for number in (3, 5):
        folder = Path("kept") / f"case-{number}"
        folder.mkdir(parents=True)
        shutil.copyfile(f"set/in{number:03}.npz", folder / "inputs.npz")
        shutil.copyfile(model, folder / "model.xml")
    call("sweep", model, "--inputs", "kept", "--jobs", 1)
    assert [stored.row.name for stored in read_rows(Path("sweep.sqlite"))] == ["kept/case-3", "kept/case-5"]


def test_compared_with_another_model_the_places_are_those_of_compare(call: Call, model: Path, here: None) -> None:
    other = Path("other")
    other.mkdir()
    text = model.read_text(encoding="utf-8").replace('type="Subtract"', 'type="Maximum"')
    (other / "model.xml").write_text(text, encoding="utf-8")
    shutil.copyfile(model.with_suffix(".bin"), other / "model.bin")
    words = ("--with", other / "model.xml", "--jobs", 1)
    answer = json.loads(call("sweep", model, "--inputs", "set/in00[0-4].npz", *words, "--json").out)
    assert answer["outcomes"] == {"differs": 5}
    compared = json.loads(
        call("compare", model, "--inputs", "set/in000.npz", "--with", other / "model.xml", "--json").out
    )
    first = answer["rows"][0]
    assert (first["type"], first["iterations"]) == ("Subtract", [compared["verdict"]["iteration"]])
    same = call("sweep", model, "--inputs", "set/in00[0-4].npz", "--with", model, "--jobs", 1, "--out", "s.sqlite")
    assert same.code == 0 and "5 inputs: 5 nothing" in same.out


def test_checked_the_findings_are_those_of_check(call: Call, model: Path, here: None) -> None:
    answer = json.loads(call("sweep", model, "--inputs", "set/in00[0-9].npz", "--check", "--json").out)
    found = [row for row in answer["rows"] if row["outcome"] == "finding"]
    assert found
    for row in found:
        alone = json.loads(call("check", model, "--inputs", row["name"], "--with", "none", "--json").out)["findings"]
        assert row["what"] in {one["rule"] for one in alone}


def test_a_script_need_not_guard_what_starts_a_sweep(model: Path) -> None:
    script = Path("unguarded.py")
    words = ["sweep", str(model), "--random", "5", "--jobs", "1", "--quiet"]
    script.write_text(f"import sys\nfrom stepper.cli import main\nsys.exit(main({words}))\n")
    done = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=60
    )
    assert done.returncode in (0, 1) and len(read_rows(Path("sweep.sqlite"))) == 5, done.stderr


# --- opening --------------------------------------------------------------------------------------------------------


def test_what_opens_an_input_is_its_file_and_its_place(call: Call, model: Path, here: None) -> None:
    call("sweep", model, "--inputs", "set/*.npz", "--jobs", 1, "--rules", "openvino")
    number = next(stored.number for stored in read_rows(Path("sweep.sqlite")) if stored.row.outcome == "stopped")
    stored, about = read_row(Path("sweep.sqlite"), number), read_about(Path("sweep.sqlite"))
    with opening_words(about, stored) as words:
        assert words[0] == str(model) and f"--at={stored.row.address}" in words and "--rules=openvino" in words
        assert f"--inputs={Path.cwd() / stored.row.name}" in words
        run = call("run", *[word for word in words if not word.startswith(("--at", "--no-keep"))], "--break", "nan")
    assert f"#{stored.row.iteration}" in run.out


def test_an_index_and_a_call_are_written_to_be_opened(call: Call, model: Path, here: None) -> None:
    loaded = [dict(np.load(f"set/in00{number}.npz")) for number in range(3)]
    np.savez("all.npz", **{key: np.stack([one[key] for one in loaded]) for key in loaded[0]})
    call("sweep", model, "--inputs", "all.npz", "--leading-axis", "--jobs", 1)
    with opening_words(read_about(Path("sweep.sqlite")), read_row(Path("sweep.sqlite"), 3)) as words:
        path = next(word for word in words if word.startswith("--inputs=")).removeprefix("--inputs=")
        with np.load(path) as arrays:
            assert np.array_equal(arrays["0"], loaded[2]["x"])
    assert not Path(path).exists()


def test_a_files_options_cannot_be_others_and_its_function_is_not_called(call: Call, model: Path, here: None) -> None:
    Path("numbers_here.py").write_text("def one(n): return {}\n")
    call("sweep", model, "--generate", "numbers_here:one", "--count", 1, "--jobs", 1)
    opened = call("sweep", "sweep.sqlite", "--open", 1)
    assert opened.code == 2 and "--generate numbers_here:one" in opened.err
    about = read_about(Path("sweep.sqlite"))
    options = type(about.options)(input=("--script=evil",), rules="spec --extension=evil.so")
    forged = SweepAbout(about.model, about.folder, 1, about.identity, options)
    stored = type(read_row(Path("sweep.sqlite"), 1))(1, read_row(Path("sweep.sqlite"), 1).row, SeedInput(3), "")
    with opening_words(forged, stored) as words:
        rules = "--rules=spec --extension=evil.so"
        assert words[1:] == ["--input=--script=evil", rules, "--engine=numpy", "--input=*=rand:3", "--no-keep"]


def test_a_function_that_prints_and_one_that_leaves_disturb_nothing_and_a_changed_one_is_another_sweep(
    call: Call, model: Path, here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import sys, numpy as np\n"
        "print('imported')\n"
        "def make(number):\n"
        "    print('called')\n"
        "    if number == 2: sys.exit(4)\n"
        "    return {key: value for key, value in np.load('set/in000.npz').items()}\n"
    )
    Path("made_here.py").write_text(text)
    words = ("sweep", model, "--generate", "made_here:make", "--count", 4, "--jobs", 1, "--json")
    swept = call(*words)
    answer = json.loads(swept.out)
    assert answer["outcomes"]["unreadable"] == 1 and answer["done"] == 4 and swept.err.count("called\n") == 4
    (row,) = [row for row in answer["rows"] if row["outcome"] == "unreadable"]
    assert (row["number"], row["text"]) == (3, "made_here:make(2) raised SystemExit: 4")
    Path("made_here.py").write_text(text.replace("in000", "in001"))
    again = call(*words)
    assert again.code == 2 and "the function of --generate is another one, or its file was changed" in again.err


def test_a_function_that_ends_its_process_or_hangs_costs_a_row_each(call: Call, model: Path) -> None:
    """Also with the number that comes first; what hangs does so in a loop, and in a call that nothing interrupts."""
    Path("deadly_here.py").write_text(
        "import os, threading, numpy as np\n"
        "def make(number):\n"
        "    if number in (0, 5): os._exit(number)\n"
        "    if number == 2: threading.Event().wait()\n"
        "    if number == 4: os.kill(os.getpid(), 9)\n"
        "    while number == 7: pass\n"
        "    if number == 9: raise KeyboardInterrupt\n"
        "    return {key: value for key, value in np.load('set/in000.npz').items()}\n"
    )
    words = ("--generate", "deadly_here:make", "--count", 12, "--jobs", 2, "--seconds", 0.6, "--out", "d.sqlite")
    found = ended(program("sweep", model, *words, env={"PYTHONPATH": str(ROOT)}))
    assert found.code == 1, found.err
    outcomes = {number: str(row.outcome) for number, row, _stamp in table(Path("d.sqlite"))}
    odd = {1: "killed", 3: "limit", 5: "killed", 6: "killed", 8: "limit", 10: "unreadable"}
    assert outcomes == {number: odd.get(number, "nothing") for number in range(1, 13)}
    assert read_row(Path("d.sqlite"), 8).row.text == (
        "deadly_here:make(7) did not return within 0.6 s, the limit for each input"
    )
    assert "exit code 5" in read_row(Path("d.sqlite"), 6).row.text
    assert "ended (SIGKILL, which the system sends" in read_row(Path("d.sqlite"), 5).row.text
