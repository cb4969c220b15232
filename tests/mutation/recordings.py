"""Seeded damage to recordings and sessions, and the commands that read them: `outcome(seed, folder)`.

A file is damaged in its bytes, in cells, rows, or JSON. Some damage is sealed with right checksums, as only somebody
who means harm does. What is not sealed must not change an answer of a file of this version.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import sqlite3
import tarfile
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import stepper
from stepper.cli.cli_program import main
from stepper.debug.breakpoints.data_breakpoints import break_description
from stepper.debug.debugger import Debugger
from stepper.engine.frames import Every
from stepper.errors import StepperError
from stepper.recording import Pace, open_recording
from stepper.recording.file import STEPS
from stepper.session.session_files import save_session
from tests.engine.subjects import SUBJECTS
from tests.mutation.examine import LONGEST_MESSAGE, Outcome
from tests.recording.recorded import SAMPLES, Case, case, sample, seal

ARCHIVES = Path(__file__).parents[1] / "recording" / "versions"
SCRIPT = "info breakpoints\nnext\ncontinue\n"
NUMBERS = (0, 1, -1, 2, 63, 64, 65, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
VALUES: tuple[Any, ...] = (
    *NUMBERS,
    *(
        None,
        1.5,
        -0.0,
        1e300,
        float("inf"),
        b"",
        b"\xff\xfe",
        "",
        "'\0",
        "é" * 50,
        "\x1b[31m",
        "[]",
        "null",
        "{}",
        "[[]]",
    ),
    *('"a"', "[1e999]", "[-1]", "[4000000000, 4000000000]", '{"blob": 1}', "f32", "string", "body", "then_body"),
)
_READING = 5
"""Of the commands that read a mutant, how many are chosen."""


@dataclass(frozen=True, slots=True)
class Base:
    """A sound file, the files beside it, and the commands that read it, each as words with FILE for its path."""

    content: bytes
    beside: dict[str, bytes]
    commands: tuple[tuple[str, ...], ...]
    is_present: bool
    """True if it has the present schema, where each row has a checksum."""


SESSION = ("debug", "model.xml", "--session", "FILE", "--inputs", "inputs.npz", "--no-init", "--script", "script.txt")
COMPARE = ("compare", "model.xml", "--with", "FILE", "--inputs", "inputs.npz", "-q")
ANY = (
    ("print", "FILE", "@-1"),
    ("print", "FILE", "*", "--json"),
    ("print", "FILE", "*", "--stats", "--csv"),
    ("find", "FILE", "nan", "all"),
    ("find", "FILE", "inf", "last", "--json"),
    ("export", "FILE", "--as", "json", "-o", "-"),
    COMPARE,
    (*COMPARE, "--per-op"),
    ("show", "FILE"),
)
"""Commands for a recording of any model."""
NESTED = (
    *ANY,
    ("print", "FILE", "swaps_next"),
    ("print", "FILE", "passes@0::swaps_next@2:"),
    ("print", "FILE", "passes::order@1:"),
    ("find", "FILE", "swaps_next > 1 and passes_done == 0", "all"),
    SESSION,
)
OF_SESSION = (
    ("print", "FILE", "*"),
    ("find", "FILE", "nan", "all"),
    ("export", "FILE", "--as", "json", "-o", "-"),
    COMPARE,
    ("debug", "model.xml", "--session", "FILE", "--no-init", "--script", "script.txt"),
)
RESUME = ("run", "--resume", "FILE", "-q")
"""Carried out last: it writes to the file."""


@cache
def bases() -> dict[str, Base]:
    """All sound files by name, in a fixed order."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder, given = Path(name), sample("nested_loop")
        for file in ("model.xml", "model.bin", "inputs.npz"):
            shutil.copy(SAMPLES / "nested_loop" / file, folder)
        beside = {path.name: path.read_bytes() for path in folder.iterdir()} | {"script.txt": SCRIPT.encode()}
        given = Case(stepper.compile_model(stepper.read_model(folder / "model.xml")), given.inputs)
        given.recorded(folder / "whole.sqlite")
        given.recorded(folder / "statistics.sqlite", "stats")
        with given.recorder(folder / "interrupted.sqlite", "all", Pace(1000, 1)) as recorder:
            while recorder.machine.tick < 80:
                recorder.after(recorder.machine.advance(Every.LOOP, 80))
            recorder.snapshot()
        debugger = Debugger.of(given.machine(), given.inputs)
        debugger.breakpoints.add(break_description("swaps_next if swaps_next > 1"))
        debugger.continue_()
        debugger.watches.add("order", debugger.timeline)
        save_session(debugger, folder / "work.session")
        for kind in ("whole.sqlite", "statistics.sqlite", "interrupted.sqlite", "work.session"):
            found[kind] = Base((folder / kind).read_bytes(), beside, _commands(kind), True)
    for kind in ("rwkv_overflow", "branch in a loop", "loop in a branch"):
        with tempfile.TemporaryDirectory() as name:
            found[kind] = _recorded(kind, Path(name))
    for version in sorted(STEPS):
        with tarfile.open(ARCHIVES / f"schema_{version}.tar.xz") as archive:
            files = {one.name: archive.extractfile(one).read() for one in archive.getmembers()}  # type: ignore[union-attr]
        for kind in ("whole.sqlite", "interrupted.sqlite", "work.session"):
            found[f"{kind} of schema {version}"] = Base(files[kind], beside | files, _commands(kind), False)
    return found


def _recorded(kind: str, folder: Path) -> Base:
    """The recording of the run of a sample, or of a model of the tests of the engine."""
    if kind in SUBJECTS:
        model = SUBJECTS[kind].graph().read(folder).path
        np.savez(folder / "inputs.npz", **{str(index): one for index, one in enumerate(SUBJECTS[kind].inputs)})
        for path in (model, model.with_suffix(".bin")):
            path.rename(folder / f"model{path.suffix}")
    else:
        for file in ("model.xml", "model.bin", "inputs.npz"):
            shutil.copy(SAMPLES / kind / file, folder)
    beside = {path.name: path.read_bytes() for path in folder.iterdir()}
    with np.load(folder / "inputs.npz") as given:
        inputs: dict[Any, Any] = {int(key) if key.isdigit() else key: array for key, array in given.items()}
    case(stepper.read_model(folder / "model.xml"), inputs).recorded(folder / "run.sqlite", pace=Pace(1000, 2))
    return Base((folder / "run.sqlite").read_bytes(), beside, (*ANY, RESUME), True)


def _commands(kind: str) -> tuple[tuple[str, ...], ...]:
    return (*OF_SESSION, SESSION) if kind.endswith("session") else (*NESTED, RESUME)


# --- damage ---------------------------------------------------------------------------------------------------------

Chance = random.Random
Kind = Callable[[Chance, Path], object]


def flip_bits(chance: Chance, path: Path) -> None:
    """A few bits anywhere, mostly where something is."""
    content = bytearray(path.read_bytes())
    used = [place for place in range(len(content)) if content[place]] if chance.random() < 0.8 else range(len(content))
    for _ in range(chance.choice((1, 1, 1, 2, 8, 64))):
        content[chance.choice(used)] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def overwrite(chance: Chance, path: Path) -> None:
    """A piece with zeros, noise, or another piece of the file."""
    content = bytearray(path.read_bytes())
    length = chance.choice((1, 2, 8, 64, 512, 8192))
    begin, other = chance.randrange(len(content)), chance.randrange(len(content))
    content[begin : begin + length] = chance.choice(
        (bytes(length), chance.randbytes(length), content[other : other + length])
    )
    path.write_bytes(content)


def cut_short(chance: Chance, path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])


def change_cell(chance: Chance, path: Path) -> None:
    """One cell, or one column, becomes another value, often of another type."""
    with _opened(path) as connection:
        table, row = _any_row(chance, connection)
        column = chance.choice([name for (name,) in _columns(connection, table)])
        value = chance.choice(VALUES)
        (old,) = connection.execute(
            f"SELECT CAST({column} AS BLOB) FROM {table} WHERE rowid = ?", (row,)
        ).fetchone() or (None,)
        where = chance.choice(("WHERE rowid = ?", "WHERE rowid = ?", "WHERE rowid >= ?"))
        new = chance.choice(
            ("?", "?", f"{column} + 1", f"-{column}", "CAST(x'41ff' AS TEXT)", f"CAST({column} AS TEXT)")
        )
        given = (value, row) if new == "?" else (row,)
        connection.execute(f"UPDATE OR IGNORE {table} SET {column} = {new} {where}", given)
        del old


def remove_rows(chance: Chance, path: Path) -> None:
    with _opened(path) as connection:
        table, row = _any_row(chance, connection)
        connection.execute(f"DELETE FROM {table} WHERE rowid {chance.choice(('=', '=', '>', '<'))} ?", (row,))


def exchange_rows(chance: Chance, path: Path) -> None:
    """A row takes the place of another, but for its key. In a table without a key that is a row that is gone."""
    with _opened(path) as connection:
        table, row = _any_row(chance, connection)
        if not any(column[5] for column in connection.execute(f"PRAGMA table_info({table})")):
            return
        other = _row_of(chance, connection, table)
        names = [name for (name,) in _columns(connection, table)][1:]
        values = connection.execute(f"SELECT {', '.join(names)} FROM {table} WHERE rowid = ?", (other,)).fetchone()
        changes = ", ".join(f"{name} = ?" for name in names)
        connection.execute(f"UPDATE OR IGNORE {table} SET {changes} WHERE rowid = ?", (*values, row))


def edit_json(chance: Chance, path: Path) -> None:
    """A part of the JSON in a cell."""
    with _opened(path) as connection:
        table, column = chance.choice(JSON)
        row = _row_of(chance, connection, table)
        found = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()
        if found is None:
            return
        with contextlib.suppress(ValueError):
            text = json.dumps(_edited(chance, json.loads(found[0])))
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = ?", (text, row))


def _edited(chance: Chance, data: Any) -> Any:
    parts = list(data) if isinstance(data, dict) else list(range(len(data))) if isinstance(data, list) else []
    if not parts or chance.random() < 0.2:
        odd = (None, True, 1.5, "", "x" * 100, [], {}, [[]], {"blob": 1}, 10**30, *NUMBERS)
        return chance.choice(odd)
    part = chance.choice(parts)
    if chance.random() < 0.1:
        del data[part]
    else:
        data[part] = _edited(chance, data[part])
    return data


JSON = (
    *(("levels", "layers"), ("ports", "names"), ("ports", "results"), ("forms", "shape"), ("inputs", "value")),
    *(("outputs", "value"), ("kept", "content"), ("kept", "content"), ("snapshots", "state"), ("snapshots", "state")),
    *(("meta", "value"), ("meta", "value")),
)


def _sealed(kind: Kind) -> Kind:
    def sealed(chance: Chance, path: Path) -> None:
        kind(chance, path)
        with _opened(path) as connection:
            seal(connection)

    sealed.__name__ = f"sealed {getattr(kind, '__name__', '')}"
    return sealed


KINDS: dict[Kind, int] = {
    flip_bits: 6,
    overwrite: 2,
    cut_short: 1,
    change_cell: 4,
    exchange_rows: 1,
    remove_rows: 2,
    edit_json: 1,
    _sealed(change_cell): 8,
    _sealed(exchange_rows): 2,
    _sealed(edit_json): 6,
}
"""Kinds of damage, and how often each comes."""
_HARMLESS = (flip_bits, overwrite, change_cell, exchange_rows, edit_json)
"""Damage that a file with checksums notices, or that changes no answer."""


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    try:
        with (
            contextlib.suppress(sqlite3.Error, IndexError, ValueError, TypeError),
            connection,
        ):  # an earlier damage may have left no database
            yield connection
    finally:
        connection.close()


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[str]]:
    return connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()


def _any_row(chance: Chance, connection: sqlite3.Connection) -> tuple[str, int]:
    tables = [
        name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    ]
    filled = [name for name in tables if connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()]
    table = chance.choice(filled)
    return table, _row_of(chance, connection, table)


def _row_of(chance: Chance, connection: sqlite3.Connection, table: str) -> int:
    return int(chance.choice(connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid LIMIT 1000").fetchall())[0])


def _plan(seed: int) -> tuple[str, list[Kind], Chance]:
    chance = random.Random(seed)
    name = chance.choice(list(bases()))
    count = chance.choice((1, 1, 1, 2, 4))
    return name, chance.choices(list(KINDS), list(KINDS.values()), k=count), chance


def describe(seed: int) -> str:
    """What the mutant of this seed is: `whole.sqlite: flip_bits`."""
    name, kinds, _chance = _plan(seed)
    return f"{name}: {', '.join(getattr(kind, '__name__', '') for kind in kinds)}"


def make(seed: int, folder: Path) -> Path:
    """Make the mutant of this seed in the folder, with the files that its commands need."""
    name, kinds, chance = _plan(seed)
    base = bases()[name]
    path = lay_out(base, folder)
    for kind in kinds:
        kind(chance, path)
    return path


def lay_out(base: Base, folder: Path) -> Path:
    for old in folder.iterdir():
        old.unlink()
    for file, content in base.beside.items():
        (folder / file).write_bytes(content)
    path = folder / "mutant"
    path.write_bytes(base.content)
    return path


# --- reading it -----------------------------------------------------------------------------------------------------


def outcome(seed: int) -> Outcome:
    """Make the mutant of this seed and read it with some of the commands: the first fault, or what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        return _outcome(seed, Path(folder))


def _outcome(seed: int, folder: Path) -> Outcome:
    name, kinds, chance = _plan(seed)
    path, base = make(seed, folder), bases()[name]
    content = path.read_bytes()
    is_same = base.is_present and set(kinds) <= set(_HARMLESS)
    found = Outcome("ran")
    for words in (*chance.sample(base.commands[:-1], _READING), base.commands[-1]):
        code, answer, one = read(words, folder)
        what = " ".join(words)
        if one.is_fault:
            return Outcome(one.kind, f"{what}: {one.text}")
        if code in (0, 1) and is_same and (code, answer) != _sound(name, words):
            return Outcome("wrong", f"{what}: of the sound file\n{_sound(name, words)}\nof this one\n{(code, answer)}")
        found = one if one.kind == "refused" else found
        _put_back(path, content)
    return found


def _put_back(path: Path, content: bytes) -> None:
    """Undo what a command wrote."""
    for log in path.parent.glob(f"*{path.name}*"):
        log.unlink()
    path.write_bytes(content)


@cache
def _sound(name: str, words: tuple[str, ...]) -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as folder:
        lay_out(bases()[name], Path(folder))
        code, out, _outcome = read(words, Path(folder))
    return code, out


def read(words: tuple[str, ...], folder: Path) -> tuple[int, str, Outcome]:
    """Carry out a command in this process: exit code, stdout, and what came of it."""
    given = [str(folder / ("mutant" if word == "FILE" else word)) if _is_file(word) else word for word in words]
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    code = 0
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("always")
        try:
            code = _shown(Path(given[1])) if words[0] == "show" else main(given)
        except StepperError as error:
            code = error.exit_code
            print(f"stepper: {error}", file=err)
        except SystemExit as end:
            code = int(end.code or 0)
        except Exception:
            return -1, "", Outcome("traceback", traceback.format_exc())
    said = err.getvalue()
    out.flush()
    answer = out.buffer.getvalue().decode().replace(str(folder), "")
    if caught:
        return code, "", Outcome("warning", "\n".join(f"{one.filename}:{one.lineno}: {one.message}" for one in caught))
    if code in (0, 1):
        return code, answer, Outcome("ran")
    lines = said.splitlines()
    errors = [line for line in lines if line.startswith("stepper: ")]
    is_right = code in (2, 3, 4, 5) and errors and (code != 3 or "mutant" in said)  # damage names the file
    if not is_right or len(said) > LONGEST_MESSAGE or not said.replace("\n", "").isprintable():
        return code, "", Outcome("message", f"exit code {code}: {said[:3000]!r}")
    return code, "", Outcome("refused", said)


def _is_file(word: str) -> bool:
    return word == "FILE" or word in ("model.xml", "inputs.npz", "script.txt")


def _shown(path: Path) -> int:
    """What notebooks, editors and the application ask of a file."""
    with open_recording(path) as recording:
        print(recording._repr_html_())
        machine = recording.restored().machine
        recording.loop_log(machine.compiled, machine.tick)
        print(machine.tick)
        print(len(recording.query("SELECT * FROM statistics")), len(recording.query("SELECT * FROM events")))
    return 0
