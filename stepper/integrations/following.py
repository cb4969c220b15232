"""Figure and overview that follow a session on a page beside it: the body at a stop with its operation, and the run.

An editor's view and a notebook's widget show both. A figure is drawn once for each body; a stop tells which of its
boxes is meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from stepper.debug.debugger import Debugger
from stepper.debug.inspection.views import FrameView, frame_views
from stepper.debug.overview.overview_facts import Overview, RunState, address_in_loop, programs_of
from stepper.diagnosis.check.checking import check_overview
from stepper.diagnosis.texts import headline
from stepper.engine.program import Program
from stepper.errors import StepperError, UsageError
from stepper.export.exporter import draw
from stepper.export.figures.figure import InnerBody, prefix_of
from stepper.export.overview_page import overview_html
from stepper.ir.model import Layer
from stepper.query.address_resolution import Atlas, layer_address
from stepper.records import Record

SECONDS = 2.0
"""How long the run behind an overview may take, each time that it is asked for."""
MEMORY = 256 << 20
"""Bytes that it may keep."""


class BodyFigure(Record):
    """Hold the rolled figure of a loop's body or of the model: `svg`, and box addresses by id."""

    title: str
    svg: str
    addresses: dict[str, str]


class FollowedStop(Record):
    """Where a session stands: the figure by its number, and the id of the box that ran last in it (empty: none has).

    `column` is the iteration of the innermost loop, as the overview's columns name it (empty outside of loops).
    """

    figure: int
    box: str
    column: str
    tick: int
    place: str


class Follower:
    """Figures of a run, for whoever shows them."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger
        self._compiled = debugger.machine.compiled
        self._atlas = Atlas(self._compiled)
        self._figures: list[BodyFigure] = []
        self._boxes: list[dict[tuple[int, int], str]] = []
        self._numbers: dict[int, int] = {}

    def stop(self) -> FollowedStop:
        """Return where the session stands now."""
        stop, frames = self._debugger.stop, frame_views(self._debugger.machine.stack)
        outside = _loop_around(frames)
        program = frames[outside].program if frames else self._compiled.main
        number = self._number(program)
        box = ""
        if frames:
            inner = frames[-1]
            layer = self._layer_at(inner)
            box = "" if layer is None else self._boxes[number].get((id(inner.program), layer.id), "")
        return FollowedStop(number, box, self._column(frames, outside), stop.tick, stop.place)

    def figure(self, number: int) -> BodyFigure:
        """Return a figure by the number that a stop has given. UsageError for another one."""
        if not 0 <= number < len(self._figures):
            raise UsageError(f"no stop has a figure {number}")
        return self._figures[number]

    def overview(self) -> str:
        """Return the overview of the run that the session is of, as far as it comes in SECONDS."""
        overview = self._run()
        run = check_overview(self._debugger, overview, SECONDS / 4)
        found = [f"{one.severity}: {headline(one)}" for one in run.findings if not one.is_birth]
        return overview_html(overview, self._compiled, found, run.checked)

    def _run(self) -> Overview:
        return self._debugger.run_overview(seconds=SECONDS, endless_seconds=SECONDS / 4, memory=MEMORY)

    def iterations(self) -> int:
        """Return how many iterations the loop that is followed has in this run of it; 0 where that is not known."""
        frames = frame_views(self._debugger.machine.stack)
        depth = _loop_around(frames)
        if not frames or not frames[depth].program.path:
            return 0
        overview = self._debugger.overview()
        if overview.state is RunState.NOT_RUN:
            overview = self._run()
        outer = tuple(one.iteration for one in frames[:depth] if one.iteration is not None)
        program = frames[depth].program
        for facts, one in zip(overview.loops, programs_of(self._compiled), strict=True):
            if one is program:
                return next((run.iterations for run in facts.activations if run.outer == outer), 0)
        return 0

    def _column(self, frames: Sequence[FrameView], depth: int) -> str:
        if not frames or not frames[depth].program.path or (at := frames[depth].iteration) is None:
            return ""
        outer = [one.iteration for one in frames[:depth] if one.iteration is not None]
        return address_in_loop(frames[depth].program, outer, at, self._compiled)

    def _layer_at(self, frame: FrameView) -> Layer | None:
        """Return the layer that runs in a frame, or ran last."""
        at = frame.last if frame.running is None else frame.running
        return frame.layers[at] if 0 <= at < len(frame.layers) else None

    def _number(self, program: Program) -> int:
        """Return the number of the figure of a body; it is drawn where it is new."""
        known = self._numbers.get(id(program))
        if known is None:
            known = self._numbers[id(program)] = len(self._figures)
            self._draw(program)
        return known

    def _draw(self, program: Program) -> None:
        model = self._debugger.model
        name = "::".join(layer.name for layer in program.path)
        addresses: dict[str, str] = {}
        boxes: dict[tuple[int, int], str] = {}
        self._boxes.append(boxes)
        try:
            picture = draw(model, view="rolled", loop=name) if program.path else draw(model, view="model")
            svg = picture.text("svg")
        except StepperError as error:  # a figure that cannot be drawn holds nobody up
            self._figures.append(BodyFigure(str(error), "", {}))
            return
        known = frozenset(re.findall(r' id="([^"]*)"', svg))
        found = re.search(r'class="stepper (\w+)"', svg)
        for one in (program, *self._atlas.deep_inside([program])):
            inside = prefix_of(self._bodies(one)[max(len(program.path) - 1, 0) :])
            for operation in one.operations:
                ids = (f"{found[1] if found else ''}.{inside}{kind}{operation.layer.id}" for kind in ("n", "c"))
                if box := next((name for name in ids if name in known), ""):
                    addresses[box] = str(layer_address(operation.layer, one, self._compiled))
                    boxes[id(one), operation.layer.id] = box
        self._figures.append(BodyFigure(picture.figure.title, svg, addresses))

    def _bodies(self, program: Program) -> tuple[InnerBody, ...]:
        """Return the bodies that lead to a graph, from the outside inwards."""
        around = [self._atlas.ancestor(program, depth).graph for depth in range(1, len(program.path) + 1)]
        return tuple(
            InnerBody(layer.id, next(body.role for body in layer.bodies if body.graph is graph))
            for layer, graph in zip(program.path, around, strict=True)
        )


def _loop_around(frames: Sequence[FrameView]) -> int:
    """Return the depth of the innermost frame that is of a loop's body, 0 where none is."""
    depths = (depth for depth, frame in enumerate(frames) if frame.program.path and frame.program.path[-1].is_loop)
    return max(depths, default=0)
