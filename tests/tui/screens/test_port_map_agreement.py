"""Which part of an axis an iteration reads and writes: engine, sentences and screen beside the formulas."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from stepper.debug.causes.cause import LinkKind
from stepper.debug.debugger import Debugger
from stepper.debug.inspection.views import InputView, ScanView
from tests.debug.debugged import at_iteration, opened
from tests.engine.twins import chunks
from tests.models import Graph, joined, sliced
from tui.screens.ports.axis_picture import AxisPicture
from tui.screens.ports.rows import PortArrow, PortSide, port_pairs

EXTENT = 12
X = np.arange(EXTENT, dtype=np.float32)
SLICINGS = [
    (start, end, stride, part)
    for start, end, stride in product((0, 2, 12, -4), (0, 12, -1, -3), (1, 3, -1, -2))
    for part in (None, abs(stride))
    if chunks(EXTENT, start, end, stride)
]


def negated_slices(start: int, end: int, stride: int, part: int | None, *, reversed_output: bool) -> Graph:
    """A TensorIterator that negates each slice and joins the pieces."""
    net = Graph()
    body, size = net.body(), abs(stride)
    x, piece = net.parameter("x", dims=(EXTENT,)), body.parameter("piece", dims=(size,))
    result = body.result(body.apply("Negative", piece))
    entry = sliced(x, piece, start=start, end=end, stride=stride)
    if part is None:
        del entry.cut["part_size"]
    ends = {"start": -1, "end": 0, "stride": -size} if reversed_output else {"stride": size}
    (scan,) = net.tensor_iterator("slices", body, [entry], [joined(result, **ends)])
    net.result(net.apply("Abs", scan, name="whole", dims=(-1,)), "out")
    return net


def cells(picture: object, extent: int) -> list[str]:
    """One letter for each place of the axis."""
    assert isinstance(picture, AxisPicture)
    text = "".join(part for part, _style in picture.row(200))
    return list(text[:: len(text) // extent])


def port(debugger: Debugger, side: PortSide, role: str) -> PortArrow:
    pairs = port_pairs(debugger.loop())
    return next(port for pair in pairs for port in pair if port is not None and (port.side, port.role) == (side, role))


def check_input(entry: InputView, drawn: PortArrow, read: list[list[int]], iteration: int) -> None:
    """`read` are the elements that each iteration gets."""
    now = read[iteration]
    assert entry.inner.array is not None and entry.inner.array.tolist() == now
    assert f"iteration {iteration} got elements [{now[0]}, {now[-1] + 1}) of {EXTENT} along axis 0" in entry.why
    assert drawn.words[-1] == f"{now[0]}{f'–{now[-1]}' if len(now) > 1 else ''} of 0–{EXTENT - 1}"
    expected = ["╌"] * EXTENT
    for number, elements in enumerate(read):
        for element in elements:
            expected[element] = "▒" if number < iteration else "█" if number == iteration else "░"
    assert cells(drawn.below, EXTENT) == expected


def check_output(
    scan: ScanView, drawn: PortArrow, read: list[list[int]], iteration: int, *, reversed_output: bool
) -> None:
    """Piece k lies at place k, or at the same distance from the end."""
    count, so_far = len(read), read[: iteration + 1]
    pieces = so_far[::-1] if reversed_output else so_far
    assert scan.concatenated().tolist() == [-element for piece in pieces for element in piece]
    numbers = range(iteration, -1, -1) if reversed_output else range(iteration + 1)
    if iteration < 4:
        assert scan.order == ", ".join(f"S[{number}]" for number in numbers)
    else:
        assert scan.order == f"S[{numbers[0]}], S[{numbers[1]}], ..., S[{numbers[-1]}]"
    assert ("the last one first" in scan.why) == reversed_output
    places = [count - 1 - number if reversed_output else number for number in range(count)]
    assert drawn.words[-1] == f"place {places[iteration]}"
    expected = [""] * count
    for number, place in enumerate(places):
        expected[place] = "▒" if number < iteration else "█" if number == iteration else "░"
    assert cells(drawn.below, count) == expected


@pytest.mark.parametrize("reversed_output", [False, True])
@pytest.mark.parametrize(("start", "end", "stride", "part"), SLICINGS)
def test_engine_sentences_and_screen_say_the_same(
    start: int, end: int, stride: int, part: int | None, reversed_output: bool, tmp_path: Path
) -> None:
    read = chunks(EXTENT, start, end, stride)
    assert read is not None
    graph = negated_slices(start, end, stride, part, reversed_output=reversed_output)
    debugger = opened(tmp_path, graph, X)
    for iteration in range(len(read)):
        at_iteration(debugger, iteration)
        loop = debugger.loop()
        check_input(loop.inputs[0], port(debugger, PortSide.IN, "slice"), read, iteration)
        drawn = port(debugger, PortSide.OUT, "piece")
        check_output(loop.scans[0], drawn, read, iteration, reversed_output=reversed_output)


@pytest.mark.parametrize("reversed_output", [False, True])
@pytest.mark.parametrize(("start", "end", "stride"), [(0, -1, 3), (-1, 0, -3), (9, 3, -2)])
def test_why_finds_the_iteration_that_wrote_an_element(
    start: int, end: int, stride: int, reversed_output: bool, tmp_path: Path
) -> None:
    read = chunks(EXTENT, start, end, stride)
    assert read is not None
    graph = negated_slices(start, end, stride, None, reversed_output=reversed_output)
    debugger = opened(tmp_path, graph, np.full(EXTENT, np.nan, np.float32))
    debugger.break_at("whole")
    debugger.continue_()
    written = [number for number, piece in enumerate(read) for _element in piece]
    for element, iteration in enumerate(written[::-1] if reversed_output else written):
        links = debugger.chain_of(f"whole[{element}]").links
        assert [link.location.iteration for link in links if link.kind is LinkKind.SLICE] == [iteration]
