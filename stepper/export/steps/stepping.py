"""The steps of a picture of a run, whatever its view."""

from __future__ import annotations

from stepper.errors import UsageError
from stepper.export.drawing.timing import SteppedDrawing, stepped
from stepper.export.options import FigureView
from stepper.export.picture import Picture
from stepper.export.steps.bodies import stepped_body
from stepper.export.steps.iterations import stepped_iterations


def steps_of(picture: Picture) -> SteppedDrawing:
    """Return a picture in steps. Raise UsageError where it shows no run, or one without an iteration."""
    trace = picture.trace
    if trace is None:
        raise UsageError("steps are those of a run: --view unrolled or rolled, with inputs")
    if not trace.iterations:
        raise UsageError(f"the run has no iteration that could be shown ({trace.ended}), so there are no steps")
    if picture.page is not None and picture.times is not None:
        return stepped(picture.page, picture.times)
    if picture.request.view is FigureView.ROLLED:
        return stepped_body(picture)
    return stepped_iterations(picture.figure, trace)
