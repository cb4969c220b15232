"""Models that an application compiles, kept so that a case can be written later: as they were when they were compiled.

A model in memory is cloned, which shares its weights; of a file, its size and time are kept. Nothing is written before
a case is.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from stepper.files.kinds import IR_SUFFIX, WEIGHTS_SUFFIX

if TYPE_CHECKING:
    import openvino

_PIECE: Final = 2**20
_FileStamp = tuple[int, int, int]
"""Size, time and number of a file."""
_UNTOLD: Final = {"SUPPORTED_PROPERTIES", "RUNTIME_REQUIREMENTS", "LOG_LEVEL"}


class ModelFiles(Struct, frozen=True):
    """The two files of a model that was written; `is_as_read`: they are those that the application read."""

    xml: Path
    bin: Path
    hash: str
    is_as_read: bool


class CannotBeKept(Exception):
    """A model cannot be written; the message says why."""


class ModelSource:
    """A model as an application compiled it: one in memory, or a file.

    `path` is the file from which it was read ("": none is known), `device` and `properties` are those of the compiled
    model. With `weights`, `origin` is what OpenVINO takes as the text of a model.
    """

    def __init__(self, model: Any, origin: Any, weights: Any = None) -> None:
        self._model = None if model is None else model.clone()
        self._origin, self._weights = origin, weights
        self._stamp = None if origin is None or weights is not None else _stamp(str(origin))
        self.path = "" if self._stamp is None else str(origin)
        self._written: ModelFiles | None = None
        self.device = ""
        self.properties: dict[str, str] = {}

    def compiled(self, compiled: openvino.CompiledModel, device: str | None) -> None:
        """Take over what it was compiled with."""
        found: dict[str, Any] = {}
        for name in {str(one) for one in compiled.get_property("SUPPORTED_PROPERTIES")}:
            try:
                found[name] = compiled.get_property(name)
            except (RuntimeError, TypeError):  # some have no value that Python has
                continue
        for one, of_device in _mapping(found.pop("DEVICE_PROPERTIES", None)).items():  # where AUTO, HETERO... chose it
            for name, value in _mapping(of_device).items():
                if found.setdefault(name, value) != value:
                    found[f"{one}.{name}"] = value
        told = sorted(name for name in found if name.rpartition(".")[2] not in _UNTOLD)
        self.properties = {name: _property_text(found[name]) for name in told}
        self.device = self.properties.get("EXECUTION_DEVICES") or device or "AUTO"

    def write(self, folder: Path, core: openvino.Core, read: Any) -> ModelFiles:
        """Write the model into a folder; again only as links to what was written first. Raises CannotBeKept, OSError.

        `read` is `Core.read_model` as OpenVINO has it.
        """
        target = folder / "model"
        xml, weights = target.with_suffix(IR_SUFFIX), target.with_suffix(WEIGHTS_SUFFIX)
        if self._written is not None and self._written.xml.is_file() and self._written.bin.is_file():
            for old, new in ((self._written.xml, xml), (self._written.bin, weights)):
                _link(old, new)
            return self._written
        is_as_read = self._write(xml, weights, core, read)
        self._written = ModelFiles(xml, weights, model_hash(xml, weights), is_as_read)
        return self._written

    def moved(self, old: Path, new: Path) -> None:
        """A folder in which it was written has another name now."""
        files = self._written
        if files is not None and files.xml.parent == old:
            self._written = ModelFiles(new / files.xml.name, new / files.bin.name, files.hash, files.is_as_read)

    def _write(self, xml: Path, weights: Path, core: openvino.Core, read: Any) -> bool:
        import openvino

        is_there = self._stamp is not None and _stamp(self.path) == self._stamp
        is_ir = is_there and self.path.lower().endswith(IR_SUFFIX)
        if self._model is None and self._weights is None and not is_there:
            raise CannotBeKept(f"{self.path or 'its file'} has changed since it was compiled")
        try:
            model = self._model
            if self._weights is not None:
                text = self._origin.encode() if isinstance(self._origin, str) else self._origin
                model = read(core, text, openvino.Tensor(np.frombuffer(self._weights, np.uint8)))
            elif model is not None and is_ir and self._is_unchanged(read(core, self.path)):
                model = None  # nobody changed what was read: the file itself is kept
            elif model is None and not is_ir:
                model = read(core, self.path)
            if model is not None:
                openvino.serialize(model, str(xml), str(weights))
                return False
        except RuntimeError as error:
            raise CannotBeKept(f"OpenVINO cannot write the model: {str(error).splitlines()[-1]}") from None
        shutil.copyfile(self.path, xml)
        beside = Path(self.path).with_suffix(WEIGHTS_SUFFIX)
        if beside.is_file():
            shutil.copyfile(beside, weights)
        else:
            weights.touch()
        return True

    def _is_unchanged(self, fresh: Any) -> bool:
        """Return True if a model that has just been read is the one that was compiled."""
        import openvino

        with tempfile.TemporaryDirectory() as name:
            hashes = []
            for index, model in enumerate((self._model, fresh)):
                xml, weights = Path(name) / f"{index}.xml", Path(name) / f"{index}.bin"
                openvino.serialize(model, str(xml), str(weights))
                hashes.append(model_hash(xml, weights))
        return hashes[0] == hashes[1]


def versions() -> Mapping[str, str]:
    """Return the versions of what computed."""
    import platform

    import openvino

    import stepper

    return {
        "openvino": openvino.get_version(),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "stepper": stepper.__version__,
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _property_text(value: Any) -> str:
    if hasattr(value, "get_type_name"):
        return str(value.get_type_name())
    if isinstance(value, (list, tuple, set)):
        return ", ".join(map(str, value))
    return str(getattr(value, "name", value))


def _stamp(path: str) -> tuple[_FileStamp | None, ...] | None:
    """Return the stamp of a file, and of an IR those of its weights; None where there is no such file."""
    found = _stamp_of(Path(path))
    if found is None:
        return None
    is_ir = path.lower().endswith(IR_SUFFIX)
    return (found, _stamp_of(Path(path).with_suffix(WEIGHTS_SUFFIX))) if is_ir else (found,)


def _stamp_of(path: Path) -> _FileStamp | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _link(old: Path, new: Path) -> None:
    try:
        new.hardlink_to(old)
    except OSError:
        shutil.copyfile(old, new)


def model_hash(*paths: Path) -> str:
    """Return the SHA-256 of files, one behind the other."""
    found = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                found.update(piece)
    return found.hexdigest()
