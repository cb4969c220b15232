"""The tour of the README, taken: each step shows what the text says, and the text names what is typed."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sample_models import tour
from sample_models.animation import animated

ROOT = Path(__file__).parents[2]


def test_each_step_of_the_tour_shows_what_the_text_says() -> None:
    async def take() -> None:
        count = 0
        async for screen in tour.screens():
            count += 1
            for text in screen.step.shows:
                assert text in screen.text, f"step {screen.step.name}: {text!r} is not on the screen\n{screen.text}"
            painted = "".join(ElementTree.fromstring(screen.svg).itertext()).replace("\u00a0", " ")
            assert [text for text in screen.step.shows if text not in painted] == []
            assert "http" not in screen.svg.replace("http://www.w3.org/2000/svg", ""), "nothing from the network"
            assert len(screen.svg) < 80_000
        assert count == len(tour.STEPS)

    asyncio.run(take())


def test_the_readme_names_what_is_typed() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.split(r"\n## ", text.partition("## Where does the NaN come from?")[2])[0]
    assert "sample_models/rwkv_overflow/tour.svg" in section
    for step in tour.STEPS:
        for typed in step.typed:
            assert f"`{typed}`" in section, typed


@pytest.mark.parametrize("screen", tour.TEXT_SCREENS, ids=lambda screen: screen.page)
def test_a_page_shows_the_screen_of_today(screen: tour.TextScreen) -> None:
    page = (ROOT / screen.page).read_text(encoding="utf-8")
    text = asyncio.run(tour.screen_as_text(screen))
    assert tour.with_screen(page, screen.name, text) == page, "python -m sample_models.tour"


SVG = "{http://www.w3.org/2000/svg}"


def texts(element: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in element.iter(f"{SVG}text") if text.get("class") != "title"]


def test_the_animated_picture_shows_each_frame_at_its_time_and_the_last_one_where_nothing_moves() -> None:
    folder = ROOT / "sample_models" / "rwkv_overflow"
    frames = [(folder / f"tour_{step.name}.svg").read_text(encoding="utf-8") for step in tour.STEPS]
    made = animated(frames, tour.SECONDS)
    assert made == (folder / "tour.svg").read_text(encoding="utf-8"), "python -m sample_models.tour"
    assert "prefers-reduced-motion" in made and "http" not in made.replace("http://www.w3.org/2000/svg", "")
    (matrix,) = (group for group in ElementTree.fromstring(made).iter(f"{SVG}g") if group.get("class") == "matrix")
    rules = {
        name: [(float(when), word) for when, word in re.findall(r"([0-9.]+)% \{ visibility: (\w+)", steps)]
        for name, steps in re.findall(r"@keyframes (f[0-9]+) \{ (.*) \}\n", made)
    }
    for index, frame in enumerate(frames):
        now = 100 * (sum(tour.SECONDS[:index]) + tour.SECONDS[index] / 2) / sum(tour.SECONDS)
        shown: list[str] = []
        for group in matrix:
            steps = rules.get(group.get("class", ""), [(0.0, "visible")])
            assert (group.get("visibility") == "hidden") == (steps[-1][1] == "hidden"), "the last frame stands still"
            if [word for when, word in steps if when <= now][-1] == "visible":
                shown += texts(group)
        assert sorted(shown) == sorted(texts(ElementTree.fromstring(frame)))
