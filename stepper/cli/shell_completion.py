"""Completion in bash, zsh and fish: what may stand where the cursor is, asked of this program at each Tab.

`argcomplete` talks to the shells: it knows how each of them splits and quotes words. It is loaded at a Tab alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import argcomplete
from argcomplete.completers import SuppressCompleter
from argcomplete.lexers import split_line

from stepper.cli.parser import APPLICATION, command_line
from stepper.cli.usage import Parser
from stepper.errors import StepperError
from stepper.files.file_kinds import CASE_MODEL, CONVERTED, IR_SUFFIX, is_case, is_model_path
from stepper.files.recognition import opened_in
from stepper.ir.model import Model
from stepper.ir.reader import read

_LARGEST = 2**22
"""Bytes of a model that is read for the names in it: no Tab waits longer than a moment."""
_LIKE_INPUTS = ("zeros", "ones", "rand:", "[")

Completer = Callable[..., Iterable[str]]
"""Completer of argcomplete; gets the word's `prefix` and earlier arguments (`parsed_args`)."""


def answer() -> None:
    """Answer the shell, which asks by the environment; ends the process."""
    top, commands = command_line()
    _, prefix, _, words, _ = split_line(os.environ["COMP_LINE"], int(os.environ["COMP_POINT"]))
    # A bare model opens the application.
    for name in _files(*_MODEL_SUFFIXES)(prefix) if len(words) == 1 else filter(_is_opened, words[1:2]):
        what = "a model to open" if _is_opened(name) else "a folder"
        APPLICATION(commands.add_parser(name, help=what))
    for one in commands.choices.values():
        _add_completers(one)
    argcomplete.autocomplete(top, always_complete_options="long", default_completer=SuppressCompleter())


def _is_opened(word: str) -> bool:
    return is_model_path(word) or is_case(word) or opened_in(word) is not None


def _add_completers(parser: Parser) -> None:
    for action in parser.actions:
        completer = _COMPLETERS.get(action.dest)
        if completer is not None and action.nargs != 0:
            action.completer = completer  # type: ignore[attr-defined]  # where argcomplete looks for it


# --- completers -----------------------------------------------------------------------------------------------------


def _files(*suffixes: str, words: Iterable[str] = ()) -> Completer:
    """Complete words, folders, and files with one of these suffixes (of none: all)."""

    def complete(prefix: str, **_asked: Any) -> Iterator[str]:
        yield from words
        folder, slash, begun = prefix.rpartition("/")
        try:
            entries = sorted(Path(folder + slash).expanduser().iterdir())
        except (OSError, RuntimeError):  # a home that is not there
            return
        for entry in entries:
            if entry.name.startswith(".") and not begun.startswith("."):
                continue
            if entry.is_dir():
                yield f"{folder}{slash}{entry.name}/"
            elif not suffixes or entry.name.lower().endswith(suffixes):
                yield folder + slash + entry.name

    return complete


def _values(names: Callable[[Model], Iterable[str]]) -> Completer:
    """Complete NAME=SPEC, with the names that a model has."""
    files = _files(".npy", ".npz", words=_LIKE_INPUTS)

    def complete(prefix: str, parsed_args: Any, **_asked: Any) -> Iterator[str]:
        name, equals, value = prefix.partition("=")
        if equals:
            yield from (f"{name}={found}" for found in files(value))
        else:
            yield from (f"{found}=" for found in ("*", *_in_model(parsed_args, names)))

    return complete


def _in_model(parsed_args: Any, names: Callable[[Model], Iterable[str]]) -> list[str]:
    """Return names in the model that the words before name; none where it cannot be read, or is large."""
    word = getattr(parsed_args, "model", None) or parsed_args.command
    path = Path(word) / CASE_MODEL if is_case(word) else opened_in(word) or Path(word)
    try:
        if path.suffix.lower() != IR_SUFFIX or path.stat().st_size > _LARGEST:
            return []
        return list(dict.fromkeys(names(read(path))))
    except (OSError, StepperError):
        return []


def _inputs(model: Model) -> Iterator[str]:
    return (parameter.name for parameter in model.graph.parameters)


def _outputs(model: Model) -> Iterable[str]:
    from stepper.engine.run import output_names  # with numpy

    return output_names(model)


def _variables(model: Model) -> Iterable[str]:
    from stepper.engine.inputs import variables_of  # with numpy

    return (variable.name for variable in variables_of(model))


def _triggers(**_asked: Any) -> Iterable[str]:
    from stepper.cases.case import WORDS  # with numpy

    return WORDS


def _loops(model: Model) -> Iterator[str]:
    return (layer.name for _path, graph in model.graphs() for layer in graph.layers if layer.is_loop)


def _layers(model: Model) -> Iterator[str]:
    return (layer.name for _path, graph in model.graphs() for layer in graph.layers)


def _addresses(prefix: str, parsed_args: Any, **_asked: Any) -> Iterable[str]:
    """Complete names of a model or of a recording."""
    trace = getattr(parsed_args, "trace", None)
    if trace is None:
        return _in_model(parsed_args, _layers)
    from stepper.recording import open_recording  # with SQLite and numpy

    try:
        with open_recording(trace) as recording:
            query = "SELECT name FROM ports UNION SELECT name FROM inputs UNION SELECT name FROM outputs"
            return [str(name) for (name,) in recording.query(query)]
    except StepperError:
        return ()


def _breaks(prefix: str, parsed_args: Any, **_asked: Any) -> Iterable[str]:
    """Complete the words of `break`, and names of operations."""
    from stepper.debug.breakpoints.data_breakpoints import kinds  # with numpy

    return (*kinds(), *_in_model(parsed_args, _layers))


def _topics(**_asked: Any) -> Iterable[str]:
    """Complete the topics of help."""
    from stepper.cli.commands.help import topic_names  # with numpy

    return topic_names()


_MODEL_SUFFIXES = (IR_SUFFIX, *CONVERTED)


def _calls(prefix: str, parsed_args: Any, **_asked: Any) -> Iterator[str]:
    """Complete files with the values of all calls, and INPUT=SPEC."""
    if "=" not in prefix:
        yield from _files(".npz")(prefix)
    yield from (found for found in _values(_inputs)(prefix, parsed_args) if found != "*=")


def _carried(prefix: str, parsed_args: Any, **_asked: Any) -> Iterator[str]:
    """Complete OUTPUT=INPUT."""
    output, equals, _input = prefix.rpartition("=")
    if equals:
        yield from (f"{output}={name}" for name in _in_model(parsed_args, _inputs))
    else:
        yield from (f"{name}=" for name in _in_model(parsed_args, _outputs))


_COMPLETERS: Final[Mapping[str, Completer]] = MappingProxyType({
    "model": _files(*_MODEL_SUFFIXES),
    **dict.fromkeys(("folder", "to"), _files("/")),
    "when": _triggers,
    "model_path": _files(IR_SUFFIX),
    "reference": _files(words=("openvino", "onnx", "onnxruntime")),
    "keys": _files(".toml", words=("default", "vscode", "vim", "emacs")),
    "device": lambda **_: ("CPU", "GPU", "NPU", "AUTO"),
    "input": _values(_inputs),
    "calls": _calls,
    "carry": _carried,
    "state": _values(_variables),
    "shape": lambda parsed_args, **_: [f"{name}=" for name in _in_model(parsed_args, _inputs)],
    "loop": lambda parsed_args, **_: _in_model(parsed_args, _loops),
    "addresses": _addresses,
    "diff": _files(words=("openvino", "onnx", "onnxruntime")),
    "at": _addresses,
    **dict.fromkeys(("highlight", "around", "begin", "end", "detail", "why"), _addresses),
    "breaks": _breaks,
    "topic": _topics,
    "npy": _files(".npy"),
    "extension": _files(),
    **dict.fromkeys(("inputs", "patterns", "states", "outputs", "save_states"), _files(".npz")),
    **dict.fromkeys(("trace", "resume", "script", "session", "align", "check", "output", "out"), _files()),
    **dict.fromkeys(("sarif", "junit"), _files()),
})  # fmt: skip
"""By destination of an option or argument. Those with choices complete them, all others nothing."""
