"""The worker and the parts of the application, each alone: without a screen, and with nothing of Textual running."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stepper_tui.screens.value.inspected import FindNonFinite, PlaneInCells
from stepper_tui.session import SaveSession
from stepper_tui.state import (
    Answered,
    Asked,
    ExecuteLine,
    Request,
    ShowAgain,
    ShowOverview,
    State,
    StateChanged,
    name_of,
)
from stepper_tui.worker.driver import Driver
from stepper_tui.worker.python_prompt import EvaluatePython, PythonPrompt
from textual.message import Message
from textual.timer import Timer

from stepper.errors import UsageError
from stepper.tensors.difference import signed_differences
from stepper.tensors.planes import plane_of
from stepper.tensors.statistics import finish
from stepper.tensors.surveys import CellStatistic
from tests.tui.driven import DECODER, debugger_of_sample


class _NoTimer(Timer):
    def __init__(self) -> None:
        pass

    def stop(self) -> None:
        pass


class Heard:
    """Takes the messages of a worker."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._news = threading.Condition()

    def post_message(self, message: Message) -> bool:
        with self._news:
            self.messages.append(message)
            self._news.notify_all()
        return True

    def set_interval(self, interval: float, callback: Callable[[], None]) -> Timer:
        return _NoTimer()

    def until(self, holds: Callable[[State], bool]) -> State:
        """The first state that has come, or comes within ten seconds, for which it holds."""
        end = time.monotonic() + 10
        with self._news:
            while time.monotonic() < end:
                states = [message.state for message in self.messages if isinstance(message, StateChanged)]
                if (found := next((state for state in states if holds(state)), None)) is not None:
                    return found
                self._news.wait(0.1)
        raise AssertionError("no such state has come")


def test_the_worker_carries_out_requests_without_an_application() -> None:
    heard = Heard()
    driver = Driver(heard, debugger_of_sample("date_normaliser"), "date_normaliser")
    driver.start()
    driver.execute(f"run-to {DECODER}@3")
    moved = heard.until(lambda state: state.iteration == 3)
    assert moved.overview is None
    driver.adjust(ShowOverview(True))
    heard.until(lambda state: state.overview is not None)
    debugger = driver.ended()
    assert debugger is not None and moved.view is not None
    assert debugger.machine.tick == moved.view.tick


def test_an_answer_or_what_stands_against_it_goes_to_whoever_asked() -> None:
    heard = Heard()
    driver = Driver(heard, debugger_of_sample("for_loop"), "for_loop")
    driver.start()
    python = PythonPrompt()
    driver.ask(EvaluatePython(python, "6 * 7", 0), lambda _lines: None)
    driver.ask(EvaluatePython(python, "1 / 0", 0), lambda _lines: None)
    driver.ask(EvaluatePython(python, "it", 0), lambda _lines: None)
    end = time.monotonic() + 10
    while len(found := [one for one in heard.messages if isinstance(one, Answered)]) < 3 and time.monotonic() < end:
        time.sleep(0.01)
    driver.close()
    assert [(one.answer, one.error) for one in found] == [
        (("42",), ""),
        (None, "ZeroDivisionError: division by zero"),
        ((), ""),
    ]


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (ExecuteLine("next 3"), "next"),
        (ExecuteLine(""), "again"),
        (ShowAgain(), "ShowAgain"),
        (Asked(FindNonFinite(np.zeros(1), 0, False), print), "FindNonFinite"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_requests_have_names_and_say_what_they_are(request_: Request, name: str) -> None:
    assert name_of(request_) == name
    assert type(request_).__name__ in repr(request_)
    with pytest.raises(AttributeError):
        request_.line = ""  # type: ignore[union-attr]


def test_a_session_is_saved_and_without_a_place_to_save_it_nothing_is_asked(tmp_path: Path) -> None:
    from stepper.session.autosave import Autosave
    from stepper.session.session_files import restore_session

    debugger = debugger_of_sample("for_loop")
    debugger.goto_tick(3)
    path = SaveSession(Autosave(file=tmp_path / "a.session"), {"theme": "stepper-light"}).answer(debugger)
    again = debugger_of_sample("for_loop")
    restore_session(again, path)
    assert again.machine.tick == 3
    with pytest.raises(UsageError, match="the model does not run yet"):
        Driver(Heard(), None, "for_loop").ask(SaveSession(Autosave(), {}), print)


def test_what_the_value_screen_asks_for_is_what_numpy_says() -> None:
    values = np.array([[1.0, -5.0, 2.0], [math.nan, 3.0, -math.inf]])
    plane = plane_of(values.shape)
    edges = np.array([0, 1, 2]), np.array([0, 3])
    found = finish(PlaneInCells(plane, values, None, *edges, CellStatistic.LARGEST).steps())
    assert found[0, 0] == -5.0 and np.isnan(found[1, 0])
    zero = finish(PlaneInCells(plane, values, values, *edges, CellStatistic.LARGEST).steps())
    assert (zero == 0).all(), "NaN and the same infinity are no difference"


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.bool_])
def test_differences_of_integers_are_those_of_python(dtype: type) -> None:
    if dtype is np.bool_:
        a, b = np.array([True, False, True]), np.array([False, True, True])
    else:
        info = np.iinfo(dtype)
        a, b = np.array([info.max, info.min, 5], dtype), np.array([info.min, info.max, 5], dtype)
    expected = [float(int(one) - int(other)) for one, other in zip(a, b, strict=True)]
    assert signed_differences(a, b).tolist() == expected


def test_differences_of_floats_are_exact_and_equal_odd_ones_are_none() -> None:
    a = np.array([1.5, math.inf, -math.inf, math.nan, math.nan, math.inf])
    b = np.array([1.0, math.inf, -math.inf, math.nan, 1.0, -math.inf])
    found = signed_differences(a, b)
    assert found[:4].tolist() == [0.5, 0, 0, 0] and np.isnan(found[4]) and found[5] == math.inf
