"""A recurrent network with one mistake in it, and without: small enough to be repaired in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import stepper
from stepper.element_types import Array
from stepper.engine.inputs import bind_inputs
from stepper.ir.model import Model
from stepper.repair.expected_outputs import RepairReference
from stepper.repair.replay import GivenExample
from tests.models import Graph, Side, Value, backwards, carried, invariant, joined, last, sliced

STEPS, BATCH, FEATURES, UNITS = 5, 2, 3, 4


@dataclass(frozen=True)
class Network:
    """What the network does; a mistake is another value of one of these."""

    transposes_weights: bool = True
    joins: str = "Add"
    activation: str = "Tanh"
    centres: str = "ReduceMean"
    axis: int = 1
    is_exchanged: bool = False
    gain: float = 1.37
    steps: int = STEPS
    goes_backwards: bool = False
    carries: str = "state"
    begins_with: str = "zeros"
    takes_size: bool = True
    comparison: str = "Less"


def network(what: Network) -> Graph:
    """A Loop over the rows of x: an RNN whose new state is centred, scaled, and taken where it is below a limit."""
    random = np.random.default_rng(7)
    net = Graph()
    body = net.body()
    x = net.parameter("x", dims=(STEPS, BATCH, FEATURES))
    begin = net.parameter("begin", dims=(BATCH, UNITS))
    zeros = net.constant(np.zeros((BATCH, UNITS), np.float32), name="zeros")
    piece = body.parameter("piece", dims=(1, BATCH, FEATURES))
    old = body.parameter("old", dims=(BATCH, UNITS))
    row = body.apply("Squeeze", piece, body.constant([0], np.int64), dims=(BATCH, FEATURES), name="row")
    given = _product(body, row, random.normal(size=(UNITS, FEATURES)), "given", transposes=True)
    weights = random.normal(0, 0.6, (UNITS, UNITS))
    recurrent = _product(body, old, weights, "recurrent", transposes=what.transposes_weights)
    joined_values = body.apply(what.joins, given, recurrent, name="joined", auto_broadcast="numpy")
    state = body.apply(what.activation, joined_values, name="state")
    mean = body.apply(
        what.centres,
        state,
        body.constant([what.axis], np.int64, name="axes"),
        dims=(BATCH, 1) if what.axis else (1, UNITS),
        name="mean",
        keep_dims="true",
    )
    operands = (mean, state) if what.is_exchanged else (state, mean)
    centred = body.apply("Subtract", *operands, dims=(BATCH, UNITS), name="centred", auto_broadcast="numpy")
    sized = body.apply("Abs", centred, name="size") if what.takes_size else centred
    limit = body.constant(np.float32(0.6), name="limit")
    is_small = body.apply(what.comparison, sized, limit, type="boolean", name="is_small", auto_broadcast="numpy")
    nothing = body.constant(np.float32(0.0), name="nothing")
    kept = body.apply(
        "Select", is_small, centred, nothing, type="f32", dims=(BATCH, UNITS), name="kept", auto_broadcast="numpy"
    )
    scaled = body.apply("Multiply", kept, body.constant(np.float32(what.gain), name="gain"), name="scaled")
    out = body.apply("Unsqueeze", scaled, body.constant([0], np.int64), dims=(1, BATCH, UNITS), name="out")
    values = {"state": state, "joined": joined_values, "centred": centred}
    back, out_result = body.result(values[what.carries], "next"), body.result(out, "piece_out")
    cut = backwards() if what.goes_backwards else {}
    first = zeros if what.begins_with == "zeros" else begin
    outputs = net.loop(
        "rnn",
        body,
        what.steps,
        True,
        [sliced(x, piece, 0, **cut), carried(first, old, back)],
        [joined(out_result), last(back)],
    )
    net.result(outputs[0], "rows")
    net.result(net.apply("Add", outputs[1], begin, name="sum", auto_broadcast="numpy"), "end")
    return net


def _product(body: Graph, value: Value, weights: Array, name: str, *, transposes: bool) -> Value:
    constant = body.constant(weights.astype(np.float32), name=f"weights_of_{name}")
    flags = {"transpose_a": "false", "transpose_b": str(transposes).lower()}
    return body.apply("MatMul", value, constant, dims=(BATCH, UNITS), name=name, **flags)


def conditional(*, is_exchanged: bool) -> Graph:
    """An If that doubles or negates its input."""
    net = Graph()
    x = net.parameter("x", dims=(4,))
    flag = net.parameter("flag", "boolean", ())
    sides = []
    for kind in ("Exp", "Negative"):
        side = net.body()
        value = side.parameter("value", dims=(4,))
        sides.append(Side(side, [(x, value)], [side.result(side.apply(kind, value, name=kind.lower()))]))
    net.result(net.branch("choice", flag, *(reversed(sides) if is_exchanged else sides))[0], "chosen")
    return net


def with_lengths(*, counts: bool) -> Graph:
    """A sum over steps, which ends at the length of each sequence or goes on over its padding."""
    net = Graph()
    body = net.body()
    x = net.parameter("x", dims=(STEPS, BATCH, FEATURES))
    lengths = net.parameter("lengths", "i64", (BATCH,))
    zeros = net.constant(np.zeros((BATCH, FEATURES), np.float32), name="zeros")
    iteration = body.parameter("iteration", "i64", ())
    piece = body.parameter("piece", dims=(1, BATCH, FEATURES))
    old = body.parameter("old", dims=(BATCH, FEATURES))
    row = body.apply("Squeeze", piece, body.constant([0], np.int64), dims=(BATCH, FEATURES), name="row")
    new = body.apply("Add", old, row, name="new", auto_broadcast="numpy")
    entries = [sliced(x, piece)]
    if counts:
        own = body.parameter("lengths_inside", "i64", (BATCH,))
        is_valid = body.apply("Less", iteration, own, type="boolean", dims=(BATCH,), auto_broadcast="numpy")
        column = body.apply("Unsqueeze", is_valid, body.constant([1], np.int64), dims=(BATCH, 1))
        new = body.apply("Select", column, new, old, type="f32", dims=(BATCH, FEATURES), auto_broadcast="numpy")
        entries.append(invariant(lengths, own))
    back = body.result(new, "next")
    entries.append(carried(zeros, old, back))
    net.result(net.loop("sums", body, STEPS, True, entries, [last(back)], iteration=iteration)[0], "total")
    return net


def random_inputs(model: Model, seed: int = 1) -> dict[int, Array]:
    """Inputs of a model: floats of size 1, true, lengths from 2 on."""
    random, found = np.random.default_rng(seed), dict[int, Array]()
    for index, layer in enumerate(model.graph.parameters):
        dims = layer.outputs[0].dims
        element_type = layer.outputs[0].element_type
        assert element_type is not None
        if element_type.name == "f32":
            found[index] = random.normal(size=dims).astype(np.float32)
        elif element_type.name == "boolean":
            found[index] = np.ones(dims, np.bool_)
        else:
            found[index] = np.asarray(random.permutation(np.arange(2, 2 + int(np.prod(dims)))).reshape(dims), np.int64)
    return found


def outputs_of(model: Model, inputs: dict[int, Array]) -> dict[int, Array]:
    """The outputs of a model by position."""
    return dict(enumerate(stepper.run(model, {str(key): value for key, value in inputs.items()}).values()))


def reference_of(
    healthy: Model, faulty: Model, seeds: tuple[int, ...] = (1,), *, can_be_asked: bool = False
) -> RepairReference:
    """The outputs of the healthy network for a few inputs."""
    examples = []
    for seed in seeds:
        inputs = random_inputs(healthy, seed)
        bound = tuple(bind_inputs(faulty, {str(key): value for key, value in inputs.items()}))
        examples.append(GivenExample(f"seed {seed}", bound, outputs_of(healthy, inputs)))
    ask = (lambda arrays: outputs_of(healthy, dict(enumerate(arrays)))) if can_be_asked else None
    return RepairReference("healthy", tuple(examples), ask)


def read(graph: Graph, folder: Path, name: str) -> Model:
    """A graph as a model of a folder of its own."""
    place = folder / name
    place.mkdir()
    return graph.read(place)
