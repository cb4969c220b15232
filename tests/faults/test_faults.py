"""A call of the system fails once while a command writes: there are old files or new ones, and one sentence."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

from tests.faults import run
from tests.faults.subjects import SUBJECTS

EVERY = {"all": 1, "": 20}[os.environ.get("STEPPER_FAULTS", "")]
"""STEPPER_FAULTS=all has each call fail."""
SLOW = {"reduced", "captured", "sweep"}


@pytest.mark.skipif(not run.IS_SUPPORTED, reason="there is no compiler of C, or no Linux")
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_fault_loses_nothing_and_is_one_sentence(name: str) -> None:
    if name in SLOW and EVERY > 1:
        pytest.skip("takes a minute; STEPPER_FAULTS=all runs it")
    if name == "captured" and find_spec("openvino") is None:
        pytest.skip("needs OpenVINO")
    found = list(run.results([name], EVERY))
    wrong = {f"{one['call']} {number}": texts for one in found for number, texts in one["wrong"].items()}
    assert not wrong
    assert sum(one["faults"] for one in found) > 2
