"""Every figure of a loop says when it starts, what it goes on for, and how many iterations there are at most."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.errors import UsageError
from stepper.export.exporter import draw
from stepper.export.figures.loop_facts import loop_facts
from stepper.export.figures.loop_trace import loops_of
from stepper.export.styles import TextLine
from stepper.ir.model import Model
from tests.export.runs import SAMPLES, picture, sample
from tests.models import Graph, Value, carried, last, sliced
from tests.tables import each_row


def counting(trip_count: int | str, starts: bool | str, goes_on: bool | str, folder: Path) -> Model:
    """A loop that doubles h; a word is the name of what computes the value."""
    net = Graph()
    h = net.parameter("h", "f32", ())
    go = net.parameter("go", "boolean", ())
    body = net.body()
    inside = body.parameter("h", "f32", ())
    result = body.result(body.apply("Add", inside, inside, name="h_next"), "h_result")
    keep: Value
    if isinstance(goes_on, str):
        bound = body.constant(np.float32(100))
        keep = body.result(body.apply("Less", inside, bound, element_type="boolean", name=goes_on), "keep_result")
    else:
        keep = body.result(body.constant(goes_on, np.bool_, "keep"), "keep_result")
    count = net.parameter(trip_count, "i64", ()) if isinstance(trip_count, str) else trip_count
    begin = net.apply("LogicalNot", go, name=starts) if isinstance(starts, str) else starts
    net.result(net.loop("doubling", body, count, begin, [carried(h, inside, result)], [last(result)], keep)[0])
    return net.read(folder)


def facts_of(model: Model, index: int = 0) -> tuple[str, ...]:
    found = loops_of(model)[index]
    return loop_facts(model, found.outer, found.layer)


@each_row(
    ("trip_count", "starts", "goes_on", "facts"),
    [
        (10, True, True, ("starts always", "no condition ends it", "10 iterations")),
        (1, True, "small", ("starts always", "goes on while h < 100 (small)", "at most 1 iteration")),
        (-1, "ready", "small", ("starts if not go (ready)", "goes on while h < 100 (small)",
                                "no limit on iterations")),
        (2**63 - 1, True, "small", ("starts always", "goes on while h < 100 (small)", "no limit on iterations")),
        ("n", True, True, ("starts always", "no condition ends it", "as many iterations as n (Parameter) says")),
        ("n", "ready", True, ("starts if not go (ready)", "no condition ends it",
                              "at most as many iterations as n (Parameter) says")),
        (3, False, "small", ("never starts: condition (Constant) = false", "goes on while h < 100 (small)",
                             "at most 3 iterations")),
        (3, True, False, ("starts always", "ends after the first iteration: keep (Constant) = false",
                          "at most 3 iterations")),
    ],
)  # fmt: skip
def test_a_loop_says_what_begins_and_ends_it(
    trip_count: int | str, starts: bool | str, goes_on: bool | str, facts: tuple[str, ...], tmp_path: Path
) -> None:
    model = counting(trip_count, starts, goes_on, tmp_path)
    assert facts_of(model) == facts


def test_a_tensor_iterator_has_as_many_iterations_as_slices_and_an_if_a_condition(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", "f32", (4, 2))
    body = net.body()
    row = body.parameter("row", "f32", (1, 2))
    result = body.result(body.apply("Negative", row))
    net.result(net.tensor_iterator("rows", body, [sliced(x, row)], [last(result)])[0])
    model = net.read(tmp_path)
    assert facts_of(model) == ("as many iterations as input 0 has slices",)
    collatz = sample("while_loop")
    assert facts_of(collatz, 1) == ("then runs if remainder = 0 (is_even), otherwise else",)


ENDING = (
    "starts if start ≠ 1 (start_is_not_one)",
    "goes on while number_next ≠ 1 (keep_going)",
    "no limit on iterations",
)


@pytest.mark.parametrize("format", ["svg", "dot", "mermaid", "md", "html"])
@pytest.mark.parametrize("view", ["rolled", "ports", "unrolled"])
def test_every_view_says_it_in_every_format(view: str, format: str) -> None:
    if format == "html" and view != "unrolled":
        pytest.skip("a page shows a run")
    text = unescape(picture("while_loop", view).written(format).decode())
    shown = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), text).replace("\\", "")
    assert all(line in shown for line in ENDING)
    assert "condition: " not in shown or view == "unrolled"


def test_a_model_counts_its_loops_without_its_ifs(tmp_path: Path) -> None:
    assert "1 loop." in picture("while_loop", "model").figure.description
    assert "2 loops." in draw(sample("nested_loop"), view="model").figure.description


@each_row(("goes_on", "says"), [(True, "always true"), (False, "false: ends after one"),
                                               ("small", "runs on while true")])  # fmt: skip
def test_a_port_map_says_what_the_condition_does(goes_on: bool | str, says: str, tmp_path: Path) -> None:
    drawn = draw(counting(3, True, goes_on, tmp_path), view="ports")
    assert says in {node.label for node in drawn.figure.nodes}


@each_row("options", [{"depth": 0}, {"preset": "paper"}])
def test_a_loop_that_is_drawn_as_a_box_has_what_ends_it_below(options: dict[str, Any]) -> None:
    svg = draw(sample("nested_loop"), view="model", **options).text("svg")
    shown = " ".join(re.findall(r">([^<]+)<", re.sub(r"<desc.*?</desc>", "", svg, flags=re.DOTALL)))
    told = (
        "Loop 'passes': starts always; goes on while pairs_of_neighbours > 0 (keep_going); at most as many iterations"
    )
    assert told in re.sub(r"\s+", " ", unescape(shown))
    whole = draw(sample("nested_loop"), view="model", depth=9)
    assert not whole.figure.facts, "a loop with a frame says it there"


def test_iterations_that_do_not_fit_below_each_other_are_told_to_fit_side_by_side() -> None:
    inputs = dict(np.load(SAMPLES / "nested_loop" / "inputs.npz"))
    with pytest.raises(UsageError, match="--direction right draws the iterations side by side"):
        draw(sample("nested_loop"), inputs, view="unrolled", direction="down", preset="paper")


@each_row("options", [{"preset": "paper"}, {"direction": "right", "width": 820}])
def test_iterations_side_by_side_say_what_would_end_them_in_any_run(options: dict[str, Any]) -> None:
    """The run ended after 11 iterations by the token; 20 are the limit of its condition."""
    inputs = dict(np.load(SAMPLES / "date_normaliser" / "inputs.npz"))
    made = draw(sample("date_normaliser"), inputs, view="unrolled", **options)
    assert made.page is not None
    shown = " ".join(item.text for item in made.page.items if isinstance(item, TextLine) and item.style == "aside")
    told = "starts always; goes on while prim::If/If (If) is true; no limit but its condition: at most 20 iterations"
    assert told in shown
