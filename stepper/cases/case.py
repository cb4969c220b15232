"""Read and write cases: folders with a model and its inputs, accepted instead of a model.

model.xml, model.bin       the model;
inputs.npz                 its inputs, by name or position;
states.npz                 initial values of its variables; a missing variable starts as the model says;
outputs.npz                its outputs, by position: out_0, out_1, ...;
calls/                     the inputs of the last calls, up to and including this call: an .npz each;
calls_states.npz           initial values of the variables before the first of these calls;
calls_outputs.npz          the outputs of all these calls;
case.json                  the origin of the case (CaseFacts).

Only model.xml is required: the output of `reduce` is a case, and so is a folder with a model and inputs.npz. File names
are never read from a file of the case, and no link may lead out of the folder.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct

from stepper.element_types import Array, Ints
from stepper.errors import InputError, UsageError
from stepper.files.file_kinds import (
    CASE_CALLS,
    CASE_CALLS_OUTPUTS,
    CASE_CALLS_STATES,
    CASE_FACTS,
    CASE_INPUTS,
    CASE_MODEL,
    CASE_OUTPUTS,
    CASE_STATES,
    CASE_WEIGHTS,
    IR_SUFFIX,
    WEIGHTS_SUFFIX,
    is_case,
)
from stepper.plain_values import storable
from stepper.records import Record
from stepper.wording import excerpt, near_text, reason_of

if TYPE_CHECKING:
    import openvino


_LARGEST_FACTS = 2**20
_FILES = (
    CASE_FACTS,
    CASE_MODEL,
    CASE_WEIGHTS,
    CASE_INPUTS,
    CASE_STATES,
    CASE_OUTPUTS,
    CASE_CALLS_STATES,
    CASE_CALLS_OUTPUTS,
)


class CallTrigger(Struct, frozen=True, omit_defaults=True):
    """Why a call was kept: `kind` is nan, inf, error, condition, number or any.

    For NaN and Inf: the first output that has some, its name, how many elements, and the first of them. For an error:
    its `message`.
    """

    kind: str
    output: int | None = None
    name: str = ""
    count: int = 0
    elements: int = 0
    first: Ints = ()
    message: str = ""


class CaseFacts(Struct, frozen=True, omit_defaults=True):
    """Origin of a case: the call of the application, and what computed it.

    `call` counts the calls of its process from 1, `request_call` the calls of its infer request. `source` is the file
    from which the application read the model ("": made in memory); `is_as_read`: the application compiled the model of
    the file unchanged. `carried` pairs outputs with inputs of the next call to which the application gave them.
    `unchanged` pairs outputs with inputs of an equal shape that were constant in all calls. `model_hash` is the SHA-256
    of model.xml followed by model.bin. `trouble` says what is missing, and why.
    """

    trigger: CallTrigger
    call: int
    request_call: int
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    source: str = ""
    is_as_read: bool = False
    model_hash: str = ""
    device: str = ""
    properties: dict[str, str] = {}
    versions: dict[str, str] = {}
    process: int = 0
    command: tuple[str, ...] = ()
    trouble: tuple[str, ...] = ()
    carried: tuple[tuple[str, str], ...] = ()
    unchanged: tuple[tuple[str, str], ...] = ()

    @property
    def precision(self) -> str | None:
        """Return the element type in which a device computed floats that was asked for speed; None for its own."""
        found = self.properties.get("INFERENCE_PRECISION_HINT", "")
        return found if found in ("f16", "bf16") else None


class Case(Record):
    """A folder that was found to be a case. Files that are not there are None; `facts` are those of case.json.

    Of one that cannot be used `damage` says why, and none of its files is named.
    """

    folder: Path
    model: Path | None = None
    inputs: Path | None = None
    states: Path | None = None
    outputs: Path | None = None
    facts: CaseFacts | None = None
    calls: Path | None = None
    calls_states: Path | None = None
    calls_outputs: Path | None = None
    damage: str = ""

    @property
    def has_another_model(self) -> bool:
        """True if the model was changed since the application ran it; reads all of it. False where nobody knows."""

        known = "" if self.facts is None else self.facts.model_hash
        weights = self.folder / CASE_WEIGHTS
        paths = [path for path in (self.model, weights if weights.is_file() else None) if path is not None]
        try:
            return bool(known) and model_hash(*paths) != known
        except OSError:
            return False

    @property
    def files(self) -> tuple[Path, ...]:
        """Return where a case keeps what it consists of beside its model, whether it is there or not."""
        names = (CASE_FACTS, CASE_INPUTS, CASE_STATES, CASE_OUTPUTS, CASE_CALLS_STATES, CASE_CALLS_OUTPUTS)
        calls = () if self.calls is None else self.calls.glob("*.npz")
        return (*(self.folder / name for name in names), *calls)


def read_case(folder: Path) -> Case:
    """Return a case; its arrays and its model are not read. UsageError for no case, InputError for a damaged one."""
    if not is_case(folder):
        raise UsageError(f"{folder} is no case: it has no {CASE_MODEL}")
    try:
        _check_links(folder)
        _check_calls(folder / CASE_CALLS)
        found = {name: folder / name for name in _FILES if _is_there(folder / name)}
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {reason_of(folder, error)}") from None
    return Case(
        folder,
        found.get(CASE_MODEL),
        found.get(CASE_INPUTS),
        found.get(CASE_STATES),
        found.get(CASE_OUTPUTS),
        _read_facts(folder / CASE_FACTS),
        folder / CASE_CALLS if (folder / CASE_CALLS).is_dir() else None,
        found.get(CASE_CALLS_STATES),
        found.get(CASE_CALLS_OUTPUTS),
    )


def _check_links(folder: Path) -> None:
    """Raise InputError for a link out of the folder.

    Cases are shared, and a link would make the recipient open another file.
    """
    home = folder.resolve()
    calls = folder / CASE_CALLS
    for place in (folder, *([calls] if calls.is_dir() and not calls.is_symlink() else [])):
        with os.scandir(place) as entries:
            links = [Path(entry.path) for entry in entries if entry.is_symlink()]
        for link in links:
            try:
                leads_out = not link.resolve().is_relative_to(home)
            except RuntimeError:  # of a link that leads to itself
                leads_out = True
            if leads_out:
                raise InputError(f"{link}: is a link out of the case: put the file itself in its place")


def _check_calls(folder: Path) -> None:
    """Raise InputError for what is no folder of files: a call that is left out is another run."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder")
    for one in folder.glob("*.npz"):
        _is_there(one)


def _is_there(path: Path) -> bool:
    if path.is_file():
        return True
    if path.exists():
        raise InputError(f"{path}: is not a file")
    return False


def cases_in(folder: Path) -> list[Case]:
    """Return the cases of a folder in the order of their names, itself first, also those that are damaged.

    UsageError where it cannot be read.
    """
    try:
        entries = sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    except OSError as error:
        raise UsageError(f"{folder}: cannot be read: {reason_of(folder, error)}") from None
    return [_read_or_damaged(one) for one in (folder, *entries) if is_case(one)]


def _read_or_damaged(folder: Path) -> Case:
    try:
        return read_case(folder)
    except InputError as error:
        return Case(folder, damage=str(error))


def _read_facts(path: Path) -> CaseFacts | None:
    if not path.is_file():
        return None
    try:
        if path.stat().st_size > _LARGEST_FACTS:
            raise InputError(f"{path}: is larger than {_LARGEST_FACTS:,} bytes")
        return msgspec.json.decode(path.read_bytes(), type=CaseFacts)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {reason_of(path, error)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: does not say what a case says: {error}") from None


# Models that an application compiles, kept so that a case can be written later: as they were when they were compiled.
#
# A model in memory is cloned, which shares its weights; of a file, its size and time are kept. Nothing is written
# before a case is.

_FileStamp = tuple[int, int, int]
"""Size, time and number of a file."""
_UNTOLD = {"SUPPORTED_PROPERTIES", "RUNTIME_REQUIREMENTS", "LOG_LEVEL"}


class ModelFiles(Record):
    """The two files of a model that was written; `is_as_read`: they are those that the application read."""

    xml: Path
    bin: Path
    hash: str
    is_as_read: bool


class CannotBeKept(Exception):
    """A model cannot be written; the message says why."""


class ModelSource:
    """Hold a model as an application compiled it: a model in memory, or a file.

    `path` is the source file ("" if unknown). `device` and `properties` belong to the compiled model. With `weights`,
    `origin` is the model text that OpenVINO accepts.
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
                try:
                    new.hardlink_to(old)
                except OSError:
                    shutil.copyfile(old, new)
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


def model_hash(*paths: Path) -> str:
    """Return the SHA-256 of files, one behind the other."""
    found = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: found)
    return found.hexdigest()


# Conditions under which a call of an application is kept.

WORDS = ("nan", "inf", "error", "any")
Condition = Callable[[Mapping[str, Array], Mapping[str, Array]], object]
When = str | int | Condition
_NUMBER = re.compile(r"[0-9]{1,18}")


class Triggers:
    """Conditions of a capture; a call is kept where one of them holds.

    `when` is "nan", "inf" (an output has some), "error" (the call failed), "any", the number of a call, or a function
    of the inputs and the outputs of a call by name; or several of these.
    """

    def __init__(self, when: When | Sequence[When]) -> None:
        several = when if isinstance(when, Sequence) and not isinstance(when, str) else (when,)
        given = [int(one) if isinstance(one, np.integer) else one for one in several]
        self.words = {_word(one) for one in given if isinstance(one, str) and not _NUMBER.fullmatch(one)}
        numbers = [one for one in given if isinstance(one, int) or (isinstance(one, str) and _NUMBER.fullmatch(one))]
        self.numbers = {_number(one) for one in numbers}
        self.conditions = [one for one in given if callable(one)]
        odd = [one for one in given if isinstance(one, bool) or not (isinstance(one, (str, int)) or callable(one))]
        if odd or not given:
            text = repr(odd[0]) if odd else repr(when)
            raise UsageError(f"when={text}: a call is kept for {', '.join(WORDS)}, its number, or a function")

    def of_error(self, number: int, message: str) -> CallTrigger | None:
        """Return why a call that failed is kept; None where it is not."""
        if "error" in self.words:
            return CallTrigger("error", message=message)
        return self._of_number(number)

    def of_outputs(self, number: int, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> CallTrigger | None:
        """Return why a call is kept; None where it is not. Raises what a function raises."""
        found = self._of_number(number)
        for word, is_in, is_such in (("nan", _has_nan, np.isnan), ("inf", _has_infinity, np.isinf)):
            for index, (name, value) in enumerate(outputs.items() if word in self.words and found is None else ()):
                if found is None and is_in(value):
                    places = np.argwhere(is_such(storable(value)))
                    first = tuple(int(one) for one in places[0])
                    found = CallTrigger(word, index, name, len(places), int(value.size), first)
        if found is None and self.conditions:
            given = _read_only(inputs), _read_only(outputs)
            if any(condition(*given) for condition in self.conditions):
                found = CallTrigger("condition")
        return found

    def _of_number(self, number: int) -> CallTrigger | None:
        if number in self.numbers:
            return CallTrigger("number")
        return CallTrigger("any") if "any" in self.words else None


def _read_only(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return views into which a condition cannot write: outputs are in the memory of the application."""
    views = {name: value.view() for name, value in arrays.items()}
    for view in views.values():
        view.flags.writeable = False
    return views


def _word(word: str) -> str:
    if word not in WORDS:
        near = near_text(word, WORDS)
        raise UsageError(f"a call is kept for {', '.join(WORDS)} or its number, not for '{word}'{near and f'; {near}'}")
    return word


def _number(text: str | int) -> int:
    number = int(text)
    if number < 1:
        raise UsageError(f"calls are counted from 1; there is no call {number}")
    return number


def _floats(value: Array) -> Array | None:
    """Return the numbers of a value that can be NaN or Inf; None where none can."""
    plain = value if value.dtype.kind == "f" else storable(value)
    return plain if plain.dtype.kind == "f" and plain.size else None


def _has_nan(value: Array) -> bool:
    floats = _floats(value)
    return floats is not None and math.isnan(floats.min())  # a NaN is what the least of all is, if there is one


def _has_infinity(value: Array) -> bool:
    floats = _floats(value)
    if floats is None or (math.isfinite(floats.min()) and math.isfinite(floats.max())):
        return False
    return bool(np.isinf(floats).any())


# Sentences about cases.

_LONGEST_MESSAGE = 160
_KINDS = {"nan": "NaN", "inf": "Inf"}


def trigger_text(trigger: CallTrigger) -> str:
    """Return why a call was kept."""
    if trigger.kind in _KINDS:
        where = f"output {trigger.output} '{excerpt(trigger.name)}'"
        place = f", first at [{','.join(map(str, trigger.first))}]" if trigger.first else ""
        return f"{_KINDS[trigger.kind]} in {trigger.count:,} of {trigger.elements:,} elements of {where}{place}"
    if trigger.kind == "error":
        lines = [line.strip() for line in trigger.message.splitlines() if line.strip()]
        return f"it failed: {excerpt(lines[-1] if lines else 'without a message', _LONGEST_MESSAGE)}"
    return {"condition": "the condition held", "number": "its number was asked for"}.get(
        trigger.kind, "any call is kept"
    )
