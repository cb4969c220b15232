"""The widget: what a page shows is a trait, what it asks for a message."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from stepper.debug.debugger import Debugger
from stepper.integrations.notebook.loop_session import LoopSession

_FOLDER = Path(__file__).parent


class LoopWidget(anywidget.AnyWidget):
    """A debugger in a notebook. What it shows is saved with the notebook; a page without a kernel has its picture."""

    _esm = _FOLDER / "loop.js"
    _css = _FOLDER / "loop.css"
    shown = traitlets.Dict().tag(sync=True)
    figure = traitlets.Dict().tag(sync=True)
    overview = traitlets.Unicode("").tag(sync=True)
    busy = traitlets.Bool(False).tag(sync=True)

    def __init__(self, debugger: Debugger) -> None:
        self.debugger = debugger
        """Debugger that the widget shows; cells may move it, too."""
        self._session = LoopSession(debugger)
        super().__init__()
        self._show(self._session.all())
        self.on_msg(self._heard)

    def ask(self, kind: str, text: str = "") -> Mapping[str, Any]:
        """Do what a click does, and return what is shown then: `ask("continue")`, `ask("iteration", "5")`."""
        with self._session.turn:
            self.busy = True
            try:
                self._show(self._session.asked({"kind": kind, "text": text}))
            finally:
                self.busy = False
            found: Mapping[str, Any] = self.shown
            return found

    def _heard(self, _widget: object, content: Any, _buffers: object) -> None:
        if isinstance(content, dict):
            self.ask(str(content.get("kind", "")), str(content.get("text", "")))

    def _show(self, found: dict[str, Any]) -> None:
        """Send what has changed; figures and the overview are large, and are sent when they are others."""
        figure, overview = found.pop("figure"), found.pop("overview", None)
        if figure != self.figure:
            self.figure = figure
        if overview is not None:
            self.overview = overview
        self.shown = {**self.shown, **found}

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the view and, for pages without a kernel, figure and overview as they are."""
        with self._session.turn:
            self._show(self._session.all())  # the debugger may have been moved by the notebook itself
            found = super()._repr_mimebundle_(**kwargs)
        bundle = found[0] if isinstance(found, tuple) else found
        if bundle is not None:
            bundle["text/html"] = self._still()
        return found

    def _still(self) -> str:
        return f"<div>{self.overview}{self.figure['svg']}</div>"
