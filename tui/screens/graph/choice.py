"""Which drawing of a body is shown: the one that fits, one at a chosen size, a neighbourhood, or what one box needs."""

from __future__ import annotations

from textual.geometry import Size

from stepper.engine.program import Program
from tui.paint.names import operation_names
from tui.paint.pane import Host
from tui.paint.rows import cell_len, clip
from tui.screens.graph.drawing import Drawing
from tui.screens.graph.drawings import BodyDrawings, is_large
from tui.screens.graph.fitting import Fitting, fits, map_width, part_width
from tui.screens.graph.levels import LEVELS, MAP, NAMES, Manner
from tui.screens.graph.neighbourhood import REACHES, usual_reach


class DrawingChoice:
    """Choice of the user, and the drawing that follows from it in a room (without the heading).

    `level` is None where it follows the room; `is_only`: only what the selected operation has to do with.
    """

    def __init__(self, host: Host, drawings: BodyDrawings) -> None:
        self._host, self._drawings = host, drawings
        self.level: int | None = None
        self.is_only = False
        self.opened: frozenset[tuple[int, int]] = frozenset()
        self.room = Size(0, 0)
        self._reach: int | None = None
        self._tallest: tuple[Size, int, int] = Size(0, 0), 0, 0

    def put(self, room: Size, screen: Size) -> None:
        """There is so much room. Boxes do not change their size when a stop or an answer takes some rows of it."""
        at, width, most = self._tallest
        is_same = at == screen and width == room.width
        self._tallest = screen, room.width, max(most, room.height) if is_same else room.height
        self.room = room

    @property
    def is_map(self) -> bool:
        """True if the graph is drawn as a map alone."""
        return self.level == MAP and not self.is_only

    @property
    def reach(self) -> int:
        """How far a neighbourhood goes, an index of REACHES."""
        return usual_reach(self.room.height + 1) if self._reach is None else self._reach

    def drawing(self, program: Program, layer: int | None) -> Drawing | None:
        """Return the drawing of a body; `layer` is the selected one. None where it is not ready yet."""
        width = self.room.width
        if self.is_only and layer is not None:
            return self._drawings.only(program, layer, Manner(self.level or NAMES, width))
        near = program.layers[-1].id if layer is None and program.layers else layer
        if is_large(program) and self.level != MAP and near is not None:
            return self._drawings.near(program, near, self.reach, width - map_width(width))
        how = self.fitting(program)
        drawing = self._drawings.whole(program, how)
        if drawing is not None and drawing.manner.expressions and layer is not None:
            return self._drawings.entered(program, drawing, layer, how)
        is_cut = drawing is not None and not drawing.manner.parts > 1 and drawing.width + drawing.gutter > width
        if self.level is None and is_cut and near is not None:
            return self._drawings.near(program, near, self.reach, width)
        return drawing

    def fitting(self, program: Program, level: int | None = None) -> Fitting:
        """Return the request for a drawing in the room that there is, or for the one at a level."""
        unfolded = self._host.folding.open_layers(program)
        height = max(self._tallest[2], 1)
        return Fitting(self.room.width, height, self.level if level is None else level, unfolded, self.opened)

    def map_width(self, program: Program | None, drawing: Drawing | None) -> int:
        """Return the columns of the map beside a graph of which a part is seen; 0 where all is."""
        if drawing is None or program is None or self.is_map:
            return 0
        if drawing.is_part and (self.is_only or not is_large(program)):
            return 0
        if not drawing.is_part and fits(drawing, *self.room):
            return 0
        wide = map_width(self.room.width)
        return wide if drawing.width + drawing.gutter <= part_width(self.room.width - wide, drawing.manner.parts) else 0

    def zoom_by(self, by: int, program: Program, drawing: Drawing) -> None:
        """Larger or smaller boxes, of a neighbourhood fewer or more; at the size that fits they follow the room."""
        if drawing.is_part and not self.is_only:
            if self.reach + by < 0:
                self.level = MAP
            else:
                self._reach = max(0, min(self.reach + by, len(REACHES) - 1))
        elif is_large(program) and self.is_map:
            self.level = None if by > 0 else MAP
        else:
            at = drawing.manner.level if self.level is None else self.level
            wanted = max(MAP, min(at + by, len(LEVELS) - 1))
            usual = None if self.is_only else self._usual(program)
            self.level = None if usual is not None and usual.manner.level == wanted else wanted

    def _usual(self, program: Program) -> Drawing | None:
        """Return the drawing that fits, if it is there."""
        level, self.level = self.level, None
        try:
            return self._drawings.whole(program, self.fitting(program))
        finally:
            self.level = level

    def note(self, program: Program, drawing: Drawing, cursor: int | None, room: int) -> str:
        """Return how many boxes, of which kind; or around what, and how far."""
        name = operation_names(program)[-1 if cursor is None else cursor] if program.layers else ""
        if self.is_only and drawing.is_part:
            words = ": its inputs, readers, cycle"
            return f"{clip(name, max(room - len(words), 4))}{words}"
        if drawing.is_part:
            return self._whereabouts(len(program.layers), name, room)
        level = LEVELS[MAP if self.is_map else drawing.manner.level].name
        part = "" if self.is_map or fits(drawing, *self.room) else " · a part"
        boxes, count = len(drawing.graph.nodes), drawing.graph.unfolded
        folded = f" in {boxes}" if count > boxes else ""
        return f"{count} nodes{folded} · {level}{part}"

    def _whereabouts(self, count: int, name: str, room: int) -> str:
        """Return which part of the body is drawn; less of that where there is less room."""
        levels = REACHES[self.reach].levels
        far = f"{levels} level{'' if levels == 1 else 's'}"
        for text in (
            f"{count:,} ops · around {name} · {far} · - + wider, nearer",
            f"{count:,} ops · around {name} · {far}",
            f"around {name} · {far}",
        ):
            if cell_len(text) <= room:
                return text
        return f"{clip(name, max(room - len(far) - 3, 4))} · {far}"
