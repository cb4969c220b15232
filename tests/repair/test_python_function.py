"""The Python function of a repair makes in OpenVINO the model that `-o` writes, or refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.element_types import Array
from stepper.ir.model import Model
from stepper.repair.edit import RepairEdit
from stepper.repair.fix_texts import edits_text
from stepper.repair.repairing import edit_facts
from stepper.repair.replay import Replayer
from stepper.repair.search import candidates
from stepper.repair.writing import patched_ir, python_function
from stepper.tensors.tolerances import Tolerances
from tests.models import Graph
from tests.repair.faulty_networks import (
    Network,
    conditional,
    network,
    random_inputs,
    read,
    reference_of,
    with_lengths,
)

openvino = pytest.importorskip("openvino")


def elementary() -> Graph:
    """Operations with attributes and Constants that the other networks lack, in the model's own graph."""
    net = Graph()
    x = net.parameter("x", dims=(1, 2, 8))
    weights = net.constant(np.arange(12, dtype=np.float32).reshape(3, 2, 2) / 9, name="weights")
    convolution = {"strides": "1", "pads_begin": "0", "pads_end": "0", "dilations": "1", "auto_pad": "explicit"}
    made = net.apply("Convolution", x, weights, dims=(1, 3, 7), name="convolved", **convolution)
    made = net.apply("Sigmoid", made, name="gate")
    net.result(net.apply("Softmax", made, axis=2, name="shares"), "out")
    return net


def named(*layers: str) -> Graph:
    """A chain of operations with these names."""
    net = Graph()
    value = net.parameter("x", dims=(4,))
    for name in layers:
        value = net.apply("Tanh", value, name=name)
    net.result(value, "out")
    return net


NETWORKS = {
    "loop": network(Network(gain=1.2)),
    "if": conditional(is_exchanged=True),
    "lengths": with_lengths(counts=False),
    "elementary": elementary(),
    "name": named("a\\u2 &quot;&quot;&quot; &quot;"),
    "names": named("twice", "twice"),
}
MADE = {
    "loop": (
        "'recurrent': transpose_b=false", "'centred': operands 0 and 1 exchanged",
        "Result 'next': operand 0 is 'scaled'", "'given' and 'recurrent' exchanged", "Sigmoid instead of Tanh",
        "Add 'sum' left out",
        "Tanh 'state' applied twice", "Negative of 'state' inserted", "Subtract of 'joined' and 'recurrent'",
        "Constant 'gain': 12 instead of 1.2", "minus infinity", "factor ? on 'scaled'", "trip count is the length 4",
        "f16 instead of f32", "comes before Add 'joined'",
    ),
    "if": ("Sigmoid instead of Exp", "Sigmoid instead of Negative", "branches always else", "largest element"),
    "lengths": ("Constant 'trip_count': 4", "operand 0 is 'old'"),
    "elementary": ("strides=2 instead of 1", "axis=1 instead of 2", "HardSigmoid", "Constant 'weights'"),
    "name": ("Sigmoid instead of Tanh",),
}  # fmt: skip
"""Edits by words of their texts, for each network."""
REFUSED = {
    ("loop", "in the other direction"): "OpenVINO cannot make this edit",
    ("loop", "the back edge to 'old' carries 'size'"): "OpenVINO cannot make this edit",
    ("lengths", "states stay as they are"): "OpenVINO cannot make this edit",
    ("if", "branches exchanged"): "OpenVINO cannot make this edit",
    ("names", "Sigmoid instead of Tanh"): "several layers have one name",
}


def edits_of(model: Model, phrases: Iterable[str]) -> Iterator[tuple[str, RepairEdit]]:
    """Yield for each phrase the first edit in whose text it is."""
    replayer = Replayer(model, reference_of(model, model).examples, Tolerances(exact=False))
    known = {edits_text([edit_facts(model, edit)]): edit for edit in reversed(candidates(replayer))}
    for phrase in phrases:
        text = next(text for text in reversed(known) if phrase in text)
        edit = known[text]
        yield text, edit if edit.unknowns is None else edit.solved(edit.unknowns.starts[0])


def repaired_by(script: str, model: Model) -> Any:
    """Return the model of OpenVINO after the function of a script."""
    space: dict[str, Any] = {"__name__": "script"}
    exec(compile(script, "script.py", "exec"), space)
    return space["repair"](openvino.Core().read_model(model.path))


def outputs_of(model: Any, inputs: Sequence[Array]) -> list[Array]:
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return [np.array(value) for value in compiled(list(inputs)).values()]


@pytest.mark.parametrize("name", MADE)
def test_the_script_makes_the_model_of_the_written_file(name: str, tmp_path: Path) -> None:
    model, target = read(NETWORKS[name], tmp_path, name), tmp_path / "fixed.xml"
    inputs = tuple(map(np.array, random_inputs(model).values()))
    for text, edit in edits_of(model, MADE[name]):
        files = patched_ir(edit.patch(model), inputs)
        target.write_bytes(files.xml)
        target.with_suffix(".bin").write_bytes(files.weights)
        made = repaired_by(python_function(model, edit.patch(model), text), model)
        expected = outputs_of(openvino.Core().read_model(target), inputs)
        for ours, theirs in zip(outputs_of(made, inputs), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6, err_msg=text)


@pytest.mark.parametrize(("name", "phrase"), REFUSED)
def test_a_script_refuses_what_openvino_cannot_make(name: str, phrase: str, tmp_path: Path) -> None:
    model = read(NETWORKS[name], tmp_path, name)
    ((text, edit),) = edits_of(model, [phrase])
    with pytest.raises(NotImplementedError, match=f"{REFUSED[name, phrase]}: use the model of stepper fix -o"):
        repaired_by(python_function(model, edit.patch(model), text), model)
