"""Every name and number that an answer shows can be typed: in samples and recorded random loops."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.story.story_texts import provenance_data
from stepper.errors import StepperError
from stepper.query.address_syntax import Address, exact_name, parse_address
from tests.cli.test_answers_can_be_typed import is_number, shown_numbers
from tests.conformance.test_random_loops import ARCHIVE, numbered, recorded_index
from tests.debug.debugged import SAMPLES
from tests.models import Graph, Side

EACH = 12
"""One of so many recorded loops."""

Shown = tuple[str, str | Address, Any]
"""Where a number is shown, what is typed for it, and the number."""


def of_chain(answer: dict[str, Any]) -> Iterator[Shown]:
    """Links, and the operands of each."""
    for link in answer["chain"]:
        if link["is_shape"] or link["value"] is None:
            continue
        yield "link", link["address"], link["value"]
        around = parse_address(link["address"])
        for part in link["parts"]:
            if not part["is_shape"] and part["value"] is not None:
                name, index = exact_name(part["name"]), tuple(part["index"])
                yield "operand", Address(around.levels, name, part["output"], around.iterations, index), part["value"]


def of_sources(answer: dict[str, Any]) -> Iterator[Shown]:
    """Elements of inputs, which are of the model's own graph."""
    for one in answer["sources"]:
        if one["kind"] == "input":
            yield "source", Address((), exact_name(one["name"]), index=tuple(one["index"])), one["value"]


def of_story(debugger: Debugger, name: str) -> Iterator[Shown]:
    """Links of an explanation by the names of its rows and columns."""
    story = debugger.story(name)
    for link in story.links:
        if not link.is_shape and link.value is not None and link.element is not None:
            yield "explanation", link.address, link.value


def shown(debugger: Debugger) -> Iterator[Shown]:
    """All numbers of the answers about each output, and of the overview."""
    for layer in debugger.model.graph.results:
        name = str(exact_name(layer.name))
        try:
            answer = provenance_data(debugger.why(name))
        except StepperError:  # an output without elements
            continue
        yield from of_chain(answer)
        yield from of_sources(answer)
        yield from of_story(debugger, name)
    for label, column, number in shown_numbers(debugger, debugger.overview()):
        yield "overview", f"{column}::{label}", number


def wrong(debugger: Debugger) -> Iterator[str]:
    """What is shown and cannot be typed, or gives another number; at the last operation of a run."""
    debugger.run_overview(seconds=20)
    debugger.continue_()
    debugger.reverse_step()
    for where, typed, number in shown(debugger):
        try:
            found = debugger.value(typed)
        except StepperError as error:
            yield f"{where} {typed}: {error}"
            continue
        if not is_number(found, number):
            yield f"{where} {typed}: {found}, not {number}"


@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("model.xml")), ids=lambda path: path.parent.name)
def test_in_samples(path: Path) -> None:
    inputs = path.with_name("inputs.npz")
    found = list(wrong(Debugger(stepper.read_model(path), dict(np.load(inputs)))))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("seed", sorted(recorded_index(), key=int)[::EACH])
def test_in_recorded_loops(seed: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path, [f"{seed}{suffix}" for suffix in (".xml", ".bin", ".npz")])
    with np.load(tmp_path / f"{seed}.npz") as arrays:
        inputs = dict(enumerate(numbered(arrays, "in")))
    found = list(wrong(Debugger(stepper.read_model(tmp_path / f"{seed}.xml"), inputs)))
    assert not found, "\n".join(found)


def test_in_a_branch_that_was_left(tmp_path: Path) -> None:
    net = Graph()
    number = net.parameter("number")
    above = net.apply("Greater", number, net.constant(0.0), type="boolean", name="above")
    sides = []
    for name, factor in (("double", 2.0), ("half", 0.5)):
        side = net.body()
        given = side.parameter("given")
        result = side.result(side.apply("Multiply", given, side.constant(factor), name=name))
        sides.append(Side(side, [(number, given)], [result]))
    net.result(net.apply("Sqrt", *net.branch("choice", above, *sides)), "root")
    model = net.read(tmp_path)
    assert not list(wrong(Debugger(model, {"number": np.float32(8)})))
    debugger = Debugger(model, {"number": np.float32(8)})
    with pytest.raises(StepperError, match="is not running"):
        debugger.value("double")
    debugger.last()
    assert debugger.value("choice::then::double") == debugger.evaluate("double") == 16
    with pytest.raises(StepperError, match="the other side of 'choice' ran"):
        debugger.value("half")
