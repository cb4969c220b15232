"""Random conversations: whatever is typed is answered or refused with one message, and replays never differ."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis.strategies import SearchStrategy

from stepper.commands import Interpreter
from stepper.debug.debugger import Debugger
from stepper.errors import StepperError
from tests.debug.debugged import ALL_RUNS, run_named

MOVEMENTS = [
    "next", "step", "finish", "continue", "first", "last", "rn", "rs", "rf", "rc", "next 3", "step 9", "rs 5", "",
    "iter +1", "iter -1", "iter first", "iter last", "goto 2", "goto -1", "goto tick 17", "goto 'm",
    "goto {name}", "run-to {name}", "until {expression}",
]  # fmt: skip
STOPS = [
    "break {name}", "break {name} if {expression}", "break {name} hit 2 once", "break when {expression}", "break nan",
    "break inf", "break shape", "break cond", "break limit", "break last", "break end", "break stuck", "break period",
    "break grow>2", "break diff>0.1 {name}", "break changes {name}", 'log {name} "{{{expression}}}"', "delete 1",
    "delete", "disable", "enable", "ignore 1 2", "except {name}", "watch {expression}", "unwatch 1",
]  # fmt: skip
REST = [
    "print {expression}", "print {name}", "stats {name}", "find {expression} all", "find {expression} previous",
    "where", "up", "down", "list", "explain", "why {name}", "info breaks", "info watches", "info ports", "info edges",
    "info scans", "info trip", "info memory", "info marks", "set {name} = {expression}", "set {name} = 1", "branch a",
    "branch original", "branches", "mark m", "history", "help", "# nothing",
]  # fmt: skip
EXPRESSIONS = [
    "max({name}) > 1",
    "{name}",
    "{name} + {name}",
    "iter == 1",
    "prev({name})",
    "any(isnan({name}))",
    "1 / 0",
]


def lines_about(names: list[str]) -> SearchStrategy[str]:
    """Mostly a command that means something; now and then with a sign in it that does not belong there."""
    part = some.sampled_from(["", "[0]", "[..., -1]", "[9]"])
    moment = some.sampled_from(["", "@1", "@-1", "@0:2"])
    name = some.builds("`{}`{}{}".format, some.sampled_from(names), moment, part)
    expression = some.builds(lambda text, name: text.replace("{name}", name), some.sampled_from(EXPRESSIONS), name)
    form = some.one_of(*map(some.sampled_from, (MOVEMENTS, STOPS, REST)))
    line = some.builds(lambda form, name, inner: form.format(name=name, expression=inner), form, name, expression)
    wrong = some.sampled_from([*"`\"'#[](){}:@/\\\0é\n= "])
    broken = some.builds(
        lambda line, place, sign: line[: place % (len(line) + 1)] + sign + line[place % (len(line) + 1) :],
        line,
        some.integers(0, 40),
        wrong,
    )
    return some.one_of(*[line] * 9, broken)


@ALL_RUNS
def test_every_line_is_answered_or_refused(name: str, tmp_path: Path) -> None:
    model, inputs = (opened := run_named(name, tmp_path)).model, dict(enumerate(opened.inputs))
    names = [layer.name for program in opened.machine.compiled.programs for layer in program.graph.layers]

    @given(some.lists(lines_about(names), min_size=10, max_size=40))
    @settings(max_examples=6)
    def check(lines: list[str]) -> None:
        debugger = Debugger(model, inputs, max_iterations=200)  # a changed value can make a loop endless
        debugger.breakpoints.sink = lambda _line: None
        interpreter = Interpreter(debugger)
        for line in lines:
            try:
                answer = interpreter.execute(line)
            except StepperError as error:
                assert str(error)
            else:
                json.dumps(answer.data, allow_nan=False)
        assert debugger.timeline.warnings == []

    check()
