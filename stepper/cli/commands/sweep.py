"""`stepper sweep MODEL --inputs 'set/*.npz'`: which of thousands of inputs go wrong, where, and in which iteration."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from stepper.cli.printing import show_progress
from stepper.cli.sweeps import AskedSweep, opening_words
from stepper.cli.values import print_answer
from stepper.errors import FINDING, StepperError, UsageError
from stepper.files.kinds import RECORDING
from stepper.records import as_data
from stepper.sweep.results import (
    StoredRow,
    SweepOutcome,
    SweepWriter,
    is_sweep,
    read_about,
    read_row,
    read_rows,
    summary,
)
from stepper.sweep.sweeping import Sweep, SweepProgress, progress_text, report_lines


def execute(options: argparse.Namespace) -> int:
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
        raise KeyboardInterrupt(f"interrupted: {done}; the same command goes on from there") from None
    finally:
        if is_shown:
            show_progress("")
    return _report(options, file)


def _refuse_of_a_sweep(options: argparse.Namespace) -> None:
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
    show_progress(progress_text(progress))


def _report(options: argparse.Namespace, file: Path) -> int:
    about, rows = read_about(file), read_rows(file)
    found = summary(rows, about.count)
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


def _open(file: Path, options: argparse.Namespace) -> int:
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
    from stepper.sweep.results import SweepListing
    from tui.launch import SIGNALLED
    from tui.sweep.app import SweepApp, SweepTableState  # here, as what is wrong with the options is said before
    from tui.theme import Look

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


def _debug(file: Path, number: int, options: argparse.Namespace) -> int:
    from stepper.cli.commands import tui  # few ask for it
    from stepper.cli.parser import parsed

    look = [f"--{name}" for name in ("ascii", "light") if getattr(options, name)]
    extensions = [f"--extension={one}" for one in options.extension]
    with opening_words(read_about(file), read_row(file, number), options.generate) as words:
        return tui.execute(parsed(["tui", *words, *look, *extensions]))
