"""ONNX's evaluators crash, hang and run out of memory on purpose: a sentence, the right exit code, nothing is left."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino")
pytest.importorskip("onnx")

from onnx import TensorProto, helper, save

import stepper
from stepper.cli import main
from stepper.compare.references.onnx import OnnxPeer
from stepper.processes.worker import close_all
from tests.conformance import onnx_files
from tests.conformance.onnx_files import inputs_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")

EVALUATORS = {"onnx": "ONNX's reference evaluator", "onnxruntime": "onnxruntime"}
FAULTS = {
    "reading:SIGSEGV": ("{} crashed (SIGSEGV) while reading the model nested.onnx", 3),
    "running:SIGABRT": ("{} crashed (SIGABRT) while running the model nested.onnx", 3),
    "compiling:exit": ("{} ended with exit code 7 while compiling the model nested.onnx", 3),
    "running:garbage": ("{} sent an unreadable answer while running the model nested.onnx", 3),
    "running:hang": ("{} did not finish within 2 s while running the model nested.onnx", 4),
    "reading:memory": ("{} ran out of memory", 4),
}
"""What is injected, what is said of it, and the exit code."""


@pytest.fixture(autouse=True)
def nothing_is_left(ended_workers: None) -> Iterator[None]:
    yield
    close_all()
    command = ["ps", "-ww", "-o", "args=", "--ppid", str(os.getpid())]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "onnx_service" not in found.stdout


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    path = onnx_files.nested(tmp_path)
    monkeypatch.chdir(tmp_path)
    return [path.name, "--inputs", str(inputs_of(path)), "--quiet"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_each_end_of_an_evaluator_is_a_sentence_and_it_is_started_again(
    evaluator: str, fault: str, model: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(evaluator)
    said, code = FAULTS[fault]
    monkeypatch.setenv("STEPPER_FAULT", fault)
    words = ["compare", *model, "--with", evaluator, "--timeout", "2" if fault.endswith("hang") else "120"]
    assert main(words) == code
    assert said.format(EVALUATORS[evaluator]) in " ".join(capsys.readouterr().err.split())
    monkeypatch.delenv("STEPPER_FAULT")
    close_all()  # one that lives on would still have the variable
    assert main(["compare", *model, "--with", evaluator]) == 0


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_the_debugger_says_why_it_has_no_reference(
    evaluator: str, model: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(evaluator)
    monkeypatch.setenv("STEPPER_FAULT", "running:SIGFPE")
    assert main(["debug", *model[:-1], "--reference", evaluator, "--script", os.devnull]) == 3
    assert "crashed (SIGFPE) while running the model nested.onnx" in " ".join(capsys.readouterr().err.split())


def test_what_is_no_onnx_model_and_inputs_of_another_one_are_refused_with_the_file(tmp_path: Path) -> None:
    path = onnx_files.nested(tmp_path)
    model, inputs = stepper.open_model(path), dict(np.load(inputs_of(path)))
    bound = stepper.bind_inputs(model, inputs)
    (tmp_path / "text.onnx").write_text("no protobuf at all")
    with pytest.raises(stepper.ModelError, match=r"text\.onnx: is not an ONNX model"):
        OnnxPeer(tmp_path / "text.onnx").run(model, bound)
    many = [f"in_{k}" for k in range(len(bound) + 1)]
    other = helper.make_graph(
        [helper.make_node("Add", many[:2], ["c"])],
        "other",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in many],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, [1])],
    )
    save(helper.make_model(other, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "other.onnx")
    with pytest.raises(
        stepper.ModelError, match=r"other\.onnx: has the inputs in_0, in_1.*, which differ from the inputs"
    ):
        OnnxPeer(tmp_path / "other.onnx").run(model, bound)
