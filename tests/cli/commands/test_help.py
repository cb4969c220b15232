"""`stepper help TOPIC`: every topic is listed and printed, and what it shows can be typed as it stands there."""

from __future__ import annotations

import re
import shlex

import pytest

import stepper
from stepper.cli.commands.help import COMMAND_LINE_TOPICS
from stepper.cli.parser import COMMANDS, command_parsers, parsed
from stepper.commands.session import commands
from stepper.commands.session_commands import topics
from stepper.errors import EXIT_CODES, StepperError
from stepper.recording import Iterations
from tests.cli.conftest import Call

EVERY = sorted({*topics(), *COMMAND_LINE_TOPICS, *COMMANDS, *(one.name for one in commands()), "debugger", "keys"})


def test_the_list_has_every_topic(call: Call) -> None:
    listed = set(re.findall(r"[\w-]+", call("help").out))
    assert listed >= set(EVERY)


@pytest.mark.parametrize("topic", EVERY)
def test_a_topic_is_printed_in_80_columns(call: Call, topic: str) -> None:
    printed = call("help", topic)
    assert printed.code == 0 and len(printed.out.splitlines()) > 1
    assert topic == "keys" or max(map(len, printed.out.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
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


def test_every_parser_is_a_command() -> None:
    assert set(command_parsers()) == set(COMMANDS)
