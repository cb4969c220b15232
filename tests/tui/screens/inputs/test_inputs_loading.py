"""Large values on the inputs screen are made beside it: it goes on, says how far they are, and Esc stops them."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from stepper_tui.session import _made

import stepper.session.input_choices as loading
from stepper.debug.debugger import Debugger
from stepper.engine import array_files, inputs
from stepper.engine.array_files import ReadingStopped, ReadProgress, member_of
from stepper.errors import InputError
from stepper.ir.model import Model
from stepper.session.input_choices import STOPPED, InputChoices, Opening
from tests.models import Graph
from tests.tui.driven import Driven, drive

LARGE = 600_000


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """Two inputs; an archive that is more than small, with a value for the first."""
    monkeypatch.chdir(tmp_path)
    net = Graph()
    for name in ("x", "y"):
        value = net.parameter(name, dims=(-1,))
        net.result(net.apply("Add", value, value), f"{name}2")
    np.savez("large.npz", x=np.ones(LARGE, np.float32), wide=np.ones((2, LARGE), np.float32))
    np.save("doubles.npy", np.ones(LARGE, np.float64))
    return net.read(tmp_path)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Files are read half, and on when this is set."""
    opened = threading.Event()
    heed = ReadProgress.heed

    def waiting(self: ReadProgress, more: int) -> None:
        heed(self, more)
        if self.done > self.total // 2 > 0:
            assert opened.wait(10)
            heed(self, 0)

    monkeypatch.setattr(ReadProgress, "heed", waiting)
    return opened


def opening(model: Model, **texts: str) -> Opening:
    positions = {"x": 0, "y": 1}
    given = {positions[name]: text for name, text in texts.items()}
    return Opening(model, given, {}, lambda inputs: Debugger(model, dict(inputs.items())))


def choices_of(driven: Driven) -> InputChoices:
    assert driven.app.inputs is not None
    return driven.app.inputs


async def loaded(driven: Driven) -> None:
    await driven.until(lambda: not choices_of(driven).loads)


async def half_read(driven: Driven) -> None:
    await driven.until(lambda: all("loading 5" in driven.text(pane) for pane in ("inputs", "detail")))


def test_the_screen_goes_on_while_a_large_file_is_read(model: Model, gate: threading.Event) -> None:
    async def script(driven: Driven) -> None:
        await half_read(driven)
        assert "1 loading, Esc stops that" in driven.text("answer")
        await driven.type("input y [1,2]")
        assert choices_of(driven).ready == 1
        await driven.press("f5")
        assert "not ready: x (still loading)" in driven.text("answer")
        gate.set()
        await loaded(driven)
        assert choices_of(driven).ready == 2 and "2 ready; F5 runs" in driven.text("answer")
        assert "1 to 1" in driven.text("detail")

    drive(opening(model, x="large.npz:x"), script)


def test_escape_stops_it_and_typing_it_again_reads_it(model: Model, gate: threading.Event) -> None:
    async def script(driven: Driven) -> None:
        await half_read(driven)
        reading = choices_of(driven).loads[0].reading
        await driven.press("escape")
        assert reading.stopped and not choices_of(driven).loads
        assert "stopped" in driven.text("inputs") and STOPPED in " ".join(driven.text("detail").split())
        gate.set()
        await driven.press("enter", "enter")
        await loaded(driven)
        assert choices_of(driven).outcome(0).array.shape == (LARGE,)

    drive(opening(model, x="large.npz:x"), script)


def test_another_choice_stops_what_is_read_for_the_one_before(model: Model, gate: threading.Event) -> None:
    async def script(driven: Driven) -> None:
        await half_read(driven)
        first = choices_of(driven).loads[0].reading
        await driven.type("input x [5]")
        assert first.stopped
        gate.set()
        await driven.until(lambda: all(one.name != "inputs" for one in threading.enumerate()))
        assert choices_of(driven).outcome(0).array.tolist() == [5]

    drive(opening(model, x="large.npz:x"), script)


def test_large_fills_are_made_beside_the_screen(model: Model) -> None:
    async def script(driven: Driven) -> None:
        await driven.type(f"dim * {2 * loading.SMALL}")
        await driven.type("input * rand:1")
        await loaded(driven)
        assert choices_of(driven).ready == 2

    drive(opening(model), script)


def test_a_shape_that_does_not_fit_is_found_before_anything_is_read(model: Model) -> None:
    choices = InputChoices(opening(model, x="large.npz:wide"))
    assert "has shape [2,600000]" in choices.outcome(0).problem


def test_more_than_may_be_read_is_refused_by_its_header(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "MOST_READ", 2**20)
    choices = InputChoices(opening(model, x="large.npz:x", y="doubles.npy"))
    assert "takes 2.3 MB, more than the 1 MB that are read" in choices.outcome(0).problem
    assert "takes 4.6 MB" in choices.outcome(1).problem


def test_a_reading_that_is_stopped_ends_with_the_next_piece(model: Model) -> None:
    reading = ReadProgress(stopped=True)
    with pytest.raises(ReadingStopped):
        member_of(Path("large.npz"), "x").read(reading)
    assert reading.done == 0
    whole = ReadProgress()
    assert member_of(Path("large.npz"), "x").read(whole).sum() == LARGE and whole.part == 1.0


def test_what_cannot_be_read_says_why(model: Model) -> None:
    Path("large.npz").write_bytes(Path("large.npz").read_bytes()[:-100])
    with pytest.raises(InputError, match="cannot be read"):
        member_of(Path("large.npz"), "x").read(ReadProgress())


def test_what_conversion_would_lose_is_found_wherever_it_stands(model: Model) -> None:
    values = np.ones(inputs._PIECE + 2)
    np.save("exact.npy", values)
    values[-1] = 0.1
    np.save("lossy.npy", values)
    choices = InputChoices(opening(model, x="exact.npy", y="lossy.npy"))
    assert choices.outcome(0).array.dtype == np.float32
    assert "would lose values" in choices.outcome(1).problem


def test_files_of_values_chosen_on_the_screen_are_protected_in_the_run(model: Model) -> None:
    choices = InputChoices(opening(model, x="large.npz:x", y="[1,2]"))
    assert [(str(one.path), one.what) for one in choices.files.files] == [("large.npz", "input 'x'")]
    inputs = {0: np.ones(2, np.float32), 1: np.ones(2, np.float32)}
    made = _made(choices.opening, inputs, choices.files)
    assert made.protected.at(Path("large.npz")) is not None
