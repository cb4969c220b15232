"""Figures of two runs: where they part, and both values with their difference, against numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.cli import main
from stepper.compare.references.reference_opening import debug_reference
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from stepper.export.exporter import draw, picture
from stepper.export.figures.figure import Figure, FigureNode, NodeKind, ValueState
from stepper.export.fonts import SMALL_SIZE
from stepper.export.options import FigureView
from stepper.export.picture import FigureContent, FigurePlace, FigureRequest, Zoom, ZoomKind, smaller_parts
from stepper.ir.model import Model
from tests.export.reading_back.drawing import Drawing
from tests.export.runs import sample
from tests.models import Graph, Side, carried, last

ITERATIONS, PARTED = 12, 5
START = np.array([1.0, 2.0, 4.0], np.float32)


def net(folder: Path, growth: float, *, root: bool = False) -> Path:
    """x += 1; then, from iteration 5 on, x *= growth (the power of growth by a switch); its root is beside it."""
    model = Graph()
    start, body = model.parameter("start", dims=[3]), model.body()
    number, x = body.parameter("number", "i64", [1]), body.parameter("x", dims=[3])
    more = body.apply("Add", x, body.constant(np.float32(1)), name="more")
    late = body.apply("GreaterEqual", number, body.constant(np.int64(PARTED)), type="boolean", name="late")
    switch = body.apply("Convert", late, type="f32", dims=[1], name="switch", destination_type="f32")
    factor = body.apply("Power", body.constant(np.float32([growth])), switch, name="factor")
    grown = body.apply("Multiply", more, factor, name="grown")
    shifted = body.apply("Subtract", grown, body.constant(np.float32([-9 if root else 99])), name="shifted")
    rooted = body.result(body.apply("Sqrt", shifted, name="rooted"), "rooted_result")
    end = body.result(grown, "x_next")
    out, roots = model.loop(
        "steps", body, ITERATIONS, True, [carried(start, x, end)], [last(end), last(rooted)], None, number
    )
    model.result(out, "y")
    model.result(roots, "z")
    folder.mkdir()
    return model.write(folder)


def numpy_values(growth: float) -> list[np.ndarray]:
    found, x = [], START
    for number in range(ITERATIONS):
        x = (x + np.float32(1)) * np.float32(growth if number >= PARTED else 1)
        found.append(x)
    return found


def drawn(path: Path, other: str, view: str, **options: object) -> Figure:
    model: Model = stepper.read_model(path)
    inputs = bind_inputs(model, {"start": START})

    def machine() -> Machine:
        return Machine(compile_model(model), inputs)

    request = FigureRequest(
        view=FigureView(view),
        content=FigureContent(depth=1 if view != "unrolled" else 0),
        beside=lambda run: debug_reference(other, run, inputs),
        **options,  # type: ignore[arg-type]
    )
    return picture(model, machine, request).figure


def box(figure: Figure, name: str, stage: str = "") -> FigureNode:
    return next(
        node for node in figure.nodes if name in (node.name, node.label.split()[-1]) and node.id.startswith(stage)
    )


def test_iterations_have_both_values_and_their_difference(tmp_path: Path) -> None:
    ours, theirs = net(tmp_path / "a", 2), net(tmp_path / "b", 3)
    figure = drawn(ours, str(theirs), "unrolled")
    stages = [frame.id for frame in figure.clusters if frame.kind is NodeKind.ITERATION]
    assert stages == ["i0", "i4", "i5", "i6", "i11"]
    a, b = numpy_values(3), numpy_values(2)
    for stage in stages:
        number = int(stage[1:])
        state = ValueState.DIFFERS if number >= PARTED else ValueState.ALIKE
        found = box(figure, "grown", f"{stage}.")
        assert found.state is state, stage
        written = [
            f"[{' '.join(f'{element:.4g}' for element in value)}]"
            for value in (b[number], a[number], b[number] - a[number])
        ]
        if state is ValueState.ALIKE:
            assert found.lines == ("f32[3]", written[0], "the same bits")
        else:
            assert found.lines == ("f32[3]", written[0], "A: f32[3]", written[1], f"difference {written[2]}")
    first = [node for node in figure.nodes if node.state is ValueState.PARTS]
    assert [node.id for node in first] == [box(figure, "factor", "i5.").id] and "first difference" in first[0].lines
    assert figure.facts[0].endswith("they diverge at 'factor', iteration 5")


@pytest.mark.parametrize("view", ["rolled", "model"])
def test_a_body_tells_of_all_iterations(tmp_path: Path, view: str) -> None:
    figure = drawn(net(tmp_path / "a", 2), str(net(tmp_path / "b", 3)), view)
    late = ITERATIONS - PARTED
    largest = np.abs(numpy_values(3)[-1] - numpy_values(2)[-1]).max()
    assert box(figure, "factor").state is ValueState.PARTS
    (frame,) = figure.clusters
    assert frame.state is ValueState.PARTS and "the first difference is inside" in frame.lines
    assert box(figure, "factor").lines[-3:] == (
        f"first difference in iteration {PARTED}",
        f"differs in {late} of 12",
        "largest difference 1",
    )
    assert box(figure, "grown").lines[-2:] == (f"differs in {late} of 12", f"largest difference {largest:.4g}")
    assert box(figure, "more").lines[-2].startswith(f"differs in {late - 1} of 12")
    assert (box(figure, "late").state, box(figure, "late").lines[-1]) == (ValueState.ALIKE, "the same bits")


def test_on_a_narrow_page_the_neighbourhood_of_the_first_difference_is_drawn(tmp_path: Path) -> None:
    """The power of growth is what differs first, in iteration 5; what leads there and away is beside it."""
    here, there = net(tmp_path / "here", 1.5), net(tmp_path / "there", 2.0)
    said: list[str] = []
    made = draw(here, {"start": START}, diff=str(there), preset="paper", warn=said.append)
    assert made.page is not None and made.page.width * made.page.points <= 84 * 72 / 25.4 + 1
    assert box(made.figure, "factor").state is ValueState.PARTS
    assert "iteration 5" in " ".join(box(made.figure, "factor").lines)
    assert "the neighbourhood of the first difference: the rest has no room" in said


def test_on_a_slide_what_differs_near_the_first_difference_is_drawn_and_the_rest_counted(tmp_path: Path) -> None:
    here, there = net(tmp_path / "here", 1.5), net(tmp_path / "there", 2.0)
    said: list[str] = []
    made = draw(here, {"start": START}, diff=str(there), preset="slide", warn=said.append)
    assert made.page is not None
    size = [made.page.width * made.page.points * 96 / 72, made.page.height * made.page.points * 96 / 72]
    assert size == pytest.approx([1280, 720], abs=1) and made.page.points * 96 / 72 * SMALL_SIZE >= 17.99
    drawn_here = [node for node in made.figure.nodes if node.state is not ValueState.NONE]
    assert [node.state for node in drawn_here].count(ValueState.PARTS) == 1
    assert "the neighbourhood of the first difference: the rest has no room" in said
    words = " ".join(text.text for text in Drawing(made.text("svg")).words)
    assert f"first difference in iteration {PARTED}" in words and "differs in" in words
    part = Zoom(ZoomKind.AROUND, FigurePlace("", (), sample("for_loop").graph, sample("for_loop").graph.layers[0]))
    tried = [(one.hops, one.differing) for one in smaller_parts(part, of_two_runs=True)]
    assert tried == [(2, True), (1, False), (1, True), (0, False)]
    assert [one.hops for one in smaller_parts(part, of_two_runs=False)] == [1, 0]


@pytest.mark.parametrize("view", [None, "rolled"])
def test_a_difference_deep_inside_is_drawn_on_a_slide_and_never_hidden_in_a_body_as_one_box(
    tmp_path: Path, view: str | None
) -> None:
    here, there = (branched(tmp_path / name, by) for name, by in (("here", 2.0), ("there", 3.0)))
    made = draw(here, {"start": START}, diff=str(there), preset="slide", view=view)
    assert made.page is not None
    drawn_here = Drawing(made.text("svg"))
    (first,) = (item for item in drawn_here.boxes.values() if "parts" in item.classes)
    assert first.lines[0] == "Multiply(·, 2)" and "first difference in iteration 0" in " ".join(first.lines)
    words = " ".join(one.text for one in drawn_here.words)
    assert "A is there/model.xml; they diverge at 'doubled', iteration 0" in words


def branched(folder: Path, by: float) -> Path:
    """A loop with an If in which x is multiplied; what both say below their names takes many lines."""
    model = Graph()
    start, body = model.parameter("start", dims=[3]), model.body()
    x = body.parameter("x", dims=[3])
    more = body.apply("ReduceSum", x, body.constant(np.int64([0])), dims=(), name="the_sum_of_all_of_the_elements")
    limit = body.constant(np.float32(1e9), name="limit")
    goes_on = body.apply("Less", more, limit, type="boolean", name="a_condition_with_a_name_that_takes_a_line")
    yes, no = body.body(), body.body()
    inner = [yes.parameter("inner", dims=[3]), no.parameter("inner", dims=[3])]
    doubled = yes.apply("Multiply", inner[0], yes.constant(np.float32(by)), name="doubled")
    sides = [
        Side(yes, [(x, inner[0])], [yes.result(doubled, "yes")]),
        Side(no, [(x, inner[1])], [no.result(no.apply("Relu", inner[1]), "no")]),
    ]
    (out,) = body.branch("choice", goes_on, *sides)
    end = body.result(out, "x_next")
    go = body.result(goes_on, "go")
    model.result(model.loop("steps", body, 3, True, [carried(start, x, end)], [last(end)], go)[0], "y")
    folder.mkdir()
    return model.write(folder)


def test_two_runs_that_are_the_same_are_the_body_on_a_slide(tmp_path: Path) -> None:
    said: list[str] = []
    path = net(tmp_path / "a", 2)
    made = draw(path, {"start": START}, diff=str(path), preset="slide", warn=said.append)
    assert "the body: the rest has no room" in said and any("are the same" in fact for fact in made.figure.facts)


def test_what_is_finite_here_alone_is_mended(tmp_path: Path) -> None:
    mended = drawn(net(tmp_path / "a", 2, root=True), str(net(tmp_path / "b", 2)), "rolled")
    assert box(mended, "rooted").state is ValueState.MENDED
    assert any("fixed" in line for line in box(mended, "rooted").lines)
    assert box(mended, "shifted").state is ValueState.PARTS
    broken = drawn(tmp_path / "b" / "model.xml", str(tmp_path / "a" / "model.xml"), "rolled")
    assert box(broken, "rooted").state is ValueState.DIFFERS and any(
        "new NaN or Inf" in line for line in box(broken, "rooted").lines
    )


def test_two_runs_that_are_the_same_say_so_and_views_without_values_refuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = net(tmp_path / "a", 2)
    same = drawn(path, str(path), "rolled")
    assert "compared are the same" in same.facts[0] and all(node.state is not ValueState.PARTS for node in same.nodes)
    np.savez(tmp_path / "inputs.npz", start=START)
    words = ["export", str(path), "--diff", str(path), "-q"]
    assert main([*words, "--view", "rolled"]) == 2
    assert "--diff compares a run, and a run needs inputs" in capsys.readouterr().err
    words += ["--inputs", str(tmp_path / "inputs.npz")]
    assert main([*words, "--view", "ports"]) == 2
    assert "--diff colours the views model, rolled, unrolled" in capsys.readouterr().err
    assert main([*words[:2], "--diff", "nothing.npy", *words[4:]]) == 2
    assert "--diff nothing.npy" in capsys.readouterr().err


def test_python_and_the_command_line_draw_the_same(tmp_path: Path) -> None:
    ours, theirs = net(tmp_path / "a", 2), net(tmp_path / "b", 3)
    np.savez(tmp_path / "inputs.npz", start=START)
    words = ["export", str(ours), "--inputs", str(tmp_path / "inputs.npz"), "--diff", str(theirs), "-q"]
    assert main([*words, "-o", str(tmp_path / "cli.svg")]) == 0
    made = stepper.draw(ours, {"start": START}, diff=theirs)
    assert made.written("svg") == (tmp_path / "cli.svg").read_bytes()
    with pytest.raises(stepper.UsageError, match="a run needs inputs"):
        stepper.draw(ours, diff=theirs, view="rolled")


def test_a_recording_on_other_inputs_is_a_run_to_part_from(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = net(tmp_path / "a", 2)
    for name, start in (("one", START), ("two", START + 1)):
        np.savez(tmp_path / f"{name}.npz", start=start)
    trace, inputs = str(tmp_path / "two.trace"), ("--inputs", str(tmp_path / "one.npz"))
    assert main(["run", str(path), "--inputs", str(tmp_path / "two.npz"), "--trace", trace]) == 0
    capsysbinary.readouterr()
    assert main(["export", str(path), *inputs, "--diff", trace, "--view", "rolled", "--as", "mermaid", "-q"]) == 0
    text = capsysbinary.readouterr().out.decode()
    assert "differs in 12 of 12" in text and "largest difference 1" in text


def test_whole_numbers_that_are_further_apart_than_their_type_reaches(tmp_path: Path) -> None:
    paths = []
    for name, number in (("a", 2**62), ("b", -(2**62))):
        model = Graph()
        body, start = model.body(), model.parameter("start", "i64", [1])
        x = body.parameter("x", "i64", [1])
        end = body.result(body.apply("Add", x, body.constant(np.array([number])), name="sum"))
        (out,) = model.loop("steps", body, 1, True, [carried(start, x, end)], [last(end)])
        model.result(out, "y")
        (tmp_path / name).mkdir()
        paths.append(model.write(tmp_path / name))
    figure = stepper.draw(paths[0], {"start": np.array([1])}, diff=paths[1], view="unrolled").figure
    assert f"difference {float(2**63):.4g}" in box(figure, "sum").lines
