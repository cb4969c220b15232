"""Scan outputs while they grow, and back edges with something remarkable about them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.debug.inspection.views import BackEdgeView, ScanView
from stepper.engine.loops import Scan
from tests.debug.debugged import at_iteration, opened, recorded, run_named, sample
from tests.models import Graph, carried, last
from tests.tables import each_row


def scan_of(name: str, tmp_path: Path, iteration: int) -> ScanView:
    debugger = run_named(name, tmp_path)
    at_iteration(debugger, iteration)
    return debugger.loop().scans[0]


def test_a_scan_grows_by_one_piece_each_iteration(tmp_path: Path) -> None:
    debugger = sample("reverse")
    results = [found["return"] for found in recorded(debugger, "from_the_end", ["return"])]
    for iteration in range(8):
        at_iteration(debugger, iteration)
        scan = debugger.loop().scans[0]
        assert scan.pieces == iteration + 1 and scan.shape == (1, iteration + 1, 1) and scan.final_shape == (1, 8, 1)
        assert np.array_equal(scan.piece(iteration), results[iteration])
        assert np.array_equal(scan.concatenated(), np.concatenate(results[iteration::-1], axis=1))
        assert scan.concatenated().shape == scan.shape


def test_the_order_is_written_out_or_reversed(tmp_path: Path) -> None:
    debugger = sample("specification_lstm")
    for iteration, order in ((0, "S[0]"), (3, "S[0], S[1], S[2], S[3]"), (24, "S[0], S[1], ..., S[24]")):
        at_iteration(debugger, iteration)
        assert debugger.loop().scans[0].order == order
    debugger = sample("reverse")
    for iteration, order in ((1, "S[1], S[0]"), (7, "S[7], S[6], ..., S[0]")):
        at_iteration(debugger, iteration)
        scan = debugger.loop().scans[0]
        assert scan.order == order and "the last one first" in scan.why


def test_the_final_shape_is_known_only_where_the_count_is(tmp_path: Path) -> None:
    debugger = sample("while_loop")
    at_iteration(debugger, 10)
    scan = debugger.loop().scans[0]
    assert scan.shape == (11,) and scan.final_shape == (-1,)
    at_iteration(debugger, 110)
    assert debugger.loop().scans[0].final_shape == (111,)


def test_before_the_first_piece_the_final_shape_is_that_of_the_file() -> None:
    debugger = sample("specification_lstm")
    debugger.step(1)
    scan = debugger.loop().scans[0]
    assert scan.pieces == 0 and scan.shape is None and scan.order == "no piece yet"
    assert scan.declared and scan.final_shape == (1, 25, 256)


def test_pieces_that_grow_have_a_shape_now_and_none_for_the_end(tmp_path: Path) -> None:
    scan = scan_of("growing", tmp_path, 1)
    assert scan.shape == (2 + 3,) and scan.final_shape == (-1,)
    assert scan.concatenated().tolist() == [9, 1, 9, 1, 1]


def test_the_piece_of_the_iteration_under_way_is_not_counted_yet(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    at_iteration(debugger, 1)
    debugger.step(3)
    loop = debugger.loop()
    assert loop.scans[0].pieces == 2 and loop.outputs[1].inner.array is not None


def test_a_view_of_a_scan_keeps_its_pieces_when_the_run_goes_another_way(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    at_iteration(debugger, 2)
    scan = debugger.loop().scans[0]
    whole = scan.concatenated().tolist()
    debugger.last()
    assert scan.pieces == 3 and scan.concatenated().tolist() == whole
    with pytest.raises(IndexError):
        scan.piece(3)


SHAPES = {
    "scalars": ([np.float32(1)] * 3, 0),
    "rows": ([np.ones((1, 4), np.float32)] * 5, 0),
    "columns": ([np.ones((2, 3), np.int8)] * 5, 1),
    "from the end": ([np.ones((2, 3), np.int8)] * 2, -1),
    "of growing length": ([np.ones(length, np.float64) for length in range(6)], 0),
    "empty": ([np.ones((0, 2), np.float32)] * 3, 0),
    "empty beside": ([np.ones((1, 0), np.float32)] * 3, 0),
}


@each_row("name", SHAPES)
@each_row("times", [1, 2000])
def test_the_shape_is_that_of_the_concatenation_without_making_it(name: str, times: int) -> None:
    pieces, axis = SHAPES[name]
    scan = Scan(0)
    for _ in range(times):
        for piece in pieces:
            scan.append(np.asarray(piece))
    expected = np.concatenate([np.atleast_1d(piece) for piece in pieces] * times, axis).shape
    assert scan.shape(axis) == expected


def test_pieces_that_do_not_fit_have_no_shape() -> None:
    scan = Scan(0)
    assert scan.shape(0) is None
    scan.append(np.ones((1, 2)))
    assert scan.shape(0) == (1, 2) and scan.shape(5) is None
    scan.append(np.ones((1, 3)))
    assert scan.shape(0) is None and scan.shape(1) == (1, 5)


# --- back edges -----------------------------------------------------------------------------------------------------


def edges_of(tmp_path: Path, iteration: int) -> dict[str, BackEdgeView]:
    """A state that stays, one that becomes NaN in iteration 1, one that grows, one that changes its type."""
    net = Graph()
    body = net.body()
    stuck, root, longer, number = (
        body.parameter("stuck", dims=(2,)),
        body.parameter("root"),
        body.parameter("longer", dims=(-1,)),
        body.parameter("number"),
    )
    same = body.result(body.apply("Abs", stuck, name="same"), "stuck_result")
    lower = body.apply("Subtract", body.apply("Sqrt", root), body.constant(2.0))
    root_result = body.result(lower, "root_result")
    grown = body.apply("Concat", longer, body.constant([1.0]), dims=(-1,), axis=0, name="grown")
    longer_result = body.result(grown, "longer_result")
    doubled = body.apply("Add", number, number)
    number_result = body.result(doubled, "number_result")
    inputs = [
        carried(net.constant([1.0, 2.0]), stuck, same),
        carried(net.constant(1.0), root, root_result),
        carried(net.constant([0.0]), longer, longer_result),
        carried(net.constant(1.5), number, number_result),
    ]
    for value in net.loop("loop", body, 4, True, inputs, [last(result) for result in (same, longer_result)]):
        net.result(value)
    debugger = opened(tmp_path, net)
    at_iteration(debugger, iteration)
    return {edge.parameter.name: edge for edge in debugger.loop().back_edges}


def test_a_back_edge_that_changes_nothing_is_marked(tmp_path: Path) -> None:
    edge = edges_of(tmp_path, 2)["stuck"]
    assert edge.marks == ("unchanged",) and edge.change is not None and edge.change == 0


def test_a_back_edge_that_carries_nan_is_marked(tmp_path: Path) -> None:
    edges = edges_of(tmp_path, 1)
    assert edges["root"].marks == ("NaN",)
    assert edges["number"].marks == ()


def test_a_back_edge_that_changes_its_shape_is_marked_and_has_no_difference(tmp_path: Path) -> None:
    edge = edges_of(tmp_path, 1)["longer"]
    assert edge.marks == ("shape changed",) and edge.change is None
    assert edge.came_in is not None and edge.came_in.shape == (2,)
    assert edge.goes_out is not None and edge.goes_out.shape == (3,)


def test_nothing_is_looked_through_unless_it_is_asked_for(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    at_iteration(debugger, 1)
    assert debugger.loop(differences=False).back_edges[0].change is None
    assert debugger.loop().back_edges[0].change is not None


def test_a_back_edge_without_effect_says_why(tmp_path: Path) -> None:
    text = (
        '<edge from-layer="{0}" to-layer="{1}"/>\n',
        '<edge from-layer="{0}" to-layer="{1}"/>\n<edge from-layer="{0}" to-layer="{1}"/>\n',
    )
    net = Graph()
    body = net.body()
    state = body.parameter("state")
    result = body.result(body.apply("Negative", state), "negated")
    net.result(net.loop("loop", body, 2, True, [carried(net.parameter("x"), state, result)], [last(result)])[0])
    ids = (result.layer, state.layer)
    assert any(text[0].format(*ids).strip() in layer for layer in net.layers)
    net.layers = [layer.replace(text[0].format(*ids).strip(), text[1].format(*ids).strip()) for layer in net.layers]
    debugger = opened(tmp_path, net, np.float32(1))
    at_iteration(debugger, 0)
    first, second = debugger.loop().back_edges
    assert first.counts and not second.counts
    assert second.why == f"has no effect: another back edge to the same Parameter comes first (line {first.line})"
