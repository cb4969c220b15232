"""The bytes of many figures: `python -m tests.export.figure_bytes FOLDER` prints a hash of each, as JSON.

FOLDER holds sample models, perhaps copied. test_figure_bytes.py runs it under all kinds of circumstances.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np

import stepper
from stepper.export.exporter import draw, export
from stepper.export.picture import FigureRequest
from stepper.files.file_kinds import FORMATS, FormatSubject

FIGURES = (
    ("reverse", {"view": "unrolled", "values": "thumbnails"}),
    ("while_loop", {"view": "unrolled", "values": "full"}),
    ("while_loop", {"view": "unrolled", "direction": "right", "width": 320}),
    ("nested_loop", {"view": "unrolled", "loop": "passes@1::pairs_of_neighbours", "depth": 1}),
    ("nested_loop", {"view": "model", "depth": 2}),
    ("for_loop", {"view": "rolled"}),
    ("while_loop", {"view": "ports", "loop": "until_one"}),
    ("for_with_condition", {"why": "end"}),
    ("growing_tensor", {"why": "sequence"}),
)
"""Samples that multiply no matrices: the last digits of these differ from processor to processor."""
NAMES = tuple(dict.fromkeys(name for name, _ in FIGURES))


def figures(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Everything that is written, with a name."""
    for name, options in FIGURES:
        model = stepper.read_model(folder / name / "model.xml")
        needs_run = options.get("view") == "unrolled" or "why" in options
        with np.load(folder / name / "inputs.npz") as inputs:
            made = draw(model, dict(inputs) if needs_run else None, **options)  # type: ignore[arg-type]
        for format in FORMATS.values():
            runs = made.trace is not None or (made.story is not None and format.name == "json")
            if format.subject is FormatSubject.FIGURE or (format.subject is FormatSubject.RUN and runs):
                yield f"{name} {options} as {format.name}", made.written(format.name)
        if "view" in options and options["view"] == "rolled":
            yield f"{name} as numpy", export(model, None, FigureRequest(), FORMATS["numpy"]).content


def main() -> None:
    """Print the hashes."""
    print(json.dumps({name: sha256(content).hexdigest() for name, content in figures(Path(sys.argv[1]))}))


if __name__ == "__main__":
    main()
