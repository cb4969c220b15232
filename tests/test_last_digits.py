"""What a golden forgives: last digits of computed numbers, and nothing else."""

from __future__ import annotations

from tests.last_digits import difference
from tests.tables import each_row

GOLDEN = (
    "min 0.002  max 0.241 at [0,9]  nan 0  mean 0.062\n [1] 3.3336463  before 1.1713713   change +2.162    40555a76"
)


@each_row(
    ("before", "after"),
    [
        ("0.062", "0.063"),
        ("1.1713713   ", "1.1713712   "),
        ("1.1713713   ", "1.171371    "),
        ("40555a76", "40555a7a"),
    ],
)
def test_last_digits_may_differ(before: str, after: str) -> None:
    assert before in GOLDEN
    assert difference(GOLDEN.replace(before, after), GOLDEN) == ""


@each_row(
    ("before", "after"),
    [
        ("0.062", "0.064"),
        ("1.1713713", "1.1714713"),
        ("+2.162", "-2.162"),
        ("40555a76", "40565a76"),
        ("[0,9]", "[0,8]"),
        ("nan 0", "nan 1"),
        ("nan 0", "inf 0"),
        ("3.3336463", "nan"),
        (" [1]", "[1]"),
        ("\n", "\n\n"),
        ("    40555a76", ""),
    ],
)
def test_all_else_is_a_difference(before: str, after: str) -> None:
    assert before in GOLDEN
    assert difference(GOLDEN.replace(before, after), GOLDEN).startswith("line ")
