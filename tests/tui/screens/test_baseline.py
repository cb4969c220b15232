"""A baseline by keys: another iteration, the run before an edit, another model; every number from numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stepper_tui.theme import Look

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.moments.moment import MomentKind
from tests.compare.twins import WEIGHTS, X, recurrence
from tests.debug.debugged import SAMPLES, sample
from tests.tui.driven import Driven, drive
from tests.tui.time_models import rising

EDIT = ("asterisk", "8", "0", "enter")
"""The bad element is proposed, its value is typed: four keys."""


@pytest.fixture
def twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Debugger:
    """The healthy recurrence, and in the working folder `theirs/model.xml` with another W."""
    for name, fault in (("ours", ""), ("theirs", "one weight")):
        (tmp_path / name).mkdir()
        recurrence(fault).write(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return Debugger(stepper.read_model(Path("ours/model.xml")), {0: X})


def test_an_edit_is_compared_with_the_run_before_and_taken_back() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":goto key@7", ":set key[0,3] = 80")
        assert driven.rows == "changed" and driven.at == ("key", 7)
        assert "A  branch original" in driven.text("top") and "edited*" in driven.text("top")
        assert "first differs from A in MatMul key@7" in driven.text("headline")
        assert "key @7 [0,3]" in driven.text("inspector"), "the element that was set, not the first one"
        assert driven.row("wkv")[-2:] == ["4.740", "✓✓"] or "✓" in driven.row("wkv")[-1]
        await driven.do(":goto wkv@8")
        assert "A @8  NaN   fixed" in driven.text("inspector")
        await driven.do("apostrophe", "A")
        assert not driven.state.is_edited and driven.state.a is not None and driven.state.a.moment.branch == "edit-1"
        await driven.do("apostrophe", "A")
        assert driven.state.is_edited
        await driven.do(":undo", ":A off", ":rows carried")
        assert not driven.state.is_edited and "NaN in Divide wkv@8" in driven.screen

    drive("rwkv_overflow", script, size=(160, 48), runs=True)


def test_after_an_edit_of_what_has_no_row_esc_comes_back_to_all_rows_of_the_loop() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":rows all", ":set i@1 = 3")
        assert driven.rows == "changed" and driven.names == ["Add_5"], "a Parameter has no row among the operations"
        await driven.do("escape")
        assert driven.rows == "all" and len(driven.names) == 64 and "Loop" in driven.text("top")

    drive("date_normaliser", script, size=(160, 48), runs=True)


def test_of_an_iteration_that_the_loop_does_not_have_the_inspector_says_so() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":A 99")
        assert "A  the loop has no iteration 99" in driven.text("inspector")
        await driven.do(":A 10")
        assert "no iteration" not in driven.text("inspector") and "A @10" in driven.text("inspector")

    drive("date_normaliser", script, size=(160, 48), runs=True)


def test_four_keys_edit_the_element_of_the_cursor_and_signs_tell_without_colours() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(*EDIT)
        assert driven.at == ("exp_key", 7) and "set by hand" in driven.text("inspector")
        assert "exp_key" in driven.names and "receptance" not in driven.names
        assert set(driven.row("exp_key")[1]) == {"="}, "what came before is the same"

    drive("rwkv_overflow", script, size=(80, 24), look=Look(plain=True), runs=True)


def test_a_value_of_a_cell_is_changed_in_its_iteration_wherever_the_run_stands() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":rows all")
        driven.sheet.go_to(5, driven.names.index("wkv"))
        await driven.filled()
        await driven.press("asterisk")
        assert driven.app.front.prompt.value.startswith("set time_mixing::wkv@5[0,")
        await driven.do("2", "enter")
        assert driven.state.is_edited and driven.iterations == [5]
        assert "first differs from A in Divide wkv@5" in driven.text("headline")

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


def test_two_iterations_side_by_side() -> None:
    key = np.asarray(sample("rwkv_overflow").value("time_mixing::key@0:12"), np.float64).reshape(12, 8)

    async def script(driven: Driven) -> None:
        await driven.do(":sheet key", ":search [0,3]", "home", *["right"] * 6, "m", "A", "right")
        assert "A  iteration 6" in driven.text("top") and "A 6" in driven.text("sheet") and driven.at[1] == 7
        assert f"A @6  {key[6, 3]:.3f}   +{key[7, 3] - key[6, 3]:.3f}" in driven.text("inspector")
        seen = []
        for _ in range(4):
            await driven.do("equals_sign")
            seen.append(None if driven.state.a is None else driven.state.a.moment.kind)
        assert MomentKind.BEFORE in seen and None in seen, "it goes round"

    drive("rwkv_overflow", script, size=(160, 48), runs=True)


def test_booleans_say_what_they_were() -> None:
    """h + 1 from 0 on is above 2.5, 4.5 and 6.5: in iteration 1 none of the three, in iteration 5 the first two."""

    async def script(driven: Driven) -> None:
        await driven.do(":sheet any, above", "home")
        assert driven.row("any")[:3] == ["F", "F", "T"]
        await driven.do(":A rises@1", *["right"] * 5)
        assert "A @1  F   another" in driven.text("inspector")

    drive(rising(8), script, size=(160, 48), runs=True)


def test_a_twin_is_compared_and_the_cursor_is_on_the_first_difference(twins: Debugger) -> None:
    """By numpy in 64 bits x_t W differs in column 2 by x_t[1] / 1000."""

    async def script(driven: Driven) -> None:
        await driven.do(":compare theirs/model.xml")
        assert driven.at == ("xW", 0) and driven.rows == "changed"
        assert "first differs from theirs/model.xml in MatMul xW@0" in driven.text("headline")
        assert "row_t" not in driven.names and driven.row("hU")[1] == "=", "nothing is carried into iteration 0"
        changed = WEIGHTS.astype(np.float64)
        changed[1, 2] += 1e-3
        theirs, ours = X[0].astype(np.float64) @ changed, X[0].astype(np.float64) @ WEIGHTS
        told = driven.text("inspector")
        assert "xW @0 [0,2]" in told and f"A @0  {theirs[2]:.3f}   {ours[2] - theirs[2]:+.2e}"[:-5] in told
        assert (
            "agrees with theirs/model.xml: 6 iterations compared"
            in await driven.do(":tolerance 0 0.1", ":compare theirs/model.xml")
            or "every operation of this graph gives what it gave before" in driven.answer
        )

    drive(twins, script, size=(160, 48), runs=True)


def test_beside_a_reference_the_application_opens_where_the_first_value_differs(
    twins: Debugger, tmp_path: Path
) -> None:
    values = {f"xW@{at}": X[at][None] @ WEIGHTS + (0.5 if at >= 3 else 0) for at in range(6)}
    np.savez(tmp_path / "values.npz", **values)
    stepper.set_reference(twins, "values.npz")

    async def script(driven: Driven) -> None:
        await driven.settle()
        assert driven.at == ("xW", 3) and driven.rows == "changed"
        await driven.do("right", ":A off", ":rows carried")
        assert driven.rows == "carried"

    drive(twins, script, size=(120, 40), runs=True)


def test_an_archive_of_values_is_a_reference_too(twins: Debugger, tmp_path: Path) -> None:
    values = {f"xW@{at}": X[at][None] @ WEIGHTS + (0.5 if at == 3 else 0) for at in range(6)}
    np.savez(tmp_path / "values.npz", **values)

    async def script(driven: Driven) -> None:
        await driven.do(":compare values.npz")
        assert driven.at == ("xW", 3) and "first differs from values.npz in MatMul xW@3" in driven.text("headline")

    drive(twins, script, size=(160, 48), runs=True)


WRONG = (
    (":compare nowhere.xml", "nowhere.xml"),
    (":compare nowhere.npz", "nowhere.npz"),
    (":compare", "expected a model"),
    (":A it", "there is no"),
    (":tolerance x", "expected a relative tolerance"),
    (":rows changed", "there is no other run to compare with"),
)


def test_what_cannot_be_is_said_in_place(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        await driven.checks(*WRONG)

    drive(twins, script, size=(120, 40), runs=True)


def test_the_healthy_run_of_the_sample_is_an_archive_of_outputs() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(f":compare {SAMPLES / 'rwkv_overflow' / 'healthy.npz'}")
        assert "time_mixing" in driven.screen and driven.state.a is not None

    drive("rwkv_overflow", script, size=(160, 48), runs=True)
