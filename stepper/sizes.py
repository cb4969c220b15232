"""Numbers of bytes as text."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB", "PB", "EB")


def size_text(size: int) -> str:
    """Return a number of bytes in the unit that fits: `48 bytes`, `1.5 KB`, `400 MB`; KB is 1024, as in options."""
    power = min(max(size.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    if not power:
        return f"{size} byte{'' if size == 1 else 's'}"
    number = size / 1024**power
    return (
        f"{number:,.0f} {_UNITS[power]}" if number >= 100 or number == int(number) else f"{number:.1f} {_UNITS[power]}"
    )
