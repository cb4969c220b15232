"""Functions from arrays to arrays that are defined in a worker process.

layer = RemoteFunction(worker, define, "MatMul 'proj' (layer 3)", limits)
layer(x)                                           # defined anew where the process had to be started again
outputs = layer.begin(x); ...; outputs()           # beside others, and beside what goes on here
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from stepper.element_types import Array
from stepper.errors import KernelError, StepperError
from stepper.processes.endings import ENDED
from stepper.processes.messages import CallFunction, Definition
from stepper.processes.worker import ActProgress, Limits, Worker

_MOST_CRASHES: Final = 3


class BegunCall:
    """A call of a function that a worker may have begun."""

    def __init__(self, function: RemoteFunction, inputs: tuple[Any, ...], begun: ActProgress | None) -> None:
        self._function, self._inputs, self._begun = function, inputs, begun

    def __call__(self) -> tuple[Array, ...]:
        """Return its outputs, when they are there; to be asked once. Raises as `Worker.ask` does."""
        begun, self._begun = self._begun, None
        found = None if begun is None else self._function.collected(begun, self._inputs)
        return self._function(*self._inputs) if found is None else found


class RemoteFunction:
    """Function from arrays to arrays that is defined in a worker.

    `define` gives its definition under a key, with its arrays. What ended the process once is not tried again
    on inputs of the same types and shapes, and after a few times not at all: the same exception is raised.
    """

    _keys: Final = itertools.count(1)

    def __init__(
        self, worker: Worker, define: Callable[[int], tuple[Definition, Sequence[Any]]], subject: str, limits: Limits
    ) -> None:
        self._worker, self._define, self.subject, self.limits = worker, define, subject, limits
        self._key = next(self._keys)
        self._generation = 0
        self._ended: dict[Any, StepperError] = {}
        weakref.finalize(self, worker.forget, self._key)

    def __call__(self, *inputs: Any) -> tuple[Array, ...]:
        """Return its outputs. Raises as `Worker.ask` does."""
        return self._called(inputs, wanted=True)

    def survives(self, *inputs: Any) -> None:
        """Compute, and raise as `Worker.ask` does; the outputs stay there."""
        self._called(inputs, wanted=False)

    def begin(self, *inputs: Any) -> BegunCall:
        """Have it compute beside other calls that were begun, and beside what goes on here."""
        begun = None
        if self._earlier_end(inputs) is None:
            # what goes wrong here does so again when the outputs are asked for
            with contextlib.suppress(StepperError, KernelError, RuntimeError), self._worker.locked():
                self._ensure_defined()
                begun = self._worker.begin(CallFunction(self._key), inputs, subject=self.subject)
        return BegunCall(self, inputs, begun)

    def collected(self, begun: ActProgress, inputs: tuple[Any, ...]) -> tuple[Array, ...] | None:
        """Return the outputs of a call that was begun on these inputs; None where it must be called once more."""
        try:
            found = self._worker.collect(begun, subject=self.subject, limits=self.limits)
        except ENDED as error:
            self._ended[_signature(inputs)] = error
            raise
        return None if found is None else tuple(found)

    def _called(self, inputs: tuple[Any, ...], *, wanted: bool) -> tuple[Array, ...]:
        if (earlier := self._earlier_end(inputs)) is not None:
            raise _again(earlier)
        try:
            with self._worker.locked():
                self._ensure_defined()
                call = CallFunction(self._key, wanted)
                return tuple(self._worker.ask(call, inputs, subject=self.subject, limits=self.limits))
        except ENDED as error:
            if self._worker.has_ended_at_several():
                return self._called(inputs, wanted=wanted)
            self._ended[_signature(inputs)] = error
            raise

    def _ensure_defined(self) -> None:
        if self._generation != self._worker.ready():
            definition, arrays = self._define(self._key)
            self._worker.define(definition, arrays, subject=self.subject)
            self._generation = self._worker.generation

    def _earlier_end(self, inputs: tuple[Any, ...]) -> StepperError | None:
        """Return how the process ended at this before, if it did."""
        if len(self._ended) >= _MOST_CRASHES:
            return next(reversed(self._ended.values()))
        return self._ended.get(_signature(inputs))


def _signature(inputs: Sequence[Any]) -> Any:
    return tuple((array.dtype, array.shape) for array in inputs)


def _again(error: StepperError) -> StepperError:
    """Return the exception once more, without the trace of the first time."""
    copy = type(error)(str(error))
    copy.end = error.end  # type: ignore[attr-defined]  # each of ENDED has one
    return copy
