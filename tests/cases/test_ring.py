"""The last calls of each stream, and what an application carries from call to call."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepper.cases.capturing import CallRing, HeardCall, carried_names, outputs_of_all, unchanged_states
from stepper.cases.hooks import ObservedCall
from tests.tables import each_row


def call(number: int, stream: int = 0, **inputs: object) -> ObservedCall:
    return ObservedCall(number, number, {name: np.asarray(value) for name, value in inputs.items()}, {}, None, stream)


def outputs(y: int, following: int, everything: list[int]) -> dict[str, np.ndarray]:
    return {"y": np.array(y), "next": np.array(following), "all": np.array(everything)}


def test_each_stream_keeps_its_last_calls_in_the_order_in_which_they_began() -> None:
    ring = CallRing(3)
    calls = [call(number, number % 2, x=number) for number in range(1, 11)]
    for one in calls:
        ring.begun(one)
    assert [heard.call.number for heard in ring.up_to(calls[9]).calls] == [6, 8, 10]
    assert [heard.call.number for heard in ring.up_to(calls[7]).calls] == [6, 8], "a later one may have begun"
    assert [heard.call.number for heard in ring.up_to(calls[0]).calls] == [1], "one that has gone is alone"
    value = np.zeros(2)
    ring.ended(calls[9], {"y": value})
    value += 1
    (kept,) = [heard.outputs for heard in ring.up_to(calls[9]).calls if heard.outputs is not None]
    assert kept["y"].tolist() == [0, 0]


def test_requests_made_for_one_call_each_are_not_all_kept() -> None:
    ring = CallRing(2)
    calls = [call(number, number) for number in range(2000)]
    for one in calls:
        ring.begun(one)
    assert len(ring._streams) < 300


def test_what_is_given_back_each_time_is_carried() -> None:
    heard = [
        HeardCall(call(1, x=1, state=0, rate=5, cache=[0]), outputs(7, 10, [0, 1])),
        HeardCall(call(2, x=7, state=10, rate=5, cache=[0, 1]), outputs(5, 20, [0, 1, 2])),
        HeardCall(call(3, x=3, state=20, rate=5, cache=[0, 1, 2])),
    ]
    assert carried_names(heard) == (("next", "state"), ("all", "cache"))
    assert carried_names(heard[:1]) == ()
    assert outputs_of_all(heard, ()) == []
    two = outputs_of_all(heard[:2], carried_names(heard))
    assert [value.tolist() for value in two] == [[7, 5], 20, [0, 1, 2]]


@each_row(
    ("given", "made", "found"),
    [
        ([[0.0] * 4] * 3, [[1.0] * 4, [2.0] * 4, [3.0] * 4], (("next", "state"),)),
        ([[0.0] * 4, [1.0] * 4, [2.0] * 4], [[1.0] * 4, [2.0] * 4, [3.0] * 4], ()),  # it is given back
        ([[0.0] * 4] * 3, [[1.0] * 4] * 3, ()),  # it never changes
        ([[0.0] * 4] * 3, [[1.0] * 5, [2.0] * 5, [3.0] * 5], ()),  # of another shape
        ([[0.0]] * 3, [[1.0], [2.0], [3.0]], ()),  # a setting
        ([[0.0] * 4] * 2, [[1.0] * 4, [2.0] * 4], ()),  # too few calls
    ],
)
def test_a_state_that_is_never_given_back(given: list[Any], made: list[Any], found: tuple[Any, ...]) -> None:
    heard = [
        HeardCall(call(number, x=number, state=state), {"y": np.array(number), "next": np.array(after)})
        for number, (state, after) in enumerate(zip(given, made, strict=True), 1)
    ]
    assert unchanged_states(heard) == found
