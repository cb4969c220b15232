"""Random loops: the stepper computes what the runtime computes, recorded and afresh."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.agreement import assert_agrees

ARCHIVE = Path(__file__).parent / "recorded" / "random_loops.zip"
CHUNKS = 20
RULES = ("spec", "openvino")
FIRST_FRESH_SEED = 1_000_000
FRESH_COUNT = int(os.environ.get("STEPPER_RANDOM_LOOPS", "60"))
LARGEST_DROPPED_SHARE = 0.15
LONGEST_LOOP = 1000


def recorded_index() -> dict[str, Any]:
    with zipfile.ZipFile(ARCHIVE) as archive:
        index: dict[str, Any] = json.loads(archive.read("index.json"))
    return index


def numbered(arrays: Any, prefix: str) -> list[np.ndarray]:
    """The arrays `<prefix>_0`, `<prefix>_1` and so on."""
    return [arrays[f"{prefix}_{place}"] for place in range(sum(name.startswith(f"{prefix}_") for name in arrays))]


def assert_stepper_agrees(path: Path, rules: str, where: str) -> None:
    """Run the model beside its arrays and compare every output."""
    import stepper

    with np.load(path.with_suffix(".npz")) as arrays:
        inputs, expected = numbered(arrays, "in"), numbered(arrays, "out")
    model = stepper.read_model(path)
    outputs = stepper.run(model, dict(enumerate(inputs)), rules=rules, max_iterations=LONGEST_LOOP)
    assert len(outputs) == len(expected), f"{where}: {len(outputs)} outputs, expected {len(expected)}"
    for place, (actual, wanted) in enumerate(zip(outputs.values(), expected, strict=True)):
        assert_agrees(actual, wanted, f"{where}, output {place}")


def complaints(paths: Sequence[Path], rules: str) -> Iterator[str]:
    """What is wrong with any of the models, whatever it is, so that one does not hide the others."""
    for path in paths:
        where = f"seed {path.stem}, rules {rules}"
        try:
            assert_stepper_agrees(path, rules, where)
        except AssertionError as error:
            yield str(error)
        except Exception as error:
            yield f"{where}: {type(error).__name__}: {error}"


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_stepper_computes_what_was_recorded(chunk: int, rules: str, tmp_path: Path) -> None:
    seeds = sorted(recorded_index(), key=int)[chunk::CHUNKS]
    assert seeds
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path, [f"{seed}{suffix}" for seed in seeds for suffix in (".xml", ".bin", ".npz")])
    wrong = list(complaints([tmp_path / f"{seed}.xml" for seed in seeds], rules))
    assert not wrong, "\n".join([f"{len(wrong)} of {len(seeds)} models:", *wrong])


def test_the_recording_is_large_and_varied() -> None:
    index = recorded_index()
    kinds = {kind for record in index.values() for kind in record["kinds"]}
    assert len(index) >= 600
    assert {
        "Loop > Loop",
        "Loop > TensorIterator",
        "TensorIterator > Loop",
        "Loop > If",
        "TensorIterator > If",
    } <= kinds


@pytest.fixture(scope="module")
def fresh_models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Models of seeds that nobody has recorded, with what the runtime computes for them now."""
    pytest.importorskip("openvino")
    folder = tmp_path_factory.mktemp("fresh")
    candidates = import_module("tests.conformance.candidates")
    verdicts = list(candidates.collect(FIRST_FRESH_SEED, FIRST_FRESH_SEED + FRESH_COUNT, folder))
    dropped = [f"{verdict.seed}: {verdict.reason}: {verdict.detail}" for verdict in verdicts if verdict.reason]
    assert len(dropped) <= LARGEST_DROPPED_SHARE * len(verdicts), "\n".join(dropped)
    assert not [line for line in dropped if "not built" in line], "\n".join(dropped)
    return [folder / f"{verdict.seed}.xml" for verdict in verdicts if not verdict.reason]


@pytest.mark.parametrize("rules", RULES)
def test_stepper_computes_what_the_runtime_computes_afresh(fresh_models: list[Path], rules: str) -> None:
    wrong = list(complaints(fresh_models, rules))
    assert not wrong, "\n".join([f"{len(wrong)} of {len(fresh_models)} models:", *wrong])


def test_a_seed_always_gives_the_same_model(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    random_loops = import_module("stepper.diagnosis.hunt.random_loops")
    for seed in range(5):
        texts = []
        for time in ("first", "again"):
            path = tmp_path / f"{time}.xml"
            openvino.serialize(random_loops.build(seed).model, path, path.with_suffix(".bin"))
            texts.append(path.read_bytes() + path.with_suffix(".bin").read_bytes())
        assert texts[0] == texts[1], f"seed {seed}"
