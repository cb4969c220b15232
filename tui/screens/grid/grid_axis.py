"""The number line over columns of iterations: as many numbers as fit, the moment's own always and reversed."""

from __future__ import annotations

from typing import Final

from tui.paint.rows import Row, short_count

_STEPS: Final = tuple(digit * 10**power for power in range(12) for digit in (1, 2, 5))


def axis(first: int, count: int, cell: int, now: int, width: int) -> Row:
    """Numbers of the iterations from `first` on, a column of `cell` cells each, in at most `width` cells."""
    longest = len(short_count(first + count))
    every = next((step for step in _STEPS if step * cell > longest), _STEPS[-1])
    room = min(count * cell + longest, width)
    centred = every == 1 and cell > 2
    cells = [" "] * room
    text = str(now)
    at = (now - first) * cell + ((cell - 1 - len(text) + 1) // 2 if centred else 0)
    is_seen = first <= now < first + count and at + len(text) <= width
    for iteration in range(-(-first // every) * every, first + count, every):
        label = short_count(iteration)
        start = (iteration - first) * cell + ((cell - 1 - len(label) + 1) // 2 if centred else 0)
        touches = is_seen and start < at + len(text) + (not centred) and at < start + len(label) + (not centred)
        if not touches and start + len(label) <= room:
            cells[start : start + len(label)] = label
    line = "".join(cells)
    if not is_seen:
        return [(line, "dim")]
    tone = "title-on" if centred else "now"
    return [(line[:at], "dim"), (text, tone), (line[at + len(text) :], "dim")]
