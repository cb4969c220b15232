"""Tables of the pages in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Lines = Iterable[str]


def cell(text: str) -> str:
    """Return a text as the cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    """Return a text as code in the cell of a table."""
    fence = "``" if "`" in text else "`"
    inner = text.replace("|", "\\|")
    return f"{fence} {inner} {fence}" if "`" in text else f"{fence}{inner}{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table, with an empty line behind it."""
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""
