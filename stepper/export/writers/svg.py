"""SVG from our own layout: text stays text, ids and order are stable, and the same figure gives the same bytes.

A run in steps is one SVG that plays them without a script; what several steps share is in it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from html import escape
from typing import Final

from msgspec.structs import replace

from stepper.errors import UsageError
from stepper.export.drawing.composing import composed_alone, drawn
from stepper.export.drawing.styles import (
    POINTS,
    Disc,
    Group,
    PageDrawing,
    Paint,
    Path,
    Rectangle,
    Shape,
    SteppedDrawing,
    TextLine,
    overrides,
    painted,
    unpainted,
)
from stepper.export.figures.figure import Figure
from stepper.export.fonts import FAMILY, LABEL_SIZE
from stepper.export.layout.figure_layout import FigureLayout
from stepper.export.options import LayoutEngine, Theme
from stepper.export.picture import FigureRequest, Picture
from stepper.export.stepping import motion_rules, steps_of, visible_times
from stepper.export.writers.graphviz import laid_out_by_dot

SMALLEST_TEXT: Final = 6.0
"""Pixels; a figure whose text would be smaller on the page is not readable there."""
_LEAST_PART: Final = 0.75
"""How far a page shrinks a figure that is wider than its window, before it scrolls."""
_HOLD: Final = 2
"""Steps for which a picture that plays shows the whole at its end."""


def write(picture: Picture) -> str | bytes:
    """Return the figure as SVG. Raise UsageError where it would not be readable in the width asked for."""
    request = picture.request
    request.warn(f"laid out by {'Graphviz' if request.layout is LayoutEngine.DOT else 'the program itself'}")
    if request.layout is LayoutEngine.DOT:
        return laid_out_by_dot(picture, "svg")
    steps = None if request.pace is None else steps_of(picture)
    drawing = drawn(picture) if steps is None else steps.page
    _check_width(drawing.width * drawing.points / POINTS, request)
    if steps is not None and request.pace is not None:
        return animated_svg(steps, request.pace, request.theme, request.width)
    return svg(drawing, request.theme, request.width)


def _check_width(wide: float, request: FigureRequest) -> None:
    width = request.width
    if width is None or wide <= width:
        return
    size = LABEL_SIZE * width / wide
    if size < SMALLEST_TEXT:
        raise UsageError(
            f"the figure is {wide:,.0f} pixels wide; in {width:,} its text would be {size:.1f} pixels high. "
            "Hide operations (--hide, --only, --carried), fold bodies (--depth 0), or allow more --width"
        )
    request.warn(f"the figure is {wide:,.0f} pixels wide; in {width:,} its text is {size:.1f} pixels high")


def svg(drawing: PageDrawing, theme: Theme = Theme.AUTO, width: int | None = None) -> str:
    """Return a drawing as SVG text; `width` is that of the page in pixels (None: its own).

    Ids and the class that scopes its styles begin with a name that follows from the content, so that several figures
    can stand in one page.
    """
    shapes = "\n".join(_elements(drawing.items, painted(theme), "ID."))
    return _document(drawing, shapes, set(_classes(drawing.items)), theme, width)


def animated_svg(steps: SteppedDrawing, pace: float, theme: Theme = Theme.AUTO, width: int | None = None) -> str:
    """Return a run as SVG that plays its steps, each for `pace` seconds, and then holds the whole, again and again.

    Where nothing moves it is the whole.
    """
    seconds = [pace] * len(steps.steps) + [pace * _HOLD]
    spans = sorted({(one.begin, one.end) for one in steps.shapes if one.end - one.begin <= len(steps.steps)})
    times = [visible_times(_span_class(*span), range(*span), seconds) for span in spans]
    shapes = "\n".join(timed_elements(steps, painted(theme), "ID.", lambda one: f'class="{_span_class(*one)}"'))
    classes = set(_classes(one.shape for one in steps.shapes))
    return _document(steps.page, shapes, classes, theme, width, lambda name: motion_rules(times, sum(seconds), name))


def _span_class(begin: int, end: int) -> str:
    return f"at{begin}-{end}"


def timed_elements(
    steps: SteppedDrawing, paint: Paint, prefix: str, attributes: Callable[[tuple[int, int]], str]
) -> Iterator[str]:
    """Yield the elements of all steps, those that change in groups; the still picture is the whole."""
    whole = len(steps.steps)
    for one in steps.shapes:
        if one.begin == 0 and one.end > whole:
            yield from _elements((one.shape,), paint, prefix)
            continue
        is_still = one.begin <= whole < one.end
        hidden = "" if is_still else ' visibility="hidden"'
        yield f"<g {attributes((one.begin, one.end))}{hidden}>"
        yield from _elements((one.shape if is_still else _unnamed(one.shape),), paint, prefix)
        yield "</g>"


def _unnamed(shape: Shape) -> Shape:
    """Return a shape without ids: the one of the still picture has them."""
    if not isinstance(shape, Group):
        return shape
    return replace(shape, id="", items=tuple(map(_unnamed, shape.items)))


def _document(
    drawing: PageDrawing,
    shapes: str,
    classes: set[str],
    theme: Theme,
    width: int | None,
    motion: Callable[[str], str] = lambda _name: "",
) -> str:
    """Return the SVG of these elements; `motion` gives the rules of a figure of this name that plays."""
    name = f"s{sha256(f'{drawing.title}{drawing.description}{shapes}'.encode()).hexdigest()[:8]}"
    wide = drawing.width * drawing.points / POINTS
    shown = wide if width is None else min(width, wide)
    high = drawing.height * shown / drawing.width
    sheet = overrides(theme, f".{name}", classes) + motion(name)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="stepper {name}" viewBox="0 0 {_n(drawing.width)} '
        f'{_n(drawing.height)}" width="{_n(shown)}" height="{_n(high)}" font-family="{FAMILY}" role="img" '
        f'aria-labelledby="{name}-title {name}-description">',
        f'<title id="{name}-title">{escape(drawing.title)}</title>',
        f'<desc id="{name}-description">{escape(drawing.description)}</desc>',
        *((f"<style>\n{sheet}</style>",) if sheet else ()),
        shapes.replace('id="ID.', f'id="{name}.'),
        "</svg>",
        "",
    ]
    return "\n".join(parts)


def inline_svg(figure: Figure, layout: FigureLayout) -> str:
    """Return the shapes alone, for a page that has the colours, the title and the description itself."""
    drawing = composed_alone(figure, layout)
    size = f'viewBox="0 0 {_n(drawing.width)} {_n(drawing.height)}" width="{_n(drawing.width)}"'
    size += f' style="min-width:{_n(drawing.width * _LEAST_PART)}px"'
    head = f'<svg class="stepper" {size} role="img" aria-label="{escape(drawing.title)}">'
    return "\n".join([head, *_elements(drawing.items, unpainted, ""), "</svg>"])


def inline_steps(steps: SteppedDrawing) -> str:
    """Return the shapes of all steps, for a page whose script shows those of one; each step can be clicked on."""
    page = steps.page
    wide, high = (side * page.points / POINTS for side in (page.width, page.height))
    size = f'viewBox="0 0 {_n(page.width)} {_n(page.height)}" width="{_n(wide)}" height="{_n(high)}"'
    head = f'<svg class="stepper" {size} role="img" aria-label="{escape(page.description)}">'
    shapes = timed_elements(steps, unpainted, "run.", lambda span: f'data-steps="{span[0]} {span[1]}"')
    bands = [one.shape for one in steps.shapes if isinstance(one.shape, Rectangle) and one.shape.style == "band"]
    hits = (
        f'<rect class="hit" data-go="{step.begin}" x="{_n(band.x)}" y="{_n(band.y)}" width="{_n(band.width)}" '
        f'height="{_n(band.height)}" fill="none" pointer-events="all"><title>{step.label}</title></rect>'
        for step, band in zip(steps.steps, bands, strict=True)
    )
    return "\n".join([head, *shapes, *hits, "</svg>"])


def _elements(shapes: Iterable[Shape], paint: Paint, prefix: str, groups: str = "") -> Iterator[str]:
    """Yield the elements of shapes that stand in a group of classes; ids get a prefix."""
    for shape in shapes:
        if isinstance(shape, Group):
            yield from _group(shape, paint, prefix)
            continue
        look = f'class="{shape.style}"{paint(shape.style, groups)}'
        if isinstance(shape, Rectangle):
            place = f'x="{_n(shape.x)}" y="{_n(shape.y)}" width="{_n(shape.width)}" height="{_n(shape.height)}"'
            round = f' rx="{_n(shape.corner)}"' if shape.corner else ""
            clear = f' opacity="{shape.opacity:.2f}"' if shape.opacity is not None else ""
            yield f"<rect {look} {place}{round}{clear}/>"
        elif isinstance(shape, Path):
            yield f'<path {look} d="{_path(shape)}"/>'
        elif isinstance(shape, Disc):
            yield f'<circle {look} cx="{_n(shape.x)}" cy="{_n(shape.y)}" r="{_n(shape.radius)}"/>'
        else:
            yield _text(shape, look)


def _classes(shapes: Iterable[Shape]) -> Iterator[str]:
    for shape in shapes:
        if isinstance(shape, Group):
            yield from shape.classes.split()
            yield from _classes(shape.items)
        else:
            yield shape.style


def _group(group: Group, paint: Paint, prefix: str) -> Iterator[str]:
    name = f' id="{prefix}{escape(group.id)}"' if group.id else ""
    area = "" if group.area is None else f' data-area="{" ".join(map(_n, group.area))}"'
    yield f'<g{name} class="{group.classes}"{area}>'
    if group.title:
        yield f"<title>{escape(group.title)}</title>"
    yield from _elements(group.items, paint, prefix, group.classes)
    yield "</g>"


def _text(words: TextLine, look: str) -> str:
    anchor = "" if words.anchor == "start" else f' text-anchor="{words.anchor}"'
    aloud = ' aria-hidden="true"' if words.hidden else ""
    return f'<text {look} x="{_n(words.x)}" y="{_n(words.y)}"{anchor}{aloud}>{escape(words.text)}</text>'


def _path(path: Path) -> str:
    end = "z" if path.closed else ""
    return "".join("M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in part) + end for part in path.parts)


def _n(number: float) -> str:
    """Return a number of pixels, to a tenth."""
    return f"{number:.1f}".removesuffix(".0")
