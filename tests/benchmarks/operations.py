"""How fast kernels are, beside the plainest numpy call for the same: `python -m tests.benchmarks.operations [--json]`.

The most used operations on a small (1x256) and a medium (64x1024) tensor; convolutions beside OpenVINO on one thread;
and products of few rows with a transposed matrix. Aims: at most 1.5 times numpy's time on small tensors, 1.1 times on
medium ones, 3 times OpenVINO's. The plain call takes the same inputs and gives the same numbers, which is checked
first. Shapes, axes and bounds are constants, as in most models: a kernel may settle them once, the plain call reads
them every time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.ops import registry
from tests.benchmarks import others, timing
from tests.benchmarks.plain_calls import PLAIN, Plain
from tests.ops.recording import Case, one_operation_model

Shape = tuple[int, int]
SMALL, MEDIUM = (1, 256), (64, 1024)
ROWS = (1, 2, 8, 32, 128)
CONVOLUTIONS = (
    ((1, 16, 66, 66), (16, 16, 3, 3)),
    ((1, 64, 114, 114), (64, 64, 3, 3)),
    ((1, 8, 174, 302), (32, 8, 3, 39)),
    ((1, 8, 158, 158), (8, 8, 31, 31)),
    ((1, 1, 44_100), (32, 1, 512)),
    ((1, 1, 44_100), (8, 1, 4096)),
)
"""Shapes of data and filters: of networks for pictures, and of kernels as large as those of sound."""
KERNEL, NUMPY, OPENVINO = "kernel", "numpy", others.OPENVINO


@dataclass(frozen=True)
class Comparison:
    """Two ways to the same numbers, and where they stand in a table of many."""

    title: str
    candidates: dict[str, Callable[[], Any]]
    base: str = NUMPY
    repetitions: int = 1
    cell: tuple[str, str] | None = None

    def check(self) -> None:
        """Raise AssertionError where the candidates give different numbers."""
        given = [_outputs(run()) for run in self.candidates.values()]
        for outputs in given[1:]:
            for one, other in zip(given[0], outputs, strict=True):
                atol = 1e-5 * np.abs(other).max(initial=1)  # sums of many terms cancel
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=atol, err_msg=self.title)

    def measure(self, rounds: int) -> timing.Report:
        """The ratios, the numbers checked first."""
        self.check()
        runs = {name: partial(_repeated, run, self.repetitions) for name, run in self.candidates.items()}
        seconds = timing.side_by_side(runs, rounds)
        each = {name: value / self.repetitions for name, value in seconds.items()}
        found = timing.report(self.title, each, self.base)
        return found if self.cell is None else found | {"row": self.cell[0], "column": self.cell[1]}


def _outputs(result: Any) -> list[Array]:
    return [np.asarray(output) for output in (result if isinstance(result, (tuple, list)) else (result,))]


def _repeated(run: Callable[[], Any], times: int) -> None:
    for _ in repeat(None, times):
        run()


def comparison(plain: Plain, shape: Shape) -> Comparison:
    """One operation's kernel, bound as the engine does it, beside the plain call.

    All inputs but the first are constants where a kernel makes use of that: shapes, axes and bounds, as in most models.
    """
    kernel = registry.find(plain.type, plain.version)
    assert kernel is not None
    inputs = plain.inputs(*shape)
    settled = kernel.settle(plain.attributes, inputs[1:]) if len(inputs) > 1 else None
    run = partial(kernel.bind(plain.attributes), *inputs) if settled is None else partial(settled, inputs[0])
    candidates = {KERNEL: run, NUMPY: partial(plain.call, *inputs)}
    size = f"{shape[0]}x{shape[1]}"
    repetitions = 200 if shape == SMALL else 5
    return Comparison(f"{plain.type} {size}", candidates, NUMPY, repetitions, (plain.type, size))


def convolution(folder: Path, data: Sequence[int], filters: Sequence[int]) -> Comparison:
    """A convolution of stride 1 without pads."""
    random = np.random.default_rng(1)
    given = [random.standard_normal(shape).astype(np.float32) for shape in (data, filters)]
    attributes = dict.fromkeys(("strides", "dilations"), ",".join("1" for _ in data[2:]))
    attributes |= dict.fromkeys(("pads_begin", "pads_end"), ",".join("0" for _ in data[2:]))
    name = f"Convolution of {'x'.join(map(str, data))} with {'x'.join(map(str, filters))}"
    path = folder / f"{'_'.join(map(str, (*data, *filters)))}.xml"
    xml, weights = one_operation_model(Case("convolution", "Convolution", 1, given, attributes, constant={1}))
    path.write_bytes(xml)
    path.with_suffix(".bin").write_bytes(weights)
    kernel = registry.find("Convolution", 1)
    assert kernel is not None
    candidates = {
        KERNEL: partial(kernel.bind(attributes), *given),
        OPENVINO: others.openvino_run(path, {"x": given[0]}),
    }
    return Comparison(name, candidates, base=OPENVINO)


def product_of_rows(rows: int) -> Comparison:
    """A product of so many rows with a transposed constant of 1024x256, as torch and cells have their weights."""
    random = np.random.default_rng(1)
    x, weights = (random.standard_normal(shape).astype(np.float32) for shape in ((rows, 256), (1024, 256)))
    kernel = registry.find("MatMul", 1)
    assert kernel is not None
    settled = kernel.settle({"transpose_b": "true"}, [weights])
    assert settled is not None
    candidates = {KERNEL: partial(settled, x), NUMPY: lambda: x @ weights.T}
    return Comparison(f"MatMul {rows}x256 with a transposed 1024x256", candidates, repetitions=20)


def comparisons() -> Iterator[Comparison]:
    """Every operation on both sizes."""
    for plain in PLAIN:
        for shape in (SMALL, MEDIUM):
            yield comparison(plain, shape)


def print_table(reports: timing.Reports) -> None:
    """A line for each operation: the kernel's time as multiples of numpy's, small and medium."""
    ratios = {report["title"]: report["ratios"][KERNEL] for report in reports}
    print(f"{'':<24}{'small':>8}{'medium':>8}   kernel's time, numpy's is 1")
    for plain in PLAIN:
        small, medium = (ratios.pop(f"{plain.type} {a}x{b}") for a, b in (SMALL, MEDIUM))
        print(f"{plain.type:<24}{small:>8.2f}{medium:>8.2f}")
    bases = {report["title"]: report["base"] for report in reports}
    for title, ratio in ratios.items():
        print(f"{title}: {ratio:.2f} times {bases[title]}")


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    with np.errstate(all="ignore"):
        measured = [*comparisons(), *(product_of_rows(rows) for rows in ROWS)]
        if others.HAS_OPENVINO:
            measured += [convolution(folder, *shapes) for shapes in CONVOLUTIONS]
        return [entry.measure(rounds=2 if quick else 25) for entry in measured]


if __name__ == "__main__":
    timing.main(__doc__, reports, show=print_table)
