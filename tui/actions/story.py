"""Actions of the story: asking why, walking along the path, going to the moment of the cursor, copying it."""

from __future__ import annotations

from stepper.debug.provenance.question import forward_address
from stepper.debug.story.facts import StoryQuestion
from stepper.errors import UsageError
from tui.actions.registry import action
from tui.application import Application
from tui.screens.story.pane import StoryPane

_WAYS = ("up", "down", "left", "right", "cause", "effect")


@action(
    "why",
    syntax="ADDR | shape of ADDR | condition | end [LOOP] | failure",
    help="where a value or its shape comes from, across iterations; `why end`, `why 11 iterations`: why the loop "
    "ended, `why failure`: what the operation was given that fails next",
)
def _why(app: Application, text: str) -> None:
    if not text:
        raise UsageError("what is asked about? why ADDRESS, or why end")
    if forward_address(text):
        raise UsageError(f"an element goes many ways, which no story draws: uses {forward_address(text)} lists them")
    app.open_story(StoryQuestion(fails=True) if text == "failure" else StoryQuestion(text))


@action(
    "story",
    syntax="WAY [N]",
    help="walk along a story: cause, effect, up, down, left, right; there also open, more, copy",
)
def _story(app: Application, text: str) -> None:
    word, _, count = text.partition(" ")
    pane = app.focused_pane
    if not isinstance(pane, StoryPane):
        raise UsageError("no story is in front (why ADDRESS opens one)")
    if count and not count.strip().isdecimal():
        raise UsageError(f"a number is expected, not '{count}'")
    if word in _WAYS:
        pane.move(word, int(count or "1"))
    elif word == "open":
        _open(app, pane)
    elif word == "more":
        if not pane.go_on():
            raise UsageError("all links of this story were looked at (+ follows more operands of one)")
    elif word == "copy":
        app.copy_to_clipboard(pane.text())
        app.say("the story is copied as text", "")
    else:
        raise UsageError(f"a story does not know '{word}'")


@action("export-story", syntax="FILE", help="draw the story for a document: svg, pdf, png, md, mmd, dot, json")
def _export_story(app: Application, text: str) -> None:
    from tui.actions.figures import export_story  # the writers of figures are not needed before

    pane = app.focused_pane if isinstance(app.focused_pane, StoryPane) else app.asked_pane
    if not isinstance(pane, StoryPane) or pane.story is None:
        raise UsageError("no story is in front (why ADDRESS opens one)")
    export_story(app, pane.story, text)


def _open(app: Application, pane: StoryPane) -> None:
    """Go to the moment of the cursor."""
    line = pane.line_to_open()
    if not line:
        if not pane.go_on():
            raise UsageError("there is no moment to go to")
        return
    app.perform(line)
    app.open_view("main")
