"""The main screen: frames and operations, the body's graph with the value below, the loop; the timeline under all.

Three columns from 100 columns on; below that one pane and tabs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual import events
from textual.app import ComposeResult
from textual.css.scalar import Scalar

from stepper.debug.causes.cause import Reason
from stepper.debug.moments.texts import spread_sentence
from tui.keys.keymap import key_for
from tui.paint.painter import Horizontal, Vertical
from tui.paint.pane import Pane
from tui.screens.answer_card import AnswerCard
from tui.screens.bars import Tabs
from tui.screens.base import DebugScreen
from tui.screens.graph.pane import BodyGraph
from tui.screens.main.back_edges import BackEdges
from tui.screens.main.cards import StopCard, is_stop
from tui.screens.main.end_card import EndCard, has_ended
from tui.screens.main.frames import Frames
from tui.screens.main.loop_card import LoopCard
from tui.screens.main.node import NodeProperties
from tui.screens.main.operations import Operations
from tui.screens.main.outputs import ScanGrowth
from tui.screens.main.picture_pane import PicturePane
from tui.screens.main.value import ValueStrip
from tui.screens.moments.pairs import MomentPictures, ValuePair
from tui.screens.moments.spread import SpreadGrid
from tui.screens.timeline.bar import TimelineBar
from tui.state import State

if TYPE_CHECKING:
    from stepper.engine.program import Program
    from tui.screens.main.output_figures import OutputFigures
    from tui.screens.main.spare import SelectedCourse, SelectedValue

_LEAST_SPARE: Final = 8
"""Rows below the list of operations from which on the selected value is drawn there."""
TABS: Final = {"body": "graph", "ops": "operations", "value": "value", "loop": "edges", "time": "timeline"}
"""Each tab and the pane that has the focus in it."""


_FIRST: Final = (
    ("step", "steps, into loops as well"),
    ("continue", "runs to the next stop or the end"),
    ("help-keys", "lists all keys"),
)
"""Commands, whose keys are named at the start, and what they do."""


class MainScreen(DebugScreen):
    """Everything at a glance."""

    DEFAULT_CSS = """
    MainScreen #columns { height: 1fr; }
    MainScreen #left { width: 38; padding-top: 1; }
    MainScreen #middle { width: 1fr; padding-top: 1; }
    MainScreen #right { width: 44; padding-top: 1; }
    MainScreen.-narrow #left { width: 33; }
    MainScreen.-narrow #right { width: 40; }
    MainScreen.-narrow.-beside-a #left { width: 38; }
    MainScreen.-huge #left { width: 50; }
    MainScreen.-figures #operations { height: auto; margin-bottom: 1; }
    MainScreen.-huge #right { width: 50; }
    MainScreen #loop-state, MainScreen #outputs { height: auto; }
    MainScreen #outputs { height: 1fr; }
    MainScreen #scans { height: 1fr; }
    MainScreen.-ascii #value, MainScreen.-ascii #end, MainScreen.-ascii #time { border-top: ascii $foreground 14%; }
    MainScreen.-ascii #stop { border-top: ascii $error; }
    MainScreen.-ascii #card { border-top: ascii $primary; }
    MainScreen #node { display: none; height: 6; }
    MainScreen.-huge.-tall #node { display: block; }
    MainScreen #pair.above { display: none; }
    MainScreen #tabs { display: none; }
    MainScreen .hidden, MainScreen.-huge.-tall #node.hidden { display: none; }
    MainScreen.-ascii #pair, MainScreen.-ascii #spare, MainScreen.-ascii #course { border-top: ascii $foreground 14%; }
    MainScreen.-tiny #tabs { display: block; }
    MainScreen.-tiny #columns > * { display: none; width: 1fr; border-left: none; }
    MainScreen.-tiny #frames { display: none; }
    MainScreen.-tiny #left, MainScreen.-tiny #middle, MainScreen.-tiny #right { padding-top: 0; }
    MainScreen.-tiny.tab-ops #left { display: block; }
    MainScreen.-tiny.tab-body #middle { display: block; }
    MainScreen.-tiny.tab-value #middle { display: block; }
    MainScreen.-tiny.tab-body #value, MainScreen.-tiny.tab-body #end { display: none; }
    MainScreen.-tiny.tab-body #pair { display: none; }
    MainScreen.-tiny.tab-value #graph { display: none; }
    MainScreen.-tiny.tab-value #value { height: 1fr; border-top: none; }
    MainScreen.-tiny.tab-value #node { display: block; height: 5; }
    MainScreen.-tiny.tab-value #node.hidden { display: none; }
    MainScreen.-tiny.tab-value #moments, MainScreen.-tiny.tab-value #spread { display: none; }
    MainScreen.-tiny.tab-value #pair { display: block; height: 1fr; }
    MainScreen.-tiny.tab-value #pair.hidden { display: none; }
    MainScreen.-tiny.tab-value #end { max-height: 100%; }
    MainScreen.-tiny.tab-loop #right { display: block; layout: horizontal; }
    MainScreen.-tiny.tab-loop #loop-state { width: 1fr; }
    MainScreen.-tiny.tab-loop #outputs { width: 1fr; border-left: solid $foreground 14%; }
    MainScreen.-tiny.-ended.tab-ops #columns { layout: vertical; }
    MainScreen.-tiny.-ended.tab-ops #left, MainScreen.-tiny.-ended.tab-ops #operations { height: auto; }
    MainScreen.-tiny.-ended.tab-ops #middle { display: block; height: 1fr; }
    MainScreen.-tiny.-ended.tab-ops #graph, MainScreen.-tiny.-ended.tab-ops #moments { display: none; }
    MainScreen.-tiny.-ended.tab-ops #end { max-height: 100%; }
    MainScreen.-tiny.-ended.-beside-run.tab-ops #end { display: none; }
    MainScreen.-loopless #time, MainScreen.-loopless #right { display: none; }
    MainScreen.-tiny.tab-time #columns { display: none; }
    MainScreen.-tiny.tab-time #content { height: 1; }
    MainScreen.-tiny.tab-time #time { height: 1fr; }
    """
    tab: str = "ops"
    has_graph: bool = False
    """True if the graph is wanted in the centre although A is held against now."""
    _tab_before: str = "ops"
    _figures: OutputFigures | None = None
    _spare: SelectedValue | None = None
    """The selected value below a short list of operations, once there was room for it."""
    _course: SelectedCourse | None = None
    """The selected value over the iterations below two moments, once there was room for it."""
    _paired_in: Program | None = None
    """The graph of which two moments were shown last."""
    _paired_rows: int = 0
    """Lines of the two moments in it, at most."""
    _edits_seen: tuple[str, ...] = ()
    """The edits whose spread was shown last."""
    _awaited: tuple[tuple[str, str, tuple[str, ...]], str | None] | None = None
    """The two branches that are being compared, and the last answer meanwhile; empty once what was found is said."""

    def body(self) -> ComposeResult:
        """The columns."""
        yield Tabs(self.host, id="tabs")
        with Horizontal(id="columns"):
            with Vertical(id="left"):
                yield Frames(self.host, id="frames")
                yield Operations(self.host, id="operations")
            with Vertical(id="middle", classes="rule"):
                yield BodyGraph(self.host, id="graph")
                yield MomentPictures(self.host, id="moments")
                yield SpreadGrid(self.host, id="spread")
                yield ValueStrip(self.host, id="value")
                yield ValuePair(self.host, id="pair")
                yield NodeProperties(self.host, id="node")
                yield EndCard(self.host, id="end")
                yield StopCard(self.host, id="stop")
                yield AnswerCard(self.host, id="card")
            with Vertical(id="right", classes="rule"):
                with Vertical(id="loop-state"):
                    yield LoopCard(self.host, id="loop")
                    yield BackEdges(self.host, id="edges")
                with Vertical(id="outputs"):
                    yield ScanGrowth(self.host, id="scans")

    def below(self) -> ComposeResult:
        """Time."""
        yield TimelineBar(self.host, id="time")

    def first_pane(self) -> Pane | None:
        """Return where one steps."""
        return self.query_one(Operations)

    # --- the strip below the graph -------------------------------------------------------------------------------

    def show(self, state: State) -> None:
        """A stop takes the place of the value."""
        super().show(state)
        if self.is_ready:
            if self.tab not in self._tab_names:  # as it was kept of another form of the model
                self.show_tab(self.tab)
            self._choose_strip()
            self._fill()
            self._tell_spread(state)
            if not self.host.answered[0]:
                self.put_answer("", "dim")

    def _choose_strip(self) -> None:
        card = self.query_one(AnswerCard)
        state = self.host.state
        has_card = bool(card.lines)
        has_stop = not has_card and is_stop(state) and state.selected is None
        card.set_class(not has_card, "hidden")
        self.query_one(StopCard).set_class(not has_stop, "hidden")
        has_end = not has_card and not has_stop and has_ended(state)
        self.query_one(EndCard).set_class(not has_end, "hidden")
        is_covered = has_card or has_stop or has_end
        centre = self._centre()
        self.update_classes(
            {
                "-loopless": state.is_loopless,
                "-beside-a": state.beside is not None,
                "-beside-run": centre == "spread",
                "-ended": has_ended(state),
            }
        )
        self.query_one("#graph").set_class(centre != "graph", "hidden")
        self.query_one("#moments").set_class(centre != "moments", "hidden")
        self.query_one("#spread").set_class(centre != "spread", "hidden")
        self.query_one(NodeProperties).set_class(is_covered or state.beside is not None, "hidden")
        self.query_one("#value").set_class(is_covered or state.beside is not None, "hidden")
        pair = self.query_one("#pair")
        pair.set_class(is_covered or state.beside is None, "hidden")
        pair.set_class(centre == "moments", "above")

    def _fill(self) -> None:
        """Put the selected value where the list of operations is short, and where two moments leave room."""
        self._fill_left()
        if self.host.state.beside is not None or self._course is not None:
            self.call_after_refresh(self._fill_centre)

    def _fill_centre(self) -> None:
        """Put the selected value over the iterations below two moments, as high as these leave room for."""
        moments, course, frame = self.query_one(MomentPictures), self._course, self.host.state.frame
        program = None if frame is None or frame.iteration is None else frame.program
        if program is not self._paired_in:
            self._paired_in, self._paired_rows = program, 0
        rows, width = self._paired_rows, moments.size.width
        if self._centre() == "moments" and program is not None and width:
            # What differs less in another iteration leaves the picture below where it is.
            rows = self._paired_rows = max(rows, len(moments.heading(width)) + moments.count(width))
        room = moments.size.height + (course.outer_size.height if course is not None and course.display else 0)
        has_room = moments.display and 0 < rows <= room - _LEAST_SPARE
        if course is not None:
            course.display = has_room
        elif has_room:
            from tui.screens.main.spare import SelectedCourse  # what the first picture does not need

            self._course = SelectedCourse(self.host, id="course")
            self.adopt(self._course, self.query_one("#middle"), after=moments)
        if self._spare is not None:
            self._spare.stands_beside(has_course=has_room)
        height = Scalar.from_number(rows) if has_room else None
        if moments.styles.inline.height != height:
            moments.styles.height = height

    def _fill_left(self) -> None:
        frame, height = self.host.state.frame, self.query_one("#left").size.height
        self._fill_end(height)
        if self._spare is None and (frame is None or len(frame.layers) > height):
            return
        listed, frames = self.query_one(Operations), self.query_one(Frames)
        tall = height - frames.outer_size.height - listed.count(listed.size.width) - 2
        has_room, spare = frame is not None and tall >= _LEAST_SPARE, self._spare
        if spare is not None:
            spare.display = has_room
            if has_room and spare.styles.height != Scalar.from_number(tall):
                spare.styles.height = tall
        elif has_room:
            from tui.screens.main.spare import SelectedValue  # what the first picture does not need

            self._spare = SelectedValue(self.host, id="spare")
            self.adopt(self._spare, self.query_one("#left"))

    def _fill_end(self, height: int) -> None:
        """Put the outputs in figures below the ways back into the run."""
        figures = self._figures
        has_room = has_ended(self.host.state) and not self.has_class("-tiny") and height >= 2 * _LEAST_SPARE
        if figures is not None:
            figures.display = has_room
        elif has_room:
            from tui.screens.main.output_figures import OutputFigures  # what the first picture does not need

            self._figures = OutputFigures(self.host, id="figures")
            self.adopt(self._figures, self.query_one("#left"))
        self.set_class(has_room, "-figures")

    def _tell_spread(self, state: State) -> None:
        """Say what became of the outputs as soon as that is known, unless something else was said meanwhile."""
        found = None if state.a is None else state.a.spread
        if found is None or not found.is_of_runs:
            self._awaited = None
            return
        key = found.a, found.b, found.edits
        if self._awaited is None or self._awaited[0] != key:
            is_new_edit = state.is_edited and self._edits_seen != found.edits
            self._awaited, self._edits_seen = (key, None if not found.is_complete else ""), found.edits
            if is_new_edit and self.has_class("-tiny") and not self.has_graph and self.tab == "ops":
                self.show_tab("body")  # what became of the edit is what one wants to see
                self.call_after_refresh(self._focus_on, "body")
            return
        if self._awaited[1] is None:
            self._awaited = key, self.host.answered[0]
        before = self._awaited[1]
        if found.is_complete and before:
            self._awaited = key, ""
            if self.host.answered[0] == before:
                self.host.say(f"{found.b}: {spread_sentence(found)}; {before}", "edit")

    def _centre(self) -> str:
        """Return the pane in the centre: the graph, or while A is held against now the two moments."""
        a = self.host.state.beside
        if a is None or self.has_graph:
            return "graph"
        return "spread" if a.spread is not None and a.spread.is_of_runs else "moments"

    def turn_centre(self) -> bool:
        """Show the graph in place of the two moments, or these again; False where there is no A."""
        if self.host.state.beside is None:
            return False
        self.has_graph = not self.has_graph
        self._choose_strip()
        self._fill_centre()
        pane = self.query_one(f"#{self._centre()}", Pane)
        pane.update(self.host.state)
        self.call_after_refresh(self.set_focus, pane)  # the one that is hidden gives the focus away before
        return True

    def put_answer(self, text: str, tone: str) -> None:
        """At the start, before there is any answer, what one may do."""
        stop = self.host.state.stop
        is_new = not text and stop is not None and stop.reason is Reason.START and not is_stop(self.host.state)
        super().put_answer(self._hint() if is_new else text, tone)

    def _hint(self) -> str:
        parts = []
        for command, words in _FIRST:
            key = key_for(command, "operations", self.host.keymap)
            parts += [] if key is None else [f"{key.shown} {words}"]
        return ", ".join(parts)

    def put_card(self, title: str, lines: tuple[str, ...]) -> bool:
        """An answer of several lines."""
        if not self.is_ready:
            return False
        is_above = self.maximized is not None and not isinstance(self.maximized, AnswerCard)
        super().put_card(title, lines if is_above else ())  # beside a pane that is alone on the screen
        if is_above and lines:
            return True
        card = self.query_one(AnswerCard)
        if not lines and not card.lines:
            return True
        card.put(title, lines)
        self._choose_strip()
        if self.has_class("-tiny") and lines:
            if not card.has_focus:
                self._tab_before = self.tab
            self.show_tab("value")
            card.focus()  # here Tab leads to another tab, and not to the card
        return True

    def close_card(self) -> bool:
        """Show what was there before; a column of a picture that was chosen is given up first."""
        if sum(pane.unpick() for pane in self.query(PicturePane)):
            return True
        if super().close_card():
            return True
        card = self.query_one(AnswerCard)
        if not card.lines:
            return False
        had_focus = card.has_focus
        card.put("", ())
        self._choose_strip()
        if had_focus:
            if self.has_class("-tiny"):
                self.show_tab(self._tab_before)
            self._focus_on(self.tab if self.has_class("-tiny") else "ops")
        return True

    # --- sizes and tabs ------------------------------------------------------------------------------------------

    def fit(self, width: int, height: int) -> None:
        """Less of everything where there is less room."""
        timeline = self.query_one(TimelineBar)
        timeline.is_short = (width < 100 or height < 30) and self.tab != "time"
        timeline.lines_shown = 3 if height < 44 else 5 if height < 56 else 8
        self.query_one(AnswerCard).most = height if width < 100 else max(6, height // 3)
        timeline.changed()
        self.call_after_refresh(self._fill)

    def size_classes(self, width: int, height: int) -> dict[str, bool]:
        """Return the tab that is shown, too."""
        tabs = {f"tab-{name}": name == self.tab for name in TABS}
        return super().size_classes(width, height) | tabs | {"-tall": height >= 50}

    def show_tab(self, name: str) -> None:
        """The one pane that is shown where there is room for one."""
        tabs = self.query_one(Tabs)
        self.tab = name = name if name in tabs.names else "ops"
        tabs.shown = name
        tabs.changed()
        self._fit()

    @property
    def _tab_names(self) -> list[str]:
        return list(self.query_one(Tabs).names)

    def move_tab(self, by: int) -> bool:
        """The next pane of the tab, and from the last one the next tab, where there are tabs."""
        if not self.has_class("-tiny"):
            return False
        beside = self._beside(by)
        if beside is not None:
            self.set_focus(beside)
            return True
        names = self._tab_names
        self.show_tab(names[(names.index(self.tab) + by) % len(names)])
        chain = self._chain()
        self.set_focus(chain[0 if by > 0 else -1] if chain else None)
        return True

    def _chain(self) -> list[Pane]:
        """Return the panes of the tab that is shown to which Tab leads; the strip of time has a tab of its own."""
        chain = [pane for pane in self.focus_chain if isinstance(pane, Pane)]
        return chain if self.tab == "time" else [pane for pane in chain if not isinstance(pane, TimelineBar)]

    def _beside(self, by: int) -> Pane | None:
        """Return the next pane of the tab that is shown, or the one before; None at the ends."""
        chain = self._chain()
        place = chain.index(self.focused) + by if isinstance(self.focused, Pane) and self.focused in chain else -1
        return chain[place] if 0 <= place < len(chain) else None

    def following(self) -> str:
        """Return the pane, or the tab, to which Tab leads, where there are tabs."""
        if not self.has_class("-tiny"):
            return super().following()
        beside, names = self._beside(1), self._tab_names
        return names[(names.index(self.tab) + 1) % len(names)] if beside is None else beside.name_for_tab

    def _focus_on(self, tab: str) -> None:
        kind = "moments" if tab == "body" and self._centre() != "graph" else TABS[tab]
        pane = next((pane for pane in self.query(Pane) if pane.kind == kind and pane.display), None)
        pane = pane or next(iter(self._chain()), None)  # at the end of the run there is no value
        if pane is not None:
            pane.focus()

    def on_click(self, event: events.Click) -> None:
        """A click on a tab."""
        tabs = self.query_one(Tabs)
        if event.widget is tabs:
            place = 0
            for name in tabs.names:
                place += len(name) + 5
                if event.screen_x < place:
                    self.show_tab(name)
                    return
