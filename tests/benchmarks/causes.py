"""How exact `why` is, and what it costs: against running the whole model with every element of every input changed.

    python -m tests.benchmarks.causes [FOLDER ...]

Targets are two elements of outputs of each sample, and of six models of each folder (`NAME.xml` with `NAME.npz`, whose
`in_0`, `in_1`, ... are the inputs), chosen by fixed seeds. Two ways of changing elements are asked: that by which `why`
itself tries them is neither of them.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.story.story_facts import Provenance
from stepper.errors import StepperError
from stepper.ir.model import Model

SAMPLES = Path(__file__).parents[2] / "sample_models"
LARGEST = 300
"""Elements of all inputs of a model that is asked."""
LONGEST = 60.0
"""Seconds that the truth of a target may take."""
OF_FOLDER = 6

Elements = frozenset[tuple[str, tuple[int, ...]]]
Inputs = dict[str, Any]
Change = Callable[[Any], Any]


class Target(NamedTuple):
    """An element of an output of a model on its inputs."""

    title: str
    model: Model
    inputs: Inputs
    output: str
    index: tuple[int, ...]


class Exactness(NamedTuple):
    """Of an answer: how much of what it names matters, and how much of what matters it names."""

    precision: float
    recall: float


class Measured(NamedTuple):
    """What was found of a target: with trials and by rules alone, against both ways of changing elements."""

    target: Target
    is_finite: bool
    matters: int
    tried: tuple[Exactness, Exactness]
    rules: tuple[Exactness, Exactness]
    kernel_runs: int
    model_runs: int
    seconds: float
    seconds_of_rules: float
    truth_runs: int


def changes(number: Any, way: int) -> list[Any]:
    """Other numbers for one."""
    if number.dtype == bool:
        return [~number]
    if number.dtype.kind != "f":
        return [number + 1, number - 1]
    if way:
        return [number * 2 + 1, number - 1, -number, number * number.dtype.type(1.001) + number.dtype.type(0.001)]
    return [number * number.dtype.type(a) + number.dtype.type(a - 1 or 0.5) for a in (1.5, -1.0, 0.0, 1.01)]


def truth(target: Target, way: int) -> tuple[Elements, int]:
    """The elements whose change alone changes the target, and how many runs that took."""
    found, runs = set(), 0
    base = stepper.run(target.model, target.inputs)[target.output][target.index]

    def differs(given: Inputs) -> bool:
        try:
            got = np.asarray(stepper.run(target.model, given, max_iterations=5000)[target.output])
        except StepperError:
            return True
        if got.ndim != len(target.index) or any(map(int.__ge__, target.index, got.shape)):
            return True
        one = got[target.index]
        return not (one == base or (one != one and base != base))

    for name, value in target.inputs.items():
        for index in np.ndindex(np.shape(value)):
            with np.errstate(all="ignore"):
                numbers = changes(np.asarray(value)[index], way)
            for number in numbers:
                other = np.array(value)
                other[index] = number
                runs += 1
                if differs({**target.inputs, name: other}):
                    found.add((name, tuple(index)))
                    break
    return frozenset(found), runs


def named(found: Provenance) -> Elements:
    """The elements of inputs that an answer names."""
    return frozenset((one.name, at.index) for one in found.sources if one.kind == "input" for at in one.elements)


def exactness(said: Elements, matters: Elements) -> Exactness:
    """Precision and recall."""
    both = len(said & matters)
    return Exactness(both / len(said) if said else 1.0, both / len(matters) if matters else 1.0)


def measured(target: Target) -> Measured:
    """Ask, and hold against the truth."""
    debugger = Debugger(target.model, target.inputs)
    debugger.last()
    index = f"[{','.join(map(str, target.index))}]" if target.index else ""
    question, times, answers = f"`{target.output}`{index}", [], []
    for tries in (True, False):
        began = time.perf_counter()
        answers.append(debugger.why(question, tries=tries))
        times.append(time.perf_counter() - began)
    truths = [truth(target, way) for way in (0, 1)]
    tried, rules = (tuple(exactness(named(one), matters) for matters, _ in truths) for one in answers)
    value = np.asarray(stepper.run(target.model, target.inputs)[target.output])
    one = value[target.index]
    return Measured(
        target,
        bool(np.isfinite(one)) if value.dtype.kind == "f" else True,
        len(truths[0][0]),
        (tried[0], tried[1]),
        (rules[0], rules[1]),
        answers[0].kernel_runs,
        answers[0].trials.runs,
        times[0],
        times[1],
        truths[0][1],
    )


def given(path: Path, model: Model) -> Inputs:
    """The inputs of a model, by name."""
    beside = path.with_name("inputs.npz")
    if beside.exists():
        return dict(np.load(beside))
    arrays = np.load(path.with_suffix(".npz"))
    return {one.name: arrays[f"in_{k}"] for k, one in enumerate(model.graph.parameters)}


def targets(paths: list[Path]) -> Iterator[Target]:
    """Two elements of the outputs of each model with a loop or an If, small enough to ask the truth."""
    for path in paths:
        try:
            model = stepper.read_model(path)
            inputs = given(path, model)
            size = sum(np.size(value) for value in inputs.values())
            if not 0 < size <= LARGEST or not any(one.is_loop or one.type == "If" for one in model.graph.layers):
                continue
            began = time.perf_counter()
            outputs = stepper.run(model, inputs)
            if (time.perf_counter() - began) * size * 6 > LONGEST:
                continue
        except (StepperError, OSError, KeyError):
            continue
        choice = random.Random(3)
        names = [name for name in outputs if np.size(outputs[name]) and np.asarray(outputs[name]).dtype.kind in "fiub"]
        for name in (names * 2)[:2]:
            shape = np.shape(outputs[name])
            place = choice.randrange(int(np.prod(shape)))
            index = tuple(int(at) for at in np.unravel_index(place, shape)) if shape else ()
            title = path.parent.name if path.name == "model.xml" else path.stem
            yield Target(title, model, inputs, name, index)


def chosen(folders: list[Path]) -> list[Path]:
    """The samples, and some models of each folder."""
    found, choice = sorted(SAMPLES.glob("*/model.xml")), random.Random(7)
    for folder in folders:
        paths = sorted(path for path in folder.glob("*.xml") if path.with_suffix(".npz").exists())
        choice.shuffle(paths)
        found += paths[:OF_FOLDER]
    return found


def row(one: Measured) -> str:
    """A line of the table."""
    size = sum(np.size(value) for value in one.target.inputs.values())
    pairs = (one.tried[0], one.tried[1], one.rules[0])
    shown = " | ".join(f"{pair.precision:.3f} / {pair.recall:.3f}" for pair in pairs)
    element = f"{one.target.output}{list(one.target.index)}{'' if one.is_finite else ' (not finite)'}"
    runs = f"{one.kernel_runs} + {one.model_runs} | {one.seconds * 1e3:.0f} ms | {one.seconds_of_rules * 1e3:.0f} ms"
    return f"| {one.target.title} | {element} | {one.matters} of {size} | {shown} | {runs} | {one.truth_runs} |"


def means(rows: list[Measured], which: Callable[[Measured], Exactness]) -> str:
    """The mean precision and recall."""
    pairs = [which(one) for one in rows]
    return f"{np.mean([one.precision for one in pairs]):.3f} / {np.mean([one.recall for one in pairs]):.3f}"


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_args()
    heads = ("model", "target", "matter", "why: precision / recall", "other changes", "rules alone")
    heads += ("kernel + model runs", "time", "time of rules", "runs of the truth")
    print(f"| {' | '.join(heads)} |")
    print(f"|{'---|' * len(heads)}")
    rows = []
    for target in targets(chosen(options.folders)):
        rows.append(measured(target))
        print(row(rows[-1]), flush=True)
    finite = [one for one in rows if one.is_finite]
    models = len({one.target.title for one in rows})
    print(f"\n{len(rows)} targets of {models} models; of the {len(finite)} finite ones the mean precision / recall:")
    ways = (means(finite, lambda one: one.tried[0]), means(finite, lambda one: one.tried[1]))
    print(f"why {ways[0]}, against other changes {ways[1]}, rules alone {means(finite, lambda one: one.rules[0])}")


if __name__ == "__main__":
    main()
