"""Which pass broke it: OpenVINO's transformations, one by one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino")


import stepper
from stepper.cli import main
from stepper.compare.compared_passes import PassEffect, PassJudge, PassReport, pass_reports
from stepper.element_types import Array
from stepper.ir.model import Model
from stepper.openvino.partner import traced_passes
from tests.conformance.openvino_subjects import SAMPLES, sample
from tests.json_answers import checked
from tests.models import Graph, carried, joined, last


def overflowing() -> Graph:
    """A sum of i64 that leaves i32 behind, which OpenVINO narrows to it."""
    net = Graph()
    x, body = net.parameter("x", "i64", (1,)), net.body()
    state = body.parameter("state", "i64", (1,))
    larger = body.result(body.apply("Multiply", state, body.constant([1000], np.int64), auto_broadcast="numpy"))
    final, pieces = net.loop("powers", body, 5, True, [carried(x, state, larger)], [last(larger), joined(larger)])
    net.result(final, "final")
    net.result(pieces, "pieces")
    return net


def reports_of(model: Model, inputs: Sequence[Array]) -> list[PassReport]:
    return list(pass_reports(traced_passes(model.path, "CPU", "f32"), PassJudge(model, inputs)))


def test_the_pass_that_narrows_integers_is_named(tmp_path: Path) -> None:
    model = overflowing().read(tmp_path)
    reports = reports_of(model, [np.array([7])])
    first = next(report for report in reports if report.verdict is PassEffect.DIFFERENT)
    assert first.name == "ov::pass::ConvertPrecision"
    assert any(text.startswith("Loop 'powers', last of 'result'") for text in first.details)
    earlier = [report.verdict for report in reports if report.number < first.number]
    assert set(earlier) <= {PassEffect.SAME_FILE, PassEffect.EQUAL}


def test_no_pass_changes_a_sample_and_each_can_be_run() -> None:
    model, inputs, _wanted = sample("nested_loop")
    reports = reports_of(model, stepper.bind_inputs(model, inputs))
    assert {one.verdict for one in reports} <= {PassEffect.EQUAL, PassEffect.SAME_FILE}
    assert len(reports) > 100


@pytest.mark.parametrize("x, code, first", [(7, 1, "ConvertPrecision"), (0, 0, None)])
def test_the_command_names_the_pass_and_ends_with_its_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], x: int, code: int, first: str | None
) -> None:
    path = str(overflowing().write(tmp_path))
    assert main(["passes", path, "--input", f"x=[{x}]", "--json"]) == code
    report = checked("passes", capsys.readouterr().out)
    assert report["schema"] == 1
    assert (report["first_change"] or {"name": "::"})["name"].split("::")[-1] == (first or "")
    assert bool(report["runtime"]) is bool(code)
    assert len(report["passes"]) <= 11 < report["total"], "the others are not run"
    assert main(["passes", path, "--input", f"x=[{x}]", "--all"]) == code
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > report["total"]
    assert main(["passes", path, "--input", f"x=[{x}]", "--all", "--json"]) == code
    every = checked("passes", capsys.readouterr().out)
    assert len(every["passes"]) == every["total"] == report["total"] > 100
    assert every["first_change"] == report["first_change"] and every["large_change"] is report["large_change"] is None
    assert any(line.startswith("the first pass after which it differs is") for line in lines) is bool(code)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a process there")
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = SAMPLES / "date_normaliser"
    words = ["passes", str(folder / "model.xml"), "--inputs", str(folder / "inputs.npz")]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(SAMPLES.parent)}
    with subprocess.Popen(
        [sys.executable, "-m", "stepper", *words], env=environment, stderr=subprocess.PIPE
    ) as process:
        for _ in range(1000):
            if any(tmp_path.glob("stepper-passes-*/*.xml")):
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said = (process.communicate(timeout=30)[1] or b"").decode()
    assert process.returncode == 130
    assert said == "stepper: interrupted\n"
    assert not list(tmp_path.iterdir())


def test_a_pass_after_which_a_loop_does_not_end_is_a_difference() -> None:
    path = SAMPLES / "while_loop" / "model.xml"  # Collatz; 113383 goes beyond 2^31, which OpenVINO narrows to
    reports = reports_of(stepper.read_model(path), [np.asarray(np.int64(113383))])
    broken = next(report for report in reports if report.verdict is PassEffect.DIFFERENT)
    assert "ConvertPrecision" in broken.name and "it continues where the model had ended" in broken.details[0]
