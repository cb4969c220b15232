"""Time in a drawing: the steps of a run, the shapes that are there in each, and the page of one step.

A step is an iteration that is drawn, or a gap: iterations that are not. In its step an iteration has a band; what is to
come is there already, dashed, grey and without values, so that nothing moves and all pages have one size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from stepper.export.drawing.shapes import Group, PageDrawing, Rectangle, Shape, TextLine

COMING: Final = "coming"
"""Class of groups of shapes that are still to come."""
_PICTURES: Final = frozenset(
    ["shade", "spark", "mark", "input-shade", "output-shade", "fault-shade", "input-frame", "output-frame", "picture"]
)
"""Styles of shapes that show values."""
_NAMES: Final = frozenset({"label", "title", "back", "halo"})
"""Styles of texts that are names."""


class DrawnStep(Struct, frozen=True):
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


NOT_BEGUN: Final = DrawnStep(0, 0)
"""The one step of a run without iterations."""


class MadeShapes(Struct, frozen=True):
    """The items [first, behind) of a drawing, which come to be in a step; `known`: their texts are known before."""

    first: int
    behind: int
    step: int
    known: bool = False


class StepTimes(Struct, frozen=True):
    """The steps of a drawing, when its items come to be (those that are not named are always there), its bands."""

    steps: tuple[DrawnStep, ...]
    made: tuple[MadeShapes, ...]
    bands: tuple[Rectangle, ...]


class TimedShape(Struct, frozen=True):
    """A shape that is there in the steps [begin, end); the step after the last one is the whole, when all is done."""

    shape: Shape
    begin: int
    end: int


class SteppedDrawing(Struct, frozen=True):
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
    for made in sorted(times.made, key=lambda one: one.first):
        yield from (TimedShape(item, 0, whole) for item in items[at : made.first])
        shapes = tuple(items[made.first : made.behind])
        if made.step and shapes:
            yield TimedShape(Group(tuple(coming(shapes, known=made.known)), COMING), 0, made.step)
            yield TimedShape(Group(shapes), made.step, whole)
        else:
            yield from (TimedShape(item, 0, whole) for item in shapes)
        at = max(at, made.behind)
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
