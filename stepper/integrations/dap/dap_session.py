"""One session of a client: the run that it debugs, and how a movement becomes an event."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from stepper.commands import Interpreter
from stepper.commands.command_completion import Completer
from stepper.commands.stop_answers import stop_lines
from stepper.debug.breakpoints.breakpoint import BreakDescription
from stepper.debug.breakpoints.breakpoints import LogMessage
from stepper.debug.causes.cause import Cause, Trigger
from stepper.debug.causes.cause_texts import sentences, title
from stepper.debug.debugger import Debugger
from stepper.debug.scopes import Names
from stepper.debug.stop import Reason, Stop
from stepper.diagnosis.rule import Finding
from stepper.diagnosis.texts import consequence, headline
from stepper.errors import StepperError, UsageError
from stepper.integrations.dap.dap_breakpoints import EXCEPTIONS, ClientBreakpoints
from stepper.integrations.dap.listing import ModelListing, is_file, listing_source
from stepper.integrations.dap.messages import InitializeArguments, SourceArguments
from stepper.integrations.dap.variables import StopVariables
from stepper.integrations.following import Follower
from stepper.records import Record
from stepper.wording import excerpt, printable_lines

THREAD: Final = 1
"""A run has one thread."""
_LONGEST_TITLE: Final = 200
_SOON: Final = 0.5
_PACE: Final = 0.25
"""Seconds after which a movement has a progress, and between two words of it."""


class OpenedRun(Record, eq=False):
    """A run that was opened: breakpoints that are set with it, notes for the user, and the tick at which to begin.

    `shared`: it is that of an application, which moves it, too, and goes on without the client.
    """

    debugger: Debugger
    breaks: Sequence[BreakDescription] = ()
    notes: Sequence[str] = ()
    begin: int = 0
    shared: bool = False


OpenRun = Callable[[Mapping[str, Any], bool], OpenedRun]
"""Opens what the arguments of `launch` (or, if True, of `attach`) name. Raises StepperError."""
SendEvent = Callable[[str, Any], None]


class DebuggedRun:
    """A run with all that a client sees of it."""

    def __init__(
        self, opened: OpenedRun, send: SendEvent, *, stops_on_entry: bool, is_debugged: bool, as_uri: bool
    ) -> None:
        self.debugger = debugger = opened.debugger
        compiled = debugger.machine.compiled
        self.stops_on_entry, self.is_debugged = stops_on_entry, is_debugged
        self.interpreter = Interpreter(debugger)
        self.completer = Completer(compiled)
        self.names = Names(compiled)
        self.listing = ModelListing(compiled)
        self.text = self.listing.text
        self.source = listing_source(debugger.model, self.text, debugger.protected, as_uri=as_uri)
        self.breakpoints = ClientBreakpoints(debugger, self.listing, self.source)
        self.variables = StopVariables(debugger)
        self.follower = Follower(debugger)
        self.failure = ""
        """The error with which the last movement ended."""
        self.is_shared = opened.shared
        self._sink = debugger.breakpoints.sink
        debugger.breakpoints.sink = partial(self._hear, send)
        for description in opened.breaks:
            debugger.breakpoints.add(description)
        if not opened.shared:
            self.breakpoints.pass_over()
        if opened.begin:
            debugger.goto_tick(opened.begin)

    def _hear(self, send: SendEvent, line: LogMessage) -> None:
        """A logpoint writes a line."""
        if self.is_shared:
            self._sink(line)
        send("output", {"category": "console", "output": f"{line}\n"})

    def is_model(self, source: SourceArguments) -> bool:
        """True if a client means the .xml of the model."""
        return is_file(source, self.debugger.model.path)

    def from_the_start(self) -> Stop:
        """Go to the start, where hit counts begin anew, as in a program that is started again."""
        stop = self.debugger.first()
        self.breakpoints.count_anew()
        return stop

    def leave(self) -> None:
        """Leave a shared run as it is without the client: its breakpoints go, and what they write is for others."""
        self.debugger.breakpoints.sink = self._sink
        self.breakpoints.leave()

    @property
    def signs(self) -> tuple[object, ...]:
        """Return what tells if anything was changed: edits, the branch, breakpoints, watches, what is held as A."""
        debugger = self.debugger
        edits = tuple((tick, len(found)) for tick, found in debugger.timeline.edits.items())
        breakpoints = [(one.number, one.description) for one in debugger.breakpoints]
        return debugger.branches.title, edits, breakpoints, len(debugger.watches), debugger.pinned

    @property
    def story(self) -> str:
        """Return what stopped the run and how it came to that, a sentence a line; empty where nothing did."""
        told = (sentence for cause in self.debugger.stop.causes for sentence in self._told(cause))
        return self.failure or "\n".join(told)

    def _told(self, cause: Cause) -> Iterable[str]:
        found = self.finding_of(cause)
        return sentences(cause) if found is None else (headline(found), consequence(found))

    def finding_of(self, cause: Cause | None) -> Finding | None:
        """Return what `check` finds at the place that stopped the run, where a client asked for its findings."""
        return None if cause is None or not cause.number else self.breakpoints.finding(cause.number)

    @property
    def title(self) -> str:
        """Return the name of the model, and of the branch that runs."""
        branch = self.debugger.branches.title
        name = excerpt(self.debugger.model.name or self.debugger.model.path.stem)
        return f"{name} [{branch}]" if branch else name


class DapSession:
    """A session: `client` is what that says of itself. `after` is done when the request under way is answered."""

    def __init__(self, open_run: OpenRun, send: SendEvent) -> None:
        self._open_run, self.send = open_run, send
        self.client = InitializeArguments()
        self.after: Callable[[], None] | None = None
        self.ended = False
        self.is_configured = False
        self.is_pause_wanted: Callable[[], bool] = lambda: False
        self.is_interrupted: Callable[[], bool] = lambda: False
        self.is_going_on = False
        """True while a movement is under way that may be interrupted for a request."""
        self.suspended: Callable[[], Stop] | None = None
        """The verb that goes on when what came meanwhile is answered."""
        self.progress = ""
        """What the movement under way is called where the client follows it; empty where it does not."""
        self.is_moving = False
        """True while the client has the run move."""
        self.is_joining = False
        """True if there is no other run than that of an application; one that attaches to a port means this one."""
        self._is_told_moving = False
        self._told: tuple[Stop | None, object] = None, None
        self._run: DebuggedRun | None = None

    @property
    def run(self) -> DebuggedRun:
        """Return the run. UsageError where nothing was launched."""
        if self._run is None:
            raise UsageError("there is no run yet: launch one first")
        return self._run

    @property
    def has_run(self) -> bool:
        """True if something was launched."""
        return self._run is not None

    @property
    def is_shared(self) -> bool:
        """True if the run is that of an application, too."""
        return self._run is not None and self._run.is_shared

    @property
    def line_offset(self) -> int:
        """Return what the client's lines lack to ours, which are counted from 1."""
        return 0 if self.client.lines_start_at1 else 1

    def launch(self, arguments: Mapping[str, Any], *, attach: bool) -> None:
        """Open a run. Raise StepperError where that cannot be."""
        if self._run is not None:
            raise UsageError("a run was launched already; end the session, or restart it")
        opened = self._open_run(arguments, attach)
        stops = opened.shared or bool(arguments.get("stopOnEntry", True))
        self._run = DebuggedRun(
            opened,
            self.send,
            stops_on_entry=stops,
            is_debugged=opened.shared or not arguments.get("noDebug"),
            as_uri=self.client.path_format == "uri",
        )
        for note in opened.notes:
            self.say(note)
        self.after = lambda: self.send("initialized", None)

    def say(self, text: str, category: str = "console") -> None:
        """Send lines for the user to read."""
        self.send("output", {"category": category, "output": f"{printable_lines(text)}\n"})

    def end(self) -> None:
        """End the session when the request is answered."""
        self.ended = True
        self.after = lambda: self.send("terminated", None)

    # --- moving --------------------------------------------------------------------------------------------------

    def move(self, verb: Callable[[], Stop], why: str = "step", *, goes_on: bool = False) -> None:
        """Have a movement carried out when the request is answered; `goes_on`: one that may be interrupted."""
        self.run.variables.forget()
        self.suspended = None
        self.after = lambda: self._moved(verb, why, goes_on=goes_on)

    def resume(self) -> None:
        """Go on with a movement that was interrupted for a request."""
        verb, self.suspended = self.suspended, None
        if verb is not None:
            self._moved(verb, "step", goes_on=True)

    def _moved(self, verb: Callable[[], Stop], why: str, *, goes_on: bool) -> None:
        run = self.run
        run.failure = ""
        self.is_going_on = goes_on
        try:
            with self.working() as is_paused:
                is_late = goes_on and self.is_interrupted()  # by what came before the run could be paused for it
                if not is_paused and not is_late:
                    is_late = verb().reason is Reason.PAUSED and goes_on and self.is_interrupted()
        except StepperError as error:
            run.failure = str(error)
            self.tell_stop(EXCEPTIONS)
            return
        finally:
            self.is_going_on = False
        if is_late and not self.is_pause_wanted():
            self.suspended = verb
        else:
            self.tell_stop("pause" if is_paused else why)

    @contextmanager
    def working(self) -> Iterator[bool]:
        """Work with the debugger in a block, with a progress; True if a pause was asked for that has come too early."""
        debugger = self.run.debugger
        self.is_moving = True
        try:
            with debugger.working(), _Progress(self, debugger):
                yield self.is_pause_wanted()
        finally:
            self.is_moving = False

    # --- beside an application ---------------------------------------------------------------------------------

    def note(self) -> bool:
        """Take note of how the run stands and what is set in it; True if that is another than the last time."""
        now = self.run.debugger.stop, self.run.signs
        is_other = now[0] is not self._told[0] or now[1] != self._told[1]
        self._told = now
        return is_other

    def tell_moving(self) -> None:
        """Send that the application moves the run."""
        if self.is_configured:
            self._is_told_moving = True
            self.suspended = None  # it would go on from somewhere else
            self.send("continued", {"threadId": THREAD, "allThreadsContinued": True})

    def tell_others(self, failure: str) -> None:
        """Send what the application has done: moved the run (with an error, or none), or changed something in it."""
        run, before = self.run, self._told[0]
        run.failure = failure or (run.failure if before is run.debugger.stop else "")
        is_other = self.note()
        if self._is_told_moving or before is not run.debugger.stop:
            self._is_told_moving, self.suspended = False, None
            run.variables.forget()
            self.tell_stop("step")
        elif is_other:
            run.variables.forget()
            if self.client.supports_invalidated_event:
                self.send("invalidated", {"areas": ["all"]})
        self.tell_breakpoints()

    def tell_breakpoints(self) -> None:
        """Send which breakpoints the client has not set and now has, and which of its own are gone."""
        if not self.is_configured:
            return  # it may still set the same
        for reason, shown in self.run.breakpoints.news(self.line_offset):
            self.send("breakpoint", {"reason": reason, "breakpoint": shown})

    # --- telling -------------------------------------------------------------------------------------------------

    def tell_stop(self, why: str) -> None:
        """Send where the run stands now; `why` is the reason where nothing but the aim of a movement stopped it."""
        run = self.run
        stop = run.debugger.stop
        reason, numbers = _reason(run, why), [cause.number for cause in stop.causes if cause.number]
        text = run.story
        words = _title(run, why)
        body = {"reason": reason, "threadId": THREAD, "allThreadsStopped": True, "description": words[:_LONGEST_TITLE]}
        if text:
            body["text"] = text
        if numbers:
            body["hitBreakpointIds"] = numbers
        if stop.reason is Reason.END and not run.failure:
            self.say("\n".join(stop_lines(run.debugger)))
            if not run.is_debugged:
                self.ended = True
                self.send("terminated", None)
                return
        self.send("stopped", body)


def _title(run: DebuggedRun, why: str) -> str:
    """Return in a few words why the run stands here."""
    stop = run.debugger.stop
    if run.failure:
        return run.failure.splitlines()[0]
    if stop.cause is not None and stop.is_interrupted:
        return title(stop.cause)
    return why if stop.reason is Reason.MOVED else str(stop.reason)


def _reason(run: DebuggedRun, why: str) -> str:
    """Return the reason of a stop in a word of the protocol, or `end`."""
    stop = run.debugger.stop
    if run.failure:
        return EXCEPTIONS
    if stop.is_interrupted:
        cause = next(one for one in stop.causes if one.trigger is not Trigger.AIM)
        return run.breakpoints.kind_of(cause.number) if cause.number else EXCEPTIONS
    if why == "pause":
        return why  # it came before the run had moved
    words = {Reason.PAUSED: "pause", Reason.START: "entry", Reason.END: "end"}
    return words.get(stop.reason, why)


class _Progress:
    """Tells a client that wants to know how far a movement is that takes long; it can be cancelled there."""

    _number = 0

    def __init__(self, session: DapSession, debugger: Debugger) -> None:
        self._session, self._debugger = session, debugger
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        if self._session.client.supports_progress_reporting:
            self._thread = threading.Thread(target=self._tell, daemon=True, name="progress of the debug adapter")
            self._thread.start()

    def __exit__(self, *_exception: object) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _tell(self) -> None:
        if self._done.wait(_SOON):
            return
        _Progress._number += 1
        identity, send = f"movement-{_Progress._number}", self._session.send
        self._session.progress = identity
        send("progressStart", {"progressId": identity, "title": "stepper runs the model", "cancellable": True})
        while not self._done.wait(_PACE):
            send("progressUpdate", {"progressId": identity, "message": f"tick {self._debugger.machine.tick:,}"})
        self._session.progress = ""
        send("progressEnd", {"progressId": identity})
