"""How fast a large model is read, beside OpenVINO: `python -m tests.benchmarks.reading [--json]`.

The model is a chain of additions: 20,000 layers, and a .bin of 256 MB, which is sparse: neither reader looks into it.
Each reader's first call is measured too, in a process of its own; the memory that it needs is new there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import stepper
from tests.benchmarks import others, timing
from tests.benchmarks.ir_text import GraphText, Weights

OPENVINO, STEPPER = "OpenVINO, Core().read_model", "stepper.read_model"

_FIRST = {
    STEPPER: "import stepper, sys; read = stepper.read_model",
    OPENVINO: "import openvino, sys; read = openvino.Core().read_model",
}
_TIMED = "import time; begin = time.process_time(); model = read(sys.argv[1]); print(time.process_time() - begin)"


def write_model(folder: Path, additions: int, megabytes: int) -> Path:
    """A Parameter, so many times an Add of a Constant of its own, and a Result."""
    size = (megabytes << 20) // additions // 4 * 4
    weights = Weights()
    graph = GraphText(weights)
    shape = (1, size // 4)
    value = graph.parameter("x", "f32", shape)
    for index in range(additions):
        attributes = {"element_type": "f32", "shape": f"1, {size // 4}", "offset": index * size, "size": size}
        constant = graph.layer("Const", (), [("f32", shape)], **attributes)[0]
        value = graph.layer("Add", [value, constant], [("f32", shape)], auto_broadcast="numpy")[0]
    graph.result(value, "y")
    path = graph.write(folder, "chain")
    with path.with_suffix(".bin").open("wb") as file:
        file.truncate(additions * size)
    return path


def check(path: Path, layers: int) -> None:
    """Raise AssertionError where a reader does not find so many layers."""
    model = stepper.read_model(path)
    assert len(model.graph.layers) == layers, f"stepper finds {len(model.graph.layers)} layers, not {layers}"
    if others.HAS_OPENVINO:
        found = len(others.openvino_reader(path)().get_ops())
        assert found == layers, f"OpenVINO finds {found} layers, not {layers}"


def measure(path: Path, rounds: int) -> timing.Reports:
    """The ratios of all calls but the first, and those of the first."""
    candidates = {STEPPER: lambda: stepper.read_model(path)}
    if others.HAS_OPENVINO:
        candidates = {OPENVINO: others.openvino_reader(path), **candidates}
    base = next(iter(candidates))
    again = timing.side_by_side(candidates, rounds)
    first = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds // 2):
        for name in candidates:
            first[name] = min(first[name], first_call(name, path))
    megabytes = path.with_suffix(".bin").stat().st_size >> 20
    title = f"Reading {path.stat().st_size >> 20} MB of XML beside {megabytes} MB of weights"
    return [timing.report(title, again, base), timing.report(f"{title}, first call", first, base)]


def first_call(name: str, path: Path) -> float:
    """The seconds that the first call takes in a new process, imports not counted."""
    command = [sys.executable, "-c", f"{_FIRST[name]}; {_TIMED}", str(path)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    additions, megabytes, rounds = (1_000, 16, 2) if quick else (10_000, 256, 15)
    path = write_model(folder, additions, megabytes)
    check(path, layers=2 * additions + 2)
    return measure(path, rounds)


if __name__ == "__main__":
    timing.main(__doc__, reports)
