"""`stepper run --trace` and `--resume`: what is printed, what is refused, and what Ctrl+C leaves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from stepper.cli import main
from stepper.recording import open_recording
from tests.cli.conftest import Call
from tests.models import Graph, carried, joined, last

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "sample_models" / "for_loop"
RUN = ["run", str(SAMPLE / "model.xml"), "--inputs", str(SAMPLE / "inputs.npz")]


def endless(folder: Path) -> Path:
    """A Loop without a limit that adds 1."""
    net = Graph()
    x, body = net.parameter("x"), net.body()
    state = body.parameter("state")
    result = body.result(body.apply("Add", state, body.constant(1.0)))
    net.result(net.loop("forever", body, -1, True, [carried(x, state, result)], [last(result), joined(result)])[0])
    return net.write(folder)


def test_a_recorded_run_prints_what_another_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(RUN) == 0
    plain = capsys.readouterr()
    trace = str(tmp_path / "run.sqlite")
    assert main([*RUN, "--trace", trace, "--record", "all", "--record-ops", "balance", "--record-iters", "0:3,-1"]) == 0
    assert capsys.readouterr() == plain
    with open_recording(trace) as recording:
        assert recording.query("SELECT DISTINCT iteration FROM statistics ORDER BY 1") == [(0,), (1,), (2,), (9,)]
    assert main(["run", "--resume", trace]) == 0
    assert capsys.readouterr() == plain


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "name a MODEL"),
        ([*RUN, "--record", "all"], "--record selects what is recorded"),
        ([*RUN, "--record-iters", "3"], "--record-iters selects what is recorded"),
        ([*RUN, "--model", "x.xml"], "--model is for --resume"),
        ([*RUN, "--resume", "x"], "the recording knows its model"),
        (["run", "--resume", "x", "--trace", "y"], "leave other options"),
        (["run", "--resume", "x", "--record", "all"], "leave other options"),
        ([*RUN, "--trace", "x", "--break", "nothing_like_it"], "nothing_like_it"),
        ([*RUN, "--trace", "x", "--break", "balance_next if max("], "max("),
        (
            [*RUN, "--trace", str(SAMPLE / "model.bin")],
            "model.bin: that is the weights file of the model",
        ),
        ([*RUN, "--trace", "no/such/folder/x"], "cannot be written"),
        ([*RUN, "--trace", "x", "--record-iters", "a"], "not a range of iterations"),
        ([*RUN, "--trace", "x", "--record-ops", "("], "not a regular expression"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    captured = capsys.readouterr()
    assert message in captured.err and not captured.out
    assert not list(tmp_path.iterdir())


def test_a_break_ends_a_recorded_run_and_another_one_its_continuation(call: Call, tmp_path: Path) -> None:
    nested = ROOT / "sample_models" / "nested_loop"
    run = ("run", nested / "model.xml", "--inputs", nested / "inputs.npz")
    trace, spec = tmp_path / "run.sqlite", "swaps_next if swaps_next > 1"
    alone = call(*run, "--break", spec)
    both = call(*run, "--break", spec, "--trace", trace, "--record", "all")
    assert both.code == 1 and both.out == alone.out
    assert both.err == f"recorded up to here; continue with: stepper run --resume {trace}\n"
    with open_recording(trace) as recording:
        assert recording.query("SELECT max(tick) FROM iterations WHERE tick < 29") == [(20,)]
        assert recording.query("SELECT max(tick) FROM iterations") == [(29,)]  # of the iteration under way
        assert recording.restored().machine.tick == 29
    again = call("run", "--resume", trace, "--break", "no such layer")
    assert again.code == 2 and not again.out
    again = call("run", "--resume", trace, "--break", spec, "--json")
    found = json.loads(again.out)
    assert again.code == 1 and Path(found["model"]).samefile(nested / "model.xml")
    assert (found["break"]["tick"], found["break"]["iteration"]) == (42, 2)
    assert call("run", "--resume", trace, "--break", "nan", "--outputs", tmp_path / "a.npz") == call(
        *run, "--outputs", tmp_path / "b.npz"
    )
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert call("run", "--resume", trace, "--break", spec) == call(*run)


def test_a_break_at_nan_leaves_what_came_before_it_and_the_nan_itself(call: Call, tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x"), net.body()
    state = body.parameter("state")
    root = body.apply("Sqrt", body.apply("Subtract", state, body.constant(1.0)), name="root")
    result = body.result(root)
    net.result(net.loop("roots", body, 9, True, [carried(x, state, result)], [last(result), joined(result)])[0])
    model, trace = net.write(tmp_path), tmp_path / "run.sqlite"
    stopped = call("run", model, "--input", "x=30", "--break", "nan", "--trace", trace)
    # 30 -> sqrt(29) -> ... -> the root of a negative number: the formula says when.
    value, iteration = np.float32(30), 0
    with np.errstate(invalid="ignore"):
        while not np.isnan(value := np.sqrt(value - np.float32(1))):
            iteration += 1
    assert stopped.code == 1 and f"Loop 'roots' #{iteration}" in stopped.out and "NaN" in stopped.out
    with open_recording(trace) as recording:
        assert recording.query("SELECT max(iteration), sum(nan) FROM statistics") == [(iteration, 1)]
    assert call("run", "--resume", trace) == call("run", model, "--input", "x=30")


def test_what_is_no_recording_and_a_changed_input_end_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--resume", str(tmp_path / "none")]) == 3
    assert "there is no such file" in capsys.readouterr().err
    assert main(["run", "--resume", str(SAMPLE / "model.xml")]) == 3
    assert "is not a recording" in capsys.readouterr().err
    trace = str(tmp_path / "run.sqlite")
    assert main([*RUN, "--trace", trace]) == 0
    capsys.readouterr()
    assert main(["run", "--resume", trace, "--input", "rate=[1, 2, 3]"]) == 3
    assert "the input 'rate' is not the one that was recorded: its values differ" in capsys.readouterr().err
    assert main(["run", "--resume", trace, "--inputs", str(SAMPLE / "inputs.npz")]) == 0


def test_a_model_that_has_moved_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        for kind in ("xml", "bin"):
            (tmp_path / folder / f"model.{kind}").write_bytes((SAMPLE / f"model.{kind}").read_bytes())
    trace = str(tmp_path / "run.sqlite")
    inputs = str(SAMPLE / "inputs.npz")
    assert main(["run", str(tmp_path / "here" / "model.xml"), "--inputs", inputs, "--trace", trace]) == 0
    plain = capsys.readouterr()
    (tmp_path / "here" / "model.xml").unlink()
    assert main(["run", "--resume", trace]) == 3
    assert "--model PATH" in capsys.readouterr().err
    assert main(["run", "--resume", trace, "--model", str(tmp_path / "there" / "model.xml")]) == 0
    assert capsys.readouterr() == plain


def test_a_higher_limit_goes_on_where_the_lower_one_ended_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(RUN) == 0
    plain = capsys.readouterr().out
    trace = str(tmp_path / "run.sqlite")
    assert main([*RUN, "--trace", trace, "--max-iterations", "4"]) == 4
    with open_recording(trace) as recording:
        assert recording.query("SELECT max(iteration) FROM iterations") == [(3,)]
    assert main(["run", "--resume", trace, "--max-iterations", "1000"]) == 0
    assert capsys.readouterr().out == plain


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C is sent in another way there")
def wait_until_written(trace: Path, process: subprocess.Popen[str]) -> None:
    """Until the run goes on: what waits to be taken into the file has had several lengths."""
    waiting = trace.with_name(f"{trace.name}-wal")
    lengths: set[int] = set()
    while len(lengths) < 5 and process.poll() is None:
        if waiting.exists():
            lengths.add(waiting.stat().st_size)
        time.sleep(0.01)


def test_ctrl_c_leaves_a_file_that_goes_on_and_says_so(tmp_path: Path) -> None:
    model, trace = endless(tmp_path), tmp_path / "run.sqlite"
    command = [sys.executable, "-m", "stepper", "run", str(model), "--input", "x=0", "--trace", str(trace)]
    ticks = []
    for words in (command, [*command[:4], "--resume", str(trace)]):
        process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        wait_until_written(trace, process)
        process.send_signal(signal.SIGINT)
        _out, errors = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "interrupted at model > Loop 'forever' #" in errors and f"stepper run --resume {trace}" in errors
        with open_recording(trace) as recording:
            machine = recording.restored().machine
            ticks.append(machine.tick)
            assert float(np.asarray(machine.stack[-1].values[machine.stack[-1].program.results[0]])) >= 1
    assert 0 < ticks[0] < ticks[1]
    assert not list(tmp_path.glob("*-wal"))
