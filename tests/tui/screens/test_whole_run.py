"""Grid, timeline and watches are of a whole run: from the start, at the end, of each run of an inner loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stepper.debug.debugger import Debugger
from tests.debug.debugged import opened, sample
from tests.models import Graph, carried, last
from tests.tui.driven import Driven, drive


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
        assert driven.app.front.view_name == "sheet"

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


def test_a_watch_of_an_inner_loop_is_filled_from_the_start() -> None:
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

        async def shown() -> None:
            for _ in range(4):
                await driven.filled()

        await driven.type("watch larger")
        await driven.type("watch order")
        await driven.press("W")
        await shown()
        assert seen("larger") == larger_of(0)
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


def test_a_table_and_a_watch_of_a_run_that_is_named_are_of_that_run() -> None:
    """The course of bubble sort on 5 1 4 2 8: in pass 1 the elements 1 and 2 are in order after its pair 1."""

    async def script(driven: Driven) -> None:
        await driven.type("watch passes@1::values_next[1]")
        await driven.type("view watches")
        await driven.filled()
        assert "2 at 2, the last" in driven.text("watches")
        await driven.press("q")
        for around in ("", "goto passes@1::in_order@0"):
            if around:
                await driven.type(around)
            await driven.type("sheet passes@0::values_next")
            await driven.filled()
            rows = [line.split("│")[0].split() for line in driven.text("sheet").splitlines() if "values_next" in line]
            first = sorting()[0]
            assert [row[-4:] for row in rows[-5:]] == [[f"{step[k]:g}" for step in first] for k in range(5)]
            await driven.press("q")

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
