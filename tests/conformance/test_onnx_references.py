"""ONNX's evaluators as the reference: silent on what is right, and exact in loops about what is not."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openvino")
pytest.importorskip("onnx")

import stepper
from stepper.cli import main
from stepper.files.own_files import note_own
from tests.conformance import onnx_files
from tests.conformance.onnx_files import FILES, inputs_of
from tests.json_answers import checked

EVALUATORS = ("onnx", "onnxruntime")


def compare(capsys: pytest.CaptureFixture[str], model: Path, evaluator: str) -> tuple[int, dict[str, Any]]:
    pytest.importorskip(evaluator)
    words = ["compare", str(model), "--inputs", str(inputs_of(model)), "--with", evaluator, "--per-op", "--json"]
    code = main([*words, "--quiet"])
    return code, checked("compare", capsys.readouterr().out)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("name", FILES)
def test_what_is_right_is_no_difference(
    name: str, evaluator: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = compare(capsys, FILES[name](tmp_path), evaluator)
    assert code == 0 and report["verdict"] is None
    assert all(output["known"] for output in report["outputs"])


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize(
    ("name", "values", "iterations", "inside"),
    [
        ("nested", 28, 5, {"v", "inner", "reduced", "i"}),
        ("scan", 56, 9, {"h", "row", "turned", "sum", "h_next"}),
        ("growing", None, None, set()),
    ],
)
def test_the_inside_of_a_loop_is_compared(
    name: str,
    values: int | None,
    iterations: int | None,
    inside: set[str],
    evaluator: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _code, report = compare(capsys, FILES[name](tmp_path), evaluator)
    compared = {one["layer"]["name"] for one in report["operations"] if one["path"]}
    assert inside <= compared | {"inner"} and bool(compared) == bool(inside)
    loop = report["loops"][0] if name != "nested" else next(one for one in report["loops"] if not one["path"])
    (run,) = loop["runs"]
    assert run["reference"] is None if iterations is None else run["reference"] == run["ours"]
    assert iterations in (None, run["ours"]["iterations"])
    assert values is None or report["compared"] >= values


def converted_otherwise(path: Path, before: str, after: str) -> None:
    """Another operation in the kept conversion, as a faulty converter would make it."""
    kept = stepper.open_model(path).path
    text = kept.read_text()
    assert text.count(before) == 1
    kept.write_text(text.replace(before, after))
    note_own(kept, kept.with_suffix(".bin"))


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize(
    ("name", "before", "after", "loop", "layer"),
    [
        ("nested", 'type="Subtract"', 'type="Add"', "pieces", "reduced"),
        ("scan", 'type="Tanh"', 'type="Sigmoid"', "ys", "h_next"),
        ("nested", 'name="result" type="Abs"', 'name="result" type="Negative"', None, "result"),
    ],
)
def test_what_was_converted_otherwise_is_named(
    name: str,
    before: str,
    after: str,
    loop: str | None,
    layer: str,
    evaluator: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = FILES[name](tmp_path)
    converted_otherwise(path, before, after)
    code, report = compare(capsys, path, evaluator)
    verdict = report["verdict"]
    assert code == 1 and verdict["layer"]["name"] == layer
    assert (verdict["loop"] or {}).get("name") == loop
    assert verdict["iteration"] == (None if loop is None else 0)


def test_a_file_newer_than_onnxruntime_in_its_version_alone_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import onnx

    code, report = compare(capsys, onnx_files.nested(tmp_path, version=onnx.IR_VERSION), "onnxruntime")
    assert code == 0 and report["compared"] >= 28


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_the_debugger_stops_where_onnx_has_something_else(
    evaluator: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(evaluator)
    path = onnx_files.scan(tmp_path)
    inputs = inputs_of(path)
    converted_otherwise(path, 'type="Tanh"', 'type="Sigmoid"')
    script = "break diff > 1e-3\ncontinue\nprint ref(h_next)\nprint max(abs(ref(sum) - sum)) < 0.00001\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(script))
    assert main(["debug", str(path), "--inputs", str(inputs), "--reference", evaluator, "--script", "-"]) == 0
    out = capsys.readouterr().out
    assert f"from scan.onnx in {evaluator}, more than 0.001, in iteration 0 of TensorIterator 'ys'" in out
    assert out.splitlines()[-1].lower().endswith("true")
