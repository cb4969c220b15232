"""Frames: a file for each step of a run, all of one size, named by the iteration: `0000.svg`, `0001.svg`, ..."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from stepper.errors import OutputError, UsageError
from stepper.export.drawing.timing import DrawnStep
from stepper.export.picture import Picture
from stepper.export.steps.stepping import steps_of
from stepper.files.kinds import FORMATS, FigureFormat
from stepper.wording import enumerated

_FRAME: Final = re.compile(r"[0-9]{4,}")


def check_format(format: FigureFormat) -> None:
    """Raise UsageError for a format that is no drawing."""
    if not format.is_drawing:
        drawings = enumerated([one.name for one in FORMATS.values() if one.is_drawing])
        raise UsageError(f"frames are drawings: {drawings}, not {format.name}")


def frames(picture: Picture, format: FigureFormat) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files, one at a time. Raise UsageError where there are no steps."""
    drawing = steps_of(picture)
    for index, step in enumerate(drawing.steps):
        page = replace(picture, page=drawing.at(index))
        if index:  # what is to be said of all was said of the first
            page = replace(page, request=replace(page.request, warn=_ignore))
        yield frame_name(step, drawing.steps, format), page.written(format.name)


def _ignore(_text: str) -> None:
    """Drop a note."""


def frame_name(step: DrawnStep, steps: Sequence[DrawnStep], format: FigureFormat) -> str:
    """Return the name of a step's file; so many digits that names sort as steps do."""
    digits = max(4, len(str(steps[-1].begin)))
    return f"{step.begin:0{digits}}{format.kind.suffixes[0]}"


def other_frames(folder: Path, names: Sequence[str]) -> list[str]:
    """Return the files of a folder that are named as frames of this kind but are none of these: of an earlier run."""
    suffix = Path(names[0]).suffix
    found = (one.name for one in folder.iterdir() if one.suffix == suffix and _FRAME.fullmatch(one.stem))
    return sorted(set(found) - set(names))


def made_folder(path: Path) -> Path:
    """Return the folder, which is made where there is none. Raise OutputError where that cannot be."""
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError:
        raise OutputError(f"--frames {path}: that is a file, and frames are put into a folder") from None
    except OSError as error:
        raise OutputError(f"--frames {path}: the folder cannot be made: {error.strerror}") from None
    return path
