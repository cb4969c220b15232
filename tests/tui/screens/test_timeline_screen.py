"""The timeline on a screen of its own: from 5 to a million iterations, what is carried, watched, and what happened."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.debug.iterations.sweep import MOST_NUMBERS
from tests.tui.driven import DECODER, Driven, drive
from tests.tui.time_models import squaring, squaring_in_numpy, swinging, swinging_in_numpy
from tui.screens.timeline.chart import TimelineChart
from tui.theme import Look

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (200, 60)], ids=str)


def chart_of(driven: Driven) -> TimelineChart:
    pane = driven.pane("chart")
    assert isinstance(pane, TimelineChart)
    return pane


@SIZES
def test_watches_carried_values_the_condition_and_stops_are_seen(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.looked_through()
        driven.golden(f"timeline_{size[0]}x{size[1]}", "chart")

    lines = (f"run-to {DECODER}@0", "watch max(id=53)", "break id=76 if iter % 3 == 2", "continue 3", "view timeline")
    drive("date_normaliser", script, size=size, lines=lines)


def test_a_click_and_the_arrows_move_in_time() -> None:
    async def script(driven: Driven) -> None:
        await driven.looked_through()
        chart = chart_of(driven)
        span = chart.span(chart.size.width)
        await driven.pilot.click(
            "#chart", offset=(chart.gutter.left + chart.name_width(chart.size.width) + span.at(2), 3)
        )
        await driven.settle()
        assert driven.state.iteration == 2
        await driven.press("right", "right", "left")
        assert driven.state.iteration == 3
        await driven.press("v")
        assert driven.app.focused_pane is driven.pane("operations")

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@0", "iter 8", "view timeline"))


def test_the_first_infinity_is_told_and_x_goes_there() -> None:
    async def script(driven: Driven) -> None:
        await driven.looked_through()
        expected = squaring_in_numpy(16)[0].index("I")  # handed on by the iteration that made it
        assert "✗ h' NaN or Inf" in driven.text("chart") and "I" in driven.text("chart")
        await driven.press("X")
        assert driven.state.iteration == expected

    drive(squaring(16), script, lines=("run-to squares@0", "iter 14", "view timeline"))


def test_a_million_iterations_are_shown_in_bins_and_closely_where_one_looks() -> None:
    reached = 100_000
    values = swinging_in_numpy(reached + 2)

    async def script(driven: Driven) -> None:
        chart = chart_of(driven)
        await driven.press("left")  # while the run is looked through
        assert driven.state.iteration == reached - 1
        await driven.looked_through()
        sweep = driven.state.sweep
        assert sweep is not None and sweep.reached >= reached
        track = sweep.tracks[0]
        assert track.step == 2 and track.values is not None and track.values.numbers.shape[1] <= MOST_NUMBERS
        span = chart.span(chart.size.width)
        assert (span.begin, span.end) == (0, 1_000_000)
        blocks = values[1:100_001].reshape(100, 1000)  # a column is what its iterations handed on
        largest = blocks[np.arange(100), np.abs(blocks).argmax(axis=1)]
        found = [track.values.over(first, first + 1000) for first in range(0, 100_000, 1000)]
        np.testing.assert_allclose(np.concatenate([one for one in found if one is not None]), largest, rtol=1e-6)
        while chart.span(chart.size.width).end - chart.span(chart.size.width).begin > 200:
            await driven.press("plus")
        await driven.looked_through()
        span = chart.span(chart.size.width)
        assert span.begin <= reached - 1 < span.end
        close = driven.state.sweep.close[0] if driven.state.sweep else track
        for iteration in range(span.begin, reached):
            at = None if close.values is None else close.values.over(iteration, iteration + 1)
            assert at is not None and at[0] == pytest.approx(float(values[iteration + 1]), rel=1e-6)

    lines = ("run-to swing@0", f"iter {reached}", "view timeline")
    drive(swinging(1_000_000), script, lines=lines)


def test_a_terminal_without_symbols_gets_ascii_alone() -> None:
    async def script(driven: Driven) -> None:
        await driven.looked_through()
        assert driven.text("chart").isascii() and "?" not in driven.text("chart")

    lines = (f"run-to {DECODER}@0", "iter 8", "view timeline")
    drive("date_normaliser", script, size=(120, 40), lines=lines, look=Look(ascii=True, plain=True))


@pytest.mark.parametrize("size, each", [((200, 60), 6), ((200, 30), 5), ((200, 22), 3)], ids=str)
def test_wide_columns_have_their_numbers_on_their_shades(size: tuple[int, int], each: int) -> None:
    """A short loop has elements of several lines where there is room."""

    async def script(driven: Driven) -> None:
        await driven.looked_through()
        lines = driven.text("chart").splitlines()
        first = next(place for place, line in enumerate(lines) if line.split()[1:2] == ["balance'"])
        values = np.array([[1000.0, 1000.0, 250.0]]) * np.array([[1.01, 1.05, 1.12]]) ** np.arange(1, 4)[:, None]
        slot = chart_of(driven).span(chart_of(driven).size.width).slot
        found = []
        for line in lines[first : first + 3 * each]:
            cells = line[22:].replace("▌", " ").replace("▐", " ")
            shown = [cells[column * slot : (column + 1) * slot].strip() for column in range(3)]
            found += [[float(text) for text in shown]] if any(shown) else []
        np.testing.assert_allclose(np.array(found).T, values, rtol=0.01)
        assert not lines[first + 3 * each].replace("▌", " ").replace("▐", " ").strip(), "the air below it"

    drive("for_loop", script, size=size, lines=("run-to years@0", "iter 3", "view timeline"))
