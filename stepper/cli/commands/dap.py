"""`stepper dap [MODEL]`: the debugger for editors, by the Debug Adapter Protocol, on stdin and stdout or on a port."""

from __future__ import annotations

import argparse
import copy
import gc
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from stepper.cli import session_file
from stepper.cli.arguments import put_case
from stepper.cli.parser import command_parsers
from stepper.cli.specs import debugger_of, put_reference
from stepper.debug.breakpoints.data_breakpoints import break_description
from stepper.errors import UsageError
from stepper.files.file_kinds import is_case, is_model_path
from stepper.integrations.dap.dap_server import ClientPort, serve_port, serve_streams
from stepper.integrations.dap.dap_session import OpenedRun, OpenRun
from stepper.integrations.dap.messages import CHOSEN, HOST
from stepper.terminal import say
from stepper.wording import near_text

_OF_CLIENTS = frozenset({
    "type", "request", "name", "stopOnEntry", "noDebug", "debugServer", "program", "recording", "cwd", "host",
    "port", "token",
})  # fmt: skip
"""Arguments of `launch` that are no options: those of clients, of the session, and other words for the model."""
_OWN_OF_CLIENTS = re.compile(r"__.*|preLaunchTask|postDebugTask|internalConsoleOptions|console|presentation|dap.*")


def execute(options: Namespace) -> int:
    """Serve one client on stdin and stdout, or, on a port, one after another until interrupted; 0."""
    gc.enable()  # what a session leaves behind is garbage, and it may take a day

    open_run = opener(options)
    if options.port is not None:
        serve_port(options.port, open_run, _tell)
        return 0
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "a client talks on stdin and stdout, and this is a terminal; an editor starts it, or --port 4711"
        )
    writer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what is printed by mistake is no message
    reader = os.fdopen(os.dup(sys.stdin.fileno()), "rb")  # a thread may still wait for it when the program ends
    with writer:
        serve_streams(reader, writer, open_run)
    return 0


def _tell(door: ClientPort) -> None:
    """Say where clients are served, and with which token, unless the user has chosen that."""
    say(f"listening on {HOST}:{door.number}")
    if door.token != os.environ.get(CHOSEN):
        say(f"token {door.token}")


def opener(options: Namespace) -> OpenRun:
    """Return what opens the runs that clients ask for, with these options where they say nothing else."""
    return lambda arguments, attach: _opened(options, arguments, attach=attach)


def _opened(given: Namespace, arguments: Mapping[str, Any], *, attach: bool) -> OpenedRun:
    """Return the run that the arguments of a client name. Raises StepperError."""
    notes = [_unknown(name) for name in arguments if _is_unknown(name)]
    model = arguments.get("model", arguments.get("program")) or None
    recording = arguments.get("recording") or None
    if attach and recording is None and isinstance(model, str) and not (is_model_path(model) or is_case(model)):
        recording, model = model, None
    if attach and recording is None and model is None and given.model is None:
        raise UsageError("attach to what? name a 'recording', or a case as the 'model'")
    options = _options(given, arguments, _text("model", model))
    if recording is not None:
        return _recorded(options, _text("recording", recording) or "", notes)
    if options.model is None:
        raise UsageError('name a model: "model": "PATH.xml" in the launch configuration, or stepper dap MODEL')
    debugger = debugger_of(options)
    put_reference(debugger, options)
    return OpenedRun(debugger, [break_description(text) for text in options.breaks], notes)


def _recorded(options: Namespace, recording: str, notes: list[str]) -> OpenedRun:
    """Return the run of a recording once more, with its inputs and rules, at the tick where that ended."""
    from stepper.recording import open_recording  # loads SQLite

    with open_recording(recording) as opened:
        options.model = str(opened.model_path(options.model))
        ((tick,),) = opened.query("SELECT max(tick) FROM snapshots")
    options.session = recording
    debugger = debugger_of(options, kept=session_file.adopt(options))
    put_reference(debugger, options)
    return OpenedRun(debugger, [break_description(text) for text in options.breaks], notes, tick or 0)


# --- from arguments to options --------------------------------------------------------------------------------------


def _options(given: Namespace, arguments: Mapping[str, Any], model: str | None) -> Namespace:
    """Return the options of the command line with those of a client, which count where both say something.

    A client that names a model says all that belongs to it.
    """
    parser = command_parsers()["dap"]
    base = copy.deepcopy(given) if model is None else parser.parse_args([])
    words = [] if base.model is None and model is None else [model or base.model]
    for name, value in arguments.items():
        action = _ACTIONS().get(_plain(name))
        if action is not None and value is not None:
            words += _words(name, action, value)
    options: Namespace = parser.parse_args(words, base)
    options.command = "dap"
    put_case(options)
    return options


def _ACTIONS() -> dict[str, argparse.Action]:  # noqa: N802
    return {
        _plain(name): action
        for action in command_parsers()["dap"].actions
        for name in action.option_strings
        if name.startswith("--") and name not in ("--help", "--port")
    }


def _plain(name: str) -> str:
    """Return the name of an option without what tells openSequences from open-sequences, and `breaks` from `break`."""
    plain = re.sub("[^a-z0-9]", "", name.lower())
    return "break" if plain in ("breaks", "breakpoints") else plain


def _is_unknown(name: str) -> bool:
    known = name in _OF_CLIENTS or name == "model" or _OWN_OF_CLIENTS.fullmatch(name)
    return not known and _plain(name) not in _ACTIONS()


def _unknown(name: str) -> str:
    near = near_text(name[:60], [action.option_strings[0].lstrip("-") for action in _ACTIONS().values()])
    return f"there is no option '{name[:60]}' of stepper dap{f'; {near}' if near else ''}"


def _words(name: str, action: argparse.Action, value: Any) -> Iterator[str]:
    """Yield the words of an option: true for a flag, a list or pairs for one that is repeated, else one value."""
    option = action.option_strings[0]
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise UsageError(f"'{name}' is true or false")
        if value:
            yield option
        return
    is_repeated = isinstance(action.default, list)
    many = value if isinstance(value, list) else [value]
    if is_repeated and isinstance(value, dict):
        many = [f"{key}={_text(name, one)}" for key, one in value.items()]
    if not is_repeated and len(many) != 1:
        raise UsageError(f"'{name}' has one value")
    for one in many:
        yield f"{option}={_text(name, one)}"


def _text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        if isinstance(value, list):
            import json

            return json.dumps(value)
        raise UsageError(f"'{name[:60]}' is a text or a number")
    return str(value)
