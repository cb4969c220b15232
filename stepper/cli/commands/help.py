"""`stepper help [TOPIC]`: the command line, the debugger's commands, and how things are written, for 80 columns."""

from __future__ import annotations

import json
import textwrap
from argparse import Namespace
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from stepper.cli.parser import COMMANDS, command_parsers
from stepper.cli.values import print_answer
from stepper.commands.session import commands
from stepper.commands.session_commands import WIDTH, Topic, help_answer, topic_lines, topics, two_columns
from stepper.errors import EXIT_CODES, UsageError
from stepper.schemas import schema, schema_names
from stepper.wording import near_text

COMMAND_LINE_TOPICS: Final[Mapping[str, Topic]] = MappingProxyType({
    "inputs": Topic("what --input, --state and --shape take", (
        ("--input x=x.npy", "an array in a file; NAME is that of an input, a tensor's name, or a position"),
        ("--input x=all.npz:key", "one of several; --inputs all.npz takes all, by the same names"),
        ("--input x=zeros  x=ones", "an array of one number"),
        ("--input x=rand:7", "random numbers from the seed 7"),
        ("--input x=[[1,2],[3,4]]", "a JSON literal"),
        ("--input '*=rand:0'", "all inputs that are not given"),
        ("--shape x=1,5,4", "the shape that zeros, ones and rand take where that of the input is open"),
        ("--state h=h0.npy", "what a variable (ReadValue, Assign) begins with, written as an input is"),
    )),
    "ranges": Topic("what --iters and --record-iters take", (
        ("0:10", "iterations 0 to 9"),
        ("7  -1", "iteration 7; the last"),
        ("3:  :-2  :", "from 3 on; all but the last two; all"),
        ("0:3,-1", "several, with commas between them"),
    )),
    "files": Topic("the user's own files", (
        ("~/.config/stepper/init", "commands with which a debugger begins; --no-init leaves it alone"),
        ("~/.config/stepper/keys.toml", "keys of the application; --keys names another file"),
        ("~/.local/state/stepper/sessions", "sessions by model; --session names a file, --no-keep keeps none"),
    ), "XDG_CONFIG_HOME and XDG_STATE_HOME name other folders than ~/.config and ~/.local/state."),
    "exit-codes": Topic("what the exit code says", tuple((str(code), text) for code, text in EXIT_CODES.items())),
})  # fmt: skip
"""The topics that only the command line has."""

_PRINTED: Final[Mapping[str, str]] = MappingProxyType({
    "keys": "the keys of the application, with the command of each; --keys vim: of a preset",
    "json": "the schemas of all answers as JSON",
    "debugger": "the commands of the debugger",
})  # fmt: skip


def execute(options: Namespace) -> int:
    """Print the help for a topic, or the list of topics; 0. UsageError for a topic that there is not."""
    topic = "-".join(options.topic)
    if options.keys is not None and topic != "keys":
        raise UsageError("--keys is for stepper help keys")
    if topic == "json":
        print(json.dumps({f"{name}.json": schema(name) for name in schema_names()}, indent=1))
        return 0
    if topic == "keys":
        from tui.keys.key_table import print_keys  # here, as no other topic needs the application

        return print_keys(options.keys, as_json=options.json)
    lines = _lines(topic)
    print_answer(options, {"topic": topic, "lines": lines}, lines)
    return 0


def topic_names() -> tuple[str, ...]:
    """Return every topic, those that commands are included."""
    return (*COMMANDS, *topics(), *COMMAND_LINE_TOPICS, *_PRINTED, *(one.name for one in commands()))


def _lines(topic: str) -> list[str]:
    parsers = command_parsers()
    if not topic:
        return _overview()
    if topic in COMMAND_LINE_TOPICS:
        return topic_lines(COMMAND_LINE_TOPICS[topic])
    if topic == "debugger":
        return list(help_answer("").lines)
    printed = parsers[topic].format_help().splitlines() if topic in parsers else []
    try:
        found = list(help_answer(topic).lines)
    except UsageError:
        if not printed:
            near = near_text(topic, topic_names()) or "stepper help lists them"
            raise UsageError(f"there is no topic '{topic}'; {near}") from None
        return printed
    return [*printed, "", "in the debugger:", *(f"  {line}" for line in found)] if printed else found


def _overview() -> list[str]:
    titles = {**{name: topic.title for name, topic in (*topics().items(), *COMMAND_LINE_TOPICS.items())}, **_PRINTED}
    debugger = ", ".join(one.name for one in commands())
    return [
        "stepper help TOPIC prints one of these:",
        "",
        "the command line, as stepper COMMAND --help does",
        *_indented(COMMANDS.items()),
        "how things are written",
        *_indented(titles.items()),
        "the commands of the debugger",
        *textwrap.wrap(debugger, WIDTH - 2, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False),
    ]


def _indented(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {line}" for line in two_columns(rows, WIDTH - 2)]
