"""`stepper check`: the gravest finding first, exit codes, JSON and SARIF."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Call
from tests.debug.debugged import SAMPLES
from tests.debug.loops_to_break import countdown
from tests.json_answers import checked


def test_the_command_names_loop_iteration_layer_and_reason_first(call: Call, tmp_path: Path) -> None:
    model = SAMPLES / "rwkv_overflow" / "model.xml"
    words = ("check", model, "--inputs", model.with_name("inputs.npz"))
    code, out, _err = call(*words)
    assert code == 1 and "error D202 inf-born" in out.splitlines()[0]
    assert "Loop 'time_mixing': Inf is born in Exp 'exp_key' in iteration 7" in out and "see: goto exp_key@7" in out
    (found,) = checked("check", call(*words, "--json").out)["findings"]
    assert found["iterations"] == [7] and found["layer"]["name"] == "exp_key" and found["loop"]["name"] == "time_mixing"
    assert call(*words, "--ignore", "D202").code == 0
    assert call(*words, "--sarif", tmp_path / "found.sarif").code == 1
    (result,) = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "D202" and "time_mixing" in json.dumps(result)


def test_a_healthy_model_is_said_to_be_so_and_notes_fail_if_asked(call: Call, tmp_path: Path) -> None:
    model = SAMPLES / "for_loop" / "model.xml"
    assert call("check", model, "--inputs", model.with_name("inputs.npz")).out == "nothing is wrong\n"
    path = countdown().write(tmp_path)
    assert call("check", path, "--input", "number=[1]").code == 0
    assert call("check", path, "--input", "number=[1]", "--fail-on", "note").code == 1


def test_a_file_that_cannot_be_opened_is_checked_as_far_as_it_is(call: Call, tmp_path: Path) -> None:
    text = (SAMPLES / "for_loop" / "model.xml").read_text()
    (tmp_path / "model.xml").write_text(text.replace('from-layer="11" to-layer="1"', 'from-layer="77" to-layer="1"'))
    code, out, _err = call("check", tmp_path / "model.xml")
    assert code == 1 and "B101 back-edge-from-no-result" in out
