"""Short names tell layers apart, and numbers fit their cells."""

from __future__ import annotations

import math

import pytest

from tests.tui.driven import debugger_of_sample
from tui.names import carried_name, expression_name, short_names
from tui.rows import clip, number, spark


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["aten::softmax/Softmax", "aten::add/Add"], ["Softmax", "Add"]),
        (["n.q/aten::linear/MatMul", "n.v/aten::linear/MatMul"], ["q/MatMul", "v/MatMul"]),
        (["n.q/aten::linear/MatMul", "aten::linear/MatMul"], ["q/MatMul", "MatMul"]),
        (["Add", "x/Add", "y/Add"], ["Add", "x/Add", "y/Add"]),
        (["same", "same"], ["same", "same"]),
        (["a[b]/\x1b[31mc"], ["�[31mc"]),
    ],
)
def test_names_are_as_short_as_they_can_be(names: list[str], short: list[str]) -> None:
    assert short_names(names) == short


@pytest.mark.parametrize("name", ["date_normaliser", "while_loop", "nested_loop"])
def test_no_two_operations_of_a_graph_are_called_the_same(name: str) -> None:
    for program in debugger_of_sample(name).machine.compiled.programs:
        names = short_names([operation.layer.name for operation in program.operations])
        assert len(set(names)) == len(names)


def test_a_converters_number_is_left_out_and_addresses_are_cut() -> None:
    parameter = debugger_of_sample("date_normaliser").machine.compiled.programs[1].graph.parameters[5]
    assert (parameter.name, carried_name(parameter)) == ("h.9", "h")
    assert expression_name("max(`prim::Loop/Loop`::`aten::amax/ReduceMax`) > 2") == "max(ReduceMax) > 2"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1.0, "1"), (0.0881, "0.088"), (10.4812, "10.481"), (135.766, "135.77"), (1e-9, "1.0e-9"),
     (-1.5e-12, "-2e-12"), (123456.0, "123456"), (-1234567.0, "-1.2e6"), (math.nan, "NaN"), (-math.inf, "-Inf"),
     (True, "true")],
)  # fmt: skip
def test_numbers_fit_six_cells(value: float, text: str) -> None:
    assert len(number(value)) <= 6
    assert number(value) == text


def test_bars_show_what_is_not_finite_as_letters() -> None:
    assert spark([0.0, 1.0, math.nan, math.inf, None]) == "▁▆NI "
    assert spark([3.0, 3.0]) == "▁▁" and spark([-1e308, 1e308]) == "▁▆"
    assert clip("a_long_name_12", 10) == "a_lon…e_12"
