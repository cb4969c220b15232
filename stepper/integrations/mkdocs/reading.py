"""The text of a fence: the model on the first line, then an option of `stepper export` on each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from stepper.errors import UsageError

_OPTION: Final = re.compile(r":?([a-z][a-z-]*)(?:\s*:(?:\s+(.*))?)?")


def read_fence(source: str) -> tuple[str, Mapping[str, str]]:
    """Return the model ("": there is none) and the options: `name: value`, or a name alone.

    What stands there several times has a value on each line. Raise UsageError for another line.
    """
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    found: dict[str, str] = {}
    for line in lines[1:]:
        match = _OPTION.fullmatch(line)
        if match is None:
            raise UsageError(f"'{line[:60]}' is no option; write one in each line, such as view: rolled")
        name, value = match[1], match[2] or ""
        found[name] = f"{found[name]}\n{value}" if name in found else value
    return lines[0] if lines else "", found
