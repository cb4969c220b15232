"""Integer division of a model that was opened from ONNX, as ONNX defines it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino")
pytest.importorskip("onnx")

import stepper

A, B = np.array([-7, 7, -7, 7, -1], np.int32), np.array([2, 2, -2, -2, 4], np.int32)


def opened(folder: Path, operation: str, **attributes: object) -> stepper.Model:
    import onnx
    from onnx import TensorProto, helper

    ports = [helper.make_tensor_value_info(name, TensorProto.INT32, [5]) for name in "abc"]
    node = helper.make_node(operation, ["a", "b"], ["c"], **attributes)
    model = helper.make_model(helper.make_graph([node], "g", ports[:2], ports[2:]))
    model.opset_import[0].version, model.ir_version = 26, 10
    onnx.save(model, folder / "model.onnx")
    return stepper.open_model(folder / "model.onnx")


@pytest.mark.parametrize("rules", ["spec", "openvino"])
def test_an_integer_division_truncates(tmp_path: Path, rules: str) -> None:
    """ONNX's Div: the result of integer division is rounded towards zero."""
    outputs = stepper.run(opened(tmp_path, "Div"), {"a": A, "b": B}, rules=rules)
    assert outputs["c"].tolist() == [int(a / b) for a, b in zip(A.tolist(), B.tolist(), strict=True)]
    assert not any("integer division" in str(note) for note in outputs.notes)


def test_a_shift_to_the_right_rounds_down(tmp_path: Path) -> None:
    """An arithmetic shift: -7 >> 1 is -4."""
    shifts = np.array([1, 1, 2, 2, 3], np.int32)
    outputs = stepper.run(opened(tmp_path, "BitShift", direction="RIGHT"), {"a": A, "b": shifts})
    assert outputs["c"].tolist() == [a >> b for a, b in zip(A.tolist(), shifts.tolist(), strict=True)]
