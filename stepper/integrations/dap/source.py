"""Where a client finds the listing: a file beside the model, so that its breakpoints last, or a text that it asks for.

`.stepper/NAME.stepper.py` is written where there is another text or none. Where nothing may be written, and where the
name leads somewhere else by a link, the text is served by the adapter.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from stepper.errors import OutputError
from stepper.files.kinds import FileKind
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.integrations.dap.messages import ShownSource, SourceArguments
from stepper.ir.model import Layer, Model

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
