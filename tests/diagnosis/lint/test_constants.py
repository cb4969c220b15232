"""Rules of Constants, cells and attributes: what breaks one is named, what looks like it and is meant is not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.rule import Severity
from stepper.diagnosis.texts import sentence
from tests.diagnosis.lint.rule_examples import sound, weights
from tests.models import Graph, joined, sliced
from tests.tables import each_row

F = np.float32


def strong(path: Path) -> list[tuple[str, str]]:
    """Rules and sentences of all that is more than a note."""
    return [(one.rule, sentence(one)) for one in lint(path) if one.severity is not Severity.NOTE]


def product(weights: object, operation: str = "MatMul", bias: object = 0.0) -> Graph:
    """Rows [1,4] through an operation with weights and a sum with a bias."""
    net = Graph()
    rows, body = net.parameter("rows", dims=(5, 4)), net.body()
    row = body.parameter("row", dims=(1, 4))
    made = body.apply(operation, row, body.constant(weights, name="weights"), name="made", dims=(1, 4))
    biased = body.apply("Add", made, body.constant(bias, name="bias"), name="biased", dims=(1, 4))
    net.result(net.tensor_iterator("loop", body, [sliced(rows, row)], [joined(body.result(biased))])[0])
    return net


EYE = np.eye(4, dtype=F)
GARBAGE = np.array([[3e20, 1e-30, 7e25, 2.0]], F)


@each_row(
    ("matrix", "operation", "bias", "rule"),
    [
        (EYE, "MatMul", 0.0, ""),
        (EYE, "MatMul", [[0, 0, -np.inf, -np.inf]], ""),
        (EYE, "MatMul", [[0, 0, -3.4e38, -3.4e38]], ""),
        (np.where(EYE > 0, np.inf, 1).astype(F), "MatMul", 0.0, "weights-have-inf"),
        (EYE * F(1e30), "MatMul", 0.0, "weights-out-of-proportion"),
        (EYE, "MatMul", GARBAGE, "weights-out-of-proportion"),
        (EYE.view(np.int32).byteswap().view(F), "MatMul", 0.0, "weights-out-of-proportion"),
        ([[1.0, 2.0, 0.0, 4.0]], "Divide", 0.0, "divides-by-zero"),
        (EYE * 0, "MatMul", 0.0, "multiplied-by-zero"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_values_that_no_weight_has(matrix: object, operation: str, bias: object, rule: str, tmp_path: Path) -> None:
    """Infinities and the lowest f32 in a sum are masks."""
    found = strong(product(matrix, operation, bias).write(tmp_path))
    assert [one for one, _ in found] == [rule] * bool(rule), found
    assert all("'weights'" in said or "'bias'" in said for _, said in found)


@each_row(("offset", "is_told"), [(48, False), (0, False), (47, True), (49, True)])
def test_bytes_that_two_constants_share(offset: int, is_told: bool, tmp_path: Path) -> None:
    """W has the bytes 0 to 47, B those from 96 on. The whole of W may be shared, a part may not."""
    text = sound("remembering").replace('offset="48" size="48"', f'offset="{offset}" size="48"')
    (tmp_path / "model.xml").write_text(text)
    (tmp_path / "model.bin").write_bytes(weights("remembering"))
    said = [said for rule, said in strong(tmp_path / "model.xml") if rule == "constants-overlap"]
    assert len(said) == is_told and all("Constant 'R'" in one for one in said)


CELL = 'activations="sigmoid,tanh"'


@each_row(
    ("right", "wrong", "rule", "words"),
    [
        (CELL, 'activations="sigmoid, TANH"', "", ""),
        (CELL, 'activations=""', "", ""),
        (CELL, 'activations="relu,tanh"', "gates-not-bounded", "GRUCell 'cell' has relu for its gates"),
        (CELL, 'activations="sigmoid"', "cell-activations", "names 1 functions, the cell needs 2"),
        (CELL, 'activations="sigmoid,gelu"', "cell-activations", "'gelu' is not an activation function"),
        ('clip="0"', 'clip="5"', "", ""),
        ('clip="0"', 'clip="0.01"', "cell-clip-small", "from 0.498 to 0.502 alone"),
        ('shape="6,2" offset="48"', 'shape="6,2" offset="216"', "multiplied-by-zero", "by Constant 'R'"),
    ],
    ids=lambda one: one[:40],
)  # fmt: skip
def test_what_is_wrong_with_a_cell(right: str, wrong: str, rule: str, words: str, tmp_path: Path) -> None:
    assert right in sound("remembering")
    (tmp_path / "model.xml").write_text(sound("remembering").replace(right, wrong))
    (tmp_path / "model.bin").write_bytes(weights("remembering") + bytes(48))
    found = [one for one in strong(tmp_path / "model.xml") if one[0] != "operation-cannot-run"]
    assert [one for one, _ in found] == [rule] * bool(rule) and all(words in said for _, said in found), found


@each_row(
    ("change", "rule", "words"),
    [
        (('<edge from-layer="0" from-port="0" to-layer="6" to-port="0" />', ""), "input-without-edge",
         "GRUCell 'cell': no edge reaches its input port"),
        (('<edge from-layer="0" from-port="0" to-layer="5"', '<edge from-layer="99" from-port="0" to-layer="5"'),
         "malformed-edge", "this graph has no layer 99; the other end of the edge is layer 5 'cell' (GRUCell)"),
        (('<edge from-layer="0" from-port="0" to-layer="5"', '<edge from-layer="0" from-port="9" to-layer="5"'),
         "malformed-edge", "has no output port 9, only 0; the edge leads to layer 5 'cell' (GRUCell)"),
        (('type="GRUCell" version="opset3"', 'type="GRUCel" version="opset3"'), "unknown-operation", "'cell'"),
        (('type="GRUCell" version="opset3"', 'type="GRUCell"'), "malformed-element", "'cell'"),
        (('offset="48" size="48"', 'offset="4800" size="48"'), "weights-truncated", "Const 'R'"),
        (('offset="48" size="48"', 'offset="48" size="44"'), "malformed-constant", "Const 'R'"),
        (('type="GRUCell" version="opset3"', 'type="GRUCell" version="opset0"'), "unknown-opset", "is of opset0"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_the_first_finding_of_a_file_that_cannot_be_read_names_the_layer(
    change: tuple[str, str], rule: str, words: str, tmp_path: Path
) -> None:
    right, wrong = change
    text = sound("remembering")
    if rule == "input-without-edge":
        right = next(line.strip() for line in text.splitlines() if 'to-layer="5" to-port="1"' in line)
    assert right in text
    (tmp_path / "model.xml").write_text(text.replace(right, wrong))
    (tmp_path / "model.bin").write_bytes(weights("remembering"))
    first = lint(tmp_path / "model.xml")[0]
    assert first.rule == rule and words.replace("Const ", "Constant ") in sentence(first).replace(
        "Const ", "Constant "
    ), sentence(first)


@each_row(("dims", "is_told"), [((1, 4), False), ((1, 1), True)])
def test_operands_of_two_shapes_without_broadcasting(dims: tuple[int, int], is_told: bool, tmp_path: Path) -> None:
    path = product(EYE, bias=np.ones(dims, F)).write(tmp_path)
    text = re.sub(r'(name="biased"[^>]*>\s*)(<data[^>]*/>)?', r'\1<data auto_broadcast="none" />', path.read_text())
    path.write_text(text)
    found = strong(path)
    assert [one for one, _ in found] == ["operands-do-not-broadcast"] * is_told
    assert all(said.endswith("auto_broadcast is none") for _, said in found)


def test_operands_of_two_types_are_told_with_what_gives_them(tmp_path: Path) -> None:
    net = Graph()
    rows, body = net.parameter("rows", dims=(5, 4)), net.body()
    row = body.parameter("row", dims=(1, 4))
    half = body.apply("Add", row, body.constant(np.ones((1, 4), np.float16), name="half"), name="sum", dims=(1, 4))
    net.result(net.tensor_iterator("loop", body, [sliced(rows, row)], [joined(body.result(half))])[0])
    assert "Add 'sum' gets f32 from Parameter 'row' and f16 from Constant 'half'" in strong(net.write(tmp_path))[0][1]


def sequence(lengths: list[int], *, direction: str = "forward", hidden: int = 2, biases: int | None = None) -> Graph:
    """x [1,3,2] through a GRUSequence of 2 states in one direction."""
    net = Graph()
    x = net.parameter("x", dims=(1, 3, 2))
    biases = 6 if biases is None else biases
    made = net.apply(
        "GRUSequence", x, net.constant(np.zeros((1, 1, 2), F)), net.constant(lengths, np.int32),
        net.constant(np.full((1, 6, 2), 0.1, F)), net.constant(np.full((1, 6, 2), 0.1, F), name="R"),
        net.constant(np.full((1, biases), 0.1, F), name="B"), version="opset5", name="sequence", outputs=2,
        dims=(1, 1, 3, 2), direction=direction, hidden_size=hidden,
        linear_before_reset="true" if biases == 8 else "false",
    )  # fmt: skip
    net.result(made)
    return net


@each_row(
    ("net", "rule", "words"),
    [
        (sequence([3]), "", ""),
        (sequence([0]), "", ""),
        (sequence([3], biases=8), "", ""),
        (sequence([4]), "sequence-lengths", "is to go through 4 steps, and its input has 3"),
        (sequence([-1]), "sequence-lengths", "is to go through -1 steps"),
        (sequence([3], direction="bidirectional"), "cell-of-other-size", "[1,6,2], expected input weights of [2,6,2]"),
        (sequence([3], hidden=3), "cell-of-other-size", "[1,6,2], expected input weights of [1,9,2]"),
        (sequence([3], biases=5), "cell-of-other-size", "input 5 of GRUSequence 'sequence' is [1,5], expected biases"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_sizes_and_lengths_of_a_sequence(net: Graph, rule: str, words: str, tmp_path: Path) -> None:
    found = [one for one in strong(net.write(tmp_path)) if one[0] in ("sequence-lengths", "cell-of-other-size")]
    assert {one for one, _ in found} == ({rule} if rule else set())
    assert any(words in said for _, said in found) or not rule, found


@each_row("is_read", [True, False])
def test_an_output_that_is_the_same_in_every_run(is_read: bool, tmp_path: Path) -> None:
    net = Graph()
    given, kept = net.parameter("x", dims=(3,)), net.constant(np.zeros(3, F), name="kept")
    net.result(net.apply("Add", given if is_read else kept, kept, name="sum", dims=(3,)), name="y")
    said = "output 'y' is the same in every run, and nothing reads input 'x'"
    assert strong(net.write(tmp_path)) == ([] if is_read else [("output-is-constant", said)])
