"""Runs in fewer bits, on small models of which what is lost, where and why follows from the numbers."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from lxml import etree

import stepper
from stepper.cli import main
from stepper.diagnosis.narrowing import CheckedPrecision, Narrowing, check_precision, marked, smallest
from stepper.diagnosis.rule import Finding, Severity, SubjectKind, rules
from stepper.diagnosis.texts import consequence, remedy, sentence
from tests.debug.debugged import sample
from tests.models import Graph, carried, invariant, joined, last, sliced


def checked(
    net: Graph, folder: Path, precision: str, inputs: dict[str, object] | None = None, allowed: float | None = None
) -> CheckedPrecision:
    debugger = stepper.Debugger(net.read(folder), inputs or {})
    found = check_precision(debugger, Narrowing(precision), allowed=allowed, seconds=20)
    for one in found.findings:
        assert "{" not in sentence(one) + consequence(one) + remedy(one)
    return found


def of_rule(found: CheckedPrecision, rule: str) -> Finding:
    (one,) = [one for one in found.findings if one.rule == rule]
    return one


def norms() -> Graph:
    """The length of each row of x[4,3], row by row: squares, their sum, its root, and a tanh that nothing harms."""
    net = Graph()
    x, body = net.parameter("x", dims=(4, 3)), net.body()
    row = body.parameter("row", dims=(1, 3))
    squares = body.apply("Multiply", row, row, name="squares")
    total = body.apply("ReduceSum", squares, body.constant([1], np.int64), dims=(1, 1), name="total", keep_dims="true")
    root = body.apply("Sqrt", total, name="root")
    calm = body.apply("Tanh", root, name="calm")
    (lengths, bent) = net.loop(
        "rows", body, 4, True, [sliced(x, row)], [joined(body.result(root)), joined(body.result(calm))]
    )
    net.result(lengths, "lengths")
    net.result(bent, "bent")
    return net


ROWS = np.array([[1, 2, 3], [100, 100, 100], [10, 300, 20], [1, 1, 500]], np.float32)


def test_the_operation_and_the_iteration_that_leave_the_range_of_f16(tmp_path: Path) -> None:
    """300^2 is beyond f16 (65504), 100^2 and three times that is not."""
    found = checked(norms(), tmp_path, "f16", {"x": ROWS})
    one = of_rule(found, "leaves-range")
    assert one.spot.layer is not None and one.spot.layer.name == "squares" and one.iterations == (2,)
    assert one.spot.loop is not None and one.spot.loop.name == "rows" and one.address == "squares@2"
    assert "element [0, 1] is 90000, the largest f16 is 65504" in sentence(one) and one.severity is Severity.ERROR
    assert "output 'lengths' is lost" in consequence(one)


def test_the_least_set_in_f32_is_what_computes_beyond_f16(tmp_path: Path) -> None:
    """The root of 90500 is 300.8, which f16 has; squares, sum and root have to see 90500."""
    found = checked(norms(), tmp_path, "f16", {"x": ROWS})
    assert [layer.name for layer in found.keep_in_f32] == ["squares", "total", "root"]
    note = of_rule(found, "keep-in-f32")
    assert "with 3 of 4 operations in f32" in sentence(note) and "'squares', 'total', 'root'" in sentence(note)
    assert "without any one of them it does not hold" in consequence(note)


def test_in_bf16_the_range_is_that_of_f32(tmp_path: Path) -> None:
    found = checked(norms(), tmp_path, "bf16", {"x": ROWS})
    assert [one.rule for one in found.findings] == ["holds-in-fewer-bits"] and found.keep_in_f32 == ()
    assert 1e-4 < found.findings[0].details["most"] < 2**-7, "8 bits of mantissa"  # type: ignore[operator]


def test_how_far_an_output_may_be_off_is_chosen(tmp_path: Path) -> None:
    x = {"x": ROWS[:2].repeat(2, 0) / 7}
    assert of_rule(checked(norms(), tmp_path, "bf16", x), "holds-in-fewer-bits")
    found = checked(norms(), tmp_path, "bf16", x, allowed=1e-5)
    assert {one.rule for one in found.findings} & {"loses-digits", "no-set-in-f32-mends-it"}


def test_an_epsilon_that_f16_does_not_have(tmp_path: Path) -> None:
    """1e-9 becomes 0, so that 0 / (0 + eps) is 0 / 0."""
    net = Graph()
    x, body = net.parameter("x", dims=(3, 2)), net.body()
    row = body.parameter("row", dims=(1, 2))
    padded = body.apply("Add", row, body.constant([[1e-9]]), name="padded")
    ratio = body.apply("Divide", row, padded, name="ratio")
    (scan,) = net.tensor_iterator("divide", body, [sliced(x, row)], [joined(body.result(ratio))])
    net.result(scan, "scan")
    x_values = np.array([[1, 2], [0, 0], [3, 4]], np.float32)
    found = checked(net, tmp_path, "f16", {"x": x_values})
    one = of_rule(found, "becomes-zero")
    assert one.spot.layer is not None and one.spot.layer.name == "padded" and one.iterations == (1,)
    assert "is 1e-09, the least f16 above 0 is 5.96e-08" in sentence(one)
    assert [layer.name for layer in found.keep_in_f32] == ["padded", "ratio"]


def test_a_sum_over_iterations_that_a_back_edge_cannot_carry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From 2048 on f16 has no odd numbers, so that 1 more is nothing more, whatever the addition is made in."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(1,))
    out = body.result(body.apply("Add", state, body.constant([1.0]), name="more"), "next_state")
    (final,) = net.loop("count", body, 100, True, [carried(net.constant([2000.0]), state, out)], [last(out)])
    net.result(final, "final")
    found = checked(net, tmp_path, "f16", allowed=0.001)
    one = of_rule(found, "no-set-in-f32-mends-it")
    assert one.spot.layer is not None and one.spot.layer.name == "state" and found.keep_in_f32 == ()
    first = next(k for k in range(100) if (2000 + k - 2048) / (2000 + k) > 0.001)
    assert one.iterations == (first,) and f"takes 2048: element [0] is {2000 + first} in f32" in (sentence(one))
    target, path = tmp_path / "kept.xml", str(net.read(tmp_path).path)
    words = ["check", path, "--as", "f16", "--loss", "0.001", "-q", "--keep-in-f32", str(target)]
    assert main(words) == 1 and not target.exists() and "kept.xml is not written" in capsys.readouterr().err


def test_a_loop_that_ends_later_in_fewer_bits_and_cannot_run_on_for_ever(tmp_path: Path) -> None:
    """The state never gets to 2100 in f16: the run is cut, and the loop named."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(1,))
    more = body.apply("Add", state, body.constant([1.0]), name="more")
    out = body.result(more, "next_state")
    going = body.result(body.apply("Less", more, body.constant([2100.0]), type="boolean", name="going"))
    (final,) = net.loop("climb", body, -1, True, [carried(net.constant([2000.0]), state, out)], [last(out)], going)
    net.result(final, "final")
    found = checked(net, tmp_path, "f16")
    one = of_rule(found, "goes-another-way")
    assert one.spot.layer is not None and one.spot.layer.name == "climb" and one.iterations == (99,)


def weighing(weights: np.ndarray) -> Graph:
    """Rows of x, multiplied with weights from outside of the loop."""
    net = Graph()
    x, body = net.parameter("x", dims=(2, 4)), net.body()
    w = net.constant(weights, name="weights")
    row, inner = body.parameter("row", dims=(1, 4)), body.parameter("w", dims=weights.shape)
    product = body.apply("MatMul", row, inner, dims=(1, 4), name="product", transpose_b="true")
    (scan,) = net.tensor_iterator("weigh", body, [sliced(x, row), invariant(w, inner)], [joined(body.result(product))])
    net.result(scan, "scan")
    return net


def test_weights_of_8_bits_have_a_scale_for_each_output_channel(tmp_path: Path) -> None:
    """One channel a million times another is nothing to be lost; within a channel the small ones are."""
    even = np.array([[1, 2, 3, 4], [1e6, 2e6, 3e6, 4e6], [-1, 1, -1, 1], [5, 5, 5, 5]], np.float32)
    x = {"x": np.eye(4, dtype=np.float32)[:2]}
    found = checked(weighing(even), tmp_path, "i8-weights", x)
    assert [one.rule for one in found.findings] == ["holds-in-fewer-bits"]
    uneven = np.array([[1, 2, 1000, 4], [1, 2, 3, 4], [1, 1, 1, 1], [5, 5, 5, 5]], np.float32)
    x = {"x": np.array([[1, 0, 0, 0], [0, 1, 0, 0]], np.float32)}
    found = checked(weighing(uneven), tmp_path, "i8-weights", x)
    one = of_rule(found, "loses-digits")
    assert [layer.name for layer in found.keep_in_f32] == ["weights"]
    assert one.spot.layer is not None and one.spot.layer.name == "product" and one.iterations == (0,)
    step = 1000 / 255
    assert "element [0, 0] is 0 and not 1" in sentence(one) and round(1 / step) == 0


@pytest.mark.parametrize("precision", ["f16", "bf16", "i8-weights"])
def test_samples_that_hold_are_said_to_hold(precision: str) -> None:
    found = check_precision(sample("date_normaliser"), Narrowing(precision))
    assert [one.severity for one in found.findings] == [Severity.NOTE] and found.runs == 1


def test_what_is_to_stay_in_f32_is_marked_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = norms().read(tmp_path)
    np.savez(tmp_path / "inputs.npz", x=ROWS)
    target = tmp_path / "kept.xml"
    words = ["check", str(model.path), "--inputs", str(tmp_path / "inputs.npz"), "--as", "f16", "-q"]
    assert main([*words, "--keep-in-f32", str(target)]) == 1
    assert "Loop 'rows', iteration 2: in f16 Multiply 'squares' leaves the range" in " ".join(
        capsys.readouterr().out.split()
    )
    layers = etree.parse(target).iter("layer")
    names = [layer.get("name") for layer in layers if layer.find("rt_info/attribute[@name='precise']") is not None]
    assert names == ["squares", "total", "root"]
    assert target.with_suffix(".bin").read_bytes() == model.path.with_suffix(".bin").read_bytes()
    kept = check_precision(stepper.Debugger(model, {"x": ROWS}), Narrowing.F16).keep_in_f32
    assert marked(target, kept) == target.read_bytes(), "what is marked stays as it is"
    plain, again = (stepper.run(path, {"x": ROWS}) for path in (model.path, target))
    assert all(np.array_equal(plain[name], again[name]) for name in plain)
    assert main([*words, "--keep-in-f32", str(model.path)]) == 2 and "that is the model" in capsys.readouterr().err


def test_the_least_subset_is_found_whatever_it_is() -> None:
    """Against a definition: a subset holds if it has all of the wanted, by trial of all single leavings."""
    for wanted in ({3}, {0, 7}, {1, 2, 5}, set(range(8))):
        tried = []

        def holds(some: object, wanted: set[int] = wanted, tried: list[object] = tried) -> bool:
            tried.append(some)
            return wanted <= set(some)  # type: ignore[call-overload]

        found, is_least = smallest(range(8), holds, lambda: True)
        assert set(found) == wanted and is_least and len(tried) <= 8 * 8
    found, is_least = smallest(range(8), lambda some: {3} <= set(some), lambda: False)
    assert set(found) == set(range(8)) and not is_least


def test_the_emulated_types_are_those_of_ml_dtypes() -> None:
    assert Narrowing.F16.dtype == np.float16 and Narrowing.BF16.dtype == ml_dtypes.bfloat16
    assert Narrowing.I8_WEIGHTS.dtype is None


def test_every_rule_of_fewer_bits_is_tested_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    names = [name for name, rule in rules().items() if rule.scope is SubjectKind.NARROW_RUN]
    assert len(names) == 7 and [name for name in names if f'"{name}"' not in text] == []
