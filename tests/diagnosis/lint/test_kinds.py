"""Rules are asked once about layers of one kind: they find the same, and take a part of the time that reading takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from itertools import cycle, islice
from pathlib import Path

import pytest
from lxml import etree

from stepper.diagnosis.lint import linting
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.lint.subjects import LayerKinds, LayerSubject
from stepper.diagnosis.rule import Finding
from tests.benchmarks.checking import attended, large, moved
from tests.models import Graph, Value, joined, sliced
from tests.tables import few


def each_alone(layers: LayerKinds, types: Iterable[str]) -> Iterator[tuple[LayerSubject, Iterator[LayerSubject]]]:
    for subject in layers.subjects(types):
        yield subject, iter((subject,))


def of_two(folder: Path, piece: Callable[[Graph, Value], Value], width: int) -> Path:
    """A model of which a body has the same layers twice, one after the other."""
    net = Graph()
    xs, body = net.parameter("xs", dims=(4, width)), net.body()
    x = body.parameter("x", dims=(1, width))
    value = piece(body, piece(body, x))
    (out,) = net.tensor_iterator("loop", body, [sliced(xs, x)], [joined(body.result(value))])
    net.result(out, "out")
    return net.write(folder)


@pytest.mark.parametrize(("piece", "width"), [(moved, 4), (attended, 8)])
@pytest.mark.parametrize("values", few(1, [("99", "1"), (None, "-7", "x")]))
def test_of_kinds_the_rules_find_what_they_find_of_each_layer(
    piece: Callable[[Graph, Value], Value],
    width: int,
    values: tuple[str | None, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One damage of each attribute of the layers that come second, which are like the first ones but for it."""
    path = of_two(tmp_path, piece, width)
    whole = etree.fromstring(path.read_bytes())
    places = [
        (number, name)
        for number, element in enumerate(whole.iter())
        for name in element.attrib
        if element.tag in ("data", "edge", "layer")
    ]
    places += [(number, "") for number, element in enumerate(whole.iter()) if element.tag in ("port", "dim")]
    places.sort()
    places = places[len(places) // 2 :: 3]
    found: list[tuple[Finding, ...]] = []
    for (number, name), value in zip(places, cycle(values), strict=False):
        tree = deepcopy(whole)
        element = list(tree.iter())[number]
        if element.tag == "dim":
            element.text = "3"
        elif element.tag == "port":
            element.set("precision", "FP16")
        elif value is None:
            del element.attrib[name]
        else:
            element.set(name, value)
        path.write_bytes(etree.tostring(tree))
        of_kinds = lint(path)
        with monkeypatch.context() as patch:
            patch.setattr(LayerKinds, "kinds", each_alone)
            assert of_kinds == lint(path), (number, name, value)
        found.append(of_kinds)
    assert len({one.rule for findings in found for one in findings}) > 6


MOST_CALLS = 0.6
"""Calls of rules for each layer: as long as each rule was asked about each layer there were nine."""


@pytest.mark.parametrize("number", range(3), ids=("arithmetic", "movements", "attention"))
def test_few_rules_are_asked_about_each_layer(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _name, path = next(islice(large(tmp_path, 5_000), number, None))
    calls = 0
    asked = linting._of

    def counting(*arguments: object) -> Iterator[Finding]:
        nonlocal calls
        calls += 1
        return asked(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(linting, "_of", counting)
    assert lint(path) == ()
    assert calls < MOST_CALLS * 5_000
