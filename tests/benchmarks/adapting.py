"""How long an editor waits for the debug adapter: `python -m tests.benchmarks.adapting [--json]`.

In processor time of one process, without the pipe: a step, and a step with all that an editor asks behind it (stack,
scopes, variables), beside the same step of the debugger, in a body of some layers and of a thousand; a step back; and a
page of a hundred elements, and bytes, of a tensor of ten million. Ratios are to the step of the debugger.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import stepper
from stepper.debug.debugger import Debugger
from stepper.integrations.dap.dap_server import Adapter
from stepper.integrations.dap.dap_session import OpenedRun
from stepper.ir.model import Model
from tests.benchmarks import checking, models, timing
from tests.models import Graph

STEP = "a step of the debugger"
ADAPTED = "a step"
SHOWN = "a step, its stack, scopes and variables"
BACK = "a step back"
PAGE = "a page of 100 elements"
BYTES = "4,096 bytes of memory"


class Editor:
    """An editor that asks as VS Code does, in the process of the adapter."""

    def __init__(self, model: Model, inputs: dict[str, Any]) -> None:
        self.answers: list[dict[str, Any]] = []
        self.adapter = Adapter(lambda _arguments, _attach: OpenedRun(Debugger(model, inputs)), self._take)
        for command in ("initialize", "launch", "configurationDone"):
            self.ask(command)
        self.debugger = self.adapter.session.run.debugger

    def _take(self, content: bytes) -> None:
        self.answers.append(json.loads(content))

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The body of the answer."""
        self.answers.clear()
        request = {"seq": 1, "type": "request", "command": command, "arguments": arguments}
        self.adapter.handle(json.dumps(request).encode())
        answer = next(one for one in self.answers if one["type"] == "response")
        assert answer["success"], answer
        body: dict[str, Any] = answer["body"]
        return body

    def look(self) -> None:
        """All that is asked at a stop."""
        frame = self.ask("stackTrace", threadId=1)["stackFrames"][0]["id"]
        for scope in self.ask("scopes", frameId=frame)["scopes"]:
            self.ask("variables", variablesReference=scope["variablesReference"])

    def step(self) -> None:
        """A step, and all that is asked behind it."""
        self.ask("next", threadId=1)
        self.look()


def steps(title: str, model: Model, inputs: dict[str, Any], rounds: int, begin: int) -> timing.Report:
    """The steps of a body, from a moment in it on."""
    editor, debugger = Editor(model, inputs), Debugger(model, inputs)
    for one in (editor.debugger, debugger):
        one.goto_tick(begin)
    candidates: dict[str, Callable[[], object]] = {
        STEP: debugger.next,
        ADAPTED: lambda: editor.ask("next", threadId=1),
        SHOWN: editor.step,
        BACK: lambda: editor.ask("stepBack", threadId=1),
    }
    return timing.report(title, timing.side_by_side(candidates, rounds), STEP)


def pages(folder: Path, elements: int, rounds: int) -> timing.Report:
    """What is read of a large tensor."""
    net = Graph()
    x = net.parameter("x", dims=(elements,))
    net.result(net.apply("Add", x, net.constant(0.0), name="same"))
    editor = Editor(net.read(folder), {"x": np.arange(elements, dtype=np.float32)})
    editor.ask("next", threadId=1)
    scope = editor.ask("scopes", frameId=1)["scopes"][0]["variablesReference"]
    value = editor.ask("variables", variablesReference=scope)["variables"][0]
    middle = elements // 2

    def page() -> None:
        found = editor.ask("variables", variablesReference=value["variablesReference"], start=middle, count=100)
        assert found["variables"][0]["value"] == str(float(middle))

    candidates: dict[str, Callable[[], object]] = {
        PAGE: page,
        BYTES: lambda: editor.ask(
            "readMemory", memoryReference=value["memoryReference"], offset=4 * middle, count=4096
        ),
        "the values of the frame": lambda: editor.ask("variables", variablesReference=scope),
    }
    return timing.report(f"a tensor of {elements:,} elements", timing.side_by_side(candidates, rounds), PAGE)


def measure(folder: Path, *, rounds: int, layers: int, elements: int) -> timing.Reports:
    """All of it."""
    name, path = next(iter(checking.large(folder, layers)))
    newton = folder / "newton"
    newton.mkdir()
    few = stepper.read_model(models.newton_model(newton, 100))
    inputs = {"number": np.array([2], np.float32), "guess": np.array([1], np.float32)}
    many = stepper.read_model(path)
    return [
        steps("a body of a few layers", few, inputs, rounds, 20),
        steps(f"a body of {name}", many, {"xs": np.ones((4, 4), np.float32)}, rounds, layers + layers // 2),
        pages(folder, elements, rounds),
    ]


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    if quick:
        return measure(folder, rounds=2, layers=2_000, elements=10_000)
    return measure(folder, rounds=50, layers=2_000, elements=10**7)


if __name__ == "__main__":
    timing.main(__doc__, reports)
