"""Tables of text in HTML, as objects show themselves in notebooks; every cell is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stepper.wording import excerpt

MOST_ROWS = 100


def html_table(rows: Iterable[Sequence[str]], title: str = "") -> str:
    """Return a table, below a title where there is one; rows from MOST_ROWS on are counted."""
    from html import escape  # notebooks alone need it

    found = list(rows)
    cells = ("".join(f"<td>{escape(excerpt(cell, 400))}</td>" for cell in row) for row in found[:MOST_ROWS])
    lines = [f"<tr>{row}</tr>" for row in cells]
    more = len(found) - MOST_ROWS
    above = f"<p>{escape(title)}</p>" if title else ""
    return f"{above}<table>{''.join(lines)}</table>{f'<p>… {more:,} more</p>' if more > 0 else ''}"
