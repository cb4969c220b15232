"""The steps of a picture of a run, whatever its view."""

from __future__ import annotations

from msgspec.structs import replace

from stepper.errors import UsageError
from stepper.export.drawing.timing import SteppedDrawing, stepped
from stepper.export.fitting import on_page, room_of
from stepper.export.options import FigureView
from stepper.export.picture import Picture
from stepper.export.steps.bodies import stepped_body
from stepper.export.steps.iterations import stepped_iterations


def steps_of(picture: Picture) -> SteppedDrawing:
    """Return a picture in steps. Raise UsageError where it shows no run, one without an iteration, or has no room."""
    trace = picture.trace
    if trace is None:
        raise UsageError("steps are those of a run: --view unrolled or rolled, with inputs")
    if not trace.iterations:
        raise UsageError(f"the run has no iteration that could be shown ({trace.ended}), so there are no steps")
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
