"""Labels of a vocabulary: read from the file that the user names, shown where the numbers of a value are printed."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from stepper.commands import Interpreter
from stepper.debug.debugger import Debugger
from stepper.debug.labels import LARGEST_FILE, label_of, labelled, read_labels
from stepper.errors import SessionError, UsageError
from stepper.session.session_files import restore_session, restore_stops, save_session
from tests.debug.debugged import SAMPLES, sample
from tests.models import Graph
from tests.recording.recorded import seal
from tests.tables import each_row

VOCABULARY = SAMPLES / "date_normaliser" / "vocab.json"


@each_row(
    ("name", "content", "key"),
    [
        ("labels.txt", "zero\none\n\nthree\n", ""),
        ("labels.json", json.dumps(["zero", "one", "", "three"]), ""),
        ("labels.json", json.dumps({"out": ["zero", "one", "", "three"], "in": []}), "out"),
        ("labels.json", json.dumps({"out": {"zero": 0, "three": 3, "": 2, "one": 1}}), "out"),
    ],
)
def test_a_file_of_labels_is_read(tmp_path: Path, name: str, content: str, key: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    found = read_labels(tmp_path / name, key)
    assert [label_of(found, number) for number in (0, 1, 3, 4, -1, 0.5)] == ["zero", "one", "three", "4", "-1", "0.5"]


@each_row(
    ("content", "key", "says"),
    [
        ("[1, 2]", "", "no list of labels"),
        ('{"a": -1}', "", "no list of labels"),
        ('{"a": 999999999}', "", "no list of labels"),
        ('["a"]', "key", "it is no object"),
        ("{", "", "not valid JSON"),
        ("[" * 100_000, "", "not valid JSON"),
    ],
)
def test_what_is_no_list_of_labels_is_refused(tmp_path: Path, content: str, key: str, says: str) -> None:
    (tmp_path / "labels.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=says):
        read_labels(tmp_path / "labels.json", key)


def test_a_key_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(UsageError, match="no key 'out': it has input, output, bos, eos"):
        read_labels(VOCABULARY, "out")


def test_a_file_that_is_too_large_or_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_labels(tmp_path / "nowhere.txt")
    with (tmp_path / "large.txt").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(UsageError, match="more than"):
        read_labels(tmp_path / "large.txt")


def test_only_whole_numbers_have_words() -> None:
    assert labelled(("a", "b"), np.array([[1, 0, 5]])) == "'b' 'a' '5'"
    assert labelled(("a", "b"), np.array([1.0])) == "" and labelled((), np.array([1])) == ""
    assert labelled(("a",), np.zeros(100, np.int64)).endswith("...")


def test_print_says_the_words_of_a_value_that_has_labels() -> None:
    interpreter = Interpreter(sample("date_normaliser"))
    interpreter.execute("run-to `prim::Loop/Loop`@7")
    interpreter.execute("run-to `aten::argmax/Squeeze`")
    before = interpreter.execute("print `aten::argmax/Squeeze`").lines
    said = interpreter.execute(f"labels `aten::argmax/Squeeze` {VOCABULARY} output").lines
    assert said == ("`aten::argmax/Squeeze` has 11 labels",)
    after = interpreter.execute("print `aten::argmax/Squeeze`").lines
    assert after[:-1] == before and after[-1] == "'-'"
    interpreter.execute("labels `aten::argmax/Squeeze`")
    assert interpreter.execute("print `aten::argmax/Squeeze`").lines == before
    with pytest.raises(UsageError, match="expected a value"):
        interpreter.execute("labels")


def test_words_go_with_the_numbers_over_back_edges_and_outputs() -> None:
    interpreter = Interpreter(sample("date_normaliser"))
    interpreter.execute("run-to `prim::Loop/Loop`@7")
    parameters = [layer.name for layer in interpreter.session.debugger.machine.stack[-1].program.graph.parameters]
    tok, toks = (next(name for name in parameters if name.startswith(f"{word}.")) for word in ("tok", "toks"))
    interpreter.execute(f"labels {tok} {VOCABULARY} output")
    assert interpreter.execute(f"print {toks}").lines[-1] == "'2' '0' '2' '6' '-' '1' '1'"
    interpreter.execute(f"labels {toks}")
    assert not interpreter.session.debugger.labels.view()


def test_names_and_files_may_have_blanks(tmp_path: Path) -> None:
    net = Graph()
    count = net.parameter("count", "i64", (1,))
    net.result(net.apply("Add", count, net.constant(np.array([1], np.int64)), name="the [next] word"), "out")
    interpreter = Interpreter(Debugger(net.read(tmp_path), {"count": np.array([0], np.int64)}))
    interpreter.execute("step")
    file = tmp_path / "my words.txt"
    file.write_text("none\none\n", encoding="utf-8")
    said = interpreter.execute(f'labels `the [next] word` "{file}"').lines
    assert said == ("`the [next] word` has 2 labels",)
    assert interpreter.execute("print `the [next] word`").lines[-1] == "'one'"
    assert interpreter.execute("print `the [next] word`[0]").lines[-1] == "'one'"
    (tmp_path / "words.json").write_text(json.dumps({"my part": ["zero", "uno"]}), encoding="utf-8")
    interpreter.execute(f'labels `the [next] word` "{tmp_path / "words.json"}" "my part"')
    assert interpreter.execute("print `the [next] word`").lines[-1] == "'uno'"
    with pytest.raises(UsageError, match="in quotes"):
        interpreter.execute(f"labels `the [next] word` {file} out of words")


def test_a_session_keeps_labels(tmp_path: Path) -> None:
    interpreter = Interpreter(sample("date_normaliser"))
    interpreter.execute("run-to `prim::Loop/Loop`@7")
    interpreter.execute(f"labels `aten::argmax/Squeeze` {VOCABULARY} output")
    save_session(interpreter.session.debugger, tmp_path / "kept")
    twin = Interpreter(sample("date_normaliser"))
    twin.execute(f"labels id=53 {VOCABULARY} output")
    restore_session(twin.session.debugger, tmp_path / "kept")
    assert [len(words) for words in twin.session.debugger.labels.given().values()] == [11]
    twin.execute("run-to `aten::argmax/Squeeze`")
    assert twin.execute("print `aten::argmax/Squeeze`").lines[-1] == "'-'"
    twin.execute("labels `aten::argmax/Squeeze`")
    save_session(twin.session.debugger, tmp_path / "kept")
    restore_session(interpreter.session.debugger, tmp_path / "kept")
    assert not interpreter.session.debugger.labels.view()


def test_labels_are_put_back_on_other_inputs_too(tmp_path: Path) -> None:
    interpreter = Interpreter(sample("date_normaliser"))
    interpreter.execute("run-to `prim::Loop/Loop`@0")
    interpreter.execute(f"labels `aten::argmax/Squeeze` {VOCABULARY} output")
    save_session(interpreter.session.debugger, tmp_path / "kept")
    other = sample("date_normaliser")
    found, problems = restore_stops(other, tmp_path / "kept")
    assert not found.empty and not problems and len(other.labels.given()) == 1


@each_row("row", ['{"address": "`aten::argmax/Squeeze`", "words": {"blob": 1}}', '{"address": 1}'])
def test_labels_that_are_none_are_refused(tmp_path: Path, row: str) -> None:
    debugger = sample("date_normaliser")
    save_session(debugger, tmp_path / "kept")
    with sqlite3.connect(tmp_path / "kept") as connection:
        connection.execute("INSERT INTO kept VALUES ('labels', 0, ?, 0)", (row,))
        seal(connection)
    connection.close()
    with pytest.raises(SessionError):
        restore_session(debugger, tmp_path / "kept")
    found, problems = restore_stops(debugger, tmp_path / "kept")
    assert found.empty and len(problems) == 1
