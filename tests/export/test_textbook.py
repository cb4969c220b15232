"""The figure of textbooks shows the numbers of the run, in the width of the page, and says what it leaves out."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pytest
from lxml import etree
from PIL import Image

import stepper
from stepper.cli import main
from stepper.debug.debugger import Debugger
from stepper.errors import UsageError
from stepper.export.exporter import draw
from stepper.export.figures.loop_trace import find_loop
from stepper.export.fonts import advance
from stepper.export.picture import Picture
from stepper.export.styles import Group, PageDrawing, Rectangle, TextLine
from stepper.export.styles import Path as Outline
from stepper.export.textbook import SMALL
from stepper.export.writers.drawings import svg
from tests.export.reading_back.drawing import SVG, Area, Drawing
from tests.export.runs import NAMES, SAMPLES, sample
from tests.models import Graph, carried, joined, last, sliced
from tests.tables import each_row


def page(name: str, millimetres: float = 170, **options: Any) -> PageDrawing:
    inputs = dict(np.load(SAMPLES / name / "inputs.npz"))
    made = draw(
        sample(name), inputs, view="unrolled", direction="right", width=round(millimetres * 96 / 25.4), **options
    )
    assert made.page is not None
    return made.page


def leaving(svg: str) -> list[str]:
    """The texts, rectangles and points of lines of an SVG that are not all within its viewBox."""
    root = etree.fromstring(svg.encode())
    left, top, wide, high = map(float, root.get("viewBox").split())
    found = []
    for words in Drawing(svg).words:
        area = words.area
        if (
            area.x < left - 0.5
            or area.right > left + wide + 0.5
            or area.y < top - 0.5
            or area.bottom > top + high + 0.5
        ):
            found.append(words.text)
    for item in root.iter(f"{SVG}rect", f"{SVG}path", f"{SVG}line", f"{SVG}polygon"):
        box = [float(item.get(key, "0")) for key in ("x", "y", "width", "height")]
        points = [(box[0], box[1]), (box[0] + box[2], box[1] + box[3])] if item.tag == f"{SVG}rect" else []
        drawn = re.findall(r"([A-Za-z])?\s*(-?[\d.]+)[ ,](-?[\d.]+)", item.get("d") or item.get("points") or "")
        assert not any(letter.islower() for letter, *_ in drawn), "coordinates are absolute"
        points += [(float(x), float(y)) for letter, x, y in drawn if letter != "A"]
        if any(not (left - 0.5 <= x <= left + wide + 0.5 and top - 0.5 <= y <= top + high + 0.5) for x, y in points):
            found.append(etree.tostring(item).decode()[:120])
    return found


@each_row("name", NAMES, quick=3)
def test_nothing_of_a_sample_is_drawn_outside_of_the_page(name: str) -> None:
    inputs = dict(np.load(SAMPLES / name / "inputs.npz"))
    pages: list[dict[str, Any]] = [{"preset": "paper"}, {"preset": "paper", "width": 642}, {"preset": "slide"}]
    for options in (*pages, {"preset": "docs", "direction": "right"}):
        made = draw(sample(name), inputs, view="unrolled", **options)
        assert leaving(made.text("svg")) == [], options
    svg = made.text("svg")
    assert leaving(re.sub(r'viewBox="0 0 [\d.]+', 'viewBox="0 0 300', svg)), "a narrower page is noticed"


def formulas(drawing: PageDrawing) -> list[str]:
    """The whole lines of formulas, whose letters and indices stand in pieces."""
    return [item.title for item in drawing.items if isinstance(item, Group) and item.title]


def texts(drawing: PageDrawing, *styles: str) -> list[str]:
    return [item.text for item in drawing.items if isinstance(item, TextLine) and (not styles or item.style in styles)]


def test_carried_values_stand_between_the_iterations_that_hand_them_on() -> None:
    """The balance grows by the rate: computed here with numpy."""
    inputs = dict(np.load(SAMPLES / "for_loop" / "inputs.npz"))
    outputs = stepper.run(SAMPLES / "for_loop" / "model.xml", inputs)
    shown = page("for_loop", 300)
    principal, rate = inputs["principal"], inputs["rate"]
    norms = [
        float(np.linalg.norm(principal.astype(np.float64) * (1 + rate.astype(np.float64)) ** year)) for year in range(3)
    ]
    found = [float(text) for text in texts(shown, "plain") if re.fullmatch(r"[0-9.]+", text)]
    assert found[:3] == pytest.approx(norms, rel=1e-4)
    assert outputs.loops[0].iterations == 10 and "9" in texts(shown, "number")


@each_row("name", ["date_normaliser", "reverse", "rwkv_overflow", "while_loop", "nested_loop", "for_loop"], quick=1)
@each_row("millimetres", [84, 120, 170])
def test_a_page_keeps_its_width_and_its_letters(name: str, millimetres: int) -> None:
    drawing = page(name, millimetres)
    assert drawing.width == pytest.approx(millimetres * 72 / 25.4, abs=0.5) and drawing.points == 1
    for item in drawing.items:
        if isinstance(item, TextLine):
            bold = item.style not in ("plain", "aside")
            width = advance(item.text, 8 if item.style == "number" else SMALL, bold=bold)
            left = item.x - width * {"start": 0, "middle": 0.5, "end": 1}[item.anchor]
            assert left >= -0.5 and left + width <= drawing.width + 0.5, item
        elif isinstance(item, Rectangle):
            assert item.x >= -0.5 and item.x + item.width <= drawing.width + 0.5
    shown = [int(text) for text in texts(drawing, "number") if text.isdigit()]
    assert 0 in shown
    text = svg(drawing)
    root = etree.fromstring(text.encode())
    assert float(root.get("width", 0)) == pytest.approx(millimetres * 96 / 25.4, abs=1)
    sizes = {float(size) for size in re.findall(r'font-size="([0-9.]+)px"', text)}
    assert min(sizes) >= SMALL


def test_no_text_lies_on_another() -> None:
    for name in ("date_normaliser", "rwkv_overflow", "reverse"):
        boxes = []
        for item in page(name, 84).items:
            if isinstance(item, TextLine) and item.text:
                width = advance(
                    item.text, 8 if item.style == "number" else SMALL, bold=item.style not in ("plain", "aside")
                )
                left = item.x - width * {"start": 0, "middle": 0.5, "end": 1}[item.anchor]
                boxes.append((left, left + width, item.y - 5, item.y, item.text))
        for index, (left, right, top, bottom, text) in enumerate(boxes):
            for other in boxes[index + 1 :]:
                apart = right <= other[0] + 1 or other[1] <= left + 1 or bottom <= other[2] or other[3] <= top
                assert apart, (name, text, other[4])


def test_iterations_that_do_not_fit_are_named_with_what_they_wrote() -> None:
    narrow, wide = page("date_normaliser", 84), page("date_normaliser", 170)
    assert [text for text in texts(narrow, "number") if text.isdigit()][:3] == ["0", "1", "10"]
    assert "2 to 9" in texts(narrow) and "3 to 8" in texts(wide)
    written = np.load(SAMPLES / "date_normaliser" / "expected.npz")
    tokens = next(value for value in written.values() if value.dtype.kind == "i" and value.shape == (11,))
    assert {str(tokens[3:9].min()), f"to {tokens[3:9].max()}"} <= set(texts(wide, "aside"))
    assert "false" in texts(wide, "plain") and texts(wide, "plain").count("true") >= 5


def test_time_runs_to_the_left_where_slices_do(tmp_path: Path) -> None:
    net = Graph()
    x, h0 = net.parameter("x", "f32", (4,)), net.parameter("h0", "f32", (1,))
    body = net.body()
    part, h = body.parameter("part", "f32", (1,)), body.parameter("h", "f32", (1,))
    result = body.result(body.apply("Add", part, h, name="sum"), "sum_result")
    backward = {"start": -1, "end": 0, "stride": -1, "part_size": 1}
    entries = [sliced(x, part, 0, **backward), carried(h0, h, result)]
    outputs = net.tensor_iterator("rows", body, entries, [last(result), joined(result, 0, **backward)])
    for index, value in enumerate(outputs):
        net.result(value, f"out_{index}")
    values = {"x": np.array([1, 2, 4, 8], np.float32), "h0": np.array([0], np.float32)}
    made = draw(net.read(tmp_path), values, view="unrolled", direction="right")
    assert made.page is not None
    items = [item for item in made.page.items if isinstance(item, TextLine) and item.style == "number"]
    row = [
        item
        for item in items
        if item.text in ("0", "1", "2", "3") and item.y == min(one.y for one in items if one.text == "0")
    ]
    heads = [item.text for item in sorted(row, key=lambda item: item.x)]
    assert heads == ["3", "2", "1", "0"]
    numbers = [item for item in items if re.fullmatch(r"[0-9.]+", item.text)]
    rows = sorted({item.y for item in numbers})[-2:]
    joined_row, last_row = (sorted((one.x, float(one.text)) for one in numbers if one.y == y) for y in rows)
    assert [value for _, value in joined_row] == [15, 14, 12, 8] and last_row == joined_row[:1]
    assert "axis 0, start \u22121, end 0, stride \u22121, part_size 1: the last slice first" in texts(made.page)
    plain = [item for item in made.page.items if isinstance(item, TextLine) and item.style == "aside"]
    for word in ("slice", "piece"):
        y = next(item.y for item in plain if item.text == word)
        places = sorted((item.x, item.text) for item in plain if item.y == y and item.text != word)
        assert places == list(zip((item.x for item in sorted(row, key=lambda item: item.x)), "0123", strict=True)), word


def test_without_a_page_no_iteration_of_a_short_run_is_left_out() -> None:
    """A page that has to be met leaves out; of a long run both ends are drawn, and a user can ask for all."""

    def drawn(name: str, **options: Any) -> list[str]:
        warned: list[str] = []
        inputs = dict(np.load(SAMPLES / name / "inputs.npz"))
        made = draw(sample(name), inputs, view="unrolled", direction="right", warn=warned.append, **options)
        assert made.page is not None and leaving(made.text("svg")) == []
        assert any(word.startswith("not drawn: iterations") for word in warned) == bool(
            [text for text in texts(made.page, "aside") if " to " in text and text[0].isdigit()]
        )
        y = next(item.y for item in made.page.items if isinstance(item, TextLine) and item.text == "iteration")
        return [
            item.text
            for item in made.page.items
            if isinstance(item, TextLine) and item.style == "number" and item.y == y
        ]

    assert drawn("reverse") == [str(k) for k in range(8)]
    assert drawn("reverse", width=318) == [str(k) for k in range(8)], "boxes of their numbers alone"
    assert drawn("reverse", width=280) != [str(k) for k in range(8)]
    assert drawn("specification_lstm") == [str(k) for k in (*range(8), *range(21, 25))]
    assert drawn("specification_lstm", iterations=":") == [str(k) for k in range(25)]


def test_wires_lead_from_each_box_to_its_piece_of_each_output_and_from_the_last_one_to_last_values() -> None:
    """for_loop joins two outputs and gives the last value of one."""
    inputs = dict(np.load(SAMPLES / "for_loop" / "inputs.npz"))
    made = draw(sample("for_loop"), inputs, view="unrolled", direction="right")
    assert made.page is not None
    items = made.page.items
    strips = [item for item in items if isinstance(item, Rectangle) and item.style == "output-strip"]
    tips = [item.parts[0][0] for item in items if isinstance(item, Outline) and item.style == "output-wire-tip"]
    cells = [item for item in items if isinstance(item, Rectangle) and item.style == "cell"]
    wires = [item.parts[0] for item in items if isinstance(item, Outline) and item.style == "output-wire"]
    assert len(strips) == len(tips) == len(wires) == 21
    for strip in strips:
        (into,) = [(x, y) for x, y in tips if strip.x < x < strip.x + strip.width and abs(y - strip.y) < 0.01]
        (start,) = [begin for begin, end in wires if begin[0] == into[0] and abs(end[1] - into[1]) < 5]
        (box,) = [one for one in cells if one.x < start[0] < one.x + one.width]
        assert abs(start[1] - (box.y + box.height)) < 0.01
        assert abs(box.x + box.width / 2 - (strip.x + strip.width / 2)) < 0.01
    assert len({x for x, _ in tips}) == 21, "no wire lies on another"
    assert "last value" in texts(made.page, "aside")


def test_nan_and_inf_are_red_words() -> None:
    assert {"1 Inf", "8 NaN", "1 NaN"} <= set(texts(page("rwkv_overflow", 170), "broken"))


def test_a_page_that_is_too_narrow_names_the_least_width() -> None:
    with pytest.raises(UsageError, match=r"does not fit into 40 mm at 7 points; the least width is [0-9]+ mm"):
        page("date_normaliser", 40)


def test_presets_are_pages_of_papers_slides_and_documents(tmp_path: Path) -> None:
    name = SAMPLES / "rwkv_overflow"
    words = ["export", str(name / "model.xml"), "--inputs", str(name / "inputs.npz"), "--view", "unrolled", "-q"]
    slide, paper = tmp_path / "slide.png", tmp_path / "paper.pdf"
    assert main([*words, "--preset", "slide", "-o", str(slide)]) == 0
    assert Image.open(io.BytesIO(slide.read_bytes())).size == (1280, 720)
    assert main([*words, "--preset", "paper", "-o", str(paper)]) == 0
    wide, _ = pdfium.PdfDocument(paper)[0].get_size()
    assert wide == pytest.approx(84 * 72 / 25.4, abs=0.5)
    docs = tmp_path / "docs.svg"
    assert main([*words[:2], "-q", "--preset", "docs", "--view", "rolled", "-o", str(docs)]) == 0
    assert float(etree.parse(docs).getroot().get("width", 0)) <= 820
    assert main([*words, "--direction", "right", "--width", "9yd", "-o", str(docs)]) == UsageError.exit_code


def test_figures_overview_and_inspect_count_the_same_operations_of_a_body(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is constant and what nobody reads are operations, too, wherever they are counted."""
    net = Graph()
    h0 = net.parameter("h0", "f32", (1,))
    body = net.body()
    h = body.parameter("h", "f32", (1,))
    folded = body.apply("Negative", body.constant(np.ones(1, np.float32)), name="constant_part")
    body.apply("Exp", h, name="read_by_nobody")
    result = body.result(body.apply("Add", body.apply("Sin", h, name="sine"), folded, name="sum"), "sum_result")
    net.result(net.loop("loop", body, 2, True, [carried(h0, h, result)], [last(result)])[0], "out")
    path, inputs = net.write(tmp_path), {"h0": np.ones(1, np.float32)}
    made = draw(path, inputs, view="unrolled", direction="right")
    assert made.page is not None and "4 ops" in texts(made.page, "aside")
    assert draw(path, view="ports").figure.clusters[0].label == "body of 4 operations"
    model = stepper.read_model(path)
    run = stepper.Machine(stepper.compile_model(model), stepper.bind_inputs(model, inputs))
    assert Debugger.of(run, ()).overview().loops[0].operations == 4
    assert main(["inspect", str(path)]) == 0
    assert "  body         4 operations: Add 1, Exp 1, Negative 1, Sin 1; Constant " in capfd.readouterr().out


def test_without_a_run_there_are_no_iterations_side_by_side(capfd: pytest.CaptureFixture[str]) -> None:
    model = str(SAMPLES / "while_loop" / "model.xml")
    assert main(["export", model, "-q", "--direction", "right"]) == UsageError.exit_code
    assert (
        capfd.readouterr().err
        == "stepper: --direction right needs the iterations of a run: --view unrolled, with inputs\n"
    )


def test_other_formats_have_the_iterations_below_each_other() -> None:
    inputs = dict(np.load(SAMPLES / "for_loop" / "inputs.npz"))
    made = draw(sample("for_loop"), inputs, view="unrolled", direction="right")
    assert isinstance(made, Picture) and made.text("mermaid").startswith("flowchart")
    assert made.text("tikz").count("body") >= 2


def test_the_side_of_the_if_that_ran_stands_in_each_iteration() -> None:
    """The Collatz sequence halves even numbers (then) and triples odd ones (else)."""
    shown = page("while_loop", 170)
    numbers, number = [], 27
    while number != 1:
        numbers.append(number)
        number = number // 2 if number % 2 == 0 else 3 * number + 1
    iterations = [int(text) for text in texts(shown, "number") if text.isdigit()][:5]
    sides = [text for text in texts(shown, "aside") if text in ("then", "else")]
    assert sides == ["else" if numbers[k] % 2 else "then" for k in iterations]


def test_torn_edges_cut_strips_and_wires_where_they_are() -> None:
    """A torn strip ends where the teeth of the torn edges do."""
    shown = page("date_normaliser", 170)
    edges = [item.parts[0] for item in shown.items if isinstance(item, Outline) and item.style == "tear"]
    assert len(edges) == 2
    begin, end = max(x for x, _ in edges[1]), min(x for x, _ in edges[0])
    strips = [item for item in shown.items if isinstance(item, Rectangle) and item.style == "output-strip"]
    assert sum(abs(one.x - begin) < 0.01 for one in strips) == 3, "one of each of three outputs"
    assert sum(abs(one.x + one.width - end) < 0.01 for one in strips) == 3


def test_what_grows_has_its_shape_between_the_iterations_and_its_pieces_below() -> None:
    """The sequence has one number more after each iteration: the sum of the two before."""
    shown = page("growing_tensor", 300)
    shapes = [text for text in texts(shown, "plain") if re.fullmatch(r"\[\d+\]", text)]
    assert shapes[:4] == ["[2]", "[3]", "[4]", "[5]"] and "|sequence|" not in texts(shown)
    pieces = [int(text) for text in texts(shown, "number") if text.isdigit()][12:24]
    assert pieces[:2] == [1, 2] and all(c == a + b for a, b, c in zip(pieces, pieces[1:], pieces[2:], strict=False))


def test_a_loop_that_does_not_begin_has_its_first_value_straight_past_the_body(tmp_path: Path) -> None:
    net = Graph()
    start, count = net.parameter("start", dims=(1, 4)), net.parameter("count", "i64", ())
    body = net.body()
    state = body.parameter("state", dims=(1, 4))
    out = body.result(body.apply("Tanh", state), "state_next")
    final, pieces = net.loop("never", body, count, True, [carried(start, state, out)], [last(out), joined(out)])
    net.result(final, "final")
    net.result(pieces, "pieces")
    inputs = {"start": np.ones((1, 4), np.float32), "count": np.int64(0)}
    sideways, down = (draw(net.read(tmp_path), inputs, view="unrolled", direction=way) for way in ("right", "down"))
    assert sideways.page is None and sideways.figure == down.figure
    lines = {node.label: node.lines for node in sideways.figure.nodes}
    assert lines["state"] == ("f32[1,4]", "first value = last value")
    assert lines["output 0 → final"] == ("f32[1,4]",) and lines["output 1 → pieces"] == ("f32[0,4]",)
    narrow = draw(SAMPLES / "while_loop" / "model.xml", {"start": np.int64(1)}, view="unrolled", preset="paper")
    assert narrow.page is not None and narrow.page.width * narrow.page.points <= 84 * 72 / 25.4


def test_a_back_edge_that_carries_nothing_is_told_with_the_reason(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(3, 2)), net.body()
    row = body.parameter("row", dims=(1, 2))
    out = body.result(body.apply("Tanh", row), "row_next")
    (found,) = net.tensor_iterator("rows", body, [sliced(x, row)], [joined(out)])
    net.result(found, "y")
    path = net.write(tmp_path)
    text = path.read_text(encoding="utf-8")
    edge = f'<edge from-layer="{out.layer}" to-layer="{row.layer}"/>'
    path.write_text(text.replace("<back_edges>\n</back_edges>", f"<back_edges>{edge}</back_edges>"), encoding="utf-8")
    made = draw(path, {"x": np.ones((3, 2), np.float32)}, view="unrolled", direction="right", width=640)
    assert made.page is not None
    told = " ".join(texts(made.page, "aside"))
    assert "back edge row_next → row has no effect: the Parameter is sliced" in told


def test_a_slide_keeps_its_height_with_a_long_title_and_more_outputs_than_have_room(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(3, 2)), net.body()
    row = body.parameter("row", dims=(1, 2))
    results = [body.result(body.apply("Tanh", row), f"row_{index}") for index in range(9)]
    outputs = net.tensor_iterator("rows_" * 30, body, [sliced(x, row)], [joined(one) for one in results])
    for index, output in enumerate(outputs):
        net.result(output, f"y{index}")
    said: list[str] = []
    inputs = {"x": np.ones((3, 2), np.float32)}
    made = draw(net.read(tmp_path), inputs, view="unrolled", preset="slide", warn=said.append)
    root = etree.fromstring(made.written("svg"))
    assert (float(root.get("width")), float(root.get("height"))) == (1280, 720)
    assert leaving(made.text("svg")) == []
    drawn = [f"output {index}" for index in range(9) if f"output {index}" in made.text("svg").partition("</desc>")[2]]
    assert 0 < len(drawn) < 9 and all(f"output {index}" in "".join(said) for index in range(len(drawn), 9))


def in_boxes(page: PageDrawing) -> list[list[str]]:
    """The lines in each box of a body, from left to right."""
    found = [one for one in page.items if isinstance(one, Rectangle) and one.style == "cell"]
    words = [(one.x, one.y, one.text) for one in page.items if isinstance(one, TextLine) and one.anchor == "middle"]
    groups = [one for one in page.items if isinstance(one, Group) and one.title]
    words += [(line.x, line.y, one.title) for one in groups if isinstance(line := one.items[0], TextLine)]
    lines = []
    for box in sorted(found, key=lambda one: one.x):
        area = Area(box.x, box.y, box.width, box.height)
        lines.append([text for x, y, text in sorted(words, key=lambda one: one[1]) if area.holds(x, y)])
    return lines


def test_indices_stand_below_the_line_as_large_as_the_smallest_letters() -> None:
    shown = page("while_loop", 84)
    (line,) = [
        one for one in shown.items if isinstance(one, Group) and one.title == "peak_t = max(peak_{t−1}, number_t)"
    ]
    pieces = [one for one in line.items if isinstance(one, TextLine)]
    base = pieces[0].y
    assert [one.text for one in pieces] == ["peak", "t", "= max(peak", "t−1", ", number", "t", ")"]
    assert [one.y > base for one in pieces] == [False, True, False, True, False, True, False]
    ends = [one.x + advance(one.text, 7 if one.y > base else 8) for one in pieces]
    assert all(0 <= after.x - end < 3 for end, after in zip(ends, pieces[1:], strict=False)), "no piece lies on another"
    for text in ("svg", "tikz"):
        made = draw(sample("while_loop"), dict(np.load(SAMPLES / "while_loop" / "inputs.npz")), view="unrolled",
                    direction="right", width=318).text(text)  # fmt: skip
        assert "number_{t" not in re.sub(r"<(title|desc)>.*?</\1>|%.*", "", made, flags=re.DOTALL)


def test_the_box_of_a_recurrent_cell_names_it_with_its_units() -> None:
    boxes = in_boxes(page("specification_lstm", 170))
    assert boxes and all(lines == ["LSTMCell", "256 units", "3 ops"] for lines in boxes)
    narrow = page("specification_lstm", 84)
    assert in_boxes(narrow) == [["0"], ["1"], ["24"]] and "body: LSTMCell of 256 units" in texts(narrow)


def test_a_narrow_page_has_all_iterations_in_boxes_of_their_numbers() -> None:
    """reverse: what is handed on stands in the pieces of output 1, each 0.9 times the one before and its reward."""
    narrow = page("reverse", 84)
    assert in_boxes(narrow) == [[str(k)] for k in reversed(range(8))]
    rewards = np.load(SAMPLES / "reverse" / "inputs.npz")["rewards"].reshape(-1).astype(np.float64)
    returns, later = [], 0.0
    for reward in reversed(rewards):
        later = reward + 0.9 * later
        returns.insert(0, later)
    shown = [item for item in narrow.items if isinstance(item, TextLine) and item.style == "plain"]
    strips = [item for item in narrow.items if isinstance(item, Rectangle) and item.style == "output-strip"]
    found = [one.text for strip in sorted(strips, key=lambda one: one.x) for one in shown
             if Area(strip.x, strip.y, strip.width, strip.height).holds(one.x, one.y)]  # fmt: skip
    assert found == [f"{value:.2f}" for value in returns]
    assert f"{returns[0]:.2f} (f32[1,1,1]), the last value" in texts(narrow)
    assert {"read", "output 0"} <= set(texts(narrow, "of-input", "of-output"))
    legend = [line.text for item in narrow.items if isinstance(item, Group) for line in item.items
              if isinstance(line, TextLine)]  # fmt: skip
    assert "carried: what is in output 1" in (*legend, *texts(narrow))


def test_a_short_formula_stands_in_the_boxes_and_a_long_one_below(tmp_path: Path) -> None:
    net = Graph()
    h0, x = net.parameter("h0", "f32", (1,)), net.parameter("x", "f32", (4,))
    body = net.body()
    h, part = body.parameter("h", "f32", (1,)), body.parameter("x_part", "f32", (1,))
    result = body.result(body.apply("Tanh", body.apply("Add", h, part, name="sum"), name="next"), "next_result")
    entries = [carried(h0, h, result), sliced(x, part, 0)]
    net.result(net.loop("loop", body, 4, True, entries, [last(result)])[0], "out")
    inputs = {"h0": np.ones(1, np.float32), "x": np.ones(4, np.float32)}
    made = draw(net.write(tmp_path), inputs, view="unrolled", direction="right").page
    assert made is not None
    assert len(in_boxes(made)) == 4
    for lines in in_boxes(made):
        assert " ".join(lines) == "h_t = tanh(h_{t−1} + x_part_t) 2 ops"
    assert "h_t = tanh(h_{t−1} + x_part_t)" not in formulas(made)
    long = page("while_loop")
    assert all(lines[:2] == ["body", "6 ops"] for lines in in_boxes(long))
    assert "goes on while number_t ≠ 1" in formulas(long)


def test_a_body_without_a_formula_tells_its_main_operations_in_the_box_or_below() -> None:
    body = find_loop(sample("date_normaliser"), None).body.graph
    counts = Counter(layer.type for layer in body.operations)
    wide, narrow = page("date_normaliser"), page("date_normaliser", 84)
    for lines in in_boxes(wide):
        assert lines[:3] == ["body", f"{counts.total()} ops", f"{counts['MatMul']} MatMul"]
    assert not any(re.search(r"[A-Z][a-z]+, .*\d$", line) for line in texts(narrow, "plain"))
    told = " ".join(texts(narrow, "plain"))
    told = told[told.index("body: ") :].removeprefix("body: ")
    named = re.findall(r"(?:(\d+) )?([A-Z]\w+)", told)
    assert named[0] == (str(counts["MatMul"]), "MatMul")
    assert all(counts[type] == int(count or 1) for count, type in named)
    assert {type for _, type in named} >= {"Add", "Tanh", "Softmax", "TopK"} & set(counts)
