"""What a run shows, on small models of which the fault, its iteration and its layer are known, and on healthy ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.diagnosis.check.checking import check_overview, check_run, unchanged_findings
from stepper.diagnosis.rule import Finding, Severity, SubjectKind, rules
from stepper.diagnosis.texts import consequence, remedy, sentence
from stepper.element_types import of_dtype
from tests.debug.debugged import SAMPLES, sample
from tests.debug.loops_to_break import countdown, division, modular, recurrence
from tests.models import Graph, carried, invariant, joined, last, sliced
from tests.tables import each_row


def findings(net: Graph, folder: Path, inputs: dict[str, object] | None = None, seconds: float = 1.0) -> list[Finding]:
    debugger = stepper.Debugger(net.read(folder), inputs or {})
    found = check_run(debugger, seconds=seconds).findings
    for one in found:
        assert "{" not in sentence(one) + remedy(one) + consequence(one)
    return list(found)


def the_one(found: list[Finding], rule: str) -> Finding:
    (one,) = [one for one in found if one.rule == rule]
    assert one.spot.loop is not None
    return one


def test_where_a_nan_is_born_and_of_what(tmp_path: Path) -> None:
    x, y = np.ones((6, 2), np.float32), np.ones((6, 2), np.float32)
    x[3, 1] = y[3, 1] = 0
    found = the_one(findings(division(), tmp_path, {"x": x, "y": y}), "nan-born")
    assert found.spot.layer is not None and found.spot.layer.name == "ratio" and found.iterations == (3,)
    assert "0 / 0 gives NaN" in sentence(found) and found.address == "ratio@3"


def test_where_a_nan_comes_in_and_that_no_operation_is_at_fault(tmp_path: Path) -> None:
    x, y = np.ones((6, 2), np.float32), np.ones((6, 2), np.float32)
    x[4, 0] = np.nan
    found = findings(division(), tmp_path, {"x": x, "y": y})
    one = the_one(found, "nan-came-in")
    assert "'x'" in sentence(one) and one.iterations == (4,) and [other.rule for other in found] == ["nan-came-in"]


def test_an_inf_is_told_with_the_nan_that_comes_of_it() -> None:
    (found,) = check_run(sample("rwkv_overflow")).findings
    assert (found.rule, found.iterations, found.address) == ("inf-born", (7,), "exp_key@7")
    assert "exp(89.2)" in sentence(found) and "It makes NaN in Divide 'wkv' in iteration 8" in sentence(found)


def test_a_nan_among_the_weights_is_found_where_it_is_read(tmp_path: Path) -> None:
    net = Graph()
    rows, body = net.parameter("rows", "i64", (5, 1)), net.body()
    row = body.parameter("row", "i64", (1,))
    table = np.ones((3, 2), np.float32)
    table[2] = np.nan
    picked = body.apply(
        "Gather",
        body.constant(table, name="table"),
        row,
        body.constant(0, np.int64),
        type="f32",
        dims=(1, 2),
        version="opset8",
        name="pick",
    )
    (scan,) = net.tensor_iterator("look_up", body, [sliced(rows, row)], [joined(body.result(picked))])
    net.result(scan, "picked")
    found = the_one(findings(net, tmp_path, {"rows": np.array([[0], [1], [0], [2], [1]])}), "nan-came-in")
    assert "'table'" in sentence(found) and found.iterations == (3,)


def test_a_loop_that_can_never_end_is_told_with_what_stays(tmp_path: Path) -> None:
    """16777216 + 1 is 16777216 in f32, so `t < 16777220` stays true."""
    net, body = Graph(), None
    body = net.body()
    t = body.parameter("t", dims=(1,))
    following = body.apply("Add", t, body.constant([1.0]), name="t_next")
    going = body.result(
        body.apply("Less", following, body.constant([16777220.0]), type="boolean", name="not_done"), "going"
    )
    out = body.result(following, "t_out")
    start = net.constant([16777210.0])
    net.result(net.loop("clock", body, -1, True, [carried(start, t, out)], [last(out)], going)[0], "end")
    found = the_one(findings(net, tmp_path), "loop-does-not-end")
    assert "'t' has been unchanged since iteration 5" in sentence(found) and "Less 'not_done'" in sentence(found)


def test_a_condition_that_is_false_at_once_is_a_note(tmp_path: Path) -> None:
    found = findings(countdown(), tmp_path, {"number": np.array([1])})
    assert the_one(found, "ends-at-once").severity is Severity.NOTE and "Greater 'going'" in sentence(found[0])
    assert not findings(countdown(), tmp_path, {"number": np.array([9])})


def test_a_state_that_repeats_until_the_limit(tmp_path: Path) -> None:
    net = modular(2, 7, 3)  # 3, 6, 5, 3, ...
    found = findings(net, tmp_path)
    assert the_one(found, "loop-does-not-end")
    net, body = Graph(), None
    body = net.body()
    state, count = body.parameter("state", dims=(1,)), body.parameter("count", "i64", (1,))
    turned = body.apply("Multiply", state, body.constant([-1.0]), name="turned")
    more = body.apply("Add", count, body.constant([1], np.int64), name="more")
    differs = body.apply("NotEqual", turned, state, type="boolean", name="differs")
    below = body.apply("Less", more, body.constant([30], np.int64), type="boolean", name="below")
    going = body.result(body.apply("LogicalAnd", differs, below, type="boolean", name="both"), "going")
    outs = body.result(turned, "state_out"), body.result(more, "count_out")
    inputs = [carried(net.constant([1.0]), state, outs[0]), carried(net.constant([0], np.int64), count, outs[1])]
    net.result(net.loop("flip", body, -1, True, inputs, [last(outs[0])], going)[0], "end")
    found = findings(net, tmp_path)
    repeats = the_one(found, "state-repeats")
    assert repeats.details["period"] == 2 and repeats.details["limit"] == 30
    assert "with all that is carried but counters: only" in sentence(repeats), "the count does not repeat"
    limit = the_one(found, "runs-to-its-limit")
    assert limit.severity is Severity.NOTE and "NotEqual 'differs'" in sentence(limit)


def test_of_a_loop_that_goes_on_for_ever_only_what_decides_that_is_blamed(tmp_path: Path) -> None:
    """A sign decides, and turns for ever; what shrinks to 0 beside it is read by nobody, and there is no limit."""
    net = Graph()
    body = net.body()
    sign, rest = body.parameter("sign", dims=(1,)), body.parameter("rest", dims=(1,))
    turned = body.apply("Multiply", sign, body.constant([-1.0]), name="turned")
    half = body.apply("Multiply", rest, body.constant([0.5]), name="half")
    below = body.apply("Less", turned, body.constant([3.0]), type="boolean", name="below")
    outs = body.result(turned, "sign_out"), body.result(half, "rest_out")
    inputs = [carried(net.constant([1.0]), sign, outs[0]), carried(net.constant([1.0]), rest, outs[1])]
    net.result(net.loop("flip", body, -1, True, inputs, [last(outs[0])], body.result(below, "going"))[0], "end")
    found = findings(net, tmp_path, seconds=0.5)
    said = sentence(the_one(found, "loop-does-not-end"))
    assert "Less 'below' is always true" in said and "repeats with period 2" in said
    assert "'rest'" not in said and "never become false" not in said
    assert not [one for one in found if one.rule == "state-repeats"], "no limit ends it"


def test_a_state_to_which_nothing_is_added(tmp_path: Path) -> None:
    net, body = Graph(), None
    xs, body = net.parameter("xs", dims=(5, 1)), net.body()
    x, h = body.parameter("x", dims=(1, 1)), body.parameter("h", dims=(1, 1))
    step = body.apply("Multiply", x, body.constant([[0.0]], name="rate"), name="step")
    out = body.result(body.apply("Add", h, step, name="h_next"), "h_out")
    (end,) = net.tensor_iterator("learn", body, [sliced(xs, x), carried(net.constant([[2.0]]), h, out)], [last(out)])
    net.result(end, "end")
    found = the_one(findings(net, tmp_path, {"xs": np.ones((5, 1), np.float32)}), "state-is-stuck")
    assert "adding Multiply 'step', which is 0" in sentence(found) and "'h'" in sentence(found)


def test_a_state_that_grows_like_a_power(tmp_path: Path) -> None:
    """2**k is above 1000 after iteration 9."""
    found = the_one(findings(recurrence("Multiply", 2.0, 30), tmp_path), "state-grows")
    assert found.details["passes"] == 9 and found.details["factor"] == pytest.approx(2)
    assert not [one for one in findings(recurrence("Add", 1e6, 30), tmp_path) if one.rule == "state-grows"]


def test_a_state_that_grows_to_exactly_1000(tmp_path: Path) -> None:
    """31.25 * 2**5 is 1000."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(1,))
    out = body.result(body.apply("Multiply", state, body.constant([2.0]), name="double"), "next")
    (final,) = net.loop("loop", body, 5, True, [carried(net.constant([31.25]), state, out)], [last(out)])
    net.result(final, "final")
    found = the_one(findings(net, tmp_path), "state-grows")
    assert found.details["passes"] == 4 and found.details["factor"] == pytest.approx(2)


def test_a_state_that_is_broadcast_in_iteration_0_and_grows_is_found(tmp_path: Path) -> None:
    """One number comes in, three go round: all iterations have one shape."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(-1,))
    out = body.result(body.apply("Multiply", state, body.constant([2.0, 2.0, 2.0]), name="double", dims=(3,)), "next")
    (final,) = net.loop("loop", body, 30, True, [carried(net.constant([1.0]), state, out)], [last(out)])
    net.result(final, "final")
    assert the_one(findings(net, tmp_path), "state-grows").details["passes"] == 9


def test_whole_numbers_that_wrap_are_a_note(tmp_path: Path) -> None:
    """3**40 is the first power of 3 above 2**63."""
    found = the_one(findings(modular(3, 2**62, 1, 41), tmp_path), "integer-overflow")
    assert found.severity is Severity.NOTE and f"{3 * (3**39 % 2**62):,}" in sentence(found)


def test_whole_numbers_that_the_plugin_cannot_hold(tmp_path: Path) -> None:
    """3**20 is the first power of 3 above 2**31; that of 2**62 wraps in i64, too, which says it better."""
    found = the_one(findings(modular(3, 2**62, 1, 21), tmp_path), "beyond-i32")
    assert found.severity is Severity.WARNING and found.iterations == (19,) and f"{3**20:,}" in sentence(found)
    assert "the outputs are others there" in sentence(found)
    for rounds in (19, 41):
        assert not [one for one in findings(modular(3, 2**62, 1, rounds), tmp_path) if one.rule == "beyond-i32"]


def test_products_of_which_the_low_bits_alone_are_read_are_a_note(tmp_path: Path) -> None:
    """A generator of random numbers: in i32 the product overflows, and its low bits are the same."""
    net = Graph()
    body = net.body()
    seed = body.parameter("seed", "i64", (1,))
    product = body.apply("Multiply", seed, body.constant([1103515245], np.int64), name="product")
    kept = body.apply("BitwiseAnd", product, body.constant([2**15 - 1], np.int64), name="kept", version="opset13")
    out = body.result(kept, "next_seed")
    (final,) = net.loop("draw", body, 10, True, [carried(net.constant([77], np.int64), seed, out)], [last(out)])
    net.result(final, "final")
    found = the_one(findings(net, tmp_path), "beyond-i32")
    assert found.severity is Severity.NOTE and "the outputs" not in sentence(found)


def test_an_addition_that_is_lost_beside_a_large_state(tmp_path: Path) -> None:
    """Above 2**24 the numbers of f32 are 2 apart."""
    found = the_one(findings(recurrence("Add", 1.0, 30, start=2.0**24 - 5), tmp_path), "addition-absorbed")
    assert found.iterations == (5,) and "'state'" in sentence(found) and "Add 'following'" in sentence(found)
    halved = recurrence("Multiply", 0.5, 30, start=1.0)
    assert not findings(halved, tmp_path), "a state that becomes small loses nothing"


def gate(scale: float) -> Graph:
    """Rows through a sigmoid of the row times a scale, then what is left of the sum with a large number."""
    net = Graph()
    xs, body = net.parameter("xs", dims=(8, 2)), net.body()
    x = body.parameter("x", dims=(1, 2))
    gate = body.apply("Sigmoid", body.apply("Multiply", x, body.constant([[scale]]), name="scaled"), name="gate")
    near = body.apply("Add", gate, body.constant([[16384.0]]), name="near")
    left = body.apply("Subtract", near, body.constant([[16383.998]]), name="left")
    (scan,) = net.tensor_iterator("gates", body, [sliced(xs, x)], [joined(body.result(left))])
    net.result(scan, "scan")
    return net


def test_a_gate_that_is_saturated_all_the_time_and_digits_that_cancel(tmp_path: Path) -> None:
    xs = {"xs": np.linspace(1, 3, 16, dtype=np.float32).reshape(8, 2)}
    found = findings(gate(-100.0), tmp_path, xs)
    one = the_one(found, "gate-saturated")
    assert one.spot.layer is not None and one.spot.layer.name == "gate" and one.details["looked"] == 8
    same = the_one(found, "output-ignores-inputs")
    assert same.spot.layer is not None and same.spot.layer.name == "gate", "it is 0 for these, and for others"
    lost = the_one(found, "cancellation")
    assert lost.severity is Severity.NOTE and "Subtract 'left'" in sentence(lost)
    assert not findings(gate(0.5), tmp_path, xs)


def test_the_one_input_that_does_not_reach_an_output_is_named(tmp_path: Path) -> None:
    """A sigmoid of -100 or less is 0 in f32 after the product: what the mask is does not matter."""
    net = Graph()
    xs, masks, body = net.parameter("xs", dims=(8, 2)), net.parameter("masks", dims=(8, 2)), net.body()
    x, mask = body.parameter("x", dims=(1, 2)), body.parameter("mask", dims=(1, 2))
    gate = body.apply("Sigmoid", body.apply("Multiply", mask, body.constant([[-1e4]])), name="gate")
    kept = body.apply("Add", x, gate, name="kept")
    ends = [sliced(xs, x), sliced(masks, mask)]
    (scan,) = net.tensor_iterator("gates", body, ends, [joined(body.result(kept))])
    net.result(scan, "scan")
    ones = np.linspace(1, 3, 16, dtype=np.float32).reshape(8, 2)
    found = the_one(findings(net, tmp_path, {"xs": ones, "masks": ones}), "output-ignores-inputs")
    assert found.severity is Severity.NOTE and found.spot.layer is not None and found.spot.layer.name == "gate"
    assert "output 'scan'" in sentence(found) and "Parameter 'masks'" in sentence(found)
    assert not findings(net, tmp_path, {"xs": ones, "masks": ones * np.float32(1e-4)})


def test_a_test_for_convergence_below_the_resolution(tmp_path: Path) -> None:
    """Near 1e6 the numbers of f32 are 1/16 apart."""
    for tolerance, count in ((1e-3, 1), (1.0, 0)):
        net, body = Graph(), None
        body = net.body()
        x = body.parameter("x", dims=(1,))
        half = body.apply("Multiply", x, body.constant([0.5]), name="half")
        near = body.apply("Add", half, body.constant([5e5]), name="near")
        apart = body.apply("Abs", body.apply("Subtract", near, x, name="apart"), name="size")
        far = body.apply("Greater", apart, body.constant([tolerance]), type="boolean", name="far")
        going, out = body.result(far, "going"), body.result(near, "x_out")
        (end,) = net.loop("mean", body, 100, True, [carried(net.constant([0.0]), x, out)], [last(out)], going)
        net.result(end, "end")
        found = [one for one in findings(net, tmp_path) if one.rule == "tolerance-below-resolution"]
        assert len(found) == count, tolerance


def test_a_state_that_vanishes(tmp_path: Path) -> None:
    found = the_one(findings(recurrence("Multiply", 0.125, 40), tmp_path), "state-vanishes")
    assert found.details["factor"] == pytest.approx(0.125) and found.details["first"] == 0.125
    assert not findings(recurrence("Multiply", 0.875, 40), tmp_path), "0.875**40 is 0.005"


def test_a_last_slice_that_is_never_read(tmp_path: Path) -> None:
    net = Graph()
    xs, count, body = net.parameter("xs", dims=(5, 1)), net.parameter("count", "i64", ()), net.body()
    x = body.parameter("x", dims=(1, 1))
    (scan,) = net.loop("rows", body, count, True, [sliced(xs, x)], [joined(body.result(body.apply("Exp", x)))])
    net.result(scan, "scan")
    for trips, left in ((4, 1), (5, 0), (2, 0)):  # that several are left is mostly meant
        found = findings(net, tmp_path, {"xs": np.ones((5, 1), np.float32), "count": np.int64(trips)})
        assert [one.details["left"] for one in found if one.rule == "slices-unread"] == [left] * (left > 0)


def test_pieces_that_grow(tmp_path: Path) -> None:
    net = Graph()
    start, body = net.constant([1.0]), net.body()
    held = body.parameter("held", dims=(-1,))
    longer = body.apply("Concat", held, body.constant([2.0]), dims=(-1,), axis=0, name="longer")
    out = body.result(longer, "longer_out")
    (scan,) = net.loop("grow", body, 4, True, [carried(start, held, out)], [joined(out)])
    net.result(scan, "scan")
    found = the_one(findings(net, tmp_path), "pieces-of-different-size")
    assert "'longer_out'" in sentence(found)


def test_an_error_of_the_run_is_a_finding(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(2,)), net.body()
    item = body.parameter("item", dims=(1,))
    (scan,) = net.loop("rows", body, 5, True, [sliced(x, item)], [joined(body.result(item))])
    net.result(scan, "scan")
    found = the_one(findings(net, tmp_path, {"x": np.ones(2, np.float32)}), "run-fails")
    assert "no slice" in sentence(found)


@each_row("name", sorted(path.parent.name for path in SAMPLES.glob("*/model.xml")))
def test_healthy_samples_give_nothing_but_notes(name: str) -> None:
    found = check_run(sample(name)).findings
    if name != "rwkv_overflow":
        assert {one.severity for one in found} <= {Severity.NOTE}, [sentence(one) for one in found]


def test_an_output_that_an_application_does_not_give_back_is_named_with_its_input() -> None:
    (found,) = unchanged_findings("model.xml", [("stateN", "state")])
    assert found.rule == "state-not-given-back" and found.spot.file == "model.xml"
    assert "'stateN'" in sentence(found) and "'state'" in sentence(found)


def test_every_rule_of_runs_is_tested_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    for beside in ("cli/test_check.py", "conformance/test_onnx_originals.py"):
        text += (Path(__file__).parents[2] / beside).read_text(encoding="utf-8")
    assert [name for name, rule in rules().items() if rule.scope is SubjectKind.RUN and name not in text] == []


def rows_through(
    operation: str, rows: object, *constants: object, type: str = "", dims: tuple[int, ...] = (), **more: object
) -> tuple[Graph, dict[str, object]]:
    """A loop that sends each row through one operation, `guilty`."""
    array = np.asarray(rows)
    kind, net = of_dtype(array.dtype).name, Graph()
    xs, body = net.parameter("xs", kind, array.shape), net.body()
    x = body.parameter("x", kind, (1, *array.shape[1:]))
    given = [body.constant(one) for one in constants]
    out = body.apply(operation, x, *given, type=type or kind, dims=dims or (1, *array.shape[1:]), name="guilty", **more)
    net.result(net.tensor_iterator("rows", body, [sliced(xs, x)], [joined(body.result(out))])[0])
    return net, {"xs": array}


AXIS = np.array([1])
I32 = np.iinfo(np.int32)


@each_row(
    ("operation", "bad", "constants", "more", "exact"),
    [
        ("ReduceProd", np.array([70_000, 70_000], np.int32), [AXIS], {"dims": (1, 1), "keep_dims": "true"}, 70_000**2),
        ("ReduceProd", np.array([2**40, 2**40]), [AXIS], {"dims": (1, 1), "keep_dims": "true"}, 2**80),
        ("ReduceSum", np.array([I32.max, 5], np.int32), [AXIS], {"dims": (1, 1), "keep_dims": "true"}, 2**31 + 4),
        ("CumSum", np.array([I32.max, 5], np.int32), [np.array(1)], {"version": "opset3"}, 2**31 + 4),
        ("MatMul", np.array([I32.max, 1], np.int32), [np.full((2, 1), 2, np.int32)], {"dims": (1, 1)}, 2**32),
        ("Power", np.array([70_000, 1], np.int32), [np.full((1, 1), 3, np.int32)], {}, 70_000**3),
        ("Negative", np.array([1, I32.min], np.int32), [], {}, 2**31),
        ("Subtract", np.array([200, 9], np.uint8), [np.full((1, 1), 10, np.uint8)], {}, -1),
        ("Convert", np.array([1, 3e9], np.float32), [], {"type": "i32", "destination_type": "i32"}, 3_000_000_000),
        ("Convert", np.array([1, 2**40]), [], {"type": "i32", "destination_type": "i32"}, 2**40),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_whole_numbers_beyond_their_type(
    operation: str, bad: np.ndarray, constants: list[object], more: dict[str, object], exact: int, tmp_path: Path
) -> None:
    """Row 1 of 3 leaves the type, and the number is Python's; of rows that stay nothing is said."""
    fine = np.array([12, 11], bad.dtype)
    net, inputs = rows_through(operation, np.array([fine, bad, fine]), *constants, **more)
    found = the_one(findings(net, tmp_path, inputs), "integer-overflow")
    assert (found.severity, found.iterations, found.details["exact"]) == (Severity.NOTE, (1,), exact)
    net, inputs = rows_through(operation, np.array([fine, fine, fine]), *constants, **more)
    assert not findings(net, tmp_path, inputs)


def test_the_product_of_a_row_that_leaves_f32(tmp_path: Path) -> None:
    rows = np.array([[2, 3], [1e30, 1e30], [1, 1]], np.float32)
    net, inputs = rows_through("ReduceProd", rows, AXIS, dims=(1, 1), keep_dims="true")
    found = the_one(findings(net, tmp_path, inputs), "inf-born")
    assert found.iterations == (1,) and "the product > f32 maximum" in sentence(found)


@each_row("operation", ["Divide", "Mod", "FloorMod"])
def test_whole_numbers_divided_by_0(operation: str, tmp_path: Path) -> None:
    for divisor, expected in (0, ["integer-division-by-zero"]), (2, []):
        net, inputs = rows_through(operation, np.array([[7], [8], [9]], np.int32), np.full((1, 1), divisor, np.int32))
        found = [one.rule for one in findings(net, tmp_path, inputs)]
        assert [one for one in found if one != "pieces-all-the-same"] == expected


@each_row(
    ("shift", "bound", "rule", "iteration"),
    [(-1, 9, "index-from-the-end", 0), (0, 3, "", 0), (1, 9, "index-outside", 3), (1, 3, "index-held-back", 3)],
)
def test_an_index_that_is_one_off(shift: int, bound: int, rule: str, iteration: int, tmp_path: Path) -> None:
    """Element t + shift of 4 in iteration t, at most the bound."""
    net, body = Graph(), None
    body = net.body()
    table, t = body.parameter("table", dims=(4,)), body.parameter("t", "i64", (1,))
    index = body.apply("Add", t, body.constant([shift], np.int64))
    index = body.apply("Minimum", index, body.constant([bound], np.int64), name="held")
    zero = body.constant(0, np.int64)
    taken = body.apply("Gather", table, index, zero, dims=(1,), version="opset8", name="taken")
    entries = [invariant(net.parameter("numbers", dims=(4,)), table)]
    net.result(net.loop("reader", body, 4, True, entries, [joined(body.result(taken))], iteration=t)[0])
    found = findings(net, tmp_path, {"numbers": np.arange(4, dtype=np.float32)})
    assert [one.rule for one in found] == [rule] * bool(rule)
    assert all(one.iterations == (iteration,) and "'taken'" in sentence(one) for one in found)


@each_row(("depth", "found"), [(3, ["index-outside"]), (4, [])])
def test_a_class_beyond_the_depth_of_a_one_hot(depth: int, found: list[str], tmp_path: Path) -> None:
    rows = np.array([[0], [-1], [3]], np.int64)
    constants = [np.asarray(one) for one in (np.int64(depth), np.float32(1), np.float32(0))]
    net, inputs = rows_through("OneHot", rows, *constants, type="f32", dims=(1, depth), axis=-1)
    findings_here = [one for one in findings(net, tmp_path, inputs) if one.rule == "index-outside"]
    assert [one.rule for one in findings_here] == found
    assert all(one.severity is Severity.NOTE and one.iterations == (2,) for one in findings_here)


@each_row(("scale", "masked", "is_hard"), [(50.0, 0, True), (0.1, 0, False), (50.0, 3, False)])
def test_a_softmax_that_leaves_nothing_to_the_others(scale: float, masked: int, is_hard: bool, tmp_path: Path) -> None:
    """Elements that a mask takes away are no others."""
    rows = np.array([np.roll([4.0, 3, 2, 1], k) for k in range(8)], np.float32) * np.float32(scale)
    for k in range(8):
        rows[k][np.argsort(rows[k])[:masked]] = -np.inf
    net, inputs = rows_through("Softmax", rows, version="opset8", axis=1)
    found = [one.rule for one in findings(net, tmp_path, inputs) if one.rule == "softmax-saturated"]
    assert len(found) == is_hard


@each_row(("axis", "is_alone"), [(1, False), (0, True)])
def test_a_normalisation_of_single_elements(axis: int, is_alone: bool, tmp_path: Path) -> None:
    """Of rows [1,3] the axis 0 is 1 long; the mean of one element is that element, and nothing is left."""
    rows = np.random.default_rng(3).standard_normal((8, 3), np.float32)
    mvn = {"version": "opset6", "eps": 1e-5, "normalize_variance": "true", "eps_mode": "inside_sqrt"}
    net, inputs = rows_through("MVN", rows, np.array([axis]), **mvn)
    found = [one for one in findings(net, tmp_path, inputs) if one.rule == "normalises-one-element"]
    assert [one.details["constant"] for one in found] == [0] * is_alone


def test_a_loop_that_is_not_entered(tmp_path: Path) -> None:
    net, body = Graph(), None
    body = net.body()
    s = body.parameter("s", dims=(1,))
    out = body.result(body.apply("Multiply", s, body.constant([2.0])))
    trips = net.parameter("trips", "i64")
    net.result(net.loop("doubling", body, trips, True, [carried(net.constant([1.0]), s, out)], [last(out)])[0])
    found = the_one(findings(net, tmp_path, {"trips": np.array(0)}), "loop-not-entered")
    assert found.severity is Severity.NOTE and "trip count is 0" in sentence(found)
    assert not findings(net, tmp_path, {"trips": np.array(3)})


@each_row(("least", "is_same"), [(3, True), (2, False)])
def test_pieces_that_are_all_the_same(least: int, is_same: bool, tmp_path: Path) -> None:
    """max(i, least) over i = 0 .. 3."""
    net = Graph()
    body = net.body()
    number = body.parameter("i", "i64", (1,))
    piece = body.apply("Maximum", number, body.constant([least], np.int64), name="at_least")
    net.result(net.loop("count", body, 4, True, [], [joined(body.result(piece))], iteration=number)[0])
    found = findings(net, tmp_path)
    assert [one.rule for one in found] == ["pieces-all-the-same"] * is_same
    assert all("Maximum 'at_least'" in sentence(one) and "Parameter 'i' changes" in sentence(one) for one in found)


def test_of_a_state_without_elements_nothing_is_told(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(0, 2))
    out = body.result(body.apply("Multiply", state, body.constant([[2.0, 2.0]]), dims=(0, 2)))
    start = net.constant(np.zeros((0, 2), np.float32))
    net.result(net.loop("empty", body, 20, True, [carried(start, state, out)], [last(out)])[0])
    assert findings(net, tmp_path) == []


@each_row(("step", "limit", "compare"), [(2, 7, "NotEqual"), (-1, 7, "Less")])
def test_a_counter_that_goes_past_or_away(step: int, limit: int, compare: str, tmp_path: Path) -> None:
    """2, 4, 6, 8 is never 7, and -1, -2, ... is always below it."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", "i64", (1,))
    more = body.apply("Add", state, body.constant([step], np.int64), name="more")
    going = body.apply(compare, more, body.constant([limit], np.int64), type="boolean", name="going_on")
    out = body.result(more)
    start = carried(net.constant([0], np.int64), state, out)
    net.result(net.loop("loop", body, -1, True, [start], [last(out)], body.result(going))[0])
    said = sentence(the_one(findings(net, tmp_path, seconds=0.5), "loop-does-not-end"))
    assert f"its condition {compare} 'going_on' is always true; 'state' goes by {step:+} in each" in said


def test_of_an_endless_loop_what_its_condition_reads_is_told_alone(tmp_path: Path) -> None:
    """The condition looks at a time that no back edge renews; a counter beside it is not to blame."""
    net = Graph()
    body = net.body()
    time, count = body.parameter("time", dims=(1,)), body.parameter("count", "i64", (1,))
    later = body.apply("Add", time, body.constant([1.0]), name="later")
    more = body.apply("Add", count, body.constant([1], np.int64), name="more")
    going = body.apply("Less", later, body.constant([9.0]), type="boolean", name="is_early")
    out = body.result(more)
    entries = [invariant(net.constant([0.0]), time), carried(net.constant([0], np.int64), count, out)]
    net.result(net.loop("clock", body, -1, True, entries, [last(out)], body.result(going))[0])
    said = sentence(the_one(findings(net, tmp_path, seconds=0.5), "loop-does-not-end"))
    assert said.endswith(
        "its condition Less 'is_early' is always true; no back edge leads to Parameter 'time', which it reads"
    )


def test_the_run_of_an_overview_is_checked_alike_and_the_debugger_stays(tmp_path: Path) -> None:
    """What was looked for is said; of a run that was edited the operations are not looked at."""
    model = modular(3, 2**62, 1, 41).read(tmp_path)
    asked = check_run(stepper.Debugger(model, {}), seconds=1.0)
    debugger = stepper.Debugger(model, {})
    debugger.step(3)
    seen = check_overview(debugger, debugger.run_overview(), 1.0)
    assert seen.findings == asked.findings and debugger.stop.tick == 3
    assert {"NaN", "shapes", "integer overflow"} <= set(seen.checked) and set(asked.checked) >= {"NaN", "rounding"}
    debugger.set_value("state", np.array([5]))
    edited = check_overview(debugger, debugger.run_overview(), 1.0)
    assert "integer overflow" not in edited.checked and "shapes" in edited.checked


def test_loops_on_one_line_are_told_from_each_other(tmp_path: Path) -> None:
    """A gate of 50 (h + 100) is saturated in the first loop; the second loop has another body, without a gate."""
    net, folder = Graph(), tmp_path / "one"
    folder.mkdir()
    value = net.parameter("x", dims=(1,))
    for name in ("first", "second"):
        body = net.body()
        h = body.parameter(f"{name}_h", dims=(1,))
        made = body.apply("Add", h, body.constant([100.0]), name=f"{name}_sum")
        if name == "first":
            made = body.apply("Sigmoid", body.apply("Multiply", made, body.constant([50.0])), name="gate")
        result = body.result(made)
        (value,) = net.loop(name, body, 9, True, [carried(value, h, result)], [last(result)])
    net.result(value)
    path = net.write(tmp_path)
    (folder / "model.xml").write_text(path.read_text().replace("\n", " "))
    (folder / "model.bin").write_bytes(path.with_suffix(".bin").read_bytes())
    told = []
    for file in (path, folder / "model.xml"):
        found = check_run(stepper.Debugger(stepper.read_model(file), {"x": np.zeros(1, np.float32)})).findings
        told.append([(one.rule, one.spot.loop and one.spot.loop.name, sentence(one)) for one in found])
    assert ("gate-saturated", "first") in [one[:2] for one in told[0]]
    assert told[0] == told[1]
