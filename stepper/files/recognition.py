"""Recognition of files and folders: by first bytes, the names of what is in them, and (last) the suffix.

Nothing is unpickled, unpacked or parsed: a bounded part of the file is looked at, whoever wrote it.
"""

from __future__ import annotations

import re
import shlex
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from stepper.errors import ModelError
from stepper.files.file_kinds import CONVERTED, IR_SUFFIX, folder_text, is_case, is_ir
from stepper.wording import excerpt

_BEGINNING = 4096
_ARCHIVE_END = 2**20
"""Largest table of contents at the end of an archive, in bytes; a model's table is smaller."""
_MOST_ENTRIES = 2000
"""Of a folder."""
_TFLITE = b"TFL3"


class NotAModel(NamedTuple):
    """Kind of a file that is not opened: the end of a sentence, and the lines that make a model of it."""

    what: str
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n  ".join((f"{self.what}:" if self.lines else self.what, *self.lines))


def not_a_model(path: Path) -> NotAModel | None:
    """Return what a file is that no command opens as a model; None for an IR, for what OpenVINO converts, and for what
    is not known or cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING)
    except (OSError, ValueError):
        return None
    found = next((say(path, beginning) for begins, say in _BEGINNINGS if beginning.startswith(begins)), None)
    if found is None and (page := _PAGE.match(beginning)) is not None:
        title = _TITLE.search(beginning, page.start())
        named = f" ('{excerpt(title[1].decode('utf-8', 'replace'))}')" if title else ""
        found = NotAModel(f"is a web page{named}, not a model: download the file itself")
    return found or (_converted if path.suffix.lower() in CONVERTED else _other)(path, beginning)


_PAGE = re.compile(rb"(?is)[\s\xef\xbb\xbf]*(?:<!doctype html|<html)")
_TITLE = re.compile(rb"(?is)<title[^>]*>\s*(.{1,200}?)\s*</title")


def _converted(path: Path, beginning: bytes) -> NotAModel | None:
    """Return why a file is no model that OpenVINO converts: it is empty or a text, or lacks the mark of its format."""
    text = beginning.strip()
    if not text:
        return NotAModel("is empty: copy or download it again")
    said = excerpt(text.decode("ascii", "replace"), 80)
    if len(beginning) < _BEGINNING and text.isascii() and text.decode().isprintable() and " " in said:
        return NotAModel(f"is a text ('{said}'), not a model: copy or download it again")
    if path.suffix.lower() == ".tflite" and beginning[4:8] != _TFLITE:
        return NotAModel(f"is not a {CONVERTED['.tflite']} model: its bytes 4 to 7 are not {_TFLITE.decode()}")
    return None


def _other(path: Path, beginning: bytes) -> NotAModel | None:
    if beginning[:1] == b"{" and b'"pir"' in beginning[:400]:
        return NotAModel(
            "is a PaddlePaddle model in JSON, which OpenVINO does not read; make an ONNX file of it",
            (
                f"paddle2onnx --model_dir {_quoted(path.parent)} --model_filename {shlex.quote(path.name)} "
                f"--params_filename {shlex.quote(f'{path.stem}.pdiparams')} "
                f"--save_file {_quoted(path.with_suffix('.onnx'))}",
            ),
        )
    if beginning[4:8] == b"ORTM":
        return NotAModel("is in onnxruntime's own format: open the .onnx that it was made from")
    if beginning[8:9] == b"{" and 2 <= int.from_bytes(beginning[:8], "little") < _LONGEST_HEADER:
        return NotAModel("holds weights alone (safetensors), no graph: export the model that they belong to")
    said = _BY_SUFFIX.get(path.suffix.lower())
    return None if said is None else NotAModel(said)


_LONGEST_HEADER = 10**9


def ensure_model(path: Path) -> None:
    """Raise ModelError for a file that `not_a_model` knows; the lines behind the first convert it."""
    if (found := not_a_model(path)) is not None:
        error = ModelError(f"{path}: {found}")
        error.has_lines = True
        raise error


def pointer_text(path: Path, beginning: bytes) -> str:
    """Return a sentence on a file that is a Git LFS pointer, by how it begins; empty for any other file."""
    found = _pointer(path, beginning)
    return f"{path}: {found.what}: {found.lines[0]}" if beginning.startswith(_POINTER) else ""


_POINTER = b"version https://git-lfs.github.com/spec/"


def _pointer(path: Path, beginning: bytes) -> NotAModel:
    size = re.search(rb"(?m)^size ([0-9]{1,15})$", beginning)
    of = f" ({int(size[1]):,} bytes)" if size else ""
    return NotAModel(f"is a Git LFS pointer, not the file itself{of}", (f"git -C {_quoted(path.parent)} lfs pull",))


def _compressed(program: str) -> Callable[[Path, bytes], NotAModel]:
    def say(path: Path, _beginning: bytes) -> NotAModel:
        name = (
            path.with_suffix("") if path.suffix in (".gz", ".xz", ".bz2", ".zst") else path.with_name(f"un-{path.name}")
        )
        return NotAModel(
            f"is compressed ({program})",
            (f"{program} -dc {_quoted(path)} > {_quoted(name)}", f"stepper {_quoted(name)}"),
        )

    return say


def _hdf5(path: Path, beginning: bytes) -> NotAModel:
    with path.open("rb") as file:
        has_model = b"model_config" in beginning + file.read(_ARCHIVE_END)
    if has_model or path.suffix.lower() == ".keras":
        return _of_keras(path)
    return NotAModel("is an HDF5 file, such as weights of Keras: no model that is opened")


def _of_keras(path: Path) -> NotAModel:
    folder = path.with_suffix("")
    code = f"import keras; keras.models.load_model({str(path)!r}).export({str(folder)!r})"
    return NotAModel(
        "is a Keras model; save it as a SavedModel", (f"python -c {_python(code)}", f"stepper {_quoted(folder)}")
    )


def _archive(path: Path, _beginning: bytes) -> NotAModel:
    """Return what an archive is, by the names in it."""
    names = _names_in_archive(path)
    ends = {name.partition("/")[2] for name in names}
    if "archive_format" in ends or any(name.startswith("models/") for name in ends):
        return _torch(path, "a program that torch.export wrote", f"torch.export.load({str(path)!r})")
    if "serialized_exported_program.json" in names:
        return _torch(path, "a program that torch.export wrote", f"torch.export.load({str(path)!r})")
    if "data.pkl" in ends and any(name.startswith("code/") for name in ends):
        return _torch(path, "a TorchScript module", f"torch.jit.load({str(path)!r})")
    if "data.pkl" in ends:
        return NotAModel(
            "holds weights or objects of PyTorch, no graph; load them where the module is made, and export that",
            (f"torch.onnx.export(module, example_inputs, {str(path.with_suffix('.onnx'))!r})",),
        )
    if "config.json" in names and names & {"metadata.json", "model.weights.h5"}:
        return _of_keras(path)
    inside = next((name for name in sorted(names) if name.lower().endswith((IR_SUFFIX, *CONVERTED))), None)
    if inside is not None:
        return NotAModel(f"is an archive with '{excerpt(inside)}' in it: unpack it, and open that")
    return NotAModel("is not a model, it is an archive, such as .npz: values for inputs are given with --inputs")


def _torch(path: Path, what: str, loaded: str) -> NotAModel:
    target = path.with_suffix(".xml")
    save = f"ov.save_model(ov.convert_model({loaded}), {str(target)!r}, compress_to_fp16=False)"
    return NotAModel(
        f"is {what}; convert it where torch and openvino are installed",
        (f"python -c {_python(f'import torch, openvino as ov; {save}')}", f"stepper {_quoted(target)}"),
    )


def _names_in_archive(path: Path) -> set[str]:
    """Return the names in the table of contents of a zip, from the end of the file alone."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _ARCHIVE_END))
        end = file.read()
    names, at = set(), end.find(b"PK\1\2")
    while 0 <= at <= len(end) - 46:
        length, *rest = struct.unpack_from("<3H", end, at + 28)
        names.add(end[at + 46 : at + 46 + length].decode("utf-8", "replace"))
        at = end.find(b"PK\1\2", at + 46 + length + sum(rest))
    return names


def _python(code: str) -> str:
    """Return Python code as a word of a shell."""
    return f'"{code}"' if not re.search(r'["$`\\!]', code) else shlex.quote(code)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _always(what: str) -> Callable[[Path, bytes], NotAModel]:
    return lambda _path, _beginning: NotAModel(what)


_GGUF = (
    "holds the weights of a language model (GGUF), no graph: export the model that it was made from "
    "(optimum-cli export openvino --model NAME FOLDER), and open that folder"
)
_PICKLE = (
    "is a pickle, as torch.save wrote them long ago, and is not opened, as it may run anything: load it where it was "
    "written, and export the module (torch.onnx.export)"
)

_BEGINNINGS: Final[tuple[tuple[bytes, Callable[[Path, bytes], NotAModel]], ...]] = (
    (_POINTER, _pointer),
    (b"PK\3\4", _archive),
    (b"\x89HDF", _hdf5),
    (b"GGUF", _always(_GGUF)),
    (b"\x1f\x8b", _compressed("gzip")),
    (b"BZh", _compressed("bzip2")),
    (b"\xfd7zXZ\0", _compressed("xz")),
    (b"\x28\xb5\x2f\xfd", _compressed("zstd")),
    (b"SQLite format 3\0", _always("is not a model, it is a database: a recording or a session of stepper")),
    (b"\x93NUMPY", _always("is not a model, it is an array: a value for an input is given with --input NAME=FILE.npy")),
    *((bytes((0x80, version)), _always(_PICKLE)) for version in range(2, 6)),
)  # fmt: skip

_BY_SUFFIX = {
    ".pdiparams": "holds the weights of PaddlePaddle alone: name the .pdmodel beside it",
    ".mlmodel": "is a Core ML model, which OpenVINO does not read: export the original model as ONNX",
    ".engine": "is an engine of TensorRT, which has no graph: open the ONNX file that it was built from",
    ".plan": "is an engine of TensorRT, which has no graph: open the ONNX file that it was built from",
    ".blob": "is a model that OpenVINO has compiled, which has no graph: open the .xml that it was compiled from",
}


# --- folders ----------------------------------------------------------------------------------------------------------

_FIRST = (
    "openvino_model.xml",
    "openvino_language_model.xml",
    "openvino_decoder_model.xml",
    "saved_model.pb",
    "inference.pdmodel",
    "model.pdmodel",
    "model.onnx",
    "decoder_model_merged.onnx",
    "decoder_model.onnx",
)
"""Names of the models that folders are opened for, the first that is there."""


class ModelFolder(NamedTuple):
    """A folder with models: the one that is opened for it (None: none is meant more than another), and the others."""

    model: Path | None
    others: tuple[str, ...]


def model_folder(folder: Path) -> ModelFolder | None:
    """Return the models in a folder that is no case, as TensorFlow, PaddlePaddle, optimum and OpenVINO GenAI write
    them; None where there are none.
    """
    try:
        if is_case(folder) or not folder.is_dir():
            return None
        found = sorted(path for path in _within(folder) if _is_model(path))
    except (OSError, ValueError):
        return None
    names = [path.relative_to(folder).as_posix() for path in found]
    if not names:
        return None
    first = next((name for name in _FIRST if name in names), names[0] if len(names) == 1 else None)
    return ModelFolder(None if first is None else folder / first, tuple(name for name in names if name != first))


def opened_in(folder: str | Path) -> Path | None:
    """Return the model that is opened for a folder; None where none is meant more than another, and for no folder."""
    found = model_folder(Path(folder))
    return None if found is None else found.model


def _within(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder, and of the folders in it, as pipelines of several models have them."""
    left = _MOST_ENTRIES
    for path in folder.iterdir():
        if (left := left - 1) < 0:
            return
        if not path.name.startswith("."):
            yield from (path / name for name in _FIRST) if path.is_dir() else (path,)


def _is_model(path: Path) -> bool:
    suffix = path.suffix.lower()
    return path.is_file() and (suffix in CONVERTED or (suffix == IR_SUFFIX and is_ir(path)))


def folder_sentence(folder: Path) -> str:
    """Return a sentence on a folder from which no model is opened: what is in it, and what to name or to type."""
    if (found := model_folder(folder)) is not None:
        listed = ", ".join(found.others[:10])
        one = _quoted(folder / found.others[0]) if found.others else _quoted(folder)
        return f"is a folder with models ({listed}): name one, such as stepper {one}"
    try:
        names = {path.name for path in folder.iterdir()}
    except OSError:
        names = set()
    if "Manifest.json" in names and folder.suffix == ".mlpackage":
        return _BY_SUFFIX[".mlmodel"]
    if "config.json" in names and any(name.endswith((".safetensors", "pytorch_model.bin")) for name in names):
        target = folder.with_name(f"{folder.resolve().name}-openvino")
        lines = (
            f"optimum-cli export openvino --model {_quoted(folder)} {_quoted(target)}",
            f"stepper {_quoted(target)}",
        )
        return str(NotAModel("is a folder of Hugging Face with weights and no graph; export it", lines))
    return folder_text(folder)
