"""A on the overview, by keys: where rows differ from A, and now, A and the difference at the cursor."""

from __future__ import annotations

import re

import numpy as np
import pytest

from stepper.tensors.number_text import fitted
from tests.models import Graph, carried, last
from tests.tui.driven import Driven, debugger_of_sample, drive
from tests.tui.time_models import opened

SAME_TO_6 = ["·"] * 7
MENDED_FROM_8 = (SAME_TO_6 + ["✓"] * 4, [*SAME_TO_6, "·"] + ["✓"] * 4)
"""What the edit makes of an output of rwkv_overflow. In iteration 7 a factor of e^80 or e^89 cancels out: a shade where
the machine rounds the two differently, else the same bits.
"""


def with_a_edit(*, is_low: bool) -> None:
    async def script(driven: Driven) -> None:
        await driven.press("asterisk", "8", "0", "enter")
        await driven.filled()
        await driven.press("0")
        await driven.ran()
        await driven.filled()
        for _ in range(12):
            if "\n wkv@" not in driven.text("overview"):
                await driven.press("down")
        await driven.press("right")
        lines = driven.text("overview").splitlines()
        if is_low:
            at = next(line for line in lines if line.startswith(" wkv@8"))
            assert "now [0,3] 21.870   A NaN   1 of 8 mended" in at
            assert not any("from A" in line for line in lines)
            return
        row = next(at for at, line in enumerate(lines) if line.startswith("▌⊞ wkv"))
        strip = next(line for line in lines[row:] if "from A" in line).split("from A")[1]
        assert strip.split() in MENDED_FROM_8
        now, a = (next(line for line in lines if line.split()[:1] == [name]).split() for name in ("now", "A"))
        assert now[1:] == ["10.970", "-0.015", "0.367", "21.870", *now[5:]]
        assert a[1:5] == ["10.970", "-0.015", "0.367", "NaN"] and a[9:] == ["1", "of", "8", "mended"]
        await driven.press("left", "left")
        assert next(line for line in driven.text("overview").splitlines() if line.split()[:1] == ["A"]).endswith(
            "same bits"
        )

    drive("rwkv_overflow", script, lines=("run-to key@7",), size=(80, 24) if is_low else (120, 40))


@pytest.mark.parametrize("is_low", [False, True], ids=["120x40", "80x24"])
def test_the_selected_row_is_held_against_the_original_run(is_low: bool) -> None:
    with_a_edit(is_low=is_low)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (200, 60)], ids=str)
def test_at_the_end_of_an_edited_run_the_original_stands_beside_it(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("set key[0,3]@7 = 80")
        await driven.filled()
        await driven.press("c")
        await driven.ran()
        await driven.filled()
        shown = driven.text("overview")
        changed = ("5 of 12 rows, first in iteration 7", "4 of 12 rows, first in iteration 8")
        assert any(f"edit    outputs mixed and wkv changed in {rows}" in shown for rows in changed), "as MENDED_FROM_8"
        if size[1] >= 40:
            strips = [line.split("from A")[1].split() for line in shown.splitlines() if "from A" in line]
            assert SAME_TO_6 + ["✓"] * 5 in strips, "the same bits up to iteration 6, finite from 7 on"
            assert any(one in strips for one in MENDED_FROM_8)

    drive("rwkv_overflow", script, size=size, runs=True)


def test_on_a_large_terminal_every_row_has_its_values_in_a_and_where_they_differ() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("asterisk", "8", "0", "enter")
        await driven.filled()
        await driven.press("0")
        await driven.ran()
        await driven.filled()
        lines = driven.text("overview").splitlines()
        strips = [line.split("from A")[1].split() for line in lines if "from A" in line]
        assert strips[:2] == [SAME_TO_6 + ["✓"] * 5] * 2, "back edges"
        assert len(strips) == 4 and all(one in MENDED_FROM_8 for one in strips[2:]), "outputs"
        begins = [at for at, line in enumerate(lines) if line.split()[:1] == ["A"]]
        of_a = [[line for line in lines[at:] if "from A" not in line][:8] for at in begins[:4]]
        assert len(begins) >= 4 and [any("N" in line for line in of) for of in of_a][2:] == [True, True]
        before = lines[: begins[0]]
        assert not any(" I " in line or " N " in line for line in before), "now nothing is infinite any more"

    drive("rwkv_overflow", script, lines=("run-to key@7",), size=(200, 60))


def test_each_iteration_is_held_against_a_pinned_one() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("A 3")
        await driven.filled()
        await driven.press("0")
        await driven.ran()
        await driven.filled()
        for _ in range(12):
            if "\n wkv@" not in driven.text("overview"):
                await driven.press("down")
        numbers = {}
        for _ in range(12):
            lines = driven.text("overview").splitlines()
            at = next(line for line in lines if line.startswith(" wkv@")).split()[0]
            numbers[at] = [next(line for line in lines if line.split()[:1] == [name]) for name in ("now", "A")]
            if at == "wkv@3":
                break
            await driven.press("left")
        now, a = numbers["wkv@3"]
        assert a.split()[1:9] == now.split()[1:9] and a.endswith("same bits")
        assert numbers["wkv@4"][1].split()[1:9] == now.split()[1:9] and "8 of 8 differ, by" in numbers["wkv@4"][1]

    drive("rwkv_overflow", script, lines=("run-to key@7",), size=(120, 40))


def test_from_outside_of_the_loop_a_pinned_iteration_stands_beside_that_of_the_cursor() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("m", "A", "left", "left")
        await driven.filled()
        lines = driven.text("overview").splitlines()
        now, a = (next(line for line in lines if line.split()[:1] == [name]).split() for name in ("now", "A"))
        assert now[1:] == ["5.285"] and a[1:] == ["4.281", "differs", "by", "1.004"]
        rails = next(line for line in lines if "later_return" in line)
        assert rails.count("▌    ▐") == 2, "the cursor and A"

    drive("reverse", script, size=(120, 40), runs=True)


def test_of_a_birth_a_has_its_own_numbers() -> None:
    """Those of the run without the edit, which differ from now's in iteration 2 and not in 7."""
    original = debugger_of_sample("rwkv_overflow")
    own = {}
    for iteration in (7, 2):
        original.goto(f"exp_key@{iteration}")
        own[iteration] = [fitted(float(one)) for one in np.ravel(original.value(f"exp_key@{iteration}"))]

    async def script(driven: Driven) -> None:
        await driven.ran()
        for line in ("goto key@2", "set key[0,0]@2 = 0.1"):
            await driven.type(line)
        await driven.filled()
        await driven.press("c")
        await driven.ran()
        await driven.filled()
        for iteration in (7, 2):
            lines = driven.text("overview").splitlines()
            assert any(line.startswith(f" exp_key@{iteration} ") for line in lines)
            now, a = (next(line for line in lines if line.split()[:1] == [name]).split() for name in ("now", "A"))
            assert a[1 : 1 + len(own[iteration])] == own[iteration]
            if iteration == 7:
                assert a[1:] == [*now[1:], "same", "bits"] and "+Inf" in a
                await driven.press("left", "left", "left", "left", "left")
            else:
                assert now[1] != a[1] and " ".join(a).endswith("1 of 8 differ, by 0.102")

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
def test_every_loop_of_the_run_is_held_against_the_original(size: tuple[int, int]) -> None:
    """Three loops add 0.5 three times each to 1; in the second one x becomes 100 in iteration 1."""
    net = Graph()
    value = net.parameter("x", dims=(1, 2))
    for k in range(3):
        body = net.body()
        x = body.parameter("x", dims=(1, 2))
        result = body.result(body.apply("Add", x, body.constant([[0.5]]), name=f"step_{k}"), "x_next")
        (value,) = net.loop(f"layer_{k}", body, 3, True, [carried(value, x, result)], [last(result)])
    net.result(value, "y")

    async def script(driven: Driven) -> None:
        await driven.ran()
        for line in ("goto step_1@1", "set step_1 = 100", "view overview"):
            await driven.type(line)
        await driven.ran()
        await driven.filled()
        told = {}
        for _ in range(3):
            await driven.press("end")
            lines = driven.text("overview").splitlines()
            at = next(k for k, line in enumerate(lines) if re.match(r" layer_(\d)::step_\1@2 ", line))
            told[lines[at].split("::")[0].strip()] = " ".join("".join(lines[at : at + 3]).split())
            await driven.press("tab")
        low = size[1] < 30
        assert "same bits" in told["layer_0"] and told["layer_0"].count("2.500") >= 2
        assert ("A 4 " if low else "A 4 4 ") in told["layer_1"] and "2 of 2 differ, by 96.500" in told["layer_1"]
        assert ("A 5.500" if low else "A 5.500 5.500") in told["layer_2"]
        assert "102" in told["layer_2"] and "2 of 2 differ, by 96.500" in told["layer_2"]

    drive(opened(net, np.ones((1, 2), np.float32)), script, size=size, runs=True)


def test_each_run_of_an_inner_loop_has_its_own_differences() -> None:
    """What the outer loop's first pass hands on is another list: every later one differs from the original's."""

    async def script(driven: Driven) -> None:
        await driven.ran()
        for line in ("goto passes@0::values_next@1", "set values_next = [9,8,7,6,5]", "view overview"):
            await driven.type(line)
        await driven.ran()
        await driven.filled()
        lines = [line.replace("▌", " ", 1) for line in driven.text("overview").splitlines()]
        assert "passes@0::values_next@1" in driven.text("overview"), (
            "the cursor is at the moment, however young the run was"
        )
        begin = next(k for k, line in enumerate(lines) if "pairs_of_neighbours" in line)
        at = next(k for k, line in enumerate(lines) if k > begin and line.split()[:2] == ["↺", "values'"])
        a = next(k for k, line in enumerate(lines) if k > at and line.split()[:1] == ["A"])
        columns = [line.replace("▌", " ").replace("▐", " ").split() for line in lines[a : a + 5]]
        columns[0] = columns[0][1:]
        # bubble sort of 5 1 4 2 8, pass by pass: 4, then 3, then 2 steps; the fourth run is of now alone
        steps = [[1, 5, 4, 2, 8], [1, 4, 5, 2, 8], [1, 4, 2, 5, 8], [1, 4, 2, 5, 8]]
        steps += [[1, 4, 2, 5, 8], [1, 2, 4, 5, 8], [1, 2, 4, 5, 8], [1, 2, 4, 5, 8], [1, 2, 4, 5, 8]]
        assert [[int(one) for one in column] for column in zip(*columns, strict=True)] == steps
        strip = next(line for line in lines[a:] if "from A" in line)
        assert strip.split("from A")[1].split()[0] == "·" and strip.rstrip().endswith("+"), "the last run is only now"

    drive("nested_loop", script, size=(200, 60), runs=True)


def test_two_rows_that_one_operation_gives_have_their_own_differences() -> None:
    """Bubble sort on 5 1 4 2 8, from pass 1 on with 3 for 1: pass 1 still swaps one pair, and its order is another."""

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto passes@1::values_next@0")
        await driven.type("set values_next[0] = 3")
        await driven.type("view overview")
        await driven.ran()
        await driven.filled()
        await driven.press("shift+tab")
        strips = {}
        lines = driven.text("overview").splitlines()
        for at, line in enumerate(lines):
            if "from A" in line and (head := next(one for one in reversed(lines[:at]) if one[1:2] in "↺⊞")):
                strips.setdefault(head.split()[1], line.split("from A")[1])
        swaps, order = strips["swaps_in_pass"], strips["order'"]
        assert swaps.split() == ["·", "·", "+"], "the same in passes 0 and 1, another in 2, and 3 is only now"
        assert order.split() == ["·", "+"], "the same in pass 0 alone"

    drive("nested_loop", script, size=(120, 40), runs=True)


def test_a_row_beside_another_iteration_is_not_told_the_difference_of_its_neighbour() -> None:
    """Bubble sort on 5 1 4 2 8: pass 2 leaves the order of pass 1, in which one pair was swapped."""

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto passes@2")
        await driven.type("A 1")
        await driven.type("view overview")
        await driven.filled()
        a = next(line for line in driven.text("overview").splitlines() if line.split()[:1] == ["A"])
        assert a.split()[1:6] == ["1", "2", "4", "5", "8"] and a.endswith("same bits")

    drive("nested_loop", script, size=(120, 40), runs=True)


@pytest.mark.parametrize(
    "name, iteration, line, said, mark",
    [
        ("while_loop", 3, "set condition = false", "ended at 3: the condition was set to false", True),
        ("for_loop", 2, "set trip-count = 5", "ended at 4: the trip count was set to 5", False),
    ],
)
def test_of_a_loop_that_was_ended_by_hand_the_card_says_so_and_the_condition_differs(
    name: str, iteration: int, line: str, said: str, mark: bool
) -> None:
    async def script(driven: Driven) -> None:
        await driven.type(line)
        await driven.press("0")
        await driven.ran()
        await driven.filled()
        await driven.press("up")
        lines = driven.text("overview").splitlines()
        assert any(said in one for one in lines) and "NotEqual(number" not in "".join(lines)
        if mark:
            row = next(at for at, one in enumerate(lines) if "go on?" in one)
            strip = next(one for one in lines[row:] if "from A" in one).split("from A")[1].split()
            assert strip[:3] == ["·"] * 3 and strip[3:4] != ["·"]

    drive(name, script, lines=(f"goto {iteration}",))
