"""A recurrent sequence opened as a loop gives what its kernel gives, and can be stopped in."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.cli import main
from stepper.element_types import ELEMENT_TYPES
from stepper.engine.frames import Event, EventKind, Every
from stepper.engine.program import LoopPlan
from stepper.engine.run import Outputs
from stepper.errors import StepperError
from stepper.ir import reader
from stepper.ir.lowering import sequences_of, unopened, without_loops
from stepper.ir.model import Layer, Model
from stepper.ir.reader import sources_of
from stepper.ir.xml import FilePlace
from stepper.ops import recurrent
from tests.engine.recurrences import HIDDEN, INPUT, TIME, Recurrence
from tests.ir import texts
from tests.last_digits import difference
from tests.models import Graph, carried, invariant, joined, last, sliced
from tests.ops.recording import RECORDED, cases, one_operation_model
from tests.tables import each_row

TYPES = ["LSTMSequence", "GRUSequence", "RNNSequence"]
DIRECTIONS = ["forward", "reverse", "bidirectional"]
OTHER_ACTIVATIONS = {
    "LSTMSequence": ("hardsigmoid", "relu", "tanh"),
    "GRUSequence": ("hardsigmoid", "relu"),
    "RNNSequence": ("relu",),
}
VARIANTS = [(type, variant) for type in TYPES for variant in ("plain", "clip and activations")]
VARIANTS.append(("GRUSequence", "linear before reset"))
SEQUENCE_CASES = [case for case in cases("recurrent") if case.type in TYPES]


def layers(model: Model) -> list[Layer]:
    return [layer for _path, graph in model.graphs() for layer in graph.layers]


def opened(model: Model) -> Model:
    """The model with its sequences opened, found to be as sound as one that was read."""
    result = stepper.open_sequences(model)
    assert not [layer for layer in layers(result) if layer.type in TYPES]
    reader.check(result)
    for _path, graph in result.graphs():
        assert len(graph.by_id) == len(graph.layers)
        assert sources_of(FilePlace(result.path), graph.by_id, graph.edges) == graph.sources
    return result


def both(model: Model, inputs: dict[int, Any], rules: str = "spec") -> tuple[Outputs, Outputs]:
    """What the kernel gives and what the loop gives."""
    kernel, loop = stepper.run(model, inputs, rules), stepper.run(opened(model), inputs, rules)
    for name, value in kernel.items():
        assert (loop[name].shape, loop[name].dtype) == (value.shape, value.dtype)
    return kernel, loop


@each_row(("type", "variant"), VARIANTS)
@each_row("direction", DIRECTIONS)
@each_row("lengths", [(TIME,), (2,), (0,), (TIME, TIME), (3, 0, TIME, 1)], ids=str)
def test_the_loop_gives_what_kernel_and_formula_give(
    tmp_path: Path, type: str, direction: str, lengths: tuple[int, ...], variant: str
) -> None:
    changed = {"activations": OTHER_ACTIVATIONS[type], "clip": 0.7} if variant == "clip and activations" else {}
    subject = Recurrence(type, direction, lengths, linear_before_reset=variant == "linear before reset", **changed)
    kernel, loop = both(subject.graph().read(tmp_path), subject.fed())
    for a, b, expected in zip(kernel.values(), loop.values(), subject.expected(), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(b, expected, rtol=1e-4, atol=1e-5)


@each_row("type", TYPES)
def test_products_of_several_blocks_of_steps_give_what_the_formula_gives(
    tmp_path: Path, type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrent, "_ELEMENTS_AT_ONCE", 1)
    subject = Recurrence(type, "bidirectional", (3, 0, TIME, 1))
    outputs = stepper.run(subject.graph().read(tmp_path), subject.fed())
    for value, expected in zip(outputs.values(), subject.expected(), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)


@each_row("case", SEQUENCE_CASES, ids=lambda case: str(case.name))
@each_row("rules", ["spec", "openvino"])
def test_the_loop_gives_what_the_runtime_gave(tmp_path: Path, case: Any, rules: str) -> None:
    model = stepper.read_model(texts.write(tmp_path, *one_operation_model(case)))
    inputs = {f"in{k}": value for k, value in enumerate(case.inputs) if k not in case.constant}
    outputs = stepper.run(opened(model), inputs, rules)
    with np.load(RECORDED / "recurrent.npz") as recorded:
        for k in range(case.outputs):
            expected = recorded[f"{case.name}/{k}"]
            np.testing.assert_allclose(outputs[f"out{k}"], expected, rtol=case.rtol, atol=case.atol)


@each_row("type", TYPES)
@each_row("dtype", ["f16", "bf16", "f64"])
@each_row("rules", ["spec", "openvino"])
def test_every_float_type_is_rounded_as_by_the_kernel(tmp_path: Path, type: str, dtype: str, rules: str) -> None:
    subject = Recurrence(type, "bidirectional", (TIME, TIME), dtype=ELEMENT_TYPES[dtype].dtype)
    kernel, loop = both(subject.graph().read(tmp_path), subject.fed(), rules)
    for a, b in zip(kernel.values(), loop.values(), strict=True):
        np.testing.assert_array_equal(a, b)


@each_row("type", TYPES)
@each_row("direction", DIRECTIONS)
@each_row("time", [0, 1, 4])
def test_shapes_may_be_open(tmp_path: Path, type: str, direction: str, time: int) -> None:
    subject = Recurrence(type, direction, (time, time // 2), time)
    model = subject.graph(constant_weights=False, dynamic=True).read(tmp_path)
    model.path.with_suffix(".bin").unlink()  # what the loop adds needs no weights
    kernel, loop = both(stepper.read_model(model.path), dict(enumerate(subject.inputs())))
    for a, b in zip(kernel.values(), loop.values(), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


@each_row("type", TYPES)
def test_a_sequence_without_time_steps_is_empty(tmp_path: Path, type: str) -> None:
    subject = Recurrence(type, "bidirectional", (0, 0), time=0)
    kernel, loop = both(subject.graph().read(tmp_path), subject.fed())
    assert next(iter(loop.values())).shape == (2, 2, 0, HIDDEN)
    assert not any(value.any() for value in (*kernel.values(), *loop.values()))


def test_element_types_may_be_open(tmp_path: Path) -> None:
    subject, net = Recurrence("LSTMSequence", "reverse", (2, 0), dtype=np.float64), Graph()
    values = [net.constant(value, value.dtype) for value in subject.inputs()]
    moved = [net.apply("Squeeze", value, net.constant([0], np.int64), type="dynamic") for value in values[:3]]
    for output in subject.outputs_in(net, [*moved, *values[3:]]):
        net.result(output)
    kernel, loop = both(net.read(tmp_path), {})
    for a, b in zip(kernel.values(), loop.values(), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)


def test_one_length_may_be_a_scalar(tmp_path: Path) -> None:
    subject, net = Recurrence("RNNSequence", "reverse", (3,)), Graph()
    inputs = [net.constant(value, value.dtype) for value in subject.inputs()]
    inputs[2] = net.constant(3, np.int64)
    net.result(subject.outputs_in(net, inputs)[0])
    (Y,) = stepper.run(opened(net.read(tmp_path)), {}).values()
    np.testing.assert_allclose(Y, subject.expected()[0], rtol=1e-4, atol=1e-5)


def events(model: Model, inputs: dict[int, Any], every: Every) -> Iterator[tuple[Event, str]]:
    """Every event with the name of the loop in which it happened."""
    machine = stepper.Machine(stepper.compile_model(opened(model)), stepper.bind_inputs(model, inputs))
    for event in machine.run(every):
        activation = event.frame.activation
        yield event, "" if activation is None else activation.operation.layer.name


@each_row(
    ("direction", "names"),
    [("forward", ["gru"]), ("reverse", ["gru"]), ("bidirectional", ["gru/forward", "gru/reverse"])],
)
def test_each_direction_has_an_iteration_for_each_time_step(tmp_path: Path, direction: str, names: list[str]) -> None:
    subject, net = Recurrence("GRUSequence", direction, (2, TIME)), Graph()
    inputs = [net.constant(value, value.dtype) for value in subject.inputs()]
    net.result(subject.outputs_in(net, inputs, "gru")[0])
    model = net.read(tmp_path)
    told = events(model, {}, Every.ITERATION)
    counts = Counter(name for event, name in told if event.kind is EventKind.ITERATION)
    assert counts == dict.fromkeys(names, TIME)
    summaries = stepper.run(opened(model), {}).loops
    assert [(loop.name, loop.kind, loop.iterations) for loop in summaries] == [
        (name, "TensorIterator", TIME) for name in names
    ]


@each_row("type", TYPES)
def test_a_step_runs_the_cell_and_nothing_of_the_weights(tmp_path: Path, type: str) -> None:
    subject = Recurrence(type)
    model = subject.graph(constant_weights=False).read(tmp_path)
    ran = []
    for event, name in events(model, dict(enumerate(subject.inputs())), Every.OPERATION):
        if event.kind is EventKind.OPERATION and name == "sequence":
            ran.append(event.frame.program.operations[event.frame.pc - 1].layer.type)
    held = ["Select"] * (1 + subject.states)
    cell = type.replace("Sequence", "Cell")
    assert sorted(ran[: len(ran) // TIME]) == sorted(["Less", "Squeeze", cell, *held, "Unsqueeze"])


def test_a_row_holds_its_state_behind_its_length(tmp_path: Path) -> None:
    subject = Recurrence("LSTMSequence", "forward", (2, TIME))
    model = subject.graph().read(tmp_path)
    states = []
    for event, _name in events(model, dict(subject.fed()), Every.ITERATION):
        if event.kind is EventKind.ITERATION:
            plan = event.frame.activation and event.frame.activation.plan
            assert isinstance(plan, LoopPlan)
            states.append([event.frame.values[entry.result].copy() for entry in plan.merged])
    for before, after in pairwise(states[1:]):
        for old, new in zip(before, after, strict=True):
            np.testing.assert_array_equal(old[0], new[0])
            assert (old[1] != new[1]).any()


def test_the_loop_can_be_found_where_the_sequence_was(tmp_path: Path) -> None:
    model = Recurrence("LSTMSequence", "bidirectional").graph().read(tmp_path)
    (sequence,) = [layer for layer in layers(model) if layer.type == "LSTMSequence"]
    result = opened(model)
    loop = result.graph.by_id[sequence.id]
    assert (loop.type, loop.name, loop.opened_from) == ("TensorIterator", "sequence/forward", "LSTMSequence")
    added = [layer for layer in layers(result) if layer not in layers(model)]
    assert {layer.line for layer in added} == {sequence.line}
    kept = [layer for layer in model.graph.layers if layer.type in ("Parameter", "Constant", "Result")]
    assert all(result.graph.by_id[layer.id] is layer for layer in kept)


def stacked(net: Graph) -> None:
    """A forward GRU on what a reverse one gives, the second's layer first in the file's order of ids."""
    x = net.parameter("x", dims=(1, TIME, INPUT))
    first, second = Recurrence("GRUSequence", "reverse"), Recurrence("GRUSequence", "forward")
    h, lengths, w, r, b = (net.constant(value, value.dtype) for value in first.inputs()[1:])
    Y, _ = first.outputs_in(net, [x, h, lengths, w, r, b], "first")
    squeezed = net.apply("Squeeze", Y, net.constant([1], np.int64), dims=(1, TIME, HIDDEN))
    w = net.constant(np.ones((1, 3 * HIDDEN, HIDDEN), np.float32))
    above, _ = second.outputs_in(net, [squeezed, h, lengths, w, r, b], "second")
    _, final = second.outputs_in(net, [squeezed, second_state(net, above), lengths, w, r, b], "third")
    net.result(final)


def second_state(net: Graph, Y: Any) -> Any:
    """The last step of Y as a state."""
    at, axis = net.constant(-1, np.int64), net.constant(2, np.int64)
    return net.apply("Gather", Y, at, axis, dims=(1, 1, HIDDEN), version="opset8")


def test_a_sequence_may_follow_another(tmp_path: Path) -> None:
    net = Graph()
    stacked(net)
    x = np.random.default_rng(0).standard_normal((1, TIME, INPUT)).astype(np.float32)
    kernel, loop = both(net.read(tmp_path), {0: x})
    np.testing.assert_allclose(*loop.values(), *kernel.values(), rtol=1e-5, atol=1e-6)
    assert [summary.name for summary in loop.loops] == ["first", "second", "third"]


def test_the_names_of_tensors_go_with_them(tmp_path: Path) -> None:
    path = Recurrence("RNNSequence").graph().write(tmp_path)
    text = path.read_text()
    at = text.index("RNNSequence")
    ports = text[at:].replace('<port id="6" ', '<port id="6" names="all_states,Y" ', 1)
    path.write_text(text[:at] + ports)
    assert list(stepper.run(opened(stepper.read_model(path)), Recurrence("RNNSequence").fed())) == [
        "all_states",
        "out1",
    ]


def in_a_loop(seed: str) -> tuple[Graph, Recurrence]:
    """A GRU whose last state begins its next run, in the body of a loop of three iterations."""
    subject, net = Recurrence("GRUSequence", "bidirectional", (3,)), Graph()
    values = subject.inputs()
    x, h = (net.parameter(name, dims=value.shape) for name, value in zip("xh", values, strict=False))
    body = net.body()
    inner_x, inner_h = body.parameter("x", dims=x.dims), body.parameter("h", dims=h.dims)
    rest = [body.constant(value, value.dtype) for value in values[2:]]
    Y, final = subject.outputs_in(body, [inner_x, inner_h, *rest], "gru")
    state, pieces = body.result(final, "state"), body.result(Y, "Y")
    entries = [invariant(x, inner_x), carried(h, inner_h, state)]
    if seed == "Loop":
        outputs = net.loop("outer", body, 3, True, entries, [last(state), joined(pieces)])
    else:
        numbers, number = net.constant(np.zeros(3)), body.parameter("number", dims=(1,))
        outputs = net.tensor_iterator("outer", body, [sliced(numbers, number), *entries], [last(state)])
    for output in outputs:
        net.result(output)
    return net, subject


@each_row("seed", ["Loop", "TensorIterator"])
@each_row("rules", ["spec", "openvino"])
def test_a_sequence_in_a_body_is_opened_there(tmp_path: Path, seed: str, rules: str) -> None:
    net, subject = in_a_loop(seed)
    kernel, loop = both(net.read(tmp_path), dict(enumerate(subject.inputs()[:2])), rules)
    for a, b in zip(kernel.values(), loop.values(), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
    paths = {summary.path: (summary.executions, summary.iterations) for summary in loop.loops}
    outer = f"model > {seed} 'outer'"
    assert paths[f"{outer} > TensorIterator 'gru/reverse'"] == (3, 3 * TIME)
    assert not any("TensorIterator" in note.text for note in loop.notes)


def test_constant_weights_in_a_body_are_prepared_once(tmp_path: Path) -> None:
    net, _subject = in_a_loop("Loop")
    compiled = stepper.compile_model(opened(net.read(tmp_path)))
    (body,) = [program for program in compiled.programs if len(program.path) == 1]
    folded = {operation.layer.name for operation in body.folded}
    assert {"gru/W_split", "gru/R_squeezed", "gru/B_squeezed", "gru/sequence_lengths"} <= folded


def test_a_model_without_sequences_stays_as_it_is(tmp_path: Path) -> None:
    net = Graph()
    net.result(net.apply("Abs", net.parameter("x")))
    model = net.read(tmp_path)
    assert stepper.open_sequences(model) is model


@each_row("fault", ["too few inputs", "direction"])
def test_what_is_no_sound_sequence_is_left_to_the_compiler(tmp_path: Path, fault: str) -> None:
    subject, net = Recurrence("RNNSequence", "forward"), Graph()
    inputs = [net.constant(value, value.dtype) for value in subject.inputs()]
    net.result(subject.outputs_in(net, inputs[:-1] if fault == "too few inputs" else inputs)[0])
    path = net.write(tmp_path)
    if fault == "direction":
        path.write_text(path.read_text().replace('direction="forward"', 'direction="sideways"'))
    model = stepper.read_model(path)
    assert stepper.open_sequences(model) is model
    with pytest.raises(StepperError, match="RNNSequence"):
        stepper.compile_model(stepper.open_sequences(model))


def test_a_failure_names_the_time_step(tmp_path: Path) -> None:
    subject, net = Recurrence("RNNSequence"), Graph()
    inputs = [net.constant(value, value.dtype) for value in subject.inputs()]
    inputs[3] = net.constant(np.zeros((1, HIDDEN, INPUT + 1)))
    net.result(subject.outputs_in(net, inputs)[0])
    with pytest.raises(StepperError, match=r"TensorIterator 'sequence' #0 > RNNCell 'cell'"):
        stepper.run(opened(net.read(tmp_path)), {})


@pytest.fixture
def model_file(tmp_path: Path) -> str:
    net, subject = Graph(), Recurrence("GRUSequence", "forward", (16,), time=16)
    inputs = [net.constant(value, value.dtype) for value in subject.inputs()]
    net.result(subject.outputs_in(net, inputs, "gru")[0])
    return str(net.write(tmp_path))


def test_the_command_line_runs_it_as_a_loop(model_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", model_file, "-q"]) == 0
    without = capsys.readouterr().out
    assert main(["run", model_file, "-q", "--open-sequences"]) == 0
    printed = capsys.readouterr().out
    assert "loops" not in without
    assert "TensorIterator 'gru': 16 iterations, every slice was used" in printed
    lines = without.splitlines()
    assert not difference("\n".join(printed.splitlines()[: len(lines)]), "\n".join(lines))


def test_the_command_line_shows_its_body(model_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(model_file).with_suffix(".bin").unlink()
    assert main(["inspect", model_file, "--open-sequences"]) == 0
    printed = capsys.readouterr().out
    assert "TensorIterator 'gru'  (TensorIterator-1" in printed
    assert "opened from GRUSequence)" in printed
    assert "GRUCell 1" in printed
    assert main(["inspect", model_file]) == 0
    assert "TensorIterator" not in capsys.readouterr().out


# --- models that look as if they had no loop ------------------------------------------------------------------------


def test_a_model_whose_recurrences_are_closed_says_what_would_open_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recurrence = Recurrence("LSTMSequence")
    model = recurrence.graph().read(tmp_path)
    assert [layer.type for layer in sequences_of(model)] == ["LSTMSequence"]
    expected = "--open-sequences opens 1 LSTMSequence as a loop"
    assert without_loops(model) == f"the model has no loop; {expected}"
    assert unopened(opened(model)) == "" and without_loops(opened(model)) == ""
    path = str(model.path)
    assert main(["inspect", path]) == 0
    assert "sequences, which --open-sequences opens as loops\n  LSTMSequence '" in capsys.readouterr().out
    assert main(["inspect", path, "--json"]) == 0
    assert [layer["type"] for layer in json.loads(capsys.readouterr().out)["sequences"]] == ["LSTMSequence"]
    assert main(["export", path, "-o", str(tmp_path / "loop.svg"), "--view", "rolled"]) == 2
    assert expected in capsys.readouterr().err
    debugger = stepper.Debugger(model, recurrence.fed())
    with pytest.raises(StepperError, match="the model has no loop; --open-sequences opens 1 LSTM"):
        debugger.next_iteration()
