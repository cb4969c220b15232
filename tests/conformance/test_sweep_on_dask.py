"""A sweep on a real cluster of Dask: two workers of this machine, which the test starts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from stepper.cli import main
from stepper.sweep.sweep_results import read_rows
from stepper.sweep.sweeping import ChunkResult, DaskWorkers
from tests.sweep.sweeping import balances, written_inputs

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install '.[dask]'")
pytestmark = pytest.mark.filterwarnings("default")  # of its own threads and sockets
MORTAL = """
import os, signal, threading
import numpy as np
def one(number):
    if number == 17:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 21:
        threading.Event().wait()
    return {"x": np.full((5, 2), number % 4, "f4"), "start": np.zeros((1, 2), "f4")}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:
        yield cluster


def test_the_table_is_that_of_processes(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set").mkdir()
    written_inputs(tmp_path / "set", 200)
    on = cluster.scheduler_address.replace("tcp://", "dask://")
    words = ["sweep", str(balances(tmp_path)), "--inputs", "set/*.npz"]
    assert main([*words, "--on", on, "--out", "dask.sqlite"]) == 1
    assert main([*words, "--jobs", "2", "--out", "processes.sqlite"]) == 1
    rows = read_rows(Path("dask.sqlite"))
    assert rows == read_rows(Path("processes.sqlite")) and len(rows) == 200


def test_a_worker_that_dies_costs_one_row(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mortal_inputs.py").write_text(MORTAL)
    on = cluster.scheduler_address.replace("tcp://", "dask://")
    cluster.scheduler.allowed_failures = 0
    distributed.Client(cluster, set_as_default=False).upload_file(str(tmp_path / "mortal_inputs.py"))
    words = ["sweep", str(balances(tmp_path)), "--generate", "mortal_inputs:one", "--count", "30", "--seconds", "1"]
    assert main([*words, "--on", on, "--out", "dask.sqlite"]) == 1
    rows = read_rows(Path("dask.sqlite"))
    assert [one.number for one in rows if one.row.outcome == "killed"] == [18]
    assert [one.number for one in rows if one.row.outcome == "limit"] == [22], "one that hangs costs no worker"
    rest = [number for number in range(30) if number not in (17, 21)]
    assert [rows[number].row.outcome == "stopped" for number in rest] == [number % 4 == 0 for number in rest]


def test_a_result_whose_worker_died_on_the_way_is_done_again() -> None:
    """By what Dask's executor makes of such a future."""

    class Lost:
        status = "lost"

        async def _result(self, *, raiseit: bool) -> ChunkResult:
            assert not raiseit
            return ChunkResult((), 0.0)

    async def told() -> BaseException | None:
        told: Future[Any] = Future()
        await distributed.cfexecutor._cascade_future(Lost(), told)
        return told.exception()

    workers = DaskWorkers("dask://127.0.0.1:9")
    error = asyncio.run(told())
    assert error is not None and workers.lost(error) is not None
    assert workers.lost(TypeError("unsupported operand")) is None


def test_a_scheduler_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", str(balances(tmp_path)), "--random", "3", "--on", "dask://127.0.0.1:9", "--out"]
    assert main([*words, str(tmp_path / "s.sqlite")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("stepper: --on tcp://127.0.0.1:9: no scheduler answers") and error.count("\n") == 1
