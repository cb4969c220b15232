"""Parse expressions into trees.

    expression  := or-expression with Python's precedence:  or < and < not < comparisons < + - < * / // % < - < **;
    operand     := number | true | false | nan | inf | iter | iter(LOOP) | ADDRESS
                 | FUNCTION(expression) | (expression) | [1, 256];
    postfix     := operand[index, ...]   with numbers, start:stop:step and ...; behind an address's index also @ITER.

An address here has simple names (letters, digits, `_`, `.`) or backquotes: `h`, `loop@3::h:0@-1`. `/` divides and `*`
multiplies, so names with these characters go into backquotes. Parts and levels are limited, so no text can exhaust the
stack or the memory.

Python's `ast` does not serve. `::`, `@`, `:0` and backquotes are no Python, layers may be called `if` and `lambda`, and
Python rewrites letters of names (NFKC). `ast` accepts much that is refused here (calls, texts, complex numbers). An
error of its parser says neither what was expected nor what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, NoReturn

from msgspec.structs import astuple, replace

from stepper.query.address_syntax import (
    ITERATIONS,
    LONGEST,
    QUOTED,
    RESERVED,
    SIMPLE_NAME,
    Address,
    AddressError,
    NotWritable,
    parse_address,
)
from stepper.records import Record
from stepper.wording import excerpt, near_text


class ExpressionError(NotWritable):
    """Text that is not an expression, or one that cannot be evaluated; the message marks the place."""


class Token(NamedTuple):
    """A word or sign of the text; `kind` is number, name (an address), word (a reserved one), sign, at or end.

    `at` are iterations behind a bracket: `@7` of `h[0,3]@7`.
    """

    kind: str
    text: str
    position: int


_SEGMENT = rf"(?:{QUOTED}|id=[0-9]+|{SIMPLE_NAME})"
_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>(?:{_SEGMENT}(?:{ITERATIONS})?::)*{_SEGMENT}(?:'|:(?!:)[0-9]+)?(?:{ITERATIONS})?)
    | (?P<sign>\.\.\.|==|!=|<=|>=|//|\*\*|[<>+\-*/%()\[\],:])
    )""",
    re.VERBOSE,
)
_WORD = re.compile(rf"{SIMPLE_NAME}")
_AT = re.compile(ITERATIONS)
_HINTS = {
    "=": "to compare, write ==",
    "&": "write and, or all(...)",
    "|": "write or, or any(...)",
    "!": "write not, or !=",
    "~": "write not",
    "^": "a power is written **",
    "`": "a backquote is not closed",
    "'": "there are no texts in expressions; odd names go into `backquotes`",
    '"': "there are no texts in expressions; odd names go into `backquotes`",
    "@": "an address begins with a name",
}


def tokens_of(text: str) -> list[Token]:
    """Return the words and signs of a text, an end after them.

    Raise ExpressionError for a character that begins none.
    """
    found: list[Token] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        token = _token_at(text, position, end)
        found.append(token)
        position = token.position + len(token.text)
    found.append(Token("end", "", end))
    return found


def _token_at(text: str, position: int, end: int) -> Token:
    while text[position].isspace():
        position += 1
    word = _WORD.match(text, position, end)
    if word and word[0] in RESERVED:  # before the addresses: `iter:8` in a slice is not a port of a layer
        return Token("word", word[0], position)
    iterations = _AT.match(text, position, end) if text[position - 1 : position] == "]" else None
    if iterations is not None:
        return Token("at", iterations[0], position)
    match = _TOKEN.match(text, position, end)
    if match is None:
        letter = text[position]
        raise ExpressionError(
            f"{letter!r} is not part of expressions; {_HINTS.get(letter, 'expected an operator')}", text, position
        )
    kind = match.lastgroup or ""
    following = text[match.end() : match.end() + 1]
    if kind == "number" and (following.isalnum() or following in ("_", ".", "`")) and match.end() < end:
        hint = "a name that begins with a digit goes into `backquotes`"
        raise ExpressionError(f"expected an operator after the number; {hint}", text, match.end())
    return Token(kind, match[kind], match.start(kind))


MOST_PARTS = 300
"""Words, numbers and signs of one expression."""

# fmt: off
FUNCTION_NAMES = (
    "any", "all", "max", "min", "mean", "sum", "abs", "isnan", "isinf", "isfinite",
    "norm", "std", "argmax", "argmin", "size", "rank", "shape", "dtype", "prev", "ref",
)
# fmt: on

DEEPEST = 30
"""Parentheses, brackets and signs inside one another."""


class Node(Record):
    """A part of the tree, with its place in the text."""

    position: int


class Literal(Node, frozen=True):
    """A number or truth value."""

    value: bool | int | float


class Sizes(Node, frozen=True):
    """`[1, 256]`, a shape."""

    value: tuple[int, ...]


class Iteration(Node, frozen=True):
    """`iter`, or `iter(outer)` of the loop of a name around."""

    loop: str = ""


class Operand(Node, frozen=True):
    """An address."""

    address: Address


class Unary(Node, frozen=True):
    """`-x`, `+x`, `not x`."""

    operator: str
    operand: Node


class Binary(Node, frozen=True):
    """An arithmetic operation."""

    operator: str
    left: Node
    right: Node


class Comparison(Node, frozen=True):
    """`a < b <= c`: the first operand, then operator, its place and operand of each comparison."""

    first: Node
    rest: tuple[tuple[str, int, Node], ...]


class Logical(Node, frozen=True):
    """`a and b and c`, or the same with `or`."""

    operator: str
    operands: tuple[Node, ...]


class Call(Node, frozen=True):
    """`mean(x)`."""

    function: str
    argument: Node


class Slice(Record):
    """`start:stop:step` with any of them left out."""

    start: Node | None
    stop: Node | None
    step: Node | None


class Indexed(Node, frozen=True):
    """`x[0, :8]`; None stands for `...`."""

    base: Node
    items: tuple[Node | Slice | None, ...]


def nodes(part: object, without: Sequence[str] = ()) -> Iterator[Node]:
    """Yield the nodes of a tree, but for what is in calls of some functions."""
    if isinstance(part, tuple):
        for one in part:
            yield from nodes(one, without)
    elif isinstance(part, Node | Slice) and not (isinstance(part, Call) and part.function in without):
        if isinstance(part, Node):
            yield part
        yield from nodes(astuple(part), without)


def operands(tree: Node) -> Iterator[Operand]:
    """Yield the addresses of a tree, but those in prev() and ref()."""
    return (one for one in nodes(tree, ("prev", "ref")) if isinstance(one, Operand))


def with_addresses(text: str, meant: Callable[[Address], Address | str]) -> str:
    """Return an expression with what is meant by each of its addresses in its place, or a text. ExpressionError.

    Those in prev() and ref() stay.
    """
    words = {one.position: one for one in tokens_of(text)}
    for operand in sorted(operands(parse_tree(text)), key=lambda one: one.position, reverse=True):
        word, address = words[operand.position].text, meant(operand.address)
        if address == operand.address:
            continue
        is_behind = parse_address(word).iterations != operand.address.iterations
        if isinstance(address, Address) and is_behind:  # which stand behind the part
            address = replace(address, iterations=None)
        text = f"{text[: operand.position]}{address}{text[operand.position + len(word) :]}"
    return text


# How tightly operators bind, as in Python.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER = range(1, 9)
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_BINDING = (
    {"or": _OR, "and": _AND, "**": _POWER}
    | dict.fromkeys(_COMPARISONS, _COMPARE)
    | dict.fromkeys("+-", _SUM)
    | dict.fromkeys(("*", "/", "//", "%"), _PRODUCT)
)
_CONSTANTS = {"true": True, "false": False, "nan": float("nan"), "inf": float("inf")}


def parse_tree(text: str) -> Node:
    """Return the tree of an expression. Raise ExpressionError with the place and what was expected."""
    if len(text) > LONGEST:
        raise ExpressionError(f"an expression has at most {LONGEST} characters, this one {len(text)}", text, LONGEST)
    return _Parser(text).whole()


class _Parser:
    """Operator precedence by one recursive method; the depth of recursion and the number of parts are bounded."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.next = 0
        self.depth = 0
        self.parts = 0

    # --- tokens --------------------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.next]

    def fail(self, problem: str, token: Token | None = None) -> NoReturn:
        raise ExpressionError(problem, self.text, (token or self.token).position)

    def found(self) -> str:
        return "the end" if self.token.kind == "end" else f"'{excerpt(self.token.text, 40)}'"

    def take(self) -> Token:
        self.parts += 1
        if self.parts > MOST_PARTS:
            self.fail(f"an expression has at most {MOST_PARTS} words, numbers and signs")
        self.next += 1
        return self.tokens[self.next - 1]

    def at(self, *texts: str) -> bool:
        return self.token.kind in ("sign", "word") and self.token.text in texts

    def expect(self, text: str, meaning: str) -> None:
        if not self.at(text):
            self.fail(f"expected {meaning}, found {self.found()}")
        self.take()

    # --- the grammar ---------------------------------------------------------------------------------------------

    def whole(self) -> Node:
        node = self.expression(_OR)
        if self.token.kind != "end":
            self.fail(f"expected an operator or the end, found {self.found()}")
        return node

    def expression(self, loosest: int) -> Node:
        """Return what is built of operators that bind at least as tightly as `loosest`."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"an expression is nested at most {DEEPEST} deep")
        node = self.prefix(loosest)
        while self.token.kind in ("sign", "word") and _BINDING.get(self.token.text, 0) >= loosest:
            node = self.operation(node, self.token.text)
        self.depth -= 1
        return node

    def operation(self, left: Node, operator: str) -> Node:
        if operator in _COMPARISONS:
            return self.comparison(left)
        if operator in ("and", "or"):
            return self.logical(left, operator)
        sign = self.take()
        right = self.expression(_SIGN if operator == "**" else _BINDING[operator] + 1)
        return Binary(sign.position, operator, left, right)

    def comparison(self, first: Node) -> Node:
        rest: list[tuple[str, int, Node]] = []
        while self.at(*_COMPARISONS):
            sign = self.take()
            rest.append((sign.text, sign.position, self.expression(_COMPARE + 1)))
        return Comparison(rest[0][1], first, tuple(rest))

    def logical(self, first: Node, operator: str) -> Node:
        operands, position = [first], self.token.position
        while self.at(operator):
            self.take()
            operands.append(self.expression(_BINDING[operator] + 1))
        return Logical(position, operator, tuple(operands))

    def prefix(self, loosest: int) -> Node:
        if self.at("not") and loosest <= _NOT:
            return Unary(self.take().position, "not", self.expression(_NOT))
        if self.at("-", "+"):
            sign = self.take()
            return Unary(sign.position, sign.text, self.expression(_SIGN))
        node = self.primary()
        while self.at("["):
            node = self.indexed(node)
        return self.in_iterations(node) if self.token.kind == "at" else node

    def in_iterations(self, node: Node) -> Node:
        """Return a part of an address in iterations that are named behind the part, as in `h[0,3]@7`."""
        operand = node.base if isinstance(node, Indexed) else None
        if not isinstance(node, Indexed) or not isinstance(operand, Operand) or operand.address.iterations is not None:
            self.fail(f"'@' is not part of expressions; {_HINTS['@']}")
        named = replace(operand.address, iterations=parse_address(f"x{self.take().text}").iterations)
        return replace(node, base=replace(operand, address=named))

    def primary(self) -> Node:
        token = self.token
        if token.kind == "number":
            self.take()
            return Literal(token.position, self.number(token))
        if token.kind == "name":
            self.take()
            return self.call(token) if self.at("(") else Operand(token.position, self.address(token))
        if self.at(*_CONSTANTS):
            return Literal(token.position, _CONSTANTS[self.take().text])
        if self.at("iter"):
            return self.iteration()
        if self.at("["):
            return self.sizes()
        if self.at("("):
            self.take()
            node = self.expression(_OR)
            self.expect(")", "')'")
            return node
        return self.fail(f"expected a number, a name or '(', found {self.found()}")

    def number(self, token: Token) -> int | float:
        if not token.text.isdecimal():
            number = float(token.text)
            if number == float("inf"):
                self.fail("this number is larger than f64 holds; write inf if that is meant", token)
            return number
        value = int(token.text)
        if value >= 2**64:
            self.fail("this number has more than 64 bits; write it as 1e20", token)
        return value

    def address(self, token: Token) -> Address:
        try:
            return parse_address(token.text)
        except AddressError as error:
            raise ExpressionError(error.problem, self.text, token.position + error.position) from None

    def call(self, token: Token) -> Node:
        if token.text not in FUNCTION_NAMES:
            near = near_text(token.text, FUNCTION_NAMES)
            known = near or f"there are {', '.join(FUNCTION_NAMES)}"
            self.fail(f"there is no function '{excerpt(token.text)}'; {known}", token)
        self.take()
        if self.at(")"):
            self.fail(f"{token.text}() expects one operand")
        argument = self.expression(_OR)
        if self.at(","):
            self.fail(f"{token.text}() takes one operand")
        self.expect(")", "')'")
        return Call(token.position, token.text, argument)

    def iteration(self) -> Node:
        position = self.take().position
        if not self.at("("):
            return Iteration(position)
        self.take()
        if self.token.kind != "name":
            self.fail(f"expected the name of a loop around, as in iter(outer), found {self.found()}")
        loop = self.take().text.strip("`")
        self.expect(")", "')'")
        return Iteration(position, loop)

    def sizes(self) -> Node:
        position = self.take().position
        values: list[int] = []
        while not self.at("]"):
            if self.token.kind != "number" or not self.token.text.isdecimal():
                self.fail(f"expected the sizes of a shape, such as [1, 256], found {self.found()}")
            values.append(int(self.take().text))
            if not self.at("]"):
                self.expect(",", "',' or ']'")
        self.take()
        return Sizes(position, tuple(values))

    # --- indices -------------------------------------------------------------------------------------------------

    def indexed(self, base: Node) -> Node:
        position = self.take().position
        items = [self.index_item()]
        while self.at(","):
            self.take()
            if self.at("]"):
                break
            items.append(self.index_item())
        self.expect("]", "',' or ']'")
        if items.count(None) > 1:
            raise ExpressionError("'...' may stand once in an index", self.text, position)
        return Indexed(position, base, tuple(items))

    def index_item(self) -> Node | Slice | None:
        if self.at("..."):
            self.take()
            return None
        if self.at("]", ","):
            self.fail(f"expected an index (a number, start:stop:step or ...), found {self.found()}")
        bounds = [self.bound()]
        while self.at(":") and len(bounds) < 3:
            self.take()
            bounds.append(self.bound())
        if len(bounds) == 1 and bounds[0] is not None:
            return bounds[0]
        start, stop, step = (*bounds, None)[:3]
        return Slice(start, stop, step)

    def bound(self) -> Node | None:
        return None if self.at(":", "]", ",") else self.expression(_OR)
