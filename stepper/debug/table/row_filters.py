"""Conditions on the rows of a table: expressions as breakpoints have them, in which names are first those of columns.

Where a condition compares single elements it is asked of whole columns at once; otherwise (a maximum, a value that is
no column) of each iteration on a way through the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stepper.debug.scopes import Names
from stepper.debug.stop_scope import WalkScope
from stepper.debug.timeline import Timeline
from stepper.element_types import Array, Indices
from stepper.engine.program import Program
from stepper.errors import StepperError, UsageError
from stepper.query.address_resolution import Target
from stepper.query.address_syntax import Address, parse_address
from stepper.query.expression_syntax import (
    Binary,
    Call,
    Comparison,
    ExpressionError,
    Indexed,
    Literal,
    Logical,
    Node,
    Operand,
    Unary,
    parse_tree,
)
from stepper.query.expressions import Compiler, ReadFrom, parse

_BEFORE: Final = re.compile(r"(?P<column>[^\s()<>=!+*/%,@-]+\[[^\]]*\])@-1(?![0-9])")
_OPERATORS: Final = ("==", "!=", "<=", ">=", "<", ">")
_BARE: Final = re.compile(r"(?P<abs>abs)?\s*(?P<rest>(?:[=!<>]=|[<>]).*)")
"""A comparison of nothing, or of a magnitude of nothing."""
_EACH: Final = frozenset({"abs", "isnan", "isinf", "isfinite"})
"""Functions of each element."""

ColumnOf = Callable[[str, Indices], int | None]
"""The number of the column of an element, by the name of its value; None where there is none."""


def about_column(text: str, column: str) -> str:
    """Return a condition with the column that it leaves out: `> 2` and `abs > 2` are about `column`."""
    text = text.strip()
    bare = _BARE.fullmatch(text)
    if not column or bare is None or bare["abs"] == column:
        return text
    return f"abs({column}) {bare['rest']}" if bare["abs"] else f"{column} {text}"


def written_out(text: str, column: str = "") -> str:
    """Return a condition in full: `> 2` is about `column`, and `x[1]@-1` is written prev(x[1])."""
    text = about_column(text, column)
    if text.startswith(_OPERATORS):
        raise UsageError(f"'{text}' compares nothing: write a column before it, such as x[0] {text}")
    return _BEFORE.sub(lambda found: f"prev({found['column']})", text)


class _ElementNames:
    """The elements that a condition names, each under a name of its own."""

    def __init__(self, column_of: ColumnOf) -> None:
        self._column_of = column_of
        self.columns: dict[Address, int] = {}

    def operand(self, node: Node) -> Node | None:
        """Return an operand in place of an element; None where it is none."""
        index: Indices = ()
        base = node
        if isinstance(node, Indexed):
            base = node.base
            items = [_whole(item) for item in node.items]
            if any(item is None for item in items):
                return None
            index = tuple(item for item in items if item is not None)
        if not isinstance(base, Operand) or base.address.iterations is not None or base.address.levels:
            return None
        column = self._column_of(str(base.address), index)
        if column is None:
            return None
        address = parse_address(f"column_{column}")
        self.columns[address] = column
        return Operand(node.position, address)


def _whole(item: Any) -> int | None:
    """Return an index that is a whole number."""
    if isinstance(item, Unary) and item.operator == "-":
        number = _whole(item.operand)
        return None if number is None else -number
    is_number = isinstance(item, Literal) and type(item.value) is int
    return int(item.value) if is_number else None


class _OtherThanElements(Exception):
    """A part of a condition is about more than single elements."""


def by_element(node: Any, names: _ElementNames) -> Any:
    """Return a tree with elements in place of what it reads. Raise _OtherThanElements."""
    if isinstance(node, tuple):
        return tuple(by_element(one, names) for one in node)
    found = names.operand(node) if isinstance(node, Node) else node
    if found is not None or isinstance(node, Literal):
        return found or node
    is_of_each = isinstance(node, Call) and (node.function in _EACH or node.function == "prev")
    is_single = isinstance(node, Comparison) and len(node.rest) == 1
    if not (is_of_each or is_single or isinstance(node, Unary | Binary | Logical)):
        raise _OtherThanElements
    return type(node)(*(by_element(getattr(node, name), names) for name in node.__struct_fields__))


class ColumnCondition:
    """A condition on single elements, asked of whole columns; `columns` are those that it reads."""

    def __init__(self, text: str, node: Node, columns: dict[Address, int]) -> None:
        compiler = Compiler(text)
        self._code = compiler.part(node).code
        self._reads_before = any(moment is ReadFrom.PREVIOUS for _, moment in compiler.reads)
        self._columns = columns
        self.columns = tuple(dict.fromkeys(columns.values()))

    def holds(self, column: Callable[[int], Array], count: int) -> Array:
        """Return in which of so many iterations it holds; `column` gives those of a column, in its own type."""
        with np.errstate(all="ignore"):
            found = np.asarray(self._code(_Columns(self._columns, column)))
        if found.dtype != bool:
            found = found != 0
        held = np.array(np.broadcast_to(found, count), bool)
        if self._reads_before:
            held[:1] = False
        return held


class _Columns:
    """The scope of a condition on columns."""

    def __init__(self, columns: dict[Address, int], column: Callable[[int], Array]) -> None:
        self._columns, self._column = columns, column

    def value(self, address: Address, /) -> Array:
        """Return the column."""
        return self._column(self._columns[address])

    def previous(self, address: Address, /) -> Array:
        """Return it one iteration later; before the first there is nothing, which compares as NaN."""
        now = self.value(address)
        before = np.full(len(now), np.nan) if now.dtype.kind != "f" else np.full_like(now, np.nan)
        before[1:] = now[:-1]
        return before

    def reference(self, _address: Address, /) -> Array:
        """Refused."""
        raise UsageError("ref() is not in the conditions of a table")

    def iteration(self) -> int:
        """Not asked for: such a condition is asked of each iteration."""
        raise NotImplementedError

    def iteration_of(self, _loop: str, /) -> int:
        """Not asked for."""
        raise NotImplementedError


def column_condition(text: str, column_of: ColumnOf) -> ColumnCondition | None:
    """Return a condition that can be asked of columns; None for any other. Raise ExpressionError."""
    names = _ElementNames(column_of)
    try:
        tree = by_element(parse_tree(text), names)
    except _OtherThanElements:
        return None
    return ColumnCondition(text, tree, names.columns) if names.columns else None


def iteration_condition(
    timeline: Timeline, text: str, body: Program, place_of: Callable[[Address], Target | None]
) -> Callable[[], bool]:
    """Return whether a condition holds in the iteration that has just been closed; values that are not there do not.

    `place_of` says what a name means. Raise UsageError, ExpressionError.
    """
    expression, names = parse(text), Names(timeline.machine.compiled)

    def target_of(address: Address) -> Target:
        target = place_of(address) or names.target(address, body)
        if any(asked is not None for asked in target.iterations):
            raise UsageError(f"'{address}': every iteration is asked, so a name says none; prev(x) is the one before")
        path = target.program.path
        if body.path[: len(path)] != path:
            raise UsageError(f"'{target.named.name}' is in {target.program.name}, which has no value in each iteration")
        return target

    targets = {address: target_of(address) for address in expression.addresses}
    if expression.references:
        raise UsageError("ref() is not in the conditions of a table")
    scope = WalkScope(timeline, expression, targets.__getitem__)

    def holds() -> bool:
        try:
            found = expression.truth(scope)
        except ExpressionError:
            raise
        except StepperError:
            found = False
        scope.remember()
        return found

    return holds
