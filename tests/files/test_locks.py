"""One program at a time writes a session or a recording, and the second is told who does."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepper.errors import OutputError
from stepper.files import locks as file_locks
from stepper.files.locks import FileInUse, lock, lock_path
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_models" / "nested_loop"
DEBUG = ("-m", "stepper", "debug", SAMPLE / "model.xml", "--inputs", SAMPLE / "inputs.npz")
RUN = ("-m", "stepper", "run", SAMPLE / "model.xml", "--inputs", SAMPLE / "inputs.npz")

HOLD = """
import sys
from stepper.files.locks import lock
taken = lock(sys.argv[1])
print("has it", flush=True)
sys.stdin.read()
"""


def started(*words: object) -> subprocess.Popen[str]:
    """Python in a process of its own, with streams that are piped."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@contextlib.contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process has the lock of a file."""
    process = started("-c", HOLD, path)
    try:
        assert process.stdout is not None and process.stdout.readline() == "has it\n"
        yield process
    finally:
        process.communicate(timeout=30)


def test_the_second_is_told_who_has_the_file_since_when_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "work.session"
    with held(path) as process:
        with pytest.raises(FileInUse) as found:
            lock(path, advice="name another file")
        holder = found.value.holder
        assert holder is not None and holder.pid == process.pid and holder.host == os.uname().nodename
        assert str(found.value).startswith(f"{path} is in use by process {process.pid} on {holder.host} since ")
        assert str(found.value).endswith(f" (-c {path}); name another file")
    with lock(path):
        assert lock_path(path).exists()
    assert not list(tmp_path.iterdir())


def test_a_link_to_a_file_has_the_same_lock(tmp_path: Path) -> None:
    path, link = tmp_path / "run.sqlite", tmp_path / "link"
    path.touch()
    link.symlink_to(path)
    with held(path), pytest.raises(FileInUse):
        lock(link)


def test_the_lock_of_a_killed_process_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "work.session"
    with held(path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        assert lock_path(path).exists()
        with lock(path):
            pass
    assert not list(tmp_path.iterdir())


def test_in_one_process_a_file_is_free_when_each_lock_is_released(tmp_path: Path) -> None:
    path = tmp_path / "work.session"
    first, second = lock(path), lock(path)
    first.release()
    first.release()
    assert lock_path(path).exists()
    second.release()
    assert not lock_path(path).exists()


@each_row("content", ["", "{", "[1]", '{"pid": "x"}', '{"pid": 1}', "[" * 4096, "\x00" * 100])
def test_whatever_stands_in_the_file_of_a_lock_the_second_gets_a_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "work.session"
    with held(path):
        lock_path(path).write_text(content)
        with pytest.raises(FileInUse, match=r"is in use by another program; close it there"):
            lock(path)


def test_where_there_are_no_locks_there_is_a_note_and_the_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_handle: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    for without in (refused, None):
        monkeypatch.setattr(file_locks, "_flock", without)
        with lock(tmp_path / "work.session") as taken:
            assert "cannot be locked on this file system" in taken.note


def test_where_nothing_can_be_beside_the_file_that_is_an_error_of_writing(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot be locked: .*No such file"):
        lock(tmp_path / "none" / "work.session")


def test_of_four_debuggers_on_one_session_one_works_and_three_say_who(tmp_path: Path) -> None:
    file = tmp_path / "work.session"
    first = started(*DEBUG, "--session", file)
    assert first.stdin is not None and first.stdout is not None
    first.stdin.write("mark one\nwhere\n")
    first.stdin.flush()
    assert first.stdout.readline().startswith("mark one is tick")
    others = [started(*DEBUG, "--session", file) for _ in range(3)]
    for other in others:
        out, err = other.communicate("mark two\n", timeout=60)
        assert other.returncode == 2 and not out
        assert err.startswith(f"stepper: {file} is in use by ") and err.count("\n") == 1
        assert f"process {first.pid} " in err and err.endswith("or name another file: --session OTHER\n")
    assert first.communicate("mark three\n", timeout=60)[1] == f"a new session, to be kept in {file}\n"
    assert first.returncode == 0
    last = started(*DEBUG, "--session", file)
    out, err = last.communicate("goto 'one\ngoto 'three\ngoto 'two\n", timeout=60)
    assert err.count("there is no mark") == 1 and "'two'" in err
    assert sorted(one.name for one in tmp_path.iterdir()) == ["work.session"]


def test_a_recording_that_is_being_written_is_neither_gone_on_with_nor_used_for_a_session(tmp_path: Path) -> None:
    file = tmp_path / "run.sqlite"
    begun = started(*RUN, "--trace", file, "-q")
    begun.communicate(timeout=60)
    with held(file) as process:
        for words in ((*RUN[:3], "--resume", file), (*DEBUG, "--session", file)):
            other = started(*words)
            out, err = other.communicate("", timeout=60)
            assert other.returncode == 2 and not out
            assert err.startswith(f"stepper: {file} is in use by ") and f"process {process.pid} " in err
        reader = started("-m", "stepper", "print", file, "@-1")
        assert reader.communicate(timeout=60)[0] and reader.returncode == 0
    again = started(*RUN[:3], "--resume", file, "-q")
    assert again.communicate(timeout=60)[1] == "" and again.returncode == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run.sqlite"]


def _linked(place: Path, victim: Path) -> None:
    place.symlink_to(victim)


def _hard_linked(place: Path, victim: Path) -> None:
    place.hardlink_to(victim)


def _written(place: Path, victim: Path) -> None:
    place.write_bytes(victim.read_bytes())


def _piped(place: Path, _victim: Path) -> None:
    os.mkfifo(place)


@each_row("made", [_linked, _hard_linked, _written, _piped])
def test_what_is_named_like_a_lock_and_is_none_stays_as_it_is(
    tmp_path: Path, made: Callable[[Path, Path], None]
) -> None:
    victim, path = tmp_path / "victim", tmp_path / "run.sqlite"
    victim.write_text("export A=1\n")
    place = lock_path(path)
    made(place, victim)
    kind = place.lstat().st_mode
    with pytest.raises(OutputError, match=r"cannot be locked: .*\.run\.sqlite\.lock") as refused:
        lock(path)
    assert "\n" not in str(refused.value)
    assert victim.read_text() == "export A=1\n" and place.lstat().st_mode == kind


def test_a_link_to_nothing_named_like_a_lock_makes_no_file(tmp_path: Path) -> None:
    lock_path(tmp_path / "run.sqlite").symlink_to(tmp_path / "new")
    with pytest.raises(OutputError, match="it is a link; delete it"):
        lock(tmp_path / "run.sqlite")
    assert not (tmp_path / "new").exists()


def test_a_child_process_does_not_inherit_a_lock(tmp_path: Path) -> None:
    with lock(tmp_path / "a"):
        held = next(iter(file_locks._held.values()))
        assert not os.get_inheritable(held.handle)
