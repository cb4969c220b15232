"""Ifs outside of loops, findings about a loop, and long lists on the overview."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.debug.overview.facts import RowKind
from stepper.tensors.pictures import Form
from tests.debug.debugged import opened
from tests.debug.test_endless_loops import rests
from tests.models import Graph, Side, Value, carried, last
from tests.tui.driven import Driven, drive
from tests.tui.screens.overview.test_told_values import pane_of
from tui.screens.lists.findings import findings_of
from tui.screens.overview import arrangement
from tui.screens.overview.cards import Line, LinePart
from tui.screens.overview.cursor import Place
from tui.screens.overview.words import folded
from tui.theme import GLYPHS, Look
from tui.worker import background_run

SIZES = pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=str)


def chooser(net: Graph, value: Value, number: int, output: str = "doubled") -> Value:
    """If the sum of the value is above 6 twice it, else one more: of four times 1 it goes 1, 2, 4, 8, ..."""
    axes = net.constant([0, 1], np.int64)
    total = net.apply("ReduceSum", value, axes, name=f"sum_{number}", keep_dims="false", dims=())
    above = net.apply("Greater", total, net.constant(np.float32(6)), type="boolean", dims=(), name=f"above_{number}")
    then, other = net.body(), net.body()
    a, b = then.parameter("a", dims=(1, 4)), other.parameter("b", dims=(1, 4))
    doubled = then.result(then.apply("Multiply", a, then.constant([[2.0]]), name="double"), output)
    added = other.result(other.apply("Add", b, other.constant([[1.0]]), name="plus"), "added")
    sides = Side(then, [(value, a)], [doubled]), Side(other, [(value, b)], [added])
    return net.branch(f"choose_{number}", above, *sides)[0]


def choosing(count: int, *, has_loop: bool = False) -> Debugger:
    net = Graph()
    value = net.parameter("x", dims=(1, 4))
    for number in range(count):
        value = chooser(net, value, number)
        if number > 2:
            value = net.apply("Tanh", value, name=f"tanh_{number}")
    if has_loop:
        body = net.body()
        x = body.parameter("x", dims=(1, 4))
        out = body.result(body.apply("Multiply", x, body.constant([[0.5]]), name="half"), "x_next")
        (value,) = net.loop("halves", body, 3, True, [carried(value, x, out)], [last(out)])
    net.result(value, "y")
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {0: np.ones((1, 4), np.float32)})


@SIZES
@pytest.mark.parametrize("has_loop", [False, True])
@pytest.mark.parametrize("look", [None, Look(ascii=True, plain=True)], ids=["colours", "ascii"])
def test_an_if_says_which_side_ran_why_in_values_and_what_came_out(
    size: tuple[int, int], has_loop: bool, look: Look | None
) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        shown = driven.text("overview")
        assert "else: sum_0 = 4, so Greater(sum_0, 6) is false" in shown
        assert "then: sum_1 = 8, so Greater(sum_1, 6) is true" in shown
        pane = pane_of(driven)
        for _ in range(20):
            await driven.press("up")
        await driven.press("down")
        assert pane.chosen_address == "model::choose_1", "the second If is selected"
        assert "4  4  4  4" in driven.text("overview"), "twice 2"
        await driven.press("o")
        assert "why choose_1[0,0] is 4.000" in driven.text("sheet")
        await driven.press("q", "e")
        assert "why above_1 is true" in driven.text("sheet")
        await driven.press("q", "enter")
        assert driven.app.front.view_name == "" and driven.state.frame is not None
        cursor = driven.state.cursor
        assert cursor is not None and driven.state.frame.layers[cursor].name == "choose_1"

    drive(choosing(3, has_loop=has_loop), script, size=size, look=look, starts_up=True, runs=True)


@SIZES
@pytest.mark.parametrize("length", [12, 24, 36])
def test_a_long_name_of_an_output_ends_before_its_type(tmp_path: Path, size: tuple[int, int], length: int) -> None:
    net = Graph()
    then, other = net.body(), net.body()
    a, b = then.parameter("a", dims=(1, 4)), other.parameter("b", dims=(1, 4))
    inner, outer = then.result(chooser(then, a, 0, "n" * length), "inner"), other.result(b, "outer")
    x, on = net.parameter("x", dims=(1, 4)), net.constant(True, np.bool_)
    net.result(net.branch("around", on, Side(then, [(x, a)], [inner]), Side(other, [(x, b)], [outer]))[0], "y")

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("down")
        typed = [line for line in driven.text("overview").splitlines() if "f32[1,4]" in line]
        assert typed and all(line[line.index("f32[1,4]") - 1] == " " for line in typed)

    drive(
        Debugger(net.read(tmp_path), {0: np.full((1, 4), 2.0, np.float32)}),
        script,
        size=size,
        starts_up=True,
        runs=True,
    )


@SIZES
@pytest.mark.parametrize("has_loop", [False, True])
def test_of_many_ifs_it_is_said_how_many_more_there_are(size: tuple[int, int], has_loop: bool) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        if has_loop:
            assert "halves" in driven.text("overview"), "a loop is not pushed out of sight"
        for steps in (0, 60):
            await driven.press(*["down"] * steps)
            lines = driven.text("overview").splitlines()
            names = {word for line in lines for word in line.split() if word.startswith("choose_")}
            told = next(line for line in lines if "more If" in line)
            counts = [int(word) for word, after in zip(told.split(), told.split()[1:], strict=False) if after == "more"]
            loops = 1 if "more loop" in told else 0
            assert sum(counts) - loops + len(names) == 200

    drive(choosing(200, has_loop=has_loop), script, size=size, starts_up=True, runs=True)


@SIZES
def test_the_gravest_finding_about_a_loop_is_told_on_its_card(
    tmp_path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_run, "ENDLESS_SECONDS", 0.1)

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.filled()
        found = findings_of(driven.state.lists.findings, pane_of(driven).cards[0].facts.layer)
        lines = driven.text("overview").splitlines()
        (line,) = (one for one in lines if one.strip().startswith(f"{found[0].severity}: "))
        assert line.split()[-1] == "M" and (len(found) == 1 or f"+{len(found) - 1} more" in line)
        assert all(len(line) <= size[0] for line in lines)
        await driven.press("M")
        assert driven.app.front.view_name == "findings"

    drive(opened(tmp_path, rests(2, 3)), script, size=size, starts_up=True, runs=True)


@SIZES
def test_a_birth_that_is_told_as_found_is_not_told_again_on_the_card(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.filled()
        text = driven.text("overview")
        assert "1 error" in text and "error:" not in text and text.count("born in") == 1

    drive("rwkv_overflow", script, size=size, starts_up=True, runs=True)


@SIZES
def test_a_list_of_many_operations_says_which_are_in_sight(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("goto tanh_100")
        await driven.filled()
        head, *rows = driven.text("operations").splitlines()
        (last_seen, total) = (int(head.replace("–", " ").split(" of ")[k].split()[-1 + k]) for k in (0, 1))
        shown = [row.split()[0 if row.split()[0] not in GLYPHS["now"] + GLYPHS["free"] else 1] for row in rows]
        frame = driven.state.frame
        assert frame is not None and total == len(frame.layers)
        assert frame.layers[last_seen - 1].name.endswith(shown[-1]) or shown[-1] in frame.layers[last_seen - 1].name

    drive(choosing(200), script, size=size)


def choosing_inside(trips: int) -> Graph:
    """In each third iteration x is doubled, else it gets one more; then it is halved."""
    net = Graph()
    x0, body = net.parameter("x0", dims=(1, 4)), net.body()
    i, x = body.parameter("i", "i64", ()), body.parameter("x", dims=(1, 4))
    third = body.apply("FloorMod", i, body.constant(3, np.int64), name="third")
    zero = body.constant(0, np.int64)
    is_third = body.apply("Equal", third, zero, type="boolean", dims=(), name="is_third")
    then, other = body.body(), body.body()
    a, b = then.parameter("a", dims=(1, 4)), other.parameter("b", dims=(1, 4))
    doubled = then.result(then.apply("Multiply", a, then.constant([[2.0]]), name="double"), "doubled")
    added = other.result(other.apply("Add", b, other.constant([[1.0]]), name="plus"), "added")
    (chosen,) = body.branch("choose", is_third, Side(then, [(x, a)], [doubled]), Side(other, [(x, b)], [added]))
    out = body.result(body.apply("Multiply", chosen, body.constant([[0.5]]), name="half"), "x_next")
    more = body.result(body.apply("Add", i, body.constant(1, np.int64), name="more"), "i_next")
    entries = [carried(x0, x, out), carried(net.constant(0, np.int64), i, more)]
    net.result(net.loop("steps", body, trips, True, entries, [last(out)])[0], "final")
    return net


@SIZES
@pytest.mark.parametrize("trips", [7, 3000])
def test_an_if_in_a_loop_shows_its_side_and_what_it_gave_in_each_iteration(
    tmp_path: Path, size: tuple[int, int], trips: int
) -> None:
    given = [np.float32([0, 1, 2, 3])]
    for k in range(trips):
        before = given[-1] if k == 0 else given[-1] / np.float32(2)
        given.append(before * 2 if k % 3 == 0 else before + 1)

    async def script(driven: Driven) -> None:
        await driven.ran()
        pane = pane_of(driven)
        card = pane.cards[0]
        (side,) = (k for k, one in enumerate(card.lines) if one.part is LinePart.CHOICE)
        (gave,) = (k for k, one in enumerate(card.lines) if one.part is LinePart.OUTCOME)
        for iteration in (0, 1, 3, trips - 1):
            pane.put(Place(0, gave, 0, iteration))
            assert pane.chosen_array is not None
            np.testing.assert_allclose(pane.chosen_array.reshape(4), given[iteration + 1], rtol=1e-6)
        pane.put(Place(0, side, 0, 1))
        await driven.settle()
        thirds = len(range(0, trips, 3))
        if size[1] >= 28:
            shown = driven.text("overview")
            assert f"then {thirds:,} of {trips:,} · else {trips - thirds:,} of {trips:,}" in shown
            told = next(line for line in shown.splitlines() if "the side that ran in iteration 1" in line)
            assert "choose@1" in told and "boolean" not in told, "that is the type of the condition"
        assert driven.text("overview").rstrip().endswith("else")
        await driven.press("o")
        await driven.filled()
        assert "why is_third@1 is false" in driven.text("sheet") and "1 = 0 is false" in driven.text("sheet")

    drive(
        opened(tmp_path, choosing_inside(trips), np.float32([[0, 1, 2, 3]])),
        script,
        size=size,
        starts_up=True,
        runs=True,
    )


@SIZES
def test_of_a_loop_that_did_not_begin_the_numbers_that_entered_are_told(tmp_path: Path, size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("down")
        shown = driven.text("overview")
        assert "did not begin" in shown and "0  7  2  3" in shown

    drive(
        opened(tmp_path, choosing_inside(0), np.float32([[0, 7, 2, 3]])), script, size=size, starts_up=True, runs=True
    )


def around_another(inner_rows: int) -> Graph:
    """A loop that carries twelve numbers twice, and a loop in it that carries some single ones."""
    net = Graph()
    body = net.body()
    wide = [body.parameter(name, dims=(12,)) for name in ("h", "c")]
    inner = body.body()
    states = [inner.parameter(f"s{k}", dims=(1,)) for k in range(inner_rows)]
    made = [inner.result(inner.apply("Add", one, inner.constant([k + 0.5])), f"n{k}") for k, one in enumerate(states)]
    begin = body.constant([1.0])
    entries = [carried(begin, one, out) for one, out in zip(states, made, strict=True)]
    given = body.loop("inner", inner, 3, True, entries, [last(one) for one in made])
    outs = [body.result(body.apply("Add", one, given[k]), f"w{k}") for k, one in enumerate(wide)]
    start = net.constant(np.arange(12, dtype=np.float32))
    entries = [carried(start, one, out) for one, out in zip(wide, outs, strict=True)]
    for value in net.loop("outer", body, 4, True, entries, [last(one) for one in outs]):
        net.result(value)
    return net


def test_a_card_that_is_cut_keeps_as_many_rows_as_have_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: dict[bool, list[str]] = {}
    for is_cut in (False, True):
        if is_cut:
            monkeypatch.setattr(arrangement, "_given_back", lambda _whole, compact, *_others: compact)

        async def script(driven: Driven, is_cut: bool = is_cut) -> None:
            await driven.ran()
            shown[is_cut] = driven.text("overview").splitlines()

        drive(opened(tmp_path, around_another(14)), script, size=(120, 40), starts_up=True, runs=True)
    assert "before  no inputs  →" in shown[False][1]
    names = {is_cut: [line for line in lines if " ↺ s" in line] for is_cut, lines in shown.items()}
    assert len(names[True]) <= 1 < len(names[False]) and any("more back edge" in line for line in shown[False])
    assert [line for line in shown[False] if "↺ h" in line or "↺ c" in line], "the selected card stays as it is"


def test_rows_that_are_folded_are_counted_by_the_word_for_one_or_for_several() -> None:
    """A single one of an If was a "branche"."""
    line = Line(0, RowKind.CONDITION, Form.WORDS, "", "choose", "bool", LinePart.CHOICE)
    card: Any = SimpleNamespace(lines=(line, line))
    for places, told in (([0], "1 more branch, 1 of them"), ([0, 1], "2 more branches, 2 of them")):
        assert [text for text, _style in folded(card, places, 0)] == [f"   … {told} in words (Space)"]
