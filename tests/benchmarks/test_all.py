"""The command that runs all benchmarks, and the tables that are made of what it writes."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from docs.measured import benchmarks
from tests.benchmarks.__main__ import NAMES, main, sentence


@pytest.mark.parametrize("name", NAMES)
def test_each_benchmark_has_something_to_measure_and_a_sentence(name: str) -> None:
    assert callable(import_module(f"tests.benchmarks.{name}").reports)
    assert sentence(name)[:1].isupper() and "`" not in sentence(name)


def test_named_benchmarks_are_measured_anew_and_the_others_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "benchmarks.json"
    kept = {"sentence": "Kept", "reports": []}
    file.write_text(json.dumps({"benchmarks": {"startup": kept, "linear": {"sentence": "Old", "reports": []}}}))
    assert main(["linear", "--quick", "--json", str(file)]) == 0
    found = json.loads(file.read_text())["benchmarks"]
    assert list(found) == ["linear", "startup"] and found["startup"] == kept
    assert [set(report["ratios"]) for report in found["linear"]["reports"]] == 2 * [
        {"1000 iterations", "10000 iterations"}
    ]
    assert capsys.readouterr().out == ""


def test_a_benchmark_that_takes_too_long_is_ended_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["linear", "--quick", "--seconds", "0.1"]) == 1
    assert "linear: took more than 0.1 seconds" in capsys.readouterr().err


def test_no_benchmark_of_a_name_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["loop"])
    assert (
        ended.value.code == 2 and "no benchmark is called loop; there are loops, debugging" in capsys.readouterr().err
    )


def test_reports_of_one_kind_are_a_table(tmp_path: Path) -> None:
    ratios = {"base": "hand", "ratios": {"hand": 1.0, "ours": 1.5}, "milliseconds": {"hand": 2.0, "ours": 3.0}}
    cells = {**ratios, "ratios": {"hand": 1.0, "ours": 20.0}}
    reports = [
        {"title": "Newton", **ratios},
        {"title": "LSTM", **ratios, "milliseconds": {"hand": 12345.6, "ours": 20000.0}},
        {"title": "Add 1x4", **ratios, "row": "Add", "column": "1x4"},
        {"title": "Add 8x8", **cells, "row": "Add", "column": "8x8"},
        {"title": "Keys", "figures": [{"title": "n", "own_median": 4.0, "own_nearly_all": 9.0, "limits": [16, None]}]},
    ]
    file = tmp_path / "measured.json"
    found = {"versions": {"Python": "3.11"}, "benchmarks": {"loops": {"sentence": "How fast", "reports": reports}}}
    file.write_text(json.dumps(found))
    assert (
        "\n".join(benchmarks(file))
        == """\
On two cores, with Python 3.11.

### How fast

`python -m tests.benchmarks.loops`

|  | hand | ours |
|---|---|---|
| Newton | 2 ms | 1.50 |
| LSTM | 12,346 ms | 1.50 |

| ratio to hand | 1x4 | 8x8 |
|---|---|---|
| Add | 1.50 | 20 |

| Keys | median | 95 % | limits |
|---|---|---|---|
| n | 4.0 ms | 9.0 ms | 16 ms |
"""
    )
