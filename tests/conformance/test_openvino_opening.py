"""What OpenVINO opens: ONNX and TensorFlow files, live models; and ONNX's own view of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("openvino")

import openvino as ov

import stepper
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every
from stepper.engine.machine import Machine
from tests.conformance.agreement import assert_agrees


def onnx_file(folder: Path) -> Path:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    def tensor(name: str, kind: int, shape: list[int]) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    nodes = [
        helper.make_node("Mul", ["h", "two"], ["doubled"], "doubled"),
        helper.make_node("Sub", ["doubled", "one"], ["h_next"], "h_next"),
        helper.make_node("ReduceSum", ["h_next"], ["sum"], keepdims=0),
        helper.make_node("Less", ["sum", "limit"], ["going_on"], "going_on"),
        helper.make_node("Identity", ["h_next"], ["piece"]),
    ]
    floats = {"two": 2.0, "one": 1.0, "limit": 100.0}
    body = helper.make_graph(
        nodes,
        "body",
        [
            tensor("i", TensorProto.INT64, []),
            tensor("going", TensorProto.BOOL, []),
            tensor("h", TensorProto.FLOAT, [2]),
        ],
        [tensor("going_on", TensorProto.BOOL, []), *(tensor(n, TensorProto.FLOAT, [2]) for n in ("h_next", "piece"))],
        [numpy_helper.from_array(np.array(value, np.float32), name) for name, value in floats.items()],
    )
    constants = {"most": np.array(20), "yes": np.array(True)}
    main = [
        helper.make_node("Add", ["x", "x"], ["start"], "start"),
        helper.make_node("Loop", ["most", "yes", "start"], ["last", "all"], "the_loop", body=body),
        helper.make_node("Neg", ["last"], ["negative"], "negative"),
    ]
    outputs = [tensor("negative", TensorProto.FLOAT, [2]), tensor("all", TensorProto.FLOAT, ["n", 2])]
    given = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(main, "g", [tensor("x", TensorProto.FLOAT, [2])], outputs, given)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "loop.onnx")
    return folder / "loop.onnx"


X = {"x": np.array([1.5, 2.0], np.float32)}


def test_an_onnx_file_gives_the_same_run_opened_directly_and_through_a_saved_ir(tmp_path: Path) -> None:
    path = onnx_file(tmp_path)
    told: list[str] = []
    direct = stepper.open_model(path, told.append)
    assert len(told) == 1 and direct.path.parent == tmp_path / ".stepper"
    ov.save_model(ov.Core().read_model(path), tmp_path / "saved.xml", compress_to_fp16=False)
    runs = []
    for model in (direct, stepper.open_model(tmp_path / "saved.xml"), stepper.open_model(path, told.append)):
        machine = Machine(compile_model(model), stepper.bind_inputs(model, X))
        trail = [
            (event.tick, event.kind, [np.asarray(value).tolist() for value in event.frame.values if value is not None])
            for event in machine.run(Every.OPERATION)
        ]
        assert machine.outputs is not None
        runs.append((trail, [output.tobytes() for output in machine.outputs]))
    assert runs[0] == runs[1] == runs[2]
    assert len(told) == 1, "the second time the kept conversion is read"
    outputs = stepper.run(direct, X)
    wanted = [2 * X["x"]]
    while sum(wanted[-1]) < 100:
        wanted.append(wanted[-1] * 2 - 1)
    np.testing.assert_array_equal(outputs["all"], wanted[1:])
    names = {layer.name for _path, graph in direct.graphs() for layer in graph.layers}
    assert {"start", "the_loop", "h_next", "doubled", "negative"} <= names | {"the_loop"}
    assert "h_next" in names and "doubled" in names


def frozen_graph() -> bytes:
    """-relu(x) for f32[2,3] as a TensorFlow GraphDef, by the rules of protocol buffers."""

    def number(field: int, value: int) -> bytes:
        return bytes([field << 3, value])

    def text(field: int, content: bytes) -> bytes:
        return bytes([field << 3 | 2, len(content)]) + content

    def node(name: bytes, kind: bytes, inputs: bytes, **attributes: bytes) -> bytes:
        known = [text(5, text(1, key.encode()) + text(2, value)) for key, value in attributes.items()]
        return text(1, text(1, name) + text(2, kind) + inputs + b"".join(known))

    floats, shape = number(6, 1), text(7, text(2, number(1, 2)) + text(2, number(1, 3)))
    return (
        node(b"x", b"Placeholder", b"", dtype=floats, shape=shape)
        + node(b"activated", b"Relu", text(3, b"x"), T=floats)
        + node(b"negated", b"Neg", text(3, b"activated"), T=floats)
    )


def test_a_frozen_graph_of_tensorflow_runs_under_its_own_names(tmp_path: Path) -> None:
    (tmp_path / "tiny.pb").write_bytes(frozen_graph())
    model = stepper.open_model(tmp_path / "tiny.pb")
    assert {"activated", "negated"} <= {layer.name for layer in model.graph.layers}
    x = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
    np.testing.assert_array_equal(stepper.run(model, {"x:0": x})["negated:0"], -np.maximum(x, 0))


def test_a_live_model_is_debugged(tmp_path: Path) -> None:
    live = ov.Core().read_model(onnx_file(tmp_path))
    debugger = stepper.open_debugger(live, X)
    debugger.break_at("h_next", hit=2)
    assert debugger.continue_().iteration == 1
    folder = debugger.model.path.parent
    assert folder.is_dir()
    del debugger
    import gc

    gc.collect()
    assert not folder.exists()


def test_a_file_that_is_no_model_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"\0 no model at all")
    with pytest.raises(
        stepper.StepperError, match=r"broken.onnx: is not a model that OpenVINO can read: the file is damaged"
    ):
        stepper.open_model(tmp_path / "broken.onnx")


@pytest.mark.parametrize("evaluator", ["onnx", "onnxruntime"])
def test_onnx_itself_computes_each_tensor_alike(tmp_path: Path, evaluator: str) -> None:
    path = onnx_file(tmp_path)
    pytest.importorskip(evaluator)
    from stepper.compare.references.onnx import OnnxPeer, tensor_names

    model = stepper.open_model(path)
    values = OnnxPeer(path, evaluator).run(model, stepper.bind_inputs(model, X))
    machine = Machine(compile_model(model), stepper.bind_inputs(model, X))
    assert next(event.kind.name for event in machine.run(Every.LOOP) if event.kind.name == "LEFT")
    frame = machine.stack[-1]
    found = {}
    for place, name in tensor_names(model.graph).items():
        slot = frame.program.slots.get(place)
        if name in values and slot is not None and frame.values[slot] is not None:
            found[name] = np.asarray(frame.values[slot])
    assert {"start", "all"} <= set(found)
    for name, value in found.items():
        assert_agrees(value, values[name], name)
    assert {"negative", "last"} <= set(values)
