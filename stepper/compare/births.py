"""Where NaN and infinities are born in our run: the first operation that gives one though no input had one.

The reference may have them as well; whether it does at the same place is told by asking it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.compare.constant_differences import number
from stepper.compare.reference import Counterpart, Path
from stepper.compare.words import named, numbered, path_text
from stepper.debug.checks import Check, Guard
from stepper.debug.data_break_words import Word
from stepper.debug.non_finite import holds_any, non_finite_checks
from stepper.engine.frames import Frame
from stepper.engine.program import CompiledModel, Operation
from stepper.ir.model import Layer

_WORDS: Final = (Word.NAN, Word.INF)


class Birth(Struct, frozen=True, eq=False):
    """The first NaN (or infinity) that an operation made of others. `text` says where and of what, `shared` whether
    the reference has one there, too.
    """

    path: Path
    layer: Layer
    text: str
    shared: bool


class Births:
    """Looks at operations in the order in which they ran, until it has seen one birth of each kind."""

    def __init__(self, compiled: CompiledModel) -> None:
        self._found: dict[Word, tuple[tuple[int, int], Birth]] = {}
        self._looks = 0
        self._checks: dict[tuple[Word, int], list[Check]] = {}
        self._guards: dict[int, Guard] = {}
        """By program: whether all of its values are finite, which serves both kinds."""
        for word in _WORDS:
            for check in non_finite_checks(word, compiled, frozenset()):
                self._checks.setdefault((word, id(check.program)), []).append(check)
                if check.guard is not None:
                    self._guards[id(check.program)] = check.guard

    def look(self, stack: Sequence[Frame], path: Path, first: int, end: int, theirs: Counterpart | None) -> None:
        """At the operations `first` to `end` (not included) of the innermost frame, which have run."""
        self._looks += 1
        if len(self._found) == len(_WORDS):
            return
        program = stack[-1].program
        with np.errstate(all="ignore"):
            guard = self._guards.get(id(program))
            if guard is None or not guard.may_hold(stack, first, end - 1):
                return
            for word in [word for word in _WORDS if word not in self._found]:
                checks = self._checks[word, id(program)]
                born = next((one for one in checks if first <= one.index < end and one.test(stack)), None)
                if born is not None:
                    birth = _birth(word, stack[-1], path, program.operations[born.index], theirs)
                    self._found[word] = ((self._looks, born.index), birth)

    def in_order(self) -> tuple[Birth, ...]:
        """What was found, the earliest first."""
        return tuple(birth for _time, birth in sorted(self._found.values(), key=lambda pair: pair[0]))


def _birth(word: Word, frame: Frame, path: Path, operation: Operation, theirs: Counterpart | None) -> Birth:
    output, slot = next((k, slot) for k, slot in enumerate(operation.outputs) if holds_any(word, frame.values[slot]))
    other = None if theirs is None else theirs.value(operation.layer, output)
    value = np.asarray(frame.values[slot])
    index = tuple(int(k) for k in np.argwhere(np.isnan(value) if word is Word.NAN else np.isinf(value))[0])
    at = f" at {list(index)}" if index else ""
    title = "NaN (not a number)" if word is Word.NAN else "Inf"
    came_in = any(holds_any(word, frame.values[slot]) for slot in operation.inputs if slot >= 0)
    is_born = "comes in with the model's inputs, first read by" if came_in else "is born in"
    text = f"{title} {is_born} {numbered(operation.layer)} in {path_text(path)}{at}"
    return Birth(path, operation.layer, f"{text}: {_made_of(frame, operation, index)}", holds_any(word, other))


def _made_of(frame: Frame, operation: Operation, index: tuple[int, ...]) -> str:
    """What the operation was given at the place, and what that means where it is known."""
    sources = frame.program.graph.sources[operation.layer.id]
    shape = np.shape(frame.values[operation.outputs[0]])
    given: list[Any] = []
    names: list[str] = []
    for source, slot in zip(sources, operation.inputs, strict=True):
        if source is not None and slot >= 0 and frame.values[slot] is not None:
            given.append(_at(np.asarray(frame.values[slot]), shape, index))
            names.append(named(frame.program.graph.by_id[source.layer]))
    parts = [name if value is None else f"{name} is {number(value)}" for name, value in zip(names, given, strict=True)]
    meaning = _MEANINGS.get(operation.layer.type)
    numbers = [value for value in given if value is not None]
    said = meaning(*map(float, numbers)) if meaning is not None and len(numbers) == len(sources) else ""
    return f"{said}{': ' if said else 'of '}{', '.join(parts)}"


def _at(value: Any, shape: tuple[int, ...], index: tuple[int, ...]) -> Any:
    """The element that goes into one of the output's, where the shapes say which."""
    try:
        return np.broadcast_to(value, shape)[index]
    except ValueError:
        return None


def _divided(numerator: float, divisor: float) -> str:
    if divisor == 0:
        return f"it divides {'0 ' if numerator == 0 else ''}by 0"
    return "it divides Inf by Inf" if np.isinf(numerator) and np.isinf(divisor) else "it divides, and overflows"


def _logarithm(x: float) -> str:
    return "the logarithm of 0" if x == 0 else "the logarithm of a negative number" if x < 0 else ""


def _root(x: float) -> str:
    return "the square root of a negative number" if x < 0 else ""


def _exponential(x: float) -> str:
    return "the exponential overflows" if x > 0 else ""


def _subtracted(a: float, b: float) -> str:
    return "Inf minus Inf" if np.isinf(a) and np.isinf(b) else "it overflows"


def _added(a: float, b: float) -> str:
    return "Inf plus -Inf" if np.isinf(a) and np.isinf(b) else "it overflows"


def _multiplied(a: float, b: float) -> str:
    return "0 times Inf" if np.isinf(a) or np.isinf(b) else "it overflows"


def _raised(base: float, exponent: float) -> str:
    if base == 0 and exponent < 0:
        return "it divides by 0 (a negative power of zero)"
    return "a broken power of a negative number" if base < 0 and exponent % 1 else "it overflows"


_MEANINGS: Final[dict[str, Callable[..., str]]] = {
    "Divide": _divided,
    "Log": _logarithm,
    "Sqrt": _root,
    "Exp": _exponential,
    "Subtract": _subtracted,
    "Add": _added,
    "Multiply": _multiplied,
    "Power": _raised,
}
"""What an infinity or NaN among the results of finite or infinite numbers means."""
