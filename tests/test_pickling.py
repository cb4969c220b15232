"""What can be pickled and copied, and how it looks in one line: models, compiled models, stops, snapshots, errors."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper import errors
from stepper.engine.program import CompiledModel
from stepper.ir.model import Model
from stepper.ir.reader import read
from tests.debug.debugged import SAMPLES, SMALL_SAMPLES, sample
from tests.models import Graph, carried, last

NAMES = pytest.mark.parametrize("name", SMALL_SAMPLES)


def model_of(name: str) -> Model:
    return stepper.read_model(SAMPLES / name / "model.xml")


@NAMES
def test_in_one_process_what_is_pickled_is_what_it_was(name: str) -> None:
    model = model_of(name)
    compiled = stepper.compile_model(model)
    for one in (model, compiled, *compiled.programs):
        assert pickle.loads(pickle.dumps(one)) is one and copy.deepcopy(one) is one
    assert len(pickle.dumps((model, compiled))) < 1000, "it goes with every task to every process"


@NAMES
def test_a_run_goes_on_from_a_snapshot_that_was_pickled(name: str) -> None:
    debugger = sample(name)
    expected = stepper.run(debugger.model, dict(enumerate(debugger.inputs)))
    for ticks in (1, 6, 11, 40):
        if not debugger.machine.finished:
            debugger.step(ticks)
        snapshot = pickle.loads(pickle.dumps(debugger.machine.snapshot()))
        twin = copy.deepcopy(debugger.machine.snapshot())
        for state in (snapshot, twin):
            machine = stepper.Machine(debugger.machine.compiled, debugger.inputs)
            machine.restore(state)
            while not machine.finished:
                machine.advance(stepper.Every.END)
            assert machine.outputs is not None
            for ours, array in zip(machine.outputs, expected.values(), strict=True):
                np.testing.assert_array_equal(ours, array)


@NAMES
def test_stops_views_and_outputs_come_back_and_are_a_line(name: str) -> None:
    debugger = sample(name)
    debugger.step(9)
    view, stop = debugger.view(), debugger.stop
    outputs = stepper.run(debugger.model, dict(enumerate(debugger.inputs)))
    for one in (stop, view, debugger.loop(), *view.levels, outputs, debugger.loop().scans):
        back = pickle.loads(pickle.dumps(one))
        assert repr(back) == repr(one) and repr(copy.deepcopy(one)) == repr(one)
    again = pickle.loads(pickle.dumps(stop))
    assert (again.tick, again.place, again.reason) == (stop.tick, stop.place, stop.reason)
    assert (again.done and again.done.layer) == (stop.done and stop.done.layer)
    back = pickle.loads(pickle.dumps(outputs))
    assert back.loops == outputs.loops and back.states == outputs.states and back.notes == outputs.notes
    compiled = debugger.machine.compiled
    lines = [debugger.model, debugger.model.graph, compiled, compiled.main, stop, view, debugger.loop(), debugger]
    lines += [debugger.machine, debugger.machine.snapshot(), *compiled.main.operations, *debugger.model.graph.layers]
    for one in lines:
        assert "\n" not in repr(one) and len(repr(one)) < 400, type(one)
    for one in (debugger.model, outputs, stop):
        assert "<" in one._repr_html_() and "<script" not in one._repr_html_()


def test_a_model_says_its_name_its_layers_and_its_loops() -> None:
    text = repr(model_of("nested_loop"))
    for part in ("nested_loop", "11 layers", "2 loops", "Loop 'passes'", "Loop 'pairs_of_neighbours'"):
        assert part in text


def test_names_of_a_model_are_no_html(tmp_path: Path) -> None:
    net = Graph()
    net.result(net.parameter("&lt;script&gt;x", "f32", ()))
    shown = net.read(tmp_path)._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown


# --- other processes -------------------------------------------------------------------------------------------------


def outputs_in_a_process(model: Model | CompiledModel, value: float) -> tuple[int, int, stepper.Outputs]:
    """For the pool: which process it was, and which object the model was there."""
    return os.getpid(), id(model), stepper.run(model, {0: np.float32(value)})


def stop_in_a_process(model: Model, value: float) -> Any:
    debugger = stepper.Debugger(model, {0: np.float32(value)})
    debugger.step(5)
    return debugger.stop, debugger.machine.snapshot()


def failure_in_a_process(model: Model) -> None:
    stepper.run(model, {})


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        yield executor


@pytest.fixture
def model(tmp_path: Path) -> Model:
    net = Graph()
    x = net.parameter("x", "f32", ())
    body = net.body()
    h = body.parameter("h", "f32", ())
    result = body.result(body.apply("Add", h, body.constant(np.float32(2)), name="more"))
    net.result(net.loop("l", body, 4, True, [carried(x, h, result)], [last(result)])[0])
    return net.read(tmp_path)


def test_a_pool_of_processes_reads_and_compiles_a_model_once(pool: ProcessPoolExecutor, model: Model) -> None:
    for sent in (model, stepper.compile_model(model)):
        found = list(pool.map(outputs_in_a_process, [sent] * 4, [1.0, 2.0, 3.0, 4.0], timeout=120))
        assert [float(outputs["result"]) for _, _, outputs in found] == [9.0, 10.0, 11.0, 12.0]
        assert len({(process, identity) for process, identity, _ in found}) == 1
        assert found[0][0] != os.getpid() and found[0][2].loops[0].iterations == 4


def test_a_stop_and_a_state_come_back_from_a_process(pool: ProcessPoolExecutor, model: Model) -> None:
    stop, snapshot = pool.submit(stop_in_a_process, model, 1.0).result(timeout=120)
    ours = stepper.Debugger(model, {0: np.float32(1)})
    assert ours.step(5).place == stop.place and ours.stop.tick == stop.tick
    other = stepper.Debugger(SAMPLES / "for_loop" / "model.xml", np.load(SAMPLES / "for_loop" / "inputs.npz"))
    with pytest.raises(stepper.UsageError, match="of another model"):
        other.machine.restore(snapshot)
    ours.machine.restore(snapshot)
    assert ours.evaluate("h") == pytest.approx(1 + 2)
    ours.last()
    assert [float(output) for output in ours.machine.outputs or ()] == [9.0]


def test_an_error_of_a_process_is_the_error_here(pool: ProcessPoolExecutor, model: Model) -> None:
    with pytest.raises(stepper.MissingInputs) as caught:
        pool.submit(failure_in_a_process, model).result(timeout=120)
    assert caught.value.missing[0].name == "x" and caught.value.inputs == 1


def test_a_file_that_has_changed_is_not_taken_for_the_model(tmp_path: Path) -> None:
    net = Graph()
    net.result(net.parameter("x", "f32", ()))
    path, content = net.read(tmp_path).path, pickle.dumps(net.read(tmp_path))
    path.write_bytes(path.read_bytes() + b"\n")
    gc.collect()
    with pytest.raises(stepper.ModelError, match="has changed since"):
        pickle.loads(content)
    path.unlink()
    with pytest.raises(stepper.ModelError, match="no longer there"):
        pickle.loads(content)


def test_a_model_that_is_called_otherwise_than_its_file_keeps_its_name() -> None:
    named = read(SAMPLES / "for_loop" / "model.xml", "loop.onnx")
    assert named.name == "loop.onnx" and pickle.loads(pickle.dumps(named)) is named
    assert model_of("for_loop").name == "for_loop", "the file's own"


def test_opened_sequences_and_models_of_no_file_are_pickled_too(tmp_path: Path) -> None:
    opened = stepper.open_sequences(model_of("onnx_moving_average"))
    assert [layer.name for layer in pickle.loads(pickle.dumps(opened)).graph.layers] == [
        layer.name for layer in opened.graph.layers
    ]
    net = Graph()
    net.result(net.apply("Add", net.parameter("x", "f32", (2,)), net.constant(np.array([1, 2], np.float32))))
    read = net.read(tmp_path)
    made = Model(read.path, read.name, read.version, read.graph, read.weights)
    back = pickle.loads(pickle.dumps(made))
    assert back is not made and back.graph == made.graph
    assert stepper.run(back, {"x": np.float32([1, 1])})["result"].tolist() == [2, 3]


# --- errors ----------------------------------------------------------------------------------------------------------


def kinds(kind: type[errors.StepperError]) -> Iterator[type[errors.StepperError]]:
    yield kind
    for other in kind.__subclasses__():
        yield from kinds(other)


def test_every_error_comes_back_with_its_message_and_its_facts() -> None:
    debugger = sample("for_loop")
    raised: list[errors.StepperError] = []
    for text in ("max(", "nonsense", "h@@", "balance_next@99"):
        with pytest.raises(errors.StepperError) as caught:
            debugger.evaluate(text)
        raised.append(caught.value)
    for kind in kinds(errors.StepperError):
        error = kind.__new__(kind, "what went wrong")
        error.facts = {"a": (1, 2)}  # type: ignore[attr-defined]
        raised.append(error)
    for error in raised:
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error) and str(back) == str(error) and vars(back) == vars(error)


def test_causes_chains_and_comparisons_are_a_line() -> None:
    debugger = sample("rwkv_overflow")
    debugger.break_when("nan")
    cause = debugger.continue_().cause
    chain = debugger.chain_of("wkv")
    comparison = stepper.compare_models(debugger.model, debugger.model, dict(enumerate(debugger.inputs)))
    assert repr(cause) == "<NonFinite (nan): Divide 'wkv' @8, breakpoint 1>"
    assert repr(chain) == "<Chain of 6 links: Divide 'wkv' @8 back to Exp 'exp_key' @7>"
    assert repr(comparison) == "<Comparison with model.xml: no difference>"
    for one in (cause, chain, comparison):
        assert "\n" not in repr(one) and len(repr(one)) < 400 and repr(pickle.loads(pickle.dumps(one))) == repr(one)


def test_what_questions_and_figures_give_is_a_line_and_pickled() -> None:
    debugger = sample("nested_loop")
    breakpoint = debugger.break_at("swaps_next", condition="swaps_next > 1")
    watch = debugger.watch("swaps_next", "x")
    debugger.continue_()
    debugger.branch("two")
    debugger.set_trip_count(2)
    given = dict(enumerate(debugger.inputs))
    found = [debugger.find("swaps_next > 0", "all"), debugger.over_iterations("values")]
    found += [debugger.previous_value("values"), debugger.branches.difference("original", "two")]
    found += [stepper.draw(debugger.model, given), *debugger.branches]
    for one in (breakpoint, watch, *found):
        assert "\n" not in repr(one) and len(repr(one)) < 400 and " object at " not in repr(one), type(one)
    assert repr(breakpoint) == "<Breakpoint 1: break swaps_next if swaps_next > 1 (1 hits)>"
    assert repr(watch) == "<Watch 1: swaps_next/x = 0x2>"
    for one in found:
        assert repr(pickle.loads(pickle.dumps(one))) == repr(one)
    assert pickle.loads(pickle.dumps(found[4])).written("svg") == found[4].written("svg")


def test_a_copy_of_a_machine_runs_by_itself_and_a_pickle_of_it_is_refused_with_what_can_be() -> None:
    machine = sample("for_loop").machine
    for copied in (copy.copy(machine), copy.deepcopy(machine)):
        copied.advance(stepper.Every.END)
        assert copied.finished and not machine.finished and machine.tick == 0
    with pytest.raises(TypeError, match=r"a Machine cannot be pickled; its snapshot\(\) can"):
        pickle.dumps(machine)


def test_a_debugger_says_that_it_cannot_be_pickled() -> None:
    with pytest.raises(TypeError, match="a Debugger cannot be pickled or copied; its model, inputs and stops can"):
        pickle.dumps(sample("for_loop"))
