"""Conversions of models of other formats: made by OpenVINO once and kept.

A conversion is kept in the folder `.stepper` beside the model, or (where that cannot be written) in `stepper` in the
user's cache folder, under the model's name and a hash of its contents; it may be deleted at any time. Nothing is
compressed, and the names are those of the model, so that one finds one's own nodes.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from stepper.errors import ModelError, UsageError
from stepper.files.models import CONVERTED, WEIGHTS_BESIDE
from stepper.ir.excerpts import excerpt
from stepper.near_names import reason_of
from stepper.openvino.conversion import conversion_complaint
from stepper.openvino.onnx_division import truncate_divisions
from stepper.openvino.runtime import Runtime, ensure_installed
from stepper.openvino.worker import Convert, shared_worker
from stepper.processes.endings import ConversionEnded

FOLDER: Final = ".stepper"
_TFLITE: Final = b"TFL3"

_REVISION: Final = b"2"
"""Of what is done to a conversion after the converter; one that was kept by an earlier revision is made anew."""


def converted(path: Path, told: Callable[[str], None] | None = None, timeout: float | None = None) -> Path:
    """Return the .xml into which OpenVINO converts a model: the one that is kept, or a new one."""
    name = f"{path.stem[:80]}-{_content_hash(path)}"
    places = [path.parent / FOLDER, _user_cache()]
    for place in places:
        if (kept := place / f"{name}.xml").is_file() and kept.with_suffix(".bin").is_file():
            return kept
    ensure_installed(f"{path}: opening a model of {CONVERTED[path.suffix.lower()]}")
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            temporary = tempfile.TemporaryDirectory(dir=place, prefix=f".{name[:40]}.")
        except OSError:
            continue
        with temporary as folder:
            _convert(path, Path(folder).resolve() / "model.xml", timeout)
            if path.suffix.lower() == ".onnx":
                truncate_divisions(Path(folder) / "model.xml")
            for suffix in (".bin", ".xml"):  # the .xml last: where it stands, all is there
                (Path(folder) / f"model{suffix}").replace(place / f"{name}{suffix}")
        if told is not None:
            told(f"converted {path} with OpenVINO, kept as {place / name}.xml")
        return place / f"{name}.xml"
    raise UsageError(f"{path}: its conversion can be written neither to {places[0]} nor to {places[1]}")


def _convert(path: Path, target: Path, timeout: float | None) -> None:
    """Let OpenVINO write the model as an IR, in a process of its own. ModelError where it cannot or crashes."""
    if path.suffix.lower() == ".tflite":
        with path.open("rb") as file:
            if (
                file.read(8)[4:] != _TFLITE
            ):  # else each of OpenVINO's readers would say on stderr that it is not its own
                raise ModelError(
                    f"{path}: is not a {CONVERTED['.tflite']} model: its bytes 4 to 7 are not {_TFLITE.decode()}"
                )
    # The parts of a saved model of TensorFlow are found by their folder.
    source = (path.parent if path.name == "saved_model.pb" else path).resolve()
    act = Convert(str(source), str(target), str(target.parent))
    try:
        shared_worker().ask(act, subject=f"{path}", limits=Runtime(timeout=timeout).limits)
    except RuntimeError as error:
        raise ModelError(f"{path}: {conversion_complaint(error)}") from None
    except ConversionEnded as error:
        advice = "convert it where it was made (openvino.convert_model, openvino.save_model), and open the .xml"
        raise ConversionEnded(f"{error}; {advice}") from None


def _content_hash(path: Path) -> str:
    """Return a hash of the file, and of name, size and time of those beside it that may hold its weights.

    The contents of these may be large, so that size and time must do.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=12, salt=_REVISION))
        for other in sorted(_weights_beside(path)):
            status = other.stat()
            digest.update(f"{other.name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    except OSError as error:
        raise ModelError(f"{excerpt(str(path))}: cannot be read: {reason_of(path, error)}") from None
    return digest.hexdigest()


def _weights_beside(path: Path) -> Iterator[Path]:
    yield from (other for other in path.parent.iterdir() if other.suffix.lower() in WEIGHTS_BESIDE and other.is_file())
    if path.name == "saved_model.pb" and (variables := path.parent / "variables").is_dir():
        yield from (other for other in variables.iterdir() if other.is_file())


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "stepper"
