"""Pages, steps, zooms, stories and figures of two runs say what the run did: read back and held against its values."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.export.exporter import draw, picture
from stepper.export.figures.content import FigureContent
from stepper.export.options import FigureView, ValueDetail
from stepper.export.picture import FigureRequest
from stepper.export.steps.stepping import steps_of
from stepper.export.writers.svg import svg
from stepper.ir.model import Model
from tests.export.reading_back import geometry, truth
from tests.export.reading_back.cases import Case, case
from tests.export.reading_back.drawing import Drawing, Item, Words
from tests.export.reading_back.model_file import ModelFile
from tests.export.reading_back.run_facts import RunFigure
from tests.export.steps.pages import page_data

NAMES = ("reverse", "growing_tensor", "nested_loop", "parts_of_two")


def first_loop(one: Case) -> tuple[tuple[int, ...], str]:
    """The path and the name of the first loop at the top."""
    layer = next(layer for ids, _, layer in one.file.loops() if layer.is_loop and len(ids) == 1)
    return (layer.id,), layer.name


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


@pytest.mark.parametrize("name", NAMES)
def test_zooms_are_parts_of_the_whole_figure(name: str) -> None:
    one = case(name)
    model, (ids, loop) = stepper.read_model(one.path), first_loop(one)
    whole = Drawing(draw(model, view="rolled", loop=loop).text("svg"))
    inside = [(key, item) for key, item in layers_of(whole, f"{ids[0]}.") if len(item.layers) == 1]
    layers = one.file.loops()
    graph = next(layer for path, _, layer in layers if path == ids).bodies[0].graph
    operations = [key for key, _ in inside if graph.layers[key].type not in ("Parameter", "Result", "Constant")]
    around = graph.layers[operations[len(operations) // 2]]
    zoom = Drawing(draw(model, view="rolled", loop=loop, around=f"{loop}::{around.name}", hops=1).text("svg"))
    assert not [*geometry.faults(zoom), *part_faults(zoom, whole)]
    centre = f"{ids[0]}.n{around.id}"
    near = {
        end
        for join in whole.joins
        if join.kind == "data" and centre in (join.source, join.target)
        for end in (join.source, join.target)
    }
    assert {*near, centre} <= set(zoom.boxes)
    results = [key for key, _ in inside if graph.layers[key].type == "Result"]
    heads = downstream(whole, centre)
    end = next((key for key in results if f"{ids[0]}.n{key}" in heads), None)
    if end is None:
        return
    ends = f"{loop}::{around.name}", f"{loop}::{graph.layers[end].name}"
    ways = Drawing(draw(model, view="rolled", loop=loop, ways=ends).text("svg"))
    assert not [*geometry.faults(ways), *part_faults(ways, whole)]
    between = {id for id in heads if f"{ids[0]}.n{end}" in downstream(whole, id)}
    assert between <= set(ways.boxes)


@pytest.mark.parametrize("name", NAMES)
def test_links_of_a_story_have_the_values_of_the_run(name: str) -> None:
    one = case(name)
    model, (ids, _) = stepper.read_model(one.path), first_loop(one)
    activation, found, count = truth.run(model, one.inputs).loops[ids][0], [], 0
    result = next(layer for layer in one.file.graph.layers.values() if layer.type == "Result")
    story = json.loads(draw(model, one.inputs, why=result.name).text("json"))
    for link in story["links"]:
        place, element = link["location"], link["element"]
        path, operation = place["path"], place["operation"]
        if len(path) != 1 or path[0]["layer"]["id"] != ids[0] or operation is None or element is None:
            continue
        values = activation.values[path[0]["iteration"]]
        value = values.get((operation["id"], place["output"] or 0))
        if value is None or value.dtype.kind not in "fiub":
            continue
        count += 1
        shown = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}.get(str(link["value"]), link["value"])
        if not np.array_equal(value[tuple(element)], value.dtype.type(shown), equal_nan=value.dtype.kind == "f"):
            found.append(f"{operation['name']}{element}@{path[0]['iteration']} is {value[tuple(element)]}: {shown}")
    assert not found
    assert count or name in ("nested_loop", "parts_of_two"), "no link was held against a value"


@pytest.mark.parametrize("name", ["for_loop", "reverse", "onnx_moving_average"])
def test_two_runs_differ_where_their_values_do(name: str, tmp_path: Path) -> None:
    one = case(name)
    model, (ids, loop) = stepper.read_model(one.path), first_loop(one)
    other = changed(one, tmp_path)
    ours, theirs = (truth.run(found, one.inputs).loops[ids][0] for found in (model, stepper.read_model(other)))
    drawing = Drawing(draw(model, one.inputs, view="rolled", loop=loop, diff=other, depth=1).text("svg"))
    held = 0
    for key, item in layers_of(drawing, f"{ids[0]}."):
        if len(item.layers) != 1 or not any("differs" in text or "same" in text for text in item.lines[1:]):
            continue
        pairs = [(a.get((key, 0)), b.get((key, 0))) for a, b in zip(ours.values, theirs.values, strict=False)]
        alike = [np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs if a is not None]
        if not alike:
            continue
        held += 1
        said = next(text for text in item.lines if "differs" in text or "same" in text)
        wanted = f"differs in {alike.count(False)} of" if False in alike else "the same bits"
        assert said.startswith(wanted), f"{item.id} differs in {alike.count(False)} of {len(alike)}: {item.lines}"
    assert held > 2


# --- what is read -----------------------------------------------------------------------------------------------------


def machine_of(model: Model, one: Case) -> Any:
    return lambda: stepper.Machine(stepper.compile_model(model), stepper.bind_inputs(model, one.inputs))


def body_of(page: str) -> Drawing:
    """The body of a page: its last drawing."""
    text = re.findall(r'<svg class="stepper".*?</svg>', page, re.DOTALL)[-1]
    text = text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return Drawing(re.sub(r' id="', ' id="page.', text))


def words(kind: str, text: str) -> Words:
    return Words(text, kind, 0, 0, 0, False, "start", False)


def layers_of(drawing: Drawing, prefix: str) -> Iterator[tuple[int, Item]]:
    """The boxes of a body with the id of their layer."""
    for id, item in drawing.boxes.items():
        found = re.fullmatch(rf"{re.escape(prefix)}n(\d+)", id)
        if found:
            yield int(found[1]), item


def part_faults(part: Drawing, whole: Drawing) -> Iterator[str]:
    """Where a part says something else than the whole: boxes and wires are those of the whole, but for what was cut."""
    own = {id for id in part.boxes if re.search(r"n\d+$", id)}
    for id in own:
        if id not in whole.boxes:
            if re.sub(r"n(\d+)$", r"c\1", id) not in whole.frames:  # what is open there may be closed here
                yield f"{id} is not in the whole"
        elif [line for line in part.boxes[id].lines if "…" not in line] != [
            line for line in whole.boxes[id].lines if "…" not in line
        ]:
            yield f"{id} says {part.boxes[id].lines}, in the whole {whole.boxes[id].lines}"
    own &= set(whole.boxes)
    joins = {(one.source, one.target) for one in whole.joins}
    for join in part.joins:
        if {join.source, join.target} <= own and (join.source, join.target) not in joins:
            yield f"the wire from {join.source} to {join.target} is not in the whole"
    for one in whole.joins:
        if {one.source, one.target} <= own and one not in part.joins:
            yield f"no wire from {one.source} to {one.target}"


def downstream(drawing: Drawing, begin: str) -> set[str]:
    found, waiting = {begin}, [begin]
    after: dict[str, list[str]] = {}
    for join in drawing.joins:
        if join.kind == "data":
            after.setdefault(join.source, []).append(join.target)
    while waiting:
        for id in after.get(waiting.pop(), ()):
            if id not in found:
                found.add(id)
                waiting.append(id)
    return found


def changed(one: Case, folder: Path) -> Path:
    """A copy of a model in which one number of a body is another one."""
    for suffix in (".xml", ".bin"):
        shutil.copy(one.path.with_suffix(suffix), folder / f"model{suffix}")
    layer, value = next(iter(numbers_of(one.file)))
    weights = bytearray((folder / "model.bin").read_bytes())
    begin = int(layer["offset"])
    weights[begin : begin + value.nbytes] = (value + value.dtype.type(1)).tobytes()
    (folder / "model.bin").write_bytes(weights)
    return folder / "model.xml"


def numbers_of(file: ModelFile) -> Iterator[tuple[Mapping[str, str], np.ndarray]]:
    """The constants of bodies that are an operand of arithmetic."""
    for _, _, loop in file.loops():
        for body in loop.bodies:
            for layer in body.graph.layers.values():
                if layer.type in ("Add", "Multiply", "Subtract"):
                    for source in layer.sources:
                        found = None if source is None else body.graph.layers[source[0]]
                        value = None if found is None or found.type != "Constant" else file.constant(found)
                        if found is not None and value is not None:
                            yield found.data, value
