"""Expressions over the values of a run: conditions of breakpoints, watches, what `print` shows.

    parse("abs(x - prev(x)) < 1e-6").truth(scope)
    parse("h[0, :8]").evaluate(scope)

A small grammar over numpy (expression_syntax), compiled once into closures; nothing of a text is
ever evaluated as Python. Functions: any all max min mean sum abs isnan isinf isfinite norm std argmax argmin of all
elements; size rank shape dtype; prev(x) one iteration before, ref(x) in the reference run; `iter`.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.query import expression_values as values
from stepper.query.address_syntax import Address
from stepper.query.expression_syntax import (
    FUNCTION_NAMES,
    Binary,
    Call,
    Comparison,
    ExpressionError,
    Indexed,
    Iteration,
    Literal,
    Logical,
    Node,
    Operand,
    Sizes,
    Slice,
    Unary,
    parse_tree,
)
from stepper.query.expression_values import FAILURES, NATIVE, NATIVE_SCALARS, Operation, Value, ValueFailure
from stepper.records import Brief, Record
from stepper.tensors.summaries import PAIRS, REDUCTIONS


class Scope(Protocol):
    """Names that an expression reads. Values are ndarrays, or numpy scalars for rank 0; an address has no index here.

    A method may raise any StepperError where there is no such value (no iteration before, no reference); `and` and
    `or` do not read what they need not, so `iter > 0 and x > prev(x)` is safe in the first iteration.
    """

    def value(self, address: Address, /) -> Value:
        """Return the value at the address, here and now where the address does not say."""

    def previous(self, address: Address, /) -> Value:
        """Return the same one iteration before."""

    def reference(self, address: Address, /) -> Value:
        """Return the same in the run that this one is compared with."""

    def iteration(self) -> int:
        """Return the number of the innermost loop's iteration."""

    def iteration_of(self, loop: str, /) -> int:
        """Return the iteration of the enclosing loop with this name."""


Code = Callable[[Scope], Value]


class Leaves(Record):
    """Codes of what an expression reads here and now, where it is not a Scope that is read."""

    operand: Callable[[Address], Callable[[Any], Value]]
    iteration: Callable[[Any], Value]


class ReadFrom(Enum):
    """Select the method of the scope that reads an address."""

    NOW = auto()
    PREVIOUS = auto()
    REFERENCE = auto()


class ResultKind(Enum):
    """ResultKind of a part's result; PLAIN is a number of Python's."""

    PLAIN = "a number"
    TENSOR = "a tensor"
    TYPE = "a type"
    SHAPE = "a shape"


class Part(Record):
    """Hold a compiled part; `constant` is its value if it is known.

    `raw`: a tensor as it was read, maybe with packed codes. `undecoded` reads such a tensor and decodes its numbers,
    where `code` does both. `element` reads a tensor, and holds the fixed index of the element that is this part.
    """

    code: Code
    kind: ResultKind
    constant: Value = None
    raw: bool = False
    undecoded: tuple[Code, Callable[[Value], Value]] | None = None
    element: tuple[Code, tuple[Any, ...]] | None = None


def constant_part(value: Value) -> Part:
    """Return a number of the text, or what follows from such alone."""
    return Part(lambda _scope: value, ResultKind.PLAIN, value)


def type_part(name: str) -> Part:
    """Return an element type of the text."""
    return Part(lambda _scope: name, ResultKind.TYPE, name)


_NO_OVERFLOW = 65504
"""The largest f16, which every type of numpy's own takes without a warning."""

_SOURCES = {"prev": ReadFrom.PREVIOUS, "ref": ReadFrom.REFERENCE}


_SCOPE = Leaves(lambda address: lambda scope: scope.value(address), lambda scope: scope.iteration())


class Compiler:
    """Compiles the tree of one text, and notes what it reads."""

    def __init__(self, text: str, leaves: Leaves | None = None) -> None:
        self.text = text
        self.reads: dict[tuple[Address, ReadFrom], None] = {}
        self.reads_iteration = False
        self.loops: dict[str, None] = {}
        self.may_warn = False
        self._source = ReadFrom.NOW
        self._leaves = leaves or _SCOPE
        self._forms: dict[type[Node], Callable[[Any], Part]] = {
            Literal: lambda node: constant_part(node.value),
            Sizes: lambda node: Part(lambda _scope: node.value, ResultKind.SHAPE, node.value),
            Iteration: self._iteration,
            Operand: self._operand,
            Unary: self._unary,
            Binary: self._binary,
            Comparison: self._comparison,
            Logical: self._logical,
            Call: self._call,
            Indexed: self._indexed,
        }

    def part(self, node: Node) -> Part:
        """Return the code of a part. Raise ExpressionError for one that cannot be whatever the values are."""
        return self._forms[type(node)](node)

    def _fail(self, problem: str, position: int) -> NoReturn:
        raise ExpressionError(problem, self.text, position)

    def _number(self, node: Node, what: str, decode: Callable[[Value], Value] = values.numeric) -> Part:
        """Return the code of a part with which something is computed."""
        part = self.part(node)
        if part.kind not in (ResultKind.PLAIN, ResultKind.TENSOR):
            self._fail(f"{what} takes numbers and tensors, this is {part.kind.value}", node.position)
        if not part.raw:
            return part
        decode = self._guarded(decode, node.position)
        return replace(part, code=_decoded(part.code, decode), raw=False, undecoded=(part.code, decode))

    # --- operands ------------------------------------------------------------------------------------------------

    def _iteration(self, node: Iteration) -> Part:
        if loop := node.loop:
            if self._source is not ReadFrom.NOW:
                self._fail(f"iter({loop}) stays what it is in prev() and ref()", node.position)
            self.loops[loop] = None
            return Part(lambda scope: scope.iteration_of(loop), ResultKind.PLAIN)
        self.reads_iteration = True
        if self._source is ReadFrom.PREVIOUS:
            return Part(lambda scope: scope.iteration() - 1, ResultKind.PLAIN)
        return Part(self._leaves.iteration, ResultKind.PLAIN)

    def _operand(self, node: Operand) -> Part:
        address = node.address
        self.reads[address, self._source] = None
        code: Code
        match self._source:
            case ReadFrom.NOW:
                code = self._leaves.operand(address)
            case ReadFrom.PREVIOUS:
                code = lambda scope: scope.previous(address)  # noqa: E731
            case ReadFrom.REFERENCE:
                code = lambda scope: scope.reference(address)  # noqa: E731
        return Part(code, ResultKind.TENSOR, raw=True)

    # --- operators -----------------------------------------------------------------------------------------------

    def _unary(self, node: Unary) -> Part:
        operand = self._number(node.operand, f"'{node.operator}'")
        if node.operator == "+":
            return operand
        if operand.constant is not None:
            return constant_part(not operand.constant if node.operator == "not" else -operand.constant)
        if operand.kind is ResultKind.PLAIN:
            inner = operand.code
            negated: Code = (
                (lambda scope: not inner(scope)) if node.operator == "not" else (lambda scope: -inner(scope))
            )
            return Part(negated, ResultKind.PLAIN)
        function = values.opposite if node.operator == "not" else values.negative
        return Part(self._applied(function, operand.code, node.position), ResultKind.TENSOR)

    def _guarded(self, function: Callable[..., Value], position: int) -> Callable[..., Value]:
        """Return the function, its complaints with the place in the text."""
        text = self.text

        def guarded(*operands: Value) -> Value:
            try:
                return function(*operands)
            except ValueFailure as error:
                raise ExpressionError(str(error), text, position) from None

        return guarded

    def _applied(self, function: Callable[[Value], Value], operand: Code, position: int) -> Code:
        apply = self._guarded(function, position)
        return lambda scope: apply(operand(scope))

    def _binary(self, node: Binary) -> Part:
        self.may_warn = True
        what = f"'{node.operator}'"
        left, right = self._number(node.left, what), self._number(node.right, what)
        return self._combined(values.ARITHMETIC[node.operator], left, right, node.position)

    def _combined(self, operation: Operation, left: Part, right: Part, position: int) -> Part:
        apply = self._guarded(_on(operation, left.kind, right.kind), position)
        a_code, b_code, b = left.code, right.code, right.constant
        if left.constant is not None and b is not None:
            return constant_part(apply(left.constant, b))
        if left.kind is right.kind is ResultKind.PLAIN:
            return Part(lambda scope: apply(a_code(scope), b_code(scope)), ResultKind.PLAIN)
        self.may_warn |= b is None or not abs(b) <= _NO_OVERFLOW
        if b is not None:
            read, decode = left.undecoded or (a_code, None)
            compared = _with_constant(operation, apply, read, decode, b)
            if left.element is not None:
                compared = _of_element(operation, *left.element, b, compared)
            return Part(compared, ResultKind.TENSOR)

        def code(scope: Scope) -> Value:
            a, b = a_code(scope), b_code(scope)
            # Numpy's own scalars need no check; what fails is done again for the words.
            if type(a) in NATIVE_SCALARS and type(b) in NATIVE_SCALARS:
                try:
                    return operation(a, b)
                except FAILURES:
                    pass
            return apply(a, b)

        return Part(code, ResultKind.TENSOR)

    def _comparison(self, node: Comparison) -> Part:
        nodes = [node.first, *(operand for _, _, operand in node.rest)]
        parts = self._compared(nodes)
        kinds = {part.kind for part in parts}
        if kinds & {ResultKind.TYPE, ResultKind.SHAPE}:
            return self._identity(node, parts)
        parts = [
            self._number(operand, "a comparison") if part.raw else part
            for operand, part in zip(nodes, parts, strict=True)
        ]
        if len(parts) == 2:
            operator, position, _ = node.rest[0]
            return self._combined(values.COMPARISONS[operator], parts[0], parts[1], position)
        return self._chain(node, parts)

    def _compared(self, nodes: list[Node]) -> list[Part]:
        """Return the operands of a comparison; where one is a dtype, a name such as f32 is a type and no address."""
        names = [_type_name(node) for node in nodes]
        parts = [self.part(node) if name is None else None for node, name in zip(nodes, names, strict=True)]
        is_typed = any(part is not None and part.kind is ResultKind.TYPE for part in parts)
        return [
            part or (type_part(name) if is_typed and name is not None else self.part(node))
            for node, name, part in zip(nodes, names, parts, strict=True)
        ]

    def _identity(self, node: Comparison, parts: list[Part]) -> Part:
        """Types and shapes are equal or not."""
        (operator, position, _), (left, right) = node.rest[0], parts[:2]
        if len(parts) > 2 or operator not in ("==", "!=") or left.kind is not right.kind:
            one, other = (left, right) if left.kind in (ResultKind.TYPE, ResultKind.SHAPE) else (right, left)
            example = "f32" if one.kind is ResultKind.TYPE else "[1, 256]"
            problem = f"{one.kind.value} can only be compared by == or != with another, such as {example}"
            self._fail(problem if one.kind is not other.kind else f"{problem} (one comparison at a time)", position)
        operation, a, b = values.COMPARISONS[operator], left.code, right.code
        return Part(lambda scope: operation(a(scope), b(scope)), ResultKind.PLAIN)

    def _chain(self, node: Comparison, parts: list[Part]) -> Part:
        """`a < b < c`: every operand is read at most once, and none after the first comparison that is false."""
        self.may_warn = True
        links = [
            (_on(values.COMPARISONS[operator], before.kind, part.kind), part.code, position)
            for (operator, position, _), before, part in zip(node.rest, parts, parts[1:], strict=False)
        ]
        text, first = self.text, parts[0].code

        def code(scope: Scope) -> Value:
            before, collected = first(scope), None
            for apply, read, position in links:
                value = read(scope)
                try:
                    result = apply(before, value)
                    if not values.is_single(result):
                        collected = values.combined(np.logical_and, collected, result)
                    elif not values.truth(result):
                        return np.False_
                except ValueFailure as error:
                    raise ExpressionError(str(error), text, position) from None
                before = value
            return np.True_ if collected is None else collected

        return Part(code, ResultKind.TENSOR)

    def _logical(self, node: Logical) -> Part:
        """Reads from left to right, and nothing after a single value that settles it; arrays element by element."""
        codes = [self._number(operand, f"'{node.operator}'").code for operand in node.operands]
        settles = node.operator == "or"
        operation: Operation = np.logical_or if settles else np.logical_and
        text, position = self.text, node.position

        def code(scope: Scope) -> Value:
            collected = None
            for read in codes:
                value = read(scope)
                if values.is_single(value):
                    if values.truth(value) is settles:
                        return np.bool_(settles)
                    continue
                try:
                    collected = values.combined(operation, collected, value)
                except ValueFailure as error:
                    raise ExpressionError(str(error), text, position) from None
            return np.bool_(not settles) if collected is None else collected

        return Part(code, ResultKind.TENSOR)

    # --- functions -----------------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Part:
        if node.function in _SOURCES:
            if self._source is not ReadFrom.NOW:
                self._fail("prev() and ref() cannot stand inside one another", node.position)
            self._source = _SOURCES[node.function]
            part = self.part(node.argument)
            self._source = ReadFrom.NOW
            return part
        if node.function not in values.FUNCTIONS:
            return self._measure(node)
        self.may_warn = True
        if isinstance(node.argument, Call) and (node.function, node.argument.function) in PAIRS:
            return self._call_on_each(node, node.argument)
        decode = values.summary_or_numeric if node.function in REDUCTIONS else values.numeric
        argument = self._number(node.argument, f"{node.function}()", decode)
        kind = ResultKind.PLAIN if node.function in values.PLAIN_RESULTS else ResultKind.TENSOR
        if node.function == "abs" and argument.kind is ResultKind.PLAIN:
            kind = ResultKind.PLAIN
        return Part(self._applied(values.call(node.function), argument.code, node.position), kind)

    def _call_on_each(self, outer: Call, inner: Call) -> Part:
        argument = self._number(inner.argument, f"{inner.function}()", values.summary_or_numeric)
        apply = values.call_on_each(outer.function, inner.function)
        kind = ResultKind.PLAIN if outer.function in values.PLAIN_RESULTS else ResultKind.TENSOR
        return Part(self._applied(apply, argument.code, inner.position), kind)

    def _measure(self, node: Call) -> Part:
        argument = self.part(node.argument)
        if argument.kind is not ResultKind.TENSOR:
            self._fail(f"{node.function}() takes a tensor, this is {argument.kind.value}", node.argument.position)
        read = argument.code
        match node.function:
            case "size":
                return Part(lambda scope: int(read(scope).size), ResultKind.PLAIN)
            case "rank":
                return Part(lambda scope: int(read(scope).ndim), ResultKind.PLAIN)
            case "shape":
                return Part(lambda scope: tuple(read(scope).shape), ResultKind.SHAPE)
        return Part(lambda scope: element_types.name_of(read(scope).dtype), ResultKind.TYPE)

    # --- indices -------------------------------------------------------------------------------------------------

    def _indexed(self, node: Indexed) -> Part:
        base = self.part(node.base)
        if base.kind in (ResultKind.PLAIN, ResultKind.TYPE):
            self._fail(f"{base.kind.value} has no elements", node.position)
        if base.kind is ResultKind.SHAPE and (len(node.items) > 1 or node.items[0] is None):
            self._fail("a shape has one index", node.position)
        items = [self._item(item) for item in node.items]
        read, text, position = base.code, self.text, node.position
        fixed = None if any(callable(item) for item in items) else tuple(items)
        kind = base.kind

        def element(value: Value, index: tuple[Any, ...]) -> Value:
            try:
                return values.element(value, index if kind is ResultKind.TENSOR else index[0])
            except ValueFailure as error:
                raise ExpressionError(str(error), text, position) from None

        def chosen(scope: Scope) -> Value:
            value = read(scope)
            return element(value, tuple(item(scope) if callable(item) else item for item in items))

        def code(scope: Scope) -> Value:
            value = read(scope)
            if type(value) is np.ndarray:  # what fails is done again for the words
                try:
                    return value[fixed]
                except FAILURES:
                    pass
            return element(value, fixed or ())

        of = None if fixed is None or kind is not ResultKind.TENSOR else (read, fixed)
        part = Part(chosen if fixed is None else code, kind, raw=base.raw, element=of)
        return (
            replace(part, kind=ResultKind.PLAIN)
            if kind is ResultKind.SHAPE and not isinstance(node.items[0], Slice)
            else part
        )

    def _item(self, item: Node | Slice | None) -> Any:
        """Return an index that numpy takes, or the code of one."""
        if item is None:
            return ...
        if not isinstance(item, Slice):
            return self._whole_number(item)
        bounds = [None if bound is None else self._whole_number(bound) for bound in (item.start, item.stop, item.step)]
        if item.step is not None and bounds[2] == 0:
            self._fail("the step of a slice must not be 0", item.step.position)
        if not any(callable(bound) for bound in bounds):
            return slice(*bounds)
        return lambda scope: slice(*(bound(scope) if callable(bound) else bound for bound in bounds))

    def _whole_number(self, node: Node) -> Any:
        part = self._number(node, "an index")
        if part.constant is not None:
            if isinstance(part.constant, bool) or not isinstance(part.constant, int):
                self._fail("an index is a whole number or a mask of booleans", node.position)
            return part.constant
        return self._applied(values.as_index, part.code, node.position)


def _decoded(read: Code, decode: Callable[[Value], Value]) -> Code:
    def code(scope: Scope) -> Value:
        value = read(scope)
        if type(value) in NATIVE_SCALARS or (type(value) is np.ndarray and value.dtype.num in NATIVE):
            return value
        return decode(value)

    return code


def _with_constant(
    operation: Operation, apply: Operation, read: Code, decode: Callable[[Value], Value] | None, constant: Value
) -> Code:
    """Return the operation on a tensor and a number of the text: the condition that hot loops have most."""

    def code(scope: Scope) -> Value:
        value = read(scope)
        if type(value) in NATIVE_SCALARS:
            try:
                return operation(value, constant)
            except FAILURES:
                pass
        if decode is not None and not (type(value) is np.ndarray and value.dtype.num in NATIVE):
            value = decode(value)
        return apply(value, constant)

    return code


def _of_element(operation: Operation, read: Code, index: tuple[Any, ...], constant: Value, otherwise: Code) -> Code:
    """Return the same for one element of a tensor, in one call where it is a number of numpy's own."""

    def code(scope: Scope) -> Value:
        try:
            value = read(scope)[index]
            if type(value) in NATIVE_SCALARS:
                return operation(value, constant)
        except FAILURES:
            pass
        return otherwise(scope)

    return code


def _type_name(node: Node) -> str | None:
    """Return the element type that a bare name may mean."""
    if not isinstance(node, Operand):
        return None
    text = str(node.address)
    return text if text in element_types.ELEMENT_TYPES else None


def _on(operation: Operation, left: ResultKind, right: ResultKind) -> Operation:
    """Return the operation for what its operands are."""
    if left is ResultKind.PLAIN:
        return values.on_numbers(operation) if right is ResultKind.PLAIN else values.on_number_and_tensor(operation)
    return values.on_tensor_and_number(operation) if right is ResultKind.PLAIN else values.on_tensors(operation)


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
