"""From a request for a figure of two runs to the request with their differences, and the iterations where they part."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from stepper.engine.machine import Machine
from stepper.errors import UsageError
from stepper.export.figures.loop_trace import ELIDED, WHOLE, LoopPath, find_loop, loops_of, split_activation
from stepper.export.options import FigureView, TimeDirection, ValueDetail
from stepper.export.parting import Numbers, RunDifferences, compare_runs, graphs_within
from stepper.export.picture import FigureRequest
from stepper.ir.model import Model
from stepper.recording.origin import Iterations

_FITTING = (FigureView.MODEL, FigureView.ROLLED, FigureView.UNROLLED)


def compared(model: Model, machine: Callable[[], Machine] | None, request: FigureRequest) -> FigureRequest:
    """Return the request with the differences of the run from the one that is asked for beside it, if any is.

    Raise UsageError for a view that shows none.
    """
    if request.beside is None:
        return request
    _refuse(request)
    if machine is None:
        raise UsageError("--diff compares a run, and a run needs inputs: --inputs FILE.npz or --input NAME=SPEC")
    run = machine()
    reference = request.beside(run)
    found = compare_runs(run, reference, lambda _numbers: False)
    if request.view is FigureView.UNROLLED:
        request = _with_place(model, request, found)
        name, around = split_activation(request.loop)
        loop = find_loop(model, name)
        count = found.counts.get((id(loop.body.graph), around), 0)
        wanted = Iterations.parse(request.iterations or "")

        def is_shown(numbers: Numbers) -> bool:
            return bool(numbers) and numbers[:-1] == around and wanted.includes(numbers[-1], count)

        kept = compare_runs(machine(), reference, is_shown)
        found = replace(found, pairs=kept.pairs)
        if request.content.values is ValueDetail.NONE:
            request = replace(request, content=replace(request.content, values=ValueDetail.FULL))
    return replace(request, content=replace(request.content, differences=found))


def _with_place(model: Model, request: FigureRequest, found: RunDifferences) -> FigureRequest:
    """Return the request with the run of the loop, and its iterations, in which the two part, where none is named."""
    loop, first = _loop(model, request, found), found.first
    loops_around = sum(layer.is_loop for layer in loop.around)
    _, around = split_activation(request.loop)
    is_inside = first is not None and first.value[0] in graphs_within(loop.layer)
    if len(around) < loops_around:
        given = first.numbers[:loops_around] if first is not None and is_inside else (0,) * loops_around
        around = given
    request = replace(request, loop=loop.address + "".join(f"@{number}" for number in around))
    if request.iterations is not None:
        return request
    count = found.counts.get((id(loop.body.graph), around), 0)
    if count <= WHOLE:
        return replace(request, iterations="")
    if first is None or not is_inside or first.numbers[:loops_around] != around:
        return replace(request, iterations=ELIDED)
    place = first.numbers[loops_around]
    return replace(request, iterations=f"0,{max(place - 1, 0)}:{place + 2},-1")


def _loop(model: Model, request: FigureRequest, found: RunDifferences) -> LoopPath:
    """Return the loop that is named, else the one in which the two part, else the only one."""
    name = split_activation(request.loop)[0]
    if name is None and found.first is not None:
        inside = [
            loop for loop in loops_of(model) if loop.layer.is_loop and found.first.value[0] in graphs_within(loop.layer)
        ]
        if inside:
            return inside[-1]
    return find_loop(model, name)


def _refuse(request: FigureRequest) -> None:
    if request.view not in _FITTING:
        raise UsageError(f"--diff colours the views {', '.join(_FITTING)}; --view {request.view} shows no values")
    if request.direction is TimeDirection.RIGHT:
        raise UsageError("--diff draws iterations one below the other; leave --direction right and its presets out")
    if request.in_steps:
        raise UsageError("--diff draws one figure of two runs; leave --frames and --animate out")
