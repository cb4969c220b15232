"""Pages, steps, zooms, stories and figures of two runs say what the run did: read back and held against its values."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stepper
from stepper.export.exporter import picture
from stepper.export.options import FigureView, ValueDetail
from stepper.export.picture import FigureContent, FigureRequest
from stepper.export.stepping import steps_of
from stepper.export.writers.drawings import svg
from stepper.ir.model import Model
from tests.export.reading_back import truth
from tests.export.reading_back.cases import MANY, Case, case
from tests.export.reading_back.drawing import Drawing, Words
from tests.export.reading_back.part_facts import (
    difference_faults,
    first_loop,
    layers_of,
    story_faults,
    zoom_faults,
)
from tests.export.reading_back.run_facts import RunFigure
from tests.export.steps.pages import page_data

NAMES = ("reverse", "growing_tensor", "nested_loop", "parts_of_two")
HELD = ("for_loop", "reverse", "onnx_moving_average")
"""Cases that are known to have links with values of the loop, and boxes that differ."""


@pytest.mark.parametrize("name", NAMES)
def test_boxes_of_a_page_have_the_values_of_each_iteration(name: str) -> None:
    one = case(name)
    model, (ids, loop) = stepper.read_model(one.path), first_loop(one)
    activation = truth.run(model, one.inputs).loops[ids][0]
    content = FigureContent(depth=0, values=ValueDetail.FULL)
    made = picture(
        model, machine_of(model, one), FigureRequest(FigureView.UNROLLED, loop, iterations="", content=content)
    )
    page = made.text("html")
    data, drawing = page_data(page), body_of(page)
    assert data["ranges"] == [[0, activation.count - 1]] and data["last"] == activation.count - 1
    figure, found = RunFigure(drawing, one.file, ids, activation), []
    for number in range(activation.count):
        for key, item in layers_of(drawing, f"{ids[0]}."):
            state = data["boxes"][item.id]
            lines = state["states"][state["at"][number] if "at" in state else 0]["lines"]
            box = replace(item, words=[words(kind, text) for kind, text in lines if text])
            layer = figure.body.graph.layers[key]
            found += [f"{number}, {item.id}: {fault}" for fault in
                      figure._box(number, layer, box, activation.values[number])]  # fmt: skip
    assert not found


@pytest.mark.parametrize("name", NAMES)
def test_steps_have_what_is_known_by_then(name: str) -> None:
    one = case(name)
    model, (ids, loop) = stepper.read_model(one.path), first_loop(one)
    activation = truth.run(model, one.inputs).loops[ids][0]
    for view in (FigureView.UNROLLED, FigureView.ROLLED):
        content = FigureContent(depth=0, values=ValueDetail.FULL)
        request = FigureRequest(view, loop, iterations="0:3,-1", content=content, in_steps=True)
        steps, found = steps_of(picture(model, machine_of(model, one), request)), []
        for index, step in enumerate(steps.steps):
            drawing = Drawing(svg(steps.at(index)))
            figure = RunFigure(drawing, one.file, ids, activation)
            if view is FigureView.UNROLLED:
                done = [one.begin for one in steps.steps[: index + 1] if not one.is_gap]
                assert figure.shown == done
                faults = [fault for number in done for fault in figure._iteration(number)]
            else:
                faults = [
                    fault
                    for key, item in layers_of(drawing, f"{ids[0]}.")
                    for fault in figure._box(
                        step.begin, figure.body.graph.layers[key], item, activation.values[step.begin]
                    )
                ]
            found += [f"{view}, {step.name}: {fault}" for fault in faults]
        assert not found


@pytest.mark.parametrize("name", MANY)
def test_zooms_are_parts_of_the_whole_figure(name: str) -> None:
    one = case(name)
    assert not list(zoom_faults(one, stepper.read_model(one.path)))


@pytest.mark.parametrize("name", MANY)
def test_links_of_a_story_have_the_values_of_the_run(name: str) -> None:
    one = case(name)
    model = stepper.read_model(one.path)
    found = list(story_faults(one, model, truth.run(model, one.inputs)))
    assert not [fault for fault in found if fault]
    assert found or name not in HELD, "no link was held against a value"


@pytest.mark.parametrize("name", MANY)
def test_two_runs_differ_where_their_values_do(name: str, tmp_path: Path) -> None:
    one = case(name)
    found = list(difference_faults(one, stepper.read_model(one.path), tmp_path))
    assert not [fault for fault in found if fault]
    assert len(found) > 2 or name not in HELD


# --- what is read -----------------------------------------------------------------------------------------------------


def machine_of(model: Model, one: Case) -> Any:
    return lambda: stepper.Machine(stepper.compile_model(model), stepper.bind_inputs(model, one.inputs))


def body_of(page: str) -> Drawing:
    """The body of a page: its last drawing."""
    text = re.findall(r'<svg class="stepper".*?</svg>', page, re.DOTALL)[-1]
    text = text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return Drawing(re.sub(r' id="', ' id="page.', text))


def words(kind: str, text: str) -> Words:
    return Words(text, kind, 0, 0, 0, False, "start")
