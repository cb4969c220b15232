"""Watches: evaluated at every stop, remembered for every iteration seen, and never in the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.commands import Interpreter
from stepper.debug.stop_scope import Watches
from stepper.errors import UsageError
from stepper.query.expressions import ExpressionError
from stepper.session.session_files import restore_session, save_session
from tests.debug.debugged import ALL_RUNS, at_iteration, opened, recorded, run_named, sample, state_of, stops
from tests.debug.iterations.test_series import counting
from tests.debug.sample_twins import collatz
from tests.models import Graph


def test_a_watch_is_read_at_every_stop_and_keeps_what_it_was() -> None:
    debugger = sample("specification_lstm")
    expected = recorded(debugger, "lstm", ["h_next"])
    at_iteration(debugger, 0)
    watch = debugger.watch("h_next[0,3]")
    for iteration in range(1, 6):
        at_iteration(debugger, iteration)
    values = [reading.value.tolist() for reading in watch.readings if reading.value is not None]
    assert values == [found["h_next"][0, 3].tolist() for found in expected[:6]]
    places = [(reading.place, reading.iteration) for reading in watch.readings]
    assert places == [(f"model > TensorIterator 'lstm' #{i}", i) for i in range(6)]


def test_a_moment_seen_again_is_kept_once() -> None:
    debugger = sample("for_loop")
    at_iteration(debugger, 2)
    watch = debugger.watch("iter * 10")
    for iteration in (5, 2, 5, 3):
        at_iteration(debugger, iteration)
    assert [reading.iteration for reading in watch.readings] == [2, 3, 5]
    assert watch.now is not None and watch.now.value is not None and watch.now.value.tolist() == 30


def test_an_error_is_shown_as_text_and_goes_away(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    watch = debugger.watch("added[0] > 2")
    reading = watch.now
    assert reading is not None and reading.error and reading.text == "a value of 'sums', which does not run here"
    assert reading.elsewhere is not None and reading.elsewhere.name == "sums"
    debugger.step(3)
    assert watch.now is not None and watch.now.elsewhere is None
    assert watch.now is not None and watch.now.error and "not computed yet in iteration 0" in watch.now.text
    debugger.step()
    assert watch.now is not None and not watch.now.error and watch.now.text == "False"
    debugger.last()
    assert watch.now is not None and watch.now.error


@ALL_RUNS
def test_no_watch_ever_raises_or_moves_the_run(name: str, tmp_path: Path) -> None:
    debugger, plain = run_named(name, tmp_path), run_named(name, tmp_path)
    for text in (
        "iter",
        "prev(nothing)",
        "nothing@3 > 1",
        "1/0",
        "result@-1",
        "ref(x)",
        "x[7,7,7]",
        "shape(x) == [1,2,3]",
    ):
        debugger.watch(text)
    for _, _ in zip(range(40), stops(debugger), strict=False):
        assert state_of(debugger.timeline) == state_of(plain.timeline)
        assert all(watch.now is not None and watch.now.tick == debugger.stop.tick for watch in debugger.watches)
        if not plain.machine.finished:
            plain.step()


def test_a_wrong_text_is_refused_when_it_is_set() -> None:
    debugger = sample("for_loop")
    with pytest.raises(ExpressionError):
        debugger.watch("balance[")
    assert len(debugger.watches) == 0


def test_the_value_before_and_in_a_given_iteration_can_be_watched(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counting(10))
    at_iteration(debugger, 4)
    before, given = debugger.watch("more - prev(more)"), debugger.watch("more@7 + x@0")
    state = state_of(debugger.timeline)
    for watch, value in ((before, 1), (given, 8)):
        assert watch.now is not None and watch.now.value is not None and watch.now.value.tolist() == value
    debugger.watches.see(debugger.timeline)
    assert state_of(debugger.timeline) == state


def test_of_a_large_value_only_type_and_shape_are_kept() -> None:
    debugger = sample("specification_lstm")
    at_iteration(debugger, 0)
    watch = debugger.watch("h_next")
    assert watch.now is not None and (watch.now.value, watch.now.text) == (None, "f32[1,256]")


def test_readings_are_bounded_and_the_oldest_go(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counting(100))
    debugger.watches = Watches(debugger.machine.compiled, most=5)
    at_iteration(debugger, 0)
    watch = debugger.watch("iter")
    for iteration in range(1, 20):
        at_iteration(debugger, iteration)
    assert [reading.iteration for reading in watch.readings] == [15, 16, 17, 18, 19]


def test_a_watch_can_be_deleted(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counting(3))
    first, second = debugger.watch("iter"), debugger.watch("iter + 1")
    debugger.watches.delete(first.number)
    assert [watch.text for watch in debugger.watches] == ["iter + 1"]
    with pytest.raises(UsageError, match=f"there is no watch {first.number}; there are {second.number}"):
        debugger.watches.delete(first.number)


def test_a_kept_value_is_a_copy(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    at_iteration(debugger, 0)
    watch = debugger.watch("added")
    assert watch.now is not None and watch.now.value is not None
    assert not np.shares_memory(watch.now.value, debugger.frame.values[1]) and not watch.now.value.flags.writeable


# --- formats --------------------------------------------------------------------------------------------------------


def test_a_displayed_value_is_written_in_its_format_at_every_stop() -> None:
    interpreter = Interpreter(sample("while_loop"))
    interpreter.session.debugger.run_to("until_one@4")
    number = collatz(27)[2][3]
    for line, expected in (
        ("display number/x", f"number/x = {number:#x}"),
        ("display /f2 number / 7", f"(number / 7)/f2 = {number / 7:.2f}"),
        ("display (number * 1.0)/e3", f"((number * 1.0))/e3 = {number * 1.0:.3e}"),
        ("display number > 3/b", "(number > 3)/b = true"),
        ("display -number/x", f"-number/x = {-number:#x}"),
    ):
        assert interpreter.execute(line).lines[0].split("  ", 1)[1] == expected
    stop = interpreter.execute("iter +1").lines
    assert f"  watch 1  number/x = {collatz(27)[2][4]:#x}" in stop
    listed = interpreter.execute("info display")
    assert listed.lines[0].startswith("1  number/x = ") and listed.data["watches"][0]["format"] == "x"
    interpreter.execute("undisplay 1")
    assert not any("number/x" in line and "-" not in line for line in interpreter.execute("display").lines)


def test_a_tensor_is_displayed_element_by_element_or_by_its_statistics() -> None:
    interpreter = Interpreter(sample("nested_loop"))
    interpreter.session.debugger.run_to("passes@0::pairs_of_neighbours@0")
    assert interpreter.execute("display values/f1").lines == ("watch 1  values/f1 = f32[5] [5.0, 1.0, 4.0, 2.0, 8.0]",)
    (line,) = interpreter.execute("display values/s").lines
    assert line == "watch 2  values/s = f32[5]  min 1  max 8  mean 4  std 2.44949  nan 0  inf 0  zero 0"
    assert "/x is for integers, this is f32[5]" in interpreter.execute("display values/x").lines[0]
    for line in ("display /q values", "display values/q"):
        with pytest.raises(UsageError, match="there is no format 'q'; there are x"):
            interpreter.execute(line)
    assert interpreter.execute("display values/(2)").data["format"] == ""


def test_a_name_like_a_format_is_not_mistaken_for_one(tmp_path: Path) -> None:
    net = Graph()
    e, x = net.parameter("e", dims=(1,)), net.parameter("x", dims=(1,))
    net.result(net.apply("Add", e, x, name="sum"), "out")
    interpreter = Interpreter(opened(tmp_path, net, np.array([6.0], np.float32), np.array([4.0], np.float32)))
    with pytest.raises(UsageError, match=r"there is a value 'x', too; display /x e is a format, \(e/x\) a quotient"):
        interpreter.execute("display e/x")
    assert interpreter.execute("display (e/x)").data["text"] == "[1.5]"


def test_a_format_is_kept_in_a_session(tmp_path: Path) -> None:
    debugger = sample("while_loop")
    debugger.watch("start", "x")
    save_session(debugger, tmp_path / "kept")
    other = sample("while_loop")
    restore_session(other, tmp_path / "kept")
    assert [(watch.title, watch.now and watch.now.shown) for watch in other.watches] == [("start/x", "0x1b")]
