"""OpenVINO computes what the options give to it after the inputs were chosen on the screen, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.debug.debugged import SAMPLES
from tests.tui.driven import Driven
from tests.tui.screens.inputs.test_inputs_options import Started, run_on_zeros, started

pytest.importorskip("openvino")
pytest.importorskip("textual")
__all__ = ["started"]


@pytest.mark.parametrize("options", [["--engine", "openvino"], ["--engine-for", "Multiply=openvino"]], ids=" ".join)
def test_the_engine_is_the_chosen_one(started: Started, options: list[str], tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await run_on_zeros(driven)
        assert " ".join(options) in driven.state.engine
        await driven.type("input rate ones")
        await driven.type("start")
        await driven.settle()
        assert " ".join(options) in driven.state.engine
        await driven.ran()
        await driven.press("c")
        assert len(driven.state.view.outputs) == 3 and not driven.app._faults

    model = str(SAMPLES / "for_loop" / "model.xml")
    assert started(script, [model, *options, "--device", "CPU", "--precision", "f32"]) == 0
