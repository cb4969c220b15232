"""Carry out commands again and again, and let another call of the system fail each time.

It runs in a process in which `failing_calls.c` is preloaded (`run.py` starts that one), and forks for each fault.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from stepper.cli import main as stepper
from tests.faults.subjects import SUBJECTS, Subject, contents, prepare

TRACEBACK = 70
LONGEST_S = 120


class Call(IntEnum):
    """Kind of a call, as the library counts them."""

    OPEN = 0
    WRITE = 1
    RENAME = 2
    SYNC = 3
    TRUNCATE = 4


FAILURES = {Call.WRITE: errno.ENOSPC, Call.TRUNCATE: errno.ENOSPC}


class Ended(NamedTuple):
    """End of a command: exit code, stderr, and whether the fault came."""

    code: int
    errors: str
    failed: bool


class Injector:
    """Runs the command of a subject in copies of a folder."""

    def __init__(self, library: ctypes.CDLL, subject: Subject, folder: Path) -> None:
        self._library, self._subject, self._folder = library, subject, folder
        self._begin = folder / "begin"
        self._begin.mkdir()
        prepare(self._begin, subject.sample)
        for name, content in subject.old.items():
            (self._begin / name).write_bytes(content)
        for words in subject.before:
            ended = self._run(words, self._begin, None, 0)
            assert ended.code in (0, 1), ended.errors
        self._old = contents(self._begin)
        new = self._copied()
        ended = self._run(subject.words, new, None, 0)
        assert ended.code in (0, 1), ended.errors
        self._new = contents(new)
        assert subject.judge(new, self._new, self._new) == []

    def _copied(self) -> Path:
        shutil.rmtree(self._folder / "now", ignore_errors=True)
        return Path(shutil.copytree(self._begin, self._folder / "now"))

    def faults(self, call: Call, every: int) -> Iterator[tuple[int, list[str]]]:
        """Yield each fault by its number, with what is wrong behind it."""
        number = 0
        while True:
            folder = self._copied()
            ended = self._run(self._subject.words, folder, call, number)
            if not ended.failed:
                return
            wrong = self._subject.judge(folder, self._old, self._new)
            lines = [line for line in ended.errors.splitlines() if line.startswith("stepper: ")]
            if "Traceback" in ended.errors or ended.code not in range(6):
                wrong.append(f"exit code {ended.code}: {ended.errors[-1500:]}")
            if ended.code > 1 and len(lines) != 1:
                wrong.append(f"not one sentence: {ended.errors[-500:]!r}")
            yield number, wrong
            number += every

    def _run(self, words: tuple[str, ...] | Callable[[], int], folder: Path, call: Call | None, number: int) -> Ended:
        said, found = self._folder / "stderr", self._folder / "found"
        child = os.fork()
        if not child:
            self._child(words, folder, call, number)
        _, status = os.waitpid(child, 0)
        failed = found.read_text() == "-1" if found.exists() else False
        found.unlink(missing_ok=True)
        return Ended(os.waitstatus_to_exitcode(status), said.read_text(errors="replace"), failed)

    def _child(self, words: tuple[str, ...] | Callable[[], int], folder: Path, call: Call | None, number: int) -> None:
        code = TRACEBACK
        try:
            code = self._carried_out(words, folder, call, number)
        except BaseException:
            traceback.print_exc()
        os._exit(code)

    def _carried_out(
        self, words: tuple[str, ...] | Callable[[], int], folder: Path, call: Call | None, number: int
    ) -> int:
        signal.alarm(LONGEST_S)  # it would end the process, which counts as a fault
        os.chdir(folder)
        os.dup2(os.open(self._folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        if call is not None:
            self._library.arm(str(folder).encode(), int(call), number, FAILURES.get(call, errno.EIO))
        code = TRACEBACK
        try:
            code = words() if callable(words) else stepper(list(words))
        except BaseException:
            traceback.print_exc()
        seen = self._library.disarm()
        sys.stderr.flush()
        (self._folder / "found").write_text(str(seen))
        atexit._run_exitfuncs()
        return code


def main() -> None:
    """Print a line of JSON for each subject and kind of call; the words are the subjects and how many are left out."""
    library, every, *names = sys.argv[1:]
    loaded = ctypes.CDLL(library)
    loaded.disarm.restype = ctypes.c_long
    loaded.arm.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_long, ctypes.c_int]
    for name in names or SUBJECTS:
        folder = tempfile.mkdtemp()  # not one that a child removes at its end
        try:
            injector = Injector(loaded, SUBJECTS[name], Path(os.path.realpath(folder)))
            for call in Call:
                found = list(injector.faults(call, int(every)))
                wrong = {number: text for number, text in found if text}
                print(
                    json.dumps({"subject": name, "call": call.name, "faults": len(found), "wrong": wrong}), flush=True
                )
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
