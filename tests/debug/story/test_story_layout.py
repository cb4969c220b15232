"""The strip in cells: nothing overlaps, every wire begins and ends at a chip, whatever the room."""

from __future__ import annotations

import itertools
import re

from stepper.debug.story.story_facts import Story, last_links
from stepper.debug.story.story_texts import reason
from stepper.debug.story.strip_layout import (
    CHIP,
    Options,
    Placement,
    cut_in_words,
    place,
)
from tests.debug.story.test_story import sample
from tests.tables import each_row

QUESTIONS = (
    ("rwkv_overflow", "wkv@8[0,3]"),
    ("rwkv_overflow", "mixed@11[0,0]"),
    ("date_normaliser", "end"),
    ("date_normaliser", "`aten::add/Add_3`@10[0,46]"),
    ("nested_loop", "sorted[2]"),
    ("nested_loop", "end"),
)


def asked(model: str, address: str) -> Story:
    run = sample(model)
    return run.story(ends=True) if address == "end" else run.story(address)


def ensure_wired(story: Story, placement: Placement) -> None:
    chips = {chip.link: chip for chip in placement.chips}
    assert set(chips) == set(range(len(story.links))) and len(placement.wires) == len(story.edges)
    for wire in placement.wires:
        edge = story.edges[wire.edge]
        source, target = chips[edge.source], chips[edge.target]
        (x0, y0), (x1, y1) = wire.points[0], wire.points[-1]
        assert y0 == source.y and source.x <= x0 <= source.x + CHIP
        assert y1 == target.y and target.x - 1 <= x1 <= target.x + CHIP
        assert all(a[0] == b[0] or a[1] == b[1] for a, b in zip(wire.points, wire.points[1:], strict=False))
        assert wire.dashed == (story.links[edge.source].column != story.links[edge.target].column)


@each_row(("model", "address"), QUESTIONS)
def test_no_chip_overlaps_and_every_wire_joins_two(model: str, address: str) -> None:
    story = asked(model, address)
    for options in (
        Options(),
        Options(width=160),
        Options(width=120, histories=False),
        Options(width=100, is_dense=True),
    ):
        placement = place(story, options)
        cells = [(x, chip.y) for chip in placement.chips for x in range(chip.x, chip.x + CHIP)]
        assert len(cells) == len(set(cells))
        columns = sorted((one.x, one.x + one.width) for one in placement.columns)
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(columns))
        assert len({chip.y for chip in placement.chips}) == len(story.rows)
        ensure_wired(story, placement)
        written = {(text.x + at, text.y) for text in placement.texts for at in range(len(text.text))}
        assert not written & set(cells), "nothing is written over a number"


def test_less_room_leaves_out_what_is_beside_the_path_first_then_reasons() -> None:
    story = asked("rwkv_overflow", "wkv@8[0,3]")
    beside, reasons = [], []
    for width in (200, 150, 110, 90):
        placement = place(story, Options(width=width))
        beside.append(sum(one.column is None for one in placement.columns))
        reasons.append(any(text.text == "exp(89.2) > f32" for text in placement.texts))
        assert {one.column for one in placement.columns} >= {0, 1}
    assert beside == sorted(beside, reverse=True) and beside[0] > 4 and beside[-1] == 0
    assert reasons[:3] == [True, True, True] and not reasons[-1]


@each_row(("model", "address"), QUESTIONS)
def test_a_reason_is_cut_between_words_never_in_a_number(model: str, address: str) -> None:
    story = asked(model, address)
    reasons = {word for link in story.links for word in (reason(link), *reason(link).split())}
    cut = set()
    for width in range(40, 140, 3):
        texts = place(story, Options(width=width, names=8)).texts
        for text in (one.text.strip() for one in texts if one.x > 20 and one.text.strip().endswith(("…", "…)"))):
            head = text.removesuffix("(…)").removesuffix("…").rstrip()
            rest = [one[len(head) :] for one in reasons if head and one.startswith(head)]
            assert not rest or any(not (head[-1].isdigit() and re.match(r"[0-9.,e\]]", one)) for one in rest), text
            cut |= {text} & {f"{head} …", f"{head}(…)"}
    assert cut or (model, address) not in QUESTIONS[:1]


def test_a_cut_text_keeps_whole_words_and_the_name_of_a_function() -> None:
    def shown(text: str, room: int) -> str:
        return cut_in_words(text, lambda one: len(one) <= room)

    assert [shown("exp(89.2) > f32", room) for room in (14, 11, 8, 5)] == [
        "exp(89.2) …",
        "exp(89.2) …",
        "exp(…)",
        "exp…",
    ]
    assert [shown("Σ of 8: [0,6] is 38%", room) for room in (19, 15, 8)] == [
        "Σ of 8: [0,6] is …",
        "Σ of 8: [0,6] …",
        "Σ of 8 …",
    ]
    assert [shown("1.08e38", 5), shown("embedded_state", 8), shown("[0,6]", 4)] == ["", "embedde…", ""]


def test_a_note_above_a_column_is_whole_beside_its_number_or_in_lines_below() -> None:
    story = asked("while_loop", "end")
    tall = []
    for width in (7000, 200, 60, None):
        placement = place(story, Options(width=width, context=False, histories=False))
        last = max((one for one in placement.columns if one.column is not None), key=lambda one: one.x)
        head = [text for text in placement.texts if text.y < placement.head and last.x <= text.x]
        lines = [text.text.strip() for text in sorted(head, key=lambda text: (text.y, text.x))]
        assert " ".join(lines[1:]) == "the condition is false"
        assert all(text.x + len(text.text) <= last.x + last.width for text in head)
        tall.append(placement.head)
    assert tall[0] == tall[-1] < tall[2]


def test_the_links_nearest_to_what_was_asked_are_the_last_to_go() -> None:
    story = asked("date_normaliser", "end")
    column = [link for link in story.links if link.column == story.links[story.asked].column]
    before: set[str] = set()
    for count in range(1, len(column) + 1):
        short = last_links(story, count)
        shown = {link.key for link in short.story.links}
        assert len(shown) == count == len(column) - short.farther and before < shown
        assert short.story.links[short.story.asked].key == story.links[story.asked].key
        before = shown
        ensure_wired(short.story, place(short.story))
    assert {link.key for link in column} == before
