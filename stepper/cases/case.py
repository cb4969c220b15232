"""A case: a folder with a model and what it was run on, which commands take in place of a model.

model.xml, model.bin       the model
inputs.npz                 its inputs, by name or position
states.npz                 what its variables began with; a variable that is missing began as the model says
outputs.npz                what came out, by position: out_0, out_1, ...
calls/                     the inputs of the last calls, which ends with this one: an .npz each
calls_states.npz           what variables began with before the first of them
calls_outputs.npz          what came out of all of them
case.json                  where the case comes from (CaseFacts)

Only model.xml must be there: what `reduce` writes is a case, and so is a folder with a model and inputs.npz. Names of
files are never taken from a file of the case, and no link of it leads out of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from stepper.errors import InputError, UsageError
from stepper.files.kinds import (
    CASE_CALLS,
    CASE_CALLS_OUTPUTS,
    CASE_CALLS_STATES,
    CASE_FACTS,
    CASE_INPUTS,
    CASE_MODEL,
    CASE_OUTPUTS,
    CASE_STATES,
    CASE_WEIGHTS,
    is_case,
)
from stepper.wording import reason_of

_LARGEST_FACTS: Final = 2**20
_FILES: Final = (
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

    Of NaN and Inf there is the first output that has some, its name, how many elements are such, and the first of them.
    `message` is that of an error.
    """

    kind: str
    output: int | None = None
    name: str = ""
    count: int = 0
    elements: int = 0
    first: tuple[int, ...] = ()
    message: str = ""


class CaseFacts(Struct, frozen=True, omit_defaults=True):
    """Origin of a case: the call of the application, and what computed it.

    `call` counts the calls of its process from 1, `request_call` those of its infer request. `source` is the file from
    which the application read the model ("": it was made in memory), `is_as_read` says that it was compiled as it is
    there. `carried` are outputs that the application gave back as inputs of the next call, with these inputs.
    `model_hash` is the SHA-256 of model.xml and model.bin, one behind the other. `trouble` says what is missing,
    and why.
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

    @property
    def precision(self) -> str | None:
        """Return the element type in which a device computed floats that was asked for speed; None for its own."""
        found = self.properties.get("INFERENCE_PRECISION_HINT", "")
        return found if found in ("f16", "bf16") else None


class Case(Struct, frozen=True):
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
        from stepper.cases.sources import model_hash  # few commands ask

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
    """Raise InputError for a link out of the folder: a case is handed on, and whoever opens it names no other file."""
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
