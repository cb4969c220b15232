"""Random loops as numpy code: what the runtime computed for them is recorded (tests/conformance/candidates.py)."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

import stepper
from tests.conformance.agreement import assert_agrees
from tests.export.generated import ROOT, called
from tests.tables import each_row

ARCHIVE = ROOT / "tests" / "conformance" / "recorded" / "random_loops.zip"
EACH, CHUNKS = 5, 5


def recorded(chunk: int) -> list[str]:
    """Some of the recorded models."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        names = sorted(name[:-4] for name in archive.namelist() if name.endswith(".npz"))
    return names[::EACH][chunk::CHUNKS]


@each_row("chunk", range(CHUNKS))
def test_the_code_of_a_random_loop_gives_what_the_runtime_gave(chunk: int, tmp_path: Path) -> None:
    names = recorded(chunk)
    assert len(names) > 20
    with zipfile.ZipFile(ARCHIVE) as archive:
        for name in names:
            folder = tmp_path / name  # of its own: weights are mapped, constants read when they are needed
            folder.mkdir()
            for ending in ("xml", "bin"):
                (folder / f"model.{ending}").write_bytes(archive.read(f"{name}.{ending}"))
            with np.load(io.BytesIO(archive.read(f"{name}.npz"))) as arrays:
                inputs = [arrays[f"in_{k}"] for k in range(sum(key.startswith("in_") for key in arrays))]
                expected = [arrays[f"out_{k}"] for k in range(sum(key.startswith("out_") for key in arrays))]
            found = called(stepper.read_model(folder / "model.xml"), folder, *inputs)
            assert len(found) == len(expected)
            for output, (actual, wanted) in enumerate(zip(found, expected, strict=True)):
                assert_agrees(actual, wanted, f"random loop {name}, output {output}")
