"""The application on many calls: the outermost card is that of the calls, and iterations of it are called so."""

from __future__ import annotations

import pytest

import stepper
from stepper.debug.debugger import Debugger
from tests.calls.samples import KV_CACHE, VAD_STATEFUL, SampleCalls
from tests.tui.driven import Driven, drive


def debugger_of(sample: SampleCalls) -> Debugger:
    model, inputs = sample.over_calls()
    return stepper.Debugger(model, inputs)


@pytest.mark.parametrize(
    ("sample", "count", "size"), [(VAD_STATEFUL, 60, (80, 24)), (KV_CACHE, 10, (120, 40))], ids=["vad", "cache"]
)
def test_the_overview_has_a_card_of_calls(sample: SampleCalls, count: int, size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.press("0")
        await driven.ran()
        text = driven.text("overview")
        assert f"{count} calls of {count}" in text and "over calls of the model" in text
        assert "Space closes" not in text, "it is no sequence that was opened"
        await driven.press("end", "right_square_bracket")
        assert f"there is no call {count}: calls ran {count} calls" in driven.text("answer")
        await driven.press("enter")
        await driven.settle()
        assert driven.state.iteration == count - 1

    drive(debugger_of(sample), script, size=size)
