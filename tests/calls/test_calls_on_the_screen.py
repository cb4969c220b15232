"""The application on many calls: the outermost loop is that of the calls, and its iterations are called so."""

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
def test_calls_are_told_as_calls(sample: SampleCalls, count: int, size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        shown = await driven.do("t")
        assert f"{count} calls of {count}" in shown, shown
        await driven.do("escape", "end")
        assert driven.at[1] == count - 1
        await driven.do(":goto @3", "right")
        assert driven.state.iteration == 3 and driven.at[1] == 4

    drive(debugger_of(sample), script, size=size, runs=True)
