"""A run of a loop that is another one than the first: its timeline, and A in another run of the same loop."""

from __future__ import annotations

import asyncio

from tests.tui.driven import Driven, drive
from tests.tui.time_models import lengthening, swinging


def columns_of(driven: Driven, name: str) -> list[str]:
    """What the timeline has for a scalar in each iteration that is known."""
    line = next(line for line in driven.text("time").splitlines() if line.split()[:1] == [name])
    words = line.replace("▌", " ").replace("▐", " ").split()[1:-1]
    return [word for word in words if not set(word) & {"·", "╌"}]


def test_the_timeline_has_the_whole_run_after_an_edit_and_after_it_is_undone() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto 5")
        original = ["2", "0", "2", "6", "10", "1", "1", "10", "2", "0", "12"]
        assert columns_of(driven, "tok'") == original
        await driven.type("set tok = 3")
        await driven.filled()
        assert "edited" in driven.text("time") and "╌" not in driven.text("time")
        await driven.type("watch tok")
        await driven.filled()
        entered = columns_of(driven, "tok")
        assert len(entered) == 11 and entered[:6] == ["11", *original[:4], "3"]
        await driven.type("undo")
        await driven.type("unwatch 1")
        await driven.filled()
        assert columns_of(driven, "tok'") == original and "edited" not in driven.text("time")

    drive("date_normaliser", script, size=(140, 40), starts_up=True, runs=True)


def test_the_timeline_of_an_inner_loop_has_the_iterations_that_are_to_come() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto passes@0::values_next@1")
        assert columns_of(driven, "swaps'") == ["1", "2", "3", "3"]
        await driven.type("goto passes@1")
        await driven.type("goto values_next@0")
        assert columns_of(driven, "swaps'") == ["0", "1", "1"]

    drive("nested_loop", script, size=(140, 40), starts_up=True, runs=True)


def test_a_in_another_run_of_a_loop_says_which_and_is_marked_in_that_run_alone() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto passes@0::values_next@2")
        await driven.press("m", "A")
        assert "A  iteration 2" in driven.text("top") and "now iteration 2" in driven.text("top")
        await driven.type("goto passes@1")
        await driven.type("goto values_next@1")
        assert "A  iteration 0 > 2" in driven.text("top") and "now iteration 1 > 1" in driven.text("top")
        assert driven.state.iterations_of_a == () and " A " not in driven.text("time")
        await driven.press("0")
        inner = next(line for line in driven.text("overview").splitlines() if line.lstrip("▌ ").startswith("↺ values"))
        assert inner.count("▌") - inner.startswith("▌") == 2 and inner.index("▐") < len(inner) // 2
        await driven.press("0")
        await driven.type("goto passes@0")
        await driven.type("goto values_next@1")
        assert "A  iteration 2" in driven.text("top") and driven.state.iterations_of_a == (2,)
        await driven.type("A passes@0")
        assert "A  iteration 0 > 1" in driven.text("top") and "now iteration 0 > 1" in driven.text("top")

    drive("nested_loop", script, size=(140, 40), starts_up=True, runs=True)


def test_what_grows_is_shown_by_what_each_iteration_adds_and_is_the_same_everywhere() -> None:
    tokens = ["2", "0", "2", "6", "10", "1", "1", "10", "2", "0", "12"]

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto `Concat_5`@5")
        await driven.type("watch `Concat_5`")
        await driven.type("watch conf")
        await driven.filled()
        time = driven.text("time").splitlines()
        grown = next(line for line in time if "Concat_5 +" in line)
        assert [word for word in grown.replace("▌", " ").replace("▐", " ").split()[2:] if word.isdecimal()][
            :11
        ] == tokens
        assert any(line.strip().startswith("conf ~rms") for line in time)  # says which number of a shape that changes
        listed = next(line for line in driven.text("operations").splitlines() if "Concat_5 +" in line)
        assert listed.split()[-1] == tokens[5]
        await driven.type("view sheet")
        await driven.type("rows watched")
        await driven.filled()
        row = next(line for line in driven.text("sheet").splitlines() if "  Concat_5 +  " in line)
        wide = [word for word in row.split() if word.isdecimal()]
        assert wide == tokens[3:7], "what iterations 3 to 6 add stands in wide columns"
        await driven.press("q", "g", "x")  # no shape is odd, as the overview says
        assert driven.state.ending is not None
        assert "✓ shapes stay" in driven.text("overview")

    drive("date_normaliser", script, size=(140, 40), starts_up=True, runs=True)


def test_what_became_of_an_output_that_the_body_joins_has_rows_and_a_name() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto 5")
        await driven.type("set tok = 3")
        await driven.filled()
        await driven.type("diff")
        told = " ".join(driven.text("card").split())
        assert "1 of 7 values that entered the iteration differ" in told and "no operation has run here yet" in told
        assert "at the end: outputs atts" in told
        await driven.press("escape")
        await driven.press("0")
        await driven.filled()
        assert (
            "outputs atts (Result_525) and conf (Result_524) changed in 6 of 11 rows, first in iteration 5"
            in driven.text("overview")
        )

    drive("date_normaliser", script, size=(200, 60), starts_up=True, runs=True, lines=())


def test_shapes_that_do_not_grow_piece_by_piece_are_still_odd() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("x")
        assert "shape or type of Range 'range' changed" in driven.text("answer")

    drive(lengthening(6), script)


def test_after_an_edit_the_whole_run_is_known_long_before_it_is_compared_with_the_original() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto 5")
        driven.app.perform("set h = 3")  # without waiting until everything is done
        known = 0
        for _ in range(1000):
            await asyncio.sleep(0.02)
            history = driven.state.loop_history
            if driven.state.branch == "edit-1" and history is not None:
                known = max(one.values.count for one in history.rows if one.values is not None)
            if known == 300_000:
                break
        assert known == 300_000 and driven.state.a is not None
        spread = driven.state.a.spread
        assert spread is None or not spread.is_complete

    drive(swinging(300_000), script, size=(140, 40), starts_up=True, runs=True)
