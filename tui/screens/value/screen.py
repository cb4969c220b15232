"""One value full screen: colours or numbers; below them the other, how often, over time, statistics, one element."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace
from textual.app import ComposeResult

from tui.paint.painter import Horizontal, Vertical
from tui.paint.pane import Pane
from tui.screens.base import DebugScreen, ScreenHost
from tui.screens.value.facts import ElementCard, HowOften, InNumbers, OverIterations, SummaryLines
from tui.screens.value.inquiries import Inquiries
from tui.screens.value.inspected import Inspected
from tui.screens.value.selection import Subject, frame_of
from tui.screens.value.tensor import Companion, TensorPane
from tui.state import State

_BELOW: Final = 7
"""Lines for the iterations and the summary below a small value, where there is little room."""
_COLUMN: Final = 20
"""Lines in which the statistics and the element stand below one another."""

_TALL: Final = 48
"""Rows from which on the histogram has room below the element."""


class ValueScreen(DebugScreen):
    """A value at the moment, however the run moves."""

    DEFAULT_CSS = """
    ValueScreen #parts { height: 23; border-top: solid $foreground 14%; }
    ValueScreen #companion { width: 1fr; height: 1fr; }
    ValueScreen #times { width: 46; }
    ValueScreen #facts { width: 48; }
    ValueScreen #element { margin-top: 1; }
    ValueScreen #spread { margin-top: 1; max-height: 16; display: none; }
    ValueScreen.-few.-tall #spread { display: block; }
    ValueScreen #summary { border-top: solid $foreground 14%; height: 4; display: none; }
    ValueScreen.-content #summary { height: 3; }
    ValueScreen.-ascii #parts, ValueScreen.-ascii #summary { border-top: ascii $foreground 14%; }
    ValueScreen.-huge #times { width: 52; }
    ValueScreen.-huge #facts { width: 60; }
    ValueScreen.-medium #parts { height: 12; }
    ValueScreen.-medium #companion { display: none; }
    ValueScreen.-medium #times { width: 1fr; border-left: none; }
    ValueScreen.-medium #facts { width: 88; layout: horizontal; }
    ValueScreen.-medium #facts > * { width: 1fr; }
    ValueScreen.-medium #numbers { width: 41; }
    ValueScreen.-medium #element { margin-top: 0; }
    ValueScreen.-medium #over { display: none; }
    ValueScreen.-few #companion, ValueScreen.-few #often { display: none; }
    ValueScreen.-few #parts { height: 2fr; }
    ValueScreen.-medium.-few #parts { height: 1fr; min-height: 12; }
    ValueScreen.-few #times { width: 1fr; border-left: none; }
    ValueScreen.-few #over { height: 1fr; display: block; }
    ValueScreen.-few.-content #parts, ValueScreen.-medium.-few.-content #parts { height: 1fr; }
    ValueScreen.-medium.-few.-column #facts { width: 60; layout: vertical; }
    ValueScreen.-medium.-few.-column #facts > * { width: 1fr; }
    ValueScreen.-medium.-few.-column #element { margin-top: 1; }
    ValueScreen.-short #parts, ValueScreen.-tiny #parts { display: none; }
    ValueScreen.-short #summary, ValueScreen.-tiny #summary { display: block; }
    ValueScreen.-short.-content #parts, ValueScreen.-tiny.-content #parts { display: block; min-height: 0; }
    ValueScreen.-short #facts, ValueScreen.-tiny #facts { display: none; }
    ValueScreen.-nothing #parts, ValueScreen.-nothing #summary { display: none; }
    """
    view_name = "value"

    def __init__(self, host: ScreenHost, subject: Subject | None = None) -> None:
        """Show this value at first; None: the selected one."""
        super().__init__(host)
        self._subject = subject
        self._inspected: Inspected | None = None

    @property
    def inspected(self) -> Inspected:
        """The value that is shown."""
        if self._inspected is None:
            driver = self.host.driver
            self._inspected = Inspected(driver, Inquiries(driver, self.repaint_panes))
            self._inspected.take(self.host.state)
            if self._subject is not None:
                self._inspected.open(self._subject)
        return self._inspected

    def body(self) -> ComposeResult:
        """The value above, the rest below."""
        inspected = self.inspected
        yield TensorPane(self.host, inspected, id="tensor")
        with Horizontal(id="parts"):
            yield Companion(self.host, inspected, id="companion")
            with Vertical(id="times", classes="rule"):
                yield HowOften(self.host, inspected, id="often")
                yield OverIterations(self.host, inspected, id="over")
            with Vertical(id="facts", classes="rule"):
                yield InNumbers(self.host, inspected, id="numbers")
                yield ElementCard(self.host, inspected, id="element")
                yield HowOften(self.host, inspected, id="spread")
        yield SummaryLines(self.host, inspected, id="summary")

    def fit(self, width: int, height: int) -> None:
        """Without the companion where it has no room."""
        self._arrange()

    def size_classes(self, width: int, height: int) -> dict[str, bool]:
        """Return those of every screen, and whether all parts have room."""
        return {**super().size_classes(width, height), "-medium": width < 150 or height < 44}

    def show(self, state: State) -> None:
        """Another moment; the value stays the same one, and is what the other keys act on."""
        if not self.is_ready:
            return
        inspected = self.inspected
        inspected.take(state)
        subject = inspected.subject
        is_here = subject is not None and state.frame is frame_of(state, subject.program)
        if subject is not None and subject.program is not None and subject.layer is None and is_here:
            state = replace(state, selected=subject.operation)
            self.host.state = state
        super().show(state)
        self._arrange()

    def _arrange(self) -> None:
        """Give the iterations the room, where a value is so small that its numbers are seen anyway."""
        seen = self.inspected
        is_few = seen.is_few and seen.is_numeric() and seen.shown.iteration is not None
        room = self.query_one("#content").size.height
        is_tall = room >= _TALL and not self.has_class("-medium")
        is_short = self.has_class("-short") or self.has_class("-tiny")
        most = room - _BELOW if is_short else room // 2
        wanted = self.query_one("#tensor", TensorPane).wanted(most)
        is_roomy = wanted is not None and wanted <= most
        is_content = is_few and not seen.is_beside_a and is_roomy
        self.query_one("#tensor").styles.height = wanted if is_content else None
        arrangement = {
            "-few": is_few,
            "-nothing": seen.shown.array is None,
            "-tall": is_tall and seen.array is not None and seen.array.size > 1,
            "-content": is_content,
            "-column": is_content and wanted is not None and room - wanted >= _COLUMN,
        }
        self.update_classes(arrangement)
        self.query_one(SummaryLines).set_class(not is_content, "with-series")
        self.query_one(ElementCard).set_class(self.has_class("-medium") and not is_few, "with-series")

    def on_unmount(self) -> None:
        """Ask no more."""
        if self._inspected is not None:
            self._inspected.inquiries.close()

    def repaint_panes(self) -> None:
        """Something was found out, or chosen."""
        if self.is_ready and self.is_attached:
            self._arrange()
            for pane in self.query(Pane):
                pane.changed()
