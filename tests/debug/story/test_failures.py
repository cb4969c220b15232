"""The story of an operation that fails: what it was given, in values and extents, and where that came from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.debug.causes.cause import LinkForm, LinkKind
from stepper.debug.debugger import Debugger
from stepper.debug.story.story_facts import Story
from stepper.debug.story.story_texts import formula, reason, story_lines, title, verdict
from stepper.debug.story.strip_layout import Options, place
from stepper.errors import StepperError, UsageError
from tests.debug.debugged import opened, sample
from tests.models import Graph, Value, carried, invariant, last, sliced


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


def followed_of(story: Story) -> set[tuple[str, object]]:
    return {(one.factor.name, one.factor.value) for one in story.links[story.asked].operands if one.link is not None}


def made_extents(net: Graph, name: str) -> Value:
    """An input of as many rows as it has, of 3 columns, behind an operation."""
    return net.apply("Relu", net.parameter(name, dims=(-1, 3)), name=f"{name}_relu", dims=(-1, 3))


def test_without_a_slice_the_extent_that_is_cut_is_followed_and_no_other_input(tmp_path: Path) -> None:
    """4 rows of `short` for 6 of `long` and 10 iterations: iteration 4 has no slice of the former."""
    net, trips = Graph(), np.array([10], np.int64)
    long, short, count = made_extents(net, "long"), made_extents(net, "short"), net.parameter("count", "i64", (1,))
    body = net.body()
    one, other, total = (body.parameter(name, dims=(1, 3)) for name in ("one", "other", "total"))
    both = body.apply("Add", one, other, name="both")
    out = body.result(body.apply("Add", both, total, name="sum"), "next_total")
    start = net.apply("Relu", net.parameter("start", dims=(1, 3)), name="begin")
    entries = [sliced(long, one), sliced(short, other), carried(start, total, out)]
    net.result(net.loop("walk", body, count, True, entries, [last(out)])[0], "final")
    rows = [np.ones((size, 3), np.float32) for size in (6, 4)]
    run = opened(tmp_path, net, *rows, trips, np.ones((1, 3), np.float32))
    story = run.story(fails=True, tick=run.run_overview().ticks)
    assert title(story) == "walk failed" and "iteration 4 has no slice" in verdict(story)[0]
    assert followed_of(story) == {("short_relu.shape", 4)}
    assert {link.value for link in story.links} - {None} == {4}
    assert {story.rows[link.row].name for link in story.links} == {"walk", "short_relu.shape", "short.shape"}
    with pytest.raises(StepperError):
        run.continue_()
    assert run.story(fails=True).links[0].operands == story.links[0].operands, "at the stop it is the same"


def test_of_inputs_that_are_cut_into_different_numbers_of_slices_both_extents_are_followed(tmp_path: Path) -> None:
    net = Graph()
    long, short = made_extents(net, "long"), made_extents(net, "short")
    body = net.body()
    one, other, total = (body.parameter(name, dims=(1, 3)) for name in ("one", "other", "total"))
    both = body.apply("Add", one, other, name="both")
    out = body.result(body.apply("Add", both, total, name="sum"), "next_total")
    start = net.apply("Relu", net.parameter("start", dims=(1, 3)), name="begin")
    entries = [sliced(long, one), sliced(short, other), carried(start, total, out)]
    net.result(net.tensor_iterator("walk", body, entries, [last(out)])[0], "final")
    rows = [np.ones((size, 3), np.float32) for size in (6, 4, 1)]
    run = opened(tmp_path, net, *rows)
    story = run.story(fails=True, tick=run.run_overview().ticks)
    assert followed_of(story) == {("long_relu.shape", 6), ("short_relu.shape", 4)}


def test_of_a_condition_of_several_elements_its_own_shape_is_followed(tmp_path: Path) -> None:
    """The body joins two tests to its condition in iteration 0, so that it has the extent 1 + 1."""
    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(-1,))
    longer = body.apply("Concat", x, body.constant([9.0]), name="longer", axis=0, dims=(-1,))
    low = body.apply("Less", longer, body.constant([5.0]), name="low", type="boolean", dims=(-1,))
    test = body.apply("LogicalNot", low, name="test", type="boolean", dims=(-1,))
    out = body.result(longer, "x_next")
    keep = body.result(test, "keep_going")
    start = net.parameter("start", dims=(1,))
    net.result(net.loop("walk", body, 5, True, [carried(start, x, out)], [last(out)], keep)[0], "final")
    run = opened(tmp_path, net, np.ones(1, np.float32))
    story = run.story(fails=True, tick=run.run_overview().ticks)
    assert title(story) == "walk failed" and "expected a scalar or one element" in verdict(story)[0]
    asked = story.links[story.asked]
    assert story.rows[asked.row].is_shape and (story.rows[asked.row].name, asked.value) == ("test.shape", 2)
    names = {story.rows[link.row].name for link in story.links}
    assert {"test.shape", "low.shape", "longer.shape"} <= names, names
    assert all(story.rows[link.row].is_shape for link in story.links), "no value makes it"


def test_of_an_execution_condition_of_several_elements_its_shape_is_followed(tmp_path: Path) -> None:
    net = Graph()
    flags = net.parameter("flags", "boolean", (2,))
    begins = net.apply("LogicalNot", flags, name="begins", type="boolean", dims=(2,))
    body = net.body()
    x = body.parameter("x", dims=(1,))
    out = body.result(body.apply("Relu", x, name="relu"), "x_next")
    start = net.apply("Relu", net.parameter("start", dims=(1,)), name="begin")
    net.result(net.loop("walk", body, 5, begins, [carried(start, x, out)], [last(out)])[0], "final")
    run = opened(tmp_path, net, np.array([False, False]), np.ones(1, np.float32))
    story = run.story(fails=True, tick=run.run_overview().ticks)
    assert followed_of(story) == {("begins.shape", 2)}


@pytest.mark.parametrize("kind", ["Less", "LogicalAnd"])
def test_extents_that_meet_in_a_broadcast_are_neither_compared_nor_computed_with(tmp_path: Path, kind: str) -> None:
    net = Graph()
    x0, body = net.parameter("x0", dims=(3,)), net.body()
    x = body.parameter("x", dims=(3,))
    more = body.apply("Add", x, x, name="more")
    sides = [more, x]
    if kind == "LogicalAnd":
        sides = [
            body.apply("Greater", one, x, type="boolean", name=name) for one, name in zip(sides, "ab", strict=True)
        ]
    going = body.result(body.apply(kind, *sides, type="boolean", name="going"), "go_on")
    out = body.result(more, "x_next")
    net.result(net.loop("walk", body, 9, True, [carried(x0, x, out)], [last(out)], going)[0], "end")
    run = opened(tmp_path, net, np.ones(3, np.float32))
    story = run.story(fails=True, tick=run.run_overview().ticks)
    by_name = {story.rows[link.row].name: link for link in story.links}
    for name, operation in (("going.shape", kind), ("more.shape", "Add")):
        link = by_name[name]
        assert (link.form, link.value, reason(link)) == (LinkForm.BROADCAST, 3, "broadcast of 3 and 3")
        assert str(formula(link)).startswith(f"{operation} of ") and str(formula(link)).endswith(" = 3")


def test_a_shape_that_is_the_same_in_all_iterations_is_followed_to_the_loop_around(tmp_path: Path) -> None:
    """4 elements take the shape [-1, i + 1], i counts the iterations of the loop around: 3 does not divide 4."""
    net = Graph()
    y0, outer = net.parameter("y0", dims=(4,)), net.body()
    i, around = outer.parameter("i", "i64", ()), outer.parameter("around", dims=(4,))
    inner = outer.body()
    y, given = inner.parameter("y", dims=(4,)), inner.parameter("given", "i64", ())
    size = inner.apply("Add", given, inner.constant(1, np.int64), name="size", dims=())
    row = inner.apply("Unsqueeze", size, inner.constant(0, np.int64), dims=(1,))
    shape = inner.apply("Concat", inner.constant([-1], np.int64), row, name="shape", axis=0, dims=(2,))
    inner.result(inner.apply("Reshape", y, shape, name="fitted", special_zero="false", dims=(-1, -1)), "unread")
    out = inner.result(inner.apply("Abs", y, name="kept"), "y_next")
    entries = [carried(around, y, out), invariant(i, given)]
    (end,) = outer.loop("inner", inner, 2, True, entries, [last(out)])
    handed = outer.result(end, "handed")
    (final,) = net.loop("outer", outer, 9, True, [carried(y0, around, handed)], [last(handed)], iteration=i)
    net.result(final, "final")
    run = opened(tmp_path, net, np.ones(4, np.float32))
    story = run.story(fails=True, tick=run.run_overview().ticks)
    sizes = [link for link in story.links if story.rows[link.row].name == "size"]
    assert [(story.columns[link.column].path, link.value) for link in sizes] == [((2, 0), 3)]
    numbers = [link.value for link in story.links if link.kind is LinkKind.NUMBER]
    assert numbers == [2], "the iteration number of the loop around"
