"""Short names tell operations apart, and what is shown can be typed, where it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepper
from stepper.query.address_resolution import ResolutionError, Target, all_names, resolve
from stepper.query.address_syntax import parse_address
from stepper.query.short_names import short_names, short_names_of, without_number
from tests.debug.debugged import SAMPLES
from tests.models import Graph
from tests.tables import each_row


@each_row(
    ("names", "short"),
    [
        (["aten::softmax/Softmax", "aten::add/Add"], ["Softmax", "Add"]),
        (["n.q/aten::linear/MatMul", "n.v/aten::linear/MatMul"], ["q/MatMul", "v/MatMul"]),
        (["n.q/aten::linear/MatMul", "aten::linear/MatMul"], ["q/MatMul", "linear/MatMul"]),
        (["n.q/aten::linear/MatMul", "m/aten::linear/MatMul"], ["q/MatMul", "m/MatMul"]),
        (["Add", "x/Add", "y/Add"], ["Add", "x/Add", "y/Add"]),
        (["same", "same"], ["same", "same"]),
        (["/", ""], ["/", ""]),
    ],
)
def test_names_are_as_short_as_they_can_be(names: list[str], short: list[str]) -> None:
    assert short_names(names) == short


def test_a_name_of_a_million_parts_is_cut_from_its_end() -> None:
    assert short_names(["a/" * 10**6 + "b", "x." * 10**6 + "c", "d/b"]) == ["a/b", "x." * 10**6 + "c", "d/b"]


SAMPLE_NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/model.xml"))


@each_row("sample", SAMPLE_NAMES)
def test_what_is_shown_can_be_typed(sample: str) -> None:
    compiled = stepper.compile_model(stepper.read_model(SAMPLES / sample / "model.xml"))
    for program in compiled.programs:
        found = short_names_of(program.graph)
        names = [found[operation.layer.id] for operation in program.operations]
        assert len(set(names)) == len(names)
        for operation, name in zip(program.operations, names, strict=True):
            target = resolve(parse_address(name), compiled, program)
            assert target.named is operation.layer, f"{name} means {target.named}, not {operation.layer}"


@each_row("sample", SAMPLE_NAMES)
def test_a_carried_value_can_be_named_without_the_number_of_a_converter(sample: str) -> None:
    compiled = stepper.compile_model(stepper.read_model(SAMPLES / sample / "model.xml"))
    exact = {name for program in compiled.programs for name in all_names(program)}
    for program in compiled.programs[1:]:
        for layer in program.graph.parameters:
            short = without_number(layer.name)
            same = sum(without_number(other.name) == short for other in program.graph.layers)
            if same == 1 and (short == layer.name or short not in exact):
                assert resolve(parse_address(short), compiled, program).named is layer


def _meant(folder: Path, text: str, *names: str) -> Target:
    """What the text means in a graph with an operation of each name."""
    graph = Graph()
    value = graph.parameter("x", "f32", (2,))
    for name in names:
        value = graph.apply("Tanh", value, name=name)
    graph.result(value)
    compiled = stepper.compile_model(graph.read(folder))
    return resolve(parse_address(text), compiled)


def test_a_name_that_is_written_so_comes_before_one_that_is_only_shown_so(tmp_path: Path) -> None:
    names = ("n.q/aten::linear/MatMul", "n.v/aten::linear/MatMul", "other/q/MatMul")
    assert _meant(tmp_path, "q/MatMul", *names).named.name == "other/q/MatMul"
    assert _meant(tmp_path, "v/MatMul", *names).named.name == "n.v/aten::linear/MatMul"


def test_the_end_of_several_names_is_still_ambiguous(tmp_path: Path) -> None:
    with pytest.raises(ResolutionError, match="ambiguous"):
        _meant(tmp_path, "MatMul", "n.q/aten::linear/MatMul", "aten::linear/MatMul")


def test_names_that_differ_in_their_number_alone_are_ambiguous_without_it(tmp_path: Path) -> None:
    with pytest.raises(ResolutionError, match=r"ambiguous[^$]*h\.1[^$]*h\.2"):
        graph = Graph()
        one, other = graph.parameter("h.1", "f32", (2,)), graph.parameter("h.2", "f32", (2,))
        graph.result(graph.apply("Add", one, other))
        resolve(parse_address("h"), stepper.compile_model(graph.read(tmp_path)))
