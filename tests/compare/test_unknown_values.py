"""An archive that has not all values: what is not known is traced back, and what limits a loop is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.compare.comparison import RunComparison, compare_with
from stepper.compare.references.recorded import ArchiveReference
from stepper.compare.verdict import ComparisonVerdict
from stepper.engine.machine import Machine
from tests.models import Graph, backwards, carried, joined, last

X = np.array([1.0, 2.0], np.float32)
KEYS = ("value", "doubled", "scaled", "next")


def steps(*, limit: float = 20.0, reverse: bool = False, lost: bool = False, scale: float = 3.0) -> Graph:
    """value -> 2 value, times 3, minus 1, as long as its first element is below the limit; all of them joined."""
    net = Graph()
    x, body = net.parameter("x", dims=(2,)), net.body()
    value = body.parameter("value", dims=(2,))
    doubled = body.apply("Add", value, value, dims=(2,), name="doubled")
    scaled = body.apply("Multiply", doubled, body.constant(scale), dims=(2,), name="scaled")
    if lost:  # a shape that the next operation does not take
        scaled = body.apply(
            "ReduceSum", scaled, body.constant([0], np.int64), keep_dims="true", dims=(1,), name="scaled"
        )
        scaled = body.apply("Concat", scaled, doubled, value, axis=0, dims=(5,), name="joined")
    following = body.apply("Subtract", scaled, body.constant([1.0, 1.0]), dims=(2,), name="next")
    first = body.apply("ReduceMin", following, body.constant([0], np.int64), keep_dims="false", name="smallest")
    going_on = body.apply("Less", first, body.constant(limit), type="boolean", name="below")
    result, kept = (
        body.result(following),
        body.result(body.apply("Unsqueeze", following, body.constant([0], np.int64), dims=(1, 2))),
    )
    pieces = joined(kept, **(backwards() if reverse else {}))
    condition = body.result(going_on)
    out, pieces_out = net.loop("steps", body, -1, True, [carried(x, value, result)], [last(result), pieces], condition)
    net.result(out, "out")
    net.result(pieces_out, "pieces")
    return net


def archive(folder: Path, keys: tuple[str, ...] = KEYS, limit: float = 20.0) -> Path:
    """The values of the right model in each iteration, and its outputs; computed once more by the formula."""
    found: dict[str, list[Any]] = {key: [] for key in KEYS}
    value = X
    while True:
        doubled = value + value
        following = doubled * 3 - 1
        for key, one in zip(KEYS, (value, doubled, doubled * 3, following), strict=True):
            found[key].append(one)
        value = following
        if following.min() >= limit:
            break
    arrays = {f"tr:steps|{key}|0": np.stack(found[key]) for key in keys}
    np.savez(folder / "values.npz", **arrays, out=value, pieces=np.stack(found["next"]))
    return folder / "values.npz"


def compared(folder: Path, graph: Graph, *keys: str, limit: float = 20.0) -> RunComparison:
    model = graph.read(folder)
    inputs = stepper.bind_inputs(model, {"x": X})
    compiled = stepper.compile_model(model)
    reference = ArchiveReference(archive(folder, keys or KEYS, limit), compiled)
    return compare_with(Machine(compiled, inputs), reference)


def verdict(folder: Path, graph: Graph, *keys: str) -> ComparisonVerdict:
    found = compared(folder, graph, *keys).verdict
    assert found is not None
    return found


def test_the_right_model_does_not_differ(tmp_path: Path) -> None:
    comparison = compared(tmp_path, steps())
    assert not comparison.differs and comparison.observations.compared == 4 * 2


def test_a_loop_that_ends_too_early_has_its_condition_named(tmp_path: Path) -> None:
    found = verdict(tmp_path, steps(limit=-1.0))
    assert (found.loop and found.loop.name, found.iteration) == ("steps", 1)
    assert "its condition is Less 'below'" in found.reason


def test_joined_the_other_way_round_the_entry_of_the_port_map_is_named(tmp_path: Path) -> None:
    found = verdict(tmp_path, steps(reverse=True))
    assert found.loop is not None and found.loop.name == "steps"
    assert found.layer is not None and (found.layer.type, found.entry) == ("Result", "output")
    assert (
        "reversed order along axis 0" in found.reason
        and "port map's entry joins or takes something else" in found.reason
    )


def test_behind_a_value_that_is_not_known_stands_what_it_comes_from(tmp_path: Path) -> None:
    found = verdict(tmp_path, steps(scale=4.0), "value", "doubled", "next")
    assert found.layer is not None and found.layer.name == "next"
    assert "its input Multiply 'scaled'" in found.reason and "which the reference does not have" in found.reason
    assert "'doubled'" not in found.reason, "that is known, and agrees"


def test_of_what_fails_the_difference_before_it_is_named(tmp_path: Path) -> None:
    found = verdict(tmp_path, steps(lost=True))
    assert found.layer is not None and found.layer.name == "scaled"
    assert "another shape [1] against [2]" in " ".join(found.details)


def test_of_what_fails_the_inputs_that_are_not_known_are_named(tmp_path: Path) -> None:
    found = verdict(tmp_path, steps(lost=True), "value", "doubled")
    assert found.reason.startswith("our run stops at Subtract 'next'")
    assert "the reference has no value of Concat 'joined'" in found.reason and "ReduceSum 'scaled'" in found.reason


@pytest.mark.parametrize("limited", [True, False])
def test_what_agrees_is_not_called_clipped(limited: bool) -> None:
    from stepper.compare.observations import patterns_of_values
    from stepper.tensors.tolerances import Tolerance

    theirs = np.linspace(-1, 1, 9, dtype=np.float32)
    ours = np.clip(theirs, -1, 0.5 if limited else 1 - 1e-6).astype(np.float32)
    said = " ".join(patterns_of_values(ours, theirs, None, Tolerance(1e-4, 1e-5)))
    assert ("clipped" in said) == limited


def test_what_grows_out_of_the_tolerance_is_named_where_it_begins(tmp_path: Path) -> None:
    comparison = compared(tmp_path, steps(limit=1e6, scale=3 * (1 + 3e-5)), limit=1e6)
    found = comparison.verdict
    assert found is not None and found.layer is not None
    assert (found.layer.name, found.iteration) == ("scaled", 0)
    assert "made here" in found.reason
    assert "a tenth of the tolerance is exceeded in Loop 'steps' #3" in " ".join(found.details)
    assert not compared(tmp_path, steps(limit=1e6, scale=3 * (1 + 1e-6)), limit=1e6).differs


def test_rounding_that_grows_is_called_so(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x"), net.body()
    value = body.parameter("value")
    large = body.apply("Multiply", value, body.constant(10_000.0), name="large")
    rest = body.result(body.apply("Subtract", large, body.constant(10_000.0), name="rest"))
    net.result(net.loop("steps", body, 1, True, [carried(x, value, rest)], [last(rest)])[0], "out")
    rounded = np.nextafter(np.float32(10_000), np.float32(20_000))
    left = rounded - np.float32(10_000)
    np.savez(tmp_path / "values.npz", **{"tr:steps|large|0": rounded[None], "tr:steps|rest|0": left[None]}, out=left)
    compiled = stepper.compile_model(net.read(tmp_path))
    machine = Machine(compiled, stepper.bind_inputs(compiled.model, {"x": np.float32(1)}))
    found = compare_with(machine, ArchiveReference(tmp_path / "values.npz", compiled)).verdict
    assert found is not None and found.layer is not None and found.layer.name == "rest"
    assert "it is rounding that grows" in found.details[0]
