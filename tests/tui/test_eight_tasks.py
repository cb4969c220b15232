"""Eight questions about a model, from the first screen on: the answer is read from the screen, the keys are counted.

A line that is typed at the prompt counts as one key. The keys are pressed at 80x24, where the answer must be seen, as
on larger terminals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from tests.compare.twins import X, recurrence
from tests.debug.debugged import sample
from tests.models import Graph, Side, carried, joined, last, sliced
from tests.tui.driven import Driven, drive
from tests.tui.time_models import collatz, opened
from tests.tui.wide_models import wide_loop

SIZES: Final = ((80, 24), (120, 40), (200, 60))
MOST_KEYS: Final = 4


def late_log() -> Debugger:
    """What is left of 1 after each step; its logarithm is of a negative number in iteration 3, for step[3] is 0.9."""
    net = Graph()
    body = net.body()
    left, step = body.parameter("left", dims=(1,)), body.parameter("step", dims=(1,))
    rest = body.apply("Subtract", left, step, name="rest")
    log = body.apply("Log", rest, name="path_log")
    after, kept = body.result(rest, "left_next"), body.result(log, "log_out")
    start = net.parameter("left0", dims=(1,))
    entries = [sliced(net.parameter("step_prob", dims=(5,)), step), carried(start, left, after)]
    net.result(net.tensor_iterator("paths", body, entries, [joined(kept)])[0], "logs")
    return opened(net, np.ones(1, np.float32), np.float32([0.1, 0.2, 0.1, 0.9, 0.1]))


def branching() -> Debugger:
    """An If in a loop in a loop: x is doubled below 10, else one is taken away."""
    net = Graph()
    outer = net.body()
    a = outer.parameter("a", dims=(1,))
    inner = outer.body()
    b = inner.parameter("b", dims=(1,))
    is_small = inner.apply("Less", b, inner.constant([10.0]), type="boolean", name="is_small")
    then, other = inner.body(), inner.body()
    c, d = then.parameter("c", dims=(1,)), other.parameter("d", dims=(1,))
    doubled = then.result(then.apply("Multiply", c, then.constant([2.0]), name="doubled"), "doubled_out")
    less = other.result(other.apply("Subtract", d, other.constant([1.0]), name="one_less"), "less_out")
    sides = Side(then, [(b, c)], [doubled]), Side(other, [(b, d)], [less])
    (chosen,) = inner.branch("choice", is_small, *sides)
    b_next = inner.result(chosen, "b_next")
    (inside,) = outer.loop("within", inner, 3, True, [carried(a, b, b_next)], [last(b_next)])
    a_next = outer.result(outer.apply("Relu", inside, name="kept"), "a_next")
    (end,) = net.loop("around", outer, 2, True, [carried(net.parameter("x", dims=(1,)), a, a_next)], [last(a_next)])
    net.result(end, "end")
    return opened(net, np.float32([3]))


def healthy() -> Debugger:
    """The recurrence, in whose folder `theirs/model.xml` has another weight."""
    return Debugger(stepper.read_model("ours/model.xml"), {0: X})


Subject = str | Callable[[], Debugger]
STEEP: Final = next(k for k, number in enumerate(collatz()) if number > 1000 and k >= 50)
TASKS: tuple[tuple[str, Subject, tuple[str, ...], tuple[str, ...]], ...] = (
    ("a NaN: where", "rwkv_overflow", (), ("exp_key@7", "wkv@8")),
    ("a NaN: where", late_log, (), ("NaN first in Log path_log@3",)),
    ("a NaN: from which element", late_log, ("o",), ("why path_log@3[0] is NaN", "step_prob[3] = 0.900")),
    ("a NaN: from which element", "rwkv_overflow", ("o",), ("why exp_key@7", "embedded[7,6] = -20.892")),
    ("what ended the loop", "while_loop", (), ("number' = 1, so NotEqual(number', 1) is false",)),
    ("what ended the loop", "date_normaliser", (), ("tok' = 12, so NotEqual(tok', 12) is false",)),
    ("what ended the loop", "reverse", (), ("8 = 8, no slice is left of input 1",)),
    ("one element over time", "date_normaliser", ("down", "down", "enter"), ("[0,3]", "elements 64")),
    ("one element over time", "specification_lstm", (":sheet lstm::h_next[0,3]",), ("[0,3]", "elements 1")),
    (
        "an edit: what changes",
        "rwkv_overflow",
        ("asterisk", "8", "0", "enter"),
        ("first differs from A in Exp exp_key@7", "outputs mixed and wkv changed in 4"),
    ),
    ("an edit: what changes", "for_loop", ("asterisk", "9", "enter"), ("first differs from A in", "changed")),
    ("another run", healthy, (":compare theirs/model.xml",), ("first differs from", "MatMul xW@0", "≠")),
    ("a condition over two values", "while_loop", (":search number' > 1000 and steps' > 50",), (f"@{STEEP}",)),
    ("a condition over two values", "date_normaliser", (":search tok' == 1 and i' > 6",), ("@6",)),
    ("a loop never seen", "nested_loop", (), ("each iteration carries order",)),
    ("a loop never seen", "date_normaliser", (), ("each iteration carries ctx, h, i, tok and 3 more",)),
    ("an If in loops", branching, (":search If", "enter"), ("around @0 › within", "choice", "doubled")),
    ("an If in loops", "while_loop", (":search If", "enter"), ("until_one › number_next",)),
    ("one of 1,500 operations", lambda: wide_loop(1500, 3), (":search _250",), ("1 of 1: block_25/", "goes to")),
)


@pytest.mark.parametrize(
    ("task", "subject", "keys", "told"), TASKS, ids=lambda one: one if isinstance(one, str) else ""
)
def test_the_answer_is_on_the_screen_after_few_keys(
    task: str,
    subject: Subject,
    keys: tuple[str, ...],
    told: tuple[str, ...],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if subject is healthy:
        folder = tmp_path_factory.mktemp("twins")
        for name, fault in (("ours", ""), ("theirs", "one weight")):
            (folder / name).mkdir()
            recurrence(fault).write(folder / name)
        monkeypatch.chdir(folder)

    async def script(driven: Driven) -> None:
        assert len(keys) <= MOST_KEYS
        await driven.do(*keys)
        for size in SIZES:
            await driven.pilot.resize_terminal(*size)
            await driven.filled()
            shown = " ".join(driven.screen.split())
            if size[1] >= 30 or task != "a loop never seen":  # there the rows themselves have the room
                assert not [part for part in told if part not in shown], (size, driven.screen)

    drive(subject if isinstance(subject, str) else subject(), script, size=SIZES[0], runs=True)


def test_the_tree_tells_the_sides_of_an_if_apart() -> None:
    async def script(driven: Driven) -> None:
        await driven.checks(
            ("t", "choice then side"), ("choice else side",), ("down", "down", "down", "down", "enter", "one_less")
        )

    drive(branching(), script, size=(120, 40))


def test_the_numbers_of_an_element_are_those_of_the_run() -> None:
    debugger = sample("date_normaliser")

    async def script(driven: Driven) -> None:
        await driven.do("down", "down", "enter", "down", "down", "down")
        address = driven.sheet.address()
        assert address.index == (0, 3) and driven.at[1] == 10
        assert f"{float(debugger.value(str(address))):.3f}" in driven.screen

    drive("date_normaliser", script, size=(120, 40), runs=True)
