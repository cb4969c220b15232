"""Each kind of mistake is found from the outputs of the network without it, and the repair holds on other inputs."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepper.errors import UsageError
from stepper.ir.model import Model
from stepper.repair import replay
from stepper.repair.asked_function import ask_function
from stepper.repair.edit import patched
from stepper.repair.fix_texts import answer_lines, edits_text
from stepper.repair.repairing import FixStatus, FoundFix, repaired
from stepper.repair.replay import Replayer
from stepper.repair.search import SearchProgress, candidates, tried
from stepper.repair.side_by_side import tried_in_processes
from stepper.tensors.tolerances import Tolerances
from tests.models import Graph, carried, last
from tests.repair.faulty_networks import (
    Network,
    conditional,
    network,
    outputs_of,
    random_inputs,
    read,
    reference_of,
    with_lengths,
)
from tests.tables import few

HEALTHY = Network()
MISTAKES = {
    "transpose flag": (replace(HEALTHY, transposes_weights=False), "transpose_b=true instead of false"),
    "operation": (replace(HEALTHY, joins="Subtract"), "Add instead of Subtract"),
    "activation": (replace(HEALTHY, activation="Sigmoid"), "Tanh instead of Sigmoid"),
    "reduction": (replace(HEALTHY, centres="ReduceSum"), "ReduceMean instead of ReduceSum"),
    "axis": (replace(HEALTHY, axis=0), "Constant 'axes': [1] instead of [0]"),
    "operands": (replace(HEALTHY, is_exchanged=True), "operands 0 and 1 exchanged"),
    "constant": (replace(HEALTHY, gain=0.137), "Constant 'gain': 1.37 instead of 0.137"),
    "number of no list": (replace(HEALTHY, gain=0.9), "Constant 'gain': 1.37 instead of 0.9"),
    "trip count": (replace(HEALTHY, steps=4), "5 instead of 4"),
    "direction": (replace(HEALTHY, goes_backwards=True), "in the other direction"),
    "back edge": (replace(HEALTHY, carries="joined"), "'state'"),
    "initial state": (replace(HEALTHY, begins_with="begin"), "'zeros' instead of 'begin'"),
    "missing operation": (replace(HEALTHY, takes_size=False), "Abs of 'centred' inserted before Less 'is_small'"),
    "comparison": (replace(HEALTHY, comparison="Greater"), "Less instead of Greater"),
}


def fixed(
    folder: Path, faulty: Graph, healthy: Graph, seeds: tuple[int, ...] = (1,), *, can_be_asked: bool = False
) -> tuple[FoundFix, Model, Model]:
    """What is found, the faulty model and the healthy one."""
    wrong, right = read(faulty, folder, "faulty"), read(healthy, folder, "healthy")
    reference = reference_of(right, wrong, seeds, can_be_asked=can_be_asked)
    return repaired(wrong, reference, Tolerances(exact=False), seconds=120), wrong, right


def assert_holds(found: FoundFix, wrong: Model, right: Model) -> None:
    """The first repair gives the outputs of the healthy network on inputs that were not given."""
    for seed in (11, 12):
        inputs = random_inputs(right, seed)
        made = outputs_of(patched(wrong, found.edits).model(), inputs)
        for position, expected in outputs_of(right, inputs).items():
            np.testing.assert_allclose(made[position], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", few(3, MISTAKES))
def test_a_mistake_is_named_and_repaired(kind: str, tmp_path: Path) -> None:
    what, words = MISTAKES[kind]
    found, wrong, right = fixed(tmp_path, network(what), network(HEALTHY))
    assert found.answer.status is FixStatus.REPAIRED
    first = found.answer.repairs[0]
    assert any(words in edits_text(edits) for edits in (first.edits, *first.equivalents)), answer_lines(found.answer)
    assert_holds(found, wrong, right)


def test_exchanged_branches_are_exchanged_back(tmp_path: Path) -> None:
    found, _wrong, _right = fixed(tmp_path, conditional(is_exchanged=True), conditional(is_exchanged=False))
    texts = [edits_text(edits) for one in found.answer.repairs for edits in (one.edits, *one.equivalents)]
    assert "If 'choice': branches exchanged" in texts
    assert found.distinguishing is not None  # of an If that one input takes on one side


def test_lengths_that_reach_nothing_mask_the_state(tmp_path: Path) -> None:
    found, wrong, right = fixed(tmp_path, with_lengths(counts=False), with_lengths(counts=True))
    assert "states stay as they are from iteration 'lengths' on" in edits_text(found.answer.repairs[0].edits)
    assert_holds(found, wrong, right)


def test_two_mistakes_are_a_pair(tmp_path: Path) -> None:
    both = replace(HEALTHY, joins="Subtract", gain=13.7)
    found, wrong, right = fixed(tmp_path, network(both), network(HEALTHY))
    assert found.answer.status is FixStatus.REPAIRED
    assert len(found.answer.repairs[0].edits) == 2 and found.answer.pairs
    assert_holds(found, wrong, right)


def test_a_reference_that_can_be_asked_verifies_and_refutes(tmp_path: Path) -> None:
    what = replace(HEALTHY, comparison="Greater")
    found, wrong, right = fixed(tmp_path, network(what), network(HEALTHY), can_be_asked=True)
    assert all(one.verified for one in found.answer.repairs)
    assert found.distinguishing is None
    assert_holds(found, wrong, right)


def test_a_healthy_network_needs_no_repair(tmp_path: Path) -> None:
    found, _wrong, _right = fixed(tmp_path, network(HEALTHY), network(HEALTHY))
    assert found.answer.status is FixStatus.AGREE and not found.edits
    assert answer_lines(found.answer)[0].startswith("outputs agree with healthy already")


def test_what_no_edit_explains_is_said(tmp_path: Path) -> None:
    faulty, healthy = read(network(HEALTHY), tmp_path, "faulty"), read(network(HEALTHY), tmp_path, "healthy")
    reference = reference_of(healthy, faulty)
    for values in reference.examples:
        for position, value in values.expected.items():
            value.flags.writeable = True
            value[:] = np.random.default_rng(position).normal(size=value.shape)
    found = repaired(faulty, reference, Tolerances(exact=False), seconds=120)
    assert found.answer.status is FixStatus.UNEXPLAINED and not found.edits
    assert answer_lines(found.answer)[1].startswith("none of ")


def counting(step: float) -> Graph:
    """A Loop that adds to x while its largest element is below 5."""
    net = Graph()
    body = net.body()
    x, old = net.parameter("x", dims=(2,)), body.parameter("old", dims=(2,))
    following = body.apply("Add", old, body.constant(step, np.float32, name="step"), name="following", dims=(2,))
    largest = body.apply("ReduceMax", following, body.constant([0], np.int64), name="largest", dims=(), keep_dims=False)
    going = body.apply("Less", largest, body.constant(5, np.float32), name="going", type="boolean", dims=())
    made = body.result(following, "made")
    outputs = net.loop("counting", body, -1, True, [carried(x, old, made)], [last(made)], body.result(going, "go"))
    net.result(outputs[0], "y")
    return net


def test_a_model_whose_run_never_ends_is_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_FIRST_RUN", 0.01)  # seconds are enough to see that it has no end
    wrong, right = read(counting(0), tmp_path, "faulty"), read(counting(1), tmp_path, "healthy")
    found = repaired(wrong, reference_of(right, wrong, (1, 2, 3, 4)), Tolerances(exact=False), seconds=200)
    assert "Constant 'step': 1 instead of 0" in " ".join(answer_lines(found.answer))
    assert_holds(found, wrong, right)


def test_an_interrupted_search_keeps_what_it_has(tmp_path: Path) -> None:
    def interrupt(progress: SearchProgress) -> None:
        if progress.found:
            raise KeyboardInterrupt

    wrong = read(network(replace(HEALTHY, transposes_weights=False)), tmp_path, "faulty")
    right = read(network(HEALTHY), tmp_path, "healthy")
    found = repaired(wrong, reference_of(right, wrong), Tolerances(exact=False), progress=interrupt)
    assert found.answer.is_interrupted and found.answer.status is FixStatus.REPAIRED


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no process can be forked here")
def test_processes_find_what_one_process_finds(tmp_path: Path) -> None:
    wrong = read(network(replace(HEALTHY, joins="Subtract")), tmp_path, "faulty")
    right = read(network(HEALTHY), tmp_path, "healthy")
    replayer = Replayer(wrong, reference_of(right, wrong).examples, Tolerances(exact=False))
    edits = candidates(replayer)[:60]
    here = [agreement for _edit, agreement in (tried(replayer, edit) for edit in edits)]
    there = [agreement for _edit, agreement in tried_in_processes(replayer, edits, tried)]
    assert here == there and any(one.agrees for one in there)


def test_a_function_is_a_reference_and_imports_nothing_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/numpy.py").write_text("raise SystemExit('of a stranger')")
    (tmp_path / "beside.py").write_text("two = 2")
    lines = ("from beside import two", "def made(): return lambda a, b: {'sum': a + b, 'more': (a * two,)}")
    (tmp_path / "reference.py").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path / "work")
    text, x = "../reference.py:made", np.float32([1, 2])
    found = ask_function(text, [x, x])
    assert [found[index].tolist() for index in (0, 1)] == [[2, 4], [2, 4]] and len(found) == 2
    with pytest.raises(UsageError, match=r"--with \.\./reference.py:made: TypeError: .*missing 1 required"):
        ask_function(text, [x])
