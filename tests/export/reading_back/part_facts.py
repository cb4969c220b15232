"""Zooms, stories and figures of two runs, read back: parts of a whole, values of a run, where two runs differ."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

import stepper
from stepper.export.exporter import draw
from stepper.ir.model import Model
from tests.export.reading_back import geometry, truth
from tests.export.reading_back.cases import Case
from tests.export.reading_back.drawing import Drawing, Item
from tests.export.reading_back.model_file import ModelFile


def first_loop(one: Case) -> tuple[tuple[int, ...], str]:
    """The path and the name of the first loop at the top."""
    layer = next(layer for ids, _, layer in one.file.loops() if layer.is_loop and len(ids) == 1)
    return (layer.id,), layer.name


def zoom_faults(one: Case, model: Model) -> Iterator[str]:
    """What is wrong in the neighbourhood of an operation of the first loop, and in the ways from it to a Result."""
    ids, loop = first_loop(one)
    whole = Drawing(draw(model, view="rolled", loop=loop).text("svg"))
    inside = [(key, item) for key, item in layers_of(whole, f"{ids[0]}.") if len(item.layers) == 1]
    graph = next(layer for path, _, layer in one.file.loops() if path == ids).bodies[0].graph
    operations = [key for key, _ in inside if graph.layers[key].type not in ("Parameter", "Result", "Constant")]
    if not operations:
        return
    around = graph.layers[operations[len(operations) // 2]]
    zoom = Drawing(draw(model, view="rolled", loop=loop, around=f"{loop}::{around.name}", hops=1).text("svg"))
    yield from (*geometry.faults(zoom), *part_faults(zoom, whole))
    centre = f"{ids[0]}.n{around.id}"
    near = {
        end
        for join in whole.joins
        if join.kind == "data" and centre in (join.source, join.target)
        for end in (join.source, join.target)
    }
    shown = {*zoom.boxes, *zoom.frames, *(re.sub(r"n(\d+)$", r"c\1", id) for id in zoom.boxes)}  # open or closed
    yield from (f"{id} is beside {centre}" for id in {*near, centre} - shown)
    heads = downstream(whole, centre)
    results = [key for key, _ in inside if graph.layers[key].type == "Result"]
    end = next((key for key in results if f"{ids[0]}.n{key}" in heads), None)
    if end is None:
        return
    ends = f"{loop}::{around.name}", f"{loop}::{graph.layers[end].name}"
    ways = Drawing(draw(model, view="rolled", loop=loop, ways=ends).text("svg"))
    yield from (*geometry.faults(ways), *part_faults(ways, whole))
    between = {id for id in heads if f"{ids[0]}.n{end}" in downstream(whole, id)}
    shown = {*ways.boxes, *ways.frames, *(re.sub(r"n(\d+)$", r"c\1", id) for id in ways.boxes)}
    yield from (f"{id} is on a way from {centre}" for id in between - shown)


def story_faults(one: Case, model: Model, run: truth.Run) -> Iterator[str | None]:
    """Of each link of the story of a model's first Result that has a value of the first loop: None, or its fault.

    A Result without elements has no story.
    """
    ids, _ = first_loop(one)
    activation = run.loops[ids][0]
    ends = [layer for layer in one.file.graph.layers.values() if layer.type == "Result"]
    result = next((end for end, value in zip(ends, one.outputs, strict=True) if value.size), None)
    if result is None:
        return
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
        shown = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}.get(str(link["value"]), link["value"])
        is_same = np.array_equal(value[tuple(element)], value.dtype.type(shown), equal_nan=value.dtype.kind == "f")
        told = f"{operation['name']}{element}@{path[0]['iteration']} is {value[tuple(element)]}: {shown}"
        yield None if is_same else told


def difference_faults(one: Case, model: Model, folder: Path) -> Iterator[str | None]:
    """Of each box of the first loop beside a run with another number in it: None, or what is wrongly said to differ."""
    ids, loop = first_loop(one)
    other = changed(one, folder)
    if other is None:
        return
    try:
        ours, theirs = (truth.run(found, one.inputs).loops[ids][0] for found in (model, stepper.read_model(other)))
    except ValueError:  # another number makes the run too long to be held
        return
    drawing = Drawing(draw(model, one.inputs, view="rolled", loop=loop, diff=other, depth=1).text("svg"))
    for key, item in layers_of(drawing, f"{ids[0]}."):
        if len(item.layers) != 1 or not any("differs" in text or "same" in text for text in item.lines[1:]):
            continue
        pairs = [(a.get((key, 0)), b.get((key, 0))) for a, b in zip(ours.values, theirs.values, strict=False)]
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        if not both:
            continue
        bits = sum(not np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in both)
        far = sum(not _is_near(a, b) for a, b in both)
        said = next(text for text in item.lines if "differs" in text or "same" in text)
        yield (
            None if _is_true(said, bits, far, len(both)) else f"{bits} of {len(both)} differ, {far} much: {item.lines}"
        )


def _is_near(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two values differ so little that a tolerance may pass over it."""
    if a.shape != b.shape or a.dtype.kind != "f":
        return np.array_equal(a, b)
    return bool(np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-2, atol=1e-2, equal_nan=True))


def _is_true(said: str, bits: int, far: int, count: int) -> bool:
    """Whether words hold for values of which some differ in bits, and some by far more than any tolerance."""
    if said.startswith("the same bits"):
        return not bits
    if "same" in said:
        return bits > 0 and not far
    number = re.match(r"differs in (\d+) of", said)
    return (far <= int(number[1]) <= bits) if number else said == "differs" and count == 1 and bits == 1


# --- what is read -----------------------------------------------------------------------------------------------------


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


def changed(one: Case, folder: Path) -> Path | None:
    """A copy of a model in which one number of a body is another one; None where its bodies have none."""
    layer, value = next(iter(numbers_of(one.file)), (None, None))
    if layer is None or value is None:
        return None
    for suffix in (".xml", ".bin"):
        shutil.copy(one.path.with_suffix(suffix), folder / f"model{suffix}")
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
