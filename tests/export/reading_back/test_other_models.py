"""The figures of any models, by hand: STEPPER_FIGURES=FOLDER[:FOLDER...] names folders of .xml, with an .npz beside.

The .npz has `in_<k>` (k-th Parameter) and `out_<k>` (k-th Result); NAME.trace.npz, where there is one, what OpenVINO
computed: `it<i>_param<k>` and `it<i>_result<k>`, the k-th Parameter and Result of the first loop's body in iteration i.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.export.exporter import draw
from stepper.ir.model import Model
from tests.conformance.agreement import disagreement
from tests.export.reading_back import geometry, static_facts, truth
from tests.export.reading_back.cases import Case, activation_name, loop_names
from tests.export.reading_back.drawing import Drawing
from tests.export.reading_back.run_facts import RunFigure

FOLDERS = [Path(word) for word in os.environ.get("STEPPER_FIGURES", "").split(os.pathsep) if word]
PATHS = sorted(path for folder in FOLDERS for path in folder.rglob("*.xml"))


def inputs_of(path: Path) -> dict[str | int, np.ndarray] | None:
    for beside in (path.with_suffix(".npz"), path.with_name("inputs.npz")):
        if beside.exists():
            with np.load(beside) as arrays:
                numbered = {int(key[3:]): arrays[key] for key in arrays.files if key[:3] == "in_" and key[3:].isdigit()}
                return {**numbered} if numbered or beside.name != "inputs.npz" else {**arrays}
    return None


@pytest.mark.skipif(not PATHS, reason="STEPPER_FIGURES names no folder of models")
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_figures_of_other_models(path: Path) -> None:
    try:
        model = stepper.read_model(path)
    except stepper.StepperError as error:
        pytest.skip(str(error))
    one = Case(path, inputs_of(path) or {}, [])
    try:
        assert one.file.graph.layers
    except (KeyError, ValueError):  # no file of OpenVINO's form
        drawn(model)
        return
    found = dict(still(one, model))
    if inputs_of(path) is not None:
        found |= dict(runs(one, model))
    assert not {view: faults[:4] for view, faults in found.items() if faults}


def drawn(model: Model) -> None:
    """Draw a model that only the product can read, without a fault but those it names."""
    with suppress(stepper.StepperError):
        draw(model, view="model", depth=9).text("svg")


def still(one: Case, model: Model) -> Iterator[tuple[str, list[str]]]:
    """The views without a run, and what is wrong in each."""
    file = one.file
    drawing = Drawing(draw(model, view="model", depth=2).text("svg"))
    yield "model", [*geometry.faults(drawing), *static_facts.faults(drawing, file)]
    for ids, loop in loop_names(file):
        try:
            rolled = Drawing(draw(model, view="rolled", loop=loop, depth=2).text("svg"))
        except stepper.UsageError:  # two loops have that name
            continue
        yield f"rolled {loop}", [*geometry.faults(rolled), *static_facts.rolled_faults(rolled, file, ids)]
        try:
            ports = Drawing(draw(model, view="ports", loop=loop).text("svg"))
        except stepper.ModelError as error:  # what its entries are cannot be said
            assert "no port map that could be drawn" in str(error)
            continue
        yield f"ports {loop}", [*geometry.faults(ports), *static_facts.port_map_faults(ports, file, ids)]


def runs(one: Case, model: Model) -> Iterator[tuple[str, list[str]]]:
    """The first runs of each loop, and what is wrong in their figures."""
    file = one.file
    try:
        run = truth.run(model, one.inputs)
    except (stepper.StepperError, ValueError):
        return
    with suppress(stepper.StepperError, ValueError):
        yield "trace", list(trace_faults(one, truth.run(model, one.inputs, "openvino")))
    for ids, found in run.loops.items():
        name = activation_name(file, ids, found[0].around)
        try:
            made = draw(model, one.inputs, view="unrolled", loop=name, values="full")
        except stepper.StepperError:
            continue
        drawing = Drawing(made.text("svg"))
        failed = bool(run.error) and found[0] is found[-1]
        figure = RunFigure(drawing, file, ids, found[0], failed)
        yield f"run {name}", [*geometry.faults(drawing), *figure.faults(), *figure.json_faults(made.text("json"))]


def trace_faults(one: Case, run: truth.Run) -> Iterator[str]:
    """Where the values of the first loop are not those that OpenVINO recorded."""
    beside = one.path.with_suffix(".trace.npz")
    if not beside.exists() or not run.loops:
        return
    ids, found = next(iter(run.loops.items()))
    layer = next(layer for path, _, layer in one.file.loops() if path == ids)
    graph = layer.bodies[0].graph
    with np.load(beside) as arrays:
        for number, values in enumerate(found[0].values):
            for word, layers in (("param", graph.of("Parameter")), ("result", graph.of("Result"))):
                for place, end in enumerate(layers):
                    key = f"it{number}_{word}{place}"
                    source = (end.id, 0) if word == "param" else end.sources[0]
                    value = None if source is None else values.get(source)
                    if key in arrays.files and value is not None:
                        with np.errstate(over="ignore"):  # it was recorded in the type that the body declares
                            said = disagreement(value.astype(arrays[key].dtype), arrays[key])
                        if said is not None:
                            yield f"{key}: {said}"
