"""Where the specification and OpenVINO part, every view of a loop says so, in words that are seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.cli import main
from stepper.export.exporter import draw
from stepper.ir.model import Model
from tests.models import Graph, carried, invariant, joined, last, sliced

INPUTS: dict[str | int, Any] = {"x": np.ones((6, 2), np.float32), "h0": np.zeros((1, 2), np.float32)}


def model_of(folder: Path, *, inside: bool = False) -> Model:
    """A TensorIterator that cuts along axis -2, which OpenVINO refuses; or that in the body of a Loop."""
    net = Graph()
    x, h0 = net.parameter("x", dims=(6, 2)), net.parameter("h0", dims=(1, 2))
    outer = net.body() if inside else net
    rows, start = (outer.parameter("xs", dims=(6, 2)), outer.parameter("g", dims=(1, 2))) if inside else (x, h0)
    body = outer.body()
    row, h = body.parameter("row", dims=(1, 2)), body.parameter("h", dims=(1, 2))
    out = body.result(body.apply("Add", row, h), "h_next")
    entries = [sliced(rows, row, axis=-2), carried(start, h, out)]
    sums, final = outer.tensor_iterator("rows", body, entries, [joined(out), last(out)])
    if inside:
        passed = outer.result(final, "g_next")
        (final,) = net.loop("passes", outer, 2, True, [invariant(x, rows), carried(h0, start, passed)], [last(passed)])
    else:
        net.result(sums, "sums")
    net.result(final, "final")
    return stepper.read_model(net.write(folder))


def seen(svg: str) -> str:
    """The words that are drawn, not those for readers who do not see the figure."""
    return " ".join(re.findall(r">([^<]+)<", re.sub(r"<(desc|title)\b.*?</\1>", "", svg, flags=re.DOTALL)))


def ways(*, inside: bool) -> Iterator[dict[str, Any]]:
    for page in ({}, {"preset": "paper"}, {"preset": "slide"}, {"preset": "docs"}):
        for view in ("model", "rolled", "ports"):
            if not (inside and view == "ports"):  # the port map is of the outer loop
                yield {"view": view, **page}
        yield {"view": "unrolled", "inputs": INPUTS, **page}
        yield {"view": "unrolled", "inputs": INPUTS, "direction": "right", **page}
        yield {"why": "final", "inputs": INPUTS, **page}
    yield {"view": "model", "depth": 0}
    yield {"view": "unrolled", "inputs": INPUTS, "direction": "right", "pace": 1.0}


@pytest.mark.parametrize("inside", [False, True])
def test_every_view_page_and_direction_says_where_the_rule_books_differ(inside: bool, tmp_path: Path) -> None:
    model = model_of(tmp_path, inside=inside)
    for options in ways(inside=inside):
        told = dict(options)
        shown = seen(draw(model, told.pop("inputs", None), **told).text("svg"))
        assert re.search(r"axis -2,\s+which\s+OpenVINO\s+refuses", shown), options


def test_frames_of_iterations_say_it_too(tmp_path: Path) -> None:
    model = model_of(tmp_path)
    np.savez(tmp_path / "inputs.npz", **{str(name): value for name, value in INPUTS.items()})
    for number, options in enumerate((["--direction", "right"], ["--direction", "down"], ["--view", "rolled"])):
        folder = tmp_path / str(number)
        words = ["export", str(model.path), "-q", "--inputs", str(tmp_path / "inputs.npz"), "--frames", str(folder)]
        assert main([*words, *options]) == 0
        frames = [path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())]
        assert len(frames) == 6 and all("which OpenVINO refuses" in seen(frame) for frame in frames), options


def test_a_loop_on_which_they_agree_says_nothing(tmp_path: Path) -> None:
    model = model_of(tmp_path)
    text = model.path.read_text(encoding="utf-8").replace('axis="-2"', 'axis="0"')
    model.path.write_text(text, encoding="utf-8")
    assert "OpenVINO" not in seen(draw(model.path, INPUTS, view="unrolled", direction="right").text("svg"))


def test_the_words_for_readers_aloud_are_of_the_drawing(tmp_path: Path) -> None:
    """Iterations side by side are not said to be under each other; what a caption says comes first."""
    made = draw(model_of(tmp_path), INPUTS, view="unrolled", direction="right", caption="Sums.")
    assert made.page is not None and "under each other" not in made.page.description
    assert made.page.description.startswith(
        "Sums. A run of TensorIterator 'rows', 6 iterations side by side: ended after 6"
    )
