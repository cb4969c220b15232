"""The selection inside of an open loop or If, in words: the other panes show what is around it."""

from __future__ import annotations

from typing import Final

from stepper import element_types
from stepper.engine.program import Program
from stepper.ops.operands import shape_text
from tui.paint.names import layer_name
from tui.paint.rows import clip, printable
from tui.screens.graph.cells import value_text
from tui.state import State

_LONGEST_NAME: Final = 24
_VALUE: Final = 24


def words_inside(state: State, program: Program, key: int) -> str:
    """Return the name and type of a layer of a body, by its id, and its value where that body runs just now."""
    layer = program.graph.by_id[key]
    name = f"{clip(printable(layer_name(layer)), _LONGEST_NAME)} ({layer.type})"
    frame = next((one for one in state.frames if one.program is program), None)
    index = next((at for at, one in enumerate(program.layers) if one.id == key), None)
    way = "" if index is None else "; t runs to it"
    if frame is None:
        return f"{name} does not run now{way}"
    value = frame.kept(key) if index is None else frame.held(index) if frame.is_done(index) else None
    if value is None:
        return f"{name} is not computed yet{way}"
    kind = f"{element_types.name_of(value.dtype)}{shape_text(value.shape)}"
    return f"{name} {kind} = {value_text(value, _VALUE)}; Enter opens it"
