"""What mutants have found, each as a small model of its own."""

from __future__ import annotations

import contextlib
import math
import re
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import stepper
from stepper.commands.interpreter import Interpreter
from stepper.diagnosis.check import states
from stepper.diagnosis.check.checking import check_run
from stepper.diagnosis.lint.linting import lint
from stepper.engine.inputs import value_of
from stepper.engine.loops import control
from stepper.engine.rules import Rules
from stepper.errors import ExecutionError, LimitReached, ModelError, UsageError
from stepper.export.figures import loop_facts
from stepper.ops.operands import LARGEST_TENSOR
from stepper.tensors.histories import Capacity, HistoryRecorder
from tests.ir import tiny_models
from tests.ir.texts import Blob, binary, edges, layer, net, parameter, port, result, write
from tests.ir.tiny_models import Texts
from tests.models import Graph, carried, joined, last
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


def of_constant(type: str, version: str, outputs: int, data: str, content: bytes, element_type: str = "i64") -> Texts:
    """An operation on x[4] whose second input is a Constant of one element."""
    blob = Blob()
    ports = [port(2 + index) for index in range(outputs)]
    layers = [
        parameter(0, "x", "f32", (4,)),
        blob.constant(1, "which", element_type, (), content),
        layer(2, "op", type, data, [port(0), port(1)], ports, version=version),
        result(3, "out"),
    ]
    return net(layers, edges("0:0 2:0", "1:0 2:1", "2:2 3:0")), blob.content


SPLIT = "Split", "opset1", 2, '<data num_splits="2"/>'
UNSQUEEZE = "Unsqueeze", "opset1", 1, ""
TEXT = b"\1\0\0\0" + b"\0\0\0\0" + b"\1\0\0\0" + b"a"
SETTLED = [
    ("split at NaN", SPLIT, np.float32("nan").tobytes(), "f32", r"the axis must be a whole number, it is nan"),
    ("split at a text", SPLIT, TEXT, "string", r"the axis must be a whole number, it is 'a'"),
    ("split too far", SPLIT, np.int32(-600_000_000).tobytes(), "i32", "axis -600000000 is out of range for a tensor"),
    ("split much too far", SPLIT, np.int32(-(2**31)).tobytes(), "i32", "axis -2147483648 is out of range"),
    ("unsqueeze at NaN", UNSQUEEZE, np.float32("nan").tobytes(), "f32", "axis nan is out of range"),
    ("unsqueeze at a text", UNSQUEEZE, TEXT, "string", "takes no inputs of these types"),
]


@pytest.mark.parametrize("rules", list(Rules))
@pytest.mark.parametrize("wrong", SETTLED, ids=lambda wrong: wrong[0])
def test_a_constant_operand_that_is_wrong_is_refused_as_a_computed_one(
    tmp_path: Path, wrong: tuple[str, tuple[str, str, int, str], bytes, str, str], rules: Rules
) -> None:
    _name, op, content, type, reason = wrong
    model = stepper.read_model(write(tmp_path, *of_constant(*op, content, type)))
    tracemalloc.start()
    try:
        with pytest.raises(ExecutionError, match=rf"{op[0]} 'op': {reason}.* \(inputs: f32\[4\], {type}\[\]\)"):
            stepper.run(model, {"x": [1, 2, 3, 4]}, rules=rules)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_so_many_parts_that_their_list_alone_is_too_large_are_refused(tmp_path: Path) -> None:
    blob = Blob()
    layers = [
        *(
            blob.boolean(0, "byte", True),
            blob.constant(1, "many", "i64", (1,), np.int64(150_000_000).tobytes()),
            blob.integer(2, "axis", 0),
        ),
        layer(3, "bytes", "Broadcast", "", [port(0), port(1)], [port(2)], version="opset3"),
        layer(4, "parts", "Split", '<data num_splits="150000000"/>', [port(0), port(1)], [port(2)]),
        result(5, "out"),
    ]
    text = net(layers, edges("0:0 3:0", "1:0 3:1", "3:2 4:0", "2:0 4:1", "4:2 5:0"))
    with pytest.raises(LimitReached, match=r"Split 'parts': a tensor of shape \[150000000\] .* the limit is 200 MB"):
        stepper.run(stepper.read_model(write(tmp_path, text, blob.content)), {})


def test_an_allocation_that_fails_names_the_layer_and_the_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, *tiny_models.plain())

    def fails(*_arguments: object) -> None:
        np.empty(2**62, np.uint8)

    with pytest.raises(LimitReached, match=r"input 'x': out of memory: Unable to allocate 4.00 EiB"):
        monkeypatch.setattr("stepper.engine.inputs.cast", fails)
        stepper.run(stepper.read_model(path), {"x": [1, 2, 3]})
    monkeypatch.undo()
    with pytest.raises(LimitReached, match=r"Add 'sum': out of memory \(inputs: f32\[3\], f32\[3\]\)"):
        compiled = stepper.compile_model(stepper.read_model(path))
        machine = stepper.Machine(compiled, stepper.bind_inputs(compiled.model, {"x": [1, 2, 3]}))
        monkeypatch.setattr("stepper.engine.machine.execute_freeing", raising(MemoryError()))
        monkeypatch.setattr("stepper.engine.machine.execute", raising(MemoryError()))
        list(machine.run())
    monkeypatch.setattr("stepper.ir.weights.Weights.constant", fails)
    with pytest.raises(LimitReached, match=r"model.xml:\d+: layer 1 'three' \(Constant\): f32\[3\]: out of memory: Un"):
        stepper.compile_model(stepper.read_model(path))


def raising(error: Exception) -> Callable[..., None]:
    def raises(*_arguments: object) -> None:
        raise error

    return raises


def test_an_input_of_more_dimensions_than_numpy_has_is_refused(tmp_path: Path) -> None:
    text, weights = tiny_models.plain()
    path = write(tmp_path, text.replace('element_type="f32" shape="3"/>', 'element_type="f32" shape="..."/>'), weights)
    parameter = stepper.read_model(path).graph.parameters[0]
    for spec in ("rand:1", "zeros", "ones"):
        with pytest.raises(UsageError, match="input 'x': a tensor of 65 dimensions is asked for, expected at most 64"):
            value_of(parameter, spec, (1,) * 65)


def lint_names(folder: Path, text: str, weights: bytes) -> set[str]:
    """The rules that a file breaks; no warning of numpy is left."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return {finding.rule for finding in lint(write(folder, text, weights))}


def test_lint_names_what_the_reader_refuses(tmp_path: Path) -> None:
    text, weights = tiny_models.plain()
    many = "9" * 5000
    assert "malformed-constant" in lint_names(tmp_path, text.replace('size="12"', f'size="{many}"'), weights)
    outputs = '<output><port id="8" precision="FP32"/><port id="9" precision="FP32"/></output>\n</layer>\n</layers>'
    assert "malformed-result" in lint_names(tmp_path, text.replace("</layer>\n</layers>", outputs), weights)
    many_dimensions = text.replace(
        '<data element_type="f32" shape="3"/>', f'<data element_type="f32" shape="1{",1" * 64}"/>'
    )
    assert "malformed-parameter" in lint_names(tmp_path, many_dimensions, weights)


def test_lint_looks_at_what_a_constant_holds_and_not_at_what_its_port_says(tmp_path: Path) -> None:
    text, weights = tiny_models.loop()
    data = f'<data element_type="nf4" shape="" offset="{len(weights)}" size="1"/>\n<output>\n'
    changed = re.sub(
        r'(name="one".*\n)<data .*\n<output>\n<port id="0" .*>', rf'\1{data}<port id="0" precision="I64">', text
    )
    assert changed != text
    assert "layer-against-its-port" in lint_names(tmp_path, changed, weights + b"\0")


def test_a_condition_that_is_a_text_has_an_origin(tmp_path: Path) -> None:
    text, weights = tiny_models.loop()
    constant = f'<data element_type="string" shape="" offset="{len(weights)}" size="{len(TEXT)}"/>'
    changed = re.sub(r'(name="go".*\n)<data [^/]*/>', rf"\1{constant}", text, count=1)
    assert changed != text
    model = stepper.read_model(write(tmp_path, changed, weights + TEXT))
    found = control(model, model.graph, model.graph.by_id[3]).condition
    assert found is not None and found.value == "a"


def test_rules_compute_with_ranks_that_numpy_broadcasts_no_more(tmp_path: Path) -> None:
    blob = Blob()
    layers = [
        parameter(0, "x", "f32", (3,)),
        blob.constant(1, "many", "f32", (1,) * 64, np.float32(1).tobytes()),
        binary(2, "sum", "Add"),
        result(3, "out"),
    ]
    text = net(layers, edges("0:0 2:0", "1:0 2:1", "2:2 3:0"))
    lint_names(tmp_path, text, blob.content)
    (found,) = stepper.run(stepper.read_model(tmp_path / "model.xml"), {"x": [1, 2, 3]}).values()
    assert found.shape == (*(1,) * 63, 3)


def test_a_rule_that_computes_with_values_of_a_file_warns_nobody(tmp_path: Path) -> None:
    text, weights = tiny_models.plain()
    content = np.array([np.nan, np.inf, -np.inf], "<f4").view("<u4") | 0x00100000
    found = lint_names(tmp_path, text, content.astype("<u4").tobytes() + weights[12:])
    assert {"constant-has-nan"} <= found


@pytest.mark.parametrize(("type", "content"), [("string", TEXT), ("f32", np.float32("nan").tobytes())])
def test_rules_about_whole_numbers_are_not_asked_about_others(tmp_path: Path, type: str, content: bytes) -> None:
    """Gather along an axis that is a text or NaN, in the model and behind a Convert."""
    blob = Blob()
    layers = [
        parameter(0, "x", "f32", (4,)),
        *(blob.integer(1, "index", 9), blob.constant(2, "axis", type, (), content)),
        layer(3, "there", "Gather", "", [port(0), port(1), port(2)], [port(3)], version="opset8"),
        layer(4, "whole", "Convert", '<data destination_type="i64"/>', [port(0)], [port(1, "I64")]),
        layer(5, "far", "Gather", "", [port(0), port(1), port(2)], [port(3)], version="opset8"),
        *(result(6, "a"), result(7, "b")),
    ]
    pairs = ["0:0 3:0", "1:0 3:1", "2:0 3:2", "2:0 4:0", "0:0 5:0", "1:0 5:1", "4:1 5:2", "3:3 6:0", "5:3 7:0"]
    lint_names(tmp_path, net(layers, edges(*pairs)), blob.content)


def without_need() -> Graph:
    """A loop that no Result needs, beside what one needs."""
    net = Graph()
    body = net.body()
    state = body.parameter("state")
    result = body.result(body.apply("Add", state, body.constant(1.0), name="sum"))
    net.loop("dead", body, 3, True, [carried(net.constant(0.0), state, result)], [last(result)])
    net.result(net.apply("Abs", net.parameter("x"), name="alive"))
    return net


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("print sum@0:2", "Loop 'dead' does not run"),
        ("stats sum@0", "Loop 'dead' does not run"),
    ],
)
def test_a_body_that_never_runs_is_named(tmp_path: Path, command: str, reason: str) -> None:
    debugger = stepper.Debugger(without_need().read(tmp_path), {"x": np.float32(1)})
    with pytest.raises(UsageError, match=reason):
        Interpreter(debugger).execute(command)
    with pytest.raises(UsageError, match=r"layer \d+ 'dead' \(Loop\) is never computed: no Result needs it"):
        debugger.why("sum")


def test_a_breakpoint_in_a_body_that_never_runs_may_ask_about_the_model(tmp_path: Path) -> None:
    debugger = stepper.Debugger(without_need().read(tmp_path), {"x": np.float32(1)})
    Interpreter(debugger).execute("break sum if x > 0")
    debugger.continue_()
    assert debugger.machine.outputs is not None


@pytest.mark.parametrize("kind", ["period", "nan"])
def test_breakpoints_for_all_loops_pass_over_one_that_never_runs(tmp_path: Path, kind: str) -> None:
    net = without_need()
    body = net.body()
    outer = body.parameter("outer")
    inner = body.body()
    state = inner.parameter("inner_state")
    more = inner.result(inner.apply("Add", state, inner.constant(1.0)))
    (given,) = body.loop("inner", inner, 2, True, [carried(outer, state, more)], [last(more)])
    result = body.result(given)
    net.loop("dead too", body, 3, True, [carried(net.constant(0.0), outer, result)], [last(result)])
    debugger = stepper.Debugger(net.read(tmp_path), {"x": np.float32(1)})
    with contextlib.suppress(UsageError):  # that there is no loop to look at
        Interpreter(debugger).execute(f"break {kind}")
    debugger.continue_()


def test_a_debugger_warns_nobody_of_values_that_overflow(tmp_path: Path) -> None:
    """A state of f32 gets an f64 that it holds as Inf alone."""
    net = Graph()
    body = net.body()
    state = body.parameter("state")
    wide = body.apply("Convert", state, destination_type="f64")
    result = body.result(body.apply("Multiply", wide, body.constant(1e300, np.float64), name="huge"))
    net.result(net.loop("l", body, 3, True, [carried(net.constant(1.0), state, result)], [last(result)])[0])
    interpreter = Interpreter(stepper.Debugger(net.read(tmp_path), {}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for line in ("step 4", "info edges"):
            answer = interpreter.execute(line)
    assert any("huge" in line or "state" in line for line in answer.lines)


def test_check_looks_at_pieces_of_as_many_dimensions_as_numpy_has(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state")
    result = body.result(body.apply("Add", state, body.constant(np.ones((1,) * 64, np.float32))))
    net.result(net.loop("l", body, 3, True, [carried(net.constant(1.0), state, result)], [joined(result)])[0])
    assert check_run(stepper.Debugger(net.read(tmp_path), {})).overview.loops


@pytest.mark.parametrize("count", [float("inf"), float("nan")])
def test_a_trip_count_that_is_no_number_is_named_in_a_figure(count: float) -> None:
    model = stepper.read_model(Path(__file__).parents[2] / "sample_models" / "for_loop" / "model.xml")
    (loop,) = (one for one in model.graph.layers if one.type == "Loop")
    found = control(model, model.graph, loop).trip_count
    assert found is not None and found.value == 10
    text = loop_facts._limit(replace(found, value=count), "at most ")
    named = "at most as many iterations as trip_count (Constant) = inf says"
    assert text == ("no limit on iterations" if math.isnan(count) else named)


@pytest.mark.parametrize(("type", "expected"), [("i4", -2), ("u4", 14), ("string", "ten")])
def test_a_trip_count_of_another_type_can_be_named(tmp_path: Path, type: str, expected: int | str) -> None:
    """`.item()` of a packed element is a tuple, which no figure can compare."""
    raw = {"i4": b"\x0e", "u4": b"\x0e", "string": np.array([1, 0, 3], "<i4").tobytes() + b"ten"}[type]
    net = Graph()
    body = net.body()
    state = body.parameter("state")
    result = body.result(body.apply("Add", state, body.constant(1.0)))
    net.result(net.loop("l", body, 3, True, [carried(net.constant(1.0), state, result)], [last(result)])[0])
    model = net.read(tmp_path)
    (loop,) = (one for one in model.graph.layers if one.type == "Loop")
    source = model.graph.sources[loop.id][0]
    assert source is not None
    text = (tmp_path / "model.xml").read_text()
    weights = (tmp_path / "model.bin").read_bytes()
    constant = model.graph.by_id[source.layer]
    offset = f'offset="{constant.attributes["offset"]}" size="{constant.attributes["size"]}"'
    before, found, after = text.partition(offset)
    assert found
    before = before[: before.rindex("<data")] + before[before.rindex("<data") :].replace('"i64"', f'"{type}"')
    (tmp_path / "model.xml").write_text(f'{before}offset="{len(weights)}" size="{len(raw)}"{after}')
    (tmp_path / "model.bin").write_bytes(weights + raw)
    damaged = stepper.read_model(tmp_path / "model.xml")
    (loop,) = (one for one in damaged.graph.layers if one.type == "Loop")
    trip_count = control(damaged, damaged.graph, loop).trip_count
    assert trip_count is not None and trip_count.value == expected
    assert loop_facts._limit(trip_count, "at most ")


def test_a_carried_value_without_elements_is_not_said_to_be_stuck() -> None:
    recorder = HistoryRecorder(Capacity(), np.zeros(3, np.float32))
    for _ in range(9):
        recorder.append(np.zeros((0,), np.float32))
    recorder.settle()
    assert not states._entered_the_same(recorder.view())
