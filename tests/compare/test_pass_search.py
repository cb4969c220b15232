"""Few of many passes are run, and those that count are found: by reports that stand for runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from stepper.compare import compared_passes as searching
from stepper.compare.compared_passes import PassEffect, PassJudge, PassReport, PassSearch, growth, search
from stepper.openvino.partner import TracedPass

MANY = 128
Report = Callable[[int], PassReport | None]


class Told:
    """Reports in the place of a judge's; which passes it was asked for, whose files must be there."""

    def __init__(self, report: Report) -> None:
        self._report, self.asked = report, list[int]()

    def report(self, traced: TracedPass) -> PassReport | None:
        assert traced.path.read_text() == traced.path.with_suffix(".bin").read_text() == str(traced.number)
        self.asked.append(traced.number)
        return self._report(traced.number)


def passes(folder: Path) -> Iterator[TracedPass]:
    for number in range(MANY):
        path = folder / f"{number}.xml"
        for suffix in (".xml", ".bin"):
            path.with_suffix(suffix).write_text(str(number))
        yield TracedPass(number, f"pass {number}", "model", path)


def found(folder: Path, report: Report) -> tuple[PassSearch, list[int]]:
    told, heard = Told(report), list[int]()
    result = search(passes(folder), cast("PassJudge", told), lambda traced: heard.append(traced.number))
    assert heard == list(range(MANY)) and result.total == MANY
    assert len(told.asked) == len(set(told.asked)), "none is run twice"
    assert [one.number for one in result.reports] == sorted(one.number for one in result.reports)
    return result, told.asked


def report(number: int, verdict: PassEffect = PassEffect.EQUAL, distance: float = 0.0) -> PassReport:
    return PassReport(number, f"pass {number}", verdict, ("why",) * (verdict is not PassEffect.EQUAL), distance)


def steps(*at: tuple[int, PassEffect, float]) -> Report:
    """Reports that are equal up to the first of these numbers, and from each on as it says."""

    def tell(number: int) -> PassReport:
        reached = [step for step in at if step[0] <= number]
        return report(number, *reached[-1][1:]) if reached else report(number)

    return tell


@pytest.fixture(params=[2**30, 100])
def window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """All passes at once, or some 20 at a time."""
    monkeypatch.setattr(searching, "_MOST_BYTES", request.param)
    return 1 if request.param > 1000 else math.ceil(MANY / 17)


def test_where_nothing_differs_one_pass_of_each_window_is_run(window: int, tmp_path: Path) -> None:
    result, asked = found(tmp_path, steps())
    assert result.first is result.large is result.refused is None
    assert asked[-1] == MANY - 1 and len(asked) <= window


@pytest.mark.parametrize("first", [0, 1, 50, 126, 127])
def test_the_first_pass_that_differs_is_found_by_halving(window: int, first: int, tmp_path: Path) -> None:
    result, asked = found(tmp_path, steps((first, PassEffect.DIFFERENT, 1.0)))
    assert result.first == report(first, PassEffect.DIFFERENT, 1.0) and result.large is None
    assert len(asked) <= window + 9


@pytest.mark.parametrize(("first", "large"), [(3, 4), (3, 100), (0, 127)])
def test_the_pass_with_which_the_error_becomes_large_is_named_too(
    window: int, first: int, large: int, tmp_path: Path
) -> None:
    tell = steps((first, PassEffect.DIFFERENT, 1e-4), (large, PassEffect.DIFFERENT, 2.0))
    result, asked = found(tmp_path, tell)
    assert result.first is not None and result.large is not None
    assert (result.first.number, result.large.number) == (first, large)
    assert len(asked) <= window + 2 * 9
    assert growth(cast("PassReport", tell(number)) for number in range(MANY)) == result.large


def test_passes_after_which_the_model_cannot_be_run_hide_none_before_them(window: int, tmp_path: Path) -> None:
    tell = steps((40, PassEffect.DIFFERENT, 1.0), (70, PassEffect.NOT_RUN, 0.0))
    result, asked = found(tmp_path, tell)
    assert result.first is not None and result.refused is not None
    assert (result.first.number, result.refused.number) == (40, 70)
    assert len(asked) <= 2 * window + 2 * 9


@pytest.mark.parametrize("odd", [0, 1])
def test_passes_over_other_models_are_left_out(window: int, odd: int, tmp_path: Path) -> None:
    tell = steps((61 - odd, PassEffect.DIFFERENT, 1.0))
    result, asked = found(tmp_path, lambda number: None if number % 2 == odd else tell(number))
    assert result.first is not None and result.first.number == 61 - odd
    assert len(asked) <= 2 * (window + 9)


def test_what_grows_little_has_no_second_pass() -> None:
    tell = steps((3, PassEffect.DIFFERENT, 1.0), (9, PassEffect.DIFFERENT, 5.0))
    assert growth(cast("PassReport", tell(number)) for number in range(20)) is None
    assert growth([]) is None
