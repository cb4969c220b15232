"""Sweeps from inputs to tables: what a debugger would say of each input alone, whatever ended the sweep in between."""

from __future__ import annotations

import sqlite3
from concurrent.futures import Executor, Future
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest

import stepper
from stepper.errors import ExecutionError, InputError, OutputError, UsageError
from stepper.processes.programs import WorkerProgram
from stepper.sweep import judges as break_judges
from stepper.sweep import sweeping
from stepper.sweep.sweep_inputs import CallInput, FileInput, InputReader, SliceInput, files_inputs, random_inputs
from stepper.sweep.sweep_results import SweepOutcome, read_row, read_rows, summary
from stepper.sweep.sweeping import LocalWorkers, ProcessLost
from tests.engine.subjects import endless
from tests.sweep.sweeping import Here, NoProcesses, balances, job_of, swept, written_inputs

STEPS = 5


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    return balances(folder, STEPS)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    folder = tmp_path / "set"
    folder.mkdir()
    return written_inputs(folder, 30, STEPS)


def by_formula(path: str) -> tuple[int | None, int]:
    """The iteration in which the quotient is NaN first, and how many there are."""
    with np.load(path) as arrays:
        x, balance = arrays["x"], arrays["start"][0]
    with np.errstate(all="ignore"):
        for iteration in range(STEPS):
            ratio = balance / x[iteration]
            if np.isnan(ratio).any():
                return iteration, 0
            balance = ratio - x[iteration]
            if not balance.max() < 1000 and not np.isnan(balance.max()):
                return None, iteration + 1
    return None, STEPS


def test_each_input_has_the_row_of_its_own_run(model: Path, files: list[str], tmp_path: Path) -> None:
    rows = swept(job_of(model, breaks=("nan",)), files_inputs([str(tmp_path / "set")]), tmp_path / "s.sqlite")
    assert [stored.row.name for stored in rows] == files
    stopped = 0
    for stored, path in zip(rows, files, strict=True):
        birth, iterations = by_formula(path)
        row = stored.row
        if birth is None:
            assert (row.outcome, row.loops[0].iterations) == (SweepOutcome.NOTHING, iterations)
        else:
            stopped += 1
            assert (row.outcome, row.what, row.type, row.operation) == ("stopped", "nan", "Divide", "ratio")
            assert (row.iterations, row.address) == ((birth,), f"months@{birth}::ratio")
    found = summary(tmp_path / "s.sqlite", 30)
    assert 1 <= stopped == found.places[0].inputs and found.places[0].first == 1 + next(
        index for index, path in enumerate(files) if by_formula(path)[0] is not None
    )
    assert sum(one.inputs for one in found.places[0].iterations) == stopped
    early = tuple(n for n, path in enumerate(files, 1) if by_formula(path) not in ((0, 0), (None, STEPS)))
    assert found.unusual == early != ()


@pytest.mark.parametrize("breaks", [("nan",), ("inf",), ("nan", "inf"), ("cond",), ("ratio if max(ratio) > 1e3",)])
def test_a_quick_look_changes_no_row(
    model: Path, files: list[str], tmp_path: Path, breaks: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = files_inputs([str(tmp_path / "set")])
    quick = swept(job_of(model, breaks=breaks), inputs, tmp_path / "a.sqlite")
    monkeypatch.setattr(break_judges, "Screen", lambda *_: type("No", (), {"is_possible": False})())
    thorough = swept(job_of(model, breaks=breaks, seconds=59.0), inputs, tmp_path / "b.sqlite")
    assert quick == thorough
    assert len({stored.row.outcome for stored in quick}) == 2 or breaks == ("cond",)


def test_a_sweep_that_ends_in_between_goes_on_to_the_same_table(model: Path, files: list[str], tmp_path: Path) -> None:
    job, inputs = job_of(model, breaks=("nan",)), files_inputs([str(tmp_path / "set")])
    whole = swept(job, inputs, tmp_path / "whole.sqlite")
    runs = 0

    class Ending(Here):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            nonlocal runs
            runs += 1
            if runs % 4 == 0:
                raise KeyboardInterrupt
            return super().submit(fn, *args, **kwargs)

    ends = 0
    while True:
        try:
            rows = swept(job, inputs, tmp_path / "parts.sqlite", NoProcesses(Ending()))
            break
        except KeyboardInterrupt:
            ends += 1
            done = len(read_rows(tmp_path / "parts.sqlite"))
    assert rows == whole and ends >= 1 and 0 < done < 30


def test_a_set_that_has_changed_keeps_the_rows_of_what_is_the_same(
    model: Path, files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, file = job_of(model, breaks=("nan",)), tmp_path / "s.sqlite"
    swept(job, files_inputs([str(tmp_path / "set")]), file)
    Path(files[0]).unlink()
    np.savez(files[9], x=np.zeros((STEPS, 2), np.float32), start=np.zeros((1, 2), np.float32))
    np.savez(tmp_path / "set" / "a.npz", x=np.ones((STEPS, 2), np.float32), start=np.ones((1, 2), np.float32))
    ran: list[str] = []
    row = sweeping._row
    monkeypatch.setattr(sweeping, "_row", lambda *given: ran.append(given[-1].name) or row(*given))
    inputs = files_inputs([str(tmp_path / "set")])
    rows = swept(job, inputs, file)
    assert ran == [str(tmp_path / "set" / "a.npz"), files[9]]
    assert rows == swept(job, inputs, tmp_path / "anew.sqlite")
    assert [stored.number for stored in rows] == list(range(1, 31))


def test_another_model_or_question_is_refused_in_one_sentence(model: Path, files: list[str], tmp_path: Path) -> None:
    inputs, file = files_inputs([files[0]]), tmp_path / "s.sqlite"
    swept(job_of(model, breaks=("nan",)), inputs, file)
    with pytest.raises(UsageError, match="has another sweep: it was made with --break nan; choose another file"):
        swept(job_of(model, breaks=("inf",)), inputs, file)
    with pytest.raises(UsageError, match="it was made with other limits"):
        swept(job_of(model, breaks=("nan",), seconds=1.0), inputs, file)
    text = model.read_text()
    model.write_text(text.replace('name="ratio"', 'name="quotient"'))
    with pytest.raises(UsageError, match="the model is another one, or was changed"):
        swept(job_of(model, breaks=("nan",)), inputs, file)


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_what_is_broken_endless_or_failing_is_a_row(model: Path, files: list[str], tmp_path: Path) -> None:
    Path(files[1]).write_bytes(b"PK nothing")
    np.savez(files[2], x=np.array([{}], object), start=np.zeros((1, 2), np.float32))  # pickled
    np.savez(files[3], x=np.zeros((STEPS, 3), np.float32), start=np.zeros((1, 2), np.float32))
    np.savez(files[4], wrong=np.zeros(3))
    inputs = [*files_inputs(files[:6]), FileInput(str(tmp_path / "none.npz"))]
    rows = swept(job_of(model, breaks=("nan",)), inputs, tmp_path / "s.sqlite")
    outcomes = [str(stored.row.outcome) for stored in rows]
    assert outcomes == ["nothing", *["unreadable"] * 4, "stopped", "unreadable"]
    assert "never read" in rows[2].row.text or "allow_pickle" in rows[2].row.text
    assert "has shape [5,3], expected" in rows[3].row.text
    limited = swept(job_of(model, breaks=("nan",), max_iterations=3), inputs[:1], tmp_path / "l.sqlite")[0].row
    assert (limited.outcome, limited.what) == (SweepOutcome.LIMIT, "limit")
    assert limited.path == () and limited.operation == "months"


def test_a_loop_that_never_ends_is_ended(tmp_path: Path) -> None:
    model = endless().write(tmp_path)
    row = swept(job_of(model, breaks=("nan",), seconds=0.2), random_inputs(1, 0), tmp_path / "s.sqlite")[0].row
    assert (row.outcome, row.text) == (SweepOutcome.LIMIT, "the run did not end within 0.2 s, the limit for each input")


def test_a_process_that_is_killed_costs_the_row_of_one_input(model: Path, tmp_path: Path) -> None:
    """Chunks that are lost are done again in halves; the one input that ends its process gets a row."""
    job = job_of(model, breaks=("nan",), reader=InputReader(folder=str(tmp_path)))
    inputs = random_inputs(20, 5)
    deadly = "rand:12"

    class Mortal(Here):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            return super().submit(guarded, fn, *args)

    def guarded(function: Any, job: Any, chunk: Any) -> Any:
        if any(one.name == deadly for one in chunk):
            raise ProcessLost("the process that ran it ended (SIGKILL)")
        return function(job, chunk)

    rows = swept(job, inputs, tmp_path / "s.sqlite", NoProcesses(Mortal()))
    assert [stored.number for stored in rows if stored.row.outcome is SweepOutcome.KILLED] == [8]
    assert len(rows) == 20 and rows[7].row.text.endswith("(SIGKILL)")


def test_the_neighbour_of_an_input_that_ends_its_process_has_its_own_row(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a cluster that gives up all tasks of a worker that died: every chunk at work dies with the deadly one."""
    deadly, chunks = "rand:12", dict[Future[Any], Any]()

    class Waiting(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            future: Future[Any] = Future()
            chunks[future] = fn, *args
            return future

    def all_end(at_work: Any, return_when: str) -> tuple[list[Future[Any]], list[Future[Any]]]:
        is_dead = any(one.name == deadly for future in at_work for one in chunks[future][2])
        for future in at_work:
            function, *args = chunks[future]
            if is_dead:
                future.set_exception(ProcessLost("the workers that ran it died"))
            else:
                future.set_result(function(*args))
        return list(at_work), []

    monkeypatch.setattr(sweeping, "wait", all_end)
    job = job_of(model, breaks=("nan",), reader=InputReader(folder=str(tmp_path)))
    rows = swept(job, random_inputs(20, 5), tmp_path / "s.sqlite", NoProcesses(Waiting()))
    assert [stored.number for stored in rows if stored.row.outcome is SweepOutcome.KILLED] == [8]
    assert len(rows) == 20


def test_processes_that_cannot_begin_end_the_sweep_with_what_they_say(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepper.sweep.sweeping._PROGRAM", WorkerProgram("the sweep", "no_such_package.service"))
    job = job_of(model, breaks=("nan",))
    with pytest.raises(ExecutionError, match=r"while being loaded .* No module named 'no_such_package'"):
        swept(job, random_inputs(3, 0), tmp_path / "s.sqlite", LocalWorkers(1))


def test_processes_give_what_this_one_does(model: Path, tmp_path: Path) -> None:
    fixed = {1: np.full((1, 2), 3, np.float32)}
    job = job_of(model, breaks=("nan",), reader=InputReader(folder=str(tmp_path), fixed=fixed))
    inputs = random_inputs(5, 2)
    assert swept(job, inputs, tmp_path / "a.sqlite", LocalWorkers(2)) == swept(job, inputs, tmp_path / "b.sqlite")


# --- inputs ---------------------------------------------------------------------------------------------------------


def test_an_index_of_leading_axes_is_an_input(model: Path, files: list[str], tmp_path: Path) -> None:
    loaded = [dict(np.load(path)) for path in files[:12]]
    stacked = {key: np.stack([one[key] for one in loaded]) for key in ("x", "start")}
    np.savez(tmp_path / "all.npz", **stacked)
    inputs = files_inputs([str(tmp_path / "all.npz")], leading_axis=True)
    assert inputs == [SliceInput(str(tmp_path / "all.npz"), index) for index in range(12)]
    rows = swept(job_of(model, breaks=("nan",)), inputs, tmp_path / "a.sqlite")
    single = swept(job_of(model, breaks=("nan",)), files_inputs(files[:12]), tmp_path / "b.sqlite")
    assert [one.row.iterations for one in rows] == [one.row.iterations for one in single]
    np.savez(tmp_path / "uneven.npz", x=stacked["x"], start=stacked["start"][:3])
    with pytest.raises(InputError, match="no leading axis of one length"):
        files_inputs([str(tmp_path / "uneven.npz")], leading_axis=True)


def test_a_random_input_is_that_of_its_spec(model: Path, tmp_path: Path) -> None:
    reader = InputReader(folder=str(tmp_path))
    parsed = stepper.read_model(model)
    values, _states = reader.read(random_inputs(3, 40)[2], parsed)
    expected = [np.random.default_rng([42, *name.encode()]).uniform(-1, 1, shape).astype(np.float32)
                for name, shape in (("x", (STEPS, 2)), ("start", (1, 2)))]  # fmt: skip
    assert all(np.array_equal(one, other) for one, other in zip(values, expected, strict=True))


def test_a_function_that_the_user_names_gives_inputs(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "given_numbers.py").write_text(
        "import numpy as np\n"
        "def one(n):\n"
        "    if n == 1: raise ValueError('not this one')\n"
        "    if n == 2: return [1]\n"
        f"    return {{'x': np.full(({STEPS}, 2), n, 'f4'), 'start': np.zeros((1, 2), 'f4')}}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    reader = InputReader(folder=str(tmp_path), function="given_numbers:one")
    rows = swept(job_of(model, breaks=("nan",), reader=reader), [CallInput(n) for n in range(4)], tmp_path / "s.sqlite")
    assert [str(stored.row.outcome) for stored in rows] == ["stopped", "unreadable", "unreadable", "nothing"]
    assert rows[1].row.text == "given_numbers:one(1) raised ValueError: not this one"


# --- the file -------------------------------------------------------------------------------------------------------


def test_a_file_that_is_no_sweep_or_damaged_is_refused(model: Path, files: list[str], tmp_path: Path) -> None:
    inputs, file = files_inputs([files[0]]), tmp_path / "s.sqlite"
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE things (a)")
    connection.close()
    with pytest.raises(UsageError, match=r"other.sqlite is no sweep"):
        swept(job_of(model, breaks=("nan",)), inputs, other)
    swept(job_of(model, breaks=("nan",)), inputs, file)
    with pytest.raises(UsageError, match="has no input 7; its inputs are 1 to 1"):
        read_row(file, 7)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE rows SET loops = '[[1, 2]]'")
    connection.close()
    with pytest.raises(InputError, match="cannot be read as a sweep"):
        read_rows(file)
    content = file.read_bytes()
    file.write_bytes(content[:100] + bytes(len(content) - 100))
    with pytest.raises((InputError, OutputError), match=r"s\.sqlite"):
        read_rows(file)


def test_rows_of_inputs_that_are_still_there_do_not_go(model: Path, files: list[str], tmp_path: Path) -> None:
    """Hours may be in them: another source of inputs, or fewer of them, want a file of their own."""
    job, file = job_of(model, breaks=("nan",)), tmp_path / "s.sqlite"
    rows = swept(job, files_inputs([str(tmp_path / "set")]), file)
    for inputs in (random_inputs(3, 0), files_inputs(files[:5])):
        with pytest.raises(UsageError, match=r"has rows of inputs that are not among these: .* and 2[49] more"):
            swept(job, inputs, file)
        assert read_rows(file) == rows
    seeds = tmp_path / "seeds.sqlite"
    assert len(swept(job, random_inputs(4, 0), seeds)) == 4
    with pytest.raises(UsageError, match="not among these: rand:3;"):
        swept(job, random_inputs(3, 0), seeds)
    assert len(swept(job, random_inputs(6, 0), seeds)) == 6


def test_too_many_inputs_are_refused_before_any_is_made() -> None:
    with pytest.raises(UsageError, match="--random 99,999,999,999: a sweep has at most 10,000,000 inputs"):
        random_inputs(99_999_999_999, 0)


def test_seeds_reach_to_the_largest_of_64_bits(model: Path, tmp_path: Path) -> None:
    inputs = random_inputs(3, 2**64 - 3)
    rows = swept(job_of(model, breaks=("nan",)), inputs, tmp_path / "s.sqlite")
    assert [stored.input for stored in rows] == inputs and inputs[-1].name == f"rand:{2**64 - 1}"
    assert not any(stored.row.outcome is SweepOutcome.UNREADABLE for stored in rows)
    with pytest.raises(UsageError, match="the last of 4 seeds would be larger than"):
        random_inputs(4, 2**64 - 3)


def test_what_waits_behind_an_endless_input_is_not_begun_when_the_user_interrupts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_asked, is_closed = Event(), Event()
    waiting: list[Future[Any]] = []
    cancelled: list[bool] = []

    class Endless:
        """A process that never answers; it is lost when it is closed."""

        def __init__(self, *_given: object, **_more: object) -> None:
            pass

        def ask_for(self, *_given: object, **_more: object) -> NoReturn:
            is_asked.set()
            assert is_closed.wait(30), "nobody has ended it"
            raise RuntimeError("lost")

        def close(self) -> None:
            cancelled.extend(one.cancelled() for one in waiting[1:])
            is_closed.set()

    monkeypatch.setattr("stepper.sweep.sweeping.Worker", Endless)
    monkeypatch.setattr("stepper.sweep.sweeping.replace", lambda one, **_more: one)
    monkeypatch.setattr("stepper.sweep.sweeping.SweepChunk", lambda *given: given)
    job, workers = SimpleNamespace(reader=SimpleNamespace(fixed={}, states={})), LocalWorkers(1)
    with pytest.raises(KeyboardInterrupt), workers:
        waiting += [workers.submit(None, job, ()) for _ in range(3)]
        assert is_asked.wait(30)
        raise KeyboardInterrupt
    assert cancelled[:2] == [True, True] and all(one.done() for one in waiting)
