"""Where a fence stands: the page, its line, the folder that paths begin in, and the log that counts warnings."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from stepper.errors import UsageError

_LOG: Final = logging.getLogger("mkdocs.plugins.stepper")
"""MkDocs prints the warnings below its own name, and `--strict` counts them."""
_FENCES: Final = ("```", "~~~")


class FencePlace(NamedTuple):
    """Place of a fence: the folder of mkdocs.yml, and the page and the line in it ("" and 0: not known).

    Outside of MkDocs it is the current folder.
    """

    folder: Path
    page: str = ""
    line: int = 0

    @classmethod
    def of(cls, md: Any, source: str) -> FencePlace:
        """Return where the converter of a page has met a fence with this text."""
        for one in md.treeprocessors:  # the one of links knows the page
            file, config = getattr(one, "file", None), getattr(one, "config", None)
            configured = getattr(config, "config_file_path", None)
            if file is not None and configured:
                return cls(Path(configured).resolve().parent, file.src_uri, _line(file, source))
        return cls(Path.cwd())

    def warn(self, text: str) -> None:
        """Tell an error as a warning with its place."""
        where = [self.page or "a page", *([str(self.line)] if self.line else [])]
        _LOG.warning("%s: %s", ":".join(where), text)


def tell_anchor(md: Any, name: str) -> None:
    """Have MkDocs know a name that links lead to: it sees none in what fences make."""
    for one in md.treeprocessors:
        names = getattr(one, "present_anchor_ids", None)
        if isinstance(names, set):
            names.add(name)


def _line(file: Any, source: str) -> int:
    """Return the line of the fence, from 1; 0 where its text is made by something else than the page."""
    try:
        page: str = file.content_string
    except (OSError, UnicodeError):
        return 0
    wanted, begin, found = _filled(source.splitlines()), 0, [""]
    for number, line in enumerate(map(str.strip, page.splitlines()), 1):
        if not begin and line.startswith(_FENCES) and "stepper" in line:
            begin, found = number, []
        elif begin and line.startswith(_FENCES):
            if _filled(found) == wanted:
                return begin
            begin = 0
        else:
            found.append(line)
    return 0


def _filled(lines: Iterable[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]


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
