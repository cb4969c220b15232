"""A sample model before it is written, and how it becomes the files of its folder."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import openvino as ov

Array = npt.NDArray[Any]

# One thread and full precision, so that a processor with more of either records the same values.
CONFIGURATION = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}


@dataclass(frozen=True)
class IrFiles:
    """The two files of an IR model."""

    xml: str
    weights: bytes


@dataclass(frozen=True)
class Sample:
    """A model, inputs for it, and its outputs computed by a formula that knows nothing of the model's loop."""

    model: ov.Model
    inputs: dict[str, Array]
    formula: dict[str, Array]
    healthy: dict[str, Array] | None = None  # of a sample with a fault: what its outputs would be without it
    stale: ov.Model | None = None  # the same with a fault: an old value is read where the new one exists
    files: IrFiles | None = None  # in place of the model's own, where OpenVINO cannot read the form that is written

    def write(self, folder: Path) -> None:
        """Write the files of the folder (inputs.npz, expected.npz ...), if OpenVINO computes what the formula does."""
        files = self.files or ir_files(self.model)
        model = self.model if self.files else ov.Core().read_model(files.xml.encode(), files.weights)
        outputs = infer(model, self.inputs)
        assert_equal(outputs, self.formula)
        folder.mkdir(exist_ok=True)
        (folder / "model.xml").write_text(files.xml, encoding="utf-8", newline="\n")
        (folder / "model.bin").write_bytes(files.weights)
        np.savez(folder / "inputs.npz", **self.inputs)  # type: ignore[arg-type]
        np.savez(folder / "expected.npz", **outputs)  # type: ignore[arg-type]
        if self.stale is not None:
            twin = ir_files(self.stale)
            (folder / "stale.xml").write_text(twin.xml, encoding="utf-8", newline="\n")
            (folder / "stale.bin").write_bytes(twin.weights)
        if self.healthy is not None:
            np.savez(folder / "healthy.npz", **self.healthy)  # type: ignore[arg-type]


def infer(model: ov.Model, inputs: dict[str, Array]) -> dict[str, Array]:
    """What OpenVINO computes, by output name; started asynchronously because `infer()` may swallow an error."""
    compiled = ov.Core().compile_model(model, "CPU", CONFIGURATION)
    request = compiled.create_infer_request()
    request.start_async({name: ov.Tensor(value) for name, value in inputs.items()})
    request.wait()
    return {port.any_name: np.array(request.get_tensor(port).data) for port in compiled.outputs}


def assert_equal(outputs: dict[str, Array], formula: dict[str, Array]) -> None:
    """Raise AssertionError where names, their order, element types, shapes or values of the two differ."""
    assert list(outputs) == list(formula), f"outputs {list(outputs)}, formula {list(formula)}"
    for name, value in outputs.items():
        assert value.dtype == formula[name].dtype, f"{name}: {value.dtype}, formula {formula[name].dtype}"
        np.testing.assert_allclose(value, formula[name], rtol=1e-5, atol=1e-6, err_msg=name, strict=True)


def ir_files(model: ov.Model) -> IrFiles:
    """The model as IR, the same bytes in every run: without counted names and without notes on how it was made."""
    rename_numbered(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        ov.serialize(model, path)
        xml, weights = path.read_text(encoding="utf-8"), path.with_suffix(".bin").read_bytes()
    return IrFiles(without_net_rt_info(xml), weights)


def without_net_rt_info(xml: str) -> str:
    """The IR without the <rt_info> of the whole net: who wrote it, and the options and paths of a conversion."""
    return re.sub(r"\n\t<rt_info>.*?\n\t</rt_info>", "", xml, flags=re.DOTALL) + "\n"


def rename_numbered(model: ov.Model) -> None:
    """Count names such as `Constant_5571` from 0 in this model; OpenVINO counts them over the whole process."""
    for number, node in enumerate(node for node in all_nodes(model) if has_default_name(node)):
        node.set_friendly_name(f"{node.get_type_name()}_{number}")


def has_default_name(node: ov.Node) -> bool:
    """Whether the node's name is only the name of its or another operation type and a number."""
    return re.fullmatch(r"[A-Z][A-Za-z0-9]*_\d+", node.get_friendly_name()) is not None


def all_nodes(model: ov.Model) -> list[ov.Node]:
    """The nodes of a model and of all bodies inside of it, each graph in topological order."""
    nodes = []
    for node in model.get_ordered_ops():
        nodes.append(node)
        for body in bodies(node):
            nodes.extend(all_nodes(body))
    return nodes


def bodies(node: ov.Node) -> list[ov.Model]:
    """The bodies of a TensorIterator, Loop or If; none for any other operation."""
    match node.get_type_name():
        case "TensorIterator" | "Loop":
            return [node.get_function()]
        case "If":
            return [node.get_function(0), node.get_function(1)]
    return []
