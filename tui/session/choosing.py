"""Choosing: what of the application is about inputs that are chosen on the screen. The first run begins with them;
another choice later begins another run, which takes breakpoints and watches over from the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from stepper.debug.debugger import Debugger
from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.files.output import ProtectedFiles
from tui.messages import Made, Refused
from tui.session.durable import Durable, Reopen
from tui.worker.driver import Driver

if TYPE_CHECKING:
    from tui.screens.inputs.choices import InputChoices, Opening
    from tui.screens.inputs.loading import Load, Outcome


def _made(opening: Opening, inputs: Mapping[int, Array], files: ProtectedFiles) -> Debugger:
    """A debugger on these inputs, which keeps their files from being written over."""
    debugger = opening.make(inputs)
    debugger.protected += files
    return debugger


class Choosing(Durable):
    """`begins`: the first run on chosen inputs is being opened. `choosing` makes of inputs that were all given on the
    command line such that can be chosen anew (None: they cannot)."""

    begins: bool = False
    choosing: Callable[[], Opening] | None = None

    def to_choose(self) -> InputChoices | None:
        """What was chosen for the inputs, also on the command line; None where nothing can be chosen."""
        if self.inputs is None and self.choosing is not None:
            self.inputs = self.choices_of(self.choosing())
        return self.inputs

    def choices_of(self, opening: Opening) -> InputChoices:
        """Those of a model; large values are made in a thread of their own."""
        from tui.screens.inputs.choices import InputChoices
        from tui.screens.inputs.loading import Loader

        return InputChoices(opening, Loader(self.made))

    def begin(self, inputs: Mapping[int, Array]) -> None:
        """Run the model on these inputs; the main screen opens when the run stands at its start."""
        if self.inputs is None:
            raise UsageError("the model's inputs were given")
        make = partial(_made, self.inputs.opening, inputs, self.inputs.files)
        if self.driver.is_open:
            self.driver.pause()
            keep = self.keeping_other()
            begun = partial(self._begun, make)
            from tui.session.reopening import followed

            self.driver.ask(lambda old: followed(old, make, keep), begun, title="running on other inputs")
            return
        if self.begins:
            raise UsageError("the model is being read")
        self.say("reading the model")
        self.driver.close()
        self.begins = True
        self.reopen = make
        self.driver = Driver(self, make, self.state.model, keep=self.keep_up)
        self.start_driver()

    def _begun(self, make: Reopen, found: tuple[Debugger, str]) -> None:
        self.reopen = make
        self.go_on_with(found)

    def start_driver(self) -> None:
        """Put back what was kept, and do what the command line says."""
        raise NotImplementedError

    def on_refused(self, message: Refused) -> None:
        """The inputs do not do."""
        self.begins = False
        self.driver = Driver(self, None, self.state.model, keep=self.keep_up)
        self.say(message.text, "bad")

    def made(self, load: Load, outcome: Outcome) -> None:
        """A large value is made; called in the thread that made it."""
        self.post_message(Made(load, outcome))

    def on_made(self, message: Made) -> None:
        """Show that it is there."""
        if self.inputs is None:
            return
        from tui.screens.inputs.screen import InputsScreen

        self.inputs.take(message.load, message.outcome)
        if isinstance(self.front, InputsScreen):
            self.front.refresh_choices()
