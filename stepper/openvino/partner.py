"""Providers of operations: numpy, OpenVINO, or a mixture chosen by names and types (the engine's `Partner`)."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stepper.element_types import Array
from stepper.engine.program import no_kernel, set_default_partner
from stepper.errors import ExecutionError, KernelError, StepperError, UnsupportedOperation, UsageError
from stepper.ir.model import Layer, Model
from stepper.openvino.program import OPENVINO as OPENVINO
from stepper.openvino.program import PROGRAM, is_installed, shared_worker
from stepper.openvino.runtime import (
    INSTALL,
    CompileFile,
    DefineLayer,
    Runtime,
    complaint,
    ensure_installed,
)
from stepper.processes.process_messages import ENDED
from stepper.processes.worker import LONGEST, Limits, RemoteFunction, Worker
from stepper.records import Record
from stepper.wording import excerpt

if TYPE_CHECKING:
    from stepper.ops.registry import Kernel


NUMPY = "numpy"
NUMPY_F16 = "numpy-f16"
NUMPY_BF16 = "numpy-bf16"
ENGINES = (NUMPY, OPENVINO, NUMPY_F16, NUMPY_BF16)
EMULATES = {NUMPY_F16: "f16", NUMPY_BF16: "bf16"}
"""The engines that round every float, and to which type."""

_OPTION = re.compile(" (?=--(?:engine-for|device|precision) )")


class OpenVINOPartner(Record):
    """OpenVINO computes what is given to it, and every operation that has no kernel here.

    `engine` computes all other operations. `choices` maps patterns to engines. A pattern is an operation's type, or a
    glob over names (`decoder/*`); the last that fits counts. Nothing is imported before OpenVINO is needed. The engines
    numpy-f16 and numpy-bf16 are numpy with all floats rounded as a device of that precision would.

    Each compilation, with its first call, is tried in a process of its own before it is made in this one. A crash there
    is an error of the run. Extensions of the runtime that are Python classes exist in this process alone: then there is
    no trial, and a crash of OpenVINO ends this process.
    """

    engine: str = NUMPY
    choices: Mapping[str, str] = {}
    runtime: Runtime = Runtime()

    def __post_init__(self) -> None:
        engines = (self.engine, *self.choices.values())
        for name in engines:
            if name not in ENGINES:
                raise UsageError(f"there is no engine '{name}'; choose {' or '.join(ENGINES)}")
        if OPENVINO in engines:
            ensure_installed("the engine openvino")
            self.runtime.check()

    def __hash__(self) -> int:
        return hash((self.engine, *self.choices, self.runtime))

    @property
    def description(self) -> str:
        """The options of the command line that give this partner."""
        words = [f"--engine {self.engine}"]
        words += [f"--engine-for {pattern}={engine}" for pattern, engine in self.choices.items()]
        usual = Runtime()
        if (self.runtime.device, self.runtime.precision) != (usual.device, usual.precision):
            words.append(f"--device {self.runtime.device} --precision {self.runtime.precision}")
        return " ".join(words)

    @classmethod
    def described(cls, text: str, extensions: Sequence[Any] = ()) -> OpenVINOPartner:
        """Return the partner with that description, as a recording has it; else the usual. UsageError for others."""
        found: dict[str, str] = {}
        choices: dict[str, str] = {}
        for word in _OPTION.split(text) if text else []:
            name, _, value = word.partition(" ")
            if name == "--engine-for":
                pattern, _, engine = value.rpartition("=")
                choices[pattern] = engine
            elif name in ("--engine", "--device", "--precision"):
                found[name] = value
            else:
                raise UsageError(f"it was computed with {text}, which only the program that did so can do again")
        runtime = Runtime(found.get("--device", "CPU"), found.get("--precision", "f32"), extensions)
        return cls(found.get("--engine", NUMPY), choices, runtime)

    def computes(self, layer: Layer, *, has_kernel: bool) -> bool:
        """Return True if another engine than plain numpy computes this layer."""
        return not has_kernel or self._engine_of(layer) != NUMPY

    def _engine_of(self, layer: Layer) -> str:
        fitting = [engine for pattern, engine in self.choices.items() if _fits(pattern, layer)]
        return (fitting or [self.engine])[-1]

    def bind(self, layer: Layer, constants: Sequence[Array | None]) -> tuple[Callable[..., tuple[Any, ...]], str]:
        """Return the function that computes the layer; without OpenVINO, one that says so when the run gets there."""
        from stepper.ops import registry

        narrow = EMULATES.get(self._engine_of(layer))
        kernel = None if layer.definition is None else registry.find(layer.type, layer.definition)
        if narrow is not None and kernel is not None:
            from stepper.ops.precision import emulation

            return _emulated(layer, kernel, narrow, constants), emulation(narrow)
        if not is_installed():
            return _missing(layer), ""
        from stepper.openvino.layers import LayerInOpenVINO  # most runs need no such thing

        is_last = kernel is None
        trial = None
        if self.runtime.is_remote:
            trial = remote_layer(self.runtime, layer, constants, is_last_resort=is_last).survives
        return LayerInOpenVINO(self.runtime, layer, constants, is_last_resort=is_last, trial=trial), str(self.runtime)

    def check(self, model: Model) -> None:
        """Raise UsageError for a pattern that fits nothing in the model."""
        layers = [layer for _path, graph in model.graphs() for layer in graph.layers]
        for pattern in self.choices:
            if not any(_fits(pattern, layer) for layer in layers):
                raise UsageError(f"no operation of the model has the type '{pattern}' or a name that fits it")


def _fits(pattern: str, layer: Layer) -> bool:
    return layer.type.lower() == pattern.lower() or fnmatchcase(layer.name, pattern)


def _emulated(
    layer: Layer, kernel: Kernel, narrow: str, constants: Sequence[Array | None]
) -> Callable[..., tuple[Any, ...]]:
    """Return a kernel of our own with all floats rounded; attributes that it refuses are errors of the run."""
    from stepper.ops.precision import EMULATED, emulated

    try:
        function = kernel.bind(layer.attributes)
    except KernelError as error:
        complaint = str(error)

        def refuse(*_inputs: Any) -> Any:
            raise KernelError(complaint)

        return refuse
    return emulated(function, EMULATED[narrow], several_outputs=kernel.several_outputs, constants=constants)


def _missing(layer: Layer) -> Callable[..., tuple[Any, ...]]:
    """Return the function of a layer that only OpenVINO could compute, which is not there."""

    def refuse(*_inputs: Any) -> Any:
        raise UnsupportedOperation(f"{no_kernel(layer)}; OpenVINO may compute it: {INSTALL}")

    return refuse


def install_default() -> None:
    """Let runs that name no partner compute in OpenVINO what has no kernel."""
    set_default_partner(OpenVINOPartner())


# A layer as a function in OpenVINO's worker process.


def remote_layer(
    runtime: Runtime, layer: Layer, constants: Sequence[Array | None], *, is_last_resort: bool
) -> RemoteFunction:
    """Return a layer in the other process: a function from those of its inputs that are not constants."""
    places = tuple(index for index, constant in enumerate(constants) if constant is not None)

    def define(key: int) -> tuple[DefineLayer, list[Any]]:
        definition = DefineLayer(key, runtime, layer, places, is_last_resort)
        return definition, [constants[place] for place in places]

    subject = f"{layer.type} '{excerpt(layer.name)}' (layer {layer.id}, line {layer.line})"
    return RemoteFunction(shared_worker(), define, subject, runtime.limits)


# Passes of OpenVINO over a model: its own serialisation of the model after each transformation.
#
# The runtime writes a whole model after every pass, some hundreds of them, into the folder where it runs. So it has a
# process for this alone, in a temporary folder, and is stopped (not ended) while more is there than the limit; whoever
# takes the passes deletes them by taking the next.

_MOST_BYTES = 2**31
_EACH = 0.02
_FILE = re.compile(r"(.*?)_(\d{3,})_(.*)\.xml")
_TRACING = {"OV_ENABLE_SERIALIZE_TRACING": "true"}


class TracedPass(NamedTuple):
    """A pass and the .xml of the model after it. `number` counts all passes, `name` is OpenVINO's name for it.

    `model` tells the models that passes run on apart: a body, or a piece of the model, is another one.
    """

    number: int
    name: str
    model: str
    path: Path


def traced_passes(model: Path, device: str, precision: str, timeout: float | None = None) -> Iterator[TracedPass]:
    """Yield each pass while OpenVINO compiles the model; its files go when the next is taken.

    `timeout` is the maximum number of seconds between two passes. After the passes up to that point, raises
    ExecutionError if OpenVINO refuses the model or crashes, and WorkerLimit if it exceeds `timeout`.
    """
    subject = f"the model {excerpt(model.name)}"
    with tempfile.TemporaryDirectory(prefix="stepper-passes-") as name:
        folder, worker = Path(name), Worker(PROGRAM, _TRACING)
        try:
            act = CompileFile(Runtime(device, precision), str(model.resolve()), str(folder.resolve()))
            worker.send(act, subject=subject)
            yield from _passes(folder, worker, subject, Limits(timeout or LONGEST))
        except RuntimeError as error:
            raise ExecutionError(f"OpenVINO refuses the model: {complaint(error)}") from None
        finally:
            worker.close()


def _passes(folder: Path, worker: Worker, subject: str, limits: Limits) -> Iterator[TracedPass]:
    done: set[str] = set()
    ended, problem, since, stage = False, None, time.monotonic(), worker.stage
    while True:
        try:
            ended = worker.wait(subject, _EACH) is not None
        except (StepperError, RuntimeError) as error:
            ended, problem = True, error
        found = sorted(
            (int(match[2]), match[3], match[1], path)
            for path in folder.iterdir()
            if path.name not in done and (match := _FILE.fullmatch(path.name))
        )
        # The last one may not be whole as long as the process writes, and not at all where it crashed.
        whole = found if ended and not isinstance(problem, ENDED) else found[:-1]
        for number, name, model, path in whole:
            _throttle(worker, wanted=_size(folder) > _MOST_BYTES)
            yield TracedPass(number, name, model, path)
            done.add(path.name)
            for file in (path, path.with_suffix(".bin")):
                with contextlib.suppress(OSError):
                    file.unlink()
        if problem is not None:
            raise problem
        if ended:
            return
        if whole or stage != worker.stage:
            since, stage = time.monotonic(), worker.stage
        elif time.monotonic() - since > limits.of(stage):
            raise worker.overdue(subject, limits.of(stage))
        # All that is whole was taken: now it must go on, however large a single one may be.
        _throttle(worker, wanted=False)


def _size(folder: Path) -> int:
    """Return the bytes in the folder; files may come and go meanwhile."""
    size = 0
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            size += path.stat().st_size
    return size


def _throttle(worker: Worker, *, wanted: bool) -> None:
    """Let the process wait, or go on. Not where signals cannot do that."""
    if hasattr(signal, "SIGSTOP") and (pid := worker.pid()) is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP if wanted else signal.SIGCONT)
