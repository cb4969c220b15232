"""The compare screen: a twin with one other weight beside the run; every number from numpy's own arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.compare import stops as comparer
from stepper.compare.references.opening import OperationValues
from stepper.compare.stops import Standing, StopComparison, ValueDifference
from stepper.debug.debugger import Debugger
from tests.compare.test_other_references import Peer
from tests.compare.twins import WEIGHTS, X, recurrence
from tests.debug.debugged import SAMPLES
from tests.tui.driven import DECODER, Driven, drive
from tui.screens.compare.screen import CompareScreen
from tui.theme import Look

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (200, 60)], ids=str)
FAULT = "one weight"


@pytest.fixture
def twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Debugger:
    """The healthy recurrence, and in the working folder `theirs/model.xml` with another W."""
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    recurrence().write(tmp_path / "ours")
    recurrence(FAULT).write(tmp_path / "theirs")
    monkeypatch.chdir(tmp_path)
    return Debugger(stepper.read_model(Path("ours/model.xml")), {0: X})


def comparison_of(driven: Driven) -> StopComparison:
    found = driven.state.comparison
    assert found is not None
    return found


def difference(driven: Driven, name: str) -> ValueDifference:
    frame = driven.state.frame
    assert frame is not None
    index = next(at for at, layer in enumerate(frame.layers) if layer.name == name)
    return comparison_of(driven).operations[index]


AT_3 = ("reference theirs/model.xml", "run-to cell@0", "iter 3", "run-to y", "compare")


def apart(iteration: int) -> np.ndarray:
    """How far x_t W is from the reference's, by numpy in 64 bits."""
    changed = WEIGHTS.astype(np.float64)
    changed[1, 2] += 1e-3
    return np.abs(X[iteration].astype(np.float64) @ (WEIGHTS.astype(np.float64) - changed))


@SIZES
def test_the_run_beside_its_twin(twins: Debugger, size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        driven.golden(f"compare_{size[0]}x{size[1]}", "first", "differences", "carried")

    drive(twins, script, size=size, lines=AT_3)


def test_what_was_not_compared_in_time_is_compared_afterwards(twins: Debugger, monkeypatch: pytest.MonkeyPatch) -> None:
    compared, looks = comparer._in_time, list[int]()

    def slow_at_first(differences: Iterator[ValueDifference], _patience: float | None) -> Any:
        found, is_whole = compared(differences, None)
        looks.append(len(found))
        return (found[:1], False) if len(looks) == 1 else (found, is_whole)

    async def script(driven: Driven) -> None:
        await driven.filled()  # nothing is left to be fetched that would bring another look
        monkeypatch.setattr(comparer, "_in_time", slow_at_first)
        await driven.type("info edges")
        await driven.filled()
        assert len(looks) > 1 and comparison_of(driven).is_whole
        assert len(comparison_of(driven).operations) == max(looks) > 1

    drive(twins, script, lines=AT_3)


def test_each_difference_is_told_as_made_here_or_carried_in(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()  # the first look may be one in part
        made = difference(driven, "xW")
        assert made.standing is Standing.HERE and made.measure is not None and made.measure.index == (0, 2)
        np.testing.assert_allclose(made.distance, apart(3)[2], rtol=1e-3)
        np.testing.assert_allclose(made.made_here, made.distance, rtol=1e-6)
        for name in ("hU", "summed", "h_next"):
            found = difference(driven, name)
            assert found.standing is Standing.CARRIED and found.made_here == 0, name
        assert difference(driven, "row_t").standing is Standing.SAME

    drive(twins, script, lines=AT_3)


def test_the_first_difference_is_found_and_gone_to(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        first = comparison_of(driven).first
        assert first is not None and first.difference is not None
        assert (first.difference.layer.name, first.iteration) == ("xW", 0)
        np.testing.assert_allclose(first.difference.distance, apart(0)[2], rtol=1e-3)
        assert "made here" in driven.text("first") and "100%" in driven.text("first")
        await driven.type("difference first")
        frame = driven.state.frame
        assert driven.state.iteration == 0 and frame is not None and frame.layers[frame.moment].name == "xW"

    drive(twins, script, lines=AT_3)


def test_what_is_carried_parts_from_the_second_iteration_on(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        (carried,) = comparison_of(driven).carried.values()
        assert sorted(carried) == [0, 1, 2, 3]
        assert carried[0].distance == 0 and all(carried[one].distance > 0 for one in (1, 2, 3))

    drive(twins, script, lines=AT_3)


def test_x_goes_from_one_to_the_next_and_the_mouse_selects(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("select 0")
        await driven.filled()
        above = comparison_of(driven).above
        await driven.press("x")
        assert driven.state.cursor == next(index for index in above if index > 0)
        await driven.type(f"select {above[-1]}")
        await driven.press("X")
        assert driven.state.cursor == above[-2]
        await driven.pilot.click("#differences", offset=(8, 2))
        await driven.settle()
        assert driven.state.cursor == 0
        await driven.press("v")
        assert "same" not in driven.text("differences")

    drive(twins, script, lines=AT_3)


def test_a_wider_tolerance_lets_all_agree(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        assert comparison_of(driven).above
        await driven.type("tolerance 0 0.1")
        await driven.filled()
        assert not comparison_of(driven).above and "values agree" in driven.text("first")

    drive(twins, script, lines=AT_3)


def test_an_archive_of_values_is_a_reference_too(twins: Debugger, tmp_path: Path) -> None:
    values = {
        f"xW@{iteration}": X[iteration][None] @ WEIGHTS + (0.5 if iteration == 3 else 0) for iteration in range(6)
    }
    np.savez(tmp_path / "values.npz", **values)

    async def script(driven: Driven) -> None:
        await driven.filled()
        shown = comparison_of(driven)
        assert len(shown.operations) == 1 and difference(driven, "xW").standing is Standing.HERE
        np.testing.assert_allclose(difference(driven, "xW").distance, 0.5, rtol=1e-5)
        assert shown.first is not None and shown.first.iteration == 3
        await driven.press("left_square_bracket")
        assert not comparison_of(driven).above

    drive(twins, script, lines=("reference values.npz", "run-to cell@0", "iter 3", "run-to y", "compare"))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("reference nowhere.xml", "nowhere.xml"),
        ("reference nowhere.npz", "nowhere.npz"),
        ("reference", "expected a model"),
        ("A it", "there is no"),
        ("tolerance x", "expected a relative tolerance"),
        ("difference next", "nothing is compared"),
    ],
)
def test_what_cannot_be_is_said_in_place(twins: Debugger, line: str, says: str) -> None:
    async def script(driven: Driven) -> None:
        await driven.type(line)
        assert says in driven.text("answer")

    drive(twins, script)


def test_the_view_closes_and_opens_by_key(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        assert isinstance(driven.app.screen, CompareScreen)
        await driven.press("q")
        assert not isinstance(driven.app.screen, CompareScreen)
        assert "≠" in driven.text("operations")
        await driven.press("D")
        assert isinstance(driven.app.screen, CompareScreen)

    drive(twins, script, lines=AT_3)


def test_without_symbols_ascii_alone(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        for pane in ("first", "differences", "carried"):
            assert driven.text(pane).isascii(), pane

    drive(twins, script, size=(80, 24), lines=AT_3, look=Look(ascii=True, plain=True))


def test_without_a_reference_nothing_stands_where_differences_would() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("D")
        assert "nothing is compared" in driven.text("differences") and "no reference" in driven.text("answer")
        assert "nothing to compare with" in driven.text("first")
        assert ":reference other.xml" in driven.text("differences"), "what can be named"
        assert not driven.pane("carried").display

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@0", "iter 2"))


def test_x_leads_to_the_first_difference_of_the_run_from_wherever_it_stands(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("last")
        await driven.filled()
        text = driven.text("first")
        assert "xW" in text and "iteration 0" in text, "at the end of the run, too"
        assert "X goes to where it parts" in driven.text("differences")
        for begin, key in (("last", "X"), ("first", "x"), ("goto tick 1", "x")):
            await driven.type(begin)
            await driven.filled()
            await driven.press(key)
            assert driven.state.frame is not None and driven.state.iteration == 0, begin
            assert driven.state.frame.layers[driven.state.frame.moment].name == "xW", begin
        await driven.press("x")
        assert "no operation after this one is above its tolerance" in driven.text("answer"), "of those that have run"

    drive(twins, script, lines=("reference theirs/model.xml", "compare"))


def test_of_an_archive_of_outputs_the_last_operations_are_compared(twins: Debugger, tmp_path: Path) -> None:
    outputs = stepper.run(twins.model, dict(enumerate(twins.inputs)))
    name = next(iter(outputs))
    changed = np.array(outputs[name])
    changed.flat[0] += 1
    np.savez(tmp_path / "expected.npz", **{name: changed})

    async def script(driven: Driven) -> None:
        await driven.filled()
        first = comparison_of(driven).first
        assert first is not None and first.difference is not None and first.difference.distance == pytest.approx(1)
        assert first.iteration is None and first.difference.layer.name == "cell"
        assert first.difference.standing is Standing.HERE, "the loop reads the model's own inputs alone"

    drive(twins, script, lines=("reference expected.npz", "compare"))


def test_nothing_is_made_here_of_inputs_that_the_reference_does_not_know() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        first = comparison_of(driven).first
        assert first is not None and first.difference is not None and first.difference.layer.name == "time_mixing"
        assert first.difference.standing is Standing.ABOVE and first.difference.made_here is None
        text = driven.text("first")
        assert "made here" not in text and "its inputs are not known to the reference" in text

    healthy = SAMPLES / "rwkv_overflow" / "healthy.npz"
    drive("rwkv_overflow", script, lines=(f"reference {healthy}", "compare"))


def beside_a_runtime(debugger: Debugger, wrong: str) -> Debugger:
    """With another runtime as the reference, which computes each operation on our inputs, one of them otherwise."""
    debugger.reference = OperationValues(Peer(debugger.model, wrong), "the runtime")
    return debugger


def test_a_runtime_is_a_reference_too_and_nothing_is_carried_in(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        found = comparison_of(driven)
        assert found.first is not None and found.first.difference is not None
        assert (found.first.difference.layer.name, found.first.iteration) == ("scaled", 0)
        names = {one.layer.name: one.standing for one in found.operations.values()}
        assert names["scaled"] is Standing.HERE and len(names) > 3
        assert [name for name, standing in names.items() if standing not in (Standing.SAME, Standing.HERE)] == []

    drive(beside_a_runtime(twins, "scaled"), script, lines=AT_3[1:])


def test_of_a_slow_reference_the_latest_operations_are_compared_at_a_key(
    twins: Debugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.worker.snapshot._AT_A_KEY", -1.0)

    async def script(driven: Driven) -> None:
        await driven.filled()
        frame = driven.state.frame
        assert frame is not None and list(comparison_of(driven).operations) == [frame.last]
        await driven.press("n")
        assert list(comparison_of(driven).operations) == [driven.state.frame.last]  # type: ignore[union-attr]

    drive(beside_a_runtime(twins, "scaled"), script, lines=AT_3[1:])
