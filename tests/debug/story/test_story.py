"""Stories of the samples: every link, number and share against a computation that knows nothing of causes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from stepper import element_types
from stepper.commands import Interpreter
from stepper.debug.causes.cause import LinkForm, LinkKind, PartRole
from stepper.debug.causes.nan_origins import scalar_of
from stepper.debug.debugger import Debugger
from stepper.debug.story import building
from stepper.debug.story.building import story as story_of
from stepper.debug.story.story_facts import LinkRole, Story, StoryLink, StoryQuestion
from stepper.debug.story.story_texts import extent, story_lines, verdict
from stepper.engine.loops import EndReason
from stepper.errors import LimitReached, StepperError, UsageError
from stepper.plain_values import record_data
from tests.debug.debugged import opened
from tests.debug.oracle import debugger
from tests.models import Graph, Side, carried, joined, last, sliced
from tests.tables import each_row

SAMPLES = Path(__file__).resolve().parents[3] / "sample_models"
Told = tuple[str, tuple[int, ...], tuple[int, ...] | None]


def sample(name: str) -> Debugger:
    run = Debugger(SAMPLES / name / "model.xml", dict(np.load(SAMPLES / name / "inputs.npz")))
    run.last()
    return run


def path(story: Story, link: StoryLink) -> tuple[int, ...]:
    return story.columns[link.column].path


def told(story: Story) -> set[Told]:
    """Of each link the operation, the iterations and the element."""
    return {(story.rows[link.row].layer.name, path(story, link), link.element) for link in story.links}


def number(value: object) -> float:
    return float(str(value).replace("Infinity", "inf"))


def ensure_true(story: Story) -> None:
    """Each link follows from its operands, each edge leads to an operand of the same value, shares are exact."""
    for number_of, link in enumerate(story.links):
        if link.is_bad or link.kind is not LinkKind.COMPUTED or link.times > 1:
            continue
        if link.form is LinkForm.SUM:
            amounts = [one.amount for one in link.operands if one.amount is not None]
            assert sum(amounts) + (link.rest or 0) == pytest.approx(number(link.value), rel=1e-4, abs=1e-5)
            shares = [one.share for one in link.operands if one.share is not None]
            assert shares == pytest.approx([amount / (sum(amounts) + (link.rest or 0)) for amount in amounts])
        if link.form is LinkForm.PRODUCT:
            made = np.prod([number(one.factor.value) for one in link.operands])
            assert made == pytest.approx(number(link.value), rel=1e-4)
        if link.form in (LinkForm.MOVE, LinkForm.CHOICE) and story.rows[link.row].layer.type != "TopK":
            decided = [one for one in link.operands if one.role in (PartRole.DECIDES, PartRole.ARGUMENT)]
            assert decided[0].factor.value == link.value
        for one in link.operands:
            if one.link is not None:
                assert one.factor.value == story.links[one.link].value
                assert (one.link, number_of) in {(edge.source, edge.target) for edge in story.edges}


def test_the_nan_of_the_sample_comes_over_two_back_edges_from_the_exponential_that_overflows() -> None:
    run = sample("rwkv_overflow")
    story = run.story("wkv@8[0,3]")
    assert told(story) == {
        ("token", (7,), (0, 6)),
        ("token_part", (7,), (0, 6)),
        ("shifted", (7,), (0, 6)),
        ("key", (7,), (0, 3)),
        ("exp_key", (7,), (0, 3)),
        ("denominator_next", (7,), (0, 3)),
        ("weighted", (7,), (0, 3)),
        ("numerator_next", (7,), (0, 3)),
        ("numerator_now", (8,), (0, 3)),
        ("denominator_now", (8,), (0, 3)),
        ("wkv", (8,), (0, 3)),
    }
    (birth,) = (story.links[k] for k in story.births)
    assert birth.location.operation is not None and birth.location.operation.name == "exp_key"
    assert birth.limit == pytest.approx(np.log(float(np.finfo(np.float32).max))) and birth.finite_beside == 7
    assert story.links[story.asked].role is LinkRole.ASKED and story.links[story.asked].value == "NaN"
    backs = {(edge.back.name, story.links[edge.source].value) for edge in story.edges if edge.back is not None}
    assert backs == {("numerator", "Infinity"), ("denominator", "Infinity")}
    # the products behind key[0,3] in iteration 7, by numpy alone
    with np.load(SAMPLES / "rwkv_overflow" / "inputs.npz"):
        run.goto_tick(0)
    run.break_at("key", condition="iter == 7")
    run.continue_()
    shifted = np.asarray(run.value("shifted"), np.float64)[0]
    key = next(link for link in story.links if story.rows[link.row].layer.name == "key")
    weights = np.array([number(one.beside.value) for one in key.operands if one.beside is not None])
    order = [one.factor.element[1] for one in key.operands if one.factor.element is not None]
    products = shifted[order] * weights
    assert [one.amount for one in key.operands] == pytest.approx(list(products))
    assert key.operands[0].share == pytest.approx(products[0] / products.sum()) == pytest.approx(0.3756, abs=1e-4)
    assert products.sum() == pytest.approx(89.2, abs=1e-4)
    (entry,) = (link.entry for link in story.links if link.entry is not None)
    assert entry.factor is not None and (entry.factor.name, entry.factor.element) == ("embedded", (7, 6))
    wkv = [number(value) for value in story.rows[6].history]
    assert np.array_equal(wkv, np.asarray(run.value("wkv@*"))[:, 0, 3].astype(float), equal_nan=True)
    assert story.rows[4].hidden == 4 and [row.hidden for row in story.rows][7] == 5
    ensure_true(story)
    lines = story_lines(story)
    assert lines[0] == "why wkv@8[0,3] is NaN" and lines[1].startswith("exp(89.2) > f32 maximum exp(88.72): ")
    assert json.loads(json.dumps(record_data(story)))["address"] == "wkv@8[0,3]"


def test_without_the_courses_beside_it_the_path_is_the_same_and_the_loop_is_not_run_for_them() -> None:
    run = sample("rwkv_overflow")
    whole = run.story("wkv@8[0,3]")
    alone = story_of(run.timeline, StoryQuestion("wkv@8[0,3]", courses=False))
    assert repr(alone.links) == repr(whole.links) and alone.edges == whole.edges and alone.entered == whole.entered
    assert whole.iterations and not alone.iterations and not any(row.history for row in alone.rows)


def test_iterations_that_only_carry_an_inf_on_are_one_column_and_can_be_shown_singly() -> None:
    run = sample("rwkv_overflow")
    story = run.story("mixed@11[0,0]")
    assert [(column.first, column.path, column.times) for column in story.columns] == [
        ((7,), (7,), 1),
        ((8,), (10,), 3),
        ((11,), (11,), 1),
    ]
    assert sum(link.times for link in story.links) == 25
    assert {story.rows[link.row].layer.name for link in story.links if link.times == 3} == {
        "kept_weight",
        "denominator_next",
        "kept",
        "numerator_next",
    }
    ensure_true(story)
    singly = run.story("mixed@11[0,0]", unfolds=True)
    assert len(singly.links) == 25 and [column.path for column in singly.columns] == [(7,), (8,), (9,), (10,), (11,)]


def test_why_a_loop_ended_goes_from_its_condition_to_the_score_that_won() -> None:
    run = sample("date_normaliser")
    story = run.story(ends=True)
    end = story.end
    assert end is not None and (end.iteration, end.limit, end.unasked) == (10, 20, ("Less",))
    names = [story.rows[link.row].layer.type for link in story.links]
    assert names == ["NotEqual", "Squeeze", "Squeeze", "TopK", "Add", "MatMul", "Concat", "Add"]
    compared = [one.factor.value for one in story.links[0].operands]
    assert compared == [12, 12] and story.links[0].value is False
    top, matmul = story.links[3], story.links[5]
    assert top.count == 13 and top.operands[0].factor.element == (0, 12)
    lead = number(top.operands[0].factor.value) - number(top.operands[1].factor.value)
    assert lead == pytest.approx(8.98, abs=0.005)
    assert top.operands[1].role is PartRole.COMPARED and matmul.count == 192
    groups = {group.count: group.share for group in matmul.groups}
    assert groups[64] == pytest.approx(0.93, abs=0.005) and groups[128] == pytest.approx(0.07, abs=0.005)
    assert matmul.operands[0].share == pytest.approx(0.0282, abs=1e-4)
    ensure_true(story)


def test_a_state_is_written_as_shares_by_iteration_that_add_up_to_it() -> None:
    run = sample("date_normaliser")
    story = run.story("`aten::add/Add_3`@10[0,46]")
    run.goto("`aten::add/Add_3`@10")
    names = ("aten::add/Add_3", "aten::mul/Multiply_1", "aten::mul/Multiply_2")
    h, new, kept = (np.asarray(run.value(f"`{name}`@*"), np.float64)[:, 0, 46] for name in names)
    share, gates = {}, 1.0
    for at in range(10, -1, -1):  # h[t] = new[t] + gate[t] * h[t-1]
        share[at] = gates * new[at] / h[10]
        gates *= kept[at] / h[at - 1] if at else 0
    found = story.shares
    assert [at for at, _ in found] == [(10,), (9,), (8,), (7,)]
    for (at,), part in found[:-1]:
        assert part == pytest.approx(share[at], rel=1e-5)
    assert found[-1][1] == pytest.approx(1 - sum(share[at] for at in (8, 9, 10)), rel=1e-4)
    assert len(story.links) == 15 and sum(edge.back is not None for edge in story.edges) == 3
    ensure_true(story)


def test_a_sorted_element_is_followed_through_nested_loops_to_its_place_in_the_input() -> None:
    run = sample("nested_loop")
    story = run.story("sorted[2]")
    values, position = [5.0, 1, 4, 2, 8], 2  # bubble sort, with the way of the element 4 that begins at place 2
    steps: list[tuple[tuple[int, int], int]] = []
    kept: set[tuple[int, int]] = set()
    for outer, pairs in ((0, 4), (1, 3), (2, 2)):
        for inner in range(pairs):
            low, high = sorted(values[inner : inner + 2])
            values[inner : inner + 2] = [low, high]
            if position in (inner, inner + 1):
                position = inner if low == 4 else inner + 1
                steps.append(((outer, inner), position))
            else:
                kept.add((outer, inner))
    assert [column.path for column in story.columns] == [at for at, _ in steps]
    written = {
        path(story, link): link.element for link in story.links if story.rows[link.row].layer.name == "values_next"
    }
    assert written == {at: (place,) for at, place in steps} and set(story.passed) == kept
    first = next(link for link in story.links if link.entry is not None)
    assert first.entry is not None and first.entry.factor is not None
    assert (first.entry.factor.name, first.entry.factor.element, first.entry.factor.value) == ("values", (2,), 4.0)
    compared = [one.factor.value for link in story.links for one in link.operands if one.role is PartRole.COMPARED]
    assert sorted(map(number, compared)) == [1, 2, 2, 5, 5]
    indices = [one for link in story.links for one in link.operands if one.role is PartRole.INDEX]
    assert indices and all(one.link is None for one in indices)
    ensure_true(story)


def chain_of_sums(trips: int) -> Graph:
    """state = state + x, which goes out in a scan, too."""
    net = Graph()
    x, body = net.parameter("x", dims=(2,)), net.body()
    state, given = body.parameter("state", dims=(2,)), body.constant([1.0, 3.0], np.float32)
    grown = body.apply("Add", state, given, name="grown")
    carry, row = body.result(grown, "carry"), body.apply("Unsqueeze", grown, body.constant([0], np.int64), dims=(1, 2))
    final, scan = net.loop(
        "loop", body, trips, True, [carried(x, state, carry)], [last(carry), joined(body.result(row, "row_out"))]
    )
    net.result(final, "final")
    net.result(scan, "scan")
    return net


def test_a_long_way_back_is_folded_and_bounded(tmp_path: Path) -> None:
    run = debugger(chain_of_sums(300), tmp_path, np.array([7.0, 900.0], np.float32))
    run.last()
    story = run.story("grown@299[1]")
    assert sum(link.times for link in story.links) <= 41 and story.pending == 1
    assert max(column.times for column in story.columns) > 30 and len(story.links) < 5
    assert len(story.iterations) <= 1024 and story.links[story.asked].value == 1800.0
    more = run.story("grown@299[1]", links=500)
    assert more.pending == 0 and sum(link.times for link in more.links) > 100
    assert run.story("scan[4,1]").links[0].value == 915.0
    run.first()
    with pytest.raises(UsageError, match="nothing called"):
        run.story("nothing_of_this_name")
    with pytest.raises(UsageError, match="never comes to 'grown@300'"):
        run.story("grown@300[1]")
    assert run.story("grown@5[0]").links[0].value == 13.0 and run.stop.tick == 0  # ahead of the present
    ensure_true(story)


def test_a_nan_that_the_run_was_given_has_no_birth_and_leads_out_of_the_loop(tmp_path: Path) -> None:
    run = debugger(chain_of_sums(50), tmp_path, np.array([np.nan, 1.0], np.float32))
    run.last()
    story = run.story("grown@49[0]")
    assert not story.births
    given = [link for link in story.links if link.kind is LinkKind.GIVEN]
    assert [(story.rows[link.row].name, link.value, path(story, link)) for link in given] == [("x", "NaN", ())]
    assert sum(link.times for link in story.links) == 51 and max(column.times for column in story.columns) >= 48


def test_a_pause_ends_a_walk_back_and_the_present_stays(tmp_path: Path) -> None:
    run = debugger(chain_of_sums(3000), tmp_path, np.array([np.nan, 1.0], np.float32))
    run.last()
    tick = run.stop.tick
    run.machine.request_pause()
    story = run.story("final[0]")
    assert story.stopped.startswith("paused") or story.links
    assert run.machine.tick == tick and not run.machine.pause_requested


def test_a_loop_that_its_trip_count_ended_leads_to_where_that_comes_from() -> None:
    story = sample("rwkv_overflow").story(ends=True)
    rows = np.load(SAMPLES / "rwkv_overflow" / "inputs.npz")["embedded"].shape[0]
    assert [(story.rows[link.row].layer.type, link.value) for link in story.links] == [
        ("Gather", rows),
        ("ShapeOf", rows),
        ("Parameter", rows),
    ]
    assert story_lines(story)[1] == "trip count reached: it allows 12 iterations, for length is 12"


def test_a_loop_that_did_not_begin_leads_to_its_condition() -> None:
    run = Debugger(SAMPLES / "while_loop" / "model.xml", {"start": np.array(1, np.int64)})
    run.last()
    story = run.story(ends=True)
    assert story.links[0].value is False
    assert story_lines(story)[0].endswith("not begin") and "at the start" in story_lines(story)[1]


def test_a_loop_that_used_all_slices_says_of_which_inputs_and_what_its_last_iteration_made() -> None:
    values = dict(np.load(SAMPLES / "specification_lstm" / "inputs.npz"))
    run = sample("specification_lstm")
    story = run.story(ends=True)
    assert story.end is not None and story.end.reason is EndReason.SLICES
    (cut,) = story.end.sliced
    assert cut.shape in {value.shape for value in values.values()} and cut.count * cut.size == cut.shape[cut.axis]
    lines = story_lines(story)
    assert any("all used" in line for line in lines)
    run.last()
    asked = story.links[story.asked]
    outputs = run.machine.outputs or ()
    assert {story.columns[link.column].path for link in story.links} == {(cut.count - 1,)}
    assert isinstance(asked.value, float) and any(np.float32(asked.value) in output for output in outputs)
    assert (
        f"{cut.count} slices of {cut.name}" in lines[1] and "no value decided it; the last iteration made" in lines[1]
    )
    assert len(story.links) > 1 and story.into(story.asked), "and of what"


@each_row("largest", (20, 3000))
def test_a_link_that_matters_little_on_one_way_is_followed_where_it_matters_on_another(
    largest: int, tmp_path: Path
) -> None:
    """Of the sum of all states the last one is most, and all of it comes through the first ones, which are little."""
    net = Graph()
    begin, factors, body = net.parameter("begin", dims=(1,)), net.parameter("factors", dims=(-1, 1)), net.body()
    state, row = body.parameter("state", dims=(1,)), body.parameter("row", dims=(1, 1))
    factor = body.apply("Reshape", row, body.constant([1], np.int64), special_zero="false", dims=(1,))
    following = body.result(body.apply("Multiply", state, factor, name="following"), "next")
    inputs = [carried(begin, state, following), sliced(factors, row, 0)]
    (states,) = net.loop("walk", body, 8, True, inputs, [joined(following)])
    total = net.apply("ReduceSum", states, net.constant([0], np.int64), name="total", keep_dims="true", dims=(1,))
    net.result(total)
    numbers = np.array([1] * 7 + [largest], np.float32).reshape(8, 1)
    run = opened(tmp_path, net, np.array([2], np.float32), numbers)
    run.goto("total")
    story = run.story("total[0]")
    assert {link.kind for link in story.links} == {LinkKind.COMPUTED, LinkKind.INITIAL}
    assert sum(link.times for link in story.links if story.rows[link.row].name == "following") == 8


@each_row("kind", ("bf16", "f16", "f8e4m3", "f64", "i32"))
def test_what_the_last_iteration_made_is_told_of_every_type_of_numbers(kind: str, tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    x, rows = net.parameter("x", kind, (2,)), net.parameter("rows", kind, (3, 2))
    h, row = body.parameter("h", kind, (2,)), body.parameter("row", kind, (1, 2))
    flat = body.apply("Squeeze", row, body.constant([0], np.int64), type=kind, dims=(2,))
    following = body.result(body.apply("Add", h, flat, type=kind, dims=(2,), name="sum"), "next")
    net.result(net.tensor_iterator("walk", body, [carried(x, h, following), sliced(rows, row)], [last(following)])[0])
    dtype = element_types.ELEMENT_TYPES[kind].dtype
    run = opened(tmp_path, net, np.zeros(2, dtype), np.array([[1, 2], [1, 2], [0, 4]], dtype))
    run.last()
    found = run.story(ends=True)
    assert found.end is not None and found.end.reason is EndReason.SLICES
    asked = found.links[found.asked]
    assert (asked.value, found.columns[asked.column].path) == (8, (2,))


def test_the_command_why_end_says_the_same_in_lines() -> None:
    from stepper.commands import Interpreter

    answer = Interpreter(sample("date_normaliser")).execute("why end")
    assert answer.lines[0] == "why did Loop end after iteration 10 of at most 20"
    assert answer.lines[1].startswith("tok' = 12, so NotEqual(tok', 12) is false") and any(
        "largest of 13: [0,12]" in line for line in answer.lines
    )


def test_the_two_sides_of_an_if_have_rows_of_their_own() -> None:
    story = sample("while_loop").story("number@7")
    assert [row.name for row in story.rows] == ["number", "half", "triple", "triple_plus_one"]
    found = {(path(story, link), story.rows[link.row].name): link.value for link in story.links}
    expected: dict[tuple[int, str], int] = {(0, "number"): 27}
    value = 27
    for iteration in range(7):  # Collatz: odd ones to 3 n + 1, even ones to a half
        if value % 2:
            expected[iteration, "triple"], value = 3 * value, 3 * value + 1
            expected[iteration, "triple_plus_one"] = value
        else:
            expected[iteration, "half"] = value = value // 2
    assert story.links[story.asked].value == value
    found = {(path(story, link)[0], story.rows[link.row].name): link.value for link in story.links}
    assert found == expected


@each_row(
    ("iteration", "said"),
    [
        (1, ", in iteration 1; there Inf - Inf is NaN"),
        (2, ": the Inf of iteration 1 came over 1 back edge; in iteration 2 Inf - Inf is NaN"),
        (3, ": the Inf of iteration 1 came over 2 back edges; in iteration 3 Inf - Inf is NaN"),
    ],
)
def test_an_inf_comes_over_the_back_edges_behind_its_birth_alone(tmp_path: Path, iteration: int, said: str) -> None:
    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(1,))
    grown = body.apply("Multiply", x, body.constant([1e20]), name="grow")  # 1e20, then beyond f32
    gap = body.result(body.apply("Subtract", grown, grown, name="gap"), "gap_out")
    x_next = body.result(grown, "x_next")
    for output in net.loop("grows", body, 4, True, [carried(net.parameter("v", dims=(1,)), x, x_next)], [joined(gap)]):
        net.result(output)
    run = Debugger(net.read(tmp_path), {0: np.ones(1, np.float32)})
    run.last()
    assert story_lines(run.story(f"gap@{iteration}"))[1].endswith(f"f32 maximum 3.403e+38{said}")


def counter_to_a_thousand(trips: int) -> Graph:
    """x = (x + 1) mod 1000: the story of a value goes back to where the remainder was 0."""
    net = Graph()
    x0, body = net.parameter("x0", dims=(1,)), net.body()
    x = body.parameter("x", dims=(1,))
    up = body.apply("Add", x, body.constant([1.0]), name="up")
    x_next = body.result(body.apply("FloorMod", up, body.constant([1000.0]), name="mod"), "x_next")
    net.result(net.loop("ups", body, trips, True, [carried(x0, x, x_next)], [last(x_next)])[0])
    other = net.body()
    y = other.parameter("y", dims=(1,))
    y_next = other.result(other.apply("Abs", y), "y_next")
    net.result(net.loop("others", other, 7, True, [carried(x0, y, y_next)], [last(y_next)])[0])
    return net


@each_row(("trips", "asked"), [(3, "2"), (3000, "2500"), (3000, "3"), (3000, "2999")])
def test_a_story_counts_all_iterations_of_its_loop_and_no_others(tmp_path: Path, trips: int, asked: str) -> None:
    run = debugger(counter_to_a_thousand(trips), tmp_path, np.zeros(1, np.float32))
    run.last()
    story = run.story(f"mod@{asked}")
    assert (story.total, story.counts_all) == (trips, True)
    assert f" of {trips:,} iterations" in extent(story)
    assert len(story.iterations) == min(trips, len(story.iterations)) <= 1024
    ensure_true(story)


@each_row("asked", ["3", "700"])
def test_how_far_it_was_looked_is_not_told_as_the_iterations_of_a_loop(
    tmp_path: Path, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "SECONDS", 0.0)
    run = debugger(counter_to_a_thousand(3000), tmp_path, np.zeros(1, np.float32))
    run.last()
    story = run.story(f"mod@{asked}")
    assert not story.counts_all and story.total < 3000
    assert " of " not in extent(story) and "at least" not in extent(story)
    assert re.search(r"links, \d+ iterations?,", extent(story))


@each_row("asked", ["0", "3"])
@each_row("limit", [5, 2500])
def test_all_iterations_of_a_loop_that_a_limit_has_ended_are_counted(
    tmp_path: Path, limit: int, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "SECONDS", 60.0)  # however busy the machine is
    model = counter_to_a_thousand(3000).read(tmp_path)
    run = Debugger(model, {0: np.zeros(1, np.float32)}, max_iterations=limit)
    with pytest.raises(LimitReached):
        run.continue_()
    story = run.story(f"mod@{asked}")
    assert (story.total, story.counts_all) == (limit, True) and f" of {limit:,} iterations" in extent(story)


@each_row("is_nested", [False, True])
@each_row(("fails_in", "count"), [(1, 1), (2, 2), (4, 12)])
def test_all_iterations_of_a_loop_that_an_error_has_ended_are_counted(
    tmp_path: Path, fails_in: int, count: int, is_nested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """x counts 1, 2, ...; `count` elements take the shape [x, -1] as long as x divides them, in fails_in iterations.

    Nested: two runs of such a loop, the second of which begins with what the first one left and so fails.
    """
    monkeypatch.setattr(building, "SECONDS", 60.0)
    net = Graph()
    outer = net.body() if is_nested else net
    x0, body = outer.parameter("x0", "i64", (1,)), outer.body()
    x = body.parameter("x", "i64", (1,))
    shape = body.apply("Concat", x, body.constant([-1], np.int64), name="shape", axis=0, dims=(2,))
    many = body.constant(np.zeros(count, np.float32))
    rows = body.apply("Reshape", many, shape, name="rows", special_zero="false", dims=(-1, -1))
    x_next = body.result(body.apply("Add", x, body.constant([1], np.int64), name="up"), "x_next")
    rows_out = body.result(body.apply("ReduceSum", rows, body.constant([0, 1], np.int64), dims=()), "sum")
    outputs = [last(x_next), last(rows_out)]
    trips = fails_in if is_nested else 9
    end, rest = outer.loop("ups", body, trips, True, [carried(x0, x, x_next)], outputs)
    if is_nested:
        out, sums = outer.result(end, "y_next"), outer.result(rest, "sums")
        entries = [carried(net.parameter("y0", "i64", (1,)), x0, out)]
        end, rest = net.loop("outer", outer, 9, True, entries, [last(out), last(sums)])
    net.result(end)
    net.result(rest)
    run = Debugger(net.read(tmp_path), {0: np.ones(1, np.int64)})
    with pytest.raises(StepperError):
        run.continue_()
    story = run.story("outer@0::up@0" if is_nested else "up@0")
    begun = fails_in + 1  # that in which it fails, too
    assert (story.total, story.counts_all) == (begun, True) and f" of {begun} iterations" in extent(story)


@each_row("asked, told", [("outer@2::more@1", "4 iterations"), ("outer@0::more@1", "2 of 6 iterations")])
def test_iterations_of_a_loop_and_of_the_loop_around_it_are_not_told_of_the_number_of_one(
    tmp_path: Path, asked: str, told: str
) -> None:
    """An inner loop of 2 iterations, in each of 3 of the outer loop, goes on from a number that counts these."""
    net = Graph()
    outer = net.body()
    count, inner = outer.parameter("count", dims=(1,)), outer.body()
    state = inner.parameter("state", dims=(1,))
    out = inner.result(inner.apply("Add", state, inner.constant([1.0]), name="more"), "next_state")
    (total,) = outer.loop("inner", inner, 2, True, [carried(count, state, out)], [last(out)])
    more = outer.result(outer.apply("Add", count, outer.constant([1.0]), name="counted"), "next_count")
    start, sums = net.parameter("start", dims=(1,)), outer.result(total, "total")
    for value in net.loop("outer", outer, 3, True, [carried(start, count, more)], [last(more), last(sums)]):
        net.result(value)
    run = opened(tmp_path, net, np.ones(1, np.float32))
    run.last()
    story = run.story(f"{asked}[0]")
    paths = {column.path for column in story.columns if column.phase == 0 and column.path}
    at = int(asked[6])
    around = {(0,), (1,)} if at else set()
    assert paths == {(at, 0), (at, 1)} | around, "two of the inner loop, and what the outer one counted before"
    assert told in extent(story).split(", ") and story.total == 6


def test_an_operand_that_was_not_followed_is_followed_when_asked_for(tmp_path: Path) -> None:
    run = debugger(counter_to_a_thousand(3000), tmp_path, np.zeros(1, np.float32))
    run.last()
    story = run.story("mod@2000[0]")  # 1 = 0 + 1: the 0 has no share of it
    (leaf,) = (link for link in story.links if story.rows[link.row].name == "up")
    assert all(one.link is None for one in leaf.operands)
    wider = run.story("mod@2000[0]", wider=((leaf.key, 1),), links=1)
    assert {path(wider, link) for link in wider.links} == {(1999,), (2000,)}


@each_row(
    ("name", "asked"),
    [("nested_loop", "values@1"), ("rwkv_overflow", "wkv@8[0,3]"), ("date_normaliser", "Add_3@10[0,0]")],
)
def test_every_address_that_a_story_shows_can_be_typed(name: str, asked: str) -> None:
    run = sample(name)
    story = run.story(asked)
    for link in story.links:
        shown = link.address
        value = np.asarray(run.value(shown))
        assert scalar_of(value[()]) == link.value, shown
        again = run.story(shown)
        assert again.links[again.asked].value == link.value and again.name == shown
        run.goto(shown)
        at = [frame.activation.iteration for frame in run.machine.stack if frame.activation is not None]
        assert tuple(at[: len(path(story, link))]) == path(story, link), shown
        run.last()


def test_the_address_of_a_loop_inside_an_if_that_has_no_name_of_its_own_can_be_typed(tmp_path: Path) -> None:
    """x grows by 1 in each iteration of `in`: 3 in each of `mid`, 6 in each of `out`."""
    net = Graph()
    x, out = net.parameter("x", dims=(1,)), net.body()
    p = out.parameter("p", dims=(1,))
    then, other = out.body(), out.body()
    q, unused = then.parameter("q", dims=(1,)), other.parameter("q", dims=(1,))
    middle = then.body()
    u = middle.parameter("u", dims=(1,))
    inner = middle.body()
    h = inner.parameter("h", dims=(1,))
    grown = inner.result(inner.apply("Add", h, inner.constant([1.0]), name="grown"))
    of_inner = middle.result(middle.loop("in", inner, 3, True, [carried(u, h, grown)], [last(grown)])[0])
    of_middle = then.result(then.loop("mid", middle, 2, True, [carried(q, u, of_inner)], [last(of_inner)])[0])
    always = out.apply("Greater", p, out.constant([-9.0]), type="boolean", name="twice")
    sides = Side(then, [(p, q)], [of_middle]), Side(other, [(p, unused)], [other.result(unused)])
    chosen = out.result(out.branch("twice", always, *sides)[0])
    net.result(net.loop("out", out, 2, True, [carried(x, p, chosen)], [last(chosen)])[0])
    run = opened(tmp_path, net, np.zeros(1, np.float32))
    run.goto("out@1::mid@0::in@1::grown")
    story = run.story("grown")
    assert story.links[story.asked].value == 8
    run.last()
    again = run.story(story.address)
    assert (again.address, again.links[again.asked].value) == (story.address, 8)


def test_the_shapes_that_a_story_shows_can_be_typed() -> None:
    run = sample("date_normaliser")
    story, prompt = run.story("shape of toks@3[0]"), Interpreter(run)
    assert story.name == "toks.shape@3[0]" and len(story.links) > 3
    for link in story.links:
        shown = link.address
        assert ".shape" in shown
        assert prompt.execute(f"print {shown}").lines == (f"{link.value}",), shown
        again = run.story(shown)
        assert again.links[again.asked].value == link.value and again.name == shown
        for verb in (run.goto, run.run_to):
            run.first()
            verb(shown)
            at = [frame.activation.iteration for frame in run.machine.stack if frame.activation is not None]
            assert tuple(at[: len(path(story, link))]) == path(story, link), shown
    with pytest.raises(UsageError, match=r"nothing called 'nothing\.shape'"):
        prompt.execute("print nothing.shape@3[0]")


def test_run_to_takes_an_element_as_goto_does() -> None:
    run = sample("date_normaliser")
    expected = run.goto("Add_3@10").tick
    run.first()
    assert run.run_to("Add_3@10[0,0]").tick == expected


def test_a_name_with_a_slash_alone_is_no_quotient_at_the_prompt() -> None:
    run = sample("date_normaliser")
    prompt = Interpreter(run)
    written = prompt.execute("print `q/MatMul`@2[0,1]").data
    assert prompt.execute("print q/MatMul@2[0,1]").data == written
    assert prompt.execute("print `q/MatMul`@*").data == prompt.execute("print q/MatMul@*").data
    halves = prompt.execute("print h@2/h@3").data["values"]
    assert np.allclose(halves, np.array(run.value("h@2")) / run.value("h@3"), rtol=1e-6), "here it divides"


@each_row(("kind", "said"), [("Multiply", {"3 × 5", "5 × 3"}), ("Add", {"3 + 5", "5 + 3"})])
def test_where_no_operand_was_followed_the_numbers_of_all_are_told(tmp_path: Path, kind: str, said: set[str]) -> None:
    net = Graph()
    made = net.apply(kind, net.constant(np.float32([3])), net.constant(np.float32([5])), name="made")
    net.result(net.apply("Add", made, net.parameter("x", dims=(1,)), name="end"), "out")
    run = opened(tmp_path, net, np.ones(1, np.float32))
    run.continue_()
    (told,) = [line.strip() for line in story_lines(run.story("end")) if line.strip().startswith("made")]
    assert told.split("  ")[-1] in said


@each_row(
    ("kind", "type", "numbers", "wraps"),
    [
        ("Multiply", "i32", (1932053504, 14), True),
        ("Multiply", "i32", (153391689, 14), False),
        ("Add", "i32", (2147483647, 1), True),
        ("Add", "i64", (9223372036854775806, 1), False),
        ("Add", "u8", (200, 100), True),
        ("Subtract", "i32", (-2147483648, 1), True),
    ],
)
def test_whole_numbers_that_wrap_around_are_no_equation(
    tmp_path: Path, kind: str, type: str, numbers: tuple[int, int], wraps: bool
) -> None:
    net = Graph()
    a, b = (net.parameter(name, type, (1,)) for name in "ab")
    net.result(net.apply(kind, a, b, name="made", type=type, dims=(1,)), "out")
    dtype = {"i32": np.int32, "i64": np.int64, "u8": np.uint8}[type]
    run = opened(tmp_path, net, *(np.array([one], dtype) for one in numbers))
    run.continue_()
    answer = story_lines(run.story("made"))[1]
    assert (" wraps around to " in answer, " = " in answer) == (wraps, not wraps), answer


def test_shares_that_are_told_add_up_to_all(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    x, total = body.parameter("x", dims=(1,)), body.parameter("total", dims=(1,))
    out = body.result(body.apply("Add", total, x, name="sum"), "total_next")
    xs = net.parameter("xs", dims=(9, 1))
    entries = [sliced(xs, x), carried(net.constant(np.float32([0])), total, out)]
    net.result(net.tensor_iterator("sums", body, entries, [last(out)])[0], "end")
    run = opened(tmp_path, net, np.ones((9, 1), np.float32))
    told = "".join(verdict(run.story("`sums`::sum@8", tick=run.run_overview().ticks)))
    numbers = [int(one) for one in re.findall(r"(-?\d+)%", told)]
    assert "from others" in told and abs(sum(numbers) - 100) <= len(numbers) / 2, "each is rounded to a hundredth"


@each_row("at", [3, 6, 7])
def test_shares_are_added_up_over_all_ways_of_a_sum_that_is_read_twice(at: int) -> None:
    made = [np.array([0, 1])]  # fibonacci: how often each is the sum of iteration 0, and the 1 that enters
    made.append(made[0] + [1, 0])
    for _ in range(2, at + 1):
        made.append(made[-1] + made[-2])
    of_start, of_first = made[at] / made[at].sum()
    story = sample("growing_tensor").story(f"sum@{at}[0]")
    assert story.links[story.asked].value == made[at].sum()
    assert story.shares == (((1,), pytest.approx(of_start)), ((0,), pytest.approx(of_first)))
    told = "".join(verdict(story))
    assert told == f"{of_start:.0%} new in iteration 1, {of_first:.0%} from 0", "every term is followed"
    by_iteration = {path(story, link)[0]: link.share for link in story.links if link.form is LinkForm.SUM}
    ways = [1, 1]  # how often the sum of an iteration is in the one that was asked about
    while len(ways) <= at:
        ways.append(ways[-1] + ways[-2])
    expected = {k: ways[at - k] * made[k].sum() / made[at].sum() for k in range(at + 1)}
    assert by_iteration == pytest.approx(expected)


def test_a_sum_that_is_followed_no_further_has_its_share_in_its_own_iteration(tmp_path: Path) -> None:
    net = Graph()
    start, outer = net.parameter("start", dims=(1,)), net.body()
    around = outer.parameter("around", dims=(1,))
    inner = outer.body()
    state = inner.parameter("state", dims=(1,))
    out = inner.result(inner.apply("Subtract", state, inner.constant([1.0]), name="down"), "next_state")
    (once,) = outer.loop("inner", inner, 2, True, [carried(around, state, out)], [last(out)])
    handed = outer.result(once, "handed")
    net.result(net.loop("outer", outer, 2, True, [carried(start, around, handed)], [last(handed)])[0], "final")
    run = opened(tmp_path, net, np.zeros(1, np.float32))
    run.last()
    story = run.story("outer@1::down@0[0]")
    assert story.links[story.asked].value == -3.0
    third = pytest.approx(1 / 3)
    assert story.shares == (((1, 0), third), ((0, 1), third), ((0, 0), third))


def test_a_nan_of_infinities_that_were_given_is_told_as_such(tmp_path: Path) -> None:
    net = Graph()
    both = [net.parameter(name, dims=(2,)) for name in "ab"]
    net.result(net.apply("Subtract", *both, name="difference"), "out")
    given = np.float32([0, -np.inf])
    run = opened(tmp_path, net, given, given)
    run.continue_()
    told = "".join(verdict(run.story("difference[1]")))
    assert told.startswith("-Inf - (-Inf) is NaN") and "-Inf in " in told and "(model input)" in told


def test_of_a_condition_that_is_only_handed_on_its_source_is_told(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(1,))
    up = body.apply("Add", x, body.constant([1.0]), name="up")
    below = body.apply("Less", up, body.constant([3.0]), name="below", type="boolean", dims=(1,))
    scalar = body.apply("Squeeze", below, body.constant([0], np.int64), name="scalar", type="boolean", dims=())
    out = body.result(up, "x_next")
    edges = [carried(net.parameter("x0", dims=(1,)), x, out)]
    net.result(net.loop("ups", body, -1, True, edges, [last(out)], body.result(scalar, "go_on"))[0], "end")
    run = opened(tmp_path, net, np.zeros(1, np.float32))
    told = "".join(verdict(run.story("ups", ends=True, tick=run.run_overview().ticks)))
    assert told == "x' = 3, so Less(x', 3) is false"


def test_of_a_product_in_which_the_state_hardly_matters_the_other_factor_is_followed(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state, part = body.parameter("state", dims=(1,)), body.parameter("part", dims=(1,))
    product = body.apply("Multiply", state, part, name="product")
    out = body.result(body.apply("Multiply", product, body.constant([100.0]), name="scaled"), "next")
    edges = [carried(net.parameter("s0", dims=(1,)), state, out), sliced(net.parameter("parts", dims=(4,)), part)]
    net.result(net.loop("run", body, 4, True, edges, [last(out)])[0], "end")
    run = opened(tmp_path, net, np.float32([1.02]), np.float32([0.01, 0.0101, 0.01, 0.01]))
    run.continue_()
    story = run.story("product@3")
    assert ("part", (3,), (0,)) in told(story) and all(path(story, link) == (3,) for link in story.links)


def test_a_story_ends_with_the_inputs_that_it_depends_on() -> None:
    run = sample("rwkv_overflow")
    story, found = run.story("wkv@3[0,0]"), run.why("wkv@3[0,0]", tries=False)
    assert story.sources == found.sources and "depends on" in story_lines(story)


def test_without_loops_a_story_goes_back_to_the_input(tmp_path: Path) -> None:
    net = Graph()
    value = net.parameter("x", dims=(2,))
    for number_of in range(4):
        positive = net.apply("Relu", value, name=f"r{number_of}")
        value = net.apply("Add", positive, net.constant([1.0, 1.0]), name=f"a{number_of}")
    net.result(net.apply("Log", net.apply("Subtract", value, net.constant([4.0, 4.0])), name="y"), "end")
    run = opened(tmp_path, net, np.float32([0.5, 2]))
    run.continue_()
    story = run.story("y[1]")
    assert "x" in {row.name for row in story.rows} and "depends on" in story_lines(story)
