"""Grid, timeline and watches are of a whole run: from the start, at the end, of each run of an inner loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stepper.debug.debugger import Debugger
from tests.debug.debugged import opened, sample
from tests.models import Graph, carried, last
from tests.tui.driven import Driven, drive
from tui.screens.grid.screen import GridScreen
from tui.screens.overview.pane import OverviewPane
from tui.screens.timeline.chart import TimelineChart


def sorting() -> list[list[list[float]]]:
    """What bubble sort does to the order of the sample: pass by pass, pair by pair."""
    values = [5.0, 1.0, 4.0, 2.0, 8.0]
    course = []
    for done in range(3):
        steps = []
        for left in range(4 - done):
            values[left : left + 2] = sorted(values[left : left + 2])
            steps.append(list(values))
        course.append(steps)
    return course


def grid_row(driven: Driven, name: str) -> list[str]:
    """The cells of a row of the grid."""
    line = next(line for line in driven.text("grid").splitlines() if f" {name} " in line)
    return line.split(name)[1].split()


async def found(driven: Driven) -> None:
    """Until the run that is looked at is found and filled in."""
    for _ in range(20):
        await driven.filled()
        if driven.state.far is not None and driven.state.far.cells is not None:
            return


def test_the_grid_shows_each_run_of_an_inner_loop_from_the_end() -> None:
    course = sorting()

    async def script(driven: Driven) -> None:
        await driven.type("last")
        await driven.type("view grid")
        await found(driven)
        await driven.filled()
        text = driven.text("grid")
        assert "passes, the whole run" in text and "▸" not in text.splitlines()[1]
        assert len(grid_row(driven, "pairs_left")) == 3
        await driven.press("up", "up", "space")  # the run of the inner loop in the iteration of the cell
        await found(driven)
        await driven.filled()
        last = int(driven.text("grid").splitlines()[1].split()[-1])
        assert last == len(course[2]) - 1
        await driven.press("less_than_sign")
        await driven.filled()
        await driven.press("less_than_sign")
        await driven.filled()
        await driven.filled()
        assert int(driven.text("grid").splitlines()[1].split()[-1]) == len(course[0]) - 1
        await driven.type("statistic max")
        await driven.filled()
        await driven.filled()
        larger = [max(course[0][left][left : left + 2]) for left in range(4)]
        assert [float(cell) for cell in grid_row(driven, "larger")] == larger
        await driven.press("left", "left", "enter")
        await driven.filled()
        assert [frame.iteration for frame in driven.state.frames] == [None, 0, 1]
        await driven.press("q", "q")
        assert not isinstance(driven.app.front, GridScreen)

    drive(sample("nested_loop"), script, size=(140, 40))


def test_the_timeline_and_the_watches_know_all_iterations_from_the_start() -> None:
    orders = [steps[-1] for steps in sorting()]

    async def script(driven: Driven) -> None:
        await driven.type("view timeline")
        for _ in range(3):
            await driven.filled()
        lines = driven.text("chart").splitlines()
        first = next(place for place, line in enumerate(lines) if line.split()[1:2] == ["order'"])
        chart = driven.pane("chart")
        assert isinstance(chart, TimelineChart)
        found = [line[chart.name_width(chart.size.width) :].split() for line in lines[first:]]
        shown = [row for row in found if row][:5]  # an element is several lines tall
        assert [[float(row[k]) for row in shown] for k in range(-3, 0)] == orders
        assert "passes, the whole run" in lines[0]

    drive(sample("nested_loop"), script, size=(140, 40))


def test_a_watch_is_filled_for_all_iterations_from_the_start() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("goto exp_key@7")
        await driven.type("watch iter * 2")
        for _ in range(3):
            await driven.filled()
        sweep = driven.state.sweep
        assert sweep is not None
        track = next(one for one in sweep.tracks if one.kind == "watch")
        assert track.values is not None
        assert [track.values.over(k, k + 1)[0] for k in range(7)] == [2 * k for k in range(7)]

    drive(sample("rwkv_overflow"), script, size=(140, 40))


def test_a_watch_set_outside_of_its_loop_says_how_much_of_it_there_is() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("watch swaps")
        ran = sum(len(one) for one in sorting())
        assert f"pairs_of_neighbours, which runs {ran} iterations in 3 runs; W shows" in driven.text("answer")
        assert "no value" not in driven.text("answer")
        await driven.type("display order/e3")
        assert "order/e3: a value of passes, which runs 3 iterations" in driven.text("answer")
        await driven.press("W")
        await driven.filled()
        row = driven.text("watches").splitlines()[2]
        assert "3 at 3, the last" in row and row.endswith("0123"), row
        await driven.press("enter")
        assert driven.app.front.view_name == "table"

    drive("nested_loop", script, size=(120, 40), runs=True)


def test_below_a_short_list_stands_the_loop_that_comes_next_where_no_other_pane_shows_it() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("0")
        await driven.filled()
        lines = driven.text("spare").splitlines()
        assert "time_mixing, as it will run" in lines[0]
        ruler = lines[1]
        infinite = next(line for line in lines if "I" in line)
        assert infinite.split()[0] == "numerator'"
        assert infinite.index("I") >= ruler.index(" 7 ") and infinite.count("I") == 5, "iterations 7 to 11"

    drive("rwkv_overflow", script, size=(80, 24), runs=True)


def test_a_watch_of_an_inner_loop_is_filled_from_the_start_and_each_run_is_one_key_away() -> None:
    course = sorting()

    def larger_of(run: int) -> list[float]:
        return [max(course[run][left][left : left + 2]) for left in range(len(course[run]))]

    async def script(driven: Driven) -> None:
        def seen(name: str) -> list[float]:
            sweep = driven.state.inside.sweep
            assert sweep is not None
            values = next(one for one in sweep.tracks if one.kind == "watch" and one.name == name).values
            assert values is not None
            return [float(values.over(k, k + 1)[0]) for k in range(values.count)]

        async def shown() -> list[str]:
            for _ in range(4):
                await driven.filled()
            return driven.text("chart").splitlines()

        await driven.type("watch larger")
        await driven.type("watch order")
        await driven.press("W")
        lines = await shown()
        assert "in passes 0 1 2" in lines[0]
        assert seen("larger") == larger_of(0)
        below = next(at for at, line in enumerate(lines) if line.startswith(" order")) - 2
        assert [float(one) for one in lines[below].split()] == larger_of(0), "the numbers below the columns"
        await driven.press("greater_than_sign")
        await shown()
        assert seen("larger") == larger_of(1)
        await driven.press("greater_than_sign")
        await shown()
        assert seen("larger") == larger_of(2)
        await driven.press("down")
        lines = await shown()
        assert "passes, the whole run" in lines[0]
        assert not any("larger" in line for line in lines), "there is no value of it in this loop"
        await driven.press("q")
        assert driven.state.far is None or not driven.state.far.is_chosen

    drive(sample("nested_loop"), script, size=(140, 40))


def test_watches_of_other_loops_are_filled_beside_the_chosen_one_and_an_outer_one_over_its_own_iterations() -> None:
    outer = [[5.0, 1.0, 4.0, 2.0, 8.0], *(steps[-1] for steps in sorting()[:-1])]

    async def script(driven: Driven) -> None:
        await driven.type("watch larger")
        await driven.type("watch order")
        await driven.press("W")
        for _ in range(6):
            await driven.filled()

        def known(number: int) -> list[list[float]]:
            values = driven.state.watch_runs[number]
            return [values.over(k, k + 1).tolist() for k in range(values.count)]

        assert [frame.iteration for frame in driven.state.frames] == [None, 1, 2], "inside of the inner loop"
        assert known(2) == outer, "what each pass is given, though the run is inside of the second"
        assert driven.state.loop_program is not None and 1 not in driven.state.watch_runs
        await driven.press("down")
        for _ in range(6):
            await driven.filled()
        lines = driven.text("chart").splitlines()
        assert "passes, the whole run" in lines[0]
        await driven.press("up")
        for _ in range(4):
            await driven.filled()
        assert driven.state.far is None or not driven.state.far.is_chosen, "the loop of the moment again"

    drive(sample("nested_loop"), script, size=(140, 40), lines=("goto passes@1::larger@2",))


def test_a_watch_of_an_inner_loop_is_filled_while_another_one_is_chosen() -> None:
    course = sorting()

    async def script(driven: Driven) -> None:
        await driven.type("watch order")
        await driven.type("watch larger")
        await driven.press("W")
        for _ in range(6):
            await driven.filled()
        values = driven.state.watch_runs[2]
        found = [float(values.over(k, k + 1)[0]) for k in range(values.count)]
        assert found == [max(course[0][k][k : k + 2]) for k in range(len(course[0]))]
        assert "in pairs" not in driven.text("watches")

    drive(sample("nested_loop"), script, size=(140, 40))


def test_a_run_that_is_named_on_the_overview_is_shown_in_the_grid() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("loop-run passes@1::pairs_of_neighbours")
        assert driven.app.front.view_name == "grid"
        await driven.filled()
        assert grid_row(driven, "swaps_next") == ["0", "1", "1"], "of 1 4 2 5 8 the second pair alone is swapped"

    drive("nested_loop", script, size=(120, 40), starts_up=True, runs=True)


def two_nests(folder: Path) -> Debugger:
    """Two loops one after the other, of 2 and 3 iterations, in each of which another one adds 1 four times."""
    net = Graph()
    value = net.parameter("x", dims=(2,))
    for name, count in (("first", 2), ("second", 3)):
        body = net.body()
        state = body.parameter("state", dims=(2,))
        within = body.body()
        inner = within.parameter("inner", dims=(2,))
        sum_ = within.result(within.apply("Add", inner, within.constant([1.0]), name=f"{name}_add"), "inner_next")
        (made,) = body.loop(f"{name}_within", within, 4, True, [carried(state, inner, sum_)], [last(sum_)])
        out = body.result(body.apply("Relu", made, name=f"{name}_relu"), "state_next")
        (value,) = net.loop(name, body, count, True, [carried(value, state, out)], [last(out)])
    net.result(value, "y")
    return opened(folder, net, np.zeros(2, np.float32))


def test_a_view_that_is_opened_from_the_overview_is_of_the_loop_of_the_cursor(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        pane = driven.app.focused_pane
        assert isinstance(pane, OverviewPane)
        while pane.cards[pane.at.card].name != "second":
            await driven.press("tab")
        for view, selector in (("grid", "grid"), ("timeline", "chart")):
            await driven.type(f"view {view}")
            await found(driven)
            await driven.filled()
            assert "second, the whole run" in driven.text(selector)
            await driven.press("q")
            assert driven.app.front.view_name == "overview", "and one step leads back"
        await driven.type("table")
        await driven.filled()
        rows = [line.split() for line in driven.text("table").splitlines()]
        assert ["▌", "0", "12", "12"] in rows, "8 ones of the first loop, and 4 more"

    drive(two_nests(tmp_path), script, size=(120, 40), runs=True)


def test_from_a_run_of_an_inner_loop_one_step_leads_to_the_loop_around_it(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("loop-run second@1::second_within")
        await driven.filled()
        assert "in second 0 1 2" in driven.text("grid")
        await driven.press("q")
        await driven.filled()
        assert "second, the whole run" in driven.text("grid"), "not the first loop of the model"
        await driven.press("q")
        assert driven.app.front.view_name == "overview"

    drive(two_nests(tmp_path), script, size=(120, 40), runs=True)


def test_at_the_prompt_of_grid_and_table_names_mean_the_iteration_of_the_cursor() -> None:
    course = sorting()

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("loop-run passes@1::pairs_of_neighbours")
        await driven.filled()
        await driven.type("print values_next[1]")  # of the last iteration of the second pass
        assert f"{course[1][-1][1]:g}." in driven.text("answer")
        await driven.press("q", "q")
        await driven.type("table passes@0::pairs_of_neighbours::values_next")
        await driven.filled()
        await driven.press("down")
        await driven.type("print values_next[2]")
        assert f"{course[0][1][2]:g}." in driven.text("answer")

    drive("nested_loop", script, size=(120, 40), runs=True)


def test_a_run_that_is_named_where_none_is_shown_opens_the_grid_and_what_there_is_not_is_said() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("view ports")
        await driven.type("loop-run passes")
        assert driven.app.front.view_name == "grid"
        await driven.type("open-output 3")
        assert "there is no output 3; there are 3" in driven.text("answer")
        await driven.type("view")
        assert "view overview" in driven.text("card")
        await driven.press("escape")
        await driven.type("search swaps_by_pass")
        assert "passes, the output swaps_by_pass" in driven.text("answer")

    drive("nested_loop", script, size=(120, 40))


def test_in_a_grid_that_is_seen_from_outside_keys_act_on_the_cell_and_a_movement_shows_the_moment_again() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("view grid")
        await found(driven)
        await driven.press("up", "up")  # from the last operation of the last pass to its inner loop
        assert driven.app.filled("{op}") == "passes@2::pairs_of_neighbours"
        await driven.press("number_sign")
        await driven.filled()
        assert driven.text("table").splitlines()[0].startswith("▌table   passes   pairs_of_neighbours f32")
        await driven.press("q", "b")
        assert [one.description.text for one in driven.state.breaks] == ["passes@2::pairs_of_neighbours"]
        await driven.type("delete 1")
        await driven.press("t")
        await driven.filled()
        assert [frame.iteration for frame in driven.state.frames[1:]] == [2, 0], "into its first iteration"
        assert "the whole run" not in driven.text("grid") and "swapped" in driven.text("grid")

    drive("nested_loop", script, size=(120, 40), runs=True)


def test_a_table_and_a_watch_of_a_run_that_is_named_are_of_that_run() -> None:
    """The course of bubble sort on 5 1 4 2 8: in pass 1 the elements 1 and 2 are in order after its pair 1."""

    async def script(driven: Driven) -> None:
        await driven.type("watch passes@1::values_next[1]")
        await driven.type("view watches")
        await driven.filled()
        assert "2 at 2, the last" in driven.text("watches")
        assert "in passes 0 1 2" in driven.text("chart")
        await driven.press("q")
        for around in ("", "goto passes@1::in_order@0"):
            if around:
                await driven.type(around)
            await driven.type("table passes@0::values_next")
            await driven.filled()
            held = driven.text("table").split("───")[-1].replace("▌", " ").splitlines()
            assert [line.split()[1:] for line in held[1:]] == [list(row) for row in ("542", "452", "425", "425")]
            await driven.press("q")

    drive("nested_loop", script, size=(120, 40), runs=True)


def test_a_table_names_its_loop_and_the_run_of_it_and_one_of_a_grid_is_of_the_loop_that_is_seen() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        for view in ("grid", "timeline"):
            await driven.type("loop-run passes@1::pairs_of_neighbours")
            await driven.type(f"view {view}")
            await driven.filled()
            await driven.type("table")
            await driven.filled()
            heading = "▌table   pairs_of_neighbours in passes 1   values f32[5] and swaps i64[] after each iteration"
            assert driven.text("table").splitlines()[0] == heading
            await driven.press("q")
        await driven.type("table order")
        await driven.type("goto passes@0::values_next@0")
        assert driven.text("table").splitlines()[0] == "▌table   passes   order f32[5] after each iteration"

    drive("nested_loop", script, size=(120, 40), runs=True)


def test_an_iteration_by_its_number_alone_is_one_of_the_loop_of_the_cursor() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("tab")  # the last pass of the inner loop
        await driven.type("A 1")
        assert "A  iteration 2 > 1   now outside of loops" in driven.text("top"), "with those around it"
        await driven.type("goto @1")
        assert [frame.iteration for frame in driven.state.frames[1:]] == [2, 1]
        await driven.type("view overview")
        await driven.press("shift+tab", "left")
        await driven.type("goto 0")
        assert [frame.iteration for frame in driven.state.frames[1:]] == [0]

    drive("nested_loop", script, size=(120, 40), runs=True)


def test_keys_of_a_timeline_that_is_seen_from_outside_do_not_act_on_another_operation() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("view timeline")
        await driven.filled()
        for key in ("w", "b", "o"):
            await driven.press(key)
            assert "the timeline is of passes, in which the run does not stand" in driven.text("answer")
            assert driven.app.front.view_name == "timeline"
        assert not driven.state.watches and not driven.state.breaks
        await driven.press("right_square_bracket", "w")
        assert [one.text for one in driven.state.watches] == ["passes::pairs_left"]

    drive("nested_loop", script, size=(120, 40), runs=True)
