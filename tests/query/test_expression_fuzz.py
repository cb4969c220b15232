"""Whatever is typed: an expression or an ExpressionError, in no time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis.strategies import SearchStrategy

from stepper.errors import StepperError
from stepper.query.expressions import FUNCTION_NAMES, Expression, ExpressionError, parse
from tests.debug.scopes import Values
from tests.tables import each_row

SCOPE = Values(
    {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "y": np.array([1, -2, 3]), "h": np.float16(2)},
    {"x": np.ones((2, 3), np.float32)},
    iteration=2,
)
OPERANDS = "x y h z iter and or not true false nan inf 0 1 2 0.5 1e300 99 x@1 a::b:0@2 `q` id=3"
WORDS = [*FUNCTION_NAMES, *OPERANDS.split()]
SIGNS = [*"+-*/%<()[],:@`='", "//", "**", "<=", "==", "!=", "..."]
LONGEST_SECONDS = 0.5


_PARTS = some.lists(some.sampled_from(WORDS) | some.sampled_from(SIGNS), min_size=1, max_size=24)
TEXTS = some.text(max_size=30) | _PARTS.map(" ".join) | _PARTS.map("".join)


def larger(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    """Expressions of expressions; whether their values fit is another matter."""
    arithmetic = some.sampled_from(["+", "-", "*", "/", "//", "%", "**"])
    comparison = some.sampled_from(["<", "==", "!=", ">=", "and", "or"])
    return some.one_of(
        some.builds("({}) {} {}".format, inner, arithmetic, inner),
        some.builds("{} {} {}".format, inner, comparison, inner),
        some.builds("{}({})".format, some.sampled_from(FUNCTION_NAMES), inner),
        inner.map("not {}".format),
        inner.map("-({})".format),
        some.builds("({})[{}]".format, inner, inner),
    )


_SMALLEST = ["x", "y", "h", "iter", "2", "0.5", "-1", "inf", "x[0]", "y[-1]", "x[:, 1]", "99999"]
EXPRESSIONS = some.recursive(some.sampled_from(_SMALLEST), larger, max_leaves=20)


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


@given(TEXTS)
@settings(max_examples=300)
def test_a_text_is_an_expression_or_refused(text: str) -> None:
    tried(text)


def test_an_expression_has_a_value_or_a_message() -> None:
    evaluated = 0

    @given(EXPRESSIONS)
    @settings(max_examples=300)
    def check(text: str) -> None:
        nonlocal evaluated
        expression = tried(text)
        if expression is None:
            return
        for act in (expression.evaluate, expression.truth):
            assert seconds(partial(act, SCOPE)) < LONGEST_SECONDS
            with contextlib.suppress(StepperError):
                act(SCOPE)
                evaluated += 1

    check()
    assert evaluated > 100


@each_row(
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
