"""The driver of a debugger: it works in a thread of its own, and the screens ask it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol, TypeVar

from textual.message import Message
from textual.timer import Timer

from stepper.errors import StepperError, UsageError
from stepper.files.output import ProtectedFiles
from stepper.integrations.dap import Visit
from stepper.session.autosave import EVERY
from stepper_tui.state import (
    Adjustment,
    Answered,
    Asked,
    ExecuteLine,
    FaultFound,
    InputsRefused,
    OverviewGrew,
    Question,
    Reply,
    Request,
    Running,
    RunProgress,
    ShowAgain,
    StateChanged,
    name_of,
)

if TYPE_CHECKING:
    from stepper.commands import Answer, Interpreter
    from stepper.commands.command_session import Command
    from stepper.debug.debugger import Debugger
    from stepper.debug.inspection.views import Glance
    from stepper.debug.overview.overview_facts import Overview
    from stepper.element_types import Array
    from stepper.engine.program import CompiledModel
    from stepper.integrations.dap.joining import RunPort
    from stepper_tui.worker.snapshot import BackgroundRun, Snapshots


T = TypeVar("T")

_LOOKS = 0.1
"""Seconds between two pictures of a run under way: each takes the interpreter from the run."""
_QUIET = 0.03
"""Seconds without a command after which missing history is loaded."""
_PAINTING = 0.05
"""Seconds, at most, for which the worker waits until the end of a run is painted."""
_LOGGED = 2_000
"""Lines of logpoints that are kept of one movement."""


class Receiver(Protocol):
    """The application as the worker sees it: it takes messages, from any thread, and calls at intervals of seconds."""

    def post_message(self, message: Message) -> bool:
        """Take a message; False if it no longer does."""
        ...

    def set_interval(self, interval: float, callback: Callable[[], None]) -> Timer:
        """Call at intervals."""
        ...


class Driver:
    """Carries out commands on a debugger in a thread of its own, and posts what comes of it to the application."""

    _debugger: Debugger
    _interpreter: Interpreter
    _snapshots: Snapshots
    _background: BackgroundRun

    def __init__(
        self,
        app: Receiver,
        debugger: Debugger | Callable[[], Debugger] | None,
        name: str,
        *,
        keep: Callable[[Debugger, bool], tuple[str, bool]] = lambda _debugger, _due: ("", False),
        editors: RunPort | None = None,
    ) -> None:
        """The debugger, or how one is made (in the worker); None: there will be another driver that has one.

        `keep` saves the session after each job, with True what waits; it says what is wrong and whether anything waits.
        `editors` hears what is done with the run.
        """
        self._app = app
        self._name = name
        self._make = debugger
        self._keep = keep
        self._editors = editors
        self._is_due = False
        self._logged: deque[str] = deque(maxlen=_LOGGED)
        self.is_open = False
        """True if there is a debugger; before that, it is being made, or its inputs are chosen."""
        self.is_closed = False
        if debugger is not None and not callable(debugger):
            self._open(debugger)
        self._jobs: SimpleQueue[Request | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._command = ""
        self._is_moving = False
        self._filling = False
        self._yielding = False
        self._waiting = 0
        self._pressing = 0
        self._resting = False
        self._painted = threading.Event()
        self._rate = _Rate()
        self._timer: Timer | None = None
        self._is_looking = False
        self._thread = threading.Thread(target=self._work, name="debugger", daemon=True)

    def _open(self, debugger: Debugger) -> None:
        from stepper.commands import Interpreter
        from stepper_tui.worker.snapshot import BackgroundRun, Snapshots

        self._debugger = debugger
        self._interpreter = Interpreter(debugger, multiline=False)
        self._background = BackgroundRun(debugger, self._grew, self._let_paint)
        self._snapshots = Snapshots(debugger, self._interpreter.session, self._name, self._background)
        debugger.breakpoints.sink = self._logged.append
        self.is_open = True

    # --- asked by the application, in its thread -----------------------------------------------------------------

    def start(self) -> None:
        """Begin to work; the first picture comes at once."""
        self._timer = self._app.set_interval(_LOOKS, self._look)
        self._is_looking = True
        self._thread.start()

    def execute(self, line: str) -> None:
        """Carry out a line of the command language; `Changed` says what came of it."""
        self._put(ExecuteLine(line))

    def ask(
        self,
        question: Question[T],
        then: Callable[[T], None],
        *,
        title: str = "",
        line: str = "",
        gives_way: bool = False,
    ) -> None:
        """Find something out: `question` is answered in the worker, `then` is called with that in the application.

        One that moves the run has a `title`: it is shown until it ends, and Esc pauses it.
        One that gives way is for what takes long: a replay in it is paused as soon as anything else is asked for, and
        it should itself leave off when `is_pressed`. Of names that are ambiguous in the `line` that asks there is one
        to be picked.
        """
        self._put(Asked(question, then, title, gives_way, line))

    def visit(self, visit: Visit) -> None:
        """Have done what an editor wants of the run; from any thread, behind which `watch` shows how far that is."""
        self._enqueue(visit)

    def leave_off(self) -> None:
        """Pause the replay of a question that gives way, for nobody wants it any more."""
        with self._lock:
            if self._yielding:
                self._debugger.pause()

    @property
    def is_pressed(self) -> bool:
        """True if something waits that does not give way."""
        return self._pressing > 0

    def adjust(self, adjustment: Adjustment) -> None:
        """Take other pictures from now on, and one at once."""
        self._put(adjustment)

    def pause(self) -> bool:
        """Make the movement under way stop where it is; True if there is one."""
        with self._lock:
            busy = bool(self._command)
            if busy:
                self._debugger.pause()
        return busy

    def hold_overview(self) -> bool:
        """Leave the run of the overview where it has come, until it is asked for again; True if it was under way."""
        with self._lock:
            was_wanted = self.is_open and self._background.hold()
            if was_wanted and self._filling:
                self._debugger.pause()
        if was_wanted:
            self.adjust(ShowAgain())
        return was_wanted

    @property
    def protected(self) -> ProtectedFiles:
        """The files that must not be written over."""
        return self._debugger.protected if self.is_open else ProtectedFiles()

    @property
    def compiled(self) -> CompiledModel:
        """The model, ready to run; it never changes."""
        if not self.is_open:
            raise UsageError("the model is not ready yet")
        return self._debugger.machine.compiled

    @property
    def given(self) -> tuple[tuple[str, Array], ...]:
        """The inputs of the run with their names; they never change."""
        parameters = self._debugger.model.graph.parameters
        return tuple((one.name, value) for one, value in zip(parameters, self._debugger.inputs, strict=True))

    @property
    def is_busy(self) -> bool:
        """True if anything that was asked for is not done yet."""
        return self._waiting > 0

    @property
    def is_moving(self) -> bool:
        """True while a movement is under way that was typed here."""
        return self._is_moving

    @property
    def has_ended(self) -> bool:
        """True if what was asked for and is not done never will be."""
        return self.is_closed and not self._thread.is_alive()

    @property
    def is_at_rest(self) -> bool:
        """Return True if everything is done, the history as well."""
        return self._resting

    def ended(self, patience: float = 10.0) -> Debugger | None:
        """The debugger, for whoever uses it when this has ended; None where that takes too long (seconds)."""
        self.close()
        if self._thread.is_alive():
            self._thread.join(patience)
        return None if self._thread.is_alive() or not self.is_open else self._debugger

    def close(self) -> None:
        """End; a movement under way is left where it is."""
        self.is_closed = True
        if self._timer is not None:
            self._timer.stop()
        if self.is_open:
            self._debugger.pause()
        self._jobs.put(None)

    def _put(self, job: Request) -> None:
        self._enqueue(job)
        self.watch()

    def _enqueue(self, job: Request) -> None:
        if self._make is None:
            raise UsageError("the model does not run yet: choose its inputs, F5 runs")
        with self._lock:
            self._waiting += 1
            self._resting = False
            self._painted.set()
            presses = not _gives_way(job)
            self._pressing += presses
            if self._filling or (self._yielding and presses):
                self._debugger.pause()
        self._jobs.put(job)

    def watch(self) -> None:
        """Show from now on how far a movement under way has come."""
        if self._timer is not None and not self._is_looking:
            self._is_looking = True
            self._timer.reset()

    def _look(self) -> None:
        """Ten times a second, while anything is asked for: show how far a movement under way has come."""
        command = self._command
        if self._timer is not None and not (command or self._waiting):
            self._is_looking = False
            self._timer.pause()  # each look takes the interpreter from the run behind the overview
        elif command:
            from stepper.debug.inspection.views import glance

            seen = glance(self._debugger.machine)
            self._app.post_message(RunProgress(Running(command, seen, self._rate.of(seen), self._rate.seconds)))

    # --- the worker ----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        if not self.is_open and not self._made():
            return
        self._show(None)
        quiet = 0.0  # nobody has pressed a key, for which there should be no other work
        while True:
            try:
                job = self._jobs.get(timeout=quiet)
            except Empty:
                with self._debugger.working():
                    is_more = self._fill()
                if is_more:
                    self._show(None)
                    continue
                if self._run_on():
                    quiet = _QUIET
                    continue
                self._rest()
                job = self._next_job()
            if job is None:
                return
            if isinstance(job, ExecuteLine | Visit):
                quiet = _QUIET
            try:
                with self._debugger.working():  # so that a pause is heeded from before it can be asked for
                    self._carry_out(job)
            except Exception as error:  # a fault in a command must not end the session
                self._app.post_message(FaultFound(name_of(job), repr(error)))
            finally:
                with self._lock:
                    self._waiting -= 1
                    self._pressing -= not _gives_way(job)
                    self._yielding = False
            if not _gives_way(job):
                self._save(due=False)

    def _next_job(self) -> Request | None:
        """Return the next job, whenever it comes; before that the session is saved, if that is due."""
        if self._is_due:
            try:
                return self._jobs.get(timeout=EVERY)
            except Empty:
                self._save(due=True)
        return self._jobs.get()

    def _save(self, *, due: bool) -> None:
        try:
            trouble, self._is_due = self._keep(self._debugger, due)
        except Exception as error:  # the worker must not die of it
            self._app.post_message(FaultFound("saving the session", repr(error)))
            return
        if trouble:
            self._app.post_message(Answered("saving the session", lambda _answer: None, None, trouble))

    def _made(self) -> bool:
        """Make the debugger; True if that went well."""
        assert callable(self._make)
        try:
            self._open(self._make())
        except (StepperError, MemoryError) as error:
            self._app.post_message(InputsRefused(str(error) or "there is not enough memory", error))
        except Exception as error:
            self._app.post_message(InputsRefused(f"a fault in the program: {error!r}", error))
        return self.is_open

    def _carry_out(self, job: Request) -> None:
        with self._lock:
            self._yielding = _gives_way(job)
            self._debugger.machine.request_pause(wanted=self._yielding and self.is_pressed)
        if isinstance(job, Visit):
            self._visited(job)
            return
        if isinstance(job, Asked):
            self._app.post_message(self._found(job))
            if self._editors is not None:
                self._editors.stands()
            if job.title:
                self._snapshots.after("")
                self._show(None)
            return
        if isinstance(job, ExecuteLine):
            self._is_moving = _moves(job.line)
            try:
                if self._editors is not None and self._is_moving:
                    self._editors.begins()
                reply, failure = self._reply(job)
            finally:
                self._is_moving = False
            if self._editors is not None:
                self._editors.stands(failure)
            self._show(reply)
            return
        self._snapshots.adjust(job)
        self._show(None)

    def _found(self, asked: Asked) -> Answered:
        with self._lock:
            self._rate.begin()
            self._command = asked.title
        try:
            return Answered(name_of(asked), asked.then, asked.question.answer(self._debugger))
        except StepperError as error:
            refused = error if error.candidates and asked.line else None
            return Answered(name_of(asked), asked.then, None, str(error), refused, asked.line)
        finally:
            with self._lock:
                self._command = ""
                if asked.title:
                    self._debugger.machine.request_pause(wanted=False)

    def _visited(self, job: Visit) -> None:
        """Carry out what an editor wants, and show what has changed by it."""
        with self._lock:
            self._rate.begin()
            self._command = job.title
        before = self._debugger.stop
        try:
            found = job.work(self._debugger)
        finally:
            with self._lock:
                self._command = ""
                self._debugger.machine.request_pause(wanted=False)
            job.done.set()
        if not found.is_other:
            return
        self._snapshots.after(found.failure)
        after, is_failed = self._debugger.stop, bool(found.failure)
        lines = tuple(found.failure.splitlines()) if is_failed else (f"{after.place} ({job.title})",)
        moved = after is not before
        lines = lines if moved or is_failed else ()
        self._show(Reply(job.title, lines, is_failed, moved, logged=self._take_log()))

    def _reply(self, job: ExecuteLine) -> tuple[Reply, str]:
        """Carry out a line; return what came of it, and the error with which the run failed, or none."""
        from stepper.commands import Answer

        with self._lock:
            self._rate.begin()
            self._command = job.line or "again"
        failure = run_failure = ""
        refused: StepperError | None = None
        try:
            answer = self._interpreter.execute(job.line)
        except UsageError as error:
            answer, failure, refused = Answer(), str(error), error if error.candidates else None
        except StepperError as error:
            answer, failure, run_failure = Answer(), str(error), str(error)
        finally:
            with self._lock:
                self._command = ""
                # A pause that came too late must not stop the next one.
                self._debugger.machine.request_pause(wanted=False)
        self._snapshots.after(run_failure)
        lines = tuple(failure.splitlines()) if failure else answer.lines
        ended = self._interpreter.session.ended
        moved = _moves(job.line) if failure else "reason" in answer.data
        watch = answer.data.get("number") if answer.command in ("watch", "display") else None
        called = _called(job.line)
        command = answer.command or ("" if called is None else called.name)
        notes, logged = _notes(answer), self._take_log()
        reply = Reply(job.line, lines, bool(failure), moved, ended, command, notes, logged, refused, watch)
        return reply, run_failure

    def _take_log(self) -> tuple[str, ...]:
        lines = tuple(self._logged)
        self._logged.clear()
        return lines

    def _show(self, reply: Reply | None) -> None:
        try:
            state = self._snapshots.take()
        except Exception as error:
            self._app.post_message(FaultFound("picture", repr(error)))
            return
        self._app.post_message(StateChanged(state, reply))

    def _rest(self) -> None:
        with self._lock:
            self._resting = self._waiting == 0

    def _run_on(self) -> bool:
        """Go on with the run of the overview; True if there was anything to do."""
        with self._lock:
            if self._waiting or not self._background.has_work:
                return False
            self._filling = True
        try:
            with self._debugger.working():
                with self._lock:
                    is_due = self._background.has_work and not self._waiting
                    self._debugger.machine.request_pause(wanted=not is_due)
                is_more = self._background.run_on() if is_due else True
        except Exception as error:  # the worker must not die of it
            self._background.give_up()
            is_more = False
            self._app.post_message(FaultFound("the run of the overview", repr(error)))
        finally:
            with self._lock:
                self._filling = False
        if not is_more:
            self._show(None)
        return True

    def painted(self) -> None:
        """The screen shows what was told last."""
        self._painted.set()

    def _let_paint(self) -> None:
        """Wait until the end of a run is painted, which other work would delay; not where something is asked for."""
        self._painted.wait(_PAINTING)

    def _grew(self, known: Overview) -> None:
        """More is known of the run of the overview. A pause may have come where none is heeded."""
        with self._lock:
            if not self._waiting:
                self._painted.clear()
            if self._waiting or not self._background.has_work:
                self._debugger.pause()
        if self._background.is_shown:
            self._app.post_message(OverviewGrew(known))

    def _fill(self) -> bool:
        """Prove the last stop, and load missing history; True if there is more to see now."""
        with self._lock:
            if self._waiting:
                return False
            self._filling = True
            self._debugger.machine.request_pause(wanted=False)
        try:
            self._debugger.timeline.prove()
            return self._snapshots.fill(lambda: self._waiting > 0)
        except StepperError:
            return False
        except Exception as error:  # the worker must not die of it
            self._app.post_message(FaultFound("histories", repr(error)))
            return False
        finally:
            with self._lock:
                self._filling = False


def _notes(answer: Answer) -> tuple[str, ...]:
    """Return the lines of a movement beside where it ended: notes, and the answers to the commands of a breakpoint."""
    said = [line for one in answer.data.get("breakpoint_commands", ()) for line in one["answer"]["lines"]]
    return (*answer.data.get("notes", ()), *said)


def _called(line: str) -> Command | None:
    """Return the command of a line, a movement for an empty line, which repeats one; None where there is none."""
    from stepper.commands.command_session import command_called

    word = line.split(maxsplit=1)[0] if line.strip() else "next"
    try:
        return command_called(word)
    except StepperError:
        return None


def _moves(line: str) -> bool:
    command = _called(line)
    return command is not None and (command.moves or command.group in ("movement_commands", "edit_commands"))


def _gives_way(job: Request) -> bool:
    return isinstance(job, Asked) and job.gives_way


class _Rate:
    """Iterations per second of the movement under way, over about the last second."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int, int]] = deque(maxlen=30)
        self._begun = 0.0

    @property
    def seconds(self) -> float:
        """For how long the movement has gone on."""
        return time.monotonic() - self._begun

    def begin(self) -> None:
        """A movement begins."""
        self._seen = deque(maxlen=30)
        self._begun = time.monotonic()

    def of(self, seen: Glance) -> float | None:
        """With one glance more."""
        iterations = [number for number in seen.iterations if number is not None]
        self._seen.append((time.monotonic(), len(seen.iterations), iterations[-1] if iterations else 0))
        (begun, depth, first), (now, last_depth, last) = self._seen[0], self._seen[-1]
        if depth != last_depth or last <= first or now - begun < 0.2:
            return None
        return (last - first) / (now - begun)
