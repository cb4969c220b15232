"""A value over the iterations of a loop, and one iteration before: held against a recording of every iteration."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from stepper.commands import Interpreter
from stepper.errors import UsageError
from tests.debug.debugged import at_iteration, opened, recorded, run_named, sample, state_of
from tests.models import Graph, carried, joined, last
from tests.tables import each_row


@each_row("present", [0, 11, 24])
def test_an_element_over_all_iterations_is_what_a_recording_has(present: int) -> None:
    debugger = sample("specification_lstm")
    expected = recorded(debugger, "lstm", ["h_next", "x", "h"])
    at_iteration(debugger, present)
    before = state_of(debugger.timeline)
    for name, index in (("h_next", (0, 3)), ("x", (0, 500)), ("h", (0, 255))):
        series = debugger.over_iterations(f"{name}[{index[0]},{index[1]}]")
        assert series.iterations == tuple(range(25)) and series.step == 1 and series.stopped == ""
        assert [value.tolist() for value in series.values] == [found[name][index].tolist() for found in expected]
    assert state_of(debugger.timeline) == before and not debugger.timeline.warnings


@each_row("statistic", ["max", "mean", "norm", "argmin"])
def test_a_statistic_over_iterations_is_that_of_each_value(statistic: str) -> None:
    debugger = sample("specification_lstm")
    at_iteration(debugger, 5)
    series = debugger.over_iterations("c_next", statistic)
    function = np.linalg.norm if statistic == "norm" else getattr(np, statistic)
    expected = [function(found["c_next"]) for found in recorded(debugger, "lstm", ["c_next"])]
    assert np.allclose([float(value) for value in series.values], expected, rtol=1e-6)
    assert series.name == f"{statistic}(c_next)"


RANGES = {
    "@2:5": range(2, 5),
    "@7": range(7, 8),
    "@:3": range(3),
    "@20:": range(20, 25),
    "@-1": range(24, 25),
    "@-3": range(22, 23),
    "@-3:": range(22, 25),
    "@-5:-2": range(20, 23),
    "@3:3": range(0),
    "@30:": range(0),
    "@*": range(25),
}


@each_row("asked", RANGES)
@each_row("present", [0, 10])
def test_the_iterations_are_those_that_the_address_names(asked: str, present: int) -> None:
    debugger = sample("specification_lstm")
    at_iteration(debugger, present)
    before = state_of(debugger.timeline)
    assert debugger.over_iterations(f"h_next{asked}[0,0]").iterations == tuple(RANGES[asked])
    assert state_of(debugger.timeline) == before


def test_asked_in_the_middle_of_an_iteration_nothing_is_missing_or_twice() -> None:
    debugger = sample("for_loop")
    at_iteration(debugger, 3)
    for _ in range(12):
        debugger.step()
        series = debugger.over_iterations("balance")
        assert series.iterations == tuple(range(10))


@each_row("steps", [4, 9, 30, 60])
def test_in_a_loop_around_a_loop_every_iteration_is_there(steps: int) -> None:
    debugger = sample("nested_loop")
    expected = recorded(debugger, "passes", ["order_next_result"])
    debugger.step(steps)
    before = state_of(debugger.timeline)
    series = debugger.over_iterations("passes::order_next_result")
    assert series.iterations == tuple(range(len(expected)))
    for value, found in zip(series.values, expected, strict=True):
        assert np.array_equal(value, found["order_next_result"])
    assert state_of(debugger.timeline) == before


def test_of_a_nested_loop_the_iterations_are_those_of_the_run_that_is_under_way(tmp_path: Path) -> None:
    debugger = run_named("iterator in an iterator", tmp_path)
    while "#1 > TensorIterator 'elements' #1" not in debugger.stop.place:
        debugger.step()
    series = debugger.over_iterations("sum")
    assert [value.tolist() for value in series.values] == [[[3]], [[7]], [[12]]]


def test_a_value_in_a_branch_has_only_the_iterations_in_which_its_side_ran(tmp_path: Path) -> None:
    debugger = run_named("branch in a loop", tmp_path)
    debugger.step(3)
    series = debugger.over_iterations("half")
    # 3 10 5 16 8 4 2 1
    assert series.iterations == (1, 3, 4, 5, 6)
    assert [value.tolist() for value in series.values] == [5, 8, 4, 2, 1]
    odd = debugger.over_iterations("next::else::m")
    assert (odd.iterations, [value.tolist() for value in odd.values]) == ((0, 2), [3, 5])


def counting(count: int, limit: float = 1e9) -> Graph:
    """x = 0, 1, 2, ... (x + 1 while below the limit)."""
    net = Graph()
    body = net.body()
    x = body.parameter("x")
    more = body.apply("Add", x, body.constant(1.0), name="more")
    result = body.result(more)
    below = body.result(body.apply("Less", more, body.constant(limit), type="boolean"), "below")
    net.result(net.loop("loop", body, count, True, [carried(net.constant(0.0), x, result)], [last(result)], below)[0])
    return net


def test_of_many_iterations_every_second_or_fourth_is_kept(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counting(1000))
    at_iteration(debugger, 0)
    series = debugger.over_iterations("more", most=100)
    assert series.step == 16 and series.iterations == tuple(range(0, 1000, 16)) and series.total == 1000
    assert [value.tolist() for value in series.values] == [iteration + 1 for iteration in range(0, 1000, 16)]


def test_where_the_run_fails_the_iterations_before_are_there_with_the_reason(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counting(-1), max_iterations=7)
    at_iteration(debugger, 2)
    series = debugger.over_iterations("more")
    assert series.iterations == tuple(range(7)) and "more than 7 iterations" in series.stopped
    assert debugger.stop.iteration == 2 and debugger.next_iteration().iteration == 3


def test_an_endless_loop_can_be_interrupted(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counting(-1))
    at_iteration(debugger, 4)
    before = state_of(debugger.timeline)
    timer = threading.Timer(0.2, debugger.pause)
    timer.start()
    began = time.monotonic()
    series = debugger.over_iterations("x", most=50)
    assert series.stopped == "paused" and time.monotonic() - began < 5
    assert len(series.values) <= 51 and series.iterations[-1] > 50
    assert [value.tolist() for value in series.values] == list(series.iterations)
    assert state_of(debugger.timeline) == before


def test_what_cannot_be_asked_is_refused_with_the_reason(tmp_path: Path) -> None:
    debugger = sample("nested_loop")
    debugger.step(4)
    for address, statistic, reason in (
        ("most_passes", None, "in no loop"),
        ("order", "median", "no statistic 'median'"),
        ("order[9]", None, "out of bounds"),
        ("nothing", None, "nothing called 'nothing'"),
    ):
        with pytest.raises(UsageError, match=reason):
            debugger.over_iterations(address, statistic)


@each_row("moment", ["start", "inside", "end"])
def test_a_series_is_of_the_whole_run_wherever_the_run_stands(moment: str) -> None:
    values = [5.0, 1.0, 4.0, 2.0, 8.0]
    course = []  # what bubble sort does, pass by pass and pair by pair
    for done in range(3):
        steps = []
        for left in range(4 - done):
            values[left : left + 2] = sorted(values[left : left + 2])
            steps.append(list(values))
        course.append(steps)
    debugger = sample("nested_loop")
    if moment == "end":
        debugger.last()
    elif moment == "inside":
        debugger.run_to("passes@1::pairs_of_neighbours::values_next@2")
    before = state_of(debugger.timeline)

    def seen(address: str) -> list[list[float]]:
        return [value.tolist() for value in debugger.over_iterations(address).values]

    assert seen("passes::order_next_result") == [steps[-1] for steps in course]
    for outer in (0, 1, 2, -1):
        assert seen(f"passes@{outer}::pairs_of_neighbours::values_next") == course[outer]
    own = {"start": 0, "inside": 1, "end": 2}[moment]  # the first to come, the one under way, the last one
    assert seen("values_next@*") == course[own]
    assert debugger.value("passes@2::pairs_of_neighbours::values_next@-1").tolist() == course[2][-1]
    assert debugger.evaluate("max(passes@0::pairs_of_neighbours::values_next@1 - values_next@0)") == (
        np.max(np.array(course[0][1]) - np.array(course[own][0]))
    )
    for wrong, reason in (
        ("passes@7::pairs_of_neighbours::values_next", "does not run in iteration 7 of 'passes'"),
        ("passes@*::pairs_of_neighbours::values_next", "of the innermost loop only"),
    ):
        with pytest.raises(UsageError, match=reason):
            debugger.over_iterations(wrong)
    assert state_of(debugger.timeline) == before and not debugger.timeline.warnings


def test_a_series_of_an_edited_run_is_that_of_the_edited_one() -> None:
    debugger = sample("specification_lstm")
    plain = [float(value) for value in debugger.over_iterations("h_next", "max").values]
    at_iteration(debugger, 12)
    debugger.set_value("h_next", 0.0)
    edited = [float(value) for value in debugger.over_iterations("h_next", "max").values]
    debugger.last()
    assert [float(value) for value in debugger.over_iterations("lstm::h_next", "max").values] == edited
    assert edited[:12] == plain[:12] and edited[12] == 0 and edited[13:] != plain[13:]


def test_a_large_value_wants_a_part_or_a_statistic() -> None:
    debugger = sample("specification_lstm")
    at_iteration(debugger, 0)
    with pytest.raises(UsageError, match="ask for a part, or a statistic"):
        debugger.over_iterations("W_and_R")
    assert len(debugger.over_iterations("W_and_R", "max").values) == 25


# --- one iteration before -------------------------------------------------------------------------------------------


@each_row("iteration", [1, 7, 24])
def test_the_previous_value_is_that_of_the_iteration_before(iteration: int) -> None:
    debugger = sample("specification_lstm")
    expected = recorded(debugger, "lstm", ["h_next", "x", "c"])
    at_iteration(debugger, iteration)
    for name in ("h_next", "x", "c"):
        found = debugger.previous_value(name)
        assert found.iteration == iteration and found.now is not None and found.change is not None
        assert np.array_equal(found.now, expected[iteration][name])
        assert np.array_equal(found.before, expected[iteration - 1][name])
        difference = np.abs(expected[iteration][name] - expected[iteration - 1][name]).max()
        assert found.change == pytest.approx(difference)


def test_a_value_that_is_not_computed_yet_still_has_a_previous_one() -> None:
    debugger = sample("specification_lstm")
    expected = recorded(debugger, "lstm", ["h_next"])
    debugger.step(18)
    found = debugger.previous_value("h_next")
    assert found.now is None and found.change is None
    assert np.array_equal(found.before, expected[2]["h_next"])


def test_the_previous_value_in_a_branch_and_around_a_loop(tmp_path: Path) -> None:
    debugger = run_named("branch in a loop", tmp_path)
    at_iteration(debugger, 5)
    debugger.step()
    assert debugger.previous_value("half").before.tolist() == 2
    with pytest.raises(UsageError, match="no value in iteration 5"):
        debugger.previous_value("upwards")
    debugger = sample("nested_loop")
    expected = recorded(debugger, "passes", ["order_next_result"])
    while "#1 > Loop 'pairs_of_neighbours' #2" not in debugger.stop.place:
        debugger.step()
    assert np.array_equal(debugger.previous_value("passes::order_next").before, expected[0]["order_next_result"])


def test_in_the_first_iteration_there_is_none_before(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    at_iteration(debugger, 0)
    with pytest.raises(UsageError, match="no iteration before this one"):
        debugger.previous_value("added")


def test_values_of_different_shape_have_no_difference(tmp_path: Path) -> None:
    debugger = run_named("growing", tmp_path)
    at_iteration(debugger, 2)
    found = debugger.previous_value("longer")
    assert found.change is None and found.now is not None
    assert (found.before.shape, found.now.shape) == ((3,), (4,))


def test_scans_and_series_agree(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(1,))
    result = body.result(body.apply("Add", x, x, name="twice"))
    final = net.loop("loop", body, 12, True, [carried(net.constant([1.0]), x, result)], [joined(result)])
    net.result(final[0])
    debugger = opened(tmp_path, net)
    at_iteration(debugger, 11)
    values = [value.tolist() for value in debugger.over_iterations("twice[0]").values]
    assert values == debugger.loop().scans[0].concatenated().tolist()


def test_iterations_far_ahead_are_reached_without_a_stop_at_each(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counting(200_000))
    at_iteration(debugger, 5)
    series = debugger.over_iterations("more@150000:150010")
    assert series.iterations == tuple(range(150_000, 150_010)) and series.values[0].tolist() == 150_001
    beyond = debugger.over_iterations("more@300000:")
    assert beyond.iterations == () and beyond.stopped == ""
    assert debugger.stop.iteration == 5


@each_row(("at", "asked", "run"), [(1, "", 0), (2, "", 1), (2, "passes@0::", 0), (0, "passes@2::", 2)])
def test_values_of_an_inner_loop_say_in_which_iteration_around_it_their_run_is(at: int, asked: str, run: int) -> None:
    """Bubble sort on 5 1 4 2 8. Where pass `at` begins, the run that began last is that of the pass before."""
    ends = [[1, 4, 2, 5, 8], [1, 2, 4, 5, 8], [1, 2, 4, 5, 8]]  # what each pass leaves
    shell = Interpreter(sample("nested_loop"))
    shell.execute(f"goto passes@{at}")
    answer = shell.execute(f"print {asked}values_next@*")
    assert answer.lines[0] == f"in iteration {run} of Loop 'passes':"
    [outer] = answer.data["outer"]
    assert (outer["layer"]["name"], outer["iteration"]) == ("passes", run)
    assert answer.data["series"][-1]["values"] == ends[run]


def test_values_of_an_outermost_loop_are_of_its_one_run() -> None:
    answer = Interpreter(sample("nested_loop")).execute("print passes::order_next_result@*")
    assert answer.data["outer"] == [] and answer.lines[0].startswith("@0 ")


COURSE = [
    [[1, 5, 4, 2, 8], [1, 4, 5, 2, 8], [1, 4, 2, 5, 8], [1, 4, 2, 5, 8]],
    [[1, 4, 2, 5, 8], [1, 2, 4, 5, 8], [1, 2, 4, 5, 8]],
]
"""What bubble sort makes of 5 1 4 2 8 in its first two passes, pair by pair."""


@each_row(
    ("asked", "found"),
    [
        ("values_next@1", COURSE[1][0]),
        ("values_next@2", COURSE[1][1]),
        ("values_next@-1", COURSE[1][1]),
        ("values_next@-2", COURSE[1][0]),
        ("passes@0::values_next@3", COURSE[0][2]),
        ("passes@0::values_next@2", COURSE[0][1]),
        ("passes@0::values_next@-1", COURSE[0][2]),
        ("passes@0::values_next@-3", COURSE[0][0]),
        ("passes@1::values_next", COURSE[1][1]),
        ("values_next", COURSE[1][1]),
    ],
)
def test_prev_is_the_iteration_before_the_one_that_is_named(asked: str, found: list[float]) -> None:
    debugger = sample("nested_loop")
    shell = Interpreter(debugger)
    shell.execute("goto passes@1::values_next@2")
    assert shell.execute(f"print prev({asked})").data["values"] == found
    watch = debugger.watch(f"prev({asked})")
    assert watch.now is not None and not watch.now.error
    assert watch.now.value is not None and watch.now.value.tolist() == found
    assert debugger.previous_value(asked).before.tolist() == found


def test_a_value_and_the_one_before_are_of_the_iteration_that_is_named() -> None:
    debugger = sample("nested_loop")
    debugger.goto("passes@1::values_next@0")
    found = debugger.previous_value("passes@0::values_next@-2")
    assert found.iteration == 2 and found.now is not None and found.change is not None
    assert (found.now.tolist(), found.before.tolist()) == (COURSE[0][2], COURSE[0][1])
    assert found.change == abs(found.now - found.before).max()


def test_before_the_first_iteration_that_is_named_there_is_none() -> None:
    debugger = sample("nested_loop")
    debugger.goto("passes@1::values_next@2")
    for asked in ("values_next@0", "values_next@-3", "passes@0::values_next@0", "passes@0::values_next@-4"):
        with pytest.raises(UsageError, match="has no iteration before this one"):
            debugger.evaluate(f"prev({asked})")
    with pytest.raises(UsageError, match="another run"):
        debugger.evaluate("prev(passes@0::values_next)")
    with pytest.raises(UsageError, match="several iterations"):
        debugger.evaluate("prev(values_next@0:2)")
    with pytest.raises(UsageError, match="names an iteration"):
        debugger.break_at("values_next", condition="max(prev(values_next@1)) > 3")
