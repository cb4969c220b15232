"""`stepper run MODEL`: the whole model once; a report of its outputs and its loops."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from stepper.cli.npz_files import state_arrays, states_target, write_npz
from stepper.cli.options.engine import opened_model, partner_of
from stepper.cli.options.protected import protected_files
from stepper.cli.options.specs import bound_inputs, given_states
from stepper.cli.printing import Progress
from stepper.cli.running import recorded_run
from stepper.cli.values import as_json, excerpt, print_json
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every, place
from stepper.engine.inputs import bind_states
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules
from stepper.engine.run import LoopLog, LoopSummary, Outputs, collect
from stepper.errors import FINDING, OutputError, UsageError
from stepper.files.kinds import ARRAYS, RECORDING
from stepper.files.output import RECORDING_FILE, OutputFile, ProtectedFiles
from stepper.ir.reader import open_sequences
from stepper.ops.operands import form_text
from stepper.records import as_data
from stepper.terminal import say
from stepper.wording import counted

if TYPE_CHECKING:
    from stepper.recording import Recorder


def execute(options: argparse.Namespace) -> int:
    """Run, write, report; 0 if all went well, 1 where a break was hit."""
    if options.json and options.outputs == "-":
        raise UsageError("--json and --outputs - both write to stdout; choose a file for the outputs")
    recorded_run.check_options(options)
    target, states = _targets(options)
    options.troubles = []
    outputs: Outputs | None
    if options.breaks:
        from stepper.cli.running import watched_run

        outputs = watched_run.run(options)
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


def _targets(options: argparse.Namespace) -> tuple[OutputFile | None, OutputFile | None]:
    """Return where the outputs and the variables go; None for nowhere and for stdout.

    OutputError where a file of the run may not be written.
    """
    protected = protected_files(options) + recorded_run.protected_files_of(options)
    if options.trace is not None:
        OutputFile(Path(options.trace), RECORDING, protected.but(RECORDING_FILE), "--trace").check()
    target = None if options.outputs in (None, "-") else OutputFile(Path(options.outputs), ARRAYS, protected, "-o")
    if target is not None:
        target.check()
        protected += ProtectedFiles.of_file(target.path, "the file of -o")
    return target, states_target(options, protected)


def _write(
    options: argparse.Namespace, target: OutputFile | None, arrays: Mapping[str, Array], *, wanted: bool
) -> None:
    """Write arrays. What is wrong with their file is raised at the end: the report is printed before."""
    if wanted:
        try:
            write_npz(target, arrays)
        except OutputError as error:
            options.troubles.append(error)


def _run(options: argparse.Namespace) -> Outputs:
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
    recorder = recorded_run.begun(machine, inputs, options)
    return _to_the_end(machine, LoopLog(), recorder, options)


def _resume(options: argparse.Namespace) -> Outputs:
    recorder, log = recorded_run.resumed(options)
    machine = recorder.machine
    options.model, options.rules = str(machine.compiled.model.path), machine.rules.value
    return _to_the_end(machine, log, recorder, options)


def _to_the_end(machine: Machine, log: LoopLog, recorder: Recorder | None, options: argparse.Namespace) -> Outputs:
    machine.observers = (log,)
    with Progress(machine, wanted=not options.quiet):
        if recorder is not None:
            with recorded_run.reported_all_the_same(machine, options):
                recorded_run.drive(recorder)
            return collect(machine, log)
        try:
            for _event in machine.run(Every.END):
                pass
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted at {place(machine.stack)}; no outputs were written") from None
    return collect(machine, log)


def _report(options: argparse.Namespace, outputs: Outputs) -> dict[str, Any]:
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


def _print(options: argparse.Namespace, outputs: Outputs) -> None:
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
        for note in outputs.notes:
            say(f"  {note}", file=sys.stderr)


def _print_tensors(title: str, arrays: Mapping[str, Array], file: TextIO) -> None:
    rows = [(name, form_text(value), excerpt(value)) for name, value in arrays.items()]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    say(title, file=file)
    for name, type, numbers in rows:
        say(f"  {name:{widths[0]}}  {type:{widths[1]}}  {numbers}".rstrip(), file=file)


def _loop_text(loop: LoopSummary) -> str:
    reasons = ", ".join(
        str(reason) if loop.executions == 1 else f"{reason} ({count}x)" for reason, count in loop.ended.items()
    )
    if loop.executions == 1:
        return f"{counted(loop.iterations, loop.word)}, {reasons}"
    spread = f"{loop.fewest}" if loop.fewest == loop.most else f"{loop.fewest} to {loop.most}"
    return f"entered {loop.executions:,} times, {spread} {loop.word}s each, {loop.iterations:,} in all; {reasons}"
