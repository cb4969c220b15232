"""Random conversations: whatever is typed is answered or refused with one message, and replays never differ."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from stepper.commands import Interpreter
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


class Talker:
    """Makes up lines about a model."""

    def __init__(self, names: list[str], seed: int) -> None:
        self._random = Random(seed)
        self._names = names

    def line(self) -> str:
        """Mostly a command that means something; now and then with a sign in it that does not belong there."""
        random = self._random
        form = random.choice(random.choice([MOVEMENTS, STOPS, REST]))
        text = form.format(name=self._name(), expression=random.choice(EXPRESSIONS).replace("{name}", self._name()))
        if random.random() < 0.03:
            place = random.randrange(len(text) + 1)
            text = text[:place] + random.choice("`\"'#[](){}:@/\\\0é\n= ") + text[place:]
        return text

    def _name(self) -> str:
        random = self._random
        part = random.choice(["", "", "", "[0]", "[..., -1]", "[9]"])
        return f"`{random.choice(self._names)}`{random.choice(['', '', '', '@1', '@-1', '@0:2'])}{part}"


@ALL_RUNS
@pytest.mark.parametrize("seed", [1, 2])
def test_every_line_is_answered_or_refused(name: str, seed: int, tmp_path: Path) -> None:
    debugger = run_named(name, tmp_path, max_iterations=200)  # a changed value can make a loop endless
    debugger.breakpoints.sink = lambda _line: None
    interpreter = Interpreter(debugger)
    names = [layer.name for program in debugger.machine.compiled.programs for layer in program.graph.layers]
    talker = Talker(names, seed)
    for _ in range(60):
        try:
            answer = interpreter.execute(talker.line())
        except StepperError as error:
            assert str(error)
        else:
            json.dumps(answer.data, allow_nan=False)
    assert debugger.timeline.warnings == []
