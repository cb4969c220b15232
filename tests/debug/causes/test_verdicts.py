"""What made a condition false is told of what was compared, never of what only says how."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.debug.causes.verdicts import verdict_text
from stepper.debug.debugger import Debugger
from stepper.debug.story.story_texts import verdict
from tests.debug.debugged import opened
from tests.models import Graph, Side, Value, carried, last

LIMIT = np.float32(0.1)


def large(graph: Graph, value: Value, size: int) -> Value:
    limits = graph.constant(np.full(size, LIMIT))
    return graph.apply("Greater", value, limits, name="large", type="boolean", dims=(size,))


def all_of(graph: Graph, kind: str, value: Value) -> Value:
    axes = graph.constant([0], np.int64)
    return graph.apply(kind, value, axes, keep_dims="false", type="boolean", name="reduced", dims=())


def halving(folder: Path, kind: str, size: int) -> Debugger:
    """x is halved as long as one of its elements, or each, is larger than 0.1."""
    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(size,))
    half = body.apply("Multiply", x, body.constant([0.5]), name="half")
    goes_on = body.result(all_of(body, kind, large(body, half, size)), "go_on")
    out = body.result(half, "x_next")
    edges = [carried(net.parameter("x0", dims=(size,)), x, out)]
    net.result(net.loop("halves", body, 50, True, edges, [last(out)], goes_on)[0], "end")
    return opened(folder, net, np.arange(1, size + 1, dtype=np.float32))


def decided_inside(folder: Path) -> Debugger:
    """The same, where both sides of an If compute the condition."""
    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(3,))
    half = body.apply("Multiply", x, body.constant([0.5]), name="half")
    sides = []
    for _ in range(2):
        side = body.body()
        value = side.parameter("value", dims=(3,))
        reduced = all_of(side, "ReduceLogicalOr", large(side, value, 3))
        sides.append(Side(side, [(half, value)], [side.result(reduced)]))
    top = body.apply("ReduceMax", half, body.constant([0], np.int64), keep_dims="false", dims=())
    positive = body.apply("Greater", top, body.constant(np.float32(0)), type="boolean", dims=())
    goes_on = body.result(body.branch("side", positive, *sides)[0], "go_on")
    out = body.result(half, "x_next")
    edges = [carried(net.parameter("x0", dims=(3,)), x, out)]
    net.result(net.loop("halves", body, 50, True, edges, [last(out)], goes_on)[0], "end")
    return opened(folder, net, np.float32([1, 2, 3]))


def decided_by_loop(folder: Path, *, is_carried: bool) -> Debugger:
    """The condition is what an inner loop gives, which it may carry."""
    net = Graph()
    body = net.body()
    x, inner = body.parameter("x", dims=(1,)), body.body()
    value = inner.parameter("value", dims=(1,))
    half = inner.apply("Multiply", value, inner.constant([0.5]), name="half")
    is_large, halved = inner.result(large(inner, half, 1), "is_large"), inner.result(half, "halved")
    edges = [carried(x, value, halved)]
    if is_carried:
        edges.append(carried(body.constant([True]), inner.parameter("was_large", "boolean", (1,)), is_large))
    ends = body.loop("inner", inner, 2, True, edges, [last(halved), last(is_large)])
    out, goes_on = body.result(ends[0], "x_next"), body.result(ends[1], "go_on")
    edges = [carried(net.parameter("x0", dims=(1,)), x, out)]
    net.result(net.loop("outer", body, 50, True, edges, [last(out)], goes_on)[0], "end")
    return opened(folder, net, np.float32([3]))


def told(debugger: Debugger) -> str:
    """Of the first loop: what made its condition false."""
    ending = debugger.run_overview().loops[0].activations[0].ending
    assert ending is not None and ending.verdict is not None
    return verdict_text(ending.verdict)


@pytest.mark.parametrize(
    ("kind", "size", "text"),
    [
        ("ReduceLogicalOr", 3, "large = boolean[3] [False, False, False], so ReduceLogicalOr(large) is false"),
        ("ReduceLogicalAnd", 3, "large = boolean[3] [False,  True,  True], so ReduceLogicalAnd(large) is false"),
        ("ReduceLogicalOr", 1, "x' = 0.0625, so Greater(x', 0.1) is false"),
        ("ReduceLogicalAnd", 1, "x' = 0.0625, so Greater(x', 0.1) is false"),
    ],
)
def test_a_reduction_is_told_of_its_data_and_of_one_element_what_is_behind_it(
    tmp_path: Path, kind: str, size: int, text: str
) -> None:
    assert told(halving(tmp_path, kind, size)) == text


def test_the_axes_of_a_largest_element_are_no_operand_either(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(2,))
    half = body.apply("Multiply", x, body.constant([0.5]), name="half")
    counts = body.apply("Convert", large(body, half, 2), name="counts", type="i32", dims=(2,), destination_type="i32")
    axes = body.constant([0], np.int64, "axes")
    most = body.apply("ReduceMax", counts, axes, keep_dims="false", name="most", type="i32", dims=())
    goes_on = body.apply("Convert", most, name="goes_on", type="boolean", dims=(), destination_type="boolean")
    out = body.result(half, "x_next")
    edges = [carried(net.parameter("x0", dims=(2,)), x, out)]
    net.result(net.loop("halves", body, 50, True, edges, [last(out)], body.result(goes_on, "go_on"))[0], "end")
    text = told(opened(tmp_path, net, np.float32([1, 2])))
    assert "ReduceMax(counts) is false" in text and "axes" not in text


def test_where_what_is_compared_is_gone_no_constant_stands_for_it(tmp_path: Path) -> None:
    assert told(decided_inside(tmp_path)) == "reduced is false"


@pytest.mark.parametrize(
    ("is_carried", "text"), [(False, "large of inner is false"), (True, "was_large' of inner is false")]
)
def test_of_what_a_loop_gives_its_own_value_is_named(tmp_path: Path, is_carried: bool, text: str) -> None:
    assert told(decided_by_loop(tmp_path, is_carried=is_carried)) == text


@pytest.mark.parametrize(
    ("kind", "text"), [("ReduceLogicalOr", "all 3 are false"), ("ReduceLogicalAnd", "one of 3: [0]")]
)
def test_a_story_says_whether_one_element_decides_or_all(tmp_path: Path, kind: str, text: str) -> None:
    debugger = halving(tmp_path, kind, 3)
    ticks = debugger.run_overview().ticks
    story = debugger.story("halves", ends=True, tick=ticks)
    assert "".join(verdict(story)) == f"{text}, so the condition is false"
