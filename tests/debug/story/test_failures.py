"""The story of an operation that fails: what it was given, in values and extents, and where that came from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.debug.causes.cause import LinkKind
from stepper.debug.debugger import Debugger
from stepper.debug.story.strip.layout import Options, place
from stepper.debug.story.texts import story_lines, title, verdict
from stepper.errors import StepperError, UsageError
from tests.debug.debugged import opened, sample
from tests.models import Graph, carried, last, sliced


def reshaping(count: int = 6) -> Graph:
    """y is halved and takes the shape [i + 1, -1], i counts: that divides `count` elements until it does not."""
    net = Graph()
    body = net.body()
    i0, y0 = net.parameter("i0", "i64", (1,)), net.parameter("y0", dims=(count,))
    i, y = body.parameter("i", "i64", (1,)), body.parameter("y", dims=(count,))
    size = body.apply("Add", i, body.constant([1], np.int64), name="size")
    shape = body.apply("Concat", size, body.constant([-1], np.int64), name="shape", axis=0, dims=(2,))
    half = body.apply("Multiply", y, body.constant([0.5]), name="half")
    rows = body.apply("Reshape", half, shape, name="rows", special_zero="false", dims=(-1, -1))
    flat = body.apply("Reshape", rows, body.constant([count], np.int64), name="flat", special_zero="false")
    i_next, y_next = body.result(size, "i_next"), body.result(flat, "y_next")
    entries = [carried(i0, i, i_next), carried(y0, y, y_next)]
    for value in net.loop("walk", body, 10, True, entries, [last(i_next), last(y_next)]):
        net.result(value)
    return net


def failing(folder: Path, count: int = 6) -> Debugger:
    return opened(folder, reshaping(count), np.zeros(1, np.int64), np.arange(count, dtype=np.float32))


@pytest.mark.parametrize("count", [6, 12, 60])
def test_an_operation_that_fails_tells_what_it_was_given_and_from_where(tmp_path: Path, count: int) -> None:
    at = next(k for k in range(10) if count % (k + 1))  # the first number of rows that does not divide
    run = failing(tmp_path, count)
    with pytest.raises(StepperError) as error:
        stepper.run(run.model, dict(enumerate(run.inputs)))
    overview = run.run_overview()
    present = run.machine.tick
    story = run.story(fails=True, tick=overview.ticks)
    assert run.machine.tick == present, "the present stays"
    asked = story.links[story.asked]
    assert asked.kind is LinkKind.FAILED and story.rows[asked.row].name == "rows"
    assert title(story) == f"rows@{at} failed" and verdict(story)[0] in str(error.value)
    given = {(one.factor.name, one.factor.element): one.factor.value for one in asked.operands}
    assert given == {("half.shape", (0,)): count, ("shape", (0,)): at + 1, ("shape", (1,)): -1}
    sizes = {story.columns[link.column].path: link.value for link in story.links if story.rows[link.row].name == "size"}
    assert sizes == {(k,): k + 1 for k in range(at + 1)}, (
        "its shape came over the back edge, one more in each iteration"
    )
    assert story_lines(story)[-1].strip() == "rows = failed"


def test_at_the_stop_it_is_the_same_story(tmp_path: Path) -> None:
    run = failing(tmp_path)
    there = run.story(fails=True, tick=run.run_overview().ticks)
    with pytest.raises(StepperError):
        run.continue_()
    here = run.story(fails=True)
    assert (here.failure, [link.key for link in here.links]) == (there.failure, [link.key for link in there.links])


def test_where_nothing_fails_there_is_no_such_story() -> None:
    with pytest.raises(UsageError, match="does not fail here"):
        sample("date_normaliser").story(fails=True)


def test_a_loop_that_has_too_few_slices_tells_how_many_it_was_given(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(4,)), net.body()
    item, total = body.parameter("item", dims=(1,)), body.parameter("total", dims=(1,))
    out = body.result(body.apply("Add", item, total, name="sum"), "next_total")
    entries = [sliced(x, item), carried(net.constant([0.0]), total, out)]
    net.result(net.loop("walk", body, 10, True, entries, [last(out)])[0], "final")
    run = opened(tmp_path, net, np.ones(4, np.float32))
    story = run.story(fails=True, tick=run.run_overview().ticks)
    asked = story.links[story.asked]
    given = {(one.factor.name, one.factor.element): one.factor.value for one in asked.operands}
    assert title(story) == "walk failed" and "no slice" in story.failure
    assert given["x.shape", (0,)] == 4 and given["trip_count", ()] == 10
    placed = place(story, Options(width=120))
    assert any(chip.text.strip() == "failed" for chip in placed.chips)


def test_of_inputs_of_one_rank_the_extents_that_do_not_fit_are_followed(tmp_path: Path) -> None:
    net = Graph()
    a, b = net.parameter("a", dims=(2, -1, 6)), net.parameter("b", dims=(2, -1, 6))
    both = [net.apply("Relu", one, name=name, dims=(2, -1, 6)) for one, name in ((a, "left"), (b, "right"))]
    net.result(net.apply("Concat", *both, name="joined", axis=2, dims=(2, -1, 12)), "out")
    run = opened(tmp_path, net, np.zeros((2, 5, 6), np.float32), np.zeros((2, 7, 6), np.float32))
    story = run.story(fails=True, tick=run.run_overview().ticks)
    followed = {
        (one.factor.name, one.factor.value) for one in story.links[story.asked].operands if one.link is not None
    }
    assert followed == {("left.shape", 5), ("right.shape", 7)}
    assert {link.value for link in story.links if link.location.operation is not None} - {None} == {5, 7}
