"""Two moments on the screen, by keys: A in the list, the centre and the top bar; an edit against the original run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.moments.moment import MomentKind
from stepper.tensors.difference import Change
from tests.compare.twins import X, recurrence
from tests.models import Graph, carried, last
from tests.tui.driven import DECODER, Driven, drive
from tests.tui.time_models import lengthening, opened, rising
from tui.screens.main.screen import MainScreen
from tui.theme import Look

AT_THE_KEY = ("run-to key@7",)
EDIT = ("asterisk", "8", "0", "enter")
"""The bad element is proposed, its value is typed: four keys."""


def line_of(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if name in line.split())


def test_an_edit_is_held_against_the_original_in_four_keys() -> None:
    async def script(driven: Driven) -> None:
        await driven.press(*EDIT)
        await driven.filled()
        shown = driven.text("spread")
        found = driven.state.a and driven.state.a.spread
        assert found is not None and found.outputs[0].first in (7, 8), "7 by a last digit, which is the processor's"
        changed = f"outputs mixed and wkv changed in {12 - found.outputs[0].first} of 12 rows"
        assert f"{changed}, first in iteration {found.outputs[0].first}" in shown
        assert "key[0,3]@7" in shown and "4 rows mended" in shown and changed in driven.text("answer")
        assert line_of(shown, "key").split()[-12:] == ["·"] * 7 + ["*"] + ["·"] * 4
        assert line_of(shown, "denominator_next").split()[-12:] == ["·"] * 7 + ["✓"] * 5
        assert line_of(shown, "receptance").split()[-12:] == ["·"] * 12
        assert "A  branch original   now branch edit-1" in driven.text("top")
        await driven.type("run-to wkv@8")
        listed = driven.text("operations")
        assert line_of(listed, "wkv").split()[-3:] == ["NaN", "9.104", "mended"]
        assert line_of(listed, "key").split()[-1] == "=" and line_of(listed, "mixed").split()[-2:] == ["NaN", "·"]
        pair = driven.text("pair").splitlines()
        assert pair[1].split() == ["A", "10.970", "-0.015", "0.367", "NaN", "7.409", "-0.385", "1.476", "-2.656"]
        assert pair[3].split()[3:] == ["=", "=", "=", "mended", "=", "=", "=", "="]
        assert "NaN → 21.870   the other 7 have the same bits" in pair[4]
        await driven.press("apostrophe", "A")
        assert driven.state.branch == "original" and driven.state.a is not None
        assert driven.state.a.moment.branch == "edit-1"
        await driven.press("apostrophe", "A", "tab")
        while driven.app.focused_pane is not driven.pane("spread"):
            await driven.press("tab")
        await driven.filled()
        await driven.press("x")
        assert driven.state.iteration == 8 and driven.state.frame is not None
        where = driven.state.frame.layers[driven.state.frame.moment].name
        assert where == ("gated" if found.outputs[0].first == 8 else "kept_weight"), (
            "where the next operation begins to differ"
        )
        await driven.press("v")
        assert not driven.pane("spread").display and driven.pane("graph").display
        await driven.press("V", "V")
        assert driven.pane("spread").display and "receptance" not in driven.text("spread")

    drive("rwkv_overflow", script, size=(160, 48), lines=AT_THE_KEY)


def test_a_value_that_is_still_to_come_is_changed_when_the_run_has_come_to_it() -> None:
    async def script(driven: Driven) -> None:
        frame = driven.state.frame
        assert frame is not None
        index = next(at for at, layer in enumerate(frame.layers) if layer.name == "wkv")
        assert frame.moment < index
        driven.app.select(index)
        await driven.press("asterisk")
        typed = driven.app.front.prompt.value
        assert typed.startswith("set time_mixing::wkv@7[0,") and typed.endswith("] ="), typed
        element = int(typed.removesuffix("] =").rpartition(",")[2])
        await driven.press("2", "enter")
        frame = driven.state.frame
        assert driven.state.branch == "edit-1" and driven.state.iteration == 7 and frame is not None
        changed = frame.output(index).array
        assert changed is not None and changed[0, element] == 2 and frame.moment == index

    drive("rwkv_overflow", script, size=(120, 40), lines=("run-to denominator_now@7",))


def test_compare_says_where_a_stands_if_it_is_no_reference() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("set key[0,3] = 80")
        for view in ("main", "sheet"):
            await driven.type(f"view {view}")
            await driven.press("D")
            assert not driven.app.front.view_name, "the main screen"
            assert "A, branch original, and now stand side by side here" in driven.text("answer")
            assert "reference FILE" in driven.text("answer")

    drive("rwkv_overflow", script, size=(120, 40), lines=AT_THE_KEY)


def test_two_iterations_side_by_side_in_three_keys() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("m", "A", "right_square_bracket")
        assert "A  iteration 2   now iteration 3" in driven.text("top")
        listed = driven.text("operations")
        assert line_of(listed, "wkv").split()[-1] not in ("=", "·") and "differ" in listed
        assert "A | now | difference" in driven.text("moments") and "numerator" in driven.text("moments")
        assert not driven.pane("graph").display and not driven.pane("value").display
        await driven.filled()
        strips = [line for line in driven.text("edges").splitlines() if line.startswith(" from A")]
        outputs = [line for line in driven.text("scans").splitlines() if line.startswith(" from A")]
        assert len(strips) == 2 and len(outputs) == 2, "each back edge and output has where it differs from A"
        assert all(line.split()[2:3] == ["·"] for line in (*strips, *outputs)), "in the iteration of A nothing does"
        await driven.type("A +1")
        assert "A  iteration 3   now iteration 3" in driven.text("top")
        assert {line.split()[-1] for line in driven.text("operations").splitlines()[1:9]} == {"="}
        await driven.press("equals_sign", "equals_sign")
        assert driven.state.a is not None and driven.state.a.moment.kind is MomentKind.BEFORE
        found = driven.state.a.difference(driven.state.cursor or 0)
        assert found is not None and found.change is Change.NUMBER
        await driven.type("g")
        await driven.press("g")
        assert "no iteration before" in driven.text("top") and driven.pane("graph").display
        await driven.press("equals_sign")
        assert driven.state.a is None and driven.pane("graph").display and " A " not in driven.text("top")
        await driven.press("equals_sign")
        assert driven.state.a is None and "iteration 0 has none before it" in driven.text("answer")
        await driven.type("A 99")
        assert "the loop runs 12 iterations" in driven.text("moments")

    drive("rwkv_overflow", script, size=(160, 48), lines=("run-to wkv@2",))


async def _beside_the_iteration_before(driven: Driven) -> None:
    """Until the values of two moments and the picture below them are there."""
    await driven.ran()
    await driven.press("m", "A", "right_square_bracket")
    for _ in range(60):
        await driven.filled()
        if driven.app.screen.query("#course") and "11" in driven.text("course"):
            break
        await asyncio.sleep(0.05)
    await driven.filled()


def test_below_two_moments_the_value_stands_over_the_iterations_and_a_click_goes_to_one() -> None:
    async def script(driven: Driven) -> None:
        await _beside_the_iteration_before(driven)
        course = driven.pane("course")
        lines = driven.text("course").splitlines()
        assert lines[0].split() == ["wkv", "over", "iterations"]
        ruler = next(y for y, line in enumerate(lines) if line.split() == [str(at) for at in range(12)])
        assert all(lines[y].strip() for y in range(1, ruler)), "all lines above the numbers are the picture"
        place, below = driven.pane("moments").size.height, driven.pane("moments").count(course.size.width)
        assert course.size.height >= 7 and place == below + 1, "two moments have the lines that they need"
        await driven.pilot.click(course, offset=(lines[ruler].index("7"), 3))
        await driven.filled()
        assert driven.state.iteration == 7
        assert [line.split() for line in driven.text("course").splitlines()][ruler] == lines[ruler].split(), (
            "it stays where it is"
        )
        driven.pane("moments").focus()
        await driven.press("v")
        assert not course.display and driven.pane("graph").display

    drive("rwkv_overflow", script, size=(160, 48), lines=("run-to wkv@2",), runs=True)


def test_without_room_each_tab_has_its_rows_and_without_colours_signs_tell() -> None:
    async def script(driven: Driven) -> None:
        await driven.press(*EDIT)
        await driven.filled()
        shown = driven.text("spread")
        assert line_of(shown, "exp_bonus").count("=") == 11 and "6" in line_of(shown, "exp_bonus").split()
        await driven.type("run-to wkv@8")
        await driven.shown_tab("ops")
        assert line_of(driven.text("operations"), "wkv").split()[-1] == "mended"
        await driven.press("tab")
        assert ["=", "=", "=", "mended"] in [line.split()[:4] for line in driven.text("pair").splitlines()]

    drive("rwkv_overflow", script, size=(80, 24), lines=AT_THE_KEY, look=Look(plain=True))


def test_enter_on_the_compare_screen_opens_the_two_moments_with_the_reference_as_a(tmp_path: Path) -> None:
    for name, fault in (("ours", ""), ("theirs", "one weight")):
        (tmp_path / name).mkdir()
        recurrence(fault).write(tmp_path / name)
    debugger = Debugger(stepper.read_model(tmp_path / "ours/model.xml"), {0: X})

    async def script(driven: Driven) -> None:
        assert driven.state.a is not None and driven.state.a.moment.kind is MomentKind.REFERENCE
        frame = driven.state.frame
        assert frame is not None
        await driven.press("D")
        await driven.filled()
        index = next(at for at, layer in enumerate(frame.layers) if layer.name == "xW")
        await driven.type(f"select {index}")
        await driven.press("enter")
        await driven.filled()
        assert isinstance(driven.app.screen, MainScreen)
        found = driven.state.a.difference(index)
        assert found is not None
        np.testing.assert_allclose(found.largest, abs(float(X[3, 1])) * 1e-3, rtol=1e-3)
        assert line_of(driven.text("operations"), "xW").endswith("≠"), "above the tolerance"
        shown = driven.text("spread")
        steps = len(X)
        assert "output all_y differs in 6" in " ".join(shown.split()), shown
        assert line_of(shown, "row_t").split()[-steps:] == ["·"] * steps
        await driven.type("reference original")
        assert "now is branch original itself" in driven.text("answer")
        assert driven.state.a.moment.kind is MomentKind.REFERENCE

    path = tmp_path / "theirs/model.xml"
    drive(debugger, script, size=(120, 40), lines=(f"reference {path}", "run-to cell@0", "iter 3", "run-to y"))


def test_the_value_full_screen_is_three_pictures_with_one_cursor() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("m", "A", "right_square_bracket", "enter")
        await driven.filled()
        lines = [line.split() for line in driven.text("tensor").splitlines()]
        heads = [at for at, words in enumerate(lines) if words[:1] in (["A"], ["now"])]
        assert [lines[at][: 3 if place == 2 else 1] for place, at in enumerate(heads)] == [
            ["A"],
            ["now"],
            ["now", "−", "A"],
        ]
        a, now, gap = (np.array(lines[at + 2], float) for at in heads)
        np.testing.assert_allclose(gap, now - a, atol=2e-3)
        element = driven.text("element") if driven.app.screen.query("#element") else driven.text("tensor")
        assert f"{a[0]:.3f}" in element
        await driven.press("right", "right")
        assert f"{a[2]:.3f} → {now[2]:.3f}" in driven.text("tensor")
        await driven.press("equals_sign", "equals_sign", "equals_sign")
        assert driven.state.a is None and "now − A" not in driven.text("tensor")

    drive("rwkv_overflow", script, size=(160, 48), lines=("run-to wkv@2",))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_outside_of_its_loop_an_iteration_is_held_against_nothing(size: tuple[int, int]) -> None:
    def shown(driven: Driven) -> str:
        names = ("graph", "value", "operations", "edges")
        return "\n".join(driven.text(name) for name in names if driven.pane(name).display)

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("0")
        await driven.filled()
        before = shown(driven)
        await driven.press("equals_sign")
        told = driven.text("answer").strip()
        assert told == "outside of loops there is no iteration before; A LOOP@N holds iteration N"
        assert driven.state.a is None and shown(driven) == before
        await driven.type("A time_mixing@3")
        await driven.filled()
        assert driven.state.a is not None and driven.pane("graph").display and not driven.pane("moments").display
        assert shown(driven) == before and "A  iteration 3" in driven.text("top")
        await driven.type("goto key@5")
        assert driven.pane("moments").display and not driven.pane("graph").display
        await driven.press("equals_sign")
        assert driven.state.a is None

    drive("rwkv_overflow", script, size=size, runs=True)


def test_another_shape_than_in_the_iteration_before_has_its_sign_in_the_list() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        assert any(line.rstrip().endswith("~") for line in driven.text("operations").splitlines())
        await driven.press("g")
        assert "~" not in driven.text("operations")

    drive(lengthening(6), script, size=(160, 48), lines=("run-to range@2",))


def test_at_the_end_the_edit_is_seen_to_have_spread_over_the_whole_run() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("A original")
        assert "now is branch original itself" in driven.text("answer")
        await driven.press("enter", "asterisk", "8", "0", "enter")
        await driven.filled()
        await driven.type("continue")
        await driven.type("view main")
        await driven.filled()
        shown = driven.text("spread")
        assert "changed in 4 of 12 rows, first in iteration 8" in " ".join(shown.split())
        course = {parts[0]: parts[1:] for parts in map(str.split, shown.splitlines()) if len(parts) == 13}
        first = next(iter(course))  # the list begins with the first operation that differs
        assert course[first] == ["·"] * 8 + ["✓"] * 4
        assert driven.text("top").count("A") == 1 and "now branch edit-1" in driven.text("top")

    drive("rwkv_overflow", script, size=(80, 24), runs=True)


def test_the_value_over_the_iterations_is_drawn_once_and_beside_it_as_colours() -> None:
    async def script(driven: Driven) -> None:
        await _beside_the_iteration_before(driven)
        assert "over iterations" in driven.text("course") and driven.pane("spare").display
        assert "over iterations" not in driven.text("spare") and driven.text("spare").split()[0] == "wkv"

    drive("rwkv_overflow", script, size=(200, 60), lines=("run-to wkv@2",), runs=True)


def test_a_carried_value_of_another_shape_is_told_in_whole_words_at_every_width() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("m", "A", "right_square_bracket")
        for size in ((120, 40), (160, 48)):
            await driven.pilot.resize_terminal(*size)
            await driven.filled()
            told = [line.rstrip() for line in driven.text("moments").splitlines() if "f32[4,16] → f32[5,16]" in line]
            assert len(told) == 1 and told[0].endswith(("another shape", "f32[5,16]"))

    drive("date_normaliser", script, size=(160, 48), lines=(f"run-to {DECODER}@4",))


def test_iterations_that_the_original_does_not_run_are_marked_where_the_edit_spread() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("run-to guess_next@2")
        await driven.type("set guess_next[0] = 1000000")
        await driven.filled()
        text = driven.text("spread")
        assert "+ only now" in " ".join(text.split())
        row = next(line for line in text.splitlines() if line.strip().startswith("guess_row"))
        assert row.count("+") == driven.state.a.spread.cells.iterations - 9  # type: ignore[union-attr]

    drive("do_while_loop", script, size=(160, 48))


def test_the_rule_above_the_course_of_a_value_is_ascii_where_all_is() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto passes@1::values_next@1")
        await driven.type("A 0")
        await driven.filled()
        assert driven.pane("course").styles.border_top[0] == "ascii"

    drive("nested_loop", script, size=(120, 40), runs=True, look=Look(ascii=True))


def test_back_edges_of_booleans_change_by_no_number_and_their_median_is_one_of_them() -> None:
    net = Graph()
    body = net.body()
    flags = body.parameter("flags", "boolean", (3,))
    turned = body.apply("LogicalXor", flags, body.constant([True, True, False], np.bool_), name="turned")
    out = body.result(turned, "flags_next")
    net.result(
        net.loop("turns", body, 5, True, [carried(net.parameter("f", "boolean", (3,)), flags, out)], [last(out)])[0]
    )

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto turned@2")
        await driven.filled()
        shown = driven.text("edges")
        assert "2 of 3" in shown and "Δ" not in shown.split("\n", 1)[1]
        await driven.type("sheet turned[0]")
        await driven.filled()
        told = [line.split()[:2] for line in driven.text("inspector").splitlines() if line.strip()]
        assert ["median", "T"] in told and ["min", "F"] in told, told

    drive(opened(net, np.zeros(3, bool)), script, size=(120, 40), runs=True)


@pytest.mark.parametrize("arrow", ["→", "->"])
def test_booleans_say_what_they_were_and_are_on_every_page(arrow: str) -> None:
    """h + 1 from 0 on is above 2.5, 4.5 and 6.5: in iteration 1 none of the three, in iteration 5 the first two."""

    async def script(driven: Driven) -> None:
        await driven.ran()
        for line in ("goto both@5", "A 1", "view main"):
            await driven.type(line)
        await driven.filled()
        listed = driven.text("operations")
        assert line_of(listed, "above").endswith("2 of 3") and line_of(listed, "any").split()[-1] == f"F{arrow}T"
        await driven.type("sheet above, any")
        await driven.filled()
        rows = driven.text("sheet").splitlines()
        assert any(line.split()[-4:] == ["T", "F", "F", "T"] or "T" in line for line in rows), "and not 1 and 0"
        await driven.type("view overview")
        await driven.ran()
        found = {}
        for _ in range(6):
            shown = driven.text("overview").splitlines()
            at = next(k for k, line in enumerate(shown) if line.split()[:1] == ["now"])
            found[shown[at - 1].split("@")[0].strip()] = [line.split()[1:] for line in shown[at : at + 2]]
            await driven.press("down")
        assert found["both"] == [["T"], ["F", f"F{arrow}T"]]
        assert found["above"] == [["T", "T", "F"], ["F", "F", "F", "2", "of", "3", "differ"]]

    drive(rising(8), script, look=Look(ascii=arrow == "->"), runs=True)
