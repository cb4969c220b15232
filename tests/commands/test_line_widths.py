"""Values in lines of a given width: as many numbers as there is room for, as numpy leaves the middle out."""

from __future__ import annotations

import numpy as np

from stepper.commands import Interpreter
from stepper.debug.inspection.text import titled_lines, value_lines
from stepper.tensors.number_text import array_text
from tests.debug.debugged import SMALL_SAMPLES, sample
from tests.tables import each_row

SIX = np.array([1234.5678, 2, 3, 4, 5, 98765.4321], np.float32)


@each_row(
    ("room", "text"),
    [
        (200, "f32[6] [1.234568e+03, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 9.876543e+04]"),
        (70, "f32[6] [1.234568e+03, 2.000000e+00, ..., 5.000000e+00, 9.876543e+04]"),
        (45, "f32[6] [ 1234.5677, ..., 98765.43  ]"),
        (30, "f32[6]"),
    ],
)
def test_a_line_has_as_many_numbers_as_there_is_room_for(room: int, text: str) -> None:
    assert array_text(SIX, room) == text and len(text) <= room


@each_row("width", [30, 60, 80, 200])
@each_row("shape", [(), (5,), (1000,), (3, 40), (2, 3, 50)])
def test_a_value_in_full_is_cut_into_lines_of_the_width(width: int, shape: tuple[int, ...]) -> None:
    lines = value_lines(np.random.default_rng(0).normal(size=shape).astype(np.float32), width)
    assert max(map(len, lines)) <= width
    assert max(map(len, titled_lines("@7", value_lines(np.ones(shape), width - 2), width))) <= width


@each_row("name", SMALL_SAMPLES)
def test_values_of_a_stop_fit_into_the_width(name: str) -> None:
    interpreter = Interpreter(sample(name))
    interpreter.session.width = 64
    debugger = interpreter.session.debugger
    for layer in debugger.machine.compiled.main.graph.parameters:
        interpreter.execute(f"watch `{layer.name}`")
    while not debugger.machine.finished:
        for line in interpreter.execute("step").lines[1:]:
            head = line.partition(" = ")[0]
            assert len(line) <= max(64, len(head) + 16), line  # a long name leaves room for type and shape alone
