"""The state of a hunt: a folder with a line for each seed, which survives whatever ends the program, and the cases."""

from __future__ import annotations

import importlib.metadata
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from stepper.diagnosis.hunt.profiles import Profile
from stepper.errors import OutputError, UsageError

_NAME: Final = "hunt.jsonl"


class SeedOutcome(StrEnum):
    """Result of a seed."""

    AGREES = "agrees"
    DIFFERS = "differs"
    NOT_BUILT = "not built"
    UNDECIDED = "undecided"


class HuntSetting(Struct, frozen=True):
    """Owner of the lines of a folder: the profile, and the version of OpenVINO."""

    profile: Profile
    openvino: str


class SeedRecord(Struct, frozen=True, omit_defaults=True):
    """A seed and what came of it: `fault` is the id of the disagreement, `operations` those of its smallest model.

    `pass_name` is the first pass of OpenVINO that changes what the smallest model computes, empty for none.
    """

    seed: int
    outcome: SeedOutcome
    fault: str = ""
    is_known: bool = False
    is_ours: bool = False
    operations: int = 0
    message: str = ""
    where: str = ""


class Journal:
    """The lines of a folder. A last line that was cut off is left out."""

    def __init__(self, folder: Path, profile: Profile) -> None:
        self.path, self.folder = folder / _NAME, folder
        setting = HuntSetting(profile, importlib.metadata.version("openvino"))
        self.records: dict[int, SeedRecord] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            content = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise OutputError(f"{folder} cannot be used: {error.strerror}") from None
        whole = content[: content.rfind(b"\n") + 1]
        if whole:
            self._read(whole, setting)
        try:
            self._file = self.path.open("r+b" if self.path.exists() else "w+b")
            self._file.truncate(len(whole))
            self._file.seek(len(whole))
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}") from None
        if not whole:
            self._write(setting)

    def _read(self, content: bytes, setting: HuntSetting) -> None:
        first, *lines = content.splitlines()
        try:
            found = msgspec.json.decode(first, type=HuntSetting)
            records = [msgspec.json.decode(line, type=SeedRecord) for line in lines]
        except msgspec.DecodeError as error:
            raise UsageError(f"{self.path} is no record of a hunt ({error}); choose another folder") from None
        if found != setting:
            had = f"profile {found.profile}, OpenVINO {found.openvino}"
            raise UsageError(f"{self.folder} has a hunt of another kind ({had}); choose another folder")
        self.records = {record.seed: record for record in records}

    def add(self, record: SeedRecord) -> None:
        """Take note of a seed."""
        self.records[record.seed] = record
        self._write(record)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, line: Struct) -> None:
        try:
            self._file.write(msgspec.json.encode(line) + b"\n")
            self._file.flush()
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}") from None
