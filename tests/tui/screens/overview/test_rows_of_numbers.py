"""Rows of single numbers, and of values whose number of elements changes: their scales, labels and keys."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.element_types import Array
from tests.models import Graph, carried, joined, last, sliced
from tests.tui.driven import Driven, drive
from tests.tui.time_models import opened
from tui.paint.pane import Pane
from tui.screens.overview.pane import OverviewPane
from tui.theme import Look

EIGHTHS = " ▁▂▃▄▅▆▇█"


def written(values: Array) -> Debugger:
    """A loop that puts out, as one number or one row an iteration, what it is given."""
    kind = {"f": f"f{8 * values.itemsize}", "i": "i64", "b": "boolean"}[values.dtype.kind]
    net = Graph()
    body, source = net.body(), net.parameter("values", kind, values.shape)
    item = body.parameter("item", kind, (1, *values.shape[1:]))
    axis = body.constant(0, np.int64)
    kept = body.apply("Unsqueeze", body.apply("Squeeze", item, axis), axis, name="kept", dims=(1, *values.shape[1:]))
    result = body.result(kept, "kept_out")
    (out,) = net.tensor_iterator("writes", body, [sliced(source, item)], [joined(result)])
    net.result(out, "written")
    return opened(net, values)


async def on_row(driven: Driven, name: str) -> list[str]:
    """Put the cursor on a row, and return its lines."""
    for _ in range(12):
        lines = driven.text("overview").splitlines()
        at = next((k for k, line in enumerate(lines) if line.startswith("▌") and line.split()[1:2] == [name]), None)
        if at is not None:
            return lines[at : at + next(k for k, line in enumerate(lines[at:]) if not line.startswith("▌"))]
        await driven.press("down")
    raise AssertionError(f"no row {name}")


def heights_of(lines: list[str], begin: int, slot: int, count: int) -> list[int]:
    """The heights of bars in eighths of a line, from the first cells of their slots."""
    found = []
    for k in range(count):
        column = [line.ljust(200)[begin + k * slot + 1] for line in lines]
        found.append(sum(EIGHTHS.index(letter) if letter in EIGHTHS else 0 for letter in column))
    return found


async def columns_of(driven: Driven, count: int) -> tuple[int, int]:
    """The column of the first slot of the ruler, and the cells of a slot."""
    ruler = next(line for line in driven.text("overview").splitlines() if line.split()[:1] == ["iteration"])
    first = ruler.index(" 0 ") + 1
    pane = driven.pane("overview")
    assert isinstance(pane, OverviewPane)
    axis = next(one for shown in pane._shown for one in shown.axes)
    assert len(axis.slots) == count
    return first - (axis.slots[0].width - 1) // 2, axis.slots[0].width


def test_a_line_of_numbers_of_both_signs_has_the_scales_of_a_vector_and_says_which() -> None:
    rows = np.array([-1000, 30, -2, 0.5, 0, 4, -500, 8, -60, 1, 9, 300], np.float32).reshape(-1, 1)

    async def script(driven: Driven) -> None:
        await driven.ran()
        seen = {}
        for name in ("itself", "linear", "log"):
            lines = await on_row(driven, "kept")
            seen[name] = lines[1].split("  ")[1] if len(lines) > 1 else ""
            begin, slot = await columns_of(driven, len(rows))
            tall = heights_of(lines, begin, slot, len(rows))
            order = np.argsort(rows[:, 0], kind="stable")
            assert [tall[k] for k in order] == sorted(tall), f"{name}: a higher number is not lower"
            if name == "log":
                assert len(set(tall)) >= 8 and tall[4] not in (tall[0], 0), "zero is between both signs"
            await driven.press("V")
        assert seen["itself"].startswith("-1") and "log" in seen["log"] and "log" not in seen["linear"]

    drive(written(rows), script, size=(160, 48), runs=True)


def test_the_label_says_when_an_outlier_is_beyond_and_linear_shows_it() -> None:
    rows = np.linspace(2, 4, 40, dtype=np.float32).reshape(-1, 1)
    rows[17] = -1e6

    async def script(driven: Driven) -> None:
        await driven.ran()
        lines = await on_row(driven, "kept")
        assert lines[1].split("  ")[1].strip() == "2 to 4 97 %" and "▼" in "".join(lines), "39 of 40"
        await driven.press("V")
        lines = await on_row(driven, "kept")
        assert lines[1].split("  ")[1].strip() == "-1.0e6 to 4" and "▼" not in "".join(lines)

    drive(written(rows), script, size=(160, 48), runs=True)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
def test_no_key_is_named_that_does_nothing_for_the_row(size: tuple[int, int]) -> None:
    """Single numbers are one number an iteration: in bins of iterations the largest of them is drawn."""
    rows = np.sin(np.arange(300, dtype=np.float32)).reshape(-1, 1)

    async def script(driven: Driven) -> None:
        await driven.ran()
        await on_row(driven, "kept")
        before = driven.text("overview")
        assert "mean, max, rms" not in driven.text("keys")
        await driven.press("v")
        assert driven.text("overview") == before and "is one number" in driven.text("answer")

    drive(written(rows), script, size=size, runs=True)


def test_of_a_vector_v_is_named() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await on_row(driven, "kept")
        assert "v mean, max, rms" in driven.text("keys")

    drive(written(np.ones((4, 65), np.float32)), script, size=(160, 48), runs=True)


def doubling(iterations: int) -> Debugger:
    """y has twice as many elements after each iteration, each one larger by 1."""
    net = Graph()
    body, start = net.body(), net.parameter("y0", "f32", (2,))
    y = body.parameter("y", "f32", (-1,))
    twice = body.apply("Concat", y, y, name="twice", axis=0, dims=(-1,))
    result = body.result(body.apply("Add", twice, body.constant([1.0]), name="plus", dims=(-1,)), "y_next")
    outputs = net.loop("doubles", body, iterations, True, [carried(start, y, result)], [last(result)])
    net.result(outputs[0], "out")
    return opened(net, np.array([1, -2], np.float32))


def test_a_value_that_changes_its_shape_is_drawn_by_one_number_of_its_elements_that_is_chosen() -> None:
    values = [np.array([1, -2], np.float32)]
    for _ in range(6):
        values.append(np.concatenate([values[-1]] * 2) + 1)
    ways = {
        "rms": lambda value: math.sqrt(np.square(value.astype(float)).mean()),
        "mean": lambda value: float(value.mean()),
        "largest": lambda value: float(value[np.abs(value).argmax()]),
    }

    async def script(driven: Driven) -> None:
        await driven.ran()
        changes = next(line for line in driven.text("overview").splitlines() if line.split()[1:2] == ["y'"])
        assert changes.startswith("▌~ y") and changes.split()[2] == "2–128" and "64 more" in changes
        await driven.press("down", "home")
        seen = {}
        for _ in ways:
            for iteration in range(6):
                lines = driven.text("overview").splitlines()
                head = next(line for line in lines if line.startswith(f" plus@{iteration} "))
                assert f"f32[{2 ** (iteration + 2)}]" in head
                told, _, number = next(line for line in lines if " of all elements: " in line).partition(":")
                seen[told.split()[0], iteration] = float(number)
                await driven.press("right")
            await driven.press("home", "v")
        expected = {(way, at): reduce(values[at + 1]) for way, reduce in ways.items() for at in range(6)}
        assert seen == {key: pytest.approx(value, abs=6e-4) for key, value in expected.items()}

    drive(doubling(6), script, size=(160, 48), runs=True)


def test_the_change_of_a_shape_from_what_came_in_to_iteration_0_is_found() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        assert "\n y'@5" in driven.text("overview")
        await driven.press("x")
        assert "\n y'@0" in driven.text("overview")

    drive(doubling(6), script, size=(120, 40), runs=True)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
@pytest.mark.parametrize("width", [1, 3])
def test_a_row_without_a_finite_number_has_no_range(bad: float, width: int) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        lines = await on_row(driven, "kept")
        assert "0 to 1" not in "".join(lines) and "0–1" not in "".join(lines)

    drive(written(np.full((6, width), bad, np.float32)), script, size=(160, 48), runs=True)


@pytest.mark.parametrize("ascii", [False, True])
def test_a_boolean_over_the_iterations_is_true_or_false_on_the_main_screen(ascii: bool) -> None:
    rows = np.array([[1], [0], [0], [1], [1], [0], [1], [0]], np.bool_)

    async def script(driven: Driven) -> None:
        await driven.filled()
        text = driven.text("spare").splitlines()
        at = next(k for k, line in enumerate(text) if "value in iterations 0 to 5" in line)
        assert text[at + 1].split() == ["TF"[not one] for one in rows[:6, 0]]
        assert not any(text[at + 2 :]), "no bars"

    look = Look(plain=True, ascii=True) if ascii else None
    drive(written(rows), script, size=(160, 48), look=look, lines=("goto kept@5",))


def test_two_moments_of_a_boolean_are_true_or_false_without_a_difference_in_numbers() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("A 0")
        await driven.filled()
        words = [line.split() for line in driven.text("moments").splitlines()]
        assert ["T"] in words and ["F"] in words and ["≠"] in words and ["T", "→", "F"] in words
        await driven.type("open kept")
        await driven.filled()
        assert "true → false" in driven.text("tensor") and "-1" not in driven.text("element")

    rows = np.array([[1], [0], [0], [1]], np.bool_)
    drive(written(rows), script, size=(120, 40), lines=("goto kept@2",))


@pytest.mark.parametrize(
    ("view", "dtype"),
    [
        ("main", np.float32),
        ("grid", np.int64),
        ("timeline", np.float32),
        ("overview", np.float32),
        ("overview", np.int64),
        ("watches", np.int64),
    ],
)
def test_a_value_without_elements_is_said_to_have_none(dtype: type, view: str) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        for line in ("goto kept@2", "watch kept", f"view {view}"):
            await driven.type(line)
        await driven.filled()
        shown = "\n".join(driven.text(pane.id) for pane in driven.app.screen.query(Pane) if pane.id)
        assert "Error" not in shown
        assert "no elements" in shown or view == "timeline", "which has no numbers of it to tell"

    drive(written(np.zeros((5, 0), dtype)), script, size=(120, 40), runs=True)


@pytest.mark.parametrize("axes", [(1, 0), None], ids=["transposed", "one axis more"])
def test_another_shape_of_as_many_elements_is_marked_and_the_elements_are_drawn(axes: tuple[int, ...] | None) -> None:
    net = Graph()
    body, start = net.body(), net.parameter("y0", "f32", (2, 3))
    y = body.parameter("y", "f32", (-1, -1))
    if axes:
        other = body.apply("Transpose", y, body.constant(list(axes), np.int64), name="other", dims=(-1, -1))
    else:
        other = body.apply("Unsqueeze", y, body.constant([0], np.int64), name="other", dims=(-1, -1))
    result = body.result(body.apply("Add", other, body.constant([1.0]), name="plus", dims=(-1, -1)), "y_next")
    outputs = net.loop("turns", body, 4, True, [carried(start, y, result)], [last(result)])
    net.result(outputs[0], "out")
    elements = [np.arange(6.0).reshape(2, 3)]
    for _ in range(4):
        elements.append((elements[-1].transpose(axes) if axes else elements[-1][None]) + 1)

    async def script(driven: Driven) -> None:
        await driven.ran()
        lines = driven.text("overview").splitlines()
        changes = next(line for line in lines if line.split()[:2] == ["~", "y'"])
        assert changes.count("~") == 1 + 4
        await driven.press("x")
        assert "\n y'@0" in driven.text("overview") and "another shape" in driven.text("overview")
        await driven.press("down")
        for iteration in range(4):
            lines = driven.text("overview").splitlines()
            at = next(k for k, line in enumerate(lines) if line.startswith(f" plus@{iteration} "))
            shape = ",".join(map(str, elements[iteration + 1].shape))
            assert f"f32[{shape}]" in lines[at]
            assert [float(one) for one in lines[at + 1].split()] == elements[iteration + 1].ravel().tolist()
            await driven.press("right")

    drive(opened(net, np.arange(6, dtype=np.float32).reshape(2, 3)), script, size=(160, 48), runs=True)
