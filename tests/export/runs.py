"""Traces and figures of the sample models and of small loops, as the tests of the export want them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

import stepper
from stepper.engine.machine import Machine
from stepper.export.exporter import draw
from stepper.export.figure_views import unrolled_figure
from stepper.export.figures.figure import Figure
from stepper.export.figures.loop_trace import LoopTrace, Tracer, find_loop, split_activation
from stepper.export.options import ValueDetail
from stepper.export.picture import FigureContent, Picture
from stepper.ir.model import Model
from stepper.recording.origin import Iterations

SAMPLES = Path(__file__).parents[2] / "sample_models"
NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/model.xml"))


@cache
def sample(name: str) -> Model:
    return stepper.read_model(SAMPLES / name / "model.xml")


def machine(name: str, model: Model) -> Machine:
    with np.load(SAMPLES / name / "inputs.npz") as inputs:
        return stepper.Machine(stepper.compile_model(model), stepper.bind_inputs(model, dict(inputs)))


@cache
def trace(
    name: str, iterations: str | None = None, values: ValueDetail = ValueDetail.NONE, loop: str | None = None
) -> LoopTrace:
    model = sample(name)
    plain, around = split_activation(loop)
    wanted = None if iterations is None else Iterations.parse(iterations)
    return Tracer(machine(name, model), find_loop(model, plain), around, wanted, values).trace()


def unrolled(
    name: str, iterations: str | None = None, content: FigureContent | None = None, loop: str | None = None
) -> Figure:
    chosen = content or FigureContent(depth=0)
    return unrolled_figure(trace(name, iterations, chosen.values, loop), chosen)


def picture(name: str, view: str, **options: object) -> Picture:
    with np.load(SAMPLES / name / "inputs.npz") as arrays:
        inputs = dict(arrays) if view == "unrolled" else None
    return draw(sample(name), inputs, view=view, **options)  # type: ignore[arg-type]
