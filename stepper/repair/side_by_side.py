"""Trials in several processes: forked from this one, so that each has the model and the values of its first run."""

from __future__ import annotations

import multiprocessing
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor

from stepper.processes.starting import cores
from stepper.repair.edit import RepairEdit
from stepper.repair.replay import Agreement, Replayer

Try = Callable[[Replayer, RepairEdit], tuple[RepairEdit, Agreement]]
_CHUNK = 24
_AHEAD = 2
"""Chunks that each process is given: the one that it is at, and the next."""
_shared: list[tuple[Replayer, Sequence[RepairEdit], Try]] = []
"""Subject of the trials, which a forked process finds here."""


def can_fork() -> bool:
    """True if this process may be forked and there is a core for it."""
    has_fork = "fork" in multiprocessing.get_all_start_methods()
    return has_fork and cores() > 1 and threading.active_count() == 1


def tried_in_processes(
    replayer: Replayer, edits: Sequence[RepairEdit], attempt: Try
) -> Iterator[tuple[RepairEdit, Agreement]]:
    """Yield what becomes of each edit, in their order. A closed iterator ends the processes."""
    _shared.append((replayer, edits, attempt))
    count = cores()
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("fork"))
    begins, pending = deque(range(0, len(edits), _CHUNK)), deque[tuple[int, Future[list[_Found]]]]()
    try:
        while begins or pending:
            while begins and len(pending) < _AHEAD * count:
                begin = begins.popleft()
                pending.append((begin, pool.submit(_chunk, begin)))
            begin, future = pending.popleft()
            for edit, (numbers, agreement) in zip(edits[begin : begin + _CHUNK], future.result(), strict=True):
                yield (edit.solved(numbers) if numbers else edit), agreement
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        _shared.clear()


_Found = tuple[tuple[float, ...], Agreement]


def _chunk(begin: int) -> list[_Found]:
    replayer, edits, attempt = _shared[-1]
    found = list[_Found]()
    for edit in edits[begin : begin + _CHUNK]:
        made, agreement = attempt(replayer, edit)
        found.append((made.numbers, agreement))
    return found
