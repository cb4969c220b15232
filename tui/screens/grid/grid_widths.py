"""How wide a cell of the grid is: as wide as its number where all iterations fit so, else by the room there is."""

from __future__ import annotations

from typing import Final

WIDTHS: Final = (1, 2, 4, 5, 7, 8, 9)
"""Cells of the terminal for one of the grid; from 4 on the last is air."""
NUMBERED: Final = 8
"""From this width on a cell has its number beside the shade."""

_AMPLE: Final = 110
"""Cells for the iterations that are enough, with numbers or without."""


def usual(width: int, room: int, iterations: int | None) -> int:
    """Which of the widths it is without zoom, in `room` cells of a pane that is `width` wide."""
    least = 3 if width >= 146 else 2 if width > 106 else 1
    fitting = [at for at, wide in enumerate(WIDTHS) if iterations is not None and iterations * wide <= room]
    return max([least, *fitting[-1:]])


def suffices(room: int, whole: int, iterations: int | None) -> bool:
    """Whether all iterations fit into `room` cells, and with their numbers where they would have them in the whole."""
    if iterations is None or iterations * WIDTHS[3] > room:
        return False
    return room >= _AMPLE or iterations * NUMBERED <= room or iterations * NUMBERED > whole
