"""Equations of bodies: evaluated iteration by iteration they give what the run gives; and what has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.export.exporter import draw
from stepper.export.figure_views import rolled_figure
from stepper.export.figures.figure import EdgeKind
from stepper.export.figures.loop_facts import equations
from stepper.export.figures.loop_trace import loops_of
from stepper.export.picture import FigureContent
from stepper.export.styles import Group
from tests.export.runs import SAMPLES, sample
from tests.models import Graph, carried, invariant, joined, last, sliced

PYTHON = {"{t−1}": "before", "−": "-", "·": "*", " mod ": " % ", " div ": " // ", "≠": "!=", ", else": " else",
          "|guess_t - guess_before|": "abs(guess_t - guess_before)"}  # fmt: skip
FUNCTIONS: dict[str, Any] = {"max": np.maximum, "ReduceMax": np.max}


def formula(name: str) -> tuple[str, ...]:
    model = sample(name)
    return equations(model, loops_of(model)[0].layer)


def run(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and outputs of a sample."""
    with np.load(SAMPLES / name / "inputs.npz") as inputs:
        given = dict(inputs)
    return given, dict(stepper.run(SAMPLES / name / "model.xml", given))


def evaluated(name: str, carried: dict[str, Any], given: dict[str, Any], slices: dict[str, Any]) -> dict[str, Any]:
    """The values after the last iteration, and `count`: the equations are read as Python, one after the other."""
    lines = []
    for line in formula(name):
        for sign, other in PYTHON.items():
            line = line.replace(sign, other)
        lines.append(line)
    most = min((len(values) for values in slices.values()), default=10)
    scope, number, goes_on = FUNCTIONS | given, 0, True
    while goes_on and (number < most or lines[-1].startswith("goes on")):
        scope |= {f"{key}_before": value for key, value in carried.items()} | {"t": number}
        scope |= {f"{key}_t": values[number] for key, values in slices.items() if number < len(values)}
        for line in lines:
            left, _, right = line.partition(" = ")
            if left.startswith("goes on while "):
                goes_on = bool(np.all(eval(line.removeprefix("goes on while "), scope)))
            else:
                scope[left] = eval(right.replace(" = ", " == "), scope)
        carried = {key: scope[f"{key}_t"] for key in carried}
        number += 1
    return {**carried, "count": number}


def test_the_equations_compute_what_the_run_computes() -> None:
    given, outputs = run("while_loop")
    found = evaluated("while_loop", {"number": given["start"], "steps": 0, "peak": given["start"]}, {}, {})
    assert (found["steps"], found["peak"]) == (outputs["steps_taken"], outputs["highest"])
    given, outputs = run("for_loop")
    found = evaluated("for_loop", {"balance": given["principal"]}, {"rate": given["rate"]}, {})
    np.testing.assert_allclose(found["balance"], outputs["final_balance"], rtol=1e-6)
    given, outputs = run("do_while_loop")
    found = evaluated("do_while_loop", {"guess": given["number"]}, {"number": given["number"]}, {})
    np.testing.assert_allclose(found["guess"], np.sqrt(given["number"]), rtol=1e-4)
    given, outputs = run("reverse")
    rewards = given["rewards"].reshape(-1)[::-1]
    found = evaluated("reverse", {"later_return": np.float32(0)}, {}, {"reward": rewards})
    assert found["count"] == 8
    np.testing.assert_allclose(found["later_return"], next(iter(outputs.values())).reshape(-1)[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("specification_lstm", ("h_t, c_t = LSTM(x_row_t, h_{t−1}, c_{t−1}, W_and_R, B)", "y_t = h_t")),
        ("reverse", ("later_return_t = reward_t + later_return_{t−1} · 0.9",)),
        ("rwkv_overflow", ()),
        ("date_normaliser", ()),
    ],
)
def test_formulas_are_written_as_the_field_does_or_not_at_all(name: str, lines: tuple[str, ...]) -> None:
    assert formula(name) == lines


def test_what_needs_brackets_has_them(tmp_path: Path) -> None:
    net = Graph()
    h, x = net.parameter("h", "f32", (2, 2)), net.parameter("x", "f32", (2, 2))
    body = net.body()
    state, scale = body.parameter("h", "f32", (2, 2)), body.parameter("x", "f32", (2, 2))
    weights = body.constant(np.ones((2, 2), np.float32), name="U")
    product = body.apply(
        "MatMul", body.apply("Subtract", scale, state), weights, transpose_a="false", transpose_b="true"
    )
    less = body.apply("Subtract", product, body.apply("Subtract", state, scale))
    result = body.result(body.apply("Tanh", body.apply("Multiply", less, less)), "h_result")
    net.result(
        net.loop("cell", body, 3, True, [carried(h, state, result), invariant(x, scale)], [last(result)])[0], "y"
    )
    model = net.read(tmp_path)
    assert equations(model, loops_of(model)[0].layer) == (
        "subtract_t = (x − h_{t−1}) Uᵀ − (h_{t−1} − x)",
        "h_t = tanh(subtract_t · subtract_t)",
    )


def test_a_narrow_page_has_the_formula_below_the_iterations_and_below_the_cell() -> None:
    given, _ = run("while_loop")
    page = draw(sample("while_loop"), {**given}, view="unrolled", direction="right", preset="paper").page
    assert page is not None
    shown = " ".join(item.title for item in page.items if isinstance(item, Group))
    assert all(line in shown for line in formula("while_loop"))


def test_a_body_as_its_port_map_has_its_formula_and_back_edges_without_effect(tmp_path: Path) -> None:
    net = Graph()
    x, start, body = net.parameter("x", dims=(3, 2)), net.parameter("start", dims=(1, 2)), net.body()
    row, state = body.parameter("row", dims=(1, 2)), body.parameter("state", dims=(1, 2))
    result = body.result(body.apply("Add", row, state, name="sum"), "sum_result")
    entries = [sliced(x, row), carried(start, state, result)]
    net.result(net.tensor_iterator("a_loop_with_quite_a_long_name", body, entries, [joined(result)])[0], "y")
    path = net.write(tmp_path)
    edge = f'<edge from-layer="{result.layer}" to-layer="{row.layer}"/></back_edges>'
    path.write_text(path.read_text(encoding="utf-8").replace("</back_edges>", edge), encoding="utf-8")
    model = stepper.read_model(path)
    content = FigureContent(model=model, depth=0, cell=True)
    made = rolled_figure(model, loops_of(model)[0], content)
    lost = [(edge.source, edge.target) for edge in made.edges if edge.kind is EdgeKind.NO_EFFECT]
    assert lost == [(f"n{result.layer}", f"next{row.layer}")]
    assert "state_t = row_t + state_{t−1}" in made.equations


def test_a_name_that_has_the_index_already_gets_no_second_one(tmp_path: Path) -> None:
    def written(*names: str) -> tuple[str, ...]:
        net = Graph()
        xs, h0 = net.parameter("xs", "f32", (3,)), net.parameter("h0", "f32", (1,))
        body = net.body()
        x, h = (body.parameter(name, "f32", (1,)) for name in names[:2])
        after = body.apply("Add", body.apply("Tanh", x, name="squashed"), h, name="after")
        result = body.result(after, names[2])
        net.result(
            net.tensor_iterator("rows", body, [sliced(xs, x), carried(h0, h, result)], [joined(result)])[0], "out"
        )
        folder = tmp_path / "_".join(names)
        folder.mkdir()
        model = net.read(folder)
        return equations(model, loops_of(model)[0].layer)

    assert written("x", "h", "h_result") == ("h_t = tanh(x_t) + h_{t−1}",)
    assert written("x_t", "h_t", "h_t_result") == ("h_t = tanh(x_t) + h_{t−1}",)
    assert written("h", "h_t", "y") == ("h_t_t = tanh(h_t) + h_t_{t−1}",), "else they would not be told apart"
