"""The start of a worker process, which may come before anything is asked of it: it loads while this one still imports.

It imports nothing that takes time, numpy least of all.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from stepper.processes.programs import WorkerProgram

# Commands that start Python as a child process. No file of the working folder is a module for such a process.
#
#     subprocess.run(python_command("import json; print(json.dumps(1))"))
#
# With `-c` and `-m`, Python searches the working folder for modules first, and a stranger's `json.py` may lie there.

_SAFE = "-P"
_SET_PATH = "import sys; sys.path[:] = sys.argv.pop(1).split('\\n'); "
_PACKAGES = str(Path(__file__).parents[2])


def python_command(program: str, *arguments: str, folder: Path = Path()) -> list[str]:
    """Return the command that runs a program text with the module path of this process.

    `folder` is where the process will work. It is no part of the path unless stepper itself lies there.
    """
    folders = {os.path.realpath("."), os.path.realpath(folder)}
    path = [one for one in sys.path if one and "\n" not in one and os.path.realpath(one) not in folders]
    path += [] if _PACKAGES in path else [_PACKAGES]
    return [sys.executable, _SAFE, "-c", _SET_PATH + program, "\n".join(path), *arguments]


def script_command(script: Path) -> list[str]:
    """Return the command that runs a script. The folder of the script is no part of the module path."""
    return [sys.executable, _SAFE, str(script)]


_START = "import gc; gc.disable(); from {module} import main; main()"
"""The collector is off until it serves: of what is imported nothing is garbage, and looking takes its time."""


class StartedProcess(NamedTuple):
    """A process whose streams are pipes, and the file into which it prints."""

    process: subprocess.Popen[bytes]
    messages: IO[bytes]


_WIDE = 2**20
"""Size of a pipe in bytes that Linux grants every user."""

_early: Final[dict[WorkerProgram, StartedProcess]] = {}
_started: Final[set[WorkerProgram]] = set()
_owner: Final = os.getpid()


def start_early(program: WorkerProgram) -> None:
    """Start a process for whoever first asks for one of the program; it goes unused where nobody does.

    Where there was one before, nothing is gained: it may still be there, and who starts it again does so itself.
    """
    if program not in _started:
        _early[program] = _begun(program, {}, memory_of_the_machine())


def started(program: WorkerProgram, environment: Mapping[str, str], memory: int) -> StartedProcess:
    """Return a process of a program with these variables and bytes of memory: the one that waits, or a new one."""
    is_ours = _owner == os.getpid() and not environment
    if is_ours and memory == memory_of_the_machine() and (waiting := _early.pop(program, None)) is not None:
        return waiting
    return _begun(program, environment, memory)


def _begun(program: WorkerProgram, environment: Mapping[str, str], memory: int) -> StartedProcess:
    _started.add(program)
    messages = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the process is
    process = subprocess.Popen(
        python_command(_START.format(module=program.module), str(memory)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=messages,
        env={**os.environ, **dict(program.environment), **environment},
        **_in_a_group_of_its_own(),
    )
    for stream in (process.stdin, process.stdout):
        if stream is not None and sys.platform == "linux":
            import fcntl

            with contextlib.suppress(OSError):  # a user may have so much of them only
                fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, _WIDE)
    return StartedProcess(process, messages)


def _in_a_group_of_its_own() -> dict[str, Any]:
    """Return the options of a process group: Ctrl+C reaches our process alone.

    A stopped process continues when our process ends, so that it sees this end.
    """
    if os.name == "posix":
        return {"process_group": 0}
    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}


def memory_of_the_machine() -> int:
    """Return the bytes of memory that a process may have here; 0 where that is not known."""
    sizes = []
    with contextlib.suppress(ValueError, OSError, AttributeError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(ValueError, OSError):
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min((size for size in sizes if size > 0), default=0)


@atexit.register
def end_unused() -> None:
    """End the processes that nobody has asked for."""
    if _owner != os.getpid():  # a child by fork has no part in them
        return
    while _early:
        process, messages = _early.popitem()[1]
        process.kill()
        process.wait()
        messages.close()


# How many cores there are.


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
