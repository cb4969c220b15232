"""`find` in a recording: the same moments as in the run, from values or statistics alone, and NaN in anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.debug.causes.cause import NonFiniteKind
from stepper.debug.debugger import Debugger
from stepper.debug.inspection.views import Found, Which
from stepper.engine.rules import Rules
from stepper.errors import UsageError
from stepper.query.expressions import ExpressionError
from stepper.recording import open_recording
from stepper.recording.queries import NonFiniteValues, find_non_finite, find_recorded
from tests.debug.sample_twins import bubble_sort, collatz
from tests.models import Graph, carried, joined, last, sliced
from tests.recording.recorded import Case, case, sample
from tests.recording.test_file import RUNS, run_named
from tests.tables import each_row

ORDER = [5.0, 1.0, 4.0, 2.0, 8.0]


def recorded(subject: Case, folder: Path, amount: str = "all") -> Path:
    path = folder / f"{amount}.sqlite"
    if not path.exists():
        subject.recorded(path, amount)
    return path


def find(path: Path, text: str, which: str = "all", limit: int = 1000) -> Found:
    with open_recording(path) as recording:
        return find_recorded(recording, text, Which(which), limit)


def debugger_of(subject: Case) -> Debugger:
    return Debugger(subject.compiled.model, dict(enumerate(subject.inputs)), Rules.SPEC)


@each_row("name", RUNS, quick=6)
def test_the_moments_are_those_of_the_run(tmp_path: Path, name: str) -> None:
    subject = run_named(name, tmp_path)
    path = recorded(subject, tmp_path)
    debugger = debugger_of(subject)
    programs = [program for program in subject.compiled.programs if program.path and program.operations]
    program = max(programs, key=lambda program: len(program.path))
    values = [operation.layer for operation in program.operations if operation.outputs][:6]
    levels = "::".join(f"`{layer.name}`" for layer in program.path)
    asked = 0
    for layer in values:
        address = f"{levels}::`{layer.name}`:0"
        for text in (f"size({address}) > 0 and max({address}) >= mean({address})", f"{address} == prev({address})"):
            text = text if text.startswith("size") else f"all({text})"
            try:
                expected = debugger.find(text, "all")
            except UsageError:
                continue
            got = find(path, text)
            places = [(moment.iteration, moment.place) for moment in expected.moments]
            assert [(moment.iteration, moment.place) for moment in got.moments] == places, text
            assert (got.asked, got.failures) == (expected.asked, expected.failures)
            asked += got.asked
    assert asked or name == "subject never"


def test_a_formula_of_its_own_agrees(tmp_path: Path) -> None:
    path = recorded(sample("while_loop"), tmp_path)
    start = int(np.load(Path("sample_models/while_loop/inputs.npz"))["start"].item())
    _steps, peak, numbers = collatz(start)
    large = [iteration for iteration, number in enumerate(numbers) if number > 1000]
    found = find(path, "number_next_result > 1000")
    assert [moment.iteration for moment in found.moments] == large and large and found.asked == len(numbers)
    (first,), (final,) = (find(path, "number_next_result > 1000", which).moments for which in ("first", "last"))
    assert (first.iteration, final.iteration) == (large[0], large[-1])
    assert [moment.iteration for moment in find(path, f"number_next_result == {peak}").moments] == [numbers.index(peak)]
    some = find(path, "number_next_result > 1000", limit=3)
    assert [moment.iteration for moment in some.moments] == large[:3] and some.more
    assert [moment.iteration for moment in find(path, "iter == 7").moments] == [7]


def test_values_of_loops_around_belong_to_the_same_iteration(tmp_path: Path) -> None:
    path = recorded(sample("nested_loop"), tmp_path)
    _sorted, rows, _counts, after = bubble_sort(ORDER)
    begins = [ORDER, *rows]
    expected = [(done, left) for (done, left), values in after.items() if values[0] < begins[done][0]]
    found = find(path, "values_next[0] < order[0]")
    places = [tuple(int(part.split()[0]) for part in moment.place.split("#")[1:]) for moment in found.moments]
    assert places == expected and expected and not found.failures
    late = find(path, "values_next[0] == passes::pairs_of_neighbours:0[0]")
    assert not late.moments and late.failures == len(after) and "computed after what is inside" in late.failure


@each_row(
    "form",
    [
        "max({0}) > 200",
        "min({0}) <= 102",
        "mean({0}) >= 220",
        "std({0}) > 85",
        "any(isnan({0}))",
        "max(abs({0})) > 150",
        "all(isfinite({0}))",
        "shape({0}) == [3]",
        "size({0}) == 3 and dtype({0}) == f32",
        "max({0}) > max(prev({0})) + 5",
    ],
)
def test_statistics_answer_what_they_can(tmp_path: Path, form: str) -> None:
    text = form.format("balance_next")
    whole, part = (find(recorded(sample("for_loop"), tmp_path, amount), text) for amount in ("all", "stats"))
    assert whole.moments == part.moments and whole.failures == part.failures


def test_what_was_not_recorded_is_said_once(tmp_path: Path) -> None:
    path = recorded(sample("for_loop"), tmp_path, "stats")
    for text in ("balance_next[0] > 1", "any(balance_next > 1)", "norm(balance_next) > 1"):
        found = find(path, text)
        assert not found.moments and found.failures == found.asked == 10
        assert "only its statistics were recorded" in found.failure or "elements were not recorded" in found.failure


@each_row(
    ("text", "message"),
    [
        ("balance_next@3 > 1", "every iteration is asked"),
        ("ref(balance_next) == balance_next", "there is no reference run"),
        ("balance_nxt > 1", "near are balance_next"),
        ("max(balance_next", "expected"),
        ("max(final_balance) > max(balance_next)", "an output of the model"),
    ],
)
def test_what_can_hold_nowhere_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises((UsageError, ExpressionError), match=message):
        find(recorded(sample("for_loop"), tmp_path), text)


def test_iter_alone_needs_to_know_of_which_loop(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the loops are 'passes', 'pairs_of_neighbours'"):
        find(recorded(sample("nested_loop"), tmp_path), "iter == 1")


# --- NaN and Inf ----------------------------------------------------------------------------------------------------


def spoiled(folder: Path) -> Case:
    """A loop in a loop that makes Inf in one place, and NaN of it in others; numbers and tensors."""
    net = Graph()
    x, outer = net.parameter("x", dims=(6,)), net.body()
    start, item = outer.parameter("start", dims=(1,)), outer.parameter("item", dims=(1,))
    prepared = outer.apply("Divide", item, start, name="prepared")
    inner = outer.body()
    value = inner.parameter("value", dims=(1,))
    pair = inner.apply("Concat", value, value, dims=(2,), axis=0, name="pair")
    total = inner.apply("ReduceSum", pair, inner.constant(np.array([0], np.int64)), dims=(1,), keep_dims=True)
    next_value = inner.result(inner.apply("Subtract", total, value, name="left"))
    (final,) = outer.loop("inner", inner, 3, True, [carried(prepared, value, next_value)], [last(next_value)])
    following = outer.result(outer.apply("Subtract", final, outer.constant([1.0]), name="following"))
    inputs = [carried(net.constant([2.0]), start, following), sliced(x, item)]
    last_one, scan = net.loop("outer", outer, 6, True, inputs, [last(following), joined(following)])
    net.result(last_one, "final")
    net.result(scan, "scan")
    return case(net.read(folder), {0: np.array([4, 1, 6, 0, 2, 1], np.float32)})


def non_finite(path: Path, word: str, which: str = "all", limit: int = 1000) -> NonFiniteValues:
    with open_recording(path) as recording:
        return find_non_finite(recording, NonFiniteKind(word), Which(which), limit)


def by_hand(subject: Case, word: str) -> list[tuple[str, tuple[Any, ...]]]:
    """Name and iterations of each such value, by asking every operation moment of a run for its outputs."""
    debugger, found = debugger_of(subject), []
    isfound = np.isnan if word == "nan" else np.isinf
    while not debugger.machine.finished:
        stop = debugger.step()
        if stop.done is None or stop.depth < 2:
            continue
        numbers = tuple(frame.activation.iteration for frame in debugger.machine.stack[1:] if frame.activation)
        frame = debugger.frame
        if any(isfound(frame.values[slot]).any() for slot in stop.done.outputs):
            found.append((stop.done.layer.name, numbers))
    return found


@each_row("word", ["nan", "inf"])
@each_row("amount", ["all", "stats"])
def test_nan_and_inf_are_found_in_the_order_of_computation(tmp_path: Path, word: str, amount: str) -> None:
    subject = spoiled(tmp_path)
    path = recorded(subject, tmp_path, amount)
    expected = by_hand(subject, word)
    assert len(expected) > 2
    findings = non_finite(path, word)
    got = [
        (one.address.rpartition("::")[2].partition(":")[0], one.place)
        for one in findings.found
        if one.tick is not None and ":: " not in one.address
    ]
    operations = [(name, place) for name, place in got if name not in ("value", "start", "item")]
    names = [name.strip("`") for name, _ in operations]
    assert names == [name for name, _ in expected]
    numbers = [tuple(int(part.split()[0]) for part in place.split("#")[1:]) for _, place in operations]
    assert numbers == [at for _, at in expected]
    (first,), (final,) = (non_finite(path, word, which).found for which in ("first", "last"))
    assert first == findings.found[0] and final == findings.found[-1]
    assert non_finite(path, word, limit=2).found == findings.found[:2]
    assert non_finite(path, word, limit=2).total == len(findings.found)


def test_nothing_is_found_where_all_is_finite(tmp_path: Path) -> None:
    path = recorded(sample("while_loop"), tmp_path)
    assert non_finite(path, "nan") == non_finite(path, "inf") == NonFiniteValues((), 0)


def test_numbers_in_rows_that_are_full_are_looked_at(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(200,)), net.body()
    item = body.parameter("item", dims=(1,))
    root = body.result(body.apply("Sqrt", item, name="root"))
    net.result(net.loop("roots", body, 200, True, [sliced(x, item)], [joined(root)])[0], "roots")
    given = np.arange(200, dtype=np.float32)
    given[[3, 64, 150]] = -1, np.inf, -2
    path = recorded(case(net.read(tmp_path), {0: given}), tmp_path, "stats")
    found = [(one.address, one.iteration) for one in non_finite(path, "nan").found]
    assert found == [("roots::root", 3), ("roots::root", 150), ("model::roots", None)]
    first = non_finite(path, "nan").found[0]
    assert first.kind is NonFiniteKind.NAN and first.location.operation is not None
    assert (first.location.operation.type, first.location.iteration) == ("Sqrt", 3)
    assert Path(first.location.operation.file).name == "model.xml"
    assert [one.iteration for one in non_finite(path, "inf").found] == [None, 64, 64, None]
