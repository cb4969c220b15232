"""The adapter on streams and on a port: one client at a time, pauses, and clients that vanish."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from stepper.cli.commands.dap import opener
from stepper.cli.parser import parsed
from stepper.integrations.dap.dap_server import HOST, ClientPort, serve_port, serve_streams
from stepper.integrations.dap.messages import CHOSEN, framed, read_message
from tests.debug.iterations.test_series import counting
from tests.integrations.dap.client import ROOT, copied
from tests.models import Graph

SECONDS = 60.0
TOKEN = "what the user has chosen: é"


class StreamClient:
    """A client over streams: it sends, and reads until what it waits for has come."""

    def __init__(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        self.reader, self.writer, self.sequence = reader, writer, 0
        self.events: list[dict[str, Any]] = []

    def send(self, command: str, **arguments: Any) -> int:
        """Send a request; its number."""
        self.sequence += 1
        request = {"seq": self.sequence, "type": "request", "command": command, "arguments": arguments}
        self.writer.write(framed(json.dumps(request).encode()))
        self.writer.flush()
        return self.sequence

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request; events before it are kept."""
        while True:
            message = self.read()
            if message["type"] == "response" and message["request_seq"] == number:
                return message

    def read(self) -> dict[str, Any]:
        """The next message."""
        content = read_message(self.reader)
        assert content is not None, "the adapter has gone"
        message: dict[str, Any] = json.loads(content)
        if message["type"] == "event":
            self.events.append(message)
        return message

    def event(self, name: str) -> dict[str, Any]:
        """The next event of this name that was not asked for before."""
        while True:
            for number, message in enumerate(self.events):
                if message["event"] == name:
                    del self.events[: number + 1]
                    return message
            self.read()

    def begin(self, model: Path, inputs: Path | None, **arguments: Any) -> None:
        """Launch, and wait for the first stop."""
        self.answer(self.send("initialize", adapterID="stepper"))
        given = {"token": TOKEN, "model": str(model), **({"inputs": str(inputs)} if inputs else {}), **arguments}
        answer = self.answer(self.send("launch", **given))
        assert answer["success"], answer
        self.event("initialized")
        self.answer(self.send("configurationDone"))
        self.event("stopped")


@pytest.fixture(autouse=True)
def chosen_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CHOSEN, TOKEN)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def port() -> Iterator[int]:
    """The port of an adapter in this process."""
    found: list[int] = []
    ready = threading.Event()

    def listening(door: ClientPort) -> None:
        found.append(door.number)
        ready.set()

    options = parsed(["dap"])
    threading.Thread(target=serve_port, args=(0, opener(options), listening), daemon=True).start()
    assert ready.wait(SECONDS)
    yield found[0]


@contextlib.contextmanager
def connected(port: int) -> Iterator[StreamClient]:
    with (
        socket.create_connection((HOST, port), timeout=SECONDS) as end,
        end.makefile("rb") as reader,
        end.makefile("wb") as writer,
    ):
        yield StreamClient(reader, writer)


def test_a_second_client_is_refused_and_the_next_one_served(port: int, tmp_path: Path) -> None:
    model, inputs = copied("for_loop", tmp_path)
    with connected(port) as first:
        first.begin(model, inputs)
        with connected(port) as second:
            answer = second.answer(second.send("initialize"))
            assert not answer["success"] and "another client debugs with this adapter" in answer["message"]
            assert read_message(second.reader) is None
        assert first.answer(first.send("threads"))["success"]
        first.answer(first.send("disconnect"))
        first.event("terminated")
    with connected(port) as third:  # at once: the session before may still be ending
        third.begin(model, inputs)


def test_a_client_that_is_killed_while_it_is_answered_makes_room_for_the_next(port: int, tmp_path: Path) -> None:
    model, inputs = copied("for_loop", tmp_path)
    for _ in range(4):
        end = socket.create_connection((HOST, port), timeout=SECONDS)
        with end.makefile("rb") as reader, end.makefile("wb") as writer:
            client = StreamClient(reader, writer)
            client.begin(model, inputs)
            for _ in range(50):
                client.send("stackTrace", threadId=1)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # as the system does it
        end.close()
    with connected(port) as another:
        another.begin(model, inputs)


@pytest.mark.parametrize("greets", [True, False])
@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("launch", {"model": "model.xml"}),
        ("launch", {"model": "model.xml", "token": "another"}),
        ("launch", {"model": "model.xml", "token": ["what"]}),
        ("attach", {"recording": "run.sqlite", "token": ""}),
        ("attach", {"port": 1}),
        ("evaluate", {"expression": "history PWNED", "context": "repl"}),
        ("pause", {"threadId": 1}),
        ("disconnect", {}),
    ],
)
def test_a_client_without_the_token_is_refused_and_nothing_is_done(
    port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, greets: bool, command: str, arguments: dict[str, Any]
) -> None:
    copied("for_loop", tmp_path)
    monkeypatch.chdir(tmp_path)
    with connected(port) as client:
        if greets:
            client.send("initialize", adapterID="stepper", token="another")
        answer = client.answer(client.send(command, **arguments))
        client.send("evaluate", expression="history PWNED", context="repl")
        assert not answer["success"] and answer["message"].startswith("this port asks for its token")
        with contextlib.suppress(AssertionError, OSError):
            while client.read()["type"] == "event":  # the answer to the greeting may come last
                pass
        assert client.reader.read() == b""
    assert not (tmp_path / "PWNED").exists() and not (tmp_path / ".stepper").exists()
    with connected(port) as other:
        other.begin(tmp_path / "model.xml", tmp_path / "inputs.npz")


def test_the_token_of_a_port_is_printed_and_kept_for_its_user_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(CHOSEN)
    command = [sys.executable, "-m", "stepper", "dap", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stdout is not None
        try:
            number = process.stdout.readline().strip().rpartition(":")[2]
            kind, token = process.stdout.readline().split()
            (kept,) = (tmp_path / "cache").rglob("ports/*")
            assert (kind, kept.name, kept.read_text()) == ("token", number, token) and len(token) > 40
            assert os.name != "posix" or kept.stat().st_mode & 0o777 == 0o600
            process.send_signal(signal.SIGINT)
            process.wait(SECONDS)
            assert not kept.exists()
        finally:
            process.kill()


def test_answers_on_a_port_do_not_wait_for_one_another() -> None:
    """An answer and the event behind it are two small messages, of which the second would wait 40 ms for the first."""
    door = ClientPort(0)
    seen: list[int] = []

    def served(_reader: IO[bytes], _writer: IO[bytes]) -> None:
        assert door._client is not None
        seen.append(door._client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        door.close()

    with socket.create_connection((HOST, door.number), timeout=SECONDS):
        door.serve(served)
    assert seen[0]


def test_a_browser_is_no_client(port: int) -> None:
    body = json.dumps({"seq": 1, "type": "request", "command": "initialize"})
    head = f"POST / HTTP/1.1\r\nHost: {HOST}:{port}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((HOST, port), timeout=SECONDS) as end:
        end.sendall((head + body).encode())
        answer = end.makefile("rb").read()
    assert b'"response"' not in answer


@pytest.mark.parametrize("is_on_a_port", [True, False])
def test_broken_heads_and_messages_end_no_session(is_on_a_port: bool, tmp_path: Path) -> None:
    """1,000 of them in all, on a port and on the streams of the program, each followed by what can be answered."""
    model, inputs = copied("for_loop", tmp_path)
    chance = random.Random(7)
    whole = framed(json.dumps({"seq": 1, "type": "request", "command": "threads", "arguments": {}}).encode())
    with contextlib.ExitStack() as opened:
        command = [sys.executable, "-m", "stepper", "dap", *(["--port", "0"] if is_on_a_port else [])]
        process = opened.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        )
        opened.callback(process.kill)
        assert process.stdin is not None and process.stdout is not None
        if is_on_a_port:
            match = re.search(rb"listening on 127.0.0.1:([0-9]+)", process.stdout.readline())
            assert match is not None
            client = opened.enter_context(connected(int(match[1])))
        else:
            client = StreamClient(process.stdout, process.stdin)
        client.begin(model, inputs)
        for number in range(500):
            broken = bytearray(whole)
            broken[chance.randrange(len(broken))] = chance.choice(b"\0\r\n:9x\xff{")
            made = (
                bytes(chance.randrange(256) for _ in range(50)),
                framed(bytes(chance.randrange(256) for _ in range(50))),
                b"Content-Length: %s" % chance.choice((b"-5", b"many", b"", b"0", b"1e3", b"9" * 18, b"9" * 30)),
                bytes(broken),
                framed(b'{"seq": 1, "type": "request", "command": "threads", "arguments": ' + b"[" * 5000),
            )
            client.writer.write(made[number % len(made)] + b"\r\n\r\n")
            if number % 50 == 49:
                for _ in range(2):  # the first may be taken for a part of what was broken before
                    client.writer.write(whole + b"\r\n\r\n")
                client.writer.flush()
                assert client.answer(client.send("stackTrace", threadId=1))["success"]
        client.answer(client.send("next"))
        assert client.event("stopped")["body"]["reason"] == "step"


def test_a_step_and_a_page_of_a_large_tensor_are_answered_at_once(port: int, tmp_path: Path) -> None:
    """The quickest of several, on a port, from the request to the stop or the answer: within 20 and 50 ms."""
    net = Graph()
    x = net.parameter("x", dims=(10**7,))
    net.result(net.apply("Add", x, net.constant(0.0), name="same"))
    with connected(port) as client:
        client.begin(net.write(tmp_path), None, input={"x": "rand:1"})
        scopes = client.answer(client.send("scopes", frameId=1))["body"]["scopes"]
        values = client.answer(client.send("variables", variablesReference=scopes[0]["variablesReference"]))
        large = values["body"]["variables"][0]
        assert large["indexedVariables"] == 10**7

        def page() -> None:
            asked = {"variablesReference": large["variablesReference"], "start": 5 * 10**6, "count": 100}
            answer = client.answer(client.send("variables", **asked))
            assert len(answer["body"]["variables"]) == 100

        assert quickest(page) < 0.05
        client.answer(client.send("disconnect"))
        client.event("terminated")
    model, inputs = copied("rwkv_overflow", tmp_path)
    with connected(port) as client:
        client.begin(model, inputs)

        def step(verb: str) -> None:
            client.answer(client.send(verb, threadId=1))
            client.event("stopped")

        for verb in ("stepIn", "next", "stepBack"):
            assert quickest(lambda verb=verb: step(verb)) < 0.02, verb  # type: ignore[misc]


def quickest(done: Callable[[], None]) -> float:
    """Seconds of the quickest of several times: what else the machine does makes none quicker."""
    times = []
    for _ in range(8):
        begin = time.perf_counter()
        done()
        times.append(time.perf_counter() - begin)
    return min(times)


def test_an_editor_talks_to_the_program_on_its_streams(tmp_path: Path) -> None:
    model, inputs = copied("for_loop", tmp_path)
    command = [sys.executable, "-m", "stepper", "dap", str(model), "--inputs", str(inputs)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    with process:
        assert process.stdin is not None and process.stdout is not None
        client = StreamClient(process.stdout, process.stdin)
        client.answer(client.send("initialize"))
        assert client.answer(client.send("launch"))["success"]  # the model of the command line
        client.event("initialized")
        client.answer(client.send("configurationDone"))
        assert client.event("stopped")["body"]["reason"] == "entry"
        process.stdin.write(b"garbage\r\n\r\n")
        client.answer(client.send("next"))
        assert client.event("stopped")["body"]["reason"] == "step"
        client.answer(client.send("disconnect"))
        assert process.wait(SECONDS) == 0
        assert process.stderr is not None and process.stderr.read() == b""


def test_the_program_ends_when_its_client_does(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stepper", "dap"]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=SECONDS, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_client_that_vanishes_leaves_nothing_behind() -> None:
    request = {"seq": 1, "type": "request", "command": "initialize"}

    class Gone(io.RawIOBase):
        def write(self, _content: Any) -> int:
            raise BrokenPipeError

    reader = io.BytesIO(framed(json.dumps(request).encode()))
    serve_streams(reader, Gone(), opener(parsed(["dap"])))  # type: ignore[arg-type]


def test_a_run_without_an_end_is_paused_and_takes_breakpoints_meanwhile(port: int, tmp_path: Path) -> None:
    with connected(port) as client:
        client.begin(counting(-1).write(tmp_path), None)
        going = client.send("continue", threadId=1)
        assert client.answer(going)["success"]
        assert client.answer(client.send("threads"))["success"]
        client.answer(client.send("pause", threadId=1))
        assert client.event("stopped")["body"]["reason"] == "pause"
        for number in (client.send("continue"), client.send("pause")):  # the pause comes before the run has begun
            client.answer(number)
        assert client.event("stopped")["body"]["reason"] == "pause"
        client.answer(client.send("continue"))
        found = client.answer(client.send("setFunctionBreakpoints", breakpoints=[{"name": "more"}]))
        assert found["body"]["breakpoints"][0]["verified"]
        assert client.event("stopped")["body"]["reason"] == "function breakpoint"
        client.answer(client.send("setFunctionBreakpoints", breakpoints=[]))
        client.answer(client.send("continue"))
        client.answer(client.send("disconnect"))
        client.event("terminated")
