"""What a page of a notebook shows of a debugger and may ask, without a widget."""

from __future__ import annotations

import json
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.integrations.notebook import loop_session
from stepper.integrations.notebook.loop_session import VERBS, LoopSession
from tests.models import Graph, carried, last

SAMPLES = Path(__file__).parents[3] / "sample_models"


def debugger(sample: str) -> Debugger:
    inputs = dict(np.load(SAMPLES / sample / "inputs.npz"))
    return Debugger(stepper.read_model(SAMPLES / sample / "model.xml"), inputs)


def opened(sample: str) -> LoopSession:
    return LoopSession(debugger(sample))


def asked(session: LoopSession, kind: str, text: object = "") -> dict[str, Any]:
    found = session.asked({"kind": kind, "text": text})
    json.dumps(found)  # a page gets JSON
    return found


def test_a_run_stops_at_the_nan_and_says_why() -> None:
    session = opened("rwkv_overflow")
    assert session.all()["iteration"] == -1
    assert asked(session, "break", "nan")["breakpoints"] == [{"number": 1, "text": "when nan"}]
    found = asked(session, "continue")
    assert (found["iteration"], found["iterations"]) == (8, 12)
    assert found["reasons"][0].startswith("NaN appears in Divide 'wkv' in iteration 8")
    assert found["figure"]["addresses"][found["box"]].endswith("wkv")
    assert found["chosen"]["address"].endswith("wkv") and "nan" in found["chosen"]["text"]
    assert "data:image/png" in found["chosen"]["picture"] and found["chosen"]["scale"].startswith("±")
    story = asked(session, "story")["story"]
    assert "<svg" in story and "first here" in story and "embedded[7,6]" in story
    back = asked(session, "reverse next")
    assert back["figure"]["addresses"][back["box"]].endswith("denominator_now") and not back["reasons"]
    assert asked(session, "delete", "1")["breakpoints"] == []


def test_the_slider_and_columns_move_in_time_both_ways() -> None:
    session = opened("nested_loop")
    inner = asked(session, "goto", "passes@1::pairs_of_neighbours@0")
    assert (inner["iteration"], inner["iterations"], inner["column"]) == (0, 3, "passes@1::pairs_of_neighbours@0")
    assert asked(session, "iteration", "2")["column"] == "passes@1::pairs_of_neighbours@2"
    assert asked(session, "iteration", "1")["iteration"] == 1
    assert asked(session, "first")["iteration"] == -1


def test_a_value_is_shown_of_every_kind() -> None:
    session = opened("date_normaliser")
    asked(session, "command", "goto `prim::Loop/Loop`@3")
    addresses = session.all()["figure"]["addresses"]
    shown = [asked(session, "choose", address)["chosen"] for address in addresses.values()]
    assert all(one["text"] for one in shown)
    assert sum(bool(one["picture"]) for one in shown) > len(shown) * 3 / 4


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("bogus", "", "nothing that a page can ask"),
        ("iteration", "x", "no iteration"),
        ("iteration", "9" * 30, "no iteration"),
        ("break", "when", "."),
        ("delete", "7", "."),
        ("goto", "nowhere@1", "nowhere"),
        ("command", "!print(1)", "cells of the notebook"),
        ("command", "frobnicate", "frobnicate"),
        ("story", "", "click on an operation"),
        ("story", "nothing", "nothing"),
    ],
)
def test_what_is_wrong_is_the_answer_and_nothing_moves(kind: str, text: str, said: str) -> None:
    session = opened("for_loop")
    place = session.all()["place"]
    found = asked(session, kind, text)
    assert found["failed"]
    assert re.search(said, found["answer"])
    assert found["place"] == place and "Traceback" not in found["answer"]


def test_messages_of_any_form_end_nothing() -> None:
    session = opened("for_loop")
    for message in ({}, {"kind": None}, {"kind": ["next"]}, {"kind": "goto", "text": {"a": 1}}, {"text": "x" * 10**6}):
        assert session.asked(message)["failed"]
    for verb in VERBS:
        assert not session.asked({"kind": verb})["answer"]


def endless() -> Debugger:
    net = Graph()
    body = net.body()
    x = body.parameter("x", "f32", (1,))
    following = body.result(body.apply("Tanh", x, name="y"), "x_next")
    start = net.parameter("start", "f32", (1,))
    (output,) = net.loop("forever", body, -1, True, [carried(start, x, following)], [last(following)])
    net.result(output, "out")
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {"start": np.ones(1, np.float32)})


def test_a_movement_that_takes_long_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_session, "SECONDS", 0.3)
    session = LoopSession(endless())
    found = asked(session, "continue")
    assert "paused" in found["answer"] and found["iteration"] > 0


def test_an_interrupt_of_the_kernel_pauses_and_is_handled_as_before_afterwards() -> None:
    session = LoopSession(endless())
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    found = asked(session, "continue")
    timer.join()
    assert "paused" in found["answer"] and signal.getsignal(signal.SIGINT) is before


def test_the_picture_of_a_value_takes_a_moment_though_its_loop_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waited half a minute for it, after it had been interrupted, and after each step."""
    monkeypatch.setattr(loop_session, "_STRIP_SECONDS", 0.2)
    session, limits = LoopSession(endless()), list[float]()

    class Timer(threading.Timer):
        def __init__(self, seconds: float, what: Callable[[], None]) -> None:
            limits.append(seconds)
            super().__init__(seconds, what)

    monkeypatch.setattr(threading, "Timer", Timer)
    chosen = asked(session, "goto", "y@3")["chosen"]
    assert "<svg" in chosen["picture"] and limits == [loop_session.SECONDS, 0.2]
    until = re.search(r" up to iteration ([0-9,]+)$", chosen["scale"])
    assert until is not None and int(until[1].replace(",", "")) > 100
    assert session.all()["iteration"] == 3, "the present stays"


def test_what_is_asked_while_another_request_is_answered_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel may hear two clicks in two threads; the second one was refused, and nothing was shown of it."""
    session = opened("rwkv_overflow")
    asked(session, "goto", "time_mixing::wkv@2")
    begun, goes_on, story = threading.Event(), threading.Event(), Debugger.story

    def slow(run: Debugger, *arguments: Any, **options: Any) -> Any:
        with run.working():
            begun.set()
            goes_on.wait(30)
            return story(run, *arguments, **options)

    monkeypatch.setattr(Debugger, "story", slow)
    found: dict[str, dict[str, Any]] = {}
    threads = [
        threading.Thread(target=lambda: found.update(story=asked(session, "story"))),
        threading.Thread(target=lambda: found.update(next=asked(session, "next"))),
    ]
    threads[0].start()
    assert begun.wait(30)
    threads[1].start()
    threads[1].join(0.2)  # where it is refused it has ended by now
    goes_on.set()
    for one in threads:
        one.join(30)
    assert "<svg" in found["story"]["story"] and not found["next"]["failed"], found["next"]["answer"]
    assert found["next"]["figure"]["addresses"][found["next"]["box"]].endswith("receptance"), "after wkv"


@pytest.mark.skipif(find_spec("anywidget") is None, reason="anywidget, of the extra notebook, is not installed")
def test_a_widget_that_is_shown_again_shows_where_the_run_is_then() -> None:
    """What a cell does with the debugger itself is in the picture that is saved, and in the widget's state."""
    run = debugger("rwkv_overflow")
    widget = run.widget()
    first = _shown(widget)
    assert first == _shown(widget), "twice the same where nothing was done"
    assert widget.shown["iteration"] == -1 and "<svg" in first
    run.break_when("nan")
    run.continue_()
    again = _shown(widget)
    assert again != first and widget.figure["svg"] in again and widget.figure["title"].startswith("Loop 'time_mixing'")
    shown = widget.shown
    assert shown["iteration"] == 8 and shown["reasons"][0].startswith("NaN appears in Divide 'wkv' in iteration 8")
    assert [one["text"] for one in shown["breakpoints"]] == ["when nan"]
    assert widget.figure["addresses"][shown["box"]].endswith("wkv")
    widget.ask("iteration", "5")
    assert run.stop.iteration == 5, "a click moves the debugger of the cells"


def _shown(widget: Any) -> str:
    """The picture that a cell keeps when it shows the widget; it shows the widget itself, too."""
    bundle = widget._repr_mimebundle_()
    found: dict[str, str] = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "application/vnd.jupyter.widget-view+json" in found
    return found["text/html"]


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "stepper.integrations.notebook.loop_widget", raising=False)
    with pytest.raises(stepper.UsageError, match=r"pip install 'loop-stepper\[notebook\]'"):
        endless().widget()
