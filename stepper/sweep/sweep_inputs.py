"""The inputs of a sweep: each is a file, a case, an index along leading axes, a seed, or a call of a function.

An input is plain data that goes to another process or machine, which reads it there.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import hashlib
import importlib
import os
import queue
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from stepper import __version__
from stepper.argument_checks import LARGEST_SEED
from stepper.cases.case import cases_in
from stepper.element_types import Array, Shape
from stepper.engine.array_files import MOST_READ, read_archive
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every
from stepper.engine.inputs import bind_inputs, by_position, value_of
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules
from stepper.errors import InputError, LimitReached, UsageError
from stepper.files.file_kinds import ARRAYS, CASE_INPUTS, is_case, is_model_path
from stepper.ir.model import Model
from stepper.ir.reader import open_sequences, read
from stepper.openvino.partner import OpenVINOPartner
from stepper.recording.blobs import content_hash, file_hashes
from stepper.records import Record
from stepper.tensors.tolerances import Tolerances
from stepper.wording import excerpt, printable, reason_of, size_text

# Limits of time for runs: one thread of a process pauses each machine that takes too long.
#
# An operation that does not come to its end cannot be paused. A process that does nothing but sweep then ends itself.
# What is not ours is called in another thread, which is left to itself where it does not return.

OVERDUE = 76
"""The exit code of a process that an operation kept for longer than the limit of time allows."""
_LOOKS_EACH = 0.1
_GRACE = 10.0


class LimitedRun(Struct):
    """A machine that runs, until when it may, and if it was stopped for that."""

    machine: Machine
    deadline: float
    is_overdue: bool = False


_watched: dict[int, LimitedRun] = {}
"""The machines that run now, by thread."""
_watching = threading.Lock()
_may_exit = False
_thread: list[threading.Thread] = []


@contextmanager
def limited(machine: Machine, seconds: float) -> Iterator[LimitedRun]:
    """Pause a machine that is still at work after so many seconds; one thread looks after all of a process."""
    watched = LimitedRun(machine, time.monotonic() + seconds)
    key = threading.get_ident()
    if not _thread:
        with _watching:
            if not _thread:
                thread = threading.Thread(target=_watch, name="limits of a sweep", daemon=True)
                _thread.append(thread)
                thread.start()
    _watched[key] = watched
    try:
        yield watched
    finally:
        del _watched[key]


def _watch() -> None:
    while True:
        time.sleep(_LOOKS_EACH)
        now = time.monotonic()
        for watched in list(_watched.values()):
            if now > watched.deadline:
                watched.is_overdue = True
                watched.machine.request_pause()
            if _may_exit and now > watched.deadline + _GRACE:
                os._exit(OVERDUE)  # an operation does not come to its end: the one who started this notes that


def let_end() -> None:
    """Have this process end where an operation in it does not."""
    global _may_exit
    _may_exit = True


def overdue(seconds: float) -> LimitReached:
    """Return the error of a run that took too long."""
    return LimitReached(f"the run did not end within {seconds:g} s, the limit for each input")


# --- functions that are not ours ------------------------------------------------------------------------------------


class NotReturned(Exception):
    """A function did not return within its time."""


class _FunctionEnd(NamedTuple):
    """End of a function: what it returned, or raised."""

    returned: Any = None
    raised: BaseException | None = None


class Helper:
    """A thread that calls functions for another one, one at a time, which waits no longer than it wants to."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[_FunctionEnd] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="functions of a sweep", daemon=True)
        self._thread.start()
        self.is_left = False

    def returned(self, seconds: float | None, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns, and raise what it raises. NotReturned where it takes too long."""
        self._asked.put((function, arguments))
        try:
            found = self._ended.get(timeout=seconds)
        except queue.Empty:
            # End the thread as soon as it is in Python again, be it in an endless loop
            self.is_left = True
            self._asked.put(None)
            if self._thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread.ident), ctypes.py_object(SystemExit)
                )
            raise NotReturned from None
        if found.raised is not None:
            raise found.raised
        return found.returned

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            function, arguments = asked
            try:
                self._ended.put(_FunctionEnd(function(*arguments)))
            except (Exception, SystemExit) as error:
                self._ended.put(_FunctionEnd(raised=error))
            except BaseException as error:  # no Ctrl+C of anybody's: that comes to the main thread
                self._ended.put(_FunctionEnd(raised=RuntimeError(f"it raised {type(error).__name__}")))


_helpers = threading.local()


# Functions that the user names, `pkg.module:function`: each call gives the arrays of an input, by name or position.
#
# They are the user's own, and may print, raise, leave and hang.

_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_LONGEST_REASON = 300


def check_function(text: str) -> None:
    """Raise UsageError for what is not written as `pkg.module:function`."""
    if not _FUNCTION.fullmatch(text):
        raise UsageError(f"--generate {text}: expected pkg.module:function, which takes a number and returns arrays")


def arrays_called(text: str, number: int, seconds: float | None = None) -> dict[str, Array]:
    """Return what a function returns for a number. InputError where it raises, or returns something else.

    LimitReached where it does not return within so many seconds.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):  # the answer of the sweep is on stdout
            given = _function(text)(number) if seconds is None else _returned_within(seconds, text, number)
    except UsageError:
        raise
    except NotReturned:
        raise LimitReached(f"{text}({number}) did not return within {seconds:g} s, the limit for each input") from None
    except (Exception, SystemExit) as error:  # it is the user's own
        raise InputError(f"{text}({number}) raised {_reason(error)}") from None
    if not isinstance(given, Mapping):
        raise InputError(f"{text}({number}) returned {type(given).__name__}, and a dict of arrays by name is expected")
    try:
        return {str(key): np.asarray(value) for key, value in given.items()}
    except ValueError as error:
        raise InputError(f"{text}({number}): {_reason(error)}") from None


def _returned_within(seconds: float, text: str, number: int) -> Any:
    """Return what a function returns, which is given so many seconds; importing its module is not."""
    # The helper of the calling thread: the same one as long as its functions return.
    found: Helper | None = getattr(_helpers, "helper", None)
    if found is None or found.is_left:
        found = _helpers.helper = Helper()
    helper = found
    return helper.returned(seconds, helper.returned(None, _function, text), number)


@lru_cache(maxsize=1)
def _function(text: str) -> Any:
    check_function(text)
    module, _, name = text.partition(":")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            _import_from_here(module.partition(".")[0])
            found = getattr(importlib.import_module(module), name, None)
    except (Exception, SystemExit) as error:  # whatever the user's module does
        raise UsageError(f"--generate {text}: {module} cannot be imported: {_reason(error)}") from None
    if not callable(found):
        raise UsageError(f"--generate {text}: {module} has no function '{name}'")
    return found


def _import_from_here(package: str) -> None:
    """Import the module or package that the user named from the working folder, if it lies there.

    The folder becomes the last of the module path: its other files hide no module of Python or of a package.
    """
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    spec = PathFinder.find_spec(package, [folder])
    if spec is None or spec.loader is None or package in sys.modules:
        return
    sys.modules[package] = module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules[package])
    except BaseException:
        del sys.modules[package]
        raise


def load_function(text: str) -> None:
    """Import the module of a function. UsageError where that fails, or the function is not there."""
    _function(text)


def function_hash(text: str) -> str:
    """Return a hash of the file of a function; empty for none, or one that is in no file. UsageError as above."""
    if not text:
        return ""
    path = getattr(sys.modules[_function(text).__module__], "__file__", None)
    try:
        return "" if path is None else hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return ""


def _reason(error: BaseException) -> str:
    return excerpt(" ".join(f"{type(error).__name__}: {error}".split()), _LONGEST_REASON)


MOST = 10_000_000
"""How many inputs a sweep may have."""


class FileInput(Struct, frozen=True, tag="file", omit_defaults=True):
    """The arrays of an .npz, by name or position; `states` is another, of what variables begin with."""

    path: str
    states: str = ""

    @property
    def name(self) -> str:
        """Return its name in the table: the file, or the folder of a case."""
        folder, _slash, file = self.path.rpartition("/")
        return folder if file == CASE_INPUTS and is_case(folder) else self.path


class SliceInput(Struct, frozen=True, tag="slice"):
    """Elements at an index of the first axis of each array of an .npz."""

    path: str
    index: int

    @property
    def name(self) -> str:
        """Return its name in the table."""
        return f"{self.path}[{self.index}]"


class SeedInput(Struct, frozen=True, tag="seed"):
    """Random numbers: those of `--input '*=rand:SEED'`."""

    seed: int

    @property
    def name(self) -> str:
        """Return its name in the table: the SPEC."""
        return f"rand:{self.seed}"


class CallInput(Struct, frozen=True, tag="call"):
    """Arrays that a function returns for a number."""

    number: int

    @property
    def name(self) -> str:
        """Return its name in the table."""
        return f"call {self.number}"


SweepInput = FileInput | SliceInput | SeedInput | CallInput


# --- which there are ------------------------------------------------------------------------------------------------


def files_inputs(patterns: Sequence[str], *, leading_axis: bool = False) -> list[SweepInput]:
    """Return the inputs that patterns name: .npz files, folders of these, and folders of cases; each once, by name.

    `leading_axis`: each index of the first axis of the arrays of a file is an input. UsageError where there are none.
    """
    found: dict[str, FileInput] = {}
    for pattern in patterns:
        paths = [pattern] if Path(pattern).exists() else _matching(pattern)
        inside = [one for path in paths for one in _inputs_at(path)]
        if not inside:
            raise UsageError(f"--inputs {pattern}: there is no .npz and no case there")
        for one in inside:
            _ensure_text(one.path)
            found[one.path] = one
    files = [found[path] for path in sorted(found)]
    return [part for one in files for part in _parts(one.path)] if leading_axis else list(files)


def _ensure_text(path: str) -> None:
    """Raise UsageError for a name that is no text, which no table can have."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{printable(path)}: its name is not UTF-8, as the table of a sweep has names") from None


def _matching(pattern: str) -> list[str]:
    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207  # which takes patterns from the root on, too


def _inputs_at(path: str) -> list[FileInput]:
    place = Path(path)
    if not place.is_dir():
        return [FileInput(path)]
    cases = cases_in(place)
    damage = next((one.damage for one in cases if one.damage), "")
    if damage:
        raise InputError(damage)
    found = [FileInput(str(one.inputs), str(one.states or "")) for one in cases if one.inputs is not None]
    if found:
        return found
    try:
        return [FileInput(str(one)) for one in sorted(place.iterdir()) if one.suffix in ARRAYS.suffixes]
    except OSError as error:
        raise UsageError(f"--inputs {path}: cannot be read: {reason_of(place, error)}") from None


def _parts(path: str) -> list[SliceInput]:
    shapes = {key: array.shape for key, array in read_archive(Path(path)).items()}
    lengths = {key: shape[0] if shape else 0 for key, shape in shapes.items()}
    if len(set(lengths.values())) != 1 or min(lengths.values()) < 1:
        sizes = ", ".join(f"{excerpt(key)} {length}" for key, length in lengths.items())
        raise InputError(f"{path}: its arrays have no leading axis of one length ({sizes or 'it has none'})")
    length = next(iter(lengths.values()))
    if length > MOST:
        raise InputError(f"{path}: has {length:,} inputs, and at most {MOST:,} are taken")
    return [SliceInput(path, index) for index in range(length)]


def random_inputs(count: int, seed: int) -> list[SweepInput]:
    """Return as many inputs of random numbers, from a seed on. UsageError for too many and for too large seeds."""
    _ensure_not_too_many("--random", count)
    if seed + count - 1 > LARGEST_SEED:
        raise UsageError(f"--seed {seed}: the last of {count:,} seeds would be larger than {LARGEST_SEED}")
    return [SeedInput(seed + index) for index in range(count)]


def called_inputs(count: int) -> list[SweepInput]:
    """Return as many calls of a function. UsageError for too many."""
    _ensure_not_too_many("--count", count)
    return [CallInput(number) for number in range(count)]


def _ensure_not_too_many(option: str, count: int) -> None:
    if count > MOST:
        raise UsageError(f"{option} {count:,}: a sweep has at most {MOST:,} inputs")


def stamp(one: SweepInput, folder: str) -> str:
    """Return what changes where the content of an input does; empty for one that is not in files, or not there."""
    paths = [one.path, one.states] if isinstance(one, FileInput) else [one.path] if isinstance(one, SliceInput) else []
    return " ".join(_file_stamp(folder, path) for path in paths if path)


def _file_stamp(folder: str, path: str) -> str:
    try:
        found = (Path(folder) / path).stat()
    except OSError:
        return ""
    return f"{found.st_size}:{found.st_mtime_ns}"


# --- their values ---------------------------------------------------------------------------------------------------


class InputReader(Record):
    """How the inputs of a sweep are read: what all of them have in common.

    `fixed` are arrays by position that every run gets, `shapes` those of random inputs by position; `folder` is where
    relative paths begin, `function` is `pkg.module:function`, which a CallInput calls.
    """

    folder: str
    fixed: dict[int, Any] = field(default_factory=dict)
    states: dict[str, Any] = field(default_factory=dict)
    shapes: dict[int, Shape] = field(default_factory=dict)
    function: str = ""

    def read(self, one: SweepInput, model: Model, seconds: float | None = None) -> tuple[list[Array], dict[str, Any]]:
        """Return the arrays of the model's Parameters, and the variables. Raises StepperError for what is no input.

        LimitReached for a function that does not return within so many seconds.
        """
        states = read_archive(self._at(one.states)) if isinstance(one, FileInput) and one.states else {}
        given: dict[Any, Any] = {}
        match one:
            case FileInput():
                given.update(_given(model, read_archive(self._at(one.path))))
            case SliceInput():
                given.update(_given(model, self._slice(one)))
            case SeedInput():
                parameters = enumerate(model.graph.parameters)
                given.update(
                    (position, value_of(parameter, one.name, self.shapes.get(position)))
                    for position, parameter in parameters
                    if position not in self.fixed
                )
            case CallInput():
                given.update(_given(model, arrays_called(self.function, one.number, seconds)))
        return bind_inputs(model, {**given, **dict(self.fixed.items())}), {**states, **self.states}

    def arrays(self, one: SweepInput, model: Model) -> dict[str, Array]:
        """Return the arrays of an input alone, with positions as names. Raises StepperError for what is no input."""
        match one:
            case SliceInput():
                found = _given(model, self._slice(one))
            case CallInput():
                found = _given(model, arrays_called(self.function, one.number))
            case _:
                found = dict(enumerate(self.read(one, model)[0]))
        return {str(position): np.asarray(value) for position, value in sorted(found.items())}

    def _at(self, path: str) -> Path:
        return Path(os.path.join(self.folder, path))  # noqa: PTH118  # a tenth of what one by one takes

    def _slice(self, one: SliceInput) -> dict[str, Array]:
        arrays = _archive(str(self._at(one.path)), stamp(one, self.folder))
        short = next((key for key, array in arrays.items() if not array.ndim or len(array) <= one.index), None)
        if short is not None:
            raise InputError(f"{one.path}: '{excerpt(short)}' has no index {one.index}")
        return {key: array[one.index] for key, array in arrays.items()}


@lru_cache(maxsize=1)
def _archive(path: str, _stamp: str) -> dict[str, Array]:
    arrays = read_archive(Path(path))
    size = sum(array.nbytes for array in arrays.values())
    if size > MOST_READ:
        raise InputError(f"{path}: takes {size_text(size)}, more than the {size_text(MOST_READ)} that are read")
    return {key: np.asarray(array) for key, array in arrays.items()}


def _given(model: Model, arrays: Mapping[str, Any]) -> dict[int, Any]:
    return by_position(model.graph.parameters, arrays, is_archive=True)


# A sweep as data: the model, what is asked of each input, and under which limits. Goes to other processes.


class SweepJob(Record):
    """Work to be done with each input of a sweep.

    `model` is the path of an IR; `source` is the file as the user named it. `breaks` are breakpoints as texts,
    `checks`: the rules of check are asked, `reference` is the model to compare with; one of the three is given.
    `seconds` and `max_iterations` limit the run of an input. `key` tells jobs apart.
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
    partner: OpenVINOPartner = OpenVINOPartner()
    key: str = ""


class SweepIdentity(Record):
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
    reader = job.reader
    for position, array in sorted(reader.fixed.items()):
        _add(digest, str(position), array)
    for name, array in sorted(reader.states.items()):
        _add(digest, name, array)
    asked = [f"--break {text}" for text in job.breaks] + ["--check"] * job.checks
    if job.reference:
        hashes = _model_hash(Path(job.reference)) if is_model_path(job.reference) else _content(job.reference)
        asked.append(f"--with {job.reference} {hashes}".strip())
    shapes = [f"{position}={shape}" for position, shape in sorted(reader.shapes.items())]
    given = [digest.hexdigest() if reader.fixed or reader.states else "", *shapes, reader.function]
    engine = msgspec.json.encode(job.partner).decode() if job.partner != OpenVINOPartner() else ""
    tolerances = "" if job.tolerances is None else repr(job.tolerances)
    return SweepIdentity(
        model=_model_hash(model.path),
        rules=f"{job.rules}{' --open-sequences' if job.open_sequences else ''}",
        asked=" ".join([*asked, tolerances]).strip(),
        limits=f"--seconds {job.seconds:g} --max-iterations {job.max_iterations}",
        engine=engine,
        given=" ".join(part for part in given if part),
        program=__version__,
        function=function_hash(reader.function),
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


# A job in a process that works at it: the model, compiled once, and machines that run it within the limits.


class Prepared:
    """A job with its model and that model compiled."""

    def __init__(self, job: SweepJob) -> None:
        model = read(job.model)
        self.job = job
        self.model: Model = open_sequences(model) if job.open_sequences else model
        self.compiled = compile_model(self.model, job.rules, job.partner)

    def machine(self, inputs: Sequence[Array], states: dict[str, Any], *, keeps: bool = True) -> Machine:
        """Return a machine at its beginning, bounded by the limits of the job."""
        limit = self.job.max_iterations
        return Machine(self.compiled, inputs, max_iterations=limit, states=states, keep_values=keeps)

    def run(self, machine: Machine) -> None:
        """Run a machine to its end, or to a pause that its observers ask for. LimitReached where time is up."""
        with limited(machine, self.job.seconds) as watched:
            for _event in machine.run(Every.END):
                break
        if watched.is_overdue:
            raise overdue(self.job.seconds)
