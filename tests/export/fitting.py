"""Whether figures of files fit their pages: `python -m tests.export.fitting MODEL.xml ...` tries all views and presets.

Inputs are an .npz beside a model: of its own name, or inputs.npz; keys are names, or in_0, in_1 ... A line tells each
figure that is at fault, the last one what was drawn and what was refused.
"""

from __future__ import annotations

import argparse
import re
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from stepper.errors import StepperError
from stepper.export.exporter import draw, opened
from stepper.export.fonts import advance
from stepper.export.options import Theme
from stepper.export.picture import Picture
from stepper.export.styles import PALETTES, Group, PageDrawing, Shape, TextLine, properties_of
from tests.export.reading_back import geometry
from tests.export.reading_back.drawing import Area, Drawing

MILLIMETRE = 96 / 25.4
LEAST = {"paper": 7 * 96 / 72, "docs": 11, "slide": 18}
"""Pixels of the smallest letters."""
PAGES: tuple[tuple[dict[str, Any], float], ...] = (
    ({}, 0),
    ({"preset": "paper"}, 84 * MILLIMETRE),
    ({"preset": "paper", "width": round(170 * MILLIMETRE)}, 170 * MILLIMETRE),
    ({"preset": "docs"}, 820),
    ({"preset": "slide"}, 1280),
)
"""Options of a page, and its width in pixels; 0: as wide as the figure."""
VIEWS: tuple[dict[str, Any], ...] = (
    {"view": "model"},
    {"view": "rolled"},
    {"view": "ports"},
    *(
        {"view": "unrolled", "direction": direction, "values": values}
        for direction, values in product(("down", "right"), ("none", "full"))
    ),
    {"why": "end"},
)


def texts(items: tuple[Shape, ...], groups: str = "") -> Iterator[tuple[TextLine, float, bool]]:
    """The lines of text with their height in units, and whether they are bold."""
    for item in items:
        if isinstance(item, Group):
            yield from texts(item.items, item.classes)
        elif isinstance(item, TextLine):
            found = properties_of(item.style, groups, PALETTES[Theme.PRINT])
            yield item, float(found["font-size"].removesuffix("px")), found.get("font-weight") == "bold"


def faults_of_page(page: PageDrawing, width: float, least: float, highest: float = 0) -> Iterator[str]:
    """What is wrong with a page that may be so wide (and high), its smallest letters so high; all in pixels."""
    pixels = page.points * 96 / 72
    if width and page.width * pixels > width + 1:
        yield f"{page.width * pixels:.0f} pixels wide of {width:.0f}"
    if highest and page.height * pixels > highest:
        yield f"{page.height * pixels:.0f} pixels high of {highest:.0f}"
    shown: list[tuple[str, Area]] = []
    for line, size, bold in texts(page.items):
        if size * pixels < least - 0.01:
            yield f"letters of {size * pixels:.1f} pixels: {line.text!r}"
        wide = advance(line.text, size, bold=bold)
        left = line.x - wide * {"start": 0, "middle": 0.5, "end": 1}[line.anchor]
        if left < -0.5 or left + wide > page.width + 0.5 or line.y > page.height + 0.5:
            yield f"the words {line.text!r} leave the page"
        shown.append((line.text, Area(left, line.y - 0.7 * size, wide, 0.7 * size)))
    for (one, a), (other, b) in combinations(shown, 2):
        across, down = a.overlap(b)
        if across > 0.7 and down > 0.7:
            yield f"the words {one!r} and {other!r} overlap"


def faults_of(made: Picture, preset: str | None, width: float) -> Iterator[str]:
    """What is wrong with a figure on a page."""
    if made.page is not None:
        yield from faults_of_page(made.page, width, LEAST.get(preset or "", 0))
    drawing = Drawing(made.text("svg"))
    if drawing.boxes or drawing.frames:
        yield from geometry.faults(drawing)


def inputs_of(path: Path) -> Mapping[Any, np.ndarray] | None:
    """The inputs beside a file, by name or position."""
    beside = (path.with_suffix(".npz"), path.with_name("inputs.npz"))
    found = next((one for one in beside if one.exists()), None)
    if found is None:
        return None
    with np.load(found, allow_pickle=False) as arrays:
        by_position = {int(key[3:]): arrays[key] for key in arrays.files if re.fullmatch(r"in_\d+", key)}
        return by_position or dict(arrays)


def tried(path: Path) -> Iterator[tuple[str, str, str]]:
    """Each figure of a file: its options, one of `drawn`, `refused` and `fault`, and what is said."""
    try:
        model, inputs = opened(path), inputs_of(path)
    except StepperError as error:
        yield "", "refused", str(error)
        return
    for view, (page, width) in product(VIEWS, PAGES):
        if inputs is None and not {"model", "rolled", "ports"} & {view.get("view")}:
            continue
        options = {**view, **page}
        named = " ".join(f"--{key} {value}" for key, value in options.items())
        given = inputs if view.get("view") == "unrolled" or "why" in view else None
        try:
            made = draw(model, given, **options)
            found = list(faults_of(made, page.get("preset"), width))
        except StepperError as error:
            yield named, "refused", str(error)
            continue
        except Exception:  # what a reader would see as a traceback is what is looked for
            found = [traceback.format_exc().strip().replace("\n", " | ")[-400:]]
        yield from ((named, "fault", fault) for fault in found)
        yield named, "drawn", ""


def main(paths: Iterable[Path]) -> int:
    counts: Counter[str] = Counter()
    for path in paths:
        for named, kind, said in tried(path):
            counts[kind] += 1
            if kind != "drawn":
                print(f"{kind}: {path.parent.name}/{path.name} {named}: {said}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return int(counts["fault"] > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    raise SystemExit(main(parser.parse_args().models))
