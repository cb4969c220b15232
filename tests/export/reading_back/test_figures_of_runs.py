"""Unrolled figures and their JSON say what the run did: each is read back and held against every value of the run."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import stepper
from stepper.export.exporter import draw
from tests.export.reading_back import geometry, textbook_facts, truth
from tests.export.reading_back.cases import ALL, MANY, Case, activation_name, case
from tests.export.reading_back.drawing import Drawing
from tests.export.reading_back.run_facts import RunFigure


def activations(one: Case, run: truth.Run) -> Iterator[tuple[tuple[int, ...], str, truth.Activation]]:
    """The first two runs of each loop, with what --loop calls them."""
    for ids in run.loops:
        for found in run.loops[ids][:2]:
            yield ids, activation_name(one.file, ids, found.around), found


@pytest.mark.parametrize("name", ALL)
def test_iterations_are_those_of_the_run(name: str) -> None:
    one = case(name)
    model, file = stepper.read_model(one.path), one.file
    assert not truth.outputs_differ(model, one.inputs, one.outputs)
    run, found = truth.run(model, one.inputs), {}
    for ids, loop, activation in activations(one, run):
        for iterations in (None, "1,3:5,-1"):
            made = draw(model, one.inputs, view="unrolled", loop=loop, values="full", iterations=iterations)
            drawing = Drawing(made.text("svg"))
            figure = RunFigure(drawing, file, ids, activation)
            faults = [*geometry.faults(drawing), *figure.faults(), *figure.json_faults(made.text("json"))]
            found[loop, iterations] = faults
    assert found
    assert not {case: faults for case, faults in found.items() if faults}


@pytest.mark.parametrize("name", MANY)
def test_the_textbooks_figure_is_that_of_the_run(name: str) -> None:
    one = case(name)
    model, file = stepper.read_model(one.path), one.file
    found = {}
    for ids, loop, activation in activations(one, truth.run(model, one.inputs)):
        for width in (318, 642):
            try:
                made = draw(model, one.inputs, view="unrolled", loop=loop, direction="right", width=width)
            except stepper.UsageError as error:
                assert "the least width is" in str(error)
                continue
            drawing = Drawing(made.text("svg"))
            figure = RunFigure(drawing, file, ids, activation)
            found[loop, width] = [*textbook_facts.figure_faults(drawing), *textbook_facts.faults(figure)]
    assert found
    assert not {case: faults for case, faults in found.items() if faults}


@pytest.mark.parametrize("name", ["while_loop", "faults_inside"])
def test_sides_of_ifs_are_those_that_ran(name: str) -> None:
    one = case(name)
    model, file = stepper.read_model(one.path), one.file
    count = 0
    for ids, loop, activation in activations(one, truth.run(model, one.inputs)):
        made = draw(model, one.inputs, view="unrolled", loop=loop, depth=1, iterations="0:4,-1").text("svg")
        figure = RunFigure(Drawing(made), file, ids, activation)
        assert not list(figure.faults())
        for said in set(re.findall(">((?:then|else) (?:ran|did not run))<", made)):
            side, did = said.split(" ", 1)
            other = made.replace(f">{said}<", f">{side} {'did not run' if did == 'ran' else 'ran'}<", 1)
            assert any(side in fault for fault in RunFigure(Drawing(other), file, ids, activation).faults())
            count += 1
    assert count
