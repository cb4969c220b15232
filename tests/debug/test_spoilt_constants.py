"""Constants with NaN or Inf that no row of an overview shows are named, and so is what is made of Constants alone."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.debug.inspection.text import none_born
from stepper.debug.overview import runs
from stepper.debug.overview.runs import ConstantSearch
from stepper.element_types import ELEMENT_TYPES, Array
from stepper.export.overview_page import overview_html
from stepper.ir.weights import Weights
from tests.models import Graph, Value, carried, last
from tests.tui.driven import Driven, drive

NAN, INF = np.nan, np.inf


def picking(outside: list[float], inside: list[float], divisor: float = 2.0) -> Debugger:
    """Both graphs read element 0 of a table alone, which is finite, and the body 1 / divisor, of Constants alone.

    x + table[0] of `outside` goes into three iterations of x + table[0] of `inside` + 0 * (clipped) 1 / divisor.
    """
    net = Graph()

    def first(graph: Graph, values: list[float], name: str) -> Value:
        table = graph.constant(np.float32(values), name=name)
        axis = graph.constant(np.int64(0))
        return graph.apply("Gather", table, graph.constant([0], np.int64), axis, dims=(1,))

    start = net.apply("Add", net.parameter("x0", dims=(1,)), first(net, outside, "before"), name="start")
    body = net.body()
    x = body.parameter("x", dims=(1,))
    share = body.apply(
        "Divide", body.constant([1.0]), body.constant(np.float32([divisor]), name="divisor"), name="share"
    )
    low = body.apply("Clamp", share, name="low", min=0, max=1)
    added = body.apply("Add", body.apply("Add", x, first(body, inside, "mask")), low, name="added")
    after = body.result(added, "x_next")
    (end,) = net.loop("sums", body, 3, True, [carried(start, x, after)], [last(after)])
    net.result(end, "end")
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {0: np.zeros(1, np.float32)})


def told(debugger: Debugger) -> str:
    overview = debugger.run_overview()
    assert overview.births_complete and not overview.births and not overview.seen_non_finite
    text = none_born(overview, lambda layer: layer.name)
    assert text in overview_html(debugger.run_overview(), debugger.machine.compiled)
    return text


def test_without_any_there_is_none() -> None:
    debugger = picking([0, 1], [1, 2])
    assert told(debugger) == "no NaN, no Inf" and debugger.overview().constants == ()


def test_constants_of_the_model_and_of_bodies_are_named_with_what_they_have() -> None:
    debugger = picking([0, NAN, 3, NAN], [1, -INF, -INF, -INF, NAN])
    assert told(debugger) == (
        "no operation makes NaN or Inf; Constant before has NaN in 2 of 4, Constant mask has NaN in 1 and Inf in 3 of 5"
    )


def test_what_a_body_makes_of_constants_alone_is_named_by_what_makes_it() -> None:
    debugger = picking([0], [1], divisor=0.0)
    assert told(debugger) == "no other operation makes NaN or Inf; Divide share makes Inf in 1 of 1 of Constants alone"


def test_each_is_read_once_in_blocks_also_where_the_run_is_edited() -> None:
    debugger = picking([0, *range(40)], [1, *range(40), INF])
    looked = []
    plain = runs._counted

    def counted(value: Array, weights: Weights | None) -> Iterator[tuple[int, int, int]]:
        looked.append(value.size)
        return plain(value, weights)

    with patch.object(runs, "_counted", counted), patch.object(runs, "_BLOCK", 16):
        search = ConstantSearch(debugger.machine.compiled)
        steps = 0
        while not search.is_over:
            search.look(lambda: True)
            steps += 1
        assert steps > 41 // 16 + 42 // 16 and [one.infinite for one in search.found({})] == [1]
        debugger.run_overview()
        count = len(looked)
        debugger.goto_iteration(1)
        debugger.set_value("x", np.float32([5]))
        overview = debugger.run_overview()
    assert len(looked) == count, "what no edit changes is not read again"
    assert overview.constants is not None and [one.layer.name for one in overview.constants] == ["mask"]


def test_a_constant_that_is_set_is_what_it_was_set_to() -> None:
    debugger = picking([0], [1], divisor=0.0)
    debugger.goto_iteration(0)
    debugger.set_value("divisor", np.float32([4]))
    overview = debugger.run_overview()
    assert overview.births_complete and overview.constants == ()


def test_pages_of_the_file_do_not_stay_in_memory(tmp_path: Path) -> None:
    """The resident set, as Linux counts it, grows by no more than a part of a table of 64 MB that is looked through."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("the system does not tell what is in memory")

    def resident() -> int:
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("RssFile"))

    size = 2**24
    (tmp_path / "w.bin").write_bytes(bytes(4 * size))
    weights = Weights(tmp_path / "w.bin")
    value = weights.constant(ELEMENT_TYPES["f32"], (size,), 0, 4 * size)
    before = resident()
    *_, count = runs._counted(value, weights)
    assert count == (size, 0, 0) and resident() - before < 4 * size // 1024 // 3
    assert not value[-1], "what was let go is read again"


def test_a_mask_is_named_on_the_screen_and_is_no_alarm() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        text = driven.text("headline")
        assert "no operation makes NaN or Inf; Constant mask has Inf in 2 of 3" in text
        assert "no NaN, no Inf" not in text

    drive(picking([0], [1, -INF, -INF]), script, size=(120, 40), starts_up=True, runs=True)
