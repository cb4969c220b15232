"""The steps of a picture of a run, whatever its view.

A run without iterations is one step: the empty frame with what goes straight through it.
"""

from __future__ import annotations

from msgspec.structs import replace

from stepper.errors import UsageError
from stepper.export.drawing.composing import drawn
from stepper.export.drawing.timing import NOT_BEGUN, SteppedDrawing, TimedShape, stepped
from stepper.export.fitting import on_page, room_of
from stepper.export.options import FigureView
from stepper.export.picture import Picture
from stepper.export.steps.bodies import stepped_body
from stepper.export.steps.iterations import stepped_iterations


def steps_of(picture: Picture) -> SteppedDrawing:
    """Return a picture in steps. Raise UsageError where it shows no run, none of its iterations, or has no room."""
    trace = picture.trace
    if trace is None:
        raise UsageError("steps are those of a run: --view unrolled or rolled, with inputs")
    if not trace.count:
        page = drawn(picture)
        return SteppedDrawing(page, (NOT_BEGUN,), tuple(TimedShape(item, 0, 2) for item in page.items))
    if not trace.iterations:
        raise UsageError(f"none of the iterations that are chosen ran ({trace.ended}), so there are no steps")
    if picture.page is not None and picture.times is not None:
        return stepped(picture.page, picture.times)
    is_body = picture.request.view is FigureView.ROLLED
    drawing = stepped_body(picture) if is_body else stepped_iterations(picture.figure, trace)
    room = room_of(picture.request)
    if room is None:
        return drawing
    page = on_page(drawing.page, room)
    ground, *shapes = drawing.shapes
    return SteppedDrawing(page, drawing.steps, (replace(ground, shape=page.items[0]), *shapes))
