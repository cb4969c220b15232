"""Rules that the examples do not try in full, on small loops: what breaks one is named, its sound twin says nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from lxml import etree

from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.rule import Severity
from stepper.diagnosis.texts import sentence
from tests.diagnosis.lint.rule_examples import sound, weights
from tests.models import Graph, carried, invariant, joined, last, sliced
from tests.tables import each_row


def named(net: Graph, folder: Path, rule: str) -> list[str]:
    """The sentences of this rule; of others there is nothing but notes."""
    return [sentence(one) for one in lint(net.write(folder)) if one.rule == rule]


def summing(lost: bool, dims: Sequence[int], steps: int = 5) -> Graph:
    """total += row, of open or known shape; the back edge is there or was lost."""
    net = Graph()
    rows, start, body = net.parameter("rows", dims=(steps, *dims[1:])), net.parameter("start", dims=dims), net.body()
    row, total = body.parameter("row", dims=(1, *dims[1:])), body.parameter("total", dims=dims)
    summed = body.result(body.apply("Add", total, row, name="summed"), "summed_result")
    state = invariant(start, total) if lost else carried(start, total, summed)
    scan = body.result(body.apply("Tanh", total))
    outputs = [joined(scan)] if lost else [joined(scan), last(summed)]
    for out in net.tensor_iterator("loop", body, [sliced(rows, row), state], outputs):
        net.result(out)
    return net


@each_row("dims", [(1, 4), (1, -1), (-1, -1)], ids=str)
def test_a_back_edge_that_was_lost_is_named_whatever_of_the_shape_is_open(
    dims: tuple[int, ...], tmp_path: Path
) -> None:
    (said,) = named(summing(True, dims), tmp_path, "result-without-use")
    assert "'summed_result'" in said and "'total'" in said
    assert not named(summing(False, dims), tmp_path, "result-without-use")


def masked_cell(crossed: bool) -> Graph:
    """An LSTM cell that holds its states behind the length of the sequence; its two states may be crossed."""
    net, size = Graph(), 4
    xs, h0, c0 = net.parameter("xs", dims=(5, 1, size)), *(net.parameter(one, dims=(1, size)) for one in "hc")
    body = net.body()
    x, h, c = body.parameter("x", dims=(1, 1, size)), *(body.parameter(f"{one}_in", dims=(1, size)) for one in "hc")
    alive = body.parameter("alive", "boolean", (1, 1))
    weights = [body.constant(np.full((4 * size, size), 0.1, np.float32)) for _ in range(2)]
    squeezed = body.apply("Squeeze", x, body.constant([0], np.int64), dims=(1, size))
    bias = body.constant(np.zeros(4 * size, np.float32))
    hidden = body.apply(
        "LSTMCell", squeezed, h, c, *weights, bias, version="opset4", name="cell", outputs=2, hidden_size=size
    )
    cell = replace(hidden, port=hidden.port + 1)
    held_h = body.result(body.apply("Select", alive, hidden, h, dims=(1, size)), "new_h")
    held_c = body.result(body.apply("Select", alive, cell, c, dims=(1, size)), "new_c")
    to_h, to_c = (held_c, held_h) if crossed else (held_h, held_c)
    entries = [sliced(xs, x), carried(h0, h, to_h), carried(c0, c, to_c)]
    entries.append(invariant(net.parameter("mask", "boolean", (1, 1)), alive))
    for out in net.tensor_iterator("loop", body, entries, [last(held_h), last(held_c)]):
        net.result(out)
    return net


def test_states_of_a_cell_that_are_crossed_behind_a_mask_are_named(tmp_path: Path) -> None:
    said = named(masked_cell(True), tmp_path, "cell-states-crossed")
    assert len(said) == 2 and all("'cell'" in one for one in said)
    assert not named(masked_cell(False), tmp_path, "cell-states-crossed")


@each_row("zero", [True, False])
@each_row("behind", ["", "Reshape", "Transpose"])
def test_a_product_with_a_matrix_of_zeros_is_named(behind: str, zero: bool, tmp_path: Path) -> None:
    net = Graph()
    rows, body = net.parameter("rows", dims=(5, 4)), net.body()
    row = body.parameter("row", dims=(1, 4))
    matrix = body.constant(np.zeros((4, 4), np.float32) if zero else np.eye(4, dtype=np.float32), name="weights")
    if behind:
        order = body.constant([4, 4] if behind == "Reshape" else [1, 0], np.int64)
        matrix = body.apply(behind, matrix, order)
    scan = body.result(body.apply("MatMul", row, matrix, name="product", dims=(1, 4)))
    net.result(net.tensor_iterator("loop", body, [sliced(rows, row)], [joined(scan)])[0])
    said = named(net, tmp_path, "multiplied-by-zero")
    assert [("'product'" in one, "'weights'" in one) for one in said] == [(True, True)] * zero


X = np.zeros((2, 3, 4), np.float32)
SHAPES = [
    ("Transpose", "opset1", [[0, 2, 1]], [[0, 1, 2]], {}, np.transpose(X, (0, 2, 1)).shape),
    ("ReduceSum", "opset1", [[1]], [[2]], {"keep_dims": "true"}, X.sum(1, keepdims=True).shape),
    ("Unsqueeze", "opset1", [[0]], [[1]], {}, np.expand_dims(X, 0).shape),
    ("Reshape", "opset1", [[2, 12]], [[6, -1]], {"special_zero": "false"}, X.reshape(2, 12).shape),
    ("Gather", "opset8", [[0, 1], [1]], [[0, 1], [2]], {"batch_dims": 0}, X.take([0, 1], 1).shape),
    ("Slice", "opset8", [[1], [3], [1], [2]], [[0], [3], [1], [2]], {}, X[:, :, 1:3].shape),
]


def shaped(
    type: str, version: str, constants: list[list[int]], attributes: dict[str, object], dims: Sequence[int]
) -> Graph:
    """One operation in a body, with these Constants and declared dims."""
    net = Graph()
    xs, body = net.parameter("xs", dims=(5, *X.shape[1:])), net.body()
    x = body.parameter("x", dims=(1, *X.shape[1:]))
    pair = body.apply("Concat", x, x, dims=X.shape, axis=0)
    made = body.apply(
        type, pair, *(body.constant(one, np.int64) for one in constants),
        version=version, name="shaping", dims=dims, **attributes,
    )  # fmt: skip
    flat = body.apply("Reshape", made, body.constant([1, -1], np.int64), dims=(1, -1), special_zero="false")
    net.result(net.tensor_iterator("loop", body, [sliced(xs, x)], [joined(body.result(flat))])[0])
    return net


@each_row(("type", "version", "right", "wrong", "attributes", "dims"), SHAPES, ids=[one[0] for one in SHAPES])
def test_an_operation_of_another_shape_than_declared_is_named(
    type: str, version: str, right: list[list[int]], wrong: list[list[int]], attributes: dict[str, object],
    dims: tuple[int, ...], tmp_path: Path,
) -> None:  # fmt: skip
    """What comes out is numpy's shape."""
    assert lint(shaped(type, version, right, attributes, dims).write(tmp_path)) == ()
    (said,) = named(shaped(type, version, wrong, attributes, dims), tmp_path, "operation-shape")
    assert "'shaping'" in said and str(list(dims)).replace(" ", "") in said
    beyond = [[9 for _ in one] for one in right]
    (said,) = named(shaped(type, version, beyond, attributes, dims), tmp_path, "operation-cannot-run")
    assert "'shaping'" in said
    open_dims = shaped(type, version, right, attributes, [-1] * len(dims))
    assert not [one for one in lint(open_dims.write(tmp_path)) if one.rule.startswith("operation-")]


def halving(trips: int, condition: bool | None) -> Graph:
    """x /= 2 until it is small, at most so often; or a condition that is a constant."""
    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(1,))
    half = body.apply("Multiply", x, body.constant([0.5]), name="half")
    if condition is None:
        going = body.apply("Greater", half, body.constant([0.01]), type="boolean", name="large")
    else:
        going = body.constant([condition], np.bool_, name="always")
    out = body.result(half)
    entries = [carried(net.constant([1.0]), x, out)]
    net.result(net.loop("halving", body, trips, True, entries, [last(out)], body.result(going, "going"))[0])
    return net


@each_row("trips", [-1, 2**63 - 1])
def test_a_trip_count_that_stands_for_no_limit(trips: int, tmp_path: Path) -> None:
    """ONNX writes the largest number; with a condition that is always true nothing ends the loop."""
    (said,) = named(halving(trips, True), tmp_path, "loop-never-ends")
    assert "Result 'going'" in said
    assert [
        len(named(halving(trips, None), tmp_path, rule)) for rule in ("loop-never-ends", "trip-count-without-limit")
    ] == [0, trips > 0]


@each_row(("first", "severity"), [(0.0, Severity.NOTE), ([1.0, 2.0], Severity.ERROR), ([0.0], None)])
def test_a_state_whose_rank_changes_is_a_note_where_it_is_one_element(
    first: object, severity: Severity | None, tmp_path: Path
) -> None:
    """The state becomes [1], or [1,2]."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=np.shape(first))
    one = np.ones((1, 2) if np.size(first) == 2 else (1,), np.float32)
    out = body.result(body.apply("Add", state, body.constant(one), dims=one.shape))
    entries = [carried(net.constant(first), state, out)]
    net.result(net.loop("loop", body, 4, True, entries, [last(out)])[0])
    found = [one.severity for one in lint(net.write(tmp_path)) if one.rule == "carried-rank"]
    assert found == ([] if severity is None else [severity])


def two_sums(carrying: dict[str, str], step: float = 1.0, *, is_lost: bool = False) -> Graph:
    """count += step and total += x beside an invariant `scale`; which Result each Parameter gets is told.

    `is_lost`: nothing reads the new count.
    """
    net = Graph()
    xs, body = net.parameter("xs", dims=(5, 1)), net.body()
    x, start, by_name = body.parameter("x", dims=(1, 1)), net.constant([[0.0]]), {}
    for name in ("count", "total", "scale"):
        by_name[name] = body.parameter(name, dims=(1, 1))
    more = body.apply("Add", by_name["count"], body.constant([[step]], name="step"), name="more")
    scaled = body.apply("Multiply", x, by_name["scale"])
    summed = body.apply("Add", by_name["total"], scaled if "scale" not in carrying else x, name="summed")
    results = {
        "count_next": body.result(by_name["count"] if is_lost else more, "count_next"),
        "total_next": body.result(summed, "total_next"),
    }
    results |= {"old_count": body.result(by_name["count"], "old_count")}
    entries = [sliced(xs, x)]
    for name, parameter in by_name.items():
        result = carrying.get(name)
        entries.append(carried(start, parameter, results[result]) if result else invariant(start, parameter))
    outputs = [last(results["total_next"]), joined(results["count_next"])]
    for out in net.tensor_iterator("loop", body, entries, outputs):
        net.result(out)
    return net


RIGHT = {"count": "count_next", "total": "total_next"}


@each_row(
    ("carrying", "rule", "names"),
    [
        (RIGHT, "", ()),
        ({"count": "total_next", "total": "count_next"}, "another-state-carried", ("count", "total_next")),
        ({"count": "total_next", "total": "total_next"}, "another-state-carried", ("count", "count_next")),
        ({"count": "count_next", "scale": "total_next"}, "state-carried-elsewhere", ("total", "total_next", "scale")),
    ],
    ids=str,
)
def test_states_that_change_places(carrying: dict[str, str], rule: str, names: tuple[str, ...], tmp_path: Path) -> None:
    """Of a pair that is crossed both edges are named; of a Result that goes to two Parameters the wrong one."""
    found = [one for one in lint(two_sums(carrying).write(tmp_path)) if "state" in one.rule and "never" not in one.rule]
    assert {one.rule for one in found} == ({rule} if rule else set()), [sentence(one) for one in found]
    assert not names or all(f"'{name}'" in sentence(found[0]) for name in names)
    crossed = {"count": "total_next", "total": "count_next"}
    assert {one.severity for one in found} <= {Severity.NOTE if carrying == crossed else Severity.WARNING}


@each_row(("step", "is_told"), [(1.0, False), (0.0, True)])
def test_a_state_to_which_nothing_is_added(step: float, is_told: bool, tmp_path: Path) -> None:
    said = named(two_sums(RIGHT, step), tmp_path, "state-computed-to-itself")
    assert said == ["Parameter 'count' never changes: Add 'more' adds Constant 'step', which is 0"] * is_told


@each_row(("is_read", "severity"), [(True, Severity.NOTE), (False, Severity.WARNING)])
def test_a_state_that_is_carried_as_it_was(is_read: bool, severity: Severity, tmp_path: Path) -> None:
    """The new value is read by another Result, or by nothing."""
    path = two_sums({"count": "old_count", "total": "total_next"}, is_lost=not is_read).write(tmp_path)
    (found,) = [one for one in lint(path) if one.rule == "state-never-changes"]
    assert found.severity is severity and "Add 'more', which is computed of it, is not carried" in sentence(found)


SCAN = '<output axis="0" external_port_id="5" internal_layer_id="12" start="0" end="-1" stride="1" part_size="1" />'
SLICE = '<input axis="0" external_port_id="2" internal_layer_id="1" start="0" end="-1" stride="1" part_size="1" />'
H = '<input external_port_id="3" internal_layer_id="2" />'
ITERATION = '<input external_port_id="-1" internal_layer_id="0" purpose="current_iteration" />'


@each_row(
    ("right", "wrong", "rule", "words"),
    [
        (SLICE, SLICE.replace('id="2"', 'id="7"', 1), "unknown-outer-port", "7, from which 'x' is fed"),
        (SLICE, SLICE.replace('axis="0"', 'axis="0.0"'), "malformed-element", "'axis' of <input> is '0.0'"),
        (SCAN, SCAN.replace('axis="0"', 'axis="0.0"'), "malformed-element", "'axis' of <output> is '0.0'"),
        (SCAN, SCAN.replace('id="12"', 'id="1"'), "unknown-body-layer", "leads to layer 1 'x' (Parameter)"),
        (SLICE, "", "input-without-entry", "('xs') goes nowhere, and Parameter 'x' gets nothing"),
        (H, H * 2, "parameter-mapped-twice", "Parameter 'h' has two entries"),
        (ITERATION, ITERATION.replace("current_iteration", "execution_condition"), "unknown-purpose",
         "the purpose 'execution_condition', which an output has (here it is 'current_iteration')"),
        (H, H.replace('id="3"', 'id="2"', 1), "input-without-entry",
         "('h0') goes nowhere, while input 2 feeds Parameter 'x' and Parameter 'h'"),
        (H, H.replace('id="3"', 'id="0"', 1), "input-without-entry", "while input 0 feeds Parameter 'h'"),
        (SCAN, SCAN.replace('id="5"', 'id="4"', 1), "duplicate-outer-output", "Result 'h_out' counts, Result 'y' is"),
        ('purpose="execution_condition"', 'purpose="exit_condition"', "unknown-purpose", "'exit_condition', which"),
        (SCAN, SCAN.replace('start="0"', 'start="1"'), "scan-range-of-loop", "Result 'y' of a Loop has start 1"),
    ],
    ids=lambda one: one[:60],
)  # fmt: skip
def test_an_entry_is_told_first_and_what_follows_of_it_is_not(
    right: str, wrong: str, rule: str, words: str, tmp_path: Path
) -> None:
    text = sound("counting")
    assert right in text
    (tmp_path / "model.xml").write_text(text.replace(right, wrong))
    (tmp_path / "model.bin").write_bytes(weights("counting"))
    first, *others = lint(tmp_path / "model.xml")
    assert first.rule == rule and words in sentence(first), sentence(first)
    follow = {"input-without-entry", "output-without-entry", "loop-output-shape", "condition-missing"}
    assert not follow & {one.rule for one in others}


@each_row(("declared", "severity"), [(4, None), (7, Severity.NOTE), (1, Severity.WARNING)])
def test_an_output_that_is_declared_as_a_single_piece(declared: int, severity: Severity | None, tmp_path: Path) -> None:
    """Four pieces are joined. Another number is that of another run, but a last value was meant to be one piece."""
    net = Graph()
    rows, body = net.parameter("rows", dims=(4, 2)), net.body()
    row = body.parameter("row", dims=(1, 2))
    scan = body.result(body.apply("Tanh", row), "scan")
    net.result(net.tensor_iterator("loop", body, [sliced(rows, row)], [joined(scan)])[0])
    path = net.write(tmp_path)
    path.write_text(re.sub(r"<dim>-1</dim>", f"<dim>{declared}</dim>", path.read_text(), count=1))
    assert [one.severity for one in lint(path) if one.rule == "loop-output-shape"] == [severity] * (
        severity is not None
    )


SIDE = '<input external_port_id="1" internal_layer_id="0" />'


@each_row(
    ("right", "wrong", "rule", "words"),
    [
        (SIDE, "", "if-parameter-without-entry", "Parameter 'a' of the then body is not connected"),
        (SIDE, SIDE.replace('"1"', '"0"'), "if-condition-as-value", "Parameter 'a' of the then body takes input 0"),
        (
            SIDE,
            SIDE.replace('"1"', '"0"'),
            "side-parameter-differs",
            "is declared as f32[2], and what comes in by input 0",
        ),
        ('name="b" type="Parameter" version="opset1">', 'name="b" type="Parameter" version="opset1"><!-- -->', "", ""),
    ],
    ids=lambda one: one[:40],
)
def test_what_comes_into_a_side(right: str, wrong: str, rule: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(sound("choosing").replace(right, wrong, 1))
    (tmp_path / "model.bin").write_bytes(weights("choosing"))
    found = [one for one in lint(tmp_path / "model.xml") if one.severity is not Severity.NOTE]
    assert any(one.rule == rule and words in sentence(one) for one in found) if rule else not found


def test_a_result_that_reads_another_output_of_the_loop_is_named(tmp_path: Path) -> None:
    """The last value [1,2] and all pieces [?,2]: declared are both, so that the dims of the port tell."""
    text = sound("counting").replace("<dim>-1</dim>", "<dim>4</dim>")
    right = '<edge from-layer="4" from-port="4" to-layer="5" to-port="0" />'
    assert right in text
    (tmp_path / "model.xml").write_text(text.replace(right, right.replace('from-port="4"', 'from-port="5"')))
    (tmp_path / "model.bin").write_bytes(weights("counting"))
    said = [sentence(one) for one in lint(tmp_path / "model.xml") if one.rule == "edge-between-shapes"]
    assert said == [
        "input 0 of Result 'last' is declared as [1,2], and Loop 'counting', from which its edge comes, as [4,2]"
    ]


@each_row(("declared", "is_told"), [((-1, 2), True), ((1, 2), False), ((1, -1), False)])
def test_a_last_value_that_is_declared_as_joined_pieces(
    declared: tuple[int, int], is_told: bool, tmp_path: Path
) -> None:
    """The dimension along which the pieces would lie is open, where the value has 1."""
    net = Graph()
    rows, body = net.parameter("rows", dims=(4, 2)), net.body()
    row = body.parameter("row", dims=(1, 2))
    net.result(net.tensor_iterator("loop", body, [sliced(rows, row)], [last(body.result(body.apply("Tanh", row)))])[0])
    path = net.write(tmp_path)
    tree = etree.parse(str(path))
    (port,) = tree.findall("layers/layer[@type='TensorIterator']/output/port")
    for dim in list(port):
        port.remove(dim)
    for size in declared:
        etree.SubElement(port, "dim").text = str(size)
    tree.write(str(path))
    said = named_in(path, "loop-output-shape")
    assert len(said) == is_told and all("gives [1,2], the last value alone" in one for one in said)


def named_in(path: Path, rule: str) -> list[str]:
    return [sentence(one) for one in lint(path) if one.rule == rule]


@each_row(("seeds", "is_told"), [((0, 0), True), ((7, 0), False), ((0, 3), False)])
def test_random_numbers_without_a_seed(seeds: tuple[int, int], is_told: bool, tmp_path: Path) -> None:
    net = Graph()
    rows, body = net.parameter("rows", dims=(4, 2)), net.body()
    row = body.parameter("row", dims=(1, 2))
    noise = body.apply(
        "RandomUniform", body.constant([1, 2], np.int64), body.constant(0.0), body.constant(1.0), type="f32",
        dims=(1, 2), version="opset8", name="noise", output_type="f32", global_seed=seeds[0], op_seed=seeds[1],
    )  # fmt: skip
    noisy = body.result(body.apply("Add", row, noise))
    net.result(net.tensor_iterator("loop", body, [sliced(rows, row)], [joined(noisy)])[0])
    assert len(named(net, tmp_path, "random-without-seed")) == is_told


@each_row("exposed", [True, False])
def test_a_state_that_grows_is_a_note_where_it_is_an_output(exposed: bool, tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("cache", dims=(-1, 2))
    longer = body.apply("Concat", state, body.constant([[1.0, 2.0]]), dims=(-1, 2), name="longer", axis=0)
    out = body.result(longer, "cache_next")
    total = body.result(body.apply("ReduceSum", longer, body.constant([0, 1], np.int64), dims=()))
    entries, outputs = [carried(net.constant([[0.0, 0.0]]), state, out)], [last(total), *[last(out)] * exposed]
    for value in net.loop("decode", body, 5, True, entries, outputs):
        net.result(value)
    found = [(one.rule, one.severity) for one in lint(net.write(tmp_path))]
    growing = ("growing-state", Severity.NOTE) if exposed else ("growing-state-not-exposed", Severity.ERROR)
    assert found == [growing]
