"""Python expressions composed from parts, with as few parentheses as the grammar allows.

Not by `ast.unparse`: it drops the comments that name each operation, and writes single quotes and other spaces than
formatters do, so that the file would not read as written by a person.
"""

from __future__ import annotations

from typing import Final, NamedTuple

ATOM: Final = 20
_POWER: Final = 14
_SIGN: Final = 13
_COMPARISON: Final = 5

_INFIX: Final = {
    "**": _POWER, "@": 12, "*": 12, "/": 12, "//": 12, "%": 12, "+": 11, "-": 11, "&": 8, "^": 7, "|": 6,
    "<": _COMPARISON, "<=": _COMPARISON, ">": _COMPARISON, ">=": _COMPARISON, "==": _COMPARISON, "!=": _COMPARISON,
}  # fmt: skip


class CodeExpression(NamedTuple):
    """A text, and how strongly it holds together: an operator around it that binds more strongly needs parentheses."""

    text: str
    strength: int = ATOM

    def within(self, strength: int) -> str:
        """Return the text as an operand of an operator of this precedence."""
        return self.text if self.strength >= strength else f"({self.text})"

    @property
    def atom(self) -> str:
        """As something that a dot or a bracket may follow."""
        return self.within(ATOM)


def literal(text: str) -> CodeExpression:
    """Return a number; a negative one is a sign and a number."""
    return CodeExpression(text, _SIGN if text.startswith("-") else ATOM)


def infix(a: CodeExpression, operator: str, b: CodeExpression) -> CodeExpression:
    """Return a operator b."""
    strength = _INFIX[operator]
    if operator == "**":
        return CodeExpression(f"{a.within(strength + 1)}**{b.within(ATOM)}", strength)
    left = strength + 1 if strength == _COMPARISON else strength
    return CodeExpression(f"{a.within(left)} {operator} {b.within(strength + 1)}", strength)


def prefix(operator: str, a: CodeExpression) -> CodeExpression:
    """Return the operator before a."""
    return CodeExpression(f"{operator}{a.within(_SIGN)}", _SIGN)


def call(function: str, *arguments: CodeExpression | str, **keywords: str) -> CodeExpression:
    """Return function(arguments, keyword=text)."""
    parts = [part if isinstance(part, str) else part.text for part in arguments]
    parts += [f"{name}={text}" for name, text in keywords.items()]
    return CodeExpression(f"{function}({', '.join(parts)})")


def method(a: CodeExpression, name: str, *arguments: CodeExpression | str, **keywords: str) -> CodeExpression:
    """Return a.name(arguments)."""
    return call(f"{a.atom}.{name}", *arguments, **keywords)


def item(a: CodeExpression, index: str) -> CodeExpression:
    """Return a[index]."""
    return CodeExpression(f"{a.atom}[{index}]")
