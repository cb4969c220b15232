"""One network: opened, run, held against OpenVINO, compared, drawn, stepped there and back.

    python -m tests.real.measuring NAME FOLDER     # one object of JSON; the network is fetched already

What cannot be done is a sentence in the row; what was measured before it stays.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import stepper
from stepper.compare.comparison import compare_with
from stepper.compare.references.reference_opening import open_reference
from stepper.debug.debugger import Debugger
from stepper.element_types import Array
from stepper.engine.machine import Machine
from stepper.errors import StepperError
from stepper.ir.model import Model
from stepper.openvino.conversion import converted
from stepper.openvino.partner import OPENVINO
from tests.benchmarks import others, timing
from tests.debug.debugged import state_of
from tests.real.recipes import BY_NAME, FetchError, Recipe

SECONDS = 240
"""Limit of a conversion."""
STEPS = 25
ROUNDS = 3
OURS = "stepper.run"
_LOOPS = ("TensorIterator", "Loop")


@dataclass
class Row:
    """What became of a network; None is what was not come to, because of `trouble`.

    `difference` is the largest of outputs, as a part of the largest value where that is above 1. The times are of
    processors, in milliseconds; that of `comparing` by the clock, in seconds, and `compared` is its ratio.
    """

    name: str
    source: str
    layers: int | None = None
    loops: int | None = None
    opening: float | None = None
    ours: float | None = None
    openvino: float | None = None
    difference: float | None = None
    comparing: float | None = None
    compared: float | None = None
    has_mismatch: bool | None = None
    is_drawn: bool | None = None
    is_stepped: bool | None = None
    trouble: str = ""


def measure(recipe: Recipe, folder: Path, rounds: int = ROUNDS) -> Row:
    """Return the row of a network, as far as one comes."""
    row = Row(recipe.name, str(recipe.source))
    try:
        _measure(row, recipe, folder, rounds)
    except (StepperError, FetchError) as error:
        row.trouble = str(error).replace(f"{folder}/", "")
    return row


def _measure(row: Row, recipe: Recipe, folder: Path, rounds: int) -> None:
    path = converted(recipe.source.fetch(folder, recipe.name), timeout=SECONDS, shapes=recipe.shapes())
    begin = time.process_time()
    model = stepper.open_sequences(stepper.read_model(path))
    row.opening = _milliseconds(time.process_time() - begin)
    graphs = [graph for _path, graph in model.graphs()]
    row.layers = sum(len(graph.layers) for graph in graphs)
    row.loops = sum(layer.type in _LOOPS for graph in graphs for layer in graph.layers)
    model = stepper.read_model(path)
    inputs = recipe.arrays()
    _run(row, model, path, inputs, rounds)
    _compare(row, path, inputs)
    row.is_drawn = _is_drawn(model, inputs)
    row.is_stepped = _is_stepped(model, inputs)


def _run(row: Row, model: Model, path: Path, inputs: Mapping[str, Array], rounds: int) -> None:
    """Run both in turn; the first run, in which much is compiled, does not count."""
    request = others.openvino_run(path, inputs)
    runs = {OURS: lambda: list(stepper.run(model, inputs).values()), others.OPENVINO: request}
    given, expected = (run() for run in runs.values())
    seconds = timing.side_by_side(runs, rounds, time.process_time)
    row.ours, row.openvino = _milliseconds(seconds[OURS]), _milliseconds(seconds[others.OPENVINO])
    row.difference = max(map(difference, given, expected), default=0.0)


def difference(one: Array, other: Array) -> float:
    """Return how far two arrays are apart, as a part of the largest value above 1; infinity for shapes."""
    if one.shape != other.shape:
        return float("inf")
    if not one.size:
        return 0.0
    one, other = one.astype(np.float64), other.astype(np.float64)
    apart = np.abs(one - other)[~(np.isnan(one) & np.isnan(other)) & (one != other)]
    return float(apart.max() / max(1.0, float(np.nanmax(np.abs(other))))) if apart.size else 0.0


def _compare(row: Row, path: Path, inputs: Mapping[str, Array]) -> None:
    """Compare every operation with OpenVINO; as a ratio to reading the file and its first run.

    Both by the clock: a part of the comparison is done by another process.
    """
    begin = time.perf_counter()
    stepper.run(stepper.read_model(path), inputs)
    plain = time.perf_counter() - begin
    begin = time.perf_counter()
    model = stepper.read_model(path)
    compiled, arrays = stepper.compile_model(model), stepper.bind_inputs(model, dict(inputs))
    found = compare_with(Machine(compiled, arrays), open_reference(OPENVINO, compiled, arrays))
    row.comparing = round(time.perf_counter() - begin, 2)
    row.compared = round(row.comparing / plain, 1)
    row.has_mismatch = found.differs


def _is_drawn(model: Model, inputs: Mapping[str, Array]) -> bool:
    """Draw the model, and three iterations of its first loop if there is one; True if both are figures."""
    pictures = [stepper.draw(model, view="model")]
    loop = next((layer.name for layer in model.graph.layers if layer.type in _LOOPS), None)
    if loop is not None:
        pictures.append(stepper.draw(model, dict(inputs), view="unrolled", loop=loop, iterations="0:3"))
    return all(b"</svg>" in picture.written("svg") for picture in pictures)


def _is_stepped(model: Model, inputs: Mapping[str, Array]) -> bool:
    """Step from the start, from the middle and from the end, and back: True if each moment is the same, bit for bit."""
    debugger = Debugger(model, inputs)
    debugger.last()
    furthest = debugger.timeline.furthest
    for begin in sorted({0, furthest // 2, max(0, furthest - STEPS)}):
        debugger.goto_tick(begin)
        states = [state_of(debugger.timeline)]
        while len(states) <= STEPS and not debugger.machine.finished:
            debugger.step()
            states.append(state_of(debugger.timeline))
        for state in states[-2::-1]:
            debugger.reverse_step()
            if state_of(debugger.timeline) != state:
                return False
    return True


def _milliseconds(seconds: float) -> float:
    return float(f"{seconds * 1000:.3g}")


def main() -> None:
    """Measure the one that is named and print it."""
    name, folder = sys.argv[1:]
    print(json.dumps(asdict(measure(BY_NAME[name], Path(folder)))))


if __name__ == "__main__":
    main()
