"""Files that name which layers stand for each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepper.compare.align import read_pairs
from stepper.errors import InputError
from tests.tables import each_row


@each_row(
    "text",
    ["# which is which\nours = theirs\n\na/b=c/d # the second\n", '{"ours": "theirs", "a/b": "c/d"}'],
)
def test_lines_and_json_say_the_same(text: str, tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text(text)
    assert read_pairs(tmp_path / "pairs") == {"ours": "theirs", "a/b": "c/d"}


@each_row(
    ("content", "message"),
    [
        (b"ours = theirs\nnothing\n", "line 2"),
        (b"= x", "line 1"),
        (b'{"a": 1}', "object of names"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "UTF-8"),
        (None, "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_one_message_with_the_place(content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "pairs").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_pairs(tmp_path / "pairs")
