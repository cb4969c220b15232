"""An address that is typed means the same behind every command: the run, and the iteration, of the cursor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stepper_tui.screens.cursor_lines import in_iterations

from stepper.debug.iterations.far_runs import LookedAt, Reading
from stepper.query.address_syntax import parse_address
from tests.tui.driven import Driven, drive
from tests.tui.time_models import counting_in_three

WHERE = {"deep": "outer@{}::mid@{}::deep::n_add@{}", "mid": "outer@{}::mid::m_abs@{}", "outer": "outer::o_abs@{}"}


async def put_cursor(driven: Driven, loop: str, *iterations: int) -> None:
    """Put the cursor on a row of a run of a loop; the run itself stays."""
    driven.sheet.go_to_address(WHERE[loop].format(*iterations))
    await driven.filled()
    assert driven.at[1] == iterations[-1]


MOVES = [
    ("goto n_add@2", [1, 1, 2]),
    ("goto n_add", [1, 1, 3]),
    ("goto nx", [1, 1, 3]),
    ("goto mid@0::n_add@2", [1, 0, 2]),
    ("goto outer@2::mid@0::deep::n_add@2", [2, 0, 2]),
    ("goto deep@2", [1, 1, 2]),
    ("goto mid@0", [1, 0]),
    ("goto 2", [1, 1, 2]),
    ("2", [1, 1, 2]),
    ("goto @1", [1, 1, 1]),
    ("goto @-1", [1, 1, 3]),
    ("goto -2", [1, 1, 2]),
    ("goto n_add@-2", [1, 1, 2]),
    ("goto m_abs", [1, 1]),
    ("goto o_abs", [1]),
    ("run-to n_add@2", [1, 1, 2]),
    ("run-to @2", [1, 1, 2]),
    ("run-to n_add", [0, 0, 0]),  # the next time, as everywhere
    ("set n_add@2 = 50", [1, 1, 2]),
    ("set n_add = n_add@0 + 1", [1, 1, 3]),
    ("set nx = 50", [1, 1, 3]),
    ("set m_abs = 50", [1, 1]),
]
TOLD = [
    ("print n_add@2", "15."),  # 8 + 4 + 3
    ("print nx", "16."),  # as its row shows it: what iteration 3 hands on
    ("print nx@3", "15."),  # what enters it
    ("print mid@0::n_add@2", "11."),
    ("print n_add@2 - n_add@0", "2."),
    ("stats n_add@2", "15"),
    ("why n_add@2", "outer@1::mid@1::n_add@2"),
    ("watch n_add@2", "outer@1::mid@1::deep::n_add@2"),
    ("watch n_add", "watch 2 n_add = 16."),
    ("sheet n_add", "outer @1 › mid @1 › deep"),
    ("A n_add@2", "A is iteration 1 > 1 > 2"),
    ("A @-1", "A is iteration 1 > 1 > 3"),
    ("A 2", "A is iteration 1 > 1 > 2"),
    ("A m_abs", "A  iteration 1 > 1"),
]


def test_a_movement_or_an_edit_goes_into_the_run_of_the_cursor_and_what_is_told_is_of_it() -> None:
    async def script(driven: Driven) -> None:
        for line, iterations in MOVES:
            if driven.state.is_edited:
                await driven.do(":undo")
            await driven.do(":first")
            await put_cursor(driven, "deep", 1, 1, 3)
            await driven.do(f":{line}")
            assert driven.iterations == iterations, (line, driven.answer)
        await driven.do(":undo", ":first")
        for line, shown in TOLD:
            await put_cursor(driven, "deep", 1, 1, 3)
            assert shown in await driven.do(f":{line}"), (line, driven.screen)

    drive(counting_in_three(), script, size=(120, 40), runs=True)


def test_a_value_is_written_as_it_is_in_the_run_of_the_cursor(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await put_cursor(driven, "deep", 1, 1, 3)
        await driven.type(f"save n_add@2 {tmp_path}/value.npy")
        assert np.load(tmp_path / "value.npy") == 15

    drive(counting_in_three(), script, size=(120, 40), runs=True)


@pytest.mark.parametrize(
    ("reading", "asked", "meant"),
    [
        (Reading.VALUE, "n_add", "outer@1::mid@0::deep::n_add@3"),
        (Reading.VALUE, "n_add@*", "outer@1::mid@0::deep::n_add@*"),
        (Reading.VALUE, "outer@2::n_add@1", "outer@2::n_add@1"),
        (Reading.VALUE, "deep", "outer@1::mid::deep:0@0"),
        (Reading.VALUE, "step", "outer@1::mid@0::deep::step@3"),
        (Reading.EDITED, "step", "step"),  # a Constant is the same in all iterations
        (Reading.VALUE, "x", "x"),
        (Reading.VALUE, "nothing", "nothing"),
        (Reading.COURSE, "n_add", "outer@1::mid@0::deep::n_add"),
        (Reading.COURSE, "ox", "ox"),
        (Reading.GENERAL, "n_add", "n_add"),
        (Reading.GENERAL, "n_add@-1", "outer@1::mid@0::deep::n_add@-1"),
        (Reading.PLACE, "deep", "outer@1::mid@0::deep"),
        (Reading.PLACE, "nx_next", "outer@1::mid@0::deep::nx_next@3"),
        (Reading.PLACE, "Add", "Add"),  # all operations of a type
    ],
)
def test_what_an_address_means_where_one_looks_at_iterations(reading: Reading, asked: str, meant: str) -> None:
    compiled = counting_in_three().machine.compiled
    body = next(one for one in compiled.programs if len(one.path) == 3)
    assert str(LookedAt(compiled, body, (1, 0, 3)).meant(parse_address(asked), reading)) == meant


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("p n_add@2 + 1", "p {}::n_add@2 + 1"),
        ("display n_add@0/e3", "display {}::n_add@0/e3"),
        ("display /e3 n_add@0", "display /e3 {}::n_add@0"),
        ("display n_add", "display n_add"),
        ("diff n_add@0", "diff {}::n_add@0"),
        ("diff 2", "diff outer@1::mid@0::deep@2"),
        ("diff before", "diff before"),
        ("A -1", "A -1"),  # one iteration before A
        ("A off", "A off"),
        ("uses n_add", "uses n_add"),
        ("uses n_add[0]", "uses {}::n_add@3[0]"),
        ("where does n_add@0[0] go", "where does {}::n_add@0[0] go"),
        ("why where does n_add@0[0] go", "why where does {}::n_add@0[0] go"),
        ("why shape of n_add", "why shape of {}::n_add@3"),
        ("why n_add.shape@2[0]", "why shape of {}::n_add@2[0]"),
        ("why end", "why end"),
        ("why failure", "why failure"),
        ("sheet rms(n_add), nx@1:3", "sheet rms({0}::n_add), {0}::nx@1:3"),
        ("sheet rms(*)", "sheet rms(*)"),
        ("set n_add = [[1, 2]]", "set {}::n_add@3 = [[1, 2]]"),
        ("set condition = true", "set condition = true"),
        ("set trip-count of deep = 2", "set trip-count of deep = 2"),
        ("goto tick 3", "goto tick 3"),
        ("goto 'here", "goto 'here"),
        ("run-to Add", "run-to Add"),
        ("run-to @-1", "run-to outer@1::mid@0::deep@-1"),
        ("break n_add@2", "break n_add@2"),
        ("break @2", "break @2"),
        ("tok", "tok"),
    ],
)
def test_a_line_has_the_run_that_is_looked_at_in_its_addresses(line: str, meant: str) -> None:
    compiled = counting_in_three().machine.compiled
    body = next(one for one in compiled.programs if len(one.path) == 3)
    seen = LookedAt(compiled, body, (1, 0, 3))
    assert in_iterations(line, seen) == meant.format("outer@1::mid@0::deep")


def test_of_a_loop_further_inside_it_is_the_run_in_the_iteration_that_is_looked_at() -> None:
    compiled = counting_in_three().machine.compiled
    seen = LookedAt(compiled, next(one for one in compiled.programs if len(one.path) == 1), (1,))
    assert str(seen.meant(parse_address("n_add@2"))) == "outer@1::mid::deep::n_add@2"
    assert str(seen.meant(parse_address("n_add"))) == "n_add", "of which iteration is for the user to say"
    assert str(seen.meant(parse_address("mid@1"), Reading.PLACE)) == "outer@1::mid@1"


@pytest.mark.parametrize(
    ("loop", "iterations", "value"), [("deep", (2, 1, 2), "23"), ("mid", (1, 0), "12"), ("outer", (1,), "16")]
)  # 8 o + 4 m + k + 1
def test_what_the_cursor_is_on_can_be_typed_as_it_stands(loop: str, iterations: tuple[int, ...], value: str) -> None:
    async def script(driven: Driven) -> None:
        await put_cursor(driven, loop, *iterations)
        named = str(driven.sheet.address())
        assert value == f"{driven.sheet.number:g}"
        await put_cursor(driven, "outer", 0)
        assert f"{value}." in await driven.do(f":print {named}"), "also from elsewhere"
        await driven.do(f":goto {named}")
        assert driven.iterations == [*iterations]

    drive(counting_in_three(), script, size=(120, 40), runs=True)


def test_a_name_without_a_mark_is_what_the_body_reads_at_the_prompt_and_in_a_sheet() -> None:
    async def script(driven: Driven) -> None:
        for name, number in (("tok", "0"), ("tok'", "12")):
            await driven.do(f":print {name}")
            assert f"[{number}]" in driven.answer
            await driven.do("escape", f":sheet {name}")
            assert driven.at == (name, 10) and driven.sheet.number == int(number)
            await driven.do("escape")

    drive("date_normaliser", script, size=(120, 40), runs=True)


def test_the_names_of_rows_can_be_typed_and_give_their_numbers() -> None:
    """x is what the body reads in an iteration, x' what it carries to the next one."""

    async def script(driven: Driven) -> None:
        await driven.do(":rows carried", "home", *["right"] * 4)
        for name in ("i'", "tok'", "conf'"):
            row = next(k for k, one in enumerate(driven.names) if one.endswith(name))
            driven.sheet.go_to(4, row)
            await driven.filled()
            number = driven.sheet.number
            assert isinstance(number, int | float)
            if "new in" not in driven.names[row]:
                assert f"{number}" in await driven.do(f":print {driven.names[row]}"), name

    drive("date_normaliser", script, size=(120, 40), runs=True)
