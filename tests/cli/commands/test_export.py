"""`stepper export`: what it writes where, what it says, and its exit codes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stepper.cli import main
from tests.models import Graph, carried, joined, last

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "sample_models"
MODEL = str(SAMPLES / "for_loop" / "model.xml")
INPUTS = ("--inputs", str(SAMPLES / "for_loop" / "inputs.npz"))


def test_a_file_is_current_until_something_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figure.svg"
    assert main(["export", MODEL, "--check", str(file)]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert main(["export", MODEL, "-o", str(file)]) == 0
    assert main(["export", MODEL, "--check", str(file)]) == 0
    assert main(["export", MODEL, "--check", str(file), "--theme", "print"]) == 1
    assert "out of date" in capsys.readouterr().err
    file.write_bytes(file.read_bytes() + b" ")
    assert main(["export", MODEL, "--check", str(file)]) == 1


@pytest.mark.parametrize(
    ("words", "begin"),
    [
        ([], "<svg"),
        (["--as", "dot"], "digraph"),
        (["--as", "mermaid"], "flowchart"),
        (["--as", "md"], "# "),
        (["--as", "html", *INPUTS], "<!DOCTYPE html>"),
        (["--as", "csv", *INPUTS], "iteration,"),
    ],
)
def test_without_a_file_it_goes_to_stdout(
    words: list[str], begin: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["export", MODEL, *words]) == 0
    out, err = capfdbinary.readouterr()
    assert out.decode().startswith(begin)
    assert (b"laid out by the program itself" in err) == (begin == "<svg")


def test_the_suffix_of_the_file_says_the_format(tmp_path: Path) -> None:
    for suffix, begin in (("dot", "digraph"), ("gv", "digraph"), ("mmd", "flowchart"), ("md", "# "), ("", "<svg")):
        file = (tmp_path / "figure").with_suffix(f".{suffix}" if suffix else "")
        assert main(["export", MODEL, "-o", str(file), "-q"]) == 0
        assert file.read_text().startswith(begin)


def test_a_suffix_that_names_no_format_is_refused_with_those_that_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", MODEL, "-o", str(tmp_path / "figure.xyz"), "-q"]) == 2
    captured = capsys.readouterr()
    assert ".xyz names no format; there are .svg, .html" in captured.err and captured.err.count("\n") == 1
    assert main(["export", MODEL, "--as", "svg", "-o", str(tmp_path / "figure.png")]) == 2
    assert ".png is the suffix of PNG, and SVG would be written" in capsys.readouterr().err
    assert main(["export", MODEL, "--as", "svg", "-o", str(tmp_path / "figure.xyz"), "-q"]) == 0
    assert [file.name for file in tmp_path.iterdir()] == ["figure.xyz"]


def test_with_inputs_the_run_is_drawn_and_json_has_all_of_it(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["export", MODEL, *INPUTS, "--as", "json"]) == 0
    assert len(json.loads(capfdbinary.readouterr().out)["trace"]) == 10
    assert main(["export", MODEL, *INPUTS, "--as", "dot"]) == 0
    out, err = capfdbinary.readouterr()
    assert b"6 iterations left out: iterations 3 to 8" in out
    assert b"showing 4 of 10 iterations" in err


def test_a_recording_is_drawn_as_its_model_with_its_inputs(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    trace = tmp_path / "run.trace"
    assert main(["run", MODEL, *INPUTS, "--trace", str(trace), "-q"]) == 0
    capfdbinary.readouterr()
    assert main(["export", str(trace), "-q"]) == 0
    recorded = capfdbinary.readouterr().out
    assert main(["export", MODEL, *INPUTS, "-q"]) == 0
    assert capfdbinary.readouterr().out == recorded
    assert main(["export", str(trace), *INPUTS]) == 2


def test_a_recording_whose_model_is_gone_says_so_and_takes_its_new_place(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for suffix in ("xml", "bin"):
        shutil.copy(SAMPLES / "for_loop" / f"model.{suffix}", tmp_path)
    model, trace, moved = tmp_path / "model.xml", tmp_path / "run.trace", tmp_path / "elsewhere"
    assert main(["run", str(model), *INPUTS, "--trace", str(trace), "-q"]) == 0
    moved.mkdir()
    for suffix in ("xml", "bin"):
        model.with_suffix(f".{suffix}").rename(moved / f"model.{suffix}")
    capfdbinary.readouterr()
    assert main(["export", str(trace)]) == 3
    assert b"model.xml is not there; say where it is with --model PATH" in capfdbinary.readouterr().err
    assert main(["export", str(trace), "-q", "--model", str(moved / "model.xml")]) == 0
    assert capfdbinary.readouterr().out.startswith(b"<svg")
    assert main(["export", str(moved / "model.xml"), "--model", str(model)]) == 2


@pytest.mark.parametrize("format", ["svg", "html", "dot", "mermaid", "md"])
def test_where_there_are_no_thumbnails_one_sentence_says_so(
    format: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["export", MODEL, *INPUTS, "--as", format, "--values", "thumbnails"]) == 0
    out, err = capfdbinary.readouterr()
    assert (b"thumbnails are drawn in svg, html, png, pdf and tikz alone" in err) == (format not in ("svg", "html"))
    assert (b'class="spark"' in out) == (format in ("svg", "html"))


@pytest.mark.parametrize(
    ("ranges", "numbers"), [("-2:", [8, 9]), ("-1", [9]), ("-9:-7,0", [0, 1, 2]), ("7:-1", [7, 8])]
)
def test_a_range_may_begin_with_a_minus(
    ranges: str, numbers: list[int], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["export", MODEL, *INPUTS, "--as", "json", "--iters", ranges]) == 0
    assert [step["iteration"] for step in json.loads(capfdbinary.readouterr().out)["trace"]] == numbers


def test_an_operation_of_one_iteration_is_highlighted(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    words = ["export", MODEL, *INPUTS, "-q", "--iters", "0:3", "--highlight", "years::balance_next@1"]
    assert main(words) == 0
    lines = [line for line in capfdbinary.readouterr().out.decode().splitlines() if "highlighted" in line]
    assert [line for line in lines if line.startswith("<g")] == [
        next(line for line in lines if line.endswith('.i1" class="iteration highlighted">')),
        next(line for line in lines if 'class="operation highlighted"' in line),
    ]
    assert any(re.match(r'<g id="s[0-9a-f]{8}\.i1\.n', line) for line in lines)


def test_what_is_hidden_is_drawn_as_a_group_that_counts(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["export", MODEL, "-q", "--carried", "--as", "mermaid"]) == 0
    carried_only = capfdbinary.readouterr().out.decode()
    assert '"balance_next_result' in carried_only and "Multiply" not in carried_only
    assert main(["export", MODEL, "-q", "--hide", "Multiply", "--as", "mermaid"]) == 0
    assert '"1 operation' in capfdbinary.readouterr().out.decode()
    assert main(["export", MODEL, "-q", "--only", "Multiply", "--as", "mermaid"]) == 0
    only = capfdbinary.readouterr().out.decode()
    assert "Multiply" in only and "Unsqueeze" not in only


def test_patterns_that_fit_nothing_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", MODEL, "--only", "Multpl", "--hide", "Multiply", "--as", "mermaid"]) == 0
    said = capsys.readouterr().err
    assert "--only Multpl: no operation has such a name or type" in said and "--hide" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--view", "unrolled"], "--inputs FILE.npz"),
        (["--values", "stats"], "needs a run"),
        (["--as", "csv"], "--inputs FILE.npz"),
        (["--loop", "nothing"], "no loop is called 'nothing'; there is 'years'"),
        (["--hide", "("], "not a regular expression"),
        (["--iters", "x", *INPUTS], "not a range of iterations"),
        (["--iters", "0:3"], "--iters 0:3 needs the iterations of a run: --view unrolled, with inputs"),
        (["--width", "100"], "the least width is"),
        (["--highlight", "nothing"], "nothing"),
        (["-o", "no/such/folder/x.svg"], "cannot be written"),
        (["--view", "rolled", "--as", "json"], "--view unrolled"),
    ],
)
def test_what_cannot_be_is_said_in_one_message(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", MODEL, *words]) == 2
    assert said in capsys.readouterr().err


def long_run(folder: Path, count: int) -> str:
    graph = Graph()
    x = graph.parameter("x", "f32", (1,))
    body = graph.body()
    state = body.parameter("state", "f32", (1,))
    result = body.result(body.apply("Add", state, body.constant([1.0]), name="next"), "next_result")
    for value in graph.loop("long", body, count, True, [carried(x, state, result)], [last(result), joined(result)]):
        graph.result(value)
    return str(graph.write(folder))


def test_ten_thousand_iterations_are_elided_soon_and_without_that_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", long_run(tmp_path, 10_000), "--input", "x=ones", "-o", str(tmp_path / "x.svg")]
    assert main(words) == 0
    assert "showing 4 of 10,000" in capsys.readouterr().err
    assert main([*words, "--iters", "0:300"]) == 0
    assert "drawing 300 iterations" in capsys.readouterr().err


def test_an_endless_loop_is_drawn_up_to_the_limit(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    words = ["export", long_run(tmp_path, 10**9), "--input", "x=ones", "--max-iterations", "5", "--as", "mermaid"]
    assert main(words) == 0
    out, err = capfdbinary.readouterr()
    assert b"after 5 iterations" in out
    assert b"stopped in iteration 5" in err


def test_numpy_code_is_written_with_its_larger_constants_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = SAMPLES / "date_normaliser"
    code, outputs = tmp_path / "decoder.py", tmp_path / "outputs.npz"
    words = ["export", str(sample / "model.xml"), "--as", "numpy"]
    assert main(words) == 2
    assert "with -o" in capsys.readouterr().err
    assert main([*words, "-o", str(code)]) == 0
    assert main([*words, "--check", str(code)]) == 0
    subprocess.run([sys.executable, code, sample / "inputs.npz", outputs], check=True, env={"PYTHONPATH": str(ROOT)})
    with np.load(outputs) as computed, np.load(sample / "expected.npz") as expected:
        for ours, recorded in zip(computed.values(), expected.values(), strict=True):
            np.testing.assert_allclose(ours, recorded, rtol=1e-4, atol=1e-5)
    code.with_suffix(".npz").write_bytes(b"")
    assert main([*words, "--check", str(code)]) == 1
    assert "decoder.npz is out of date" in capsys.readouterr().err
