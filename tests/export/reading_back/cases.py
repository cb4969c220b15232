"""Models with inputs whose figures are read back: samples, own models, recorded random loops."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tests.export.reading_back.model_file import ModelFile, read
from tests.export.reading_back.own_models import MAKERS
from tests.export.runs import NAMES, SAMPLES

RECORDED = Path(__file__).parents[2] / "conformance" / "recorded" / "random_loops.zip"
SEEDS = (0, 1, 4, 9, 13, 21, 34, 55, 68, 89, 126, 144)


@dataclass(frozen=True)
class Case:
    """A model, its inputs by name or position, and its outputs as formulas, OpenVINO or another tool computed them."""

    path: Path
    inputs: dict[str | int, np.ndarray]
    outputs: list[np.ndarray]

    @property
    def file(self) -> ModelFile:
        return read(self.path)


def loop_names(model: ModelFile) -> Iterator[tuple[tuple[int, ...], str]]:
    """The loops and Ifs of a model: ids from the outermost on, and the address of each."""
    for ids, names in _names(model).items():
        yield ids, "::".join(name for name, _ in names)


def activation_name(model: ModelFile, ids: tuple[int, ...], around: tuple[int, ...]) -> str:
    """What --loop calls the run of a loop in iterations of those around it."""
    numbers = iter(around)
    names = _names(model)[ids]
    outer = (f"{name}@{next(numbers)}" if is_loop else name for name, is_loop in names[:-1])
    return "::".join((*outer, names[-1][0]))


def _names(model: ModelFile) -> dict[tuple[int, ...], tuple[tuple[str, bool], ...]]:
    found: dict[tuple[int, ...], tuple[tuple[str, bool], ...]] = {}
    for ids, _, layer in model.loops():
        found[ids] = (*found.get(ids[:-1], ()), (layer.name, layer.is_loop))
    return found


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="read-back-")


@cache
def case(name: str) -> Case:
    """A sample by its name, an own model, or a recorded one as `seed 4`."""
    if name in NAMES:
        with np.load(SAMPLES / name / "inputs.npz") as inputs, np.load(SAMPLES / name / "expected.npz") as expected:
            return Case(SAMPLES / name / "model.xml", {**inputs}, [expected[key] for key in expected.files])
    folder = Path(_folder().name) / name.replace(" ", "_")
    folder.mkdir()
    if name in MAKERS:
        made, outputs = MAKERS[name](folder)
        return Case(folder / "model.xml", {**made}, outputs)
    seed = name.removeprefix("seed ")
    with zipfile.ZipFile(RECORDED) as archive:
        for suffix in (".xml", ".bin", ".npz"):
            archive.extract(f"{seed}{suffix}", folder)
    with np.load(folder / f"{seed}.npz") as arrays:
        found = [[arrays[f"{word}_{k}"] for k in range(sum(key.startswith(f"{word}_") for key in arrays.files))]
                 for word in ("in", "out")]  # fmt: skip
    return Case(folder / f"{seed}.xml", dict(enumerate(found[0])), found[1])


def _recorded() -> list[int]:
    """The numbers of all random loops that are recorded."""
    with zipfile.ZipFile(RECORDED) as archive:
        return sorted(int(name.removesuffix(".xml")) for name in archive.namelist() if name.endswith(".xml"))


ALL = (*NAMES, *MAKERS, *(f"seed {seed}" for seed in SEEDS))

MANY = (*ALL, *(f"seed {seed}" for seed in _recorded()[3::16] if seed not in SEEDS))
"""Some seventy cases, for figures of which a few show little."""
