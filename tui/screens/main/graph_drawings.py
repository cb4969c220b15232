"""What the body pane draws: small bodies whole, large ones around one operation; made at once, or by the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from stepper.engine.program import Program
from tui.paint.drawing import Drawing, Drawings, draw
from tui.paint.neighbourhood import MOST_WHOLE, REACHES, Surroundings

MOST_AT_ONCE: Final = 200
"""Boxes that are laid out while one waits; more of them are laid out by the worker."""

Ask = Callable[[Callable[[], Any], Callable[[Any], None]], None]
"""Has the worker make something, and hands it over in the application."""


def is_large(program: Program) -> bool:
    """Whether only a neighbourhood of its operations is drawn."""
    return len(program.layers) > MOST_WHOLE


class BodyDrawings:
    """Makes drawings and keeps them."""

    def __init__(self) -> None:
        self._kept = Drawings()
        self._surroundings: dict[int, Surroundings] = {}
        self._asked: set[tuple[int, ...]] = set()

    def whole(self, program: Program, zoom: int, ask: Ask) -> Drawing | None:
        """A body; None until the worker has it."""
        known = self._kept.get(program, zoom)
        if known is None and len(program.graph.layers) <= MOST_AT_ONCE:
            known = draw(program, zoom)
            self._kept.put(known, program, zoom)
        elif known is None and (id(program), zoom) not in self._asked:
            self._asked.add((id(program), zoom))

            def keep(drawing: Drawing) -> None:
                self._asked.discard((id(program), zoom))
                self._kept.put(drawing, program, zoom)

            ask(lambda: draw(program, zoom), keep)
        return known

    def near(self, program: Program, layer: int, reach: int, ask: Ask) -> Drawing | None:
        """The neighbourhood of an operation, given by its layer's id; None until the worker has seen the body."""
        surroundings = self._surroundings.get(id(program))
        if surroundings is None:
            self._look_around(program, ask)
            return None
        box = surroundings.box_of(layer)
        known = self._kept.get(program, reach, box)
        if known is None:
            known = surroundings.around(box, REACHES[reach])
            self._kept.put(known, program, reach, box)
        return known

    def _look_around(self, program: Program, ask: Ask) -> None:
        if (id(program),) in self._asked:
            return
        self._asked.add((id(program),))

        def keep(surroundings: Surroundings) -> None:
            self._surroundings[id(program)] = surroundings

        ask(lambda: Surroundings(program), keep)
