"""Rows of numbers and compared columns: quicker ways into the file, by which nothing of the values is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.recording import Pace, RecordingOptions, open_recording
from stepper.recording.iterations import Batch, NumberRows, levels_of
from tests.models import Graph, carried, invariant, joined, last, sliced
from tests.recording.recorded import Case, case, check_values, statistics, walked

ITERATIONS = 40


def numbers(folder: Path) -> Case:
    """Numbers of many types: a u64 above all i64, an i64 at the lower end, a NaN, booleans, an f16."""
    net = Graph()
    body, entries, outputs = net.body(), [], []
    firsts = [np.uint64(2**63), np.int64(-(2**63)), np.float32(np.nan), np.float16(1), np.float64(1e300)]
    for index, first in enumerate(firsts):
        value = net.constant([first], first.dtype.type)
        state = body.parameter(f"state {index}", value.type, (1,))
        following = body.apply("Add", state, body.constant([1], first.dtype.type), name=f"next {index}")
        body.result(body.apply("Less", state, following, type="boolean", name=f"less {index}"))
        result = body.result(following)
        entries.append(carried(value, state, result))
        outputs.append(last(result))
    for value in net.loop("l", body, ITERATIONS, True, entries, outputs):
        net.result(value)
    return case(net.read(folder), {})


def growing_rank(folder: Path) -> Case:
    """A number that gets a dimension more from the first iteration."""
    net, body = Graph(), Graph().body()
    body = net.body()
    state = body.parameter("state", dims=())
    result = body.result(body.apply("Add", state, body.constant([[1.0]], np.float32), name="sum"))
    net.result(net.loop("l", body, ITERATIONS, True, [carried(net.constant([1.0]), state, result)], [last(result)])[0])
    return case(net.read(folder), {})


def swapped(folder: Path) -> Case:
    """Two numbers of unlike rank that change places in each iteration."""
    net = Graph()
    body = net.body()
    a, b = body.parameter("a", dims=()), body.parameter("b", dims=())
    body.result(body.apply("Negative", a, name="minus a"))
    results = body.result(a, "a_result"), body.result(b, "b_result")
    entries = [carried(net.constant([1.0]), a, results[1]), carried(net.constant([[2.0]]), b, results[0])]
    net.result(net.loop("l", body, ITERATIONS, True, entries, [last(results[0])])[0])
    return case(net.read(folder), {})


def growing_inside(folder: Path) -> Case:
    """A loop whose value is a number at first and then has more and more elements; another loop goes on with each."""
    net = Graph()
    outer = net.body()
    state = outer.parameter("state", dims=(-1,))
    inner = outer.body()
    number = inner.parameter("number", dims=(-1,))
    inner_result = inner.result(inner.apply("Add", number, inner.constant([1.0], np.float32), name="sum"))
    (value,) = outer.loop("inner", inner, 5, True, [carried(state, number, inner_result)], [last(inner_result)])
    longer = outer.apply("Concat", state, value, axis="0", dims=(-1,), name="longer")
    result = outer.result(longer)
    net.result(net.loop("l", outer, 3, True, [carried(net.constant([1.0]), state, result)], [last(result)])[0])
    return case(net.read(folder), {})


SUBJECTS = [numbers, growing_rank, swapped, growing_inside]


@pytest.mark.parametrize("build", SUBJECTS)
def test_numbers_come_back_with_their_types_and_shapes(tmp_path: Path, build: object) -> None:
    subject = build(tmp_path)  # type: ignore[operator]
    check_values(subject, tmp_path / "run.sqlite")
    with open_recording(tmp_path / "run.sqlite") as recording:
        rows = recording.query("SELECT tick, layer, output, loop, shape FROM statistics")
        ids = recording.query("SELECT id, iteration, tick FROM iterations ORDER BY id")
    seen = [(tick, layer, output, loop, list(value.shape)) for tick, _, loop, layer, output, value in walked(subject)]
    assert sorted((*row[:4], [int(dim) for dim in row[4].strip("[]").split(",") if dim]) for row in rows) == sorted(
        seen
    )
    moments = dict.fromkeys((tick, iteration) for tick, iteration, *_ in walked(subject))
    assert sorted((tick, iteration) for _, iteration, tick in ids) == sorted(moments)
    assert [row[0] for row in ids] == list(range(1, len(ids) + 1))


@pytest.mark.parametrize(("build", "kept"), [(numbers, True), (growing_rank, False), (swapped, False)])
def test_rows_of_numbers_are_kept_where_shapes_are_certain(tmp_path: Path, build: object, kept: bool) -> None:
    subject = build(tmp_path)  # type: ignore[operator]
    level = levels_of(subject.compiled, RecordingOptions.parse("all"))[1]
    batch, machine = Batch(level), subject.machine()
    machine.advance()
    while machine.stack[-1].activation is None or machine.stack[-1].activation.iteration < 0:
        machine.advance()
    while machine.stack[-1].phase.name != "BETWEEN":
        machine.advance()
    assert isinstance(batch.form_of(machine.stack[-1]), NumberRows) is kept


def test_the_same_elements_are_stored_once(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(-1, 4096)), net.body()
    item, total = body.parameter("item", dims=(1, 4096)), body.parameter("total", dims=(1, 4096))
    flat = body.apply("Squeeze", item, body.constant([0], np.int64), dims=(4096,), name="flat")
    added = body.apply("Add", total, flat, dims=(1, 4096), name="added")
    results = [body.result(flat), body.result(added)]
    entries = [sliced(x, item), carried(net.constant(np.zeros((1, 4096), np.float32)), total, results[1])]
    for value in net.tensor_iterator("t", body, entries, [joined(results[0]), last(results[1])]):
        net.result(value)
    given = np.random.default_rng(1).standard_normal((ITERATIONS, 4096)).astype(np.float32)
    check_values(case(net.read(tmp_path), {"x": given}), tmp_path / "run.sqlite")
    with open_recording(tmp_path / "run.sqlite") as recording:
        assert recording.query("SELECT count(*), count(DISTINCT blob) FROM stacks") == [(5, 3)]
        ((size,),) = recording.query("SELECT sum(length(content)) FROM blobs WHERE id IN (SELECT blob FROM stacks)")
        assert size < 2.2 * given.nbytes, "the slices, what is added up, and the one that entered"
        series = recording.query("SELECT count(*), sum(count), (SELECT count(*) FROM tensors) FROM tensor_series")
        assert series == [(5, 4 * ITERATIONS, 2 * ITERATIONS + 1)]
        entering = {row["iteration"]: row["mean"] for row in statistics(recording, "total")}
        leaving = {row["iteration"]: row["mean"] for row in statistics(recording, "added")}
    sums = np.cumsum(given, axis=0, dtype=np.float32).astype(np.float64).mean(axis=1)
    np.testing.assert_allclose([leaving[index] for index in range(ITERATIONS)], sums, rtol=1e-9)
    np.testing.assert_allclose([entering[index] for index in range(1, ITERATIONS)], sums[:-1], rtol=1e-9)
    assert entering[0] == 0


def test_snapshots_are_taken_in_a_loop_over_numbers_that_calls_nothing_in_its_iterations(tmp_path: Path) -> None:
    subject = numbers(tmp_path)
    for name, pace, least in (("often", Pace(0), 3), ("counted", Pace(1000, 10), ITERATIONS // 10)):
        subject.recorded(path := tmp_path / f"{name}.sqlite", "all", pace)
        with open_recording(path) as recording:
            assert len(recording.query("SELECT tick FROM snapshots")) >= least


def test_a_number_that_stays_is_written_once_and_one_that_is_carried_not_again(tmp_path: Path) -> None:
    net = Graph()
    start, body = net.parameter("start", dims=()), net.body()
    state, factor = body.parameter("state", dims=()), body.parameter("factor", dims=())
    result = body.result(body.apply("Multiply", state, factor, name="next"))
    inputs = [carried(start, state, result), invariant(net.parameter("factor", dims=()), factor)]
    net.result(net.loop("l", body, 10_000, True, inputs, [last(result)])[0])
    subject = case(net.read(tmp_path), {"start": np.float32(1), "factor": np.float32(1.001)})
    subject.recorded(path := tmp_path / "run.sqlite", "all")
    with open_recording(path) as recording:
        # Of `next` all, 64 in a row; of `state` the first one of each of five batches (the first iterations, three of
        # 4,096, the rest), of `factor` those of one batch, to which the others refer.
        ((rows,),) = recording.query("SELECT count(*) FROM numbers")
        assert rows <= 10_000 // 64 + 4_096 // 64 + 24
        counted = "SELECT p.name, sum(s.count) FROM number_series AS s JOIN ports AS p ON p.id = s.port GROUP BY 1"
        series = dict(recording.query(counted))
        assert series == {"state": 10_000, "factor": 10_000, "next": 10_000}
        values = {name: [row["mean"] for row in statistics(recording, name)] for name in series}
    assert values["factor"] == [float(np.float32(1.001))] * 10_000
    assert values["state"][1:] == values["next"][:-1] and values["state"][0] == 1
    assert values["next"] == np.multiply.accumulate(np.full(10_000, 1.001, np.float32)).tolist()
