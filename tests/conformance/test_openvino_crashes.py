"""OpenVINO crashes, hangs and runs out of memory on purpose: a sentence, the right exit code, and nothing is left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino")

import stepper
from stepper.cli import main
from stepper.errors import LimitReached
from stepper.openvino.peer import OpenVINOPeer
from stepper.openvino.program import PROGRAM
from stepper.processes.worker import Worker, close_all
from tests.conformance.openvino_subjects import SAMPLES
from tests.conformance.test_openvino_opening import frozen_graph
from tests.models import Graph, carried, joined, last

FAULTS = {
    "SIGSEGV": ("OpenVINO crashed (SIGSEGV) while", False),
    "SIGFPE": ("OpenVINO crashed (SIGFPE) while", False),
    "SIGABRT": ("OpenVINO crashed (SIGABRT) while", False),
    "SIGKILL": ("OpenVINO crashed (SIGKILL, which the system sends where memory runs out) while", False),
    "exit": ("OpenVINO ended with exit code 7 while", False),
    "garbage": ("OpenVINO sent an unreadable answer while", False),
    "hang": ("OpenVINO did not finish within 2 s while", True),
    "memory": ("OpenVINO ran out of memory", True),
}
"""What is injected, what is said of it, and whether it is a limit that was met."""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended_workers: None) -> Iterator[None]:
    """No process and no file in the temporary folder is left."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield
    close_all()
    assert not list((tmp_path / "temporary").iterdir())
    assert not children(os.getpid())


def children(pid: int) -> list[int]:
    """The workers among the processes that this one has started and that still run."""
    found = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "stepper.openvino.service" in line]


def sum_of_ones(folder: Path) -> str:
    net = Graph()
    x = net.parameter("x", "f32", (2,))
    net.result(net.apply("Add", x, net.constant([1, 1], np.float32), auto_broadcast="numpy"), "sum")
    return str(net.write(folder))


def looping(folder: Path) -> str:
    net = Graph()
    x, body = net.parameter("x", "f32", (1,)), net.body()
    state = body.parameter("state", "f32", (1,))
    larger = body.result(body.apply("Add", state, body.constant([1], np.float32), auto_broadcast="numpy"))
    (final,) = net.loop("powers", body, 3, True, [carried(x, state, larger)], [last(larger)])
    net.result(final, "final")
    return str(net.write(folder))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stage", ["converting", "reading", "compiling", "running"])
def test_a_fault_of_the_runtime_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stage: str, fault: str
) -> None:
    monkeypatch.setenv("STEPPER_FAULT", f"{stage}:{fault}")
    said, is_limit = FAULTS[fault]
    limit = ["--timeout", "2"] if fault == "hang" else []
    if stage == "converting":
        (tmp_path / "tiny.pb").write_bytes(frozen_graph())
        code = main(["run", str(tmp_path / "tiny.pb"), "--input", "x=ones", *limit])
        doing = str(tmp_path / "tiny.pb")
    else:
        words = ["--engine-for", "Add=openvino", *limit]
        code = main(["run", sum_of_ones(tmp_path), "--input", "x=[1,2]", *words])
        doing = "Add 'add' (layer 2, line"
    streams = capsys.readouterr()
    assert code == (4 if is_limit else 3)
    assert len(streams.err.splitlines()) == 1 and "Traceback" not in streams.err
    assert said in streams.err and f"while {stage} {doing}" in streams.err
    assert not list(tmp_path.glob(".stepper/*"))


@pytest.mark.parametrize("stage", ["reading", "compiling", "running"])
def test_a_crash_of_the_whole_model_is_a_finding_and_its_operations_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    monkeypatch.setenv("STEPPER_FAULT", f"{stage}:SIGSEGV:the model model.xml")
    path = looping(tmp_path)
    assert main(["compare", path, "--with", "openvino", "--input", "x=[1]", "--json", "-q"]) == 1
    report = json.loads(capsys.readouterr().out)
    sentence = f"OpenVINO crashed (SIGSEGV) while {stage} the model model.xml"
    assert sentence in report["verdict"]["reason"] and not report["notes"]
    assert report["compared"] > 3


def test_a_crash_of_a_body_alone_is_a_note_and_the_comparison_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPPER_FAULT", "compiling:SIGFPE:the body of")
    path = looping(tmp_path)
    assert main(["compare", path, "--with", "openvino", "--input", "x=[1]", "-q"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("no difference from OpenVINO")
    assert "note: OpenVINO crashed (SIGFPE) while compiling the body of Loop 'powers' (layer" in text
    assert text.count("note:") == 1


@pytest.mark.parametrize("fault, code", [("SIGSEGV", 3), ("spin", 4)])
def test_a_crash_while_passes_are_traced_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fault: str, code: int
) -> None:
    monkeypatch.setenv("STEPPER_FAULT", f"compiling:{fault}")
    limit = ["--timeout", "3"] if fault == "spin" else []
    assert main(["passes", looping(tmp_path), "--input", "x=[1]", *limit]) == code
    assert "while compiling the model model.xml" in capsys.readouterr().err


def test_the_runtime_does_not_run_on_where_a_limit_stopped_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = Graph()
    x, body = net.parameter("x", "f32", (1,)), net.body()
    state = body.parameter("state", "f32", (1,))
    larger = body.result(body.apply("Add", state, body.constant([1], np.float32), auto_broadcast="numpy"))
    (final,) = net.loop("endless", body, -1, True, [carried(x, state, larger)], [last(larger)])
    net.result(final, "final")
    words = ["--with", "openvino", "--input", "x=[1]", "--max-iterations", "100", "--timeout", "1", "-q"]
    assert main(["compare", str(net.write(tmp_path)), *words]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "the loop needs more than 100 iterations" in text
    assert "OpenVINO did not finish within 1 s while running the model model.xml; ours was stopped after 100" in text


def test_the_runtime_ends_with_the_program_that_asked_it_however_that_ends(tmp_path: Path) -> None:
    (tmp_path / "tiny.pb").write_bytes(frozen_graph())
    environment = {**os.environ, "STEPPER_FAULT": "converting:hang", "PYTHONPATH": str(SAMPLES.parent)}
    with subprocess.Popen(
        [sys.executable, "-m", "stepper", "inspect", str(tmp_path / "tiny.pb")], env=environment
    ) as process:
        for _ in range(1000):
            if workers := children(process.pid):
                break
            time.sleep(0.02)
        for _ in range(1000):
            if list(tmp_path.glob(".stepper/.*")):
                break
            time.sleep(0.02)
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)
    for _ in range(1000):
        if not Path(f"/proc/{workers[0]}").exists() and not list(tmp_path.glob(".stepper/.*")):
            break
        time.sleep(0.02)
    assert not Path(f"/proc/{workers[0]}").exists()
    assert not list(tmp_path.glob(".stepper/*"))


def test_after_a_crash_the_runtime_is_there_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPPER_FAULT", "running:SIGSEGV")
    model = stepper.read_model(sum_of_ones(tmp_path))
    partner = stepper.OpenVINOPartner("openvino")
    with pytest.raises(stepper.StepperError, match="crashed"):
        stepper.run(model, {"x": np.ones(2, np.float32)}, partner=partner)
    monkeypatch.delenv("STEPPER_FAULT")
    outputs = stepper.run(model, {"x": np.ones(2, np.float32)}, partner=stepper.OpenVINOPartner("openvino"))
    np.testing.assert_array_equal(outputs["sum"], [2, 2])


def never_run() -> Graph:
    """A loop of no iterations that joins pieces, at which the plugin divides by zero when it compiles it."""
    net = Graph()
    x, body = net.parameter("x", "f32", (1, 2)), net.body()
    state = body.parameter("state", "f32", (1, 2))
    larger = body.result(body.apply("Add", state, body.constant([1], np.float32), auto_broadcast="numpy"))
    final, pieces = net.loop("never", body, 0, True, [carried(x, state, larger)], [last(larger), joined(larger)])
    net.result(final, "final")
    net.result(pieces, "pieces")
    return net


def without_dilations() -> Graph:
    """An AvgPool of operation set 16 without an attribute that it must have, which the runtime reads all the same."""
    net = Graph()
    windows = {"strides": "1,1", "kernel": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "exclude-pad": "true"}
    x = net.parameter("x", "f32", (1, 1, 4, 4))
    modes = {"auto_pad": "explicit", "rounding_type": "floor"}
    net.result(net.apply("AvgPool", x, version="opset16", dims=(1, 1, 3, 3), **windows, **modes), "y")
    return net


@pytest.mark.parametrize("graph", [never_run, without_dilations])
def test_a_model_that_the_runtime_is_known_to_crash_at_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], graph: Callable[[], Graph]
) -> None:
    path = str(graph().write(tmp_path))
    code = main(["compare", path, "--with", "openvino", "--input", "x=ones", "-q"])
    text = " ".join(capsys.readouterr().out.split())
    assert code in (0, 1), "a newer runtime may have mended it"
    assert (code == 0) is text.startswith("no difference")
    assert code == 0 or re.search(r"the reference stops: OpenVINO (crashed \(SIG\w+\) while|refuses)", text)


@pytest.mark.skipif(sys.platform != "linux", reason="no other system bounds it")
def test_memory_is_bounded_on_the_side_of_the_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = Graph()
    one, shape = net.parameter("one", "f32", (1,)), net.parameter("shape", "i64", (1,))
    wide = net.apply("Broadcast", one, shape, mode="numpy", version="opset3", dims=(-1,))
    net.result(net.apply("ReduceSum", wide, net.constant([0], np.int64), keep_dims="true", dims=(1,)), "sum")
    worker = Worker(PROGRAM, memory=2**30)
    monkeypatch.setattr("stepper.openvino.peer.shared_worker", lambda: worker)
    model, x = stepper.read_model(net.write(tmp_path)), np.ones(1, np.float32)
    try:
        with pytest.raises(LimitReached, match=r"OpenVINO ran out of memory \(limit 1 GB\) while running the model"):
            OpenVINOPeer(model).run([x, np.array([10**9])])
        np.testing.assert_array_equal(OpenVINOPeer(model).run([x, np.array([10])])[0], [10])
    finally:
        worker.close()
