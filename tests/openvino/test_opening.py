"""Opening models of other formats, as far as OpenVINO is not asked: which file is kept, and what is said without it."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.cli import main
from stepper.compare.references.onnx import OnnxPeer, tensor_names
from stepper.errors import ModelError, UsageError
from stepper.files.file_kinds import is_model_path
from stepper.files.own_files import note_own
from stepper.openvino import conversion
from stepper.openvino.conversion import converted
from stepper.openvino.opening import open_model
from tests.engine.subjects import sums

SAMPLE = Path(__file__).parents[2] / "sample_models" / "for_loop"


@pytest.fixture(autouse=True)
def without_openvino(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = importlib.util.find_spec

    def missing(name: str, *rest: Any) -> Any:
        if name == "onnx":  # as if it were there
            return found("json")
        return None if name in ("openvino", "onnxruntime") else found(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", missing)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def kept_conversion(model: Path, folder: Path) -> Path:
    """Put an IR where the conversion of a model is kept."""
    with pytest.raises(UsageError) as refused:
        converted(model)
    assert "needs OpenVINO: pip install" in str(refused.value)
    name = f"{model.stem}-{conversion._content_hash(model)}"
    folder.mkdir(parents=True)
    for suffix in (".xml", ".bin"):
        shutil.copy(SAMPLE / f"model{suffix}", folder / f"{name}{suffix}")
    note_own(folder / f"{name}.xml", folder / f"{name}.bin")
    return folder / f"{name}.xml"


@pytest.mark.parametrize("place", [".stepper", "cache/stepper"])
def test_a_kept_conversion_is_used_until_the_model_changes(tmp_path: Path, place: str) -> None:
    model = tmp_path / "loop.onnx"
    model.write_bytes(b"\0 the bytes of a model")
    kept = kept_conversion(model, tmp_path / place)
    assert converted(model) == kept
    assert open_model(model).path == kept
    model.write_bytes(b"\0 the bytes of another")
    with pytest.raises(UsageError, match=r"loop.onnx: opening a model of ONNX needs OpenVINO: pip install"):
        converted(model)


def test_a_conversion_that_came_with_the_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "loop.onnx"
    model.write_bytes(b"\0 the bytes of a model")
    kept = kept_conversion(model, tmp_path / ".stepper")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache of another user"))
    with pytest.raises(UsageError, match="needs OpenVINO"):
        converted(model)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert converted(model) == kept
    kept.write_bytes(kept.read_bytes() + b"\n")
    with pytest.raises(UsageError, match="needs OpenVINO"):
        converted(model)


def test_weights_beside_the_model_belong_to_it(tmp_path: Path) -> None:
    model = tmp_path / "loop.onnx"
    model.write_bytes(b"\0 the bytes of a model")
    (tmp_path / "loop.onnx.data").write_bytes(b"weights")
    kept = kept_conversion(model, tmp_path / ".stepper")
    assert converted(model) == kept
    (tmp_path / "loop.onnx.data").write_bytes(b"more weights")
    with pytest.raises(UsageError):
        converted(model)


@pytest.mark.parametrize("command", ["run", "debug", "inspect"])
def test_a_command_on_another_format_says_what_it_needs(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "loop.tflite"
    model.write_bytes(b"\0\0\0\0TFL3 the bytes of a model")
    assert main([command, str(model)]) == UsageError.exit_code
    assert "opening a model of TensorFlow Lite needs OpenVINO: pip install" in capsys.readouterr().err
    assert main([command, str(tmp_path / "none.pb")]) == ModelError.exit_code


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(UsageError, match="dict is not a model: name a file, or give"):
        open_model({})  # type: ignore[arg-type]  # what it is about


def test_a_model_that_was_read_and_a_path_are_opened_as_they_are(tmp_path: Path) -> None:
    path = sums().write(tmp_path)
    model = stepper.read_model(path)
    assert open_model(model) is model
    assert open_model(path).path == path
    debugger = stepper.open_debugger(path, {0: np.zeros(5)}, rules="openvino")
    assert debugger.machine.rules == "openvino"


@pytest.mark.parametrize(
    "word, is_one", [("a.xml", True), ("b/c.ONNX", True), ("d.pb", True), ("run", False), ("-x.xml", False)]
)
def test_a_model_is_known_by_its_name(word: str, is_one: bool) -> None:
    assert is_model_path(word) is is_one


@pytest.mark.parametrize(
    "name, evaluator, said",
    [
        ("model.xml", "onnx", "--with onnx compares a model that came from ONNX; model.xml is not an .onnx file"),
        ("model.onnx", "onnxruntime", r"needs the package onnxruntime: pip install 'loop-stepper\[onnxruntime\]'"),
        ("model.onnx", "torch", "there is no evaluator 'torch'; choose onnx or onnxruntime"),
    ],
)
def test_onnx_is_not_asked_for_what_it_cannot(tmp_path: Path, name: str, evaluator: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        OnnxPeer(tmp_path / name, evaluator)


def test_tensors_are_found_by_their_names() -> None:
    graph = stepper.read_model(SAMPLE.parent / "onnx_moving_average" / "model.xml").graph
    named = tensor_names(graph)
    assert {name: (graph.by_id[layer].name, output) for (layer, output), name in named.items()} == {
        "prices": ("prices", 0),
        "zero": ("zero", 0),
        "first_price": ("first_price", 0),
        "last_average": ("last_average", 0),
        "averages": ("last_average", 1),
    }
