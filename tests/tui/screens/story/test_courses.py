"""Elements on the path of a story, over the iterations."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from stepper.debug.debugger import Debugger
from tests.models import Graph, carried, last
from tui.screens.story.courses import other_courses


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
