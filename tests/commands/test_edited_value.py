"""Which value a line behind `set` changes, read as the command reads it."""

from __future__ import annotations

from stepper.commands.edit_commands import edited_value
from tests.tables import each_row


@each_row(
    ("line", "name", "index"),
    [
        ("key[0,3] = 80", "key", (0, 3)),
        ("`a = b`[1]=[1, 2]", "a = b", (1,)),
        ("`x[0]@3` = h@2[1] + 1", "x[0]@3", ()),
        ("id=17 = 3", "17", ()),
        ("outer@3::h@2 = 1", "h", ()),
        ("condition_next = false", "condition_next", ()),
    ],
)
def test_names_are_those_of_the_grammar(line: str, name: str, index: tuple[int, ...]) -> None:
    found = edited_value(line)
    assert found is not None and found.operation is not None
    assert found.operation.text == name and found.index == index


@each_row("line", ["trip-count = 3", "condition of decode = true", "h", "h == 3", "", "= 3", "h[ = 3"])
def test_what_is_of_a_loop_or_no_edit_changes_no_value(line: str) -> None:
    assert edited_value(line) is None
