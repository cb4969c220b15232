"""Parse addresses: `LEVEL::OP:PORT@ITER[SLICE]`; any part may be left out.

    h_next                   here and now;
    h'                       the value that replaces h in the next iteration;
    h_next@7   @-1   @2:5   @*         an iteration, the last, several (as Python counts them), all;
    my_loop::h_next:0@7[0,:8]          output 0 of h_next in the body of my_loop, iteration 7, a part of it;
    h_next[0,3]@7                      equals h_next@7[0,3];
    outer@3::inner@0::h                the run of inner in iteration 3 of outer, and iteration 0 of this run;
    branch::then::h   model::h         a side of an If; the model's own graph;
    `prim::Loop/Loop`  id=12  lstm*  /gate_[ifo]$/

A name ends at white space, a backquote, `@`, `:` or a bracket; a name with such a character goes into backquotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum, auto
from types import EllipsisType
from typing import ClassVar, NamedTuple, NoReturn

from msgspec.structs import force_setattr, replace

from stepper.argument_checks import text as text_of
from stepper.errors import UsageError
from stepper.records import Brief, Record
from stepper.wording import printable

LONGEST = 1000
"""Characters of an address or an expression."""

MOST_LEVELS = 32
MOST_INDICES = 32

RESERVED = frozenset({"and", "or", "not", "true", "false", "nan", "inf", "iter"})
"""Words that mean something else in an expression, where a layer of that name needs backquotes."""

SIMPLE_NAME = r"[^\W\d]\w*(?:\.\w+)*"
"""A name that is one in an expression, too, without backquotes."""

ITERATIONS = r"@(?:\*|-?[0-9]{1,18}(?::(?!:)(?:-?[0-9]{1,18})?)?|:(?!:)(?:-?[0-9]{1,18})?)"
QUOTED = r"`(?:[^`]|``)+`"


class NotWritable(UsageError):
    """A text that its grammar does not allow; the message marks the place with a caret on a line of its own."""

    has_lines = True

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(f"{problem}\n{marked(text, position)}")
        self.problem = problem
        self.text = text
        self.position = position


class AddressError(NotWritable):
    """Text that is not an address."""


def marked(text: str, position: int, width: int = 100) -> str:
    """Return the text with a caret under the place, as two lines; of a long text the part around it."""
    begin = max(0, min(position - width // 2, len(text) - width))
    part = printable(text[begin : begin + width])
    before, after = "... " if begin else "", " ..." if begin + width < len(text) else ""
    return f"  {before}{part}{after}\n  {' ' * (len(before) + position - begin)}^"


class NameKind(Enum):
    """Kind of a name."""

    PLAIN = auto()
    QUOTED = auto()
    ID = auto()
    GLOB = auto()
    REGEX = auto()


class Name(Record):
    """A name as written; `text` is without backquotes, `id=` or slashes.

    `is_next`: not the carried value that an iteration reads, but the one that it carries to the next iteration (`h'`).
    """

    kind: NameKind
    text: str
    is_next: bool = False

    def __str__(self) -> str:
        mark = "'" if self.is_next else ""
        if self.kind is NameKind.REGEX:
            return f"/{self.text}/{mark}"
        if self.kind is NameKind.ID:
            return f"id={self.text}{mark}"
        plain = _PLAIN.fullmatch(self.text) is not None and _kind_of_plain(self.text) is self.kind
        return f"{self.text if plain else _quoted(self.text)}{mark}"


def _quoted(text: str) -> str:
    return f"`{text.replace('`', '``')}`"


def exact_name(text: str) -> Name:
    """Return the name that means just this text, in backquotes where an expression would read it otherwise."""
    simple = re.fullmatch(SIMPLE_NAME, text) is not None and text not in RESERVED
    return Name(NameKind.PLAIN if simple else NameKind.QUOTED, text)


class IterationRange(NamedTuple):
    """Several iterations: from `start` up to but not `stop`, negative ones counted from the end; None: no bound."""

    start: int | None
    stop: int | None

    def numbers(self, count: int) -> range:
        """Return the iterations meant, of a loop that has run `count`."""
        return range(count)[self.start : self.stop]

    def __str__(self) -> str:
        if self.start is None and self.stop is None:
            return "*"
        return f"{'' if self.start is None else self.start}:{'' if self.stop is None else self.stop}"


Iterations = int | IterationRange
"""Iteration (negative: counted from the last), or several iterations."""

ALL_ITERATIONS = IterationRange(None, None)


class Range(NamedTuple):
    """`start:stop:step` of a slice."""

    start: int | None
    stop: int | None
    step: int | None

    def __str__(self) -> str:
        bounds = f"{'' if self.start is None else self.start}:{'' if self.stop is None else self.stop}"
        return bounds if self.step is None else f"{bounds}:{self.step}"


Index = int | Range | EllipsisType


def numpy_index(index: Iterable[Index]) -> tuple[int | slice | EllipsisType, ...]:
    """Return what numpy takes between brackets."""
    return tuple(slice(*item) if isinstance(item, Range) else item for item in index)


class Level(Record):
    """A loop, an If or a side of one, on the way to an operation."""

    name: Name
    iterations: Iterations | None = None

    def __str__(self) -> str:
        return f"{self.name}{_at(self.iterations)}"


class Address(Brief, eq=True):
    """`LEVEL::OP:PORT@ITER[SLICE]`; None or () where a part was left out. `str()` gives a text that parses to the same.

    `port` is the index of an output. The hash is kept: an address is a key that a hot loop looks up.
    """

    unshown: ClassVar = ("_hash",)

    levels: tuple[Level, ...] = ()
    operation: Name | None = None
    port: int | None = None
    iterations: Iterations | None = None
    index: tuple[Index, ...] = ()
    _hash: int = 0

    def __post_init__(self) -> None:
        parts = (self.levels, self.operation, self.port, self.iterations, self.index)
        force_setattr(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        levels = "".join(f"{level}::" for level in self.levels)
        operation = "" if self.operation is None else str(self.operation)
        port = "" if self.port is None else f":{self.port}"
        items = ",".join("..." if item is ... else str(item) for item in self.index)
        return f"{levels}{operation}{port}{_at(self.iterations)}{f'[{items}]' if items else ''}"


def _at(iterations: Iterations | None) -> str:
    return "" if iterations is None else f"@{iterations}"


def parse_address(text: str) -> Address:
    """Return the address that is written there. Raise AddressError with the place and what was expected."""
    return _Reader(text).address()


def without_element(text: str) -> str:
    """Return an address without its element: `h@7` of `h@7[0,3]`. AddressError for a text that is no address."""
    return str(replace(parse_address(text), index=()))


def names_iteration(address: Address) -> bool:
    """Return True if an address names iterations, of its own loop or of an outer loop."""
    return address.iterations is not None or any(level.iterations is not None for level in address.levels)


def without_iterations(address: Address) -> Address:
    """Return an address in all iterations: `m::h[0]` of `m::h@7[0]`."""
    levels = tuple(replace(level, iterations=None) for level in address.levels)
    return replace(address, levels=levels, iterations=None)


def apart_from_iteration(text: str) -> tuple[str, int | None]:
    """Return the value of an address in all iterations, and the one it names: `x` and 7 of `x@7`; else the text.

    `m@7::x` names the same of a value in the body of m.
    """
    try:
        address = parse_address(text)
    except UsageError:
        return text, None
    if address.iterations is None and address.levels and address.levels[-1].iterations is not None:
        *around, level = address.levels
        levels = (*around, replace(level, iterations=None))
        address = replace(address, levels=levels, iterations=level.iterations)
    if not isinstance(address.iterations, int) or address.iterations < 0 or address.operation is None:
        return text, None
    return str(replace(address, iterations=None)), address.iterations


def address_given(address: str | Address) -> Address:
    """Return what a caller gave as an address, parsed if it is text. Raise ArgumentTypeError for anything else."""
    if isinstance(address, Address):
        return address
    return parse_address(text_of("address", address, "a str or an Address"))


_REGEX = re.compile(r"/((?:\\.|[^/\\])+)/(?=$|['@:\[])")
_ID = re.compile(r"id=([0-9]{1,18})(?=$|['@:\[])")
_PLAIN = re.compile(r"[^\s`@:\[\]]*[^\s`@:\[\]']")
_QUOTED = re.compile(QUOTED)
_PRIME = re.compile("'")
_ITERATIONS = re.compile(ITERATIONS)
_PORT = re.compile(r":([0-9]{1,9})(?![0-9])")
_NUMBER = re.compile(r"-?[0-9]{1,18}")


def _kind_of_plain(text: str) -> NameKind:
    if _REGEX.fullmatch(text):
        return NameKind.REGEX
    if _ID.fullmatch(text):
        return NameKind.ID
    return NameKind.GLOB if "*" in text or "?" in text else NameKind.PLAIN


class _Reader:
    """Reads one address from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        if len(text) > LONGEST:
            self.fail(f"an address has at most {LONGEST} characters, this one {len(text)}", LONGEST)
        self.end = len(text.rstrip())
        self.position = len(text) - len(text.lstrip())

    def fail(self, problem: str, position: int | None = None) -> NoReturn:
        raise AddressError(problem, self.text, self.position if position is None else position)

    def address(self) -> Address:
        if self.position >= self.end:
            self.fail("expected an address, such as h_next or my_loop::h_next:0@7[0,:8]")
        levels: list[Level] = []
        while True:
            start, name = self.position, self.name()
            port, iterations = self.port(), self.iterations()
            if not self.text.startswith("::", self.position):
                break
            if name is None:
                self.fail("expected the name of a loop or an If before '::'", start)
            if port is not None or name.is_next:
                self.fail("a level has no port and no ': expected the name of a loop or an If before '::'", start)
            levels.append(Level(name, iterations))
            self.position += 2
            if len(levels) > MOST_LEVELS:
                self.fail(f"an address has at most {MOST_LEVELS} levels")
        if name is None and (port is not None or iterations is None):
            self.fail(f"expected a name, found {self.found()}", start)
        index = self.index()
        if index and iterations is None:
            iterations = self.iterations()
        if self.position < self.end:
            self.fail(f"expected '::', ':PORT', '@ITERATION', '[SLICE]' or the end, found {self.found()}")
        return Address(tuple(levels), name, port, iterations, index)

    def found(self) -> str:
        if self.position >= self.end:
            return "the end"
        letter = self.text[self.position]
        return "white space (a name with it goes into `backquotes`)" if letter.isspace() else repr(letter)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.position, self.end)
        if match:
            self.position = match.end()
        return match

    def name(self) -> Name | None:
        found = self.plain_name()
        if found is None or self.take(_PRIME) is None:
            return found
        if _PORT.match(self.text, self.position, self.end):
            self.fail("a carried value has no port: leave ':PORT' out")
        return replace(found, is_next=True)

    def plain_name(self) -> Name | None:
        if self.text.startswith("`", self.position):
            quoted = self.take(_QUOTED)
            if quoted is None:
                self.fail("expected a name and a closing backquote")
            return Name(NameKind.QUOTED, quoted[0][1:-1].replace("``", "`"))
        if match := self.take(_REGEX):
            return Name(NameKind.REGEX, match[1])
        if match := self.take(_ID):
            return Name(NameKind.ID, match[1])
        match = self.take(_PLAIN)
        return None if match is None else Name(_kind_of_plain(match[0]), match[0])

    def port(self) -> int | None:
        if not self.text.startswith(":", self.position) or self.text.startswith("::", self.position):
            return None
        match = self.take(_PORT)
        if match is None:
            self.position += 1
            self.fail(f"expected the number of an output port after ':', found {self.found()}")
        return int(match[1])

    def iterations(self) -> Iterations | None:
        if not self.text.startswith("@", self.position):
            return None
        match = self.take(_ITERATIONS)
        if match is None:
            self.position += 1
            self.fail(f"expected an iteration after '@' (7, -1, 2:5 or *), found {self.found()}")
        return _iterations(match[0][1:])

    def index(self) -> tuple[Index, ...]:
        if not self.text.startswith("[", self.position):
            return ()
        close = self.text.find("]", self.position)
        if close < 0:
            self.fail("this bracket is not closed")
        self.position += 1
        items: list[Index] = []
        for part in self.text[self.position : close].split(","):
            items.append(self.index_item(part))
            self.position += len(part) + 1
        if items.count(...) > 1 or len(items) > MOST_INDICES:
            self.fail(f"a slice has at most {MOST_INDICES} parts, and '...' once", close)
        self.position = close + 1
        return tuple(items)

    def index_item(self, part: str) -> Index:
        if part.strip() == "...":
            return ...
        bounds = [bound.strip() for bound in part.split(":")]
        if len(bounds) > 3 or not all(bound == "" or _NUMBER.fullmatch(bound) for bound in bounds):
            self.fail(f"expected a number, start:stop:step or '...', found '{part.strip()}'")
        numbers = [int(bound) if bound else None for bound in bounds]
        if len(numbers) == 1:
            return self.fail("expected a number, start:stop:step or '...'") if numbers[0] is None else numbers[0]
        start, stop, step = (*numbers, None)[:3]
        if step == 0:
            self.fail("the step of a slice must not be 0")
        return Range(start, stop, step)


def _iterations(text: str) -> Iterations:
    if text == "*":
        return ALL_ITERATIONS
    start, colon, stop = text.partition(":")
    if not colon:
        return int(start)
    return IterationRange(int(start) if start else None, int(stop) if stop else None)
