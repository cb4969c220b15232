"""Commands that write files, what lies there before, and what may lie there after a fault."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

import stepper
from stepper.cases.case import cases_in
from stepper.debug.debugger import open_debugger
from stepper.ir.reader import read as read_model
from stepper.recording import open_recording
from stepper.session.session_files import restore_session
from stepper.sweep.sweep_results import read_about

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_models"
RUN = ("run", "model.xml", "--inputs", "inputs.npz", "-q")

Contents = Mapping[str, bytes]


class Subject(NamedTuple):
    """A command. `before` makes what lies there, beside `old` files.

    `judge` says what is wrong after it, of the folder and of the contents of its files before and after.
    """

    words: tuple[str, ...] | Callable[[], int]
    judge: Callable[[Path, Contents, Contents], list[str]]
    before: tuple[tuple[str, ...], ...] = ()
    old: Mapping[str, bytes] = MappingProxyType({})
    sample: str = "nested_loop"


def prepare(folder: Path, sample: str) -> None:
    """Put a model with inputs, scripts and a list of figures into a folder."""
    for name in ("model.xml", "model.bin", "inputs.npz"):
        if (SAMPLES / sample / name).exists():
            shutil.copy(SAMPLES / sample / name, folder / name)
    with np.load(folder / "inputs.npz") as arrays:
        np.savez(folder / "others.npz", **{name: value[::-1] for name, value in arrays.items()})
    (folder / "first").write_text("break swaps_next\ncontinue\n")
    (folder / "second").write_text("continue\nwatch order\nmark here\n")
    (folder / "figures.toml").write_text(
        '[[figure]]\nname = "a"\nmodel = "model.xml"\nview = "ports"\nfile = ["a.svg", "a.png"]\n'
    )


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by their path, without what the commands only read."""
    given = {"model.xml", "model.bin", "inputs.npz", "others.npz", "first", "second", "figures.toml"}
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and str(path.relative_to(folder)) not in given
    }


def whole_files(folder: Path, old: Contents, new: Contents) -> list[str]:
    """Each file is the old or the new one, and nothing else is there."""
    now = contents(folder)
    wrong = [f"{name} is left" for name in now if name not in {*old, *new}]
    wrong += [f"{name} is gone" for name in old if name not in now]
    return wrong + [f"{name} is neither" for name in now if now[name] not in (old.get(name), new.get(name))]


def whole_set(folder: Path, old: Contents, new: Contents) -> list[str]:
    """All files are the old ones, or all are the new ones."""
    now = contents(folder)
    return [] if now in (dict(old), dict(new)) else whole_files(folder, old, new) or ["files of two runs are mixed"]


def _recording(folder: Path, old: Contents, _new: Contents) -> list[str]:
    return _database(folder, "run.sqlite", old, _read_recording)


def _read_recording(path: Path) -> None:
    with open_recording(path) as recording:
        recording.inputs()


def _session(folder: Path, old: Contents, _new: Contents) -> list[str]:
    def read(path: Path) -> None:
        with np.load(folder / "inputs.npz") as arrays:
            restore_session(open_debugger(folder / "model.xml", dict(arrays)), path)

    return _database(folder, "work.session", old, read)


def _sweep(folder: Path, old: Contents, _new: Contents) -> list[str]:
    return _database(folder, "sweep.sqlite", old, lambda path: read_about(path) and None)


def _database(folder: Path, name: str, old: Contents, read: Callable[[Path], None]) -> list[str]:
    """A database is whole and can be read; it may be absent if it was."""
    path = folder / name
    if not path.exists():
        return [f"{name} is gone"] if name in old else []
    left = [one for one in contents(folder) if one not in (name, f"{name}-wal", f"{name}-shm")]
    wrong = [f"{one} is left" for one in left]
    try:
        with sqlite3.connect(path) as connection:
            state = connection.execute("PRAGMA integrity_check").fetchone()[0]
        connection.close()
        wrong += [] if state == "ok" else [f"{name}: {state}"]
        read(path)
    except Exception as error:
        if path.stat().st_size or name in old:
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    return wrong


def _reduced(folder: Path, _old: Contents, new: Contents) -> list[str]:
    """All files are there, or none; what they hold depends on the time that there was."""
    now = contents(folder)
    if now and set(now) != set(new):
        return [f"there are {sorted(now)}"]
    return [str(problem) for problem in _problems(lambda: now and read_model(folder / "case" / "model.xml"))]


def _captured() -> int:
    """An application whose call is kept; what could not be kept is said."""
    import openvino

    with np.load(SAMPLES / "for_loop" / "inputs.npz") as arrays:
        inputs = dict(arrays)
    with stepper.capture(when="any", to="cases", most=1) as capture:
        openvino.Core().compile_model("model.xml", "CPU")(inputs)
    for text in capture.troubles:
        print(f"stepper: {text}", file=sys.stderr)
    return 2 if capture.troubles else 0


def _case(folder: Path, _old: Contents, new: Contents) -> list[str]:
    """There is a whole case, one that says what it lacks, or none."""
    cases = folder / "cases"
    wrong = [f"{one.name} is left" for one in cases.iterdir() if one.name.startswith(".")] if cases.exists() else []
    for one in cases_in(cases) if cases.exists() else ():
        is_whole = set(contents(folder)) == set(new) or (one.facts is not None and one.facts.trouble)
        wrong += [one.damage] if one.damage else [] if is_whole else [f"{one.folder.name} lacks files"]
    return wrong


def _problems(action: Callable[[], object]) -> list[Exception]:
    try:
        action()
    except Exception as error:
        return [error]
    return []


SUBJECTS: Mapping[str, Subject] = {
    "outputs": Subject(
        (*RUN, "-o", "out.npz"), whole_files, (("run", "model.xml", "--inputs", "others.npz", "-q", "-o", "out.npz"),)
    ),
    "recording": Subject((*RUN, "--trace", "run.sqlite"), _recording),
    "resumed": Subject(
        ("run", "--resume", "run.sqlite", "-q"), _recording, ((*RUN, "--trace", "run.sqlite", "--break", "swaps_next"),)
    ),
    "session": Subject(
        ("debug", "model.xml", "--inputs", "inputs.npz", "--script", "first", "--session", "work.session"), _session
    ),
    "session again": Subject(
        ("debug", "model.xml", "--script", "second", "--session", "work.session"),
        _session,
        (("debug", "model.xml", "--inputs", "inputs.npz", "--script", "first", "--session", "work.session"),),
    ),
    "figures": Subject(
        ("figures", "-q"), whole_files, (("export", "model.xml", "--view", "ports", "-q", "-o", "a.svg"),)
    ),
    "code": Subject(
        ("export", "model.xml", "--as", "numpy", "-q", "-o", "a.py"),
        whole_set,
        old={"a.py": b"old", "a.npz": b"old"},
        sample="specification_lstm",
    ),
    "reduced": Subject(
        ("reduce", "model.xml", "--inputs", "inputs.npz", "--break", "nan", "--time", "0.3", "-q", "-o", "case"),
        _reduced,
        sample="rwkv_overflow",
    ),
    "captured": Subject(_captured, _case, sample="for_loop"),
    "sweep": Subject(("sweep", "model.xml", "--inputs", "*s.npz", "--jobs", "1", "-q"), _sweep),
}
