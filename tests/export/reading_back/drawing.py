"""An SVG of a figure read as a reader of the page sees it: boxes, frames, texts, and wires with what they join.

What a wire joins is taken from where its lines begin and where its arrow heads stand; wires that meet at a port go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from lxml import etree

from stepper.export.fonts import advance

SVG = "{http://www.w3.org/2000/svg}"
WIRES = ("data", "port", "back", "no-effect", "carried", "slice", "piece", "ends")
_NEAR = 4.0
_HEAD = 9.0
Point = tuple[float, float]
Segment = tuple[float, float, float, float]


@dataclass(frozen=True)
class Area:
    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def holds(self, x: float, y: float, slack: float = 0.0) -> bool:
        return self.x - slack <= x <= self.right + slack and self.y - slack <= y <= self.bottom + slack

    def within(self, other: Area, slack: float = 0.5) -> bool:
        return (
            other.x - slack <= self.x
            and other.y - slack <= self.y
            and self.right <= other.right + slack
            and self.bottom <= other.bottom + slack
        )

    def overlap(self, other: Area) -> tuple[float, float]:
        """How far the two reach into each other, across and down; not positive where they do not."""
        return (
            min(self.right, other.right) - max(self.x, other.x),
            min(self.bottom, other.bottom) - max(self.y, other.y),
        )


@dataclass(frozen=True)
class Words:
    """A line of text; its area is that of its letters."""

    text: str
    style: str
    x: float
    y: float
    size: float
    bold: bool
    anchor: str

    @cached_property
    def area(self) -> Area:
        width = advance(self.text, self.size, bold=self.bold)
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return Area(left, self.y - 0.73 * self.size, width, 0.94 * self.size)


@dataclass
class Item:
    """A box or a frame: its id without the name of the figure, its classes, its texts in order."""

    id: str
    classes: list[str]
    area: Area
    words: list[Words]
    title: str

    @property
    def lines(self) -> list[str]:
        return [one.text for one in self.words]

    @property
    def layers(self) -> list[int]:
        """The ids of the layers that a box stands for, as its title lists them (of many the first twelve)."""
        return [int(number) for number in re.findall(r"(?:^|; )layer (\d+) '", self.title)]


@dataclass
class Wire:
    kind: str
    title: str
    segments: list[Segment]
    tips: list[Point]
    dots: list[Point]
    classes: list[str] = field(default_factory=list)

    def touches(self, x: float, y: float) -> bool:
        return any(
            min(a, c) - 1 <= x <= max(a, c) + 1 and min(b, d) - 1 <= y <= max(b, d) + 1 for a, b, c, d in self.segments
        )

    @property
    def tails(self) -> list[Point]:
        """The ends at which no arrow head stands."""
        return [
            (x, y)
            for x, y in self.ends
            if not any(
                (abs(x - a) < 1 and abs(y - b) <= _HEAD) or (abs(y - b) < 1 and abs(x - a) <= _HEAD)
                for a, b in self.tips
            )
        ]

    @cached_property
    def ends(self) -> list[Point]:
        """The points where one line of the wire ends and no other goes on."""
        points = [point for a, b, c, d in self.segments if (a, b) != (c, d) for point in ((a, b), (c, d))]
        return [
            point for point in dict.fromkeys(points)
            if points.count(point) == 1
            and not any(_strictly_on(point, segment) for segment in self.segments)
        ]  # fmt: skip


def _strictly_on(point: Point, segment: Segment) -> bool:
    (x, y), (a, b, c, d) = point, segment
    if (x, y) in ((a, b), (c, d)):
        return False
    return min(a, c) <= x <= max(a, c) and min(b, d) <= y <= max(b, d)


@dataclass(frozen=True)
class Join:
    """A wire from a box or frame to another one."""

    source: str
    target: str
    kind: str


@dataclass(frozen=True)
class End:
    """The boxes that an end of a wire leaves or enters, the other wires that it meets, whether at a port."""

    sources: list[str]
    targets: list[str] = field(default_factory=list)
    wires: list[int] = field(default_factory=list)
    is_port: bool = False


class _Nets:
    """Wires that run into each other, by their places."""

    def __init__(self, count: int) -> None:
        self.above = list(range(count))

    def root(self, index: int) -> int:
        while self.above[index] != index:
            index = self.above[index]
        return index

    def join(self, one: int, other: int) -> None:
        self.above[self.root(other)] = self.root(one)

    def members(self) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for index in range(len(self.above)):
            found.setdefault(self.root(index), []).append(index)
        return list(found.values())


class Drawing:
    """All that an SVG draws. `text` is the SVG."""

    def __init__(self, text: str) -> None:
        self.root = etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False, huge_tree=True))
        self.page = Area(*map(float, str(self.root.get("viewBox")).split()))
        self.boxes: dict[str, Item] = {}
        self.frames: dict[str, Item] = {}
        self.wires: list[Wire] = []
        self.ports: list[Area] = []
        self.free: list[Words] = []
        self.loose: list[str] = []
        self._read(self.root)

    def _read(self, group: etree._Element) -> None:
        for element in group:
            if element.tag == f"{SVG}text":
                self.free.append(_words(element))
            elif element.get("class") == "square":
                self.ports.append(_area(element))
            elif element.tag == f"{SVG}g":
                self._group(element)

    def _group(self, group: etree._Element) -> None:
        classes = str(group.get("class", "")).split()
        title = group.findtext(f"{SVG}title") or ""
        if group.get("id") is None and not classes:  # what came to be in a step
            self._read(group)
            return
        if group.get("id") is None:
            if classes and classes[0] in WIRES:
                self.wires.append(_wire(group, classes, title))
            return
        words = [_words(one) for one in group.iter(f"{SVG}text")]
        rectangle = group.find(f"{SVG}rect")
        area = _end_area(group, words) if rectangle is None else _area(rectangle)
        item = Item(str(group.get("id")).partition(".")[2], classes, area, words, title)
        is_frame = rectangle is not None and rectangle.get("class") == "frame"
        (self.frames if is_frame else self.boxes)[item.id] = item

    @property
    def words(self) -> list[Words]:
        return [*self.free, *(one for item in (*self.frames.values(), *self.boxes.values()) for one in item.words)]

    @property
    def title(self) -> str:
        return self.root.findtext(f"{SVG}title") or ""

    @property
    def description(self) -> str:
        return self.root.findtext(f"{SVG}desc") or ""

    @cached_property
    def joins(self) -> list[Join]:
        """What the wires join, each pair once; ends that lead nowhere are put into `loose`."""
        targets = [[self.entered(tip, wire) for tip in wire.tips] for wire in self.wires]
        sources: list[list[str]] = [[] for _ in self.wires]
        nets = _Nets(len(self.wires))
        at_ports: set[int] = set()
        for index, wire in enumerate(self.wires):
            for x, y in wire.tails:
                end = self._end(wire, x, y)
                sources[index] += end.sources
                targets[index] += end.targets
                at_ports |= {index} if end.is_port else set()
                for other in end.wires:
                    nets.join(index, other)
        found: dict[Join, None] = {}
        for mine in nets.members():
            begins = [one for k in mine for one in sources[k]]
            if at_ports.isdisjoint(mine):
                self._not_loose(mine, begins, [to for k in mine for to in targets[k]])
            for k in mine:
                found |= {Join(one, to, self.wires[k].kind): None for one in begins for to in targets[k] if to}
        return list(found)

    def _not_loose(self, wires: list[int], begins: list[str], targets: list[str]) -> None:
        named = f"{self.wires[wires[0]].kind} {self.wires[wires[0]].title!r}"
        if not begins:
            self.loose.append(f"a wire ({named}) begins nowhere")
        if not targets:
            self.loose.append(f"a wire ({named}) leads nowhere")

    def _end(self, wire: Wire, x: float, y: float) -> End:
        """What an end of a wire without an arrow head stands at."""
        port = next((one for one in self.ports if one.holds(x, y)), None)
        if port is not None:
            others = [k for k, other in enumerate(self.wires) if any(port.holds(*end) for end in other.ends)]
            return End([], self._entered_frame(port, y, wire), others, is_port=True)
        mark = self._mark_at(x, y) if wire.kind == "ends" else None
        if mark is not None:
            return End([], [mark])
        begun = self.left(x, y)
        if begun is not None and begun in self.boxes:
            return End([begun])
        met = [k for k in self._touched(wire, x, y) if any(abs(x - a) + abs(y - b) < 1 for a, b in self.wires[k].ends)]
        if begun is not None and not met:
            return End([begun])
        told = self._words_beside(x, y)
        if told is not None and not met:
            return End([told])
        others = met or self._touched(wire, x, y)
        if not others:
            self.loose.append(f"a wire ({wire.kind} {wire.title!r}) ends in nothing at {x:g},{y:g}")
        return End([], [], others)

    def _entered_frame(self, port: Area, y: float, wire: Wire) -> list[str]:
        """The frame on whose upper edge a port is in which a wire ends that comes from above."""
        middle = port.y + port.height / 2
        if not any(b < d and abs(d - y) < 1 for _, b, _, d in _downwards(wire)):
            return []
        x = port.x + port.width / 2
        found = (one for one in self.frames.values() if abs(one.area.y - middle) < 1 and one.area.holds(x, middle, 1))
        return [one.id for one in found]

    def _mark_at(self, x: float, y: float) -> str | None:
        """The end mark beside which a dotted wire ends."""
        marks = (one for one in self.boxes.values() if "end" in one.classes)
        return next((one.id for one in marks if one.area.holds(x, y, 22)), None)

    def _touched(self, wire: Wire, x: float, y: float) -> list[int]:
        """The other wires of its kind that a wire runs into at a point."""
        others = enumerate(self.wires)
        return [k for k, other in others if other is not wire and other.kind == wire.kind and other.touches(x, y)]

    def entered(self, tip: Point, wire: Wire) -> str:
        """The box (or frame) at whose edge an arrow head stands."""
        x, y = tip
        for items in (self.boxes, self.frames):
            for item in items.values():
                area = item.area
                above = abs(y - area.y) <= _NEAR and area.x <= x <= area.right
                beside = abs(x - area.x) <= _NEAR and area.y <= y <= area.bottom
                if above or beside:
                    return item.id
        told = self._words_beside(x, y)
        if told is not None:
            return told
        self.loose.append(f"an arrow head ({wire.kind} {wire.title!r}) at {x:g},{y:g} stands at nothing")
        return ""

    def _words_beside(self, x: float, y: float) -> str | None:
        """The words at the end of a wire of a list, which stand for what is there."""
        for words in self.free:
            across = words.area.x - x if words.anchor == "start" else x - words.area.right
            if words.anchor != "middle" and 0 < across < 24 and abs(words.area.y + words.area.height / 2 - y) < 14:
                return f"words {words.text}"
        return None

    def left(self, x: float, y: float) -> str | None:
        """The box in which a line begins, or the frame at whose lower edge."""
        for item in self.boxes.values():
            if item.area.holds(x, y, 1):
                return item.id
        for item in self.frames.values():
            if abs(y - item.area.bottom) <= 9 and item.area.x <= x <= item.area.right:
                return item.id
        return None


def _downwards(wire: Wire) -> list[Segment]:
    return [(a, min(b, d), c, max(b, d)) for a, b, c, d in wire.segments if a == c]


def _number(element: etree._Element, name: str) -> float:
    return float(element.get(name, "0").removesuffix("px"))


def _area(element: etree._Element) -> Area:
    return Area(*(_number(element, name) for name in ("x", "y", "width", "height")))


def _words(element: etree._Element) -> Words:
    return Words(
        text=element.text or "",
        style=str(element.get("class")),
        x=_number(element, "x"),
        y=_number(element, "y"),
        size=_number(element, "font-size"),
        bold=element.get("font-weight") == "bold",
        anchor=element.get("text-anchor", "start"),
    )


def points(element: etree._Element) -> list[list[Point]]:
    """The points of each part of a path."""
    parts = str(element.get("d")).replace("z", "").split("M")[1:]
    return [[(float(x), float(y)) for x, y in (pair.split() for pair in part.split("L"))] for part in parts]


def _wire(group: etree._Element, classes: list[str], title: str) -> Wire:
    segments: list[Segment] = []
    tips: list[Point] = []
    for path in group.iter(f"{SVG}path"):
        for part in points(path):
            if path.get("class") == "tip":
                tips.append(part[0])
            else:
                segments += [(*a, *b) for a, b in pairwise(part)]
    segments += _bridged(segments)
    dots = [(_number(one, "cx"), _number(one, "cy")) for one in group.iter(f"{SVG}circle")]
    return Wire(classes[0], title, segments, tips, dots, classes)


def _bridged(segments: list[Segment]) -> list[Segment]:
    """The gaps in a wire, where it crosses others: between two ends of it on a line.

    They are 9 units apart where it crosses one; of up to four wires close to one another the gaps are one.
    """
    found = []
    for a, b, c, d in segments:
        for e, f, g, h in segments:
            is_level = b == d == f == h and 8.9 < min(e, g) - max(a, c) < 36
            is_upright = a == c == e == g and 8.9 < min(f, h) - max(b, d) < 36
            if is_level or is_upright:
                found.append((max(a, c), b, min(e, g), f) if is_level else (a, max(b, d), e, min(f, h)))
    return found


def _end_area(group: etree._Element, words: list[Words]) -> Area:
    """The area of an end mark, its bar and its words; words in the middle are as far from both ends of a box."""
    marks = [point for path in group.iter(f"{SVG}path") for part in points(path) for point in part]
    areas = [one.area for one in words]
    left = min([min(x for x, _ in marks) - 2, *(area.x for area in areas)])
    if words and words[0].anchor == "middle":
        left = 2 * words[0].x - max(x for x, _ in marks) - 2
    right = max([max(x for x, _ in marks) + 2, *(area.right for area in areas)])
    top = min([min(y for _, y in marks), *(area.y for area in areas)])
    bottom = max([max(y for _, y in marks), *(area.bottom for area in areas)])
    return Area(left, top, right - left, bottom - top)


def segments_of(wire: Wire) -> Iterator[Area]:
    for a, b, c, d in wire.segments:
        yield Area(min(a, c), min(b, d), abs(a - c), abs(b - d))
