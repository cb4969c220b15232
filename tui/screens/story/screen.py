"""The story on a screen of its own, with the timeline below."""

from __future__ import annotations

from textual.app import ComposeResult

from stepper.debug.story.facts import StoryQuestion
from stepper.errors import UsageError
from tui.screens.base import DebugScreen, ScreenHost
from tui.screens.story.pane import StoryPane
from tui.screens.timeline.bar import TimelineBar
from tui.state import State


class StoryScreen(DebugScreen):
    """Why a value is what it is, or why a loop ended."""

    DEFAULT_CSS = """
    StoryScreen StoryPane { height: 1fr; padding: 0; }
    StoryScreen.-ascii #time { border-top: ascii $foreground 14%; }
    StoryScreen.-tiny #time, StoryScreen.-short #time, StoryScreen #time.hidden { display: none; }
    """
    view_name = "story"

    def __init__(self, host: ScreenHost, question: StoryQuestion | None = None) -> None:
        super().__init__(host)
        self._question = question

    def body(self) -> ComposeResult:
        """Yield the one pane."""
        yield StoryPane(self.host, id="story")

    def below(self) -> ComposeResult:
        """Time."""
        yield TimelineBar(self.host, id="time")

    @property
    def pane(self) -> StoryPane:
        """The one pane."""
        return self.query_one("#story", StoryPane)

    def on_mount(self) -> None:
        """Ask what it was opened for."""
        super().on_mount()
        question, self._question = self._question, None
        if question is not None:
            self.pane.ask(question)

    def show(self, state: State) -> None:
        """Without a loop around the moment there is no time to show."""
        if self.is_ready:
            self.query_one("#time", TimelineBar).set_class(state.loop is None, "hidden")
        super().show(state)

    def put_answer(self, text: str, tone: str) -> None:
        """Where there is no answer, say why in its place."""
        super().put_answer(text, tone)
        if self.is_ready and tone == "bad":
            self.pane.refuse(text)

    @property
    def awaits_answer(self) -> bool:
        """True until the first story is here."""
        return self.pane.is_expected if self.is_ready else self._question is not None

    def lines_before(self, text: str) -> tuple[str, ...]:
        """Make an edit in the iteration of the cursor, where its value is computed."""
        from stepper.commands.edits import edited_value  # loaded with the first line that is typed
        from stepper.commands.session import command_called

        word, _, rest = text.partition(" ")
        try:
            is_edit = command_called(word).name == "set"
        except UsageError:  # the answer to the line will tell
            return ()
        found = edited_value(rest.strip()) if is_edit else None
        return () if found is None else self.pane.lines_before_edit(found)

    def ask(self, question: StoryQuestion) -> None:
        """Ask something else."""
        if self.is_ready:
            self.pane.ask(question)
        else:
            self._question = question
