"""The question for a story, which the worker answers."""

from __future__ import annotations

from msgspec import Struct

from stepper.debug.debugger import Debugger
from stepper.debug.story.facts import Story, StoryQuestion


class AskStory(Struct, frozen=True):
    """Find out why: the story that answers a question."""

    question: StoryQuestion

    def answer(self, debugger: Debugger) -> Story:
        """Walk back. StepperError where there is nothing to walk from."""
        asked = self.question
        return debugger.story(
            asked.address,
            ends=asked.ends,
            tick=asked.tick,
            links=asked.links,
            wider=asked.wider,
            unfolds=asked.unfolds,
        )
