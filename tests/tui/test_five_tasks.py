"""Five questions of a newcomer, from the first screen on: the answer is read from the screen, the keys are counted."""

from __future__ import annotations

import re

import numpy as np

import stepper
from tests.debug.debugged import SAMPLES
from tests.tui.driven import Driven, drive

SIZES = [(80, 24), (120, 40), (160, 48)]


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


def test_1_which_iteration_ends_the_loop_and_why() -> None:
    """Without a key: the token of iteration 10 is the stop token, so that the condition is false."""

    async def script(driven: Driven) -> None:
        await driven.ran()
        shown = Newcomer(driven).sees()
        assert "ended at 10: tok = 12, so NotEqual(tok, 12) is false" in shown
        assert re.search(r"go on\? .*T +T +T +T +T +T +T +T +T +T.* F ", shown)

    for size in SIZES:
        drive("date_normaliser", script, size=size, runs=True)


def test_2_where_the_first_nan_comes_from() -> None:
    """One key at most: the birth is on the first screen, its way to the NaN is one key away."""

    async def script(driven: Driven) -> None:
        await driven.ran()
        newcomer = Newcomer(driven)
        first = newcomer.sees()
        assert "Inf born in Exp exp_key@7 [0,3]" in first and "NaN in Divide wkv@8" in first
        shown = await newcomer.press("o")
        assert newcomer.keys == 1
        assert "exp(89.2) > f32 maximum" in shown and "embedded[7,6]" in shown
        for word in ("born here", "Inf / Inf", "↺ denominator", "↺ numerator", "key", "89.200"):
            assert word in shown, word

    for size in SIZES:
        drive("rwkv_overflow", script, size=size, runs=True)


def test_3_one_element_over_the_iterations_and_two_iterations_side_by_side() -> None:
    """No key for the element where there is room for numbers; two keys for an iteration beside the one before."""
    outputs = stepper.run(SAMPLES / "rwkv_overflow" / "model.xml", dict(np.load(SAMPLES / "rwkv_overflow/inputs.npz")))
    wkv = np.asarray(outputs["wkv"])

    async def script(driven: Driven) -> None:
        await driven.ran()
        newcomer = Newcomer(driven)
        row = next(line for line in newcomer.sees().splitlines() if re.search(r" 0\.226 +0\.016", line))
        assert re.search(r"0\.077 +8\.039 +16\.144 +12\.600 .*0\.027 .*I.*3\.4e13", row), row
        shown = await newcomer.press("enter", "=")
        assert newcomer.keys <= 3
        assert "A  iteration 6" in shown and "now iteration 7" in shown
        line = next(line for line in shown.splitlines() if re.search(r"\bwkv +[0-9]", line))
        rms = [float(np.sqrt(np.mean(np.square(wkv[at].astype(np.float64))))) for at in (6, 7)]
        apart = float(np.sqrt(np.mean(np.square((wkv[7] - wkv[6]).astype(np.float64)))))
        numbers = [float(word) for word in re.findall(r"[0-9]+\.[0-9]+", line)[:3]]
        assert numbers == [round(number, 3) for number in (*rms, apart)], line

    drive("rwkv_overflow", script, size=(160, 48), runs=True)


def test_4_which_slice_an_iteration_got_and_how_the_output_grew() -> None:
    """Two keys: the cursor goes from the last iteration, 7, to 5; its slice stands beside its output."""
    rewards = np.load(SAMPLES / "reverse" / "inputs.npz")["rewards"].reshape(-1)
    later = 0.0
    returns = []
    for reward in rewards[::-1]:  # from the end, as the sample says
        later = float(reward) + 0.9 * later
        returns.append(later)

    async def script(driven: Driven) -> None:
        await driven.ran()
        newcomer = Newcomer(driven)
        shown = await newcomer.press("left_square_bracket", "left_square_bracket")
        assert newcomer.keys <= 2
        lines = shown.splitlines()
        slices = next(line for line in lines if "← reward" in line)
        state = next(line for line in lines if "↺ later_return" in line)
        assert float(slices.split()[-1]) == rewards[::-1][5]
        assert float(state.split()[-1].replace(",", "")) == _rounded(returns[5])
        assert "at 5" in shown
        assert any("the same as later_return" in line for line in lines if "return" in line)

    drive("reverse", script, size=(120, 40), runs=True)


def _rounded(value: float) -> float:
    return round(value, 3)


def test_5_what_becomes_of_the_output_when_a_value_is_changed() -> None:
    """Five keys with the value: into the moment of the birth, `*`, 80, Enter; the outputs beside the original ones."""

    async def script(driven: Driven) -> None:
        await driven.ran()
        newcomer = Newcomer(driven)
        shown = await newcomer.press("enter", "asterisk", "8", "0", "enter")
        assert newcomer.keys <= 5
        assert "A  branch original" in shown and "now branch edit-1" in shown
        joined = re.sub(r"[│\s]+", " ", shown)
        assert "output mixed changed in 4 of 12 rows, first in iteration 8" in joined
        same, mended = r"(?:· *)", r"(?:✓ *)"
        is_small = driven.app.size.width < 100
        if is_small:
            shown = await Newcomer(driven).press("shift+tab")  # the tab before has the spread, as much as fits
        courses = (
            ("exp_key", rf"{same}{{7}}\* *{same}{{4}}"),
            ("numerator_next", rf"{same}{{7}}{mended}{{5}}"),
            ("wkv", rf"{same}{{8}}{mended}{{4}}"),
            ("key_with_bonus" if "key_with_bonus" in shown else "value", rf"{same}{{12}}"),
        )
        for name, course in courses[: 1 if is_small else len(courses)]:
            assert re.search(rf"\b{name} +{course}", shown), name

    for size in SIZES:
        drive("rwkv_overflow", script, size=size, runs=True)
