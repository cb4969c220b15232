"""The tokens of rows as colours of the theme: one table, laid over whatever ground a pane has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from rich.style import Style
from textual.color import Color


class Ink(Struct, frozen=True):
    """A colour of the theme, so many percent of it; maybe on a ground of its own; `""`: as the pane has it."""

    colour: str = ""
    percent: int = 100
    ground: str = ""
    ground_percent: int = 100
    bold: bool = False


INKS: Final[Mapping[str, Ink]] = {
    "title": Ink("foreground", bold=True),
    "title-on": Ink("primary", bold=True),
    "strong": Ink("foreground", bold=True),
    "note": Ink("foreground", 66),
    "dim": Ink("foreground", 68),
    "faint": Ink("foreground", 26),
    "ghost": Ink("foreground", 13),
    "now": Ink("background", ground="primary", bold=True),
    "accent": Ink("primary"),
    "bar": Ink("secondary"),
    "bad": Ink("error", bold=True),
    "badbg": Ink("background", ground="error", bold=True),
    "edit": Ink("warning"),
    "cursor": Ink(ground="primary", ground_percent=22),
    "stripe": Ink(ground="foreground", ground_percent=5),
    "key": Ink("primary", bold=True),
    "warm": Ink("warm"),
    "cool": Ink("cool"),
    # of the body graph
    "wire": Ink("foreground", 30),
    "fresh": Ink("foreground", 62),
    "out": Ink("foreground", 90, bold=True),
    "back": Ink("foreground", 55),
    "box": Ink("foreground", 66),
    "done": Ink("foreground"),
    "port": Ink("foreground", bold=True),
    "on": Ink("primary", bold=True),
    "badbox": Ink("background", ground="error", bold=True),
}


def style_of(token: str, ground: Color, theme: Mapping[str, str]) -> Style:
    """What a token adds to a pane's own style. KeyError for a token that there is not.

    `ground` is the background of the pane; `theme` has the theme's colours by name.
    """
    ink = INKS[token]
    if ink.ground:
        ground += Color.parse(theme[ink.ground]).multiply_alpha(ink.ground_percent / 100)
    colour = ground + Color.parse(theme[ink.colour]).multiply_alpha(ink.percent / 100) if ink.colour else None
    return Style.from_color(
        None if colour is None else colour.rich_color, ground.rich_color if ink.ground else None
    ) + Style(bold=ink.bold or None)
