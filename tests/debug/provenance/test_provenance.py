"""`why` by element: what it says against perturbation of the whole model, which knows nothing of rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.story.story_facts import Influence, Provenance
from stepper.debug.story.story_texts import provenance_data, why_lines
from stepper.errors import StepperError, UsageError
from tests.cli.conftest import ROOT
from tests.debug.oracle import debugger
from tests.models import Graph, Side, carried, joined, last, sliced

Elements = set[tuple[str, tuple[int, ...]]]
TARGETS = {
    "for_loop": ("final_balance[1]", "balance_by_year[6,0]"),
    "nested_loop": ("sorted[1]", "swaps_by_pass[1]"),
    "do_while_loop": ("root[0]", "guesses[2,0]"),
    "for_with_condition": ("total[0]", "count"),
    "growing_tensor": ("sequence[3]", "golden_ratio[9]"),
    "reverse": ("returns[0,3,0]", "return_of_first_step[0,0,0]"),
    "onnx_moving_average": ("averages[1,1]", "last_average[0]"),
}


def sample(name: str) -> tuple[Path, dict[str, Any]]:
    folder = ROOT / "sample_models" / name
    return folder / "model.xml", dict(np.load(folder / "inputs.npz"))


def changed(number: Any) -> Iterator[Any]:
    if number.dtype == bool:
        yield ~number
    elif number.dtype.kind == "f":
        for factor, offset in ((1.5, 0.5), (-1, -2), (0, -1), (1.01, 0.01)):
            yield number * np.float32(factor) + np.float32(offset)
    else:
        yield number + 1
        yield number - 1


def changes(model: Any, inputs: dict[str, Any], name: str, index: tuple[int, ...]) -> Elements:
    """The elements of inputs that change an element of an output when they alone are changed."""
    base = stepper.run(model, inputs)[name][index]

    def differs(given: dict[str, Any]) -> bool:
        try:
            found = np.asarray(stepper.run(model, given, max_iterations=2000)[name])
        except StepperError:
            return True
        inside = all(at < size for at, size in zip(index, found.shape, strict=True))
        return not inside or not np.array_equal(found[index], base, equal_nan=True)

    found: Elements = set()
    for given, value in inputs.items():
        for place in np.ndindex(np.shape(value)):
            for number in changed(np.asarray(value)[place]):
                other = np.array(value)
                other[place] = number
                if differs({**inputs, given: other}):
                    found.add((given, place))
                    break
    return found


def named(found: Provenance) -> Elements:
    return {(one.name, at.index) for one in found.sources if one.kind == "input" for at in one.elements}


def test_precision_and_recall_on_the_samples() -> None:
    precision, recall, structure = [], [], []
    for name, targets in TARGETS.items():
        path, inputs = sample(name)
        run = Debugger(stepper.read_model(path), inputs)
        run.last()
        for target in targets:
            name_of, _, index = target.rstrip("]").partition("[")
            truth = changes(run.model, inputs, name_of, tuple(map(int, index.split(","))) if index else ())
            found, by_rules = named(run.why(target)), named(run.why(target, tries=False))
            precision.append(len(found & truth) / len(found))
            recall.append(len(found & truth) / len(truth))
            structure.append(len(by_rules & truth) / len(truth))
    assert np.mean(precision) >= 0.95 and set(recall) == {1.0} and set(structure) == {1.0}


def two_loops() -> Graph:
    """Rows of x are summed into a state by a TensorIterator with a factor each; a Loop then doubles what was chosen."""
    net = Graph()
    x, gate, start = (
        net.parameter("x", dims=(3, 2)),
        net.parameter("gate", dims=(3, 1)),
        net.parameter("start", dims=(1, 2)),
    )
    body = net.body()
    row, factor, state = (
        body.parameter("row", dims=(1, 2)),
        body.parameter("factor", dims=(1, 1)),
        body.parameter("state", dims=(1, 2)),
    )
    added = body.apply(
        "Add", state, body.apply("Multiply", row, factor, name="gated", dims=(1, 2)), name="added", dims=(1, 2)
    )
    carry = body.result(added, "carry")
    final, scan = net.tensor_iterator(
        "sums", body, [sliced(x, row), sliced(gate, factor), carried(start, state, carry)], [last(carry), joined(carry)]
    )
    net.result(net.apply("Abs", final, name="total", dims=(1, 2)), "total_out")
    net.result(net.apply("Abs", scan, name="rows", dims=(3, 2)), "rows_out")
    return net


def test_a_gate_of_zero_hides_the_row_behind_it(tmp_path: Path) -> None:
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    gate = np.array([[1], [0], [2]], np.float32)
    run = debugger(two_loops(), tmp_path, x, gate, np.zeros((1, 2), np.float32))
    run.last()
    expected = {("x", (0, 1)), ("x", (2, 1)), ("gate", (0, 0)), ("gate", (1, 0)), ("gate", (2, 0)), ("start", (0, 1))}
    assert named(run.why("total[0,1]", tries=False)) == expected
    assert named(run.why("rows[0,0]", tries=False)) == {("x", (0, 0)), ("gate", (0, 0)), ("start", (0, 0))}
    assert named(run.why("added@1[0,1]", tries=False)) == expected - {("x", (2, 1)), ("gate", (2, 0))}
    assert named(run.why("gated@2[0,0]")) == {("x", (2, 0)), ("gate", (2, 0))}
    goes = run.uses("x[2,0]")
    assert [(one.name, one.elements) for one in goes.outputs] == [("total_out", ((0, 0),)), ("rows_out", ((2, 0),))]
    hidden = run.uses("x[1,0]")
    assert not hidden.outputs and not hidden.uses and not hidden.stopped
    run.goto("added@1")  # in the midst of the loop
    so_far = run.uses("where does x[0,0] go")
    reached = [(str(one.location.operation), one.times, one.last) for one in so_far.uses]
    assert reached == [("Multiply 'gated'", 1, 0), ("Add 'added'", 2, 1)] and not so_far.outputs and so_far.stopped


def test_a_decision_depends_on_every_element_that_could_turn_it(tmp_path: Path) -> None:
    net = Graph()
    x, axis = net.parameter("x", dims=(4,)), net.constant(np.int64([0]))
    highest = net.apply("ReduceMax", x, axis, name="highest", dims=(), keep_dims=False)
    lowest = net.apply("ReduceMin", x, axis, name="lowest", dims=(), keep_dims=False)
    limit = net.constant(np.float32(30))
    net.result(net.apply("Greater", highest, limit, name="is_high", type="boolean", dims=()), "is_high")
    net.result(net.apply("Equal", lowest, highest, name="is_flat", type="boolean", dims=()), "is_flat")
    run = Debugger(stepper.read_model(net.write(tmp_path)), {"x": np.float32([0.1, 0.2, -0.3, 0.05])})
    run.last()
    assert named(run.why("is_high")) == {("x", (at,)) for at in range(4)}, "max(x) > 30 with any element above 30"
    assert not named(run.why("is_flat")), "no element alone makes all of them equal"


def test_an_edit_ends_the_way_back_and_trials(tmp_path: Path) -> None:
    x, gate = np.ones((3, 2), np.float32), np.ones((3, 1), np.float32)
    run = debugger(two_loops(), tmp_path, x, gate, np.zeros((1, 2), np.float32))
    run.break_at("added")
    run.continue_()
    run.set_value("added[0,0]", 7.0)
    run.breakpoints.delete()
    run.last()
    found = run.why("total[0,0]")
    edit = next(one for one in found.sources if one.kind == "edit")
    assert edit.name == "added" and [(one.index, one.value) for one in edit.elements] == [((0, 0), 7.0)]
    assert ("x", (0, 0)) not in named(found) and ("x", (1, 0)) in named(found) and found.trials.reason


def test_the_overflow_of_the_sample_is_told_to_its_input() -> None:
    path, inputs = sample("rwkv_overflow")
    run = Debugger(stepper.read_model(path), inputs)
    run.last()
    found = run.why("wkv[8,3]")
    said = "\n".join(why_lines(found))
    assert "exp_key'[0,3] = Inf   first appears here: exp(89.2) > f32 maximum exp(88.72)" in said
    assert "@7 Add 'shifted'[0,6] = -17.46   sum of token_part[0,6]" in said
    data = json.loads(json.dumps(provenance_data(found)))
    assert any((one["name"], one["index"]) == ("embedded", [7, 6]) for one in data["sources"])
    assert all({"address", "value", "operation", "reason"} <= set(link) for link in data["chain"])
    assert all(one["index"][0] <= 7 for one in data["sources"] if one["kind"] == "input")


@pytest.mark.parametrize("here", ["", "exp_key@3"])
def test_an_iteration_that_is_still_to_come_is_run_and_the_present_stays(here: str) -> None:
    path, inputs = sample("rwkv_overflow")
    asked, ended = Debugger(stepper.read_model(path), inputs), Debugger(stepper.read_model(path), inputs)
    if here:
        asked.goto(here)
    tick = asked.machine.tick
    ended.last()
    for question in ("wkv[0,3]@8", "numerator[0,3]@8", "shape of wkv@5"):
        assert provenance_data(asked.why(question)) == provenance_data(ended.why(question))
    assert asked.machine.tick == tick
    with pytest.raises(UsageError, match="the run never comes to 'wkv@12'"):
        asked.why("wkv@12")


def test_why_it_ran_so_often_and_why_this_shape() -> None:
    path, inputs = sample("while_loop")
    run = Debugger(stepper.read_model(path), inputs)
    run.last()
    steps = int(run.machine.outputs[0]) if run.machine.outputs is not None else 0
    ended = run.why(f"{steps} iterations")
    assert ended.end is not None and ended.end.iterations == steps and named(ended) == {("start", ())}
    with pytest.raises(UsageError, match=f"ran {steps} iterations, not 3"):
        run.why("3 iterations")
    shape = run.why("shape of numbers")
    assert shape.shape == (steps,) and named(shape) == {("start", ())}
    start = next(one for one in run.why("highest").sources if one.name == "start")
    assert start.counts == ((Influence.DATA, 1),)
    assert run.why("condition@3").value is True


def test_a_constant_of_a_branch_leads_on_to_the_condition_and_its_inputs(tmp_path: Path) -> None:
    net = Graph()
    tokens = net.parameter("tokens", "i64", dims=(4,))
    body, then, otherwise = net.body(), net.body(), net.body()
    token = body.parameter("token", "i64", dims=(1,))
    goes_on = body.apply("NotEqual", token, body.constant([7], np.int64), type="boolean", name="goes_on")
    sides = [
        Side(side, [], [side.result(side.constant([value], np.bool_, f"is_{value}"))])
        for side, value in ((then, True), (otherwise, False))
    ]
    (keep,) = body.branch("choice", goes_on, *sides)
    seen = body.apply("Add", token, token, name="seen")
    outputs = net.loop("read", body, 4, True, [sliced(tokens, token)], [joined(body.result(seen))], body.result(keep))
    net.result(outputs[0], "twice")
    run = debugger(net, tmp_path, np.array([3, 5, 7, 9], np.int64))
    run.last()
    ended = run.why("why 3 iterations of read")
    links = {link.location.operation.name: link for link in ended.chain.links if link.location.operation is not None}
    assert [link.location.operation and link.location.operation.name for link in ended.chain.links] == [
        "choice", "is_False", "goes_on", "token", "tokens"
    ]  # fmt: skip
    assert links["goes_on"].decides is not None and links["goes_on"].decides.name == "choice"
    assert links["tokens"].element == (2,) and named(ended) == {("tokens", (0,)), ("tokens", (1,)), ("tokens", (2,))}
    assert "control: decides If 'choice'" in "\n".join(why_lines(ended))
    assert ended.trials.tried == 3 and not ended.trials.reason  # the end of a loop comes again in runs of other inputs


def extents(found: Provenance) -> set[tuple[str, int]]:
    return {(one.name, axis.index[0]) for one in found.sources if one.kind == "input" for axis in one.axes}


def test_shapes_lead_to_extents_of_inputs_and_to_what_says_them(tmp_path: Path) -> None:
    """Truth: with another extent of that input, or another number, the shape is another one."""
    path, inputs = sample("growing_tensor")
    model = stepper.read_model(path)
    run = Debugger(model, inputs)
    run.last()
    shape = run.why("shape of sequence")
    longer = {**inputs, "start": np.concatenate([inputs["start"], inputs["start"]])}
    assert stepper.run(model, longer)["sequence"].shape != shape.shape
    assert extents(shape) == {("start", 0)} and named(shape) == {("count", ())}
    assert shape.chain.links[-1].is_shape and shape.chain.links[-1].value == inputs["start"].shape[0]
    assert "sum of sequence.shape[0] = 13 (92.9 %), sum.shape[0] = 1 (7.14 %)" in "\n".join(why_lines(shape))
    assert run.story("shape of golden_ratio").end is not None  # as many pieces as iterations
    story = run.story("shape of sequence@5")
    assert {row.name for row in story.rows} >= {"sequence_next.shape"} and all(link.is_shape for link in story.links)
    assert next(row for row in story.rows if row.name == "sequence_next.shape").history[:4] == (3, 4, 5, 6)

    path, inputs = sample("rwkv_overflow")
    run = Debugger(stepper.read_model(path), inputs)
    run.last()
    ended = run.why("12 iterations")
    assert ended.chain.links[-1].location.operation is not None
    assert ended.chain.links[-1].location.operation.name == "embedded" and extents(ended) == {("embedded", 0)}
    assert "input embedded f32[12,8]: shape[0] = 12" in "\n".join(why_lines(ended))

    path, inputs = sample("reverse")
    run = Debugger(stepper.read_model(path), inputs)
    run.last()
    assert extents(run.why("end")) == {("rewards", 1)}
    of_pieces = run.why("shape of returns[1]")
    assert [link.decides is not None for link in of_pieces.chain.links] == [False, True]
    assert extents(of_pieces) == {("rewards", 1)}
    with pytest.raises(UsageError, match=r"'returns\[3\]': the shape \[1,8,1\] has the axes 0 to 2"):
        run.why("shape of returns[3]")
    with pytest.raises(UsageError, match="name the value"):
        run.why("why this shape")
    assert run.uses("where does rewards[0,7,0] go").outputs


def test_where_an_element_goes_is_told_of_the_whole_run_from_its_start() -> None:
    whole, fresh = Debugger(*sample("rwkv_overflow")), Debugger(*sample("rwkv_overflow"))
    whole.last()
    fresh.run_overview()
    for asked in ("key@3[0,3]", "embedded[7,6]"):
        known, found = whole.uses(asked), fresh.uses(asked)
        assert fresh.machine.tick == 0 and not known.stopped and known.uses and known.outputs
        assert (found.uses, found.outputs, found.decisions) == (known.uses, known.outputs, known.decisions)
        assert not found.stopped
    with pytest.raises(UsageError, match="has not run here"):
        Debugger(*sample("rwkv_overflow")).uses("key@3[0,3]")  # nothing is known of a run that was not made


def test_an_iteration_that_is_still_to_come_is_explained_in_every_way() -> None:
    asked = "key[0,3]@7"
    fresh, later = Debugger(*sample("rwkv_overflow")), Debugger(*sample("rwkv_overflow"))
    later.goto("key@7")
    assert fresh.chain_of(asked) == later.chain_of(asked)
    assert fresh.machine.tick == 0
    fresh = Debugger(*sample("rwkv_overflow"))
    found, known = fresh.story(asked), later.story(asked)
    assert fresh.machine.tick == 0 and found.links == known.links and found.address == known.address


def test_the_shape_of_joined_scalars_is_explained(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(2,)), net.body()
    p = body.parameter("p", dims=(2,))
    r, c = body.result(body.apply("Add", p, p, name="r"), "n"), body.result(body.constant(3.0), "c")
    out = net.loop("walk", body, 3, True, [carried(x, p, r)], [last(r), joined(c)])
    y = net.apply("Add", out[1], out[1], name="y", dims=(3,))
    net.result(out[0])
    net.result(y)
    run = debugger(net, tmp_path, np.ones(2, np.float32))
    run.goto("y")
    found = run.why("shape of y")
    numbers = {one.name: one.elements[0].value for one in found.sources}
    assert found.shape == (3,) and numbers == {"trip_count": 3, "condition": True, "true": True}
