"""Colours of a figure: for print (no colour needed), for light and dark pages, and for the reader's own content."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from stepper.export.options import Theme

FONT: Final = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"

Palette = Mapping[str, str]


def _palette(text: str) -> Palette:
    return MappingProxyType(dict(word.split("=") for word in text.split()))


PALETTES: Final[Mapping[Theme, Palette]] = MappingProxyType(
    {
        Theme.PRINT: _palette(
            "page=#ffffff ink=#000000 quiet=#000000 wire=#000000 box=#ffffff edge=#000000 in=#ffffff in-edge=#000000 "
            "out=#ffffff out-edge=#000000 body=#ffffff body-edge=#000000 back=#000000 mark=#000000 now=#ffffff "
            "now-edge=#000000 shade=#000000"
        ),
        Theme.LIGHT: _palette(
            "page=#ffffff ink=#1f2328 quiet=#59636e wire=#6e7781 box=#ffffff edge=#818b98 in=#ddf4ff in-edge=#0969da "
            "out=#dafbe1 out-edge=#1a7f37 body=#f6f8fa body-edge=#d1d9e0 back=#bc4c00 mark=#cf222e now=#fff8c5 "
            "now-edge=#9a6700 shade=#0969da"
        ),
        Theme.DARK: _palette(
            "page=#0d1117 ink=#e6edf3 quiet=#9198a1 wire=#8b949e box=#0d1117 edge=#6e7681 in=#0c2d4f in-edge=#58a6ff "
            "out=#0f2f1b out-edge=#3fb950 body=#161b22 body-edge=#3d444d back=#f0883e mark=#ff7b72 now=#3b2e00 "
            "now-edge=#e3b341 shade=#58a6ff"
        ),
    }
)


def palette(theme: Theme) -> Palette:
    """Return the colours of a theme; of `auto` those of light."""
    return PALETTES[Theme.LIGHT if theme is Theme.AUTO else theme]


def variables(theme: Theme, scope: str) -> str:
    """Return CSS that sets the colours as variables of `scope`; `auto` follows the reader's colour scheme."""
    rule = _declared(palette(theme), scope)
    if theme is not Theme.AUTO:
        return rule
    return f"{rule}\n@media (prefers-color-scheme: dark) {{ {_declared(PALETTES[Theme.DARK], scope)} }}"


def _declared(colours: Palette, scope: str) -> str:
    return f"{scope} {{ {' '.join(f'--{name}: {value};' for name, value in colours.items())} }}"
