"""Calls that a worker performs beside others: what they give, and which of them is blamed for an end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.element_types import Array
from stepper.processes.process_messages import Reply, WorkerEnded, WorkerLimit
from stepper.processes.programs import WorkerProgram
from stepper.processes.worker import ActProgress, Limits, RemoteFunction, Worker
from tests.processes.played_worker import Define, Fail
from tests.processes.served_at_once import CRASH, ECHO, HANG, MEET, NO_MEMORY, REFUSE
from tests.processes.served_when_told import TOLD

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")


@pytest.fixture
def worker() -> Iterator[Worker]:
    found = Worker(WorkerProgram("SlowRT", "tests.processes.served_at_once"))
    yield found
    found.close()


def function(worker: Worker, name: str = "the model", seconds: float = 60) -> RemoteFunction:
    return RemoteFunction(worker, lambda key: (Define(key), []), name, Limits(seconds))


def numbers(first: int, size: int = 3) -> Array:
    return np.array([first, *range(size)], np.float32)


def held(begun: Any, expected: Array) -> None:
    np.testing.assert_array_equal(begun()[0], expected)


def test_two_calls_run_at_the_same_time_and_are_collected_in_any_order(worker: Worker) -> None:
    one, other = (function(worker).begin(numbers(MEET, size)) for size in (1, 2))
    held(function(worker).begin(numbers(ECHO)), numbers(ECHO))
    np.testing.assert_array_equal(function(worker)(numbers(ECHO, 5))[0], numbers(ECHO, 5))
    held(other, numbers(MEET, 2))
    held(one, numbers(MEET, 1))
    assert worker.generation == 1


def test_where_several_were_at_work_each_is_tried_by_itself_and_only_the_one_at_fault_is_blamed(
    worker: Worker,
) -> None:
    good, bad, waiting = function(worker), function(worker, "the bad one"), function(worker)
    begun = [good.begin(numbers(ECHO)), bad.begin(numbers(CRASH)), waiting.begin(numbers(HANG))]
    held(begun[0], numbers(ECHO))
    with pytest.raises(WorkerEnded, match=r"crashed \(SIGSEGV\) while compiling the bad one"):
        begun[1]()
    before = worker.generation
    with pytest.raises(WorkerEnded):
        bad(numbers(CRASH))
    held(good.begin(numbers(ECHO)), numbers(ECHO))
    held(good.begin(numbers(CRASH - CRASH, 7)), numbers(ECHO, 7))
    assert worker.generation <= before + 1, "what is at fault is not tried again"
    assert not worker._under_way, "from then on nothing is begun"


def test_an_ordinary_call_beside_one_that_crashes_is_not_blamed(worker: Worker) -> None:
    bad = function(worker, "the bad one").begin(numbers(CRASH))
    np.testing.assert_array_equal(function(worker)(numbers(ECHO))[0], numbers(ECHO))
    with pytest.raises(WorkerEnded, match="the bad one"):
        bad()


def test_an_ordinary_call_that_crashes_takes_none_that_was_begun_with_it(worker: Worker) -> None:
    good = function(worker).begin(numbers(ECHO))
    with pytest.raises(WorkerEnded, match="the bad one"):
        function(worker, "the bad one")(numbers(CRASH))
    held(good, numbers(ECHO))


def test_the_only_one_is_blamed_at_once(worker: Worker) -> None:
    bad = function(worker, "the bad one")
    with pytest.raises(WorkerEnded, match="the bad one"):
        bad.begin(numbers(CRASH))()
    assert worker.generation == 1
    with pytest.raises(WorkerEnded):
        bad.begin(numbers(CRASH))()
    assert worker.generation == 1, "it is not tried again"
    held(function(worker).begin(numbers(ECHO)), numbers(ECHO))


def test_the_limit_of_time_is_that_of_the_stage_that_it_is_at(worker: Worker) -> None:
    slow = function(worker, "the slow one", 0.5)
    with pytest.raises(WorkerLimit, match=r"did not finish within 0\.5 s while compiling the slow one"):
        slow.begin(numbers(HANG))()
    held(function(worker).begin(numbers(ECHO)), numbers(ECHO))


def test_what_hangs_beside_others_is_told_as_what_it_is(worker: Worker) -> None:
    others = [function(worker).begin(numbers(ECHO, size)) for size in range(3)]
    slow = function(worker, "the slow one", 0.5).begin(numbers(HANG))
    with pytest.raises(WorkerLimit, match="the slow one"):
        slow()
    for size, one in enumerate(others):
        held(one, numbers(ECHO, size))


def test_what_takes_too_long_is_not_waited_for_twice(worker: Worker) -> None:
    beside = function(worker).begin(numbers(HANG))
    with pytest.raises(WorkerLimit, match="the slow one"):
        function(worker, "the slow one", 0.5).begin(numbers(HANG))()
    held(function(worker).begin(numbers(ECHO)), numbers(ECHO))
    assert worker.generation == 2, "alone it would have taken as long, and ended another process"
    del beside


def test_what_waits_behind_others_that_hang_is_tried_by_itself(worker: Worker) -> None:
    held(function(worker).begin(numbers(ECHO)), numbers(ECHO))
    slow = [function(worker, "the slow one", 0.5).begin(numbers(HANG)) for _ in range(2)]
    held(function(worker, "the one behind", 0.5).begin(numbers(ECHO)), numbers(ECHO))
    for one in slow:
        with pytest.raises(WorkerLimit, match="the slow one"):
            one()


@pytest.mark.parametrize("beside", [False, True])
def test_refusals_and_ends_of_memory_are_those_of_the_call(worker: Worker, beside: bool) -> None:
    other = function(worker).begin(numbers(ECHO)) if beside else None
    with pytest.raises(RuntimeError, match="it is too large"):
        function(worker).begin(numbers(REFUSE))()
    with pytest.raises(WorkerLimit, match="ran out of memory"):
        function(worker, "the large one").begin(numbers(NO_MEMORY))()
    if other is not None:
        held(other, numbers(ECHO))


def test_what_nobody_waits_for_is_dropped(worker: Worker) -> None:
    begun = function(worker).begin(numbers(ECHO))
    (ticket,) = worker._under_way
    del begun
    assert (worker._under_way, worker._dropped) == ({}, [ticket])
    function(worker)(numbers(ECHO))
    assert worker._dropped == []
    collected = function(worker).begin(numbers(ECHO))
    collected()
    del collected
    assert worker._dropped == []


def test_after_the_process_was_given_up_what_was_begun_is_computed_all_the_same(worker: Worker) -> None:
    begun = function(worker).begin(numbers(ECHO))
    worker.close()
    held(begun, numbers(ECHO))


def test_definitions_are_forgotten_while_others_are_at_work(worker: Worker) -> None:
    """What was compiled for a part of a large network need not stay until all of it is compared."""
    waiting, forgotten = function(worker).begin(numbers(MEET)), function(worker)
    forgotten(numbers(ECHO))
    key = forgotten._key
    del forgotten
    function(worker)(numbers(ECHO))
    assert key in told(worker)
    function(worker).begin(numbers(MEET))()
    waiting()


def test_what_was_given_up_at_work_keeps_its_definition_until_it_ends(worker: Worker) -> None:
    given_up = function(worker)
    key, begun = given_up._key, given_up.begin(numbers(MEET))
    other, waiting = function(worker), function(worker).begin(numbers(ECHO))
    waiting()
    del begun, given_up
    assert key not in (*told(worker), *told(worker))
    other.begin(numbers(MEET))()
    for _ in range(100):
        if key in told(worker):
            return
    raise AssertionError("it is never forgotten")


def told(worker: Worker) -> list[int]:
    (found,) = worker.ask(Fail("forgotten"), subject="the model")
    return list(map(int, found))


def test_a_large_request_does_not_wait_until_the_program_has_loaded(tmp_path: Path) -> None:
    told = tmp_path / "told"
    worker = Worker(WorkerProgram("SlowRT", "tests.processes.served_when_told", ((TOLD, str(told)),)))
    large = numbers(ECHO, 2**21)
    try:
        begun = function(worker).begin(large)  # eight times what a pipe holds
        assert not told.exists()
        told.touch()
        held(begun, large)
    finally:
        worker.close()


@pytest.mark.parametrize("begins", [False, True])
def test_a_program_that_ends_while_it_loads_is_told_as_that(begins: bool) -> None:
    worker = Worker(WorkerProgram("SlowRT", "tests.processes.served_when_told", ((TOLD, ""),)))
    try:
        with pytest.raises(WorkerEnded, match=r"ended with exit code 7 while being loaded for the model"):
            function(worker).begin(numbers(ECHO))() if begins else function(worker)(numbers(ECHO))
    finally:
        worker.close()


def test_a_definition_is_said_once_and_waits_for_no_answer(worker: Worker) -> None:
    echo = function(worker)
    heard: list[ActProgress] = []
    take = ActProgress.take

    def taken(self: ActProgress, reply: Reply, arrays: list[Array]) -> None:
        heard.append(self)
        take(self, reply, arrays)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ActProgress, "take", taken)
        begun = echo.begin(numbers(ECHO))
        assert not heard
        held(begun, numbers(ECHO))
        held(echo.begin(numbers(ECHO, 4)), numbers(ECHO, 4))
    assert len(set(heard)) == 2, "it hears of the two calls alone"
