"""A loop that runs no iteration: its panes say so, with every kind of value and in every size."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from tests.models import Graph, carried, joined, last
from tests.tui.driven import Driven, drive


def never(dims: tuple[int, ...], kind: str) -> Debugger:
    """A trip count of 0, a carried value, its last value and all of them."""
    number = np.int64 if kind == "i64" else np.float32
    net = Graph()
    body = net.body()
    x = body.parameter("x", kind, dims)
    out = body.result(body.apply("Add", x, body.constant(np.ones(dims, number)), name="up"), "x_next")
    start = net.parameter("x0", kind, dims)
    outputs = net.loop("never", body, 0, True, [carried(start, x, out)], [last(out), joined(out)])
    for name, output in zip("ab", outputs, strict=True):
        net.result(output, name)
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {0: np.ones(dims, number)})


@pytest.mark.parametrize("kind", ["f32", "i64"])
@pytest.mark.parametrize(
    ("dims", "size"), [((), (200, 60)), ((1,), (80, 24)), ((1, 4), (200, 60)), ((1, 100), (80, 24))]
)
def test_no_pane_fails_and_nothing_is_drawn(dims: tuple[int, ...], kind: str, size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("view main")
        await driven.press("s", "s")
        for pane in ("edges", "scans"):
            told = driven.text(pane)
            assert "Error" not in told and "▀" not in told and "█" not in told, told
        assert "fault" not in driven.text("answer")

    drive(never(dims, kind), script, size=size, starts_up=True, runs=True)
