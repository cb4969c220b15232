"""The log of a session: what was done, where it led, what stopped the run, what went wrong. Bounded, newest last."""

from __future__ import annotations

import itertools
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Final

from stepper.records import Record

if TYPE_CHECKING:
    from stepper.debug.stop import Stop

MOST_ENTRIES: Final = 5_000
_LONGEST: Final = 500
_EDITS: Final = (["set"], ["undo"], ["branch"])
_LISTING: Final = ("delete", "enable", "disable")
"""They answer with the whole list."""
_SETTING: Final = tuple([word] for word in ("break", "b", "change", "delete", "enable", "disable", "ignore", "except",
                                            "watch", "unwatch", "display", "undisplay", "commands", "log", "mark",
                                            "session"))  # fmt: skip


class LogKind(Enum):
    """Kind of an entry; the value is the word for it."""

    MOVED = "moved"
    STOPPED = "stopped"
    FAILED = "error"
    EDITED = "edited"
    SET = "set"
    LOGGED = "log"
    REFUSED = "refused"
    SESSION = "session"
    FAULT = "fault"


class LogEntry(Record):
    """Something that happened: at which tick of which branch, in which place of the run, and in words.

    `command` is the line that did it, `breakpoint` the number of what stopped the run.
    """

    number: int
    kind: LogKind
    tick: int
    branch: str
    place: str
    command: str
    text: str
    breakpoint: int | None = None


class EventLog:
    """Entries in their order. Both threads add; each addition is one step that needs no lock."""

    def __init__(self) -> None:
        self._entries: deque[LogEntry] = deque(maxlen=MOST_ENTRIES)
        self._numbers = itertools.count(1)
        self._seen: tuple[int, tuple[LogEntry, ...]] = (0, ())
        self._tick, self._branch, self._place = 0, "", ""

    def stand(self, tick: int, branch: str, place: str) -> None:
        """From now on things happen here."""
        self._tick, self._branch, self._place = tick, branch, place

    def add(self, kind: LogKind, text: str, command: str = "", breakpoint: int | None = None) -> None:
        """Something has happened."""
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        where = self._tick, self._branch, self._place
        entry = LogEntry(next(self._numbers), kind, *where, command[:_LONGEST], first[:_LONGEST], breakpoint)
        self._entries.append(entry)

    def entries(self) -> tuple[LogEntry, ...]:
        """Return all that are kept, the newest last; the same tuple as long as nothing is added."""
        newest = self._entries[-1].number if self._entries else 0
        if newest != self._seen[0]:
            self._seen = newest, tuple(self._entries.copy())
        return self._seen[1]

    def follow(self, line: str, before: Stop, after: Stop, lines: tuple[str, ...], failed: bool, refused: bool) -> None:
        """A command was carried out: where it led, and what went wrong.

        `failed`: the run met an error; `refused`: what was asked for cannot be.
        """
        from stepper.debug.causes.cause import Trigger
        from stepper.debug.causes.texts import sentences

        text = lines[0] if lines else ""
        if failed or refused:
            self.add(LogKind.FAILED if failed else LogKind.REFUSED, text, line)
        elif after is not before:
            cause = after.cause
            if cause is not None and cause.trigger is Trigger.BREAKPOINT:
                self.add(LogKind.STOPPED, sentences(cause)[0], line, cause.number)
            else:
                self._moved(after, line)
        elif line.split()[:1] in _SETTING:
            self.add(LogKind.SET, "" if line.split()[0] in _LISTING else text, line)

    def _moved(self, after: Stop, line: str) -> None:
        from stepper.debug.causes.cause import Reason

        kind = LogKind.EDITED if line.split()[:1] in _EDITS else LogKind.MOVED
        done = "" if after.done is None else f"after {after.done.layer.type} '{after.done.layer.name}'"
        self.add(kind, done if after.reason in (Reason.MOVED, Reason.BREAK) else str(after.reason), line)
