"""The layout of a figure, by its arrangement."""

from __future__ import annotations

from stepper.export.figures.figure import Arrangement, Figure
from stepper.export.layout.compound import arrange_layered
from stepper.export.layout.figure_layout import FigureLayout
from stepper.export.layout.iterations import arrange_iterations
from stepper.export.layout.port_list import arrange_port_list, arrange_port_lists
from stepper.export.layout.port_map import arrange_port_map


def arranged(figure: Figure) -> FigureLayout:
    """Return the figure laid out by our own layout."""
    arrange = {
        Arrangement.LAYERED: arrange_layered,
        Arrangement.ITERATIONS: arrange_iterations,
        Arrangement.PORT_MAP: arrange_port_map,
        Arrangement.PORT_LIST: arrange_port_list,
        Arrangement.PORT_LISTS: arrange_port_lists,
    }
    return arrange[figure.arrangement](figure)
