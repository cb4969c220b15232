"""The checker finds what is wrong: figures are changed in one place, and each change is seen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache

import pytest

import stepper
from stepper.export.exporter import draw
from tests.export.reading_back import geometry, static_facts, textbook_facts, truth
from tests.export.reading_back.cases import case, loop_names
from tests.export.reading_back.drawing import Drawing
from tests.export.reading_back.run_facts import RunFigure

Change = Callable[[str], str]


@cache
def figure(name: str, view: str) -> tuple[str, str]:
    """The SVG and (of a run) the JSON of the first loop of a model."""
    one = case(name)
    inputs = one.inputs if view in ("unrolled", "right") else None
    loop = None if view == "model" else next(loop_names(one.file))[1]
    depth = 0 if inputs else 2
    model, iterations = stepper.read_model(one.path), "0:3,-1"
    if view == "right":
        made = draw(model, inputs, view="unrolled", loop=loop, direction="right", width=642)
    else:
        made = draw(model, inputs, view=view, loop=loop, values="full", iterations=iterations, depth=depth)
    return made.text("svg"), made.text("json") if inputs else ""


@cache
def first_run(name: str) -> truth.Activation:
    one = case(name)
    return truth.run(stepper.read_model(one.path), one.inputs).loops[next(loop_names(one.file))[0]][0]


def faults(name: str, view: str, svg: str, data: str) -> list[str]:
    drawing, file = Drawing(svg), case(name).file
    if view == "right":
        run = RunFigure(drawing, file, next(loop_names(file))[0], first_run(name))
        return [*textbook_facts.figure_faults(drawing), *textbook_facts.faults(run)]
    found = list(geometry.faults(drawing))
    if view == "model":
        return found + list(static_facts.faults(drawing, file))
    ids = next(loop_names(file))[0]
    if view == "rolled":
        return found + list(static_facts.rolled_faults(drawing, file, ids))
    if view == "ports":
        return found + list(static_facts.port_map_faults(drawing, file, ids))
    run = RunFigure(drawing, file, ids, first_run(name))
    return [*found, *run.faults(), *run.json_faults(data)]


def written(old: str, new: str, count: int = 1) -> Change:
    def change(text: str) -> str:
        assert old in text, f"{old!r} is nowhere"
        return text.replace(old, new, count)

    return change


def swapped(one: str, other: str) -> Change:
    def change(text: str) -> str:
        assert one in text and other in text
        return text.replace(one, "\0", 1).replace(other, one, 1).replace("\0", other, 1)

    return change


def without(pattern: str) -> Change:
    def change(text: str) -> str:
        found, count = re.subn(pattern, "", text, count=1, flags=re.DOTALL)
        assert count, f"{pattern!r} is nowhere"
        return found

    return change


def group(kind: str) -> str:
    return rf'<g class="{kind}">\n(?:(?!</g>).)*</g>\n'


def box(id: str) -> str:
    return rf'<g id="s[0-9a-f]+\.{re.escape(id)}" (?:(?!</g>).)*</g>\n'


def moved(id: str, by: float) -> Change:
    """Move a box with its words to the right."""

    def shift(found: re.Match[str]) -> str:
        return re.sub(r' x="([\d.]+)"', lambda x: f' x="{float(x[1]) + by:g}"', found[0])

    def change(text: str) -> str:
        new, count = re.subn(box(id), shift, text, count=1, flags=re.DOTALL)
        assert count
        return new

    return change


def in_box(id: str, change: Change) -> Change:
    def changed(text: str) -> str:
        found = re.search(box(id), text, re.DOTALL)
        assert found is not None, f"there is no box {id}"
        return text.replace(found[0], change(found[0]))

    return changed


DRAWN = [
    ("reverse", "unrolled", swapped(">f32[1,1,1] 10<", ">f32[1,1,1] 9<")),
    ("for_loop", "unrolled", written("[1010 1050 280]", "[1010 1050 281]")),
    ("reverse", "unrolled", written("[7:8] of 8, axis 1", "[6:7] of 8, axis 1")),
    ("reverse", "unrolled", written("[7:8] of 8, axis 1", "[7:8] of 8, axis 0")),
    ("reverse", "unrolled", written(">S[0] → output 1<", ">S[1] → output 1<")),
    ("reverse", "unrolled", written("S[7], S[6]", "S[0], S[1]")),
    ("for_loop", "unrolled", without(group("carried"))),
    ("reverse", "unrolled", without(group("slice"))),
    ("reverse", "unrolled", without(group("piece"))),
    ("for_loop", "unrolled", without(group("data"))),
    ("for_loop", "unrolled", written(">from iteration 0<", ">initial value<")),
    ("for_loop", "unrolled", written(">current iteration: 1<", ">current iteration: 2<")),
    ("for_loop", "unrolled", written(">invariant<", ">initial value<")),
    ("while_loop", "unrolled", written(">condition: true<", ">condition: false<")),
    ("while_loop", "unrolled", written(">after 111 iterations<", ">after 110 iterations<")),
    ("while_loop", "unrolled", written(">condition became false<", ">trip count reached<")),
    ("while_loop", "unrolled", written("107 iterations left out", "106 iterations left out")),
    ("while_loop", "unrolled", written("≠ 1 (keep_going)", "≠ 1 (start_is_not_one)", 9)),
    ("for_loop", "unrolled", without(box("out1"))),
    ("faults_inside", "unrolled", written("! 2 Inf", "! 1 Inf")),
    ("faults_inside", "unrolled", written(">then ran<", ">else ran<")),
    ("faults_inside", "unrolled", in_box("i1.n11", written(">1 iteration<", ">2 iterations<"))),
    ("for_loop", "rolled", without(group("back"))),
    ("for_loop", "rolled", without(group("data"))),
    ("for_loop", "rolled", written(">merged ← principal<", ">invariant ← principal<")),
    ("for_loop", "rolled", written("← principal<", "← rate<")),
    ("for_loop", "rolled", written("last value → output 0", "last value → output 1")),
    ("for_loop", "rolled", written("concatenated, axis 0", "concatenated, axis 1")),
    ("for_loop", "rolled", written(">Add(·, 1)<", ">Add(·, 2)<")),
    ("for_loop", "rolled", written(">10 iterations<", ">11 iterations<")),
    ("while_loop", "rolled", written(">starts if start ≠ 1 (start_is_not_one)", ">starts if start ≠ 1 (keep_going)")),
    ("while_loop", "rolled", without(group("ends"))),
    ("parts_of_two", "rolled", written("2 to 8, stride 2", "2 to 9, stride 2")),
    ("parts_of_two", "rolled", written("axis 0, reversed, stride -2", "axis 0, stride 2")),
    ("nested_loop", "model", without(box("n3"))),
    ("nested_loop", "model", swapped(">input 3 = 0<", ">input 2 &#x27;order&#x27;<")),
    ("nested_loop", "model", written(">input 3 = 0<", ">input 3 = 1<")),
    ("nested_loop", "model", written(">trip count<", ">condition<")),
    ("nested_loop", "model", swapped(">output 2<", ">output 0<")),
    ("nested_loop", "model", without(group("port"))),
    ("while_loop", "rolled", written(">condition<", ">input 1<")),
    ("nested_loop", "model", written("&gt; 0 (keep_going)", "&gt; 0 (anything)", 9)),
    ("nested_loop", "model", written("pairs_of_neighbours &gt; 0 (", "pairs_of_neighbours &lt; 0 (", 9)),
    ("while_loop", "rolled", written(">starts if start ≠ 1 (", ">starts if start = 1 (")),
    ("shared_constant", "model", swapped(">sliced, axis 0 ← x<", ">sliced, axis 0, reversed ← x<")),
    ("reverse", "ports", written("stride -1, part_size 1", "stride 1, part_size 1")),
    ("for_loop", "ports", without(group("back"))),
    ("for_loop", "ports", written("output 0 → final_balance", "output 1 → final_balance")),
    ("for_loop", "ports", written(">input 2: f32[3]<", ">input 2: f32[4]<")),
    ("reverse", "right", swapped(">9.000<", ">8.100<")),
    ("reverse", "right", written(">4.281<", ">4.291<")),
    ("while_loop", "right", written(">3 to 108<", ">3 to 107<")),
    ("reverse", "right", swapped(">output 0<", ">output 1<")),
    ("reverse", "right", written(">ended after 8 iterations", ">ended after 7 iterations")),
    ("reverse", "right", written("every slice was used<", "trip count reached<")),
    ("faults_inside", "right", written(">false<", ">true<")),
    ("faults_inside", "right", written(">2 NaN<", ">1 NaN<")),
    ("faults_inside", "right", written(": number = 4, limit", ": number = 40, limit", 9)),
    ("faults_inside", "right", written("limit = 4, so Less(", "limit = 4, so Equal(", 9)),
    ("for_loop", "rolled", moved("4.n4", 80)),
    ("for_loop", "rolled", moved("4.n1", 1200)),
    ("for_loop", "unrolled", moved("i0.n5", 150)),
    ("for_loop", "rolled", written(">balance_next_result<", ">balance_next_result of all of the years to come<")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "view"), sorted({(name, view) for name, view, _ in DRAWN}))
def test_a_figure_as_it_is_has_no_fault(name: str, view: str) -> None:
    assert not faults(name, view, *figure(name, view))


@pytest.mark.parametrize(
    ("name", "view", "change"), DRAWN, ids=[f"{index}-{one[0]}" for index, one in enumerate(DRAWN)]
)
def test_a_figure_that_is_changed_has_one(name: str, view: str, change: Change) -> None:
    svg, data = figure(name, view)
    assert faults(name, view, change(svg), data)


@pytest.mark.parametrize("change", ["value", "slice", "condition", "back edge", "iterations", "missing"])
def test_json_that_is_changed_has_a_fault(change: str) -> None:
    name = "while_loop" if change == "condition" else "reverse"
    svg, text = figure(name, "unrolled")
    data = json.loads(text)
    step = data["trace"][0]
    if change == "value":
        step["values"][0]["mean"] = 77.5
    elif change == "slice":
        step["slices"][0]["begin"] = 0
    elif change == "condition":
        step["condition"] = not step["condition"]
    elif change == "back edge":
        data["back_edges"].clear()
    elif change == "iterations":
        data["iterations"] += 1
    else:
        step["values"].pop()
    assert faults(name, "unrolled", svg, json.dumps(data))
