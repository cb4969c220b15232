"""`stepper compare`: what it prints, its JSON, its options and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stepper.cli import main
from tests.compare.twins import X, recurrence
from tests.models import Graph

ROOT = Path(__file__).parents[3]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """ours.xml with one changed weight, theirs.xml, x.npz."""
    for name, graph in (("ours", recurrence("one weight")), ("theirs", recurrence())):
        (tmp_path / name).mkdir()
        graph.write(tmp_path / name)
    np.savez(tmp_path / "x.npz", in_0=X)
    return tmp_path


def compare(files: Path, *options: str, ours: str = "ours", theirs: str = "theirs") -> int:
    paths = [next((files / name).glob("*.xml")) for name in (ours, theirs)]
    return main(["compare", str(paths[0]), "--with", str(paths[1]), "--inputs", str(files / "x.npz"), *options])


def test_a_difference_is_exit_code_1_and_the_first_lines_say_what_it_is(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(files) == 1
    lines = capsys.readouterr().out.splitlines()
    first = " ".join(" ".join(lines[:6]).split())
    assert "Loop 'cell'" in first and "iteration 0" in first and "Const 'W'" in first
    assert "differs in one element, [1, 2]" in first
    assert all(len(line) <= 80 for line in lines if "/" not in line)
    assert [line.split()[0] for line in lines if line[0] != " "] == ["first", "iterations", "outputs", "worst"]


def test_equal_models_are_exit_code_0_and_one_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(files, ours="theirs") == 0
    out = capsys.readouterr().out
    assert out.startswith("no difference from ") and out.count("\n") == 1


def test_the_json_has_the_same_facts(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(files, "--json", "--per-op") == 1
    report = json.loads(capsys.readouterr().out)
    verdict = report["verdict"]
    assert (report["schema"], report["different"]) == (1, True)
    assert verdict["loop"]["name"] == "cell" and verdict["loop"]["path"] == ["cell"]
    assert (verdict["layer"]["name"], verdict["layer"]["type"], verdict["iteration"]) == ("W", "Constant", 0)
    assert verdict["shows_at"]["name"] == "xW" and "one element" in verdict["reason"]
    assert report["loops"][0]["runs"] == [
        {
            "count": 1,
            "ours": {"iterations": 6, "ended": "trip count reached", "complete": True},
            "reference": {"iterations": 6, "ended": "trip count reached", "complete": True},
        }
    ]
    assert [output["name"] for output in report["outputs"]] == ["last_h", "all_y"]
    assert {record["layer"]["name"] for record in report["operations"]} >= {"x_t", "xW", "h_next", "cell"}


@pytest.mark.parametrize(
    "options", [["--atol", "0.1"], ["--rtol", "0.5", "--atol", "0.01"], ["--tolerance", "f32=0,0.1"]]
)
def test_what_is_within_the_tolerance_is_no_difference(files: Path, options: list[str]) -> None:
    assert compare(files, *options) == 0


def test_the_tolerance_of_one_operation_leaves_the_others(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(files, "--tolerance", "MatMul=0,0.1", "--tolerance", "summed=0,0.1", "--json") == 1
    assert json.loads(capsys.readouterr().out)["verdict"]["shows_at"]["name"] == "scaled"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--with", "nothing.xml"], 3, "nothing.xml"),
        (["--with", "nothing.npz"], 3, "nothing.npz"),
        (["--with", "nothing"], 2, "cannot be read"),
        (["--rtol", "-1"], 2, "is not a tolerance"),
        (["--tolerance", "f32"], 2, "f32=1e-4"),
        (["--align", "nothing"], 3, "nothing"),
        (["--max-iterations", "2"], 1, None),
    ],
)
def test_what_cannot_be_is_one_message_and_its_exit_code(
    files: Path, options: list[str], code: int, message: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = compare(files, *options)
    except SystemExit as end:
        found = int(end.code or 0)
    captured = capsys.readouterr()
    assert found == code and "Traceback" not in captured.err
    assert message is None or message in captured.err


def test_pairs_of_names_are_checked(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "pairs").write_text("xW = xW\nnowhere = hU\n")
    assert compare(files, "--align", str(files / "pairs")) == 2
    assert "has no layer 'nowhere'" in capsys.readouterr().err


def test_keys_that_name_nothing_are_told(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(files / "values.npz", out_1=np.zeros((6, 3), np.float32), nothing=1)
    assert compare(files, "--with", str(files / "values.npz")) == 1
    captured = capsys.readouterr()
    assert "1 keys of values.npz name nothing in the model: nothing" in captured.err
    assert "output 'all_y' differs" in captured.out


def test_names_from_a_file_cannot_move_the_cursor(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next((files / "ours").glob("*.xml"))
    path.write_text(path.read_text().replace('"W"', '"W&#x9B;31m"'), encoding="utf-8")
    assert compare(files) == 1
    assert "\x9b" not in capsys.readouterr().out


def test_the_debugger_takes_a_reference(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(next((files / name).glob("*.xml"))) for name in ("ours", "theirs")]
    script = files / "script"
    script.write_text("break diff > 1e-5\ncontinue\nprint ref(xW)[0,2] - xW[0,2]\n")
    words = ["debug", paths[0], "--reference", paths[1], "--inputs", str(files / "x.npz"), "--script", str(script)]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "after MatMul 'xW'" in out
    change = float(out.splitlines()[-1].split()[-1])
    np.testing.assert_allclose(change, -1e-3 * X[0, 1], atol=1e-6)


def test_what_agrees_is_counted_in_the_singular_and_without_a_loop_in_no_iterations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = Graph()
    net.result(net.apply("Abs", net.parameter("x", dims=(2,)), name="y"))
    model = str(net.write(tmp_path))
    assert main(["compare", model, "--with", model, "--input", "x=ones"]) == 0
    assert capsys.readouterr().out.endswith(": 1 value and 1 output agree\n")


@pytest.mark.parametrize("sample", ["for_loop", "nested_loop"])
def test_a_runtime_that_does_not_load_is_an_error_and_no_difference(tmp_path: Path, sample: str) -> None:
    """It is found out only when our run has gone on for a while."""
    package = tmp_path / "openvino"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('libtbb.so.12: cannot open shared object file')")
    model = ROOT / "sample_models" / sample / "model.xml"
    command = [sys.executable, "-m", "stepper", "compare", model, "--inputs", model.with_name("inputs.npz"),
               "--with", "openvino", "--quiet"]  # fmt: skip
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(command, env=os.environ | paths, capture_output=True, text=True, timeout=120)
    said = "OpenVINO ended with exit code 1 while being loaded for the model model.xml"
    why = "(it printed: ImportError: libtbb.so.12: cannot open shared object file)"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"stepper: {said} {why}\n")
