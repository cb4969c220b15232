"""What OpenVINO has compiled of a model is found again by the next comparison, and changes no result."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.openvino.peer import OpenVINOPeer
from stepper.openvino.runtime import Runtime
from tests.models import Graph

pytest.importorskip("openvino")

OPERATIONS = 100
X = np.array([[0.25, -1.5, 3.0]], np.float32)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "stepper" / "openvino"


def long_chain(folder: Path, *, last: float = 0.5) -> Path:
    graph = Graph()
    value = graph.parameter("x", "f32", (1, 3))
    for number in range(OPERATIONS - 1):
        value = graph.apply(("Tanh", "Sin")[number % 2], value, name=f"step {number}")
    graph.result(graph.apply("Multiply", value, graph.constant(np.full((1, 3), last, np.float32)), name="scaled"), "y")
    np.savez(folder / "inputs.npz", x=X)
    return graph.read(folder).path


def compared(model: Path, command: str = "compare") -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "stepper", command, str(model), "--inputs", str(model.parent / "inputs.npz")]
    return subprocess.run([*words, "--with", "openvino"], capture_output=True, text=True, timeout=120)


def blobs(folder: Path) -> Mapping[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*")}


def test_a_second_comparison_compiles_nothing(tmp_path: Path, cache: Path) -> None:
    model = long_chain(tmp_path)
    first = compared(model)
    assert first.returncode == 0, first.stderr
    kept = blobs(cache)
    assert len(kept) == 2, "the whole model; and all operations, each alone"
    second = compared(model)
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert blobs(cache) == kept


def test_other_weights_are_another_compilation(tmp_path: Path, cache: Path) -> None:
    compared(long_chain(tmp_path))
    again = compared(long_chain(tmp_path, last=0.75))
    assert again.returncode == 0, "the constant is a part of what was compiled"
    assert len(blobs(cache)) == 3, "the model with each, and the first operations of both"


def test_a_kept_compilation_that_is_damaged_changes_nothing(tmp_path: Path, cache: Path) -> None:
    model = long_chain(tmp_path)
    first = compared(model)
    whole = {blob: blob.read_bytes() for blob in cache.iterdir()}
    for end in (0, 100, 50_000, -1):
        for blob, content in whole.items():
            blob.chmod(0o600)
            blob.write_bytes(content[:end])
        found = compared(model)
        assert (found.returncode, found.stdout, found.stderr) == (0, first.stdout, first.stderr), end


@pytest.mark.parametrize("command", ["compare", "check"])
def test_numbers_that_were_changed_there_are_no_difference(tmp_path: Path, cache: Path, command: str) -> None:
    """A difference is made sure by compiling what differs once more, and of that nothing is kept."""
    model = long_chain(tmp_path)
    whole = compared(model, command)
    compared(model)
    constant, other = (np.full(3, number, np.float32).tobytes() for number in (0.5, 0.25))
    kept = {blob: blob.read_bytes() for blob in cache.iterdir()}
    changed = {blob: content.replace(constant, other) for blob, content in kept.items() if constant in content}
    assert changed
    for blob, content in changed.items():
        blob.chmod(0o600)
        blob.write_bytes(content)
    found = compared(model, command)
    assert (found.returncode, found.stdout) == (0, whole.stdout)
    assert all(blob.read_bytes() == content for blob, content in changed.items()), "OpenVINO has taken them"


def test_one_keeps_what_is_large_or_for_another_device_elsewhere(tmp_path: Path, cache: Path) -> None:
    assert Runtime().keeping().properties == {"CACHE_DIR": str(cache)}
    own = Runtime(properties={"CACHE_DIR": "elsewhere"})
    assert own.keeping() is own
    other = Runtime("GPU")
    assert other.keeping() is other
    OpenVINOPeer(stepper.read_model(long_chain(tmp_path))).run([X])
    assert not blobs(cache), "only a comparison that asks for it keeps anything"


def test_where_nothing_can_be_kept_all_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert Runtime().keeping().properties == {}
    assert compared(long_chain(tmp_path)).returncode == 0
