"""The value screen: what it shows of a tensor is what is in it, at every moment."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from stepper_tui.screens.value.inspected import Inspected
from stepper_tui.screens.value.screen import ValueScreen
from stepper_tui.screens.value.tensor import TensorPane
from stepper_tui.theme import Look

from stepper.element_types import ELEMENT_TYPES
from tests.tables import few
from tests.tui.driven import DECODER, Driven, debugger_of_sample, drive
from tests.tui.tensor_models import growing_by, passing_on

AT_SCORES = (f"run-to {DECODER}@0", "iter 7", "run-to `aten::tanh/Tanh_2`", "select 41", "view value")
AT_BIG = ("run-to model::big", "value model::big")
AT_SUM = ("run-to adding::sum@2", "view value")


def seen(driven: Driven) -> Inspected:
    screen = driven.app.screen
    assert isinstance(screen, ValueScreen)
    return screen.inspected


@pytest.mark.parametrize("size", few(1, [(80, 24), (120, 40), (160, 48), (200, 60)]), ids=str)
def test_panes_show_the_scores_of_the_seventh_iteration(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.press("9", "down", "1", "right", "v")
        await driven.filled()
        parts = {80: ("summary",), 120: ("often", "numbers", "element")}.get(
            size[0], ("companion", "often", "numbers", "element")
        )
        driven.golden(f"value_{size[0]}x{size[1]}", "tensor", *parts)

    drive("date_normaliser", script, size=size, lines=AT_SCORES)


def test_colours_without_colours_carry_figures() -> None:
    async def script(driven: Driven) -> None:
        await driven.settle()
        driven.golden("value_ascii_120x40", "tensor", "often", "numbers", "element")
        for pane in ("tensor", "often", "numbers", "element"):
            assert driven.text(pane).isascii(), pane

    drive("date_normaliser", script, size=(120, 40), lines=AT_SCORES, look=Look(ascii=True, plain=True))


@pytest.mark.parametrize("name", few(2, sorted(set(ELEMENT_TYPES) - {"string"})))
def test_every_element_type_is_written_as_what_it_is(name: str) -> None:
    dtype = ELEMENT_TYPES[name].dtype
    codes = np.array([[0, 1, 2], [3, 1, 0]], np.uint8)
    array = codes.view(dtype) if dtype.names else (codes % 2 if name in ("u1", "boolean") else codes).astype(dtype)
    nf4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453]  # the first codes of the type
    expected = (
        [nf4[code] for code in codes.flat]
        if name == "nf4"
        else [float(item) for item in (codes.flat if dtype.names else array.astype(np.float64).flat)]
    )

    async def script(driven: Driven) -> None:
        await driven.press("v")
        lines = driven.text("tensor").splitlines()[3:5]
        shown = [word for line in lines for word in line.split()[1:]]
        numbers = [{"true": 1.0, "false": 0.0}[word] if name == "boolean" else float(word) for word in shown]
        assert numbers == pytest.approx(expected, abs=6e-5, nan_ok=True)
        await driven.press("end")
        (bits,) = [line.split()[1:] for line in driven.text("element").splitlines() if line.split()[:1] == ["bits"]]
        raw = array.view(f"u{dtype.itemsize}")
        assert int(bits[0], 16) == raw[0, 2]

    drive(passing_on(array), script, size=(120, 40), lines=AT_BIG)


def test_texts_are_shown_and_move_no_cursor() -> None:
    array = np.array([["one", "\x1b[31mred", "[bold]"]], np.dtypes.StringDType())

    async def script(driven: Driven) -> None:
        await driven.press("v")
        text = driven.text("tensor")
        assert "one" in text and "[bold]" in text and "\x1b" not in text
        await driven.press("v", "v", "v")
        assert "a fault" not in driven.text("answer")

    drive(passing_on(array), script, size=(120, 40), lines=AT_BIG)


@pytest.mark.parametrize("shape", few(1, [(2, 3, 4, 5, 6), (), (0,), (3, 0, 2), (1, 1, 1), (300,)]), ids=str)
@pytest.mark.parametrize("size", few(1, [(80, 24), (160, 48)]), ids=str)
def test_every_rank_and_size_is_shown_in_every_view(shape: tuple[int, ...], size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        for key in (
            "down",
            "v",
            "right",
            "v",
            "equals_sign",
            "end",
            "pagedown",
            "ctrl+end",
            "a",
            "r",
            "R",
        ):
            await driven.press(key)
            assert "fault" not in driven.text("answer"), key
        if 0 in shape:
            assert "no elements" in driven.text("tensor")
        else:
            assert seen(driven).cursor == tuple(length - 1 for length in shape)

    array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    drive(passing_on(array), script, size=size, lines=AT_BIG)


def test_the_only_nan_of_a_large_tensor_shows_and_is_found() -> None:
    array = np.tile(np.linspace(-1, 1, 1000, dtype=np.float32), (1000, 1))
    array[612, 345] = np.nan

    async def script(driven: Driven) -> None:
        await driven.filled()
        lines = driven.text("tensor").splitlines()[3:]
        picture = [line[6:] for line in lines if "▀" in line]
        found = [(row, line.index("N")) for row, line in enumerate(picture) if "N" in line]
        assert len(found) == 1
        row, column = found[0]
        assert abs(row / len(picture) - 0.612) < 2 / len(picture) and abs(column / len(picture[0]) - 0.345) < 0.02
        assert "first [612,345]" in driven.text("numbers")
        await driven.do("x")
        assert seen(driven).cursor == (612, 345)
        assert "no NaN" in await driven.do("x")

    drive(passing_on(array), script, size=(160, 48), lines=AT_BIG)


def test_axes_are_picked_with_keys_commands_and_the_mouse() -> None:
    array = np.arange(2 * 3 * 4 * 5, dtype=np.int32).reshape(2, 3, 4, 5)

    async def script(driven: Driven) -> None:
        await driven.press("v")

        def window() -> list[list[int]]:
            lines = driven.text("tensor").splitlines()[3:]
            return [[int(word) for word in line.split()[1:]] for line in lines]

        assert window() == array[0, 0].tolist()
        await driven.press("greater_than_sign")
        assert window() == array[1, 0].tolist() and seen(driven).cursor[:2] == (1, 0)
        await driven.press("a", "2", "greater_than_sign")
        assert window() == array[1, 2].tolist()
        await driven.press("less_than_sign", "r")
        assert window() == array[1, :, 0].tolist()
        await driven.type("slice [1,:,3,2:4]")
        assert window() == array[1, :, 3, 2:4].tolist()
        await driven.type("slice")
        begin = next(begin for begin, _, axis in driven.app.screen.query_one(TensorPane)._axes if axis == 1)
        await driven.pilot.click("#tensor", offset=(begin + 1, 0))
        await driven.settle()
        assert seen(driven).axis == 1
        await driven.type("@1,2,3,4")
        assert seen(driven).cursor == (1, 2, 3, 4) and window() == array[1, 2].tolist()
        await driven.type("@1,2,3,5")
        assert "axis 3 has no index 5" in driven.text("answer")
        await driven.type("slice [9]")
        assert "axis 0 has no index 9" in driven.text("answer")

    drive(passing_on(array), script, size=(120, 40), lines=AT_BIG)


def test_the_value_follows_the_moment_and_says_what_changed() -> None:
    start, step = np.zeros((2, 3), np.float32), np.array([[0, 1, 2], [0, -1, 0.5]], np.float32)

    async def script(driven: Driven) -> None:
        await driven.do("v")
        for iteration in (2, 3, 4):
            numbers = [[float(word) for word in line.split()[1:]] for line in driven.text("tensor").splitlines()[3:5]]
            assert numbers == (step * (iteration + 1)).tolist()
            await driven.do("right_square_bracket")
        pane = driven.app.screen.query_one(TensorPane)
        tones = [[token for text, token in row if text.strip()][1:] for row in pane.rows(pane.size.width)[1:]]
        assert tones == [["now", "strong", "strong"], ["dim", "strong", "strong"]]
        await driven.do("v")
        np.testing.assert_array_equal(seen(driven).tiles(np.arange(3), np.arange(4)), step)
        await driven.do("left_square_bracket", "n", "n")  # the next iteration has begun, and has not come here yet
        shown = seen(driven).shown
        assert driven.state.iteration == 5 and shown.is_old and shown.iteration == 4
        assert "of the iteration before: not computed yet in iteration 5" in driven.text("tensor")
        # beside that of iteration 4, which is shown, stands that of iteration 3
        np.testing.assert_array_equal(seen(driven).before().answer, step * 4)
        assert "change" in next(line for line in driven.text("element").splitlines() if "before" in line)

    drive(growing_by(start, step), script, size=(160, 48), lines=AT_SUM)


def test_the_cursor_on_a_nan_is_one_mark() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        assert driven.text("tensor").count("<") == 1 and "N<" in driven.text("tensor")

    drive("rwkv_overflow", script, size=(80, 24), lines=("goto mixed@8", "view value"))


def test_an_element_is_shown_in_smaller_types() -> None:
    value = np.full((2, 2), 2.1070356, np.float32)

    async def script(driven: Driven) -> None:
        text = driven.text("element")
        for name, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("f8e5m2", ml_dtypes.float8_e5m2)):
            (line,) = [line for line in text.splitlines() if f"as {name} " in line]
            assert float(line.split()[2]) == pytest.approx(float(value[0, 0].astype(dtype)), rel=1e-7)
        assert f"{value.view(np.uint32)[0, 0]:08x}" in text

    drive(passing_on(value), script, lines=AT_BIG)


def test_inputs_of_the_operation_are_shown_as_well() -> None:
    step = np.full((2, 2), 0.25, np.float32)

    async def script(driven: Driven) -> None:
        await driven.press("i")
        assert seen(driven).shown.role.startswith("input 0 of sum: parameter")
        await driven.press("i")
        np.testing.assert_array_equal(seen(driven).array, step)
        await driven.press("i")
        assert seen(driven).shown.role == "output"

    drive(growing_by(np.zeros((2, 2), np.float32), step), script, lines=AT_SUM)


def test_outputs_of_the_model_are_shown_at_the_end_of_the_run() -> None:
    step = np.full((2, 2), 0.25, np.float32)

    async def script(driven: Driven) -> None:
        np.testing.assert_array_equal(seen(driven).array, step * 6)
        await driven.press("N")
        await driven.press("escape")
        assert "fault" not in driven.text("answer")

    drive(growing_by(np.zeros((2, 2), np.float32), step), script, lines=("last", "view value"))


def test_an_element_is_copied_and_the_value_saved(tmp_path: Path) -> None:
    array = np.array([[1.5, 2.25], [3.125, -0.1]], np.float32)

    async def script(driven: Driven) -> None:
        await driven.press("ctrl+end", "y")
        assert driven.app.clipboard == "-0.1"
        await driven.press("Y")
        assert driven.app.clipboard == "model::big[1,1]"
        await driven.press("P")
        prompt = driven.app.front.prompt
        assert prompt.value == "save model::big value.npy"
        prompt.value = f"save model::big {tmp_path}/value.npy"
        await driven.press("enter")
        np.testing.assert_array_equal(np.load(tmp_path / "value.npy"), array)

    drive(passing_on(array), script, lines=AT_BIG)


def test_the_mouse_points_and_scrolls_in_numbers_and_colours() -> None:
    array = np.arange(1000 * 100, dtype=np.int32).reshape(1000, 100)

    async def script(driven: Driven) -> None:
        pane = driven.app.screen.query_one(TensorPane)
        await driven.press("v")
        pane.scroll_rows(500)
        await driven.settle()
        assert seen(driven).cursor == (0, 0)
        top = pane.numbers.top
        assert top == 500
        width = pane.numbers.format.width + 1
        await driven.pilot.click("#tensor", offset=(1 + pane.numbers._label + 2 * width + 1, 3 + 4))
        await driven.settle()
        assert seen(driven).cursor == (504, 2)
        await driven.press("v", "v")
        await driven.pilot.click("#tensor", offset=(1 + 5, 3))
        await driven.settle()
        assert seen(driven).cursor == (0, 0)

    drive(passing_on(array), script, size=(120, 40), lines=AT_BIG)


def test_colours_zoom_in_on_the_cursor_until_elements_are_seen_alone() -> None:
    array = np.zeros((400, 400), np.float32)
    array[200:203, 100:103] = [[1, np.nan, 2], [3, 4, 5], [6, 7, np.inf]]

    async def script(driven: Driven) -> None:
        await driven.filled()
        assert "elements: their mean" in driven.text("tensor")
        assert "the largest magnitude" in await driven.do("V")
        await driven.do("V")
        assert "their root mean square" in driven.text("tensor")
        await driven.type("@201,101")
        for _ in range(6):
            await driven.do(":zoom in")
        text = driven.text("tensor")
        assert " elements: " not in text
        rows = {int(line.split()[0]): line for line in text.splitlines() if line.split() and line.split()[0].isdigit()}
        assert ("NaN" in rows[200] and "Inf" in rows[202]) or ("N" in rows[200] and "I" in rows[202])
        for _ in range(6):
            await driven.do(":zoom out")
        assert " elements: " in driven.text("tensor")

    drive(passing_on(array), script, lines=AT_BIG)


def test_colours_of_the_difference_are_those_of_the_largest_change() -> None:
    start, step = np.zeros((1000, 100), np.float32), np.zeros((1000, 100), np.float32)
    step[700, 30], step[100, 90] = -2.5, 0.5

    async def script(driven: Driven) -> None:
        await driven.press("v", "v")
        await driven.filled()
        drawn = driven.app.screen.query_one(TensorPane).heat._drawn
        assert drawn is not None
        scale, tiles = drawn.cells, drawn.tiles
        expected = np.zeros(tiles.shape)
        for row, column, change in ((700, 30, -2.5), (100, 90, 0.5)):
            expected[sum(scale.rows[1:] <= row), sum(scale.columns[1:] <= column)] = change
        np.testing.assert_array_equal(tiles, expected)
        assert "the largest magnitude" in driven.text("tensor") and "2.500" in driven.text("tensor")

    drive(growing_by(start, step), script, lines=AT_SUM)


def test_steps_are_taken_while_a_large_tensor_is_looked_through() -> None:
    array = np.ones((3000, 1000), np.float32)

    async def script(driven: Driven) -> None:
        for _ in range(3):
            await driven.pilot.press("right_square_bracket")
        await driven.settle()
        assert driven.state.iteration == 5
        await driven.filled()
        survey = seen(driven).survey()
        assert survey is not None and survey.statistics.max == survey.statistics.min == 6.0

    drive(growing_by(np.zeros_like(array), array), script, lines=AT_SUM)


def test_a_sample_opens_its_value_and_closes_it_again() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("n", "enter")
        assert isinstance(driven.app.screen, ValueScreen)
        await driven.press("J")
        selected = driven.state.cursor
        assert seen(driven).subject is not None and seen(driven).subject.operation == selected
        await driven.press("enter")
        assert not isinstance(driven.app.screen, ValueScreen)

    drive(debugger_of_sample("nested_loop"), script)


def test_many_elements_in_a_cell_saturate_no_picture_whichever_number_stands_for_them() -> None:
    """By mean, largest and rms, which V goes through, few cells have the full shade, and wider columns are stronger."""
    rng = np.random.default_rng(0)
    array = (rng.standard_t(2, (1000, 2000)) * np.linspace(0.2, 2, 2000)).astype(np.float32)

    async def script(driven: Driven) -> None:
        words = []
        for _ in range(3):
            await driven.filled()
            heat = driven.app.screen.query_one(TensorPane).heat
            words.append(heat.reduction)
            levels = np.abs(np.array(heat._drawn.levels))
            assert 0 < (levels == levels.max()).mean() < 0.15
            left, right = np.split(levels[:, : levels.shape[1] // 2 * 2], 2, axis=1)
            assert right.mean() > 1.5 * left.mean()
            await driven.press("V")
        assert len(set(words)) == 3

    drive(passing_on(array), script, size=(200, 60), lines=AT_BIG)


def test_a_boolean_is_a_word_on_its_shade() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        assert {"true", "false"} & set(driven.text("tensor").split())

    drive("nested_loop", script, size=(120, 40), lines=("goto swapped", "view value"))


def test_colours_fill_the_width_and_the_row_of_the_cursor_stands_below_them_as_columns() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        made = np.asarray(driven.state.frame.output(driven.state.cursor).array)[0]
        for row in (0, 3):
            shown = driven.text("tensor").splitlines()
            assert 150 < max(map(len, shown)) <= 200 and not any(line.endswith("…") for line in shown)
            begin = next(place for place, line in enumerate(shown) if line.split()[:2] == ["row", str(row)])
            left, lines = shown[begin].index("row"), [line.ljust(200) for line in shown[begin + 1 :] if line.strip()]
            tall = [sum(line[left + 3 * place] != " " for line in lines) for place in range(64)]
            order = np.argsort(made[row])
            assert tall[order[0]] < tall[order[32]] < tall[order[-1]]
            await driven.press("down", "down", "down")

    drive("date_normaliser", script, size=(200, 60), lines=(f"goto {DECODER}::Add_4@7", "view value"))


def test_a_long_row_of_few_elements_has_its_numbers_below_its_shades() -> None:
    step = np.arange(-32, 32).astype(np.float32)
    step[40] = np.nan

    async def script(driven: Driven) -> None:
        await driven.filled()
        lines = driven.text("tensor").splitlines()
        begin = next(y for y, line in enumerate(lines) if line.split()[:1] == ["-96.0000"])
        found = [float(number) for line in lines[begin::2] for number in line.split()]
        assert np.array_equal(found, (3 * step).tolist(), equal_nan=True)
        x = lines[begin].index("-90.0000")
        await driven.pilot.click("#tensor", offset=(x + 2, begin))
        assert seen(driven).cursor == (0, 2)

    drive(growing_by(np.zeros((1, 64), np.float32), step.reshape(1, 64)), script, size=(160, 48), lines=AT_SUM)


def test_the_difference_is_that_from_the_iteration_before() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("v", "v")
        await driven.filled()
        lines = driven.text("tensor").splitlines()
        assert "minus the iteration before" in lines[1]
        assert ["1.500", "-2"] in [line.split()[-2:] for line in lines]

    drive(growing_by([1, 2.0], [1.5, -2]), script, size=(120, 40), lines=AT_SUM)
