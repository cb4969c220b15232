"""The errors that a user may meet; each carries one clear message and the exit code of the command line."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NamedTuple

from stepper.wording import printable, printable_lines

FINDING = 1
"""The exit code where something was found that was looked for."""
INTERRUPTED = 130

EXIT_CODES = MappingProxyType({
    0: "done",
    FINDING: "a finding (a breakpoint stopped the run, a predicate holds, something differs, a figure is out of date)",
    2: "wrong usage, or a file that cannot be written",
    3: "the model or an input cannot be read or run",
    4: "stopped by a limit",
    5: "an operation has no kernel",
    INTERRUPTED: "interrupted (128 + N where signal N ended the program)",
})  # fmt: skip
"""The exit codes of the command line, and what each says."""


class LayerPlace(NamedTuple):
    """A layer by its place in the file, as an error carries it."""

    id: int
    name: str
    type: str
    file: str
    line: int


class BodyPlace(NamedTuple):
    """A loop or an If around the place of an error: which body of it ran, and in which iteration (None: of an If)."""

    layer: LayerPlace
    body: str
    iteration: int | None


class ErrorPlace(NamedTuple):
    """Place of an error: file, line (0: none), layer, and in a run what is around that, from the outside inwards."""

    file: str
    line: int = 0
    layer: LayerPlace | None = None
    path: tuple[BodyPlace, ...] = ()


class AddressCandidate(NamedTuple):
    """Hold a candidate meaning of an address: its full address, and the type of its layer."""

    address: str
    type: str


class StepperError(Exception):
    """Base of everything that this package raises on purpose; `str()` of it is the whole message, without control
    characters, and in one line unless `has_lines`.

    `kind` is the word for it in answers as JSON, `place` where it is, if known, and `reason` the message without it
    (empty: the message has none). `answered`: an answer was written already. `candidates` are what an ambiguous name
    may mean: each could replace `ambiguous` in the given text. Pickles with all that it carries, so that it comes back
    whole from another process.
    """

    exit_code = 1
    kind = "error"
    place: ErrorPlace | None = None
    reason = ""
    answered = False
    has_lines = False
    ambiguous = ""
    candidates: tuple[AddressCandidate, ...] = ()

    def __str__(self) -> str:
        text = super().__str__()
        return printable_lines(text) if self.has_lines else printable(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[StepperError], arguments: tuple[Any, ...]) -> StepperError:
    return kind.__new__(kind, *arguments)  # which takes them as they are, whatever the error is made from


class UsageError(StepperError, ValueError):
    """Wrong request: an unknown name, a missing input, options that contradict each other."""

    exit_code = 2
    kind = "usage"


class OutputError(UsageError):
    """A file cannot be written, or must not be: the disk is full, or it is one that the run reads."""

    kind = "output"


class ArgumentTypeError(UsageError, TypeError):
    """An argument of a function has another type than it takes."""


class TensorFacts(NamedTuple):
    """An input or a variable of a model as an error carries it: `type` is None where any will do."""

    name: str
    type: str | None
    shape: str
    other_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        others = f" (also: {', '.join(self.other_names)})" if self.other_names else ""
        return f"{self.name}: {self.type or 'any type'}{self.shape}{others}"


class MissingInputs(UsageError):
    """Inputs of the model without a value: `missing`, of `inputs` in all."""

    has_lines = True

    def __init__(self, message: str, missing: tuple[TensorFacts, ...], inputs: int) -> None:
        super().__init__(message)
        self.missing, self.inputs = missing, inputs


class ModelError(StepperError):
    """The model's files are malformed, or say something that cannot be; the message names file, line and layer.

    `rule` is the name of the rule that the file breaks, as `stepper lint` lists it; empty: there is none for it.
    """

    exit_code = 3
    kind = "model"
    rule = ""


class InputError(StepperError, ValueError):
    """A value given for a model's input does not fit it, or its file cannot be read."""

    exit_code = 3
    kind = "input"


class SessionError(StepperError):
    """A recorded run cannot be read, or does not belong to the model or the inputs at hand; the message says why."""

    exit_code = 3
    kind = "session"


class ExecutionError(StepperError):
    """An operation failed while the model ran; the message names the frame stack and the values' shapes."""

    exit_code = 3
    kind = "execution"


class LimitReached(StepperError):
    """A limit that the user (or the default) set ended the run: iterations, or the size of a tensor."""

    exit_code = 4
    kind = "limit"


def memory_reason(error: MemoryError) -> str:
    """Return the reason of an allocation that failed; numpy's errors say how much was asked for, Python's do not."""
    return f"out of memory: {error}" if str(error) else "out of memory"


class Paused(StepperError):
    """The work heeded a pause that another thread asked for. Whoever moves a run reports where it stands then."""

    exit_code = INTERRUPTED
    kind = "paused"

    def __init__(self, message: str = "paused") -> None:
        super().__init__(message)


class UnsupportedOperation(StepperError):
    """The run reached an operation that has no kernel."""

    exit_code = 5
    kind = "unsupported"


class KernelError(ValueError):
    """A kernel's own complaint in one sentence; the engine adds the place and raises it as `ExecutionError`."""


class TensorTooLarge(KernelError):
    """A kernel was asked for a tensor out of all proportion; the engine raises it as `LimitReached`."""
