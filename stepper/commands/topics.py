"""Help: how addresses, expressions and the words of `break` are written, and each command, as lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from stepper.commands.registry import Command, commands, one_of
from stepper.commands.session import Answer

Rows = tuple[tuple[str, str], ...]
"""How something is written, and what it means."""


class Topic(NamedTuple):
    """A subject of help: a noun phrase for the list of topics, rows, and what holds for all of them."""

    title: str
    rows: Rows
    note: str = ""


_TOPICS: Final = {
    "addresses": Topic("how values, operations and iterations are named", (
        ("h_next", "a value by its name: here and now"),
        ("h'", "what the iteration carries to the next one in place of h, which is what it reads"),
        ("h_next:1", "another output than the first"),
        ("h_next@7  @2:5  @-1  @*", "of iteration 7, of 2 to 4, of the last, of all"),
        ("h_next[0,:8]", "a part of it, as numpy cuts"),
        ("h_next[0,3]@7", "an element in iteration 7, as h_next@7[0,3]"),
        ("my_loop::h_next", "in the body of a loop; model::x in the model's own graph; branch::then::x in an If"),
        ("outer@3::inner@0::h", "of iteration 3 of the outer loop the run of the inner one, of that iteration 0"),
        ("id=12  lstm*  /gate_[ifo]$/", "a layer by its number; all whose names fit a pattern"),
        ("`aten::add/Add`", "a name with other signs than letters, digits, _ and . in backquotes"),
    ), "A name is that of a layer or of a tensor, the end of one (after / or .), or what a screen shows for it: "
       "`q/MatMul`, or h for h.9. The nearest graph counts, with @ITER the nearest in a loop. "
       "If several fit, they are listed."),
    "expressions": Topic("what print, watch, conditions and predicates compute", (
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
    ), "A name with / or :: goes into backquotes: `q/MatMul` is a value, q/MatMul would divide."),
    "breaks": Topic("what break, run-to and --break wait for", (
        ("break h_next  lstm*  MatMul", "after an operation; after all that fit a pattern; after all of a type"),
        ("break @7  my_loop@7", "when that iteration has begun, of this loop or of another"),
        ("break x if max(x) > 2", "there, and only where that holds"),
        ("break x hit 5  hit 5 exactly", "from the fifth time on; at the fifth alone; `once`: then no more"),
        ("break when max(h) > 2", "wherever an expression becomes true"),
    )),
}  # fmt: skip


@cache
def topics() -> Mapping[str, Topic]:
    """Return all topics by name; those who only run a model load no kinds of breakpoints."""
    from stepper.debug.breakpoints.data_breakpoints import kinds

    rows = [(f"break {one.shown}", one.meaning) for one in kinds().values()]
    breaks = _TOPICS["breaks"]
    return MappingProxyType(_TOPICS | {"breaks": breaks._replace(rows=(*breaks.rows, *rows))})


_EXPLAINED: Final[Mapping[str, str]] = MappingProxyType(
    {"EXPR": "expressions", "ADDR": "addresses", "TARGET": "breaks", "changes": "breaks"}
)
"""Words in the syntax of a command, by the topic that explains them."""

WIDTH: Final = 80
_WIDEST_LEFT: Final = 31


def help_answer(name: str, width: int = WIDTH) -> Answer:
    """Return the help for a topic or a command, or for an empty name the list of both. UsageError for another name."""
    if not name:
        return _list_of_all(width)
    known = {one.name: one for one in commands()}
    abbreviated = {short: one.name for one in commands() for short in one.abbreviations}
    name = abbreviated.get(name) or one_of(name, (*known, *topics()), "command or topic")
    if name in topics():
        lines = topic_lines(topics()[name], width)
        return Answer(tuple(lines), {"topic": name, "lines": lines})
    return Answer(tuple(_command_lines(known[name], width)), {"commands": [_command_data(known[name])]})


def topic_lines(topic: Topic, width: int = WIDTH) -> list[str]:
    """Return a topic as text."""
    return [*two_columns(topic.rows, width), *textwrap.wrap(topic.note, width, break_on_hyphens=False)]


def two_columns(rows: Iterable[tuple[str, str]], width: int = WIDTH) -> list[str]:
    """Return a line for each row; what is too long for the right column goes on below, too long for the left beside."""
    rows = list(rows)
    left = min(max((len(written) for written, _ in rows), default=0), _WIDEST_LEFT)
    lines: list[str] = []
    for written, means in rows:
        parts = textwrap.wrap(means, max(width - left - 2, 20), break_on_hyphens=False) or [""]
        if len(written) > left:
            lines.append(written)
            written = ""
        lines += [f"{written if not index else '':{left}}  {part}".rstrip() for index, part in enumerate(parts)]
    return lines


def _list_of_all(width: int) -> Answer:
    how = f"help TOPIC: {', '.join(_TOPICS)}; help COMMAND: how it is written"
    lines = [*two_columns(((one.title, one.help) for one in commands()), width), how]
    return Answer(tuple(lines), {"commands": [_command_data(one) for one in commands()]})


def _command_lines(command: Command, width: int) -> list[str]:
    usage = textwrap.wrap(f"usage: {command.usage}", width, subsequent_indent="  ", break_on_hyphens=False)
    words = re.findall(r"\w+", command.syntax)
    topics = dict.fromkeys(topic for word, topic in _EXPLAINED.items() if word in words)
    also = [f"see also: {', '.join(f'help {topic}' for topic in topics)}"] if topics else []
    return [*two_columns([(command.title, command.help)], width), *usage, *also]


def _command_data(one: Command) -> dict[str, Any]:
    return {"name": one.name, "abbreviations": one.abbreviations, "usage": one.usage, "help": one.help}
