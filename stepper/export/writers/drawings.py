"""Drawings from our own layout: SVG, PNG, PDF and TikZ.

SVG: text stays text, ids and order are stable, and the same figure gives the same bytes. A run in steps is one SVG that
plays them without a script; what several steps share is in it once. PDF has a page of its own size with the font in it.
TikZ is text for LaTeX, `\\input` into a document that loads the package tikz; its font is the document's, and each line
is scaled to the width that the layout gave it where that font is wider.
"""

from __future__ import annotations

import logging
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from stepper.errors import UsageError
from stepper.export.composing import composed_alone, drawn
from stepper.export.figures.figure import Figure
from stepper.export.fonts import BOLD, FAMILY, LABEL_SIZE, REGULAR, advance, missing
from stepper.export.layout.figure_layout import FigureLayout
from stepper.export.options import LayoutEngine, Theme
from stepper.export.picture import FigureRequest, Picture
from stepper.export.stepping import motion_rules, steps_of, visible_times
from stepper.export.styles import (
    POINTS,
    Disc,
    Group,
    PageDrawing,
    Paint,
    Palette,
    Path,
    Rectangle,
    Shape,
    SteppedDrawing,
    TextLine,
    overrides,
    painted,
    palette,
    properties_of,
    unpainted,
)
from stepper.export.writers.graph_texts import laid_out_by_dot
from stepper.wording import install_line

if TYPE_CHECKING:
    from fpdf import FPDF


SMALLEST_TEXT = 6.0
"""Pixels; a figure whose text would be smaller on the page is not readable there."""
_LEAST_PART = 0.75
"""How far a page shrinks a figure that is wider than its window, before it scrolls."""
_HOLD = 2
"""Steps for which a picture that plays shows the whole at its end."""


def write_svg(picture: Picture) -> str | bytes:
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
    """Return a drawing as SVG text; `width` is the page width in pixels (None: its own).

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
            anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
            yield f'<text {look} x="{_n(shape.x)}" y="{_n(shape.y)}"{anchor}>{escape(shape.text)}</text>'


def leaves(shapes: Iterable[Shape], groups: str = "") -> Iterator[tuple[Rectangle | Path | Disc | TextLine, str]]:
    """Yield the shapes within groups, each with the classes of its innermost group."""
    for shape in shapes:
        if isinstance(shape, Group):
            yield from leaves(shape.items, shape.classes)
        else:
            yield shape, groups


def points_of(drawing: PageDrawing, width: int | None) -> float:
    """Return the points per unit of a drawing on a page.

    `width` is the width of the page in pixels (None: the drawing's width).
    """
    wide = drawing.width * drawing.points / POINTS
    return drawing.points * (1.0 if width is None else min(1.0, width / wide))


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


def _path(path: Path) -> str:
    end = "z" if path.closed else ""
    return "".join("M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in part) + end for part in path.parts)


def _n(number: float) -> str:
    """Return a number of pixels, to a tenth."""
    return f"{number:.1f}".removesuffix(".0")


LARGEST = 32_767
"""Pixels along a side; larger pictures many programs refuse or shrink."""
_MOST = 200_000_000
"""Pixels in all: 800 MB while the picture is painted."""

_BEHIND_HEADER = 33
"""Bytes of the signature and of IHDR, which is the first chunk."""


def write_png(picture: Picture) -> bytes:
    """Return the figure as PNG. Raise UsageError where it is larger than a PNG can reasonably be."""
    request = picture.request
    if request.layout is LayoutEngine.DOT:
        return laid_out_by_dot(picture, "png")
    drawing = drawn(picture)
    scale = request.scale * points_of(drawing, request.width) / POINTS
    wide, high = round(drawing.width * scale), round(drawing.height * scale)
    if max(wide, high) > LARGEST or wide * high > _MOST:
        raise UsageError(
            f"the picture would have {wide:,} x {high:,} pixels; a PNG has at most {LARGEST:,} along a side and "
            f"{_MOST:,} in all here. Choose less (--iters, --depth 0), a smaller --scale, or --as svg or pdf"
        )
    resvg_py = _drawer("PNG", "resvg_py")
    theme = request.theme.fixed
    pixels: bytes = resvg_py.svg_to_bytes(
        svg_string=svg(drawing, theme),
        zoom=scale * POINTS / drawing.points,
        skip_system_fonts=True,
        font_files=[str(REGULAR), str(BOLD)],
        font_family="Liberation Sans",
        sans_serif_family="Liberation Sans",
    )
    said = (_international_text("Title", drawing.title), _international_text("Description", drawing.description))
    return b"".join((pixels[:_BEHIND_HEADER], *said, pixels[_BEHIND_HEADER:]))


def _international_text(keyword: str, text: str) -> bytes:
    """Return the iTXt chunk of a text, uncompressed; with `Title` and `Description` a PNG says what it shows."""
    data = keyword.encode("latin-1") + bytes(5) + text.replace("\0", "").encode("utf-8", "backslashreplace")
    return png_chunk(b"iTXt", data)


def png_chunk(name: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


_LARGEST = 14_400
"""Points along a side of a page, the limit of the format (ISO 32000-1, annex C)."""
_FONT = "Liberation"


def write_pdf(picture: Picture) -> bytes:
    """Return the figure as a page of PDF of its own size. Raise UsageError where that is larger than pages can be."""
    request = picture.request
    if request.layout is LayoutEngine.DOT:
        return laid_out_by_dot(picture, "pdf")
    drawing = drawn(picture)
    theme = request.theme.fixed
    scale = points_of(drawing, request.width)
    wide, high = drawing.width * scale, drawing.height * scale
    if max(wide, high) > _LARGEST:
        raise UsageError(
            f"the page would have {wide:,.0f} x {high:,.0f} points; PDF allows {_LARGEST:,} along a side. "
            "Choose less (--iters, --depth 0) or --as svg"
        )
    texts = (shape.text for shape, _ in leaves(drawing.items) if isinstance(shape, TextLine))
    unknown = "".join(dict.fromkeys(missing("".join(texts))))
    if unknown:
        request.warn(f"the font of the PDF has no {' '.join(unknown[:10])}; --as svg uses the fonts of its reader")
    return pdf(drawing, palette(theme), scale)


def _drawer(format: str, module: str) -> Any:
    """Return a library that the plain installation leaves out. UsageError where it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(f"{format} needs {error.name}: {install_line('figures')}; --as svg needs nothing") from None


def pdf(drawing: PageDrawing, colours: Palette, scale: float = POINTS) -> bytes:
    """Return a drawing as a page of PDF; `scale` is points a pixel."""
    document = _drawer("PDF", "fpdf").FPDF(unit=scale, format=(drawing.width, drawing.height))
    document.set_creation_date(datetime(2000, 1, 1, tzinfo=UTC))  # the same bytes whenever it is written
    document.set_producer("stepper")
    document.set_title(drawing.title)
    document.set_subject(drawing.description)
    document.set_lang("en")
    document.set_auto_page_break(False)
    document.set_margin(0)
    document.add_font(_FONT, "", REGULAR)
    document.add_font(_FONT, "B", BOLD)
    document.add_page()
    with document._marked_sequence(title=drawing.title, alt_text=drawing.description):  # as its own images are
        _Page(document, colours).draw(drawing.items)
    logger = logging.getLogger("fpdf")  # of letters that the font does not have the request has been told
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return bytes(document.output())
    finally:
        logger.setLevel(before)


class _Page:
    """A page that shapes are painted on."""

    def __init__(self, document: FPDF, colours: Palette) -> None:
        self._document = document
        self._paint = cache(lambda style, groups: properties_of(style, groups, colours))

    def draw(self, shapes: Iterable[Shape]) -> None:
        """Paint shapes."""
        for shape, groups in leaves(shapes):
            properties = self._paint(shape.style, groups)
            if isinstance(shape, TextLine):
                self._words(shape, properties)
            else:
                self._outline(shape, properties)

    def _outline(self, shape: Rectangle | Path | Disc, properties: dict[str, str]) -> None:
        with self._document.new_path() as path:
            style = path.style
            style.fill_color = _colour(properties.get("fill", "none"))
            style.stroke_color = _colour(properties.get("stroke", "none"))
            style.stroke_width = float(properties.get("stroke-width", 1))
            style.stroke_cap_style = properties.get("stroke-linecap", "butt")
            style.stroke_join_style = properties.get("stroke-linejoin", "miter")
            style.stroke_dash_pattern = [float(part) for part in properties.get("stroke-dasharray", "").split()] or None
            style.stroke_dash_phase = float(properties.get("stroke-dashoffset", 0))
            style.auto_close = False
            if isinstance(shape, Rectangle):
                style.fill_opacity = 1 if shape.opacity is None else shape.opacity
                corner = min(shape.corner, shape.height / 2, shape.width / 2)
                path.rectangle(shape.x, shape.y, shape.width, shape.height, corner, corner)
            elif isinstance(shape, Disc):
                path.circle(shape.x, shape.y, shape.radius)
            else:
                for part in shape.parts:
                    path.move_to(*part[0])
                    for point in part[1:]:
                        path.line_to(*point)
                    if shape.closed:
                        path.close()

    def _words(self, words: TextLine, properties: dict[str, str]) -> None:
        if not words.text:
            return
        bold = properties.get("font-weight") == "bold"
        size = float(properties["font-size"].removesuffix("px"))
        width = advance(words.text, size, bold=bold)
        x = words.x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[words.anchor]
        document = self._document
        document.set_font(_FONT, "B" if bold else "", size * document.k)
        document.set_text_color(properties["fill"])
        document.text(x, words.y, words.text)


def _colour(word: str) -> str | None:
    return None if word == "none" else word


def _table(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split())


_ESCAPED = {
    **{letter: f"\\{letter}" for letter in "#$%&_{}"},
    '"': r"\textquotedbl{}",
    **_table(
        r"\=\textbackslash{} ~=\textasciitilde{} ^=\textasciicircum{} <=\ensuremath{<} >=\ensuremath{>} "
        r"|=\ensuremath{|} ←=\ensuremath{\leftarrow} →=\ensuremath{\rightarrow} ×=\ensuremath{\times} "
        r"·=\ensuremath{\cdot} ⋯=\ensuremath{\cdots} …=\ldots{} ≤=\ensuremath{\le} ≥=\ensuremath{\ge} "
        r"≠=\ensuremath{\ne} −=\ensuremath{-} ∞=\ensuremath{\infty} √=\ensuremath{\surd} ±=\ensuremath{\pm} "
        r"–=\textendash{} ›=\ensuremath{\rangle} ▼=\ensuremath{\bigtriangledown} ᵀ=\textsuperscript{T} "
        r"¹=\textsuperscript{1} ²=\textsuperscript{2} ³=\textsuperscript{3} µ=\ensuremath{\mu} "
        r"'=\textquotesingle{} -={-} "
    ),
}
_GREEK = _table(
    "α=alpha β=beta γ=gamma δ=delta ε=varepsilon ζ=zeta η=eta θ=theta ι=iota κ=kappa λ=lambda μ=mu ν=nu "
    "ξ=xi π=pi ρ=rho ς=varsigma σ=sigma τ=tau υ=upsilon φ=varphi χ=chi ψ=psi ω=omega Γ=Gamma Δ=Delta "
    "Θ=Theta Λ=Lambda Ξ=Xi Π=Pi Σ=Sigma Υ=Upsilon Φ=Phi Ψ=Psi Ω=Omega "
)
_LATIN = frozenset("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ")
"""Letters of the encoding T1 that LaTeX knows in UTF-8."""
_ANCHORS = {"start": "base west", "middle": "base", "end": "base east"}
_CAPS = {"square": "rect"}


def write_tikz(picture: Picture) -> str:
    """Return the figure as a `tikzpicture`, for light pages where the theme is auto."""
    request = picture.request
    drawing = drawn(picture)
    return tikz(drawing, palette(request.theme), points_of(drawing, request.width))


def tikz(drawing: PageDrawing, colours: Palette, scale: float = POINTS) -> str:
    """Return a drawing as a `tikzpicture`; `scale` is points a pixel."""
    lines = [
        "% \\usepackage{tikz,textcomp} in the preamble",
        f"% {_comment(drawing.title)}",
        f"% {_comment(drawing.description)}",
        *(rf"\definecolor{{stepper-{name}}}{{HTML}}{{{value[1:].upper()}}}" for name, value in colours.items()),
        rf"\begin{{tikzpicture}}[x={scale:.4g}bp,y=-{scale:.4g}bp,inner sep=0pt,outer sep=0pt,font=\sffamily]",
        *_Painter(colours, scale).shapes(drawing.items),
        r"\end{tikzpicture}",
        "",
    ]
    return "\n".join(lines)


class _Painter:
    def __init__(self, colours: Palette, scale: float) -> None:
        self._names: Mapping[str, str] = {name: f"stepper-{name}" for name in colours}
        self._scale = scale

    def shapes(self, shapes: Iterable[Shape]) -> Iterator[str]:
        """Yield the commands for shapes."""
        for shape, groups in leaves(shapes):
            properties = properties_of(shape.style, groups, self._names)
            if isinstance(shape, TextLine):
                yield from self._words(shape, properties)
            else:
                yield self._outline(shape, properties)

    def _outline(self, shape: Rectangle | Path | Disc, properties: Mapping[str, str]) -> str:
        options = [
            f"{word}={properties[key]}" for word, key in (("fill", "fill"), ("draw", "stroke")) if key in properties
        ]
        options = [option for option in options if not option.endswith("=none")]
        if properties.get("stroke", "none") != "none":
            options.append(f"line width={float(properties.get('stroke-width', 1)) * self._scale:.3g}bp")
            cap = properties.get("stroke-linecap", "butt")
            options += [f"line cap={_CAPS.get(cap, cap)}", f"line join={properties.get('stroke-linejoin', 'miter')}"]
            options += self._dashes(properties)
        if isinstance(shape, Disc):
            radius = f"radius={shape.radius * self._scale:.3g}bp"
            return rf"\path[{','.join(options)}] {_at(shape.x, shape.y)} circle[{radius}];"
        if isinstance(shape, Rectangle):
            corner = min(shape.corner, shape.height / 2, shape.width / 2)
            options += [f"rounded corners={corner * self._scale:.3g}bp"] if corner else []
            options += [] if shape.opacity is None else [f"fill opacity={shape.opacity:.2f}"]
            far = _at(shape.x + shape.width, shape.y + shape.height)
            return rf"\path[{','.join(options)}] {_at(shape.x, shape.y)} rectangle {far};"
        parts = (
            " -- ".join(_at(x, y) for x, y in part) + (" -- cycle" if shape.closed else "") for part in shape.parts
        )
        return rf"\path[{','.join(options)}] {' '.join(parts)};"

    def _dashes(self, properties: Mapping[str, str]) -> list[str]:
        lengths = [float(part) * self._scale for part in properties.get("stroke-dasharray", "").split()]
        if not lengths:
            return []
        pattern = " ".join(f"{'off' if index % 2 else 'on'} {length:.3g}bp" for index, length in enumerate(lengths))
        return [
            f"dash pattern={pattern}",
            f"dash phase={float(properties.get('stroke-dashoffset', 0)) * self._scale:.3g}bp",
        ]

    def _words(self, words: TextLine, properties: Mapping[str, str]) -> Iterator[str]:
        if not words.text:
            return
        bold = properties.get("font-weight") == "bold"
        pixels = float(properties["font-size"].removesuffix("px"))
        width = advance(words.text, pixels, bold=bold) * self._scale
        size = pixels * self._scale
        text = "".join(map(_letter, words.text))
        font = rf"\fontsize{{{size:.3g}bp}}{{{size * 1.2:.3g}bp}}\selectfont" + (r"\bfseries" if bold else "")
        options = f"anchor={_ANCHORS[words.anchor]},text={properties['fill']}"
        fitted = rf"\ifdim\wd0>{width:.4g}bp\resizebox{{{width:.4g}bp}}{{\height}}{{\unhbox0}}\else\unhbox0\fi"
        yield rf"\node[{options}] at {_at(words.x, words.y)} {{{font}\setbox0\hbox{{{text}}}{fitted}}};"


def _letter(letter: str) -> str:
    """Return a letter as LaTeX reads it; one that its usual fonts do not have is a question mark."""
    if letter in _GREEK:
        return rf"\ensuremath{{\{_GREEK[letter]}}}"
    return _ESCAPED.get(letter) or (letter if letter.isascii() or letter in _LATIN else "?")


def _at(x: float, y: float) -> str:
    return f"({x:.1f},{y:.1f})"


def _comment(text: str) -> str:
    return " ".join(text.split())
