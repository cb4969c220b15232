"""Whatever comes in is answered or told about, and the adapter lives on: broken bytes, frames, requests, numbers."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

from stepper.integrations.dap.answering import REQUESTS
from stepper.integrations.dap.messages import LARGEST, Unframed, framed, read_message
from tests.integrations.dap.client import Client, sample_client
from tests.tables import each_row

_MOVES = ("next", "stepIn", "stepBack", "stepOut", "continue", "reverseContinue", "restart")


def random_value(chance: random.Random, depth: int = 0) -> Any:
    """Something that JSON can say."""
    numbers = (0, 1, -1, 2, 7, 2**31, -(2**63), 2**63 - 1, 10**30, 0.5, 1e308)
    texts = (
        "",
        "x",
        "values",
        "swaps_next",
        "[0]",
        "h[0,3]@-1",
        "nan",
        "check",
        "tensor-1",
        "é\0\n",
        "(" * 300,
        "a" * 5000,
    )
    plain = (None, True, False, chance.choice(numbers), chance.choice(texts))
    if depth > 2 or chance.random() < 0.7:
        return chance.choice(plain)
    if chance.random() < 0.5:
        return [random_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(_NAMES): random_value(chance, depth + 1) for _ in range(chance.randrange(4))}


_NAMES = (
    "frameId", "variablesReference", "start", "count", "filter", "name", "value", "expression", "context", "text",
    "column", "line", "source", "path", "breakpoints", "condition", "hitCondition", "logMessage", "dataId", "filters",
    "filterOptions", "filterId", "targetId", "memoryReference", "offset", "levels", "startFrame", "threadId",
)  # fmt: skip
FITTING = {
    "frameId": (1, 2, 3, 9), "variablesReference": range(1, 60), "start": (0, 1, 10**9), "count": (0, 3, 10**9),
    "filter": ("indexed", "named"), "name": ("swaps", "[0]", "values", "@2", "nan"), "value": ("1", "[1,2]", "swaps"),
    "expression": ("swaps", "values[0] > 1", "next", "iter 1", "undo", "where", "1/0", "find nan"),
    "context": ("repl", "hover"),
    "text": ("sw", "print v", "br"), "column": (1, 3), "line": range(1, 40),
    "source": ({"path": "x.py"}, {"sourceReference": 1}),
    "breakpoints": ([{"line": 12}], [{"name": "swaps_next"}], [{"dataId": "changes swaps"}], []),
    "filters": (["nan"], ["shape", "stuck"], ["what"]), "targetId": range(80),
    "memoryReference": ("tensor-3", "tensor-x"),
    "offset": (0, 5), "threadId": (1,),
}  # fmt: skip


def test_a_thousand_random_requests_are_all_answered(tmp_path: Path) -> None:
    chance = random.Random(20)
    client = sample_client("nested_loop", tmp_path)
    commands = [*(set(REQUESTS) - {"disconnect", "terminate", "launch", "attach"}), "nonsense", ""]
    succeeded = 0
    for number in range(1000):
        command = chance.choice(_MOVES if number % 5 == 0 else sorted(commands))
        names = chance.sample(sorted(FITTING), 6)
        arguments = {name: chance.choice(FITTING[name]) for name in names}  # type: ignore[index]
        if number % 3 == 0:
            arguments |= {chance.choice(_NAMES): random_value(chance) for _ in range(2)}
        answer = client.answer(command, **arguments)
        succeeded += answer["success"]
        assert answer["success"] or answer["message"]
        assert "error of the adapter" not in answer.get("message", "")
        del client.messages[:-50]
    assert succeeded > 300 and not client.adapter.ended
    assert client.stack()


def test_a_thousand_broken_messages_change_nothing(tmp_path: Path) -> None:
    chance = random.Random(21)
    client = sample_client("nested_loop", tmp_path)
    before = client.stack()
    whole = json.dumps({"seq": 1, "type": "request", "command": "stackTrace", "arguments": {"threadId": 1}}).encode()
    for number in range(1000):
        broken = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        made = (
            bytes(broken),
            whole[: chance.randrange(len(whole))],
            b"[" * chance.choice((10, 100_000)),
            bytes(chance.randrange(256) for _ in range(40)),
            json.dumps(random_value(chance)).encode(),
            json.dumps(
                {"seq": 1, "type": "request", "command": random_value(chance), "arguments": random_value(chance)}
            ).encode(),
        )
        for message in client.send(made[number % len(made)]):
            assert message["type"] in ("response", "event")
        del client.messages[:-50]
    assert client.stack() == before and not client.adapter.ended


def test_frames_are_read_whatever_stands_between_them() -> None:
    first, second = b'{"a": 1}', b'{"b": 2}'
    stream = io.BytesIO(
        framed(first) + b"nonsense\r\n\r\n" + b"Content-Length: x\r\n\r\n" + b"Content-Type: text\r\n" + framed(second)
    )
    found: list[bytes | None] = []
    faults = 0
    while not found or found[-1] is not None:
        try:
            found.append(read_message(stream))
        except Unframed:
            faults += 1
    assert found == [first, second, None] and faults == 2


@each_row(
    "content",
    [
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1:4711\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"x" * 100_000,
        b"Content-Type: a\r\n" * 100,
        b"\r\n",
    ],
)
def test_a_head_of_another_protocol_is_none(content: bytes) -> None:
    with pytest.raises(Unframed):
        read_message(io.BytesIO(content))


def test_a_message_that_is_too_large_is_skipped() -> None:
    class Endless(io.RawIOBase):
        """A head, and zeros as many as are asked for; counts them."""

        def __init__(self) -> None:
            self.head = io.BytesIO(b"Content-Length: %d\r\n\r\n" % (LARGEST + 10))
            self.largest = 0

        def readline(self, size: int | None = -1) -> bytes:
            return self.head.readline(-1 if size is None else size)

        def read(self, size: int = -1) -> bytes:
            self.largest = max(self.largest, size)
            return bytes(size)

    stream = Endless()
    with pytest.raises(Unframed, match="at most"):
        read_message(stream)  # type: ignore[arg-type]
    assert 0 < stream.largest < 2**20
    assert read_message(io.BytesIO(b"Content-Length: 10\r\n\r\nabc")) is None


def test_a_length_that_no_message_has_does_not_swallow_what_follows() -> None:
    stream = io.BytesIO(b"Content-Length: 99999999999999\r\n\r\n" + framed(b"{}"))
    with pytest.raises(Unframed, match="99,999,999,999,999 bytes"):
        read_message(stream)
    assert read_message(stream) == b"{}"


def test_only_a_movement_to_the_next_stop_is_interrupted_for_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = sample_client("for_loop", tmp_path)
    debugger, pauses = client.adapter.session.run.debugger, list[str]()
    requests = {
        name: json.dumps({"seq": 1, "type": "request", "command": name, "arguments": {"threadId": 1}}).encode()
        for name in ("threads", "stackTrace", "pause")
    }
    heard = [""]
    monkeypatch.setattr(debugger, "pause", lambda: pauses.append(heard[0]))

    def meanwhile(verb: str) -> Any:
        moved = getattr(debugger, verb)

        def moving() -> Any:
            for name, content in requests.items():
                heard[0] = name
                client.adapter.hear(content)
            return moved()

        return moving

    for verb, request, expected in (("next", "next", ["pause"]), ("continue_", "continue", ["threads", "pause"])):
        monkeypatch.setattr(debugger, verb, meanwhile(verb))
        client.go(request)
        assert pauses == expected
        pauses.clear()
        for content in requests.values():
            client.adapter.handle(content)


def test_a_client_that_asks_before_it_launches_is_told(tmp_path: Path) -> None:
    client = Client(tmp_path)
    for command in sorted(set(REQUESTS) - {"disconnect", "terminate", "launch", "attach"}):
        answer = client.answer(command)
        assert answer["success"] or "launch one first" in answer["message"] or "missing required" in answer["message"]
    assert client.answer("stepBak")["message"] == "there is no request 'stepBak' here; near are stepBack, stepIn"
