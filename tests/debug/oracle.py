"""What breakpoints are held against: a run told operation by operation, with all values of every moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason, Stop
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every, Phase
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from tests.models import Graph


@dataclass(frozen=True)
class Moment:
    """One moment: what has just been done, in which iterations of which loops, and the values of its frame by name."""

    tick: int
    kind: str
    done: str
    iterations: tuple[int, ...]
    values: dict[str, Any]
    ended: bool


def moments(graph: Graph, folder: Path, *inputs: Any) -> list[Moment]:
    """All moments of a run."""
    model = graph.read(folder)
    machine = Machine(compile_model(model), bind_inputs(model, dict(enumerate(inputs))))
    found = []
    for event in machine.run(Every.OPERATION):
        frame, program = event.frame, event.frame.program
        if machine.finished:
            break
        top = machine.stack[-1] if event.kind.name == "LEFT" else frame
        done = top.program.operations[top.pc - 1].layer.name if top.phase is Phase.RUNNING and top.pc else ""
        iterations = tuple(f.activation.iteration for f in machine.stack if f.activation is not None)
        named = {program.graph.by_id[layer].name: frame.values[slot] for (layer, _), slot in program.slots.items()}
        values = {name: np.array(value) for name, value in named.items() if value is not None}
        ended = frame.activation is not None and frame.activation.ended is not None
        found.append(Moment(event.tick, event.kind.name, done, iterations, values, ended))
    return found


def ticks(found: Iterable[Moment], fits: Callable[[Moment], bool]) -> list[int]:
    return [moment.tick for moment in found if fits(moment)]


def after(found: Iterable[Moment], name: str, fits: Callable[[Moment], bool] = lambda moment: True) -> list[int]:
    """The ticks after an operation."""
    return ticks(found, lambda moment: moment.done == name and moment.kind in ("OPERATION", "LEFT") and fits(moment))


def closed(found: Iterable[Moment], *iterations: int) -> list[int]:
    """The ticks at which these iterations of innermost loops were closed."""
    return ticks(found, lambda moment: moment.kind == "ITERATION" and moment.iterations[-1] in iterations)


def debugger(graph: Graph, folder: Path, *inputs: Any, **options: Any) -> Debugger:
    return Debugger(graph.read(folder), dict(enumerate(inputs)), **options)


def forward(run: Debugger, most: int = 1000) -> list[Stop]:
    """All stops of `continue` up to the end of the run."""
    stops = []
    for _ in range(most):
        stop = run.continue_()
        if stop.reason is not Reason.BREAK:
            return stops
        stops.append(stop)
    return stops


def backward(run: Debugger) -> list[Stop]:
    """All stops of `reverse-continue` down to the start of the run, the earliest first."""
    stops = []
    while (stop := run.reverse_continue()).reason is Reason.BREAK:
        stops.append(stop)
    return stops[::-1]


def stops_both_ways(run: Debugger) -> list[int]:
    """The ticks of all stops, which have to be the same forward and backward, with the same sentences."""
    there = forward(run)
    run.last()
    back = backward(run)
    assert [(stop.tick, stop.details) for stop in there] == [(stop.tick, stop.details) for stop in back]
    assert [stop.tick for stop in forward(run)] == [stop.tick for stop in there], "the same once more"
    assert not run.timeline.warnings
    return [stop.tick for stop in there]
