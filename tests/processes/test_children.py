"""Files of the working folder that are named like modules of Python change nothing, in no process that is started."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tables import few

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_models" / "for_loop"
NAMES = ("json", "types", "enum", "multiprocessing", "numpy", "re", "gc", "openvino", "stepper", "tui", "functools")
PROGRAM = "import sys; from stepper.cli import main; sys.exit(main())"
COMMANDS = {
    "run": ["run", "model.xml", "--inputs", "inputs.npz"],
    "sweep": ["sweep", "model.xml", "--random", "2", "--jobs", "1", "--out", "OUT"],
    "generate": ["sweep", "model.xml", "--generate", "own:made", "--count", "2", "--jobs", "1", "--out", "OUT"],
    "check": ["check", "model.xml", "--inputs", "inputs.npz"],
    "compare": ["compare", "model.xml", "--with", "openvino", "--inputs", "inputs.npz"],
    "reduce": ["reduce", "model.xml", "--inputs", "inputs.npz", "--break", "balance_next > 1e9", "-o", "OUT"],
}
OWN = """
import json
import helper
def made(number):
    return helper.made(number)
"""
HELPER = """
import numpy as np
def made(number):
    return {"principal": np.full(3, 100 + number, np.float32), "rate": np.full(3, 0.5, np.float32)}
"""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A model with a generator in two folders, of which one has files named like modules of Python."""
    for name in ("plain", "hostile"):
        shutil.copytree(SAMPLE, tmp_path / name, ignore=lambda folder, _names: [Path(folder).name + ".svg"])
        (tmp_path / name / "own.py").write_text(OWN)
        (tmp_path / name / "helper.py").write_text(HELPER)
    for name in NAMES:
        (tmp_path / "hostile" / f"{name}.py").write_text(f"open({str(tmp_path / 'PWNED')!r}, 'w').close()\n1 / 0\n")
    return tmp_path / "plain", tmp_path / "hostile"


@pytest.mark.parametrize("name", few(1, COMMANDS))
def test_files_named_like_modules_change_no_answer(folders: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    plain, hostile = (_answer(folder, COMMANDS[name], tmp_path / f"{folder.name}-out") for folder in folders)
    assert not (tmp_path / "PWNED").exists()
    assert hostile == plain
    assert "No module named" not in plain[2] and "Traceback" not in plain[2]


def _answer(folder: Path, words: list[str], out: Path) -> tuple[int, str, str]:
    words = [str(out) if word == "OUT" else word for word in words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-c", PROGRAM, *words]
    found = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    return found.returncode, found.stdout.replace(str(out), "OUT"), found.stderr.replace(str(out), "OUT")


def test_python_m_stepper_leaves_the_working_folder_out(folders: tuple[Path, Path], tmp_path: Path) -> None:
    for name in ("types", "functools", "re", "enum", "stepper"):  # Python itself imports these before it runs a module
        (folders[1] / f"{name}.py").unlink()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "stepper", *COMMANDS["run"]]
    found = subprocess.run(command, cwd=folders[1], env=environment, capture_output=True, timeout=120, check=False)
    assert found.returncode == 0 and not (tmp_path / "PWNED").exists(), found.stderr


STARTERS = {
    "stepper/processes/starting.py": "the one place",
    "stepper/sweep/sweeping.py": "multiprocessing, in the environment of the one place; looks at its parent",
    "stepper/cases/capturing.py": "hooks into the application's own processes",
    "stepper/repair/side_by_side.py": "forks of this process, which import nothing anew",
    "stepper/diagnosis/reduce/reduced_case.py": "texts of scripts for the user",
}


def test_python_is_started_in_one_place() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for part in ("stepper", "tui")
        for path in (ROOT / part).rglob("*.py")
        if str(path.relative_to(ROOT)) not in STARTERS
        and re.search("executable|multiprocessing|ProcessPool", text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if _starts_python(node)
    }
    assert not found, f"start Python with stepper.processes.starting: {sorted(found)}"


def _starts_python(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name("sys"), attr="executable"):
            return True
        case ast.Import(names):
            return any(one.name.partition(".")[0] == "multiprocessing" for one in names)
        case ast.ImportFrom(module=str(module), names=names):
            is_pool = module == "concurrent.futures" and any(one.name == "ProcessPoolExecutor" for one in names)
            return module.partition(".")[0] == "multiprocessing" or is_pool
    return False
