"""Archives, recordings and another runtime as references: silent on equal runs, exact about a difference."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pytest

import stepper
from stepper.compare.comparison import RunComparison, compare_with, text_lines
from stepper.compare.references import openvino as together
from stepper.compare.references.openvino import OpenVINOReference, ended_after
from stepper.compare.references.protocol import ReferenceRun
from stepper.compare.references.recorded import ArchiveReference, RecordingReference
from stepper.element_types import Array
from stepper.engine.program import BranchPlan, Program
from stepper.engine.run import Outputs
from stepper.errors import ExecutionError, InputError, KernelError, SessionError
from stepper.ir.model import Graph as IRGraph
from stepper.ir.model import Layer, LoopKey, Model, Source
from stepper.openvino.peer import JointOperations, OperationRefused
from stepper.openvino.peer import Outputs as Waiter
from stepper.recording import RecordingOptions, record
from stepper.tensors.tolerances import Tolerance
from tests.compare.twins import OTHER_WEIGHTS, STEPS, UNITS, WEIGHTS, Begun, X, nested, one_by_one, recurrence
from tests.engine.nested_models import alternating
from tests.models import Graph as ModelGraph
from tests.models import carried, last
from tests.tables import each_row

TABLE = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 1.0, 1.0, 0.1]], np.float32)


def by_hand() -> dict[str, Any]:
    """The values of `recurrence`, computed once more in plain numpy."""
    h = np.zeros((1, UNITS))
    found: dict[str, list[Any]] = {"summed": [], "h_next": [], "y": []}
    for t in range(STEPS):
        summed = X[t : t + 1].astype(np.float64) @ WEIGHTS + h @ OTHER_WEIGHTS
        row = np.arange(3 * t, 3 * t + 3) * 0.01
        following = 1 / (1 + np.exp(-(summed * 1.5 + 0.25 + row)))
        for name, value in (("summed", summed), ("h_next", following), ("y", following - h)):
            found[name].append(value.astype(np.float32))
        h = following
    return {name: np.stack(values) for name, values in found.items()}


def against(
    folder: Path, reference: Callable[[Any, Sequence[Array]], ReferenceRun], graph: Any, value: Any
) -> RunComparison:
    model = graph.read(folder)
    inputs = stepper.bind_inputs(model, {0: value})
    compiled = stepper.compile_model(model)
    return compare_with(stepper.Machine(compiled, inputs), reference(compiled, inputs))


def with_archive(folder: Path, values: Mapping[str, Any], graph: Any, value: Any = X) -> RunComparison:
    path = folder / "values.npz"
    np.savez(path, **values)
    return against(folder, lambda compiled, _inputs: ArchiveReference(path, compiled), graph, value)


def keyed(style: str) -> dict[str, Any]:
    """The values by hand under each kind of key."""
    values = by_hand()
    if style == "single":
        return {f"{name}@{t}": array[t] for name, array in values.items() for t in range(STEPS)}
    if style == "stacked":
        return {f"cell::{name}@*": array for name, array in values.items()}
    return {f"tr:cell|{name}|0": array for name, array in values.items()}


def rounded() -> ModelGraph:
    graph = ModelGraph()
    x = graph.parameter("x", "f32", (64,))
    whole = graph.apply(
        "Round",
        graph.apply("Multiply", x, graph.constant(np.float32(0.5))),
        name="whole",
        version="opset5",
        mode="half_to_even",
    )
    graph.result(graph.apply("Add", whole, x), "y")
    return graph


@each_row(("off", "is_blamed"), [(1.0, True), (40.0, False)])
def test_halves_that_are_rounded_otherwise_are_no_fault_but_what_is_further_off_is(
    off: float, is_blamed: bool, tmp_path: Path
) -> None:
    x = np.arange(1, 128, 2).astype(np.float32)  # so that each product is at a half
    y = np.round(x / 2) + x
    y[::3] = np.floor(x / 2)[::3] + x[::3] + (np.round(x / 2) == np.floor(x / 2))[::3] * off
    found = with_archive(tmp_path, {"y": y}, rounded(), x)
    text = " ".join(" ".join(text_lines(found)).split())
    assert found.differs is not is_blamed
    assert text.startswith("no difference but of rounding") is is_blamed
    assert ("made large where a value is at a step" in text and "Round 'whole' (" in text) is is_blamed


@each_row("style", ["single", "stacked", "trace"])
def test_values_of_an_archive_agree_with_the_run_that_computes_them(style: str, tmp_path: Path) -> None:
    comparison = with_archive(tmp_path, keyed(style), recurrence())
    assert not comparison.differs
    assert comparison.observations.compared == 3 * STEPS


@each_row("style", ["single", "stacked", "trace"])
def test_a_value_that_an_archive_has_otherwise_is_found_in_its_iteration(style: str, tmp_path: Path) -> None:
    values = keyed(style)
    if style == "single":
        values["h_next@4"] = values["h_next@4"] + np.float32(0.01)
    else:
        key = next(key for key in values if "h_next" in key)
        values[key][4] += np.float32(0.01)
    verdict = with_archive(tmp_path, values, recurrence()).verdict
    assert verdict is not None and verdict.layer is not None and verdict.loop is not None
    assert (verdict.loop.name, verdict.layer.name, verdict.iteration) == ("cell", "h_next", 4)


def test_a_trace_tells_how_often_the_loop_ran(tmp_path: Path) -> None:
    verdict = with_archive(tmp_path, keyed("trace"), recurrence("trip count")).verdict
    assert verdict is not None and verdict.iteration == STEPS - 1
    assert "one iteration too few" in verdict.reason


def test_nested_keys_name_the_iteration_of_each_loop(tmp_path: Path) -> None:
    values = {"outer@1::inner@2::added": np.float32([[2.5]]), "outer@0::inner@1::added": np.float32([[0.3]])}
    assert not with_archive(tmp_path, values, nested(), TABLE).differs
    values["outer@1::inner@2::added"] += 1
    verdict = with_archive(tmp_path, values, nested(), TABLE).verdict
    assert verdict is not None and [step.iteration for step in verdict.path] == [1, 2]


def test_outputs_by_name_or_position_are_compared(tmp_path: Path) -> None:
    y = by_hand()["y"].reshape(STEPS, UNITS)
    assert not with_archive(tmp_path, {"out_1": y}, recurrence()).differs
    comparison = with_archive(tmp_path, {"all_y": y[::-1]}, recurrence())
    assert comparison.verdict is not None and "reversed order" in comparison.verdict.reason


def test_a_name_of_the_models_own_is_no_position(tmp_path: Path) -> None:
    net = ModelGraph()
    x = net.parameter("x", dims=(2,))
    for name, factor in (("out_1", 2.0), ("out_0", 3.0), ("out_7", 4.0)):
        net.result(net.apply("Multiply", x, net.constant([factor] * 2), names=name), f"result of {name}")
    given = np.float32([1, 2])
    right = {"out_1": 2 * given, "out_0": 3 * given, "out_7": 4 * given}
    found = with_archive(tmp_path, right, net, given)
    assert not found.differs and [one.theirs_known for one in found.observations.outputs] == [True] * 3
    assert with_archive(tmp_path, {"out_2": 5 * given}, net, given).differs, "by position, where no output is called so"


@each_row(
    ("content", "message"),
    [(b"", "cannot be read"), (b"PK\x03\x04 no archive", "cannot be read"), (None, "none of its 1 keys")],
)
def test_an_archive_that_says_nothing_is_refused(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "values.npz"
    np.savez(path, unknown=1) if content is None else path.write_bytes(content)
    compiled = stepper.compile_model(recurrence().read(tmp_path))
    with pytest.raises(InputError, match=message):
        ArchiveReference(path, compiled)


@each_row("key", ["cell::h_next@*", "tr:cell|h_next|0"])
def test_a_number_alone_is_no_trace(key: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of its 1 keys"):
        with_archive(tmp_path, {key: np.float32(1)}, recurrence())


@each_row(("values", "message"), [({}, "is empty"), ({"x": X}, "holds inputs of the model alone")])
def test_an_archive_with_which_nothing_could_be_compared_is_refused(
    values: Mapping[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        with_archive(tmp_path, values, recurrence())


def test_objects_in_an_archive_are_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "values.npz"
    np.savez(path, **{"h_next@0": np.array([{}], dtype=object)})
    reference = lambda compiled, _inputs: ArchiveReference(path, compiled)  # noqa: E731
    with pytest.raises(InputError, match="h_next@0"):
        against(tmp_path, reference, recurrence(), X)


# --- recordings -----------------------------------------------------------------------------------------------------


def recorded(folder: Path, graph: Any, value: Any, choice: str) -> Path:
    folder.mkdir()
    model = graph.read(folder)
    inputs = stepper.bind_inputs(model, {0: value})
    with record(
        stepper.Machine(stepper.compile_model(model), inputs), inputs, folder / "run", RecordingOptions.parse(choice)
    ) as run:
        run.run()
    return folder / "run"


@each_row("choice", ["all", "carried"])
@each_row(("graph", "value"), [(recurrence, X), (nested, TABLE)])
def test_a_recording_agrees_with_the_run_that_it_is_of(choice: str, graph: Any, value: Any, tmp_path: Path) -> None:
    path = recorded(tmp_path / "recorded", graph(), value, choice)
    comparison = against(tmp_path, lambda *given: RecordingReference(path, *given), graph(), value)
    assert not comparison.differs and comparison.observations.compared >= 2


@each_row(
    ("graph", "fault", "value", "layer", "iterations"),
    [(recurrence, "type", X, "summed", [1]), (nested, "branch", TABLE, "halved", [1, 2])],
)
def test_a_recording_of_the_healthy_run_shows_the_fault(
    graph: Any, fault: str, value: Any, layer: str, iterations: list[int], tmp_path: Path
) -> None:
    path = recorded(tmp_path / "recorded", graph(), value, "all")
    verdict = against(tmp_path, lambda *given: RecordingReference(path, *given), graph(fault), value).verdict
    assert verdict is not None and verdict.layer is not None and verdict.layer.name == layer
    assert [step.iteration for step in verdict.path if step.iteration is not None] == iterations


def test_a_recording_tells_how_its_loops_ended(tmp_path: Path) -> None:
    path = recorded(tmp_path / "recorded", recurrence(), X, "carried")
    verdict = against(tmp_path, lambda *given: RecordingReference(path, *given), recurrence("trip count"), X).verdict
    assert verdict is not None and "the reference runs 6 iterations (trip count reached)" in verdict.reason


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_bytes(b"SQLite format 3\0" + bytes(100))
    with pytest.raises(SessionError):
        RecordingReference(path, stepper.compile_model(recurrence().read(tmp_path)), [])


# --- another runtime ------------------------------------------------------------------------------------------------


def _runs_of(loop: Layer, outputs: Outputs) -> int:
    return next(one.iterations for one in outputs.loops if one.path == f"model > {loop.type} '{loop.name}'")


class Peer:
    """A runtime that computes as numpy does, but for one operation, or for a body as a whole."""

    def __init__(
        self,
        model: Model,
        wrong: str = "",
        *,
        wrong_body: bool = False,
        refuses: str = "",
        refuses_all: bool = False,
        wrong_with_others: str = "",
        names_what_it_refuses: bool = True,
    ) -> None:
        self.wrong_with_others, self.names_what_it_refuses = wrong_with_others, names_what_it_refuses
        self.asked_together = 0
        self.asked_alone: set[str] = set()
        self._programs = {id(program.graph): program for program in stepper.compile_model(model).programs}
        self._model, self._wrong, self._wrong_body, self._refuses = model, wrong, wrong_body, refuses
        self._refuses_all = refuses_all

    def begin_again(self, *_given: Any) -> Waiter:
        raise ExecutionError("it runs one way alone")

    notes: Sequence[str] = ()

    def give_up(self) -> None:
        raise AssertionError("it has ended when it is not needed any more")

    def begin(self, inputs: Sequence[Array], *, seconds: float | None = None) -> Waiter:
        self.seconds = seconds
        return lambda: self._run(inputs)

    def _run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        if self._refuses_all:
            raise ExecutionError("refused as a whole")
        return list(stepper.run(self._model, dict(enumerate(inputs))).values())

    def run_anew(self, *_given: Any, seconds: float | None = None) -> None:
        assert seconds == self.seconds, "and nothing is kept"

    def begin_counting(
        self, inputs: Sequence[Array], *, seconds: float | None = None
    ) -> Callable[[], Mapping[LoopKey, int]]:
        assert seconds == self.seconds
        loops = [layer for layer in self._model.graph.layers if layer.is_loop]
        return lambda: {(loop.id,): _runs_of(loop, stepper.run(self._model, dict(enumerate(inputs)))) for loop in loops}

    def together(
        self,
        graph: IRGraph,
        layers: Sequence[Layer],
        _values: Mapping[Source, Array],
        stacked: Container[Source] | None = None,
        judge: Mapping[Source, Tolerance] | None = None,
    ) -> JointOperations:
        self.asked_together += 1
        sources = list(dict.fromkeys(source for layer in layers for source in graph.sources[layer.id] if source))

        def compute(*inputs: Any) -> Sequence[Array]:
            values, found = dict(zip(sources, inputs, strict=True)), list[Array]()
            for layer in layers:
                if layer.name == self._refuses:
                    raise OperationRefused("not here", layer if self.names_what_it_refuses else None)
                given = [values[source] for source in graph.sources[layer.id] if source]
                results = self._computed(graph, layer, given)
                found += [value + 0.5 if layer.name == self.wrong_with_others else value for value in results]
            return found

        many = None if stacked is None else [source in stacked for source in sources]
        outputs = tuple(Source(layer.id, output) for layer in layers for output in range(len(layer.outputs)))
        return JointOperations(tuple(layers), tuple(sources), outputs, Begun(one_by_one(compute, many)).begin)

    def operation(self, graph: IRGraph, layer: Layer) -> Callable[..., Sequence[Array]]:
        def compute(*inputs: Any) -> Sequence[Array]:
            if layer.name == self._refuses:
                raise KernelError("not here")
            self.asked_alone.add(layer.name)
            return self._computed(graph, layer, inputs)

        return compute

    def _computed(self, graph: IRGraph, layer: Layer, inputs: Sequence[Any]) -> Sequence[Array]:
        operation = next(one for one in self._programs[id(graph)].operations if one.layer is layer)
        assert operation.function is not None
        found = operation.function(*inputs)
        results = found if operation.several_outputs else (found,)
        return [np.asarray(value) + (0.5 if layer.name == self._wrong else 0) for value in results]

    def body(self, graph: IRGraph) -> Begun:
        program = self._programs[id(graph)]

        def compute(*parameters: Any) -> Sequence[Array]:
            found = [np.asarray(value) for value in _results_of(program, parameters)]
            return [
                value + np.float32(0.5) if self._wrong_body and value.dtype == np.float32 else value for value in found
            ]

        return Begun(compute)

    def iterated_body(self, graph: IRGraph, stacked: Sequence[bool]) -> Begun:
        return Begun(one_by_one(self.body(graph), stacked))


def _results_of(program: Program, parameters: Sequence[Any]) -> list[Any]:
    """The Results of a body without loops."""
    values = list(program.template)
    for slot, value in zip(program.parameters, parameters, strict=True):
        values[slot] = value
    for operation in program.operations:
        inputs = [values[slot] for slot in operation.inputs]
        if not operation.plans:
            assert operation.function is not None
            values[operation.outputs[0]] = operation.function(*inputs)
            continue
        if operation.layer.is_loop:
            raise KernelError("not a body in a body")
        plan = operation.plans[0 if inputs[0] else 1]
        assert isinstance(plan, BranchPlan)
        given = {slot: inputs[index] for index, slot in plan.inputs}
        results = _results_of(plan.program, [given[slot] for slot in plan.program.parameters])
        found = dict(zip(plan.program.results, results, strict=True))
        for output, slot in plan.outputs:
            values[operation.outputs[output]] = found[slot]
    return [values[slot] for slot in program.results]


P = TypeVar("P", bound=Peer)


def with_peer(folder: Path, peers: list[Peer] | None = None, **options: Any) -> RunComparison:
    """The comparison; `peers` gets the peer."""
    found, peer = beside(Peer, folder, recurrence(), X, **options)
    if peers is not None:
        peers.append(peer)
    return found


def beside(kind: type[P], folder: Path, graph: Any, value: Any, **options: Any) -> tuple[RunComparison, P]:
    """The comparison of a graph with a peer of some kind, and that peer."""
    peers: list[P] = []

    def reference(compiled: Any, inputs: Sequence[Array]) -> ReferenceRun:
        peers.append(kind(compiled.model, **options))
        return OpenVINOReference(peers[0], inputs, "the peer")

    return against(folder, reference, graph, value), peers[0]


def test_a_runtime_that_computes_the_same_is_no_difference(tmp_path: Path) -> None:
    comparison = with_peer(tmp_path)
    assert not comparison.differs and comparison.observations.compared > 10 * STEPS


class Waiting(Peer):
    """Says when its own run is begun, waited for and given up; `wait` is called when it is waited for."""

    def __init__(self, model: Model, wait: Callable[[], object] = lambda: None) -> None:
        super().__init__(model)
        self.is_begun = self.is_given_up = False
        self._wait = wait

    def begin(self, inputs: Sequence[Array], *, seconds: float | None = None) -> Waiter:
        self.is_begun, outputs = True, super().begin(inputs, seconds=seconds)

        def waited() -> Sequence[Array]:
            self._wait()
            return outputs()

        return waited

    def give_up(self) -> None:
        self.is_given_up = True


def test_the_runtimes_own_run_goes_on_beside_ours(tmp_path: Path) -> None:
    """It is begun before ours, and waited for when a value of the runtime is needed, the loop's first iteration."""
    model = recurrence().read(tmp_path)
    inputs, compiled = stepper.bind_inputs(model, {0: X}), stepper.compile_model(model)
    machine, waited_at = stepper.Machine(compiled, inputs), list[int]()
    peer = Waiting(model, lambda: waited_at.append(machine.tick))
    reference = OpenVINOReference(peer, inputs, "the peer")
    assert peer.is_begun and not waited_at
    assert not compare_with(machine, reference).differs
    assert len(waited_at) == 1 and waited_at[0] > 0
    del reference
    assert not peer.is_given_up


def test_a_runtimes_run_that_nobody_waits_for_is_given_up(tmp_path: Path) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    model = recurrence().read(tmp_path)
    inputs, dropped, stopped = stepper.bind_inputs(model, {0: X}), Waiting(model), Waiting(model, interrupted)
    OpenVINOReference(dropped, inputs, "the peer")
    assert dropped.is_given_up
    reference = OpenVINOReference(stopped, inputs, "the peer")
    with pytest.raises(KeyboardInterrupt):
        reference.outputs()
    assert not stopped.is_given_up
    del reference
    assert stopped.is_given_up


class Telling(Peer):
    """Notes in which order its groups of operations, and its own run, are begun and waited for."""

    def __init__(self, model: Model, **options: Any) -> None:
        self.told: list[str] = []
        super().__init__(model, **options)

    def begin(self, inputs: Sequence[Array], *, seconds: float | None = None) -> Waiter:
        return self._telling("run", super().begin(inputs, seconds=seconds))

    def together(
        self, graph: IRGraph, layers: Sequence[Layer], values: Any, stacked: Any = None, judge: Any = None
    ) -> JointOperations:
        if stacked is not None:
            raise ExecutionError("one iteration at a time")
        joint, name = super().together(graph, layers, values, None, judge), layers[0].name
        return joint._replace(begin=lambda *inputs: self._telling(name, joint.begin(*inputs)))

    def body(self, graph: IRGraph) -> Begun:
        function = super().body(graph)
        return SimpleNamespace(begin=lambda *inputs: self._telling("the body", function.begin(*inputs)))  # type: ignore[return-value]

    def _telling(self, name: str, outputs: Waiter) -> Waiter:
        self.told.append(f"begin {name}")

        def waited() -> Sequence[Array]:
            self.told.append(f"wait for {name}")
            return outputs()

        return waited


def chain(length: int) -> ModelGraph:
    """Operations o0, o1 and so on, each of the one before."""
    graph = ModelGraph()
    value = graph.parameter("x", "f32", (1, 3))
    for number in range(length):
        value = graph.apply("Tanh" if number % 2 else "Sin", value, name=f"o{number}")
    graph.result(value, "y")
    return graph


@each_row("refuses", ["", "o2"])
def test_groups_of_operations_are_begun_ahead_but_not_many(
    refuses: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "_MOST_OPERATIONS", 2)
    monkeypatch.setattr(together, "_AHEAD", 2)
    found, peer = beside(Telling, tmp_path, chain(10), np.ones((1, 3), np.float32), refuses=refuses)
    assert not found.differs and found.observations.compared == (9 if refuses else 10)
    if refuses:
        return
    assert peer.told == [
        *("begin run", "begin o0", "begin o2", "begin o4", "wait for run", "wait for o0"),
        *("begin o6", "wait for o2", "begin o8", "wait for o4", "wait for o6", "wait for o8"),
    ]


@each_row(("most", "ahead"), [(2**28, 3), (100, 2), (10, 1)])
def test_of_large_values_fewer_groups_are_begun_ahead(
    most: int, ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each operation has two values of 12 bytes here, and each group two operations."""
    monkeypatch.setattr(together, "_MOST_OPERATIONS", 2)
    monkeypatch.setattr(together, "_MOST_BYTES_AHEAD", most)
    monkeypatch.setattr(together, "_AHEAD", 2)
    found, peer = beside(Telling, tmp_path, chain(12), np.ones((1, 3), np.float32))
    assert not found.differs
    told = [one.split()[0] for one in peer.told if "run" not in one]
    counts = [sum(1 if one == "begin" else -1 for one in told[:end]) for end in range(len(told) + 1)]
    assert max(counts) == ahead and counts[-1] == 0 and told.count("begin") == 6


@each_row("wrong", ["", "even", "half", "upwards"])
def test_of_an_iteration_with_a_branch_all_is_begun_before_anything_is_waited_for(wrong: str, tmp_path: Path) -> None:
    found, peer = beside(Telling, tmp_path, alternating(), np.array(3), wrong=wrong)
    told = peer.told
    ends = [index for index, one in enumerate(told) if one == "wait for the body"]
    assert len(ends) == 7, "3, 10, 5, 16, 8, 4, 2, 1"
    for begin, end in zip([told.index("begin run") + 1, *(end + 1 for end in ends)], ends, strict=False):
        kinds = [one.split()[0] for one in told[begin : end + 1] if one not in ("begin run", "wait for run")]
        assert kinds == sorted(kinds) and kinds.count("begin") == kinds.count("wait") >= 3
    wrong_layers = [record.layer.name for record in found.observations.records.values() if record.differing]
    assert set(filter(None, wrong_layers)) == {wrong} - {""}


@each_row("wrong", ["", "even", "half", "upwards", "not_one"])
@each_row("start", [3, 27])
def test_blocks_of_iterations_with_branches_say_what_single_ones_say(start: int, wrong: str, tmp_path: Path) -> None:
    said = []
    for kind in (Peer, Telling):
        found, _peer = beside(kind, tmp_path, alternating(), np.array(start), wrong=wrong)
        observed = found.observations
        records = [(one.layer.name, one.compared, one.differing) for one in observed.records.values()]
        findings = [(one.layer and one.layer.name, [step.iteration for step in one.path]) for one in observed.findings]
        said.append((records, findings, observed.compared, list(text_lines(found))))
    assert said[0] == said[1]


@each_row("wrong", ["", "even", "half", "upwards", "not_one"])
def test_iterations_with_branches_are_computed_together(wrong: str, tmp_path: Path) -> None:
    found, peer = beside(Peer, tmp_path, alternating(), np.array(27), wrong=wrong)
    assert peer.asked_together == 3, "the body and its two branches"
    assert peer.asked_alone == {wrong} - {""}, "what differs is made sure"
    times = {"even": 111, "half": 70, "upwards": 41, "not_one": 111}
    records = {record.layer.name: record for record in found.observations.records.values()}
    assert {name: records[name].compared for name in times} == times
    assert {record.layer.name: record.differing for record in records.values() if record.differing} == (
        {wrong: times[wrong]} if wrong else {}
    )
    if wrong:
        first = found.observations.findings[0]
        assert first.layer is not None and first.layer.name == wrong
        expected = {"half": [1, None], "upwards": [0, None]}.get(wrong, [0])
        assert [step.iteration for step in first.path] == expected


def test_the_operation_that_the_runtime_computes_otherwise_is_the_only_one_that_differs(tmp_path: Path) -> None:
    comparison = with_peer(tmp_path, wrong="scaled")
    assert comparison.verdict is not None and comparison.verdict.layer is not None
    assert (comparison.verdict.layer.name, comparison.verdict.iteration) == ("scaled", 0)
    wrong = {record.layer.name for record in comparison.observations.records.values() if record.differing}
    assert wrong == {"scaled"}, "nothing is carried in, for each operation gets our inputs"


def test_a_body_that_only_as_a_whole_is_wrong_shows_at_its_results(tmp_path: Path) -> None:
    verdict = with_peer(tmp_path, wrong_body=True).verdict
    assert verdict is not None and verdict.layer is not None
    assert (verdict.layer.type, verdict.iteration) == ("Result", 0)


def test_what_the_runtime_refuses_is_passed_over(tmp_path: Path) -> None:
    assert not with_peer(tmp_path, refuses="scaled").differs


def test_operations_that_agree_are_never_asked_for_one_by_one(tmp_path: Path) -> None:
    peers: list[Peer] = []
    with_peer(tmp_path, peers)
    assert peers[0].asked_together == 1 and not peers[0].asked_alone


@each_row("named", [True, False])
def test_the_others_of_a_group_in_which_one_is_refused_are_computed_together(named: bool, tmp_path: Path) -> None:
    peers: list[Peer] = []
    found = with_peer(tmp_path, peers, refuses="scaled", names_what_it_refuses=named)
    compared = {record.layer.name for record in found.observations.records.values()}
    assert compared >= {"xW", "summed", "h_next"} and "scaled" not in compared
    assert peers[0].asked_alone <= ({"row_t"} if named else set()), "another Multiply may be tried alone"
    assert peers[0].asked_together <= (2 if named else 10)


def test_what_is_computed_otherwise_with_others_alone_is_no_difference(tmp_path: Path) -> None:
    peers: list[Peer] = []
    found = with_peer(tmp_path, peers, wrong_with_others="scaled")
    assert not found.differs and peers[0].asked_alone == {"scaled"}


@each_row("wrong", ["", "scaled"])
def test_of_a_model_that_the_runtime_refuses_the_operations_are_compared_all_the_same(
    wrong: str, tmp_path: Path
) -> None:
    comparison = with_peer(tmp_path, wrong=wrong, refuses_all=True)
    assert comparison.verdict is not None and comparison.observations.compared > 10 * STEPS
    assert ("scaled" in comparison.verdict.reason) == bool(wrong)
    text = " ".join((comparison.verdict.reason, *comparison.verdict.details))
    assert text.count("the reference stops: refused as a whole") == 1


class Totals(OpenVINOReference):
    """A runtime of which only the iterations in all runs are known; one more than ours of the inner loop."""

    more = 0

    def totals(self) -> Mapping[tuple[int, ...], int]:
        outer = next(layer for layer in self.model.graph.layers if layer.is_loop)
        inner = next(layer for layer in outer.bodies[0].graph.layers if layer.is_loop)
        return {(outer.id, inner.id): 8 + self.more}

    def __init__(self, model: Model, inputs: Sequence[Array], more: int) -> None:
        self.model, self.more = model, more
        super().__init__(Peer(model), inputs, "the peer")


@each_row("more", [0, 1])
def test_loops_in_loops_are_compared_by_their_iterations_in_all(more: int, tmp_path: Path) -> None:
    comparison = against(tmp_path, lambda compiled, inputs: Totals(compiled.model, inputs, more), nested(), TABLE)
    text = "\n".join(text_lines(comparison))
    assert comparison.differs == bool(more)
    assert ("8 in all | 9 in all  <- differs" in text) == bool(more)
    words = (
        "runs 8 iterations (in all its runs), the reference runs 9 iterations (in all its runs): one iteration too few"
    )
    assert (words in " ".join(text.split())) == bool(more)


@each_row(
    ("type", "limit", "count", "words"),
    [
        ("Loop", 5, 5, "trip count reached"),
        ("Loop", 5, 3, "condition became false"),
        ("Loop", None, 3, "condition became false"),
        ("Loop", 5, 0, "condition was false at the start"),
        ("Loop", 5, 4, "as ours"),
        ("TensorIterator", 5, 5, "every slice was used"),
        ("TensorIterator", 5, 3, ""),
    ],
)
def test_what_ended_a_loop_of_the_runtime_follows_from_its_iterations(
    type: str, limit: int | None, count: int, words: str
) -> None:
    activation: Any = SimpleNamespace(
        iteration=3, limit=limit, ended="as ours", operation=SimpleNamespace(layer=SimpleNamespace(type=type))
    )
    assert ended_after(activation, count) == words


def doubling() -> ModelGraph:
    """An i64 that doubles in each of four iterations."""
    graph = ModelGraph()
    start = graph.parameter("start", "i64", (1,))
    body = graph.body()
    value = body.parameter("value", "i64", (1,))
    doubled = body.apply("Multiply", value, body.constant([2], np.int64, "two"), name="doubled")
    result = body.result(doubled, "value_out")
    graph.result(graph.loop("doubling", body, 4, True, [carried(start, value, result)], [last(result)])[0], "end")
    return graph


@each_row(("start", "iteration"), [(2**28, 2), (2**30, 0)])
def test_an_integer_that_wraps_in_the_runtime_is_named_as_its_overflow(
    start: int, iteration: int, tmp_path: Path
) -> None:
    exact = [start * 2 ** (t + 1) for t in range(4)]
    wrapped = np.array(exact, np.int64).astype(np.int32).astype(np.int64).reshape(4, 1)
    values = {"tr:doubling|doubled|0": wrapped, "out_0": wrapped[-1]}
    verdict = with_archive(tmp_path, values, doubling(), np.int64([start])).verdict
    assert verdict is not None and verdict.layer is not None
    assert (verdict.layer.name, verdict.iteration) == ("doubled", iteration)
    assert "overflow" in verdict.reason and "2^31" in verdict.reason


def test_an_overflow_that_does_not_reach_the_outputs_is_no_finding(tmp_path: Path) -> None:
    wrapped = np.array([2**29 * 2**t for t in range(1, 5)], np.int64).astype(np.int32).astype(np.int64).reshape(4, 1)
    values = {"tr:doubling|doubled|0": wrapped, "out_0": np.int64([2**33])}
    assert not with_archive(tmp_path, values, doubling(), np.int64([2**29])).differs
