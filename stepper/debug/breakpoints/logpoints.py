"""Text of a logpoint, with expressions in braces, such as `{iter}: loss {max(h):.3g}`; `{{` is a brace."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from stepper.debug.breakpoints.conditions import Condition, condition_at
from stepper.debug.breakpoints.iteration_window import IterationWindow
from stepper.debug.causes.locations import shown
from stepper.debug.timeline import Timeline
from stepper.engine.frames import Frame
from stepper.engine.program import Program
from stepper.errors import StepperError
from stepper.query.address_syntax import NotWritable


class LogLineError(NotWritable):
    """A text with braces that do not fit, or with a format that no number takes."""


class LogLine:
    """The text of a logpoint at a place. Raises UsageError for what is wrong in it."""

    def __init__(self, text: str, timeline: Timeline, program: Program, index: int) -> None:
        self.parts: list[tuple[str, Condition | None, str]] = []
        try:
            parsed = list(string.Formatter().parse(text))
        except ValueError as error:
            raise LogLineError(f"the text is not right: {error}", text, len(text)) from None
        for literal, expression, form, conversion in parsed:
            if conversion:
                raise LogLineError("there is no conversion by '!' here", text, max(text.find(f"!{conversion}"), 0))
            condition = None if expression is None else condition_at(expression, timeline, program, index)
            self.parts.append((literal, condition, _checked(form or "", text)))
        self.windows: list[IterationWindow] = [
            window for _, part, _ in self.parts if part is not None for window in part.windows
        ]

    def text(self, stack: Sequence[Frame]) -> str:
        """Return the line at this moment."""
        return "".join(literal + _written(condition, form, stack) for literal, condition, form in self.parts)


def _checked(form: str, text: str) -> str:
    try:
        format(1.0, form)
    except ValueError:
        try:
            format(1, form)
        except ValueError:
            raise LogLineError(f"'{form}' is not a number format", text, max(text.find(form), 0)) from None
    return form


def _written(condition: Condition | None, form: str, stack: Sequence[Frame]) -> str:
    if condition is None:
        return ""
    try:
        value = condition.value(stack)
    except StepperError as error:
        return f"<{str(error).splitlines()[0]}>"
    return _formatted(value, form)


def _formatted(value: Any, form: str) -> str:
    if isinstance(value, np.ndarray | np.generic):
        if value.size != 1 or not form:
            return shown(value)
        value = value.item()
    try:
        return format(value, form)
    except (ValueError, TypeError):
        return str(value)
