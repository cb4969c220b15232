"""Figures without a run say what the file says: each is read back from its SVG and held against the .xml."""

from __future__ import annotations

import pytest

import stepper
from stepper.export.exporter import draw
from tests.export.reading_back import geometry, static_facts
from tests.export.reading_back.cases import ALL, case, loop_names
from tests.export.reading_back.drawing import Drawing


@pytest.mark.parametrize("name", ALL)
def test_models_bodies_and_port_maps_are_those_of_the_file(name: str) -> None:
    path = case(name).path
    model, file = stepper.read_model(path), case(name).file
    drawing = Drawing(draw(model, view="model", depth=2).text("svg"))
    found = {"model": [*geometry.faults(drawing), *static_facts.faults(drawing, file)]}
    for ids, loop in loop_names(file):
        rolled = Drawing(draw(model, view="rolled", loop=loop, depth=2).text("svg"))
        ports = Drawing(draw(model, view="ports", loop=loop).text("svg"))
        found[f"rolled {loop}"] = [*geometry.faults(rolled), *static_facts.rolled_faults(rolled, file, ids)]
        found[f"ports {loop}"] = [*geometry.faults(ports), *static_facts.port_map_faults(ports, file, ids)]
    assert not {view: faults for view, faults in found.items() if faults}
