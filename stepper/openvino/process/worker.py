"""The process in which OpenVINO runs: it takes requests from its standard input and answers on its standard output.

Only `client.Worker` starts it. It says when it begins to read, convert, compile or run, so that whoever asked knows
what it was at when it ends. It ends with the process that started it, and deletes what was being written for that one.

For tests, STEPPER_FAULT="stage:fault" makes it fail when it begins with a stage: the name of a signal, or one of
`hang`, `spin`, `exit`, `garbage` and `memory`. A third part lets it fail only where the words occur in what is done.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import sys
import threading
import time
from typing import IO, Any, Final

import msgspec

from stepper.element_types import Array
from stepper.errors import KernelError, StepperError
from stepper.openvino import runtime
from stepper.openvino.compiled import CompiledText
from stepper.openvino.conversion import convert
from stepper.openvino.layers import LayerInOpenVINO
from stepper.openvino.native_text import NativeText, mapped
from stepper.openvino.process import messages
from stepper.openvino.process.messages import (
    Began,
    Call,
    Check,
    CompileFile,
    Convert,
    DefineLayer,
    DefineModel,
    Done,
    OutOfMemory,
    Refused,
    Reply,
    Request,
    RuntimeFacts,
)
from stepper.openvino.runtime import Runtime

FAULT: Final = "STEPPER_FAULT"
_OUT_OF_MEMORY: Final = ("bad_alloc", "bad allocation", "out of memory", "Cannot allocate memory", "Failed to allocate")


def main() -> None:
    """Answer requests until the other side is gone."""
    answers = os.fdopen(os.dup(1), "wb")
    requests = os.fdopen(os.dup(0), "rb")
    _let_nobody_else_use_the_pipes()
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    _limit_memory(int(sys.argv[1]))
    _Server(requests, answers).run()


def _let_nobody_else_use_the_pipes() -> None:
    """Libraries that print must not write into an answer."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)


def _limit_memory(size: int) -> None:
    if not size:
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    with contextlib.suppress(ValueError, OSError):
        _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        least = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (least, hard))


class _Server:
    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests, self._answers = requests, answers
        self._waiting: queue.SimpleQueue[tuple[Request, list[Array]] | None] = queue.SimpleQueue()
        self._functions: dict[int, Any] = {}
        self._runtimes: dict[bytes, Runtime] = {}
        self._subject = self._folder = ""
        runtime.announce = self._began

    def run(self) -> None:
        """Read in another thread, so that the end of the other side is seen whatever this one is at."""
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            found = self._waiting.get()
            if found is None:  # the request did not fit into memory, and what follows of it cannot be told apart
                self._answer(OutOfMemory())
                os._exit(0)
            request, arrays = found
            for key in request.forget:
                self._functions.pop(key, None)
            self._subject = request.subject
            self._answer(*self._done(request, arrays))

    def _listen(self) -> None:
        while True:
            try:
                found = messages.read_request(self._requests)
            except MemoryError:
                self._waiting.put(None)
                return
            except (messages.Garbled, OSError):
                found = None
            if found is None:
                if self._folder:
                    shutil.rmtree(self._folder, ignore_errors=True)
                os._exit(0)
            if isinstance(found[0].act, (Convert, CompileFile)):
                self._folder = found[0].act.folder
            self._waiting.put(found)

    def _answer(self, reply: Reply, arrays: Any = ()) -> None:
        messages.write(self._answers, reply, arrays)

    def _began(self, stage: str) -> None:
        self._answer(Began(stage))
        stage_wanted, _, rest = os.environ.get(FAULT, "").partition(":")
        fault, _, where = rest.partition(":")
        if stage_wanted == stage and where in self._subject:
            _fail(fault, self._answers)

    def _done(self, request: Request, arrays: list[Array]) -> tuple[Reply, Any]:
        try:
            return Done(), self._act(request, arrays)
        except MemoryError:
            return OutOfMemory(), ()
        except (StepperError, KernelError) as error:
            return Refused(type(error).__name__, str(error)), ()
        except RuntimeError as error:
            if any(words in str(error) for words in _OUT_OF_MEMORY):
                return OutOfMemory(), ()
            return Refused("", str(error)), ()
        finally:
            self._folder = ""

    def _act(self, request: Request, arrays: list[Array]) -> Any:
        match request.act:
            case Check() as act:
                self._runtime(act.runtime).check_here()
            case Convert() as act:
                convert(act.source, act.target)
            case CompileFile() as act:
                os.chdir(act.folder)
                self._runtime(act.runtime).compile_file(act.path)
            case DefineModel() as act:
                text = NativeText(act.text, mapped(act.weights) if act.weights else None)
                self._functions[act.key] = CompiledText(self._loaded(act.runtime), text)
            case DefineLayer() as act:
                constants: list[Array | None] = [None] * len(act.layer.inputs)
                for place, array in zip(act.constants, arrays, strict=True):
                    constants[place] = array
                layer = messages.layer_of(act.layer)
                runtime = self._loaded(act.runtime)
                self._functions[act.key] = _Layer(
                    constants, LayerInOpenVINO(runtime, layer, constants, is_last_resort=act.is_last_resort)
                )
            case Call() as act:
                found = self._functions[act.key](*arrays)
                return found if act.wanted else ()
        return ()

    def _loaded(self, facts: RuntimeFacts) -> Runtime:
        """A runtime that is there, so that what comes next is no longer its start."""
        found = self._runtime(facts)
        assert found.core, "it has its device"
        return found

    def _runtime(self, facts: RuntimeFacts) -> Runtime:
        key = msgspec.msgpack.encode(facts)
        if key not in self._runtimes:
            found = Runtime(facts.device, facts.precision, facts.extensions, facts.properties)
            self._runtimes[key] = found
        return self._runtimes[key]


class _Layer:
    """A layer as a function of those of its inputs that are no constants."""

    def __init__(self, constants: list[Array | None], layer: LayerInOpenVINO) -> None:
        self._constants, self._layer = constants, layer

    def __call__(self, *given: Array) -> Any:
        changing = iter(given)
        return self._layer(*[next(changing) if one is None else one for one in self._constants])


def _fail(fault: str, answers: IO[bytes]) -> None:
    """Fail in the way that a test asks for."""
    if fault == "hang":
        time.sleep(3600)
    elif fault == "spin":
        while True:
            pass
    elif fault == "exit":
        os._exit(7)
    elif fault == "garbage":
        answers.write(b"this is no message at all, however long one reads it")
        answers.flush()
    elif fault == "memory":
        raise MemoryError
    elif fault:
        os.kill(os.getpid(), getattr(signal, fault))


if __name__ == "__main__":
    main()
