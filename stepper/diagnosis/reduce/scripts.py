"""The scripts of a case: one that shows the fault, and one for pytest.

Where OpenVINO shows it, the script needs that and numpy alone, and has inputs and expected outputs in itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.element_types import Array
from stepper.tensors.tolerances import Tolerance

MOST_NUMBERS: Final = 1000
"""Elements of a tensor that stand in the script; those of a larger one are in a file."""


class ScriptTensor(Struct, frozen=True):
    """A tensor of a script: what numpy alone can hold of it, and its place in the file that has it, too."""

    value: Array
    file: str
    key: str


class ScriptOutput(Struct, frozen=True):
    """An output: what is expected, and within which tolerance."""

    tensor: ScriptTensor
    tolerance: Tolerance


class ScriptFacts(Struct, frozen=True):
    """Facts of a script: the fault in a sentence, inputs and expected outputs, and how both are run.

    `spec` is the breakpoint of a run that stops.
    """

    what: str
    inputs: tuple[ScriptTensor, ...]
    outputs: tuple[ScriptOutput, ...]
    device: str
    precision: str
    extensions: tuple[str, ...]
    rules: str
    max_iterations: int | None
    engine: str
    spec: str


_HEAD: Final = '''"""$what

It prints what is expected and what is given; the exit code is 1 as long as the fault is there.
It needs $needs.
"""

import sys
from pathlib import Path

import numpy as np
'''

_RUN: Final = (
    _HEAD
    + """import openvino

HERE = Path(__file__).parent
INPUTS = $inputs
$expected
print("OpenVINO", openvino.__version__)
core = openvino.Core()
$extensions
try:
    model = core.read_model(HERE / "model.xml")
    compiled = core.compile_model(model, $device, {"INFERENCE_PRECISION_HINT": $precision})
    request = compiled.create_infer_request()
    request.start_async(INPUTS)  # the synchronous call would keep errors to itself
    request.wait()
except RuntimeError as error:
    print("expected: it runs; given:", error)
    sys.exit(1)
given = [np.array(tensor.data) for tensor in request.output_tensors]
"""
)

_OPENVINO: Final = (
    _RUN
    + """differs = len(given) != len(EXPECTED)
for index, (found, (wanted, relative, absolute)) in enumerate(zip(given, EXPECTED)):
    print(f"output {index}: expected\\n{wanted}\\ngiven\\n{found}")
    if wanted.shape != found.shape:
        differs = True
    elif wanted.dtype.kind == "f":
        differs |= not np.allclose(found.astype(wanted.dtype), wanted, rtol=relative, atol=absolute, equal_nan=True)
    else:
        differs |= not np.array_equal(found.astype(wanted.dtype), wanted)
print("they differ" if differs else "they agree")
sys.exit(1 if differs else 0)
"""
)

_NOT_FINITE: Final = (
    _RUN
    + """is_bad = False
for index, found in enumerate(given):
    print(f"output {index}: expected\\nfinite numbers\\ngiven\\n{found}")
    is_bad |= found.dtype.kind == "f" and not np.isfinite(found).all()
print("not finite" if is_bad else "all finite")
sys.exit(1 if is_bad else 0)
"""
)

_OWN: Final = (
    _HEAD
    + """
import stepper

HERE = Path(__file__).parent
inputs = dict(np.load(HERE / "inputs.npz"))
"""
)

_TWIN: Final = (
    _OWN
    + """settings = {"rules": $rules, "max_iterations": $max_iterations}
expected = stepper.run(HERE / "reference.xml", inputs, **settings)
given = stepper.run(HERE / "model.xml", inputs, **settings)
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
words += ["--engine", $engine]
print("expected: the run comes to its end; given:", flush=True)
sys.exit(subprocess.run([sys.executable, "-P", "-m", "stepper", *words]).returncode)
"""
)

_ERROR: Final = (
    _OWN
    + """print("expected: the run comes to its end")
try:
    print("given:", stepper.run(HERE / "model.xml", inputs, rules=$rules, max_iterations=$max_iterations))
except stepper.StepperError as error:
    print("given:", type(error).__name__, error)
    sys.exit(1)
"""
)

TEST: Final = '''"""The fault, for pytest: it fails as long as the fault is there, and passes when it is mended."""

import subprocess
import sys
from pathlib import Path


def test_the_reduced_model() -> None:
    script = Path(__file__).parent / "reproduce.py"
    run = subprocess.run([sys.executable, "-P", str(script)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
'''


def with_openvino(facts: ScriptFacts, *, wants_finite: bool = False) -> str:
    """Return the script that runs a model in OpenVINO; `wants_finite`: any finite numbers are as expected."""
    return _filled(_NOT_FINITE if wants_finite else _OPENVINO, facts, "openvino and numpy")


def with_own_engine(facts: ScriptFacts, *, has_twin: bool) -> str:
    """Return the script that runs a model in our engine: beside its twin, to a breakpoint, or to an error."""
    text = _TWIN if has_twin else _STOP if facts.spec else _ERROR
    return _filled(text, facts, "stepper, whose engine shows it")


def _filled(text: str, facts: ScriptFacts, needs: str) -> str:
    what = facts.what.replace("\\", "/").replace('"""', "'''")
    said = [f"core.add_extension({one!r})" for one in facts.extensions]
    return Template(text).substitute(
        what=f"{what[:1].upper()}{what[1:]}"[:400].rstrip('"'),
        needs=needs,
        inputs=_listed([_text(one) for one in facts.inputs]),
        expected="EXPECTED = " + _listed([_output(one) for one in facts.outputs]) if text is _OPENVINO else "",
        extensions="\n".join(said),
        device=repr(facts.device),
        precision=repr(facts.precision),
        rules=repr(facts.rules),
        max_iterations=facts.max_iterations,
        engine=repr(facts.engine),
        spec=repr(facts.spec),
    )


def _listed(items: Sequence[str]) -> str:
    return f"[{''.join(f'{chr(10)}    {item},' for item in items)}{chr(10) if items else ''}]"


def _output(one: ScriptOutput) -> str:
    return f"({_text(one.tensor)}, {one.tolerance.relative!r}, {one.tolerance.absolute!r})"


def _text(tensor: ScriptTensor) -> str:
    """Return an expression that gives a tensor."""
    value = tensor.value
    if value.size > MOST_NUMBERS:
        return f"np.load(HERE / {tensor.file!r})[{tensor.key!r}]"
    kind = "np.str_" if value.dtype.kind == "U" else f"np.{value.dtype.name}{'_' if value.dtype == bool else ''}"
    if not value.size:
        return f"np.zeros({value.shape}, {kind})"
    if value.size > 1 and value.dtype.kind != "U" and bool((value == value.reshape(-1)[0]).all()):
        return f"np.full({value.shape}, {_number(value.reshape(-1)[0])}, {kind})"
    numbers = np.array2string(
        value, separator=", ", threshold=value.size + 1, max_line_width=100, prefix=" " * 13, formatter={"all": _number}
    )
    return f"np.array({numbers}, {kind})"


def _number(number: Any) -> str:
    """Return a number as Python reads it, in the fewest digits that are it in its own type."""
    if isinstance(number, str | np.str_ | bool | np.bool_ | np.integer | int):
        return repr(number.item() if isinstance(number, np.generic) else number)
    if np.isnan(number):
        return "np.nan"
    if np.isinf(number):
        return "np.inf" if number > 0 else "-np.inf"
    return str(number)
