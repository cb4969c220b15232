"""Globs and regular expressions over names, by RE2: time linear in the name, whatever the pattern.

A pattern comes from a user and names come from a file; Python's `re` and `fnmatch` take exponential time on some pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import re2

LONGEST_PATTERN = 1000
"""Characters."""
_MOST_MEMORY = 1 << 20
"""Bytes that a compiled pattern may take."""


class PatternError(ValueError):
    """A text that is not a pattern; RE2's words say why."""


class Pattern:
    """A compiled pattern and the text that it was written as."""

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str, expression: str) -> None:
        import re2  # most runs have no pattern

        if len(text) > LONGEST_PATTERN:
            raise PatternError(f"a pattern has at most {LONGEST_PATTERN} characters")
        try:
            self._compiled: Any = re2.compile(expression, _options())
        except re2.error as error:
            raise PatternError(_words(error)) from None
        except UnicodeEncodeError:
            raise PatternError("it has characters that are not text") from None
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def found_in(self, name: str) -> bool:
        """Return True if the pattern matches anywhere in the name (a glob: if it matches the whole name)."""
        return self._compiled.search(name) is not None

    def is_whole(self, name: str) -> bool:
        """Return True if the pattern matches the whole name."""
        return self._compiled.fullmatch(name) is not None


def regex(text: str) -> Pattern:
    """Return the regular expression in RE2's syntax. Raise PatternError for a text that is none."""
    return Pattern(text, text)


def glob(text: str) -> Pattern:
    """Return the glob: `*` matches any text, `?` any character. Raise PatternError if it is too long."""
    import re2

    parts = {"*": "(?s:.*)", "?": "(?s:.)"}
    return Pattern(text, rf"\A{''.join(parts.get(letter) or re2.escape(letter) for letter in text)}\z")


def _options() -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    return options


def _words(error: re2.error) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
