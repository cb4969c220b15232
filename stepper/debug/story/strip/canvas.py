"""A grid of cells on which a placement is painted: wires of which no two join, chips and texts above them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stepper.debug.story.strip.layout import Placement, Tone

UP, RIGHT, DOWN, LEFT = 1, 2, 4, 8
_SOLID: Final = " ╵╶╰╷│╭├╴╯─┴╮┤┬┼"
_DASHED: Final = " ╵╶╰╷╎╭├╴╯╌┴╮┤┬┼"
HEAD: Final = "►"

Cell = tuple[str, Tone | str]
WIRE: Final = "wire"
BAD_WIRE: Final = "bad wire"


class StoryCanvas:
    """Cells of a placement: a character and its tone each."""

    def __init__(self, placement: Placement) -> None:
        self.width, self.height = placement.width, placement.height + 1
        self.cells: list[list[Cell]] = [[(" ", "")] * self.width for _ in range(self.height)]
        self._bits: dict[tuple[int, int], int] = {}
        self._owner: dict[tuple[int, int], tuple[int, bool, bool]] = {}
        for chip in placement.chips:
            self.put(chip.x, chip.y, chip.text, chip.tone)
        for text in placement.texts:
            self.put(text.x, text.y, text.text, text.tone)
        for number_of, wire in enumerate(placement.wires):
            for (x0, y0), (x1, y1) in zip(wire.points, wire.points[1:], strict=False):
                self._piece(x0, y0, x1, y1, (number_of, wire.dashed, wire.bad))
        self._ink()
        for wire in placement.wires:
            if wire.head:
                x, y = wire.points[-1]
                self.put(x, y, HEAD, BAD_WIRE if wire.bad else WIRE)

    def put(self, x: int, y: int, text: str, tone: Tone | str) -> None:
        """Write a text; what is outside is dropped."""
        for place, character in enumerate(text, x):
            if 0 <= place < self.width and 0 <= y < self.height:
                self.cells[y][place] = (character, tone)

    def _piece(self, x0: int, y0: int, x1: int, y1: int, owner: tuple[int, bool, bool]) -> None:
        dx, dy = (x1 > x0) - (x1 < x0), (y1 > y0) - (y1 < y0)
        ahead, behind = (RIGHT, LEFT) if dx > 0 else (LEFT, RIGHT) if dx < 0 else (DOWN, UP) if dy > 0 else (UP, DOWN)
        x, y = x0, y0
        while (x, y) != (x1, y1):
            self._bit(x, y, ahead, owner)
            x, y = x + dx, y + dy
            self._bit(x, y, behind, owner)

    def _bit(self, x: int, y: int, bit: int, owner: tuple[int, bool, bool]) -> None:
        """Where two wires cross, the horizontal one is interrupted."""
        at = (x, y)
        if self._owner.get(at, owner) != owner:
            if self._bits[at] == UP | DOWN and bit in (LEFT, RIGHT):
                return
            self._bits[at] = 0
        self._bits[at] = self._bits.get(at, 0) | bit
        self._owner[at] = owner

    def _ink(self) -> None:
        for (x, y), bits in self._bits.items():
            if 0 <= x < self.width and 0 <= y < self.height and self._is_free(x, y):
                _, dashed, bad = self._owner[x, y]
                self.cells[y][x] = ((_DASHED if dashed else _SOLID)[bits], BAD_WIRE if bad else WIRE)

    def _is_free(self, x: int, y: int) -> bool:
        return self.cells[y][x][1] == ""

    def runs(self, y: int) -> Iterator[tuple[str, Tone | str]]:
        """Yield the pieces of a line that have one tone."""
        text, tone = "", self.cells[y][0][1] if self.width else ""
        for character, found in self.cells[y]:
            if found == tone:
                text += character
                continue
            yield text, tone
            text, tone = character, found
        yield text, tone

    def text(self, y: int) -> str:
        """Return a line without tones."""
        return "".join(character for character, _ in self.cells[y]).rstrip()
