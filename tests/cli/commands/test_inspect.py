"""`stepper inspect`: what a model is made of, as text and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.engine.nested_models import alternating, rows_of_rows
from tests.models import Graph, Side, carried, joined, last

SUMS = """\
model tiny, IR version 11, 18 bytes of weights
inputs
  0  x  f32[5]
outputs
  0  final  f32[1]
  1  scan   f32[?]
Loop 'sums'  (Loop-5, id 5, line N)
  trip count   Constant 'trip_count' = 5
  starts if    Constant 'condition' = True
  goes on if   Constant 'true' = True
  input        input 2 -> Parameter 0 'item': sliced, axis 0, start 0, end -1, stride 1, part_size 1  (line N)
  input        input 3 -> Parameter 1 'total': merged  (line N)
  output       Result 5 'result' -> output 0: last value  (line N)
  output       Result 5 'result' -> output 1: concatenated, axis 0, start -1, end 0, stride -1, part_size 1  (line N)
  output       Result 7 'true_result' -> -: execution condition  (line N)
  back edge    Result 5 'result' -> Parameter 1 'total'  (line N)
  body         2 operations: Add 1, Multiply 1; Constant 2, Parameter 2, Result 2
in all graphs
  5 operations: Abs 1, Add 1, Loop 1, Multiply 1, Negative 1; Constant 5, Parameter 3, Result 4
"""


def without_spread(text: str) -> list[str]:
    """Lines with single blanks between the columns of a table."""
    return [re.sub(r"(?<=\S) +", " ", line) for line in text.splitlines()]


def test_inspect_shows_inputs_outputs_and_port_map_and_needs_no_inputs(call: Call, model: Path) -> None:
    code, out, err = call("inspect", model)
    assert (code, err) == (0, "")
    assert without_spread(re.sub(r"line \d+", "line N", out)) == without_spread(SUMS)


def test_lines_are_those_of_the_file(call: Call, model: Path) -> None:
    written = model.read_text().splitlines()
    shown = {
        text.strip(): written[int(line) - 1]
        for text, line in re.findall(r"(.*)line (\d+)\)", call("inspect", model).out)
    }
    assert len(shown) == 7
    for text, line in shown.items():
        if text.startswith("Loop"):
            assert 'type="Loop"' in line
        elif text.startswith("back edge"):
            assert line == '<edge from-layer="5" to-layer="1"/>'
        else:
            direction, inner = re.match(r"(input|output).*?(?:Parameter|Result) (\d+)", text).groups()  # type: ignore[union-attr]
            assert line.startswith(f"<{direction} ") and f'internal_layer_id="{inner}"' in line


def test_json_says_the_same_in_data(call: Call, model: Path) -> None:
    code, out, err = call("inspect", model, "--json")
    report = json.loads(out)
    assert (code, err) == (0, "") and report["schema"] == 1 and report["model"] == str(model)
    assert report["inputs"] == [{"name": "x", "tensor_names": [], "type": "f32", "shape": "[5]"}]
    assert [output["name"] for output in report["outputs"]] == ["final", "scan"]
    (loop,) = report["loops"]
    assert (loop["path"], loop["type"], loop["layer"]["id"]) == ("model > Loop 'sums'", "Loop-5", 5)
    roles = [(entry["role"], entry["outer"], entry["inner"]["name"]) for entry in loop["entries"]]
    assert roles == [
        ("sliced", 2, "item"),
        ("merged", 3, "total"),
        ("last value", 0, "result"),
        ("concatenated", 1, "result"),
        ("execution condition", None, "true_result"),
    ]
    assert loop["entries"][3]["slicing"] == {"axis": 0, "start": -1, "end": 0, "stride": -1, "part_size": 1}
    control = loop["control"]
    assert [control[word]["value"] for word in ("trip_count", "condition", "goes_on")] == [5, True, True]
    (edge,) = loop["back_edges"]
    assert (edge["result"]["name"], edge["parameter"]["name"]) == ("result", "total")
    assert report["operations"]["Loop"] == 1 and report["without_kernel"] == []


def test_nested_loops_and_branches_stand_outer_before_inner(call: Call, tmp_path: Path) -> None:
    out = call("inspect", alternating().write(tmp_path)).out
    heads = [line.split("  (")[0] for line in out.splitlines() if re.match(r"Loop|If", line)]
    assert heads == ["Loop 'until_one'", "Loop 'until_one' > If 'next'"]
    assert "  condition    Equal 'even'" in out
    assert "input 1 -> Parameter 0 'n': then: input" in out and "input 1 -> Parameter 0 'm': else: input" in out


def test_a_tensor_iterator_says_what_its_count_comes_from(call: Call, tmp_path: Path) -> None:
    out = call("inspect", rows_of_rows().write(tmp_path)).out
    assert out.count("  trip count   as many as input 0 has slices\n") == 2
    net = Graph()
    body = net.body()
    state = body.parameter("state")
    result = body.result(body.apply("Negative", state))
    net.result(net.tensor_iterator("once", body, [carried(net.parameter("x"), state, result)], [last(result)])[0])
    assert "  trip count   as its outputs say\n" in call("inspect", net.write(tmp_path)).out


def test_control_values_that_come_at_run_time_name_their_source(call: Call, tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state")
    result = body.result(body.apply("Negative", state))
    count, go = net.parameter("n", "i64"), net.apply("LogicalNot", net.parameter("stop", "boolean"), name="go")
    net.result(net.loop("l", body, count, go, [carried(net.constant(1.0), state, result)], [last(result)])[0])
    out = call("inspect", net.write(tmp_path)).out
    assert (
        "  trip count   Parameter 'n'\n  starts if    LogicalNot 'go'\n  goes on if   Constant 'true' = True\n" in out
    )


def test_what_has_no_kernel_is_listed_with_its_place(call: Call, tmp_path: Path) -> None:
    net = Graph()
    go, x = net.parameter("go", "boolean"), net.parameter("x")
    sides = []
    for operation, version in (("Abs", "opset1"), ("Mystery", "extension")):
        side = net.body()
        inside = side.parameter("inside")
        sides.append(Side(side, [(x, inside)], [side.result(side.apply(operation, inside, version=version))]))
    net.result(net.branch("choice", go, *sides)[0])
    path = net.write(tmp_path)
    code, out, _err = call("inspect", path)
    assert (
        code == 0
        and "without a kernel (" in out
        and "openvino" in out.lower()
        and "  Mystery-extension 'mystery' in model > If 'choice'" in out
    )
    (without,) = json.loads(call("inspect", path, "--json").out)["without_kernel"]
    assert (without["operation"], without["layer"]["name"]) == ("Mystery-extension", "mystery")


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_a_model_without_its_weights_can_be_inspected(call: Call, model: Path, option: tuple[str, ...]) -> None:
    model.with_suffix(".bin").unlink()
    code, out, _err = call("inspect", model, *option)
    assert code == 0
    if option:
        assert json.loads(out)["weights"] is None
    else:
        assert (
            out.startswith("model tiny, IR version 11, no .bin\n") and "  trip count   Constant 'trip_count'\n" in out
        )


def test_tensor_names_are_shown_with_inputs_and_outputs(call: Call, tmp_path: Path) -> None:
    net = Graph()
    net.result(net.parameter("x", "i64", (-1, 3), names="first,second"), "out")
    out = call("inspect", net.write(tmp_path)).out
    assert without_spread(out)[1:5] == [
        "inputs",
        "  0 x i64[?,3] (also: first, second)",
        "outputs",
        "  0 first i64[?,3] (also: second, out)",
    ]


def test_how_a_value_goes_in_out_and_round(call: Call, tmp_path: Path) -> None:
    """Names of layers on both sides of the port map, as `sums` is built; a name of nothing is wrong usage."""
    net = Graph()
    body = net.body()
    count, state = body.parameter("count", "i64", (1,)), body.parameter("state", dims=(1,))
    more = body.apply("Add", state, body.constant([1.0]), name="more")
    out = body.result(more, "state_next")
    start = net.constant([0.0], name="start")
    final, scan = net.loop("loop", body, 3, True, [carried(start, state, out)], [last(out), joined(out)], None, count)
    net.result(final, "final")
    net.result(scan, "scan")
    path = net.write(tmp_path)

    def told(*names: str) -> list[str]:
        code, said, _ = call("inspect", str(path), *names)
        assert code == 0
        return [re.sub(r"  \(line \d+\)$", "", line) for line in said.splitlines()]

    carrying = (
        f"Loop 'loop': Result {out.layer} 'state_next' -> Parameter {state.layer} 'state': back edge, from the next"
    )
    came = (
        f"Loop 'loop': Constant 'start' -> input 2 -> Parameter {state.layer} 'state': merged, the value of the first"
    )
    assert told("start") == told("state") == [f"{came} iteration", f"{carrying} iteration on"]
    (number,) = told("count")
    assert "current iteration, which counts 0, 1, 2, ...; the trip count is Constant 'trip_count' = 3" in number
    joined_, _ = told("scan")
    assert f"Result {out.layer} 'state_next' -> output 1 -> Result 'scan': concatenated, axis 0" in joined_
    assert told("final")[0].endswith("-> output 0 -> Result 'final': last value")
    assert told("loop")[0].startswith(f"Loop 'loop'  (Loop-5, id {final.layer}, line ")
    code, _, said = call("inspect", str(path), "stat")
    assert code == 2 and "nothing that goes into one is named 'stat'; near are" in " ".join(said.split())
