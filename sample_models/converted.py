"""The samples that come out of a converter, from ONNX and from PyTorch, with the names that it leaves behind."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
from sample import Array, Sample

if TYPE_CHECKING:
    import onnx

ALPHA = 0.25


def onnx_moving_average() -> Sample:
    """The exponential moving average of two price series by an ONNX Scan, which becomes a TensorIterator."""
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "moving_average.onnx"
        onnx.save(moving_average_model(), path)
        model = ov.convert_model(path)
    model.set_friendly_name("onnx_moving_average")
    prices = np.array([[100, 101, 103, 102, 106, 110], [50, 49, 49, 47, 52, 55]], np.float32).T.copy()
    averages = [prices[0].astype(np.float64)]
    for price in prices:
        averages.append(averages[-1] + ALPHA * (price - averages[-1]))
    formula = np.array(averages[1:], np.float32)
    return Sample(model, {"prices": prices}, {"averages": formula, "last_average": formula[-1]})


def moving_average_model() -> onnx.ModelProto:
    """The ONNX model; the average starts at the first price."""
    from onnx import TensorProto, checker, helper, numpy_helper

    def of_floats(name: str, shape: list[int]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    def constant(name: str, value: Array) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [name], name, value=numpy_helper.from_array(value))

    body = helper.make_graph(
        [
            constant("alpha", np.array(ALPHA, np.float32)),
            helper.make_node("Sub", ["price", "average"], ["surprise"], "surprise"),
            helper.make_node("Mul", ["alpha", "surprise"], ["correction"], "correction"),
            helper.make_node("Add", ["average", "correction"], ["average_next"], "average_next"),
            helper.make_node("Identity", ["average_next"], ["average_of_day"], "average_of_day"),
        ],
        "day",
        [of_floats("average", [2]), of_floats("price", [2])],
        [of_floats("average_next", [2]), of_floats("average_of_day", [2])],
    )
    scan_inputs, scan_outputs = ["first_price", "prices"], ["last_average", "averages"]
    graph = helper.make_graph(
        [
            constant("zero", np.array(0, np.int64)),
            helper.make_node("Gather", ["prices", "zero"], ["first_price"], "first_price", axis=0),
            helper.make_node("Scan", scan_inputs, scan_outputs, "moving_average", body=body, num_scan_inputs=1),
        ],
        "moving_average",
        [of_floats("prices", [6, 2])],
        [of_floats("averages", [6, 2]), of_floats("last_average", [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(model, full_check=True)
    return model


def torch_power_iteration() -> Sample:
    """The largest eigenvalue of a matrix by power iteration, a scripted `while` that PyTorch ends when it converges."""
    import torch

    class PowerIteration(torch.nn.Module):
        def forward(self, matrix: torch.Tensor, vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, int]:
            steps = 0
            change = torch.ones(1)
            while steps < 100 and bool(change > 1e-4):
                image = torch.matmul(matrix, vector)
                vector_next = image / torch.linalg.vector_norm(image)
                change = torch.max(torch.abs(vector_next - vector)).reshape(1)
                vector = vector_next
                steps += 1
            return torch.dot(vector, torch.matmul(matrix, vector)), vector, steps

    model = ov.convert_model(torch.jit.script(PowerIteration()), input=[([3, 3], ov.Type.f32), ([3], ov.Type.f32)])
    model.set_friendly_name("torch_power_iteration")
    for output, name in zip(model.outputs, ("eigenvalue", "eigenvector", "steps"), strict=True):
        output.set_names({name})
        output.get_node().set_friendly_name(name)
    matrix = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)
    vector = np.array([1, 0, 0], np.float32)
    return Sample(model, {"matrix.1": matrix, "vector.1": vector}, power_iteration(matrix, vector))


def power_iteration(matrix: Array, vector: Array) -> dict[str, Array]:
    """The same in numpy and double precision, checked against numpy's eigenvalues."""
    steps, change = 0, 1.0
    current = vector.astype(np.float64)
    while steps < 100 and change > 1e-4:
        image = matrix @ current
        following = image / np.linalg.norm(image)
        steps, change, current = steps + 1, float(np.abs(following - current).max()), following
    eigenvalue = current @ matrix @ current
    np.testing.assert_allclose(eigenvalue, np.linalg.eigvalsh(matrix).max(), rtol=1e-6)
    return {
        "eigenvalue": np.array(eigenvalue, np.float32),
        "eigenvector": current.astype(np.float32),
        "steps": np.array(steps),
    }
