"""The part of a drawing that is seen: where it begins, and how it follows the selected box."""

from __future__ import annotations

from textual.geometry import Size

from tui.screens.graph.drawing import Drawing
from tui.screens.graph.fitting import BETWEEN, MOST_LOST, fits, part_starts, part_width
from tui.screens.graph.levels import LINES


class Viewport:
    """Rows and columns of a drawing in a pane of some size, of which a map at the right may take a part.

    A graph that is smaller than its room stands in the middle of it. One in several parts goes on beside itself.
    """

    def __init__(self) -> None:
        self.top = self.left = 0
        self.drawing: Drawing | None = None
        self.size = Size(0, 0)
        self.map_width = 0

    def put(self, drawing: Drawing | None, size: Size, map_width: int) -> None:
        """Look at a drawing in so much room; `size` is that without the heading."""
        self.drawing, self.size, self.map_width = drawing, size, map_width

    @property
    def parts(self) -> int:
        """How many parts stand side by side."""
        return 1 if self.drawing is None else self.drawing.manner.parts

    @property
    def room(self) -> Size:
        """The columns for boxes, and the rows of all parts."""
        gutter = 0 if self.drawing is None else self.drawing.gutter
        wide = part_width(self.size.width - self.map_width, self.parts)
        return Size(max(wide - gutter, 1), max(self.size.height, 1) * self.parts)

    @property
    def is_whole(self) -> bool:
        """True if all is seen."""
        return self.drawing is None or fits(self.drawing, self.size.width, self.size.height)

    def starts(self) -> list[int]:
        """Return the row with which each part begins."""
        return [self.top] if self.drawing is None else part_starts(self.drawing, self.top, self.size.height)

    def cell_at(self, x: int, y: int) -> tuple[int, int] | None:
        """Return the column and row of the drawing that is seen in a cell below the heading; None for none."""
        if self.drawing is None:
            return None
        place, x = divmod(x, self.room.width + self.drawing.gutter + BETWEEN) if self.parts > 1 else (0, x)
        starts = self.starts()
        if place >= len(starts) or y < 0:
            return None
        row = y + starts[place]
        if place + 1 < len(starts) and row >= starts[place + 1]:
            return None
        return x + self.left, row

    def follow(self, key: int | None, *, anew: bool = False) -> None:
        """Keep a box in the inner area; `anew`: bring it into the middle. None is the end of the graph."""
        drawing = self.drawing
        if drawing is None:
            return
        if key is None:
            self.top = drawing.height
        else:
            box, room = drawing.layout.boxes[key], self.room
            y = box.y + drawing.margin
            if anew or not self.top + 2 <= y <= self.top + room.height - box.height - 2:
                self.top = y - room.height // 2 + (box.height // 2 if drawing.is_part else 2)
            if anew or not self.left <= box.x <= self.left + room.width - box.width:
                self.left = box.centre - room.width // 2
        self._clamp(drawing)

    def move(self, right: int, down: int) -> None:
        """See what is further to the right and below."""
        self.left += right
        self.top += down
        if self.drawing is not None:
            self._clamp(self.drawing)

    def _clamp(self, drawing: Drawing) -> None:
        room = self.room
        spare, below = drawing.width - room.width, drawing.height - room.height
        if drawing.is_part:  # what is in the middle stays there as long as nothing gets out of sight by that
            self.top = max(min(below, 0), min(self.top, max(below, 0)))
            self.left = max(min(spare, 0), min(self.left, max(spare, 0)))
            return
        if self.parts > 1:
            lost = 0 if drawing.manner.level == LINES else MOST_LOST * (self.parts - 1)
            self.top = 0 if self.is_whole else max(0, min(self.top, below + lost))
        else:
            self.top = max(0, min(self.top, below)) if below > 0 else below // 2
        self.left = max(0, min(self.left, spare)) if spare > 0 else spare // 2
        if drawing.manner.expressions:  # what opens and closes with the cursor moves nothing above it
            self.top, self.left = max(self.top, 0), max(self.left, 0)
