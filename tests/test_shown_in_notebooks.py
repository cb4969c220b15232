"""What a cell of a notebook shows of results: tables of text, with every name escaped."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np

import stepper
from stepper.debug.debugger import Debugger
from stepper.diagnosis.check.checking import check_run
from stepper.html_tables import MOST_ROWS, html_table
from stepper.recording import open_recording

SAMPLES = Path(__file__).parents[1] / "sample_models"
EVIL = '<script>alert("x")</script>'


class Cells(HTMLParser):
    """The texts of the cells of a table; nothing but a table and paragraphs is allowed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        assert tag in ("table", "tr", "td", "p")
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def opened(sample: str) -> Debugger:
    inputs = dict(np.load(SAMPLES / sample / "inputs.npz"))
    return Debugger(stepper.read_model(SAMPLES / sample / "model.xml"), inputs)


def test_a_table_escapes_its_cells_and_counts_what_it_leaves_out() -> None:
    page = html_table([(EVIL, "a & b")] * (MOST_ROWS + 7), EVIL)
    found = Cells(page)
    assert found.rows[0] == [EVIL, "a & b"] and len(found.rows) == MOST_ROWS
    assert "7 more" in page


def test_values_over_iterations_are_a_row_each() -> None:
    debugger = opened("for_loop")
    debugger.last()
    debugger.goto("balance_next@2")
    series = debugger.over_iterations("balance_next")
    rows = Cells(series._repr_html_()).rows
    assert [row[0] for row in rows] == [f"@{one}" for one in series.iterations]
    assert "f32[3]" in rows[0][1] and f"{series.values[0][0]:.0f}" in rows[0][1]


def test_a_view_of_a_stop_shows_frames_operation_and_loop_and_a_value_itself() -> None:
    debugger = opened("for_loop")
    debugger.run_to("balance_next@2")
    view = debugger.view()
    rows = Cells(view._repr_html_()).rows
    assert rows[0][0] == "model" and rows[1][:3] == ["Loop", "years", "2 of 10"]
    balance = 1000 * 1.05**2
    (carried,) = [row for row in rows if row[:2] == ["carried", "balance"]]
    assert carried[3].startswith("f32[3] [") and f"{balance:.2f}"[:6] in carried[3], carried
    (done,) = [row for row in rows if row[0] == "done"]
    assert done[1] == "Add 'balance_next'"
    assert view.done is not None and view.next is not None
    (row,) = Cells(view.done.outputs[0]._repr_html_()).rows
    assert row[0] == "balance_next" and f"{1000 * 1.05**3:.2f}"[:6] in row[2], row
    (absent,) = Cells(view.next.outputs[0]._repr_html_()).rows
    assert absent[2] == "not computed yet in iteration 2"
    debugger.last()
    assert [row[0] for row in Cells(debugger.view()._repr_html_()).rows] == ["output"] * len(
        debugger.model.graph.results
    )


def test_what_check_finds_is_a_row_with_what_to_do() -> None:
    (row, *_others) = Cells(check_run(opened("rwkv_overflow"))._repr_html_()).rows
    assert row[0] == "error" and "exp(89.2) > f32 maximum" in row[1] and "range" in row[3]
    assert "nothing is wrong" in check_run(opened("for_loop"))._repr_html_()


def test_a_recording_says_what_went_in_and_what_came_out(tmp_path: Path) -> None:
    from stepper.cli import main

    words = [str(SAMPLES / "for_loop" / "model.xml"), "--inputs", str(SAMPLES / "for_loop" / "inputs.npz")]
    assert main(["run", *words, "--trace", str(tmp_path / "run.sqlite"), "-q"]) == 0
    with open_recording(tmp_path / "run.sqlite") as recording:
        rows = Cells(recording._repr_html_()).rows
    assert ["input", "principal", "f32[3]"] in rows and ["output", "final_balance", "f32[3]"] in rows


def test_a_stepped_page_is_a_page_of_its_own() -> None:
    inputs = dict(np.load(SAMPLES / "reverse" / "inputs.npz"))
    figure = stepper.draw(SAMPLES / "reverse" / "model.xml", inputs, view="unrolled").slider()
    html = figure._repr_html_()
    assert html.startswith("<iframe") and html.count("<") == 2, "the page is in an attribute"
    assert 'type="range"' in figure.page and "http://" not in figure.page.replace("http://www.w3.org/", "")
