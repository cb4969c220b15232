"""The overview as a part of a page: its pictures are the values of the run, and no name becomes an element."""

from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import stepper
from stepper.debug.debugger import Debugger
from stepper.export.overview_page import overview_html, scale_text, strip
from stepper.integrations.following import Follower
from stepper.tensors.histories import Capacity, HistoryRecorder, ValueHistory
from tests.models import Graph, carried, joined, last
from tests.tables import each_row

SAMPLES = Path(__file__).parents[3] / "sample_models"


class Elements(HTMLParser):
    """The elements of a page and their attributes; an element that is not closed fails."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))
        if tag not in ("img", "rect", "meta"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "rect":
            assert self._open.pop() == tag


def page_of(debugger: Debugger) -> str:
    return overview_html(debugger.run_overview(seconds=20), debugger.machine.compiled)


def history(numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]], type: str = "f32") -> ValueHistory:
    """A value whose columns are these rows."""
    count, size = numbers.shape
    spans = np.stack([np.arange(count), np.arange(count) + 1], axis=1)
    return ValueHistory(type, (size,), count, is_whole=True, spans=spans, numbers=numbers[None])


def pixels(picture: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    (content,) = re.findall(r"data:image/png;base64,([^\"]*)", picture)
    with Image.open(io.BytesIO(base64.b64decode(content))) as image:
        return np.asarray(image.convert("RGBA"))


def test_a_column_is_an_iteration_and_a_row_an_element() -> None:
    values = np.array([[0.0, 1.0, -4.0], [4.0, np.nan, np.inf]])
    found = pixels(strip(history(values)))
    assert found.shape == (3, 2, 4)
    assert found[0, 0, 3] == 0, "zero is the ground"
    warm, cool = found[0, 1], found[2, 0]
    assert warm[0] > warm[2] and cool[2] > cool[0] and warm[3] == cool[3] == 255, "above and below zero, both full"
    assert 0 < found[1, 0, 3] < 128 and (found[1, 0, :3] == warm[:3]).all(), "a quarter of the full magnitude"
    nan, infinite = found[1, 1], found[2, 1]
    assert nan[3] == infinite[3] == 255 and nan[0] > 150 and tuple(nan) != tuple(infinite)
    assert scale_text(history(values)) == "±4"


def test_numbers_and_truths_are_written_and_single_floats_are_bars() -> None:
    assert re.findall(r"<span>(\w+)</span>", strip(history(np.array([[1.0], [0.0]]), "boolean"))) == ["T", "F"]
    assert re.findall(r"<span>(-?\d+)</span>", strip(history(np.array([[12.0], [-3.0]]), "i64"))) == ["12", "-3"]
    heights = [float(one) for one in re.findall(r'height="([\d.]+)"', strip(history(np.array([[0.0], [5.0], [10.0]]))))]
    assert heights[0] < 0.1 and heights[1] == pytest.approx((heights[0] + heights[2]) / 2, abs=0.01)
    assert heights[2] == 1


def test_what_the_rules_of_a_run_find_and_what_was_looked_for_stand_on_the_page(tmp_path: Path) -> None:
    """13! leaves i32; the overview of a session says so as `check` does."""
    net = Graph()
    body, start = net.body(), net.constant([1], np.int32)
    f, n = body.parameter("f", "i32", (1,)), body.parameter("n", "i32", (1,))
    product = body.result(body.apply("Multiply", f, n, name="f_next"))
    following = body.result(body.apply("Add", n, body.constant([1], np.int32)))
    (end,) = net.loop(
        "factorial", body, 14, True, [carried(start, f, product), carried(start, n, following)], [last(product)]
    )
    net.result(end, "f_end")
    page = Follower(Debugger(stepper.read_model(net.write(tmp_path)), {})).overview()
    assert "Multiply &#x27;f_next&#x27; leaves the range of i32: 6,227,020,800 becomes" in page
    assert page.count("checked</span> NaN, Inf, shapes, recurrence, integer overflow") == 1


def test_names_are_text(tmp_path: Path) -> None:
    evil = '</td><script>alert(1)</script><img src=x onerror=alert(1)>" onmouseover="alert(1)'
    net = Graph()
    body = net.body()
    x = body.parameter("x", "f32", (3,))
    following = body.result(body.apply("Tanh", x, name="y"), "x_next")
    start = net.parameter("start", "f32", (3,))
    for index, output in enumerate(
        net.loop("loop", body, 3, True, [carried(start, x, following)], [last(following), joined(following)])
    ):
        net.result(output, f"out_{index}")
    path = net.write(tmp_path)
    text = path.read_text()
    quoted = evil.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    for name in ("start", "loop", "x", "out_0"):
        assert f'name="{name}"' in text
        text = text.replace(f'name="{name}"', f'name="{name}{quoted}"')
    path.write_text(text)
    debugger = Debugger(stepper.read_model(path), {0: np.ones(3, np.float32)})
    found = Elements(page_of(debugger)).found
    assert {tag for tag, _ in found} <= {
        "div",
        "style",
        "section",
        "p",
        "b",
        "span",
        "table",
        "tr",
        "td",
        "img",
        "button",
    }
    for tag, attributes in found:
        assert not [name for name in attributes if name.startswith("on")]
        if tag == "img":
            assert (attributes["src"] or "").startswith("data:image/png;base64,")


@each_row("sample", ["rwkv_overflow", "nested_loop", "while_loop", "growing_tensor", "specification_lstm"])
def test_a_page_needs_nothing_from_elsewhere_and_stays_small(sample: str) -> None:
    inputs = dict(np.load(SAMPLES / sample / "inputs.npz"))
    page = page_of(Debugger(stepper.read_model(SAMPLES / sample / "model.xml"), inputs))
    Elements(page)
    assert "http" not in page and "<script" not in page
    assert len(page) < 150_000


def test_a_value_of_changing_size_is_drawn_by_its_largest_element_with_its_range() -> None:
    recorder = HistoryRecorder(Capacity())
    for values in ([3], [1, -7], [5, 2, 4]):
        recorder.append(np.array(values, np.int64))
    found = recorder.view()
    assert found is not None and scale_text(found) == "-7 to 5" and "<svg" in strip(found)
