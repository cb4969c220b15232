"""`stepper help TOPIC`: every topic is listed and printed, and what it shows can be typed as it stands there."""

from __future__ import annotations

import io
import os
import re
import shlex
from importlib.metadata import version

import pytest

import stepper
from stepper.cli.commands.help import COMMAND_LINE_TOPICS
from stepper.cli.parser import COMMANDS, command_parsers, parsed
from stepper.cli.printing import show_progress
from stepper.commands.command_session import commands
from stepper.commands.session_commands import topics
from stepper.errors import EXIT_CODES, StepperError
from stepper.recording import Iterations
from stepper.terminal import say
from tests.cli.conftest import Call
from tests.tables import each_row

EVERY = sorted({*topics(), *COMMAND_LINE_TOPICS, *COMMANDS, *(one.name for one in commands()), "debugger", "keys"})


def test_the_list_has_every_topic(call: Call) -> None:
    listed = set(re.findall(r"[\w-]+", call("help").out))
    assert listed >= set(EVERY)


@each_row("topic", EVERY)
def test_a_topic_is_printed_in_80_columns(call: Call, topic: str) -> None:
    printed = call("help", topic)
    assert printed.code == 0 and len(printed.out.splitlines()) > 1
    assert topic == "keys" or max(map(len, printed.out.splitlines())) <= 80


@each_row("name", COMMANDS)
def test_a_command_has_the_text_of_its_option_help(call: Call, name: str) -> None:
    assert call("help", name).out.startswith(call(name, "--help").out)


def test_a_name_of_both_is_told_for_both(call: Call) -> None:
    both = call("help", "find").out
    assert "--limit N" in both and "usage: find EXPR [first|next|previous|last|all]" in both


def test_a_topic_may_be_two_words_or_a_beginning(call: Call) -> None:
    assert call("help", "exit", "codes") == call("help", "exit-codes")
    assert call("help", "expr") == call("help", "expressions")


def test_every_error_has_an_exit_code_that_is_explained() -> None:
    kinds = [kind for kind in vars(stepper.errors).values() if isinstance(kind, type)]
    codes = {kind.exit_code for kind in kinds if issubclass(kind, StepperError)}
    assert codes | {0} == set(EXIT_CODES)


def test_inputs_and_ranges_can_be_written_so() -> None:
    for written, _ in COMMAND_LINE_TOPICS["inputs"].rows:
        option, *values = shlex.split(written)
        given = parsed(["run", "model.xml", *(word for value in values for word in (option, value))])
        assert getattr(given, option.removeprefix("--")) == values
    for written, _ in COMMAND_LINE_TOPICS["ranges"].rows:
        for one in written.split():
            assert Iterations.parse(one).includes(8, 10) is (one in ("0:10", "3:", ":")), one


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_begins_with_one_line_of_usage_and_three_examples_that_can_be_typed(call: Call, name: str) -> None:
    usage, empty, *rest = call(name, "--help").out.splitlines()
    assert usage == f"usage: {command_parsers()[name].pattern}" and not empty
    at = rest.index("examples:")
    examples = [line.strip() for line in rest[at + 1 : at + 4]]
    assert len(set(examples)) == 3 and rest[at + 4] == ""
    for example in examples:
        program, *words = shlex.split(example)
        assert program == "stepper" and parsed(words).command == name


def test_the_list_of_commands_has_five_first_and_each_once(call: Call) -> None:
    printed = call("--help").out
    listed = re.findall(r"^  ([a-zA-Z]+)  +\w", printed.partition("exit codes:")[0], re.MULTILINE)
    assert listed[:5] == ["MODEL", "check", "why", "compare", "capture"]
    assert sorted(listed) == sorted({*COMMANDS} - {"tui"} | {"MODEL"})
    assert max(map(len, printed.splitlines())) <= 80


def test_the_version_names_what_answers_depend_on(call: Call) -> None:
    printed = dict(line.split(" ", 1) for line in call("--version").out.splitlines())
    assert printed["stepper"] == stepper.__version__ and printed["numpy"] == version("numpy")
    assert {"Python", "textual", "openvino", "onnx", "onnxruntime"} <= set(printed)


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_alone_and_not_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for stream, is_painted in ((Terminal(), True), (io.StringIO(), False)):
        say("a.xml:3: error D202", stream, {"error": "error", "absent": "name"})
        assert ("\x1b[1;31merror\x1b[0m" in stream.getvalue()) is is_painted
        assert re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()) == "a.xml:3: error D202\n"
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            command_parsers()["check"].print_help(stream := Terminal())
            assert "\x1b" not in stream.getvalue()
    command_parsers()["check"].print_help(stream := Terminal())
    assert "\x1b[1mexamples:\x1b[0m" in stream.getvalue() and "\x1b[1;36m  --rtol\x1b[0m" in stream.getvalue()


def test_a_bar_stands_where_the_part_that_is_done_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", stream := io.StringIO())
    monkeypatch.setattr("stepper.cli.printing.get_terminal_size", lambda: os.terminal_size((80, 24)))
    show_progress("12 of 48", 0.25)
    show_progress("model", None)
    assert stream.getvalue() == f"\r\x1b[2K{'━' * 6}{'─' * 18} 12 of 48\r\x1b[2Kmodel"


def test_a_bar_in_colours_begins_empty_and_ends_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    monkeypatch.setattr("stepper.cli.printing.get_terminal_size", lambda: os.terminal_size((80, 24)))
    for share in (0.0, 0.25, 1.0):
        show_progress("", share)
    bars = [re.sub(r"\x1b\[[0-9;]*m", "", one) for one in stream.getvalue().split("\r\x1b[2K")]
    assert bars == ["", f"{'─' * 24} ", f"{'━' * 6}{'─' * 18} ", f"{'━' * 24} "]
    assert stream.getvalue().count("\x1b[0m") == 2


def test_every_parser_is_a_command() -> None:
    assert set(command_parsers()) == set(COMMANDS)
