"""The benchmarks give the right numbers; how long they take is not asked here."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import stepper
from tests.benchmarks import (
    adapting,
    checking,
    comparing,
    debugging,
    fallback,
    key_latency,
    linear,
    loops,
    models,
    others,
    overview,
    pseudo_terminal,
    reading,
    recording,
    startup,
    terminal,
    terminal_models,
    timing,
)


@pytest.mark.parametrize("iterations", [1, 7])
def test_everything_that_runs_newtons_loop_gives_the_same_numbers(tmp_path: Path, iterations: int) -> None:
    comparison = loops.newton(tmp_path, iterations)
    comparison.check()
    assert {loops.BY_HAND, "stepper.run"} <= set(comparison.candidates)


def test_everything_that_runs_the_lstm_gives_the_same_numbers(tmp_path: Path) -> None:
    loops.lstm(tmp_path, iterations=5, inputs=8, hidden=4).check()


def test_a_candidate_with_other_numbers_is_found(tmp_path: Path) -> None:
    comparison = loops.newton(tmp_path, 3)
    comparison.candidates["wrong"] = lambda: [np.zeros(1, np.float32), np.zeros(3, np.float32)]
    with pytest.raises(AssertionError, match="wrong gives other numbers"):
        comparison.check()


def test_the_cost_of_a_check_and_of_lint_is_measured(tmp_path: Path) -> None:
    found = checking.measure(tmp_path, [], 1, layers=100, newton_iterations=20, lstm_iterations=2)
    assert [set(one["ratios"]) for one in found] == (  # type: ignore[call-overload]
        [{checking.PLAIN, checking.CHECKED}] * 2 + [{checking.READING, checking.RULES}] * 3
    )


def test_what_an_editor_waits_for_is_measured(tmp_path: Path) -> None:
    found = adapting.measure(tmp_path, rounds=1, layers=100, elements=1000)
    assert [set(one["ratios"]) >= {adapting.SHOWN} for one in found] == [True, True, False]


def test_the_cost_of_an_overview_is_measured_for_both_loops(tmp_path: Path) -> None:
    for found in overview.measure(tmp_path, 50, 5, 1):
        assert set(found["ratios"]) >= {overview.CONTINUED, overview.RECORDED}  # type: ignore[call-overload]


def test_a_debugged_run_gives_the_numbers_of_a_plain_one(tmp_path: Path) -> None:
    model, name = debugging.newton(tmp_path, 50)
    expected = debugging.plain(model, debugging.NEWTON)
    for outputs in (
        debugging.continued(model, debugging.NEWTON),
        debugging.continued(model, debugging.NEWTON, name),
        debugging.kept(model, debugging.NEWTON),
    ):
        for one, other in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_recorded_run_gives_the_numbers_of_a_plain_one(tmp_path: Path) -> None:
    for recorded in recording.recordings(tmp_path, newton_iterations=20, lstm_iterations=3):
        report = recorded.measure(rounds=1)
        assert isinstance(report["ratios"], dict) and recording.PLAIN in report["ratios"]


def test_a_compared_run_compares_everything_and_finds_nothing(tmp_path: Path) -> None:
    for compared in comparing.comparisons(tmp_path, newton_iterations=20, lstm_iterations=3):
        report = compared.measure(rounds=1)
        assert isinstance(report["ratios"], dict) and {comparing.PLAIN, comparing.TWO_MODELS} <= set(report["ratios"])


@pytest.mark.skipif(not others.HAS_OPENVINO or sys.platform == "win32", reason="it is compared there with OpenVINO")
def test_whole_processes_are_compared_beside_those_that_run() -> None:
    reports = next(comparing.samples(["for_loop"])).measure(rounds=1)
    assert [report["title"].rpartition(", ")[2] for report in reports] == ["whole processes", "by the clock"]
    for report in reports:
        assert set(report["ratios"]) == {comparing.STEPPER_RUN, comparing.STEPPER_COMPARE}


def test_a_long_run_is_visited_within_its_budget(tmp_path: Path) -> None:
    report = debugging.getting_about(tmp_path, 20_000, 5)
    assert isinstance(report["history_bytes"], int) and report["history_bytes"] < 64 * 2**20


def test_newtons_loop_finds_the_root() -> None:
    root, roots = models.newton_by_hand(np.array([2], np.float32), np.array([1], np.float32), 10)
    assert root == pytest.approx(2**0.5, rel=1e-6)
    assert roots.shape == (10,)


@pytest.mark.parametrize("inner", [0, 3])
def test_the_loop_of_the_linearity_benchmark_gives_the_numbers_of_the_loop_by_hand(tmp_path: Path, inner: int) -> None:
    for count, model in linear.loops(tmp_path, (2, 9), inner).items():
        linear.check(model, count)


def test_the_chain_is_read_whole_and_its_sparse_weights_are_zeros(tmp_path: Path) -> None:
    path = reading.write_model(tmp_path, additions=16, megabytes=1)
    reading.check(path, layers=34)
    x = np.arange(16384, dtype=np.float32).reshape(1, -1)
    np.testing.assert_array_equal(stepper.run(stepper.read_model(path), {"x": x})["y"], x)


def test_a_new_process_computes_the_root(tmp_path: Path) -> None:
    arguments = startup.commands(tmp_path)["read and run a model of one small loop"]
    assert float(startup.start(arguments)) == pytest.approx(2**0.5, rel=1e-6)


@pytest.mark.parametrize(("end", "code"), [(b"q", 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_screen_of_a_sample_is_painted_in_a_terminal_that_is_itself_again_afterwards(
    end: bytes | signal.Signals, code: int
) -> None:
    folder = terminal_models.SAMPLE
    arguments = ["-m", "stepper", str(folder / "model.xml"), "--inputs", str(folder / "inputs.npz")]
    shown = pseudo_terminal.shown(arguments, b"carried", end)
    assert shown.code == code
    for on, off in ((b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[?25l", b"\x1b[?25h"), (b"\x1b[?1000h", b"\x1b[?1000l")):
        assert shown.output.rfind(off) > shown.output.rfind(on) >= 0


def test_every_key_is_painted_and_esc_pauses_a_run() -> None:
    found = key_latency.key_to_paint(terminal_models.large_tensor(1 << 12), presses=1)
    assert {key: len(times) for key, times in found.items() if len(times) != 1} == {}
    assert {key.rpartition(" ")[0] for key in found} == {place.where.strip() for place in key_latency.PLACES}
    assert len(terminal.escape_to_pause(terminal_models.long_loop(10_000_000, at=5), presses=1)) == 1


def test_a_watched_run_comes_to_its_end(tmp_path: Path) -> None:
    assert len(terminal.watched_run(lambda: terminal_models.long_loop(300_000, at=5))) == 3
    assert len(terminal.run_behind_sheet(lambda: terminal_models.long_loop(10_000, at=0))) == 3


def test_a_report_gives_ratios_to_its_base() -> None:
    report = timing.report("title", {"base": 0.5, "other": 1.0}, "base")
    assert report["ratios"] == {"base": 1.0, "other": 2.0}


def test_every_candidate_takes_its_turn_in_every_round() -> None:
    calls: list[str] = []
    seconds = timing.side_by_side({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=2)
    assert calls == ["a", "b", "a", "b"]
    assert set(seconds) == {"a", "b"}


@pytest.mark.skipif(not others.HAS_OPENVINO, reason="OpenVINO is not installed")
def test_openvino_is_a_candidate_where_it_is_installed(tmp_path: Path) -> None:
    assert any("OpenVINO" in name for name in loops.newton(tmp_path, 1).candidates)


@pytest.mark.skipif(not others.HAS_OPENVINO, reason="OpenVINO is not installed")
@pytest.mark.parametrize("title", fallback.cases())
def test_an_operation_gives_the_same_whoever_computes_it(title: str) -> None:
    ratios = fallback.measure(title, *fallback.cases()[title], calls=1, rounds=1)["ratios"]
    assert isinstance(ratios, dict)
    assert ratios[fallback.KERNEL] == 1
    assert {fallback.FALLBACK, fallback.REQUEST, fallback.COMPILATION} <= set(ratios)
