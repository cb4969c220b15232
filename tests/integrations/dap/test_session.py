"""A session of a client: what it sees, forward and back, is what the debugger and the specification say."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.engine.rules import Rules
from tests.integrations.dap.client import SAMPLES, Client, Refused, copied, sample_client
from tests.tables import each_row


def test_a_listing_has_a_line_for_each_operation_and_back_edge(tmp_path: Path) -> None:
    client = sample_client("nested_loop", tmp_path)
    lines = client.lines
    model = stepper.open_model(SAMPLES / "nested_loop" / "model.xml")
    xml = (SAMPLES / "nested_loop" / "model.xml").read_text().splitlines()
    for path, graph in model.graphs():
        for layer in graph.operations:
            (found,) = [one for one in lines if one.startswith(f"{'    ' * len(path)}{layer.name} = {layer.type}(")]
            number = int(found.rpartition("L")[2])
            assert f'name="{layer.name}"' in xml[number - 1]
    edges = [one for one in lines if "# back edge" in one]
    assert len(edges) == sum(
        len(body.back_edges) for _, graph in model.graphs() for layer in graph.layers for body in layer.bodies
    )
    assert all("<edge from" in xml[int(one.rpartition("L")[2]) - 1] for one in edges)
    path = Path(client.source["path"])
    assert path == tmp_path / ".stepper" / "model.stepper.py" and path.read_text().splitlines() == lines


def test_a_listing_that_cannot_be_written_is_served(tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (tmp_path / ".stepper").symlink_to(other)
    client = sample_client("for_loop", tmp_path)
    assert client.source["sourceReference"] == 1 and "path" not in client.source
    line = client.line("balance_next =")
    (found,) = client.request("setBreakpoints", source=client.source, breakpoints=[{"line": line}])["breakpoints"]
    assert found["verified"] and not list(other.iterdir())


@each_row("sample", sorted(path.parent.name for path in SAMPLES.glob("*/inputs.npz")))
def test_on_every_line_that_is_offered_the_run_stops_and_everything_there_can_be_opened(
    tmp_path: Path, sample: str
) -> None:
    client = sample_client(sample, tmp_path, openSequences=True)
    lines = client.lines
    offered = client.request("breakpointLocations", source=client.source, line=1, endLine=len(lines))["breakpoints"]
    found = client.request("setBreakpoints", source=client.source, breakpoints=offered)["breakpoints"]
    assert all(one["verified"] for one in found)
    assert [one["line"] for one in found] == [one["line"] for one in offered]
    at = {one["id"]: one["line"] for one in found}
    for _ in range(8):
        stop = client.go("continue")
        frame = client.stack()[0]
        if stop["reason"] == "end":
            break
        hit = [at[number] for number in stop["hitBreakpointIds"]]
        assert frame["line"] in hit or "Parameter()" in lines[hit[0] - 1], (frame, hit)
        for scope in client.request("scopes", frameId=frame["id"])["scopes"]:
            for one in client.page(scope["variablesReference"]):
                if one["variablesReference"]:
                    client.page(one["variablesReference"])
                if one.get("evaluateName") and "virtual" not in one.get("presentationHint", {}).values():
                    assert client.value(one["evaluateName"]) == one["value"]


def test_breakpoints_on_lines_stop_where_their_conditions_hold(tmp_path: Path) -> None:
    client = sample_client("nested_loop", tmp_path)
    at = client.line("swaps_next =")
    wanted = [{"line": at, "condition": "swaps_next == 2"}, {"line": 10_000}, {"line": at, "condition": "nothing > 1"}]
    found = client.request("setBreakpoints", source=client.source, breakpoints=wanted)["breakpoints"]
    assert [one["verified"] for one in found] == [True, False, False]
    assert "nothing called 'nothing'" in found[2]["message"]
    stop = client.go("continue")
    assert stop["reason"] == "breakpoint" and stop["hitBreakpointIds"] == [found[0]["id"]]
    assert [frame["line"] for frame in client.stack()] == [
        at,
        client.line("pairs_of_neighbours ="),
        client.line("passes ="),
    ]
    assert client.value("swaps_next") == "2"
    again = client.request("setBreakpoints", source=client.source, breakpoints=[*wanted[:1], {"line": at + 1}])
    assert again["breakpoints"][0]["id"] == found[0]["id"]  # as it was
    other = {"path": str(tmp_path / "other.py")}
    (refused,) = client.request("setBreakpoints", source=other, breakpoints=[{"line": 1}])["breakpoints"]
    assert not refused["verified"] and "model.stepper.py" in refused["message"]


def test_steps_go_forward_and_back_through_the_same_lines(tmp_path: Path) -> None:
    client = sample_client("nested_loop", tmp_path)
    lines = [client.stack()[0]["line"]]
    debugger = stepper.Debugger(SAMPLES / "nested_loop" / "model.xml", dict(np.load(tmp_path / "inputs.npz")))
    for _ in range(30):
        client.go("stepIn")
        frame = client.stack()[0]
        stop = debugger.step()
        if stop.done is not None:
            assert client.lines[frame["line"] - 1].strip().startswith(f"{stop.done.layer.name} = ")
        assert (f"@{stop.iteration} " in frame["name"]) == (stop.iteration is not None)
        lines.append(frame["line"])
    back = []
    for _ in range(30):
        client.request("evaluate", expression="reverse-step", context="repl")
        back.append(client.stack()[0]["line"])
    assert back == lines[-2::-1]
    depth = len(client.stack())
    for verb in ("next", "next", "stepBack", "stepBack"):
        client.go(verb)
        assert len(client.stack()) == depth
    assert client.go("reverseContinue")["reason"] == "entry"


def test_a_nan_stops_the_run_with_its_cause_and_steps_back_show_the_value_before(tmp_path: Path) -> None:
    client = Client(tmp_path)
    can = client.begin("rwkv_overflow")
    assert can["supportsStepBack"] and can["supportsDataBreakpoints"]
    client.request("setExceptionBreakpoints", filters=["nan"])
    client.configured()
    stop = client.go("continue")
    assert stop["reason"] == "exception" and "NaN" in stop["text"]
    frame, *outer = client.stack()
    assert (
        "@8" in frame["name"] and len(outer) == 1 and client.lines[frame["line"] - 1].strip().startswith("wkv = Divide")
    )
    info = client.request("exceptionInfo", threadId=1)
    assert info["exceptionId"] == "nan" and "exp_key" in info["description"]
    assert "NaN" in client.variables(frame["id"], "Values")["wkv"]["value"]
    client.go("stepBack")
    assert client.variables(frame["id"], "Values")["wkv"]["value"] == "not computed yet in iteration 8"
    assert client.stack()[0]["line"] == frame["line"] - 1
    assert client.go("continue")["reason"] == "exception" and client.go("reverseContinue")["reason"] == "entry"


def test_values_carried_values_and_outputs_of_a_sequence(tmp_path: Path) -> None:
    client = sample_client("specification_lstm", tmp_path)
    assert client.go("stepIn")["reason"] == "step"
    while "@1" not in client.stack()[0]["name"]:
        client.go("stepIn")
    frame = client.stack()[0]["id"]
    scopes = [one["name"] for one in client.request("scopes", frameId=frame)["scopes"]]
    assert scopes == ["Values", "Carried", "Scan outputs", "Ports", "Condition"]
    for edge in client.variables(frame, "Carried").values():
        came, out, _ = client.page(edge["variablesReference"])
        assert "type" in came and (out["value"] == "nothing yet" or out["type"] == came["type"])
    (scan,) = client.variables(frame, "Scan outputs").values()
    assert scan["value"].startswith("1 piece along axis")
    assert len(client.page(scan["variablesReference"])) == 1
    assert client.variables(frame, "Condition")["iterations"]["value"] == "1"
    assert (
        client.variables(1, "Values") and client.request("evaluate", expression="iter", frameId=frame)["result"] == "1"
    )


def test_pages_and_memory_of_a_tensor_are_its_elements(tmp_path: Path) -> None:
    client = sample_client("nested_loop", tmp_path)
    client.go("next")
    values = client.variables(1, "Values")["values"]
    inputs = np.load(SAMPLES / "nested_loop" / "inputs.npz")["values"]
    assert values["indexedVariables"] == len(inputs)
    page = client.page(values["variablesReference"], start=1, count=3)
    assert [(one["name"], float(one["value"]), one["evaluateName"]) for one in page] == [
        (f"[{number}]", float(inputs[number]), f"model::values[{number}]") for number in (1, 2, 3)
    ]
    found = client.request("readMemory", memoryReference=values["memoryReference"], offset=4, count=100)
    data = base64.b64decode(found["data"])
    assert data == inputs.tobytes()[4:] and found["unreadableBytes"] == 100 - len(data)
    assert struct.unpack("<f", data[:4])[0] == inputs[1]
    assert client.page(values["variablesReference"], filter="named") == []  # type: ignore[arg-type]
    client.go("next")
    with pytest.raises(Refused, match="no variables"):
        client.page(values["variablesReference"])


def test_expressions_commands_and_completions(tmp_path: Path) -> None:
    client = sample_client("for_loop", tmp_path)
    client.request("evaluate", expression="break balance_next@2", context="repl")
    stop = client.go("continue")
    assert stop["reason"] == "breakpoint" and client.value("iter") == "2"
    inside, outside = (frame["id"] for frame in client.stack())
    assert client.value("max(balance_next) > 0") == "True"
    assert client.value("principal", frameId=outside).startswith("f32[3]")
    hover = client.answer("evaluate", expression="again if", context="hover", frameId=inside)
    assert not hover["success"]
    assert "Loop 'years'" in client.request("evaluate", expression="where", context="repl")["result"]
    client.request("evaluate", expression="next", context="repl")
    assert client.events("stopped")[-1]["reason"] == "step"
    found = client.request("completions", text="balance_n", column=10)["targets"]
    assert [one["text"] for one in found] == ["balance_next"]
    found = client.request("completions", text="reverse-", column=9)["targets"]
    assert "reverse-step" in [one["label"] for one in found]
    assert (
        client.request("completions", text="print balance_n", column=16)["targets"][0]["text"] == "print balance_next"
    )
    client.request("evaluate", expression="quit", context="repl")
    assert client.adapter.ended and client.events("terminated")


def test_a_launch_takes_the_options_of_the_command_line(tmp_path: Path) -> None:
    client = Client(tmp_path)
    arguments = {"breaks": ["balance_next hit 2"], "rules": "openvino", "memory": "64MB", "openSequences": True}
    client.begin("for_loop", **arguments, __sessionId="1", brake="nan", stopOnEntry=False)
    assert any("no option 'brake' of stepper dap; near is break" in one["output"] for one in client.events("output"))
    stop = client.configured()
    assert stop["reason"] == "breakpoint" and client.value("iter") == "1"
    debugger = client.adapter.session.run.debugger
    assert debugger.machine.rules is Rules.OPENVINO and debugger.timeline.history.budget == 64 * 2**20


@each_row(
    ("arguments", "message"),
    [
        ({}, "name a model"),
        ({"model": "none.xml"}, "there is no such file"),
        ({"model": {"path": 7}}, "is a text"),
        ({"model": "model.xml", "rules": "mine"}, "none of spec and openvino"),
        ({"model": "model.xml", "openSequences": 3}, "true or false"),
        ({"model": "model.xml"}, "input"),
    ],
)
def test_a_launch_that_cannot_be_says_why_and_another_one_may_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, object], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    client = Client(tmp_path)
    client.request("initialize")
    copied("for_loop", tmp_path)
    answer = client.answer("launch", **arguments)
    assert not answer["success"] and message in json.dumps(answer["body"])
    with pytest.raises(Refused, match="launch one first"):
        client.stack()
    client.request("launch", model="model.xml", inputs="inputs.npz")
    assert client.configured()["reason"] == "entry"


def test_a_client_that_counts_from_0_is_answered_so(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.begin("for_loop")
    client.request("initialize", linesStartAt1=False, columnsStartAt1=False)
    line = client.line("balance_next =") - 1
    (found,) = client.request("setBreakpoints", source=client.source, breakpoints=[{"line": line}])["breakpoints"]
    assert found["line"] == line
    client.configured()
    client.go("continue")
    assert (client.stack()[0]["line"], client.stack()[0]["column"]) == (line, 0)


def test_at_the_end_the_outputs_are_there_and_one_can_go_back(tmp_path: Path) -> None:
    client = sample_client("for_loop", tmp_path)
    assert client.go("continue")["reason"] == "end"
    (frame,) = client.stack()
    assert "end of the run" in frame["name"]
    outputs = client.variables(frame["id"], "Outputs")
    inputs = dict(np.load(SAMPLES / "for_loop" / "inputs.npz"))
    expected = stepper.run(SAMPLES / "for_loop" / "model.xml", inputs)
    assert len(outputs) == len(expected)
    for name, value in expected.items():
        memory = client.request("readMemory", memoryReference=outputs[name]["memoryReference"], count=value.nbytes)
        assert base64.b64decode(memory["data"]) == value.tobytes()
    assert client.go("stepBack")["reason"] == "step" and client.go("reverseContinue")["reason"] == "entry"


def test_without_debugging_the_session_ends_with_the_run(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.begin("for_loop", noDebug=True, breaks=["balance_next"])
    client.request("configurationDone")
    assert client.events("terminated") and not client.events("stopped")
    assert "output 0" in client.events("output")[-1]["output"]
