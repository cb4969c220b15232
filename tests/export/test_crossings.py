"""Gaps of back edges where they cross other wires."""

from __future__ import annotations

from stepper.export.composing import gaps_of, parted
from stepper.export.figures.figure import EdgeKind
from stepper.export.layout.figure_layout import Polyline
from stepper.export.layout.layered import Segment


def test_a_back_edge_has_a_gap_at_each_wire_that_it_crosses_and_at_none_that_it_meets() -> None:
    back = Polyline(EdgeKind.BACK, (Segment(0, 5, 4, 5), Segment(4, 5, 20, 5), Segment(20, 5, 20, 30)), ())
    wires = [
        Polyline(EdgeKind.DATA, (Segment(4, 0, 4, 5), Segment(4, 5, 4, 9)), ()),  # in two parts, through a corner of it
        Polyline(EdgeKind.DATA, (Segment(9, 0, 9, 5),), ()),  # ends there
        Polyline(EdgeKind.ENDS, (Segment(12, 12, 25, 12),), ()),
        Polyline(EdgeKind.BACK, (Segment(15, 0, 15, 9),), ()),
    ]
    found = gaps_of([back, *wires])
    assert found[0] == {Segment(0, 5, 20, 5): (4, 15), Segment(20, 5, 20, 30): (12,)}
    assert [bool(gaps) for gaps in found[1:4]] == [False] * 3, "the other wire goes through"
    assert found[4] == {Segment(15, 0, 15, 9): ()}, "of two back edges the level one has the gap"
    assert list(parted(0, 100, (20, 95), 5)) == [(0, 15), (25, 90)]
