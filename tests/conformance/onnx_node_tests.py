"""ONNX's own tests of single nodes, converted in a process of their own: a crash of the converter costs one case.

    python -m tests.conformance.onnx_node_tests FOLDER BATCH BATCHES FIRST

writes CASE.xml, CASE.bin and CASE.pickle (inputs by name and expected outputs) into FOLDER, and a line for each case:
its number when it begins, then `converted NAME` or `refused NAME`.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A converted test: its model, and for each data set the inputs by name and the outputs expected."""

    name: str
    model: Path
    data_sets: list[tuple[dict[str, Any], list[Any]]]
    rtol: float
    atol: float


class Converted(NamedTuple):
    """The cases of a batch, and the names of those that the converter refused or crashed at."""

    cases: list[Case]
    refused: list[str]
    crashed: list[str]


def convert(folder: Path, batch: int, batches: int) -> Converted:
    """Return the tests of one of several batches, converted; each crash of the converter begins a new process."""
    found, first = Converted([], [], []), batch
    while True:
        words = [sys.executable, "-m", __name__, str(folder), str(batch), str(batches), str(first)]
        run = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[2])
        number, name = first, ""
        for line in run.stdout.splitlines():
            word, _, name = line.partition(" ")
            if word == "converted":
                found.cases.append(_read(folder, name))
            elif word == "refused":
                found.refused.append(name)
            else:
                number = int(word)
        if run.returncode == 0:
            return found
        if run.returncode > 0:
            raise AssertionError(run.stderr)
        found.crashed.append(name)
        first = number + batches


def _read(folder: Path, name: str) -> Case:
    data_sets, rtol, atol = pickle.loads((folder / f"{name}.pickle").read_bytes())
    return Case(name, folder / f"{name}.xml", data_sets, rtol, atol)


def _main(folder: Path, batch: int, batches: int, first: int) -> None:
    import openvino
    from onnx.backend.test import loader

    from stepper.openvino.conversion import correct

    core = openvino.Core()
    tests = loader.load_model_tests(kind="node")
    for number in range(first, len(tests), batches):
        test = tests[number]
        assert number % batches == batch
        print(number, test.name, flush=True)
        source, target = folder / f"{test.name}.onnx", folder / f"{test.name}.xml"
        source.write_bytes(test.model.SerializeToString())
        try:
            openvino.save_model(core.read_model(source), target, compress_to_fp16=False)
        except RuntimeError:
            print("refused", test.name, flush=True)
            continue
        correct(target)
        names = [value.name for value in test.model.graph.input]
        data_sets = [
            (dict(zip(names, _arrays(given), strict=False)), list(_arrays(expected)))
            for given, expected in test.data_sets
        ]
        kept = pickle.dumps((data_sets, test.rtol, test.atol))
        target.with_suffix(".pickle").write_bytes(kept)
        print("converted", test.name, flush=True)


def _arrays(values: Any) -> Iterator[Any]:
    import onnx

    for value in values:
        yield onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def difference(ours: Any, expected: Any, rtol: float, atol: float) -> str:
    """Return how an output differs from the one expected, "" where it is the same."""
    ours, expected = np.asarray(ours), np.asarray(expected)
    if ours.shape != expected.shape:
        return f"shape {ours.shape}, expected {expected.shape}"
    if expected.dtype.kind in "OUS" or expected.dtype.names:
        return "" if (ours.astype(str) == expected.astype(str)).all() else "other strings"
    coarse = {"bfloat16": 2**-6, "float16": 2**-9}.get(str(expected.dtype), 0)
    close = np.isclose(
        ours.astype(np.float64), expected.astype(np.float64), max(rtol, coarse), max(atol, coarse), equal_nan=True
    )
    at = tuple(np.argwhere(~close)[0]) if not close.all() else ()
    return "" if close.all() else f"{ours[at]}, expected {expected[at]}, at {[int(index) for index in at]}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
