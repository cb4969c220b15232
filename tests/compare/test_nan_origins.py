"""Where NaN and infinities are born: operation, iteration, what it was given; silent where they are meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stepper.compare.comparison import text_lines
from tests.compare.twins import compared
from tests.models import Graph, carried, last
from tests.tables import each_row


def shrinking(start: float, step: str, constant: float, then: str = "") -> Graph:
    """Five iterations of x' = then(x `step` constant) on one number; gives the last x."""
    graph = Graph()
    first = graph.constant(np.full(1, start, np.float32), name="first")
    shift = graph.parameter("shift", "f32", (1,))
    body = graph.body()
    x = body.parameter("x", "f32", (1,))
    stepped = body.apply(step, x, body.constant(np.full(1, constant, np.float32), name="by"), name="stepped")
    result = body.result(body.apply(then, stepped, name="after") if then else stepped, "x_next")
    (final,) = graph.loop("shrinking", body, 5, True, [carried(first, x, result)], [last(result)])
    graph.result(graph.apply("Add", final, shift, name="moved"), "final")
    return graph


SHIFT = np.zeros(1, np.float32)


@each_row(
    ("ours", "born", "iteration", "why"),
    [
        (shrinking(1, "Subtract", 1, "Log"), "Log 'after'", 0, "log(0) gives -Inf: Subtract 'stepped' is 0"),
        (shrinking(2.5, "Subtract", 1, "Sqrt"), "Sqrt 'after'", 2, "sqrt(-0.5259) gives NaN"),
        (shrinking(1e30, "Multiply", 1e5), "Multiply 'stepped'", 1, "1e+35 * 1e+05 > f32 maximum"),
        (shrinking(0, "Divide", 0), "Divide 'stepped'", 0, "0 / 0 gives NaN: Parameter 'x' is 0"),
        (shrinking(30, "Multiply", 1, "Exp"), "Exp 'after'", 1, "exp(1.069e+13) > f32 maximum exp(88.72)"),
    ],
)
def test_the_first_lines_name_where_it_is_born(
    ours: Graph, born: str, iteration: int, why: str, tmp_path: Path
) -> None:
    comparison = compared(tmp_path, ours, shrinking(1, "Multiply", 1), SHIFT)
    head = " ".join(" ".join(text_lines(comparison)[:12]).split())
    assert f"first appears in {born}" in head and f"in Loop 'shrinking' #{iteration}" in head
    assert why in head


def test_what_both_sides_have_is_a_note_where_it_comes_out_of_the_model(tmp_path: Path) -> None:
    comparison = compared(tmp_path, shrinking(0, "Divide", 0), shrinking(0, "Divide", 0), SHIFT)
    assert not comparison.differs
    text = " ".join(" ".join(text_lines(comparison)).split())
    assert "note: on both sides NaN (not a number) first appears in Divide 'stepped'" in text


@each_row("start", [float("inf"), 1e30])
def test_infinities_that_both_sides_have_are_not_told(start: float, tmp_path: Path) -> None:
    comparison = compared(tmp_path, shrinking(start, "Multiply", 1e5), shrinking(start, "Multiply", 1e5), SHIFT)
    assert len(text_lines(comparison)) == 1


def test_what_comes_in_with_the_inputs_is_not_said_to_be_born(tmp_path: Path) -> None:
    comparison = compared(tmp_path, shrinking(1, "Multiply", 1), shrinking(1, "Multiply", 1), SHIFT + np.nan)
    text = " ".join(" ".join(text_lines(comparison)).split())
    assert "comes in with the model's inputs, first read by Add 'moved'" in text and "first appears" not in text
