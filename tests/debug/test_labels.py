"""Labels of a vocabulary: read from the file that the user names, shown where the numbers of a value are printed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stepper.debug.commands import Interpreter
from stepper.debug.labels import LARGEST_FILE, label_of, labelled, read_labels
from stepper.errors import UsageError
from tests.debug.debugged import SAMPLES, sample

VOCABULARY = SAMPLES / "date_normaliser" / "vocab.json"


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("content", "key", "says"),
    [
        ("[1, 2]", "", "no list of labels"),
        ('{"a": -1}', "", "no list of labels"),
        ('{"a": 999999999}', "", "no list of labels"),
        ('["a"]', "key", "no list of labels"),
        ("{", "", "no JSON"),
        ("[" * 100_000, "", "no JSON"),
    ],
)
def test_what_is_no_list_of_labels_is_refused(tmp_path: Path, content: str, key: str, says: str) -> None:
    (tmp_path / "labels.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=says):
        read_labels(tmp_path / "labels.json", key)


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
