"""Style the shapes of a figure: one table of rules and colours for all formats.

The formats are SVG, HTML, DOT, PNG and PDF.

An SVG has attributes on each shape, or a style sheet, which overrides them. Attributes hold literal colours,
so that every program that draws SVG shows them. There are themes for print, for light and dark pages, and for
the colour scheme of the reader. The print theme has dark lines and pale fills; shape and line repeat the
meaning of colours, so that nothing is lost in grey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec.structs import replace

from stepper.export.figures.figure import Cluster, FigureNode, NodeKind
from stepper.export.fonts import FAMILY, HEADING_SIZE, LABEL_SIZE, SLIDE_SIZE, SMALL_SIZE, advance
from stepper.export.options import Theme
from stepper.records import Record

Palette = Mapping[str, str]


def _palette(text: str) -> Palette:
    return MappingProxyType(dict(word.split("=") for word in text.split()))


PALETTES: Final[Mapping[Theme, Palette]] = MappingProxyType(
    {
        Theme.PRINT: _palette(
            "page=#ffffff ink=#1a1a1a quiet=#4d5560 wire=#4d5560 box=#ffffff edge=#4d5560 in=#e6f0fa in-edge=#0a4f96 "
            "out=#e4f3eb out-edge=#0b6b4b body=#f4f5f7 body-edge=#7d8590 carried=#fdf0e4 back=#a84300 fault=#fbe6ea "
            "mark=#a8123a now=#fff1bf now-edge=#8a5a00 shade=#0a4f96"
        ),
        Theme.LIGHT: _palette(
            "page=#ffffff ink=#1f2328 quiet=#57606a wire=#57606a box=#ffffff edge=#6e7781 in=#ddeefb in-edge=#0a55a3 "
            "out=#daf3e4 out-edge=#0b6b4b body=#f3f5f8 body-edge=#818b98 carried=#ffefe0 back=#ad4700 fault=#fde3e9 "
            "mark=#b3123f now=#fff0b8 now-edge=#835400 shade=#0a55a3"
        ),
        Theme.DARK: _palette(
            "page=#0d1117 ink=#e6edf3 quiet=#a9b3be wire=#a9b3be box=#0d1117 edge=#8b949e in=#10294a in-edge=#79b8ff "
            "out=#0e3022 out-edge=#5bd6a0 body=#171d25 body-edge=#7d8590 carried=#3a2410 back=#ffa95c fault=#4a1220 "
            "mark=#ff93a8 now=#42340a now-edge=#f0c24b shade=#79b8ff"
        ),
    }
)


def palette(theme: Theme) -> Palette:
    """Return the colours of a theme; of one that follows the reader or the page those of light."""
    return PALETTES[theme.fixed]


_CHOSEN = (
    (Theme.LIGHT, ('[data-theme="light"]', '[data-md-color-scheme="default"]')),
    (Theme.DARK, ('[data-theme="dark"]', '[data-md-color-scheme="slate"]')),
)
"""Selectors of pages that have chosen a theme themselves, whatever the reader's system says."""
_UNDECIDED = '[data-theme="auto"]'
"""Selector of pages that leave it to the reader's system."""


def variables(theme: Theme, scope: str) -> str:
    """Return CSS that sets the colours as variables of `scope`.

    `auto` follows the theme that the page has chosen, else the colour scheme of the reader; `page` the `color-scheme`
    of the page, where that has chosen no theme.
    """
    rule = _declared(palette(theme), scope)
    if theme is theme.fixed:
        return rule
    light, dark = PALETTES[Theme.LIGHT], PALETTES[Theme.DARK]
    system = scope if theme is Theme.AUTO else f"{_UNDECIDED} {scope}"
    follows = [f"@media (prefers-color-scheme: dark) {{ {_declared(dark, system)} }}"]
    if theme is Theme.PAGE:
        both = {name: f"light-dark({colour}, {dark[name]})" for name, colour in light.items()}
        follows.insert(0, f"@supports (color: light-dark(#000, #fff)) {{ {_declared(both, scope)} }}")
    chosen = (
        _declared(PALETTES[of], ", ".join(f"{page} {scope}" if scope != ":root" else f":root{page}" for page in pages))
        for of, pages in _CHOSEN
    )
    return "\n".join([rule, *follows, *chosen])


def _declared(colours: Palette, scope: str) -> str:
    return f"{scope} {{ {' '.join(f'--{name}: {value};' for name, value in colours.items())} }}"


Paint = Callable[[str, str], str]
"""The attributes of a shape of a class, in a group of classes: "" or text that begins with a space."""

SCOPE = ".stepper"
"""Selector of the figure of a page that has no other."""

ROUNDED = (NodeKind.PARAMETER, NodeKind.RESULT, NodeKind.INPUT, NodeKind.OUTPUT)
"""Kinds of nodes whose boxes have round corners."""

_COLOURS = ("fill", "stroke")


class _Rule(NamedTuple):
    """Properties of shapes of any of these classes, inside a group of any of these (of any group, where empty)."""

    shapes: str
    groups: str
    properties: Mapping[str, str]

    def holds(self, shape: str, groups: list[str]) -> bool:
        """True if the rule is for a shape of that class in a group of these classes."""
        return shape in self.shapes.split() and (not self.groups or any(name in groups for name in self.groups.split()))

    def selectors(self, scope: str) -> str:
        """Return the selectors of the rule in CSS."""
        groups = [f" .{name}" for name in self.groups.split()] or [""]
        return ", ".join(f"{scope}{group} .{shape}" for group in groups for shape in self.shapes.split())


_TEXTS = "label title heading slide-heading small mark faint bad-small bad-title born-text"

_STYLES = f"""
page | fill: page
box | fill: box; stroke: edge; stroke-width: 1.2
frame | fill: body; stroke: body-edge; stroke-width: 1.2
{_TEXTS} | fill: ink; font-size: {LABEL_SIZE}px
title heading slide-heading mark bad-title born-text | font-weight: bold
heading | font-size: {HEADING_SIZE}px
slide-heading | font-size: {SLIDE_SIZE}px
small mark | font-size: {SMALL_SIZE}px
faint bad-small | font-size: {SMALL_SIZE}px
small faint | fill: quiet
equation equation-index | fill: ink; font-size: {LABEL_SIZE}px
equation-index | font-size: {SMALL_SIZE}px
mark bad-small bad-title bad-chip | fill: mark
born-text | fill: page
chip | fill: edge
wire | fill: none; stroke: wire; stroke-width: 1.3; stroke-linejoin: round; stroke-linecap: square
tip | fill: wire
thin bar | fill: none; stroke: ink; stroke-width: 1.2
bar | stroke-width: 4
shade | fill: shade
spark | fill: none; stroke: shade; stroke-width: 1.3
box in parameter input | fill: in; stroke: in-edge
box in result output concatenation | fill: out; stroke: out-edge
box in result output | stroke-width: 2
box in accumulator carried merged | fill: carried; stroke: back
box in condition | fill: box; stroke: ink
box in computed | fill: box; stroke: edge
square | fill: page; stroke: body-edge; stroke-width: 1.4
box in group shapes ellipsis | stroke-dasharray: 5 3
wire in back carried | stroke: back
tip in back carried | fill: back
frame in nested | fill: box
wire in back | stroke-dasharray: 5 4; stroke-dashoffset: 5; stroke-linecap: butt
wire in ends | stroke: ink; stroke-dasharray: 0.01 3.4; stroke-linecap: round; stroke-width: 1.6
tip in ends | fill: ink
wire in no-effect | stroke: quiet; stroke-width: 1; stroke-dasharray: 2 2.5; stroke-linecap: butt
tip in no-effect | fill: quiet
cross | fill: none; stroke: mark; stroke-width: 2.2; stroke-linecap: round
wire in slice | stroke: in-edge
tip in slice | fill: in-edge
wire in piece | stroke: out-edge
tip in piece | fill: out-edge
wire in dashed | stroke-dasharray: 5 4; stroke-linecap: butt
wire in bad | stroke: mark
tip in bad | fill: mark
panel | fill: page
region sight | fill: none; stroke: now-edge; stroke-width: 1.6
sight | stroke-width: 0.8
# two runs: where they part, what differs, what is the same
box in parts | fill: mark; stroke: mark; stroke-width: 3
{_TEXTS} in parts | fill: page
box in differs mended | fill: box; stroke: mark; stroke-width: 2.6
box in mended | stroke: out-edge
box in alike | fill: body; stroke: body-edge; stroke-width: 1
{_TEXTS} in alike | fill: quiet
frame in parts-inside differs-inside mended-inside | stroke: mark; stroke-width: 2.4
box in highlighted | fill: now; stroke: now-edge; stroke-width: 3
frame in highlighted | stroke: now-edge; stroke-width: 3
box frame wire in far | stroke-width: 0.6
box frame in idle | fill: body; stroke: body-edge; stroke-dasharray: 2 3
frame in idle | fill: none
{_TEXTS} in idle | fill: quiet; font-weight: normal
wire in idle | stroke: body-edge; stroke-dasharray: 2 3
tip in idle | fill: body-edge
# the textbook's figure, in points
number plain aside strong broken of-input of-output of-carried slide | fill: ink; font-size: 7px
number | font-size: 8px
formula index | fill: ink; font-size: 8px
index | font-size: 7px
slide | font-size: 12px
number strong broken of-input of-output of-carried slide | font-weight: bold
aside | fill: quiet
broken | fill: mark
of-input | fill: in-edge
of-output | fill: out-edge
of-carried | fill: back
cell | fill: body; stroke: edge; stroke-width: 1
lane dots tear hair input-wire output-wire | fill: none; stroke-linejoin: round
lane | stroke: back; stroke-width: 1.3
lane-tip | fill: back
dots | stroke: ink; stroke-width: 1; stroke-dasharray: 0.01 2.6; stroke-linecap: round
tear | stroke: wire; stroke-width: 0.9
end-thin end-bar | fill: none; stroke: ink; stroke-width: 0.9
end-bar | stroke-width: 2.6
hair | stroke: ink; stroke-width: 0.5
input-wire | stroke: in-edge; stroke-width: 0.75
input-wire-tip | fill: in-edge
output-wire | stroke: out-edge; stroke-width: 0.9
output-wire-tip | fill: out-edge
input-strip | fill: in; stroke: in-edge; stroke-width: 0.7
output-strip | fill: out; stroke: out-edge; stroke-width: 0.7
input-frame output-frame | fill: none; stroke: out-edge; stroke-width: 0.4
input-frame | stroke: in-edge
input-shade | fill: in-edge
output-shade | fill: out-edge
fault-shade | fill: mark
# steps: the iteration that is shown, and what is to come
band | fill: now; stroke: now-edge; stroke-width: 1.2
box frame cell in coming | fill: page; stroke: wire; stroke-dasharray: 3 2.2
input-strip output-strip in coming | fill: page
lane wire dots input-wire output-wire hair in coming | stroke: wire
tip lane-tip input-wire-tip output-wire-tip in coming | fill: wire
{_TEXTS} number plain aside strong broken formula index in coming | fill: quiet
"""
"""Styles as `classes of shapes in classes of groups | properties`.

Colours are names of the palette. If two rules set one property, the later rule wins.
"""


def _rules(styles: str) -> Iterator[_Rule]:
    """Yield the rules of the table."""
    for line in styles.split("\n"):
        selector, _, properties = line.partition(" | ")
        if properties:
            shapes, _, groups = selector.partition(" in ")
            yield _Rule(shapes, groups, dict(one.split(": ") for one in properties.split("; ")))


_RULES = tuple(_rules(_STYLES))


def classes_of(shape: FigureNode | Cluster) -> str:
    """Return the classes of a box or a frame."""
    role = f" {shape.role}" if isinstance(shape, FigureNode) and shape.role else ""
    ground = " nested" if isinstance(shape, Cluster) and shape.level % 2 else ""
    inside = "-inside" if isinstance(shape, Cluster) else ""
    state = f" {shape.state}{inside}" if shape.state else ""
    return (
        f"{shape.kind}{role}{ground}{state}{' highlighted' if shape.highlighted else ''}{' idle' if shape.idle else ''}"
    )


def properties_of(shape: str, groups: str, colours: Palette) -> dict[str, str]:
    """Return the properties of a shape of a class in a group of classes, with literal colours."""
    found: dict[str, str] = {}
    for rule in _RULES:
        if rule.holds(shape, groups.split()):
            found |= rule.properties
    return {name: _value(name, value, colours) for name, value in found.items()}


@cache
def letters_of(style: str) -> tuple[float, bool]:
    """Return the height of the letters of a style, and whether they are bold."""
    found = properties_of(style, "", {})
    return float(found["font-size"].removesuffix("px")), found.get("font-weight") == "bold"


def text_width(style: str, text: str) -> float:
    """Return the width of a line of text."""
    size, bold = letters_of(style)
    return advance(text, size, bold=bold)


def painted(theme: Theme) -> Paint:
    """Return the function that writes the attributes of shapes, with the literal colours of a theme."""
    colours = palette(theme)

    @cache
    def paint(shape: str, groups: str = "") -> str:
        return "".join(f' {name}="{value}"' for name, value in properties_of(shape, groups, colours).items())

    return paint


def unpainted(_shape: str, _groups: str = "") -> str:
    """Return no attributes: the page has a style sheet."""
    return ""


def style_sheet(theme: Theme) -> str:
    """Return the whole style sheet, its colours as variables, for pages whose script changes what shapes are."""
    base = f"{SCOPE} text {{ font-family: {FAMILY}; }}"
    return "\n".join([variables(theme, SCOPE), base, *(_css(rule, SCOPE) for rule in _RULES), ""])


def overrides(theme: Theme, scope: str, classes: Set[str]) -> str:
    """Return the style sheet of shapes and groups of these classes that have attributes: dark where page or reader are.

    It holds on screens alone: in print, and for programs that do not know `@media`, the attributes stay.
    """
    if theme is theme.fixed:
        return ""
    rules = []
    for rule in _RULES:
        named = {name: value for name, value in rule.properties.items() if name in _COLOURS}
        shapes = " ".join(shape for shape in rule.shapes.split() if shape in classes)
        inside = " ".join(group for group in rule.groups.split() if group in classes)
        if named and shapes and (inside or not rule.groups):
            rules.append(_css(rule._replace(shapes=shapes, groups=inside, properties=named), scope))
    return "\n".join(["@media screen {", variables(theme, scope), *rules, "}", ""])


def _css(rule: _Rule, scope: str) -> str:
    names = {name: f"var(--{name})" for name in PALETTES[Theme.LIGHT]}
    properties = " ".join(f"{name}: {_value(name, value, names)};" for name, value in rule.properties.items())
    return f"{rule.selectors(scope)} {{ {properties} }}"


def _value(name: str, value: str, colours: Mapping[str, str]) -> str:
    """Return a property's value; the colours of the table are names of the palette."""
    return colours.get(value, value) if name in _COLOURS else value


Point = tuple[float, float]

POINTS = 0.75
"""Points a pixel: 96 pixels are an inch of 72 points."""


class Rectangle(Record):
    """Draw a rectangle with rounded corners; `opacity` of its fill is from 0 to 1 (None: 1)."""

    style: str
    x: float
    y: float
    width: float
    height: float
    corner: float = 0
    opacity: float | None = None


class Path(Record):
    """Lines from point to point; each part is a line of its own, closed where `closed`."""

    style: str
    parts: tuple[tuple[Point, ...], ...]
    closed: bool = False


def stroke(style: str, *points: Point) -> Path:
    """Return a line from point to point."""
    return Path(style, (points,))


def polygon(style: str, *corners: Point) -> Path:
    """Return a closed line, such as the head of an arrow."""
    return Path(style, (corners,), closed=True)


class Disc(Record):
    """A filled circle."""

    style: str
    x: float
    y: float
    radius: float


class TextLine(Record):
    """A line of text on its base line; `anchor` is start, middle or end."""

    style: str
    x: float
    y: float
    text: str
    anchor: str = "start"


class Group(Record):
    """Shapes that are one thing: the classes that choose their styles, an id, a title that is shown on demand.

    `area` (x, y, width, height) is where a picture stands whose shapes a script replaces.
    """

    items: tuple[Shape, ...]
    classes: str = ""
    id: str = ""
    title: str = ""
    area: tuple[float, float, float, float] | None = None


Shape = Rectangle | Path | Disc | TextLine | Group


class PageDrawing(Record):
    """Everything on the page in the order of painting; `title` and `description` are its text for readers aloud.

    `points` is how many points (1/72 inch) a unit is: 0.75 where units are pixels, 1 where they are points.
    """

    width: float
    height: float
    title: str
    description: str
    items: tuple[Shape, ...]
    points: float = POINTS


COMING = "coming"
"""Class of groups of shapes that are still to come."""
_PICTURES = frozenset(
    ["shade", "spark", "mark", "input-shade", "output-shade", "fault-shade", "input-frame", "output-frame", "picture"]
)
"""Styles of shapes that show values."""
_NAMES = frozenset({"label", "title"})
"""Styles of texts that are names."""


class DrawnStep(Record):
    """An iteration, or a range [begin, end) of iterations that are not drawn; empty: the run had none."""

    begin: int
    end: int
    is_gap: bool = False

    @property
    def name(self) -> str:
        """Such as `iteration 3`, or `iterations 3 to 108`."""
        if self.end == self.begin:
            return "no iteration"
        one = self.end == self.begin + 1
        return f"iteration {self.begin}" if one else f"iterations {self.begin} to {self.end - 1}"

    @property
    def label(self) -> str:
        """The name, with a word that it is not drawn where it is not."""
        return self.name + (" (not drawn)" if self.is_gap else "")


NOT_BEGUN = DrawnStep(0, 0)
"""The one step of a run without iterations."""


class MadeShapes(Record):
    """The items [first, behind) of a drawing, which come to be in a step; `known`: their texts are known before."""

    first: int
    behind: int
    step: int
    known: bool = False


class StepTimes(Record):
    """The steps of a drawing, when its items come to be (those that are not named are always there), its bands."""

    steps: tuple[DrawnStep, ...]
    made: tuple[MadeShapes, ...]
    bands: tuple[Rectangle, ...]


class TimedShape(Record):
    """A shape that is there in the steps [begin, end); the step after the last one is the whole, when all is done."""

    shape: Shape
    begin: int
    end: int


class SteppedDrawing(Record):
    """A drawing with the shapes of all steps, in the order of painting; `page` is the whole."""

    page: PageDrawing
    steps: tuple[DrawnStep, ...]
    shapes: tuple[TimedShape, ...]

    def at(self, step: int) -> PageDrawing:
        """Return the page of a step; its title and description say which."""
        if self.steps == (NOT_BEGUN,):  # the page itself says that nothing ran
            return self.page
        here = f"{self.steps[step].name} of 0..{self.steps[-1].end - 1}"
        return replace(
            self.page,
            title=f"{self.page.title}: {here}",
            description=f"{self.page.description} Shown is {here}; what is to come is grey and has no values.",
            items=tuple(one.shape for one in self.shapes if one.begin <= step < one.end),
        )


def stepped(page: PageDrawing, times: StepTimes) -> SteppedDrawing:
    """Return a drawing in steps; bands stand directly on the page, its first item."""
    return SteppedDrawing(page, times.steps, tuple(_timed(page.items, times)))


def _timed(items: Sequence[Shape], times: StepTimes) -> Iterator[TimedShape]:
    whole = len(times.steps) + 1
    yield TimedShape(items[0], 0, whole)
    for index, band in enumerate(times.bands):
        yield TimedShape(band, index, index + 1)
    at = 1
    for made in sorted((one for one in times.made if one.step and one.first < one.behind), key=lambda one: one.first):
        yield from (TimedShape(item, 0, whole) for item in items[at : made.first])
        shapes, at = tuple(items[made.first : made.behind]), made.behind
        yield TimedShape(Group(tuple(coming(shapes, known=made.known)), COMING), 0, made.step)
        yield TimedShape(Group(shapes), made.step, whole)
    yield from (TimedShape(item, 0, whole) for item in items[at:])


def coming(shapes: Sequence[Shape], *, known: bool = False) -> Iterator[Shape]:
    """Yield what is there of shapes before they come to be: no values, and of texts names alone, unless `known`."""
    for shape in shapes:
        if isinstance(shape, Group):
            if known or shape.classes not in _PICTURES:
                inside = tuple(coming(shape.items, known=known))
                yield replace(shape, items=inside, classes=f"{shape.classes} {COMING}", id="")
        elif known or (shape.style in _NAMES if isinstance(shape, TextLine) else shape.style not in _PICTURES):
            yield shape
