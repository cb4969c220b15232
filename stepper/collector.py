"""The garbage collector, where there is no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_off() -> Iterator[None]:
    """For what makes many objects that all stay, such as imports or a model.

    To search them again and again is a tenth of a start, and doubles the time of reading a large model.

    At the end all of it goes to the oldest generation at once (which is what freeze and unfreeze do together, where
    nobody else has frozen anything), or the next allocation would search it after all.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()
            gc.enable()
