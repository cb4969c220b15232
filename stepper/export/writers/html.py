"""Write a single HTML file with the iterations of a run, without network or library.

The file runs nothing from the model. It stores content that iterations share once. Without scripts it shows the whole
run, and the body in its last iteration.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from stepper.errors import UsageError
from stepper.export.composing import line_class
from stepper.export.figure_views import iteration_figures
from stepper.export.figures.builder import legend_of
from stepper.export.figures.figure import Figure
from stepper.export.figures.loop_trace import LoopTrace
from stepper.export.fonts import FAMILY
from stepper.export.layout.arrangements import arranged
from stepper.export.options import Theme
from stepper.export.picture import FigureRequest, Picture
from stepper.export.stepping import BodyLayout
from stepper.export.styles import DrawnStep, SteppedDrawing, classes_of, stepped, style_sheet, variables
from stepper.export.textbook import MOST_SHOWN, ends_of, textbook_page
from stepper.export.textbook_lanes import Textbook
from stepper.export.writers.drawings import inline_steps, inline_svg
from stepper.ir.model import Model

_FOLDER = Path(__file__).parent
_SCHEMES = {Theme.AUTO: "light dark", Theme.DARK: "dark"}
_PACE = 1.0
"""Seconds for which an iteration is shown while the page plays."""
_WIDTHS = (620.0, 930.0, 1400.0, 2800.0)
"""Points: the run is drawn in the first of these widths that it fits into."""
_LARGE = 2_000_000
"""Bytes from which on the size of the page is said."""


def write(picture: Picture) -> str:
    """Return the page with the iterations of a run; one of none has the figure of that alone.

    Raise UsageError where none of those chosen ran.
    """
    trace, request = picture.trace, picture.request
    assert trace is not None, "a format of FormatSubject.RUN"
    if not trace.count:
        figure = picture.figure
        return _page(picture, figure, _shown(picture, inline_svg(figure, arranged(figure))), "")
    figures = iteration_figures(trace, request.content)
    if not figures:
        raise UsageError("none of the iterations that are chosen ran, so there is none for a slider to show")
    layout = BodyLayout(figures)
    body = replace(figures[-1], legend=legend_of(figures[-1]) if request.legend else ())
    run = _run(trace, picture.request.content.model)
    gaps = ""
    for begin, end in trace.left_out:
        are = "is" if end == begin + 1 else "are"
        gaps += f'<p class="note">{DrawnStep(begin, end).name.capitalize()} {are} not drawn.</p>\n'
    content = f"""<div id="controls" role="group" aria-label="iterations" hidden>
{_file("html_buttons.html")}
<input id="iteration" type="range" min="0" max="0" value="0" step="1" aria-label="iteration">
<output id="shown" for="iteration" aria-live="off"></output>
</div>
<noscript><p class="note">Without scripts this page shows the whole run, and the body in its last iteration,
{trace.iterations[-1].number} of 0..{trace.count - 1}.</p></noscript>
<p id="told" class="note" role="status"></p>
<p id="aloud" role="status"></p>
{gaps}{"" if run is None else f"<figure>{chr(10)}{inline_steps(run)}{chr(10)}</figure>{chr(10)}"}"""
    content += _shown(picture, inline_svg(body, layout.padded()))
    script = f"""\
<p class="keys">Keys: left and right arrow, Home, End; space plays. #i=7 in the address opens iteration 7, #embed leaves
out what stands around the figures.</p>
<script>
const DATA = {_data(trace, figures, run, embedded=request.embedded)};
{_file("html.js")}</script>
"""
    page = _page(picture, body, content, script)
    if len(page) > _LARGE:
        request.warn(f"the page has {len(figures):,} iterations in {len(page) / 1e6:.1f} MB; --iters chooses fewer")
    return page


def _shown(picture: Picture, drawing: str) -> str:
    """Return a drawing with the caption of its picture."""
    caption = picture.request.caption
    return f"<figure>\n{drawing}\n{f'<figcaption>{escape(caption)}</figcaption>{chr(10)}' if caption else ''}</figure>"


def _page(picture: Picture, figure: Figure, content: str, script: str) -> str:
    """Return the page around its content; `figure` has its title and its facts."""
    request = picture.request
    title = escape(figure.title if request.title is None else request.title)
    facts = (*figure.equations, *figure.facts, *figure.legends)
    return f"""<!DOCTYPE html>
<html lang="en"{' class="embed"' if request.embedded else ""}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="{escape(picture.figure.description)}">
<title>{title}</title>
<style>
{variables(request.theme, ":root")}
{_file("html.css", SCHEME=_SCHEMES.get(request.theme, "light"), FAMILY=FAMILY)}{style_sheet(request.theme)}</style>
</head>
<body>
{f"<h1>{title}</h1>" if title else ""}
{content}
<div class="facts">
{"".join(f"<p>{escape(fact)}</p>" for fact in facts)}
</div>
{script}</body>
</html>
"""


def _file(name: str, **words: str) -> str:
    text = (_FOLDER / name).read_text(encoding="utf-8")
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _run(trace: LoopTrace, model: Model | None) -> SteppedDrawing | None:
    """Return the run, iterations side by side; None where the trace has not the first and the last ones."""
    numbers = [one.number for one in trace.iterations]
    found, book = ends_of(numbers, trace.count), Textbook(trace, model)
    if found is None:
        return None
    ends = None if not found[1] else (min(found[0], MOST_SHOWN), min(found[1], MOST_SHOWN))
    for width in _WIDTHS:
        try:
            told = f"A run of {trace.loop.title}. {trace.ended}."
            return stepped(*textbook_page(book, FigureRequest(), told, ends, width))
        except UsageError:
            continue
    return None


# --- data of the script ---------------------------------------------------------------------------------------------


def _data(trace: LoopTrace, figures: Sequence[Figure], run: SteppedDrawing | None, *, embedded: bool) -> str:
    """Return the data of the page's script: for each box and frame its states, and which one it is in when."""
    data = {
        "last": trace.count - 1,
        "ranges": _ranges([one.number for one in trace.iterations]),
        "pace": _PACE,
        "embed": embedded,
        "run": [] if run is None else [[step.begin, step.end] for step in run.steps],
        "frames": _states(
            (frame.id for frame in figures[0].clusters),
            figures,
            lambda figure, key: [classes_of(figure.clusters_by_id[key]), figure.clusters_by_id[key].label],
        ),
        "boxes": _states((node.id for node in figures[0].nodes), figures, _box_state),
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Return the first and the last of each run of numbers."""
    found = [[numbers[0], numbers[0]]]
    for before, number in pairwise(numbers):
        if number == before + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def _states(
    ids: Iterable[str], figures: Sequence[Figure], state: Callable[[Figure, str], object]
) -> Mapping[str, Mapping[str, Any]]:
    """Return the states of each thing, each once, and, where there are several, which of them an iteration has."""
    found: dict[str, dict[str, Any]] = {}
    for id in ids:
        texts = [json.dumps(state(figure, id)) for figure in figures]
        known = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        found[id] = {"states": [*map(json.loads, known)]}
        if len(known) > 1:
            found[id]["at"] = [known[text] for text in texts]
    return found


def _box_state(figure: Figure, id: str) -> dict[str, object]:
    node = figure.by_id[id]
    rows = () if node.thumbnail is None else node.thumbnail.rows
    shades = [[None if shade is None else round(shade, 3) for shade in row] for row in rows]
    return {
        "lines": [[line_class(node, index), text] for index, text in enumerate(node.texts)],
        "look": classes_of(node),
        **({} if node.thumbnail is None else {"picture": shades}),
    }
