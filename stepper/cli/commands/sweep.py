"""`stepper sweep MODEL --inputs 'set/*.npz'`: which of thousands of inputs go wrong, where, and in which iteration."""

from __future__ import annotations

import shlex
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import convert
from msgspec.structs import asdict

from stepper.cli.comparing import tolerances_of
from stepper.cli.printing import print_answer, show_progress, write_npz
from stepper.cli.specs import (
    given_inputs,
    given_states,
    given_texts,
    opened_model,
    partner_of,
    protected_files,
)
from stepper.compare.references.onnx import EVALUATORS, OnnxPeer
from stepper.debug.breakpoints.data_breakpoints import break_description
from stepper.debug.debugger import Debugger
from stepper.element_types import F32
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_states, converted
from stepper.engine.machine import Machine
from stepper.errors import FINDING, StepperError, UsageError
from stepper.files.file_kinds import ARRAYS, RECORDING, is_model_path
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.ir.model import parameter_shape, parameter_type
from stepper.ir.reader import open_sequences, read
from stepper.openvino.partner import OPENVINO
from stepper.openvino.runtime import ensure_installed
from stepper.records import as_data
from stepper.sweep.sweep_inputs import (
    CallInput,
    FileInput,
    InputReader,
    SeedInput,
    SweepInput,
    SweepJob,
    called_inputs,
    check_function,
    files_inputs,
    identity,
    keyed,
    load_function,
    random_inputs,
    stamp,
)
from stepper.sweep.sweep_results import (
    StoredRow,
    SweepAbout,
    SweepOptions,
    SweepOutcome,
    SweepWriter,
    is_sweep,
    read_about,
    read_row,
    read_rows,
    summary,
)
from stepper.sweep.sweeping import Sweep, SweepProgress, Workers, progress_text, report_lines, workers_of

if TYPE_CHECKING:
    from stepper.element_types import Array
    from stepper.ir.model import Layer, Model


def execute(options: Namespace) -> int:
    """Sweep, or show what a sweep has found. FINDING where anything shows; KeyboardInterrupt keeps what is done."""
    if is_sweep(options.model) or Path(options.model).suffix in RECORDING.suffixes:  # which says what it is, if not
        file = Path(options.model)
        _refuse_of_a_sweep(options)
        if options.open is not None:
            return _open(file, options)
        return _report(options, file)
    asked, file = AskedSweep(options), Path(options.out)
    is_shown = not options.quiet and sys.stderr.isatty()
    sweep: Sweep | None = None
    try:
        with SweepWriter(file, asked.about, asked.protected) as writer, asked.workers as workers:
            sweep = Sweep(asked.job, asked.inputs, asked.stamps, writer, workers, _show if is_shown else None)
            sweep.run()
    except KeyboardInterrupt:
        if sweep is None:
            raise
        done = f"{sweep.done:,} of {len(asked.inputs):,} inputs are done and kept in {file}"
        raise KeyboardInterrupt(f"interrupted: {done}; the same command continues from there") from None
    finally:
        if is_shown:
            show_progress("")
    return _report(options, file)


def _refuse_of_a_sweep(options: Namespace) -> None:
    """Raise UsageError for what a file of results cannot be asked: it would be taken to have no effect."""
    given = (
        ("--break", options.breaks),
        ("--check", options.check),
        ("--with", options.reference),
        ("--inputs", options.patterns),
        ("--random", options.random),
        ("--count", options.count),
        ("--on", options.on),
    )
    for name, value in given:
        if value:
            raise UsageError(f"{name} is for a sweep over a model; {options.model} has the results of one")


def _show(progress: SweepProgress) -> None:
    show_progress(progress_text(progress), progress.done / max(progress.count, 1))


def _report(options: Namespace, file: Path) -> int:
    about, rows = read_about(file), read_rows(file)
    found = summary(file, about.count)
    data = {
        "model": about.model,
        "file": str(file),
        "inputs": found.count,
        "done": found.done,
        "outcomes": found.outcomes,
        "places": as_data(found.places),
        "loops": as_data(found.loops),
        "unusual": found.unusual,
        "rows": [row_data(stored) for stored in rows if stored.row.outcome is not SweepOutcome.NOTHING],
    }
    print_answer(options, data, report_lines(found, shlex.quote(str(file))))
    return FINDING if found.found else 0


def row_data(stored: StoredRow) -> dict[str, Any]:
    """Return a row for an answer as JSON."""
    data = as_data(stored.row)
    del data["loops"]
    return {"number": stored.number, **data}


def _open(file: Path, options: Namespace) -> int:
    """Open the debugger on an input, as `stepper MODEL` does; or the table, and what is chosen there, until it is left.

    UsageError where there is no terminal.
    """
    if options.json:
        raise UsageError("--open opens the debugger, --json answers a program; choose one")
    if options.open:
        return _debug(file, options.open, options)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            f"there is no terminal to draw on; stepper sweep {shlex.quote(str(file))} --json has the table"
        )
    from stepper_tui.launch import SIGNALLED
    from stepper_tui.sweep import SweepApp, SweepTableState  # here, as what is wrong with the options is said before
    from stepper_tui.theme import Look

    from stepper.sweep.sweep_results import SweepListing

    listing, view, title = SweepListing(read_rows(file)), SweepTableState(), Path(read_about(file).model).parent.name
    look = Look.of_environment(ascii=options.ascii)
    while True:
        app = SweepApp(title or str(file), listing, view, look, light=options.light)
        number = app.run()
        if number is None:
            return app.return_code or 0
        try:
            code = _debug(file, number, options)
        except StepperError as error:
            view.trouble = str(error)
        else:
            if code > SIGNALLED:  # the terminal may be gone
                return code


def _debug(file: Path, number: int, options: Namespace) -> int:
    from stepper.cli.commands import tui  # few ask for it
    from stepper.cli.parser import parsed

    look = [f"--{name}" for name in ("ascii", "light") if getattr(options, name)]
    extensions = [f"--extension={one}" for one in options.extension]
    with opening_words(read_about(file), read_row(file, number), options.generate) as words:
        return tui.execute(parsed(["tui", *words, *look, *extensions]))


_NAN = "nan"


class AskedSweep:
    """A sweep that options ask for: its job, its inputs and where they are done. Nothing has run yet."""

    def __init__(self, options: Namespace) -> None:
        """Check everything that can be known before: raises what wrong options and models raise."""
        model = opened_model(options)
        _check_together(options)
        self.workers: Workers = workers_of(options.on or "", options.jobs)
        self.inputs = _inputs(options)
        job = _job(options, model)
        _try_out(job, model, self.inputs)
        made_of, folder = identity(job, model), job.reader.folder
        self.job = keyed(job, made_of)
        self.stamps = [stamp(one, folder) for one in self.inputs]
        self.about = SweepAbout(options.model, folder, len(self.inputs), made_of, _kept_options(options))
        self.protected = protected_files(options)


def _check_together(options: Namespace) -> None:
    asked = [name for name, given in (("--break", options.breaks), ("--check", options.check)) if given]
    asked += ["--with"] if options.reference is not None else []
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)}: a sweep looks for one thing; make two, with another --out")
    sources = [
        name
        for name, given in (
            ("--inputs", options.patterns),
            ("--random", options.random),
            ("--generate", options.generate),
        )
        if given
    ]
    if len(sources) != 1:
        which = " and ".join(sources) or "none is given"
        raise UsageError(
            f"one of --inputs 'set/*.npz', --random N or --generate PKG.MODULE:FUNCTION is needed: {which}"
        )
    if options.leading_axis and not options.patterns:
        raise UsageError("--leading-axis is for the files of --inputs")
    if (options.count is None) != (options.generate is None):
        raise UsageError("--generate and --count go together: --generate pkg.module:function --count 1000")
    if options.open is not None:
        raise UsageError("--open is for the file of a sweep: stepper sweep sweep.sqlite --open 17")


def _inputs(options: Namespace) -> list[SweepInput]:
    if options.patterns:
        return files_inputs(options.patterns, leading_axis=options.leading_axis)
    if options.random:
        return random_inputs(options.random, options.seed)
    check_function(options.generate)
    load_function(options.generate)
    return called_inputs(options.count)


def _job(options: Namespace, model: Model) -> SweepJob:
    if any(text.startswith("*=") for text in options.input):
        raise UsageError("--input '*=...' gives all runs the same values; --random N gives each its own")
    parameters = model.graph.parameters
    fixed = given_inputs(model, Namespace(input=options.input, inputs=None, shape=options.shape))
    shapes = given_texts(model, [], None, options.shape)[1]
    reader = InputReader(
        folder=str(Path.cwd()),
        fixed={int(position): converted(parameters[int(position)], value) for position, value in fixed.items()},
        states={name: np.asarray(value) for name, value in given_states(model, options).items()},
        shapes=shapes,
        function=options.generate or "",
    )
    breaks = tuple(options.breaks)
    if not breaks and not options.check and options.reference is None:
        breaks = (_NAN,)
    reference = options.reference or ""
    _check_reference(reference, options.model)
    return SweepJob(
        model=str(model.path.absolute()),
        reader=reader,
        source=options.model,
        rules=options.rules,
        open_sequences=options.open_sequences,
        breaks=breaks,
        checks=options.check,
        reference=str(Path(reference).absolute()) if is_model_path(reference) else reference,
        tolerances=tolerances_of(options, model, exact=is_model_path(reference)) if reference else None,
        max_iterations=options.max_iterations,
        seconds=options.seconds,
        partner=partner_of(options, model),
    )


def _check_reference(reference: str, model: str) -> None:
    """Raise UsageError for what no input can be compared with."""
    if reference == OPENVINO:
        ensure_installed("stepper sweep --with openvino")
    elif reference in EVALUATORS:
        OnnxPeer(model, reference)
    elif reference and not is_model_path(reference):
        known = ", ".join((OPENVINO, *EVALUATORS))
        raise UsageError(f"--with {reference}: expected another model, or one of {known}: what runs on any input")


def _try_out(job: SweepJob, model: Model, inputs: Sequence[SweepInput]) -> None:
    """Raise what is wrong with the model, the variables, the breakpoints or the reference before anything runs."""
    if is_model_path(job.reference):
        read(job.reference)
    form = open_sequences(model) if job.open_sequences else model
    compiled = compile_model(form, job.rules, job.partner)
    bind_states(compiled, job.reader.states)
    descriptions = [break_description(text) for text in job.breaks]
    if isinstance(inputs[0], SeedInput):  # a file may be broken and a function may fail: that is a row
        job.reader.read(inputs[0], form)
    values = [_standing_for(parameter) for parameter in form.graph.parameters]
    debugger = Debugger.of(Machine(compiled, values), values)
    for description in descriptions:
        debugger.breakpoints.add(description)


def _standing_for(parameter: Layer) -> Array:
    """Return a placeholder for an input; nothing computes with it, and it takes no memory."""
    dimensions = parameter_shape(parameter).dimensions or ()
    element_type = parameter_type(parameter) or F32
    return np.broadcast_to(np.zeros((), element_type.dtype), [one.least for one in dimensions])


def _kept_options(options: Namespace) -> SweepOptions:
    given = {name: getattr(options, name) for name in SweepOptions.__struct_fields__}
    return convert({name: value for name, value in given.items() if value is not None}, SweepOptions)


# --- from a row to the debugger -------------------------------------------------------------------------------------


@contextmanager
def opening_words(about: SweepAbout, stored: StoredRow, generate: str | None = None) -> Iterator[list[str]]:
    """Return the words of the command line that open the debugger on an input, where something shows with it.

    What is no file of its own is written to a temporary one, which lasts as long as the block. A function is called
    only if the user names it again (`generate`): a file of a sweep may come from anywhere. Raises what reading the
    input raises, and UsageError.
    """
    with tempfile.TemporaryDirectory(prefix="stepper-sweep-") as folder:
        yield [
            str((Path(about.folder) / about.model).absolute()),  # which is no option, whatever its name is
            *_option_words(about),
            *_input_words(about, stored.input, Path(folder), generate),
            *([f"--at={stored.row.address}"] if stored.row.address else []),
            "--no-keep",
        ]


def _option_words(about: SweepAbout) -> list[str]:
    # Each value is joined to its option, so that none of them, which come from a file, can be another option.
    words = []
    for name, given in asdict(about.options).items():
        if name in ("states", "generate") or (name == "reference" and not is_model_path(given)):
            continue
        option = f"--{name.replace('_', '-')}"
        for value in given if isinstance(given, tuple) else (given,):
            if value is True:
                words.append(option)
            elif value or type(value) is int:
                words.append(f"{option}={value}")
    return words


def _input_words(about: SweepAbout, one: SweepInput, folder: Path, generate: str | None) -> list[str]:
    if isinstance(one, SeedInput):
        return [f"--input=*={one.name}", *_states_words(about, "")]
    if isinstance(one, FileInput):
        return [f"--inputs={Path(about.folder) / one.path}", *_states_words(about, one.states)]
    if isinstance(one, CallInput) and generate != about.options.generate:
        named = shlex.quote(about.options.generate)
        raise UsageError(f"its inputs come from a function; name it, if it is to be called: --generate {named}")
    reader = InputReader(folder=about.folder, function=generate or "")
    target = OutputFile(folder / "inputs.npz", ARRAYS, ProtectedFiles(), "")
    write_npz(target, reader.arrays(one, read(about.model)))
    return [f"--inputs={target.path}", *_states_words(about, "")]


def _states_words(about: SweepAbout, own: str) -> list[str]:
    chosen = about.options.states or own
    return [f"--states={Path(about.folder) / chosen}"] if chosen else []
