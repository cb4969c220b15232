"""Networks that nobody here wrote do everything; those of packages where the folder is that STEPPER_REAL names."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino")
pytest.importorskip("onnx")

from tests.real.__main__ import main
from tests.real.measuring import Row, difference, measure
from tests.real.recipes import BY_NAME, RECIPES, FetchError, Given, PackageFile, Script
from tests.real.scripts import SCRIPTS

CLOSE = 3e-5
ROUNDED = {"ddddocr_common_old": 0.05}
"""What quantises as it goes, where a last bit decides which number comes next; how far it may be apart."""
NOT_OPENED = {
    "silero_v6": "Conv .* in then_branch of If 'If_0': The input data tensor's rank has to be known",
    "wespeaker_features": "OpenVINO crashed",
}
"""What OpenVINO's converter does not take, and why."""


def ensure_sound(row: Row) -> None:
    assert row.trouble == ""
    assert row.difference is not None and row.difference < ROUNDED.get(row.name, CLOSE)
    assert row.is_drawn and row.is_stepped and (row.name in ROUNDED or not row.has_mismatch)


@pytest.mark.parametrize("name", ["viterbi", "runge_kutta"])
def test_a_script_is_opened_run_compared_drawn_and_stepped(name: str, tmp_path: Path) -> None:
    row = measure(BY_NAME[name], tmp_path, rounds=1)
    ensure_sound(row)
    assert row.loops and row.layers and row.layers > 20


@pytest.mark.parametrize("name", BY_NAME)
def test_a_network_of_the_folder_does_all(name: str) -> None:
    if not (folder := os.environ.get("STEPPER_REAL")):
        pytest.skip("STEPPER_REAL names no folder for networks (`python -m tests.real --folder DIR` fetches them)")
    row = measure(BY_NAME[name], Path(folder).resolve(), rounds=1)
    if name in NOT_OPENED:
        assert row.layers is None and re.search(NOT_OPENED[name], row.trouble)
    else:
        ensure_sound(row)


def test_there_are_twenty_networks_and_more_of_packages_and_scripts() -> None:
    sources = [recipe.source for recipe in RECIPES]
    assert len({recipe.name for recipe in RECIPES}) == len(RECIPES) > 20
    assert {one.name for one in sources if isinstance(one, Script)} == set(SCRIPTS)
    assert sum(isinstance(one, PackageFile) for one in sources) >= 15


def test_inputs_are_the_same_each_time() -> None:
    recipe = BY_NAME["gpt"]
    for name, array in recipe.arrays().items():
        np.testing.assert_array_equal(array, recipe.arrays()[name])
        assert array.shape == recipe.inputs[name].shape
    assert Given((30,), "i4", below=2).array("x").max() == 1


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0),
        ([100.0, 3.0], [101.0, 3.0], 1 / 101),
        ([0.5, np.nan], [0.25, np.nan], 0.25),
        ([1.0], [1.0, 2.0], np.inf),
    ],
)
def test_how_far_outputs_are_apart(one: list[float], other: list[float], expected: float) -> None:
    assert difference(np.array(one), np.array(other)) == pytest.approx(expected)


def test_what_cannot_be_had_is_told_and_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_arguments: object) -> Path:
        raise FetchError("there is no network")

    monkeypatch.setattr(PackageFile, "fetch", refused)
    file = tmp_path / "found.json"
    file.write_text(json.dumps([vars(Row("viterbi", "random weights", trouble="kept"))]))
    assert main(["magika", "--folder", str(tmp_path), "--json", str(file)]) == 1
    rows = {row["name"]: row["trouble"] for row in json.loads(file.read_text())}
    assert rows == {"magika": "there is no network", "viterbi": "kept"}
    assert "* magika (magika 1.0.3, model.onnx): there is no network" in capsys.readouterr().out
