"""`--state`, `--states` and `--save-states`: variables go from one call of the program to the next."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.openvino.peer import OpenVINOPeer
from tests.cli.conftest import Call
from tests.models import Graph, carried, last
from tests.tables import each_row


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """`total` grows by x in each of three iterations; the output is what it was before the last."""
    net = Graph()
    x = net.parameter("x", "f32", (1,))
    body = net.body()
    h = body.parameter("h", "f32", (1,))
    before = body.apply("ReadValue", body.constant([100.0]), version="opset3", variable_id="total")
    body.apply("Assign", body.apply("Add", before, h), version="opset3", variable_id="total")
    again, result = body.result(h), body.result(before)
    net.result(net.loop("l", body, 3, True, [carried(x, h, again)], [last(result)])[0], "before")
    return net.read(tmp_path).path


def test_variables_go_on_where_the_run_before_left_them(call: Call, model: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.npz"
    first = call("run", model, "--input", "x=[5]", "--save-states", kept, "--json")
    assert json.loads(first.out)["states"] == [{"name": "total", "type": "f32", "shape": [1], "values": [115.0]}]
    with np.load(kept) as archive:
        assert dict(archive) == {"total": np.float32([115])}
    second = call("run", model, "--input", "x=[2]", "--states", kept)
    assert "before  f32[1]  119" in second.out and "total  f32[1]  121" in second.out
    third = call("run", model, "--input", "x=[2]", "--states", kept, "--state", "total=[1]")
    assert "before  f32[1]  5" in third.out and "total  f32[1]  7" in third.out


def test_debug_and_compare_begin_with_them_too(call: Call, model: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("last\nreverse-step 3\np readvalue\n")
    given = ("--input", "x=[2]", "--state", "total=[7]")
    told = call("debug", model, *given, "--script", script, "--json")
    answers = [json.loads(line)["answer"] for line in told.out.splitlines()]
    assert answers[-1]["values"] == [7 + 2 + 2]
    kept = tmp_path / "kept.npz"
    script.write_text("last\n")
    assert call("debug", model, *given, "--script", script, "--save-states", kept).code == 0
    with np.load(kept) as archive:
        assert archive["total"] == [7 + 3 * 2]
    assert call("debug", model, *given, "--states", kept, "--script", script, "--save-states", kept).code == 2
    assert call("compare", model, *given, "--with", model).code == 0
    refused = call("compare", model, *given, "--with", "onnx")
    assert refused.code == 2 and "begins with the variables that the model has" in refused.err


@pytest.mark.skipif(find_spec("openvino") is None, reason="needs OpenVINO")
def test_openvino_begins_with_them_too(call: Call, tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", "f32", (1,))
    before = net.apply("ReadValue", net.constant([100.0]), version="opset3", variable_id="total")
    net.apply("Assign", net.apply("Add", before, x), version="opset3", variable_id="total")
    net.result(net.apply("Multiply", before, x), "product")
    path = net.read(tmp_path).path
    given = ("--input", "x=[2]", "--state", "total=[7]")
    with np.load(call("run", path, *given, "--outputs", tmp_path / "o.npz") and tmp_path / "o.npz") as archive:
        assert archive["product"] == [14]
    compared = call("compare", path, *given, "--with", "openvino", "--json")
    assert compared.code == 0 and json.loads(compared.out)["verdict"] is None
    passes = call("passes", path, *given, "--json")
    assert passes.code == 0 and json.loads(passes.out)["runtime"] == []
    # Each run of the runtime begins anew, and without values of ours with those of the model.
    peer = OpenVINOPeer(stepper.read_model(path), states={"total": np.float32([7])})
    x_is_2 = [np.float32([2])]
    assert [peer.run(x_is_2)[0].item() for _ in range(2)] == [14, 14]
    assert OpenVINOPeer(stepper.read_model(path)).run(x_is_2)[0].item() == 200


@each_row(
    ("words", "code", "message"),
    [
        (("--state", "totl=[1]"), 2, "the model has no variable 'totl'; its variables are total: f32[1]"),
        (("--state", "total=[1,2]"), 3, "'total' is given the shape [2], expected f32[1]"),
        (("--state", "total"), 2, "--state total: NAME=VALUE is expected, such as h=h0.npy"),
        (
            ("--state", "total=what"),
            2,
            "variable 'total': 'what' is not a value; expected FILE.npy, FILE.npz:KEY, zeros",
        ),
        (("--states", "none.npz"), 3, "none.npz: cannot be read"),
        (("--save-states", "-"), 2, "--save-states writes a file"),
        (("--save-states", "x.txt"), 2, "x.txt"),
    ],
)
def test_what_does_not_fit_is_one_message(
    call: Call, model: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    found = call("run", model, "--input", "x=[2]", *words)
    assert found.code == code and message in found.err and len(found.err.splitlines()) == 1


def test_a_file_of_states_is_not_written_over(call: Call, model: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.npz"
    call("run", model, "--input", "x=[5]", "--save-states", kept)
    before = kept.read_bytes()
    found = call("run", model, "--input", "x=[5]", "--states", kept, "--save-states", kept)
    assert found.code == 2 and "that is the file of --states" in found.err and kept.read_bytes() == before


def test_a_recording_and_a_session_know_with_what_they_began(call: Call, model: Path, tmp_path: Path) -> None:
    trace, session, script = tmp_path / "run.trace", tmp_path / "kept.session", tmp_path / "script"
    given = ("--input", "x=[2]", "--state", "total=[7]")
    expected = call("run", model, *given)
    stopped = call("run", model, *given, "--trace", trace, "--break", "l@1")
    assert stopped.code == 1
    assert call("run", "--resume", trace).out == expected.out
    drawn = call("export", trace, "--view", "unrolled", "--as", "csv", "--values", "full")
    assert drawn.code == 0 and "11" in drawn.out and "107" not in drawn.out
    script.write_text("last\n")
    assert call("debug", model, *given, "--session", session, "--script", script).code == 0
    script.write_text("first\nlast\nreverse-step 3\np readvalue\n")
    assert call("debug", model, "--session", session, "--script", script).out.splitlines()[-1].endswith("[11.]")
    other = call("debug", model, "--session", session, "--state", "total=[8]", "--script", script)
    assert other.code == 3 and "the variable 'total' is not the one that was recorded: its values differ" in other.err


def test_inspect_lists_the_variables(call: Call, model: Path) -> None:
    assert "variables\n  total  f32[1]\n" in call("inspect", model).out
    listed = json.loads(call("inspect", model, "--json").out)["variables"]
    assert listed == [{"name": "total", "tensor_names": [], "type": "f32", "shape": "[1]"}]
