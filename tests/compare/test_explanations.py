"""Trials that explain a difference: in which order they begin, and what becomes of those that fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.compare.observations import OutputComparison
from stepper.compare.rerun import ExplanationKind, explain, steps_to_blame
from stepper.element_types import Array
from stepper.errors import ExecutionError
from stepper.ir.model import Model
from stepper.tensors.difference import measure
from stepper.tensors.tolerances import EXACT
from tests.debug.debugged import sample
from tests.models import Graph

OURS = np.arange(3, dtype=np.float32)
WRONG = OURS + 1
DYNAMIC, LOW = "DYNAMIC_QUANTIZATION_GROUP_SIZE", "LP_TRANSFORMS_MODE"
BOTH, SNIPPETS = f"{DYNAMIC} {LOW}", "SNIPPETS_MODE"


class Runs:
    """Runs that are right with some properties, refused with others; the order of what happens is noted."""

    def __init__(self, right: Sequence[str] = (), refused: Sequence[str] = (), failing: Sequence[str] = ()) -> None:
        self.right, self.refused, self.failing = right, refused, failing
        self.order: list[str] = []

    def begin_again(self, text: Any = None, properties: Mapping[str, str] | None = None) -> Callable[[], list[Array]]:
        assert text is None and properties
        name = " ".join(properties)
        if name in self.refused:
            raise ExecutionError("there is no such property")
        self.order.append(f"begin {name}")

        def outputs() -> list[Array]:
            self.order.append(f"wait {name}")
            if name in self.failing:
                raise ExecutionError("it does not compile")
            return [OURS if name in self.right else WRONG]

        return outputs

    def run_changed(self, *_given: Any) -> Sequence[Array]:
        raise AssertionError("the model is as it is")


def quantised(folder: Path) -> Model:
    graph = Graph()
    narrow = graph.constant(np.array([1, 2, 3], np.int8))
    wide = graph.apply("Convert", narrow, type="f32", destination_type="f32")
    graph.result(graph.apply("Add", graph.parameter("x", "f32", (3,)), wide))
    return graph.read(folder)


def beside(theirs: Mapping[int, Array]) -> list[OutputComparison]:
    return [OutputComparison("y", measure(OURS, theirs[0], EXACT))]


def test_each_trial_begins_before_the_one_before_it_is_waited_for(tmp_path: Path) -> None:
    runs = Runs()
    assert explain(quantised(tmp_path), runs, beside({0: WRONG}), beside, {}) is None
    assert runs.order == [
        f"begin {DYNAMIC}", f"begin {LOW}", f"wait {DYNAMIC}", f"begin {BOTH}", f"wait {LOW}",
        f"begin {SNIPPETS}", f"wait {BOTH}", f"wait {SNIPPETS}",
    ]  # fmt: skip


@pytest.mark.parametrize("given", [
    Runs([LOW]), Runs([LOW], refused=[DYNAMIC]), Runs([LOW], failing=[DYNAMIC]), Runs([LOW, SNIPPETS]),
])  # fmt: skip
def test_the_first_that_agrees_is_named_and_none_begins_after_it_was_found(tmp_path: Path, given: Runs) -> None:
    found = explain(quantised(tmp_path), given, beside({0: WRONG}), beside, {})
    assert found is not None and found.agrees and found.reason is ExplanationKind.LOW_PRECISION
    assert given.order[-1] == f"wait {LOW}" and f"begin {SNIPPETS}" not in given.order


@pytest.mark.parametrize("has_attention", [True, False])
def test_a_cache_in_eight_bits_is_tried_for_attention_alone(tmp_path: Path, *, has_attention: bool) -> None:
    graph = Graph()
    x = graph.parameter("x", "f32", (1, 2, 4))
    attention = ("ScaledDotProductAttention", x, x, x), {"version": "opset13", "causal": "false"}
    words, more = attention if has_attention else (("Add", x, x), {})
    graph.result(graph.apply(*words, **more))
    found = explain(graph.read(tmp_path), Runs(["KV_CACHE_PRECISION"]), beside({0: WRONG}), beside, {})
    assert (found is not None) == has_attention
    if found is not None:
        assert (found.reason, found.is_fault) == (ExplanationKind.CACHE_IN_EIGHT_BITS, False)


@pytest.mark.parametrize("iterations", [1, 1000])
def test_a_run_with_other_last_digits_ends_with_its_limit_of_iterations(iterations: int) -> None:
    machine = sample("do_while_loop").machine
    asked: list[Mapping[int, Array]] = []

    def compared(theirs: Mapping[int, Array]) -> list[OutputComparison]:
        asked.append(theirs)
        return [OutputComparison("y", None)] * len(theirs)

    given = [machine.stack[0].values[slot] for slot in machine.compiled.main.parameters]
    before = [OutputComparison("y", None)] * len(machine.compiled.main.results)
    steps_to_blame(machine.compiled, given, machine.initial_states, before, compared, iterations)
    assert bool(asked) is (iterations > 1)
