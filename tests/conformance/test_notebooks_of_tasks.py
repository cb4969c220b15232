"""The notebooks of docs/notebooks: each is carried out from its first cell to its last; files have no outputs."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 120

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("nbclient", "ipykernel", "anywidget", "openvino")),
    reason="nbclient, ipykernel, anywidget and openvino, of the extra dev, are not installed",
)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_its_first_cell_to_its_last(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FOLDER.parents[1]), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) >= 3 and not any(cell.outputs or cell.execution_count for cell in code), "outputs are not kept"
    NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(FOLDER)}}).execute()
    outputs = [output for cell in code for output in cell.outputs]
    assert len(outputs) >= 2
    assert not [one for one in outputs if one.output_type == "stream" and one.name == "stderr"]


def test_there_is_one_for_each_task() -> None:
    """But for those that are done elsewhere: in C++, and in pipelines."""
    tasks = {path.stem for path in (FOLDER.parent / "tasks").glob("*.md")} - {"it-fails-in-cpp", "use-it-in-ci"}
    assert tasks <= {path.stem for path in NOTEBOOKS}


def test_there_is_one_for_each_that_the_guide_names() -> None:
    text = (FOLDER.parent / "guide" / "notebooks.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) >= 4
    assert all(f"../notebooks/{path.name}" in text for path in NOTEBOOKS)
