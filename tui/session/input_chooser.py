"""The inputs that are chosen on the screen: the first run begins with them; another choice later begins another run,
which takes breakpoints and watches over from the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from stepper.errors import UsageError
from tui.messages import InputLoaded

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger
    from stepper.element_types import Array
    from stepper.files.output import ProtectedFiles
    from stepper.session.input_choices import InputChoices, Load, LoadOutcome, Opening
    from tui.session.application_session import ApplicationSession, SessionHost


def _made(opening: Opening, inputs: Mapping[int, Array], files: ProtectedFiles) -> Debugger:
    """Return a debugger on these inputs, which keeps their files from being written over."""
    debugger = opening.make(inputs)
    debugger.protected += files
    return debugger


class InputChooser:
    """Has the inputs of the model chosen, and begins runs on them.

    `choices` are those that were made; None: nobody has asked for any. `begins`: the first run on chosen inputs is
    being opened. `choosing` makes of inputs that were all given on the command line such that can be chosen anew
    (None: they cannot).
    """

    def __init__(
        self,
        host: SessionHost,
        session: ApplicationSession,
        opening: Opening | None,
        choosing: Callable[[], Opening] | None,
    ) -> None:
        self._host = host
        self._session = session
        self._choosing = choosing
        self.begins = False
        self.choices = None if opening is None else self._choices_of(opening)

    def to_choose(self) -> InputChoices | None:
        """Return what was chosen for the inputs, also on the command line; None where nothing can be chosen."""
        if self.choices is None and self._choosing is not None:
            self.choices = self._choices_of(self._choosing())
        return self.choices

    def _choices_of(self, opening: Opening) -> InputChoices:
        """Return those of a model; large values are made in a thread of their own."""
        from stepper.session.input_choices import InputChoices, Loader

        return InputChoices(opening, Loader(lambda load, outcome: self._host.post_message(InputLoaded(load, outcome))))

    def begin(self, inputs: Mapping[int, Array]) -> None:
        """Run the model on these inputs, by position; the main screen opens when the run stands at its start."""
        if self.choices is None:
            raise UsageError("the model's inputs were given")
        host = self._host
        make = partial(_made, self.choices.opening, inputs, self.choices.files)
        if host.driver.is_open:
            host.driver.pause()
            self._session.follow(make)
            return
        if self.begins:
            raise UsageError("the model is being read")
        host.say("reading the model")
        host.driver.close()
        self.begins = True
        self._session.reopen = make
        host.drive(make)
        host.start_driver()

    def refuse(self, problem: str) -> None:
        """Show that the model cannot be run on the inputs that were chosen."""
        self.begins = False
        self._host.drive(None)
        self._host.say(problem, "bad")

    def take(self, load: Load, outcome: LoadOutcome) -> None:
        """Keep the value of an input that is made, or why there is none."""
        if self.choices is not None:
            self.choices.take(load, outcome)
