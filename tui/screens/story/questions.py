"""Questions for stories: what a stop asks by itself, and what the worker answers."""

from __future__ import annotations

from msgspec.structs import replace

from stepper.debug.causes.cause import LinkKind, NonFinite, Trigger
from stepper.debug.causes.locations import address_at
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Stop
from stepper.debug.story.facts import Story, StoryQuestion
from stepper.engine.program import CompiledModel
from stepper.records import Record


def question_of(stop: Stop, compiled: CompiledModel) -> StoryQuestion | None:
    """Return what a stop at a NaN or Inf asks by itself: why, where its cause is in another iteration."""
    cause = stop.cause
    if not isinstance(cause, NonFinite) or cause.trigger is Trigger.AIM:
        return None
    if not any(link.kind is LinkKind.BACK_EDGE for link in cause.chain.links):
        return None
    address = address_at(cause.location, compiled)
    return None if address is None else StoryQuestion(str(replace(address, index=cause.element)))


class AskStory(Record):
    """Find out why: the story that answers a question."""

    question: StoryQuestion

    def answer(self, debugger: Debugger) -> Story:
        """Walk back. StepperError where there is nothing to walk from."""
        asked = self.question
        return debugger.story(
            asked.address,
            ends=asked.ends,
            fails=asked.fails,
            tick=asked.tick,
            links=asked.links,
            wider=asked.wider,
            unfolds=asked.unfolds,
        )


class AskPreview(Record):
    """Find out what an edit makes of the path of a story."""

    story: Story

    def answer(self, debugger: Debugger) -> Story:
        """Read the values of this branch."""
        return debugger.previewed(self.story)
