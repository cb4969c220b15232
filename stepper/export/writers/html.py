"""A single HTML file with a slider over the iterations of a run: no network, no library, nothing from the model run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from msgspec.structs import replace

from stepper.errors import UsageError
from stepper.export.drawing.composing import line_class
from stepper.export.drawing.styles import classes_of, style_sheet, variables
from stepper.export.figures.figure import Figure, FigureNode, Thumbnail
from stepper.export.figures.legend import legend_of
from stepper.export.fonts import FAMILY
from stepper.export.layout.compound import arrange_level, title_width
from stepper.export.layout.figure_layout import FigureLayout, largest, size_of
from stepper.export.picture import Picture
from stepper.export.views.unrolled import iteration_figures
from stepper.export.writers.svg import inline_svg

_SCRIPT = """
const slider = document.getElementById("iteration");
const shown = document.getElementById("shown");
const space = document.querySelector("svg").namespaceURI;
const made = (name, look, attributes) => {
  const element = document.createElementNS(space, name);
  element.setAttribute("class", look);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};
function drawLine(place, shades, x, y, width, height) {
  const step = width / (shades.length - 1);
  let path = "", down = false;
  shades.forEach((shade, index) => {
    if (shade !== null) path += `${down ? "L" : "M"}${x + index * step} ${y + (1 - shade) * height}`;
    down = shade !== null;
  });
  place.append(made("path", "spark", {d: path}));
}
function drawShades(place, rows, x, y, width, height) {
  const high = height / rows.length;
  rows.forEach((shades, row) => {
    const wide = Math.min(width / shades.length, 2 * high);
    const left = x + (width - wide * shades.length) / 2;
    shades.forEach((shade, column) => place.append(made("rect", shade === null ? "mark" : "shade", {
      x: left + column * wide, y: y + row * high, width: wide, height: high,
      opacity: shade === null ? 1 : .06 + .94 * shade,
    })));
  });
}
function draw(place, rows) {
  place.replaceChildren();
  const area = place.dataset.area.split(" ").map(Number);
  if (rows && rows.length === 1 && rows[0].length > 1) drawLine(place, rows[0], ...area);
  else if (rows) drawShades(place, rows, ...area);
}
function show() {
  const step = DATA.iterations[slider.value];
  shown.textContent = step.label;
  slider.setAttribute("aria-valuetext", step.label);
  for (const [id, [look, title]] of Object.entries(step.frames)) {
    const frame = document.getElementById(id);
    frame.setAttribute("class", look);
    frame.querySelector("text").textContent = title;
  }
  for (const [id, state] of Object.entries(step.boxes)) {
    const box = document.getElementById(id);
    box.setAttribute("class", state.look);
    box.querySelectorAll("text").forEach((line, index) => {
      const [look, text] = state.lines[index] || ["small", ""];
      line.setAttribute("class", look);
      line.textContent = text;
    });
    const place = box.querySelector(".picture");
    if (place) draw(place, state.picture);
  }
}
function move(by) { slider.value = Number(slider.value) + by; show(); }
slider.addEventListener("input", show);
document.getElementById("before").addEventListener("click", () => move(-1));
document.getElementById("after").addEventListener("click", () => move(1));
show();
"""

_PAGE = f"""
body {{ font: 15px {FAMILY}; margin: 2em; background: var(--page); color: var(--ink); }}
h1 {{ font-size: 1.2em; }}
.controls {{ position: sticky; top: 0; background: var(--page); padding: .5em 0; display: flex; gap: .7em;
  align-items: center; }}
.controls input {{ flex: 1; max-width: 50em; }}
.controls output {{ min-width: 18ch; }}
button {{ font: inherit; }}
svg {{ max-width: 100%; height: auto; }}
figure {{ margin: 0; }}
figcaption {{ max-width: 50em; margin: .7em 0; }}
"""


def write(picture: Picture) -> str:
    """Return the page with the iterations of a run. Raise UsageError for a run of none."""
    assert picture.trace is not None, "a format of FormatSubject.RUN"
    figures, theme = (
        iteration_figures(picture.trace, picture.request.content, picture.loop_facts),
        picture.request.theme,
    )
    if not figures:
        raise UsageError("the loop ran no iteration, so there is none for a slider to show")
    first = replace(figures[0], legend=legend_of(figures[0]) if picture.request.legend else ())
    drawing = _padded(_arranged(figures), figures)
    data = {"iterations": [_state(figure) for figure in figures]}
    code = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")
    facts = "".join(f"<p>{escape(fact)}</p>" for fact in (*first.facts, *first.legends))
    title = escape(first.title if picture.request.title is None else picture.request.title)
    caption = f"<figcaption>{escape(picture.request.caption)}</figcaption>" if picture.request.caption else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="{escape(picture.figure.description)}">
<title>{title}</title>
<style>
{variables(theme, ":root")}{_PAGE}{style_sheet(theme)}</style>
</head>
<body>
{f"<h1>{title}</h1>" if title else ""}
<div class="controls">
<button id="before" aria-label="iteration before">&larr;</button>
<input id="iteration" type="range" min="0" max="{len(figures) - 1}" value="0" step="1" aria-label="iteration">
<button id="after" aria-label="next iteration">&rarr;</button>
<output id="shown" for="iteration">{escape(_label(first))}</output>
</div>
<figure>
{inline_svg(first, drawing)}
{caption}
</figure>
{facts}
<script>
const DATA = {code};
{_SCRIPT}</script>
</body>
</html>
"""


def _arranged(figures: Sequence[Figure]) -> FigureLayout:
    """Return one layout for all iterations, with room for the texts of each."""
    first = figures[0]
    sizes = {node.id: largest(size_of(figure.by_id[node.id]) for figure in figures) for node in first.nodes}
    for frame in first.clusters:
        sizes[frame.id] = largest((title_width(figure.clusters_by_id[frame.id]), 0) for figure in figures)
    return arrange_level(first, "", sizes)


def _padded(drawing: FigureLayout, figures: Sequence[Figure]) -> FigureLayout:
    """Return the drawing with as many lines, and a picture as high, in each box as it has in some iteration."""
    padded: dict[str, FigureNode] = {}
    for box in drawing.boxes:
        node, states = box.node, [figure.by_id[box.node.id] for figure in figures]
        missing = max(len(state.texts) for state in states) - len(node.texts)
        pictures = [state.thumbnail for state in states if state.thumbnail is not None]
        highest = max(pictures, key=lambda picture: picture.height, default=None)
        padded[node.id] = replace(node, lines=(*node.lines, *[""] * missing), thumbnail=highest)
    made = drawing.renamed(padded, {})
    made.lines = [line._replace(idle=False) for line in made.lines]  # they stay while the sides of Ifs take turns
    return made


def _state(figure: Figure) -> dict[str, object]:
    """Return the state of the page in one iteration."""
    boxes = {
        node.id: {
            "lines": [[line_class(node, index), text] for index, text in enumerate(node.texts)],
            "look": classes_of(node),
            **({} if node.thumbnail is None else {"picture": _shades(node.thumbnail)}),
        }
        for node in figure.nodes
    }
    frames = {frame.id: [classes_of(frame), frame.label] for frame in figure.clusters}
    return {"label": _label(figure), "frames": frames, "boxes": boxes}


def _shades(picture: Thumbnail) -> list[list[float | None]]:
    return [[None if shade is None else round(shade, 3) for shade in row] for row in picture.rows]


def _label(figure: Figure) -> str:
    return figure.notes[0]
