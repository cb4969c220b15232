"""Operations computed by OpenVINO, one by one: types, signatures, refusals, and what has no kernel."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino")


import stepper
from stepper.cli import main
from stepper.element_types import ELEMENT_TYPES
from stepper.engine.compiler import compile_model
from stepper.engine.machine import Machine
from stepper.errors import UnsupportedOperation, UsageError
from stepper.ir.model import Layer, Port
from stepper.ir.weights import packed_size, unpack
from stepper.openvino.layers import LayerInOpenVINO
from stepper.openvino.partner import OpenVINOPartner
from stepper.openvino.peer import OpenVINOPeer
from stepper.openvino.runtime import Runtime, to_array, to_tensor
from stepper.recording import record, resume
from tests.conformance.agreement import assert_agrees
from tests.conformance.openvino_subjects import (
    LONG_AGO,
    NAMES,
    SAMPLES,
    Triple,
    sample,
    sum_along_an_axis_that_is_a_list,
)
from tests.models import Graph
from tests.openvino.partners import expected, read


@pytest.mark.parametrize("name", [name for name in NAMES if name != LONG_AGO])
@pytest.mark.parametrize("rules", ["spec", "openvino"])
def test_samples_give_their_outputs_with_each_operation_computed_by_openvino(name: str, rules: str) -> None:
    model, inputs, wanted = sample(name)
    outputs = stepper.run(model, inputs, rules=rules, partner=OpenVINOPartner("openvino"))
    assert set(outputs.computed_by) == {"OpenVINO (CPU, f32)"}
    for actual, (where, value) in zip(outputs.values(), wanted.items(), strict=True):
        assert_agrees(actual, value, where)


_COMPARISONS = ("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual")


@pytest.mark.parametrize("type", ["i32", "i64", "u32"])
@pytest.mark.parametrize("operation", [*_COMPARISONS, "Divide", "FloorMod", "Mod", "Power", "PRelu", "Multiply"])
def test_large_integers_are_what_they_are_in_openvino_under_its_rules(
    operation: str, type: str, tmp_path: Path
) -> None:
    dtype = ELEMENT_TYPES[type].dtype
    declared = {"type": "boolean"} if operation in _COMPARISONS else {}
    net = Graph()
    net.result(net.apply(operation, net.parameter("a", type, (300,)), net.parameter("b", type, (300,)), **declared))
    model, random = net.read(tmp_path), np.random.default_rng(5)
    low = max(np.iinfo(dtype).min, -(2**31))
    a = random.integers(low + 5, min(np.iinfo(dtype).max, 2**31 - 1) - 5, 300).astype(dtype)
    near = operation in _COMPARISONS
    b = (a + random.integers(-1, 2, 300).astype(dtype) if near else random.integers(min(low, 0) and -4, 5, 300)).astype(
        dtype
    )
    (ours,) = stepper.run(model, {"a": a, "b": b}, rules="openvino").values()
    (theirs,) = OpenVINOPeer(model).run([a, b])
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", [name for name in ELEMENT_TYPES if name != "string"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 5), (0, 2)])
def test_tensors_of_every_type_go_there_and_back_bit_for_bit(name: str, shape: tuple[int, ...]) -> None:
    element_type, count = ELEMENT_TYPES[name], int(np.prod(shape))
    raw = np.random.default_rng(7).integers(0, 2 if name == "boolean" else 256, 8 * count, np.uint8)
    if element_type.bits < 8:
        array = unpack(raw[: packed_size(element_type, count)], element_type, count).reshape(shape)
    else:
        array = raw[: count * element_type.dtype.itemsize].view(element_type.dtype).reshape(shape)
    tensor = to_tensor(array)
    assert tensor.element_type.get_type_name() == name
    back = to_array(tensor)
    assert back.dtype == array.dtype
    assert back.shape == shape
    assert back.tobytes() == array.tobytes()


def test_texts_go_there_and_back() -> None:
    texts = np.array([["ab", ""], ["héé", "x"]], ELEMENT_TYPES["string"].dtype)
    np.testing.assert_array_equal(to_array(to_tensor(texts)), texts)


def add(dims: tuple[int, ...] = ()) -> Layer:
    ports = tuple(Port(index, ELEMENT_TYPES["f32"], dims, (), 1) for index in range(3))
    return Layer(1, "sum", "Add", "opset1", 1, {"auto_broadcast": "numpy"}, ports[:2], ports[2:], (), 1)


def test_a_layer_is_compiled_once_for_each_signature_and_few_times_where_shapes_keep_changing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[int] = []
    original = Runtime.request
    monkeypatch.setattr(Runtime, "request", lambda *words: compiled.append(1) or original(*words))
    layer = LayerInOpenVINO(Runtime(), add(), [None, np.float32(1)], is_last_resort=False)
    for _ in range(3):
        np.testing.assert_array_equal(layer(np.ones(2, np.float32), None)[0], [2, 2])
    assert len(compiled) == 1
    for size in range(20):
        np.testing.assert_array_equal(layer(np.full(size, 4, np.float32), None)[0], np.full(size, 5))
    assert len(compiled) == 5
    open_layer = LayerInOpenVINO(Runtime(), add((-1,)), [None, None], is_last_resort=False)
    for size in range(5):
        np.testing.assert_array_equal(open_layer(*[np.full(size, 4, np.float32)] * 2)[0], np.full(size, 8))
    assert len(compiled) == 6, "a dimension that the file leaves open is open"


def test_an_output_that_is_the_input_itself_survives_changing_shapes() -> None:
    ports = tuple(Port(index, ELEMENT_TYPES["i32"], (-1,), (), 1) for index in range(2))
    layer = Layer(1, "c", "Convert", "opset1", 1, {"destination_type": "i32"}, ports[:1], ports[1:], (), 1)
    function = LayerInOpenVINO(Runtime(), layer, [None], is_last_resort=False)
    for index in range(600):  # with tensors that come and go OpenVINO ruins its heap within a few hundred
        x = np.arange(index * 7 % 50 + index % 3 * 1000, dtype=np.int32)
        np.testing.assert_array_equal(function(x)[0], x)


def test_an_input_that_must_be_constant_is_made_one() -> None:
    ports = tuple(Port(index, None, (), (), 1) for index in range(4))
    layer = Layer(1, "h", "HardSigmoid", "opset1", 1, {}, ports[:3], ports[3:], (), 1)
    function = LayerInOpenVINO(Runtime(), layer, [None, None, None], is_last_resort=False)
    x = np.array([-9, 0, 1, 9], np.float32)
    for alpha in (0.25, 0.5, 0.25):
        found = function(x, np.float32(alpha), np.float32(0.5))[0]
        np.testing.assert_allclose(found, np.clip(alpha * x + 0.5, 0, 1))


def test_what_openvino_refuses_is_said_with_its_words_and_the_way_out(tmp_path: Path) -> None:
    model, inputs = sum_along_an_axis_that_is_a_list().read(tmp_path), {0: np.array([1, 2], np.float32)}
    with pytest.raises(stepper.StepperError, match=r"CumSum 'odd': OpenVINO refuses it: .*--engine-for 'NAME=numpy'"):
        stepper.run(model, inputs, partner=OpenVINOPartner("openvino"))
    outputs = stepper.run(model, inputs, partner=OpenVINOPartner("openvino", {"odd": "numpy"}))
    np.testing.assert_array_equal(outputs["result"], [1, 3])


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"OpenVINO finds no device 'NPU.7' here, only .*CPU"):
        OpenVINOPartner("openvino", runtime=Runtime("NPU.7"))


def test_the_precision_is_that_of_the_runtime() -> None:
    if "BF16" not in Runtime().core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        pytest.skip("this processor has no bf16, and OpenVINO computes in f32 instead")
    x = np.linspace(0.1, 1, 64, dtype=np.float32).reshape(8, 8)
    ports = tuple(Port(index, None, (), (), 1) for index in range(3))
    layer = Layer(1, "m", "MatMul", "opset1", 1, {}, ports[:2], ports[2:], (), 1)
    exact, rough = (
        LayerInOpenVINO(Runtime("CPU", precision), layer, [None, x], is_last_resort=False)(x, x)[0]
        for precision in ("f32", "bf16")
    )
    np.testing.assert_allclose(exact, x @ x, rtol=1e-5)
    np.testing.assert_allclose(rough, x @ x, rtol=2e-2)
    assert not np.array_equal(exact, rough)


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_a_precision_that_the_device_lacks_is_refused_and_its_own_are_named(precision: str) -> None:
    import openvino

    x = openvino.opset1.parameter([8, 8], np.float32)
    model = openvino.Model([openvino.opset1.matmul(x, x, transpose_a=False, transpose_b=False)], [x])
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": precision})
    compiled.create_infer_request().infer([np.ones((8, 8), np.float32)])
    infos = [node.get_rt_info()["runtimePrecision"] for node in compiled.get_runtime_model().get_ordered_ops()]
    used = {str(getattr(info, "value", info)) for info in infos}
    if precision in used:
        Runtime("CPU", precision).check()
        return
    with pytest.raises(UsageError, match=f"the device CPU does not compute in {precision}: .*; here it has f32"):
        OpenVINOPartner("openvino", runtime=Runtime("CPU", precision))


def extended() -> OpenVINOPartner:
    return OpenVINOPartner(runtime=Runtime(extensions=[Triple]))


def test_an_operation_of_an_extension_runs_in_a_body(tmp_path: Path) -> None:
    outputs = stepper.run(read(tmp_path), {"x": np.float32(2)}, partner=extended())
    np.testing.assert_allclose(outputs["pieces"], expected(2))
    assert outputs.computed_by == {"OpenVINO (CPU, f32)": {"Triple": 1}}


def test_what_openvino_does_not_know_either_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperation, match=r"Triple 'tripled': there is no kernel for Triple .*, and OpenVINO"):
        stepper.run(read(tmp_path), {"x": np.float32(2)})


def test_a_body_computed_by_openvino_steps_goes_back_and_resumes_as_any_other(tmp_path: Path) -> None:
    model, inputs = read(tmp_path), {"x": np.float32(2)}
    debugger = stepper.Debugger(model, inputs, partner=extended())
    debugger.break_at("tripled", hit=4, exactly=True)
    tick = debugger.continue_().tick
    before = debugger.view().done
    debugger.last()
    debugger.goto_tick(tick)
    again = debugger.view().done
    assert before is not None and again is not None
    assert again.computed_by == "OpenVINO (CPU, f32)"
    np.testing.assert_array_equal(before.outputs[0].array, again.outputs[0].array)
    bound = stepper.bind_inputs(model, inputs)
    with record(Machine(compile_model(model, partner=extended()), bound), bound, tmp_path / "r.sqlite") as recorder:
        recorder.machine.advance(until=tick)
    recorder, _log = resume(tmp_path / "r.sqlite", partner=extended())
    with recorder:
        assert recorder.run()
    assert recorder.machine.outputs is not None
    np.testing.assert_allclose(recorder.machine.outputs[1], expected(2))


def test_a_run_says_who_computed_it(capsys: pytest.CaptureFixture[str]) -> None:
    folder = SAMPLES / "for_loop"
    words = [
        "run",
        str(folder / "model.xml"),
        "--inputs",
        str(folder / "inputs.npz"),
        "--engine-for",
        "Multiply=openvino",
    ]
    assert main([*words, "--json"]) == 0
    computed = json.loads(capsys.readouterr().out)["computed_by"]
    assert set(computed) == {"OpenVINO (CPU, f32)"}
    assert set(computed["OpenVINO (CPU, f32)"]) == {"Multiply"}
    assert main(words) == 0
    assert "computed by OpenVINO (CPU, f32)\n  Multiply 1" in capsys.readouterr().out
