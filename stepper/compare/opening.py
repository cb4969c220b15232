"""From what a user writes after `--with` to a reference: OpenVINO, a recorded run, an archive of values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stepper.compare.archive_reference import ArchiveReference
from stepper.compare.openvino_reference import OpenVINOReference
from stepper.compare.reference import Reference
from stepper.element_types import Array
from stepper.engine.program import CompiledModel
from stepper.errors import UsageError

_SQLITE = b"SQLite format 3\0"


def open_reference(text: str, compiled: CompiledModel, inputs: Sequence[Array]) -> Reference:
    """The reference for a model; UsageError for what is none, InputError or SessionError for a file that is damaged."""
    if text == "openvino":
        return _openvino(compiled, inputs)
    path = Path(text)
    if path.suffix == ".npz":
        return ArchiveReference(path, compiled)
    try:
        with path.open("rb") as file:
            beginning = file.read(len(_SQLITE))
    except OSError as error:
        raise UsageError(f"--with {text}: cannot be read: {error.strerror or error}") from None
    if beginning == _SQLITE:
        from stepper.compare.recording_reference import RecordingReference

        return RecordingReference(path, compiled, inputs)
    raise UsageError(
        f"--with {text}: expected a model (.xml), a recorded run, an archive of values (.npz), or openvino"
    )


def _openvino(compiled: CompiledModel, inputs: Sequence[Array]) -> Reference:
    """The runtime; UsageError where it is not installed."""
    from stepper.compare.openvino_peer import OpenVINOPeer

    return OpenVINOReference(OpenVINOPeer(compiled.model), inputs, "OpenVINO")
