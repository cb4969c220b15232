"""Drawings of bodies: small ones whole, large ones around one operation; made at once, or by the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from stepper.debug.debugger import Debugger
from stepper.engine.program import Program
from tui.paint.pane import Host
from tui.screens.graph.drawing import Drawing, Drawings, draw
from tui.screens.graph.neighbourhood import MOST_WHOLE, REACHES, Surroundings

MOST_AT_ONCE: Final = 200
"""Boxes that are laid out while one waits; more of them are laid out by the worker."""


class LayOut(Struct, frozen=True):
    """Lay the graph of a program out."""

    program: Program
    zoom: int

    def answer(self, _debugger: Debugger) -> Drawing:
        """Return the drawing."""
        return draw(self.program, self.zoom)


class LookAround(Struct, frozen=True):
    """Find out which boxes of a program are beside which."""

    program: Program

    def answer(self, _debugger: Debugger) -> Surroundings:
        """Return the boxes and their wires."""
        return Surroundings(self.program)


def is_large(program: Program) -> bool:
    """True if only a neighbourhood of its operations is drawn."""
    return len(program.layers) > MOST_WHOLE


class BodyDrawings:
    """Makes drawings and keeps them; `news` is called when the worker has finished one."""

    def __init__(self, host: Host, news: Callable[[], None]) -> None:
        self._host = host
        self._news = news
        self._kept = Drawings()
        self._surroundings: dict[int, Surroundings] = {}
        self._asked: set[tuple[int, ...]] = set()

    def whole(self, program: Program, zoom: int) -> Drawing | None:
        """Return a body; None until the worker has it."""
        known = self._kept.get(program, zoom)
        if known is None and len(program.graph.layers) <= MOST_AT_ONCE:
            known = draw(program, zoom)
            self._kept.put(known, program, zoom)
        elif known is None and (id(program), zoom) not in self._asked:
            self._asked.add((id(program), zoom))

            def keep(drawing: Drawing) -> None:
                self._asked.discard((id(program), zoom))
                self._kept.put(drawing, program, zoom)
                self._news()

            self._host.driver.ask(LayOut(program, zoom), keep)
        return known

    def near(self, program: Program, layer: int, reach: int) -> Drawing | None:
        """The neighbourhood of an operation, given by its layer's id; None until the worker has seen the body."""
        surroundings = self._surroundings.get(id(program))
        if surroundings is None:
            self._look_around(program)
            return None
        box = surroundings.box_of(layer)
        known = self._kept.get(program, reach, box)
        if known is None:
            known = surroundings.around(box, REACHES[reach])
            self._kept.put(known, program, reach, box)
        return known

    def _look_around(self, program: Program) -> None:
        if (id(program),) in self._asked:
            return
        self._asked.add((id(program),))

        def keep(surroundings: Surroundings) -> None:
            self._surroundings[id(program)] = surroundings
            self._news()

        self._host.driver.ask(LookAround(program), keep)
