"""`x` is what an iteration reads, `x'` what it carries to the next one: in values, expressions and breakpoints."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.debug.story.story_texts import verdict
from tests.debug.debugged import at_iteration, recorded, sample


@pytest.mark.parametrize(
    ("name", "loop", "carried"),
    [
        ("specification_lstm", "lstm", ("h", "c")),
        ("date_normaliser", "prim::Loop/Loop", ("tok.13", "h.9", "i.11")),
    ],
)
def test_what_an_iteration_carries_is_what_the_next_one_reads(name: str, loop: str, carried: tuple[str, ...]) -> None:
    debugger = sample(name)
    expected = recorded(debugger, loop, list(carried))
    at_iteration(debugger, 5)
    for one in carried:
        for iteration in (0, 4, len(expected) - 2):
            np.testing.assert_array_equal(debugger.value(f"{one}@{iteration}"), expected[iteration][one])
            np.testing.assert_array_equal(debugger.value(f"{one}'@{iteration}"), expected[iteration + 1][one])
        series = debugger.over_iterations(f"{one}'", "max").values[:-1]
        assert [float(value) for value in series] == [float(found[one].max()) for found in expected[1:]]


def test_a_number_of_the_loop_can_be_typed_as_it_is_shown() -> None:
    debugger = sample("date_normaliser")
    (found,) = debugger.find("tok' == 12", "all").moments
    assert "#10" in found.place
    assert not debugger.find("tok == 12", "all").moments
    debugger.break_when("tok' == 12")
    assert debugger.continue_().iteration == 10
    assert debugger.evaluate("tok'") == 12


@pytest.mark.parametrize("name", ["date_normaliser", "while_loop", "do_while_loop", "for_with_condition"])
def test_the_names_of_why_a_loop_ended_can_be_typed(name: str) -> None:
    debugger = sample(name)
    debugger.last()
    told, _, _ = verdict(debugger.story(ends=True))[0].partition(", so ")
    inside = sample(name)
    at_iteration(inside, 1)
    for shown, number in (part.split(" = ") for part in told.split(", ")):
        value = inside.value(f"{shown}@-1")
        assert isinstance(value, np.ndarray) and float(value.reshape(-1)[0]) == float(number)
