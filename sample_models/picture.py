"""The picture of the README: the date normaliser's loop, iteration by iteration, drawn from a run of the stepper.

`python -m sample_models.picture` writes it. The same run gives the same bytes; shades come
from matrix products, whose last digit may differ from processor to processor, so they are compared as numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

import stepper

FOLDER = Path(__file__).parent / "date_normaliser"
FILE = FOLDER / "loop.svg"
CELL, LEFT, TOP = 30, 56, 98
SHADE = 0.0015
STYLE = """
text { font: 15px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #1f2328 }
.title { font-weight: bold } .quiet { fill: #656d76; font-size: 13px } .written { font-weight: bold; font-size: 18px }
.frame { fill: #ffffff; stroke: #d0d7de }
.cell { fill: #0969da } .grid { fill: none; stroke: #d0d7de; stroke-width: .5 }
.last { fill: #bc4c00; font-weight: bold }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .quiet { fill: #8d96a0 } .frame { fill: #0d1117; stroke: #30363d }
  .cell { fill: #58a6ff } .grid { stroke: #30363d } .last { fill: #f0883e }
}
"""


@dataclass(frozen=True)
class Row:
    """What the picture shows of one iteration: where the decoder looked, what it wrote, whether it goes on."""

    iteration: int
    attention: list[float]
    token: int
    goes_on: bool


def rows() -> Iterator[Row]:
    """Step through the model's loop and read what its back edges carry after each iteration."""
    model = stepper.read_model(FOLDER / "model.xml")
    with np.load(FOLDER / "inputs.npz") as inputs:
        machine = stepper.Machine(stepper.compile_model(model), stepper.bind_inputs(model, dict(inputs)))
    for event in machine.run(stepper.Every.ITERATION):
        loop = event.frame.activation
        if event.kind.name != "ITERATION" or loop is None:
            continue
        program = event.frame.program
        carried = {program.parameter(edge.parameter).name: event.frame.values[edge.result] for edge in loop.plan.merged}
        attention, token = carried["atts.11"][-1], carried["tok.13"][0]
        yield Row(loop.iteration, attention.tolist(), int(token), loop.ended is None)


def text(x: float, y: float, content: str, style: str = "", anchor: str = "start") -> str:
    """One line of text."""
    mark = f' class="{style}"' if style else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{mark}>{escape(content)}</text>'


def picture(found: list[Row], source: str, alphabet: str) -> str:
    """The SVG: a row for each iteration, a column for each character of the input, shaded by attention."""
    right = LEFT + CELL * len(source) + 26
    width, height = right + 216, TOP + CELL * len(found) + 50
    parts = [f'<rect class="frame" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>']
    parts.append(text(20, 32, "Loop 'prim::Loop/Loop' of a date normaliser, after each iteration", "title"))
    parts.append(text(20, 56, "shade: where the decoder looks in its input", "quiet"))
    for column, character in enumerate(source):
        parts.append(text(LEFT + CELL * (column + 0.5), TOP - 10, character, anchor="middle"))
    for x, word in ((right + 24, "writes"), (right + 84, "condition")):
        parts.append(text(x, TOP - 10, word, "quiet", "middle" if word == "writes" else "start"))
    for row in found:
        parts += drawn(row, right, len(found), alphabet)
    written = "".join(alphabet[row.token] for row in found[:-1])
    count = f"{len(found)} iterations; ended: condition became false; wrote {written}"
    parts.append(text(20, height - 18, count, "quiet"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    title = f"<title>{escape(source)} becomes {written}, one iteration of the loop for each character</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def drawn(row: Row, right: int, count: int, alphabet: str) -> list[str]:
    """One iteration."""
    top = TOP + CELL * row.iteration
    middle = top + CELL / 2 + 5
    parts = [text(LEFT - 14, middle, f"#{row.iteration}", "quiet", "end")]
    for column, weight in enumerate(row.attention):
        box = f'x="{LEFT + CELL * column}" y="{top}" width="{CELL}" height="{CELL}"'
        parts.append(f'<rect class="cell" {box} opacity="{weight:.3f}"/><rect class="grid" {box}/>')
    written = "end" if row.iteration == count - 1 else alphabet[row.token]
    parts.append(text(right + 24, middle, written, "last" if written == "end" else "written", "middle"))
    verdict = "true" if row.goes_on else "false: ends"
    parts.append(text(right + 84, middle, verdict, "" if row.goes_on else "last"))
    return parts


def drawn_now() -> str:
    """The picture as a run draws it today."""
    vocabulary = json.loads((FOLDER / "vocab.json").read_text(encoding="utf-8"))
    characters = {number: character for character, number in vocabulary["input"].items()}
    with np.load(FOLDER / "inputs.npz") as inputs:
        source = "".join(characters[int(number)] for number in inputs["src.1"][0])
    return picture(list(rows()), source, vocabulary["output"])


def is_current(written: str) -> bool:
    """Whether a picture is what a run draws today, but for the last digit of a shade."""
    shade = re.compile(r'opacity="([0-9.]+)"')
    now = drawn_now()
    if shade.sub("", written) != shade.sub("", now):
        return False
    pairs = zip(shade.findall(written), shade.findall(now), strict=True)
    return all(abs(float(before) - float(after)) <= SHADE for before, after in pairs)


if __name__ == "__main__":
    FILE.write_text(drawn_now(), encoding="utf-8")
