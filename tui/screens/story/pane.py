"""The pane of a story: the strip (or the lanes, or the text) with a cursor, and the detail of the link at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace
from textual import events

from stepper.debug.causes.cause import LinkKind
from stepper.debug.causes.locations import address_at
from stepper.debug.causes.texts import element_text
from stepper.debug.overview.facts import RunState
from stepper.debug.story.facts import LinkRole, Story, StoryLink, StoryQuestion
from stepper.debug.story.strip.lanes import LaneLine, lane_lines
from stepper.debug.story.strip.layout import BORN, STOP, Options, place
from stepper.debug.story.texts import (
    column_text,
    entry_text,
    extent,
    factor_text,
    name_in_iteration,
    number,
    reason,
    story_lines,
    title,
    value_text,
    verdict,
)
from stepper.errors import UsageError
from stepper.query.address_syntax import Address, exact_name, without_element
from stepper.wording import counted
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, clip, clip_end, overlaid, shortened, spread, width_of, wrapped
from tui.screens.lists.topic import example_rows
from tui.screens.story.detail import detail_rows
from tui.screens.story.questions import AskPreview, AskStory
from tui.screens.story.strip import Strip, StripCursor
from tui.state import State
from tui.theme import GLYPHS

if TYPE_CHECKING:
    from stepper.debug.branches.edits import RunCourse

LEAST_WIDE: Final = 100
"""Columns from which on the strip has room."""
VIEWS: Final = ("strip", "lanes", "text")
_MORE: Final = 40
_DETAIL: Final = 8
_LEAST_DETAIL: Final = 4
_LOW_DETAIL: Final = 2
_TALL_DETAIL: Final = 9
_LEAST_TEXT: Final = 5
_LANES: Final = 8
_LONGEST_ELEMENT: Final = 12
_MOST_DETAIL: Final = 12
"""Rows of the detail below lanes, at most."""
_QUESTIONS: Final = (
    (":why x  :why x[0,3]@7", "why a value, an element of it, is what it is: the way back through the iterations"),
    (":why end  :why end my_loop", "why the run of a loop ended, once it has"),
    (":why shape of x", "where the shape of a value comes from"),
    (":uses x", "where a value goes: who reads it, which back edge carries it on"),
    ("0", "the overview of the run as far as it has come; x there goes to what was found, as the last change"),
)
"""What can be typed, and what that tells, where there is no story."""


class StoryPane(Pane):
    """Why a value is what it is, or why a loop ended: operations of the path by iterations."""

    kind: ClassVar[str] = "story"
    follows_selection: ClassVar[bool] = False
    help_text: ClassVar[str] = (
        "Down is the next operation, right the next iteration; a line is a value that went on, dashed: a back edge.\n"
        "A number on a tint is an element of the path, a grey one the same element in another iteration.\n"
        "o goes to the cause, O to the effect; Enter goes to that moment; + and - show more or fewer operands."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.story: Story | None = None
        self.question: StoryQuestion | None = None
        self.cursor: StripCursor | None = None
        self._view = ""
        self._strip: tuple[Story, int, int, Strip] | None = None
        self._told_story: Story | None = None
        self._refused = ""
        self._course: RunCourse | None = None
        self._lane_top = 0

    # --- asking --------------------------------------------------------------------------------------------------

    def ask(self, question: StoryQuestion) -> None:
        """Find out the answer, which is shown when it is there."""
        self.question, self._refused = question, ""
        line = f"why {question.address or 'end'}"
        self.host.driver.ask(AskStory(question), self._told, title=line, line=line)

    @property
    def is_expected(self) -> bool:
        """True while there is neither a story nor a word why there is none."""
        return self.question is not None and self.story is None and not self._refused

    def refuse(self, text: str) -> None:
        """Say why there is no answer."""
        self._refused = text
        self.changed()

    def _told(self, story: Story) -> None:
        """Take the answer, which is of the branch that is shown now."""
        self._told_story, self._course = story, self.state.course
        self._show(story)

    def _show(self, story: Story) -> None:
        """Show a story; the cursor stays on the same link where that is in it."""
        before = None if self.story is None or self.link is None else self.story.links[self.link].key
        self.story, self._strip = story, None
        again = next((k for k, link in enumerate(story.links) if link.key == before), None)
        self.cursor = self._first() if again is None else self._cursor_at(again)
        self.changed()
        self.host.show_keys()

    def _first(self) -> StripCursor | None:
        """Return the birth, else what was asked about."""
        story = self.story
        if story is None or not story.links:
            return None
        return self._cursor_at(min(story.births, key=lambda k: story.links[k].column, default=story.asked))

    def _cursor_at(self, number_of: int) -> StripCursor:
        story = self.story
        assert story is not None
        link = story.links[number_of]
        return StripCursor(link.row, story.columns[link.column].path, link.column)

    def update(self, state: State) -> None:
        """After an edit show what becomes of the same path; where the run goes again as it was told, the story.

        What the run had not come to when it was asked is asked again once the run is there.
        """
        before, had_run = self.state.course, _has_run(self.state)
        super().update(state)
        if self.story is None and self._refused and self.question is not None and _has_run(state) and not had_run:
            self.ask(self.question)
        if self._told_story is None or before == state.course:
            return
        if state.course == self._course:
            self._show(self._told_story)
        else:
            self._ask_preview(self._told_story)

    def _ask_preview(self, told: Story) -> None:
        """Find out what becomes of a story, and show it unless the run goes another way meanwhile."""
        course = self.state.course

        def show(story: Story) -> None:
            if self._told_story is told and self.state.course == course:
                self._show(story)

        self.host.driver.ask(AskPreview(told), show, title="what follows")

    def lines_before_edit(self, edited: Address) -> tuple[str, ...]:
        """Return the line that goes to where the value of an edit is computed, in the column of the cursor."""
        story, link = self.story, self._shown_link()
        if story is None or link is None or self.cursor is None:
            return ()
        name = "" if edited.operation is None else edited.operation.text
        address = address_at(link.location, self.host.driver.compiled)
        if address is None:
            return ()
        if self.link is None and address.levels:
            levels = (*address.levels[:-1], replace(address.levels[-1], iterations=self.cursor.path[-1]))
            address = replace(address, levels=levels)
        factors = [one.factor for one in link.operands if one.factor.name == name]
        rows = [row.layer.name for row in story.rows if row.name == name]
        operation = rows[0] if rows else factors[0].layer.name if factors else None
        if operation is not None:
            address = replace(address, operation=exact_name(operation), port=None)
        return (f"goto {address}",)

    # --- the cursor ----------------------------------------------------------------------------------------------

    @property
    def link(self) -> int | None:
        """Return the number of the link at the cursor; None beside the path."""
        if self.story is None or self.cursor is None or self.cursor.column is None:
            return None
        return self.story.at(self.cursor.row, self.cursor.column)

    @property
    def chosen_address(self) -> str:
        """The element at the cursor."""
        story, cursor = self.story, self.cursor
        if story is None or cursor is None:
            return ""
        link = self._shown_link()
        if link is None:
            return ""
        address = address_at(link.location, self.host.driver.compiled)
        if address is None:
            return ""
        levels = list(address.levels)
        if self.link is None and levels and cursor.path:
            levels[-1] = replace(levels[-1], iterations=cursor.path[-1])
        element = link.element if self.link is not None else story.rows[cursor.row].element
        return str(replace(address, levels=tuple(levels), index=element or ()))

    def _shown_link(self) -> StoryLink | None:
        """Return the link at the cursor, else one of its row."""
        story, cursor = self.story, self.cursor
        if story is None or cursor is None:
            return None
        if self.link is not None:
            return story.links[self.link]
        return next((link for link in story.links if link.row == cursor.row), None)

    def put(self, cursor: StripCursor) -> None:
        """Move the cursor."""
        self.cursor = cursor
        self.changed()

    def move(self, way: str, count: int = 1) -> None:
        """Move the cursor by cells, or along the path. UsageError where there is nothing further."""
        story = self.story
        if story is None or self.cursor is None:
            raise UsageError("there is no story here; why ADDRESS asks for one")
        if way in ("cause", "effect"):
            for _ in range(count):
                self._walk(way)
        elif self.shown_view != "strip" and way in ("up", "down"):
            self._in_list(count if way == "down" else -count)
        elif way in ("up", "down"):
            row = self.cursor.row + (count if way == "down" else -count)
            self.put(self.cursor._replace(row=max(0, min(row, len(story.rows) - 1))))
        else:
            self._sideways(count if way == "right" else -count)

    def _walk(self, way: str) -> None:
        """Go to what it is made of, the largest share first, or to what is made of it."""
        story, here = self.story, self.link
        assert story is not None
        if here is None:
            self.cursor = self._first()
            self.changed()
            return
        if way == "cause":
            found = [edge.source for edge in story.into(here)]
        else:
            found = [edge.target for edge in story.out_of(here)]
        if not found:
            raise UsageError(_why_no_further(story, here) if way == "cause" else "this is what was asked about")
        self.put(self._cursor_at(found[0]))

    def _in_list(self, by: int) -> None:
        story = self.story
        assert story is not None
        order = [line.link for line in lane_lines(story) if line.link is not None]
        here = order.index(self.link) if self.link in order else 0
        self.put(self._cursor_at(order[max(0, min(here + by, len(order) - 1))]))

    def _sideways(self, by: int) -> None:
        story, cursor = self.story, self.cursor
        assert story is not None and cursor is not None
        if self._strip is not None and self.shown_view == "strip":
            places = [(one.path, one.column) for one in self._strip[3].placement.columns]
        else:
            places = [(column.path, k) for k, column in enumerate(story.columns)]
        here = (cursor.path, cursor.column)
        at = places.index(here) if here in places else 0
        path, column = places[max(0, min(at + by, len(places) - 1))]
        self.put(StripCursor(cursor.row, path, column))

    # --- what the keys do ----------------------------------------------------------------------------------------

    def line_to_open(self) -> str:
        """Return the line that goes to the moment of the cursor."""
        link = None if self.story is None or self.link is None else self.story.links[self.link]
        if link is not None and link.kind is LinkKind.FAILED:  # the run never gets to after it
            return f"goto tick {link.tick}"
        address = self.chosen_address
        return f"goto {without_element(address)}" if address else ""

    def zoom_by(self, by: int) -> None:
        """Follow more operands of the link at the cursor, or fewer."""
        if self.question is None or self.link is None:
            return
        key = self.story.links[self.link].key if self.story is not None else ""
        wider = dict(self.question.wider)
        wider[key] = wider.get(key, 0) + by
        self.ask(replace(self.question, wider=tuple(sorted(wider.items()))))

    def fold(self) -> str:
        """Show moves and equal iterations singly, or folded again."""
        if self.question is None:
            return "there is no story yet"
        self.ask(replace(self.question, unfolds=not self.question.unfolds))
        return ""

    def go_on(self) -> bool:
        """Look for more links; False where there are none."""
        if self.story is None or self.question is None or not self.story.pending:
            return False
        self.ask(replace(self.question, links=self.question.links + _MORE))
        return True

    @property
    def shown_view(self) -> str:
        """Return which view is shown: as chosen, else what there is room for."""
        return self._view or ("strip" if self.size.width >= LEAST_WIDE else "lanes")

    def look_on(self, direction: int) -> None:
        """Show the next view."""
        self._view = VIEWS[(VIEWS.index(self.shown_view) + direction) % len(VIEWS)]
        self.changed()

    def text(self) -> str:
        """Return the story as plain text."""
        if self.story is None:
            raise UsageError("there is no story here")
        return "\n".join(story_lines(self.story))

    def scroll_rows(self, by: int) -> None:
        """The wheel moves the cursor."""
        if self.cursor is not None:
            self.move("down" if by > 0 else "up", 1)

    # --- drawing -------------------------------------------------------------------------------------------------

    def visible_lines(self, width: int, height: int) -> list[Row]:
        """Return head, strip and detail."""
        story = self.story
        if story is None:
            words = (
                "looking back …" if self.question is not None else "why ADDRESS, or why end, tells where it comes from"
            )
            if not self._refused:
                return _filled([[], [("  ", ""), (words, "dim")]], height)
            said: list[Row] = [[("  ", ""), (line, "bad")] for line in wrapped(self._refused, width - 4)]
            return _filled([[], *said, [], *example_rows("what can be asked", _QUESTIONS, width)], height)
        lines = self._head(story, width, height)
        room = height - len(lines)
        if self.shown_view == "text" or not story.links:
            lines += [[("  ", ""), (part, "")] for line in story_lines(story)[2:] for part in wrapped(line, width - 3)]
        elif self.shown_view == "lanes":
            lines += self._lane_rows(story, width, room)
        else:
            lines += self._strip_rows(story, width, room)
        return _filled([shortened(row, width) for row in lines], height)

    def _head(self, story: Story, width: int, height: int) -> list[Row]:
        is_low = height < 30
        head: Row = [
            (GLYPHS["focus"] if self.has_focus else " ", "accent"),
            (" why ", "title-on"),
            (title(story), "title"),
        ]
        note = extent(story, max(0, width - width_of(head) - 4))
        lines: list[Row] = [] if is_low else [[]]
        lines.append(spread(head, [(f"{note} ", "note")], width))
        told, more = verdict(story)
        tone = "edit" if story.is_preview else "bad" if story.births else "strong"
        sentence = f"{told}{more}"
        has_room = not is_low or (self.shown_view == "lanes" and len(lane_lines(story)) + _LOW_DETAIL + 4 <= height)
        if len(sentence) + 3 <= width or not has_room:
            lines.append([("  ", ""), (told, tone), (more, "")])
        else:
            parts = wrapped(sentence, width - 3)[:2]
            lines.append([("  ", ""), (parts[0][: len(told)], tone), (parts[0][len(told) :], "")])
            lines += [[("  ", ""), (part.strip(), "")] for part in parts[1:]]
        return lines if height < 34 else [*lines, []]

    def _strip_rows(self, story: Story, width: int, room: int) -> list[Row]:
        wanted = _DETAIL if width >= 140 else _LEAST_DETAIL
        tall = (3 if len(story.loops) > 1 else 2) + 2 * len(story.rows)
        least = min(wanted, room // 3)
        height = max(3, room - (least if tall <= room - least else min(_LOW_DETAIL, least)))
        strip = self._placed(story, width, height)
        rows = strip.rows(width, min(height, strip.placement.height), self.cursor)
        left = room - len(rows)
        rule = self._rule(width) if left > _LEAST_DETAIL else []
        told = self._as_text(story, width) if left >= _TALL_DETAIL + _LEAST_TEXT else []
        if not told:
            return [*rows, *rule, *self._detail(story, width, left - len(rule))]
        detail = self._detail(story, width, max(_TALL_DETAIL, left - 2 - len(told)))
        return [*rows, *rule, *detail, *self._rule(width), *told]

    @staticmethod
    def _as_text(story: Story, width: int) -> list[Row]:
        """Return the story in sentences, in as many columns as fit, for what room is left below."""
        lines = story_lines(story)[2:]
        wide = min(width - 4, max(map(len, lines), default=0) + 4)
        count = max(1, min((width - 2) // max(wide, 1), 3))
        tall = -(-len(lines) // count)
        return [
            [
                ("  ", ""),
                *(
                    (clip_end(line, wide - 2).ljust(wide), "" if line[:1] == " " else "strong")
                    for line in lines[k::tall]
                ),
            ]
            for k in range(tall)
        ]

    @property
    def _lines_above(self) -> int:
        story = self.story
        return 0 if story is None else len(self._head(story, self.size.width, self.size.height))

    def _placed(self, story: Story, width: int, height: int) -> Strip:
        known = self._strip
        if known is not None and known[0] is story and known[1:3] == (width, height):
            return known[3]
        placement = place(story, Options(width=width, height=height, histories=width >= 140))
        strip = Strip(story, placement, plain=self.host.look.plain)
        self._strip = story, width, height, strip
        return strip

    def _rule(self, width: int) -> list[Row]:
        return [[("─" * width, "faint")]]

    def _detail(self, story: Story, width: int, room: int) -> list[Row]:
        link = self._shown_link()
        if link is None or room < 1:
            return []
        if self.link is not None:
            return detail_rows(story, link, width, room)
        cursor = self.cursor
        assert cursor is not None
        row = story.rows[cursor.row]
        places = {path: k for k, path in enumerate(story.iterations)}
        known = row.history[places[cursor.path]] if cursor.path in places and row.history else None
        name = f"{name_in_iteration(row.name, cursor.path, story.loop_names)}{element_text(row.element)}"
        head: Row = [(GLYPHS["focus"], "accent"), (f" {name}", "title-on")]
        return [[*head, ("   not on the path", "note")], [("  ", ""), (number(known), "strong")]]

    # --- lanes ---------------------------------------------------------------------------------------------------

    def _lane_rows(self, story: Story, width: int, room: int) -> list[Row]:
        lines = lane_lines(story)
        detail = max(min(2, max(0, room - 6)), min(room - len(lines) - 1 - bool(story.pending), _MOST_DETAIL))
        shown = room - (detail + 1 if detail else 0)
        here = next((k for k, line in enumerate(lines) if line.link is not None and line.link == self.link), 0)
        top = self._lane_top = max(0, min(here - shown // 2, len(lines) - shown))
        lanes = max(_LANES, max((len(line.cells) for line in lines), default=0) + 1)
        wide = max(7, *(min(len(element_text(one.element)) + 1, _LONGEST_ELEMENT) for one in story.links), 7)
        rows = [self._lane_row(story, line, lanes, wide) for line in lines[top : top + shown]]
        if story.pending and len(rows) < shown:
            rows.append([("     ", ""), (f"… {story.pending} more, not looked at: :story more", "dim")])
        if detail:
            rows += [*self._rule(width), *self._detail(story, width, detail)]
        return rows

    def _lane_row(self, story: Story, line: LaneLine, lanes: int, wide: int) -> Row:
        column = story.columns[line.column]
        label = column_text(column)
        if len(column.path) > 1:
            label = f"{'>'.join(map(str, column.path[:-1]))}>{label}"
        opens = line.link is None or line.opens
        mark = label if opens else ""
        tone = "now" if opens and column.path == story.present else "strong"
        cells: Row = [(cell.text, "bad-thin" if cell.bad else "fresh") for cell in line.cells]
        head: Row = [("  ", ""), (mark[:9], tone), (" " * max(1, 3 - len(mark)), ""), *cells]
        head.append((" " * max(1, lanes - len(line.cells) + (3 - max(3, len(mark) + 1))), ""))
        if line.link is None:
            return [*head, *_backs(story, line)]
        link = story.links[line.link]
        name = story.rows[link.row].name
        value = value_text(link)
        chip = f"[{value:>9}]" if self.host.look.plain else f"{value:>10} "
        token = "badbg" if link.role is LinkRole.BORN else "bad-chip" if link.is_bad else "chip"
        told = entry_text(link.entry) if link.entry is not None else reason(link)
        word = (
            BORN if link.role is LinkRole.BORN else f" {STOP} " if link.role is LinkRole.ASKED and link.is_bad else ""
        )
        row: Row = [
            *head,
            (f"{clip(name, 16):<17}", "strong"),
            (f"{clip(element_text(link.element), wide - 1):<{wide}}", "dim"),
            (chip, "now" if line.link == self.link and token == "chip" else token),
            (f"  {told}  ", "strong" if link.role is not LinkRole.PATH else "dim"),
            (word, "badbg" if link.role is LinkRole.BORN else "bad"),
        ]
        if line.link != self.link:
            return row
        lit = [cell if cell[1] in ("badbg", "bad-chip", "now") else overlaid([cell], "cursor")[0] for cell in row]
        return [(GLYPHS["focus"], "accent cursor"), (" ", "cursor"), *lit[1:]]

    # --- the mouse -----------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor, two go there."""
        story = self.story
        place_of = event.get_content_offset(self)
        if story is None or place_of is None or not story.links:
            super().on_click(event)
            return
        y = place_of.y - self._lines_above
        if self.shown_view == "lanes" and story.pending and y + self._lane_top == len(lane_lines(story)):
            event.stop()
            self.post_line("story more")
            return
        found = self._under(place_of.x, y)
        if found is None:
            return
        event.stop()
        self.put(found)
        if event.chain >= 2:
            self.post_line("story open")

    def _under(self, x: int, y: int) -> StripCursor | None:
        story = self.story
        assert story is not None
        if self.shown_view == "lanes":
            lines = lane_lines(story)
            y += self._lane_top
            line = lines[y] if 0 <= y < len(lines) else None
            return None if line is None or line.link is None else self._cursor_at(line.link)
        if self.shown_view != "strip" or self._strip is None:
            return None
        strip, width = self._strip[3], self.size.width
        placement = strip.placement
        rows = [row for row, line in enumerate(placement.row_lines) if line <= y < line + placement.pitch]
        x += strip.offset(width, self.cursor) if x >= placement.names else 0
        columns = [one for one in placement.columns if one.x <= x < one.x + one.width]
        if not rows or self.cursor is None:
            return None
        column = columns[0] if columns else None
        at = self.cursor if column is None else StripCursor(rows[0], column.path, column.column)
        return at._replace(row=rows[0])


def _has_run(state: State) -> bool:
    """True if the run behind the overview is there, as far as it goes by itself."""
    return state.overview is not None and state.overview.state not in (RunState.NOT_RUN, RunState.RUNNING)


def _why_no_further(story: Story, link: int) -> str:
    """Return why there is no cause to go to: it begins here, or what is behind was not looked at."""
    more = story.links[link].unfollowed
    if not more:
        return "the story begins here"
    names = factor_text(more[0].factor) + (f" and {counted(len(more) - 1, 'other')}" if len(more) > 1 else "")
    pending = f", :story more follows {story.pending:,}" if story.pending else ""
    return f"{names} {'were' if len(more) > 1 else 'was'} not followed further: + follows it{pending}"


def _backs(story: Story, line: LaneLine) -> Row:
    """Return the names of the back edges over which a column got something, with what they carried."""
    row: Row = []
    values = {number(story.links[edge.source].value) for edge in line.backs}
    for place_of, edge in enumerate(line.backs):
        assert edge.back is not None
        source = story.links[edge.source]
        row += [(" and " if place_of else "", "dim")]
        row.append((f"{GLYPHS['back']} {edge.back.name}", "bad" if source.is_bad else "strong"))
        if len(values) > 1:
            row.append((f" {number(source.value)}", ""))
    if len(values) == 1:
        row.append(
            (f", {'both ' if len(line.backs) == 2 else 'all ' if len(line.backs) > 2 else ''}{values.pop()}", "dim")
        )
    return row


def _filled(rows: list[Row], height: int) -> list[Row]:
    return [*rows[:height], *([] for _ in range(height - len(rows)))]
