"""`with stepper.capture(when="nan", to="cases"):` keeps the calls of OpenVINO in it that go wrong, each as a case."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import numpy as np

from stepper.cases.case import CallTrigger, CaseFacts
from stepper.cases.hooks import CallHooks, ObservedCall
from stepper.cases.ring import CallRing, carried_names, outputs_of_all
from stepper.cases.sources import CannotBeKept, ModelFiles, versions
from stepper.cases.triggers import Triggers, When
from stepper.element_types import Array
from stepper.errors import OutputError, UsageError
from stepper.files.kinds import (
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
from stepper.terminal import say

MOST: Final = 5
"""Cases that a capture keeps, where nothing else is said."""
_MOST_TROUBLES: Final = 20
_UNKNOWN_MODEL: Final = (
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
        """Prepare; nothing is touched before it is entered.

        `when`: "nan", "inf", "error", "any", the number of a call from 1, a function of the inputs and the outputs of a
        call by name, or several of these. `to` is the folder for the cases, of which there are `most` at most;
        `outputs`: with what the application got. `model` is a path or an openvino.Model, for models that were compiled
        before. `calls`: a case also has so many calls of the same request, up to the one that is kept, and opens as a
        loop over them. Raises UsageError, and OutputError where the folder cannot be made.
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
        self._length = calls
        self._ring = CallRing(calls) if calls > 1 else None
        self._hooks = CallHooks(self, model)

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # of a name with a zero in it
            raise cannot_be_written(self.folder, getattr(error, "strerror", None) or str(error)) from None
        self._hooks.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._hooks.end()

    def forked(self) -> None:
        """Begin anew in a process that was forked from the one that was listened to."""
        self._lock = threading.RLock()
        self._ring = CallRing(self._length) if self._length > 1 else None
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
        if self._ring is not None:
            with self._lock:
                self._ring.begun(call)

    def gone(self, stream: int) -> None:
        """Keep no calls of a request that has gone."""
        if self._ring is not None:
            with self._lock:
                self._ring.gone(stream)

    def ended(self, call: ObservedCall, outputs: Mapping[str, Array] | None, error: str) -> None:
        """Keep a call, if a condition holds for it."""
        if self._ring is not None:
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
            carried = self._write_calls(part, call, told) if self._ring is not None and call.inputs else ()
            facts = msgspec.structs.replace(_facts(call, outputs, trigger, files, told), carried=carried)
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

    def _write_calls(self, folder: Path, call: ObservedCall, trouble: list[str]) -> tuple[tuple[str, str], ...]:
        """Write the calls up to this one; return what the application carried from call to call.

        Where there are fewer than were asked for, `trouble` gets the reason.
        """
        assert self._ring is not None
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
        return carried

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
