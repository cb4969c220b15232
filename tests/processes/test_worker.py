"""A worker process, as far as we talk to it; a program that fails on request is in it."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.element_types import ELEMENT_TYPES
from stepper.errors import ExecutionError, LimitReached, StepperError, UsageError
from stepper.ir.weights import packed_size, unpack
from stepper.processes import process_messages, starting
from stepper.processes.process_messages import CallFunction, Completed, WorkerEnded, WorkerLimit
from stepper.processes.programs import WorkerProgram
from stepper.processes.worker import Limits, RemoteFunction, Worker
from tests.processes.played_worker import Define, Fail

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")


@pytest.fixture
def worker() -> Iterator[Worker]:
    found = Worker(WorkerProgram("SlowRT", "tests.processes.played_worker"))
    yield found
    found.close()
    assert found.pid() is None


def test_a_process_that_was_started_early_is_the_one_that_is_asked(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "_started", set())  # as in a process that started none before
    starting.start_early(worker.program)
    early = next(iter(starting._early.values())).process.pid
    assert asked(worker, "") == [] and worker.pid() == early
    worker.close()
    assert asked(worker, "") == [] and worker.pid() != early, "there is one of them"


def test_to_start_openvino_early_nothing_large_is_imported() -> None:
    code = "import sys, stepper.openvino.program, stepper.processes.starting; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "msgspec", "lxml"} & set(done.stdout.split())


def test_the_process_of_openvino_loads_no_parser_and_nothing_that_starts_processes() -> None:
    """What it is to compute is handed over as text; who waits for it waits for its imports."""
    code = "import sys, stepper.openvino.service; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "numpy" in loaded and not {"lxml", "stepper.ir.reader", "stepper.ops", "openvino"} & loaded
    assert not {"stepper.processes.worker", "stepper.processes.starting", "subprocess", "tempfile", "shutil"} & loaded


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how much its pipes hold")
def test_pipes_hold_as_much_as_the_system_gives() -> None:
    """With 64 KiB both processes change 16 times as often over what is compared of a large network."""
    import fcntl

    started = starting.started(WorkerProgram("SlowRT", "tests.processes.played_worker"), {}, 2**30)
    try:
        most = int(Path("/proc/sys/fs/pipe-max-size").read_text())
        for stream in (started.process.stdin, started.process.stdout):
            assert stream is not None
            held = fcntl.fcntl(stream.fileno(), fcntl.F_GETPIPE_SZ)
            assert held == 2**20 or most < 2**20
    finally:
        started.process.kill()
        started.process.communicate()
        started.messages.close()


def asked(worker: Worker, way: str, seconds: float = 60) -> Any:
    return worker.ask(Fail(way), subject="the model m.xml", limits=Limits(seconds))


@pytest.mark.parametrize(
    "fault, kind, code, said",
    [
        ("SIGSEGV", ExecutionError, 3, "SlowRT crashed (SIGSEGV) while compiling the model m.xml"),
        ("SIGFPE", ExecutionError, 3, "SlowRT crashed (SIGFPE) while compiling the model m.xml"),
        (
            "SIGKILL",
            ExecutionError,
            3,
            "SlowRT crashed (SIGKILL, which the system sends where memory runs out)",
        ),
        ("exit", ExecutionError, 3, "SlowRT ended with exit code 7 while compiling the model m.xml"),
        ("garbage", ExecutionError, 3, "SlowRT sent an unreadable answer while compiling the model m.xml"),
        ("memory", LimitReached, 4, "SlowRT ran out of memory (limit"),
        ("hang", LimitReached, 4, "SlowRT did not finish within 0.5 s while compiling the model m.xml"),
        ("refuse", UsageError, 2, "there is no such device"),
    ],
)
def test_each_end_is_an_exception_of_ours_and_the_next_request_is_answered(
    worker: Worker, fault: str, kind: type[StepperError], code: int, said: str
) -> None:
    with pytest.raises(kind) as raised:
        asked(worker, fault, 0.5 if fault == "hang" else 60)
    assert str(raised.value).startswith(said) and raised.value.exit_code == code
    assert asked(worker, "") == []


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("print SIGABRT", "SlowRT crashed (SIGABRT) while compiling the model m.xml (it printed: no such kernel)"),
        (
            "print exit",
            "SlowRT ended with exit code 7 while compiling the model m.xml (it printed: and then  [31mthis)",
        ),
        ("exit", "SlowRT ended with exit code 7 while compiling the model m.xml"),
    ],
)
def test_an_end_has_the_words_with_which_the_process_ended(worker: Worker, way: str, said: str) -> None:
    """Words of one before are of no end that comes later, and no terminal obeys them."""
    for _ in range(2):
        with pytest.raises(WorkerEnded) as raised:
            asked(worker, way)
        assert str(raised.value) == said
    with pytest.raises(WorkerEnded) as crashed:
        asked(worker, "SIGSEGV")
    assert crashed.value.end is not None and crashed.value.end.printed == ""


def test_what_the_runtime_complains_of_is_its_own_words(worker: Worker) -> None:
    with pytest.raises(RuntimeError, match=r"It is too large\."):
        asked(worker, "complain")


def test_an_end_is_kept_as_facts(worker: Worker) -> None:
    with pytest.raises(WorkerEnded) as raised:
        asked(worker, "SIGFPE")
    end = raised.value.end
    assert end is not None and end.program == "SlowRT"
    assert (end.kind, end.stage, end.subject, end.code) == ("signal", "compiling", "the model m.xml", 8)
    with pytest.raises(WorkerLimit) as limited:
        asked(worker, "hang", 0.5)
    assert limited.value.end is not None and limited.value.end.limit == 0.5


def arrays_of_every_type() -> list[Any]:
    found = []
    for shape in ((), (3,), (2, 5), (0, 2)):
        for name, element_type in ELEMENT_TYPES.items():
            count = int(np.prod(shape))
            if name == "string":
                found.append(np.array([f"té{k}" for k in range(count)], element_type.dtype).reshape(shape))
                continue
            raw = np.random.default_rng(7).integers(0, 2 if name == "boolean" else 256, 8 * count + 8, np.uint8)
            if element_type.bits < 8:
                found.append(unpack(raw[: packed_size(element_type, count)], element_type, count).reshape(shape))
            else:
                size = count * element_type.dtype.itemsize
                found.append(raw[:size].copy().view(element_type.dtype).reshape(shape))
    return [*found, np.arange(12.0).reshape(3, 4).T, np.float32(3)]


def test_tensors_of_every_type_cross_bit_for_bit() -> None:
    given, stream = arrays_of_every_type(), io.BytesIO()
    process_messages.write(stream, Completed(), given)
    stream.seek(0)
    reply = process_messages.read_reply(stream)
    assert reply is not None
    for before, after in zip(given, reply[1], strict=True):
        assert (after.dtype, after.shape) == (before.dtype, np.asarray(before).shape)
        assert after.tolist() == before.tolist() if after.dtype.kind == "T" else after.tobytes() == before.tobytes()


@pytest.mark.parametrize("ruined", ["cut", "head", "length", "content"])
def test_what_is_no_message_is_never_taken_for_one(ruined: str) -> None:
    stream = io.BytesIO()
    process_messages.write(stream, Completed(), [np.arange(100.0)])
    content = bytearray(stream.getvalue())
    if ruined == "cut":
        assert process_messages.read_reply(io.BytesIO(bytes(content[:-1]))) is None
        return
    if ruined == "head":
        content[0] ^= 255
    if ruined == "length":
        content[8:16] = (16).to_bytes(8, "little")
    if ruined == "content":
        content[16] ^= 255
    with pytest.raises(process_messages.Garbled):
        process_messages.read_reply(io.BytesIO(bytes(content)))


def test_what_was_defined_is_defined_again_after_a_crash_that_is_not_tried_twice(worker: Worker) -> None:
    defined: list[int] = []

    def define(key: int) -> tuple[Define, list[Any]]:
        defined.append(key)
        return Define(key), []

    echo = RemoteFunction(worker, define, "the model m.xml", Limits())
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(echo(x)[0], x)
    for _ in range(3):
        with pytest.raises(WorkerEnded, match="crashed"):
            echo(-x)
    assert (len(defined), worker.generation) == (1, 1), "it is not asked again"
    with pytest.raises(WorkerEnded, match="crashed"):
        echo(x)
    np.testing.assert_array_equal(echo(x[:2])[0], x[:2])
    assert (len(defined), worker.generation) == (2, 2)


def test_after_a_few_crashes_it_is_not_asked_at_all(worker: Worker) -> None:
    function = RemoteFunction(worker, lambda key: (Define(key), []), "the model", Limits())
    for size in range(1, 9):
        with pytest.raises(WorkerEnded):
            function(np.full(size, -1, np.float32))
    assert worker.generation == 3


def test_an_interrupt_ends_what_is_under_way(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(worker, "")
    number = worker.pid()
    assert number is not None

    def interrupted(*_given: object, **_more: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("stepper.processes.worker._Process.next_reply", interrupted)
        asked(worker, "hang")
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert asked(worker, "") == []


def test_a_process_that_ended_unasked_is_started_again(worker: Worker) -> None:
    asked(worker, "")
    number = worker.pid()
    assert number is not None
    os.kill(number, 9)
    assert worker._process is not None
    worker._process._process.wait(30)
    assert asked(worker, "") == []
    assert worker.generation == 2


def test_a_request_names_what_can_be_forgotten(worker: Worker) -> None:
    function = RemoteFunction(worker, lambda key: (Define(key), []), "the model", Limits())
    function(np.ones(1))
    key = function._key
    del function
    assert worker._forgotten == [key]
    worker.ask(CallFunction(0), [], subject="the model")
    assert worker._forgotten == []


@pytest.mark.skipif(sys.platform != "linux", reason="children are forked on Linux alone")
def test_a_child_takes_the_place_of_one_that_ended_and_loads_nothing_again() -> None:
    worker = Worker(WorkerProgram("SlowRT", "tests.processes.served_in_children"), memory=2**32)
    try:
        ((first, loaded),) = asked(worker, "")
        assert first != loaded == worker.pid()
        generations = [worker.generation]
        for way, said in (("SIGSEGV", "crashed (SIGSEGV)"), ("no memory", "ran out of memory"), ("exit", "code 7"),
                          ("SIGABRT", "crashed (SIGABRT)")):  # fmt: skip
            with pytest.raises((WorkerEnded, WorkerLimit), match=re.escape(said)):
                asked(worker, way)
            ((now, still),) = asked(worker, "")
            assert still == loaded and now not in (first, loaded) and asked(worker, "")[0][0] == now
            generations.append(worker.generation)
        assert generations == [1, 2, 3, 4, 5]
        with pytest.raises(WorkerLimit):
            asked(worker, "hang", 0.5)
        assert not _runs(int(now)) and not _runs(int(loaded)), "the child goes with its parent"
        ((_, anew),) = asked(worker, "")
        assert anew != loaded
    finally:
        worker.close()


def _runs(pid: int) -> bool:
    """True if there is such a process that has not ended; waits a little for one that is being killed."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        if state == "Z":
            return False
        time.sleep(0.01)
    return True
