"""Names of others on a terminal: no message, answer or row holds what a terminal or a spreadsheet would obey."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from stepper.errors import InputError, MissingInputs, OutputError, UsageError
from tests.cli.conftest import Call
from tests.models import Graph

HOSTILE = "a\x1b]0;title\x07\x9b31m‮\u2028b\r\nc"
NAME = "=cmd\x9b‮"
"""What XML can hold as well, and a formula."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    net = Graph()
    net.result(net.apply("Negative", net.parameter("x", dims=(2,))), NAME)
    net.result(net.parameter("text", "string", (2,)), "texts")
    net.write(tmp_path)
    np.savez(tmp_path / "keys.npz", **{HOSTILE: np.ones(2, np.float32)})  # type: ignore[arg-type]
    np.savez(tmp_path / "x.npz", x=np.array([-1, 2], np.float32), text=np.array(["-1+2", "b\x9b"]))
    (tmp_path / "stepper.toml").write_text(f"[lint]\nselect=[{json.dumps(HOSTILE)}]\n")
    (tmp_path / "script.txt").write_text("\x1b]0;title\x07\x9b‮\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        ("run", "model.xml", "--inputs", "keys.npz"),
        ("run", "model.xml", "--input", f"x=keys.npz:{HOSTILE}?"),
        ("run", "model.xml", "--input", "x=keys.npz:y"),
        ("run", "model.xml", "--calls", "keys.npz"),
        ("run", "model.xml", f"--{HOSTILE}"),
        ("run", "model.xml", "--rules", HOSTILE),
        ("run", f"{HOSTILE}.xml"),
        ("compare", "model.xml", "--with", "keys.npz", "--inputs", "x.npz"),
        ("compare", "model.xml", "--with", f"{HOSTILE}.npz", "--inputs", "x.npz"),
        ("debug", "model.xml", "--inputs", "x.npz", "--script", "script.txt"),
        ("debug", "model.xml", "--inputs", "x.npz", "--script", HOSTILE),
        ("lint", "model.xml"),
        ("sweep", "model.xml", "--inputs", f"{HOSTILE}*"),
        (HOSTILE,),
    ],
    ids=lambda words: " ".join(words).encode("unicode_escape").decode()[:60],
)
def test_a_message_is_one_line_that_a_terminal_can_show(call: Call, words: tuple[str, ...]) -> None:
    called = call(*words)
    assert called.code in (2, 3) and called.err.startswith("stepper: ") and called.err.endswith("\n")
    assert called.err[:-1].isprintable()


def test_an_error_has_one_line_but_for_those_that_list_things() -> None:
    for kind in (UsageError, InputError, OutputError):
        assert str(kind("no 'a\x1bb\nc'")) == "no 'a b c'"
    assert str(MissingInputs("one:\n  a\x1b", (), 1)) == "one:\n  a "


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", [("inspect", "model.xml"), ("run", "model.xml", "--inputs", "x.npz")])
def test_json_has_the_same_values_and_nothing_that_a_terminal_obeys(call: Call, words: tuple[str, ...]) -> None:
    out = call(*words, "--json").out
    assert out.replace("\n", "").isprintable()
    assert r"=cmd\u009b\u202e" in out and json.loads(out)["outputs"][0]["name"] == NAME


@pytest.mark.usefixtures("folder")
def test_rows_of_a_recording_hold_no_formula_and_keep_their_numbers(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("run", "model.xml", "--inputs", "x.npz", "--trace", "run.sqlite", "-q").code == 0
    rows = list(csv.DictReader(io.StringIO(call("print", "run.sqlite", "*", "--csv").out)))
    values = [(row["address"], row["value"]) for row in rows]
    assert ("model::x", "-1.0") in values and (f"model::`{NAME}`", "-2.0") in values
    assert ("model::texts", "'-1+2") in values and ("model::texts", "b\x9b") in values
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert call("print", "run.sqlite", "*", "--csv").out.replace("\n", "").isprintable()
