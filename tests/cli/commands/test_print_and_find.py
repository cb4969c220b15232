"""`stepper print` and `stepper find`: recorded runs from the command line; output, exit codes, hostile files."""

from __future__ import annotations

import csv
import io
import itertools
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from stepper import Debugger, read_model
from tests.cli.conftest import ROOT, Call
from tests.damage import Flips, flipped, flips
from tests.debug.sample_twins import collatz
from tests.recording.recorded import sample, seal

X = "x=[1,2,3,4,5]"
TOTALS = [-2, -8, -22, -52, -114]
"""What the body's total is after each iteration: 2 * (total - x)."""


@pytest.fixture
def trace(call: Call, model: Path, tmp_path: Path) -> Path:
    path = tmp_path / "run.sqlite"
    assert call("run", model, "--input", X, "--trace", path, "--record", "all", "-q").code == 0
    return path


@pytest.fixture
def statistics_only(call: Call, tmp_path: Path) -> Path:
    path = tmp_path / "stats.sqlite"
    sample("for_loop").recorded(path, "stats")
    return path


def test_one_value_looks_as_at_the_prompt(call: Call, trace: Path, model: Path, tmp_path: Path) -> None:
    assert call("print", trace, "final") == (0, "f32[1]\n[114.]\n".replace("\n[", " [", 1), "")
    assert call("print", trace, "doubled@-1").out == "@4  f32[1] [-114.]\n"
    assert call("print", trace, "final", "--digits", 2).out == "f32[1] [114.]\n"


def test_several_iterations_and_several_values_have_titles(call: Call, trace: Path) -> None:
    lines = [f"  @{number}  f32[1] [{total}.]" for number, total in enumerate(TOTALS)]
    assert call("print", trace, "doubled").out.splitlines() == ["sums::doubled", *lines]
    assert call("print", trace, "doubled@1:3", "final").out.splitlines() == [
        "sums::doubled", *lines[1:3], "model::final", "  f32[1] [114.]",
    ]  # fmt: skip


def test_many_iterations_are_elided_and_csv_has_them_all(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    sample("while_loop").recorded(path)
    steps, _peak, numbers = collatz(27)
    assert steps == 111
    lines = call("print", path, "number_next_result@*").out.splitlines()
    assert len(lines) == 1 + 50 + 1 + 50 and lines[51].startswith("  ... 11 more: ")
    assert lines[1] == f"  @0  i64[] {numbers[0]}" and lines[52] == f"  @61  i64[] {numbers[61]}"
    rows = list(csv.DictReader(io.StringIO(call("print", path, "number_next_result", "--csv").out)))
    assert [int(row["value"]) for row in rows] == numbers and rows[-1]["at"] == "@110" and rows[-1]["index"] == ""


def test_statistics(call: Call, trace: Path, statistics_only: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(call("print", trace, "doubled", "--csv", "--stats").out)))
    assert [float(row["min"]) for row in rows] == TOTALS == [float(row["max"]) for row in rows]
    heading, first, *rest = call("print", trace, "doubled", "--stats").out.splitlines()[1:]
    assert heading.split() == ["@", "type", "min", "max", "mean", "std", "nan", "inf", "zero"]
    assert first.split() == ["@0", "f32[1]", "-2", "-2", "-2", "0", "0", "0", "0"] and len(rest) == 4
    called = call("print", statistics_only, "balance_next@3")
    with np.load(ROOT / "sample_models/for_loop/inputs.npz") as given:
        balance = given["principal"].astype(np.float64) * (1 + given["rate"]) ** 4
    shown = dict(zip(*[iter(called.out.split()[2:])] * 2, strict=True))
    np.testing.assert_allclose([float(shown["min"]), float(shown["max"])], [balance.min(), balance.max()], rtol=1e-4)
    assert called.code == 0 and "of years::balance_next not all values were recorded" in called.err
    assert "--record all records them" in called.err


def test_an_array_in_a_file(call: Call, trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.npy"
    for address, expected in (
        ("doubled", np.array(TOTALS, np.float32)[:, None]),
        ("doubled@-1", np.array(TOTALS[-1:], np.float32)),
        ("doubled@1:2[0]", np.array(TOTALS[1:2], np.float32)),
        ("scan", np.array(TOTALS[::-1], np.float32)),
    ):
        called = call("print", trace, address, "--npy", file)
        written = np.load(file, allow_pickle=False)
        assert called.code == 0 and called.out == "" and str(file) in called.err
        assert written.dtype == np.float32 and written.shape == expected.shape and (written == expected).all()


def test_json(call: Call, trace: Path, statistics_only: Path) -> None:
    report = json.loads(call("print", trace, "doubled@1:3", "--json").out)
    assert report["schema"] == 1 and report["values"] == [
        {
            "address": "sums::doubled",
            "loops": ["sums"],
            "moments": [
                {"iterations": [1], "tick": report["values"][0]["moments"][0]["tick"], "type": "f32", "shape": [1],
                 "values": [-8.0]},
                {"iterations": [2], "tick": report["values"][0]["moments"][1]["tick"], "type": "f32", "shape": [1],
                 "values": [-22.0]},
            ],
            "more": 0,
        }
    ]  # fmt: skip
    (moment,) = json.loads(call("print", statistics_only, "balance_next@0", "--json").out)["values"][0]["moments"]
    assert moment["values"] is None and moment["statistics"]["nan"] == 0 and moment["shape"] == [3]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["doubld"], "near is doubled"),
        (["doubled@7"], "nothing was recorded there; Loop 'sums' ran 5 iterations at most"),
        (["doubled@"], "expected"),
        (["doubled[3]"], "index 3 is out of bounds"),
        (["x@1"], "in no loop"),
        (["doubled", "--csv", "--json"], "choose one"),
        (["doubled", "final", "--npy", "x.npy"], "these are several: sums::doubled, model::final"),
        (["doubled", "--stats", "--npy", "x.npy"], "values, not statistics"),
        (["doubled", "--npy", "/nowhere/x.npy"], "cannot be written"),
    ],
)
def test_what_is_wrong_is_one_message_and_code_2(call: Call, trace: Path, words: list[str], message: str) -> None:
    called = call("print", trace, *words)
    assert called.code == 2 and message in called.err
    assert called.out == "" or "--json" in words


def test_values_that_were_not_recorded_are_no_rows_and_no_array(call: Call, statistics_only: Path) -> None:
    for words in (["--csv"], ["--npy", "x.npy"]):
        called = call("print", statistics_only, "balance_next@2", *words)
        assert called.code == 2 and "only statistics were recorded: ask for --stats" in called.err


# --- find -----------------------------------------------------------------------------------------------------------


def test_found_is_code_1_and_nothing_is_code_0(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from stepper.cli import main

    assert main(["find", str(trace), "doubled < -20", "all"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[1] for line in out] == [f"model > Loop 'sums' #{number}" for number in (2, 3, 4)]
    assert main(["find", str(trace), "doubled < -20"]) == 1
    assert capsys.readouterr().out.splitlines() == out[:1]
    assert main(["find", str(trace), "doubled < -20", "last", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["schema"] == 1 and report["moments"][0]["iteration"] == 4 and report["asked"] == 5
    assert main(["find", str(trace), "doubled < -20", "all", "--limit", "2"]) == 1
    assert capsys.readouterr().err == "stepper: there are more; --limit N shows more of them\n"
    assert main(["find", str(trace), "doubled > 0"]) == 0
    assert capsys.readouterr() == ("", "stepper: nowhere, in 5 places\n")


def test_nan_is_found_in_anything(call: Call, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from stepper.cli import main

    np.save(tmp_path / "x.npy", np.array([1, 2, np.nan, 4, 5], np.float32))
    path = tmp_path / "nan.sqlite"
    assert (
        call("run", model, "--input", f"x={tmp_path / 'x.npy'}", "--trace", path, "--record", "stats", "-q").code == 0
    )
    assert main(["find", str(path), "nan", "all"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "model, input  model::x: 1 NaN of 5" and "sums::item: 1 NaN of 1" in lines[1]
    assert [line.split("sums::")[1].split(":")[0] for line in lines[1:4]] == ["item", "added", "doubled"]
    assert lines[-1] == "model, output  model::scan: 3 NaN of 5"
    assert main(["find", str(path), "inf"]) == 0 and "no Inf in anything" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("predicate", "message"),
    [("doubld > 1", "near is doubled"), ("max(doubled", "expected"), ("doubled@1 > 1", "every iteration is asked")],
)
def test_a_predicate_that_is_wrong_is_code_2(call: Call, trace: Path, predicate: str, message: str) -> None:
    called = call("find", trace, predicate)
    assert called.code == 2 and message in called.err


# --- files that are not to be trusted -------------------------------------------------------------------------------

CHANGES = {
    "levels in a circle": "UPDATE levels SET parent = 1 WHERE id = 1",
    "levels that are texts": "UPDATE levels SET layers = '[\"x\"]' WHERE id = 1",
    "deep JSON": f"UPDATE levels SET layers = '{'[' * 50_000}' WHERE id = 1",
    "a port of no level": "UPDATE ports SET level = 99",
    "a port with many outputs": "UPDATE ports SET output = 1000000000",
    "names that are a number": "UPDATE ports SET names = '7'",
    "results that are a number": "UPDATE ports SET results = '7'",
    "an iteration of nothing": "UPDATE runs SET iteration = 'x'",
    "a tick that is a text": "UPDATE runs SET tick = 'x'",
    "iterations without end": "UPDATE runs SET count = 1000000000000",
    "stacks backward": "UPDATE stacks SET first = -first",
    "stacks of texts": "UPDATE stacks SET count = 'many'",
    "a stack that is too long": "UPDATE stacks SET count = 1000000000, first = 0",
    "a blob that is damaged": "UPDATE blobs SET content = zeroblob(100)",
    "a missing blob": "UPDATE stacks SET blob = 12345",
    "a form of nothing": "UPDATE forms SET dtype = 'f99'",
    "a form that is huge": "UPDATE forms SET shape = '[1000000000000, 1000000000000]'",
    "a form that is a text": "UPDATE forms SET shape = '\"x\"'",
    "a missing form": "DELETE FROM forms",
    "numbers that are texts": "UPDATE numbers SET n0 = 'x', n1 = 'y'",
    "numbers of a huge count": "UPDATE number_series SET count = 1000000000",
    "values that begin beyond their blob": "UPDATE stacks SET start = 1000000000",
    "another input": "UPDATE inputs SET value = '{\"blob\": 12345}'",
}
QUESTIONS = (
    ("print", ["*"]), ("print", ["*", "--stats"]), ("print", ["doubled", "--csv"]), ("print", ["*@-1", "--json"]),
    ("find", ["doubled < added", "all"]), ("find", ["nan", "all"]), ("find", ["max(added) > 1e9"]),
)  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_hostile_file_is_a_message(call: Call, trace: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "changed.sqlite"
    shutil.copy(trace, path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE runs SET id = id + 0")
    connection.execute(CHANGES[name])
    seal(connection)
    connection.commit()
    connection.close()
    codes = set()
    for command, words in QUESTIONS:
        called = _any_call(call, command, path, words)
        codes.add(called)
    assert codes <= {0, 1, 2, 3} and 3 in codes


def _any_call(call: Call, command: str, path: Path, words: list[str]) -> int:
    """The code; a table may have been begun on stdout before what is wrong was met."""
    from stepper.cli import main

    return main([command, str(path), *words])


def test_a_number_beyond_its_type_is_a_message(call: Call, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    connection = sqlite3.connect(trace)
    connection.execute("UPDATE numbers SET n0 = 1e300")
    seal(connection)
    connection.commit()
    connection.close()
    assert _any_call(call, "print", trace, ["*", "--stats"]) == 3
    assert "has a number that no f32 can be" in capsys.readouterr().err


def test_flipped_bytes_do_no_harm(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from stepper.cli import main

    content = trace.read_bytes()
    used = [place for place, byte in enumerate(content) if byte and place > len(content) // 3]
    codes, numbers = [], itertools.count()

    @given(flips(used, most=1))
    @settings(max_examples=60)
    def check(bits: Flips) -> None:
        path = tmp_path / f"flipped{next(numbers)}.sqlite"
        path.write_bytes(flipped(content, bits))
        for command, words in QUESTIONS:
            codes.append(main([command, str(path), *words]))
            assert "Traceback" not in capsys.readouterr().err

    check()
    assert set(codes) <= {0, 1, 2, 3} and 3 in codes and 0 in codes


# --- what a back edge carried ---------------------------------------------------------------------------------------


def test_what_a_back_edge_carried_is_found_where_it_was_recorded(call: Call, tmp_path: Path) -> None:
    folder = Path(__file__).parents[3] / "sample_models" / "specification_lstm"
    model, trace = folder / "model.xml", tmp_path / "run.sqlite"
    assert call("run", model, "--inputs", folder / "inputs.npz", "--trace", trace, "--record", "carried").code == 0
    with np.load(folder / "inputs.npz") as inputs:
        initial, debugger = dict(inputs)["H"], Debugger(read_model(model), dict(inputs))
    debugger.run_to("lstm@0")
    expected = debugger.over_iterations("h_next")
    assert call("print", trace, "h", "--npy", tmp_path / "h.npy").code == 0
    printed = np.load(tmp_path / "h.npy")
    assert np.array_equal(printed[0].ravel(), initial.ravel())
    assert np.array_equal(printed[1:], np.stack(expected.values[:-1]))
    said = call("print", trace, "h@-1")
    assert "(recorded as h_next@23)" in said.out and said.err == ""
    assert "(recorded as input 'H')" in call("print", trace, "h@0").out
    moments = json.loads(call("print", trace, "h@7", "--json").out)["values"][0]["moments"]
    assert moments[0]["recorded_as"] == "h_next@6"


def test_where_the_model_is_gone_there_are_statistics(call: Call, tmp_path: Path) -> None:
    folder = Path(__file__).parents[3] / "sample_models" / "specification_lstm"
    for name in ("model.xml", "model.bin"):
        shutil.copy(folder / name, tmp_path / name)
    model, trace = tmp_path / "model.xml", tmp_path / "run.sqlite"
    assert call("run", model, "--inputs", folder / "inputs.npz", "--trace", trace, "--record", "carried").code == 0
    model.unlink()
    said = call("print", trace, "h@3")
    assert said.code == 0 and "min -" in said.out and "only statistics" in said.err
