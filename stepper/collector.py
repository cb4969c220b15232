"""The garbage collector, where there is no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 20_000
"""Objects whose search is long enough to be felt: the imports of a command, a model of some thousand layers."""

UNSEARCHED = 2_000_000
"""Objects that may go to the oldest generation without a search."""

_unsearched = 0


@contextmanager
def collector_off() -> Iterator[None]:
    """Switch the collector off for what creates many objects that all stay, such as imports or a model.

    To search them again and again is a tenth of a start, and doubles the time of reading a large model.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            _spare(gc.get_count()[0])
            gc.enable()


def leave_to_the_end() -> None:
    """Have the interpreter not search at its end what a program holds then: all of it goes with the process."""
    gc.freeze()


def _spare(objects: int) -> None:
    """Move `objects` new ones, if they are many, to the oldest generation, or the next allocation searches them all.

    Freeze and unfreeze do that together, where nothing else is frozen. But the collector counts nothing of
    what comes there so, and begins to count anew: where they follow each other, garbage would never be found.
    """
    global _unsearched
    if objects < MANY or gc.get_freeze_count():
        return
    _unsearched += objects
    if _unsearched > UNSEARCHED:
        _unsearched = 0
        gc.collect()
    else:
        gc.freeze()
        gc.unfreeze()
