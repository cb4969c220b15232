"""What the tests of generated code share: writing it beside its constants, and running it in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.export.numpy_code.code_file import NumpyCode, numpy_code
from stepper.ir.model import Model
from tests.models import Graph

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_models"


def written(code: NumpyCode, folder: Path, name: str = "code") -> Path:
    """The file of the code, its constants beside it."""
    path = folder / f"{name}.py"
    path.write_text(code.text, encoding="utf-8")
    if code.constants:
        np.savez(folder / f"{name}.npz", **code.constants)
    return path


def run_alone(code: NumpyCode, folder: Path, inputs: Mapping[str, Any]) -> dict[str, Array]:
    """The outputs of the script in an interpreter of its own, which stands in another folder."""
    path, elsewhere = written(code, folder), folder / "elsewhere"
    elsewhere.mkdir()
    np.savez(folder / "inputs_of_run.npz", **inputs)
    words = [sys.executable, str(path), str(folder / "inputs_of_run.npz"), str(folder / "outputs.npz")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(words, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0 and not process.stderr, process.stderr
    with np.load(folder / "outputs.npz", allow_pickle=False) as outputs:
        return dict(outputs)


def called(net: Graph | Model, folder: Path, *inputs: Any) -> list[Array]:
    """The outputs of the code of a model, called in this interpreter."""
    code = numpy_code(net.read(folder) if isinstance(net, Graph) else net)
    space: dict[str, Any] = {"__name__": "generated", "__file__": str(written(code, folder))}
    exec(compile(code.text, "generated", "exec"), space)
    function = next(line for line in code.text.splitlines() if line.startswith("        outputs = "))
    return [np.asarray(value) for value in space[function.split()[2].split("(")[0]](*inputs)]
