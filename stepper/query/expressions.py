"""Expressions over the values of a run: conditions of breakpoints, watches, what `print` shows.

    parse("abs(x - prev(x)) < 1e-6").truth(scope)
    parse("h[0, :8]").evaluate(scope)

A small grammar over numpy (expression_syntax), compiled once into closures (expression_compiler); nothing of a text is
ever evaluated as Python. Functions: any all max min mean sum abs isnan isinf isfinite norm std argmax argmin of all
elements; size rank shape dtype; prev(x) one iteration before, ref(x) in the reference run; `iter`.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from stepper.query import expression_values as values
from stepper.query.address_syntax import Address
from stepper.query.expression_compiler import Code, Compiler, Leaves, ReadFrom, ResultKind, Scope
from stepper.query.expression_syntax import FUNCTION_NAMES, ExpressionError, parse_tree
from stepper.records import Brief

__all__ = ["FUNCTION_NAMES", "Expression", "ExpressionError", "Scope", "parse"]


class Expression(Brief, eq=True):
    """A compiled expression. `addresses` are all that it reads, `previous` and `references` those in prev() and ref().

    `reads_iteration`: whether `iter` is in it; `loops` are the names in `iter(NAME)`.
    """

    unshown: ClassVar = ("_code", "_kind", "_may_warn")

    text: str
    addresses: tuple[Address, ...]
    previous: tuple[Address, ...]
    references: tuple[Address, ...]
    reads_iteration: bool
    loops: tuple[str, ...]
    _code: Code
    _kind: ResultKind
    _may_warn: bool

    def evaluate(self, scope: Scope) -> Any:
        """Return the value: an array, a scalar of numpy or Python, a tuple of sizes for a shape, a name for a type.

        Raise ExpressionError for values that do not fit, and whatever the scope raises.
        """
        return _quietly(self._code, scope) if self._may_warn else self._code(scope)

    def truth(self, scope: Scope) -> bool:
        """True if the condition holds: the value is one element and not 0. Raise ExpressionError for an array."""
        return self.judged(self.evaluate(scope))

    @property
    def reading(self) -> Code:
        """Return what `evaluate` does, where numpy's warnings are off already, as they are while a machine runs."""
        return self._code

    def reading_by(self, leaves: Leaves) -> Callable[[Any], Any]:
        """Return what `reading` does, for what is not a Scope: `leaves` say how that is read."""
        return Compiler(self.text, leaves).part(parse_tree(self.text)).code

    def judged(self, value: Any) -> bool:
        """True if a value that the expression had is true; as `truth` has it."""
        if type(value) is np.bool_ or type(value) is bool:
            return bool(value)
        if self._kind in (ResultKind.SHAPE, ResultKind.TYPE):
            raise ExpressionError(f"{self._kind.value} is neither true nor false; compare it by ==", self.text, 0)
        try:
            if values.is_single(value):
                return values.truth(value)
        except values.FAILURES:
            raise ExpressionError(f"{values.described(value)} is neither true nor false", self.text, 0) from None
        problem = f"a condition is one truth value, this is {values.described(value)}; use any() or all()"
        raise ExpressionError(problem, self.text, 0)


def parse(text: str) -> Expression:
    """Return the expression that is written there, compiled.

    Raise ExpressionError with the text, a caret under the place, and what was expected or is near. Whether its
    addresses exist is for `resolve` to say.
    """
    compiler = Compiler(text)
    part = compiler.part(parse_tree(text))
    reads = list(compiler.reads)
    return Expression(
        text=text,
        addresses=tuple(dict.fromkeys(address for address, _ in reads)),
        previous=tuple(address for address, moment in reads if moment is ReadFrom.PREVIOUS),
        references=tuple(address for address, moment in reads if moment is ReadFrom.REFERENCE),
        reads_iteration=compiler.reads_iteration,
        loops=tuple(compiler.loops),
        _code=part.code,
        _kind=part.kind,
        _may_warn=compiler.may_warn,
    )


# Contexts in which numpy's floating-point warnings are off. Running in one costs a fifth of np.errstate; one context
# cannot be entered twice at a time, so each evaluation takes one from here and gives it back.
_quiet_contexts: list[contextvars.Context] = []


def _quietly(code: Code, scope: Scope) -> Any:
    try:
        context = _quiet_contexts.pop()
    except IndexError:
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
    try:
        return context.run(code, scope)
    finally:
        _quiet_contexts.append(context)
