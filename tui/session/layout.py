"""The layout of the screen as data, to be kept with a session: theme, statistic, screen, pane, tab, typed lines.

What comes from a file is believed only as far as there is such a thing; the rest stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from stepper.tensors.statistics import OVER_ITERATIONS
from tui.paint.pane import Pane
from tui.registry import VIEWS
from tui.screens.bars import Tabs

if TYPE_CHECKING:
    from tui.application import Application

_MOST_LINES: Final = 200
_LONGEST: Final = 200


def layout_of(app: Application) -> dict[str, Any]:
    """Return the layout that is kept."""
    focused, front = app.focused_pane, app.front
    return {
        "theme": app.theme,
        "statistic": app.state.statistic,
        "view": front.view_name or "main",
        "pane": focused.id if focused is not None and focused.id else "",
        "tab": front.tab,
        "shown": front.kept(),
        "lines": [line[:_LONGEST] for line in app.typed[-_MOST_LINES:]],
    }


def put_layout(app: Application, layout: Mapping[str, Any], *, keeps_view: bool = True) -> None:
    """Arrange the screen as it was kept; without `keeps_view` another one is in front, and stays there."""
    theme, statistic, view = (_text(layout, name) for name in ("theme", "statistic", "view"))
    if theme in app.available_themes:
        app.theme = theme
    if statistic in OVER_ITERATIONS and statistic != app.state.statistic:
        app.perform(f"statistic {statistic}")
    app.typed[:0] = typed_lines(layout)
    if not keeps_view:
        return
    if view in VIEWS and view not in ("main", "help"):
        app.open_view(view)
        shown = layout.get("shown")
        if isinstance(shown, Mapping):
            app.front.put_kept(shown)
    app.call_after_refresh(_put_screen, app, layout)


def _put_screen(app: Application, layout: Mapping[str, Any]) -> None:
    screen = app.front
    tab, pane = _text(layout, "tab"), _text(layout, "pane")
    if tab in Tabs.NAMES and screen.has_class("-tiny"):
        screen.show_tab(tab)
    found = next((one for one in screen.query(Pane) if pane and one.id == pane and one.focusable), None)
    if found is not None:
        found.focus()


def typed_lines(layout: Mapping[str, Any]) -> list[str]:
    """Return the lines that were typed at the prompt."""
    lines = layout.get("lines")
    found = lines[-_MOST_LINES:] if isinstance(lines, list) else []
    return [line[:_LONGEST] for line in found if isinstance(line, str) and line.isprintable()]


def _text(layout: Mapping[str, Any], name: str) -> str:
    value = layout.get(name)
    return value if isinstance(value, str) else ""
