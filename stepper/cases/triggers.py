"""Conditions under which a call of an application is kept."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from stepper.cases.case import CallTrigger
from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.plain_values import storable
from stepper.wording import near_text

WORDS: Final = ("nan", "inf", "error", "any")
Condition = Callable[[Mapping[str, Array], Mapping[str, Array]], object]
When = str | int | Condition
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


class Triggers:
    """Conditions of a capture; a call is kept where one of them holds.

    `when` is "nan", "inf" (an output has some), "error" (the call failed), "any", the number of a call, or a function
    of the inputs and the outputs of a call by name; or several of these.
    """

    def __init__(self, when: When | Sequence[When]) -> None:
        several = when if isinstance(when, Sequence) and not isinstance(when, str) else (when,)
        given = [int(one) if isinstance(one, np.integer) else one for one in several]
        self.words = {_word(one) for one in given if isinstance(one, str) and not _NUMBER.fullmatch(one)}
        numbers = [one for one in given if isinstance(one, int) or (isinstance(one, str) and _NUMBER.fullmatch(one))]
        self.numbers = {_number(one) for one in numbers}
        self.conditions = [one for one in given if callable(one)]
        odd = [one for one in given if isinstance(one, bool) or not (isinstance(one, (str, int)) or callable(one))]
        if odd or not given:
            text = repr(odd[0]) if odd else repr(when)
            raise UsageError(f"when={text}: a call is kept for {', '.join(WORDS)}, its number, or a function")

    def of_error(self, number: int, message: str) -> CallTrigger | None:
        """Return why a call that failed is kept; None where it is not."""
        if "error" in self.words:
            return CallTrigger("error", message=message)
        return self._of_number(number)

    def of_outputs(self, number: int, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> CallTrigger | None:
        """Return why a call is kept; None where it is not. Raises what a function raises."""
        found = self._of_number(number)
        for word, is_in, is_such in (("nan", _has_nan, np.isnan), ("inf", _has_infinity, np.isinf)):
            for index, (name, value) in enumerate(outputs.items() if word in self.words and found is None else ()):
                if found is None and is_in(value):
                    places = np.argwhere(is_such(storable(value)))
                    first = tuple(int(one) for one in places[0])
                    found = CallTrigger(word, index, name, len(places), int(value.size), first)
        if found is None and self.conditions:
            given = _read_only(inputs), _read_only(outputs)
            if any(condition(*given) for condition in self.conditions):
                found = CallTrigger("condition")
        return found

    def _of_number(self, number: int) -> CallTrigger | None:
        if number in self.numbers:
            return CallTrigger("number")
        return CallTrigger("any") if "any" in self.words else None


def _read_only(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return views into which a condition cannot write: outputs are in the memory of the application."""
    views = {name: value.view() for name, value in arrays.items()}
    for view in views.values():
        view.flags.writeable = False
    return views


def _word(word: str) -> str:
    if word not in WORDS:
        near = near_text(word, WORDS)
        raise UsageError(f"a call is kept for {', '.join(WORDS)} or its number, not for '{word}'{near and f'; {near}'}")
    return word


def _number(text: str | int) -> int:
    number = int(text)
    if number < 1:
        raise UsageError(f"calls are counted from 1; there is no call {number}")
    return number


def _floats(value: Array) -> Array | None:
    """Return the numbers of a value that can be NaN or Inf; None where none can."""
    plain = value if value.dtype.kind == "f" else storable(value)
    return plain if plain.dtype.kind == "f" and plain.size else None


def _has_nan(value: Array) -> bool:
    floats = _floats(value)
    return floats is not None and math.isnan(floats.min())  # a NaN is what the least of all is, if there is one


def _has_infinity(value: Array) -> bool:
    floats = _floats(value)
    if floats is None or (math.isfinite(floats.min()) and math.isfinite(floats.max())):
        return False
    return bool(np.isinf(floats).any())
