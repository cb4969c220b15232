"""What several operations are together: cells, attention and normalisations, each right (silent) and with one fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.rule import Finding, Severity
from stepper.diagnosis.texts import sentence
from tests.models import Graph, Value, carried, joined, last, sliced
from tests.tables import each_row

PLAIN = {"transpose_a": "false", "transpose_b": "false"}


def looped(body_of: Callable[[Graph, Value, Value], Value], folder: Path) -> tuple[Finding, ...]:
    """What lint says of a loop over rows of 4 whose body makes the next state of a row and the state."""
    net = Graph()
    xs, first, body = net.parameter("xs", dims=(6, 4)), net.parameter("start", dims=(1, 4)), net.body()
    x, h = body.parameter("x", dims=(1, 4)), body.parameter("h", dims=(1, 4))
    after = body_of(body, x, h)
    (out,) = net.tensor_iterator(
        "loop", body, [sliced(xs, x), carried(first, h, body.result(after))], [joined(body.result(after))]
    )
    net.result(out, "out")
    notes = ("epsilon-not-small", "divided-by-variance")
    return tuple(one for one in lint(net.write(folder)) if one.severity is not Severity.NOTE or one.rule in notes)


def lstm(body: Graph, x: Value, h: Value, forget: str = "Sigmoid", let_in: str = "Sigmoid") -> Value:
    weights = body.constant(np.full((4, 4), 0.25))
    gates = [body.apply(kind, body.apply("MatMul", x, weights, **PLAIN)) for kind in (forget, let_in, "Tanh")]
    kept = body.apply("Multiply", gates[0], h)
    return body.apply("Add", kept, body.apply("Multiply", gates[1], gates[2]), name="c_next")


def gru(body: Graph, x: Value, h: Value, rest: str = "Subtract", *, is_turned: bool = False) -> Value:
    weights = body.constant(np.full((4, 4), 0.25))
    z = body.apply("Sigmoid", body.apply("MatMul", x, weights, **PLAIN), name="z")
    new = body.apply("Tanh", body.apply("MatMul", h, weights, **PLAIN))
    one = body.constant(1.0)
    other = body.apply(rest, *((z, one) if is_turned else (one, z)), dims=(1, 4), name="rest")
    return body.apply("Add", body.apply("Multiply", other, new), body.apply("Multiply", z, h))


def moved(body: Graph, x: Value, h: Value, gate: str = "Sigmoid", *, is_away: bool = False) -> Value:
    z = body.apply(gate, body.apply("MatMul", x, body.constant(np.full((4, 4), 0.25)), **PLAIN), name="z")
    way = body.apply("Subtract", *((h, x) if is_away else (x, h)), name="way")
    return body.apply("Add", h, body.apply("Multiply", z, way))


def summed(
    body: Graph, x: Value, h: Value, shift: str = "ReduceMax", back: str = "Log", total: str = "ReduceSum"
) -> Value:
    """The logarithm of a sum of exponentials, and the mean of what a mask lets through."""
    axes = body.constant([-1], np.int64)
    most = body.apply(shift, h, axes, dims=(1, 1), keep_dims="true", name="shift")
    parts = body.apply("Exp", body.apply("Subtract", h, most))
    made = body.apply(back, body.apply("ReduceSum", parts, axes, dims=(1, 1), keep_dims="true"), name="back")
    masked = body.apply(total, body.apply("Multiply", h, x), axes, dims=(1, 1), keep_dims="true", name="total")
    count = body.apply("ReduceSum", x, axes, dims=(1, 1), keep_dims="true")
    mean = body.apply("Divide", masked, body.apply("Maximum", count, body.constant([[1.0]])))
    return body.apply("Add", h, body.apply("Add", made, mean), dims=(1, 4))


def attention(
    body: Graph, x: Value, h: Value, axis: int = -1, mask: float = -1e9, *, is_one_less: bool = False
) -> Value:
    turned = body.apply("Transpose", x, body.constant([1, 0], np.int64), dims=(4, 1))
    scores = body.apply("MatMul", turned, h, dims=(4, 4), **PLAIN)
    hidden = body.constant(np.triu(np.ones((4, 4)), 1), name="mask")
    if is_one_less:
        hidden = body.apply("Subtract", body.apply("Abs", hidden), body.constant(1.0))
    masked = body.apply("Add", scores, body.apply("Multiply", hidden, body.constant(mask), dims=(4, 4)))
    weights = body.apply("Softmax", masked, version="opset8", axis=axis, name="weights")
    mixed = body.apply("MatMul", weights, turned, dims=(4, 1), **PLAIN)
    return body.apply("Transpose", mixed, body.constant([1, 0], np.int64), dims=(1, 4))


def normalised(
    body: Graph, x: Value, h: Value, epsilon: float = 1e-5, *, has_root: bool = True, type: str = "Multiply"
) -> Value:
    axes, total = body.constant([-1], np.int64), body.apply("Add", x, h)
    mean = body.apply("ReduceMean", total, axes, dims=(1, 1), keep_dims="true")
    centred = body.apply("Subtract", total, mean)
    squares = body.apply(type, *((centred, centred) if type == "Multiply" else (mean, total)))
    variance = body.apply("ReduceMean", squares, axes, dims=(1, 1), keep_dims="true")
    guarded = body.apply("Add", variance, body.constant(epsilon))
    return body.apply("Divide", centred, body.apply("Sqrt", guarded) if has_root else guarded, dims=(1, 4))


@each_row(
    "right",
    [
        lstm,
        gru,
        attention,
        lambda *one: attention(*one, mask=1e9, is_one_less=True),
        lambda *one: attention(*one, axis=1),
        normalised,
        moved,
        summed,
    ],
)
def test_of_what_is_right_nothing_is_said(right: Callable[[Graph, Value, Value], Value], tmp_path: Path) -> None:
    assert looped(right, tmp_path) == ()


@each_row(
    ("wrong", "rule", "said"),
    [
        (lambda *one: lstm(*one, forget="Tanh"), "gate-of-another-function", "multiplied by is a Tanh"),
        (lambda *one: lstm(*one, let_in="Tanh"), "gate-of-another-function", "both of the latter are a Tanh"),
        (lambda *one: gru(*one, rest="Add"), "shares-are-not-one", "Add 'rest' is 1 plus the same"),
        (lambda *one: gru(*one, is_turned=True), "shares-are-not-one", "Subtract 'rest' is 1 taken from the same"),
        (lambda *one: moved(*one, gate="Tanh"), "gate-of-another-function", "how far it goes to the other is a Tanh"),
        (lambda *one: moved(*one, is_away=True), "shares-are-not-one", "'h' is moved away from Parameter 'x'"),
        (
            lambda *one: summed(*one, shift="ReduceMin"),
            "shifted-by-the-least",
            "its smallest element, ReduceMin 'shift'",
        ),
        (lambda *one: summed(*one, back="Exp"), "exponential-of-exponentials", "Exp 'back' is taken of ReduceSum"),
        (lambda *one: summed(*one, total="ReduceMean"), "mean-divided-by-count", "divides ReduceMean 'total', a mean"),
        (lambda *one: attention(*one, axis=0), "softmax-along-another-axis", "along axis 0 of scores of rank 2"),
        (lambda *one: attention(*one, mask=1e9), "mask-of-the-wrong-sign", "adds +1e+09 to the scores"),
        (lambda *one: attention(*one, is_one_less=True), "mask-of-the-wrong-sign", "adds +1e+09 to the scores"),
        (lambda *one: normalised(*one, has_root=False), "divided-by-variance", "not by the square root"),
        (
            lambda *one: normalised(*one, has_root=False, type="SquaredDifference"),
            "divided-by-variance",
            "not by the square root",
        ),
        (lambda *one: normalised(*one, epsilon=1.0), "epsilon-not-small", "adds 1 to its divisor"),
    ],
)
def test_each_fault_is_named(
    wrong: Callable[[Graph, Value, Value], Value], rule: str, said: str, tmp_path: Path
) -> None:
    (found,) = looped(wrong, tmp_path)
    assert (found.rule, said in sentence(found)) == (rule, True), sentence(found)
    assert [one.name for one in found.spot.path] == ["loop"]


@each_row("exchanged", ["nothing", "back edges", "inputs", "outputs"])
def test_names_say_that_two_states_are_exchanged(exchanged: str, tmp_path: Path) -> None:
    net = Graph()
    xs, body = net.parameter("xs", dims=(6, 4)), net.body()
    first, memory = net.parameter("h0", dims=(1, 4)), net.parameter("c0", dims=(1, 4))
    x, h, c = (body.parameter(name, dims=(1, 4)) for name in ("x", "h_prev", "c_prev"))
    next_c = body.apply("Add", body.apply("Multiply", x, c), h)
    next_h = body.apply("Tanh", next_c)
    h_out, c_out = body.result(next_h, "h_next"), body.result(next_c, "c_next")
    starts = (memory, first) if exchanged == "inputs" else (first, memory)
    ends = (c_out, h_out) if exchanged == "back edges" else (h_out, c_out)
    entries = [sliced(xs, x), carried(starts[0], h, ends[0]), carried(starts[1], c, ends[1])]
    ends_of = net.tensor_iterator("loop", body, entries, [last(c_out), last(h_out)])
    results = ("h_end", "c_end") if exchanged == "outputs" else ("c_end", "h_end")
    for value, name in zip(ends_of, results, strict=True):
        net.result(value, name)
    found = [one for one in lint(net.write(tmp_path)) if one.rule == "names-crossed"]
    said = {
        "nothing": [],
        "back edges": ["Result 'c_next' goes to Parameter 'h_prev'"],
        "outputs": ["Result 'c_next' goes to Result 'h_end'"],
        "inputs": ["Parameter 'c0' goes to Parameter 'h_prev'"],
    }[exchanged]
    assert len(found) == len(said)
    assert all(start in sentence(one) for start, one in zip(said, found, strict=True))
