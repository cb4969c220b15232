"""Globs and regular expressions over names; Python's `re` and `fnmatch` are the oracle where they are quick enough."""

from __future__ import annotations

import fnmatch
import random
import re
import time

import pytest

from stepper.name_patterns import LONGEST_PATTERN, PatternError, glob, regex
from tests.tables import each_row

LETTERS = "abA_1./ -"


def random_regex(generator: random.Random, depth: int) -> str:
    if depth == 0 or generator.random() < 0.3:
        return generator.choice(
            [*"abA_1/", ".", r"\.", r"\d", r"\w", r"\W", r"\S", "[ab]", "[^a/]", "[a-c1]", "[]a]", "[a-]"]
        )
    one = random_regex(generator, depth - 1)
    kind = generator.randrange(7)
    if kind == 0:
        return f"({one}|{random_regex(generator, depth - 1)})"
    if kind == 1:
        return f"(?:{one}){generator.choice(['*', '+', '?', '*?', ''])}"
    return one + random_regex(generator, depth - 1)


def random_name(generator: random.Random) -> str:
    return "".join(generator.choice(LETTERS) for _ in range(generator.randrange(12)))


def test_a_regular_expression_is_found_where_python_finds_it() -> None:
    generator = random.Random(5)
    found = 0
    for _ in range(1000):
        text = random_regex(generator, 4)
        text = f"{generator.choice(['', '', '^'])}(?:{text}){generator.choice(['', '', '$'])}"
        pattern, expected = regex(text), re.compile(text)
        for _ in range(8):
            name = random_name(generator)
            assert pattern.found_in(name) == bool(expected.search(name)), (text, name)
            found += bool(expected.search(name))
    assert 700 < found < 7300


def test_a_glob_fits_what_fnmatch_fits() -> None:
    generator = random.Random(6)
    for _ in range(1000):
        text = "".join(generator.choice("abA_1./**?") for _ in range(generator.randrange(1, 8)))
        pattern = glob(text)
        for _ in range(5):
            name = random_name(generator)
            assert pattern.found_in(name) == fnmatch.fnmatchcase(name, text), (text, name)


@each_row(
    "text",
    ["(a+)+b", "(a*)*b", "(a|a)*b", "(a|aa)+b", ".*.*.*.*.*b", "((a+)+)+b", "(.*a){0}".replace("{0}", "") * 20 + "b"],
)
def test_no_pair_of_pattern_and_name_takes_long(text: str) -> None:
    begun = time.process_time()
    assert not regex(text).found_in("a" * 5000)
    assert not glob("*a" * 90 + "b").found_in("a" * 5000)
    assert time.process_time() - begun < 20  # what backtracks takes years


@each_row(
    ("text", "words"),
    [
        ("a(b", "missing \\)"),
        ("a)b", "unexpected \\)"),
        ("*a", "no argument for repetition"),
        ("[a", "missing \\]"),
        ("[b-a]", "invalid character class range"),
        ("a(?=b)", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("a\\", "trailing"),
        ("(((a{1000}){1000}){1000})", "invalid repetition size|too large"),
        ("\ud800", "not text"),
        ("a" * (LONGEST_PATTERN + 1), f"at most {LONGEST_PATTERN}"),
    ],
)
def test_what_is_no_pattern_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(PatternError, match=words):
        regex(text)
