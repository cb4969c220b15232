"""Words that the options of a figure take. Loads nothing heavy, so that the command line can list them at once."""

from __future__ import annotations

from enum import StrEnum


class FigureView(StrEnum):
    """Subject of a figure: the model, a loop's body, the iterations of a run, a port map, or why something is so."""

    MODEL = "model"
    ROLLED = "rolled"
    UNROLLED = "unrolled"
    PORTS = "ports"
    STORY = "story"


class ValueDetail(StrEnum):
    """Detail in which a figure gives each value."""

    NONE = "none"
    SHAPE = "shape"
    STATS = "stats"
    FULL = "full"
    THUMBNAILS = "thumbnails"


class ConstantStyle(StrEnum):
    """Drawing of constants: in the box of what reads them, as boxes of their own, or not at all."""

    INLINE = "inline"
    BOX = "box"
    HIDE = "hide"


class BlockStyle(StrEnum):
    """Drawing of blocks that repeat: all of them, or one with a count."""

    ALL = "all"
    ONCE = "once"


class TimeDirection(StrEnum):
    """TimeDirection in which the iterations of a run follow each other."""

    DOWN = "down"
    RIGHT = "right"


class Preset(StrEnum):
    """Options for a purpose: a column of a paper, a slide, a page of documentation."""

    PAPER = "paper"
    SLIDE = "slide"
    DOCS = "docs"


class Theme(StrEnum):
    """Page that the colours of a figure are for.

    `AUTO` follows the colour scheme of the reader, `PAGE` the page of HTML in which the SVG stands: on one that is
    light for all readers it is light.
    """

    PRINT = "print"
    LIGHT = "light"
    DARK = "dark"
    AUTO = "auto"
    PAGE = "page"

    @property
    def fixed(self) -> Theme:
        """Return the theme in a file whose colours cannot follow anything."""
        return Theme.LIGHT if self in (Theme.AUTO, Theme.PAGE) else self


class LayoutEngine(StrEnum):
    """Layout of an SVG: our own (the same bytes everywhere), or Graphviz's."""

    OWN = "own"
    DOT = "dot"
