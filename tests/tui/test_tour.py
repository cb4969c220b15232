"""The tour of the README, taken: each step shows what the text says, and the text names what is typed."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]


def tour() -> ModuleType:
    """The script, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("sample_models_tour", ROOT / "sample_models" / "tour.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_each_step_of_the_tour_shows_what_the_text_says() -> None:
    module = tour()

    async def take() -> None:
        count = 0
        async for screen in module.screens():
            count += 1
            for text in screen.step.shows:
                assert text in screen.text, f"step {screen.step.name}: {text!r} is not on the screen\n{screen.text}"
            painted = "".join(ElementTree.fromstring(screen.svg).itertext()).replace("\u00a0", " ")
            assert [text for text in screen.step.shows if text not in painted] == []
            assert "http" not in screen.svg.replace("http://www.w3.org/2000/svg", ""), "nothing from the network"
            assert len(screen.svg) < 80_000
        assert count == len(module.STEPS)

    asyncio.run(take())


def test_the_readme_names_what_is_typed_and_shows_each_picture() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.split(r"\n## ", text.partition("## Where does the NaN come from?")[2])[0]
    for step in tour().STEPS:
        for typed in step.typed:
            assert f"`{typed}`" in section, typed
        if step.typed:
            picture = f"sample_models/rwkv_overflow/tour_{step.name}.svg"
            assert picture in section and (ROOT / picture).stat().st_size > 1000
