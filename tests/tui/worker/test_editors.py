"""An editor that joins the run on the screen, as a real client on a port: one run, moved by both, in one thread."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.integrations.dap.joining import RunPort
from stepper.integrations.dap.messages import HOST
from tests.integrations.dap.client import ROOT, copied
from tests.integrations.dap.test_server import StreamClient
from tests.tui.driven import Driven, drive
from tests.tui.wide_models import wide_loop

T = TypeVar("T")
SECONDS = 60.0


def sample(name: str, folder: Path) -> Debugger:
    """A debugger of a sample in a folder where the listing may be written."""
    model, inputs = copied(name, folder)
    return Debugger(str(model), dict(np.load(inputs)))


class Editor:
    """A client that waits in a thread of its own, so that the application goes on meanwhile."""

    def __init__(self, client: StreamClient, token: str = "") -> None:
        self.client = client
        self._begins = {"token": token} if token else {}

    async def do(self, work: Callable[[StreamClient], T]) -> T:
        """What comes of a conversation."""
        return await asyncio.wait_for(asyncio.to_thread(work, self.client), SECONDS)

    async def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The response to a request."""
        arguments |= self._begins if command in ("attach", "launch") else {}
        return await self.do(lambda client: client.answer(client.send(command, **arguments)))

    async def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The body of the answer to a request that succeeds."""
        answer = await self.ask(command, **arguments)
        assert answer["success"], answer
        body: dict[str, Any] = answer["body"]
        return body

    async def event(self, name: str) -> dict[str, Any]:
        """The body of the next event of this name."""
        found: dict[str, Any] = (await self.do(lambda client: client.event(name))).get("body", {})
        return found

    async def attach(self, **arguments: Any) -> dict[str, Any]:
        """Join the run; the event of the stop."""
        await self.request("initialize", adapterID="stepper", supportsInvalidatedEvent=True)
        await self.request("attach", **arguments)
        await self.event("initialized")
        await self.request("configurationDone")
        return await self.event("stopped")

    async def frames(self) -> list[dict[str, Any]]:
        """The frames, the innermost first."""
        found: list[dict[str, Any]] = (await self.request("stackTrace", threadId=1))["stackFrames"]
        return found

    async def source(self) -> tuple[dict[str, Any], list[str]]:
        """The source, and its lines."""
        (source,) = (await self.request("loadedSources"))["sources"]
        return source, Path(source["path"]).read_text(encoding="utf-8").splitlines()


@contextlib.asynccontextmanager
async def joined(port: RunPort) -> AsyncIterator[Editor]:
    end = await asyncio.to_thread(socket.create_connection, (HOST, port.number), SECONDS)
    with end, end.makefile("rb") as reader, end.makefile("wb") as writer:
        yield Editor(StreamClient(reader, writer), port._door.token)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Any:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    with contextlib.closing(RunPort(0)) as made:
        yield made


def line_of(lines: list[str], begins: str) -> int:
    return next(number for number, text in enumerate(lines, 1) if text.strip().startswith(begins))


def test_both_see_one_run_whoever_moves_it(tmp_path: Path, port: RunPort) -> None:
    async def script(driven: Driven) -> None:
        assert f"dap {port.number}" in driven.text("top")
        async with joined(port) as editor:
            assert (await editor.attach(port=port.number))["reason"] == "entry"
            await driven.until(lambda: "editor" in driven.text("top"))
            await editor.request("stepIn", threadId=1)
            assert (await editor.event("stopped"))["reason"] == "step"
            await driven.until(lambda: driven.state.view is not None and driven.state.view.tick == 1)
            frame, *_ = await editor.frames()
            await driven.type("run-to balance_next@3")  # a movement on the screen
            assert await editor.event("continued")
            assert (await editor.event("stopped"))["reason"] == "step"
            frames = await editor.frames()
            assert "@3" in frames[0]["name"] and frames[0]["line"] != frame["line"]
            scopes = (await editor.request("scopes", frameId=frames[0]["id"]))["scopes"]
            values = await editor.request("variables", variablesReference=scopes[0]["variablesReference"])
            told = next(one for one in values["variables"] if one["name"] == "balance_next")["value"]
            assert told.startswith(f"f32[3] [{1000 * 1.01**4:.3f}"), told  # four years at one per cent
            await editor.request("reverseContinue", threadId=1)
            assert (await editor.event("stopped"))["reason"] == "entry"
            await driven.until(lambda: driven.state.view is not None and driven.state.view.tick == 0)

    drive(sample("for_loop", tmp_path), script, editors=port)


def test_breakpoints_of_both_are_one_list_and_those_of_the_editor_go_with_it(tmp_path: Path, port: RunPort) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("break interest")
        debugger = driven.app.driver._debugger
        async with joined(port) as editor:
            await editor.attach()
            source, lines = await editor.source()
            told = await editor.event("breakpoint")
            assert (told["reason"], told["breakpoint"]["line"]) == ("new", line_of(lines, "interest ="))
            place = {"line": line_of(lines, "balance_next ="), "condition": "max(balance_next) > 1100"}
            both = [{"line": told["breakpoint"]["line"]}, place]
            set_here = (await editor.request("setBreakpoints", source=source, breakpoints=both))["breakpoints"]
            assert [one["id"] for one in set_here] == [1, 2]  # the one of the application, not one more
            await driven.until(lambda: len(driven.state.breaks) == 2)
            await editor.request("continue", threadId=1)
            stop = await editor.event("stopped")
            assert (stop["reason"], stop["hitBreakpointIds"]) == ("breakpoint", [1])
            await driven.type("delete 2")
            gone = await editor.event("breakpoint")
            assert (gone["reason"], gone["breakpoint"]["id"]) == ("removed", 2)
            await editor.request("setFunctionBreakpoints", breakpoints=[{"name": "balance_next"}])
            await driven.type("continue")
            assert (await editor.event("stopped"))["reason"] == "function breakpoint"
            await editor.request("evaluate", expression="break @3", context="repl")
            await driven.until(lambda: len(driven.state.breaks) == 3)
            await editor.request("disconnect")
            await editor.event("terminated")
        await driven.until(lambda: "editor" not in driven.text("top"))
        assert [str(one.description) for one in debugger.breakpoints] == ["break interest", "break @3"]
        await driven.type("next")  # the application goes on
        assert not driven.app._faults

    drive(sample("for_loop", tmp_path), script, editors=port)


def test_edits_and_logged_lines_are_seen_by_both(tmp_path: Path, port: RunPort) -> None:
    async def script(driven: Driven) -> None:
        async with joined(port) as editor:
            await editor.attach()
            await driven.type("run-to balance_next@1")
            await editor.event("stopped")
            await driven.type("set balance_next[0] = 7")
            assert await editor.event("stopped")
            assert (await editor.request("evaluate", expression="balance_next[0]", context="watch"))["result"] == "7.0"
            thread = (await editor.request("threads"))["threads"][0]
            assert "edit-1" in thread["name"]
            await editor.request("setExpression", expression="balance_next[1]", value="8")
            assert (await editor.request("evaluate", expression="balance_next[1]", context="watch"))["result"] == "8.0"
            size = np.sqrt(np.mean(np.square([7, 8, 250 * 1.12**2])))  # which the sheet shows
            await driven.until(lambda: driven.state.is_edited and f" {size:.3f}"[:7] in driven.text("sheet"))
            source, lines = await editor.source()
            log = [{"line": line_of(lines, "interest ="), "logMessage": "interest {max(interest)}"}]
            await editor.request("setBreakpoints", source=source, breakpoints=log)
            await driven.type("continue")
            said = [(await editor.event("output"))["output"]]
            assert said[0].startswith("interest ")
            await driven.until(lambda: "interest " in driven.answer)

    drive(sample("for_loop", tmp_path), script, editors=port)


def test_an_editor_is_refused_a_movement_while_the_application_moves_and_may_pause_it(port: RunPort) -> None:
    async def script(driven: Driven) -> None:
        async with joined(port) as editor:
            await editor.attach()
            driven.app.perform("continue")
            await editor.event("continued")
            refused = await editor.ask("next", threadId=1)
            assert not refused["success"] and "the application moves the run" in refused["message"]
            assert (await editor.ask("pause", threadId=1))["success"]
            assert (await editor.event("stopped"))["reason"] == "pause"
            await editor.request("continue", threadId=1)
            await shown_running(driven, "editor: continue")
            driven.app.perform("pause")  # Esc
            assert (await editor.event("stopped"))["reason"] == "pause"
            await driven.settle()

    drive(wide_loop(40, 2_000_000), script, lines=("run-to wide@0",), editors=port)


async def shown_running(driven: Driven, command: str) -> None:
    for _ in range(2000):
        running = driven.state.running
        if running is not None and running.command == command:
            return
        await asyncio.sleep(0.005)
    raise AssertionError("the screen does not show that it runs")


def test_an_editor_that_leaves_or_vanishes_leaves_a_movement_of_the_application_alone(port: RunPort) -> None:
    async def script(driven: Driven) -> None:
        for leaves in (True, False):
            async with joined(port) as editor:
                await editor.attach()
                driven.app.perform("continue")
                await editor.event("continued")
                waits = editor.client.send("stackTrace", threadId=1)  # for its turn
                if leaves:
                    await editor.request("disconnect")
                    await editor.event("terminated")
                assert waits
            await shown_running(driven, "continue")
            assert driven.app.driver.is_moving
            driven.app.perform("pause")
            await driven.settle()
        async with joined(port) as editor:
            await editor.attach()
            await editor.request("continue", threadId=1)
            await shown_running(driven, "editor: continue")
        for _ in range(1000):  # its own movement ends with it
            if not driven.app.driver.is_moving:
                break
            await asyncio.sleep(0.01)
        await driven.settle()
        assert not driven.app.driver.is_moving and not driven.app._faults

    drive(wide_loop(40, 2_000_000), script, lines=("run-to wide@0",), editors=port)


def test_what_the_screen_asks_of_itself_is_no_movement_for_the_editor(tmp_path: Path, port: RunPort) -> None:
    """The story of a NaN opens by itself; an editor that steps on at once is told of one stop for each movement."""

    async def script(driven: Driven) -> None:
        async with joined(port) as editor:
            await editor.attach()
            await editor.request("setExceptionBreakpoints", filters=["nan"])
            await editor.request("continue", threadId=1)
            stop = await editor.event("stopped")
            assert stop["description"] == "NaN appears in Divide in iteration 8 of Loop" and "exp_key" in stop["text"]
            await editor.request("stepBack", threadId=1)
            assert (await editor.event("stopped"))["reason"] == "step"
            await driven.settle()
            assert (await editor.request("threads"))["threads"]
            assert not [one for one in editor.client.events if one["event"] in ("stopped", "continued")]

    drive(sample("rwkv_overflow", tmp_path), script, runs=True, editors=port)


def test_a_second_editor_is_refused_and_one_that_launches_too(tmp_path: Path, port: RunPort) -> None:
    async def script(driven: Driven) -> None:
        async with joined(port) as first, joined(port) as second:
            await first.attach()
            answer = await second.ask("initialize")
            assert not answer["success"] and "another client" in answer["message"]
        await driven.until(lambda: "editor" not in driven.text("top"))
        async with joined(port) as third:
            await third.request("initialize")
            answer = await third.ask("launch", model="x.xml")
            assert not answer["success"] and "attach" in answer["message"]
            assert (await third.ask("attach"))["success"]

    drive(sample("for_loop", tmp_path), script, editors=port)


def test_the_session_ends_with_the_application_and_when_another_run_follows(tmp_path: Path, port: RunPort) -> None:
    debugger = sample("for_loop", tmp_path)

    async def script(driven: Driven) -> None:
        async with joined(port) as editor:
            await editor.attach()
            await editor.request("setFunctionBreakpoints", breakpoints=[{"name": "interest"}])
            driven.app.session.follow(lambda: Debugger(debugger.model, dict(np.load(tmp_path / "inputs.npz"))))
            assert (await editor.event("terminated")) == {"restart": True}
        await driven.until(lambda: "editor" not in driven.text("top"))
        assert len(driven.app.driver._debugger.breakpoints) == 1  # the run that follows has taken it over
        async with joined(port) as editor:
            await editor.attach()
            await editor.request("disconnect")
        await driven.until(lambda: not driven.state.breaks)
        async with joined(port) as editor:
            await editor.attach()
            await editor.request("stepIn", threadId=1)
            await editor.event("stopped")
            await driven.until(lambda: driven.state.view is not None and driven.state.view.tick == 1)
            port.close()
            assert (await editor.event("terminated")) == {}

    drive(debugger, script, editors=port)


def test_the_session_that_is_kept_has_nothing_of_an_editor_that_was_there_at_the_end(
    tmp_path: Path, port: RunPort
) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("break interest")
        async with joined(port) as editor:
            await editor.attach()
            await editor.request("setFunctionBreakpoints", breakpoints=[{"name": "balance_next"}])
            driven.app.leave()
            debugger = await asyncio.to_thread(driven.app.driver.ended)
            assert debugger is not None and len(debugger.breakpoints) == 2
            port.leave_run()
            await editor.event("terminated")
            assert [str(one.description) for one in debugger.breakpoints] == ["break interest"]

    drive(sample("for_loop", tmp_path), script, editors=port)


def test_an_adapter_that_the_editor_starts_hands_on_to_the_application(tmp_path: Path, port: RunPort) -> None:
    """As `{"request": "attach", "port": N}` of an editor that starts `stepper dap` itself."""

    async def script(driven: Driven) -> None:
        command = [sys.executable, "-m", "stepper", "dap"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
            assert process.stdin is not None and process.stdout is not None
            editor = Editor(StreamClient(process.stdout, process.stdin))
            try:
                assert (await editor.attach(port=port.number))["reason"] == "entry"
                await editor.request("stepIn", threadId=1)
                await editor.event("stopped")
                await driven.until(lambda: driven.state.view is not None and driven.state.view.tick == 1)
                port.close()
                await editor.event("terminated")
                assert await asyncio.to_thread(process.wait, SECONDS) == 0
            finally:
                process.kill()

    drive(sample("for_loop", tmp_path), script, editors=port)


def test_an_adapter_says_that_another_editor_is_there(tmp_path: Path, port: RunPort) -> None:
    async def script(_driven: Driven) -> None:
        command = [sys.executable, "-m", "stepper", "dap"]
        async with joined(port) as first:
            await first.attach()
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
                assert process.stdin is not None and process.stdout is not None
                second = Editor(StreamClient(process.stdout, process.stdin))
                try:
                    await second.request("initialize")
                    answer = await second.ask("attach", port=port.number)
                    assert not answer["success"] and "another client" in answer["message"]
                    await second.event("terminated")
                    assert await asyncio.to_thread(process.wait, SECONDS) == 0
                finally:
                    process.kill()
            assert (await first.ask("threads"))["success"]

    drive(sample("for_loop", tmp_path), script, editors=port)


def test_an_adapter_says_that_no_application_is_there(port: RunPort) -> None:
    port.close()
    command = [sys.executable, "-m", "stepper", "dap"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            client = StreamClient(process.stdout, process.stdin)
            client.answer(client.send("initialize"))
            answer = client.answer(client.send("attach", port=port.number))
            assert not answer["success"] and f"stepper MODEL --dap {port.number}" in answer["message"]
            client.event("terminated")
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


def test_broken_messages_leave_the_application_as_it_is(tmp_path: Path, port: RunPort) -> None:
    async def script(driven: Driven) -> None:
        async with joined(port) as editor:
            await editor.attach()
            for text in ('{"seq": 1}', "[]", "nonsense", '{"seq":1,"type":"request","command":"next","arguments":7}'):
                content = text.encode()
                editor.client.writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
            assert await editor.frames()
        async with joined(port) as editor:
            editor.client.writer.write(b"GET / HTTP/1.1\r\n\r\n")
            editor.client.writer.flush()
            assert (await editor.event("output"))["category"] == "stderr"
            assert await asyncio.to_thread(editor.client.reader.read) == b""  # it hangs up
        assert driven.state.view is not None and driven.state.view.tick == 0 and not driven.app._faults

    drive(sample("for_loop", tmp_path), script, editors=port)
