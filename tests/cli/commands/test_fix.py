"""`stepper fix` on the command line: with a reference, without one, for a finding; what it writes and exits with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Call
from tests.models import Graph, joined, sliced

X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 4.0]], np.float32)


def rows(operation: str, folder: Path) -> Path:
    """A loop over the rows of x that adds 2 to each, or does something else with it."""
    net = Graph()
    body = net.body()
    row = body.parameter("row", "f32", (1, 2))
    made = body.result(body.apply(operation, row, body.constant(2, np.float32), name="made"), "made_out")
    x = net.parameter("x", "f32", X.shape)
    net.result(net.loop("rows", body, 3, True, [sliced(x, row)], [joined(made)])[0], "out")
    folder.mkdir()
    np.savez(folder / "inputs.npz", x=X)
    return net.write(folder)


def test_the_operation_that_is_another_is_named_and_its_repair_written(call: Call, tmp_path: Path) -> None:
    wrong = rows("Subtract", tmp_path / "wrong")
    wrong.write_text(wrong.read_text().replace("</net>", '<rt_info><made value="by us" /></rt_info></net>'))
    np.savez(tmp_path / "outputs.npz", out=X + 2)
    words = ("fix", wrong, "--inputs", wrong.parent / "inputs.npz", "--with", tmp_path / "outputs.npz", "--json")
    found = call(*words, "-o", tmp_path / "fixed.xml")
    answer = json.loads(found.out)
    assert found.code == 1 and answer["status"] == "repaired"
    assert '<made value="by us"/>' in (tmp_path / "fixed.xml").read_text()
    assert "Add instead of Subtract" in call(*words[:-1]).out.splitlines()[1]
    written = call(*words[:-1], "-o", tmp_path / "fixed.xml").out.splitlines()
    beside = f"look: stepper {tmp_path / 'fixed.xml'} --reference {wrong} --inputs {wrong.parent / 'inputs.npz'}"
    assert written[-1] == beside
    again = call("fix", tmp_path / "fixed.xml", *words[2:6])
    assert again.code == 0 and "agree" in again.out


def test_healthy_outputs_need_no_edit(call: Call, tmp_path: Path) -> None:
    right = rows("Add", tmp_path / "right")
    np.savez(tmp_path / "outputs.npz", out=X + 2)
    found = call("fix", right, "--inputs", right.parent / "inputs.npz", "--with", tmp_path / "outputs.npz")
    assert found.code == 0 and "agree" in found.out


def test_everything_that_gives_outputs_is_a_reference(call: Call, tmp_path: Path) -> None:
    wrong, right = rows("Subtract", tmp_path / "wrong"), rows("Add", tmp_path / "right")
    recording, function = tmp_path / "right.stepper", tmp_path / "original.py"
    np.savez(tmp_path / "many.npz", x=np.stack([X, -X]))
    np.savez(tmp_path / "many_out.npz", out=np.stack([X + 2, 2 - X]))
    np.savez(tmp_path / "further.npz", out=X * 3)
    assert call("run", right, "--inputs", right.parent / "inputs.npz", "--trace", recording).code == 0
    function.write_text("def make():\n    return lambda x: {'out': x + 2}\n")
    for reference, verified in ((right, True), (recording, False), (f"{function}:make", True)):
        words = ("fix", wrong, "--inputs", wrong.parent / "inputs.npz", "--with", reference, "--time", "5")
        found = call(*words)
        assert found.code == 1 and "Add instead of Subtract" in found.out, (reference, found)
        assert ("verified on 4 other inputs" in found.out) is verified
        again = call(*words, "--also", f"{wrong.parent / 'inputs.npz'},{tmp_path / 'further.npz'}")
        assert again.code == 1 and "none of " in again.out, "no edit gives two outputs for one input"
    found = call("fix", wrong, "--inputs", tmp_path / "many.npz", "--with", tmp_path / "many_out.npz")
    assert "all 12 numbers agree" in found.out
    function.write_text("def make():\n    raise RuntimeError('no weights')\n")
    found = call("fix", wrong, "--inputs", wrong.parent / "inputs.npz", "--with", f"{function}:make")
    assert found.code == 2 and "RuntimeError: no weights" in found.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--finding", "D999"), "check finds no such thing in a layer here; it finds D202"),
        (("--with", "outputs.npz", "--layer", "exp_key"), "--finding and --layer are for a search without a reference"),
        (("--test", "test.py"), "--test compares with a reference"),
        (("--device", "GPU"), "--device is for OpenVINO; compare with it: --with openvino"),
        (("--engine", "openvino"), "--engine"),
    ],
)
def test_words_that_do_not_go_together_are_refused_in_one_line(call: Call, more: tuple[str, ...], said: str) -> None:
    folder = Path(__file__).parents[3] / "sample_models" / "rwkv_overflow"
    found = call("fix", folder / "model.xml", "--inputs", folder / "inputs.npz", *more)
    assert found.code == 2 and said in found.err and found.err.count("\n") == 1


def test_without_a_reference_the_layer_of_a_finding_is_rewritten_or_refused(call: Call) -> None:
    folder = Path(__file__).parents[3] / "sample_models" / "rwkv_overflow"
    words = ("fix", folder / "model.xml", "--inputs", folder / "inputs.npz", "--finding")
    found = call(*words, "inf-born")
    assert found.code == 1 and found == call(*words, "D202")
    assert found.out.startswith("5 iterations with NaN or Inf") and "would heal the run and change" in found.out


def with_variable(operation: str, folder: Path) -> Path:
    """The root of x and a variable together, which begins with 4."""
    net = Graph()
    x = net.parameter("x", "f32", (1,))
    total = net.apply("ReadValue", net.constant([4.0]), version="opset3", variable_id="total")
    made = net.apply(operation, total, x, name="made")
    net.apply("Assign", made, version="opset3", variable_id="total")
    net.result(net.apply("Sqrt", made, name="root"), "out")
    return net.write(folder)


def test_variables_begin_as_given_on_both_sides(call: Call, tmp_path: Path) -> None:
    for name in ("wrong", "right"):
        (tmp_path / name).mkdir()
    wrong, right = with_variable("Subtract", tmp_path / "wrong"), with_variable("Add", tmp_path / "right")
    np.savez(tmp_path / "states.npz", total=np.float32([9]))
    np.savez(tmp_path / "outputs.npz", out=np.float32([4]))
    given = ("--input", "x=[7]", "--states", tmp_path / "states.npz", "--with")
    for reference in (tmp_path / "outputs.npz", right):
        assert call("fix", right, *given, reference).code == 0
        found = call("fix", wrong, *given, reference)
        assert found.code == 1 and "Add instead of Subtract" in found.out, found
    refused = call("fix", wrong, *given, right, "-o", tmp_path / "fixed.xml", "--test", tmp_path / "test.py")
    assert refused.code == 2 and "--test gives its run no variables" in refused.err


def test_a_rewrite_heals_the_run_of_the_given_variables_and_rules(call: Call, tmp_path: Path) -> None:
    model = with_variable("Subtract", tmp_path)
    assert "nothing to heal" in call("fix", model, "--input", "x=[1]").out
    assert "1. Sqrt 'root': of at least 0" in call("fix", model, "--input", "x=[1]", "--state", "total=[-2]").out
    net = Graph()
    net.result(net.apply("Exp", net.parameter("x", "f64", (2,))), "out")
    model = net.write(tmp_path)
    assert "nothing to heal" in call("fix", model, "--input", "x=[100,1]").out
    found = call("fix", model, "--input", "x=[100,1]", "--rules", "openvino")
    assert found.out.startswith("1 iteration with NaN or Inf"), found
