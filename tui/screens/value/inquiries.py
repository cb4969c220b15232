"""What the value screen wants to know and takes long: asked of the worker one after another, giving way to commands.

An inquiry is a generator that yields now and then. Whatever comes meanwhile goes first; the inquiry then goes on where
it left off. One that is not wanted any more (another tensor is shown) is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, ClassVar

from msgspec import Struct

from stepper.debug.debugger import Debugger
from stepper.errors import StepperError
from stepper.records import Brief
from tui.worker.driver import Driver

Begin = Callable[[Debugger], Generator[None, None, Any]]
"""Begins an inquiry, in the worker."""


class Inquiry(Brief, Struct):
    """One thing to find out. `key` says what: another one of the same `topic` takes the place of this."""

    unshown: ClassVar = ("steps",)

    topic: str
    key: tuple[Any, ...]
    begin: Begin
    then: Callable[[Any], None] | None = None
    steps: Generator[None, None, Any] | None = None


class Outcome(Struct, frozen=True):
    """What an inquiry found; `problem` in words where it could not. Neither, where it left off."""

    answer: Any = None
    problem: str = ""
    done: bool = False


class Inquiries:
    """Answers by topic. Lives in the application's thread; `news` is called when there is an answer."""

    def __init__(self, driver: Driver, news: Callable[[], None]) -> None:
        self._driver = driver
        self._news = news
        self._wanted: dict[str, Inquiry] = {}
        self._answers: dict[str, tuple[tuple[Any, ...], Outcome]] = {}
        self._under_way: Inquiry | None = None

    def find(self, topic: str, key: tuple[Any, ...], begin: Begin) -> Outcome:
        """What is known; what is not yet is asked for. Keys hold plain values: one key, one answer."""
        known = self._answers.get(topic)
        if known is not None and known[0] == key:
            return known[1]
        wanted = self._wanted.get(topic)
        if wanted is None or wanted.key != key:
            self._want(Inquiry(topic, key, begin))
        return Outcome()

    def once(self, topic: str, begin: Begin, then: Callable[[Any], None]) -> None:
        """Find something out that nobody shows; `then` is called with it, unless the topic is asked for again."""
        self._want(Inquiry(topic, (), begin, then=then))

    def _want(self, inquiry: Inquiry) -> None:
        self._wanted[inquiry.topic] = inquiry
        if self._under_way is not None and self._under_way.topic == inquiry.topic:
            self._driver.leave_off()
        self._go_on()

    def last(self, topic: str) -> Any:
        """The newest answer, perhaps to another question on the topic; None if there was none."""
        known = self._answers.get(topic)
        return None if known is None else known[1].answer

    def close(self) -> None:
        """Nothing is wanted any more."""
        self._wanted.clear()
        if self._under_way is not None:
            self._driver.leave_off()

    def _go_on(self) -> None:
        if self._under_way is None and self._wanted:
            inquiry = self._under_way = next(iter(self._wanted.values()))
            self._driver.ask(lambda debugger: self._work_on(inquiry, debugger), self._keep, gives_way=True)

    def _work_on(self, inquiry: Inquiry, debugger: Debugger) -> Outcome:
        """In the worker: until it is done, something presses, or nobody wants it."""
        try:
            if inquiry.steps is None:
                inquiry.steps = inquiry.begin(debugger)
            while not self._driver.is_pressed and self._wanted.get(inquiry.topic) is inquiry:
                next(inquiry.steps)
        except StopIteration as end:
            return Outcome(end.value, done=True)
        except StepperError as error:
            inquiry.steps = None
            return Outcome() if self._driver.is_pressed else Outcome(problem=str(error), done=True)
        except Exception as error:  # anything else is a fault of ours, which must not be asked for again and again
            return Outcome(problem=repr(error), done=True)
        return Outcome()

    def _keep(self, outcome: Outcome) -> None:
        inquiry, self._under_way = self._under_way, None
        is_wanted = inquiry is not None and self._wanted.get(inquiry.topic) is inquiry
        if inquiry is not None and is_wanted and outcome.done:
            del self._wanted[inquiry.topic]
            if inquiry.then is not None:
                inquiry.then(outcome.answer)
            else:
                self._answers[inquiry.topic] = inquiry.key, outcome
                self._news()
        self._go_on()
