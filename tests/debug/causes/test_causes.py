"""Why a run stopped is plain data for every kind of breakpoint: it is pickled, written as JSON and put into words."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import convert

from stepper.commands import Interpreter
from stepper.commands.command_session import stop_data
from stepper.debug.breakpoints.kinds.loop_kinds import LoopEnds
from stepper.debug.breakpoints.kinds.value_kinds import Moved
from stepper.debug.causes.cause import (
    Became,
    Cause,
    NonFinite,
    PlaceEvent,
    Reached,
    RunFailed,
    Trigger,
    cause_data,
)
from stepper.debug.causes.cause_texts import name_of, sentences, title
from stepper.debug.debugger import Debugger
from stepper.debug.scopes import ReferenceValues, ValuePlace
from stepper.element_types import Array
from stepper.engine.loops import EndReason
from stepper.errors import ExecutionError, UsageError
from stepper.ir.model import LayerSite, layer_data
from stepper.session.session_files import AnyCause
from tests.debug import loops_to_break as models
from tests.debug.oracle import debugger
from tests.models import Graph
from tests.tables import each_row

Set = Callable[[Debugger], Any]


def causes_of(data: Any) -> tuple[Cause, ...]:
    """The causes that were written with `cause_data`, as a session reads them."""
    return convert(data, tuple[AnyCause, ...], strict=False)


def walk(folder: Path) -> Debugger:
    return debugger(models.walk(), folder, np.arange(1, 9, dtype=np.float32))


def division(folder: Path) -> Debugger:
    x = np.ones((6, 2), np.float32)
    x[2, 1] = 0
    return debugger(models.division(), folder, x, x)


CASES: dict[str, tuple[Callable[[Path], Debugger], Set, str]] = {
    "operation": (walk, lambda run: run.break_at("sum"), "reached"),
    "iteration": (walk, lambda run: run.break_at("walk@3"), "reached"),
    "back edge": (walk, lambda run: run.break_at("total@2"), "reached"),
    "expression": (walk, lambda run: run.break_when("max(sum) > 3"), "expression"),
    "no value": (walk, lambda run: run.breakpoints.add(_broken()), "unknown"),
    "nan": (division, lambda run: run.break_when("nan"), "nan"),
    "last": (walk, lambda run: run.break_when("last"), "last"),
    "end": (walk, lambda run: run.break_when("end"), "end"),
    "limit": (walk, lambda run: run.break_when("limit"), "limit"),
    "cond": (
        lambda folder: debugger(models.countdown(), folder, np.array([4], np.int64)),
        lambda run: run.break_when("cond"),
        "cond",
    ),
    "stuck": (
        lambda folder: debugger(models.recurrence("Multiply", 1.0, trips=5), folder),
        lambda run: run.break_when("stuck"),
        "stuck",
    ),
    "period": (
        lambda folder: debugger(models.modular(2, 7, 1, trips=30), folder),
        lambda run: run.break_when("period"),
        "period",
    ),
    "grow": (
        lambda folder: debugger(models.recurrence("Multiply", 10.0, trips=9), folder),
        lambda run: run.break_when("grow>1e3"),
        "grow",
    ),
    "grow of a value": (walk, lambda run: run.break_when("grow>2 double"), "grow"),
    "diff": (walk, lambda run: run.break_when("diff>4"), "diff"),
    "changes": (walk, lambda run: run.break_when("changes double[0]"), "changes"),
    "shape": (
        lambda folder: debugger(models.growing(), folder, np.ones(1, np.float32)),
        lambda run: run.break_when("shape"),
        "shape",
    ),
}


def _broken() -> Any:
    from stepper.debug.breakpoints.breakpoint import BreakDescription, BreakKind

    return BreakDescription(BreakKind.AT, "sum", "sum[3] > 0")


@each_row("name", CASES)
def test_every_kind_is_plain_data_with_its_place_and_words(name: str, tmp_path: Path) -> None:
    begin, set_one, kind = CASES[name]
    run = begin(tmp_path)
    set_one(run)
    stop = run.continue_()
    cause = stop.cause
    assert cause is not None and cause.kind == kind and stop.is_interrupted
    assert (cause.trigger, cause.number, name_of(cause)) == (Trigger.BREAKPOINT, 1, "breakpoint 1")
    assert cause.location.iteration == stop.iteration
    layer = cause.location.path[-1].layer
    assert layer.file == str(run.model.path) and layer.line > 0
    written = json.loads(json.dumps([cause_data(one) for one in stop.causes], allow_nan=False))
    assert causes_of(written) == stop.causes == pickle.loads(pickle.dumps(stop.causes))
    texts = sentences(cause)
    assert texts and all(texts) and stop.details[: len(texts)] == tuple(f"breakpoint 1: {text}" for text in texts)
    assert "'" not in title(cause) or isinstance(cause, Became | Reached) or name == "no value"
    assert len(title(cause, is_short=True)) <= len(title(cause))


class Zeros(ReferenceValues):
    """A reference in which everything is 0."""

    title = "zeros"

    def value_at(self, spot: ValuePlace) -> Array | None:
        value = spot.frame.values[spot.frame.program.slots[spot.layer.id, spot.output]]
        return np.zeros_like(value)


class Crashed(ReferenceValues):
    """A reference whose runtime ended before it had any value."""

    title = "OpenVINO"
    notes = ("OpenVINO crashed (signal 11) in 'sum'",)

    def value_at(self, place: ValuePlace) -> Array | None:
        return None


def test_a_reference_that_crashed_says_so_where_it_has_no_value(tmp_path: Path) -> None:
    run = walk(tmp_path)
    run.reference = Crashed()
    run.run_to("sum")
    with pytest.raises(UsageError, match=r"OpenVINO has no value for 'sum' here: OpenVINO crashed \(signal 11\)"):
        run.evaluate("ref(sum)")


def test_the_distance_from_a_reference_is_a_cause_too(tmp_path: Path) -> None:
    run = walk(tmp_path)
    run.reference = Zeros()
    run.break_when("diff>2 sum")
    cause = run.continue_().cause
    assert cause is not None and cause.kind == "reference"
    assert causes_of([cause_data(cause)]) == (cause,)
    assert "Add 'sum' is 3 from zeros, more than 2, in iteration 1 of Loop 'walk'" in sentences(cause)[0]


def test_what_passes_over_a_back_edge_has_its_line_and_iterations(tmp_path: Path) -> None:
    run = walk(tmp_path)
    run.break_at("total@2")
    cause = run.continue_().cause
    assert isinstance(cause, Reached) and cause.what is PlaceEvent.CAME_IN and cause.edge is not None
    assert (cause.passing, cause.edge.parameter.name) == (1, "total")


def test_the_aim_of_a_movement_is_no_interruption_and_a_breakpoint_on_the_way_is(tmp_path: Path) -> None:
    run = walk(tmp_path)
    stop = run.run_to("double@2")
    assert stop.cause is not None and stop.cause.trigger is Trigger.AIM and not stop.is_interrupted
    run.break_at("sum@3")
    stop = run.until("iter == 3")
    assert run.stop.is_interrupted is any(cause.trigger is Trigger.BREAKPOINT for cause in stop.causes)


def test_numbers_that_json_lacks_come_back_as_they_were(tmp_path: Path) -> None:
    run = debugger(models.recurrence("Multiply", 1e30, trips=4), tmp_path)
    run.break_when("diff>1")
    for _ in range(2):
        cause = run.continue_().cause
    assert isinstance(cause, Moved) and cause.distance == float("inf")
    written = json.loads(json.dumps(cause_data(cause), allow_nan=False))
    assert written["distance"] == "Infinity" and causes_of([written]) == (cause,)


def test_an_error_of_the_run_is_the_cause_of_its_stop(tmp_path: Path) -> None:
    net = Graph()
    x, sizes = net.parameter("x", dims=(2,)), net.parameter("sizes", "i64", (1,))
    taken = net.apply("Reshape", x, sizes, name="taken", dims=(-1,), special_zero="false")
    net.result(net.apply("Abs", taken, name="after"))
    run = debugger(net, tmp_path, np.ones(2, np.float32), np.array([7], np.int64))
    with pytest.raises(ExecutionError):
        run.continue_()
    cause = run.stop.cause
    assert isinstance(cause, RunFailed) and not run.stop.is_interrupted
    assert cause.location.operation is not None and cause.location.operation.name == "taken"


def test_a_session_keeps_why_the_run_stands_where_it_does(tmp_path: Path) -> None:
    run = division(tmp_path)
    run.break_when("nan")
    run.continue_()
    interpreter = Interpreter(run)
    interpreter.execute(f"session save {tmp_path}/kept")
    other = division(tmp_path)
    Interpreter(other).execute(f"session load {tmp_path}/kept")
    assert other.stop.causes == run.stop.causes and isinstance(other.stop.cause, NonFinite)


def test_answers_name_layers_in_one_form_and_breakpoints_with_their_places(tmp_path: Path) -> None:
    run = walk(tmp_path)
    interpreter = Interpreter(run)
    interpreter.execute("break sum")
    interpreter.execute("break walk@3")
    interpreter.execute('log double "{iter}"')
    layer = next(layer for program in run.machine.compiled.programs for layer in program.layers if layer.name == "sum")
    (loop,) = [layer for layer in run.model.graph.layers if layer.name == "walk"]
    listed = interpreter.execute("info breaks").data["breakpoints"]
    assert listed[0]["places"] == [
        {"when": "after", "layer": layer_data(layer, run.model), "path": [layer_data(loop, run.model)]}
    ]
    assert (listed[1]["places"][0]["when"], listed[1]["places"][0]["layer"]["name"]) == ("begins", "walk")
    assert listed[2]["kind"] == "log" and listed[2]["place_count"] == 1
    said: list[Any] = []
    run.breakpoints.sink = said.append
    interpreter.execute("continue")
    data = stop_data(run)
    assert data["done"] == layer_data(layer, run.model) and set(data["done"]) == set(LayerSite.__struct_fields__)
    assert data["cause"]["location"]["operation"] == data["done"]
    interpreter.execute("continue")
    assert [(line, line.number) for line in said] == [("0", 3)]
    assert run.goto_tick(said[0].tick).done is not None and run.stop.done.layer.name == "double"  # type: ignore[union-attr]


def test_the_sample_of_the_tour_says_the_same_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    from stepper.cli import main

    folder = Path(__file__).parents[3] / "sample_models" / "rwkv_overflow"
    arguments = ["run", str(folder / "model.xml"), "--inputs", str(folder / "inputs.npz"), "--break", "nan"]
    main(arguments)
    text = " ".join(capsys.readouterr().out.split())
    main([*arguments, "--json"])
    found = json.loads(capsys.readouterr().out)["break"]
    birth = found["cause"]["chain"]["links"][-1]
    assert (birth["location"]["operation"]["name"], birth["location"]["path"][0]["iteration"]) == ("exp_key", 7)
    assert birth["element"] == [0, 3] and birth["formula"] == "exp(89.2) > f32 maximum exp(88.72)"
    assert birth["operands"][0]["value"] == pytest.approx(89.2, abs=0.01)
    assert [one["kind"] for one in found["cause"]["chain"]["links"]].count("back edge") == 1
    assert found["cause"]["formula"] == "Inf / Inf" and "clean" not in text.replace("was clean", "")
    for said in ("Inf / Inf gives NaN", "the back edge to 'numerator'", "exp(89.2) > f32 maximum exp(88.72)"):
        assert said in text and any(said in one for one in found["details"])
    assert causes_of([found["cause"]])[0].kind == "nan"


def test_the_end_of_a_loop_says_what_ended_it(tmp_path: Path) -> None:
    run = walk(tmp_path)
    run.break_when("end")
    cause: Cause | None = run.continue_().cause
    assert isinstance(cause, LoopEnds)
    assert (cause.executed, cause.limit, cause.turned, cause.ended) == (
        8,
        8,
        False,
        EndReason.TRIP_COUNT,
    )
