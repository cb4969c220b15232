"""Whatever is typed: an expression or an ExpressionError, in no time."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable

import numpy as np
import pytest

from stepper.errors import StepperError
from stepper.query.expressions import FUNCTION_NAMES, Expression, ExpressionError, parse
from tests.debug.scopes import Values

SCOPE = Values(
    {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "y": np.array([1, -2, 3]), "h": np.float16(2)},
    {"x": np.ones((2, 3), np.float32)},
    iteration=2,
)
OPERANDS = "x y h z iter and or not true false nan inf 0 1 2 0.5 1e300 99 x@1 a::b:0@2 `q` id=3"
WORDS = [*FUNCTION_NAMES, *OPERANDS.split()]
SIGNS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "<",
    "<=",
    "==",
    "!=",
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    "...",
    "@",
    "`",
    "=",
    "'",
]
LONGEST_SECONDS = 0.5


def random_text(generator: random.Random) -> str:
    kind = generator.randrange(3)
    if kind == 0:
        return "".join(
            chr(generator.choice([generator.randrange(32, 127), generator.randrange(0x3000)])) for _ in range(30)
        )
    parts = [generator.choice(WORDS if generator.random() < 0.55 else SIGNS) for _ in range(generator.randrange(1, 25))]
    return (" " if kind == 1 else "").join(parts)


def random_expression(generator: random.Random, depth: int) -> str:
    """Of the right form; whether its values fit is another matter."""
    if depth == 0:
        return generator.choice(["x", "y", "h", "iter", "2", "0.5", "-1", "inf", "x[0]", "y[-1]", "x[:, 1]", "99999"])
    one, other = random_expression(generator, depth - 1), random_expression(generator, generator.randrange(depth))
    match generator.randrange(5):
        case 0:
            return f"({one}) {generator.choice(['+', '-', '*', '/', '//', '%', '**'])} {other}"
        case 1:
            return f"{one} {generator.choice(['<', '==', '!=', '>=', 'and', 'or'])} {other}"
        case 2:
            return f"{generator.choice(FUNCTION_NAMES)}({one})"
        case 3:
            return f"not {one}" if generator.random() < 0.5 else f"-({one})"
    return f"({one})[{other}]"


def seconds(act: Callable[[], object]) -> float:
    """The processor time of an act; taken once more if it was long, for a collection of garbage may fall into it."""
    taken = []
    while len(taken) < 2 and (not taken or taken[0] >= LONGEST_SECONDS):
        begun = time.process_time()
        with contextlib.suppress(StepperError):
            act()
        taken.append(time.process_time() - begun)
    return min(taken)


def tried(text: str) -> Expression | None:
    assert seconds(lambda: parse(text)) < LONGEST_SECONDS, text
    try:
        return parse(text)
    except ExpressionError as error:
        assert "^" in str(error)
        assert len(str(error)) < 1000
        return None


def test_random_texts_parse_or_are_refused() -> None:
    generator = random.Random(3)
    parsed = sum(tried(random_text(generator)) is not None for _ in range(20_000))
    assert parsed > 200


def test_random_expressions_have_values_or_a_message() -> None:
    generator = random.Random(4)
    evaluated = 0
    for _ in range(5000):
        text = random_expression(generator, generator.randrange(1, 6))
        expression = tried(text)
        if expression is None:
            continue
        for act in (expression.evaluate, expression.truth):
            assert seconds(lambda act=act: act(SCOPE)) < LONGEST_SECONDS, text
            with contextlib.suppress(StepperError):
                act(SCOPE)
                evaluated += 1
    assert evaluated > 1500


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1000,
        "-" * 999 + "x",
        "not " * 249 + "x",
        "x[" * 499,
        "[" * 1000,
        "abs(" * 240 + "x",
        "x" + "**x" * 300,
        "x" + "+x" * 499,
        "x" + " and x" * 160,
        "x" + "<x" * 499,
        "x" + "[0]" * 333,
        "9" * 1000,
        "x" * 1_000_000,
        "(" * 1_000_000,
        "`" * 1000,
        "`" * 999,
        "a::" * 333,
        "a@1::" * 199 + "a",
        "a." * 499 + "a",
        ":" * 1000,
        "." * 1000,
        "1e" * 500,
        "1e999999999",
        " " * 1000,
        "x@" + "9" * 900,
        "id=" + "9" * 900,
        "x:" + "9" * 900,
        "\0" * 50,
        "\ud800",
        "[" + "1," * 400 + "]",
    ],
)
def test_hostile_texts_are_refused_at_once(text: str) -> None:
    expression = tried(text)
    if expression is not None:
        with contextlib.suppress(StepperError):
            expression.evaluate(SCOPE)


def test_the_longest_expression_that_is_allowed_can_be_evaluated_deep_in_a_stack() -> None:
    def deep(levels: int) -> object:
        if levels:
            return deep(levels - 1)
        return parse("h" + "+h" * 149).evaluate(SCOPE)

    assert deep(300) == 300
