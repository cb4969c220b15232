"""Names of a model become names of Python in the numpy code, and never code."""

from __future__ import annotations

import ast
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

import stepper
from stepper.export.numpy_code.code_file import numpy_code
from tests.export.generated import SAMPLES, run_alone, written
from tests.models import Graph, Side, carried, joined, last
from tests.tables import each_row

NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/model.xml"))


HOSTILE = [
    '"""\nimport os\nos.system("touch pwned")\n#',
    "'); import os #",
    "\\",
    "{self}",
    "\u2028import os\r\fimport os",
    "x\x1b[2J",
    "import",
    "np",
    "sys.exit()",
    "",
    "Ünïcödé",
    "print",
]


def named(name: str) -> Graph:
    """A model in which everything that can have a name has this one."""
    written_name = escape(name, {'"': "&quot;", "\n": "&#10;", "\r": "&#13;"})
    written_name = "".join(letter for letter in written_name if letter >= " ")  # XML has no others
    net = Graph()
    x, inner = net.parameter(written_name, dims=(2,)), net.body()
    state = inner.parameter(written_name, dims=(2,))
    weights = inner.constant(np.arange(2, dtype=np.float32), name=written_name)
    erf = inner.apply("Erf", inner.apply("Add", state, weights, name=written_name), name=written_name)
    side = inner.body()
    value = side.parameter(written_name, dims=(2,))
    chosen = Side(side, [(erf, value)], [side.result(side.apply("Abs", value, name=written_name), written_name)])
    other = inner.body()
    second = other.parameter(written_name, dims=(2,))
    otherwise = Side(other, [(erf, second)], [other.result(second, written_name)])
    (output,) = inner.branch(written_name, inner.constant(True, np.bool_, written_name), chosen, otherwise)
    result = inner.result(output, written_name)
    values = net.loop(written_name, inner, 2, True, [carried(x, state, result)], [last(result), joined(result)])
    for outer in values:
        net.result(outer, written_name)
    return net


@each_row("name", HOSTILE, quick=4)
def test_no_name_becomes_code(name: str, tmp_path: Path) -> None:
    code = numpy_code(named(name).read(tmp_path))
    (tmp_path / "benign").mkdir()
    benign = numpy_code(named("benign").read(tmp_path / "benign"))
    if name:  # a constant without a name has no variable
        kinds = [type(node) for node in ast.walk(ast.parse(code.text))]
        assert kinds == [type(node) for node in ast.walk(ast.parse(benign.text))]
        assert _statements(code.text) == _statements(benign.text)
    assert code.text.isascii() or name == "Ünïcödé"
    assert "\r" not in code.text and "\x1b" not in code.text
    found = run_alone(code, tmp_path, {ast.literal_eval(_line(code.text, "INPUTS"))[0]: np.ones(2, np.float32)})
    assert len(found) == 2 and not list(tmp_path.rglob("pwned"))


def _statements(text: str) -> int:
    return sum(not line.strip().startswith("#") for line in text.split("\n"))


def _line(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"{name} = ")).removeprefix(f"{name} = ")


def test_the_file_needs_no_more_than_numpy_where_it_calls_no_kernel(tmp_path: Path) -> None:
    for name in NAMES:
        text = written(numpy_code(stepper.read_model(SAMPLES / name / "model.xml")), tmp_path, name).read_text("utf-8")
        imported = {
            alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names
        }
        assert imported <= {"sys", "itertools", "numpy"}
        assert ("from stepper" in text) == (name in ("date_normaliser",))


def test_a_name_that_reads_like_a_call_brings_no_helper_and_no_module(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", dims=(2,))
    net.result(net.apply("Tanh", x, name="softmax(ml_dtypes.sigmoid(joined_calls(itertools.x)))"), "y")
    text = numpy_code(net.read(tmp_path)).text
    assert "softmax(ml_dtypes" in text, "in a comment"
    assert "def " in text and not any(f"def {one}(" in text for one in ("softmax", "sigmoid", "joined_calls"))
    assert "import ml_dtypes" not in text and "import itertools" not in text
