"""Loops whose state comes again: what is said of them against number theory, and what must not be said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.debug.inspection.text import state_sentence
from stepper.debug.overview import run_recorder
from stepper.debug.overview.overview_facts import LoopFacts, RunState
from stepper.debug.overview.run_recorder import RecurrenceSearch
from tests.debug.debugged import opened
from tests.models import Graph, Value, carried, last, sliced


def rests(factor: int, modulus: int, size: int = 1, counts_to: int | None = None, has_number: bool = False) -> Graph:
    """state -> state * factor mod modulus, beside a counter; goes on while all states are above -1.

    `counts_to`: and while the counter is below it; `has_number`: and while the number of the iteration is.
    """
    net = Graph()
    body = net.body()
    state, counter = body.parameter("state", "i64", (size,)), body.parameter("counter", "i64", ())
    number = body.parameter("number", "i64", ()) if has_number else None
    product = body.apply("Multiply", state, body.constant([factor], np.int64), name="product")
    rest = body.apply("FloorMod", product, body.constant([modulus], np.int64), name="rest")
    more = body.apply("Add", counter, body.constant(1, np.int64), name="more")
    least = body.apply("ReduceMin", rest, body.constant([0], np.int64), keep_dims="false", dims=(), name="least")
    going = above(body, least, -1)
    if counts_to is not None:
        counted = number or more
        below = body.apply("Less", counted, body.constant(counts_to, np.int64), type="boolean", dims=(), name="below")
        going = body.apply("LogicalAnd", going, below, name="both")
    out, next_counter, goes_on = body.result(rest), body.result(more), body.result(going)
    begin = net.constant(np.arange(1, size + 1), np.int64)
    inputs = [carried(begin, state, out), carried(net.constant(0, np.int64), counter, next_counter)]
    outputs = [last(out), last(next_counter)]
    found = net.loop("loop", body, -1, True, inputs, outputs, goes_on, iteration=number)
    for value in found:
        net.result(value, "final")
    return net


def above(body: Graph, value: Value, bound: int) -> Value:
    return body.apply("Greater", value, body.constant(bound, np.int64), type="boolean", dims=(), name="going")


def facts_of(folder: Path, net: Graph, *inputs: object, endless: float = 0.2, seconds: float = 20) -> LoopFacts:
    overview = opened(folder, net, *inputs).run_overview(seconds=seconds, endless_seconds=endless)
    (facts,) = overview.loops
    assert overview.state is (RunState.OUT_OF_TIME if facts.never_ends else RunState.FINISHED)
    return facts


@pytest.mark.parametrize("size", [1, 3, 300])
@pytest.mark.parametrize(("factor", "modulus"), [(2, 3), (1, 5), (3, 7919), (5, 104729)])
def test_a_state_that_comes_again_can_never_end(tmp_path: Path, factor: int, modulus: int, size: int) -> None:
    order = next(k for k in range(1, modulus) if pow(factor, k, modulus) == 1)
    facts = facts_of(tmp_path, rests(factor, modulus, size))
    (run,) = facts.activations
    assert facts.never_ends and run.ending is None and run.recurrence is not None
    assert run.recurrence.period == order and [one.name for one in run.recurrence.values] == ["state"]
    since = {0, None} if size * modulus > 2**19 else {0}  # so long ago that it is not kept
    assert run.recurrence.decides and run.recurrence.since in since, "each power of it comes again"


@pytest.mark.parametrize("has_number", [False, True])
def test_a_loop_that_also_counts_is_not_called_endless(tmp_path: Path, has_number: bool) -> None:
    facts = facts_of(tmp_path, rests(2, 3, counts_to=30_000, has_number=has_number))
    (run,) = facts.activations
    assert not facts.never_ends and run.recurrence is None and run.iterations == 30_000 + has_number


def test_random_numbers_may_end_a_loop_whose_state_comes_again(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state", "i64", (1,))
    drawn = body.apply(
        "RandomUniform",
        body.constant([1], np.int64),
        body.constant(np.int64(0)),
        body.constant(np.int64(2000)),
        type="i64",
        version="opset8",
        output_type="i64",
        global_seed=7,
        op_seed=11,
        name="drawn",
    )
    out = body.result(body.apply("Multiply", state, body.constant([1], np.int64), name="same"))
    sum_ = body.apply("Add", drawn, state, name="sum", dims=(1,))
    goes_on = body.result(
        body.apply("Greater", sum_, body.constant([1], np.int64), type="boolean", dims=(1,), name="going")
    )
    (final,) = net.loop(
        "loop", body, -1, True, [carried(net.constant([1], np.int64), state, out)], [last(out)], goes_on
    )
    net.result(final, "final")
    facts = facts_of(tmp_path, net)
    assert not facts.never_ends and facts.total > 1


def test_slices_may_end_a_loop_whose_state_comes_again(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", "i64", (5000,)), net.body()
    item, state = body.parameter("item", "i64", (1,)), body.parameter("state", "i64", (1,))
    out = body.result(body.apply("Multiply", state, body.constant([-1], np.int64), name="turned"))
    sum_ = body.apply("Multiply", item, body.apply("Multiply", state, state, name="one"), name="sum")
    goes_on = body.result(
        body.apply("Greater", sum_, body.constant([0], np.int64), type="boolean", dims=(1,), name="going")
    )
    (final,) = net.loop(
        "loop",
        body,
        -1,
        True,
        [sliced(x, item), carried(net.constant([1], np.int64), state, out)],
        [last(out)],
        goes_on,
    )
    net.result(final, "final")
    items = np.ones(5000, np.int64)
    items[4900] = 0
    facts = facts_of(tmp_path, net, items)
    assert not facts.never_ends and facts.total == 4901


def test_a_loop_that_ends_in_a_state_that_it_had_before_has_ended(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state", "i64", (1,))
    table, axis = body.constant([0, 2, 3, 1, 0, 1], np.int64), body.constant(0, np.int64)
    out = body.result(body.apply("Gather", table, state, axis, dims=(1,), version="opset8", name="next"))
    goes_on = body.result(
        body.apply("NotEqual", state, body.constant([3], np.int64), type="boolean", dims=(1,), name="going")
    )
    (final,) = net.loop(
        "loop", body, -1, True, [carried(net.constant([5], np.int64), state, out)], [last(out)], goes_on
    )
    net.result(final, "final")
    facts = facts_of(tmp_path, net)  # 5 -> 1 -> 2 -> 3 -> 1, and there it ends, in the state after iteration 0
    (run,) = facts.activations
    assert facts.total == 4 and run.ending is not None and run.recurrence is None and not facts.never_ends


def test_of_two_values_that_return_at_different_times_the_least_common_multiple_counts(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    a, b = body.parameter("a", "i64", (1,)), body.parameter("b", "i64", (1,))
    results = []
    for value, length in ((a, 6), (b, 35)):
        more = body.apply("Add", value, body.constant([1], np.int64))
        results.append(body.apply("FloorMod", more, body.constant([length], np.int64)))
    sum_ = body.apply("Add", *results)
    goes_on = body.result(
        body.apply("Less", sum_, body.constant([99], np.int64), type="boolean", dims=(1,), name="going")
    )
    begin, outs = net.constant([0], np.int64), [body.result(one) for one in results]
    inputs = [carried(begin, value, out) for value, out in zip((a, b), outs, strict=True)]
    for value in net.loop("loop", body, -1, True, inputs, [last(one) for one in outs], goes_on):
        net.result(value, "final")
    facts = facts_of(tmp_path, net)
    (run,) = facts.activations
    assert run.recurrence is not None and run.recurrence.period == 6 * 35


def walking(tail: int, period: int, has_condition: bool = True) -> Graph:
    """place goes from 0 to 1, 2, ... tail + period - 1 and back to tail; so it is k + 1 after iteration k at first.

    It goes on while place is below 1000; without a condition it cannot end.
    """
    net = Graph()
    body = net.body()
    place = body.parameter("place", "i64", (1,))
    ways = body.constant([*range(1, tail + period), tail], np.int64)
    moved = body.apply("Gather", ways, place, body.constant(0, np.int64), dims=(1,), version="opset8", name="moved")
    out = body.result(moved)
    goes_on = body.apply("Less", moved, body.constant([1000], np.int64), type="boolean", dims=(1,), name="going")
    entries = [carried(net.constant([0], np.int64), place, out)]
    condition = body.result(goes_on) if has_condition else None
    (final,) = net.loop("loop", body, -1, True, entries, [last(out)], condition)
    net.result(final, "final")
    return net


@pytest.mark.parametrize("has_condition", [True, False])
@pytest.mark.parametrize(("tail", "period"), [(1, 1), (4, 1), (4, 2), (13, 7), (50, 1), (90, 30), (700, 50)])
def test_it_is_known_from_which_iteration_on_a_state_comes_again_and_soon(
    tmp_path: Path, tail: int, period: int, has_condition: bool
) -> None:
    facts = facts_of(tmp_path, walking(tail, period, has_condition))
    again = facts.activations[0].recurrence
    assert facts.never_ends and again is not None
    assert (again.period, again.since, again.decides) == (period, tail - 1, has_condition)
    assert again.iteration < max(64, 4 * (tail + period)), "long before the ten thousandth iteration"
    how = "stays the same" if period == 1 else f"repeats every {period} iterations"
    what = "place" if has_condition else "its state"
    assert state_sentence(again, lambda one: one.name) == f"{what} {how} from iteration {tail - 1} on"


@pytest.mark.parametrize("most", [1, 5, 100, 2**22])
@pytest.mark.parametrize("seed", range(12))
def test_what_is_found_is_what_a_look_at_all_states_says(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two values, looked at after random numbers of iterations; where little is kept, the first may not be known."""
    monkeypatch.setattr(run_recorder, "_BYTES_KEPT", most)
    chance = np.random.default_rng(seed)
    tail, period = int(chance.integers(0, 60)), int(chance.integers(1, 40))
    walk = [k if k < tail else tail + (k - tail) % period for k in range(1000)]
    states = np.stack([np.array(walk) // 7, np.array(walk) % 7], axis=1)
    search, at = RecurrenceSearch(2), 0
    while search.found is None:
        end = min(at + int(chance.integers(1, 9)), len(walk))
        for value in range(2):
            parts = [states[at:end, value : value + 1]]
            if end - at > 1 and chance.random() < 0.3:  # what is noted in two parts is one all the same
                parts = [parts[0][:1], parts[0][1:]]
            for part in parts:
                search.note(value, "i64", part)
        search.look(end)
        at = end
    found = search.found
    assert found.iteration - found.before == period and found.before >= tail
    assert found.since in ({tail} if most > 10**4 else {tail, None})
    assert found.iteration < 4 * (tail + period) + 16
