"""The stack: a frame a level of loops, the innermost first, with the line of the listing at which it stands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from stepper.debug.debugger import Debugger
from stepper.debug.inspection.views import FrameView, LevelView, frame_views
from stepper.engine.program import Program
from stepper.errors import OutputError, UsageError
from stepper.files.kinds import FileKind
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.integrations.dap.listing import ModelListing
from stepper.integrations.dap.messages import ShownFrame, ShownSource, SourceArguments
from stepper.ir.model import Layer, Model


def shown_frames(debugger: Debugger, listing: ModelListing, source: ShownSource) -> list[ShownFrame]:
    """Return the frames at this stop; at the end of the run one that says so."""
    levels = debugger.view(differences=False).levels
    if not levels:
        line = len(listing.lines)
        return [ShownFrame(1, f"end of the run, tick {debugger.stop.tick}", line, 1, source, can_restart=True)]
    frames = frame_views(debugger.machine.stack)
    return [
        ShownFrame(level.depth + 1, _name(level), _line(listing, frame), 1, source, can_restart=True)
        for level, frame in reversed(list(zip(levels, frames, strict=True)))
    ]


def _line(listing: ModelListing, frame: FrameView) -> int:
    return listing.line_of(frame.program, frame.moment, closed=frame.closed)


def _name(level: LevelView) -> str:
    if level.depth == 0:
        return "model"
    count = f" ({level.count})" if level.count else ""
    return f"{level.name} @{level.iteration}{count}" if level.iteration is not None else f"{level.name}: {level.phase}"


def restart_tick(debugger: Debugger, depth: int) -> int:
    """Return the tick at which the frame at a depth was entered, 0 for the model's own graph. UsageError."""
    if depth == 0:
        return 0
    stack = debugger.machine.stack
    activation = stack[depth].activation if 0 < depth < len(stack) else None
    if activation is None or activation.entered == 0:
        raise UsageError(f"there is no frame {depth + 1} here whose beginning is known")
    return activation.entered


def program_of(debugger: Debugger, frame: int | None) -> Program:
    """Return the graph of a frame, by its number, from which names are seen; without one that of the innermost."""
    stack = debugger.machine.stack
    if frame is None or not stack:
        return debugger.machine.program
    if not 0 < frame <= len(stack):
        raise UsageError(f"there is no frame {frame} at this stop")
    return stack[frame - 1].program


FOLDER: Final = ".stepper"
_SUFFIX: Final = ".stepper.py"
_KIND: Final = FileKind("a listing", (".py",))
_NUMBER: Final = 1
"""By which the text is asked for where it is no file."""


def listing_source(model: Model, text: str, protected: ProtectedFiles) -> ShownSource:
    """Return the source with this text, written to its file where that can be."""
    forms = [".calls" if model.calls is not None else ""]
    forms += [".opened" if any(one.opened_from and not one.is_over_calls for one in _loops(model)) else ""]
    name = f"{model.path.stem}{''.join(forms)}{_SUFFIX}"
    path = Path(os.path.realpath(model.path.parent)) / FOLDER / name
    if _is_written(path, text.encode(), protected):
        return ShownSource(name, str(path))
    return ShownSource(name, source_reference=_NUMBER, origin="listed by stepper; no file could be written")


def _loops(model: Model) -> list[Layer]:
    return [layer for _path, graph in model.graphs() for layer in graph.holders]


def _is_written(path: Path, content: bytes, protected: ProtectedFiles) -> bool:
    """Return True if the file has this content now."""
    if path.parent.is_symlink() or path.is_symlink():
        return False
    try:
        if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
            return True
        path.parent.mkdir(exist_ok=True)
        OutputFile(path, _KIND, protected).write(content)
    except (OSError, OutputError):
        return False
    return True


def is_source(asked: SourceArguments, source: ShownSource) -> bool:
    """Return True if a client means this source."""
    if asked.path:
        same = bool(source.path) and _spelled(asked.path) == _spelled(source.path)
        return same or (not source.path and os.path.basename(asked.path) == source.name)  # noqa: PTH119
    if asked.source_reference:
        return asked.source_reference == source.source_reference
    return asked.name == source.name


def _spelled(path: str) -> str:
    try:
        return os.path.normcase(os.path.realpath(path))
    except (OSError, ValueError):
        return path
