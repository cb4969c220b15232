"""Commands of the program on one model, in this process: what came of each, and what must not come of it."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from stepper.cli import main
from stepper.errors import EXIT_CODES, FINDING
from tests.mutation.examine import Outcome

LONGEST_RUN: Final = 2.0
"""Seconds after which a command that runs a model is interrupted: loops of loops may go on for hours."""
_FORMATS: Final = ("svg", "html", "tikz", "dot", "mermaid", "md", "json", "pdf", "png")
_VIEWS: Final = ("model", "rolled", "unrolled", "ports", "story")
_RUN: Final = ("--input", "*=rand:1", "--max-iterations", "50", "--engine", "numpy")
_INTERRUPTED: Final = 128 + signal.SIGINT
_LINES: Final = "lines.txt"
"""The file beside the model whose lines `debug` gets on stdin, where it goes on after one that fails."""
_NAME: Final = re.compile(rb'name="([^"]{1,60})"')
_SCRIPT: Final = (
    *("step 3", "next", "next 5", "iter 1", "finish", "continue", "last", "first", "reverse-next", "reverse-step 4"),
    *("reverse-finish", "reverse-continue", "goto 2", "until {name}[0] > 0", "run-to {name}", "to-anomaly", "where"),
    *("break {name}", "break nan", "watch {name}", "display {name} s", "print {name}", "print {name}@0:3", "list"),
    *("print mean({name}) / 0", "stats {name}", "find nan", "find {name} > 0", "explain", "why {name}[0]", "undo"),
    *(
        "why shape of {name}",
        "why condition",
        "uses {name}[0]",
        "info trip",
        "info ports",
        "info scans",
        "set {name} = 7",
        "branches",
        "diff @-1",
    ),
)


def outcome_of_lint(model: Path) -> Outcome:
    """Lint the model, which runs nothing."""
    return _outcome(["lint", str(model)])


def outcome_of_command(model: Path, seed: int) -> Outcome:
    """Run the command of this seed on the model."""
    chance = random.Random(f"command {seed}")  # not what chance has done to the model
    return _outcome(chance.choice(_COMMANDS)(chance, model))


def _name_in(chance: random.Random, model: Path) -> str:
    names = _NAME.findall(model.read_bytes())
    return chance.choice(names).decode("utf-8", "replace") if names else "x"


def _drawing(chance: random.Random, model: Path, *more: str) -> list[str]:
    format, output = chance.choice(_FORMATS), model.parent / "figure"
    return ["export", str(model), "--as", format, "-o", f"{output}.{format}", *more]


def _drawing_of_model(chance: random.Random, model: Path) -> list[str]:
    return _drawing(chance, model, "--view", chance.choice(_VIEWS[:4]))


def _drawing_of_run(chance: random.Random, model: Path) -> list[str]:
    return _drawing(chance, model, "--view", chance.choice(_VIEWS), "--values", "stats", *_RUN)


def _lint(_chance: random.Random, model: Path) -> list[str]:
    return ["lint", str(model), "--json"]


def _inspect(chance: random.Random, model: Path) -> list[str]:
    return ["inspect", str(model), *chance.choice(((), ("--json",), ("--open-sequences",)))]


def _run(chance: random.Random, model: Path) -> list[str]:
    return ["run", str(model), *_RUN, *chance.choice(((), ("--json",), ("--rules", "openvino"), ("--open-sequences",)))]


def _check(_chance: random.Random, model: Path) -> list[str]:
    return ["check", str(model), *_RUN, "--with", "none", "--seconds", "1"]


def _compare(_chance: random.Random, model: Path) -> list[str]:
    return ["compare", str(model), "--with", str(model), *_RUN]


def _why(chance: random.Random, model: Path) -> list[str]:
    return ["why", str(model), f"{_name_in(chance, model)}{chance.choice(('', '[0]', '@0[0]'))}", *_RUN]


def _debug(chance: random.Random, model: Path) -> list[str]:
    lines = [line.format(name=_name_in(chance, model)) for line in chance.choices(_SCRIPT, k=20)]
    (model.parent / _LINES).write_text("\n".join(lines), encoding="utf-8")
    return ["debug", str(model), *_RUN, "--no-init", "--no-keep", *chance.choice(((), ("--json",)))]


_COMMANDS: Final[tuple[Callable[[random.Random, Path], list[str]], ...]] = (
    *(_lint, _inspect, _run, _check, _compare, _why, _debug, _drawing_of_model, _drawing_of_run),
)


def _outcome(words: list[str]) -> Outcome:
    streams = io.StringIO(), io.StringIO()
    script = Path(words[1]).parent / _LINES
    with warnings.catch_warnings(record=True) as caught, contextlib.ExitStack() as stack:
        warnings.simplefilter("always")
        stack.enter_context(contextlib.redirect_stdout(streams[0]))
        stack.enter_context(contextlib.redirect_stderr(streams[1]))
        before, sys.stdin = sys.stdin, io.StringIO(script.read_text(encoding="utf-8") if script.exists() else "")
        stack.callback(setattr, sys, "stdin", before)
        try:
            with _interrupted_after(LONGEST_RUN if "--engine" in words else None):
                code = main(words)
        except SystemExit as end:  # argparse ends the program by itself
            code = int(end.code or 0)
        except KeyboardInterrupt:
            code = _INTERRUPTED
        except Exception:
            return Outcome("traceback", f"{' '.join(words)}\n{traceback.format_exc()}")
    fault = _fault(code, *(stream.getvalue() for stream in streams))
    if fault is None and caught:
        fault = Outcome("warning", "\n".join(f"{one.filename}:{one.lineno}: {one.message}" for one in caught))
    if fault is not None:
        return Outcome(fault.kind, f"{' '.join(words)}\n{fault.text}")
    return Outcome("ran" if code in (0, FINDING) else "refused", streams[1].getvalue())


def _fault(code: int, out: str, err: str) -> Outcome | None:
    """Return what is wrong with what a command answered."""
    if "Traceback" in err or "Exception ignored" in err:
        return Outcome("traceback", err)
    if "Warning:" in err:
        return Outcome("warning", err)
    if code not in EXIT_CODES:
        return Outcome("exit code", f"{code}: {err}")
    if re.search(r"out of memory:? *$", err, re.MULTILINE):
        return Outcome("message", f"no layer and no size: {err}")
    lines = [line for line in f"{out}\n{err}".split("\n") if not line.isprintable()]
    return Outcome("message", f"unprintable: {lines[:3]!r}") if lines else None


@contextlib.contextmanager
def _interrupted_after(seconds: float | None) -> Iterator[None]:
    """Press Ctrl+C when the time is over."""
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
