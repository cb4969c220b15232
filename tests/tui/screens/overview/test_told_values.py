"""What the overview tells of the value at the cursor is true of that iteration."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

from stepper.debug.causes.texts import how_sentence
from stepper.debug.debugger import Debugger
from stepper.debug.story.texts import story_lines
from stepper.export.overview_page import overview_html
from tests.models import Graph, carried, joined, last, sliced
from tests.tui.driven import Driven, drive
from tui.screens.overview.cards import LinePart
from tui.screens.overview.pane import OverviewPane

SAW = 1000


def saw(count: int) -> Debugger:
    """After iteration k x is (k + 1) % SAW."""
    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(1,))
    up = body.apply("Add", x, body.constant([1.0]), name="up")
    out = body.result(body.apply("FloorMod", up, body.constant([float(SAW)]), name="mod"), "x_next")
    (end,) = net.loop("ups", body, count, True, [carried(net.parameter("x0", dims=(1,)), x, out)], [last(out)])
    net.result(end, "end")
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {0: np.zeros(1, np.float32)})


def fading() -> Debugger:
    """root is sqrt((k - 2.5) * (k - 3.5)), NaN in iteration 3 alone; stays is sqrt(2.5 - k), NaN from 3 on."""
    net = Graph()
    body = net.body()
    k = body.parameter("k", "f32", ())

    def number(value: float) -> object:
        return body.constant(np.float32(value))

    below, above = (body.apply("Subtract", k, number(one), dims=()) for one in (2.5, 3.5))
    root = body.apply("Sqrt", body.apply("Multiply", below, above, dims=()), name="root", dims=())
    stays = body.apply("Sqrt", body.apply("Subtract", number(2.5), k, dims=()), name="stays", dims=())
    total = body.apply("Add", root, stays, name="total", dims=())
    row = body.apply("Unsqueeze", total, body.constant([0], np.int64), name="row", dims=(1,))
    after = body.result(body.apply("Add", k, number(1), name="k_next", dims=()), "k_out")
    inputs, outputs = [carried(net.parameter("k0", "f32", ()), k, after)], [joined(body.result(row, "row_out"))]
    (rows,) = net.loop("fades", body, 9, True, inputs, outputs)
    net.result(rows, "rows")
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {0: np.float32(0)})


def without_loops() -> Debugger:
    """out is log(exp(x) - 100), of 1, 200 and 2: NaN, Inf, NaN; the Inf is born in the Exp, the NaN in the Log."""
    net = Graph()
    x = net.parameter("x", dims=(3,))
    minus = net.apply("Subtract", net.apply("Exp", x, name="exp"), net.constant(np.float32([100] * 3)), name="minus")
    net.result(net.apply("Log", minus, name="log"), "out")
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {0: np.float32([1, 200, 2])})


def pane_of(driven: Driven) -> OverviewPane:
    pane = driven.pane("overview")
    assert isinstance(pane, OverviewPane)
    return pane


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
def test_a_number_that_stands_for_several_iterations_says_which(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        pane = pane_of(driven)
        for iteration in (5000, 12_345, 7, 19_990):
            pane.put(pane.at._replace(iteration=iteration))
            await driven.settle()
            lines = driven.text("overview").splitlines()
            place = next(k for k, line in enumerate(lines) if line.startswith(f" mod@{iteration}"))
            told = " ".join(lines[place:])
            named = re.search(r"largest of (?:iterations )?([\d,]+)(?: to |–)([\d,]+): (\d+)", told)
            own = next(line for line in lines if "↺ x" in line)
            if named is None:
                assert str((iteration + 1) % SAW) in told.split() and "max" not in own
            else:
                first, final, number = (int(text.replace(",", "")) for text in named.groups())
                assert first <= iteration <= final and iteration not in (7, 19_990)
                assert number == max((k + 1) % SAW for k in range(first, final + 1))
                assert size[0] < 100 or re.search(rf"{number}  (largest|max)", own)
                assert pane.chosen_array is None

    drive(saw(20_000), script, size=size, starts_up=True, runs=True)


def test_a_value_that_is_finite_again_is_not_called_not_finite() -> None:
    told = {
        ("root", 2): "made in iteration 2, first not finite in 3",
        ("root", 3): "the first NaN is born here",
        ("root", 4): "made in iteration 4, first not finite in 3",
        ("root", 8): "made in iteration 8, first not finite in 3",
        ("stays", 1): "made in iteration 1, first not finite in 3",
        ("stays", 8): "made in iteration 8, not finite since 3",
    }

    async def script(driven: Driven) -> None:
        await driven.ran()
        pane = pane_of(driven)
        for (name, iteration), text in told.items():
            line = next(k for k, one in enumerate(pane.cards[0].lines) if one.name == name)
            pane.put(pane.at._replace(line=line, iteration=iteration))
            await driven.settle()
            assert text in driven.text("overview")

    drive(fading(), script, size=(120, 40), starts_up=True, runs=True)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=str)
def test_an_arrow_joins_births_only_where_one_comes_from_the_other(size: tuple[int, int]) -> None:
    def found(model: str | Debugger) -> str:
        told: list[str] = []

        async def script(driven: Driven) -> None:
            await driven.ran()
            told.append(next(line for line in driven.text("overview").splitlines() if line.startswith(" found")))

        drive(model, script, size=size, starts_up=True, runs=True)
        return told[0]

    assert re.search(r"Inf born in Exp exp_key@7 .*→  NaN in Divide wkv@8", found("rwkv_overflow"))
    assert re.search(r"NaN born in Sqrt root@3 .*·  NaN born in Sqrt stays@3", found(fading()))


def test_values_of_an_output_that_are_not_finite_are_apart_from_their_count() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        assert "out f32[3] NaN  +Inf  NaN  NaN in 2 of 3, Inf in 1 of 3" in driven.text("overview")

    drive(without_loops(), script, size=(120, 40), starts_up=True, runs=True)


def test_without_loops_enter_goes_to_the_first_birth_and_its_causes_are_told() -> None:
    async def asks(driven: Driven) -> None:
        await driven.ran()
        assert "Enter goes to the first" in driven.text("overview")
        await driven.press("o")
        assert driven.app.front.view_name == "sheet" and "why log[0] is NaN" in driven.text("sheet")

    async def goes(driven: Driven) -> None:
        await driven.ran()
        await driven.press("enter")
        assert driven.app.front.view_name != "overview" and "tick 1 " in driven.text("top"), "Exp alone has run"

    for script in (asks, goes):
        drive(without_loops(), script, size=(160, 40), starts_up=True, runs=True)


@pytest.mark.parametrize(
    ("sample", "told"),
    [("growing_tensor", "shapes stay, but sequence grows"), ("nested_loop", "shapes stay")],
)
def test_what_grows_is_told_beside_the_shapes_that_stay(sample: str, told: str) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        (found,) = [line for line in driven.text("overview").splitlines() if line.startswith(" found")]
        assert found.endswith(told)

    drive(sample, script, size=(120, 40), starts_up=True, runs=True)


def gathering(value: float) -> Debugger:
    """Iteration k adds element k of a table, whose element 2 is not finite in the file, to h."""
    net = Graph()
    body = net.body()
    h, k = body.parameter("h", dims=(1,)), body.parameter("k", "i64", (1,))
    table = body.constant(np.float32([1, 2, value, 4]))
    axis = body.constant(np.int64(0))
    picked = body.apply("Gather", table, k, axis, name="picked", dims=(1,))
    added = body.apply("Multiply", body.apply("Add", h, picked, name="added"), body.constant([2.0]), name="twice")
    after = body.result(added, "h_next")
    up = body.result(body.apply("Add", k, body.constant([1], np.int64), name="up", type="i64"), "k_next")
    inputs = [
        carried(net.parameter("h0", dims=(1,)), h, after),
        carried(net.constant(np.int64([0])), k, up),
    ]
    (end,) = net.loop("sums", body, 4, True, inputs, [last(after)])
    net.result(end, "end")
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {0: np.zeros(1, np.float32)})


def test_nan_of_the_file_is_not_said_to_be_born_where_it_is_read() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        text = driven.text("overview")
        assert "NaN came in with Constant" in text and "first read by Gather picked@2" in text
        assert "born" not in text
        await driven.press("o")
        story = driven.text("sheet")
        assert re.search(r"it is NaN in \S+\[2\] \(constant\)", story), "not in what reads it"

    drive(gathering(np.nan), script, size=(160, 48), starts_up=True, runs=True)


def test_inf_of_the_file_is_not_said_to_be_nowhere() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        text = driven.text("overview")
        assert "Inf in 1 of 1" in text and "Inf came in, no operation makes NaN or Inf" in text
        assert "no NaN, no Inf" not in text

    debugger = gathering(-np.inf)
    drive(debugger, script, size=(160, 48), starts_up=True, runs=True)
    assert "Inf came in, no operation makes NaN or Inf" in overview_html(
        debugger.run_overview(), debugger.machine.compiled
    )


@pytest.mark.parametrize(("numerator", "sign"), [(-5, "-"), (5, "")])
def test_the_infinity_that_a_reason_gives_has_its_sign(numerator: float, sign: str) -> None:
    net = Graph()
    x = net.parameter("x", dims=(1,))
    net.result(net.apply("Divide", net.constant(np.float32([numerator])), x, name="ratio"), "out")
    net.result(net.apply("Log", x, name="log"), "lowest")
    with tempfile.TemporaryDirectory() as folder:
        debugger = Debugger(net.read(Path(folder)), {0: np.zeros(1, np.float32)})
    told = {how_sentence(birth.cause) for birth in debugger.run_overview().births}
    assert told == {f"{numerator} / 0 gives {sign}Inf", "log(0) gives -Inf"}  # by IEEE 754
    assert f"gives {sign}Inf" in " ".join(story_lines(debugger.story("ratio")))
    assert "log(0) gives -Inf" in " ".join(story_lines(debugger.story("log")))


def looping(count: int, condition: list[bool]) -> Debugger:
    """Each iteration joins x to a list that begins as [9]; the body's condition has the elements that are given."""
    net = Graph()
    body = net.body()
    x, held = body.parameter("x", dims=(1,)), body.parameter("held", dims=(-1,))
    up = body.apply("Add", x, body.constant([1.0]), name="up")
    longer = body.apply("Concat", held, up, name="longer", dims=(-1,), axis=0)
    after, list_after = body.result(up, "x_next"), body.result(longer, "list_next")
    inputs = [
        carried(net.parameter("x0", dims=(1,)), x, after),
        carried(net.constant(np.float32([9])), held, list_after),
    ]
    verdict = np.array(condition if len(condition) > 1 else condition[0])
    goes_on = body.result(body.constant(verdict, np.bool_, "verdict"), "verdict_result")
    outputs = [last(after), last(list_after)]
    for place, output in enumerate(net.loop("ups", body, count, True, inputs, outputs, goes_on)):
        net.result(output, f"end_{place}")
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {0: np.zeros(1, np.float32)})


def test_a_list_that_nothing_was_joined_to_is_not_called_empty_nor_said_to_grow() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        text = driven.text("overview")
        assert "end_1 = held f32[1] 9" in text and "as it entered: no piece was joined" in text
        assert "empty" not in text and "grow" not in text
        assert text.count("0 entered, and is what leaves the loop") == 1, "x alone; the list entered as 9"
        await driven.press("down")
        assert "entered, and no iteration changed it" not in driven.text("overview").split("held", 1)[1], "numbers of x"

    drive(looping(0, [True]), script, size=(160, 48), starts_up=True, runs=True)


def test_of_a_loop_that_failed_in_its_first_iteration_nothing_is_said_to_have_left_it() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        text = driven.text("overview")
        assert "ended by an error: the body's condition has shape [2]" in text and "no iteration has ended" in text
        assert "leaves the loop" not in text and "not run" not in text and "empty" not in text

    drive(looping(3, [True, True]), script, size=(160, 48), starts_up=True, runs=True)


def test_a_loop_that_refuses_what_it_is_given_was_come_to() -> None:
    net = Graph()
    body = net.body()
    x, part = body.parameter("x", dims=(1,)), body.parameter("part", dims=(1,))
    out = body.result(body.apply("Add", x, part, name="up"), "x_next")
    slices = sliced(net.parameter("parts", dims=(-1,)), part, start=9, end=-1)
    (end,) = net.tensor_iterator("ups", body, [carried(net.parameter("x0", dims=(1,)), x, out), slices], [last(out)])
    net.result(end, "end")
    with tempfile.TemporaryDirectory() as folder:
        debugger = Debugger(net.read(Path(folder)), {0: np.zeros(6, np.float32), 1: np.zeros(1, np.float32)})

    async def script(driven: Driven) -> None:
        await driven.ran()
        text = driven.text("overview")
        assert "ended by an error before iteration 0: " in text and "start 9" in text
        assert "did not come to it" not in text

    drive(debugger, script, size=(160, 48), starts_up=True, runs=True)


def test_a_value_of_two_loops_that_changes_its_shape_is_told_once() -> None:
    """An inner loop joins three numbers at once to a list, which the outer one hands on."""
    net = Graph()
    body = net.body()
    held, inner = body.parameter("held", dims=(-1,)), body.body()
    part = inner.parameter("held", dims=(-1,))
    more = inner.constant(np.float32([1, 2, 3]))
    known = inner.apply("Relu", part, name="known", dims=(-1,))
    longer = inner.apply("Concat", known, more, name="longer", dims=(-1,), axis=0)
    out = inner.result(longer, "list_next")
    (given,) = body.loop("inner", inner, 2, True, [carried(held, part, out)], [last(out)])
    handed = body.result(given, "held_next")
    (end,) = net.loop("outer", body, 2, True, [carried(net.parameter("x", dims=(-1,)), held, handed)], [last(handed)])
    net.result(end, "end")
    with tempfile.TemporaryDirectory() as folder:
        debugger = Debugger(net.read(Path(folder)), {0: np.zeros(2, np.float32)})

    async def script(driven: Driven) -> None:
        await driven.ran()
        (found,) = [line for line in driven.text("overview").splitlines() if line.startswith(" found")]
        assert found.count("held' 2–14") == 1 and found.endswith(": another shape")  # 2 + 2 * 2 * 3

    drive(debugger, script, size=(160, 48), starts_up=True, runs=True)


def above(start: float, step: float) -> Debugger:
    """x is start + k * step - [0, 1, 2] after iteration k; `places` are those of its elements that are above 0."""
    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(3,))
    following = body.apply("Add", x, body.constant([step]), name="following")
    positive = body.apply("Greater", following, body.constant([0.0]), type="boolean", name="positive")
    attributes = {"type": "i64", "dims": (1, -1), "output_type": "i64"}
    places = body.apply("NonZero", positive, name="places", version="opset3", **attributes)
    out, found = body.result(following, "x_next"), body.result(places, "places_out")
    outputs = [last(out), last(found)]
    ends = net.loop("looks", body, 5, True, [carried(net.parameter("x0", dims=(3,)), x, out)], outputs)
    for number, end in enumerate(ends):
        net.result(end, f"end_{number}")
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {0: np.array([start, start - 1, start - 2], np.float32)})


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
@pytest.mark.parametrize(
    ("start", "step", "counts"), [(-1.5, 1.0, [0, 1, 2, 3, 3]), (3.5, -1.0, [3, 2, 1, 0, 0])], ids=["begins", "ends"]
)
def test_an_iteration_whose_value_is_empty_shows_no_number(
    start: float, step: float, counts: list[int], size: tuple[int, int]
) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        pane = pane_of(driven)
        card = pane.cards[0]
        values = [at for at, line in enumerate(card.lines) if line.part is LinePart.VALUE and line.name == "places"]
        (row,) = values
        pane.put_on_row(0, row)
        history = card.history(card.lines[row], 0)
        assert history is not None
        for iteration, count in enumerate(counts):
            pane.put(pane.at._replace(iteration=iteration))
            await driven.settle()
            told = driven.text("overview")
            (line,) = [one for one in told.splitlines() if f"places@{iteration}" in one]
            assert ("no elements" in told) is (count == 0)
            assert count == 0 or f"i64[1,{count}]" in line or size[1] == 24
            assert (history.over(iteration, iteration + 1) is None) is (count == 0)

    drive(above(start, step), script, size=size, starts_up=True, runs=True)
