"""How everything looks: two themes, the glyphs with their ASCII twins, and what a terminal without colours gets."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from textual.theme import Theme

from stepper.records import Record

if TYPE_CHECKING:
    from stepper.debug.inspection.views import BreakView

DARK = Theme(
    name="stepper-dark",
    dark=True,
    background="#14171c",
    surface="#191d24",
    panel="#232933",
    foreground="#d5dae3",
    primary="#5cc8bc",
    accent="#5cc8bc",
    secondary="#8fa3bf",
    warning="#e0b050",
    error="#ff6f6f",
    success="#8fbf8f",
    variables={"warm": "#e8a04c", "cool": "#5b8fd9"},
)
LIGHT = Theme(
    name="stepper-light",
    dark=False,
    background="#fcfbf8",
    surface="#f5f3ee",
    panel="#e7e4dc",
    foreground="#262b33",
    primary="#0b7a70",
    accent="#0b7a70",
    secondary="#4f6076",
    warning="#8f5c00",
    error="#b8231b",
    success="#3d6e3d",
    variables={"warm": "#c06a00", "cool": "#2f62b5"},
)
THEMES = (DARK, LIGHT)


class Look(Record):
    """Abilities of the terminal. `ascii`: no character beyond ASCII; `plain`: shades carry a figure as well."""

    ascii: bool = False
    plain: bool = False

    @staticmethod
    def of_environment(*, ascii: bool = False) -> Look:
        """As asked for, as NO_COLOR says, and with 16 colours, which have no shades."""
        from rich.console import Console

        has_shades = Console(force_terminal=True).color_system in ("256", "truecolor")
        return Look(ascii=ascii, plain=ascii or bool(os.environ.get("NO_COLOR")) or not has_shades)

    @property
    def edited(self) -> str:
        """The glyph of an edited value; in ASCII the usual glyph means a breakpoint."""
        return "#" if self.ascii else GLYPHS["edit"]


GLYPHS = {
    "pending": "·",  # not yet; shows the value of the iteration before
    "break": "●",
    "break-off": "○",
    "break-if": "◆",
    "shape": "~",  # the shape changed
    "edit": "*",  # changed by hand
    "added": "+",  # A has no such iteration
    "diff": "≠",
    "back": "↺",
    "scan": "⊞",
    "fold": "▸",
    "unfold": "▾",
    "true": "T",
    "false": "F",
    "focus": "▌",
    "dot": "●",  # of an operation, where its wires begin and end
}
"""All are one cell wide."""


def break_glyph(one: BreakView) -> str:
    """Return the glyph of a breakpoint: a dot, hollow if it is off, a lozenge if it has a condition."""
    return GLYPHS["break-off" if not one.enabled else "break-if" if one.conditional else "break"]


_TWINS = (
    "─- │| ╭+ ╮+ ╰+ ╯+ ├+ ┤+ ┬+ ┴+ ┼+ ╌- ╎: ╵' ╶- └+ ┌+ ┘+ ┐+ ╷| ╴- ═= ╒+ ╕+ ╘+ ╛+ ▼v ▲^ ▸> ▾v ●* ○o ◆? ◦w ↺@ ⊞+ ≠! ·. "
    "…~ →> ←< ↓v ↑^ ×x ≤< ≥> ▁_ ▂_ ▃. ▄- ▅- ▆= ▇= █# ▌| ▐| ░. ▒: ▓# ━= ╸= ┃| ▪# ▫. Δd −- ›> ■$ ␣_ ▀# ▏| ✓v ✗x ±~ ‑- ∞~ "
    "►> ⋮: ΣS ‹< •* –- ²2 ³3 ⋯. ━= ┏# ┓# ┗# ┛# ┣# ┫# ┳# ┻# ╋# ╹' ╻| ╸= ╺= "
    "₁- ₂- ₃- ₄- ₅- ₆- ₇- ₈- ₉-"
)
_BRAILLE = {0x2800 + dots: " " if not dots else "." if dots.bit_count() < 3 else ":" for dots in range(256)}
ASCII_TWINS = {ord(pair[0]): pair[1] for pair in _TWINS.split()} | _BRAILLE
"""For `str.translate`: each glyph and the character that stands for it in a terminal without them."""


_LEFT_OUT = re.compile(r" …(?=[ ,]|$)")
"""Pattern of an ellipsis that stands for numbers or words, not for the middle of a name."""
_ARROW_KEYS = str.maketrans({"→": "Right", "←": "Left", "↓": "Down", "↑": "Up"})


def key_text(keys: str, *, ascii: bool) -> str:
    """Return keys as they are written; where there are no arrows in words, or their twins would read as keys."""
    return keys.translate(_ARROW_KEYS) if ascii else keys


def in_ascii(text: str) -> str:
    """Return the text, in as many characters, with twins for the glyphs and a question mark for what else is none."""
    return _LEFT_OUT.sub("..", text).translate(ASCII_TWINS).encode("ascii", "replace").decode("ascii")
