"""Many calls as a loop: they compute what the calls one after the other compute."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.engine.run import PartsOfCalls
from stepper.errors import InputError, UsageError
from stepper.ir.calls import with_calls
from stepper.ir.model import CallParts, Calls, CarriedOutput
from tests.calls.samples import ALL, GRU_STATEFUL, KV_CACHE, VAD, VAD_STATEFUL, SampleCalls
from tests.models import Graph, carried, last
from tests.tables import each_row


@each_row("rules", ["spec", "openvino"])
@each_row("sample", ALL, ids=lambda one: one.name)
def test_calls_give_what_openvino_computed_in_them(sample: SampleCalls, rules: str) -> None:
    model, inputs = sample.over_calls()
    outputs = stepper.run(model, inputs, rules=rules)
    expected = sample.expected
    np.testing.assert_allclose(
        outputs[sample.output].reshape(expected.shape), expected, rtol=1e-4, atol=1e-5, err_msg=sample.name
    )
    assert outputs.loops[-1].path == "model > Loop 'calls'" and outputs.loops[-1].iterations == len(expected)


@each_row("sample", [VAD, VAD_STATEFUL, KV_CACHE, GRU_STATEFUL], ids=lambda one: one.name)
def test_every_value_of_every_call_is_that_of_the_call_alone(sample: SampleCalls) -> None:
    model, inputs = sample.over_calls()
    debugger = stepper.Debugger(model, inputs)
    single = stepper.read_model(sample.path)
    layers = {layer.name: layer.id for layer in single.graph.layers}
    given = dict(sample.same)
    states: Any = None
    for number in range(4):
        given |= {name: value[number] for name, value in sample.calls.items()}
        outputs = stepper.run(single, given, states=states)
        machine = stepper.Machine(stepper.compile_model(single), stepper.bind_inputs(single, given), states=states)
        while machine.stack[0].pc < len(machine.program.code):
            machine.advance()
        frame = machine.stack[0]
        names = [layer.name for layer in single.graph.operations if layer.type != "Assign"]
        names = [name for name in names if name not in ("ShapeOf_1", "Broadcast_2")]  # before the loop: of call 0 alone
        for name in names:
            debugger.goto(f"{name}@{number}")
            alone = frame.values[frame.program.slots[layers[name], 0]]
            np.testing.assert_array_equal(debugger.value(name), alone, err_msg=f"{name} of call {number}")
        assert len(names) > 5
        given |= {to: outputs[name] for name, to in sample.carry.items()}
        states = outputs.states


def test_variables_are_carried_and_left_as_the_last_call_leaves_them() -> None:
    model, inputs = VAD_STATEFUL.over_calls()
    half = {key: value[:30] if getattr(value, "ndim", 0) else value for key, value in inputs.items()}
    calls = VAD_STATEFUL.calls["input"]
    original = stepper.read_model(VAD_STATEFUL.path)
    first, given = stepper.over_calls(original, {"input": calls[:30]})
    second, more = stepper.over_calls(original, {"input": calls[30:]})
    begun = stepper.run(first, {**given, "sr": 16000})
    gone_on = stepper.run(second, {**more, "sr": 16000}, states=begun.states)
    whole = stepper.run(model, inputs)
    joined = np.concatenate([begun["output"], gone_on["output"]])
    np.testing.assert_array_equal(joined, whole["output"])
    assert half["sr"] == 16000
    (body,) = next(layer for layer in model.graph.layers if layer.is_over_calls).bodies
    carried = [body.graph.by_id[edge.to_layer] for edge in body.back_edges]
    lines = {layer.name: layer.line for layer in original.graph.layers}
    assert [layer.line for layer in carried] == [lines[layer.name] for layer in carried]


def test_calls_may_lie_along_any_axis_and_one_behind_the_other() -> None:
    expected = VAD_STATEFUL.expected
    frames = VAD_STATEFUL.calls["input"]
    for given in (
        frames,
        frames.reshape(60, 16),
        PartsOfCalls(frames.reshape(1, 60 * 16), axis=1),
        PartsOfCalls(np.moveaxis(frames, 0, 2), axis=2),
        list(frames),
    ):
        model, inputs = stepper.over_calls(VAD_STATEFUL.path, {"input": given})
        outputs = stepper.run(model, {**inputs, "sr": 16000})
        np.testing.assert_allclose(outputs["output"].reshape(expected.shape), expected, rtol=1e-5)


def test_what_has_no_axis_gets_one_of_calls() -> None:
    rates = np.array([16000, 8000, 16000])
    frames = VAD.calls["input"][:3]
    model, inputs = stepper.over_calls(VAD.path, {"input": frames, "sr": rates}, {"stateN": "state"})
    together = stepper.run(model, {**inputs, "state": VAD.same["state"]})
    state, alone = VAD.same["state"], []
    for frame, rate in zip(frames, rates, strict=True):
        outputs = stepper.run(VAD.path, {"input": frame, "sr": rate, "state": state})
        state = outputs["stateN"]
        alone.append(outputs["output"])
    np.testing.assert_array_equal(together["output"], np.concatenate(alone))
    np.testing.assert_array_equal(together["stateN"], state)


def test_calls_may_differ_in_length() -> None:
    """A prompt of seven time steps, then one by one: what one call of all of them gives."""
    sequence = np.random.default_rng(3).normal(size=(1, 9, 4)).astype(np.float32)
    parts = [sequence[:, :7], sequence[:, 7:8], sequence[:, 8:]]
    model, inputs = stepper.over_calls(ALL[3].path, {"sequence": parts})
    debugger = stepper.Debugger(model, inputs)
    for number, part in enumerate(parts):
        debugger.goto(f"sequence@{number}")
        np.testing.assert_array_equal(debugger.value("sequence"), part)
    alone = [stepper.run(ALL[3].path, {"sequence": part})["states"] for part in parts]
    np.testing.assert_array_equal(stepper.run(model, inputs)["states"], alone[-1])


def test_a_number_alone_calls_with_the_same_inputs() -> None:
    """A second inference must not begin with what the first one left, but for variables."""
    given = {"token": KV_CACHE.calls["token"][0], **KV_CACHE.same}
    model, inputs = stepper.over_calls(KV_CACHE.path, {}, count=3)
    outputs = stepper.run(model, {**inputs, **given})
    alone = stepper.run(KV_CACHE.path, given)["mixed"]
    assert outputs["mixed"].shape == (3, 1, 6) and (outputs["mixed"] == alone).all()


def test_it_is_the_same_in_another_process_and_cannot_be_wrapped_twice() -> None:
    model, inputs = VAD.over_calls()
    there = pickle.loads(pickle.dumps(model))
    assert there.calls == model.calls and len(pickle.dumps(model)) < 2000
    np.testing.assert_array_equal(stepper.run(there, inputs)["output"], stepper.run(model, inputs)["output"])
    with pytest.raises(UsageError, match="already"):
        with_calls(model, Calls(2))


@each_row(
    ("calls", "carry", "message"),
    [
        ({"input": np.zeros((3, 2, 16), np.float32)}, {}, r"a call takes \[1,16\], so \[calls,1,16\] is expected"),
        ({"input": np.zeros((1, 1, 1, 16), np.float32)}, {}, r"have the shape \[1,1,1,16\]"),
        ({"input": PartsOfCalls(np.zeros((1, 17), np.float32), axis=1)}, {}, "17 long along axis 1: not parts of 16"),
        ({"input": PartsOfCalls(np.zeros((1, 16), np.float32), axis=5)}, {}, "no axis 5"),
        ({"input": np.zeros((3, 1, 16)), "sr": np.zeros(4, np.int64)}, {}, "'input' says 3 calls, input 'sr' 4"),
        ({}, {}, "nothing says how many calls"),
        ({"frame": np.zeros((3, 1, 16))}, {}, "no input 'frame'"),
        ({"input": np.zeros((3, 1, 16))}, {"stateM": "state"}, "no output 'stateM'; near is stateN"),
        ({"input": np.zeros((3, 1, 16))}, {"stateN": "input"}, r"is \[2,1,8\], that takes \[1,16\]"),
        ({"input": np.zeros((3, 1, 16))}, {"stateN": "sr"}, "is f32, that takes i64"),
        ({"input": [np.zeros((1, 16)), np.zeros((1, 15))]}, {}, r"call 1: input 'input' has shape \[1,15\]"),
    ],
)
def test_what_cannot_be_calls_is_refused(calls: dict[str, Any], carry: dict[str, str], message: str) -> None:
    with pytest.raises((UsageError, InputError), match=message):
        stepper.over_calls(VAD.path, calls, carry)


def test_an_open_dimension_says_that_it_needs_a_length() -> None:
    with pytest.raises(InputError, match="parted in several ways"):
        stepper.over_calls(ALL[3].path, {"sequence": PartsOfCalls(np.zeros((1, 9, 4), np.float32), axis=1)})
    model, inputs = stepper.over_calls(ALL[3].path, {"sequence": PartsOfCalls(np.zeros((1, 9, 4)), axis=1, length=3)})
    assert stepper.run(model, inputs).loops[-1].iterations == 3


@each_row(
    "plan",
    [
        Calls(0),
        Calls(10**9),
        Calls(3, (CallParts(7, 0, (1,)),)),
        Calls(3, (CallParts(0, 0, (1, 2)),)),
        Calls(3, (CallParts(0, 0, (0,)),)),
        Calls(3, (CallParts(0, 0, (-1, 2, 3)),)),
        Calls(3, (CallParts(0, 9, (1,)),)),
        Calls(3, (), (CarriedOutput(9, 0),)),
    ],
)
def test_a_forged_plan_is_refused(plan: Calls) -> None:
    with pytest.raises(UsageError):
        with_calls(VAD.path, plan)


def test_an_output_may_be_several_inputs_of_the_next_call(tmp_path: Path) -> None:
    """next = x + a - 2b, where a and b become next: next[k] = x[k] - next[k - 1]."""
    net = Graph()
    x, a, b = (net.parameter(name, dims=(1,)) for name in "xab")
    double = net.apply("Multiply", b, net.constant([2.0]))
    net.result(net.apply("Subtract", net.apply("Add", x, a), double), "next")
    carry = [("next", "a"), ("next", "b")]
    model, inputs = stepper.over_calls(net.read(tmp_path), {"x": np.array([[1], [10], [100]], np.float32)}, carry)
    outputs = stepper.run(model, {**inputs, "a": [0], "b": [0]})
    assert outputs["next"].tolist() == [100 - (10 - 1)]


def test_outputs_that_cannot_be_joined_come_of_the_last_call_alone(tmp_path: Path) -> None:
    """As of a language model, a long call and short ones: y = 2 x; what they gave differs beside the first axis."""
    net = Graph()
    x = net.parameter("x", dims=(1, -1))
    net.result(net.apply("Multiply", x, net.constant([2.0])), "y")
    given = [np.array([part], np.float32) for part in ([1, 2, 3], [4], [5])]
    model, inputs = stepper.over_calls(net.read(tmp_path), {"x": given})
    debugger = stepper.Debugger(model, inputs)
    debugger.continue_()
    assert stepper.run(model, inputs)["y"].tolist() == [[10]]
    for question in ("y", "shape of y"):
        found = debugger.why(question)
        reached = [one.index for tensor in found.sources if tensor.name == "x" for one in tensor.elements]
        assert reached == ([(0, 4)] if question == "y" else []), question
        assert [str(link.kind) for link in found.links][:1] == ["last value"]
    assert [use.elements for use in debugger.uses("x[0,4]").outputs] == [((0, 0),)]
    assert debugger.uses("x[0,1]").outputs == debugger.uses("x[0,3]").outputs == ()


def test_a_scalar_of_each_call_is_joined_to_a_row(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", "f32", ())
    net.result(net.apply("Add", x, net.constant(np.float32(1))), "y")
    model, inputs = stepper.over_calls(net.read(tmp_path), {"x": np.array([5, 7], np.float32)})
    outputs = stepper.run(model, inputs)
    assert outputs["y"].tolist() == [6, 8]


def test_variables_of_nested_graphs_go_on_from_call_to_call_as_well(tmp_path: Path) -> None:
    """`total` grows by x in each of three iterations of a loop; the output is what it was before the last."""
    net = Graph()
    x, body = net.parameter("x", "f32", (1,)), net.body()
    h = body.parameter("h", "f32", (1,))
    before = body.apply("ReadValue", body.constant([100.0]), version="opset3", variable_id="total")
    body.apply("Assign", body.apply("Add", before, h), version="opset3", variable_id="total")
    again, result = body.result(h), body.result(before)
    net.result(net.loop("inner", body, 3, True, [carried(x, h, again)], [last(result)])[0], "before")
    model, inputs = stepper.over_calls(net.read(tmp_path), {"x": np.array([[5], [2]], np.float32)})
    outputs = stepper.run(model, inputs)
    assert outputs["before"].tolist() == [100 + 2 * 5, 115 + 2 * 2] and outputs.states["total"].tolist() == [121]


NESTED = """<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1" element_type="f32"/>
 <output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="1" name="twice" type="Add" version="opset1"><data auto_broadcast="numpy"/>
 <input><port id="0" precision="FP32"><dim>1</dim></port><port id="1" precision="FP32"><dim>1</dim></port></input>
 <output><port id="2" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="2" name="read" type="ReadValue" version="opset6">
 <data variable_id="sum" variable_type="f32" variable_shape="1"/>
 <input><port id="0" precision="FP32"><dim>1</dim></port></input>
 <output><port id="1" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="3" name="sum" type="Add" version="opset1"><data auto_broadcast="numpy"/>
 <input><port id="0" precision="FP32"><dim>1</dim></port><port id="1" precision="FP32"><dim>1</dim></port></input>
 <output><port id="2" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="4" name="write" type="Assign" version="opset6"><data variable_id="sum"/>
 <input><port id="0" precision="FP32"><dim>1</dim></port></input>
 <output><port id="1" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="5" name="y" type="Result" version="opset1">
 <input><port id="0" precision="FP32"><dim>1</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>
<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>
<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/>
<edge from-layer="0" from-port="0" to-layer="3" to-port="1"/>
<edge from-layer="3" from-port="2" to-layer="4" to-port="0"/>
<edge from-layer="4" from-port="1" to-layer="5" to-port="0"/>
</edges></net>"""


def test_a_variable_begins_with_what_the_first_call_computes(tmp_path: Path) -> None:
    """Begins with 2 * 3, then adds 3, 5, 7; what is assigned passes through to the output."""
    path = tmp_path / "m.xml"
    path.write_text(NESTED)
    model, inputs = stepper.over_calls(path, {"x": np.array([[3], [5], [7]], np.float32)})
    outputs = stepper.run(model, inputs)
    assert outputs["y"].tolist() == [9, 14, 21] and outputs.states["sum"].tolist() == [21]
    assert stepper.run(model, inputs, states={"sum": [100]})["y"].tolist() == [103, 108, 115]
