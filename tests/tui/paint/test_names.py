"""Short names tell layers apart, and numbers fit their cells."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from stepper_tui.launch import model_name
from stepper_tui.paint.rows import bars_of, carried_name, clip, expression_name, operation_names

import stepper
from stepper.ir.reader import read
from stepper.tensors.number_text import fitted
from stepper.tensors.tensor_pictures import bar_scale
from tests.debug.debugged import SAMPLES
from tests.models import Graph
from tests.tui.driven import debugger_of_sample


def test_nothing_in_a_name_moves_the_cursor(tmp_path: Path) -> None:
    graph = Graph()
    graph.result(graph.apply("Tanh", graph.parameter("x", "f32", (2,)), name="a[b]/&#x9b;31mc"))
    program = stepper.compile_model(graph.read(tmp_path)).main
    assert operation_names(program) == ("�31mc",)


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
    assert len(fitted(value)) <= 6
    assert fitted(value) == text


def test_bars_show_what_is_not_finite_as_letters() -> None:
    def bars(*numbers: float) -> str:
        return bars_of(np.array(numbers), bar_scale(np.array(numbers), may_be_log=False))

    assert bars(0.0, 1.0, math.nan, math.inf) == "▁▆NI"
    assert bars(1.0, 2.0, 1e9, 1.5) == "▁▆▆▃", "one outlier does not flatten the others"
    assert bars(3.0, 3.0) == "▃▃" and bars(-1e308, 1e308) == "▁▆"
    assert clip("a_long_name_12", 10) == "a_lon…e_12"


def test_a_converted_model_has_the_name_of_its_file_and_not_of_the_copy() -> None:
    path = SAMPLES / "nested_loop" / "model.xml"
    assert model_name(read(path)) == "nested_loop", "its folder, where the file is called model"
    assert model_name(read(path, "tagger.onnx")) == "tagger.onnx"
