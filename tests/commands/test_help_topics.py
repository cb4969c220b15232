"""What help says about addresses, expressions and breaks is all that there is, and can be typed as it stands there."""

from __future__ import annotations

import re

import pytest

from stepper.commands import Interpreter
from stepper.commands.session_commands import topics
from stepper.debug.breakpoints.breakpoint import BreakKind
from stepper.debug.breakpoints.data_breakpoints import break_description, data_breakpoint, kinds
from stepper.query.address_syntax import parse_address
from stepper.query.expression_syntax import FUNCTION_NAMES
from stepper.query.expressions import parse
from tests.debug.debugged import sample


def _written(topic: str) -> list[str]:
    """The examples of a topic, one by one."""
    return [one for written, _ in topics()[topic].rows for one in re.split(r"\s{2,}", written) if one]


@pytest.mark.parametrize("topic", topics())
def test_a_topic_is_told_in_lines_that_fit(topic: str) -> None:
    text = "\n".join(Interpreter(sample("while_loop")).execute(f"help {topic}").lines)
    assert max(map(len, text.splitlines())) <= 80
    for written, means in topics()[topic].rows:
        assert f"{written}  " in text and means.split()[-1] in text


def test_addresses_can_be_written_so() -> None:
    for one in _written("addresses"):
        parse_address(one)


def test_expressions_can_be_written_so_and_every_function_is_named() -> None:
    examples = _written("expressions")
    assert set(FUNCTION_NAMES) == {one.removesuffix("(x)") for one in examples} & set(FUNCTION_NAMES)
    for one in examples:
        parse(f"{one}(x)" if one in FUNCTION_NAMES else one)


def test_breaks_can_be_written_so_and_every_word_is_named() -> None:
    named = set()
    for one in _written("breaks"):
        text = one.removeprefix("break ")
        for part in {re.sub(r" \[\w+\]", "", text), re.sub(r"\[(x|my_loop)\]", r"\1", text)}:
            description = break_description(f"x {part}" if part.startswith("hit ") else part)
            found = data_breakpoint(description.text) if description.kind is BreakKind.WHEN else None
            named |= set() if found is None else {found.word}
    assert named == set(kinds())
