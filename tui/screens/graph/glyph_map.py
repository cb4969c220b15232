"""The whole graph in few cells: a glyph where boxes are, wires as Braille dots; beside a part of it, or with names."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from stepper.export.figures.figure import NodeKind
from stepper.export.layout.layered import Box
from tui.paint.rows import Row, cell_len, clip
from tui.screens.graph.cells import Cells, Indices, Scene, Tones, joined
from tui.screens.graph.drawing import Drawing

_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a Braille character by row and column."""
_BRAILLE: Final = 0x2800
_MOST_NAMED: Final = 400
"""Boxes of which each may have its name on the map; of more those have that matter."""
_NAME: Final = 14
_DONE, _PENDING, _NOW, _ON = "▪", "▫", "▸", "■"


class MapCell(NamedTuple):
    """A cell of the map."""

    x: int
    y: int


class GlyphMap:
    """A drawing in so many cells; made once for each drawing and size."""

    def __init__(self, drawing: Drawing, indices: Indices, width: int, height: int) -> None:
        self.drawing, self.width, self.height = drawing, width, height
        self._indices = indices
        # A cell of the drawing is never more than one of the map.
        self._across = min(2 * width / max(drawing.width, 1), 2.0)
        self._down = min(4 * height / max(drawing.height, 1), 4.0)
        self._shift = max(width - int(drawing.width * self._across / 2), 0) // 2
        self._wires = self._dots()
        self._cell_of = {key: self._cell(box.centre, box.y + box.height // 2) for key, box in self._boxes()}
        self._keys: dict[MapCell, list[int]] = {}
        for key, cell in self._cell_of.items():
            self._keys.setdefault(cell, []).append(key)
        self._last = {cell: self._last_of(keys) for cell, keys in self._keys.items()}
        self._is_port = {
            cell
            for cell, keys in self._keys.items()
            if all(drawing.graph.node(key).kind in (NodeKind.PARAMETER, NodeKind.RESULT) for key in keys)
        }
        self._cell_of_operation = {
            index: cell for key, cell in self._cell_of.items() for index in self._indices.of(key)
        }

    def _boxes(self) -> Iterable[tuple[int, Box]]:
        return ((key, box) for key, box in self.drawing.layout.boxes.items() if key not in self.drawing.signs)

    def _last_of(self, keys: Sequence[int]) -> int:
        return max((index for key in keys for index in self._indices.of(key)), default=-1)

    def _cell(self, x: int, y: int) -> MapCell:
        y += self.drawing.margin
        column = min(int(x * self._across / 2) + self._shift, self.width - 1)
        return MapCell(column, min(int(y * self._down / 4), self.height - 1))

    def _dots(self) -> dict[MapCell, int]:
        found: dict[MapCell, int] = {}
        shift, margin = 2 * self._shift, self.drawing.margin

        def put(x: int, y: int) -> None:
            cell = MapCell(min(x // 2, self.width - 1), min(y // 4, self.height - 1))
            found[cell] = found.get(cell, 0) | _DOTS[y % 4][x % 2]

        for wire in self.drawing.layout.wires.values():
            for x0, y0, x1, y1 in wire.segments:
                left, right = (int(x * self._across) + shift for x in (x0, x1))
                above, below = (int((y + margin) * self._down) for y in (y0, y1))
                for x in range(left, right + 1):
                    for y in range(above, below + 1):
                        put(x, y)
        return found

    # --- where things are ----------------------------------------------------------------------------------------

    def row_of(self, y: int) -> int:
        """Return the row of the map in which a row of the drawing is."""
        return min(int(y * self._down / 4), self.height - 1)

    def drawn_row(self, y: int) -> int:
        """Return the row of the drawing that is shown in the middle of a row of the map."""
        return int((y + 0.5) * 4 / self._down)

    def box_at(self, x: int, y: int, *, far: bool = False) -> int | None:
        """Return the box nearest to a cell, in its row and not more than two cells away; `far`: wherever it is."""
        near = [cell for cell in self._keys if far or (abs(cell.x - x) <= 2 and cell.y == y)]
        if not near:
            return None
        keys = self._keys[min(near, key=lambda cell: (abs(cell.y - y), abs(cell.x - x)))]
        return keys[len(keys) // 2]

    # --- painting ------------------------------------------------------------------------------------------------

    def rows(
        self,
        scene: Scene,
        cursor: int | None,
        *,
        seen: Container[int] | None = None,
        names: Sequence[int] | None = None,
        lit: frozenset[int] | None = None,
    ) -> list[Row]:
        """Return all rows; those in `seen` are marked at the left edge.

        `names` are the boxes named first; then all are for which there is room.
        """
        cells = [[" "] * self.width for _ in range(self.height)]
        tones = [[""] * self.width for _ in range(self.height)]
        for cell, bits in self._wires.items():
            cells[cell.y][cell.x], tones[cell.y][cell.x] = chr(_BRAILLE | bits), "wire"
        self._put_glyphs(scene, cursor, lit, cells, tones)
        if names is not None:
            self._put_names(scene, cursor, names, cells, tones)
        rows = [joined(*both) for both in zip(cells, tones, strict=True)]
        if seen is None:
            return rows
        return [[("┃" if y in seen else " ", "accent"), *row] for y, row in enumerate(rows)]

    def _put_glyphs(
        self, scene: Scene, cursor: int | None, lit: frozenset[int] | None, cells: list[Cells], tones: list[Tones]
    ) -> None:
        frame = scene.frame
        last = -1 if frame is None else frame.last
        for cell, index in self._last.items():
            is_done = scene.ended or (frame is not None and index <= last)
            glyph, tone = (_DONE, "done") if is_done else (_PENDING, "box")
            if cell in self._is_port:
                glyph, tone = _DONE, "port"
            if lit is not None and lit.isdisjoint(self._keys[cell]):
                tone = "away"
            cells[cell.y][cell.x], tones[cell.y][cell.x] = glyph, tone
        for index in bad_operations(scene):
            bad = self._cell_of_operation.get(index)
            if bad is not None:
                cells[bad.y][bad.x], tones[bad.y][bad.x] = scene.anomaly(index)[:1], "bad"
        if cursor is not None and cursor in self._cell_of:
            at = self._cell_of[cursor]
            cells[at.y][at.x], tones[at.y][at.x] = _ON, "on"
        moment = -1 if frame is None else frame.moment
        now = self._cell_of_operation.get(moment)
        if now is not None:
            cells[now.y][now.x], tones[now.y][now.x] = _NOW, "now"

    def _put_names(
        self, scene: Scene, cursor: int | None, first: Sequence[int], cells: list[Cells], tones: list[Tones]
    ) -> None:
        """Write names beside glyphs: those of `first` over wires if they must, the others where nothing is."""
        drawing = self.drawing
        others = drawing.layout.boxes if len(drawing.layout.boxes) <= _MOST_NAMED else ()
        nodes = set(self._keys)
        taken: set[MapCell] = set()
        for place, key in enumerate(dict.fromkeys([*first, *others])):
            cell = self._cell_of.get(key)
            if cell is None:
                continue
            text = clip(drawing.labels[key], _NAME)
            wide = cell_len(text)
            over_wires = place < len(first)
            for begin in (cell.x + 2, cell.x - wide - 1):
                room = [MapCell(x, cell.y) for x in range(begin - 1, begin + wide + 1)]
                inside = begin >= 0 and begin + wide <= self.width
                free = taken.isdisjoint(room) and all(at == cell or at not in nodes for at in room)
                if inside and free and (over_wires or not any(at in self._wires for at in room[1:-1])):
                    tone = "on" if key == cursor else "strong" if over_wires else "dim"
                    for at, letter in zip(range(begin, begin + wide), text, strict=False):
                        cells[cell.y][at], tones[cell.y][at] = letter, tone
                    taken.update(room)
                    break


def bad_operations(scene: Scene) -> list[int]:
    """Return the operations that gave NaN or Inf in this iteration, by their indices."""
    frame, history = scene.frame, scene.history
    row = -1 if frame is None or history is None else (frame.iteration or 0) - history.first
    if frame is None or history is None or not 0 <= row < len(history.known):
        return []
    bad = history.known[row] & ~np.isfinite(history.numbers[row])
    return [int(index) for index in np.flatnonzero(bad[: frame.last + 1])]
