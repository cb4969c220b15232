"""Files that name which layers stand for each other, and constants of the two that differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.compare.align import described, read_pairs
from stepper.element_types import Array
from stepper.errors import InputError
from tests.models import Graph
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


@each_row(
    ("ours", "theirs", "text"),
    [
        (np.array([2**53, 1]), np.array([2**53 + 1, 1]), f"[0]: the value is {2**53} instead of {2**53 + 1}"),
        (np.array([2**63 - 1] * 2), np.array([2**63 - 2] * 2), f"{2**63 - 1} throughout instead of {2**63 - 2}"),
        (np.array([0, 2**63 - 1]), np.array([0, -(2**63)]), "(by 1.84e+19)"),
        (np.float32([np.nan, 1]), np.float16([np.nan, 1]), "has the type f32 instead of f16, the values are the same"),
        (np.uint32([2**31 - 2**22, 0]).view(np.float32) + 0, np.float32([-np.nan, 0]), "has NaN of other bits"),
    ],
)
def test_constants_are_described_by_their_own_numbers(ours: Array, theirs: Array, text: str, tmp_path: Path) -> None:
    graph = Graph()
    graph.result(graph.parameter("x"))
    consumer = graph.read(tmp_path).graph.layers[0]
    assert text in described(ours, theirs, consumer)
