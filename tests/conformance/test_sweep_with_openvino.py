"""A sweep beside OpenVINO: an input with which the runtime is at fault differs, and where compare says that it does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stepper.diagnosis.hunt.hunting import CASES
from tests.cli.conftest import ROOT, Call, call
from tests.sweep.sweeping import NoProcesses

pytest.importorskip("openvino")
__all__ = ["call"]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("stepper.cli.commands.sweep.workers_of", lambda _on, _jobs: NoProcesses())


def test_a_fault_of_the_runtime_differs_where_compare_says(call: Call, here: None) -> None:
    folder = CASES / "aliased-back-edges"
    given = (folder / "model.xml", "--inputs", folder / "inputs.npz")
    (row,) = json.loads(call("sweep", *given, "--with", "openvino", "--json").out)["rows"]
    verdict = json.loads(call("compare", *given, "--with", "openvino", "--json").out)["verdict"]
    assert (row["outcome"], row["text"]) == ("differs", verdict["reason"])
    assert row["iterations"] == ([] if verdict["iteration"] is None else [verdict["iteration"]])


def test_inputs_on_which_both_agree_show_nothing(call: Call, here: None) -> None:
    model = ROOT / "sample_models" / "rwkv_overflow" / "model.xml"
    for number in range(4):
        np.savez(f"in{number}.npz", embedded=np.random.default_rng(number).uniform(-1, 1, (12, 8)).astype(np.float32))
    swept = call("sweep", model, "--inputs", "in*.npz", "--with", "openvino")
    assert swept.code == 0 and "4 inputs: 4 nothing" in swept.out
