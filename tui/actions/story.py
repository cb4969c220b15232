"""Actions of the path of a value: asking why, drawing and copying it."""

from __future__ import annotations

from stepper.debug.provenance.question import forward_address
from stepper.debug.story.facts import Story, StoryQuestion
from stepper.debug.story.texts import story_lines
from stepper.errors import UsageError
from tui.actions.registry import action
from tui.application import Application
from tui.screens.sheet.screen import SheetScreen


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


@action("export-story", syntax="FILE", help="draw the path for a document: svg, pdf, png, md, mmd, dot, json")
def _export_story(app: Application, text: str) -> None:
    from tui.actions.figures import export_story  # the writers of figures are not needed before

    export_story(app, _story(app), text)


@action("story-copy", help="copy the path as text")
def _copy(app: Application, _text: str) -> None:
    app.copy_to_clipboard("\n".join(story_lines(_story(app))))
    app.say("the path is copied as text", "")


def _story(app: Application) -> Story:
    front = app.front
    story = front.model.story if isinstance(front, SheetScreen) else None
    if story is None:
        raise UsageError("no path is on the screen (why ADDRESS shows one)")
    return story
