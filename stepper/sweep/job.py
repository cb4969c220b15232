"""A sweep as data: the model, what is asked of each input, and under which limits. Goes to other processes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stepper import __version__
from stepper.element_types import Array
from stepper.engine.rules import Rules
from stepper.files.kinds import is_model_path
from stepper.ir.model import Model
from stepper.openvino.partner import NUMPY, OpenVINOPartner
from stepper.openvino.runtime import Runtime
from stepper.recording.blobs import content_hash, file_hashes
from stepper.sweep.functions import function_hash
from stepper.sweep.inputs import InputReader
from stepper.tensors.tolerances import Tolerances


class EngineChoice(Struct, frozen=True):
    """Who computes the operations, as the options of the command line say it."""

    engine: str = NUMPY
    choices: dict[str, str] = {}
    device: str = "CPU"
    precision: str = "f32"
    extensions: tuple[str, ...] = ()
    timeout: float | None = None

    @property
    def runtime(self) -> Runtime:
        """Return OpenVINO as it is asked; not imported yet."""
        return Runtime(self.device, self.precision, self.extensions, timeout=self.timeout)

    @property
    def partner(self) -> OpenVINOPartner:
        """Return who computes what."""
        return OpenVINOPartner(self.engine, self.choices, self.runtime)


class SweepJob(Struct, frozen=True):
    """Work to be done with each input of a sweep.

    `model` is the path of an IR; `source` that of the file as the user named it. `breaks` are breakpoints as texts,
    `checks`: the rules of check are asked, `reference` is what to compare with; one of the three is given. `seconds`
    and `max_iterations` limit the run of an input. `key` tells jobs apart.
    """

    model: str
    reader: InputReader
    source: str = ""
    rules: str = Rules.SPEC.value
    open_sequences: bool = False
    breaks: tuple[str, ...] = ()
    checks: bool = False
    reference: str = ""
    tolerances: Tolerances | None = None
    max_iterations: int | None = None
    seconds: float = 60.0
    engine: EngineChoice = EngineChoice()
    key: str = ""


class SweepIdentity(Struct, frozen=True):
    """Everything that the rows of a sweep follow from beside the inputs; each part in words, as messages have it."""

    model: str
    rules: str
    asked: str
    limits: str
    engine: str
    given: str
    program: str
    function: str = ""


def identity(job: SweepJob, model: Model) -> SweepIdentity:
    """Return the identity of a sweep. SessionError for a model that cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    for position, array in sorted(job.reader.fixed.items()):
        _add(digest, str(position), array)
    for name, array in sorted(job.reader.states.items()):
        _add(digest, name, array)
    asked = [f"--break {text}" for text in job.breaks] + ["--check"] * job.checks
    if job.reference:
        hashes = _model_hash(Path(job.reference)) if is_model_path(job.reference) else _content(job.reference)
        asked.append(f"--with {job.reference} {hashes}".strip())
    shapes = [f"{position}={shape}" for position, shape in sorted(job.reader.shapes.items())]
    given = [digest.hexdigest() if job.reader.fixed or job.reader.states else "", *shapes, job.reader.function]
    engine = msgspec.json.encode(job.engine).decode() if job.engine != EngineChoice() else ""
    tolerances = "" if job.tolerances is None else repr(job.tolerances)
    return SweepIdentity(
        model=_model_hash(model.path),
        rules=f"{job.rules}{' --open-sequences' if job.open_sequences else ''}",
        asked=" ".join([*asked, tolerances]).strip(),
        limits=f"--seconds {job.seconds:g} --max-iterations {job.max_iterations}",
        engine=engine,
        given=" ".join(part for part in given if part),
        program=__version__,
        function=function_hash(job.reader.function),
    )


def keyed(job: SweepJob, made_of: SweepIdentity) -> SweepJob:
    """Return the job with a key of its own, by which a process knows what it has compiled."""
    return replace(job, key=content_hash(msgspec.json.encode((made_of, job.model, job.reader.folder))).hex())


def _model_hash(path: Path) -> str:
    return " ".join(f"{kind} {found}" for kind, found in file_hashes(path).items())


def _content(path: str) -> str:
    place = Path(path)
    if not place.is_file():
        return ""
    with place.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


def _add(digest: Any, key: str, array: Array) -> None:
    digest.update(f"{key} {getattr(array, 'dtype', '')} {getattr(array, 'shape', '')} ".encode())
    digest.update(array.tobytes() if hasattr(array, "tobytes") else repr(array).encode())
