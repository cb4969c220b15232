"""A single HTML file with a slider over the iterations of a run: no network, no library, nothing from the model run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from html import escape

from stepper.export.arrange import arrange_level
from stepper.export.drawing import Drawing, largest, size_of
from stepper.export.figure import Figure, Node
from stepper.export.svg import inline_svg, line_class, style
from stepper.export.themes import FONT, Theme, variables

_SCRIPT = """
const slider = document.getElementById("iteration");
const shown = document.getElementById("shown");
function show() {
  const step = DATA.iterations[slider.value];
  shown.textContent = step.label;
  slider.setAttribute("aria-valuetext", step.label);
  for (const [id, state] of Object.entries(step.boxes)) {
    const box = document.getElementById(id);
    box.classList.toggle("highlighted", state.highlighted);
    box.querySelectorAll("text").forEach((line, index) => {
      const [look, text] = state.lines[index] || ["small", ""];
      line.setAttribute("class", look);
      line.textContent = text;
    });
  }
}
function move(by) { slider.value = Number(slider.value) + by; show(); }
slider.addEventListener("input", show);
document.getElementById("before").addEventListener("click", () => move(-1));
document.getElementById("after").addEventListener("click", () => move(1));
show();
"""

_PAGE = f"""
body {{ font: 15px {FONT}; margin: 2em; background: var(--page); color: var(--ink); }}
h1 {{ font-size: 1.2em; }}
.controls {{ position: sticky; top: 0; background: var(--page); padding: .5em 0; display: flex; gap: .7em;
  align-items: center; }}
.controls input {{ flex: 1; max-width: 50em; }}
.controls output {{ min-width: 18ch; }}
button {{ font: inherit; }}
svg {{ max-width: 100%; height: auto; }}
"""


def html(figures: Sequence[Figure], theme: Theme = Theme.AUTO) -> str:
    """The page; `figures` are the iterations to choose from, alike but for texts. ValueError for none."""
    if not figures:
        raise ValueError("no iteration to show")
    first = figures[0]
    lines = {node.id: max(len(figure.by_id[node.id].texts) for figure in figures) for node in first.nodes}
    drawing = _padded(_arranged(figures), lines)
    data = {"iterations": [_state(figure) for figure in figures]}
    code = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")
    facts = "".join(f"<p>{escape(fact)}</p>" for fact in first.facts)
    title = escape(first.title)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="{escape(first.description)}">
<title>{title}</title>
<style>
{variables(theme, ":root")}{_PAGE}{style(theme)}</style>
</head>
<body>
<h1>{title}</h1>
<div class="controls">
<button id="before" aria-label="iteration before">&larr;</button>
<input id="iteration" type="range" min="0" max="{len(figures) - 1}" value="0" step="1" aria-label="iteration">
<button id="after" aria-label="next iteration">&rarr;</button>
<output id="shown" for="iteration">{escape(_label(first))}</output>
</div>
{inline_svg(first, drawing)}
{facts}
<script>
const DATA = {code};
{_SCRIPT}</script>
</body>
</html>
"""


def _arranged(figures: Sequence[Figure]) -> Drawing:
    """One layout for all iterations, with room for the texts of each."""
    first = figures[0]
    sizes = {node.id: largest(size_of(figure.by_id[node.id]) for figure in figures) for node in first.nodes}
    return arrange_level(first, "", sizes)


def _padded(drawing: Drawing, lines: dict[str, int]) -> Drawing:
    """The drawing with as many lines in each box as it has in some iteration."""
    padded: dict[str, Node] = {}
    for box in drawing.boxes:
        node = box.node
        missing = lines[node.id] - len(node.texts)
        padded[node.id] = replace(node, lines=(*node.lines, *[""] * missing), thumbnail=None)
    return drawing.renamed(padded, {})


def _state(figure: Figure) -> dict[str, object]:
    """What the page shows of one iteration."""
    boxes = {
        node.id: {
            "lines": [[line_class(node, index), text] for index, text in enumerate(node.texts)],
            "highlighted": node.highlighted,
        }
        for node in figure.nodes
    }
    return {"label": _label(figure), "boxes": boxes}


def _label(figure: Figure) -> str:
    return figure.notes[0]
