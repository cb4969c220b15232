"""`with stepper.capture(when="nan", to="cases"):` keeps the calls of OpenVINO in it that go wrong, each as a case."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from multiprocessing.util import Finalize, register_after_fork
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
from msgspec import Struct

from stepper.cases.case import CallTrigger, CannotBeKept, CaseFacts, ModelFiles, Triggers, When, versions
from stepper.cases.hooks import CallHooks, ObservedCall
from stepper.element_types import Array, have_same_bits
from stepper.errors import OutputError, StepperError, UsageError
from stepper.files.file_kinds import (
    ARRAYS,
    CASE_CALLS,
    CASE_CALLS_OUTPUTS,
    CASE_CALLS_STATES,
    CASE_FACTS,
    CASE_INPUTS,
    CASE_OUTPUTS,
    CASE_STATES,
    FORMATS,
)
from stepper.files.output import OutputFile, cannot_be_written
from stepper.openvino.runtime import ensure_installed
from stepper.plain_values import write_arrays
from stepper.records import Record
from stepper.terminal import say

# The last calls of each stream of calls, in order: what a case of many calls is made of.
#
# A stream is what goes through one infer request; of a queue of requests without variables, all that goes through it.

_MOST_STREAMS = 256


class HeardCall(Struct):
    """A call, and copies of its outputs by name once it has ended well; `is_over`: it has ended in any way."""

    call: ObservedCall
    outputs: Mapping[str, Array] | None = None
    is_over: bool = False


class CallWindow(NamedTuple):
    """Calls in order that can be repeated one behind the other; `cut` says why there are no more, if there could be."""

    calls: list[HeardCall]
    cut: str


class CallRing:
    """Keeps so many of the last calls of each stream; who uses it from several threads locks it."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._streams: OrderedDict[int, deque[HeardCall]] = OrderedDict()

    def begun(self, call: ObservedCall) -> None:
        """Add a call, with its inputs; the oldest one of its stream goes where there are too many."""
        self._streams.setdefault(call.stream, deque(maxlen=self._length)).append(HeardCall(call))
        self._streams.move_to_end(call.stream)
        if len(self._streams) > _MOST_STREAMS:
            self._streams.popitem(last=False)

    def gone(self, stream: int) -> None:
        """Let the calls of a stream go."""
        self._streams.pop(stream, None)

    def ended(self, call: ObservedCall, outputs: Mapping[str, Array] | None) -> None:
        """Add what came out of a call, if it is still there; None of one that failed."""
        for heard in reversed(self._streams.get(call.stream, ())):
            if heard.call is call:
                heard.is_over = True
                heard.outputs = None if outputs is None else {name: np.array(one) for name, one in outputs.items()}

    def up_to(self, call: ObservedCall) -> CallWindow:
        """Return the consecutive calls of a stream that end with this call.

        The window begins after the last reset or assignment of a variable and after the last failed call. It also
        begins after a call whose inputs cannot be joined with the later inputs. It holds this call alone if the stream
        no longer has the call.
        """
        heard = list(self._streams.get(call.stream, ()))
        places = [place for place, one in enumerate(heard) if one.call is call]
        if not places:
            return CallWindow([HeardCall(call)], "")
        found, earlier = [heard[places[0]]], heard[: places[0]]
        while earlier:
            cut = _cut_between(earlier[-1], found)
            if cut:
                return CallWindow(found, cut)
            found.insert(0, earlier.pop())
        return CallWindow(found, "")


def _cut_between(one: HeardCall, later: Sequence[HeardCall]) -> str:
    """Return why a call does not go with those behind it; empty where it does."""
    number = later[0].call.number
    if one.is_over and one.outputs is None:
        return f"call {one.call.number} before call {number} failed"
    if not later[0].call.follows:
        return f"the application reset or set a variable before call {number}"
    calls = [one, *later]
    if len({tuple((name, value.dtype) for name, value in each.call.inputs.items()) for each in calls}) > 1:
        return f"call {one.call.number} has inputs of another type than call {number}"
    for name in one.call.inputs:
        shapes = {each.call.inputs[name].shape for each in calls}
        sizes = list(zip(*shapes, strict=True)) if len({len(shape) for shape in shapes}) == 1 else None
        if sizes is None or sum(len(set(along)) > 1 for along in sizes) > 1:
            return f"input '{name}' of call {one.call.number} differs in more than one axis from later ones"
    return ""


def carried_names(calls: Sequence[HeardCall]) -> tuple[tuple[str, str], ...]:
    """Return the outputs that the application gave back as inputs of the next call, each time, with those inputs.

    Inputs that never change are none of them.
    """
    found = []
    for name, first in calls[0].call.inputs.items() if len(calls) > 1 else ():
        if all(have_same_bits(one.call.inputs[name], first) for one in calls):
            continue
        given = [one.call.inputs[name] for one in calls[1:]]
        for output in calls[0].outputs or ():
            made = [None if one.outputs is None else one.outputs[output] for one in calls[:-1]]
            if all(one is not None and have_same_bits(one, other) for one, other in zip(made, given, strict=True)):
                found.append((output, name))
                break
    return tuple(found)


_LEAST_CALLS = 3


def unchanged_states(calls: Sequence[HeardCall]) -> tuple[tuple[str, str], ...]:
    """Return outputs that look like states which the application forgets to give back, with the inputs for them.

    Such an input is the same in all calls, while one output alone has its type and shape, and changes from call to
    call; something else that is given changes, too.
    """
    if len(calls) < _LEAST_CALLS or any(one.outputs is None for one in calls):
        return ()
    first = calls[0].call.inputs
    same = [name for name in first if all(have_same_bits(one.call.inputs[name], first[name]) for one in calls)]
    carried = {output for output, _input in carried_names(calls)}
    found = []
    for name in same if len(same) < len(first) else ():
        form = (first[name].dtype, first[name].shape)
        made = [key for key, one in (calls[0].outputs or {}).items() if (one.dtype, one.shape) == form]
        if first[name].size < _LEAST_STATE or first[name].dtype.kind != "f" or len(made) != 1 or made[0] in carried:
            continue
        values = [(one.outputs or {})[made[0]] for one in calls]
        if not any(have_same_bits(one, other) for one, other in pairwise(values)):
            found.append((made[0], name))
    return tuple(found)


_LEAST_STATE = 4
"""Elements of a state: a smaller input may be a setting."""


def outputs_of_all(calls: Sequence[HeardCall], carried: Sequence[tuple[str, str]]) -> list[Array]:
    """Return the outputs as the loop over the calls gives them; none where a call did not end well.

    Of all calls, joined along the first axis; of the last call where they are carried or cannot be joined.
    """
    outputs = [one.outputs for one in calls]
    if any(one is None for one in outputs):
        return []
    only_last = {output for output, _input in carried}
    return [_joined([one[name] for one in outputs if one], only_last=name in only_last) for name in outputs[0] or ()]


def _joined(values: Sequence[Array], *, only_last: bool) -> Array:
    if only_last or len(values) == 1:
        return values[-1]
    pieces = [np.atleast_1d(value) for value in values]
    same = len({(piece.ndim, piece.shape[1:]) for piece in pieces}) == 1
    return np.concatenate(pieces) if same else values[-1]


MOST = 5
"""Cases that a capture keeps, where nothing else is said."""
_MOST_TROUBLES = 20
_UNKNOWN_MODEL = (
    "the model is not known: it was compiled before the capture began, or imported; name it with model=, or put "
    "model.xml and model.bin into the folder"
)


class Capture:
    """Cases of calls of OpenVINO that are made while this is entered, in all threads of the process.

    What the application computes is the same. `cases` are the folders written so far, `calls` counts the calls, `hits`
    those that a condition held for, `troubles` says what could not be kept, and why.
    """

    def __init__(
        self,
        when: When | Sequence[When] = "nan",
        to: str | Path = "cases",
        most: int = MOST,
        *,
        outputs: bool = True,
        model: Any = None,
        calls: int = 1,
    ) -> None:
        """Prepare the capture; it changes nothing before it is entered.

        `when`: "nan", "inf", "error", "any", the number of a call from 1, a function of the inputs and the outputs of a
        call by name, or several of these. `to` is the folder for at most `most` cases. `outputs`: each case also stores
        the outputs that the application got. `model` is a path or an openvino.Model, for models that were compiled
        before. `calls`: a case also stores this many calls of the same request, up to the kept call, and opens as a
        loop over them. Raises UsageError, and OutputError if the folder cannot be created.
        """
        self._triggers = Triggers(when)
        for name, number in (("most", most), ("calls", calls)):
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise UsageError(f"{name} is {number!r}; it must be a whole number from 1 on")
        if not isinstance(to, str | Path):
            raise UsageError(f"to is {to!r}; it must be a folder")
        _check_model(model)
        ensure_installed("stepper.capture")
        self.folder, self.most, self._keeps_outputs = Path(to), most, outputs
        self.cases: list[Path] = []
        self.calls = self.hits = 0
        self.troubles: list[str] = []
        self._reserved = 0
        self._lock = threading.RLock()
        self._length = calls if calls > 1 else 0
        self._ring = CallRing(self._length)
        self._hooks = CallHooks(self, model)

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # of a name with a zero in it
            raise cannot_be_written(self.folder, getattr(error, "strerror", None) or str(error)) from None
        self._hooks.begin()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._hooks.end()

    def forked(self) -> None:
        """Begin anew in a process that was forked from the one that was listened to."""
        self._lock = threading.RLock()
        self._ring = CallRing(self._length)
        self.cases, self.troubles = [], []
        self.calls = self.hits = self._reserved = 0
        self._hooks.forked()

    # --- what the hooks tell -------------------------------------------------------------------------------------

    @property
    def wants_calls(self) -> bool:
        """True as long as there is room for a case."""
        return self._reserved < self.most

    def counted(self) -> int:
        """A call begins: return its number, from 1."""
        with self._lock:
            self.calls += 1
            return self.calls

    def begun(self, call: ObservedCall) -> None:
        """Keep a call for those that follow it."""
        with self._lock:
            self._ring.begun(call)

    def gone(self, stream: int) -> None:
        """Keep no calls of a request that has gone."""
        with self._lock:
            self._ring.gone(stream)

    def ended(self, call: ObservedCall, outputs: Mapping[str, Array] | None, error: str) -> None:
        """Keep a call, if a condition holds for it."""
        with self._lock:
            self._ring.ended(call, outputs)
        if outputs is None:
            trigger = self._triggers.of_error(call.number, error)
        else:
            trigger = self._triggers.of_outputs(call.number, call.inputs, outputs)
        if trigger is None:
            return
        with self._lock:
            self.hits += 1
            if not self.wants_calls:
                return
            self._reserved += 1
        copies = None if outputs is None else {name: np.array(value) for name, value in outputs.items()}
        with self._lock:
            self._write(call, copies, trigger)

    def failed(self, error: Exception) -> None:
        """Something went wrong in here: say so once, and go on."""
        text = f"{type(error).__name__}: {error}"
        with self._lock:
            if text in self.troubles or len(self.troubles) >= _MOST_TROUBLES:
                return
            self.troubles.append(text)
        with contextlib.suppress(OSError, ValueError):
            say(f"stepper capture: {text}", sys.stderr)

    # --- the folder ----------------------------------------------------------------------------------------------

    def _write(self, call: ObservedCall, outputs: Mapping[str, Array] | None, trigger: CallTrigger) -> None:
        """Write the folder of a case: under another name until all is in it. Raises OutputError."""
        name = f"case-{call.number:06}"
        part = self.folder / f".{name}.{os.getpid()}.part"
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            files, trouble = self._model_files(call, part)
            _write_arrays(part / CASE_INPUTS, call.inputs)
            if call.states:
                _write_arrays(part / CASE_STATES, call.states)
            if outputs is not None and self._keeps_outputs:
                _write_arrays(
                    part / CASE_OUTPUTS, {f"out_{index}": value for index, value in enumerate(outputs.values())}
                )
            told = [trouble] if trouble else []
            calls = self._write_calls(part, call, told) if self._length and call.inputs else []
            facts = msgspec.structs.replace(
                _facts(call, outputs, trigger, files, told),
                carried=carried_names(calls) if calls else (),
                unchanged=unchanged_states(calls),
            )
            text = msgspec.json.format(msgspec.json.encode(facts), indent=2)
            OutputFile(part / CASE_FACTS, FORMATS["json"].kind).write(text + b"\n")
            target = self._renamed(part, name)
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            raise cannot_be_written(self.folder / name, error.strerror or str(error)) from None
        except OutputError:
            shutil.rmtree(part, ignore_errors=True)
            raise
        if call.source is not None:
            call.source.moved(part, target)
        self.written(target)

    def written(self, folder: Path) -> None:
        """Note a case that is written."""
        self.cases.append(folder)

    def _write_calls(self, folder: Path, call: ObservedCall, trouble: list[str]) -> Sequence[HeardCall]:
        """Write the calls up to this one, and return them.

        Where there are fewer than were asked for, `trouble` gets the reason.
        """
        calls, cut = self._ring.up_to(call)
        if cut:
            trouble.append(f"the calls begin with call {calls[0].call.number}: {cut}")
        (folder / CASE_CALLS).mkdir()
        for one in calls:
            _write_arrays(folder / CASE_CALLS / f"{one.call.number:06}.npz", one.call.inputs)
        if calls[0].call.states:
            _write_arrays(folder / CASE_CALLS_STATES, calls[0].call.states)
        carried = carried_names(calls)
        outputs = outputs_of_all(calls, carried) if self._keeps_outputs else []
        if outputs:
            named = {f"out_{index}": value for index, value in enumerate(outputs)}
            _write_arrays(folder / CASE_CALLS_OUTPUTS, named)
        return calls

    def _renamed(self, part: Path, name: str) -> Path:
        """Give a folder its name, or one with a number that no other process has taken; return it."""
        found, number = self.folder / name, 1
        while True:
            if not found.exists():
                try:
                    part.rename(found)
                except OSError:
                    if not found.exists():
                        raise
                else:
                    return found
            number += 1
            found = self.folder / f"{name}-{number}"

    def _model_files(self, call: ObservedCall, folder: Path) -> tuple[ModelFiles | None, str]:
        if call.source is None:
            return None, _UNKNOWN_MODEL
        import openvino

        try:
            return call.source.write(folder, openvino.Core(), self._hooks.read_model), ""
        except CannotBeKept as error:
            return None, str(error)


def _check_model(model: Any) -> None:
    """Raise UsageError for what is neither an openvino.Model nor a file that is there."""
    if model is None or hasattr(model, "clone"):
        return
    if not isinstance(model, str | Path):
        raise UsageError(f"model is {model!r}; it must be a file or an openvino.Model")
    if not Path(model).is_file():
        raise UsageError(f"model={str(model)!r}: there is no such file")


def _write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    with OutputFile(path, ARRAYS).writing() as file:
        write_arrays(file, arrays)


def _facts(
    call: ObservedCall,
    outputs: Mapping[str, Array] | None,
    trigger: CallTrigger,
    files: ModelFiles | None,
    trouble: Sequence[str],
) -> CaseFacts:
    source = call.source
    return CaseFacts(
        trigger=trigger,
        call=call.number,
        request_call=call.request_call,
        inputs=tuple(call.inputs),
        outputs=tuple(outputs or ()),
        states=tuple(call.states),
        source="" if source is None else source.path,
        is_as_read=files is not None and files.is_as_read,
        model_hash="" if files is None else files.hash,
        device="" if source is None else source.device,
        properties={} if source is None else source.properties,
        versions=dict(versions()),
        process=os.getpid(),
        command=tuple(getattr(sys, "orig_argv", sys.argv)),
        trouble=tuple(trouble),
    )


# The capture of a whole process, which `stepper capture -- COMMAND` begins in each process of Python that it starts.
#
# The settings come in the environment; what each process has counted goes into a file in the folder of the cases, from
# where the command reads it.

VARIABLE = "STEPPER_CAPTURE"
STARTUP = Path(__file__).parent / "startup"
"""Folder on PYTHONPATH whose sitecustomize begins the capture."""
_PREFIX = ".process-"


class CaptureSettings(Record):
    """Settings of a capture: what is kept, and where.

    `packages` are folders in which this program and what it needs are found. `run` tells this capture from others that
    write into the same folder.
    """

    when: tuple[str, ...]
    to: str
    most: int = MOST
    packages: tuple[str, ...] = ()
    calls: int = 1
    run: str = ""


class ProcessReport(Record):
    """Calls of a process so far, those that a condition held for, what could not be kept, and the folders of cases.

    `is_whole` is False where the process has not said how it ended: then there may be more.
    """

    calls: int = 0
    hits: int = 0
    troubles: tuple[str, ...] = ()
    is_whole: bool = False
    cases: tuple[str, ...] = ()


def begin(settings: str) -> None:
    """Begin the capture of this process; it ends with it. `settings` are CaptureSettings as JSON."""
    found = msgspec.json.decode(settings, type=CaptureSettings)
    capture = _ProcessCapture(found.when, found.to, found.most, calls=found.calls)
    capture.run = found.run
    capture.report()  # first: what cannot be written there is known before anything is touched
    capture.__enter__()
    atexit.register(capture.end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=capture.forked)
        register_after_fork(capture, _end_with_process)


class _ProcessCapture(Capture):
    """The capture of a process, which may end at any moment without a word: each case is reported."""

    run = ""

    def written(self, folder: Path) -> None:
        """Note a case that is written."""
        super().written(folder)
        self.report()

    def end(self) -> None:
        """End it, and report that it did."""
        with contextlib.suppress(StepperError):
            self.__exit__(None, None, None)
            self.report(is_whole=True)

    def report(self, *, is_whole: bool = False) -> None:
        """Write what was counted so far."""
        cases = tuple(one.name for one in self.cases)
        report = ProcessReport(self.calls, self.hits, tuple(self.troubles), is_whole, cases)
        target = self.folder / f"{_PREFIX}{self.run}-{os.getpid()}.json"
        OutputFile(target, FORMATS["json"].kind).write(msgspec.json.encode(report))


def _end_with_process(capture: _ProcessCapture) -> None:
    """Report at the end of a process that multiprocessing has forked, which does not end as others do."""
    Finalize(None, capture.end, exitpriority=0)


def taken_reports(folder: Path, run: str) -> list[ProcessReport]:
    """Return what the processes of a capture have reported, and remove their files."""
    reports = []
    for path in sorted(folder.glob(f"{_PREFIX}{run}-*.json")):
        with contextlib.suppress(OSError, msgspec.DecodeError):
            reports.append(msgspec.json.decode(path.read_bytes(), type=ProcessReport))
        with contextlib.suppress(OSError):
            path.unlink()
    return reports
