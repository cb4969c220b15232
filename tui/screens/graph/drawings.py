"""Drawings of bodies: small ones whole, large ones around one operation; made at once, or by the worker."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from stepper.debug.debugger import Debugger
from stepper.engine.program import Program
from stepper.records import Record
from tui.paint.pane import Host
from tui.screens.graph.drawing import Drawing, Drawings
from tui.screens.graph.fitting import Fitting, entered, fitted
from tui.screens.graph.levels import Manner
from tui.screens.graph.neighbourhood import MOST_WHOLE, REACHES, Surroundings

MOST_AT_ONCE: Final = 80
"""Layers that are laid out while one waits; more of them are laid out by the worker."""


class LayOut(Record):
    """Lay the graph of a program out."""

    program: Program
    how: Fitting

    def answer(self, _debugger: Debugger) -> Drawing:
        """Return the drawing."""
        return fitted(self.program, self.how)


class LookAround(Record):
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
        self._asked: set[tuple[Hashable, ...]] = set()

    def whole(self, program: Program, how: Fitting) -> Drawing | None:
        """Return a body; None until the worker has it."""
        known = self._kept.get(program, how)
        if known is None and len(program.graph.layers) <= MOST_AT_ONCE:
            known = fitted(program, how)
            self._kept.put(known, program, how)
        elif known is None and (id(program), how) not in self._asked:
            self._asked.add((id(program), how))

            def keep(drawing: Drawing) -> None:
                self._asked.discard((id(program), how))
                self._kept.put(drawing, program, how)
                self._news()

            self._host.driver.ask(LayOut(program, how), keep)
        return known

    def entered(self, program: Program, drawing: Drawing, layer: int, how: Fitting) -> Drawing:
        """Return a drawing of a body with the box that a layer is in opened in place, if it is one that is folded."""
        known = self._kept.get(program, "entered", layer, how)
        if known is None:
            known = entered(program, drawing, layer, how.height)
            for one in known.manner.entered or {layer}:
                self._kept.put(known, program, "entered", one, how)
        return known

    def kept(self, program: Program, how: Fitting) -> Drawing | None:
        """Return a body that was laid out before, without asking for it."""
        return self._kept.get(program, how)

    def near(self, program: Program, layer: int, reach: int, room: int) -> Drawing | None:
        """The neighbourhood of an operation, given by its layer's id; None until the worker has seen the body."""
        surroundings = self.surroundings(program)
        if surroundings is None:
            return None
        box = surroundings.box_of(layer)
        known = self._kept.get(program, reach, box, room)
        if known is None:
            known = surroundings.around(box, REACHES[reach], room)
            self._kept.put(known, program, reach, box, room)
        return known

    def only(self, program: Program, layer: int, manner: Manner) -> Drawing | None:
        """An operation with what it reads, what reads it, and its cycle; None until the worker has seen the body."""
        surroundings = self.surroundings(program)
        if surroundings is None:
            return None
        box = surroundings.box_of(layer)
        known = self._kept.get(program, "only", box, manner)
        if known is None:
            known = surroundings.only(box, manner)
            self._kept.put(known, program, "only", box, manner)
        return known

    def surroundings(self, program: Program) -> Surroundings | None:
        """Return which boxes of a body are beside which; None until the worker has found out."""
        found = self._surroundings.get(id(program))
        if found is None and (id(program),) not in self._asked:
            self._asked.add((id(program),))

            def keep(surroundings: Surroundings) -> None:
                self._surroundings[id(program)] = surroundings
                self._news()

            self._host.driver.ask(LookAround(program), keep)
        return found
