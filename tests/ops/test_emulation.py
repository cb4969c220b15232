"""What a device of 16 bits computes, emulated: rounded after each operation, in IEEE's own way."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.cli import main
from stepper.openvino.partner import OpenVINOPartner
from tests.models import Graph, carried, last


def squaring(steps: int = 5) -> Graph:
    """x becomes (x + 1/3)^2 in each step; x^(2^k) is beyond f16 after a few."""
    graph = Graph()
    x = graph.parameter("x", "f32", (2,))
    body = graph.body()
    state = body.parameter("state", "f32", (2,))
    moved = body.apply("Add", state, body.constant(np.float32([1 / 3]), name="third"), name="moved")
    squared = body.result(body.apply("Multiply", moved, moved, name="squared"), "squared_out")
    loop = graph.loop("rounds", body, steps, True, [carried(x, state, squared)], [last(squared)])
    graph.result(loop[0], "y")
    return graph


def half(value: float) -> float:
    """Rounded to f16 by Python itself; what is beyond is Inf."""
    try:
        return float(struct.unpack("<e", struct.pack("<e", value))[0])
    except OverflowError:
        return float("inf")


def brain(value: float) -> float:
    """Rounded to bf16: the upper half of an f32, to the nearest, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return float(struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16))[0])


@pytest.mark.parametrize(("engine", "rounded"), [("numpy-f16", half), ("numpy-bf16", brain)])
def test_every_result_input_and_constant_is_rounded_as_by_hand(engine: str, rounded: Any, tmp_path: Path) -> None:
    x = np.array([0.1, 2.7], np.float32)
    wanted = []
    for value in map(float, x):
        for _ in range(5):
            moved = rounded(rounded(value) + rounded(float(np.float32(1 / 3))))
            value = rounded(moved * moved)
        wanted.append(value)
    found = stepper.run(squaring().read(tmp_path), {"x": x}, partner=OpenVINOPartner(engine))["y"]
    assert found.dtype == np.float32 and found.tolist() == wanted
    assert (engine == "numpy-f16") is bool(np.isinf(found[1])), "(2.7 + 1/3)^32 is beyond f16"
    exact = stepper.run(squaring().read(tmp_path), {"x": x})["y"]
    assert exact[0] != found[0]


def test_where_f16_overflows_is_named_with_its_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(squaring().write(tmp_path))
    assert main(["run", path, "--input", "x=[0.1, 2.7]", "--engine", "numpy-f16", "--break", "inf"]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "Multiply 'squared' in iteration 3" in text and "f16 maximum 6.55e+04" in text
    assert "computed by emulated f16" in text


def test_compare_says_where_a_model_leaves_the_precision_and_that_it_is_emulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(squaring().write(tmp_path))
    words = ["compare", path, "--with", path, "--input", "x=[0.1, 2.7]", "--engine", "numpy-f16"]
    assert main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"]["layer"]["name"], found["verdict"]["iteration"]) == ("squared", 3)
    assert found["notes"] == ["our side is emulated f16"]
    assert main(words) == 1
    assert "note: our side is emulated f16" in capsys.readouterr().out
    assert main(["compare", path, "--with", path, "--input", "x=[0.1, 0.2]", "--engine", "numpy-bf16"]) == 0


def test_one_operation_alone_can_be_emulated(tmp_path: Path) -> None:
    x = np.array([0.1, 0.2], np.float32)
    partner = OpenVINOPartner("numpy", {"moved": "numpy-f16"})
    found = stepper.run(squaring(1).read(tmp_path), {"x": x}, partner=partner)["y"]
    moved = np.float32([half(half(float(one)) + half(float(np.float32(1 / 3)))) for one in x])
    assert found.tolist() == (moved * moved).tolist()
