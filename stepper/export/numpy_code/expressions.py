"""Python expressions put together from parts, with as few parentheses as the grammar allows."""

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


class Expression(NamedTuple):
    """A text, and how strongly it holds together: an operator around it that binds more strongly needs parentheses."""

    text: str
    strength: int = ATOM

    def within(self, strength: int) -> str:
        """As a part of something that binds so strongly."""
        return self.text if self.strength >= strength else f"({self.text})"

    @property
    def atom(self) -> str:
        """As something that a dot or a bracket may follow."""
        return self.within(ATOM)


def literal(text: str) -> Expression:
    """A number; a negative one is a sign and a number."""
    return Expression(text, _SIGN if text.startswith("-") else ATOM)


def infix(a: Expression, operator: str, b: Expression) -> Expression:
    """a operator b."""
    strength = _INFIX[operator]
    if operator == "**":
        return Expression(f"{a.within(strength + 1)}**{b.within(ATOM)}", strength)
    left = strength + 1 if strength == _COMPARISON else strength
    return Expression(f"{a.within(left)} {operator} {b.within(strength + 1)}", strength)


def prefix(operator: str, a: Expression) -> Expression:
    """The operator before a."""
    return Expression(f"{operator}{a.within(_SIGN)}", _SIGN)


def call(function: str, *arguments: Expression | str, **keywords: str) -> Expression:
    """function(arguments, keyword=text)."""
    parts = [part if isinstance(part, str) else part.text for part in arguments]
    parts += [f"{name}={text}" for name, text in keywords.items()]
    return Expression(f"{function}({', '.join(parts)})")


def method(a: Expression, name: str, *arguments: Expression | str, **keywords: str) -> Expression:
    """a.name(arguments)."""
    return call(f"{a.atom}.{name}", *arguments, **keywords)


def item(a: Expression, index: str) -> Expression:
    """a[index]."""
    return Expression(f"{a.atom}[{index}]")


def several(parts: list[str]) -> str:
    """FigureBuilder of a tuple without parentheses; that of one part is the part itself."""
    return ", ".join(parts)
