"""`why` goes back from a NaN or Inf to where it is born: iteration, operation, element and numbers are known here."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.debug.causes.cause import Arithmetic, Chain, LinkKind, NonFinite
from stepper.debug.debugger import Debugger
from stepper.debug.story.story_texts import link_line
from stepper.errors import UsageError
from tests.debug.oracle import debugger
from tests.models import Graph, Side, backwards, carried, invariant, joined, last, sliced

Told = list[tuple[str, int | None, tuple[int, ...] | None, LinkKind]]


def told(chain: Chain) -> Told:
    """Of each link the name, the iteration, the element and what is said of it."""
    return [
        (link.location.operation.name, link.location.iteration, link.element, link.kind)
        for link in chain.links
        if link.location.operation is not None
    ]


def squares(*, trips: int = 6, output: bool = False) -> Graph:
    """state = (state * state)[[0, 1]]: an element above 1 overflows; the sum of the state goes out in a scan."""
    net = Graph()
    x, body = net.parameter("x", dims=(2,)), net.body()
    state = body.parameter("state", dims=(2,))
    square = body.apply("Multiply", state, state, name="square")
    moved = body.apply("Reshape", square, body.constant([2], np.int64), dims=(2,), special_zero="false", name="moved")
    carry = body.result(moved, "carry")
    row = body.apply("Unsqueeze", moved, body.constant([0], np.int64), dims=(1, 2), name="row")
    final, scan = net.loop(
        "loop", body, trips, True, [carried(x, state, carry)], [last(carry), joined(body.result(row, "row_out"))]
    )
    net.result(net.apply("Abs", scan if output else final, name="after", dims=(trips, 2) if output else (2,)))
    return net


def at_operation(run: Debugger, name: str, **options: Any) -> None:
    run.break_at(name, **options)
    run.continue_()
    run.breakpoints.delete()


def test_an_inf_is_followed_over_back_edges_to_the_multiplication_that_overflows(tmp_path: Path) -> None:
    # 1e9 ** (2 ** k) passes 3.4e38 for k = 3, which iteration 2 computes: 1e36 * 1e36.
    run = debugger(squares(), tmp_path, np.array([0.5, 1e9], np.float32))
    at_operation(run, "after")
    chain = run.chain_of("after")
    names = told(chain)
    assert names[0] == ("after", None, (1,), LinkKind.COMPUTED)
    assert names[1] == ("loop", None, (1,), LinkKind.LAST_VALUE)
    assert names[-1] == ("square", 2, (1,), LinkKind.BORN)
    birth = chain.birth
    assert birth is not None and birth.arithmetic is Arithmetic.OVERFLOW
    assert birth.formula == "1e+36 * 1e+36 > f32 maximum 3.403e+38"
    assert [(one.value, one.element) for one in birth.operands] == [(float(np.float32(1e36)), (1,))] * 2
    edge = next(link for link in chain.links if link.kind is LinkKind.BACK_EDGE)
    assert edge.location.iteration == 5 and edge.through == (3, 4) and edge.line > 0
    first, *_others, final = lines = list(map(link_line, chain.links))
    assert first.startswith("model Abs 'after'[1] = Inf") and final.startswith(
        "@2 Multiply 'square'[1] = Inf   first appears"
    )
    said = f"came over the back edge (line {edge.line}), as it did into iterations 3 to 4"
    assert any(line.endswith(said) for line in lines)
    assert run.stop.tick == run.machine.tick


def test_an_element_of_a_scan_output_leads_into_the_iteration_that_gave_it(tmp_path: Path) -> None:
    run = debugger(squares(output=True), tmp_path, np.array([0.5, 1e9], np.float32))
    at_operation(run, "after")
    first = told(run.chain_of("after"))
    assert first[1] == ("loop", None, (2, 1), LinkKind.SCAN)
    assert first[2] == ("row", 2, (0, 1), LinkKind.COMPUTED) and first[-1] == ("square", 2, (1,), LinkKind.BORN)
    later = told(run.chain_of("after[4,1]"))
    assert later[2] == ("row", 4, (0, 1), LinkKind.COMPUTED) and later[-1] == ("square", 2, (1,), LinkKind.BORN)
    finite = told(run.chain_of("after[4,0]"))  # 0.5 squared five times, from the input
    assert finite[0] == ("after", None, (4, 0), LinkKind.COMPUTED) and finite[-1] == ("x", None, (0,), LinkKind.GIVEN)


def test_at_the_end_of_the_run_the_models_own_graph_can_still_be_asked(tmp_path: Path) -> None:
    run = debugger(squares(), tmp_path, np.array([0.5, 1e9], np.float32))
    run.last()
    assert told(run.chain_of("after"))[-1] == ("square", 2, (1,), LinkKind.BORN)
    assert told(run.chain_of("square"))[0] == ("square", 5, (1,), LinkKind.COMPUTED)


def test_pieces_of_a_reversed_loop_are_counted_from_the_end(tmp_path: Path) -> None:
    # Iteration k gets x[5 - k], and its piece lies at place 5 - k: log(0) of x[1] is computed in iteration 4.
    net = Graph()
    x, body = net.parameter("x", dims=(6,)), net.body()
    item = body.parameter("item", dims=(1,))
    logarithm = body.apply("Log", item, name="logarithm")
    (scan,) = net.tensor_iterator(
        "backwards", body, [sliced(x, item, **backwards())], [joined(body.result(logarithm), **backwards())]
    )
    net.result(net.apply("Abs", scan, name="after", dims=(6,)))
    run = debugger(net, tmp_path, np.array([1, 0, 1, 1, -1, 1], np.float32))
    at_operation(run, "after")
    infinite = run.chain_of("after[1]")
    assert told(infinite)[-1] == ("logarithm", 4, (0,), LinkKind.BORN)
    assert infinite.links[-1].formula == "log(0)" and infinite.links[-1].arithmetic is Arithmetic.LOG_OF_ZERO
    first = run.chain_of("after")  # NaN before Inf
    assert told(first)[0][2] == (4,) and told(first)[-1] == ("logarithm", 1, (0,), LinkKind.BORN)
    assert first.links[-1].formula == "log(-1)"


def test_a_nan_that_the_run_was_given_is_followed_to_the_input_through_slice_and_loop(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(3, 4)), net.body()
    item, state = body.parameter("item", dims=(3, 2)), body.parameter("state", dims=(3, 2))
    total = body.apply("Add", state, item, name="total")
    carry = body.result(total)
    zero = net.constant(np.zeros((3, 2), np.float32))
    (final,) = net.tensor_iterator(
        "sum", body, [sliced(x, item, axis=1, stride=2), carried(zero, state, carry)], [last(carry)]
    )
    net.result(net.apply("Abs", final, name="after"))
    given = np.ones((3, 4), np.float32)
    given[2, 1] = np.nan  # the second element of the first slice
    run = debugger(net, tmp_path, given)
    at_operation(run, "after")
    assert told(run.chain_of("after")) == [
        ("after", None, (2, 1), LinkKind.COMPUTED),
        ("sum", None, (2, 1), LinkKind.LAST_VALUE),
        ("total", 1, (2, 1), LinkKind.COMPUTED),
        ("state", 1, (2, 1), LinkKind.BACK_EDGE),
        ("total", 0, (2, 1), LinkKind.COMPUTED),
        ("item", 0, (2, 1), LinkKind.SLICE),
        ("x", None, (2, 1), LinkKind.GIVEN),
    ]


def test_a_nan_in_a_constant_is_the_constants(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(2, 3)), net.body()
    weights = np.ones((3, 2), np.float32)
    weights[1, 1] = np.nan
    item, weight = body.parameter("item", dims=(1, 3)), body.parameter("weight", dims=(3, 2))
    product = body.apply("MatMul", item, weight, name="product", dims=(1, 2))
    outer = net.constant(weights, name="weights")
    (scan,) = net.tensor_iterator(
        "loop", body, [sliced(x, item), invariant(outer, weight)], [joined(body.result(product))]
    )
    net.result(net.apply("Abs", scan, name="after", dims=(2, 2)))
    run = debugger(net, tmp_path, np.ones((2, 3), np.float32))
    at_operation(run, "after")
    found = told(run.chain_of("after"))
    assert found[-2:] == [("weight", 0, (1, 1), LinkKind.INVARIANT), ("weights", None, (1, 1), LinkKind.CONSTANT)]


def nested(*, guarded: bool = False) -> Graph:
    """Two loops: the inner one halves and divides by (outer - 2); `guarded`: within an If that is taken at outer 2."""
    net = Graph()
    x, outer = net.parameter("x", dims=(1,)), net.body()
    number, state = outer.parameter("number", "i64"), outer.parameter("state", dims=(1,))
    factor = outer.apply("Convert", number, type="f32", destination_type="f32", name="factor")
    inner = outer.body()
    value, divisor = inner.parameter("value", dims=(1,)), inner.parameter("divisor", dims=())
    gap = inner.apply("Subtract", divisor, inner.constant(2.0), name="gap")
    ratio = inner.apply("Divide", value, gap, name="ratio", dims=(1,))
    halved = inner.apply("Multiply", ratio, inner.constant(0.5), name="halved")
    carry = inner.result(halved)
    (result,) = outer.loop(
        "inner", inner, 3, True, [carried(state, value, carry), invariant(factor, divisor)], [last(carry)]
    )
    if guarded:
        then, other = outer.body(), outer.body()
        a, b = then.parameter("a", dims=(1,)), other.parameter("b", dims=(1,))
        wanted = outer.apply("Equal", number, outer.constant(2, np.int64), type="boolean", name="wanted")
        taken = then.result(then.apply("Negative", a, name="turned"))
        kept = other.result(other.apply("Abs", b, name="kept"))
        (result,) = outer.branch(
            "choice", wanted, Side(then, [(result, a)], [taken]), Side(other, [(result, b)], [kept])
        )
    out = outer.result(result)
    (final,) = net.loop("outer", outer, 5, True, [carried(x, state, out)], [last(out)], iteration=number)
    net.result(net.apply("Relu", final, name="after"))
    return net


@pytest.mark.parametrize("guarded", [False, True])
def test_a_birth_in_a_nested_loop_is_found_from_outside_of_both(tmp_path: Path, guarded: bool) -> None:
    # In outer iteration 2 the gap is 0: 1 / 0 in inner iteration 0 gives Inf.
    run = debugger(nested(guarded=guarded), tmp_path, np.ones(1, np.float32))
    at_operation(run, "after")
    chain = run.chain_of("after")
    birth = chain.birth
    assert birth is not None and birth.location.operation is not None
    assert birth.location.operation.name == "ratio"
    assert [one.iteration for one in birth.location.path] == [2, 0]
    assert birth.arithmetic is Arithmetic.DIVISION_BY_ZERO
    steps = {link.kind for link in chain.links}
    assert {LinkKind.LAST_VALUE, LinkKind.BACK_EDGE, LinkKind.INITIAL} <= steps
    assert (LinkKind.BRANCH_OUTPUT in steps and LinkKind.BRANCH_INPUT in steps) is guarded


def test_from_within_a_nested_loop_an_earlier_iteration_of_the_outer_one_is_reached(tmp_path: Path) -> None:
    run = debugger(nested(), tmp_path, np.ones(1, np.float32))
    at_operation(run, "outer@4::inner@1::ratio")
    chain = run.chain_of("ratio")
    assert chain.links[0].location.path[0].iteration == 4
    birth = chain.birth
    assert birth is not None and [one.iteration for one in birth.location.path] == [2, 0]
    with pytest.raises(UsageError, match="not computed yet"):
        run.chain_of("halved")
    assert run.chain_of("ratio@0").links[0].location.path[1].iteration == 0


def test_inf_in_iteration_0_and_a_product_with_broadcasting(tmp_path: Path) -> None:
    net = Graph()
    x, y, body = net.parameter("x", dims=(2, 3)), net.parameter("y", dims=(3,)), net.body()
    state, column = body.parameter("state", dims=(2, 3)), body.parameter("column", dims=(3,))
    product = body.apply("Multiply", state, column, name="product")
    carry = body.result(product)
    (final,) = net.loop("loop", body, 2, True, [carried(x, state, carry), invariant(y, column)], [last(carry)])
    net.result(net.apply("ReduceSum", final, net.constant([1], np.int64), name="after", dims=(2,), keep_dims="false"))
    given = np.full((2, 3), 2.0, np.float32)
    given[1, 2] = 1e38
    run = debugger(net, tmp_path, given, np.array([1, 1, 10], np.float32))
    at_operation(run, "after")
    chain = run.chain_of("after")
    assert told(chain)[0] == ("after", None, (1,), LinkKind.COMPUTED)
    assert told(chain)[-1] == ("product", 0, (1, 2), LinkKind.BORN)
    assert [one.element for one in chain.links[-1].operands] == [(1, 2), (2,)]


def test_what_the_user_has_set_is_named_as_that(tmp_path: Path) -> None:
    run = debugger(squares(), tmp_path, np.array([0.5, 1.0], np.float32))
    at_operation(run, "moved", condition="iter == 1")
    run.set_value("moved[0]", np.nan)
    at_operation(run, "after")
    assert told(run.chain_of("after"))[-1] == ("moved", 1, (0,), LinkKind.EDITED)


def test_a_finite_value_is_followed_to_where_it_enters_the_run(tmp_path: Path) -> None:
    run = debugger(squares(), tmp_path, np.array([0.5, 1.0], np.float32))
    at_operation(run, "square", condition="iter == 1")
    steps = [(link.kind, link.element) for link in run.chain_of("square[1]").links]
    assert steps[0] == (LinkKind.COMPUTED, (1,)) and steps[-1] == (LinkKind.GIVEN, (1,))
    assert steps.count((LinkKind.BACK_EDGE, (1,))) == 1 and (LinkKind.INITIAL, (1,)) in steps
    assert run.chain_of("state").links[0].kind is LinkKind.BACK_EDGE


def test_the_walk_back_has_a_limit_and_says_how_far_it_looked(tmp_path: Path) -> None:
    from stepper.debug.provenance.answer import chain_at

    run = debugger(squares(trips=40), tmp_path, np.array([0.5, 1e9], np.float32))
    at_operation(run, "after")
    chain = chain_at(run.timeline, "after", farthest=10)
    assert chain.birth is None and "looked back over 10 iterations" in chain.stopped
    run.machine.request_pause()  # as `pause` does while a question is being answered
    paused = chain_at(run.timeline, "after")
    assert paused.stopped.startswith("paused") and paused.birth is None
    assert not run.machine.pause_requested and not run.machine.followers
    birth = run.chain_of("after").birth
    assert birth is not None and birth.location.iteration == 2


def test_a_long_way_back_is_a_short_chain(tmp_path: Path) -> None:
    run = debugger(squares(trips=3000), tmp_path, np.array([0.5, 1e9], np.float32))
    at_operation(run, "after")
    chain = run.chain_of("after")
    assert chain.birth is not None and chain.birth.location.iteration == 2 and len(chain.links) < 12


def test_a_stop_has_the_chain_of_what_was_in_the_inputs(tmp_path: Path) -> None:
    net = squares()
    run = debugger(net, tmp_path, np.array([0.5, 1e9], np.float32))
    run.break_when("inf")
    cause = run.continue_().cause
    assert isinstance(cause, NonFinite)
    assert cause.formula == "1e+36 * 1e+36 > f32 maximum 3.403e+38" and cause.chain.birth == cause.chain.links[0]
    assert cause.location.operation is not None and cause.location.operation.file.endswith(".xml")
    assert pickle.loads(pickle.dumps(run.stop.causes)) == run.stop.causes


def test_inf_from_an_earlier_iteration_makes_a_nan_whose_inputs_are_not_called_clean(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(1,)), net.body()
    state = body.parameter("state", dims=(1,))
    grown = body.apply("Exp", state, name="grown")
    gap = body.apply("Subtract", grown, grown, name="gap")
    carry = body.result(body.apply("Maximum", grown, gap, name="larger"))
    (final,) = net.loop("loop", body, 5, True, [carried(x, state, carry)], [last(carry)])
    net.result(final)
    run = debugger(net, tmp_path, np.array([5.0], np.float32))
    run.break_when("nan")
    stop = run.continue_()  # exp(5) = 148.4; exp(148.4) is above the maximum of f32 in iteration 1
    assert isinstance(stop.cause, NonFinite) and stop.iteration == 1
    assert stop.cause.formula == "Inf - Inf" and not any("clean:" in text for text in stop.details[:2])
    assert [one.inf for one in stop.cause.operands] == [1, 1]
    assert told(stop.cause.chain)[-1] == ("grown", 1, (0,), LinkKind.BORN)


def test_what_a_resumed_run_has_not_kept_is_no_birth(tmp_path: Path) -> None:
    run = debugger(squares(), tmp_path, np.array([0.5, 1e9], np.float32))
    at_operation(run, "after")
    frame = run.machine.stack[0]
    loop = frame.program.operations[frame.pc - 1]
    frame.values[loop.inputs[0]] = None
    chain = run.chain_of("after")
    assert chain.birth is None and "did not keep" in chain.stopped
