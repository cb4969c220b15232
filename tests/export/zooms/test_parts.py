"""Parts of figures: the neighbourhood of an operation and the ways between two, against matrices of the same graph."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.errors import UsageError
from stepper.export.exporter import draw
from stepper.export.figures.figure import EdgeKind, Figure, NodeKind
from stepper.export.styles import Group, Rectangle
from tests.export.runs import picture, sample
from tests.tables import each_row

MARKS = (NodeKind.CUT_ABOVE, NodeKind.CUT_BELOW)


def own(figure: Figure) -> set[str]:
    return {node.id for node in figure.nodes if node.kind not in MARKS}


def matrix(figure: Figure, ids: list[str]) -> np.ndarray:
    """Which box reads which, back edges too."""
    found = np.zeros((len(ids), len(ids)), bool)
    for edge in figure.edges:
        if edge.kind is not EdgeKind.ENDS and edge.source in ids and edge.target in ids:
            found[ids.index(edge.source), ids.index(edge.target)] = True
    return found


def wires(figure: Figure, box: str) -> tuple[set[str], set[str]]:
    """What a box reads, and what reads it; of a mark all that it stands for."""
    edges = [edge for edge in figure.edges if edge.kind not in (EdgeKind.ENDS, EdgeKind.BACK)]
    above = {edge.source for edge in edges if edge.target == box}
    below = {edge.target for edge in edges if edge.source == box}
    return above, below


@each_row("hops", [0, 1, 2, 3])
@each_row(("name", "address", "loop"), [("date_normaliser", "Softmax", 58), ("while_loop", "peak_next", 8)])
def test_a_neighbourhood_is_what_powers_of_the_matrix_reach(name: str, address: str, loop: int, hops: int) -> None:
    whole = picture(name, "model").figure
    part = draw(sample(name), view="model", around=address, hops=hops).figure
    centre = next(node for node in part.nodes if node.highlighted)
    loop_frame = whole.parent(centre.id)
    inside = [node.id for node in whole.nodes if node.cluster == loop_frame]
    frames = [frame.id for frame in whole.clusters if frame.parent == loop_frame]
    assert not frames or name == "while_loop"
    if frames:  # an If beside it is one box there
        whole = draw(sample(name), view="model", depth=1).figure
        inside = [node.id for node in whole.nodes if node.cluster == loop_frame]
    links = matrix(whole, inside)
    near = np.linalg.matrix_power((links | links.T | np.eye(len(inside), dtype=bool)).astype(int), hops) > 0
    assert own(part) == {box for box, reached in zip(inside, near[inside.index(centre.id)], strict=True) if reached}
    for box in own(part):
        for mine, all_of_it, kind in zip(wires(part, box), wires(whole, box), MARKS, strict=True):
            marks = [part.by_id[id] for id in mine if part.by_id[id].kind in MARKS]
            assert all(mark.kind is kind for mark in marks)
            lost = all_of_it - own(part)
            assert len(marks) <= len(lost) and bool(marks) == bool(lost)
            if len(marks) == 1 and len(lost) > 1:
                assert str(len(lost)) in marks[0].label


def test_the_ways_between_two_are_what_is_below_one_and_above_the_other() -> None:
    model = sample("date_normaliser")
    whole = draw(model, view="model", depth=9).figure
    part = draw(model, view="model", ways=("src.1", "TopK")).figure
    ids = list(whole.by_id)
    begin, end = (
        next(node.id for node in part.nodes if node.highlighted and node.label.startswith(word))
        for word in ("src", "TopK")
    )
    links = matrix(whole, ids)
    links[ids.index(end), :] = False
    links[:, ids.index(begin)] = False
    reach = links.astype(int)
    for _ in range(8):
        reach = ((reach + reach @ reach) > 0).astype(int)
    below, above = reach[ids.index(begin)], reach[:, ids.index(end)]
    assert own(part) == {begin, end, *(box for at, box in enumerate(ids) if below[at] and above[at])}
    assert any(edge.kind is EdgeKind.BACK for edge in part.edges)
    assert any(frame.label.startswith("Loop") for frame in part.clusters)


def test_a_way_from_a_value_to_itself_is_its_cycle() -> None:
    part = draw(sample("for_loop"), view="rolled", ways=("balance", "balance")).figure
    assert {edge.kind for edge in part.edges} >= {EdgeKind.BACK}
    assert {node.kind for node in part.nodes} >= {NodeKind.PARAMETER, NodeKind.RESULT}


def test_iterations_have_the_part_of_each_with_the_values_of_the_whole() -> None:
    whole = picture("while_loop", "unrolled", iterations="0:2,-1", values="full", depth=1).figure
    part = picture("while_loop", "unrolled", iterations="0:2,-1", values="full", ways=("number", "number_next")).figure
    stages = [frame.id for frame in part.clusters if frame.kind is NodeKind.ITERATION]
    tails = [{node.id.partition(".")[2] for node in part.nodes if node.id.startswith(f"{stage}.")} for stage in stages]
    assert len(stages) == 3 and tails[0] == tails[1] == tails[2]
    for node in part.nodes:
        assert (node.label, node.lines, node.idle) == (lambda one: (one.label, one.lines, one.idle))(
            whole.by_id[node.id]
        )
    assert picture("while_loop", "unrolled", around="peak_next@7").figure.clusters[1].label == "iteration 6"


def test_frames_of_iterations_have_the_ports_of_the_part_alone() -> None:
    run = picture("while_loop", "unrolled", around="odd").figure
    body = draw(sample("while_loop"), view="rolled", around="odd").figure
    (frame,) = (one for one in body.clusters if one.kind is NodeKind.BRANCH)
    found = [one for one in run.clusters if one.kind is NodeKind.BRANCH]
    assert found
    assert all([port.index for port in one.ports] == [port.index for port in frame.ports] for one in found)
    assert {end for one in found for port in one.ports for end in port.ends} <= run.by_id.keys()


@each_row(
    ("ways", "said"),
    [
        (
            ("TopK", "src.1"),
            "there is no way from 'TopK' to 'src'; but there is one from 'src' to 'TopK'; from 'TopK' the",
        ),
        (("TopK", "TopK_nothing"), "there is nothing called"),
        (
            ("init/aten::linear/Add", "init/aten::linear/Add"),
            "back to itself: no back edge carries what follows from it",
        ),
    ],
)
def test_where_there_is_no_way_it_is_said_and_what_is_reached(ways: tuple[str, str], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        draw(sample("date_normaliser"), view="model", ways=ways)
    assert said in str(raised.value)


def test_the_condition_of_an_if_is_a_way_to_what_it_gives() -> None:
    part = draw(sample("while_loop"), view="rolled", ways=("remainder", "keep_going")).figure
    names = {node.name or node.label for node in part.nodes}
    assert {"remainder", "is_even", "half_result", "triple_plus_one_result", "keep_going"} <= names
    assert "peak_next" not in names
    branch = next(frame for frame in part.clusters if frame.kind is NodeKind.BRANCH)
    source = next(edge.source for edge in part.edges if edge.target == branch.id)
    assert part.by_id[source].name == "is_even"
    assert {port.index for port in branch.ports if not port.is_output} == {0, 1}


def test_a_trip_count_is_no_way_but_is_told() -> None:
    with pytest.raises(
        UsageError, match=r"but it decides how Loop 'passes' runs, which is around Loop 'pairs_of_neighbours'"
    ):
        draw(sample("nested_loop"), view="model", ways=("most_passes", "order_next"))


def test_what_has_no_parts_is_refused() -> None:
    for options, said in (
        ({"around": "Add"}, "ambiguous"),
        (
            {"around": "src.1", "view": "rolled"},
            "'src.1' is in no loop, so there is no body to draw rolled; use --view model",
        ),
        ({"around": "src.1", "view": "ports"}, "--around draws a part of the views model, rolled, unrolled"),
        ({"around": "src.1", "detail": "TopK"}, "--around and --detail are parts of their own"),
    ):
        with pytest.raises(UsageError, match="(?s)" + said):
            draw(sample("date_normaliser"), **options)  # type: ignore[arg-type]


def test_a_detail_stands_beside_the_whole_with_every_box_of_both() -> None:
    made = draw(sample("date_normaliser"), detail="Softmax", hops=1)
    whole, page = picture("date_normaliser", "model").figure, made.page
    assert page is not None
    groups = [shape for shape in page.items if isinstance(shape, Group)]
    far = [group for group in groups if "far" in group.classes.split() and isinstance(group.items[0], Rectangle)]
    assert len(far) == len(whole.nodes) + len(whole.clusters) - sum(node.kind is NodeKind.END for node in whole.nodes)
    assert sum("highlighted" in group.classes for group in far) == len(own(made.figure))
    near = {group.id for group in groups if group.id}
    assert near == {node.id for node in made.figure.nodes} | {frame.id for frame in made.figure.clusters}
    region = next(shape for shape in page.items if isinstance(shape, Rectangle) and shape.style == "region")
    bright = [group.items[0] for group in far if "highlighted" in group.classes]
    for box in bright:
        assert isinstance(box, Rectangle)
        assert region.x <= box.x and box.x + box.width <= region.x + region.width
        assert region.y <= box.y and box.y + box.height <= region.y + region.height
    for name in ("svg", "pdf", "tikz", "dot", "mermaid", "md"):
        assert made.written(name)


def test_on_a_narrow_page_fewer_neighbours_are_drawn_and_that_is_said() -> None:
    said: list[str] = []
    wide = draw(sample("date_normaliser"), around="Softmax", hops=4).figure
    made = draw(sample("date_normaliser"), around="Softmax", hops=4, preset="paper", warn=said.append)
    assert own(made.figure) < own(wide)
    assert made.figure.title.partition(" within ")[2] in ("1 hop", "2 hops", "3 hops")
    assert f"neighbours within {made.figure.title.partition(' within ')[2]}: more have no room" in said
