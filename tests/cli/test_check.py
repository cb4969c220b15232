"""`stepper check`: the gravest finding first, exit codes, JSON and SARIF."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.ir.model import Graph as IRGraph
from stepper.ir.model import Layer
from stepper.openvino.peer import JointOperations, OpenVINOPeer
from stepper.openvino.program import is_installed
from tests.cli.conftest import Call
from tests.debug.debugged import SAMPLES
from tests.debug.loops_to_break import countdown, recurrence
from tests.json_answers import checked
from tests.models import Graph, joined, sliced


def test_the_command_names_loop_iteration_layer_and_reason_first(call: Call, tmp_path: Path) -> None:
    model = SAMPLES / "rwkv_overflow" / "model.xml"
    words = ("check", model, "--inputs", model.with_name("inputs.npz"), "--with", "none")
    code, out, _err = call(*words)
    assert (
        code == 1 and "error D202 inf-born: Loop 'time_mixing', iteration 7: Inf first appears in Exp 'exp_key'" in out
    )
    assert "D202" in out.splitlines()[0] and "see: goto exp_key@7" in out
    (found,) = checked("check", call(*words, "--json").out)["findings"]
    assert found["iterations"] == [7] and found["layer"]["name"] == "exp_key" and found["loop"]["name"] == "time_mixing"
    (shows,) = [line.partition("see: ")[2] for line in out.splitlines() if "see: " in line]
    (tmp_path / "commands").write_text(f"{shows}\nprint exp_key\n")
    given = ("--inputs", model.with_name("inputs.npz"), "--script", tmp_path / "commands", "--no-keep")
    seen = call("debug", model, *given)
    assert seen.code == 0 and "inf" in seen.out
    assert call(*words, "--ignore", "D202").code == 0
    assert call(*words, "--sarif", tmp_path / "found.sarif").code == 1
    (result,) = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "D202" and "time_mixing" in json.dumps(result)


def test_a_healthy_model_is_said_to_be_so_and_notes_fail_if_asked(call: Call, tmp_path: Path) -> None:
    model = SAMPLES / "for_loop" / "model.xml"
    words = ("check", model, "--inputs", model.with_name("inputs.npz"), "--with", "none")
    looked_for = "NaN, Inf, shapes, recurrence, integer overflow, indices, saturation, rounding, effect of inputs"
    assert call(*words).out == f"nothing is wrong\nchecked: {looked_for}\n"
    assert checked("check", call(*words, "--json").out)["checked"] == looked_for.split(", ")
    assert call(*words, "--as", "bf16").out.endswith(f"checked: {looked_for}, bf16\n")
    path = countdown().write(tmp_path)
    assert call("check", path, "--input", "number=[1]", "--with", "none").code == 0
    assert call("check", path, "--input", "number=[1]", "--fail-on", "note", "--with", "none").code == 1


def test_what_a_cut_off_run_was_not_checked_for_is_not_claimed(call: Call, tmp_path: Path) -> None:
    path = recurrence("Add", 1.0, 50_000_000).write(tmp_path)
    cut = checked("check", call("check", path, "--with", "none", "--seconds", "0.05", "--json").out)["checked"]
    assert not {"shapes", "recurrence", "integer overflow"} & {*cut}


def test_a_file_that_cannot_be_opened_is_checked_as_far_as_it_is(call: Call, tmp_path: Path) -> None:
    text = (SAMPLES / "for_loop" / "model.xml").read_text()
    (tmp_path / "model.xml").write_text(text.replace('from-layer="11" to-layer="1"', 'from-layer="77" to-layer="1"'))
    code, out, _err = call("check", tmp_path / "model.xml")
    assert code == 1 and "B101 back-edge-from-no-result" in out


def test_a_healthy_twin_as_the_reference_names_the_fault_first(call: Call, tmp_path: Path) -> None:
    """The model adds where its twin subtracts; the twin's values as an archive show the iteration as well."""
    model = recurrence("Add", 2.0, 4).write(tmp_path)
    (tmp_path / "twin").mkdir()
    twin = recurrence("Subtract", 2.0, 4).write(tmp_path / "twin")
    out = call("check", model, "--with", twin).out
    assert "differs-from-reference: Loop 'loop', iteration 0: " in out.splitlines()[0]
    assert "is an Add where the reference has a Subtract" in out and "see: goto following@0" in out
    np.savez(tmp_path / "right.npz", **{"following@0": np.float32([3]), "following@1": np.float32([5.5])})
    (found,) = checked("check", call("check", model, "--with", tmp_path / "right.npz", "--json").out)["findings"]
    assert found["iterations"] == [1] and found["layer"]["name"] == "following" and found["address"] == "following@1"
    assert call("check", model, "--with", "openvno").code == 2


@pytest.mark.skipif(not is_installed(), reason="needs OpenVINO")
def test_openvino_is_asked_where_it_is_there_and_what_it_is_known_to_do_is_a_note(call: Call, tmp_path: Path) -> None:
    """100 + 200 is 44 in u8, which wraps; OpenVINO's CPU plugin gives 255. A negative axis it refuses."""
    net = Graph()
    x, body = net.parameter("x", "u8", (3, 1)), net.body()
    item = body.parameter("item", "u8", (1, 1))
    total = body.apply("Add", item, body.constant([[200]], np.uint8), name="total")
    (scan,) = net.tensor_iterator("rows", body, [sliced(x, item)], [joined(body.result(total))])
    net.result(scan, "sums")
    answer = call("check", net.write(tmp_path), "--input", "x=[[1],[2],[100]]", "--json")
    found = checked("check", answer.out)["findings"]
    rules = {one["rule"] for one in found}
    assert answer.code == 0 and rules == {"runtime-departs", "bytes-saturate", "integer-overflow"}
    assert {one["layer"]["name"] for one in found} == {"total"}
    scan = net.tensor_iterator("again", body, [sliced(x, item, axis=-2)], [joined(body.result(total))])[0]
    net.result(scan, "again")
    out = call("check", net.write(tmp_path), "--input", "x=[[1],[2],[100]]").out
    assert "S201" in out and "note D502 reference-stops: openvino stops: OpenVINO refuses the model" in out


@pytest.mark.skipif(not is_installed(), reason="needs OpenVINO")
def test_without_being_asked_openvinos_outputs_alone_are_compared(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operations are computed by themselves only to find out why outputs differ."""
    asked: list[str] = []
    together = OpenVINOPeer.together

    def counted(self: OpenVINOPeer, graph: IRGraph, layers: Sequence[Layer], *given: Any) -> JointOperations:
        asked.extend(layer.name for layer in layers)
        return together(self, graph, layers, *given)

    monkeypatch.setattr(OpenVINOPeer, "together", counted)
    model = recurrence("Add", 1.5, 6).write(tmp_path)
    answer = call("check", model)
    assert answer.code == 0 and not asked and ", difference from openvino\n" in answer.out
    assert call("check", model, "--with", "openvino").code == 0 and "following" in asked


def test_a_file_that_cannot_run_gets_the_findings_of_its_rules(call: Call, tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(4, 2)), net.body()
    row = body.parameter("row", dims=(1, 2))
    (scan,) = net.tensor_iterator("rows", body, [sliced(x, row)], [joined(body.result(row), part_size=2)])
    net.result(scan, "out")
    code, out, _err = call("check", net.write(tmp_path), "--input", "x=ones", "--with", "none", "-q")
    assert code == 1 and "error S206 part-size-against-stride: TensorIterator 'rows'" in out.splitlines()[0]
