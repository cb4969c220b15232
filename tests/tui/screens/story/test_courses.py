"""Elements on the path of a story, over the iterations."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from stepper.debug.debugger import Debugger
from tests.models import Graph, carried, last
from tests.tui.driven import Driven, debugger_of_sample, drive
from tui.screens.story.courses import course_of_link, other_courses


def test_ways_that_part_and_meet_in_each_iteration_are_each_gone_once() -> None:
    net = Graph()
    body = net.body()
    h = body.parameter("h", "f32", (1,))
    double = body.apply("Multiply", h, body.constant(np.float32([0.5])), name="double")
    triple = body.apply("Multiply", h, body.constant(np.float32([0.25])), name="triple")
    following = body.result(body.apply("Add", double, triple, name="sum"), "h_out")
    entries = [carried(net.parameter("h0", "f32", (1,)), h, following)]
    for index, output in enumerate(net.loop("parting", body, 40, True, entries, [last(following)])):
        net.result(output, f"out_{index}")
    with tempfile.TemporaryDirectory() as folder:
        debugger = Debugger(net.read(Path(folder)), {0: np.ones(1, np.float32)})
    debugger.run_to("parting::sum@39")
    story = debugger.story("parting::sum@39[0]")
    link = story.links[story.asked]
    both = link.operands[:2]
    assert len(both) == 2
    chain = [
        replace(link, row=k % len(story.rows), operands=tuple(replace(one, link=min(k + 1, 63)) for one in both))
        for k in range(64)
    ]
    story = replace(story, links=tuple(chain), asked=0)  # 2 ** 63 ways from its end to its begin
    rows = ["".join(text for text, _ in row) for row in other_courses(story, story.links[story.asked], 120, 40)]
    assert any("[0] over iterations" in row for row in rows)
    assert max(map(len, rows)) <= 120 and len(rows) <= 40


def test_a_condition_over_the_iterations_is_t_and_f_above_their_numbers() -> None:
    debugger = debugger_of_sample("date_normaliser")
    debugger.last()
    story = debugger.story("NotEqual@10")
    rows = ["".join(text for text, _ in row) for row in course_of_link(story, story.links[story.asked], 60, 20)]
    assert rows[0].startswith("NotEqual") and len(rows) == 3
    at = [rows[2].index(f" {number} ") + 1 for number in range(10)]
    assert [rows[1][place] for place in at] == ["T"] * 10, "it went on"
    assert rows[1].split() == ["T"] * 10 + ["F"] and rows[1].index("F") == rows[2].index("10")


def test_below_a_condition_the_elements_that_decide_it_have_the_whole_width_and_height() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("e")
        await driven.filled()
        lines = ["".join(cell for cell in strip.text) for strip in driven.app.screen._compositor.render_strips()]
        at = next(place for place, line in enumerate(lines) if "swaps_next over iterations" in line)
        under = next(place for place, line in enumerate(lines[at:], at) if line.split() == list("012301201"))
        assert under - at > 20 and not any("│" in line for line in lines[at:under])
        highest = [line.rstrip() for line in lines[at + 1 : under] if "█" in line]
        assert max(map(len, highest)) > 150, "wide columns"

    drive("nested_loop", script, size=(200, 60), runs=True)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_the_element_that_is_asked_about_is_told_where_its_bar_is_cut(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("why token_part@7[0,6]")
        await driven.filled()
        lines = driven.text("story").splitlines()
        title = next(line for line in lines if line.rstrip().endswith("▼ -17.609 at 7"))
        assert "token_part[0,6]" in title
        lowest = next(line for line in lines if "-1.462 " in line and "█" in line)
        assert lowest.count("▼") == 1  # its column is cut, all others are not

    drive("rwkv_overflow", script, size=size, starts_up=True, runs=True)
