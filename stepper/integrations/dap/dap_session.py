"""Serve a session of a client: the run that it debugs, and the events of its movements.

Variables are the scopes of a frame, the values in them, and pages of tensors of any size.

A reference number stands for everything that can be opened; all numbers expire when the run moves. A page takes only
its own elements out of the tensor.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from stepper.commands import Interpreter
from stepper.commands.command_completion import Completer
from stepper.commands.command_session import stop_lines
from stepper.debug.breakpoints.breakpoint import BreakDescription
from stepper.debug.breakpoints.breakpoints import LogMessage
from stepper.debug.causes.cause import Cause, Trigger
from stepper.debug.causes.cause_texts import sentences, title
from stepper.debug.debugger import Debugger
from stepper.debug.inspection.views import (
    BackEdgeView,
    BranchView,
    FrameView,
    InputView,
    LoopView,
    OutputView,
    ScanView,
    frame_views,
)
from stepper.debug.scopes import Names
from stepper.debug.stop import Reason, Stop, is_branch
from stepper.diagnosis.rule import Finding
from stepper.diagnosis.texts import consequence, headline
from stepper.element_types import Array, Indices
from stepper.errors import StepperError, UsageError
from stepper.integrations.dap.dap_breakpoints import EXCEPTIONS, ClientBreakpoints
from stepper.integrations.dap.listing import ModelListing, is_file, listing_source
from stepper.integrations.dap.messages import (
    InitializeArguments,
    ShownScope,
    ShownVariable,
    SourceArguments,
    VariableHint,
)
from stepper.integrations.following import Follower
from stepper.query.address_syntax import exact_name
from stepper.query.expression_values import described
from stepper.records import Record
from stepper.tensors.number_text import exact_text, numbers_text
from stepper.wording import counted, excerpt, printable_lines

THREAD = 1
"""A run has one thread."""
_LONGEST_TITLE = 200
_SOON = 0.5
_PACE = 0.25
"""Seconds after which a movement has a progress, and between two words of it."""


class OpenedRun(Record, eq=False):
    """Hold an opened run: breakpoints to set with it, notes for the user, and its first tick.

    `shared`: the run belongs to an application, which also moves it and continues without the client.
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
        """Leave a shared run unchanged: remove the client's breakpoints and restore the output."""
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
    """Serve a session.

    `client` is the client's description of itself. `after` runs when the current request is answered.
    """

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
        """The verb that continues after the requests in between are answered."""
        self.progress = ""
        """Title of the current movement for a client that follows it; empty if the client does not."""
        self.is_moving = False
        """True while the client has the run move."""
        self.is_joining = False
        """True if the only run is the application's run; attaching to a port then means this run."""
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
        """Return True if an application shares the run."""
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


MOST = 1000
"""Variables of an answer; of more there are ranges to open."""
_MOST_OPEN = 500_000
_ROOM = 100
_ROOM_BEHIND = 80
"""Characters of a value: in a list, and behind a line."""
_LARGEST_TESTED = 100_000
"""Elements of a value that is looked through for NaN and Inf."""
_LARGEST_PAGE_TESTED = 1_000_000
"""Elements of all values of a page that are."""
_MOST_BYTES = 2**20

Content = Callable[[int, int], Sequence[ShownVariable]]


class OpenVariables(Record, eq=False):
    """Something with variables in it: how many, and what gives those from one index up to another.

    `address` is how a tensor is written, and `index` which part of it this is; `array` is that part. `scope`: the depth
    and the name of a scope.
    """

    count: int
    content: Content
    array: Array | None = None
    address: str = ""
    index: Indices = ()
    scope: tuple[int, str] | None = None


class StopVariables:
    """All that can be opened at a stop, by number."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger
        self._open: list[OpenVariables | None] = []
        self._old: set[int] = set()
        self._base = 1

    def forget(self) -> None:
        """Forget all numbers: the run moves. None is given twice."""
        self._base += len(self._open)
        self._open.clear()
        self._old.clear()

    def renew(self) -> None:
        """Read what is open anew when it is asked for: the run stands still, but a value of it is another now."""
        self._old = set(range(len(self._open)))

    def _again(self, one: OpenVariables) -> OpenVariables | None:
        """Return the current state of an opened variable; None for a part, to be opened again."""
        if one.scope is not None:
            depth, name = one.scope
            return next((self.opened(new.variables_reference) for new in self.scopes(depth) if new.name == name), None)
        if one.array is None or not one.address or one.count != len(one.array):
            return None
        array = np.asarray(self._debugger.value(one.address))[one.index]
        return self.opened(self.shown("", array, one.address, one.index).variables_reference)

    def opened(self, reference: int) -> OpenVariables:
        """Return what a number stands for. Raise UsageError where it is of another stop, or none."""
        place = reference - self._base
        found = self._open[place] if 0 <= place < len(self._open) else None
        if found is not None and place in self._old:
            self._old.discard(place)
            found = self._open[place] = self._again(found)
        if found is None:
            raise UsageError(f"there are no variables {reference} at this stop; ask for its scopes first")
        return found

    def page(self, reference: int, start: int, count: int) -> list[ShownVariable]:
        """Return variables from `start` on, `count` at most (0: all; of many in ranges). UsageError."""
        found = self.opened(reference)
        begin = min(max(start, 0), found.count)
        end = min(found.count, begin + count) if count > 0 else found.count
        if end - begin <= MOST:
            return list(found.content(begin, end))
        return list(self._ranges(found, begin, end))

    def is_indexed(self, reference: int) -> bool:
        """Return True if what a number stands for has elements, not variables with names. UsageError."""
        return self.opened(reference).array is not None

    def _ranges(self, found: OpenVariables, begin: int, end: int) -> Iterator[ShownVariable]:
        """Yield ranges of as many variables each; in those of very many are ranges again."""
        each = MOST
        while (end - begin) / each > MOST:
            each *= MOST
        for start in range(begin, end, each):
            stop = min(start + each, end)
            part = OpenVariables(
                stop - start,
                lambda first, last, start=start: found.content(start + first, start + last),  # type: ignore[misc]
                found.array,
                found.address,
                found.index,
            )
            yield ShownVariable(f"[{start}..{stop - 1}]", "", self._numbered(part), presentation_hint=_VIRTUAL)

    def _numbered(self, found: OpenVariables) -> int:
        if len(self._open) >= _MOST_OPEN:
            raise UsageError(f"{_MOST_OPEN:,} variables are open at this stop; step, and open fewer")
        self._open.append(found)
        return self._base + len(self._open) - 1

    # --- scopes --------------------------------------------------------------------------------------------------

    def scopes(self, depth: int) -> list[ShownScope]:
        """Return the scopes of the frame at a depth (0: the model's own graph). UsageError where there is none."""
        stack = self._debugger.machine.stack
        if not stack and depth == 0:
            return [self._scope("Outputs", self._outputs(), "locals", 0)]
        if not 0 <= depth < len(stack):
            raise UsageError(f"the stack has {counted(len(stack), 'frame')}; there is no frame {depth + 1}")
        scopes = [self._scope("Values", self._values(depth), "locals", depth)]
        if stack[depth].loop:
            loop = self._debugger.loop(depth, differences=False)
            scopes += [
                self._scope("Carried", [partial(self._carried, edge) for edge in loop.back_edges], depth=depth),
                self._scope("Scan outputs", [partial(self._scan, scan) for scan in loop.scans], depth=depth),
                self._scope("Ports", self._ports(loop), depth=depth),
                self._scope("Condition", _condition(loop), depth=depth),
            ]
        elif is_branch(stack[depth]) and depth == len(stack) - 1 and (side := self._debugger.view().branch) is not None:
            scopes += [self._scope("Ports", self._ports(side), depth=depth)]
            scopes.append(self._scope("Condition", _side(side), depth=depth))
        return scopes

    def _scope(self, name: str, made: Sequence[ShownVariable | _Late], hint: str = "", depth: int = 0) -> ShownScope:
        def content(begin: int, end: int) -> list[ShownVariable]:
            return [one if isinstance(one, ShownVariable) else one() for one in made[begin:end]]

        reference = self._numbered(OpenVariables(len(made), content, scope=(depth, name)))
        return ShownScope(name, reference, expensive=False, named_variables=len(made), presentation_hint=hint)

    def _values(self, depth: int) -> list[_Late]:
        """Return values, each shown when it is asked for: the newest first, then Parameters, then those to come."""
        frame = frame_views(self._debugger.machine.stack)[depth]
        come = frame.last + 1
        layers = (*frame.layers[:come][::-1], *frame.graph.parameters, *frame.layers[come:])
        return [self._value_of(frame, layer, output) for layer in layers for output in range(len(layer.outputs))]

    def _value_of(self, frame: FrameView, layer: Any, output: int) -> _Late:
        def made() -> ShownVariable:
            view = frame.value(layer.id, output)
            name = f"{layer.name}:{output}" if len(layer.outputs) > 1 else layer.name
            address = frame.address_of(layer, output, self._debugger.machine.compiled)
            return _absent(name, view.absent, address) if view.array is None else self.shown(name, view.array, address)

        return made

    def line_values(self, listing: ModelListing, depth: int, lines: range) -> Iterator[tuple[int, str]]:
        """Yield lines with the values that the frames up to a depth have there now."""
        frames = {id(one.program): one for one in frame_views(self._debugger.machine.stack)[: depth + 1]}
        for line in lines:
            place = listing.place(line)
            frame = None if place is None else frames.get(id(place.program))
            if place is None or frame is None or not place.layer.outputs:
                continue
            array = frame.value(place.layer.id, 0).array
            if array is not None and array.dtype.names is None:
                words = _non_finite(array, _LARGEST_TESTED), numbers_text(array, _ROOM_BEHIND)
                yield line, " ".join(" ".join(words).split()) or described(array)

    def _outputs(self) -> list[ShownVariable]:
        machine = self._debugger.machine
        results = machine.compiled.main.graph.results
        pairs = zip(results, machine.outputs or (), strict=True)
        return [self.shown(layer.name, np.asarray(array), f"model::{exact_name(layer.name)}") for layer, array in pairs]

    def _carried(self, edge: BackEdgeView) -> ShownVariable:
        parts = [
            self._maybe(name, array)
            for name, array in (("came in", edge.came_in), ("goes out", edge.goes_out), ("comes next", edge.comes_next))
        ]
        note = "" if edge.counts else f" ({edge.why})"
        return self._group(edge.parameter.name, f"<- {edge.result.name}{note}", parts)

    def _scan(self, scan: ScanView) -> ShownVariable:
        final = "" if scan.final_shape is None else f" of {list(scan.final_shape)}"
        shape = "" if scan.shape is None else f", {list(scan.shape)}{final}"
        text = f"{counted(scan.pieces, 'piece')} along axis {scan.axis}{shape}"

        def content(begin: int, end: int) -> list[ShownVariable]:
            return [self.shown(f"[{number}]", scan.piece(number)) for number in range(begin, end)]

        reference = self._numbered(OpenVariables(scan.pieces, content)) if scan.pieces else 0
        return ShownVariable(scan.result, text, reference, indexed_variables=scan.pieces or None)

    def _ports(self, loop: LoopView | BranchView) -> list[_Late]:
        both: tuple[InputView | OutputView, ...] = (*loop.inputs, *loop.outputs)
        return [partial(self._port, one) for one in both]

    def _port(self, entry: InputView | OutputView) -> ShownVariable:
        if isinstance(entry, InputView):
            name = f"input {'-' if entry.input is None else entry.input} -> {entry.inner.name}"
        else:
            name = f"{entry.inner.name} -> output {'-' if entry.output is None else entry.output}"
        parts = [self._maybe("inside", entry.inner.array)]
        if entry.outer is not None:
            parts.append(self._maybe("outside", entry.outer.array))
        return self._group(name, f"{entry.role}: {entry.why}" if entry.why else str(entry.role), parts)

    def _group(self, name: str, text: str, parts: Sequence[ShownVariable]) -> ShownVariable:
        reference = self._numbered(OpenVariables(len(parts), lambda begin, end: parts[begin:end]))
        return ShownVariable(name, text, reference, named_variables=len(parts))

    def _maybe(self, name: str, array: Array | None) -> ShownVariable:
        return _absent(name, "nothing yet") if array is None else self.shown(name, array)

    # --- tensors -------------------------------------------------------------------------------------------------

    def shown(
        self, name: str, value: Any, address: str = "", index: Indices = (), *, most: int = _LARGEST_TESTED
    ) -> ShownVariable:
        """Return a value: a number, or a tensor that can be opened; without an address it is no variable of the run.

        One of more than `most` elements is not looked through for NaN and Inf.
        """
        if not isinstance(value, np.ndarray | np.generic):
            return ShownVariable(name, str(value), 0, evaluate_name=address)
        array = np.asarray(value)
        written = f"{address}[{','.join(map(str, index))}]" if address and index else address
        hint = None if address else _READ_ONLY
        if array.ndim == 0:
            return ShownVariable(name, exact_text(array), 0, described(array), written, presentation_hint=hint)
        reference = self._numbered(
            OpenVariables(
                len(array), lambda begin, end: self._elements(array, address, index, begin, end), array, address, index
            )
        )
        return ShownVariable(
            name,
            _text(array, most),
            reference,
            described(array),
            written,
            indexed_variables=len(array),
            memory_reference=f"tensor-{reference}",
            presentation_hint=hint,
        )

    def _elements(self, array: Array, address: str, index: Indices, begin: int, end: int) -> list[ShownVariable]:
        part = array[begin:end]
        most = _LARGEST_TESTED if part.size <= _LARGEST_PAGE_TESTED else 0
        return [
            self.shown(f"[{number}]", part[number - begin], address, (*index, number), most=most)
            for number in range(begin, end)
        ]

    def memory(self, reference: str, offset: int, count: int) -> tuple[str, int]:
        """Return bytes of a tensor in base64, and how many of the requested bytes do not exist.

        For a very long request the first bytes are returned, with more behind them: a client then continues from there.
        Raises UsageError.
        """
        number = reference.removeprefix("tensor-")
        array = self.opened(int(number)).array if number.isdecimal() and len(number) < 19 else None
        if array is None:
            raise UsageError(f"there is no memory '{reference[:60]}' at this stop")
        if array.dtype.kind in "TO":
            raise UsageError("texts have no bytes to show")
        wanted = max(count, 0)
        if offset < 0:
            return "", min(wanted, -offset)
        begin = min(offset, array.nbytes)
        end = min(array.nbytes, begin + min(wanted, _MOST_BYTES))
        first, last = begin // array.itemsize, -(-end // array.itemsize)
        flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
        raw = np.asarray(flat[first:last]).tobytes()[begin - first * array.itemsize :][: end - begin]
        return base64.b64encode(raw).decode(), wanted - len(raw) if end == array.nbytes else 0

    def address(self, reference: int, name: str) -> str:
        """Return how the debugger calls a variable by its name in what is open. UsageError where it has no name."""
        found = self.opened(reference)
        if found.address:
            number = name.strip("[]")
            if (
                not number.isdecimal()
                or len(number) > 18
                or int(number) >= (0 if found.array is None else len(found.array))
            ):
                raise UsageError(f"'{name[:60]}' is no element of {found.address}")
            return f"{found.address}[{','.join(map(str, (*found.index, int(number))))}]"
        for begin in range(0, found.count, MOST):
            for one in found.content(begin, min(begin + MOST, found.count)):
                if one.name == name:
                    if one.evaluate_name:
                        return one.evaluate_name
                    raise UsageError(f"'{name[:60]}' is shown only; change it where it is a value of a frame")
        raise UsageError(f"there is no variable '{name[:60]}' here")


_Late = Callable[[], ShownVariable]
"""A variable that is made when it is shown."""

_READ_ONLY = VariableHint(attributes=("readOnly",))
_VIRTUAL = VariableHint(kind="virtual", attributes=("readOnly",))


def _absent(name: str, why: str, address: str = "") -> ShownVariable:
    """Return a variable without a value; with an address it can be watched, and have a breakpoint."""
    return ShownVariable(name, why, 0, evaluate_name=address, presentation_hint=_VIRTUAL)


def _text(array: Array, most: int) -> str:
    """Return type and shape, numbers as far as there is room, and how many are NaN or infinite; of `most` at most."""
    numbers = numbers_text(array, _ROOM) if array.dtype.names is None else ""
    return f"{described(array)} {numbers}".rstrip() + _non_finite(array, most)


def _non_finite(array: Array, most: int) -> str:
    """Return how many elements are NaN or infinite, of a tensor that is not too large; empty for none."""
    if array.dtype.kind != "f" or array.size > most:
        return ""
    counts = {"NaN": int(np.isnan(array).sum()), "Inf": int(np.isinf(array).sum())}
    return "".join(f"  {count} {kind}" for kind, count in counts.items() if count)


def _texts(facts: Mapping[str, Any]) -> list[ShownVariable]:
    return [ShownVariable(name, str(value), 0, presentation_hint=_READ_ONLY) for name, value in facts.items()]


def _condition(loop: LoopView) -> list[ShownVariable]:
    trip, condition = loop.trip, loop.condition
    most = "any number" if trip.maximum is None else trip.maximum
    facts: dict[str, Any] = {"iterations": trip.executed, "at most": f"{most} ({trip.origin})", "ends": trip.sentence}
    if condition is not None:
        facts |= {"condition": condition.value, "from": condition.origin, "condition says": condition.sentence}
        if condition.upcoming is not None:
            facts["condition of this iteration"] = condition.upcoming
    return _texts(facts)


def _side(branch: BranchView) -> list[ShownVariable]:
    condition = branch.condition
    return _texts({"side": branch.side, "condition": condition.value, "condition says": condition.sentence})
