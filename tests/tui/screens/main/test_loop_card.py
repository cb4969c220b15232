"""The loop card, the top line and the frames: which iteration of how many, and what can end the loop."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from tests.models import Graph, carried, last
from tests.tui.driven import DECODER, Driven, drive


def doubling(trip_count: int | None, keep: str, *, initial: bool = True) -> Debugger:
    """h is doubled; `trip_count` None comes from an input, `keep` is true, false, or h < 100."""
    net = Graph()
    body = net.body()
    h = body.parameter("h", "f32", ())
    twice = body.apply("Add", h, h, name="twice")
    less = body.apply("Less", twice, body.constant(np.float32(100), name="hundred"), name="goes_on", dims=())
    always = body.constant(keep == "true", np.bool_, "always")
    goes_on = body.result(less if keep == "computed" else always, "keep")
    out = body.result(twice, "h_next")
    start = net.parameter("h0", "f32", ())
    count = net.parameter("n", "i64", ()) if trip_count is None else trip_count
    outputs = net.loop("doubles", body, count, initial, [carried(start, h, out)], [last(out)], goes_on)
    net.result(outputs[0], "end")
    given = {0: np.float32(1)} | ({1: np.int64(5)} if trip_count is None else {})
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), given)


@pytest.mark.parametrize(
    ("count", "keep", "says", "frame", "ends"),
    [
        (24, "true", "of 24", "2 of 24", ["trip count 24 is reached"]),
        (None, "true", "of 5", "2 of 5", ["trip count 5 is reached"]),
        (-1, "true", "without a limit", "2", [": it is always true"]),
        (24, "computed", "of at most 24", "2 of max 24", ["goes_on is false", "trip count 24 is reached"]),
        (None, "computed", "of at most 5", "2 of max 5", ["goes_on is false", "trip count 5 is reached"]),
        (-1, "computed", "without a limit", "2", ["goes_on is false"]),
    ],
)
def test_the_limit_and_all_that_can_end_the_loop(
    count: int | None, keep: str, says: str, frame: str, ends: list[str]
) -> None:
    async def script(driven: Driven) -> None:
        card = driven.text("loop").splitlines()
        assert card[1].endswith(f"iteration  {says}")
        first = next(row for row, line in enumerate(card) if " ends " in line or " ends:" in line)
        shown = [line[11:].strip() for line in card[first : first + len(ends)]]
        assert shown == ends and "condition" in card[first + len(ends)]
        assert driven.text("frames").splitlines()[2].split("doubles")[1].strip() == frame
        assert f"doubles {frame} ›" in driven.text("top")

    drive(doubling(count, keep), script, lines=("run-to doubles@0", "iter 2", "step"))


def test_a_condition_that_is_always_false_is_a_limit_of_one() -> None:
    async def script(driven: Driven) -> None:
        card = driven.text("loop")
        assert "of 1\n" in card and "it is always false" in card

    drive(doubling(24, "false"), script, lines=("run-to doubles@0", "step"))


def test_a_loop_that_is_not_entered_says_so() -> None:
    async def script(driven: Driven) -> None:
        card = driven.text("loop")
        assert "of 0\n" in card and "0 done · ended" in card and "did not begin: condition was false" in card

    drive(doubling(24, "true", initial=False), script, lines=("step 1",))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48)], ids=str)
def test_the_limit_that_only_the_condition_knows(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        if size[0] < 100:
            assert driven.text("tabs").endswith("7 of max 20")
            await driven.shown_tab("loop")
        else:
            assert "Loop 7 of max 20 ›" in driven.text("top")
        card = driven.text("loop")
        assert "of at most 20" in card and "by 19, for i.11 + 1 < 20" in card
        axis = driven.text("time").splitlines()
        assert size[0] < 100 or axis[1].split()[-1] in ("19", "20")

    lines = (f"run-to {DECODER}@0", "iter 7", "run-to `aten::softmax/Softmax`")
    drive("date_normaliser", script, size=size, lines=lines)


@pytest.mark.parametrize(
    ("count", "iteration", "says"),
    [
        (3, 1, "true: there is another"),
        (3, 2, "true, but this is the last"),
        (9, 6, "false: this is the last"),
        (-1, 5, "true: there is another"),
    ],
)
def test_a_true_condition_promises_no_iteration_that_the_trip_count_forbids(
    count: int, iteration: int, says: str
) -> None:
    async def script(driven: Driven) -> None:
        assert says in driven.text("loop")

    drive(doubling(count, "computed"), script, size=(160, 48), lines=(f"goto goes_on@{iteration}",))
