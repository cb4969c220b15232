"""Each known fault of the runtime has a case in the program that shows it, by that name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("openvino")

import openvino

from stepper.cli import main
from stepper.diagnosis.hunt.faults import FAULTS
from stepper.diagnosis.hunt.hunting import CASES
from tests.conformance.runtime import has_vnni


def test_every_case_shows_its_fault_and_is_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    """In one call, so that OpenVINO is loaded as seldom as may be."""
    assert {path.name for path in CASES.iterdir()} == {fault.id for fault in FAULTS}
    shown_in = {fault.id for fault in FAULTS if openvino.__version__.startswith(fault.versions)}
    shown_in.discard("eight-bit-products-saturate" if has_vnni() else "dynamic-quantisation")
    assert main(["hunt", "--fault", "all", "--json"]) == (1 if shown_in else 0)
    cases = json.loads(capsys.readouterr().out)["cases"]
    assert {case["fault"] for case in cases if case["is_shown"]} >= shown_in
    assert all(case["recognised"] in (case["fault"], "") for case in cases)


def test_a_case_is_printed_with_its_model_and_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    main(["hunt", "--fault", "square-constant-shared"])
    text = capsys.readouterr().out
    assert "two MatMuls share a square Constant" in text and "transpose_b=true" in text
    # the identity times the matrix, and times its transpose
    assert "output 1: expected [[1., 3.], [2., 4.]]" in text


def test_a_seed_leads_to_the_shared_square_constant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hunt", "-o", str(tmp_path), "--seed", "185", "--count", "1", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["faults"]
    assert (found["fault"], found["is_known"], found["seeds"]) == ("square-constant-shared", True, [185])
