"""Commands of the port map: choose an entry, open its value."""

from __future__ import annotations

from stepper.errors import UsageError
from tui.actions.registry import action
from tui.application import Application
from tui.screens.ports.port_map import PortMap
from tui.screens.ports.rows import PortSide
from tui.screens.value.selection import Subject


def _map_of(app: Application) -> PortMap:
    found = app.screen.query(PortMap)
    if not found:
        raise UsageError("that is for the port map: view ports")
    return found.first()


@action("port", syntax="down|up|left|right", help="another entry of the port map")
def _port(app: Application, text: str) -> None:
    if text not in ("down", "up", "left", "right"):
        raise UsageError(f"port takes down, up, left or right, not '{text}'")
    _map_of(app).move(text)


@action("open-port", help="the value of the chosen entry of the port map")
def _open_port(app: Application, _text: str) -> None:
    port, state = _map_of(app).chosen, app.state
    if port is None or port.layer is None or state.loop_depth is None:
        raise UsageError("there is no value in the body to open")
    frame = state.frames[state.loop_depth]
    if port.layer not in frame.layers:
        app.open_value(Subject(frame.program, state.cursor or 0, 0, port.layer))
    elif port.side is PortSide.OUT and state.depth == state.loop_depth:
        app.select(frame.layers.index(port.layer))
        app.perform("open")
    else:
        app.open_value(Subject(frame.program, frame.layers.index(port.layer), 0))
