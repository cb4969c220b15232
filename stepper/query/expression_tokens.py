"""The words and signs of an expression."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from stepper.query.address_syntax import ITERATIONS, QUOTED, RESERVED, SIMPLE_NAME, NotWritable


class ExpressionError(NotWritable):
    """Text that is no expression, or one that cannot be evaluated; the message marks the place."""


class Token(NamedTuple):
    """A word or sign of the text; `kind` is number, name (an address), word (a reserved one), sign or end."""

    kind: str
    text: str
    position: int


_SEGMENT = rf"(?:{QUOTED}|id=[0-9]+|{SIMPLE_NAME})"
_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>(?:{_SEGMENT}(?:{ITERATIONS})?::)*{_SEGMENT}(?::(?!:)[0-9]+)?(?:{ITERATIONS})?)
    | (?P<sign>\.\.\.|==|!=|<=|>=|//|\*\*|[<>+\-*/%()\[\],:])
    )""",
    re.VERBOSE,
)
_WORD = re.compile(rf"{SIMPLE_NAME}")
_HINTS: Final = {
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
    if word and word[0] in RESERVED:  # before the addresses: `iter:8` in a slice is no port of a layer
        return Token("word", word[0], position)
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
