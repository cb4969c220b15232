"""The table of a loop's run, held against numpy on the values of a plain run of another machine."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from stepper.compare.references.reference_opening import set_reference
from stepper.debug.debugger import Debugger
from stepper.debug.table import sheets
from stepper.debug.table.columns import GatheredValue, SheetRequest, SheetSort, SheetView, bins_of, topic_of
from stepper.debug.table.sheets import RowFilter, Sheet, array_of, csv_lines, look_at, save
from stepper.errors import OutputError, Paused, UsageError
from stepper.files.output import ProtectedFiles
from stepper.query.address_syntax import without_element
from tests.debug.debugged import at_iteration, opened, recorded, run_named, sample, state_of
from tests.debug.story.test_failures import failing
from tests.engine.nested_models import alternating
from tests.models import Graph, carried, last
from tests.tui.time_models import swinging, swinging_in_numpy

REQUEST = SheetRequest(rows=1000, columns=tuple(range(64)))


def read(debugger: Debugger, text: str) -> Sheet:
    """A table, read to its end."""
    sheet = Sheet(debugger.timeline, topic_of(debugger.timeline, text))
    for _ in range(1000):
        if not sheet.read_on(0.02):
            return sheet
    raise AssertionError("it does not end")


def cells(view: SheetView) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Its numbers [row, column]."""
    return np.array([view.numbers[column] for column in view.request.columns if column in view.numbers], float).T


@pytest.mark.parametrize("moment", ["start", "inside", "end"])
def test_cells_are_those_of_a_plain_run_wherever_the_run_stands(moment: str) -> None:
    debugger = sample("specification_lstm")
    plain = recorded(debugger, "lstm", ["h_next", "c_next"])
    if moment == "inside":
        at_iteration(debugger, 7)
    elif moment == "end":
        debugger.last()
    before = state_of(debugger.timeline)
    sheet = read(debugger, "h_next[0,:8], max(c_next)")
    view = sheet.view(REQUEST)
    assert view.iterations == tuple(range(25)) and view.complete and not view.failure
    assert [column.name for column in view.columns][:2] == ["h_next[0,0]", "h_next[0,1]"]
    np.testing.assert_array_equal(cells(view)[:, :8], [found["h_next"][0, :8] for found in plain])
    np.testing.assert_allclose(cells(view)[:, 8], [found["c_next"].max() for found in plain])
    assert state_of(debugger.timeline) == before and not debugger.timeline.warnings


def test_a_carried_name_is_what_the_body_reads_and_with_a_mark_what_the_iteration_carries() -> None:
    debugger = sample("specification_lstm")
    plain = recorded(debugger, "lstm", ["h_next", "h"])
    for text, name in (("h", "h"), ("h'", "h_next"), ("h_next", "h_next")):
        sheet = read(debugger, f"{text}[0,0]")
        assert [sheet.row(k, (0,))[0] for k in range(25)] == [one[name].flat[0] for one in plain]


def test_large_values_are_in_buckets() -> None:
    debugger = sample("specification_lstm")
    whole = np.stack([found["x"][0] for found in recorded(debugger, "lstm", ["x"])])
    size = whole.shape[1]
    assert size > 64
    parts = np.array_split(whole, 64, axis=1)
    sheet = read(debugger, "x")
    view = sheet.view(REQUEST)
    assert len(view.columns) == 64 and all(column.is_bucket for column in view.columns)
    np.testing.assert_allclose(cells(view), np.stack([part.mean(axis=1) for part in parts], 1), rtol=1e-5)
    mean = cells(view)[:, 2]
    view = sheet.view(
        SheetRequest(0, 99, (0,), None, f"{view.columns[2].name} > 0.01 and not {view.columns[2].name} > 1")
    )
    assert view.iterations == tuple(np.flatnonzero(mean > 0.01).tolist()) and not view.problem


@pytest.mark.parametrize("keeps", [True, False])
def test_rows_are_sorted_and_filtered_as_numpy_does(keeps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not keeps:
        monkeypatch.setattr(sheets, "MOST_CELLS", 600)  # 1000 numbers have to be read again where they are seen
    h = swinging_in_numpy(1001)[1:].astype(np.float64)
    count = np.arange(1, 1001)
    debugger = swinging(1000)
    if not keeps:
        monkeypatch.setattr(sheets, "MOST_CELLS", 1500)
    sheet = read(debugger, "h', c'")
    for descending in (False, True):
        order = np.argsort(h, kind="stable")
        view = sheet.view(SheetRequest(3, 40, (0, 1), SheetSort(0, descending)))
        expected = (order[::-1] if descending else order)[3:43]
        assert h[list(view.iterations)].tolist() == h[expected].tolist() == view.numbers[0]
        assert view.numbers[1] == [float(count[row]) for row in view.iterations]
    before = np.append(np.nan, h[:-1])
    for text, mask in (
        ("h' > 0.5", h > 0.5),
        ("abs(h'[0]) > 0.5 and c' > 300", (abs(h) > 0.5) & (count > 300)),
        ("not h'[0] < 0 or c' == 7", ~(h < 0) | (count == 7)),
        ("h'[0] < h[0]", h < before),
        ("h' - prev(h') < -0.2", h - before < -0.2),
        ("max(h') > 0.5", h > 0.5),
        ("iter % 3 == 0", np.arange(1000) % 3 == 0),
        ("plus > 1.5 and c' < 900", None),
        ("nan", np.zeros(1000, bool)),
    ):
        if mask is None:
            plus = np.append(np.float32(-7.0), h[:-1].astype(np.float32)) + np.float32(1)
            mask = (plus > 1.5) & (count < 900)
        view = sheet.view(SheetRequest(0, 1000, (1,), None, text))
        while view.filtered < view.total:
            sheet.read_on(0.1)
            view = sheet.view(SheetRequest(0, 1000, (1,), None, text))
        assert not view.problem
        assert view.iterations == tuple(np.flatnonzero(mask).tolist()), text
    assert sheet.search("h' > 0.9", 10) == int(np.flatnonzero((h > 0.9) & (np.arange(1000) > 10))[0])
    assert sheet.search("c' == 5", 10, backward=True) == 4 and sheet.search("c' == 5", 10) is None
    for wrong, reason in (("h >", "expected"), ("nobody > 2", "nothing called"), ("> 2", "compares nothing")):
        assert reason in sheet.view(SheetRequest(0, 5, (0,), None, wrong)).problem


def test_a_column_in_numbers_is_what_numpy_says() -> None:
    h = swinging_in_numpy(1001)[1:].astype(np.float64)
    sheet = read(swinging(1000), "h', c'")
    view = sheet.view(SheetRequest(0, 10, (0, 1), None, "h' > 0", 0))
    detail, course = view.detail, view.courses[0]
    assert detail is not None
    assert (detail.low, detail.high) == (h.min(), h.max())
    assert detail.mean == pytest.approx(h.mean()) and detail.deviation == pytest.approx(h.std())
    assert detail.median == pytest.approx(np.median(h))
    parts = np.split(h, (np.arange(1, 48) * 1000 // 48).tolist())
    assert course.tolist() == [part[np.abs(part).argmax()] for part in parts]


def test_bins_have_the_least_the_largest_and_the_strongest_number_of_what_passes() -> None:
    h = swinging_in_numpy(1001)[1:].astype(np.float64)
    sheet = read(swinging(1000), "h', c'")
    bounds = (0, 1, 10, 500, 1000)
    bins = sheet.view(SheetRequest(0, 10, (0,), bins=bounds)).bins[0]
    for one, (begin, end) in zip(bins, pairwise(bounds), strict=True):
        part = h[begin:end]
        assert one is not None and (one.low, one.high) == (part.min(), part.max())
        assert one.strongest == part[np.abs(part).argmax()]
    passing = h[h > 0]
    while sheet.view(SheetRequest(0, 10, (0,), filter="h' > 0")).filtered < 1000:
        sheet.read_on(0.1)
    (one,) = sheet.view(SheetRequest(0, 10, (0,), filter="h' > 0", bins=(0, len(passing)))).bins[0]
    assert one is not None and (one.low, one.high) == (passing.min(), passing.max())


def test_a_bin_has_what_there_is_in_it_and_is_empty_where_nothing_is() -> None:
    numbers, known = np.array([9.0, 1.0, np.nan, 0.0, 0.0]), np.array([False, True, True, False, False])
    several, bad, empty = bins_of(numbers, known, (0, 2, 3, 5))
    assert several == (1.0, 1.0, 1.0)
    assert bad is not None and bad.strongest is not None and np.isnan(bad.strongest)
    assert empty is not None and empty.strongest is None
    assert bins_of(numbers, known, (5, 6)) == (None,), "not read yet"


def test_a_row_has_the_numbers_of_its_iteration(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    x = body.parameter("x", "f32", (3,))
    ones = body.constant([1.0, 0.0, 0.0], np.float32)
    x_next = body.result(body.apply("Add", x, ones, name="add"), "x_next")
    start = net.parameter("x0", "f32", (3,))
    outputs = net.loop("count", body, 6, True, [carried(start, x, x_next)], [last(x_next)])
    net.result(outputs[0], "out")
    debugger = opened(tmp_path, net, np.array([0.0, 4.0, 0.0], np.float32))
    sheet = read(debugger, "x'")
    assert sheet.row(4, (0, 1, 2)) == {0: 5.0, 1: 4.0, 2: 0.0}
    assert sheet.row(99, (0, 1, 2)) == {0: None, 1: None, 2: None}


def test_a_value_whose_shape_changes_has_its_size_and_statistics() -> None:
    debugger = sample("growing_tensor")
    view = read(debugger, "sequence[:]").view(REQUEST)  # all of it, not the piece that is new
    sizes = view.numbers[next(k for k, column in enumerate(view.columns) if column.name.startswith("size("))]
    assert sizes == sorted(sizes) and len(set(sizes)) > 1
    for column, facts in view.facts.items():
        finite = [one for one in view.numbers[column] if one is not None and np.isfinite(one)]
        assert facts.is_whole is all(float(one).is_integer() for one in finite), view.columns[column].name


def test_a_value_that_grows_has_the_pieces_that_are_new() -> None:
    view = read(sample("growing_tensor"), "sequence'").view(REQUEST)
    fibonacci = [0, 1]
    while len(fibonacci) < 14:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    column = next(k for k, column in enumerate(view.columns) if column.name == "sequence'")
    assert view.numbers[column] == fibonacci[2:]


def test_a_column_is_found_by_its_value_before_others_whose_names_begin_so() -> None:
    sheet = read(sample("rwkv_overflow"), "key_with_bonus, key")
    found = sheet.column_named("key")
    assert found is not None and sheet.columns[found].name == "key[0,0]"
    found = sheet.column_named("key_w")
    assert found is not None and sheet.columns[found].name == "key_with_bonus[0,0]"


def test_a_table_of_an_edited_run_is_that_of_the_edited_one() -> None:
    debugger = sample("specification_lstm")
    sheet = read(debugger, "h_next[0,0]")
    plain = cells(sheet.view(REQUEST))[:, 0]
    at_iteration(debugger, 12)
    debugger.set_value("h_next", 0.0)
    sheet.read_on(5)
    edited = cells(sheet.view(REQUEST))[:, 0]
    assert edited[:12].tolist() == plain[:12].tolist() and edited[12] == 0 and (edited[13:] != plain[13:]).all()


def test_each_run_of_an_inner_loop_has_its_table() -> None:
    debugger = sample("nested_loop")
    values = [5.0, 1.0, 4.0, 2.0, 8.0]
    for done in range(3):
        steps = []
        for left in range(4 - done):
            values[left : left + 2] = sorted(values[left : left + 2])
            steps.append(list(values))
        view = read(debugger, f"passes@{done}::pairs_of_neighbours::values_next").view(REQUEST)
        assert cells(view).tolist() == steps and view.outer == (done,)
    for wrong, reason in (
        ("order, nobody", "nothing called"),
        ("values_next, order_row", "is in"),
        ("most_passes", "in no loop"),
        ("median(order)", "no statistic"),
        ("order,,", "missing beside a comma"),
    ):
        with pytest.raises(UsageError, match=reason):
            topic_of(debugger.timeline, wrong)
    operations = read(debugger, "max(*)")
    assert operations.view(SheetRequest(0, 9, (0,), None, "pairs_left < 4 and prev(pairs_left) == 4")).iterations == (
        1,
    )
    names = [column.name for column in read(debugger, "rms(*)").view(REQUEST).columns]
    assert names == ["pairs_left", "pairs_of_neighbours", "order_row", "keep_going", "pairs_of_neighbours:1"]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    debugger = sample("specification_lstm")
    plain = np.stack([found["h_next"][0, :8] for found in recorded(debugger, "lstm", ["h_next"])])
    sheet = read(debugger, "h_next[0,:8]")
    columns, sort = (0, 2, 5), SheetSort(2, descending=False)
    order = np.argsort(plain[:, 2], kind="stable")
    rows = sheet.order(sort)
    assert rows.tolist() == order.tolist()
    assert array_of(sheet, columns, sort).dtype == np.float32
    protected = ProtectedFiles()
    assert save(sheet, str(tmp_path / "t.npy"), columns, sort, protected=protected) == 25
    np.testing.assert_array_equal(np.load(tmp_path / "t.npy"), plain[order][:, columns])
    assert save(sheet, str(tmp_path / "t.csv"), columns, sort, protected=protected) == 25
    with (tmp_path / "t.csv").open(newline="") as file:
        head, *lines = list(csv.reader(file))
    assert head == ["@", *(sheet.columns[column].name for column in columns)]
    assert [int(line[0]) for line in lines] == order.tolist()
    np.testing.assert_array_equal(np.array([line[1:] for line in lines], np.float32), plain[order][:, columns])
    assert "".join(csv_lines(sheet, columns, sort)) == (tmp_path / "t.csv").read_text()
    for wrong in ("t.txt", "t"):
        with pytest.raises(UsageError, match="neither"):
            save(sheet, wrong, columns, protected=protected)
    with pytest.raises(OutputError):
        save(sheet, str(tmp_path / "no" / "t.csv"), columns, protected=protected)


def test_a_long_run_is_read_as_far_as_it_is_known() -> None:
    debugger = swinging(100_000)
    debugger.run_overview()
    sheet = read(debugger, "h', c'")
    view = sheet.view(SheetRequest(0, 40, (0, 1), SheetSort(0, descending=True), "c' > 50000", 0))
    assert view.total == 100_000 and view.passed == 50_000 and view.detail is not None
    assert len(view.detail.numbers) <= 512


def test_the_address_of_what_an_inner_loop_gives_is_after_it_in_the_iteration_of_the_row(tmp_path: Path) -> None:
    debugger = run_named("iterator in an iterator", tmp_path)
    sheet = read(debugger, "elements")
    for iteration in (1, 0):
        debugger.goto(without_element(str(sheet.address_of(0, iteration))))
        assert [frame.activation.iteration for frame in debugger.machine.stack[1:] if frame.activation] == [iteration]


def test_an_iteration_that_fails_passes_no_condition_and_ends_the_search(tmp_path: Path) -> None:
    sheet = read(failing(tmp_path, 6), "half")
    condition = "max(half) > 1"
    assert sheet.total == 4 and sheet.view(REQUEST).failure
    largest = [5 / 2**k for k in range(1, 4)]  # the iteration after these fails
    found = RowFilter(sheet, condition)
    assert not found.go_on(sheet, perf_counter() + 60)
    assert found.mask.tolist() == [*(number > 1 for number in largest), False]
    assert sheet.search(condition, 0) == 1 and sheet.search(condition, 1) is None


def test_a_pause_ends_a_search(tmp_path: Path) -> None:
    run = failing(tmp_path, 6)
    sheet = read(run, "half")
    run.machine.request_pause()
    with pytest.raises(Paused):
        sheet.search("max(half) > 1", 0)
    assert sheet.search("max(half) > 1", 0) == 1


def test_a_reference_has_the_values_of_the_side_of_an_if_that_runs(tmp_path: Path) -> None:
    start = 6
    debugger = opened(tmp_path, alternating(), np.array(start, np.int64))
    set_reference(debugger, str(debugger.model.path))
    sheet = read(debugger, "half")
    for iteration in range(8):
        look = look_at(debugger, sheet, SheetRequest(columns=(0,), rows=1), iteration)
        assert look.a is not None and not look.a.problem
        assert look.a.numbers == {0: None if start % 2 else start // 2}
        start = 3 * start + 1 if start % 2 else start // 2


@pytest.mark.parametrize("keeps", [True, False])
def test_a_value_that_is_not_there_passes_nothing_and_is_sorted_as_nan(
    keeps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    debugger = opened(tmp_path, alternating(), np.array(6, np.int64))
    half = np.array([3, np.nan, 5, np.nan, 8, 4, 2, 1])  # of 6, 3, 10, 5, 16, 8, 4, 2: only even ones have a half
    if not keeps:
        monkeypatch.setattr(GatheredValue, "cells", sheets.MOST_CELLS + 1)
    sheet = read(debugger, "half")
    assert sheet.total == 8 and (sheet.known(0) is not None) is keeps
    before = np.append(np.nan, half[:-1])
    for text, mask in (
        ("half > prev(half)", half > before),
        ("half < prev(half)", half < before),
        ("prev(half) == 0", before == 0),
        ("half == 0", half == 0),
    ):
        assert sheet.order(None, text).tolist() == np.flatnonzero(mask).tolist(), text
    order = np.argsort(half, kind="stable")
    assert sheet.order(SheetSort(0, descending=False)).tolist() == order.tolist()
    assert set(sheet.order(SheetSort(0, descending=True))[:2].tolist()) == {1, 3}
