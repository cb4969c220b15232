"""Moments held against now: every number by numpy, on two plain runs that know nothing of each other."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.commands import Interpreter
from stepper.debug.debugger import Debugger
from stepper.debug.moments.moment import Moment, MomentKind
from stepper.debug.moments.moments import BEFORE
from stepper.debug.moments.spread import MomentView
from stepper.engine.frames import EventKind, Every
from stepper.errors import Paused, UsageError
from stepper.tensors.difference import Change, difference
from tests.compare.twins import X, recurrence
from tests.debug.debugged import SAMPLES
from tests.engine.nested_models import rows_of_rows
from tests.tables import each_row
from tests.tui.time_models import rising

Run = dict[tuple[str, int], np.ndarray]
"""What each operation of the loop gave in each iteration."""

RWKV = SAMPLES / "rwkv_overflow"


def debugger_of(folder: Path) -> Debugger:
    return Debugger(folder / "model.xml", dict(np.load(folder / "inputs.npz")))


def collected(machine: stepper.Machine) -> Run:
    """Run a machine to its end, operation by operation."""
    found: Run = {}
    for event in machine.run(Every.OPERATION):
        frame = event.frame
        if event.kind is EventKind.OPERATION and frame.activation is not None:
            operation = frame.program.operations[frame.pc - 1]
            found[operation.layer.name, frame.activation.iteration] = np.array(frame.values[operation.outputs[0]])
    return found


@pytest.fixture(scope="module")
def plain() -> Run:
    return collected(debugger_of(RWKV).machine)


@pytest.fixture(scope="module")
def edited(plain: Run) -> Run:
    """The run in which key[0,3] of iteration 7 is 80: up to there the plain one."""
    debugger = debugger_of(RWKV)
    debugger.run_to("key@7")
    debugger.set_value("key[0,3]", 80.0)
    machine = debugger.machine
    machine.watcher = None
    key = np.array(machine.stack[-1].values[machine.stack[-1].program.operations[3].outputs[0]])
    return {**plain, **collected(machine), ("key", 7): key}


def expected(a: np.ndarray, b: np.ndarray) -> Change:
    if np.array_equal(a, b, equal_nan=True):
        return Change.SAME
    if (np.isfinite(a) & ~np.isfinite(b)).any():
        return Change.BROKEN
    return Change.MENDED if (~np.isfinite(a) & np.isfinite(b)).any() else Change.NUMBER


def at(debugger: Debugger, address: str) -> Debugger:
    debugger.goto(address)
    return debugger


def test_after_an_edit_the_original_is_beside_now_in_every_operation(plain: Run, edited: Run) -> None:
    debugger = at(debugger_of(RWKV), "key@7")
    debugger.set_value("key[0,3]", 80.0)
    assert debugger.pinned is not None and debugger.pinned.branch == "original"
    for iteration in (7, 8, 11):
        tick = at(debugger, f"numerator_next@{iteration}").stop.tick
        found = debugger.difference()
        assert debugger.machine.tick == tick and found.iteration == iteration and found.is_complete
        for index, one in found.operations.items():
            name = debugger.frame.program.operations[index].layer.name
            a, b = plain[name, iteration], edited[name, iteration]
            assert one.change is expected(a, b), (name, iteration)
            with np.errstate(all="ignore"):
                apart = np.abs(b.astype(np.float64) - a.astype(np.float64))
            apart = apart[np.isfinite(a) & np.isfinite(b)]
            if one.change is not Change.SAME:
                assert one.largest == pytest.approx(apart.max(initial=0))
                assert not apart.size or one.rms == pytest.approx(np.sqrt((apart**2).mean()))
            np.testing.assert_array_equal(found.values.value(debugger.frame.program.layers[index].id), a)  # type: ignore[union-attr]
        edge = debugger.frame.program.graph.parameters[0]
        came_in = plain["numerator_next", iteration - 1], edited["numerator_next", iteration - 1]
        assert found.carried[edge.id].change is expected(*came_in)


def test_an_iteration_the_one_before_and_another_branch_at_another_iteration(plain: Run, edited: Run) -> None:
    debugger = at(debugger_of(RWKV), "wkv@7")
    index = next(k for k, one in enumerate(debugger.frame.program.operations) if one.layer.name == "wkv")
    for text, iteration in (("4", 4), ("+2", 6), ("-6", 0), ("wkv@3", 3), ("before", 6), ("time_mixing@9", 9)):
        debugger.pin(text)
        found = debugger.difference()
        assert found.iteration == iteration, text
        one = found.operations[index]
        assert one is not None and one.change is expected(plain["wkv", iteration], plain["wkv", 7]), text
        pending = found.values.value(debugger.frame.program.layers[index + 1].id)  # type: ignore[union-attr]
        np.testing.assert_array_equal(pending, plain["receptance", iteration])
    debugger.pin("4")
    at(debugger, "key@7").set_value("key[0,3]", 80.0)
    debugger.pin("off")
    debugger.run_to("wkv@9")
    debugger.pin()
    debugger.branch("original")
    at(debugger, "wkv@7")
    found = debugger.difference()
    np.testing.assert_array_equal(found.values.value(debugger.frame.program.layers[index].id), edited["wkv", 9])  # type: ignore[union-attr]


def test_going_to_a_twice_is_nothing() -> None:
    debugger = at(debugger_of(RWKV), "wkv@7")
    debugger.pin("3")
    first = debugger.goto_pinned()
    assert first.iteration == 3 and first.done is not None and first.done.layer.name == "wkv"
    assert debugger.pinned is not None and debugger.pinned.iteration == 7
    assert debugger.goto_pinned().iteration == 7
    debugger.pin("off")
    at(debugger, "key@7").set_value("key[0,3]", 80.0)
    tick = at(debugger, "wkv@8").machine.tick
    debugger.goto_pinned()
    assert (debugger.branches.name, debugger.machine.tick, debugger.pinned.branch) == ("original", tick, "edit-1")
    debugger.goto_pinned()
    assert (debugger.branches.name, debugger.machine.tick, debugger.pinned.branch) == ("edit-1", tick, "original")
    debugger.branch("original")
    assert debugger.pinned.branch == "edit-1", "A is never the branch in which one is"


def test_the_round_of_kinds_leaves_out_what_there_is_not(tmp_path: Path) -> None:
    debugger = debugger_of(RWKV)
    for place, why in (("", "outside of loops"), ("key@0", "iteration 0 has no previous one")):
        with pytest.raises(UsageError, match=why):
            (at(debugger, place) if place else debugger).pin("next")
        assert debugger.pinned is None
    at(debugger, "key@7")
    assert [debugger.pin("next"), debugger.pin("next")] == [stepper_before(), None]
    debugger.set_value("key[0,3]", 80.0)
    kinds = [debugger.pin("next") for _ in range(3)]
    assert [None if one is None else one.kind for one in kinds] == [None, MomentKind.BEFORE, MomentKind.BRANCH]
    (tmp_path / "theirs").mkdir()
    twin = Debugger(recurrence().write(tmp_path), {0: X})
    stepper.set_reference(twin, recurrence("one weight").write(tmp_path / "theirs"))
    assert twin.pinned is not None and twin.pinned.kind is MomentKind.REFERENCE, "a reference is A by itself"
    at(twin, "y@3")
    index = next(k for k, one in enumerate(twin.frame.program.operations) if one.layer.name == "xW")
    one = twin.difference().operations[index]
    assert one is not None and one.largest == pytest.approx(abs(float(X[3, 1]) * 1e-3), rel=1e-3)


def stepper_before() -> object:
    from stepper.debug.moments.moment import BEFORE

    return BEFORE


def test_in_nested_loops_each_level_stands_beside_its_own(tmp_path: Path) -> None:
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    debugger = Debugger(rows_of_rows().write(tmp_path), {0: x})
    debugger.run_to("sum@2")
    debugger.goto_tick(next(place.tick for place in debugger.find("iter(rows) == 2 and iter == 3", "all").moments))
    sums = np.cumsum(x, axis=1)
    index = next(k for k, one in enumerate(debugger.frame.program.operations) if one.layer.name == "sum")
    for text, (row, column) in (("1", (2, 1)), ("-2", (2, 1)), ("rows@0::elements@2", (0, 2)), ("rows@1", (1, 3))):
        debugger.pin("off")
        debugger.pin(text)
        found = debugger.difference()
        assert float(found.values.value(debugger.frame.program.layers[index].id).item()) == sums[row, column], text  # type: ignore[union-attr]
        inner = {"rows@1": None}.get(text, column)
        assert inner is None or found.iteration == inner


@each_row(
    ("a", "b", "change", "different", "beyond"),
    [
        ([1.0, 2.0], [1.0, 2.0], Change.SAME, 0, 0),
        ([1.0, np.nan], [1.0, np.nan], Change.SAME, 0, 0),
        ([1.0, 2.0], [1.0, 2.0 + 2e-6], Change.NUMBER, 1, 0),
        ([1.0, 2.0], [1.5, 2.0], Change.NUMBER, 1, 1),
        ([0.0, 2.0], [-0.0, 2.0], Change.NUMBER, 1, 0),
        ([np.inf, 2.0], [1.0, 2.0], Change.MENDED, 1, 1),
        ([np.inf, 2.0], [1.0, np.nan], Change.BROKEN, 2, 2),
        ([np.inf, 2.0], [-np.inf, 2.0], Change.NUMBER, 1, 1),
        ([1.0, 2.0], [1.0], Change.SHAPE, 0, 0),
    ],
)
def test_bits_and_tolerance_are_two_facts(
    a: list[float], b: list[float], change: Change, different: int, beyond: int
) -> None:
    found = difference(np.array(a, np.float32), np.array(b, np.float32))
    assert (found.change, found.different, found.beyond) == (change, different, beyond)
    assert found.is_within is (change is Change.NUMBER and beyond == 0)


def test_large_values_and_other_types() -> None:
    a = np.zeros((300, 200), np.float32)
    b = a.copy()
    b[250, 3] = np.nan
    b[299, 199] = -7
    found = difference(a, b)
    assert (found.change, found.at, found.largest, found.broken, found.different) == (Change.BROKEN, (250, 3), 7, 1, 2)
    assert found.rms == pytest.approx(np.sqrt(49 / (a.size - 1)))
    whole = difference(np.array([2**62, 3]), np.array([2**62 + 1, 3]))
    assert (whole.change, whole.largest, whole.different, whole.at) == (Change.NUMBER, 1, 1, (0,))
    assert difference(np.array([1.0]), np.array([1], np.int64)).change is Change.SHAPE


def test_the_commands_say_it_and_have_it_as_data() -> None:
    shell = Interpreter(at(debugger_of(RWKV), "key@7"))
    assert shell.execute("A").lines == ("there is no baseline",)
    shell.execute("set key[0,3] = 80")
    shell.execute("run-to wkv@8")
    answer = shell.execute("diff")
    assert answer.lines[0] == "A is branch original" and "numerator_now    1 of 8 fixed" in "\n".join(answer.lines)
    data = json.loads(json.dumps(dict(answer.data)))
    assert {one["name"] for one in data["operations"] if one["change"] == "mended"} == {
        "numerator_now",
        "denominator_now",
        "wkv",
    }
    assert shell.execute("mark A").lines == ("A is iteration 8",)
    assert "iteration 8" in shell.execute("A").lines[0]
    for line, says in (
        ("A reference", "no reference"),
        ("A no_such", "no_such"),
        ("A -20", "before 0"),
        ("diff 99", ""),
    ):
        if says:
            with pytest.raises(stepper.UsageError, match=says):
                shell.execute(line)
        else:
            assert "the loop runs 12 iterations" in "\n".join(shell.execute(line).lines)


def test_outside_of_the_loop_that_was_edited_the_original_is_beside_now_too(plain: Run) -> None:
    debugger = debugger_of(RWKV)
    debugger.run_to("key@3")
    debugger.set_value("key[0,0]", 5.0)
    main = debugger.machine.compiled.main
    names = [one.name for one in main.layers]
    for view in (debugger.moments.view(Moment(MomentKind.BRANCH, "original"), 0), _after_the_loop(debugger)):
        assert not view.problem and view.values is not None
        looped = np.asarray(view.values.value(main.layers[names.index("time_mixing")].id))
        rows = np.stack([plain["mixed", k][0] for k in range(12)])
        assert np.array_equal(looped.reshape(rows.shape), rows, equal_nan=True)


def _after_the_loop(debugger: Debugger) -> MomentView:
    debugger.last()
    debugger.reverse_step()
    assert len(debugger.machine.stack) == 1
    return debugger.moments.view(Moment(MomentKind.BRANCH, "original"))


def test_why_the_original_does_not_come_to_a_place() -> None:
    debugger = debugger_of(SAMPLES / "while_loop")
    debugger.run_to("triple_plus_one@2")  # of 41: 124, which is even; so is its half
    debugger.set_value("triple_plus_one", 10**6 + 1)
    original = Moment(MomentKind.BRANCH, "original")
    debugger.run_to("triple_plus_one@3")
    assert debugger.moments.view(original).problem == "the other side of the If runs there"
    debugger = debugger_of(SAMPLES / "while_loop")
    debugger.run_to("triple_plus_one@2")
    debugger.set_value("triple_plus_one", 27)  # it begins anew: 3 iterations more
    debugger.run_to("half@113")
    assert debugger.moments.view(original).problem == "the loop runs 111 iterations there"


def test_booleans_differ_by_no_number() -> None:
    a, b = np.array([[True, False, False], [True, True, False]]), np.array([[False, True, False], [True, False, True]])
    found = difference(a, b)
    assert found.change is Change.TRUTH and (found.size, found.different, found.at) == (6, 4, (0, 0))
    assert (found.became_true, found.became_false) == (2, 2)
    assert (found.rms, found.largest, found.relative) == (None, None, None)
    assert difference(a, a.copy()).change is Change.SAME
    number = difference(np.array([1, 0], np.int8), np.array([0, 0], np.int8))
    assert number.change is Change.NUMBER and number.largest == 1 and number.became_true is None


def test_the_commands_say_in_words_what_became_true_and_false() -> None:
    """h + 1 from 0 on is above 2.5, 4.5 and 6.5: in iteration 1 none of the three, in iteration 5 two."""
    shell = Interpreter(rising(8))
    shell.execute("goto both@5")
    answer = shell.execute("diff 1")
    assert [" ".join(line.split()) for line in answer.lines[-4:]] == [
        "more 3 of 3 differ, rms 4, largest 4",
        "above 2 of 3 became true",
        "any became true",
        "both became true",
    ]
    known = {one["name"]: one for one in answer.data["operations"]}
    assert (known["above"]["became_true"], known["above"]["became_false"]) == (2, 0)
    assert [known["any"][key] for key in ("change", "rms", "largest", "relative")] == ["truth", None, None, None]
    assert known["more"]["became_true"] is None and known["more"]["largest"] == 4
    shell.execute("goto both@1")
    back = shell.execute("diff 5")
    assert "above 2 of 3 became false" in [" ".join(line.split()) for line in back.lines]
    assert next(one for one in back.data["carried"] if one["name"] == "flag")["became_false"] == 1


def test_of_two_branches_booleans_have_counts_and_no_distance() -> None:
    """With 0 for h + 1 in iteration 3, `any` is false in 3, 4 and 5, and at the end h is 4: above 2.5 alone."""
    shell = Interpreter(rising(8))
    shell.execute("goto more@3")
    shell.execute("set more = 0")
    answer = shell.execute("branch diff original edit-1")
    flag = next(one for one in answer.data["rows"] if one["name"] == "flag")
    assert (flag["different"], flag["largest"], flag["became_true"], flag["became_false"]) == (3, None, 0, 3)
    above = next(one for one in answer.data["rows"] if one["name"] == "out_2")
    assert (above["largest"], above["became_true"], above["became_false"]) == (None, 0, 2)
    assert any("flag" in line and line.endswith("first #3, 3 became false") for line in answer.lines)


def test_a_pause_ends_the_search_for_the_value_of_a_moment(plain: Run) -> None:
    debugger = debugger_of(RWKV)
    debugger.goto("key@7")
    stack = debugger.machine.stack
    layer = next(one.layer.id for one in stack[-1].program.operations if one.layer.name == "key")
    debugger.machine.request_pause()
    with pytest.raises(Paused):
        debugger.moments.value(BEFORE, stack, layer)
    np.testing.assert_array_equal(debugger.moments.value(BEFORE, stack, layer), plain["key", 6])
