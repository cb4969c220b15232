"""Requests beyond stepping: breakpoints of all kinds, targets, other values, recordings, errors, large tensors."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.cli import main
from stepper.integrations.dap.dap_session import StopVariables
from tests.integrations.dap.client import SAMPLES, Client, Refused, copied, sample_client
from tests.models import Graph
from tests.tables import each_row


def test_a_value_stops_the_run_where_it_changes(tmp_path: Path) -> None:
    client = sample_client("nested_loop", tmp_path)
    inputs = np.load(SAMPLES / "nested_loop" / "inputs.npz")["values"]
    client.request("setFunctionBreakpoints", breakpoints=[{"name": "passes::pairs_of_neighbours@0"}])
    assert client.go("continue")["reason"] == "function breakpoint"
    frame = client.stack()[0]["id"]
    scopes = {one["name"]: one["variablesReference"] for one in client.request("scopes", frameId=frame)["scopes"]}
    info = client.request("dataBreakpointInfo", variablesReference=scopes["Values"], name="swaps")
    assert info["dataId"] == "changes passes::pairs_of_neighbours::swaps" and info["accessTypes"] == ["write"]
    wanted = [{"dataId": info["dataId"]}, {"dataId": "grow>3"}, {"dataId": info["dataId"], "condition": "swaps > 1"}]
    found = client.request("setDataBreakpoints", breakpoints=wanted)["breakpoints"]
    assert [one["verified"] for one in found] == [True, False, False]
    client.request("setFunctionBreakpoints", breakpoints=[])
    order, swaps = list(inputs), 0
    while order[swaps] <= order[swaps + 1]:
        swaps += 1  # the first pair that is in the wrong order
    assert client.go("continue")["reason"] == "data breakpoint"
    assert client.value("iter") == str(swaps + 1) and client.value("swaps") == "1"
    nothing = client.request("dataBreakpointInfo", name="nothing")
    assert nothing["dataId"] is None and "nothing called" in nothing["description"]
    values = client.variables(frame, "Values")["values"]
    element = client.request("dataBreakpointInfo", variablesReference=values["variablesReference"], name="[2]")
    assert element["dataId"] == "changes passes::pairs_of_neighbours::values[2]"


def test_a_value_that_is_not_there_yet_stops_the_run_when_it_is(tmp_path: Path) -> None:
    """Of every variable that has none, and of what is computed once; a value that no run computes says why not."""
    client = sample_client("rwkv_overflow", tmp_path)
    outer = client.variables(1, "Values")
    client.go("stepIn", targetId=client.request("stepInTargets", frameId=1)["targets"][0]["id"])
    inner = client.variables(2, "Values")
    wanted = {name: one for name, one in {**outer, **inner}.items() if one["value"].startswith("not computed yet")}
    assert {"shape", "time_mixing:0", "wkv", "numerator_next"} <= set(wanted) and len(wanted) > 20
    for name, one in wanted.items():
        client.request("restart")
        if one["evaluateName"].startswith("time_mixing::"):
            client.go("stepIn", targetId=client.request("stepInTargets", frameId=1)["targets"][0]["id"])
        frame = client.stack()[0]["id"]
        (scope,) = [part for part in client.request("scopes", frameId=frame)["scopes"] if part["name"] == "Values"]
        info = client.request("dataBreakpointInfo", variablesReference=scope["variablesReference"], name=name)
        assert info == client.request("dataBreakpointInfo", name=one["evaluateName"])
        assert info["dataId"] == f"new {one['evaluateName']}"
        (found,) = client.request("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"]}])["breakpoints"]
        assert found["verified"]
        stop = client.go("continue")
        assert stop["reason"] == "data breakpoint" and "there for the first time" in stop["text"], name
        assert client.value(one["evaluateName"]) == client.variables(frame, "Values")[name]["value"]
    there = client.request("dataBreakpointInfo", name="model::shape")
    assert there["dataId"] == "new model::shape"  # it is there, and computed once
    for name, why in (("model::embedded", "from the start"), ("model::no_token", "constant")):
        info = client.request("dataBreakpointInfo", name=name)
        assert info["dataId"] is None and why in info["description"]


def test_a_value_that_changed_before_it_was_there_in_this_iteration_stops_the_run(tmp_path: Path) -> None:
    client = sample_client("rwkv_overflow", tmp_path)
    client.request("setFunctionBreakpoints", breakpoints=[{"name": "time_mixing@3"}])
    client.go("continue")
    info = client.request("dataBreakpointInfo", name="wkv", frameId=2)
    client.request("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"], "accessType": "write"}])
    iterations = []
    for _ in range(3):
        assert client.go("continue")["reason"] == "data breakpoint"
        iterations.append(client.value("iter"))
    assert iterations == ["3", "4", "5"]


@each_row(
    ("sample", "wanted", "text"),
    [
        ("rwkv_overflow", {"filters": ["inf"]}, "overflow|exceeds|maximum"),
        ("growing_tensor", {"filters": ["shape"]}, "i64\\[3\\] became i64\\[4\\]"),
        ("rwkv_overflow", {"filters": ["nan"]}, "Divide 'wkv' in iteration 8"),
        ("while_loop", {"filters": ["cond"]}, "condition became false in iteration 110"),
        ("while_loop", {"filters": ["last"]}, "in iteration 110 of Loop 'until_one'"),
        ("nested_loop", {"filters": ["stuck"]}, "'values' is stuck in iteration 3 of Loop 'pairs_of_neighbours'"),
        ("for_loop", {"filters": ["limit"]}, "after iteration 9, 10 in all: trip count reached"),
        ("for_loop", {"filterOptions": [{"filterId": "end", "condition": "years"}]}, "years"),
        ("rwkv_overflow", {"filters": ["check"]}, "exp_key"),
    ],
)
def test_exception_filters_stop_with_their_cause(
    tmp_path: Path, sample: str, wanted: dict[str, Any], text: str
) -> None:
    client = sample_client(sample, tmp_path)
    (found,) = client.request("setExceptionBreakpoints", **wanted)["breakpoints"]
    assert found["verified"]
    stop = client.go("continue")
    assert stop["reason"] == "exception" and re.search(text, stop["text"]), stop
    assert client.request("exceptionInfo", threadId=1)["description"]
    unknown = {"filters": ["nan", "what"], "filterOptions": [{"filterId": "end", "condition": "nothing"}]}
    found = client.request("setExceptionBreakpoints", **unknown)["breakpoints"]
    assert [one["verified"] for one in found] == [True, False, False] and "there is no filter 'what'" in found[1][
        "message"
    ]


def test_hit_counts_and_log_messages(tmp_path: Path) -> None:
    client = sample_client("for_loop", tmp_path)
    line = client.line("balance_next =")
    texts = ("3", ">= 3", "> 2", "== 3", "often", "% 2", "0")
    wanted = [{"line": line, "hitCondition": text} for text in texts]
    found = client.request("setBreakpoints", source=client.source, breakpoints=wanted)["breakpoints"]
    assert [one["verified"] for one in found] == [True] * 4 + [False] * 3
    client.request("setBreakpoints", source=client.source, breakpoints=[{"line": line, "hitCondition": "== 3"}])
    assert client.go("continue")["reason"] == "breakpoint" and client.value("iter") == "2"
    assert client.go("continue")["reason"] == "end"
    log = [{"line": line, "logMessage": "year {iter}", "condition": "iter < 4"}]
    client.go("reverseContinue")
    client.request("restart")
    client.request("setBreakpoints", source=client.source, breakpoints=log)
    before = len(client.events("output"))
    client.go("continue")
    said = [one["output"] for one in client.events("output")[before:]]
    assert said[:4] == [f"year {number}\n" for number in range(4)] and len(said) == 5


def test_a_breakpoint_is_shown_where_the_run_will_stand(tmp_path: Path) -> None:
    """All Parameters of a body begin an iteration, all back edges end it: there is one place for each of both."""
    client = sample_client("rwkv_overflow", tmp_path)
    lines = [number for number, text in enumerate(client.lines, 1) if " = Parameter()" in text or " <- " in text]
    found = client.request(
        "setBreakpoints", source=client.source, breakpoints=[{"line": line} for line in lines if "embedded" not in
        client.lines[line - 1].split("=")[0]]
    )["breakpoints"]  # fmt: skip
    assert len(found) > 4 and all(one["verified"] for one in found)
    shown = {one["line"] for one in found}
    stood = set()
    for _ in range(6):
        client.go("continue")
        stood.add(client.stack()[0]["line"])
    assert stood == shown and len(shown) == 2


def test_a_breakpoint_on_a_parameter_and_on_a_back_edge(tmp_path: Path) -> None:
    client = sample_client("for_loop", tmp_path)
    begins, closes = client.line("balance = Parameter"), client.line("balance <-")
    wanted = [{"line": line} for line in (begins, closes)]
    found = client.request("setBreakpoints", source=client.source, breakpoints=wanted)["breakpoints"]
    assert all(one["verified"] for one in found)
    begins, closes = (one["line"] for one in found)  # where the run stands then
    places = []
    for number in range(4):
        client.go("continue")
        assert client.stack()[0]["line"] == (closes if number % 2 else begins)
        places.append(
            (client.adapter.session.run.debugger.stop.iteration, client.adapter.session.run.debugger.stop.closed)
        )
    assert places == [(0, False), (0, True), (1, False), (1, True)]
    locations = client.request("breakpointLocations", source=client.source, line=1, endLine=len(client.lines))[
        "breakpoints"
    ]
    assert {begins, closes} <= {one["line"] for one in locations}
    assert all("again" not in client.lines[one["line"] - 1] for one in locations)


def test_step_in_has_targets(tmp_path: Path) -> None:
    client = sample_client("nested_loop", tmp_path)
    targets = client.request("stepInTargets", frameId=1)["targets"]
    assert [one["label"] for one in targets] == ["Loop 'passes'"]
    client.go("stepIn", targetId=targets[0]["id"])
    frames = client.stack()
    assert len(frames) == 2 and "passes @0" in frames[0]["name"]
    assert client.request("stepInTargets", frameId=1)["targets"] == []  # of an outer frame
    (inner,) = client.request("stepInTargets", frameId=2)["targets"]
    client.go("stepIn", targetId=inner["id"])
    assert "pairs_of_neighbours @0" in client.stack()[0]["name"]
    with pytest.raises(Refused, match="nothing to step into"):
        client.request("stepIn", targetId=-1)


def test_step_in_has_the_sides_of_an_if(tmp_path: Path) -> None:
    client = sample_client("while_loop", tmp_path)
    client.go("stepIn", targetId=client.request("stepInTargets", frameId=1)["targets"][0]["id"])
    sides = client.request("stepInTargets", frameId=2)["targets"]
    assert [re.sub(" of.*", "", one["label"]) for one in sides] == ["then", "else"]
    for side in sides:
        client.go("stepIn", targetId=side["id"])
        frames = client.stack()
        assert len(frames) == 3 and frames[0]["line"] == side["line"]
        scopes = [one["name"] for one in client.request("scopes", frameId=3)["scopes"]]
        assert scopes == ["Values", "Ports", "Condition"]
        condition = client.variables(3, "Condition")
        assert condition["condition"]["value"] == str(side["label"].startswith("then"))


def test_frames_begin_again_and_lines_are_gone_to_in_time(tmp_path: Path) -> None:
    client = sample_client("nested_loop", tmp_path)
    client.request("setFunctionBreakpoints", breakpoints=[{"name": "swaps_next", "hitCondition": "== 7"}])
    client.go("continue")
    debugger = client.adapter.session.run.debugger
    tick = debugger.stop.tick
    client.request("setFunctionBreakpoints", breakpoints=[])
    line = client.line("left =")
    here, following = client.request("gotoTargets", source=client.source, line=line)["targets"]
    assert client.go("goto", targetId=here["id"])["reason"] == "goto"
    assert debugger.stop.tick < tick and client.stack()[0]["line"] == line
    client.go("goto", targetId=following["id"])
    assert client.stack()[0]["line"] == line and debugger.stop.tick > tick - 20
    stack = client.stack()
    assert client.go("restartFrame", frameId=2)["reason"] == "restart"
    assert len(client.stack()) == 2 and "before" in client.stack()[0]["name"] and len(stack) == 3
    with pytest.raises(Refused, match="no frame 9"):
        client.request("restartFrame", frameId=9)
    with pytest.raises(Refused, match="no target"):
        client.request("goto", targetId=2**40)
    assert client.request("gotoTargets", source={"path": "x"}, line=line)["targets"] == []


def test_another_value_is_a_branch_with_the_outputs_that_numpy_has(tmp_path: Path) -> None:
    client = sample_client("for_loop", tmp_path)
    client.request("initialize", supportsInvalidatedEvent=True)
    client.request("setFunctionBreakpoints", breakpoints=[{"name": "balance_next", "hitCondition": "== 1"}])
    client.go("continue")
    frame = client.stack()[0]["id"]
    value = client.variables(frame, "Values")["balance_next"]
    answer = client.request("setVariable", variablesReference=value["variablesReference"], name="[1]", value="1")
    assert answer["value"] == "1.0" and client.events("invalidated")
    assert client.value("balance_next[1]") == "1.0"
    answer = client.request("setExpression", expression="balance_next[2]", value="balance_next[1] + 1", frameId=frame)
    assert answer["value"] == "2.0"
    for name, wrong in (("[99]", "1"), ("[1]", "nothing"), ("nothing", "1")):
        reference = client.variables(frame, "Values")["balance_next"]["variablesReference"]
        assert not client.answer("setVariable", variablesReference=reference, name=name, value=wrong)["success"]
    (carried, *_) = client.variables(frame, "Carried").values()
    assert not client.answer(
        "setVariable", variablesReference=carried["variablesReference"], name="came in", value="1"
    )["success"]
    assert "edit" in client.request("threads")["threads"][0]["name"]
    client.go("continue")
    inputs = dict(np.load(SAMPLES / "for_loop" / "inputs.npz"))
    debugger = stepper.Debugger(SAMPLES / "for_loop" / "model.xml", inputs)
    debugger.break_at("balance_next", once=True)
    debugger.continue_()
    debugger.set_value("balance_next[1]", 1.0)
    debugger.set_value("balance_next[2]", 2.0)
    debugger.last()
    outputs = client.variables(1, "Outputs")
    for layer, expected in zip(debugger.model.graph.results, debugger.machine.outputs or (), strict=True):
        memory = client.adapter.session.run.variables.opened(outputs[layer.name]["variablesReference"]).array
        np.testing.assert_array_equal(memory, expected)


def test_attach_opens_a_recording_where_it_ended_and_a_case(tmp_path: Path) -> None:
    model, inputs = copied("for_loop", tmp_path)
    trace = tmp_path / "run.sqlite"
    assert main(["run", str(model), "--inputs", str(inputs), "--trace", str(trace), "-q"]) == 0
    client = Client(tmp_path)
    client.request("attach", recording=str(trace))
    client.configured()
    debugger = client.adapter.session.run.debugger
    assert debugger.stop.tick > 10 and client.go("reverseContinue")["reason"] == "entry"
    other = Client(tmp_path)
    assert "attach to what" in other.answer("attach")["message"]
    assert not other.answer("attach", recording=str(tmp_path / "none.sqlite"))["success"]
    other.request("attach", model=str(tmp_path))  # a folder with a model and its inputs
    assert other.configured()["reason"] == "entry" and other.go("next")


def test_attach_that_names_nothing_means_the_model_of_the_command_line(tmp_path: Path) -> None:
    """So an editor's configuration may say a port alone."""
    model, inputs = copied("for_loop", tmp_path)
    client = Client(tmp_path, model, "--inputs", inputs)
    client.request("attach", debugServer=4711, __restart=True)
    assert client.configured()["reason"] == "entry"


@pytest.mark.parametrize("verb", ["attach", "launch"])
def test_a_case_that_was_captured_is_opened_with_its_inputs(tmp_path: Path, verb: str) -> None:
    openvino = pytest.importorskip("openvino")
    model, inputs = copied("rwkv_overflow", tmp_path)
    with stepper.capture(when="nan", to=tmp_path / "kept"):
        openvino.Core().compile_model(str(model), "CPU")(dict(np.load(inputs)))
    (case,) = (tmp_path / "kept").iterdir()
    client = Client(tmp_path)
    client.request(verb, model=str(case))
    client.request("setExceptionBreakpoints", filters=["nan"])
    assert client.configured()["reason"] == "entry"
    assert "Divide 'wkv' in iteration 8" in client.go("continue")["text"]


def test_a_run_that_fails_stops_before_the_operation_that_does(tmp_path: Path) -> None:
    client = sample_client("while_loop", tmp_path, maxIterations=5)
    stop = client.go("continue")
    assert stop["reason"] == "exception" and "more than 5 iterations" in stop["text"]
    info = client.request("exceptionInfo", threadId=1)
    assert info["exceptionId"] == "error" and "more than 5 iterations" in info["description"]
    assert client.go("stepBack")["reason"] == "step" and len(client.stack()) == 2


def test_of_a_large_tensor_pages_are_read_and_ranges_where_a_client_asks_for_all(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", dims=(2_500_000,))
    net.result(net.apply("Add", x, net.constant(0.0), name="same"))
    client = Client(tmp_path)
    client.request("initialize")
    client.request("launch", model=str(net.write(tmp_path)), input={"x": "rand:1"})
    client.configured()
    value = client.variables(1, "Values")["x"]
    array = client.adapter.session.run.debugger.inputs[0]
    page = client.page(value["variablesReference"], start=2_499_998, count=10)
    assert [one["value"] for one in page] == [str(one) for one in array[-2:]]
    ranges = client.page(value["variablesReference"])
    assert len(ranges) <= 1000 and ranges[0]["name"] == "[0..999999]" and ranges[-1]["name"] == "[2000000..2499999]"
    inner = client.page(ranges[2]["variablesReference"])
    assert len(inner) == 500
    (last, *_) = reversed(client.page(inner[-1]["variablesReference"]))
    assert last["evaluateName"] == "model::x[2499999]" and last["value"] == str(array[-1])


def test_memory_that_there_is_not_is_counted_and_of_much_more_follows() -> None:
    """A client skips the bytes that are counted and reads on from behind them, so no byte that there is may be."""
    variables = StopVariables(None)  # type: ignore[arg-type]  # a value alone needs no run
    array = np.arange(400_000, dtype=np.float32)
    for one in (array, np.stack([array, array], 1)[:, 0]):  # the second lies in memory with gaps
        reference = variables.shown("x", one).memory_reference
        read, at = b"", -12
        while at < one.nbytes + 10:
            data, missing = variables.memory(reference, at, one.nbytes + 10 - at)
            read += base64.b64decode(data)
            at += len(base64.b64decode(data)) + missing
        assert read == array.tobytes() and at == one.nbytes + 10
        assert variables.memory(reference, one.nbytes + 5, 7) == ("", 7)


def test_a_long_movement_has_a_progress_that_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stepper.integrations.dap import dap_session

    monkeypatch.setattr(dap_session, "_SOON", 0.0)
    monkeypatch.setattr(dap_session, "_PACE", 0.001)
    client = Client(tmp_path)
    client.begin("while_loop")
    client.request("initialize", supportsProgressReporting=True)
    client.configured()
    client.go("continue")
    (begun,), (ended,) = client.events("progressStart"), client.events("progressEnd")
    assert begun["cancellable"] and begun["progressId"] == ended["progressId"]
    assert all(re.fullmatch(r"tick [0-9,]+", one["message"]) for one in client.events("progressUpdate"))


def test_a_stop_at_a_finding_says_what_check_says(tmp_path: Path) -> None:
    client = sample_client("rwkv_overflow", tmp_path)
    client.request("setExceptionBreakpoints", filters=["check"])
    stopped = client.go("continue")
    info = client.request("exceptionInfo", threadId=1)
    assert stopped["reason"] == "exception" and info["exceptionId"] == "inf-born"
    assert "exp(89.2) > f32 maximum" in info["description"] and "exp(89.2)" in stopped["text"]
    client.request("setExceptionBreakpoints", filters=[])


def test_only_what_is_under_way_is_cancelled(tmp_path: Path) -> None:
    client = sample_client("while_loop", tmp_path)
    paused: list[int] = []
    client.adapter.pause = lambda: paused.append(client.sequence)  # type: ignore[method-assign]
    client.request("cancel", requestId=client.sequence)
    client.request("cancel", progressId="nosuch")
    client.answer("cancel", requestId="7")
    assert not paused
    client.adapter.session.progress = "movement-7"
    client.request("cancel", progressId="movement-7")
    client.request("cancel", requestId=client.sequence + 1)  # still to be answered
    assert len(paused) == 2


def inner_stop(folder: Path) -> tuple[Client, int, int]:
    """A stop in the inner of two loops, and the frames of the model and of that loop; both have a value `values`."""
    client = sample_client("nested_loop", folder)
    client.request("setFunctionBreakpoints", breakpoints=[{"name": "values_next"}])
    client.go("continue")
    frames = client.stack()
    return client, frames[-1]["id"], frames[0]["id"]


def read(client: Client, frame: int, text: str = "values") -> list[float]:
    found = client.request("evaluate", expression=text, context="watch", frameId=frame)
    rows = client.request("variables", variablesReference=found["variablesReference"])["variables"]
    return [float(one["value"]) for one in rows]


def test_a_name_that_two_frames_have_is_that_of_the_frame_that_is_asked(tmp_path: Path) -> None:
    client, outer, inner = inner_stop(tmp_path)
    before = read(client, inner)
    given = read(client, outer)
    watch = client.request("evaluate", expression="values", context="watch", frameId=outer)
    (first, *_) = client.request("variables", variablesReference=watch["variablesReference"])["variables"]
    assert first["evaluateName"] == "model::values[0]"
    client.request("setExpression", expression="values[1]", value="77", frameId=outer)
    client.request("setVariable", variablesReference=watch["variablesReference"], name="[0]", value="99")
    assert read(client, outer) == [99, 77, *given[2:]]
    assert read(client, inner) == before
    info = client.request("dataBreakpointInfo", name="values", frameId=inner)
    assert info["dataId"] == "changes values"
    info = client.request("dataBreakpointInfo", name="order", frameId=2)
    assert info["dataId"] == "changes passes::order"
    info = client.request("dataBreakpointInfo", name="values", frameId=outer)
    assert info["dataId"] is None and "from the start" in info["description"]  # an input never changes
    client.request("setExpression", expression="values[1]", value="5", frameId=inner)
    assert read(client, inner) == [before[0], 5, *before[2:]]


def test_a_command_of_the_console_means_the_frame_that_is_chosen(tmp_path: Path) -> None:
    client, outer, inner = inner_stop(tmp_path)

    def told(line: str, **frame: int) -> str:
        answer: str = client.request("evaluate", expression=line, context="repl", **frame)["result"]
        return answer

    for _ in range(3):
        client.go("continue")
    of_inner, of_outer = (told("print values", frameId=frame) for frame in (inner, outer))
    assert of_inner != of_outer and of_inner == told("print values")
    assert np.allclose(read(client, outer), [float(word) for word in re.findall(r"[0-9.]+", of_outer.splitlines()[1])])
    assert told("print max(values)", frameId=outer) == told("print max(model::values)")
    assert "model::values" in told("why values[1]", frameId=outer) or "input" in told("why values[1]", frameId=outer)
    told("set values[1] = 77", frameId=outer)
    assert read(client, outer)[1] == 77 and read(client, inner)[1] != 77
    with pytest.raises(Refused, match="no frame 9"):
        told("print values", frameId=9)


def test_what_is_open_stays_open_where_a_value_is_set(tmp_path: Path) -> None:
    client, _, inner = inner_stop(tmp_path)
    scopes = client.request("scopes", frameId=inner)["scopes"]
    (scope,) = [one["variablesReference"] for one in scopes if one["name"] == "Values"]
    rows = {one["name"]: one for one in client.request("variables", variablesReference=scope)["variables"]}
    value = rows["values"]["variablesReference"]
    for place, number in ((3, "50"), (2, "40")):
        client.request("setVariable", variablesReference=value, name=f"[{place}]", value=number)
        elements = client.request("variables", variablesReference=value)["variables"]
        assert float(elements[place]["value"]) == float(number)
    rows = {one["name"]: one for one in client.request("variables", variablesReference=scope)["variables"]}
    assert "40" in rows["values"]["value"] and "50" in rows["values"]["value"]
    memory = client.request("readMemory", memoryReference=f"tensor-{value}", offset=8, count=8)
    assert np.frombuffer(base64.b64decode(memory["data"]), np.float32).tolist() == [40, 50]
    client.go("next")
    with pytest.raises(Refused, match="no variables"):
        client.request("variables", variablesReference=value)


def test_a_page_of_long_rows_is_not_looked_through_for_nan() -> None:
    rows = np.zeros((1000, 2000), np.float32)
    rows[5, 7] = np.nan
    variables = StopVariables(None)  # type: ignore[arg-type]  # a value alone needs no run
    reference = variables.shown("x", rows).variables_reference
    assert not any("NaN" in one.value.partition("  ")[2] for one in variables.page(reference, 0, 1000))
    assert variables.page(reference, 0, 100)[5].value.endswith("  1 NaN")


def test_hit_counts_begin_anew_with_the_run(tmp_path: Path) -> None:
    client = sample_client("nested_loop", tmp_path)
    wanted = [{"line": client.line("swaps_next ="), "hitCondition": "3"}]
    assert client.go("continue")["reason"] == "end"  # where it is set nothing more can be counted
    (set_here,) = client.request("setBreakpoints", source=client.source, breakpoints=wanted)["breakpoints"]
    for _ in range(2):
        assert client.go("restart")["reason"] == "entry"
        stop = client.go("continue")
        assert stop["hitBreakpointIds"] == [set_here["id"]] and "@2" in client.stack()[0]["name"]


def test_filters_say_which_of_them_may_be_for_one_loop(tmp_path: Path) -> None:
    client = Client(tmp_path)
    can = client.begin("nested_loop")
    client.configured()
    for one in can["exceptionBreakpointFilters"]:
        options = [{"filterId": one["filter"], "condition": "passes"}]
        if one["filter"] == "check":
            continue
        (found,) = client.request("setExceptionBreakpoints", filters=[], filterOptions=options)["breakpoints"]
        assert found["verified"] == one["supportsCondition"], found
        assert found["verified"] or "no condition" in found["message"]


def test_values_stand_behind_the_lines_of_every_frame_on_the_stack(tmp_path: Path) -> None:
    client = sample_client("rwkv_overflow", tmp_path)
    client.request("setExceptionBreakpoints", filters=["nan"])
    client.go("continue")
    inner, outer = (one["id"] for one in client.stack())

    def shown(frame: int) -> dict[str, str]:
        found = client.request("stepper/values", frameId=frame, line=1, endLine=len(client.lines))["values"]
        return {client.lines[one["line"] - 1].strip().partition(" ")[0]: one["text"] for one in found}

    assert shown(inner)["wkv"].startswith("1 NaN [[10.97021")
    assert shown(inner)["length"] == "12" and "exp_key" not in shown(inner)  # exp_key is not computed yet
    assert shown(outer) == {name: text for name, text in shown(inner).items() if name in shown(outer)}
    assert "wkv" not in shown(outer)


def test_the_newest_value_is_the_first_variable(tmp_path: Path) -> None:
    client = sample_client("rwkv_overflow", tmp_path)
    client.request("setExceptionBreakpoints", filters=["nan"])
    client.go("continue")
    names = list(client.variables(client.stack()[0]["id"], "Values"))
    assert names[:2] == ["wkv", "denominator_now"]
    assert names.index("token_part") < names.index("numerator") < names.index("receptance")


def test_the_exception_is_told_once(tmp_path: Path) -> None:
    client = sample_client("rwkv_overflow", tmp_path)
    client.request("setExceptionBreakpoints", filters=["nan"])
    client.go("continue")
    info = client.request("exceptionInfo", threadId=1)
    assert info["description"] not in info["details"]["stackTrace"] and "time_mixing" in info["details"]["stackTrace"]


def test_a_breakpoint_in_the_xml_moves_to_the_listed_line_of_its_layer(tmp_path: Path) -> None:
    client = sample_client("rwkv_overflow", tmp_path)
    model = tmp_path / "model.xml"
    lines = model.read_text().splitlines()
    at = next(number for number, text in enumerate(lines, 1) if 'name="exp_key"' in text)
    wanted = [{"line": at + 2, "condition": "iter > 2"}, {"line": len(lines)}]
    found = client.request("setBreakpoints", source={"path": str(model)}, breakpoints=wanted)["breakpoints"]
    assert (found[0]["line"], found[0]["source"]) == (client.line("exp_key ="), client.source)
    assert not found[1]["verified"] and "stops nowhere" in found[1]["message"]
    client.request("setBreakpoints", source=client.source, breakpoints=[])  # those of the listing are others
    stop = client.go("continue")
    assert stop["reason"] == "breakpoint" and stop["hitBreakpointIds"] == [found[0]["id"]]
    assert client.value("iter") == "3"
    client.request("setBreakpoints", source={"path": str(model)}, breakpoints=[])
    assert client.go("continue")["reason"] == "end"


def test_sources_are_uris_for_a_client_that_asks_for_uris(tmp_path: Path) -> None:
    model, inputs = copied("for_loop", tmp_path)
    client = Client(tmp_path)
    client.request("initialize", pathFormat="uri")
    client.request("launch", model=str(model), inputs=str(inputs))
    client.configured()
    assert client.source["path"] == (tmp_path / ".stepper" / "model.stepper.py").as_uri()
    line = client.line("balance_next =")
    for source in (client.source, {"path": model.as_uri()}):
        (found,) = client.request("setBreakpoints", source=source, breakpoints=[{"line": line}])["breakpoints"]
        assert found["verified"] and found["source"] == client.source


def test_a_question_about_an_older_stop_opens_no_message_box(tmp_path: Path) -> None:
    client = sample_client("for_loop", tmp_path)
    scopes = client.request("scopes", frameId=1)["scopes"]
    client.go("next")
    answer = client.answer("variables", variablesReference=scopes[0]["variablesReference"])
    assert not answer["success"] and answer["body"]["error"]["showUser"] is False
