"""What cannot be told in a line of a command: how addresses, expressions and the words of `break` are written."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from stepper.debug.breakpoints.kinds import MEANINGS
from stepper.debug.causes.cause import CauseKind

_WRITTEN: Final = {
    CauseKind.GROW: "grow>1e3 [x]",
    CauseKind.DIFF: "diff>1e-4 [x]",
    CauseKind.CHANGES: "changes x[0,3]",
}

TOPICS: Final = MappingProxyType({
    "addresses": (
        ("h_next", "a value by its name: here and now"),
        ("h_next:1", "another output than the first"),
        ("h_next@7  @2:5  @-1  @*", "of iteration 7, of 2 to 4, of the last, of all"),
        ("h_next[0,:8]", "a part of it, as numpy cuts"),
        ("my_loop::h_next", "in the body of a loop; model::x in the model's own graph; branch::then::x in an If"),
        ("outer@3::inner@0::h", "of iteration 3 of the outer loop the run of the inner one, of that iteration 0"),
        ("id=12  lstm*  /gate_[ifo]$/", "a layer by its number; all whose names fit a pattern"),
        ("`aten::add/Add`", "a name with other signs than letters, digits, _ and . in backquotes"),
        ("", "A name is that of a layer or of a tensor, the end of one (after / or .), or what a screen shows for it:"),
        ("", "`q/MatMul`, or h for h.9. The nearest graph counts. If several fit, they are listed."),
    ),
    "expressions": (
        ("x + 1  x * y  x // 2  x ** 2", "numpy's arithmetic, also - / % and brackets, in numpy's types"),
        ("x < 1  0 <= x < y  x != y", "comparisons; and, or, not between what is one element"),
        ("x[0, :8]  x[...]", "a part"),
        ("any  all  max  min  mean  sum", "functions of all elements: max(x)"),
        ("norm  std  argmax  argmin", "of all elements, too"),
        ("abs  isnan  isinf  isfinite", "of each element"),
        ("size  rank  shape  dtype", "how many, how many axes, the sizes, the type, as in dtype(x) == f16"),
        ("prev(x)  ref(x)", "x one iteration before; x in the reference"),
        ("iter  iter(outer)", "the iteration of the innermost loop; of the one of that name around"),
        ("true  false  nan  inf  1e-3", "constants"),
        ("", "A name with / or :: goes into backquotes: `q/MatMul` is a value, q/MatMul would divide."),
    ),
    "breaks": (
        ("break h_next  lstm*  MatMul", "after an operation; after all that fit a pattern; after all of a type"),
        ("break @7  my_loop@7", "when that iteration has begun, of this loop or of another"),
        ("break x if max(x) > 2", "there, and only where that holds"),
        ("break x hit 5  hit 5 exactly", "from the fifth time on; at the fifth alone; `once`: then no more"),
        ("break when max(h) > 2", "wherever an expression becomes true"),
        *((f"break {_WRITTEN.get(word, word.value)}", meaning) for word, meaning in MEANINGS.items()),
        ("", "From shape to period one may name a loop: break cond my_loop."),
    ),
})  # fmt: skip
"""By name: how something is written, and what it means. A line without the first goes on below all others."""

_WIDTH: Final = 31


def topic_lines(topic: str) -> list[str]:
    """A topic as text."""
    return [f"{written:{_WIDTH}}  {means}" if written else means for written, means in TOPICS[topic]]
