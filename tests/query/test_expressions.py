"""What expressions mean (Python and numpy are the oracle), and what is refused."""

from __future__ import annotations

import random
import re
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from msgspec.structs import replace

from stepper.element_types import ELEMENT_TYPES, FLOATING
from stepper.query.address_syntax import Address, parse_address
from stepper.query.expression_syntax import with_addresses
from stepper.query.expression_values import FUNCTIONS
from stepper.query.expressions import FUNCTION_NAMES, ExpressionError, parse
from tests.debug.scopes import Values
from tests.tables import each_row

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
Y = np.array([3, -2, 5], np.int32)
NAMES = {"x": X, "y": Y, "s": np.float32(2.5), "k": np.int64(-3), "b": np.array([True, False, True])}


def value_of(text: str, **now: Any) -> Any:
    return parse(text).evaluate(Values(now or NAMES, iteration=4))


def holds(text: str, **now: Any) -> bool:
    return parse(text).truth(Values(now or NAMES, iteration=4))


def the_complaint(text: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    return caught.value


ATOMS = [
    "x",
    "y",
    "s",
    "k",
    "x[0]",
    "x[-1, 1:3]",
    "x[..., ::2]",
    "y[1]",
    "2",
    "0.5",
    "7",
    "1.5e1",
    "(y)",
    "abs(y)",
    "-k",
]


def random_arithmetic(generator: random.Random, depth: int) -> str:
    if depth == 0 or generator.random() < 0.2:
        return generator.choice(ATOMS)
    left, right = (random_arithmetic(generator, depth - 1) for _ in range(2))
    kind = generator.randrange(5)
    if kind == 0:
        return f"-{left}" if generator.random() < 0.5 else f"({left})"
    return (
        f"{left} {generator.choice(['+', '-', '*', '/', '//', '%', '<', '>=', '=='])} {right}"
        if kind < 4
        else f"({left}) ** 2"
    )


def plain_python(text: str) -> Any:
    with np.errstate(all="ignore"):
        return eval(text, {"__builtins__": {}, "abs": abs}, dict(NAMES))


def test_arithmetic_is_that_of_python_and_numpy() -> None:
    generator = random.Random(1)
    compared = 0
    for _ in range(4000):
        text = random_arithmetic(generator, 3)
        try:
            expected = plain_python(text)
        except (ValueError, TypeError, ZeroDivisionError, OverflowError):
            continue  # shapes that do not fit, the truth of an array in a chained comparison, a literal zero
        if text.count("<") + text.count(">=") + text.count("==") > 1:
            continue  # chained comparisons of arrays: Python cannot
        actual = value_of(text)
        np.testing.assert_array_equal(actual, expected, err_msg=text)
        assert np.asarray(actual).dtype == np.asarray(expected).dtype, text
        compared += 1
    assert compared > 1500


def test_logic_on_scalars_is_that_of_python() -> None:
    generator = random.Random(2)
    words = ["s > 2", "k < -5", "s == 2.5", "not k == -3", "0 < s < 3", "5 < s != 9", "y[0] >= 3 > k", "b[0]", "b[1]"]
    for _ in range(2000):
        text = generator.choice(words)
        for _ in range(generator.randrange(5)):
            other = generator.choice(words)
            text = f"{text} {generator.choice(['and', 'or'])} {other if generator.random() < 0.6 else f'not ({other})'}"
            text = f"({text})" if generator.random() < 0.3 else text
        assert holds(text) == bool(plain_python(text)), text


@each_row(
    ("text", "expected"),
    [
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4),
        ("2 ** -1", 0.5),
        ("7 // 2 * 2 % 4", 2),
        ("-x[0,0,0] + 1", 8),
        ("x[1, 2, 3]", 16),
        ("x[iter - 4, 0, 0]", -7),
        ("x[0][1][2]", -1),
        ("size(x)", 24),
        ("rank(x)", 3),
        ("shape(x)", (2, 3, 4)),
        ("shape(x)[1:]", (3, 4)),
        ("shape(x)[-1] * 2", 8),
        ("shape(x) == [2, 3, 4]", True),
        ("shape(x) != shape(y)", True),
        ("dtype(x)", "f32"),
        ("dtype(x) == f32", True),
        ("f32 != dtype(y)", True),
        ("dtype(x > 1) == boolean", True),
        ("argmax(x)", 23),
        ("argmin(y)", 1),
        ("sum(y)", 6),
        ("mean(y)", 2.0),
        ("max(abs(y))", 5),
        ("norm(y) ** 2", 38.0),
        ("any(x > 16)", False),
        ("all(x >= -7)", True),
        ("any(x > 15 and x < 17)", True),
        ("sum(x[x > 14])", 31),
        ("all(not b == false)", False),
        ("iter", 4),
        ("true + true", 2),
        ("not 3", False),
        ("inf > 1e300", True),
        ("nan == nan", False),
        ("isnan(nan)", True),
        ("1 / 0", np.inf),
        ("0 / 0 != 0 / 0", True),
    ],
)
def test_an_expression_has_its_value(text: str, expected: Any) -> None:
    assert value_of(text) == pytest.approx(expected) if isinstance(expected, float) else value_of(text) == expected


@each_row("name", ["f16", "bf16", "f32", "f8e4m3", "f8e5m2", "f4e2m1", "f64"])
@each_row("text", ["0.1", "0.3", "-1.7", "3", "0.7"])
def test_a_number_of_the_text_takes_the_tensors_type(name: str, text: str) -> None:
    tensor = np.array([float(text)]).astype(ELEMENT_TYPES[name].dtype)
    assert holds(f"x == {text}", x=tensor)
    assert holds(f"{text} == x", x=tensor[0])
    assert holds(f"{text} <= x <= {text} and not x != {text}", x=tensor)


@each_row("name", sorted(FLOATING, key=str))
def test_a_number_beyond_the_tensors_type_stays_itself(name: np.dtype[Any]) -> None:
    largest = np.array([ml_dtypes.finfo(name).max]).astype(name)
    for bound in ("1e300", "600000", "inf"):
        if float(bound) > float(largest[0]):
            assert holds(f"all(x < {bound}) and {bound} > x", x=largest)
    assert not holds("x == nan or x < nan", x=largest)


@each_row("name", ["i4", "u1", "u2", "u3", "u4", "u6"])
def test_packed_codes_count_as_numbers(name: str) -> None:
    bits, dtype = ELEMENT_TYPES[name].bits, ELEMENT_TYPES[name].dtype
    codes = np.arange(2**bits, dtype=np.uint8)
    numbers = codes.astype(int) if name != "i4" else np.where(codes > 7, codes.astype(int) - 16, codes)
    tensor = codes.view(dtype) if dtype.names else numbers.astype(dtype)
    assert value_of("x + 300", x=tensor).tolist() == (numbers + 300).tolist()
    assert value_of("sum(x)", x=tensor) == numbers.sum()
    assert holds("max(x) < 300", x=tensor)
    assert value_of("x", x=tensor) is tensor
    assert value_of("dtype(x)", x=tensor) == name


def test_nf4_counts_as_what_its_codes_stand_for() -> None:
    tensor = np.array([0, 7, 15], np.uint8).view(ELEMENT_TYPES["nf4"].dtype)
    assert value_of("x", x=tensor) is tensor
    assert value_of("x * 2", x=tensor).tolist() == [-2, 0, 2]


def test_reductions_of_narrow_floats_do_not_overflow_or_stall() -> None:
    many = np.full(5000, 100, np.float16)
    assert value_of("sum(x)", x=many) == 500_000
    ones = np.ones(5000, ml_dtypes.bfloat16)
    assert value_of("sum(x)", x=ones) == 5000
    assert value_of("mean(x)", x=ones) == 1
    assert value_of("norm(x)", x=np.full(4, 1e30, np.float32)) == np.float32(2e30)


def test_integers_of_64_bits_are_exact() -> None:
    assert holds("x == 9223372036854775807 and x != 9223372036854775806", x=np.int64(2**63 - 1))
    assert holds("x > 18446744073709551614", x=np.uint64(2**64 - 1))
    assert holds("x >= -9223372036854775808", x=np.int64(-(2**63)))


def test_prev_and_ref_reach_every_address_inside_them() -> None:
    scope = Values({"x": np.float32(1)}, {"x": np.float32(5), "y": np.float32(2)}, {"x": np.float32(9)}, iteration=3)
    assert parse("x + prev(x * y + iter) + ref(x)").evaluate(scope) == 1 + (5 * 2 + 2) + 9
    expression = parse("abs(x - prev(x)) < ref(z@3) * iter")
    assert [str(address) for address in expression.addresses] == ["x", "z@3"]
    assert [str(address) for address in expression.previous] == ["x"]
    assert [str(address) for address in expression.references] == ["z@3"]
    assert expression.reads_iteration
    assert not parse("x").reads_iteration


def test_what_need_not_be_read_is_not_read() -> None:
    scope = Values({"x": np.float32(1)}, iteration=0)
    assert not parse("iter > 0 and x > prev(x)").truth(scope)
    assert parse("iter == 0 or x > prev(x)").truth(scope)
    assert not parse("x < 0 < prev(x)").truth(scope)
    assert "x" in scope.read
    assert len(scope.read) == 1


def test_operands_are_addresses() -> None:
    texts = ["h_next", "h_next@7", "h_next@2:5", "h@*", "h@-1", "my_loop::h_next:1@7", "outer@3::inner@0::h"]
    texts += [
        "`prim::Loop/Loop`::`aten::add/Add`:0@2",
        "id=12",
        "vector.15",
        "`38`",
        "`a``b`",
        "größe",
        "branch::then::x",
    ]
    for text in texts:
        assert parse(f" {text}").addresses == (parse_address(text),)
        assert parse(f"{text}[0, :2] + 1").addresses == (parse_address(text),)
    assert [str(address) for address in parse("a/b-c*d").addresses] == ["a", "b", "c", "d"]
    assert [str(address) for address in parse("max + `iter` + max(mean)").addresses] == ["max", "`iter`", "mean"]
    assert parse("x[iter:]").addresses == (parse_address("x"),)
    for text in ("h[0,3]@7", "l@2::h:1[0,:8]@-1"):
        address = parse_address(text)
        assert parse(f"{text} + 1").addresses == (replace(address, index=()),)
        assert str(parse(f"max({text}) - y[0]").addresses[0]) == str(replace(address, index=()))


def test_an_expression_is_written_anew_with_other_addresses() -> None:
    def outside(address: Address) -> Address:
        return replace(address, levels=parse_address(f"l::{address.operation}").levels)

    text = "max(h[0, h]) + h@2 - h[1]@3 < prev(h) and iter(h) > 2"
    expected = "max(l::h[0, l::h]) + l::h@2 - l::h[1]@3 < prev(h) and iter(h) > 2"
    assert with_addresses(text, outside) == expected
    assert with_addresses(text, lambda address: address) == text


def test_scalars_arrays_of_rank_0_and_one_element_are_truth_values() -> None:
    for one in (np.float32(3), np.array(3.0), np.array([[3.0]])):
        assert holds("x > 2", x=one)
        assert holds("x", x=one)
        assert not holds("not x", x=one)
        assert not holds("x - 3", x=one)


@each_row("text", ["x > 3", "x", "x > 3 and x < 5", "not x", "0 < x < 9", "x[0:0]"])
def test_an_array_is_no_condition(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"use any\(\) or all\(\)"):
        holds(text)


@each_row("text", ["shape(x)", "dtype(x)"])
def test_a_shape_or_a_type_is_no_condition(text: str) -> None:
    with pytest.raises(ExpressionError, match="neither true nor false"):
        holds(text)


@each_row(
    ("text", "column", "words"),
    [
        ("x[0, > 3", 5, "expected a number, a name"),
        ("x > ", 3, "found the end"),
        ("x = 3", 2, "write =="),
        ("x && y", 2, "write and"),
        ("maen(x)", 0, "near is mean"),
        ("1 + isnam(x)", 4, "near are isnan"),
        ("open(x)", 0, "there are any, all"),
        ("eval(x)", 0, "no function"),
        ("__import__('os')", 11, "no texts"),
        ("x.shape()", 0, "near is shape"),
        ("max()", 4, "one operand"),
        ("np.abs(x)", 0, "near is abs"),
        ("(x", 2, "expected '\\)'"),
        ("x))", 1, "expected an operator or the end"),
        ("max(x, 1)", 5, "takes one operand"),
        ("prev(ref(x))", 5, "cannot stand inside"),
        ("x[1:2:0]", 6, "step"),
        ("x[1.5]", 2, "whole number"),
        ("x[..., ...]", 1, "stand once"),
        ("38abc > 1", 2, "begins with a digit"),
        ("`abc", 0, "not closed"),
        ("shape(x) > 3", 9, "only be compared by =="),
        ("dtype(x) == f31", 9, "such as f32"),
        ("-shape(x)", 1, "takes numbers and tensors"),
        ("3[0]", 1, "has no elements"),
        ("size(3)", 5, "takes a tensor"),
        ("99999999999999999999", 0, "more than 64 bits"),
        ("", 0, "found the end"),
        ("x if y else z", 2, "expected an operator"),
        ("lambda: 1", 6, "expected an operator"),
        ("x; y", 1, "';' is not part"),
        ("x@2[0]@3", 6, "an address begins with a name"),
        ("max(x)[0]@3", 9, "an address begins with a name"),
        ("x @ 3", 2, "an address begins with a name"),
        ("x\n.y", 2, "'\\.' is not part"),
    ],
)
def test_a_wrong_expression_is_refused_with_the_place(text: str, column: int, words: str) -> None:
    error = the_complaint(text)
    assert error.position == column
    assert error.exit_code == 2
    first, line, caret = str(error).split("\n")
    assert caret.index("^") - 2 == column
    assert line[2:] == text.replace("\n", " ")
    assert re.search(words, first), first


@each_row(
    ("text", "words"),
    [
        ("x + y", "shapes .* do not fit"),
        ("x[9]", "out of bounds"),
        ("s[0]", "too many indices: a scalar has no axes"),
        ("x[0,0,0,0]", "too many indices: 4 for 3 axes"),
        ("b - b", "boolean"),
        ("-b", "negative of boolean"),
        ("x[s]", "whole number or a mask"),
        ("y ** k", "negative integer powers"),
        ("max(x[0:0])", "zero-size"),
        ("t > 1", "texts"),
        ("isinf(t[0])", "texts"),
    ],
)
def test_values_that_do_not_fit_are_an_error_with_the_place(text: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words) as caught:
        value_of(text, **NAMES, t=np.array(["a", "b"], np.dtypes.StringDType()))
    assert "^" in str(caught.value)


def test_a_result_out_of_all_proportion_is_refused_before_it_is_made() -> None:
    column, row = np.zeros((100_000, 1), np.float32), np.zeros((1, 100_000), np.float32)
    for text in ("x * y", "x < y", "x < 1 and y < 1", "x < y < x"):
        with pytest.raises(ExpressionError, match="10,000,000,000 elements, the limit is 16,777,216"):
            value_of(text, x=column, y=row)


def test_towers_of_powers_stay_small() -> None:
    assert value_of("9 ** 9 ** 9 ** 9") == np.inf
    assert value_of("(0 - 9) ** 999999") == -np.inf
    assert value_of("*".join(["18446744073709551615"] * 30)) == np.inf
    assert np.isnan(value_of("(-8) ** 0.5"))


def test_no_warning_leaves_an_evaluation() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in (
            "1 / (s - s)",
            "mean(x[0:0])",
            "std(y[0:0])",
            "x / 0 % 0",
            "h > 1e300",
            "0 < h < 99999",
            "99999 < h < 1e300",
            "h * 1e300",
            "y // 0",
            "-inf + s",
        ):
            value_of(text, **NAMES, h=np.float16(3))


def test_nested_evaluations_do_not_disturb_one_another() -> None:
    inner = parse("x / 0")

    class Nested(Values):
        def value(self, address: Any) -> Any:
            return inner.evaluate(Values({"x": np.float32(1)}))

    assert parse("y * 0 != y * 0").truth(Nested())


def test_the_functions_are_those_of_the_documentation() -> None:
    assert set(FUNCTION_NAMES) == set(FUNCTIONS) | {"size", "rank", "shape", "dtype", "prev", "ref"}


def test_a_number_that_no_type_holds_is_refused_rather_than_taken_for_inf() -> None:
    assert "larger than f64 holds; write inf if that is meant" in str(the_complaint("x > 1e400"))
    assert value_of("inf") == np.inf and value_of("1e308") == 1e308
