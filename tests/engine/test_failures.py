"""Runs that fail: the message says where and on what, and the machine stands where it failed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.element_types import STRING_DTYPE
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every, Phase
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from stepper.errors import ExecutionError, LimitReached, StepperError, UnsupportedOperation
from stepper.ops.operands import LARGEST_TENSOR
from tests.engine.nested_models import alternating
from tests.engine.subjects import told, written
from tests.models import Graph, carried, invariant, joined, last, sliced

GRANULARITIES = pytest.mark.parametrize("every", list(Every), ids=lambda every: every.name)


def outgrown() -> Graph:
    """In Loop 'inner' in Loop 'outer' a tensor grows until 'sum' cannot add three numbers to it."""
    net = Graph()
    x, outer = net.parameter("x", dims=(-1,)), net.body()
    inside, inner = outer.parameter("inside", dims=(-1,)), outer.body()
    tensor = inner.parameter("tensor", dims=(-1,))
    longer = inner.apply("Concat", tensor, inner.constant([1.0]), dims=(-1,), axis=0, name="longer")
    total = inner.apply("Add", longer, inner.constant([1.0, 2.0, 3.0]), dims=(3,), name="sum")
    grown = inner.result(longer)
    outputs = [last(grown), joined(inner.result(total))]
    final, _sums = outer.loop("inner", inner, 2, True, [carried(inside, tensor, grown)], outputs)
    result = outer.result(final)
    net.result(net.loop("outer", outer, 5, True, [carried(x, inside, result)], [last(result)])[0])
    return net


def machine_of(graph: Graph, folder: Path, *inputs: object) -> Machine:
    compiled = compile_model(graph.read(folder))
    return Machine(compiled, bind_inputs(compiled.model, dict(enumerate(inputs))))


def failure(machine: Machine, every: Every) -> StepperError:
    with pytest.raises(StepperError) as caught:
        told(machine, every)
    return caught.value


@GRANULARITIES
def test_a_failure_names_the_way_to_the_operation_and_its_inputs(tmp_path: Path, every: Every) -> None:
    machine = machine_of(outgrown(), tmp_path, np.zeros(0, np.float32))
    # Lengths of 'longer' are 1, 2 in the first round of 'outer', of which 2 does not go with 3.
    error = failure(machine, every)
    assert isinstance(error, ExecutionError)
    text = str(error)
    assert text.startswith("model > Loop 'outer' #0 > Loop 'inner' #1 > Add 'sum': ")
    assert text.endswith("(inputs: f32[2], f32[3])") and "\n" not in text


@GRANULARITIES
def test_after_a_failure_the_stack_stands_at_the_operation_at_the_same_tick(tmp_path: Path, every: Every) -> None:
    machine = machine_of(outgrown(), tmp_path, np.zeros(0, np.float32))
    first = str(failure(machine, every))
    frame = machine.stack[-1]
    assert frame.activation is not None
    assert len(machine.stack) == 3 and frame.activation.iteration == 1
    assert frame.program.operations[frame.pc].layer.name == "sum"
    # outer entered and begun, inner entered; begun, two operations, closed; begun, 'longer'
    assert machine.tick == 3 + 4 + 2
    before = written(machine.stack)
    assert str(failure(machine, every)) == first
    assert written(machine.stack) == before and machine.tick == 9


def test_a_failed_operation_can_be_put_right_and_the_run_goes_on(tmp_path: Path) -> None:
    machine = machine_of(outgrown(), tmp_path, np.zeros(0, np.float32))
    failure(machine, Every.END)
    frame = machine.stack[-1]
    slot = frame.program.operations[frame.pc].inputs[0]
    frame.values[slot] = np.zeros(3, np.float32)
    assert machine.advance(Every.OPERATION).frame is frame
    assert frame.pc == 2 and machine.tick == 10


def condition_of_two() -> Graph:
    """A Loop whose condition becomes a vector of two in its third iteration, with a carried tensor and a scan."""
    net = Graph()
    body = net.body()
    number, state = body.parameter("number", "i64"), body.parameter("state")
    several = body.apply("Greater", number, body.constant(1, np.int64), type="boolean")
    shape = body.apply("Add", body.apply("Convert", several, type="i64", destination_type="i64"), body.constant([1]))
    condition = body.apply("Broadcast", body.constant(True, np.bool_), shape, version="opset3", mode="numpy")
    result = body.result(body.apply("Negative", state))
    outputs = [last(result), joined(result)]
    x = net.parameter("x")
    values = net.loop(
        "odd", body, 9, True, [carried(x, state, result)], outputs, body.result(condition), iteration=number
    )
    net.result(values[1])
    return net


@GRANULARITIES
def test_a_bad_condition_is_found_at_the_end_of_its_iteration(tmp_path: Path, every: Every) -> None:
    machine = machine_of(condition_of_two(), tmp_path, np.float32(1))
    message = "model > Loop 'odd' #2: the body's condition has shape [2], expected a scalar or one element"
    for _ in range(2):
        assert str(failure(machine, every)) == message
        frame = machine.stack[-1]
        assert frame.phase is Phase.RUNNING and frame.pc == len(frame.program.operations) and frame.activation
        assert [scan.length for scan in frame.activation.scans] == [2]
        moves = len(frame.program.operations) + 2
        assert machine.tick == 1 + 2 * moves + 1 + len(frame.program.operations)


@GRANULARITIES
@pytest.mark.parametrize("swapped", [True, False])
def test_a_missing_slice_leaves_the_iteration_before_as_it_was(tmp_path: Path, every: Every, swapped: bool) -> None:
    net = Graph()
    body = net.body()
    piece, a, b = (body.parameter(name, dims=(1,)) for name in ("piece", "a", "b"))
    ends = (b, a) if swapped else (body.apply("Add", b, piece), body.apply("Add", a, piece))
    results = [body.result(end) for end in ends]
    x, y, z = (net.parameter(name, dims=(-1,)) for name in "xyz")
    inputs = [sliced(x, piece), carried(y, a, results[0]), carried(z, b, results[1])]
    net.result(net.loop("l", body, 5, True, inputs, [last(result) for result in results])[0])
    machine = machine_of(net, tmp_path, [1.0, 2.0, 3.0], [10.0], [20.0])
    while machine.stack[-1].activation is None or machine.stack[-1].activation.iteration < 2:
        machine.advance(Every.ITERATION)
    before, tick = written(machine.stack), machine.tick
    for _ in range(2):
        assert str(failure(machine, every)).startswith("model > Loop 'l' #2: iteration 3 has no slice: input 2 ")
        assert written(machine.stack) == before and machine.tick == tick


@GRANULARITIES
def test_a_loop_that_cannot_be_entered_fails_in_the_graph_around_it(tmp_path: Path, every: Every) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state")
    result = body.result(state)
    count = net.apply("Negative", net.parameter("n", "i64", (2,)))
    net.result(net.loop("l", body, count, True, [carried(net.constant(1.0), state, result)], [last(result)])[0])
    machine = machine_of(net, tmp_path, np.zeros(2, np.int64))
    assert str(failure(machine, every)) == (
        "model > Loop 'l': the trip count has shape [2], expected a scalar or one element"
    )
    assert len(machine.stack) == 1 and machine.tick == 1


def refused_tensor() -> Graph:
    net = Graph()
    body = net.body()
    number = body.parameter("number", "i64", (1,))
    size = body.apply("Multiply", number, body.constant([10**7]))
    wide = body.apply("Broadcast", body.constant(1.0), size, dims=(-1,), version="opset3", name="wide", mode="numpy")
    total = body.apply("ReduceSum", wide, body.constant([0]), dims=(1,), keep_dims="true")
    net.result(net.loop("l", body, 3, True, [], [last(body.result(total))], iteration=number)[0])
    return net


@GRANULARITIES
def test_a_tensor_beyond_the_limit_stops_the_run_with_the_place(tmp_path: Path, every: Every) -> None:
    token = LARGEST_TENSOR.set(60 * 10**6)
    try:
        error = failure(machine_of(refused_tensor(), tmp_path), every)
    finally:
        LARGEST_TENSOR.reset(token)
    assert isinstance(error, LimitReached)
    assert str(error).startswith("model > Loop 'l' #2 > Broadcast 'wide': a tensor of shape [20000000] takes 76.3 MB")
    assert str(error).endswith("the limit is 57.2 MB (--largest-tensor) (inputs: f32[], i64[1])")


@GRANULARITIES
def test_an_operation_without_a_kernel_stops_the_run_where_it_is_reached(tmp_path: Path, every: Every) -> None:
    net = Graph()
    body = net.body()
    inside = body.parameter("inside")
    result = body.result(body.apply("Mystery", inside, version="extension", name="odd"))
    net.result(net.loop("l", body, 3, True, [invariant(net.constant(1.0), inside)], [last(result)])[0])
    error = failure(machine_of(net, tmp_path), every)
    assert isinstance(error, UnsupportedOperation)
    assert str(error).startswith(
        "model > Loop 'l' #0 > Mystery 'odd': there is no kernel for Mystery of extension (line "
    )


def test_a_branch_stands_in_the_message_too(tmp_path: Path) -> None:
    net = alternating()
    machine = machine_of(net, tmp_path, np.int64(5))
    while machine.stack[-1].program.path[-1:] == () or machine.stack[-1].program.path[-1].type != "If":
        machine.advance(Every.LOOP)
    frame = machine.stack[-1]
    frame.values[frame.program.parameters[0]] = np.array(["text"], STRING_DTYPE)
    assert str(failure(machine, Every.END)).startswith("model > Loop 'until_one' #0 > If 'next' > Add 'upwards': ")
