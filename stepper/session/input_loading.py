"""The value of a chosen input, made at once where it is small; else in a thread, one after another, so that the
screen goes on. A large value can be stopped on the way, and of two for the same input only the newer one is made."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from stepper.element_types import Array
from stepper.engine.array_files import ReadingStopped, ReadProgress
from stepper.engine.inputs import converted, ensure_shape, value_of
from stepper.errors import StepperError
from stepper.ir.model import Layer, parameter_shape, parameter_type

SMALL: Final = 2**20
"""Bytes of a file, or elements to fill, that do not keep anybody waiting."""
_MOST_COMPARED: Final = 10**6
STOPPED: Final = "stopped; Enter, Enter reads it"


class LoadOutcome(Struct, frozen=True, eq=False):
    """Value of a chosen input: the tensor and its least and greatest value (None: not looked for), or why there is none
    (empty: nothing was chosen yet). `loading` is there as long as it is being made."""

    array: Array | None
    problem: str = ""
    span: tuple[float, float] | None = None
    loading: Load | None = None


class Load(Struct, eq=False):
    """A value to be made: of the input at a position, as the words say, in a shape where that is to be filled."""

    position: int
    parameter: Layer
    spec: str
    shape: tuple[int, ...] | None
    reading: ReadProgress = field(default_factory=ReadProgress)

    @property
    def is_small(self) -> bool:
        """True if it is made at once."""
        if ".np" not in self.spec:
            shape = parameter_shape(self.parameter).static if self.shape is None else self.shape
            return shape is None or math.prod(shape) <= SMALL
        return all(_size(path) <= SMALL for path in (Path(self.spec), Path(self.spec.rpartition(":")[0])))

    def outcome(self) -> LoadOutcome:
        """Make the value, however long that takes, and return it."""
        parameter, reading = self.parameter, self.reading
        reading.check = lambda shape: ensure_shape(parameter, shape)
        try:
            reading.heed(0)
            array = value_of(parameter, self.spec, self.shape, reading)
            element_type = parameter_type(parameter)
            if element_type is not None and array.dtype != element_type.dtype:
                reading.begin(array.shape, array.nbytes)  # converting makes copies of all of it
            array = converted(parameter, array)
            return LoadOutcome(array, span=_span(array))
        except ReadingStopped:
            return LoadOutcome(None, STOPPED)
        except MemoryError:
            return LoadOutcome(None, "there is not enough memory")
        except StepperError as error:
            return LoadOutcome(None, short_problem(str(error), parameter.name))


class Loader:
    """Makes values in a thread; `tell` is called there with each load and what came of it."""

    def __init__(self, tell: Callable[[Load, LoadOutcome], object]) -> None:
        self._tell = tell
        self._loads: deque[Load] = deque()
        self._lock = threading.Lock()
        self._works = False

    def begin(self, load: Load) -> None:
        """Make it when those before are made."""
        with self._lock:
            self._loads.append(load)
            if self._works:
                return
            self._works = True
        threading.Thread(target=self._work, name="inputs", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._loads:
                    self._works = False
                    return
                load = self._loads.popleft()
            try:
                outcome = load.outcome()
            except Exception as error:  # a fault must not leave an input that loads for ever
                outcome = LoadOutcome(None, f"a fault in the program: {error!r}")
            self._tell(load, outcome)


def short_problem(text: str, name: str) -> str:
    """Return the message without what stands beside it anyway."""
    return text.splitlines()[0].removeprefix(f"input '{name}'").lstrip(": ")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


def _span(array: Array) -> tuple[float, float] | None:
    if array.dtype.kind not in "fiub" or not 0 < array.size <= _MOST_COMPARED:
        return None
    return float(array.min()), float(array.max())
