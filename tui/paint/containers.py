"""Containers whose own ground is painted once: at each paint Textual asks all of them for it, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import containers
from textual.geometry import Region
from textual.strip import Strip

if TYPE_CHECKING:
    from textual.widget import Widget

    _Widget = Widget
else:
    _Widget = object


class _Steady(_Widget):
    """To be named before a container: its ground and its border only change with its style and its size."""

    _ground: tuple[Region, list[Strip]] | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """Its lines, as far as they are wanted."""
        whole = self.outer_size.region
        if self._ground is None or self._ground[0] != whole:
            self._ground = whole, self._whole(whole)
        lines = self._ground[1][crop.y : crop.bottom]
        return lines if crop.column_span == whole.column_span else [line.crop(*crop.column_span) for line in lines]

    def _whole(self, whole: Region) -> list[Strip]:
        """All lines; those between the edges are one line again and again."""
        gutter = self.styles.gutter
        between = whole.height - gutter.height
        if between < 2:
            return super().render_lines(whole)
        above = super().render_lines(Region(0, 0, whole.width, gutter.top + 1))
        bottom = Region(0, whole.height - gutter.bottom, whole.width, gutter.bottom)
        below = super().render_lines(bottom) if gutter.bottom else []
        return [*above[:-1], *(between * above[-1:]), *below]

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        self._ground = None


class Horizontal(_Steady, containers.Horizontal):
    """Side by side."""


class Vertical(_Steady, containers.Vertical):
    """One below another."""
