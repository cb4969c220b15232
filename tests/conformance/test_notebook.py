"""The widget in JupyterLab and marimo, which a browser drives, and in a page that was exported.

STEPPER_CLIENTS=all has them, as .ci/run does; else nothing is fetched. STEPPER_SCREENSHOTS=FOLDER keeps pictures.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.npm_packages import CHROMIUM, SECONDS, installed

ROOT = Path(__file__).parents[2]
DRIVE = Path(__file__).parent / "notebook" / "drive.js"
NEEDED = ("anywidget", "jupyterlab", "nbclient", "nbconvert")
PORT = 18871
CELLS = (
    'import numpy as np, stepper\ndebugger = stepper.Debugger("model.xml", dict(np.load("inputs.npz")))',
    "widget = debugger.widget()\nwidget",
    "debugger.first()\ndebugger.goto('time_mixing@2')\nwidget",
)
MARIMO = """import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo, numpy as np, stepper
    debugger = stepper.Debugger("model.xml", dict(np.load("inputs.npz")))
    widget = mo.ui.anywidget(debugger.widget())
    widget
    return


if __name__ == "__main__":
    app.run()
"""

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in NEEDED), reason=f"{', '.join(NEEDED)}, of the extra dev, are not installed"
)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("browser"), "puppeteer-core@24", browser=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, a notebook and the same for marimo."""
    import nbformat

    folder = tmp_path_factory.mktemp("notebooks")
    for name in ("model.xml", "model.bin", "inputs.npz"):
        shutil.copy(ROOT / "sample_models" / "rwkv_overflow" / name, folder)
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [nbformat.v4.new_code_cell(one) for one in CELLS]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), folder / "loop.ipynb")
    (folder / "loop.py").write_text(MARIMO)
    return folder


@contextmanager
def served(folder: Path, port: int, *words: str) -> Iterator[None]:
    """A server, until it answers; ended with all that it started."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JUPYTER_CONFIG_DIR": str(folder / "config")}
    log = (folder / f"{port}.log").open("wb")
    with (
        log,
        subprocess.Popen(
            [sys.executable, *words], cwd=folder, env=environment, stdout=log, stderr=log, process_group=0
        ) as server,
    ):
        try:
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


def driven(modules: Path, folder: Path, address: str, theme: str = "light") -> Mapping[str, Any]:
    """What the notebook showed at each step."""
    words = ["node", str(DRIVE), str(modules), str(CHROMIUM), address, str(folder), theme]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    if kept := os.environ.get("STEPPER_SCREENSHOTS"):
        place = Path(kept) / ("lab" if "/lab/" in address else "marimo")
        place.mkdir(exist_ok=True)
        for picture in folder.glob("*.png"):
            shutil.copy(picture, place)
    return {one["step"]: one for one in map(json.loads, done.stdout.splitlines())}


def holds(steps: Mapping[str, Any]) -> None:
    """A person finds the NaN, its story, the values of another iteration, and an iteration of the overview."""
    assert steps["start"]["boxes"] > 20 and steps["start"]["columns"] == 12 * 7
    nan = steps["nan"]
    assert nan["reasons"][0].startswith("NaN appears in Divide 'wkv' in iteration 8")
    assert nan["iteration"] == "8" and nan["most"] == "11" and nan["now"].endswith("::wkv")
    assert "first here" in steps["story"]["story"] and "embedded[7,6]" in steps["story"]["story"]
    assert steps["slider"]["iteration"] == "5" and steps["slider"]["milliseconds"] < 5_000
    assert steps["value"]["chosen"].endswith("token_part") and steps["value"]["value"].startswith("f32[1,8]")
    assert steps["overview"]["iteration"] == "3"
    assert steps["overview"]["errors"] == [] and not any(one.get("twice") for one in steps.values())


def shown_twice(again: Mapping[str, Any]) -> None:
    """The cell that shows the widget again has moved the run before: both views show that, and what either asks."""
    assert [one["place"].endswith("#2") for one in again["again"]] == [True, True]
    first, second = again["views"]
    assert first == second and first["now"].endswith("::token_part"), "the first operation of the body"
    assert again["errors"] == []


def test_a_notebook_of_jupyterlab_shows_the_widget_and_it_answers(modules: Path, folder: Path) -> None:
    words = ("-m", "jupyterlab", "--no-browser", "--allow-root", "--port", str(PORT), "--ServerApp.port_retries=0")
    words += ("--IdentityProvider.token=", f"--ServerApp.root_dir={folder}", "--LabApp.news_url=None")
    with served(folder, PORT, *words):
        steps = driven(modules, folder, f"http://127.0.0.1:{PORT}/lab/tree/loop.ipynb?reset")
    holds(steps)
    shown_twice(steps["again"])


@pytest.mark.skipif(find_spec("marimo") is None, reason="marimo, of the extra dev, is not installed")
def test_marimo_shows_the_widget_and_it_answers(modules: Path, folder: Path) -> None:
    words = ("-m", "marimo", "run", "loop.py", "--headless", "--host", "127.0.0.1", "--port", str(PORT + 1))
    with served(folder, PORT + 1, *words, "--no-token"):
        holds(driven(modules, folder, f"http://127.0.0.1:{PORT + 1}/"))


def test_an_exported_page_has_the_picture_without_a_kernel_and_without_a_network(folder: Path) -> None:
    words = ["-m", "nbconvert", "--to", "html", "--execute", "--ExecutePreprocessor.store_widget_state=False"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *words, "loop.ipynb"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr.decode()
    page = (folder / "loop.html").read_text(encoding="utf-8")
    assert 'class="stepper-overview"' in page and page.count("data:image/png;base64") >= 7
    assert "exp(89.2) &gt; f32 maximum exp(88.72)" in page and 'class="stepper s' in page
