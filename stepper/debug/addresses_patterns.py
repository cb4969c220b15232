"""Globs and regular expressions over names, in time linear in the name whatever the pattern.

A pattern comes from a user and names come from a file, and Python's `re` takes exponential time on some pairs. So the
pattern becomes an automaton without backtracking: a position for each character that it names, and sets of positions
as bits of integers (Glushkov's construction; Navarro and Raffinot, Flexible Pattern Matching in Strings, section 5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

LONGEST_PATTERN: Final = 200
_DEEPEST = 20
_MOST_REMEMBERED = 10_000

# Not in any name that can be printed: they stand before and after it, and are what `^` and `$` match.
_BEGIN: Final = "\x02"
_END: Final = "\x03"

Accepts = Callable[[str], bool]


class PatternError(ValueError):
    """A pattern that is not of the grammar here; `position` is the place in it."""

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(problem)
        self.position = position


def regex(text: str) -> Pattern:
    """A regular expression, found anywhere in a name: `. [a-z] [^a] \\d \\w \\s ( ) | * + ? ^ $`, `\\` before others.

    Raises PatternError.
    """
    return _Reader(text).pattern()


def glob(text: str) -> Pattern:
    """A glob for the whole name: `*` is any text, `?` any character. Raises PatternError for one that is too long."""
    reader = _Reader(text)
    part = reader.leaf(_is(_BEGIN))
    for letter in text:
        one = reader.leaf(_inside if letter in "*?" else _is(letter))
        part = reader.sequence(part, reader.repeated(one, "*") if letter == "*" else one)
    return Pattern(reader, reader.sequence(part, reader.leaf(_is(_END))))


class _Part(NamedTuple):
    """A part of a pattern: whether it matches nothing at all, and at which positions it can begin and end."""

    nullable: bool
    first: int
    last: int


class Pattern:
    """A compiled pattern."""

    def __init__(self, reader: _Reader, whole: _Part) -> None:
        self._accepts, self._follow, self._whole = reader.accepts, reader.follow, whole
        self._reachable: dict[int, int] = {}
        self._letters: dict[str, int] = {}

    def matches(self, name: str) -> bool:
        """Whether the pattern is found in the name (of a glob: whether it is the name)."""
        nullable, first, last = self._whole
        active = 0
        for letter in f"{_BEGIN}{name}{_END}":
            active = (first | self._after(active)) & self._of(letter)
            if active & last:
                return True
        return nullable

    def _after(self, active: int) -> int:
        """The positions that can come after these."""
        known = self._reachable.get(active)
        if known is None:
            known, rest = 0, active
            while rest:
                known |= self._follow[(rest & -rest).bit_length() - 1]
                rest &= rest - 1
            if len(self._reachable) >= _MOST_REMEMBERED:
                self._reachable.clear()
            self._reachable[active] = known
        return known

    def _of(self, letter: str) -> int:
        """The positions at which this character may stand."""
        known = self._letters.get(letter)
        if known is None:
            known = sum(1 << position for position, accepts in enumerate(self._accepts) if accepts(letter))
            if len(self._letters) >= _MOST_REMEMBERED:
                self._letters.clear()
            self._letters[letter] = known
        return known


def _inside(letter: str) -> bool:
    return letter not in (_BEGIN, _END)


def _is(wanted: str) -> Accepts:
    return lambda letter: letter == wanted


def _not(accepts: Accepts) -> Accepts:
    return lambda letter: _inside(letter) and not accepts(letter)


_POSITIVE: Final[dict[str, Accepts]] = {
    "d": str.isdecimal,
    "w": lambda letter: letter.isalnum() or letter == "_",
    "s": str.isspace,
}
_CLASSES: Final = _POSITIVE | {name.upper(): _not(accepts) for name, accepts in _POSITIVE.items()}


class _Reader:
    """Reads a regular expression and numbers its positions."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.accepts: list[Accepts] = []
        self.follow: list[int] = []
        if len(text) > LONGEST_PATTERN:
            self.fail(f"a pattern has at most {LONGEST_PATTERN} characters, this one {len(text)}")

    def fail(self, problem: str) -> NoReturn:
        raise PatternError(problem, self.at)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def next(self) -> str:
        letter = self.peek()
        self.at += 1
        return letter

    def pattern(self) -> Pattern:
        whole = self.alternatives()
        if self.peek():
            self.fail("this ')' closes nothing")
        return Pattern(self, whole)

    # --- the automaton -------------------------------------------------------------------------------------------

    def leaf(self, accepts: Accepts) -> _Part:
        self.accepts.append(accepts)
        self.follow.append(0)
        bit = 1 << (len(self.accepts) - 1)
        return _Part(False, bit, bit)

    def link(self, last: int, first: int) -> None:
        while last:
            self.follow[(last & -last).bit_length() - 1] |= first
            last &= last - 1

    def sequence(self, a: _Part, b: _Part) -> _Part:
        self.link(a.last, b.first)
        first = a.first | (b.first if a.nullable else 0)
        return _Part(a.nullable and b.nullable, first, b.last | (a.last if b.nullable else 0))

    def repeated(self, part: _Part, how: str) -> _Part:
        if how != "?":
            self.link(part.last, part.first)
        return part if how == "+" else part._replace(nullable=True)

    # --- the grammar ---------------------------------------------------------------------------------------------

    def alternatives(self) -> _Part:
        part = self.concatenation()
        while self.peek() == "|":
            self.at += 1
            other = self.concatenation()
            part = _Part(part.nullable or other.nullable, part.first | other.first, part.last | other.last)
        return part

    def concatenation(self) -> _Part:
        part = _Part(True, 0, 0)
        while self.peek() and self.peek() not in "|)":
            part = self.sequence(part, self.repetition())
        return part

    def repetition(self) -> _Part:
        part = self.atom()
        if self.peek() and self.peek() in "*+?":
            part = self.repeated(part, self.next())
            self.at += self.peek() == "?"  # lazily: whether it is found stays the same
        if self.peek() and self.peek() in "*+?":
            self.fail(f"'{self.peek()}' repeats what is repeated already")
        if self.peek() == "{":
            self.fail("expected *, + or ?; {m,n} is not part of patterns here (a brace itself is written \\{)")
        return part

    def atom(self) -> _Part:
        letter = self.next()
        match letter:
            case "(":
                return self.group()
            case "[":
                return self.leaf(self.set())
            case "\\":
                return self.leaf(self.escape())
            case ".":
                return self.leaf(_inside)
            case "^" | "$":
                return self.leaf(_is(_BEGIN if letter == "^" else _END))
        if letter in "*+?{":
            self.at -= 1
            self.fail(f"'{letter}' has nothing before it to repeat")
        return self.leaf(_is(letter))

    def group(self) -> _Part:
        if self.text.startswith("?:", self.at):
            self.at += 2
        elif self.peek() == "?":
            self.fail("expected a group; of those that begin with '(?' only '(?:' is part of patterns here")
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"groups are nested at most {_DEEPEST} deep")
        part = self.alternatives()
        self.depth -= 1
        if self.next() != ")":
            self.at -= 1
            self.fail("expected ')'")
        return part

    def escape(self) -> Accepts:
        letter = self.next()
        if letter in _CLASSES:
            return _CLASSES[letter]
        if not letter or letter.isalnum():
            self.at -= 1
            self.fail("after '\\' expected d, w, s, D, W, S or a character that is no letter or digit")
        return _is(letter)

    def set(self) -> Accepts:
        negative = self.peek() == "^"
        self.at += negative
        members: list[Accepts] = []
        while self.peek() != "]" or not members:
            if not self.peek():
                self.fail("expected ']'")
            members.append(self.member())
        self.at += 1

        def accepts(letter: str) -> bool:
            return any(member(letter) for member in members)

        return _not(accepts) if negative else accepts

    def member(self) -> Accepts:
        """A character, a class or a range of a set."""
        low = self.next()
        if low == "\\":
            return self.escape()
        if self.peek() != "-" or self.text[self.at + 1 : self.at + 2] in ("]", ""):
            return _is(low)
        self.at += 1
        high = self.next()
        if high == "\\" or high < low:
            self.at -= 1
            self.fail(f"'{low}-{high}' is no range")
        return lambda letter: low <= letter <= high
