"""Five questions of a newcomer, from the first screen on: the answer is read from the screen, the keys are counted."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from tests.debug.debugged import SAMPLES
from tests.tui.driven import Driven, drive

SIZES = [(80, 24), (120, 40), (160, 48), (200, 60)]


class Newcomer:
    """Somebody at the keyboard: the keys are counted, the whole screen is read."""

    def __init__(self, driven: Driven) -> None:
        self.driven, self.keys = driven, 0

    async def press(self, *names: str) -> str:
        """Press keys; what the screen shows then."""
        self.keys += len(names)
        await self.driven.press(*names)
        await self.driven.filled()
        return self.sees()

    def sees(self) -> str:
        """Return the screen as text."""
        return "\n".join(strip.text.rstrip() for strip in self.driven.app.screen._compositor.render_strips())


async def at_every_size(driven: Driven) -> AsyncIterator[Newcomer]:
    """Give the terminal each of the sizes in turn, as soon as the run is known."""
    await driven.ran()
    for size in SIZES:
        await driven.pilot.resize_terminal(*size)
        await driven.filled()
        assert driven.app.size == size
        yield Newcomer(driven)


def test_1_which_iteration_ends_the_loop_and_why() -> None:
    """Without a key: the token of iteration 10 is the stop token, so that the condition is false."""

    async def script(driven: Driven) -> None:
        async for newcomer in at_every_size(driven):
            shown = newcomer.sees()
            assert "ended at 10: tok' = 12, so NotEqual(tok', 12) is false" in shown
            assert re.search(r"go on\? .*T +T +T +T +T +T +T +T +T +T.* F ", shown)

    drive("date_normaliser", script, size=SIZES[0], runs=True)


def test_2_where_the_first_nan_comes_from() -> None:
    """One key at most: the birth is on the first screen, its way to the NaN is one key away."""

    async def script(driven: Driven) -> None:
        async for newcomer in at_every_size(driven):
            first = newcomer.sees()
            assert "Inf born in Exp exp_key@7 [0,3]" in first and "NaN in Divide wkv@8" in first
            shown = await newcomer.press("o")
            assert newcomer.keys <= 1
            assert "exp(89.2) > f32 maximum" in shown and "embedded[7,6]" in shown
            for word in ("Inf / Inf", "↺ denominator", "↺ numerator", "key", "89.200"):
                assert word in " ".join(driven.text("sheet").split()), word
            await driven.press("q")

    drive("rwkv_overflow", script, size=SIZES[0], runs=True)


@pytest.mark.parametrize("size", SIZES)
def test_3_one_element_over_the_iterations_and_two_iterations_side_by_side(size: tuple[int, int]) -> None:
    """One key for all elements over the iterations; two more hold the moment against the iteration before."""
    model = stepper.read_model(SAMPLES / "rwkv_overflow" / "model.xml")
    inputs = dict(np.load(SAMPLES / "rwkv_overflow/inputs.npz"))
    made = Debugger(model, inputs).value("time_mixing::exp_key@0:12")
    exp_key = np.asarray(made, np.float64).reshape(12, 8)

    async def script(driven: Driven) -> None:
        await driven.ran()
        newcomer = Newcomer(driven)
        await newcomer.press("number_sign")
        await newcomer.press("down", "down", "down")
        pane = driven.pane("sheet")
        for iteration in (0, 6, 7, 11):
            pane.model.go_to(iteration)  # type: ignore[attr-defined]
            await driven.filled()
            lines = [one for one in newcomer.sees().splitlines() if "▌" in one and "exp_key" in one and "[0,3]" in one]
            line = lines[-1]
            shown = f"{exp_key[iteration, 3]:.3f}" if abs(exp_key[iteration, 3]) < 1000 else "+Inf"
            assert shown in line, (iteration, line)
        assert newcomer.keys <= 4, "and four keys more lead to the fourth element"

    drive("rwkv_overflow", script, size=size, runs=True)


def test_4_which_slice_an_iteration_got_and_how_the_output_grew() -> None:
    """Two keys: the cursor goes from the last iteration, 7, to 5; its slice stands beside its output."""
    rewards = np.load(SAMPLES / "reverse" / "inputs.npz")["rewards"].reshape(-1)
    later = 0.0
    returns = []
    for reward in rewards[::-1]:  # from the end, as the sample says
        later = float(reward) + 0.9 * later
        returns.append(later)

    async def script(driven: Driven) -> None:
        async for newcomer in at_every_size(driven):
            shown = await newcomer.press("left_square_bracket", "left_square_bracket")
            assert newcomer.keys <= 2
            assert " return@5" in shown and f"{returns[5]:.3f}" in shown
            assert re.search(rf"← reward .*\b{rewards[2]:g}\b", shown) and "2 of 0–7, axis 1" in shown
            grown = next(line for line in shown.splitlines() if "⊞ return" in line)
            assert "the same as later_return', joined on axis 1 from " in grown
            await driven.press("end")

    drive("reverse", script, size=SIZES[0], runs=True)


@pytest.mark.parametrize("size", SIZES)
def test_5_what_becomes_of_the_output_when_a_value_is_changed(size: tuple[int, int]) -> None:
    """Four keys with the value: `*` on the birth, 80, Enter; the outputs beside the original ones."""

    async def script(driven: Driven) -> None:
        await driven.ran()
        newcomer = Newcomer(driven)
        shown = await newcomer.press("asterisk", "8", "0", "enter")
        assert newcomer.keys <= 5
        assert "A  branch original" in shown and "now branch edit-1" in shown
        joined = re.sub(r"[│\s]+", " ", shown)
        assert "outputs mixed and wkv changed in 4 of" in joined and "12 rows, first in iteration 8" in joined
        same, mended = r"(?:· *)", r"(?:✓ *)"
        courses = (
            ("exp_key", rf"{same}{{7}}\* *{same}{{4}}"),
            ("numerator_next" if size[1] > 24 else "denominator_next", rf"{same}{{7}}{mended}{{5}}"),
            ("wkv", rf"{same}{{8}}{mended}{{4}}"),
            ("receptance", rf"{same}{{12}}"),
        )
        for name, course in courses:
            assert re.search(rf"\b{name} +{course}", shown), name

    drive("rwkv_overflow", script, size=size, runs=True)
