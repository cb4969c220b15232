"""`stepper run --trace FILE` and `stepper run --resume FILE`: a run that is recorded, or goes on with a recording."""

from __future__ import annotations

import argparse
import contextlib
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from stepper.cli.options.engine import partner_of
from stepper.cli.options.specs import given_inputs
from stepper.cli.presses import PRESSES
from stepper.element_types import Array
from stepper.engine.frames import place
from stepper.engine.machine import Machine
from stepper.engine.run import LoopLog
from stepper.errors import OutputError, UsageError
from stepper.files.output import ProtectedFiles
from stepper.ir.reader import read

if TYPE_CHECKING:
    from stepper.recording import Recorder

_RECORDING = ("record", "record_ops", "record_iters")


def check_options(options: argparse.Namespace) -> None:
    """Raise UsageError where options contradict each other."""
    if options.resume is None:
        if options.model is None:
            raise UsageError("name a MODEL to run, or a recording to go on with: --resume FILE")
        given = [f"--{name.replace('_', '-')}" for name in _RECORDING if getattr(options, name) is not None]
        if given and options.trace is None:
            raise UsageError(f"{given[0]} selects what is recorded; it needs --trace FILE")
        if options.model_path is not None:
            raise UsageError("--model is for --resume FILE: where its model is now")
    elif options.model is not None:
        raise UsageError("the recording knows its model; where it has moved, say so with --model PATH")
    elif options.state or options.states is not None:
        raise UsageError("--resume goes on with the variables that the run had; leave --state out")
    elif options.calls or options.carry:
        raise UsageError("--resume goes on with the calls that the run had; leave --calls and --carry out")
    elif options.trace is not None or options.open_sequences or any(getattr(options, name) for name in _RECORDING):
        raise UsageError("--resume goes on as the recording began; it takes no other way of recording or running")


def begun(machine: Machine, inputs: Sequence[Array], options: argparse.Namespace) -> Recorder | None:
    """Return the recorder that the options ask for."""
    if options.trace is None:
        return None
    from stepper.recording import Amount, RecordingOptions, record

    what = RecordingOptions.parse(options.record or Amount.CARRIED, options.record_ops, options.record_iters or "")
    return record(machine, inputs, options.trace, what)


def resumed(options: argparse.Namespace) -> tuple[Recorder, LoopLog]:
    """Return the recorder of the file to go on with, and what loops did before."""
    from stepper.recording import resume

    path, inputs = origin(options)
    partner = partner_of(options, read(path))
    return resume(options.resume, path, inputs, max_iterations=options.max_iterations, partner=partner)


def protected_files_of(options: argparse.Namespace) -> ProtectedFiles:
    """Return the model of the recording to go on with, which the options need not name."""
    if options.resume is None:
        return ProtectedFiles()
    from stepper.recording import open_recording

    with open_recording(options.resume) as recording:
        return ProtectedFiles.of_model(recording.model_path(options.model_path))


def origin(options: argparse.Namespace) -> tuple[Path, Mapping[str | int, Any] | None]:
    """Return the path of the model of the file to go on with, and the inputs that the options give (None: not any)."""
    from stepper.recording import open_recording

    with open_recording(options.resume) as recording:
        path = recording.model_path(options.model_path)
        if not (options.input or options.inputs):
            return path, None
        return path, given_inputs(recording.model(options.model_path), options)


@contextlib.contextmanager
def reported_all_the_same(machine: Machine, options: argparse.Namespace) -> Iterator[None]:
    """Put off an error of a finished run until after its report (`options.troubles`)."""
    try:
        yield
    except OutputError as error:
        if not machine.finished:
            raise
        options.troubles.append(error)


def drive(recorder: Recorder) -> None:
    """Run to the end. Ctrl+C ends it in order, with a snapshot of where it was; a second one at once."""
    with recorder, interruptible(recorder.machine):
        if recorder.run():
            return
        where = place(recorder.machine.stack)
    raise KeyboardInterrupt(f"interrupted at {where}; {go_on_with(recorder)}")


def go_on_with(recorder: Recorder) -> str:
    """Return how the run goes on from its file."""
    return f"go on with: stepper run --resume {recorder.path}"


@contextlib.contextmanager
def interruptible(machine: Machine) -> Iterator[None]:
    """Have Ctrl+C ask the machine to pause, once; after that it is what it was."""

    def pause(_number: int, _frame: FrameType | None) -> None:
        if PRESSES.is_another():
            signal.signal(signal.SIGINT, previous)
            machine.request_pause()

    try:
        previous = signal.signal(signal.SIGINT, pause)
    except ValueError:  # only the main thread may do so
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
