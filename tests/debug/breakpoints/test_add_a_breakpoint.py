"""The kind of breakpoint that the documentation adds is all that is needed: help, stops, JSON and sessions know it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.debug.debugged import SAMPLES

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "develop" / "add-a-breakpoint.md"
TANH = "aten::tanh/Tanh_1"

SCRIPT = """
import json, sys
import numpy as np
import stepper
from stepper.commands import Interpreter
from stepper.commands.command_session import stop_data

saturated = type(sys)("saturated")
sys.modules["saturated"] = saturated
exec(sys.stdin.read(), saturated.__dict__)
folder, kept, tanh = sys.argv[1:]
inputs = dict(np.load(f"{folder}/inputs.npz"))
run = stepper.open_debugger(f"{folder}/model.xml", inputs)
commands = Interpreter(run)
said = [line for line in commands.execute("help breaks").lines if "saturated" in line]
failures = []
for line in ("break saturated", "break saturatde>0.9 x"):
    try:
        commands.execute(line)
    except stepper.UsageError as error:
        failures.append(str(error))
commands.execute(f"break saturated>0.1 `{tanh}`")
stop = run.continue_()
commands.execute(f"session save {kept}")
again = Interpreter(stepper.open_debugger(f"{folder}/model.xml", inputs))
again.execute(f"session load {kept}")
reopened = again.session.debugger
print(json.dumps({
    "help": said,
    "failures": failures,
    "iteration": stop.iteration,
    "value": run.value(f"`{tanh}`").tolist(),
    "details": stop.details,
    "cause": stop_data(run)["cause"],
    "again": [str(one.description) for one in reopened.breakpoints],
    "same": reopened.stop.causes == stop.causes,
}))
"""


def test_the_kind_of_the_page_is_known_everywhere(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, SAMPLES / "date_normaliser", tmp_path / "kept.sqlite", TANH],
        input=code,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=100,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["help"][0].startswith("break saturated>0.9 x")
    unfinished, misspelt = found["failures"]
    assert "saturated>0.9" in unfinished and "near is saturated" in misspelt
    share = float((np.abs(found["value"]) > 0.99).mean())
    assert share > 0.1 and found["cause"]["share"] == share
    assert found["cause"]["form"] == "Saturated" and found["cause"]["limit"] == 0.1
    assert found["cause"]["location"]["path"][-1]["iteration"] == found["iteration"]
    assert f"Tanh '{TANH}' is saturated in iteration {found['iteration']}" in found["details"][0]
    assert found["again"] == [f"when saturated>0.1 `{TANH}`"] and found["same"]
