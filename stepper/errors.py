"""The errors that a user may meet; each carries one clear message and the exit code of the command line.

Exit codes: 0 done, 1 a finding, 2 usage, 3 a model or an input that cannot be read or run, 4 stopped by a limit,
5 an operation without a kernel, 130 interrupted.
"""

from __future__ import annotations

from typing import Final

FINDING: Final = 1
"""The exit code where something was found that was looked for."""


class StepperError(Exception):
    """Base of everything that this package raises on purpose; `str()` of it is the whole message."""

    exit_code = 1


class UsageError(StepperError):
    """What was asked for cannot be: an unknown name, a missing input, options that contradict each other."""

    exit_code = 2


class OutputError(UsageError):
    """A file cannot be written, or must not be: the disk is full, or it is one that the run reads."""


class ModelError(StepperError):
    """The model's files are malformed, or say something that cannot be; the message names file, line and layer."""

    exit_code = 3


class InputError(StepperError):
    """A value given for a model's input does not fit it, or its file cannot be read."""

    exit_code = 3


class SessionError(StepperError):
    """A recorded run cannot be read, or does not belong to the model or the inputs at hand; the message says why."""

    exit_code = 3


class ExecutionError(StepperError):
    """An operation failed while the model ran; the message names the frame stack and the values' shapes."""

    exit_code = 3


class LimitReached(StepperError):
    """The run was ended by a limit that the user (or the default) set: iterations, or the size of a tensor."""

    exit_code = 4


class UnsupportedOperation(StepperError):
    """The run reached an operation that has no kernel."""

    exit_code = 5


class KernelError(ValueError):
    """A kernel's own complaint in one sentence; the engine adds the place and raises it as `ExecutionError`."""


class TensorTooLarge(KernelError):
    """A kernel was asked for a tensor out of all proportion; the engine raises it as `LimitReached`."""
