"""Every verb can be paused and says so; a paused search backward keeps the present, and the same verb goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.commands import Interpreter
from stepper.commands.command_session import stop_data, stop_lines
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason, Stop
from stepper.engine.machine import Machine
from stepper.errors import UsageError
from tests.benchmarks.models import newton_model
from tests.debug.debugged import sample, state_of
from tests.debug.pausing import is_pending, pause_after
from tests.models import Graph, carried, last
from tests.tables import few

Verb = Callable[[Debugger], Stop]
ITERATIONS = 3000

FORWARD: dict[str, Verb] = {
    "step": lambda debugger: debugger.step(10_000),
    "next": lambda debugger: debugger.next(10_000),
    "continue": lambda debugger: debugger.continue_(),
    "finish": lambda debugger: debugger.finish(),
    "last": lambda debugger: debugger.last(),
    "goto tick": lambda debugger: debugger.goto_tick(12_000),
    "goto iteration": lambda debugger: debugger.goto_iteration(2500),
    "last iteration": lambda debugger: debugger.goto_iteration(-1),
    "next iteration": lambda debugger: debugger.next_iteration(2000),
    "until": lambda debugger: debugger.until("iter == 2900"),
    "run to": lambda debugger: debugger.run_to("newton@2900"),
}
BACKWARD: dict[str, Verb] = {
    "reverse-continue": lambda debugger: debugger.reverse_continue(),
    "reverse-step": lambda debugger: debugger.reverse_step(9000),
    "reverse-next": lambda debugger: debugger.reverse_next(40),
    "previous iteration": lambda debugger: debugger.previous_iteration(2000),
    "goto tick": lambda debugger: debugger.goto_tick(2345),
}


@pytest.fixture(autouse=True)
def no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """How far snapshots stand apart depends on time; so would how often a machine looks in a search."""
    monkeypatch.setattr("stepper.debug.timeline.perf_counter", lambda: 0.0)


def newton(folder: Path, inner: int = 0, iterations: int = ITERATIONS) -> Debugger:
    number = np.array([2], np.float32)
    return Debugger(stepper.read_model(newton_model(folder, iterations, inner)), {"number": number, "guess": number})


def place_of(stop: Stop) -> tuple[object, ...]:
    return stop.tick, stop.reason, stop.place, stop.details


@pytest.mark.parametrize("inner", few(1, [2, 0]))
@pytest.mark.parametrize("name", FORWARD)
def test_a_paused_verb_forward_stands_where_it_has_come(tmp_path: Path, name: str, inner: int) -> None:
    debugger = newton(tmp_path, inner)
    debugger.step(4)
    begun = debugger.stop.tick
    pause_after(debugger, 9)
    stop = FORWARD[name](debugger)
    assert not is_pending(debugger) and stop.reason is Reason.PAUSED
    assert begun <= stop.tick == debugger.machine.tick and stop.place.startswith("model")
    assert "(paused)" in stop_lines(debugger)[0] and stop_data(debugger)["reason"] == "paused"
    undisturbed = newton(tmp_path, inner)
    undisturbed.goto_tick(stop.tick)
    assert state_of(undisturbed.timeline) == state_of(debugger.timeline)
    assert debugger.last().reason is Reason.END


@pytest.mark.parametrize("looks", few(1, [30, 0, 1500]))
@pytest.mark.parametrize("inner", few(1, [2, 0]))
@pytest.mark.parametrize("name", few(2, BACKWARD))
def test_a_paused_verb_backward_keeps_the_present_and_goes_on(
    tmp_path: Path, name: str, inner: int, looks: int
) -> None:
    debugger = newton(tmp_path, inner)
    debugger.break_at("newton@7")
    for _ in range(2):
        debugger.run_to("newton@2900")
    undisturbed, present, state = newton(tmp_path, inner), debugger.stop.tick, state_of(debugger.timeline)
    undisturbed.break_at("newton@7")
    undisturbed.goto_tick(present)
    expected = BACKWARD[name](undisturbed)
    for _ in range(20):
        pause_after(debugger, looks)
        stop = BACKWARD[name](debugger)
        if is_pending(debugger):
            break
        assert stop.reason is Reason.PAUSED and stop.tick == present and state_of(debugger.timeline) == state
        looks *= 2
    stop = BACKWARD[name](debugger) if stop.reason is Reason.PAUSED else stop
    assert place_of(stop) == place_of(expected)
    assert state_of(debugger.timeline) == state_of(undisturbed.timeline) and not debugger.timeline.warnings


def test_a_paused_search_says_how_far_it_has_looked(tmp_path: Path) -> None:
    debugger = newton(tmp_path)
    debugger.break_at("newton@7")
    debugger.goto_tick(4)
    debugger.goto_iteration(-1)
    looked, looks, interpreter = [], 400, Interpreter(debugger)
    while debugger.stop.reason is not Reason.BREAK:
        pause_after(debugger, looks)
        lines = interpreter.execute("reverse-continue").lines
        searched, looks = debugger.stop.searched, looks * 3 // 2
        if searched is None:
            continue  # paused on the way to where the first stretch begins, or it is done
        assert searched.iteration is not None and searched.verb == "reverse-continue"
        assert lines[-1].strip() == (
            f"no stop found between iteration {searched.iteration:,} and here; `reverse-continue` continues from there"
        )
        assert stop_data(debugger)["searched"]["iteration"] == searched.iteration
        looked.append(searched.tick)
    assert looked and looked == sorted(looked, reverse=True), "each goes on where the one before was"
    assert debugger.stop.iteration == 7 and debugger.stop.searched is None


@pytest.mark.parametrize("change", ["break newton@1500", "disable 1", "delete 1"])
def test_another_breakpoint_begins_the_search_anew(tmp_path: Path, change: str) -> None:
    debugger = newton(tmp_path)
    debugger.break_at("newton@1600")
    debugger.goto_tick(1)
    debugger.last()
    pause_after(debugger, 1400)
    assert debugger.reverse_continue().searched is not None
    Interpreter(debugger).execute(change)
    expected = {"break newton@1500": 1600}.get(change)
    assert debugger.reverse_continue().iteration == expected


def test_logs_are_written_once_where_the_way_back_to_a_stop_is_paused(tmp_path: Path) -> None:
    written: dict[int, list[str]] = {}
    for looks in range(6, 70):
        debugger = newton(tmp_path, iterations=60)
        lines = written[looks] = []
        debugger.breakpoints.sink = lines.append
        debugger.log_at("Divide", "{iter}")
        debugger.break_when("iter == 20")
        pause_after(debugger, looks)
        while debugger.continue_().reason is Reason.PAUSED:
            pass
        assert debugger.stop.iteration == 20
    assert all(lines == [str(iteration) for iteration in range(20)] for lines in written.values())


def test_a_pause_while_nothing_is_under_way_is_forgotten() -> None:
    debugger = sample("while_loop")
    debugger.pause()
    assert debugger.step().reason is Reason.MOVED
    debugger.pause()
    assert debugger.continue_().reason is Reason.END
    debugger.pause()
    assert debugger.find("number > 9000").moments, "found in the loop"


def test_a_pause_between_the_verbs_of_one_block_is_for_the_block() -> None:
    debugger = sample("while_loop")
    with debugger.working():
        debugger.step()
        debugger.pause()
        assert debugger.continue_().reason is Reason.PAUSED
    assert debugger.continue_().reason is Reason.END


def test_a_debugger_at_work_refuses_other_threads_with_one_sentence() -> None:
    debugger = sample("while_loop")
    refused: list[str] = []

    def use() -> None:
        for verb in (debugger.step, debugger.view, lambda: debugger.find("number > 1"), debugger.reverse_continue):
            try:
                verb()
            except UsageError as error:
                refused.append(str(error))

    with debugger.working():
        other = threading.Thread(target=use)
        other.start()
        other.join(20)
        assert debugger.step().tick == 1
    assert len(refused) == 4 and all("is at work in the thread 'MainThread'" in sentence for sentence in refused)
    free = threading.Thread(target=debugger.step)
    free.start()
    free.join(20)
    assert debugger.stop.tick == 2, "one thread after another may use it"


@pytest.mark.parametrize("name", few(2, ["while_loop", "nested_loop", "do_while_loop", "onnx_moving_average"]))
def test_every_tick_can_be_stood_at_and_looked_at(name: str) -> None:
    debugger = sample(name)
    interpreter = Interpreter(debugger)
    end = debugger.last().tick
    for tick in range(min(end, 400)):
        assert debugger.goto_tick(tick).tick == tick
        for question in ("where", "info ports", "info edges", "explain", "list"):
            with suppress(UsageError):
                interpreter.execute(question)
        debugger.view()
    assert debugger.goto_tick(end).reason is Reason.END
    for tick in range(min(end, 400) - 1, -1, -1):
        assert debugger.reverse_step().tick <= tick or debugger.goto_tick(tick).tick == tick
    assert not debugger.timeline.warnings


def test_reverse_step_replays_once(tmp_path: Path) -> None:
    """Where the history has room for two snapshots only, the way from the one before to the present is gone once."""
    number = np.array([2], np.float32)
    model = stepper.read_model(newton_model(tmp_path, ITERATIONS, 0))
    debugger = Debugger(model, {"number": number, "guess": number}, memory=1)
    debugger.step(6)
    debugger.goto_iteration(2000)
    present = debugger.stop.tick
    moves = moves_of(debugger.machine)
    assert debugger.reverse_step().tick == present - 1
    assert moves[0] <= present


def test_reverse_step_replays_once_where_the_state_takes_more_than_the_history_may(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(2**16,)), net.body()
    state = body.parameter("state", dims=(2**16,))
    half = body.apply("Multiply", state, body.constant(np.float32(0.5)), name="half")
    result = body.result(body.apply("Add", half, body.constant(np.float32(1)), name="more"))
    net.result(net.loop("l", body, 100, True, [carried(x, state, result)], [last(result)])[0])
    debugger = Debugger(net.write(tmp_path), {0: np.ones(2**16, np.float32)}, memory=2**17)
    debugger.goto_iteration(80)
    moves = moves_of(debugger.machine)
    for _ in range(3):
        present, moves[0] = debugger.stop.tick, 0
        assert debugger.reverse_step().tick == present - 1
        assert 0 < moves[0] <= present


def moves_of(machine: Machine) -> list[int]:
    """How many moves a machine makes from now on, in a list of one number."""
    moves, advance = [0], machine.advance

    def counted(*arguments: object) -> object:
        before = machine.tick
        event = advance(*arguments)  # type: ignore[arg-type]
        moves[0] += machine.tick - before
        return event

    machine.advance = counted  # type: ignore[method-assign, assignment]
    return moves
