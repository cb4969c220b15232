"""Files are written whole or not at all, and never over what the run reads."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.cli import main
from stepper.errors import OutputError
from stepper.files.file_kinds import ARRAYS, COMMANDS, SVG
from stepper.files.output import OutputFile, ProtectedFiles, writing_all
from stepper.files.own_files import replacing_own
from stepper.recording import recorder
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_models" / "for_loop"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own with a model, its weights, inputs, links and a script, in which the program runs."""
    for name in ("model.xml", "model.bin", "inputs.npz"):
        shutil.copy(SAMPLE / name, tmp_path / name)
    with np.load(tmp_path / "inputs.npz") as arrays:
        np.save(tmp_path / "rate.npy", arrays["rate"])
    (tmp_path / "symbolic.npz").symlink_to(tmp_path / "model.bin")
    (tmp_path / "hard.npz").hardlink_to(tmp_path / "model.bin")
    (tmp_path / "dangling.npz").symlink_to("nowhere.npz")
    (tmp_path / "script").write_text("step\n")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


RUN = ["run", "model.xml", "--inputs", "inputs.npz", "--input", "rate=rate.npy"]
EXPORT = ["export", "model.xml", "--inputs", "inputs.npz"]
DEBUG = ["debug", "model.xml", "--inputs", "inputs.npz"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*RUN, "-o", "model.bin"], "-o model.bin: that is the weights file of the model; choose another file"),
        ([*RUN, "-o", "model.xml"], "-o model.xml: that is the model; choose another file"),
        ([*RUN, "-o", "./sub/../model.bin"], "-o sub/../model.bin: that is the weights file of the model"),
        ([*RUN, "-o", "symbolic.npz"], "-o symbolic.npz: that is the weights file of the model"),
        ([*RUN, "-o", "hard.npz"], "-o hard.npz: that is the weights file of the model"),
        ([*RUN, "-o", "inputs.npz"], "-o inputs.npz: that is the file of --inputs"),
        ([*RUN, "-o", "rate.npy"], "-o rate.npy: that is input 'rate'"),
        ([*RUN, "-o", "MODEL.BIN"], "-o MODEL.BIN: that is the weights file of the model"),
        ([*RUN, "-o", "other.xml"], "-o other.xml: .xml is the suffix of a model, and arrays would be written"),
        ([*RUN, "-o", "out.svg"], ".svg is the suffix of SVG"),
        ([*RUN, "-o", "sub"], "sub: cannot be written: it is a folder"),
        ([*RUN, "-o", "none/out.npz"], "none/out.npz: cannot be written: there is no folder"),
        ([*RUN, "--trace", "model.bin"], "--trace model.bin: that is the weights file of the model"),
        ([*RUN, "--trace", "new.xml"], "--trace new.xml: .xml is the suffix of a model"),
        ([*RUN, "--trace", "t", "-o", "t"], "-o t: that is the recording"),
        ([*RUN, "-o", "a", "--save-states", "./a"], "--save-states a: that is the file of -o"),
        ([*EXPORT, "--as", "svg", "-o", "model.xml"], "-o model.xml: that is the model"),
        ([*EXPORT, "-o", "model.xml"], "-o model.xml: that is the model"),
        ([*EXPORT, "-o", "other.xml"], "-o other.xml: .xml names no format"),
        ([*EXPORT, "--diff", "rate.npy", "--as", "svg", "-o", "rate.npy"], "-o rate.npy: that is the reference"),
        ([*EXPORT, "--as", "json", "-o", "inputs.npz"], "-o inputs.npz: that is the file of --inputs"),
        ([*DEBUG, "--session", "model.xml"], "--session model.xml: that is the model"),
        ([*DEBUG, "--script", "script", "--session", "script"], "--session script: that is the script"),
    ],
)
def test_what_a_run_reads_is_never_written_over(
    folder: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(folder)
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("stepper: ") and message in captured.err and captured.err.count("\n") == 1
    assert not captured.out and contents(folder) == before


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("history model.xml", "model.xml: that is the model"),
        ("history model.bin", "model.bin: that is the weights file of the model"),
        ("history other.bin", "other.bin: .bin is the suffix of a model, and commands would be written"),
        ("history script", "script: that is the script"),
        ("history kept", "kept: that is the session"),
        ("save rate rate.npy", "rate.npy: that is input 'rate'"),
        ("session save model.xml", "model.xml: that is the model"),
        ("session save other.bin", "other.bin: .bin is the suffix of a model"),
    ],
)
def test_commands_of_the_debugger_do_not_write_over_it_either(
    folder: Path, command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "script").write_text(f"{command}\n")
    before = contents(folder)
    assert main([*DEBUG, "--input", "rate=rate.npy", "--session", "kept", "--script", "script"]) == 2
    assert message in capsys.readouterr().err
    assert {name: content for name, content in contents(folder).items() if name != "kept"} == before


def test_sourced_scripts_and_labels_are_protected_from_then_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "more").write_text("step\n")
    (folder / "words").write_text("zero\none\n")
    for setup, name in (("source more", "more"), ("labels rate words", "words")):
        (folder / "script").write_text(f"{setup}\nhistory {name}\n")
        before = contents(folder)
        assert main([*DEBUG, "--script", "script"]) == 2
        assert f"{name}: that is a " in capsys.readouterr().err and contents(folder) == before


def test_a_recording_and_its_model_are_protected_where_the_run_goes_on_with_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, "--trace", "run.sqlite", "-q"]) == 0
    before = contents(folder)
    capsys.readouterr()
    for words in (["run", "--resume", "run.sqlite", "-o"], ["print", "run.sqlite", "@-1", "--npy"]):
        assert main([*words, "run.sqlite"]) == 2
        assert "run.sqlite: that is the recording" in capsys.readouterr().err
    assert main(["run", "--resume", "run.sqlite", "-o", "hard.npz"]) == 2
    assert "that is the weights file of the model" in capsys.readouterr().err
    assert main(["export", "run.sqlite", "--as", "svg", "-o", "run.sqlite"]) == 2
    assert "run.sqlite: that is the recording" in capsys.readouterr().err
    assert contents(folder) == before


def test_outputs_go_where_a_link_leads_and_keep_its_rights(folder: Path) -> None:
    (folder / "sub" / "out.npz").write_bytes(b"old")
    (folder / "sub" / "out.npz").chmod(0o640)
    (folder / "link.npz").symlink_to("sub/out.npz")
    assert main([*RUN, "-o", "link.npz"]) == 0
    assert (folder / "link.npz").is_symlink() and (folder / "sub" / "out.npz").stat().st_mode & 0o777 == 0o640
    with np.load(folder / "sub" / "out.npz") as arrays:
        assert "final_balance" in arrays
    assert main([*RUN, "-o", "dangling.npz"]) == 0
    assert (folder / "nowhere.npz").exists()


def test_a_device_is_written_to_and_stays_one(folder: Path) -> None:
    assert main([*RUN, "-o", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "words", [[*RUN, "-o", "/dev/full"], [*EXPORT, "--as", "svg", "-o", "/dev/full"], [*RUN, "-o", "pipe"]]
)
def test_a_full_device_is_code_2_and_the_report_of_a_finished_run_is_printed(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if words[-1] == "pipe":
        (folder / "pipe").symlink_to("/dev/full")
    assert main(words) == 2
    captured = capsys.readouterr()
    assert f"{words[-1]}: cannot be written: No space left on device" in captured.err
    assert captured.out.startswith("outputs\n") == (words[0] == "run")


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from stepper.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (200, [*RUN, "-o", "out.npz"]),
        (2000, [*EXPORT, "-o", "out.svg", "-q"]),
        (2000, [*RUN, "--trace", "out", "-q"]),
        (200, ["export", "model.xml", "--as", "numpy", "-o", "out.py", "-q"]),
    ],
)
def test_a_file_that_may_not_become_large_enough_is_code_2_and_leaves_the_old_one(
    folder: Path, limit: int, words: list[str]
) -> None:
    target = folder / words[words.index("-o" if "-o" in words else "--trace") + 1]
    if "--trace" not in words:
        target.write_bytes(b"old")
    before = contents(folder)
    command = [sys.executable, "-c", LIMITED, str(limit), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
    assert found.returncode == 2 and "Traceback" not in found.stderr
    assert f"{target.name}: cannot be written: " in found.stderr
    assert contents(folder) == before


@pytest.mark.parametrize("words", [["run", "--resume", "run.sqlite"], [*DEBUG, "--session", "run.sqlite"]])
def test_a_recording_that_cannot_grow_is_not_called_unreadable(folder: Path, words: list[str]) -> None:
    assert main([*RUN, "--trace", "run.sqlite", "-q"]) == 0
    command = [sys.executable, "-c", LIMITED, "4096", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    found = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, timeout=60, stdin=subprocess.DEVNULL
    )
    assert found.returncode == 2 and "run.sqlite: cannot be written: " in found.stderr
    assert "cannot be read" not in found.stderr and "Traceback" not in found.stderr
    assert main(["run", "--resume", "run.sqlite", "-q"]) == 0  # it is as whole as it was


def test_the_report_of_a_run_whose_end_cannot_be_recorded_is_printed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = recorder.write_tensors

    def full(connection: sqlite3.Connection, table: str, *more: Any) -> Any:
        if table == "outputs":
            raise sqlite3.OperationalError("database or disk is full")
        return write(connection, table, *more)

    monkeypatch.setattr(recorder, "write_tensors", full)
    assert main([*RUN, "--trace", "run.sqlite", "-o", "out.npz"]) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("outputs\n") and (folder / "out.npz").exists()
    assert captured.err == "stepper: run.sqlite: cannot be written: database or disk is full\n"


KILLED = """
import os, signal, sys
from pathlib import Path
from stepper.files.file_kinds import ARRAYS
from stepper.files.output import OutputFile
with OutputFile(Path(sys.argv[1]), ARRAYS).writing() as file:
    file.write(b"new" * 100_000)
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_while_writing_leaves_the_old_file_whole(tmp_path: Path) -> None:
    target = tmp_path / "out.npz"
    target.write_bytes(b"old")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, "-c", KILLED, str(target)], env=environment, check=False, timeout=60)
    assert found.returncode == -signal.SIGKILL and target.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2
    for one in tmp_path.iterdir():
        os.utime(one, (0, 0))
    with OutputFile(target, ARRAYS).writing() as file:  # the next write removes what the killed process has left
        assert len(list(tmp_path.iterdir())) == 2
        with OutputFile(target, ARRAYS).writing() as other:  # but not what a living one writes
            other.write(b"other")
        file.write(b"new")
    assert contents(tmp_path) == {"out.npz": b"new"}


def test_a_file_that_another_process_has_just_made_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer looks for leftovers in the moment between the making of a file and its lock."""
    made = tempfile.mkstemp

    def meanwhile(**how: Any) -> tuple[int, str]:
        found = made(**how)
        monkeypatch.setattr(tempfile, "mkstemp", made)
        OutputFile(tmp_path / "out.npz", ARRAYS).write(b"of the other one")
        return found

    monkeypatch.setattr(tempfile, "mkstemp", meanwhile)
    OutputFile(tmp_path / "out.npz", ARRAYS).write(b"of this one")
    assert contents(tmp_path) == {"out.npz": b"of this one"}


RACE = """
import sys
from pathlib import Path
from stepper.files.file_kinds import ARRAYS, SVG
from stepper.files.output import OutputFile, writing_all
one, folder = sys.argv[1], Path(sys.argv[2])
for number in range(60):
    OutputFile(folder / "out.npz", ARRAYS).write(f"{one} {number}".encode())
    with writing_all([OutputFile(folder / "a.svg", SVG), OutputFile(folder / "b.npz", ARRAYS)]) as files:
        for file in files:
            file.write(f"{one} {number}".encode())
"""


def test_processes_that_write_the_same_files_all_succeed_and_sets_stay_together(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [[sys.executable, "-c", RACE, str(number), str(tmp_path)] for number in range(3)]
    running = [subprocess.Popen(one, env=environment, stderr=subprocess.PIPE) for one in words]
    assert [process.communicate(timeout=120)[1] for process in running] == [b""] * 3
    found = contents(tmp_path)
    assert set(found) == {"out.npz", "a.svg", "b.npz"} and found["a.svg"] == found["b.npz"]
    assert all(content.endswith(b" 59") for content in found.values())


def test_a_file_that_another_process_moves_away_while_this_one_looks_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, exists = tmp_path / "out.npz", Path.exists
    target.write_bytes(b"old")

    def then_gone(self: Path) -> bool:
        found = exists(self)
        target.unlink(missing_ok=True)
        return found

    with OutputFile(target, ARRAYS).writing() as file:
        monkeypatch.setattr(Path, "exists", then_gone)
        file.write(b"new")
    assert contents(tmp_path) == {"out.npz": b"new"}


def test_files_of_a_set_have_the_rights_of_those_that_they_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "a.svg", tmp_path / "b.npz"
    first.touch(0o640)
    second.touch(0o600)
    monkeypatch.setattr("stepper.files.output._mode_of", lambda _path: None)  # another writer has them aside just then
    with writing_all([OutputFile(first, SVG), OutputFile(second, ARRAYS)]) as files:
        for file in files:
            file.write(b"new")
    assert [one.stat().st_mode & 0o777 for one in (first, second)] == [0o640, 0o600]


@each_row("number", range(5))
def test_a_fault_while_files_take_their_places_puts_all_of_them_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    old = {"a.svg": b"old a", "b.npz": b"old b"}
    for name, content in old.items():
        (tmp_path / name).write_bytes(content)
    calls, replace = 0, Path.replace

    def failing(path: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == number + 1:
            raise OSError(5, "Input/output error")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", failing)
    targets = [OutputFile(tmp_path / "a.svg", SVG), OutputFile(tmp_path / "b.npz", ARRAYS)]
    try:
        with writing_all(targets) as files:
            for file in files:
                file.write(b"new")
    except OutputError as error:
        assert "Input/output error" in str(error) and number < 4
        assert contents(tmp_path) == old
    else:
        assert number == 4 and contents(tmp_path) == {"a.svg": b"new", "b.npz": b"new"}


KILLED_IN_BETWEEN = """
import os, sys
from pathlib import Path
from stepper.files.file_kinds import ARRAYS, SVG
from stepper.files.output import OutputFile, writing_all
folder, left, replace = Path(sys.argv[1]), int(sys.argv[2]), Path.replace
def ending(path, target):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
    return replace(path, target)
Path.replace = ending
with writing_all([OutputFile(folder / "a.svg", SVG), OutputFile(folder / "b.npz", ARRAYS)]) as files:
    for file in files:
        file.write(b"new")
"""


@each_row("number", range(4))
def test_a_kill_while_files_take_their_places_leaves_no_set_of_two_runs(tmp_path: Path, number: int) -> None:
    for name in ("a.svg", "b.npz"):
        (tmp_path / name).write_bytes(b"old")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", KILLED_IN_BETWEEN, str(tmp_path), str(number)]
    assert subprocess.run(command, env=environment, check=False, timeout=60).returncode == 9
    found = contents(tmp_path)
    assert "a.svg" not in found or found["a.svg"] == found["b.npz"] == b"old"
    assert sum(content == b"old" for content in found.values()) == 2  # under hidden names, if need be


def test_a_file_that_a_command_did_not_write_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "rc"
    for content in (b"step", b"next"):  # its own, as it was
        with replacing_own(OutputFile(path, COMMANDS)) as file:
            file.write(content)
    path.write_bytes(b"next, and a line of the user")
    with (
        pytest.raises(OutputError, match="not one that this command wrote"),
        replacing_own(OutputFile(path, COMMANDS)) as file,
    ):
        file.write(b"step")
    assert path.read_bytes() == b"next, and a line of the user"


def test_two_files_that_belong_together_appear_together_or_not_at_all(tmp_path: Path) -> None:
    first, second = OutputFile(tmp_path / "a.svg", SVG), OutputFile(tmp_path / "b.npz", ARRAYS)

    def fail(_file: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="No space left"), writing_all((first, second)) as (one, _two):
        one.write(b"new")
        fail(_two)
    assert not list(tmp_path.iterdir())
    with writing_all((first, second)) as (one, two):
        one.write(b"1")
        two.write(b"2")
    assert contents(tmp_path) == {"a.svg": b"1", "b.npz": b"2"}


def test_constants_of_code_do_not_replace_an_archive_of_somebody_else(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "code.npz").write_bytes(b"mine")
    words = ["export", str(ROOT / "sample_models/date_normaliser/model.xml"), "--as", "numpy", "-q", "-o", "code.py"]
    assert main(words) == 2
    assert "code.npz, which exists already" in capsys.readouterr().err
    assert (folder / "code.npz").read_bytes() == b"mine" and not (folder / "code.py").exists()


@each_row("make", [os.link, os.symlink])
def test_a_protected_file_is_known_by_whatever_path_leads_to_it(
    tmp_path: Path, make: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.xml"
    file.touch()
    make(file, tmp_path / "other")
    protected = ProtectedFiles.of_model(file)
    monkeypatch.chdir(tmp_path)
    for name in ("other", "model.xml", "./model.xml", str(file), "../" + tmp_path.name + "/other"):
        with pytest.raises(OutputError, match="that is the model"):
            OutputFile(Path(name), COMMANDS, protected).check()
    # Not there yet, and yet it would become the model's.
    with pytest.raises(OutputError, match="that is the weights file of the model"):
        OutputFile(Path("Model.BIN"), COMMANDS, protected).check()
    OutputFile(Path("third"), COMMANDS, protected).check()


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out.npz"
    file.write_bytes(b"mine")
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != file)  # root may do anything
    with pytest.raises(OutputError, match=r"out\.npz: cannot be written: it may not be written"):
        OutputFile(file, ARRAYS).write(b"new")
    assert file.read_bytes() == b"mine"


WRITERS = {
    "stepper/files/output.py": "the one place",
    "stepper/recording/file.py": "SQLite writes recordings and sessions; targets are checked before",
    "stepper/files/locks.py": "locks beside the files",
    "stepper/integrations/dap/messages.py": "a token that the user alone may read, from the first moment",
    "stepper/plain_values.py": "members of an archive, whose file comes from the one place",
    "stepper/cli/cli_program.py": "the null device in place of a stream that is closed",
    "stepper/compare/compared_passes.py": "models for the runtime, in a temporary folder",
    "stepper/diagnosis/reduce/trials.py": "candidates, in a temporary folder",
    "stepper/repair/asked_function.py": "inputs for a process and the outputs that it gives, in a temporary folder",
    "stepper/diagnosis/hunt/hunting.py": "reduced models that are named, in a temporary folder",
    "stepper/openvino": "models for the runtime, in temporary folders of its own",
}
"""Modules, or packages, in which files are opened for writing, and why each may."""


def writing_calls(path: Path) -> list[int]:
    """The lines on which a file is made, or opened for anything but reading."""
    lines = []
    text = path.read_text(encoding="utf-8")
    if not re.search(r"\bopen\(|write_|mkstemp|NamedTemporaryFile|savez|tofile", text):
        return []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        arguments = [*node.args, *(word.value for word in node.keywords)]
        modes = [one.value for one in arguments if isinstance(one, ast.Constant)]
        opens = name == "open" and any(isinstance(mode, str) and mode.strip("bt+") in ("w", "a", "x") for mode in modes)
        if opens or name in ("write_text", "write_bytes", "mkstemp", "NamedTemporaryFile", "savez", "tofile"):
            lines.append(node.lineno)
    return lines


def test_nothing_else_opens_files_for_writing() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for part in ("stepper", "tui")
        for path in (ROOT / part).rglob("*.py")
        if not any(str(path.relative_to(ROOT)).startswith(allowed) for allowed in WRITERS)
        for line in writing_calls(path)
    }
    assert not found, f"write with stepper.files.output.OutputFile: {sorted(found)}"
