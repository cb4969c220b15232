"""The overview of a run, against a plain run of the same model and what the models are known to do."""

from __future__ import annotations

import threading
import zlib
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.overview import runs
from stepper.debug.overview.overview_facts import LoopFacts, Overview, RowKind, RunState, text_of
from stepper.debug.overview.run_recorder import FIRST_RUNS, LAST_RUNS, RunRecorder
from stepper.debug.stop import Reason
from stepper.element_types import Array
from stepper.engine.frames import EventKind, Frame, Phase, Taps
from stepper.engine.loops import EndReason
from stepper.engine.machine import Machine
from stepper.tensors.histories import KeptStatistic
from tests.benchmarks.models import newton_by_hand, newton_model
from tests.debug.debugged import SAMPLES, opened, sample
from tests.debug.loops_to_break import clock, countdown, recurrence
from tests.debug.moments.test_spread import accumulating
from tests.models import Graph, backwards, carried, joined, last, sliced
from tests.tables import each_row

ALL = sorted(path.parent.name for path in SAMPLES.glob("*/model.xml"))


def plain_rows(debugger: Debugger, loop: LoopFacts) -> list[dict[int, Array]]:
    """By a run of another machine: the value of each row of a loop in every iteration of all its runs, in order."""
    machine = Debugger(debugger.model, dict(enumerate(debugger.inputs)), debugger.machine.rules).machine
    found = []
    for event in machine.run(stepper.Every.ITERATION):
        activation, program = event.frame.activation, event.frame.program
        layer = None if activation is None else activation.operation.layer
        if event.kind is EventKind.ITERATION and layer is not None and layer.line == loop.layer.line:
            layers = {index: (row.result or row.inner).id for index, row in enumerate(loop.rows)}
            values = {index: event.frame.values[program.slots[id, 0]] for index, id in layers.items()}
            found.append({index: np.array(value) for index, value in values.items()})
    return found


@each_row("name", ALL)
def test_values_of_all_iterations_are_those_of_a_plain_run(name: str) -> None:
    debugger = sample(name)
    present = repr(debugger.stop)
    overview = debugger.run_overview()
    assert overview.state is RunState.FINISHED and overview.births_complete
    assert repr(debugger.stop) == present and debugger.machine.tick == 0, "the present stays"
    expected = stepper.run(debugger.model, dict(enumerate(debugger.inputs)))
    assert [port.name for port in overview.outputs] == list(expected)
    assert [port.size for port in overview.outputs] == [value.size for value in expected.values()]
    summaries = {summary.path: summary for summary in expected.loops}
    assert {loop.path for loop in overview.loops if loop.runs} == set(summaries)
    for loop in overview.loops:
        summary = summaries[loop.path]
        assert (loop.runs, loop.total) == (summary.executions, summary.iterations)
        assert (loop.fewest, loop.most, loop.ended) == (summary.fewest, summary.most, dict(summary.ended))
        check_values(loop, plain_rows(debugger, loop))


def check_values(loop: LoopFacts, plain: list[dict[int, Array]]) -> None:
    """Hold the histories of all runs against values of iterations, of which there are few."""
    begin = 0
    for run in loop.activations:
        part = plain[begin : begin + run.iterations]
        begin += run.iterations
        for index, (row, history) in enumerate(zip(loop.rows, run.values, strict=True)):
            if row.kind is RowKind.CONDITION:
                verdicts = [bool(one[index]) for one in part]
                assert verdicts[:-1] == [True] * (len(part) - 1)
            elif history is not None and history.is_whole and not row.appends:
                assert history.spans.tolist() == [[at, at + 1] for at in range(len(part))]
                assert np.array_equal(history.numbers[0], [np.ravel(one[index]) for one in part], equal_nan=True)
            elif history is not None and not row.appends:
                largest = [np.abs(np.ravel(one[index])).max() for one in part]
                assert np.array_equal(np.abs(history.numbers[0]).max(axis=1), largest)
            if row.same_as is not None and not row.appends and not loop.rows[row.same_as].appends:
                assert all(one[index].tobytes() == one[row.same_as].tobytes() for one in part)


def test_a_loop_that_a_token_ends() -> None:
    overview = sample("date_normaliser").run_overview()
    (loop,) = overview.loops
    (run,) = loop.activations
    assert run.iterations == 11 and run.condition_limit is not None
    assert run.condition_limit.iterations == 20
    assert run.ending is not None and run.ending.reason is EndReason.CONDITION and run.ending.iteration == 10
    assert run.ending.verdict is not None
    verdict = run.ending.verdict.root
    assert verdict.layer.type == "NotEqual" and verdict.value is False
    token, stop = verdict.operands
    assert (token.value, stop.value) == (12, 12) and token.carried is not None and stop.is_constant
    assert token.carried.name == "tok.13" and not token.is_constant
    rows = {row.inner.name: index for index, row in enumerate(loop.rows)}
    counter = run.values[rows["i.11"]]
    assert counter is not None and counter.counter is not None and tuple_of(counter.counter) == (1, 1, 11)
    tokens = run.values[rows["toks.11"]]
    expected = np.load(SAMPLES / "date_normaliser" / "expected.npz")
    wanted = next(expected[name] for name in expected.files if expected[name].dtype.kind == "i")
    assert tokens is not None and tokens.numbers[0, :, 0].tolist() == wanted.tolist()
    assert loop.rows[rows["toks.11"]].appends and loop.rows[rows["tok.13"]].same_as == rows["toks.11"]


def tuple_of(counter: object) -> tuple[int, ...]:
    return tuple(getattr(counter, name) for name in ("first", "step", "last"))


def test_births_of_infinity_and_nan_are_found_with_the_numbers_that_made_them() -> None:
    debugger = sample("rwkv_overflow")
    overview = debugger.run_overview()
    first, second = overview.births
    assert (first.cause.kind, first.cause.location.iteration) == ("inf", 7)
    assert first.cause.location.operation is not None and first.cause.location.operation.name == "exp_key"
    assert isinstance(first.cause.operands[0].value, float) and first.cause.operands[0].value > 88.72
    assert (second.cause.kind, second.cause.location.iteration) == ("nan", 8)
    for birth in overview.births:
        stop = debugger.goto_tick(birth.tick)
        assert stop.iteration == birth.cause.location.iteration
        assert stop.done is not None and birth.cause.location.operation is not None
        assert stop.done.layer.id == birth.cause.location.operation.id
    outputs = stepper.run(debugger.model, dict(enumerate(debugger.inputs)))
    found = {port.name: port.nan for port in overview.outputs}
    assert found == {name: int(np.isnan(value).sum()) for name, value in outputs.items()}
    (loop,) = overview.loops
    (run,) = loop.activations
    values = {row.inner.name: one for row, one in zip(loop.rows, run.values, strict=True)}
    numerator, wkv = values["numerator"], values["wkv_result"]
    assert numerator is not None and wkv is not None
    assert numerator.first_infinite == 7 and wkv.first_nan == 8
    assert run.ending is not None and run.ending.limit == 12
    (place,) = [index for index, row in enumerate(loop.rows) if row.kind is RowKind.BIRTH]
    born, row = run.values[place], loop.rows[place]
    assert born is not None and (born.first_infinite, born.first_nan) == (7, None)
    assert row.producer is not None and row.producer.name == "exp_key"
    expected = [np.ravel(debugger.value(f"exp_key@{iteration}")) for iteration in range(run.iterations)]
    assert np.array_equal(born.numbers[0], expected)


def test_a_birth_late_in_a_long_run_is_looked_for_where_a_row_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "BIRTH_SECONDS", 0.0)
    debugger = opened(tmp_path, recurrence("Multiply", 1.001, 100_000))
    overview = debugger.run_overview(seconds=60)
    with np.errstate(over="ignore"):
        products = np.cumprod(np.full(100_000, 1.001, np.float32), dtype=np.float32)
    first = int(np.flatnonzero(np.isinf(products))[0])
    history = overview.loops[0].activations[0].values[1]
    assert history is not None and history.first_infinite == first
    (birth,) = overview.births
    assert birth.cause.location.iteration == first and not overview.births_complete
    assert debugger.goto_tick(birth.tick).iteration == first
    tick = debugger.machine.tick
    shares = [overview.births_share]
    for _ in range(1000):
        overview = debugger.look_through(seconds=0.02)
        shares.append(overview.births_share)
        if overview.births_complete:
            break
    assert shares == sorted(shares) and 0 <= shares[0] < shares[-1] == 1
    assert overview.births == (birth,) and debugger.machine.tick == tick
    assert debugger.look_through() is overview or debugger.look_through().births == (birth,)


def test_nested_loops_are_kept_by_run() -> None:
    debugger = sample("nested_loop")
    overview = debugger.run_overview()
    outer, inner = overview.loops
    assert (outer.depth, inner.depth) == (0, 1)
    assert [run.outer for run in inner.activations] == [(0,), (1,), (2,)]
    assert [run.iterations for run in inner.activations] == [4, 3, 2]
    ending = outer.activations[0].ending
    assert ending is not None and ending.verdict is not None
    assert [operand.value for operand in ending.verdict.operands] == [0, 0] and ending.verdict.layer.type == "Greater"
    shown = ending.verdict.operands[0].row
    assert shown is not None and outer.rows[shown].inner.name == "swaps_in_pass_result"
    rows = {row.inner.name: index for index, row in enumerate(outer.rows)}
    assert outer.rows[rows["order_row_result"]].same_as == rows["order"]
    order = outer.activations[0].values[rows["order"]]
    assert order is not None and order.entered is not None
    assert np.array_equal(order.entered[0], debugger.inputs[0])
    assert np.array_equal(order.numbers[0, -1], np.sort(debugger.inputs[0]))


def test_a_reversed_output_has_columns_in_the_order_of_iterations() -> None:
    debugger = sample("reverse")
    overview = debugger.run_overview()
    (loop,) = overview.loops
    row = next(index for index, row in enumerate(loop.rows) if row.kind is RowKind.CONCATENATED)
    history = loop.activations[0].values[row]
    assert history is not None
    (returns, *_) = stepper.run(debugger.model, dict(enumerate(debugger.inputs))).values()
    assert np.array_equal(history.numbers[0, :, 0], np.ravel(returns)[::-1])


@each_row("axis", [0, 1, 2])
@each_row(("part", "backward"), [(1, False), (1, True), (2, False), (3, True)])
def test_slices_are_those_that_the_iterations_got(tmp_path: Path, axis: int, part: int, backward: bool) -> None:
    dims, count = [4, 4, 4], 5
    dims[axis] = part * count
    piece_dims = [part if at == axis else size for at, size in enumerate(dims)]
    cut = backwards(part) if backward else {"stride": part}
    net = Graph()
    x, body = net.parameter("x", dims=dims), net.body()
    piece = body.parameter("piece", dims=piece_dims)
    out = body.result(body.apply("Negative", piece, name="less"), "out")
    (whole,) = net.tensor_iterator("cut", body, [sliced(x, piece, axis, **cut)], [joined(out, axis, **cut)])
    net.result(whole, "whole")
    array = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    (loop,) = opened(tmp_path, net, array).run_overview().loops
    row = next(index for index, row in enumerate(loop.rows) if row.kind is RowKind.SLICE)
    history = loop.activations[0].values[row]
    assert history is not None and history.count == count
    pieces = np.split(array, count, axis)[:: -1 if backward else 1]
    whole_values = [np.ravel(one) for one in pieces]
    if history.is_whole:
        assert np.array_equal(history.numbers[0], whole_values)
    else:
        assert np.array_equal(history.numbers[0].max(axis=1), [one.max() for one in whole_values])


@each_row(("size", "less", "steps"), [(70, 0, 5), (70, 1, 5), (1, 0, 300), (3, 0, 300)])
def test_an_output_of_the_elements_of_a_back_edge_in_another_shape_has_a_row_of_its_own(
    tmp_path: Path, size: int, less: int, steps: int
) -> None:
    net, dims = Graph(), (-1,) if less else (size,)
    x, body = net.parameter("x", dims=(size,)), net.body()
    state, one = body.parameter("state", dims=dims), body.constant([1], np.int64)
    begin, end = body.constant([less], np.int64), body.constant([2**40], np.int64)
    taken = body.apply("Slice", state, begin, end, one, version="opset8") if less else state
    following = body.apply("Add", taken, body.constant([1.0]))
    row = body.apply("Unsqueeze", following, body.constant([0], np.int64), dims=(1, *dims))
    column = body.apply("Reshape", row, body.constant([-1, 1], np.int64), dims=(*dims, 1), special_zero="false")
    results = [body.result(value, name) for value, name in ((following, "next"), (row, "row"), (column, "column"))]
    for value in net.loop("loop", body, steps, True, [carried(x, state, results[0])], [last(one) for one in results]):
        net.result(value, "out")
    array = np.arange(size, dtype=np.float32)
    (loop,) = opened(tmp_path, net, array).run_overview().loops
    plain = [array[less * (at + 1) :] + np.float32(at + 1) for at in range(steps)]
    shapes = {"next": lambda count: (count,), "row": lambda count: (1, count), "column": lambda count: (count, 1)}
    for row_facts, history in zip(loop.rows, loop.activations[0].values, strict=True):
        if history is None:
            continue
        name = (row_facts.result or row_facts.inner).name
        shape = shapes[name]
        assert (history.count, history.shape) == (steps, shape(len(plain[-1])))
        changed = [(one.iteration, one.shape) for one in history.shapes]
        begins = 0 if name == "next" else 1  # from what came in to iteration 0, where something did
        assert changed == [(at, shape(len(plain[at]))) for at in range(begins, steps) if less]
        shown = history.over_each([(at, at + 1) for at in (0, 1, steps - 1)], KeptStatistic.LARGEST)
        largest = np.abs(np.array(shown)).max(axis=1)
        assert largest.tolist() == [plain[at].max() for at in (0, 1, steps - 1)]
        assert (history.entered is not None) is (name == "next")


# --- loops that do not begin, or do not end -------------------------------------------------------------------------


def test_a_loop_without_end_is_told_at_once_and_goes_on_where_it_was_paused(tmp_path: Path) -> None:
    debugger = opened(tmp_path, recurrence("Minimum", 3.0, -1, 7.0))
    assert debugger.overview().state is RunState.NOT_RUN and debugger.overview().iterations == 0
    shown: list[Overview] = []
    overview = debugger.run_overview(seconds=0.3, progress=shown.append)
    assert overview.state is RunState.OUT_OF_TIME and debugger.overview() is overview
    assert 2 <= len(shown) <= 0.3 * 30 + 3 and 0 < shown[0].iterations < overview.iterations
    assert overview.seconds < 3 and overview.rate > 0 and not overview.births_complete
    (loop,) = overview.loops
    (run,) = loop.activations
    assert loop.never_ends and run.ending is None and run.iterations == overview.iterations
    history = run.values[1]
    assert history is not None and history.count == run.iterations and history.is_constant
    assert history.entered is not None and history.entered.tolist() == [[7.0]] and np.all(history.numbers == 3.0)
    assert debugger.machine.tick == 0
    again = debugger.run_overview(seconds=0.1)
    assert again.iterations > overview.iterations and again.seconds > overview.seconds
    further = again.loops[0].activations[0].values[1]
    assert further is not None and further.spans[-1, 1] == again.iterations == further.count


@each_row("is_carried", [True, False])
def test_a_condition_that_reads_nothing_that_changes_can_never_end_its_loop(is_carried: bool, tmp_path: Path) -> None:
    debugger = opened(tmp_path, clock(is_carried=is_carried), np.float32(0), np.float32(0))
    overview = debugger.run_overview(seconds=20, endless_seconds=0.2)
    (loop,) = overview.loops
    if is_carried:  # 0.25, 0.5, 0.75, 1: the fourth ends it
        assert overview.state is RunState.FINISHED and not loop.never_ends and loop.total == 4
        return
    assert overview.state is RunState.OUT_OF_TIME and overview.seconds < 5
    assert loop.never_ends and [one.name for one in loop.fixed_by] == ["t"]
    assert loop.total > 100


def test_a_pause_from_another_thread_and_a_limit_of_memory(tmp_path: Path) -> None:
    debugger = opened(tmp_path, recurrence("Add", 1.0))
    seen = threading.Event()
    found: list[Overview] = []
    worker = threading.Thread(
        target=lambda: found.append(debugger.run_overview(progress=lambda _overview: seen.set())), daemon=True
    )
    worker.start()
    assert seen.wait(20) and debugger.overview().state is RunState.RUNNING
    debugger.pause()
    worker.join(20)
    assert not worker.is_alive() and found[0].state is RunState.PAUSED
    assert debugger.run_overview(memory=1).state is RunState.OUT_OF_MEMORY


def test_a_loop_that_is_not_entered(tmp_path: Path) -> None:
    overview = opened(tmp_path, countdown(), np.array([0], np.int64)).run_overview()
    (loop,) = overview.loops
    (run,) = loop.activations
    assert run.iterations == 0 and run.ending is not None
    assert run.ending.reason is EndReason.INITIAL_CONDITION and run.ending.iteration == -1
    entered = [history for history in run.values if history is not None]
    assert loop.ended == {EndReason.INITIAL_CONDITION: 1} and [one.count for one in entered] == [0, 0]
    assert entered[0].entered is not None and entered[0].entered.tolist() == [[0]]
    assert loop.control.condition is not None and loop.control.condition.layer.name == "enters"
    ended = opened(tmp_path, countdown(), np.array([4], np.int64)).run_overview().loops[0].activations[0].ending
    assert ended is not None and ended.iteration == 3 and ended.verdict is not None
    assert [operand.value for operand in ended.verdict.operands] == [0, 0]
    assert ended.verdict.operands[0].carried is not None and ended.verdict.operands[0].carried.name == "state"


def test_an_error_of_the_run_is_a_fact(tmp_path: Path) -> None:
    model = stepper.read_model(newton_model(tmp_path, 100))
    inputs = {"number": np.array([2], np.float32), "guess": np.array([1], np.float32)}
    debugger = Debugger(model, inputs, max_iterations=10)
    overview = debugger.run_overview()
    assert overview.state is RunState.FAILED and overview.failure is not None
    assert overview.failure.type == "LimitReached" and overview.failure.place is not None
    assert overview.loops[0].activations[0].iterations == 10 and overview.outputs[0].brief is None
    assert debugger.machine.tick == 0 and debugger.run_overview() is overview


def test_short_inputs_have_their_numbers_and_texts_their_text() -> None:
    assert sample("nested_loop").run_overview().inputs[0].numbers == (5, 1, 4, 2, 8)
    assert len(sample("date_normaliser").run_overview().inputs[0].numbers) == 16
    assert text_of(np.array(["20 May", "2026"])) == "20 May 2026" and text_of(np.array([65, 66, 67, 68])) == ""


@each_row(("steps", "at"), [(6, 3), (6, 0), (6, 5), (3_000, 1_500)])
def test_what_is_set_when_an_iteration_is_closed_is_handed_on_but_its_piece_is_joined_already(
    tmp_path: Path, steps: int, at: int
) -> None:
    debugger = Debugger(accumulating(forward=True, steps=steps).write(tmp_path), {0: np.ones((steps, 1), np.float32)})
    debugger.goto(f"added@{at}")
    while debugger.frame.phase is Phase.RUNNING:
        debugger.step()
    debugger.set_value("added", 50.0)
    handed_on = np.arange(1, steps + 1, dtype=np.float32)
    handed_on[at:] = 50 + np.arange(steps - at)
    joined = handed_on.copy()
    joined[at] = at + 1
    (loop,) = debugger.run_overview().loops
    found = {row.kind: history for row, history in zip(loop.rows, loop.activations[0].values, strict=True)}
    for kind, expected in ((RowKind.BACK_EDGE, handed_on), (RowKind.CONCATENATED, joined)):
        history = found[kind]
        assert history is not None and history.count == steps
        spans = [(begin, end) for begin, end in history.spans.tolist()]
        assert history.numbers[0, :, 0].tolist() == [expected[begin:end].max() for begin, end in spans]
    debugger.last()
    assert debugger.machine.outputs is not None
    assert np.ravel(debugger.machine.outputs[0]).tolist() == joined.tolist(), "as the run itself has it"


def test_a_loop_that_is_let_go_on_at_its_last_iteration_has_the_end_that_it_came_to(tmp_path: Path) -> None:
    debugger = opened(tmp_path, recurrence("Add", 1.0, 5))
    debugger.goto("following@4")
    while debugger.frame.phase is Phase.RUNNING:
        debugger.step()
    debugger.set_trip_count(8)
    (loop,) = debugger.run_overview().loops
    ending = loop.activations[0].ending
    assert loop.total == 8 and ending is not None and (ending.iteration, ending.limit) == (7, 8)


# --- long runs, other branches --------------------------------------------------------------------------------------


def test_a_long_run_is_in_bins_and_time_travel_needs_no_other_run(tmp_path: Path) -> None:
    count = 5_000
    inputs = {"number": np.array([2], np.float32), "guess": np.array([1], np.float32)}
    debugger = Debugger(stepper.read_model(newton_model(tmp_path, count)), inputs)
    overview = debugger.run_overview()
    _, roots = newton_by_hand(*inputs.values(), count)
    history = overview.loops[0].activations[0].values[1]
    assert history is not None and history.count == count and len(history.spans) < 600
    for (begin, end), number in zip(history.spans.tolist(), history.numbers[0, :, 0].tolist(), strict=True):
        assert number == roots[begin:end].max()
    settled = int(np.flatnonzero(np.diff(roots))[-1]) + 1
    assert history.unchanged_since == settled
    assert debugger.timeline.furthest == overview.ticks and len(debugger.timeline.history) > 1
    debugger.last()
    summary = debugger.run_summary()
    assert summary is not None and [loop.iterations for loop in summary.loops] == [count] and not summary.is_partial


def test_what_a_loop_keeps_as_an_output_is_recorded_without_a_word_in_its_iterations(tmp_path: Path) -> None:
    count = 40_000
    inputs = {"number": np.array([2], np.float32), "guess": np.array([1], np.float32)}
    debugger = Debugger(stepper.read_model(newton_model(tmp_path, count)), inputs)
    asked, answered = RunRecorder.taps, list[Taps]()

    def taps(recorder: RunRecorder, frame: Frame) -> Taps | None:
        found = asked(recorder, frame)
        answered.extend([] if found is None else [found])
        return found

    with patch.object(RunRecorder, "taps", taps):
        paused = debugger.run_overview(memory=1)  # goes on after it was put back to where it stood
        overview = debugger.run_overview()
    assert 0 < paused.iterations < overview.iterations == count
    assert answered and not any(one.values for one in answered)
    _, roots = newton_by_hand(*inputs.values(), count)
    history = overview.loops[0].activations[0].values[1]
    assert history is not None and history.count == count
    assert np.array_equal(history.numbers[0, :128, 0], roots[:128])
    assert history.unchanged_since == int(np.flatnonzero(np.diff(roots))[-1]) + 1


def test_many_runs_of_an_inner_loop_are_the_first_and_the_last(tmp_path: Path) -> None:
    count, inputs = 100, {"number": np.array([2], np.float32), "guess": np.array([1], np.float32)}
    debugger = Debugger(stepper.read_model(newton_model(tmp_path, count, 3)), inputs)
    inner = debugger.run_overview().loops[1]
    assert inner.runs == count and inner.total == 3 * count
    first, last_ones = range(FIRST_RUNS), range(count - LAST_RUNS, count)
    assert [run.outer for run in inner.activations] == [(number,) for number in (*first, *last_ones)]
    check_values(
        LoopFacts(**{**as_fields(inner), "activations": inner.activations[:FIRST_RUNS]}), plain_rows(debugger, inner)
    )


def as_fields(loop: LoopFacts) -> dict[str, object]:
    return {name: getattr(loop, name) for name in loop.__struct_fields__}


def test_another_branch_has_an_overview_of_its_own(tmp_path: Path) -> None:
    debugger = sample("rwkv_overflow")
    original = debugger.run_overview()
    debugger.run_to("exp_key@7")
    debugger.set_value("exp_key", np.zeros(debugger.value("exp_key").shape, np.float32))
    assert debugger.overview().state is RunState.NOT_RUN
    tick = debugger.machine.tick
    edited = debugger.run_overview()
    assert debugger.machine.tick == tick and not edited.births and original.births
    assert all(port.nan == 0 for port in edited.outputs)
    debugger.branch("original")
    assert debugger.run_overview().births == original.births


def test_a_model_without_loops_has_its_operations_and_outputs(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", dims=(3,))
    net.result(net.apply("Log", net.apply("Abs", x)), "out")
    overview = opened(tmp_path, net, np.array([1, 0, 2], np.float32)).run_overview()
    assert overview.loops == () and overview.operations == {"Abs": 1, "Log": 1}
    assert overview.state is RunState.FINISHED and overview.outputs[0].infinite == 1
    assert [birth.cause.kind for birth in overview.births] == ["inf"]


def test_the_end_that_the_overview_has_seen_is_gone_to_at_once_until_an_edit_makes_another() -> None:
    debugger = sample("rwkv_overflow")
    expected = sample("rwkv_overflow").continue_()
    debugger.run_overview()
    with patch.object(Machine, "advance", autospec=True, side_effect=Machine.advance) as advance:
        stop = debugger.continue_()
        assert (stop.reason, stop.tick) == (Reason.END, expected.tick) and not advance.called
        summary = debugger.run_summary()
        assert summary is not None and summary.loops[0].iterations == 12
        debugger.first()
        debugger.break_when("nan")
        assert debugger.continue_().reason is Reason.BREAK
        debugger.breakpoints.delete(1)
        debugger.set_value("wkv[0,3]", 0)
        advance.reset_mock()
        assert debugger.continue_().reason is Reason.END and advance.called
        debugger.branch("original")
        advance.reset_mock()
        assert debugger.last().tick == expected.tick and not advance.called


def test_rows_are_the_same_where_every_iteration_is_so_and_only_such_are_compared(tmp_path: Path) -> None:
    net = Graph()
    x, start = net.parameter("x", dims=(6, 1)), net.parameter("start", dims=(1, 1))
    body = net.body()
    item, total, other = (body.parameter(name, dims=(1, 1)) for name in ("item", "total", "other"))
    added = body.apply("Add", total, item)
    result, twin = body.result(added), body.result(body.apply("Add", item, total))
    doubled = body.result(body.apply("Multiply", other, body.constant(np.array([[2]], np.float32))))
    entries = [sliced(x, item), carried(start, total, result), carried(start, other, doubled)]
    outputs = net.tensor_iterator("sums", body, entries, [joined(result), joined(twin), joined(doubled)])
    for index, value in enumerate(outputs):
        net.result(value, f"out{index}")
    # Sums and doubled numbers begin with the same one, 2, and go on with others; from 3 on they never are the same.
    found, checksums = [], []
    for first in (1, 3):
        x_values = np.arange(first, first + 6, dtype=np.float32)[:, None]
        debugger = Debugger(net.write(tmp_path), {0: x_values, 1: np.ones((1, 1), np.float32)})
        with patch("stepper.tensors.histories.zlib.crc32", side_effect=zlib.crc32) as checksum:
            (loop,) = debugger.run_overview().loops
        checksums.append(checksum.call_count)
        same = {(index, row.same_as) for index, row in enumerate(loop.rows) if row.same_as is not None}
        found.append({(loop.rows[index].port, loop.rows[earlier].inner.name) for index, earlier in same})
    assert found == [{(0, "total"), (1, "total"), (2, "other")}] * 2
    assert checksums[1] == checksums[0] - 1, "no one asks for that of what differs from all others at first sight"
