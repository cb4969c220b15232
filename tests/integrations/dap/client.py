"""A client of the adapter for tests: requests and answers in one process, or over the streams of another."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepper.cli.commands.dap import opener
from stepper.cli.parser import parsed
from stepper.integrations.dap.dap_server import Adapter

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "sample_models"


class Refused(Exception):
    """A request was refused, for this reason."""


class Client:
    """A client in one process: each request is answered before `request` returns."""

    def __init__(self, folder: Path, *words: object) -> None:
        self.folder = folder
        self.messages: list[dict[str, Any]] = []
        self.adapter = Adapter(opener(parsed(["dap", *map(str, words)])), self._take)
        self.sequence = 0

    def _take(self, content: bytes) -> None:
        self.messages.append(json.loads(content))

    def send(self, content: bytes) -> list[dict[str, Any]]:
        """What comes back for these bytes."""
        count = len(self.messages)
        self.adapter.hear(content)
        self.adapter.handle(content)
        return self.messages[count:]

    def answer(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The response to a request."""
        self.sequence += 1
        request = {"seq": self.sequence, "type": "request", "command": command, "arguments": arguments}
        (answer,) = [one for one in self.send(json.dumps(request).encode()) if one["type"] == "response"]
        assert answer["request_seq"] == self.sequence and answer["command"] == command
        return answer

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The body of the answer to a request. Refused with its message."""
        answer = self.answer(command, **arguments)
        if not answer["success"]:
            raise Refused(answer["message"])
        body: dict[str, Any] = answer["body"]
        return body

    def events(self, name: str) -> list[dict[str, Any]]:
        """The bodies of all events of this name so far."""
        return [one.get("body", {}) for one in self.messages if one.get("event") == name]

    # --- a session -----------------------------------------------------------------------------------------------

    def begin(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Launch a sample; the capabilities of the adapter."""
        can = self.request("initialize", adapterID="stepper", linesStartAt1=True, columnsStartAt1=True)
        model, inputs = copied(name, self.folder)
        self.request("launch", **{"model": str(model), "inputs": str(inputs), **arguments})
        assert self.messages[-1]["event"] == "initialized"
        return can

    def configured(self) -> dict[str, Any]:
        """Say that all is configured; the event of the stop."""
        self.request("configurationDone")
        return self.events("stopped")[-1]

    def go(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Move; the event of the stop."""
        count = len(self.events("stopped"))
        self.request(verb, **{"threadId": 1, **arguments})
        stopped = self.events("stopped")
        assert len(stopped) == count + 1
        return stopped[-1]

    def stack(self) -> list[dict[str, Any]]:
        """The frames, the innermost first."""
        frames: list[dict[str, Any]] = self.request("stackTrace", threadId=1)["stackFrames"]
        return frames

    @property
    def lines(self) -> list[str]:
        """The lines of the source, from 0 on."""
        text: str = self.request("source", sourceReference=1)["content"]
        return text.splitlines()

    def line(self, begins: str) -> int:
        """The line that begins so."""
        return next(number for number, text in enumerate(self.lines, 1) if text.strip().startswith(begins))

    @property
    def source(self) -> Mapping[str, Any]:
        """The source of the run."""
        found: Mapping[str, Any] = self.request("loadedSources")["sources"][0]
        return found

    def variables(self, frame: int, scope: str) -> dict[str, dict[str, Any]]:
        """The variables in a scope of a frame, by name."""
        scopes = {one["name"]: one["variablesReference"] for one in self.request("scopes", frameId=frame)["scopes"]}
        return {one["name"]: one for one in self.request("variables", variablesReference=scopes[scope])["variables"]}

    def page(self, reference: int, **part: int) -> list[dict[str, Any]]:
        """Variables in what a number stands for."""
        found: list[dict[str, Any]] = self.request("variables", variablesReference=reference, **part)["variables"]
        return found

    def value(self, expression: str, **arguments: Any) -> str:
        """The value of an expression."""
        found: str = self.request("evaluate", **{"expression": expression, "context": "watch", **arguments})["result"]
        return found


def copied(name: str, folder: Path) -> tuple[Path, Path]:
    """A sample in a folder where the listing may be written: the model and its inputs."""
    for file in ("model.xml", "model.bin", "inputs.npz"):
        shutil.copy(SAMPLES / name / file, folder / file)
    return folder / "model.xml", folder / "inputs.npz"


def sample_client(name: str, folder: Path, **arguments: Any) -> Client:
    """A client whose run of a sample stands at its start."""
    client = Client(folder)
    client.begin(name, **arguments)
    client.configured()
    return client
