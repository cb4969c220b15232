"""The worker: a long run is shown as it goes on and can be stopped; whatever goes wrong does not end the session."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from msgspec import Struct

from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason
from tests.debug.pausing import pause_after
from tests.tui.driven import DECODER, Driven, drive
from tests.tui.wide_models import wide_loop
from tui.messages import FaultFound
from tui.paint.rows import Row
from tui.screens.main.operations import Operations
from tui.worker.driver import Driver
from tui.worker.event_log import LogKind


def test_escape_stops_a_long_run_and_nothing_is_lost() -> None:
    async def script(driven: Driven) -> None:
        driven.app.perform("continue")
        seen = set()
        for _ in range(20):
            await asyncio.sleep(0.02)
            seen.add(driven.state.iteration)
        assert driven.state.running is not None and "running" in driven.text("top")
        assert len(seen) > 2, "the iteration is shown while it runs"
        driven.app.perform("pause")

        async def until_paused() -> None:
            while driven.app.driver.is_busy:
                await asyncio.sleep(0.002)

        await asyncio.wait_for(until_paused(), 30)  # an unheard pause lasts longer
        await driven.settle()
        assert driven.state.running is None and driven.state.iteration is not None
        paused = driven.state.view.tick
        await driven.press("n")
        assert driven.state.view.tick == paused + 1

    drive(wide_loop(40, 2_000_000), script, lines=("run-to wide@0",))


def test_what_the_first_key_needs_is_loaded_in_the_worker_for_which_its_run_stands_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loading: list[str] = []
    monkeypatch.setattr("tui.app._SETTLING", 0.02)
    monkeypatch.setattr("tui.app._settle", lambda: loading.append(threading.current_thread().name))

    async def script(driven: Driven) -> None:
        for _ in range(1_000):
            if loading:
                break
            await asyncio.sleep(0.005)
        assert loading == ["debugger"]

    drive(wide_loop(40, 2_000_000), script)


def test_the_application_looks_at_the_run_only_while_something_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bool] = []
    look = Driver._look

    def noted(driver: Driver) -> None:
        looks.append(driver.is_busy)
        look(driver)

    monkeypatch.setattr(Driver, "_look", noted)
    monkeypatch.setattr("tui.app._SETTLING", 60)

    async def script(driven: Driven) -> None:
        for _ in range(2):
            await driven.filled()
            await asyncio.sleep(0.1)
            looks.clear()
            await asyncio.sleep(0.2)
            assert not looks
            driven.app.perform("continue")
            await asyncio.sleep(0.3)
            assert len(looks) > 2 and all(looks)
            assert driven.state.running is not None
            driven.app.perform("pause")

    drive(wide_loop(40, 2_000_000), script, lines=("run-to wide@0",))


def test_a_paused_search_backward_says_how_far_it_has_looked_and_where_it_is() -> None:
    debugger = wide_loop(40, 2_000)
    debugger.goto_tick(2)
    debugger.last()
    debugger.break_at("wide@1")

    async def script(driven: Driven) -> None:
        for looks in (20, 200, 400, 800, 1600):
            pause_after(debugger, looks)
            await driven.type("reverse-continue")
            assert driven.state.stop is not None and driven.state.stop.reason is Reason.PAUSED
            assert "paused on the way" in driven.text("top")
            if driven.state.stop.searched is not None:
                break
        assert "no stop found between" in driven.text("answer")
        await driven.type("reverse-continue")
        assert driven.state.iteration == 1 and "stopped" in driven.text("top")

    drive(debugger, script)


def test_the_event_loop_never_waits_for_the_run() -> None:
    async def script(driven: Driven) -> None:
        driven.app.perform("continue")
        for _ in range(50):
            await asyncio.sleep(0.005)
            assert driven.app.driver.is_busy, "the run goes on, and so does the event loop"
        driven.app.perform("pause")
        await driven.settle()

    drive(wide_loop(40, 2_000_000), script, lines=("run-to wide@0",))


def test_an_error_of_the_run_is_shown_in_place_and_one_can_go_back() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("c")
        assert driven.state.failure and driven.pane("stop").display
        assert "more than 3 iterations" in driven.text("stop").replace("\n", " ")
        await driven.press("N")
        assert not driven.state.failure and driven.state.frames

    debugger = wide_loop(20, 50)
    debugger.machine.max_iterations = 3
    drive(debugger, script, lines=("run-to wide@0",))


def test_a_fault_in_a_pane_is_told_and_the_others_go_on() -> None:
    class Broken(Operations):
        def row(self, index: int, width: int) -> Row:
            raise ZeroDivisionError("by a pane")

    async def script(driven: Driven) -> None:
        driven.pane("operations").__class__ = Broken
        await driven.press("n")
        assert "ZeroDivisionError" in driven.text("operations")
        assert [one.text for one in driven.app.driver.log.entries() if one.kind is LogKind.FAULT]
        assert "a fault in Broken" in driven.text("answer")
        iteration = driven.state.iteration
        await driven.press("right_square_bracket")
        assert driven.state.iteration == iteration + 1

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@0", "iter 3"))


def test_a_fault_stays_on_the_line_until_the_user_does_something() -> None:
    async def script(driven: Driven) -> None:
        app = driven.app
        app.perform("step")  # answered after the fault
        app.on_fault_found(FaultFound("somewhere", "ZeroDivisionError()"))
        await driven.settle()
        assert driven.state.view.tick == 1 and "a fault in somewhere" in driven.text("answer")
        app.on_fault_found(FaultFound("elsewhere", "ZeroDivisionError()"))
        assert "a fault in elsewhere" in driven.text("answer"), "the newest one"
        await driven.press("s")
        assert "tick 2" in driven.text("answer")

    drive("for_loop", script)


class AskTick(Struct, frozen=True):
    """The tick at which the run stands."""

    def answer(self, debugger: Debugger) -> int:
        return debugger.machine.tick


class AskNothing(Struct, frozen=True):
    """A question with a fault."""

    def answer(self, debugger: Debugger) -> int:
        found: int = debugger.nothing  # type: ignore[attr-defined]
        return found


def test_a_fault_in_a_question_is_told_too() -> None:
    async def script(driven: Driven) -> None:
        answers: list[int] = []
        driven.app.driver.ask(AskTick(), answers.append)
        driven.app.driver.ask(AskNothing(), answers.append)
        await driven.settle()
        assert answers == [driven.state.view.tick]
        assert "a fault in AskNothing" in driven.text("answer")

    drive("date_normaliser", script)


def test_histories_are_those_of_the_run_and_are_bounded() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("iter 150")
        await driven.filled()
        history = driven.state.history
        assert len(history.numbers) <= 72
        last = history.of(5, 149, 10)
        frame = driven.state.frame
        series = driven.app.driver._debugger.over_iterations(f"`{frame.layers[5].name}`@140:150")
        expected = [float((value.astype(float) ** 2).mean() ** 0.5) for value in series.values]
        assert all(abs(a - b) < 1e-5 * max(1, abs(b)) for a, b in zip(last, expected, strict=True))

    drive(wide_loop(20, 300), script, lines=("run-to wide@0",))


def test_an_edit_forgets_what_would_have_come() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("iter 9")
        await driven.filled()
        before = driven.state.history.of(3, 8, 3)
        await driven.type("iter 5")
        await driven.type(f"set `{driven.state.frame.layers[0].name}` = 100")
        await driven.type("iter 9")
        await driven.filled()
        assert driven.state.is_edited and driven.state.history.of(3, 8, 3) != before

    drive(wide_loop(20, 50), script, lines=("run-to wide@0", "next 2"))


def test_notes_of_an_edit_and_commands_of_a_breakpoint_are_told_and_a_difference_is_shown_whole() -> None:
    async def script(driven: Driven) -> None:
        driven.app.perform("set trip-count of wide = 5")
        await driven.settle()
        assert "ends after 5 iterations" in driven.text("answer")
        driven.app.perform("break wide@2")
        driven.app.perform("commands 1 silent; print iter + 40")
        driven.app.perform("continue")
        await driven.settle()
        assert "42" in driven.text("answer")
        driven.app.perform("branch diff original")
        await driven.settle()
        assert "branch diff original: " in driven.text("answer") and " lines" in driven.text("answer")

    drive(wide_loop(4, 20), script, lines=("run-to wide@0",))


def test_breakpoints_and_watches_of_the_start_up_file_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "stepper").mkdir()
    (tmp_path / "stepper" / "init").write_text("break wide@2\ncommands 1\nprint iter\nend\nwatch iter\nlast\nbrake\n")

    async def script(driven: Driven) -> None:
        await driven.settle()
        assert [one.text for one in driven.state.watches] == ["iter"] and len(driven.state.breaks) == 1
        assert driven.state.view.tick == 0, "a movement is left out"
        assert "line 7: there is no command 'brake'" in driven.text("answer")

    drive(wide_loop(4, 20), script, starts_up=True)
