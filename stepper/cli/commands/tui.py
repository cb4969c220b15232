"""`stepper MODEL`: the debugger on the whole terminal."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepper.cli import session_file
from stepper.cli.specs import (
    bound_inputs,
    debugger_of,
    debugger_on,
    given_texts,
    opened_model,
    partner_of,
    put_reference,
)
from stepper.collector import collector_off
from stepper.errors import InputError, UsageError

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger
    from stepper.element_types import Array
    from stepper.integrations.dap.joining import RunPort
    from stepper.ir.model import Model


def execute(options: Namespace) -> int:
    """Open the application, where inputs are missing or do not fit on the screen for them; 0 when the user leaves.

    UsageError where there is no terminal.
    """
    if not Path(options.model).exists():
        opened_model(options)  # which says so, with what is near
    in_browser = bool(os.environ.get("TEXTUAL_DRIVER"))  # textual-serve says so where it draws in place of a terminal
    if not in_browser and not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
        raise UsageError("there is no terminal to draw on; stepper debug takes commands from a file or a pipe")
    with (
        nullcontext() if options.no_keep else session_file.locked(options),
        _editors(options) as editors,
        collector_off(),
    ):
        return _open(options, editors)  # the application enables the collector when it has all that stays


def _editors(options: Namespace) -> AbstractContextManager[RunPort | None]:
    """Return the port on which editors join the run, for as long as the application is open; None without one."""
    if options.dap is None:
        return nullcontext()
    from stepper.integrations.dap.joining import RunPort

    return closing(RunPort(options.dap))


def _open(options: Namespace, editors: RunPort | None) -> int:
    lines = [f"source {options.script}"] if options.script else []
    lines += [f"run-to {options.at}"] if options.at else []
    from stepper_tui import launch  # here, as what is wrong with the options is said without waiting for textual

    keeping = launch.SessionOptions(
        file=options.session,
        fresh=options.fresh or options.script is not None,
        only_stops=options.at is not None,
        trusts=options.trust_session,
        keep=not options.no_keep,
        keys=options.keys,
        starts_up=not options.no_init,
    )
    runs = not options.no_run
    kept = session_file.adopt(options)
    model = opened_model(options)
    texts, shapes = given_texts(model, options.input, options.inputs, options.shape)
    inputs = _all_inputs(model, options, texts, kept)
    models = [model]

    def make(inputs: Mapping[int, Array]) -> Debugger:
        """Return a debugger of the model opened first; later calls read the disk again."""
        opened = models.pop() if models else opened_model(options)
        return _compared(debugger_on(opened, inputs, options), options)

    given = launch.InputOptions(texts, shapes, make)
    if inputs is None:
        partner_of(options, model)  # raises for options that do not go together before anybody chooses inputs
        return launch.open_inputs(
            model, given, lines, ascii=options.ascii, light=options.light, keeping=keeping, runs=runs, editors=editors
        )

    def opened() -> Debugger:
        """Return a debugger of the model on the disk, on its session's inputs and rules if any."""
        return _compared(debugger_of(options, kept=session_file.adopt(options)), options)

    return launch.open_application(
        lambda: make(inputs),
        model,
        inputs,
        lines,
        given=given if len(texts) == len(inputs) else None,  # what a session keeps has no words by which it is chosen
        ascii=options.ascii,
        light=options.light,
        keeping=keeping,
        reopen=opened,
        runs=runs,
        editors=editors,
    )


def _all_inputs(
    model: Model, options: Namespace, texts: Mapping[int, str], kept: Mapping[str | int, Any]
) -> dict[int, Array] | None:
    """Return the inputs by position; None where one is missing or does not fit. Reads files if none is missing.

    Of many calls a missing one raises MissingInputs.
    """
    of_calls = getattr(options, "call_inputs", {})
    if model.calls is not None and of_calls:  # the screen for inputs offers nothing that these could be chosen from
        return dict(enumerate(bound_inputs(model, options, kept)))
    if len({*texts, *kept}) < len(model.graph.parameters):
        return None
    try:
        return dict(enumerate(bound_inputs(model, options, kept)))
    except (UsageError, InputError):
        return None


def _compared(debugger: Debugger, options: Namespace) -> Debugger:
    """Return the debugger with the reference that the options name."""
    put_reference(debugger, options)
    return debugger


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return bool(isatty is not None and isatty())
