"""The port map figure says everything that the file says of each entry; an If has one for each side."""

from __future__ import annotations

from collections import Counter

from stepper.export.composing import MARGIN
from stepper.export.figure_views import ports_figure
from stepper.export.figures.figure import BACKWARD, EdgeKind, Figure
from stepper.export.figures.loop_trace import find_loop
from stepper.export.layout.arrangements import arranged
from stepper.export.layout.figure_layout import CELL
from stepper.export.picture import FigureContent
from tests.export.drawings import cells_of
from tests.export.runs import NAMES, sample
from tests.tables import each_row


def ports(name: str, loop: str | None = None) -> Figure:
    return ports_figure(sample(name), find_loop(sample(name), loop), FigureContent())


@each_row("name", NAMES)
def test_every_slicing_and_every_role_stands_in_full_beside_its_wire(name: str) -> None:
    figure, body = ports(name), find_loop(sample(name), None).body
    wanted = [entry.slicing for entry in (*body.inputs, *body.outputs) if entry.slicing is not None]
    sliced = [edge for edge in figure.edges if edge.kind in (EdgeKind.SLICE, EdgeKind.PIECE)]
    assert sorted(line for edge in sliced for line in edge.details) == sorted(map(str, wanted))
    texts = [text.text for text in arranged(figure).texts]
    assert all(texts.count(str(slicing)) == wanted.count(slicing) for slicing in wanted)
    said = " ".join(texts)
    assert all(edge.label in said for edge in figure.edges if edge.kind not in BACKWARD)


@each_row("name", NAMES)
def test_a_port_map_fits_a_page(name: str) -> None:
    assert arranged(ports(name)).width * CELL + 2 * MARGIN <= 1000


def test_the_numbers_of_a_backward_slicing_are_those_of_the_file() -> None:
    figure = ports("reverse")
    labels = [f"{edge.label}: {edge.details[0]}" for edge in figure.edges if edge.kind is EdgeKind.SLICE]
    assert labels == ["sliced: axis 1, start -1, end 0, stride -1, part_size 1"]


def test_an_if_has_the_port_maps_of_both_sides() -> None:
    figure = ports("while_loop", "until_one::number_next")
    assert [frame.label for frame in figure.clusters] == ["then side of 1 operation", "else side of 2 operations"]
    assert "then runs if it is true" in figure.facts[0]
    label = {node.id: node.label for node in figure.nodes}
    assert [(label[edge.source], label[edge.target]) for edge in figure.edges] == [
        ("number", "even"),
        ("half_result", "output 0 → number_next_result"),
        ("number", "odd"),
        ("triple_plus_one_result", "output 0 → number_next_result"),
    ]
    assert "is_even" in figure.facts[0]


@each_row("name", NAMES)
def test_boxes_of_a_port_map_lie_apart_and_lines_run_between_them(name: str) -> None:
    drawing = arranged(ports(name))
    inside = Counter(
        (x, y)
        for box in drawing.boxes
        for x in range(box.x + 1, box.x + box.width - 1)
        for y in range(box.y, box.y + box.height)
    )
    assert set(inside.values()) == {1}
    assert not {cell for line in drawing.lines for part in line.segments for cell in cells_of(part)} & set(inside)
