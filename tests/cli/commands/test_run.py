"""`stepper run`: what it reports, as text and as JSON."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from tests.cli.conftest import Call
from tests.engine.nested_models import multiplication_table
from tests.models import Graph, carried, joined, last
from tests.tables import each_row

X = "[1,2,3,4,5]"
RUN = """\
outputs
  final  f32[1]  114
  scan   f32[5]  -114 -52 -22 -8 -2
loops
  Loop 'sums': 5 iterations, trip count reached
"""


def strict(text: str) -> Any:
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


def test_run_reports_outputs_and_loops(call: Call, model: Path) -> None:
    assert call("run", model, "--input", f"x={X}") == (0, RUN, "")


def test_loops_that_run_often_are_summed_up(call: Call, tmp_path: Path) -> None:
    path = multiplication_table().write(tmp_path)
    assert call("run", path, "--input", "rows=4", "--input", "columns=3").out == (
        "outputs\n"
        "  table  i64[4,3]  0 0 0 0 1 2 0 2 ... (12 in all)\n"
        "loops\n"
        "  Loop 'rows' > Loop 'columns': entered 4 times, 3 iterations each, 12 in all; trip count reached (4x)\n"
        "  Loop 'rows': 4 iterations, trip count reached\n"
    )


def test_json_has_outputs_loops_and_notes(call: Call, model: Path) -> None:
    code, out, err = call("run", model, "--input", f"x={X}", "--json")
    assert (code, err) == (0, "") and out.endswith("}\n")
    line = 1 + next(n for n, text in enumerate(model.read_text().splitlines()) if 'name="sums"' in text)
    assert strict(out) == {
        "schema": 1,
        "model": str(model),
        "rules": "spec",
        "outputs": [
            {"name": "final", "type": "f32", "shape": [1], "values": [114.0]},
            {"name": "scan", "type": "f32", "shape": [5], "values": [-114.0, -52.0, -22.0, -8.0, -2.0]},
        ],
        "loops": [
            {
                "path": "model > Loop 'sums'",
                "layer": {"id": 5, "name": "sums", "type": "Loop", "file": str(model), "line": line},
                "executions": 1,
                "iterations": 5,
                "fewest": 5,
                "most": 5,
                "ended": {"trip count reached": 1},
            }
        ],
        "states": [],
        "computed_by": {},
        "elsewhere": [],
        "notes": [],
    }


def test_the_same_run_writes_the_same_bytes(call: Call, model: Path) -> None:
    words = ("run", model, "--input", "x=rand:7", "--json")
    assert call(*words) == call(*words)


def passing(folder: Path, type: str, dims: tuple[int, ...] = (-1,), name: str = "x") -> Path:
    """A model whose output is its input."""
    net = Graph()
    net.result(net.parameter(name, type, dims), "out")
    return net.write(folder)


def test_json_stays_valid_with_what_is_no_number(call: Call, tmp_path: Path) -> None:
    np.save(tmp_path / "odd.npy", np.array([np.nan, np.inf, -np.inf, 0.5], np.float32))
    out = call("run", passing(tmp_path, "f32"), "--input", f"x={tmp_path / 'odd.npy'}", "--json").out
    assert strict(out)["outputs"][0]["values"] == ["NaN", "Infinity", "-Infinity", 0.5]


@each_row(("count", "shown"), [(1000, True), (1001, False)])
def test_json_leaves_the_numbers_of_large_outputs_out(call: Call, tmp_path: Path, count: int, shown: bool) -> None:
    words = ("run", passing(tmp_path, "f32"), "--input", "x=ones", "--shape", f"x={count}", "--json")
    (output,) = strict(call(*words).out)["outputs"]
    assert output["shape"] == [count] and output["values"] == ([1.0] * count if shown else None)


@each_row(
    ("type", "literal", "text"),
    [
        ("boolean", "[true,false]", "true false"),
        ("i64", "[9223372036854775807,-1]", "9223372036854775807 -1"),
        ("f32", "[0.1,1e-30]", "0.1 1e-30"),
        ("f16", "[0.1,65504]", "0.0999756 65504"),
        ("bf16", "[0.1,3]", "0.100098 3"),
        ("f64", "[0.1]", "0.1"),
        ("u4", "[15,0]", "15 0"),
        ("string", '["a b","é\\n"]', "'a b' 'é\\n'"),
        ("f32", "[]", ""),
    ],
)
def test_values_of_every_type_are_shown_in_text_and_json(
    call: Call, tmp_path: Path, type: str, literal: str, text: str
) -> None:
    path = passing(tmp_path, type)
    count = len(json.loads(literal))
    line = f"  out  {type}[{count}]  {text}".rstrip()
    assert call("run", path, "--input", f"x={literal}").out.splitlines() == ["outputs", line]
    (output,) = strict(call("run", path, "--input", f"x={literal}", "--json").out)["outputs"]
    assert output["type"] == type and len(output["values"]) == count


def noted(folder: Path) -> Path:
    """A Loop whose trip count is -5, which the rule books judge differently."""
    net = Graph()
    body = net.body()
    x, state = net.parameter("x"), body.parameter("state")
    half = body.apply("Multiply", state, body.constant(0.5))
    above = body.result(body.apply("Greater", half, body.constant(1.0), type="boolean"))
    result = body.result(half)
    outputs = [last(result), joined(result)]
    for index, value in enumerate(net.loop("l", body, -5, True, [carried(x, state, result)], outputs, above)):
        net.result(value, f"out{index}")
    return net.write(folder)


def test_notes_go_to_stderr_and_the_rule_book_can_be_chosen(call: Call, tmp_path: Path) -> None:
    path = noted(tmp_path)
    called = call("run", path, "--input", "x=8")
    text = "the trip count is -5: as any negative one it means unlimited"
    text += ", OpenVINO refuses it where an output is concatenated"
    assert called.code == 0 and "note" not in called.out
    assert called.err == (
        f"notes (what --rules openvino does otherwise, and what is undefined)\n  model > Loop 'l': {text}\n"
    )
    report = strict(call("run", path, "--input", "x=8", "--json").out)
    assert report["notes"] == [{"place": "model > Loop 'l'", "text": text}]
    refused = call("run", path, "--input", "x=8", "--rules", "openvino")
    assert refused.code == 3 and refused.err.startswith(
        "stepper: model > Loop 'l': the trip count is -5, which OpenVINO"
    )


@each_row("option", ["-q", "--quiet"])
def test_quiet_leaves_the_notes_out(call: Call, tmp_path: Path, option: str) -> None:
    code, out, err = call("run", noted(tmp_path), "--input", "x=8", option)
    assert code == 0 and err == "" and out.startswith("outputs\n  out0")


def test_the_limit_on_iterations_ends_a_run_with_code_4(call: Call, model: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.npz"
    words = ("run", model, "--input", f"x={X}", "-o", target)
    called = call(*words, "--max-iterations", 4)
    assert (called.code, called.out) == (4, "")
    said = "stepper: model > Loop 'sums' #3: the loop needs more than 4 iterations, the limit that was set"
    assert re.fullmatch(re.escape(f"{said} ({model}:") + r"[1-9][0-9]*\)\n", called.err)
    assert not target.exists()
    assert call(*words, "--max-iterations", 5).code == 0


def test_the_limit_on_tensors_ends_a_run_with_code_4_and_holds_for_that_run_alone(call: Call, tmp_path: Path) -> None:
    net = Graph()
    size = net.parameter("size", "i64", (1,))
    net.result(net.apply("Broadcast", net.constant(1.0), size, dims=(-1,), version="opset3", mode="numpy", name="wide"))
    path = net.write(tmp_path)
    called = call("run", path, "--input", "size=[300000]", "--largest-tensor", "1MB")
    assert (
        called.code == 4
        and "model > Broadcast 'wide': a tensor of shape [300000] takes 1.1 MB, the limit is 1 MB" in called.err
    )
    assert call("run", path, "--input", "size=[300000]").code == 0
    assert call("run", path, "--input", "size=[300000]", "--largest-tensor", "2 mb").code == 0


def test_an_operation_without_a_kernel_ends_a_run_with_code_5(call: Call, tmp_path: Path) -> None:
    net = Graph()
    net.result(net.apply("Mystery", net.parameter("x"), version="extension"))
    called = call("run", net.write(tmp_path), "--input", "x=1")
    assert called.code == 5 and called.err.startswith(
        "stepper: model > Mystery 'mystery': there is no kernel for Mystery"
    )


def test_a_failing_operation_ends_a_run_with_code_3_and_its_place(call: Call, tmp_path: Path) -> None:
    net = Graph()
    net.result(net.apply("Add", net.parameter("x", dims=(-1,)), net.constant([1.0, 2.0]), name="sum"))
    path = net.write(tmp_path)
    line = 1 + path.read_text().split('name="sum"')[0].count("\n")
    called = call("run", path, "--input", "x=[1,2,3]")
    assert called.code == 3 and called.err.startswith("stepper: model > Add 'sum': ")
    assert called.err.endswith(f"(inputs: f32[3], f32[2]) ({path}:{line})\n")


def outputs_in(data: bytes | Path) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data) if isinstance(data, bytes) else data) as arrays:
        return dict(arrays)


def test_outputs_are_written_in_their_order_the_same_bytes_each_time(call: Call, model: Path, tmp_path: Path) -> None:
    contents = []
    for name in ("a.npz", "b.npz"):
        target = tmp_path / name
        assert call("run", model, "--input", f"x={X}", "--outputs", target) == (0, RUN, "")
        contents.append(target.read_bytes())
        assert list(outputs_in(target)) == ["final", "scan"]
    assert contents[0] == contents[1] and len(list(tmp_path.iterdir())) == 4
    assert outputs_in(contents[0])["scan"].tolist() == [-114, -52, -22, -8, -2]


def test_the_outputs_of_one_run_are_inputs_of_the_next(call: Call, model: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.npz"
    call("run", model, "--input", "x=ones", "-o", target)
    assert call("run", model, "--input", f"x={target}:scan").code == 0


@each_row(("type", "stored"), [("bf16", np.float32), ("u4", np.int8), ("f8e4m3", np.float32)])
def test_types_that_archives_lack_are_written_wider(call: Call, tmp_path: Path, type: str, stored: type) -> None:
    path, target = passing(tmp_path, type), tmp_path / "out.npz"
    assert call("run", path, "--input", "x=[1,3]", "-o", target).code == 0
    assert outputs_in(target)["out"].tolist() == [1, 3] and outputs_in(target)["out"].dtype == stored
