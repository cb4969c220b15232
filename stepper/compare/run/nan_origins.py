"""Origins of NaN and infinities in our run: the first operation that gives one though no input has one.

The reference may have them as well; whether it does at the same place is told by asking it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from stepper.compare.references.protocol import ReferenceFrame
from stepper.compare.report.words import numbered, path_text
from stepper.debug.breakpoints.breakpoint import Check, Guard
from stepper.debug.breakpoints.kinds.non_finite import holds_any, non_finite_checks
from stepper.debug.causes.cause import NonFinite, NonFiniteKind
from stepper.debug.causes.texts import how_sentence, operands_text
from stepper.debug.reference_values import GraphPath
from stepper.engine.frames import Frame
from stepper.engine.program import CompiledModel, Operation
from stepper.ir.model import Layer

_WORDS: Final = (NonFiniteKind.NAN, NonFiniteKind.INF)


class NonFiniteOrigin(Struct, frozen=True, eq=False):
    """The first NaN (or infinity) that an operation made of others: `cause` says where and of what.

    `shared`: the reference has one there, too.
    """

    path: GraphPath
    layer: Layer
    cause: NonFinite
    shared: bool

    @property
    def text(self) -> str:
        """The whole of it in a sentence."""
        title = "NaN (not a number)" if self.cause.kind is NonFiniteKind.NAN else "Inf"
        begins = "comes in with the model's inputs, first read by" if self.cause.given else "first appears in"
        at = f" at {list(self.cause.element)}" if self.cause.element else ""
        text = f"{title} {begins} {numbered(self.layer)} in {path_text(self.path)}{at}"
        return ": ".join(filter(None, (text, how_sentence(self.cause), operands_text(self.cause.operands))))


class NonFiniteOrigins:
    """Looks at operations in the order in which they ran, until it has seen one origin of each kind."""

    def __init__(self, compiled: CompiledModel) -> None:
        self._found: dict[NonFiniteKind, tuple[tuple[int, int], NonFiniteOrigin]] = {}
        self._looks = 0
        self._checks: dict[tuple[NonFiniteKind, int], list[Check]] = {}
        self._guards: dict[int, Guard] = {}
        """By program: whether all of its values are finite, which serves both kinds."""
        for word in _WORDS:
            for check in non_finite_checks(word, compiled, frozenset()):
                self._checks.setdefault((word, id(check.program)), []).append(check)
                if check.guard is not None:
                    self._guards[id(check.program)] = check.guard

    def look(
        self, stack: Sequence[Frame], path: GraphPath, first: int, end: int, theirs: ReferenceFrame | None
    ) -> None:
        """At the operations `first` to `end` (not included) of the innermost frame, which have run."""
        self._looks += 1
        if self.is_complete:
            return
        program = stack[-1].program
        with np.errstate(all="ignore"):
            guard = self._guards.get(id(program))
            if guard is None or not guard.may_hold(stack, first, end - 1):
                return
            for word in [word for word in _WORDS if word not in self._found]:
                for check in self._checks[word, id(program)]:
                    causes = check.test(stack) if first <= check.index < end else None
                    if causes is not None and isinstance(causes[0], NonFinite):
                        origin = _origin(causes[0], path, program.operations[check.index], theirs)
                        self._found[word] = ((self._looks, check.index), origin)
                        break

    @property
    def is_complete(self) -> bool:
        """True if there is nothing left to look for."""
        return len(self._found) == len(_WORDS)

    def in_order(self) -> tuple[NonFiniteOrigin, ...]:
        """Return what was found, the earliest first."""
        return tuple(origin for _time, origin in sorted(self._found.values(), key=lambda pair: pair[0]))


def _origin(cause: NonFinite, path: GraphPath, operation: Operation, theirs: ReferenceFrame | None) -> NonFiniteOrigin:
    other = None if theirs is None else theirs.value(operation.layer, cause.location.output or 0)
    return NonFiniteOrigin(path, operation.layer, cause, holds_any(cause.kind, other))
