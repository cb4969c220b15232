"""`stepper capture [--when nan] [--to DIR] -- COMMAND`: keep the calls of an application that go wrong, as cases."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import signal
import subprocess
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec

from stepper.cases.capturing import STARTUP, VARIABLE, CaptureSettings, ProcessReport, taken_reports
from stepper.cases.case import Case, Triggers, cases_in
from stepper.cli.commands.cases import case_data, case_lines
from stepper.cli.presses import ENDING
from stepper.cli.printing import print_json
from stepper.errors import FINDING, UsageError
from stepper.files.output import cannot_be_written
from stepper.terminal import say
from stepper.wording import counted

_PACKAGES = ("stepper", "msgspec", "numpy")
_STDERR = 2
_PATIENCE = 30.0
"""Seconds that an application has after Ctrl+C."""
_LAST_PATIENCE = 3.0
"""Seconds that it has after another one."""


def execute(options: Namespace) -> int:
    """Run the command, and tell of the cases; its exit code if that is not 0, else FINDING where there are any."""
    words = options.application[1:] if options.application[:1] == ["--"] else options.application
    if not words:
        raise UsageError("name what is to run behind --: stepper capture --when nan -- python app.py")
    Triggers(options.when or ("nan",))  # says what is wrong with it before the application starts
    folder = Path(options.to)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_be_written(folder, error.strerror or str(error)) from None
    run = secrets.token_hex(8)
    code = _run(words, _environment(options, folder, run), is_json=options.json)
    reports = taken_reports(folder, run)
    written = {name for report in reports for name in report.cases}
    cases = [case for case in cases_in(folder) if case.folder.name in written]
    if options.json:
        print_json({
            "folder": options.to,
            "exit_code": code,
            "processes": len(reports),
            "calls": sum(report.calls for report in reports),
            "hits": sum(report.hits for report in reports),
            "troubles": [text for report in reports for text in report.troubles],
            "cases": [case_data(case) for case in cases],
        })  # fmt: skip
    else:
        _tell(options, reports, cases, code)
    return code or (FINDING if cases else 0)


def _environment(options: Namespace, folder: Path, run: str) -> dict[str, str]:
    specs = [find_spec(name) for name in _PACKAGES]
    packages = [str(Path(spec.origin).parents[1]) for spec in specs if spec is not None and spec.origin]
    settings = CaptureSettings(
        tuple(options.when or ("nan",)),
        str(folder.absolute()),
        options.most,
        tuple(dict.fromkeys(packages)),
        options.calls,
        run,
    )
    paths = [str(STARTUP), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, VARIABLE: msgspec.json.encode(settings).decode(), "PYTHONPATH": os.pathsep.join(paths)}


def _run(words: list[str], environment: dict[str, str], *, is_json: bool) -> int:
    """Return the exit code of the command, 128 + N where signal N ended it."""
    stdout = _STDERR if is_json else None  # the answer alone goes to stdout
    try:
        with _handed_on() as hand_to, subprocess.Popen(words, env=environment, stdout=stdout) as process:
            hand_to(process)
            try:
                code = process.wait()
            except KeyboardInterrupt:  # the application has heard it as well
                code = _after_interrupt(process)
    except OSError as error:
        raise UsageError(f"{words[0]} cannot be started: {error.strerror or error}") from None
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _handed_on() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Forward ending signals to the application, so that this program can still report.

    A signal that comes before the application is known waits for it; a signal that is ignored, as by nohup, stays so.
    """
    early: list[int] = []
    send: Callable[[int], None] = early.append

    def hand_to(process: subprocess.Popen[bytes]) -> None:
        nonlocal send
        send = process.send_signal
        for number in early:
            send(number)

    is_main = threading.current_thread() is threading.main_thread()
    heard = [number for number in ENDING if is_main and signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda number, _: send(number)) for number in heard}
    try:
        yield hand_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _after_interrupt(process: subprocess.Popen[bytes]) -> int:
    for patience in (_PATIENCE, _LAST_PATIENCE):
        try:
            return process.wait(patience) or -signal.SIGINT
        except (KeyboardInterrupt, subprocess.TimeoutExpired):  # the application has heard that one, too
            continue
    process.kill()
    return process.wait()


def _tell(options: Namespace, reports: list[ProcessReport], cases: list[Case], code: int) -> None:
    """Write the report to stderr, because stdout belongs to the application."""
    lines = [f"stepper: {text}" for text in dict.fromkeys(text for report in reports for text in report.troubles)]
    if not reports:
        lines.append(
            "stepper: no process of Python in it used OpenVINO, or it was started with -I, -E or -S; calls from C++ "
            "and from GenAI pipelines cannot be seen"
        )
    calls, hits = sum(report.calls for report in reports), sum(report.hits for report in reports)
    is_full = any(report.hits >= options.most for report in reports)
    behind = f"; behind {counted(options.most, 'case')} of a process its calls are only counted" if is_full else ""
    lines.append(f"{counted(calls, 'call')} of OpenVINO, {hits:,} with {' or '.join(options.when or ['nan'])}{behind}")
    if lost := sum(not report.is_whole for report in reports):
        processes = "1 process" if lost == 1 else f"{lost:,} processes"
        lines.append(f"{processes} ended without a word, as by a signal: calls after the last case are not counted")
    if code:
        lines.append(f"the application ended with exit code {code}")
    if cases:
        lines += [f"  {line}" for line in case_lines(cases)]
        lines.append(f"go to the first: stepper {shlex.quote(str(cases[0].folder))}")
    for line in lines:
        say(line, file=sys.stderr)
