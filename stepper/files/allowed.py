"""Options of the command line that a file may set. A file may come from anybody, so no option here loads code."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class SettingsFile(StrEnum):
    """Kind of file whose words become options."""

    FIGURES = "a list of figures"
    PAGE = "a page with a figure"
    LINT = "stepper.toml"
    SWEEP = "a sweep"
    SESSION = "a session"


_RUN = ("rules", "max-iterations", "open-sequences", "input", "inputs", "state", "states", "shape")
_CALLS = ("calls", "carry")
_FIGURE = (
    *("view", "why", "loop", "model", "iters", "values", "constants", "blocks", "only", "hide", "depth", "carried"),
    *("highlight", "around", "hops", "from", "to", "diff", "detail", "preset", "direction", "title", "caption"),
    *("legend", "theme", "scale", "width", "layout", "animate", "pace", "engine", "precision", *_RUN, *_CALLS),
)

ALLOWED: Final[Mapping[SettingsFile, tuple[str, ...]]] = {
    SettingsFile.FIGURES: (*_FIGURE, "as", "frames", "embed", "quiet"),
    SettingsFile.PAGE: _FIGURE,
    SettingsFile.LINT: ("select", "ignore"),
    SettingsFile.SWEEP: (*_RUN, "engine", "engine-for", "device", "precision", "reference", "at", "no-keep"),
    SettingsFile.SESSION: ("rules", "open-sequences", "calls", "states"),
}
"""Long names of options without dashes. `extension` loads a library and `generate` calls a function: never here."""
