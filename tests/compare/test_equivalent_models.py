"""Models that compute the same agree, whatever their layers are called, numbered and ordered; faults stay visible."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

import stepper
from stepper.compare.comparison import RunComparison, compare_models
from tests.compare.twins import X, countdown, nested, recurrence
from tests.models import Graph
from tests.tables import each_row

INPUTS = {recurrence: X, countdown: np.float32([100]), nested: np.full((2, 4), 0.7, np.float32)}


def disguised(path: Path, seed: int, *, parameters: bool = True) -> None:
    """Give every layer of a file another name, id and place; what it computes stays the same."""
    tree = etree.parse(path)
    _disguise(tree.getroot(), random.Random(seed), parameters=parameters)
    tree.write(path)


def _disguise(graph: Any, draw: random.Random, *, parameters: bool, body: bool = False) -> dict[str, str]:
    layers = graph.find("layers")
    found = list(layers)
    numbers = draw.sample(range(100, 1000), len(found))
    ids = {layer.get("id"): str(number) for layer, number in zip(found, numbers, strict=True)}
    for layer in found:
        layer.set("id", ids[layer.get("id")])
        if layer.get("type") not in ("Parameter", "Result") or (body and parameters):
            layer.set("name", f"layer_{draw.randrange(10**9)}")
        for inner in layer.findall("body") + layer.findall("then_body") + layer.findall("else_body"):
            _renumber(layer, inner.tag, _disguise(inner, draw, parameters=parameters, body=True))
    for edge in graph.find("edges"):
        edge.set("from-layer", ids[edge.get("from-layer")])
        edge.set("to-layer", ids[edge.get("to-layer")])
    moved = [layer for layer in found if layer.get("type") not in ("Parameter", "Result")]
    draw.shuffle(moved)
    for layer in moved:
        layers.append(layer)
    for layer in [layer for layer in found if layer.get("type") == "Result"]:
        layers.append(layer)
    return ids


def _renumber(layer: Any, body: str, ids: dict[str, str]) -> None:
    for entry in layer.find(body.replace("body", "port_map")):
        entry.set("internal_layer_id", ids[entry.get("internal_layer_id")])
    for edge in layer.findall("back_edges/edge") if body == "body" else []:
        edge.set("from-layer", ids[edge.get("from-layer")])
        edge.set("to-layer", ids[edge.get("to-layer")])


def compared(folder: Path, ours: Graph, theirs: Graph, value: Any, seed: int, **options: Any) -> RunComparison:
    (folder / "ours").mkdir()
    (folder / "theirs").mkdir()
    model, path = ours.read(folder / "ours"), theirs.write(folder / "theirs")
    disguised(path, seed)
    return compare_models(model, stepper.read_model(path), stepper.bind_inputs(model, {0: value}), **options)


@each_row("seed", range(4))
@each_row("twin", [recurrence, countdown, nested])
def test_a_disguised_twin_is_no_difference(twin: Callable[..., Graph], seed: int, tmp_path: Path) -> None:
    comparison = compared(tmp_path, twin(), twin(), INPUTS[twin], seed)
    assert comparison.verdict is None
    assert [difference.text for difference in comparison.file_differences] == []
    assert comparison.observations.compared > 20


@each_row(
    ("fault", "layer", "iteration"),
    [
        ("type", "summed", 1),
        ("approximation", "h_next", 0),
        ("inserted", "shifted", 0),
        ("one weight", "W", 0),
        ("crossed", "gain", 0),
        ("no back edge", "h", 1),
        ("reversed slices", "x_t", 0),
        ("trip count", "trip_count", 5),
    ],
)
def test_a_fault_is_found_although_no_name_is_shared(fault: str, layer: str, iteration: int, tmp_path: Path) -> None:
    verdict = compared(tmp_path, recurrence(fault), recurrence(), X, seed=1).verdict
    assert verdict is not None and verdict.layer is not None
    assert (verdict.layer.name, verdict.iteration) == (layer, iteration)


def test_names_that_moved_to_other_layers_do_not_mislead(tmp_path: Path) -> None:
    """As numbered names do when something is left out before them."""
    path = recurrence().write(tmp_path)
    model = stepper.read_model(path)
    text = path.read_text()
    for one, other in (("scaled", "shifted"), ("xW", "hU")):
        text = text.replace(f'"{one}"', '"-"').replace(f'"{other}"', f'"{one}"').replace('"-"', f'"{other}"')
    (tmp_path / "renamed.xml").write_text(text)
    (tmp_path / "renamed.bin").write_bytes(path.with_suffix(".bin").read_bytes())
    other_model = stepper.read_model(tmp_path / "renamed.xml")
    comparison = compare_models(model, other_model, stepper.bind_inputs(model, {0: X}))
    assert not comparison.differs


def test_a_given_pair_goes_before_names(tmp_path: Path) -> None:
    comparison = compared(tmp_path, recurrence(), recurrence(), X, seed=2, given={"W": "no such layer"})
    assert not comparison.differs
