"""The magic `%stepper MODEL`, which `%load_ext stepper` registers: a debugger as a widget, in one line."""

from __future__ import annotations

import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

from stepper.cli.commands.dap import opener
from stepper.cli.parser import parsed
from stepper.errors import StepperError, UsageError
from stepper.files.file_kinds import CASE_INPUTS

_GIVES_INPUTS = ("--input", "--calls")
"""How options begin that give inputs."""


def register(shell: Any) -> None:
    """Register `%stepper` in a shell of IPython."""
    shell.register_magic_function(widget_of, "line", "stepper")


def widget_of(line: str) -> Any:
    """Return the widget of a model: `%stepper MODEL [OPTION ...]`, with the options of `stepper dap`.

    Without an option for inputs it takes `inputs.npz` beside the model. IPython shows an error in one line.
    """
    try:
        words = shlex.split(line)
        if not words:
            raise UsageError("name a model: %stepper model.xml --inputs inputs.npz")
        opened = opener(parsed(["dap", *words, *_inputs_beside(words)]))({}, False)
        for description in opened.breaks:
            opened.debugger.breakpoints.add(description)
        return opened.debugger.widget()
    except (StepperError, ValueError) as error:  # ValueError: a quote is not closed
        raise import_module("IPython.core.error").UsageError(str(error)) from None


def _inputs_beside(words: list[str]) -> list[str]:
    beside = Path(words[0]).with_name(CASE_INPUTS)
    is_given = any(word.startswith(_GIVES_INPUTS) for word in words)
    return [] if is_given or Path(words[0]).is_dir() or not beside.is_file() else ["--inputs", str(beside)]
