"""Values over the iterations on the main screen, read figure by figure beside what numpy computes."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.element_types import Array
from stepper.tensors.pictures import digits, scale_of, shades
from tests.models import Graph, backwards, carried, joined, last, sliced
from tests.tui.driven import Driven, drive
from tests.tui.time_models import opened
from tui.screens.main.picture_pane import PicturePane
from tui.theme import Look

PLAIN = Look(plain=True)
STEPS = 8


def passing(rows: Array) -> Debugger:
    """Each iteration hands its slice on, and writes it into two outputs: forwards, and from the end to the start."""
    net = Graph()
    body = net.body()
    shape = (1, *rows.shape[1:])
    kind = "f32" if rows.dtype == np.float32 else "boolean" if rows.dtype == np.bool_ else "i64"
    item, held = body.parameter("item", kind, shape), body.parameter("held", kind, shape)
    axis = body.constant(0, np.int64)
    kept = body.apply("Unsqueeze", body.apply("Squeeze", item, axis, name="squeezed"), axis, name="kept")
    result = body.result(kept, "kept_out")
    body.result(held, "unused")
    source, start = net.parameter("rows", kind, rows.shape), net.parameter("start", kind, shape)
    entries = [sliced(source, item), carried(start, held, result)]
    written = [last(result), joined(result), joined(result, **backwards())]
    outputs = net.tensor_iterator("pass", body, entries, written)
    for index, output in enumerate(outputs):
        net.result(output, f"out_{index}")
    return opened(net, rows, np.zeros(shape, rows.dtype))


def cells(driven: Driven, pane: str, name: str, place: int, begin: int, slot: int) -> list[str]:
    """What stands in the slots of a line: so many below the one with the name, from a column on."""
    text = driven.text(pane).splitlines()
    at = next(number for number, line in enumerate(text) if name in line.split()[:2])
    line = text[at + place].ljust(200)
    return [line[begin + k * slot : begin + (k + 1) * slot].strip("▌▐╌ ") for k in range(STEPS)]


def figured(rows: Array) -> Array:
    """The figures of all elements by the formula, [element, iteration]; `·` for zero, as on the screen."""
    found = digits(shades(rows, scale_of(rows))).T
    return np.where(found == 0, "·", found.astype(str))


@pytest.mark.parametrize("outlier", [1e6, -1e30])
def test_shades_are_those_of_the_formula_and_one_outlier_hides_nothing(outlier: float) -> None:
    rows = np.random.default_rng(0).normal(size=(STEPS, 4)).astype(np.float32)
    rows[5, 2] = outlier
    expected = figured(rows[:7])
    assert len(set(np.ravel(expected))) > 8 and abs(int(expected[2, 5])) == 9

    async def script(driven: Driven) -> None:
        await driven.filled()
        for element in range(4):
            made = [str(one) for one in expected[element]]
            assert cells(driven, "edges", "held", element, 16, 2)[:7] == made
            assert cells(driven, "scans", "kept", element, 13, 3)[:7] == made
            assert cells(driven, "time", "held'", element, 16, 12)[:7] == made

    drive(passing(rows), script, size=(160, 48), look=PLAIN, lines=("run-to pass@0", "iter 7"))


def with_signs(text: str) -> str:
    """Return figures with their signs; those below zero are small and low in cells of one column."""
    return text.translate({ord(low): f"-{figure}" for figure, low in enumerate("₀₁₂₃₄₅₆₇₈₉")})


def test_a_column_of_a_picture_is_chosen_by_click_or_arrows_and_leads_to_its_iteration() -> None:
    rows = np.random.default_rng(4).normal(size=(STEPS, 4)).astype(np.float32)

    async def script(driven: Driven) -> None:
        edges, scans = driven.pane("edges"), driven.pane("scans")
        assert isinstance(edges, PicturePane) and isinstance(scans, PicturePane)
        line = next(at for at, text in enumerate(driven.text("edges").splitlines()) if "held" in text)
        place = (edges.gutter.left + 16 + 2 * 2, line + 1)
        assert await driven.pilot.click("#edges", offset=place)
        await driven.settle()
        assert edges.picked == 2 and "2: Enter goes there" in driven.text("edges") and driven.state.iteration == 6
        await driven.press("right", "right", "left", "escape")
        assert edges.picked is None and driven.state.iteration == 6
        await driven.press("left", "enter")
        assert driven.state.iteration == 5 and edges.picked is None
        back = next(at for at, text in enumerate(driven.text("scans").splitlines()) if text.startswith(" ←"))
        place = (scans.gutter.left + 13 + 3 * (STEPS - 2) + 1, back)
        assert await driven.pilot.click("#scans", offset=place, times=2)
        await driven.settle()
        assert driven.state.iteration == 1, "the pieces stand from the last place to the first"

    drive(passing(rows), script, size=(160, 48), look=PLAIN, lines=("run-to pass@0", "iter 6"))


def test_an_output_that_is_joined_backwards_fills_from_its_last_place() -> None:
    rows = np.random.default_rng(1).normal(size=(STEPS, 4)).astype(np.float32)

    async def script(driven: Driven) -> None:
        await driven.filled()
        lines = driven.text("scans").splitlines()
        begin = next(number for number, line in enumerate(lines) if line.startswith(" ←"))
        for element, wanted in enumerate(figured(rows[:3])):
            line = lines[begin + element].ljust(200)
            places = [line[13 + place * 3 : 16 + place * 3].strip() for place in range(STEPS)]
            assert places[STEPS - 3 :] == [str(one) for one in wanted[::-1]]
            assert set("".join(places[: STEPS - 3])) <= {"·"}

    drive(passing(rows), script, size=(160, 48), look=PLAIN, lines=("run-to pass@0", "iter 3"))


def test_nan_and_inf_are_letters_in_their_elements_and_columns() -> None:
    rows = np.ones((STEPS, 3), np.float32)
    rows[2, 1], rows[4, 0] = np.nan, -np.inf

    async def script(driven: Driven) -> None:
        await driven.filled()
        shown = [cells(driven, "edges", "held", element, 16, 2) for element in range(3)]
        assert [(y, x) for y, line in enumerate(shown) for x, text in enumerate(line) if text in "NI" and text] == [
            (0, 4),
            (1, 2),
        ]
        assert shown[0][4] == "I" and shown[1][2] == "N"

    drive(passing(rows), script, size=(160, 48), look=PLAIN, lines=("run-to pass@0", "iter 6"))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (np.array([[3], [3], [12], [7], [12], [3], [7], [3]], np.int64), "3 3 12 7 12 3"),
        (np.array([[1], [0], [1], [1], [0], [1], [0], [1]], bool), "T F T T F T"),
    ],
)
def test_single_numbers_and_booleans_are_read(rows: Array, expected: str) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        line = next(line for line in driven.text("time").splitlines() if line.split()[:1] == ["held'"])
        assert " ".join(line.split()[1:7]) == expected
        kept = next(line for line in driven.text("scans").splitlines() if line.startswith(" ⊞"))
        assert " ".join(kept[13:].replace("·", " ").split()) == expected
        back = next(line for line in driven.text("scans").splitlines() if line.startswith(" ←"))
        assert " ".join(back[13:].replace("·", " ").split()) == " ".join(expected.split()[::-1])

    drive(passing(rows), script, size=(160, 48), lines=("run-to pass@0", "iter 6"))


def test_few_numbers_without_room_for_them_or_for_a_legend_are_bars_with_their_scale() -> None:
    rows = np.array([[3_000_000_000], [-5], [3_000_000_000], [700], [-5], [-5], [700], [3_000_000_000]], np.int64)

    async def script(driven: Driven) -> None:
        await driven.filled()
        text = driven.text("time").splitlines()
        at = next(number for number, line in enumerate(text) if line.split()[:1] == ["held'"])
        ruler = text[at - 1]
        tops = [text[at][ruler.index(f" {iteration} ") + 1] for iteration in range(7)]
        assert [top != " " for top in tops] == [bool(row[0] > 1000) for row in rows[:7]]
        assert text[at + 1].split()[0] == "-5–3.00e9" and text[at].split()[-1] == "700"

    drive(passing(rows), script, size=(100, 40), lines=("run-to pass@0", "iter 7"))


def test_the_number_for_elements_that_share_a_cell_and_the_scale_are_chosen_by_key() -> None:
    rows = np.zeros((STEPS, 128), np.float32)
    rows[:, ::2], rows[:, 1::2] = 1, -1

    async def script(driven: Driven) -> None:
        await driven.filled()
        driven.pane("edges").focus()
        await driven.settle()
        seen = {}
        for way in ("mean", "largest", "rms"):
            seen[way] = "".join(cells(driven, "edges", "held", 0, 16, 2)[:6])
            await driven.press("v")
        assert seen == {"mean": "······", "largest": "999999", "rms": "999999"}
        assert "log" not in driven.text("edges")
        await driven.press("v", "V", "V")
        assert "log" in driven.text("edges")

    drive(passing(rows), script, size=(160, 48), look=PLAIN, lines=("run-to pass@0", "iter 6"))


def test_back_edges_have_the_room_of_outputs_where_none_grows() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        lines = driven.text("edges").splitlines()
        names = [y for y, line in enumerate(lines) if line.split()[1:2] in (["values"], ["swaps"])]
        assert len(names) == 2 and names[1] - names[0] >= 2 * 5, "five elements have several lines each"
        assert driven.text("scans").split() == ["outputs", "growing", "none"]

    drive("nested_loop", script, size=(200, 60), lines=("goto passes@0::pairs_of_neighbours::swapped@2",))


@pytest.mark.parametrize("iteration", [STEPS - 1, 5])
def test_a_click_on_a_number_that_needs_more_cells_than_its_column_chooses_its_iteration(iteration: int) -> None:
    rows = np.array([7, 12, 2, 5, 3, 8, 9, 6], np.int64).reshape(STEPS, 1)
    coming = "·" * (STEPS - 1 - iteration)

    async def script(driven: Driven) -> None:
        name, pane = "scans", driven.pane("scans")
        assert isinstance(pane, PicturePane)
        for is_backward in (False, True):
            figures = [str(one) for one in rows[: iteration + 1, 0]]
            written = " ".join(reversed(figures) if is_backward else figures)
            whole = coming + written if is_backward else written + coming
            y, line = next((at, text) for at, text in enumerate(driven.text(name).splitlines()) if whole in text)
            begin = line.index(whole) + (len(coming) if is_backward else 0) + pane.gutter.left
            for k in (0, 1, iteration):
                place = begin + sum(len(one) + 1 for one in (figures[:k] if not is_backward else figures[k + 1 :]))
                for x in (place, place + len(figures[k]) - 1):
                    assert await driven.pilot.click(f"#{name}", offset=(x, y))
                    await driven.settle()
                    assert pane.picked == k
                assert f"{k}: Enter goes there" in driven.text(name)

    drive(passing(rows), script, size=(120, 40), lines=(f"goto kept_out@{iteration}",))
