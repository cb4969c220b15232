"""The styles of tokens as colours of the theme: one table, laid over whatever ground a pane has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.style import Style
from textual.color import Color

from stepper.records import Record


class TokenStyle(Record):
    """A colour of the theme, so many percent of it; maybe on a ground of its own; `""`: as the pane has it."""

    colour: str = ""
    percent: int = 100
    ground: str = ""
    ground_percent: int = 100
    bold: bool = False


TOKEN_STYLES: Final[Mapping[str, TokenStyle]] = {
    "title": TokenStyle("foreground", bold=True),
    "title-on": TokenStyle("primary", bold=True),
    "strong": TokenStyle("foreground", bold=True),
    "note": TokenStyle("foreground", 66),
    "dim": TokenStyle("foreground", 68),
    "faint": TokenStyle("foreground", 26),
    "ghost": TokenStyle("foreground", 13),
    "now": TokenStyle("background", ground="primary", bold=True),
    "accent": TokenStyle("primary"),
    "bar": TokenStyle("secondary"),
    "bad": TokenStyle("error", bold=True),
    "badbg": TokenStyle("background", ground="error", bold=True),
    "bad-thin": TokenStyle("error", 80),
    "chip": TokenStyle("foreground", ground="foreground", ground_percent=12, bold=True),
    "bad-chip": TokenStyle("error", ground="error", ground_percent=20, bold=True),
    "edit": TokenStyle("warning"),
    "a": TokenStyle("warning"),
    "a-on": TokenStyle("background", ground="warning", bold=True),
    "cursor": TokenStyle(ground="primary", ground_percent=22),
    "stripe": TokenStyle(ground="foreground", ground_percent=5),
    "key": TokenStyle("primary", bold=True),
    "warm": TokenStyle("warm"),
    "cool": TokenStyle("cool"),
    # of the body graph
    "wire": TokenStyle("foreground", 30),
    "fresh": TokenStyle("foreground", 62),
    "out": TokenStyle("foreground", 90, bold=True),
    "back": TokenStyle("foreground", 55),
    "box": TokenStyle("foreground", 66),
    "done": TokenStyle("foreground"),
    "port": TokenStyle("foreground", bold=True),
    "away": TokenStyle("foreground", 50),
    "on": TokenStyle("primary", bold=True),
    "badbox": TokenStyle("background", ground="error", bold=True),
}


def style_of(token: str, ground: Color, theme: Mapping[str, str]) -> Style:
    """Return the style that a token adds to a pane's own. KeyError for a token that there is not.

    `ground` is the background of the pane; `theme` has the theme's colours by name.
    """
    style = TOKEN_STYLES[token]
    if style.ground:
        ground += Color.parse(theme[style.ground]).multiply_alpha(style.ground_percent / 100)
    colour = ground + Color.parse(theme[style.colour]).multiply_alpha(style.percent / 100) if style.colour else None
    return Style.from_color(
        None if colour is None else colour.rich_color, ground.rich_color if style.ground else None
    ) + Style(bold=style.bold or None)
