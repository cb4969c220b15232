"""A hunt goes on where it ended, knows the faults of the runtime, and builds the same models each time."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from stepper.cli import main
from stepper.diagnosis.hunt.faults import ModelFeature, ShownFacts, recognised
from stepper.diagnosis.hunt.hunting import CASES, hunt
from stepper.diagnosis.reduce.trials import FaultKind, FoundFault
from tests.files.test_locks import held

pytest.importorskip("openvino")


def test_seeds_are_tried_once_and_a_line_that_a_kill_cut_off_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["hunt", "-o", str(tmp_path), "--profile", "quantised", "--seed", "1", "--count", "2", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["seeds"], found["agree"], found["faults"]) == (2, 2, [])
    lines = (tmp_path / "hunt.jsonl").read_bytes()
    (tmp_path / "hunt.jsonl").write_bytes(lines + b'{"seed":')
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["agree"] == 2
    assert (tmp_path / "hunt.jsonl").read_bytes() == lines


def test_what_had_no_name_is_named_again_by_the_catalogue_of_today(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The seed was tried when its fault was not known; its smallest model says today what it is."""
    setting = {"profile": "loops", "openvino": importlib.metadata.version("openvino")}
    record = {"seed": 5, "outcome": "differs", "fault": "values-numbers", "operations": 2, "message": "new then"}
    (tmp_path / "hunt.jsonl").write_text(f"{json.dumps(setting)}\n{json.dumps(record)}\n")
    shutil.copytree(CASES / "square-constant-shared", tmp_path / "unnamed" / "seed5")
    for _ in range(2):  # the second time there is nothing to name
        assert main(["hunt", "-o", str(tmp_path), "--seed", "5", "--count", "1", "--json"]) == 1
        (found,) = json.loads(capsys.readouterr().out)["faults"]
        assert (found["fault"], found["is_known"], found["seeds"]) == ("square-constant-shared", True, [5])
        assert (tmp_path / found["case"] / "model.xml").exists()
    assert not (tmp_path / "unnamed" / "seed5").exists()
    assert len((tmp_path / "hunt.jsonl").read_text().splitlines()) == 3


def test_a_fault_is_recognised_by_the_model_and_by_how_it_shows() -> None:
    refused = FoundFault(
        FaultKind.REFUSED, "OpenVINO", "src/core/src/shape_util.cpp", message="Accessing out-of-range dimension"
    )
    scalars = ShownFacts(types=frozenset({"Loop"}), features=frozenset({ModelFeature.SCALAR_JOINED}))
    known = recognised(refused, scalars)
    assert known is not None and known.id == "dimension-out-of-range"
    assert recognised(refused, ShownFacts(types=frozenset({"Loop"}))) is None
    assert recognised(replace(refused, message="another complaint of the same file"), scalars) is None
    assert recognised(replace(refused, program="stepper"), scalars) is None


def test_a_folder_with_another_hunt_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hunt.jsonl").write_text('{"profile":"quantised","openvino":"2020.1"}\n')
    assert main(["hunt", "-o", str(tmp_path), "--count", "1"]) == 2
    assert "has a hunt of another kind (profile quantised, OpenVINO 2020.1)" in capsys.readouterr().err


def test_the_time_limit_holds_for_what_has_no_name_too(tmp_path: Path) -> None:
    setting = {"profile": "loops", "openvino": importlib.metadata.version("openvino")}
    record = {"seed": 5, "outcome": "differs", "fault": "values-numbers", "operations": 2, "message": "new then"}
    (tmp_path / "hunt.jsonl").write_text(f"{json.dumps(setting)}\n{json.dumps(record)}\n")
    shutil.copytree(CASES / "square-constant-shared", tmp_path / "unnamed" / "seed5")
    hunt(tmp_path, seconds=0.0)
    assert (tmp_path / "unnamed" / "seed5").exists() and len((tmp_path / "hunt.jsonl").read_text().splitlines()) == 2


def test_the_lines_of_a_hunt_that_runs_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setting = {"profile": "loops", "openvino": importlib.metadata.version("openvino")}
    lines = f'{json.dumps(setting)}\n{{"seed": 1, "outc'  # it is being written
    (tmp_path / "hunt.jsonl").write_text(lines)
    with held(tmp_path / "hunt.jsonl"):
        assert main(["hunt", "-o", str(tmp_path), "--count", "1"]) == 2
    assert "is in use by" in capsys.readouterr().err
    assert (tmp_path / "hunt.jsonl").read_text() == lines


def test_a_seed_always_gives_the_same_model_in_each_profile(tmp_path: Path) -> None:
    import openvino

    from stepper.diagnosis.hunt import random_loops
    from stepper.diagnosis.hunt.random_operations import FREE, PORT_MAPS

    for build in (
        lambda seed: random_loops.build(seed, FREE),
        lambda seed: random_loops.build(seed, PORT_MAPS),
        random_loops.build_operation,
        random_loops.build_quantised,
    ):
        texts = []
        for _ in range(2):
            built = build(7)
            openvino.serialize(built.model, str(tmp_path / "m.xml"), str(tmp_path / "m.bin"))
            texts.append((tmp_path / "m.xml").read_bytes() + (tmp_path / "m.bin").read_bytes())
            texts[-1] += b"".join(one.tobytes() for one in built.inputs)
        assert texts[0] == texts[1]


def test_a_model_that_both_refuse_is_no_disagreement(tmp_path: Path) -> None:
    import numpy as np
    import openvino
    import openvino.opset13 as ops

    from stepper.diagnosis.reduce.reducing import reduce_model
    from stepper.diagnosis.reduce.trials import DisagreesWith, RunSettings

    x = ops.parameter([1], np.float32)
    model = openvino.Model([ops.reshape(x, ops.constant(np.array([1], np.int64)), False)], [x], "reshaped")
    path = tmp_path / "m.xml"
    openvino.serialize(model, str(path), str(path.with_suffix(".bin")))
    path.with_suffix(".bin").write_bytes(bytes(8))  # the shape [0], which one element cannot take
    assert reduce_model(path, {0: np.ones(1, np.float32)}, DisagreesWith(), RunSettings("openvino")) is None


def test_layers_of_networks_are_built_in_many_forms() -> None:
    from stepper.diagnosis.hunt.random_loops import build_operation, inner_graphs

    types = set()
    for seed in range(400):
        try:
            model = build_operation(seed).model
        except RuntimeError:  # the runtime takes no such model
            continue
        bodies = (body for node in model.get_ordered_ops() for body in inner_graphs(node))
        types |= {one.get_type_name() for body in bodies for one in body.get_ordered_ops()}
    assert types >= {"Convolution", "GroupConvolution", "ConvolutionBackpropData", "MaxPool", "AvgPool"}
    assert types >= {f"{kind}{form}" for kind in ("LSTM", "GRU", "RNN") for form in ("Cell", "Sequence")}
