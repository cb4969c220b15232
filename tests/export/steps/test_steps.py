"""Steps of a run show what the run had computed by then, and nothing that comes later."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from msgspec.structs import replace

from stepper.cli import main
from stepper.errors import UsageError
from stepper.export.exporter import draw, picture
from stepper.export.options import FigureView, TimeDirection, ValueDetail
from stepper.export.picture import FigureContent, FigureRequest
from stepper.export.stepping import steps_of
from stepper.export.styles import Group, PageDrawing, Rectangle, Shape, SteppedDrawing, TextLine
from stepper.export.writers.drawings import animated_svg
from tests.export.runs import SAMPLES, machine, sample

SVG = {"svg": "http://www.w3.org/2000/svg"}
REWARDS = [10, 0, 0, -2, 0, 1, 0, 0]


def steps(name: str, view: FigureView = FigureView.UNROLLED, **options: Any) -> SteppedDrawing:
    model = sample(name)
    content = FigureContent(depth=int(view is FigureView.ROLLED), values=ValueDetail.FULL)
    request = FigureRequest(view=view, content=content, in_steps=True, **options)
    return steps_of(picture(model, lambda: machine(name, model), request))


def textbook(name: str, **options: Any) -> SteppedDrawing:
    return steps(name, direction=TimeDirection.RIGHT, **options)


def returns() -> list[float]:
    """What `reverse` computes, from the last slice to the first: 0.9 times what follows, and the reward."""
    found, value = [], 0.0
    for reward in REWARDS:
        value = 0.9 * value + reward
        found.append(value)
    return found


def collatz(number: int) -> list[int]:
    numbers = [number]
    while numbers[-1] != 1:
        numbers.append(numbers[-1] // 2 if numbers[-1] % 2 == 0 else 3 * numbers[-1] + 1)
    return numbers


def texts(shapes: Iterable[Shape]) -> Iterator[TextLine]:
    for shape in shapes:
        if isinstance(shape, Group):
            yield from texts(shape.items)
        elif isinstance(shape, TextLine) and shape.text:
            yield shape


def rectangles(shapes: Iterable[Shape], style: str) -> Iterator[Rectangle]:
    for shape in shapes:
        if isinstance(shape, Group):
            yield from rectangles(shape.items, style)
        elif isinstance(shape, Rectangle) and shape.style == style:
            yield shape


def row(page: PageDrawing, name: str) -> list[float]:
    """The numbers in the cells of an output, from left to right."""
    found = list(texts(page.items))
    y = next(text.y for text in found if text.text == name)
    cells = [text for text in found if text.style == "number" and abs(text.y - y) < 8]
    return [float(text.text.replace("\u2212", "-")) for text in sorted(cells, key=lambda text: text.x)]


def test_an_output_has_the_pieces_of_the_iterations_so_far() -> None:
    drawing = textbook("reverse", width=1200)
    assert [(step.begin, step.is_gap) for step in drawing.steps] == [(k, False) for k in range(8)]
    for k in range(8):
        wanted = [round(value, 3) for value in reversed(returns()[: k + 1])]  # time runs to the left
        assert row(drawing.at(k), "output 1") == pytest.approx(wanted, abs=0.001)
        assert row(drawing.at(k), "reward") == [float(reward) for reward in reversed(REWARDS)]  # known before
        assert len(row(drawing.at(k), "output 0")) == (k == 7)
    assert row(drawing.page, "output 1") == row(drawing.at(7), "output 1")


def test_carried_values_come_to_be_when_they_enter_and_gaps_are_steps_of_their_own() -> None:
    numbers = collatz(27)
    drawing = textbook("while_loop", width=640)
    assert [step.label for step in drawing.steps[2:5]] == [
        "iteration 2",
        "iterations 3 to 108 (not drawn)",
        "iteration 109",
    ]
    lanes = [text for text in texts(drawing.page.items) if text.style == "of-carried" and text.text == "number"]
    for index, step in enumerate(drawing.steps):
        entered = [
            text.text
            for text in sorted(texts(drawing.at(index).items), key=lambda text: text.x)
            if text.style == "plain" and abs(text.y - lanes[0].y) < 6
        ]
        shown = [one.begin for one in drawing.steps if one.begin <= step.begin]
        assert entered == [str(numbers[k]) for k in shown]
        sides = [text.text for text in texts(drawing.at(index).items) if text.text in ("then", "else")]
        ran = ["else" if numbers[one.begin] % 2 else "then" for one in drawing.steps if not one.is_gap]
        assert sides == ran[: len([one for one in drawing.steps[: index + 1] if not one.is_gap])]


def test_the_band_walks_over_pages_of_one_size() -> None:
    for drawing in (textbook("reverse"), textbook("while_loop"), steps("while_loop"), steps("reverse")):
        assert not list(rectangles(drawing.page.items, "band")), "the whole stands still"
        places = []
        for index in range(len(drawing.steps)):
            page = drawing.at(index)
            assert (page.width, page.height) == (drawing.page.width, drawing.page.height)
            (band,) = rectangles(page.items, "band")
            assert band.x >= 0 and band.x + band.width <= page.width
            places.append((band.x, band.y))
        assert len(set(places)) == len(places)
    assert textbook("reverse").at(0).title.endswith(": iteration 0 of 0..7")
    backward = textbook("reverse")
    xs = [next(rectangles(backward.at(index).items, "band")).x for index in range(len(backward.steps))]
    assert all(after < before for before, after in pairwise(xs))


@pytest.mark.parametrize("name", ["reverse", "while_loop", "nested_loop", "onnx_moving_average"])
def test_iterations_to_come_have_names_and_no_values(name: str) -> None:
    drawing = steps(name)
    whole = {group.id: group for group in drawing.page.items if isinstance(group, Group) and group.id}
    for index, step in enumerate(drawing.steps):
        there = {group.id for group in named(drawing.at(index).items)}
        for id, group in whole.items():
            found = re.match(r"i(\d+)", id)
            if found is None:
                continue
            done = int(found[1]) <= step.begin
            assert (id in there) == done
            coming = [
                one for one in named(drawing.at(index).items, all=True) if one.title == group.title and not one.id
            ]
            if not done and group.title:
                assert {text.style for one in coming for text in texts([one])} <= {"label", "title"}
    last = drawing.at(len(drawing.steps) - 1)
    assert sorted(text.text for text in texts(last.items)) == sorted(text.text for text in texts(drawing.page.items))


def named(shapes: Iterable[Shape], *, all: bool = False) -> Iterator[Group]:
    for shape in shapes:
        if isinstance(shape, Group):
            if shape.id or all:
                yield shape
            yield from named(shape.items, all=all)


def test_a_body_has_the_values_of_each_iteration_in_turn() -> None:
    numbers = collatz(27)
    drawing = steps("while_loop", FigureView.ROLLED)
    assert len(drawing.steps) == 111
    for k in range(111):
        page = drawing.at(k)
        box = next(group for group in named(page.items) if group.id == "5.n0")
        assert [text.text for text in texts([box])][-1] == f"i64[] {numbers[k]}"
        assert f"iteration {k} of 0..110" in [text.text for text in texts(page.items)]


def test_so_many_steps_are_refused_before_they_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(SAMPLES / "while_loop" / "model.xml")
    words = ["export", model, "--inputs", str(SAMPLES / "while_loop" / "inputs.npz"), "--iters", ":", "--frames"]
    assert main([*words, str(tmp_path / "frames")]) == 2
    assert "more than 100 iterations are chosen" in capsys.readouterr().err
    assert not (tmp_path / "frames").exists()


# --- files ---------------------------------------------------------------------------------------------------------


def export(name: str, *words: str) -> int:
    folder = SAMPLES / name
    return main(["export", str(folder / "model.xml"), "--inputs", str(folder / "inputs.npz"), *words])


def test_frames_are_files_that_sort_and_leave_others_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "frames"
    words = ["--direction", "right", "--width", "170mm", "--frames", str(folder)]
    assert export("while_loop", *words) == 0
    names = [f"{k:04}.svg" for k in (0, 1, 2, 3, 109, 110)]
    assert sorted(one.name for one in folder.iterdir()) == names
    sizes = {(etree.parse(folder / name).getroot().get("width")) for name in names}
    assert len(sizes) == 1
    assert export("while_loop", *words, "--check", str(folder)) == 0
    (folder / "notes.txt").write_text("mine")
    (folder / "0111.svg").write_text("old")
    capsys.readouterr()
    assert export("while_loop", *words, "-q") == 0
    assert "0111.svg is no frame of this run" in capsys.readouterr().err
    assert (folder / "notes.txt").read_text() == "mine" and (folder / "0111.svg").read_text() == "old"
    assert export("while_loop", *words, "--check", str(folder)) == 1
    (folder / "0111.svg").unlink()
    (folder / "0003.svg").write_text("changed")
    assert export("while_loop", *words, "--check", str(folder)) == 1
    assert export("while_loop", *words, "--as", "png") == 0
    assert sorted(one.stem for one in folder.glob("*.png")) == [name[:4] for name in names]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--frames", "d", "--as", "dot"], "frames are drawings: svg, png, pdf and tikz, not dot"),
        (["--frames", "d", "-o", "a.svg"], "leave out -o"),
        (["--frames", "d", "--check", "e"], "--check is of the same DIR"),
        (["--frames", "d", "--layout", "dot"], "--frames needs --layout own"),
        (["--frames", "d", "--view", "ports"], "--view ports has no steps"),
        (["--animate", "-o", "a.png"], "--animate makes one SVG"),
        (["--pace", "2"], "--pace is for --animate"),
        (["--animate", "--pace", "0"], "'0' is not a pace"),
    ],
)
def test_what_does_not_fit_is_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert export("reverse", *words) == 2
    assert message in capsys.readouterr().err


def test_steps_need_a_run_with_an_iteration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(SAMPLES / "reverse" / "model.xml")
    assert main(["export", model, "--view", "rolled", "--frames", str(tmp_path / "d")]) == 2
    assert "steps need a run" in capsys.readouterr().err
    made = picture(sample("reverse"), lambda: machine("reverse", sample("reverse")), FigureRequest())
    assert made.trace is not None
    with pytest.raises(UsageError, match="none of the iterations that are chosen"):
        steps_of(replace(made, trace=replace(made.trace, iterations=())))


@pytest.mark.parametrize("view", ["unrolled", "rolled"])
def test_a_run_without_iterations_is_one_step(view: str, tmp_path: Path) -> None:
    words = ["export", str(SAMPLES / "while_loop" / "model.xml"), "--input", "start=1", "--view", view]
    assert main([*words, "--frames", str(tmp_path / "frames")]) == 0
    assert [one.name for one in (tmp_path / "frames").iterdir()] == ["0000.svg"]
    assert main([*words, "--animate", "-o", str(tmp_path / "plays.svg")]) == 0
    plays, still = ((tmp_path / name).read_text() for name in ("plays.svg", "frames/0000.svg"))
    assert visible_texts(plays, 0.1) == visible_texts(still, None)
    assert "body of 6 operations, not run" in still and "first value = last value" in still


# --- an SVG that plays -----------------------------------------------------------------------------------------------


def visible_texts(svg: str, part: float | None) -> list[str]:
    """The texts that are seen at a part of the whole time, by the rules in the file; None: where nothing moves."""
    shown = {}
    for name, body in re.findall(r"@keyframes s\w+-(at[0-9-]+) \{ (.*?\}) \}", svg):
        states = [(float(at) / 100, word) for at, word in re.findall(r"([0-9.]+)% \{ visibility: (\w+) \}", body)]
        shown[name] = [word for at, word in states if part is not None and at <= part][-1:] == ["visible"]
    found = []

    def walk(element: Any) -> None:
        name = element.get("class", "")
        hidden = element.get("visibility") == "hidden" if part is None else name in shown and not shown[name]
        if hidden:
            return
        if element.tag.endswith("}text") and element.text:
            found.append(element.text)
        for child in element:
            walk(child)

    walk(etree.fromstring(svg.encode()))
    return sorted(found)


@pytest.mark.parametrize("drawn", ["textbook", "below", "body"])
def test_an_svg_that_plays_shows_each_step_in_its_time_and_the_whole_where_nothing_moves(drawn: str) -> None:
    drawing = {
        "textbook": lambda: textbook("while_loop"),
        "below": lambda: steps("reverse"),
        "body": lambda: steps("growing_tensor", FigureView.ROLLED),
    }[drawn]()
    svg, count = animated_svg(drawing, 0.5), len(drawing.steps)
    assert f"{0.5 * (count + 2):g}s step-end infinite" in svg
    for index in range(count):
        wanted = sorted(text.text for text in texts(drawing.at(index).items))
        assert visible_texts(svg, (index + 0.5) / (count + 2)) == wanted
    whole = sorted(text.text for text in texts(drawing.page.items))
    assert visible_texts(svg, (count + 1) / (count + 2)) == whole
    assert visible_texts(svg, None) == whole
    assert "<script" not in svg and svg.count("prefers-reduced-motion: no-preference") == 1
    assert len(re.findall(r' id="', svg)) == len(set(re.findall(r' id="([^"]+)"', svg)))


def test_a_page_that_is_given_holds_for_every_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for preset, view, size in (("slide", "unrolled", ("1280", "720")), ("docs", "rolled", None)):
        assert export("reverse", "--view", view, "--preset", preset, "--frames", str(tmp_path / preset)) == 0
        for file in (tmp_path / preset).iterdir():
            root = etree.parse(file).getroot()
            assert size is None or (root.get("width"), root.get("height")) == size
            assert float(root.get("width", 0)) <= 1280 and len(list(root.iter(f"{{{SVG['svg']}}}text"))) > 10
    assert export("reverse", "--width", "120", "--animate", "-o", str(tmp_path / "small.svg")) == 2
    assert "the figure does not fit into 120 pixels" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--animate",), ("--as", "html")])
def test_the_same_run_gives_the_same_bytes_whatever_the_hash_seed(words: tuple[str, ...], tmp_path: Path) -> None:
    folder, made = SAMPLES / "nested_loop", []
    for seed in ("1", "2"):
        given = ("export", str(folder / "model.xml"), "--inputs", str(folder / "inputs.npz"), *words)
        code = f"import sys; from stepper.cli import main; sys.exit(main({given!r}))"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC-{seed}"}
        made.append(
            subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment).stdout
        )
    assert made[0] == made[1] and len(made[0]) > 10_000


def test_iterations_side_by_side_are_those_asked_for_as_far_as_there_is_room() -> None:
    def drawn(ranges: str, width: int = 2600) -> list[int]:
        return [one.begin for one in textbook("while_loop", iterations=ranges, width=width).steps if not one.is_gap]

    assert drawn("0:3,-1") == [0, 1, 2, 110]
    assert drawn("0:2,-3:") == [0, 1, 108, 109, 110]
    assert drawn("0:20,-2:") == [*range(20), 109, 110]
    assert drawn("0:20,-2:", 640)[-2:] == [109, 110] and len(drawn("0:20,-2:", 640)) < 10
    for ranges in ("5:8", "0:3", "-2:"):
        with pytest.raises(UsageError, match="such as --iters 0:3,-2:"):
            drawn(ranges)


def test_a_notebook_plays_a_run_too() -> None:
    made = draw(sample("reverse"), dict(np.load(SAMPLES / "reverse" / "inputs.npz")), direction="right", pace=0.5)
    assert "step-end infinite" in made._repr_svg_()
    with pytest.raises(UsageError, match="steps need a run"):
        draw(sample("reverse"), view="rolled", pace=1).written("svg")
    with pytest.raises(UsageError, match="pace is seconds above 0"):
        draw(sample("reverse"), pace=0)
