"""`stepper run MODEL`: the whole model once; a report of its outputs and its loops."""

from __future__ import annotations

import contextlib
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from stepper.cli.presses import PRESSES
from stepper.cli.printing import (
    Progress,
    as_json,
    excerpt,
    print_answer,
    print_json,
    state_arrays,
    states_target,
    write_npz,
)
from stepper.cli.specs import (
    bound_inputs,
    debugger_of,
    given_inputs,
    given_states,
    opened_model,
    partner_of,
    protected_files,
)
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every, place
from stepper.engine.inputs import bind_states
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules, note_lines
from stepper.engine.run import LoopLog, LoopSummary, Outputs, collect
from stepper.errors import FINDING, OutputError, UsageError
from stepper.files.file_kinds import ARRAYS, RECORDING
from stepper.files.output import RECORDING_FILE, OutputFile, ProtectedFiles
from stepper.ir.reader import open_sequences, read
from stepper.ops.operands import form_text
from stepper.records import as_data
from stepper.tensors.number_text import in_columns
from stepper.terminal import say
from stepper.wording import counted

if TYPE_CHECKING:
    from stepper.debug.breakpoints.breakpoint import BreakDescription
    from stepper.debug.debugger import Debugger
    from stepper.recording import Recorder

    Begun = tuple[Debugger, Recorder | None, LoopLog]


def execute(options: Namespace) -> int:
    """Run, write, report; 0 if all went well, 1 where a break was hit."""
    if options.json and options.outputs == "-":
        raise UsageError("--json and --outputs - both write to stdout; choose a file for the outputs")
    check_options(options)
    target, states = _targets(options)
    options.troubles = []
    outputs: Outputs | None
    if options.breaks:
        outputs = _watched(options)
        if outputs is None:
            return FINDING
    else:
        outputs = _run(options) if options.resume is None else _resume(options)
    _write(options, target, outputs, wanted=options.outputs is not None)
    _write(options, states, state_arrays(outputs.states), wanted=states is not None)
    if options.json:
        print_json(_report(options, outputs))
    else:
        _print(options, outputs)
    if options.troubles:
        sys.stdout.flush()
        raise _together(options.troubles)
    return 0


def _together(troubles: list[OutputError]) -> OutputError:
    return OutputError("; ".join(str(one) for one in troubles))


def _targets(options: Namespace) -> tuple[OutputFile | None, OutputFile | None]:
    """Return where the outputs and the variables go; None for nowhere and for stdout.

    OutputError where a file of the run may not be written.
    """
    protected = protected_files(options) + protected_files_of(options)
    if options.trace is not None:
        OutputFile(Path(options.trace), RECORDING, protected.but(RECORDING_FILE), "--trace").check()
    target = None if options.outputs in (None, "-") else OutputFile(Path(options.outputs), ARRAYS, protected, "-o")
    if target is not None:
        target.check()
        protected += ProtectedFiles.of_file(target.path, "the file of -o")
    return target, states_target(options, protected)


def _write(options: Namespace, target: OutputFile | None, arrays: Mapping[str, Array], *, wanted: bool) -> None:
    """Write arrays. What is wrong with their file is raised at the end: the report is printed before."""
    if wanted:
        try:
            write_npz(target, arrays)
        except OutputError as error:
            options.troubles.append(error)


def _run(options: Namespace) -> Outputs:
    model = opened_model(options)
    inputs = bound_inputs(model, options)
    states = given_states(model, options)
    opened = open_sequences(model) if options.open_sequences else model
    compiled = compile_model(opened, Rules(options.rules), partner_of(options, model))
    machine = Machine(
        compiled,
        inputs,
        max_iterations=options.max_iterations,
        states=bind_states(compiled, states),
        keep_values=False,
    )
    recorder = begun(machine, inputs, options)
    return _to_the_end(machine, LoopLog(), recorder, options)


def _resume(options: Namespace) -> Outputs:
    recorder, log = resumed(options)
    machine = recorder.machine
    options.model, options.rules = str(machine.compiled.model.path), machine.rules.value
    return _to_the_end(machine, log, recorder, options)


def _to_the_end(machine: Machine, log: LoopLog, recorder: Recorder | None, options: Namespace) -> Outputs:
    machine.observers = (log,)
    with Progress(machine, wanted=not options.quiet):
        if recorder is not None:
            with reported_all_the_same(machine, options):
                drive(recorder)
            return collect(machine, log)
        try:
            for _event in machine.run(Every.END):
                pass
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted at {place(machine.stack)}; no outputs were written") from None
    return collect(machine, log)


def _report(options: Namespace, outputs: Outputs) -> dict[str, Any]:
    return {
        "model": options.model,
        "rules": options.rules,
        "outputs": [as_json(name, value) for name, value in outputs.items()],
        "states": [as_json(name, value) for name, value in state_arrays(outputs.states).items()],
        "loops": [_loop_json(loop, options.model) for loop in outputs.loops],
        "computed_by": {who: dict(counts) for who, counts in outputs.computed_by.items()},
        "elsewhere": [as_data(one) for one in outputs.elsewhere],
        "notes": [{"place": note.place, "text": note.text} for note in outputs.notes],
    }


def _loop_json(loop: LoopSummary, model: str) -> dict[str, Any]:
    return {
        "path": loop.path,
        "layer": {"id": loop.id, "name": loop.name, "type": loop.kind, "file": model, "line": loop.line},
        "executions": loop.executions,
        "iterations": loop.iterations,
        "fewest": loop.fewest,
        "most": loop.most,
        "ended": {str(reason): count for reason, count in loop.ended.items()},
    }


def _print(options: Namespace, outputs: Outputs) -> None:
    data = sys.stderr if options.outputs == "-" else sys.stdout
    _print_tensors("outputs", outputs, data)
    if outputs.states:
        _print_tensors("variables, for the next run", state_arrays(outputs.states), data)
    if outputs.loops:
        say("loops", file=data)
    for loop in outputs.loops:
        say(f"  {loop.path.removeprefix('model > ')}: {_loop_text(loop)}", file=data)
    for who, counts in outputs.computed_by.items():
        kinds = ", ".join(f"{type} {count}" for type, count in counts.most_common())
        say(f"computed by {who}", file=data)
        say(f"  {kinds}", file=data)
    if outputs.notes and not options.quiet:
        other = Rules(options.rules).other
        say(f"notes (what --rules {other} does otherwise, and what is undefined)", file=sys.stderr)
        for line in note_lines(outputs.notes):
            say(f"  {line}", file=sys.stderr)


def _print_tensors(title: str, arrays: Mapping[str, Array], file: TextIO) -> None:
    rows = [(name, form_text(value), excerpt(value)) for name, value in arrays.items()]
    say(title, file=file)
    for line in in_columns(rows):
        say(f"  {line}", file=file)


def _loop_text(loop: LoopSummary) -> str:
    reasons = ", ".join(
        str(reason) if loop.executions == 1 else f"{reason} ({count}x)" for reason, count in loop.ended.items()
    )
    if loop.executions == 1:
        return f"{counted(loop.iterations, loop.word)}, {reasons}"
    spread = f"{loop.fewest}" if loop.fewest == loop.most else f"{loop.fewest} to {loop.most}"
    return f"entered {loop.executions:,} times, {spread} {loop.word}s each, {loop.iterations:,} in all; {reasons}"


_RECORDING = ("record", "record_ops", "record_iters")


def check_options(options: Namespace) -> None:
    """Raise UsageError where options contradict each other."""
    if options.resume is None:
        if options.model is None:
            raise UsageError("name a MODEL to run, or a recording to continue: --resume FILE")
        given = [f"--{name.replace('_', '-')}" for name in _RECORDING if getattr(options, name) is not None]
        if given and options.trace is None:
            raise UsageError(f"{given[0]} selects what is recorded; it needs --trace FILE")
        if options.model_path is not None:
            raise UsageError("--model is for --resume FILE: where its model is now")
    elif options.model is not None:
        raise UsageError("the recording knows its model; where it has moved, say so with --model PATH")
    elif options.state or options.states is not None:
        raise UsageError("--resume continues with the variables of the run; leave --state out")
    elif options.calls or options.carry:
        raise UsageError("--resume continues with the calls of the run; leave --calls and --carry out")
    elif options.trace is not None or options.open_sequences or any(getattr(options, name) for name in _RECORDING):
        raise UsageError("--resume continues as the recording began; leave other options of recording and running out")


def begun(machine: Machine, inputs: Sequence[Array], options: Namespace) -> Recorder | None:
    """Return the recorder that the options ask for."""
    if options.trace is None:
        return None
    from stepper.recording import Amount, RecordingOptions, record

    what = RecordingOptions.parse(options.record or Amount.CARRIED, options.record_ops, options.record_iters or "")
    return record(machine, inputs, options.trace, what)


def resumed(options: Namespace) -> tuple[Recorder, LoopLog]:
    """Return the recorder of the file to go on with, and what loops did before."""
    from stepper.recording import resume

    path, inputs = origin(options)
    partner = partner_of(options, read(path))
    return resume(options.resume, path, inputs, max_iterations=options.max_iterations, partner=partner)


def protected_files_of(options: Namespace) -> ProtectedFiles:
    """Return the model of the recording to go on with, which the options need not name."""
    if options.resume is None:
        return ProtectedFiles()
    from stepper.recording import open_recording

    with open_recording(options.resume) as recording:
        return ProtectedFiles.of_model(recording.model_path(options.model_path))


def origin(options: Namespace) -> tuple[Path, Mapping[str | int, Any] | None]:
    """Return the path of the model of the file to go on with, and the inputs that the options give (None: not any)."""
    from stepper.recording import open_recording

    with open_recording(options.resume) as recording:
        path = recording.model_path(options.model_path)
        if not (options.input or options.inputs):
            return path, None
        return path, given_inputs(recording.model(options.model_path), options)


@contextlib.contextmanager
def reported_all_the_same(machine: Machine, options: Namespace) -> Iterator[None]:
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
    """Return how to continue the run from its file."""
    return f"continue with: stepper run --resume {recorder.path}"


@contextlib.contextmanager
def interruptible(machine: Machine) -> Iterator[None]:
    """Make Ctrl+C pause the machine once; after that Ctrl+C has its previous meaning."""

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


def _watched(options: Namespace) -> Outputs | None:
    """Return the outputs; None where a breakpoint stopped the run before its end, which is then reported."""
    from stepper.debug.breakpoints.data_breakpoints import break_description  # few runs are watched

    descriptions = [break_description(text) for text in options.breaks]
    begin = _begun_watched if options.resume is None else _resumed_watched
    debugger, recorder, log = begin(options, descriptions)
    debugger.machine.observers = (log,)
    with Progress(debugger.machine, wanted=not options.quiet):
        stopped = _is_stopped(debugger) if recorder is None else _is_recording_stopped(debugger, recorder, options)
    if not stopped:
        return collect(debugger.machine, log)
    _report_stop(debugger, recorder, options)
    return None


def _begun_watched(options: Namespace, breaks: Sequence[BreakDescription]) -> Begun:
    debugger = debugger_of(options)
    for description in breaks:
        debugger.breakpoints.add(description)
    # The file is made last, so that what is refused leaves none.
    return debugger, begun(debugger.machine, debugger.inputs, options), LoopLog()


def _resumed_watched(options: Namespace, breaks: Sequence[BreakDescription]) -> Begun:
    from stepper.recording.recorder import resume_debugged

    path, inputs = origin(options)
    debugger, recorder, log = resume_debugged(
        options.resume,
        breaks,
        path,
        inputs,
        max_iterations=options.max_iterations,
        partner=partner_of(options, read(path)),
    )
    options.model, options.rules = str(debugger.model.path), debugger.machine.rules.value
    return debugger, recorder, log


def _is_stopped(debugger: Debugger) -> bool:
    """Run; whether a breakpoint stopped it before the end."""
    from stepper.debug.stop import Reason

    try:
        return debugger.continue_().reason is Reason.BREAK
    except KeyboardInterrupt:
        where = place(debugger.machine.stack)
        raise KeyboardInterrupt(f"interrupted at {where}; no outputs were written") from None


def _is_recording_stopped(debugger: Debugger, recorder: Recorder, options: Namespace) -> bool:
    """Return the same of a run that is recorded; Ctrl+C ends it as it ends any recorded run."""
    from stepper.debug.stop import Reason
    from stepper.recording.recorder import continue_recorded, recorded

    told_later = reported_all_the_same(debugger.machine, options)
    is_paused_from_here = debugger.working()  # also before the run begins
    with recorded(debugger, recorder), is_paused_from_here, interruptible(debugger.machine), told_later:
        continue_recorded(debugger, recorder, for_good=True)
    stop = debugger.stop
    if stop.reason is Reason.PAUSED:
        raise KeyboardInterrupt(f"interrupted at {stop.place}; {go_on_with(recorder)}")
    return stop.reason is Reason.BREAK


def _report_stop(debugger: Debugger, recorder: Recorder | None, options: Namespace) -> None:
    """Print where and why it stopped."""
    from stepper.commands.command_session import stop_data, stop_lines

    data = {"model": options.model, "rules": options.rules, "break": stop_data(debugger)}
    print_answer(options, data, stop_lines(debugger))
    if recorder is not None:
        say(f"recorded up to here; {go_on_with(recorder)}", file=sys.stderr)
