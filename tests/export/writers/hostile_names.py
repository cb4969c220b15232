"""A loop whose names are such as break formats, one kind of name at a time."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

import stepper
from stepper.ir.model import Model
from tests.models import Graph, Side, carried, joined, last, sliced

HOSTILE = {
    "markup": "<b>&amp;</b> \"two\" 'one' &lt; < > &",
    "script": "</script><script>alert(1)</script></style></svg>",
    "ends": "]]> -- <!-- --> <![CDATA[ ?> %%{init: {}}%%",
    "latex": r"$\% \input{/etc/passwd} ^_{}~ # & \\ \begin{x} % $",
    "brackets": '"] --> x["y"]; end; }|{ ((`code`)) :::c',
    "dot": r"\N \G \l {a|b} <port> \"",
    "format": "%d %s {0} {name} ${x} $(rm) `ls`",
    "long": "long" * 2_500,
    "wide": "漢字" * 30 + "Ｗ",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u202eabc\u202c \u0639\u0631\u0628\u064a",
    "emoji": "\U0001f9e0 \U0001f469\u200d\U0001f467 e\u0301 \u1e9e \ufb01",
    "controls": "tab\tline\nnext\u0085\u200b\u2028\ufeff end",
    "formula": "=HYPERLINK(1)+@SUM",
    "markdown": "![x](http://example.com/y.png) | a | **b** [c](d) <!-- -->\n# heading",
}
"""Names by what they try."""


def hostile_model(folder: Path, name: str) -> tuple[Model, dict[str | int, np.ndarray]]:
    """A loop with an If, slices, pieces and a condition, everything called `name` and perhaps a number."""
    net = Graph()
    x, h = net.parameter("NAME", "f32", (3, 2)), net.parameter("NAME 2", "f32", (1, 2))
    body = net.body()
    row, state = body.parameter("NAME", "f32", (1, 2)), body.parameter("NAME 2", "f32", (1, 2))
    added = body.apply("Add", row, state, name="NAME 3")
    scaled = body.apply("Multiply", added, body.constant(np.float32(1e30), name="NAME"), name="NAME 4")
    sides = []
    for operation in ("Relu", "Negative"):
        inside = body.body()
        value = inside.parameter("NAME", "f32", (1, 2))
        sides.append(Side(inside, [(scaled, value)], [inside.result(inside.apply(operation, value, name="NAME"))]))
    chosen = body.branch("NAME 5", body.constant(True, np.bool_, "NAME yes"), *sides)[0]
    result = body.result(chosen, "NAME 6")
    outputs = net.tensor_iterator(
        "NAME", body, [sliced(x, row), carried(h, state, result)], [last(result), joined(result)]
    )
    for index, value in enumerate(outputs):
        net.result(value, f"NAME {index + 7}")
    path = net.write(folder)
    entities = {"\n": "&#10;", "\t": "&#9;", "\u0085": "&#x85;", "\u2028": "&#x2028;"}
    path.write_text(path.read_text("utf-8").replace("NAME", quoteattr(name, entities | {'"': "&quot;"})[1:-1]), "utf-8")
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    return stepper.read_model(path), {0: rows, 1: np.ones((1, 2), np.float32)}
