"""The command opens the application: on a terminal, and where something else draws in place of one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.pseudo_terminal import shown

SAMPLE = Path(__file__).parents[2] / "sample_models" / "rwkv_overflow"


def test_the_command_opens_the_application_on_a_terminal_which_a_key_leaves() -> None:
    words = ["-m", "stepper", str(SAMPLE / "model.xml"), "--inputs", str(SAMPLE / "inputs.npz"), "--no-keep"]
    assert shown(words, b"carried", b"q").code == 0


def test_the_application_paints_for_a_browser_where_textual_serve_asks_for_it() -> None:
    web = {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "COLUMNS": "120", "ROWS": "36"}
    words = [str(SAMPLE / "model.xml"), "--inputs", str(SAMPLE / "inputs.npz"), "--no-keep"]
    arguments = [sys.executable, "-m", "stepper", *words]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(arguments, env=os.environ | web, **streams) as process:
        assert process.stdout is not None
        try:
            painted = b""
            while b"carried" not in painted:
                chunk = process.stdout.read1()
                assert chunk, process.stderr.read().decode() if process.stderr is not None else ""
                painted += chunk
        finally:
            process.kill()


def test_without_a_terminal_the_application_says_what_to_do() -> None:
    arguments = [sys.executable, "-m", "stepper", str(SAMPLE / "model.xml")]
    environment = {name: value for name, value in os.environ.items() if name != "TEXTUAL_DRIVER"}
    done = subprocess.run(arguments, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 2 and "stepper debug takes commands" in done.stderr
