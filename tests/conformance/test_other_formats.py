"""Models of TensorFlow, TensorFlow Lite and PaddlePaddle: opened, run, their loops too; and files that are broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino")

import stepper
from stepper.cli import main
from stepper.ir.model import Model
from tests.conformance.protobuf_files import paddle, paddle_while, while_of_frames, while_of_functions

X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


def opened(folder: Path, name: str, content: bytes) -> Model:
    (folder / name).write_bytes(content)
    return stepper.open_model(folder / name)


def names(model: Model) -> set[str]:
    """Of layers and tensors, in bodies too."""
    layers = [layer for _path, graph in model.graphs() for layer in graph.layers]
    return {layer.name for layer in layers} | {
        name for layer in layers for port in layer.outputs for name in port.names
    }


@pytest.mark.parametrize("version", [0, 2_000_000, 2_006_002])
def test_a_model_of_paddle_runs_under_its_own_names(tmp_path: Path, version: int) -> None:
    model = opened(tmp_path, "tiny.pdmodel", paddle(version))
    assert {"x", "activated", "scaled"} <= names(model)
    np.testing.assert_array_equal(stepper.run(model, {"x": X})["scaled"], 2 * np.maximum(X, 0) + 1)


def test_a_model_of_tensorflow_lite_runs_under_its_own_names(tmp_path: Path) -> None:
    pytest.importorskip("flatbuffers")
    from tests.conformance.tflite_files import tiny

    model = opened(tmp_path, "tiny.tflite", tiny())
    assert {"x", "activated", "negated"} <= names(model)
    np.testing.assert_array_equal(stepper.run(model, {"x": X})["negated"], -np.maximum(X, 0))


def doubling_of_tflite() -> bytes:
    pytest.importorskip("flatbuffers")
    from tests.conformance.tflite_files import doubling

    return doubling()


@pytest.mark.parametrize(
    ("name", "content", "known"),
    [
        ("loop.pb", while_of_functions, {"doubling", "less", "doubled", "i", "state"}),
        ("loop.pb", while_of_frames, {"w/less", "w/doubled", "w/plus_one"}),
        ("loop.pdmodel", paddle_while, {"cond", "x", "i"}),
        ("loop.tflite", doubling_of_tflite, {"i", "state", "doubled", "going_on"}),
    ],
)
def test_a_loop_runs_and_can_be_stepped_through(
    name: str, content: Callable[[], bytes], known: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    model = opened(tmp_path, name, content())
    assert known <= names(model)
    x = np.array([1.5, -2], np.float32)
    inputs = {key: x if "x" in key else np.int32(0) for key in (p.name for p in model.graph.parameters)}
    outputs = stepper.run(model, inputs)
    negated = next(value for key, value in outputs.items() if key.startswith("negated"))
    np.testing.assert_array_equal(negated, -32 * x)
    assert [(loop.iterations, str(*loop.ended)) for loop in outputs.loops] == [(5, "condition became false")]
    np.savez(tmp_path / "inputs.npz", **inputs)
    assert main(["compare", str(path), "--inputs", str(tmp_path / "inputs.npz"), "--with", "openvino", "--quiet"]) == 0
    assert "no difference from OpenVINO" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("text.tflite", b"no model at all", "is a text .*not a model: copy or download it again"),
        ("broken.tflite", bytes(64), "is not a TensorFlow Lite model: its bytes 4 to 7 are not TFL3"),
        ("empty.tflite", b"", "is empty: copy or download it again"),
        ("cut.tflite", b"\x1c\0\0\0TFL3\0\0", "OpenVINO cannot convert it: .*(corrupted|malformed|verification)"),
        ("text.pdmodel", b"no model at all", "is a text .*not a model: copy or download it again"),
        ("broken.pdmodel", b"\xff" * 64, "OpenVINO cannot convert it: .*can't be parsed"),
        ("cut.pdmodel", paddle(0)[:60], "OpenVINO cannot convert it: .*can't be parsed"),
        ("missing.pdmodel", None, "missing.pdmodel: cannot be read: there is no such file"),
    ],
)
def test_a_broken_file_is_refused_in_one_sentence(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(stepper.StepperError, match=rf"{name}: .*{said}|{said}") as caught:
        stepper.open_model(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob(".stepper/*")), "nothing is kept of it"
