"""The variables of the model, and the values of the frame."""

from __future__ import annotations

from tui.screens.list_screen import ListScreen
from tui.screens.lists.variables import VariableList


class VariablesScreen(ListScreen):
    """The variables of the model, and the values of the frame."""

    view_name = "variables"
    pane_class = VariableList
