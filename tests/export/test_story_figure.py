"""A story as a figure and as data: the same bytes twice, literal colours, and the options that belong together."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from stepper.cli.cli_program import main
from stepper.errors import UsageError
from stepper.export.exporter import draw
from stepper.export.picture import Picture
from stepper.export.styles import Group, Rectangle
from stepper.export.styles import Path as Lines
from tests.export.reading_back import geometry
from tests.export.reading_back.drawing import Drawing
from tests.models import Graph, carried, last
from tests.tables import each_row

SAMPLE = Path(__file__).resolve().parents[2] / "sample_models" / "rwkv_overflow"
ASKED = "wkv@8[0,3]"


def arguments(*more: str) -> list[str]:
    return ["export", str(SAMPLE / "model.xml"), "--inputs", str(SAMPLE / "inputs.npz"), *more]


def test_a_story_is_drawn_with_the_same_bytes_twice_and_literal_colours(tmp_path: Path) -> None:
    first, again, narrow = (tmp_path / name for name in ("a.svg", "b.svg", "narrow.svg"))
    assert main(arguments("--why", ASKED, "-o", str(first), "-q")) == 0
    assert main(arguments("--why", ASKED, "-o", str(again), "-q")) == 0
    assert first.read_bytes() == again.read_bytes()
    text = first.read_text()
    for told in (
        "why wkv@8[0,3] is NaN",
        "first here",
        "89.200",
        "embedded[7,6]",
        "denominator +Inf",
        "Inf / Inf",
        "21.870",
    ):
        assert told in text, told
    shapes = text.partition("</style>")[2]
    assert "var(" not in shapes and re.search(r'fill="#[0-9a-f]{6}"', shapes)
    assert main(arguments("--why", ASKED, "-o", str(narrow), "--width", "760", "-q")) == 0
    width = float(re.search(r' width="([0-9.]+)"', narrow.read_text())[1])  # type: ignore[index]
    assert width <= 760 and "21.870" in narrow.read_text()
    assert main(arguments("--why", ASKED, "--check", str(first), "-q")) == 0


@each_row("options", [{}, {"preset": "paper"}, {"preset": "slide"}, {"preset": "docs"}, {"width": 900}], quick=1)
def test_a_long_way_back_loses_its_middle_and_says_how_many_iterations(options: dict[str, object]) -> None:
    """The end of the Collatz loop goes back over 32 columns of the path, the last of which end at 1."""
    folder = SAMPLE.parent / "while_loop"
    said: list[str] = []
    made = draw(folder / "model.xml", dict(np.load(folder / "inputs.npz")), why="end", warn=said.append, **options)  # type: ignore[arg-type]
    drawn = Drawing(made.text("svg"))
    assert drawn.page.right <= {"paper": 374, "slide": 781, "docs": 820}.get(str(options.get("preset")), 1640)
    assert not list(geometry.faults(drawn)) if drawn.joins is not None else True
    texts = [words.text for words in drawn.words]
    count = int(texts[texts.index("left out") - 1])
    assert "110" in texts and count > 5 and any(f"{count} iterations in the middle" in one for one in said)
    assert "the condition is false" in " ".join(texts) and not any("…" in text and text[0] != "…" for text in texts)
    ensure_torn_wires_reach_the_tear(made)
    wide = draw(folder / "model.xml", dict(np.load(folder / "inputs.npz")), why="end", width=7000)
    assert "left out" not in wide.text("svg")


def ensure_torn_wires_reach_the_tear(made: Picture) -> None:
    """A wire leads from a chip to the left torn edge where it carries something there, one from the right to a chip."""
    assert made.page is not None
    items = made.page.items
    left, right = sorted(one.parts[0][0][0] for one in items if isinstance(one, Lines) and one.style == "tear")
    left, right = left + 2.5, right + 2.5  # the teeth begin beside the edge
    chips = [one for one in items if isinstance(one, Rectangle) and one.style == "chip"]
    wires = [one.items[0] for one in items if isinstance(one, Group) and one.classes == "story dashed"]
    begins = [wire.parts[0][0] for wire in wires if isinstance(wire, Lines)]
    ends = {wire.parts[0][0][0]: wire.parts[0][-1] for wire in wires if isinstance(wire, Lines)}
    assert any(x == pytest.approx(right) for x, _ in begins)
    if min(chip.x for chip in chips) < left:
        x, y = next(end for begin, end in ends.items() if begin == pytest.approx(left))
        assert any(chip.x < x < chip.x + chip.width and chip.y < y < chip.y + chip.height for chip in chips)


def test_a_slide_is_filled_with_bands_of_columns() -> None:
    folder = SAMPLE.parent / "while_loop"
    made = draw(folder / "model.xml", dict(np.load(folder / "inputs.npz")), why="end", preset="slide")
    drawn = Drawing(made.text("svg"))
    texts = [words.text for words in drawn.words]
    bottoms = [words.y for words in drawn.words if words.text == "on the path"]
    assert len(bottoms) == 2 and max(words.y for words in drawn.words) > 0.85 * drawn.page.bottom
    assert {"79", "26", "left out", "106", "107", "108", "109", "110"} <= set(texts)
    assert {"number 8", "half"} <= set(texts)  # what goes on in the next band


@each_row("name", ["date_normaliser", "rwkv_overflow"])
def test_a_short_story_fills_a_slide(name: str) -> None:
    folder = SAMPLE.parent / name
    made = draw(folder / "model.xml", dict(np.load(folder / "inputs.npz")), why="end", preset="slide")
    drawn = Drawing(made.text("svg"))
    area = max(words.area.right for words in drawn.words), max(words.area.bottom for words in drawn.words)
    assert area[1] > 0.82 * drawn.page.bottom and area[0] > 0.6 * drawn.page.right
    assert not [fault for fault in geometry.faults(drawn) if "overlap" in fault or "leave" in fault]


def test_a_column_of_a_paper_has_the_birth_and_what_was_asked_in_two_bands() -> None:
    made = draw(SAMPLE / "model.xml", dict(np.load(SAMPLE / "inputs.npz")), why=ASKED, preset="paper")
    drawn = Drawing(made.text("svg"))
    width = float(re.search(r' width="([0-9.]+)"', made.text("svg"))[1])  # type: ignore[index]
    assert width <= 84 / 25.4 * 96
    assert {"first Inf", "first NaN"} <= {words.text for words in drawn.words}


def test_births_stay_where_iterations_are_left_out() -> None:
    for preset in ("slide", "docs"):
        made = draw(SAMPLE / "model.xml", dict(np.load(SAMPLE / "inputs.npz")), why=ASKED, preset=preset)
        assert "first Inf" in made.text("svg") and "first NaN" in made.text("svg")


def test_formats_of_text_have_a_cluster_for_each_iteration_and_json_has_all_facts(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(arguments("--why", ASKED, "--as", "mermaid", "-q")) == 0
    chart = capfd.readouterr().out
    assert chart.count("subgraph") == 2 and "exp_key[0,3] = +Inf" in chart and "numerator +Inf" in chart
    assert main(arguments("--why", ASKED, "--as", "json", "-q")) == 0
    data = json.loads(capfd.readouterr().out)
    assert len(data["links"]) == 11 and data["links"][0]["value"] == "NaN"
    assert [column["path"] for column in data["columns"]] == [[7], [8]]
    key = next(link for link in data["links"] if link["value"] == pytest.approx(89.2, abs=1e-4))
    assert key["operands"][0]["share"] == pytest.approx(0.3756, abs=1e-4)


def test_a_story_can_be_drawn_from_python_and_pictures_show_the_same() -> None:
    picture = draw(SAMPLE / "model.xml", dict(np.load(SAMPLE / "inputs.npz")), why="end")
    assert picture.story is not None and picture.story.end is not None and picture.story.end.iteration == 11
    picture = draw(SAMPLE / "model.xml", dict(np.load(SAMPLE / "inputs.npz")), why=ASKED)
    assert picture.written("png").startswith(b"\x89PNG") and picture.written("pdf").startswith(b"%PDF")
    assert "exp(89.2)" in str(picture)


def test_headings_of_short_names_stand_beside_each_other(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", "f32", ()), net.body()
    h = body.parameter("h", "f32", ())
    k = body.apply("Add", h, h, name="k")
    result = body.result(k, "k_next")
    net.result(net.loop("grow", body, 4, True, [carried(x, h, result)], [last(result)])[0], "y")
    made = draw(net.read(tmp_path), {"x": np.float32(1)}, why="k")
    drawing = Drawing(made.text("svg"))
    assert {"on the path", "0–3"} <= {words.text for words in drawing.words}
    assert not [fault for fault in geometry.faults(drawing) if "overlap" in fault]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--view", "story"), "--view story and --why belong together"),
        (("--why", "end", "--view", "rolled"), "--view story and --why belong together"),
        (("--why", "nothing_so_called"), "nothing called"),
        (("--why", ASKED, "--as", "csv"), "shows a run"),
    ],
)
def test_what_does_not_fit_is_refused(more: tuple[str, ...], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(*more)) != 0
    assert message in capfd.readouterr().err
    with pytest.raises(UsageError, match="needs inputs"):
        draw(SAMPLE / "model.xml", why="end")
