"""The scripts of a case: one that shows the fault, and one for pytest."""

from __future__ import annotations

from string import Template
from typing import Final

from msgspec import Struct

from stepper.diagnosis.reduce.conditions import FaultKind, FoundFault


class ScriptFacts(Struct, frozen=True):
    """Facts of a script: the fault in a sentence, the names of the inputs, how many outputs are expected."""

    what: str
    inputs: tuple[str, ...]
    outputs: int
    device: str
    precision: str
    rules: str
    max_iterations: int | None
    spec: str
    error: str


_HEAD: Final = '''"""$what

It prints what is expected and what is given; the exit code is 1 as long as the fault is there. It needs $needs.
"""

import sys
from pathlib import Path

import numpy as np
'''

_OPENVINO: Final = (
    _HEAD
    + """import openvino

HERE = Path(__file__).parent
inputs = np.load(HERE / "inputs.npz")
print("OpenVINO", openvino.__version__)
core = openvino.Core()
compiled = core.compile_model(core.read_model(HERE / "model.xml"), $device, {"INFERENCE_PRECISION_HINT": $precision})
request = compiled.create_infer_request()
# The synchronous call would keep errors to itself.
request.start_async([inputs[name] for name in $inputs])
request.wait()
given = [np.array(tensor.data) for tensor in request.output_tensors]
differs = False
expected = np.load(HERE / "expected.npz")
for index in range($outputs):
    wanted, found = expected[f"output_{index}"], np.asarray(given[index])
    print(f"output {index}: expected\\n{wanted}\\ngiven\\n{found}")
    same = wanted.shape == found.shape and (
        np.allclose(found.astype(wanted.dtype), wanted, rtol=1e-4, atol=1e-5, equal_nan=True)
        if wanted.dtype.kind == "f"
        else bool((wanted == found).all())
    )
    differs |= not same
print("they differ" if differs else "they agree")
sys.exit(1 if differs else 0)
"""
)

_TWIN: Final = (
    _HEAD
    + """import stepper

HERE = Path(__file__).parent
inputs = dict(np.load(HERE / "inputs.npz"))
expected = stepper.run(HERE / "reference.xml", inputs, rules=$rules, max_iterations=$max_iterations)
given = stepper.run(HERE / "model.xml", inputs, rules=$rules, max_iterations=$max_iterations)
differs = False
for (name, wanted), found in zip(expected.items(), given.values(), strict=True):
    print(f"{name}: expected\\n{wanted}\\ngiven\\n{found}")
    differs |= wanted.shape != found.shape or not np.array_equal(wanted, found)
print("they differ" if differs else "they agree")
sys.exit(1 if differs else 0)
"""
)

_STOP: Final = (
    _HEAD.replace("import sys\n", "import subprocess\nimport sys\n").replace("\nimport numpy as np\n", "")
    + """
HERE = Path(__file__).parent
words = ["run", HERE / "model.xml", "--inputs", HERE / "inputs.npz", "--rules", $rules, "--break", $spec]
print("expected: the run comes to its end; given:", flush=True)
sys.exit(subprocess.run([sys.executable, "-m", "stepper", *words]).returncode)
"""
)

_ERROR: Final = (
    _HEAD
    + """import stepper

HERE = Path(__file__).parent
inputs = dict(np.load(HERE / "inputs.npz"))
print("expected: the run comes to its end")
try:
    print("given:", stepper.run(HERE / "model.xml", inputs, rules=$rules, max_iterations=$max_iterations))
except stepper.StepperError as error:
    print("given:", type(error).__name__, error)
    sys.exit(1)
"""
)

TEST: Final = '''"""The fault, for pytest: it fails as long as the fault is there."""

import subprocess
import sys
from pathlib import Path


def test_the_reduced_model() -> None:
    script = Path(__file__).parent / "reproduce.py"
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
'''


def needs(fault: FoundFault) -> str:
    """Return what the script of a fault needs."""
    return "openvino and numpy" if fault.program == "OpenVINO" else "stepper, whose engine shows it"


def reproduce(fault: FoundFault, facts: ScriptFacts, *, has_twin: bool) -> str:
    """Return the script that shows a fault."""
    if has_twin:
        text = _TWIN
    elif fault.program == "OpenVINO":
        text = _OPENVINO
    else:
        text = _STOP if fault.kind is FaultKind.STOP else _ERROR
    what = facts.what.replace("\\", "/").replace('"""', "'''")
    return Template(text).substitute(
        what=f"{what[:1].upper()}{what[1:]}"[:400].rstrip('"'),
        needs=needs(fault),
        inputs=repr(list(facts.inputs)),
        outputs=facts.outputs,
        device=repr(facts.device),
        precision=repr(facts.precision),
        rules=repr(facts.rules),
        max_iterations=facts.max_iterations,
        spec=repr(facts.spec),
    )
