"""`stepper help [TOPIC]`: the command line, the debugger's commands, and how things are written, for 80 columns."""

from __future__ import annotations

import json
import textwrap
from argparse import Namespace
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from stepper.cli.parser import COMMANDS, command_parsers
from stepper.cli.printing import print_answer
from stepper.commands.command_session import commands
from stepper.commands.session_commands import Topic, help_answer, topic_lines, topics
from stepper.errors import EXIT_CODES, UsageError
from stepper.schemas import schema, schema_names
from stepper.wording import WIDTH, near_text, two_columns

COMMAND_LINE_TOPICS: Final[Mapping[str, Topic]] = MappingProxyType({
    "inputs": Topic("the values of --input, --state and --shape", (
        ("--input x=x.npy", "an array in a file; x is an input, a tensor's name, or a position"),
        ("--input x=all.npz:key", "an array of an archive; --inputs all.npz takes all arrays by their names"),
        ("--input x=zeros  x=ones", "an array of one number"),
        ("--input x=rand:7", "random numbers from the seed 7"),
        ("--input x=[[1,2],[3,4]]", "a JSON literal"),
        ("--input '*=rand:0'", "all other inputs"),
        ("--shape x=1,5,4", "the shape of zeros, ones and rand for an input with an open shape"),
        ("--state h=h0.npy", "the first value of a variable (ReadValue, Assign), in the syntax of an input"),
    )),
    "ranges": Topic("the values of --iters and --record-iters", (
        ("0:10", "iterations 0 to 9"),
        ("7  -1", "iteration 7; the last"),
        ("3:  :-2  :", "from 3 on; all but the last two; all"),
        ("0:3,-1", "several, with commas between them"),
    )),
    "files": Topic("the user's own files", (
        ("~/.config/stepper/init", "the first commands of a debugger; --no-init skips them"),
        ("~/.config/stepper/keys.toml", "keys of the application; --keys names another file"),
        ("~/.local/state/stepper/sessions", "a session per model; --session names a file, --no-keep keeps none"),
    ), "XDG_CONFIG_HOME and XDG_STATE_HOME replace ~/.config and ~/.local/state."),
    "exit-codes": Topic("the meaning of the exit code", tuple((str(code), text) for code, text in EXIT_CODES.items())),
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
        from stepper_tui.screens.help import print_keys  # here, as no other topic needs the application

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
        "stepper help TOPIC prints one topic:",
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
