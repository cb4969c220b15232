"""`%load_ext stepper` and `%stepper MODEL`, and how what the debugger answers is shown by a cell."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.diagnosis.check.checking import check_run

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "sample_models" / "rwkv_overflow"


@pytest.fixture
def debugger() -> stepper.Debugger:
    found = stepper.Debugger(SAMPLE / "model.xml", dict(np.load(SAMPLE / "inputs.npz")))
    found.break_when("nan")
    found.continue_()
    return found


@pytest.fixture
def shell() -> Any:
    pytest.importorskip("anywidget")
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    found = interactive.InteractiveShell()
    found.run_line_magic("load_ext", "stepper")
    return found


def test_a_line_makes_the_widget_of_a_model_with_the_inputs_beside_it(shell: Any, tmp_path: Path) -> None:
    for name in ("model.xml", "model.bin", "inputs.npz"):
        shutil.copy(SAMPLE / name, tmp_path)
    widget = shell.run_line_magic("stepper", f"'{tmp_path}/model.xml' --break nan")
    assert widget.ask("continue")["reasons"][0].startswith("NaN appears in Divide 'wkv'")
    assert widget.debugger.stop.iteration == 8
    other = shell.run_line_magic("stepper", f"{tmp_path}/model.xml --input *=ones --shape embedded=3,8")
    assert other.debugger.inputs[0].shape == (3, 8)


@pytest.mark.parametrize(
    ("line", "text"),
    [("", "name a model"), ("none.xml", "none.xml"), ("'a", "quotation"), ("a.xml --nothing", "--nothing")],
)
def test_a_wrong_line_is_one_sentence(shell: Any, line: str, text: str) -> None:
    usage_error = pytest.importorskip("IPython.core.error").UsageError
    with pytest.raises(usage_error, match=text):
        shell.run_line_magic("stepper", line)


def test_a_debugger_an_answer_and_findings_show_themselves_as_tables(debugger: stepper.Debugger) -> None:
    assert "<table>" in debugger._repr_html_() and "wkv" in debugger._repr_html_()
    why = debugger.why("wkv[0,3]")._repr_html_()
    assert why.startswith("<p>why ") and "<td>@7 Exp &#x27;exp_key&#x27;[0,3]</td>" in why and "embedded" in why
    run = check_run(debugger)
    assert run._repr_html_().count("<tr>") == len(run.findings)
    assert "exp(89.2) &gt; f32 maximum" in run.findings[0]._repr_html_()
