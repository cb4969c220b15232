"""The layout of a figure, by its arrangement."""

from __future__ import annotations

from stepper.export.figures.figure import Arrangement, Figure
from stepper.export.layout.columns import arrange_columns
from stepper.export.layout.drawing import Drawing
from stepper.export.layout.layered import arrange_layered
from stepper.export.layout.stack import arrange_stack


def arranged(figure: Figure) -> Drawing:
    """Return the figure laid out by our own layout."""
    arrange = {
        Arrangement.LAYERED: arrange_layered,
        Arrangement.STACK: arrange_stack,
        Arrangement.COLUMNS: arrange_columns,
    }
    return arrange[figure.arrangement](figure)
