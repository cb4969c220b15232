"""What mutants have found, each as a small model of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.errors import ExecutionError, LimitReached, ModelError
from stepper.ops.operands import LARGEST_TENSOR
from tests.ir import tiny_models
from tests.ir.texts import Blob, edges, layer, net, parameter, port, result, write
from tests.mutation.bases import growing


@pytest.fixture
def limit_of_a_megabyte() -> Iterator[None]:
    token = LARGEST_TENSOR.set(2**20)
    yield
    LARGEST_TENSOR.reset(token)


@pytest.mark.usefixtures("limit_of_a_megabyte")
def test_a_state_that_doubles_in_each_iteration_ends_at_the_limit(tmp_path: Path) -> None:
    text, weights = growing()
    without_scan = text.replace('internal_layer_id="7" axis="0"', 'internal_layer_id="7" other="0"')
    weights = np.int64(1000).tobytes() + weights[8:]
    with pytest.raises(LimitReached, match=r"Loop 'the_loop' #\d+: a tensor of shape .* the limit is 1 MB"):
        stepper.run(stepper.read_model(write(tmp_path, without_scan, weights)), {"x": [1.0]}, max_iterations=40)


@pytest.mark.usefixtures("limit_of_a_megabyte")
def test_the_pieces_of_a_concatenated_output_end_at_the_limit_together(tmp_path: Path) -> None:
    text, weights = tiny_models.loop(trip_count=1_000_000)
    with pytest.raises(LimitReached, match=r"Loop 'the_loop' #262144: .* the limit is 1 MB"):
        stepper.run(stepper.read_model(write(tmp_path, text, weights)), {"x": [1.0]})


def split(parts: int, ports: int) -> tuple[str, bytes]:
    """VariadicSplit of x[2] into this many parts, with this many output ports."""
    blob = Blob()
    layers = [
        parameter(0, "x", "f32", (parts,)),
        blob.integer(1, "axis", 0),
        blob.constant(2, "lengths", "i64", (parts,), np.ones(parts, "<i8").tobytes()),
        layer(
            3, "split", "VariadicSplit", "", [port(0), port(1), port(2)], [port(3 + index) for index in range(ports)]
        ),
        result(4, "out"),
    ]
    return net(layers, edges("0:0 3:0", "1:0 3:1", "2:0 3:2", f"3:{2 + ports} 4:0")), blob.content


@pytest.mark.parametrize("every", list(stepper.Every))
def test_an_operation_that_gives_too_few_outputs_is_named(tmp_path: Path, every: stepper.Every) -> None:
    model = stepper.read_model(write(tmp_path, *split(parts=2, ports=3)))
    machine = stepper.Machine(stepper.compile_model(model), stepper.bind_inputs(model, {"x": [1, 2]}))
    with pytest.raises(ExecutionError, match="VariadicSplit 'split': gives 2 outputs, but the file has 3 output ports"):
        list(machine.run(every))


def test_an_operation_of_one_output_with_two_ports_is_refused(tmp_path: Path) -> None:
    text, weights = tiny_models.plain()
    second = '<port id="2" precision="FP32">\n<dim>3</dim>\n</port>\n'
    assert second in text
    changed = text.replace(second, second + second.replace('"2"', '"9"'))
    with pytest.raises(ModelError, match=r"layer 2 'sum' \(Add\): has 2 output ports, expected one"):
        stepper.compile_model(stepper.read_model(write(tmp_path, changed, weights)))


@pytest.mark.parametrize("type", ["u3", "u6", "nf4"])
def test_codes_that_cannot_be_computed_with_are_named(tmp_path: Path, type: str) -> None:
    text, weights = tiny_models.plain()
    changed = text.replace('element_type="f32" shape="3" offset', f'element_type="{type}" shape="3" offset')
    model = stepper.read_model(write(tmp_path, changed, weights))
    with pytest.raises(
        ExecutionError, match=rf"Add 'sum': takes no inputs of these types \(inputs: f32\[3\], {type}\[3\]\)"
    ):
        stepper.run(model, {"x": [1, 2, 3]})
