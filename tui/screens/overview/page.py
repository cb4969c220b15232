"""The page of the overview: cards as lines, with labels, pictures on their axes, the cursor, and the value at it.

Only the lines in sight are built.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from stepper.debug.overview.facts import Overview, RunState
from stepper.tensors.pictures import Form
from stepper.wording import counted
from tui.paint.links import Destination, LinkText, linked
from tui.paint.rows import Row, clip, clip_end, overlaid, printable, shortened, spread, width_of
from tui.pictures.drawing import RowPicture, Strip, laid, put_rails, row_of, ruler_strips, way_in
from tui.screens.overview import around, words
from tui.screens.overview.arrangement import LOW, Shown, Wishes, widths
from tui.screens.overview.branches import MOST_ABOVE, ShownBranch, branch_rows
from tui.screens.overview.cards import Line, LinePart
from tui.screens.overview.cursor import Place, iterations_at
from tui.screens.overview.links import LinkOf, address_of_site, moment_link, nowhere, site_link
from tui.screens.overview.row_pictures import RowPictures, growth_at, value_at, way_of
from tui.theme import GLYPHS

if TYPE_CHECKING:
    from stepper.diagnosis.findings import Finding
    from stepper.engine.program import CompiledModel
    from stepper.ir.model import LayerSite
    from tui.pictures.axis import Axis
    from tui.pictures.palette import Palette
    from tui.screens.overview.beside_a import BesideA
    from tui.screens.overview.cards import Card


class PageLine(NamedTuple):
    """A line of the page, and the card and row that a click on it selects; on a `strip` it selects a run.

    With `columns` it selects an iteration, too. `once` and `twice` are what one click more does, and two. `branch` is
    the If that it selects, by its index.
    """

    row: Row
    card: int = -1
    line: int = -1
    strip: Axis | None = None
    columns: bool = False
    once: str = ""
    twice: str = "overview open"
    branch: int = -1


class Sight(NamedTuple):
    """The view of the page: cards as arranged, the cursor, the moments of the debugger and A, the terminal's size."""

    overview: Overview
    shown: Sequence[Shown]
    at: Place
    now: Sequence[Place]
    size: tuple[int, int]
    a: Sequence[Place] = ()
    compiled: CompiledModel | None = None
    beside_a: BesideA | None = None
    findings: Sequence[Finding] = ()
    extent: int = 0
    """Where A is drawn, an AExtent."""
    findings_key: str = ""
    """The key that leads to the list of findings."""
    branches: Sequence[ShownBranch] = ()
    branch: int | None = None
    """The If outside of loops at which the cursor is, by its index; None: it is on a card."""

    @property
    def is_running(self) -> bool:
        """True if the run is under way."""
        return self.overview.state is RunState.RUNNING

    @property
    def axis(self) -> Axis | None:
        """Return the axis on which the cursor is."""
        return axis_at(self.shown, self.at)


def axis_at(shown: Sequence[Shown], at: Place) -> Axis | None:
    """Return the axis on which a place is."""
    for one in shown:
        if one.place == at.card and at.run in one.runs:
            return one.axes[one.runs.index(at.run)]
    return None


class _PageBlock(NamedTuple):
    """Lines of the page that are built together when one of them is in sight."""

    height: int
    build: Callable[[], list[PageLine]]
    card: int = -1
    line: int = -1
    branch: int = -1


_VALUE: Final = 28
"""Cells that the value at the cursor takes at least."""


class Page:
    """Draws the cards for one sight."""

    def __init__(self, sight: Sight, wishes: Wishes, pictures: RowPictures, palette: Palette, width: int) -> None:
        self._sight, self._wishes, self._pictures, self._palette = sight, wishes, pictures, palette
        self._width, self._share = width, widths(*sight.size)
        self._at, self._is_low = sight.at, sight.size[1] < LOW
        reach = max((axis.reach for one in sight.shown for axis in one.axes), default=self._share.picture)
        picture = self._share.picture
        self._area = min(picture, max(reach, 40) + 1) if self._share.value else picture
        self.used = self._share.label + self._area + min(self._share.value, _VALUE)
        self._count = next(
            (iterations_at([one.card], sight.at._replace(card=0)) for one in sight.shown if one.place == sight.at.card),
            0,
        )
        self._blocks = self._made()

    @property
    def count(self) -> int:
        """Return how many lines the page has."""
        return sum(block.height for block in self._blocks)

    def selected(self) -> tuple[int, int]:
        """Return the first line of the selected row and the one behind its last; of its card where it is not shown."""
        begin, card = 0, (0, 0)
        for block in self._blocks:
            end = begin + block.height
            if self._sight.branch is not None:
                if block.branch == self._sight.branch:
                    return begin, end
            elif block.card >= 0 and (block.card, block.line) == (self._at.card, self._at.line):
                return begin, end
            if block.card == self._at.card and card == (0, 0):
                card = begin, end
            begin = end
        return card

    def hidden(self, first: int, count: int) -> Row:
        """Return how many loops and Ifs begin above these lines, and how many below them."""
        begins: dict[tuple[str, int], int] = {}
        at = 0
        for block in self._blocks:
            kind, one = ("loop", block.card) if block.card >= 0 else ("If", block.branch)
            if one >= 0:
                begins.setdefault((kind, one), at)
            at += block.height
        above = Counter(kind for (kind, _), line in begins.items() if line < first)
        below = Counter(kind for (kind, _), line in begins.items() if line >= first + count)
        told = [
            f"{counted(number, f'more {kind}')} {where}"
            for where, kinds in (("above", above), ("below", below))
            for kind, number in kinds.items()
        ]
        rest = self.count - first - count
        if not told and rest > 0:
            told = [f"{counted(rest, 'more line')} below"]
        return [(f"   … {', '.join(told)}" if told else "", "dim")]

    def lines(self, first: int, count: int) -> list[PageLine]:
        """Return some of the lines."""
        found: list[PageLine] = []
        begin = 0
        for block in self._blocks:
            end = begin + block.height
            if end > first and begin < first + count:
                built = block.build()
                found += built[max(first - begin, 0) : first + count - begin]
            begin = end
        return found

    def _made(self) -> list[_PageBlock]:
        """Return branches of the model's own graph, and the cards."""
        found: list[_PageBlock] = []
        if not self._sight.shown:
            found.append(_PageBlock(1, lambda: [PageLine(around.without_loops(self._sight.overview))]))
        branches = [
            _PageBlock(one.height, partial(self._branch, one), branch=one.branch) for one in self._sight.branches
        ]
        is_above = len(branches) <= MOST_ABOVE or not self._sight.shown
        found += branches if is_above else []
        was_listed = False
        for shown in self._sight.shown:
            if was_listed and not shown.is_listed and not self._is_low:
                found.append(_PageBlock(1, lambda: [PageLine([])]))
            found += self._card(shown)
            was_listed = shown.is_listed
        return found if is_above else [*found, *branches]

    def _branch(self, shown: ShownBranch) -> list[PageLine]:
        facts, is_on = self._sight.overview.branches[shown.branch], shown.branch == self._sight.branch
        rows = branch_rows(facts, shown.height, self._width, self._share.label, is_on=is_on)
        return [PageLine(row, branch=shown.branch) for row in rows]

    # --- a card --------------------------------------------------------------------------------------------------

    def _card(self, shown: Shown) -> list[_PageBlock]:
        place = shown.place
        if shown.is_listed:
            return [_PageBlock(1, lambda: [self._listed(shown)], place, shown.lines[0] if shown.lines else -1)]
        above = (
            (True, self._heading),
            (shown.has_ending, self._ending),
            (self._is_on(shown) and bool(told_on(shown.card, self._sight.findings)), self._finding),
            (shown.strip is not None, self._strip),
            (shown.has_ruler, self._ruler),
        )
        below = (
            (bool(shown.told), self._told),
            (bool(shown.folded), self._counted),
            (shown.has_body, self._body),
            (not self._is_low, self._blank),
        )
        return [
            *(self._block(shown, build) for is_there, build in above if is_there),
            *self._rows(shown),
            *(self._block(shown, build) for is_there, build in below if is_there),
        ]

    def _block(self, shown: Shown, build: Callable[[Shown], PageLine]) -> _PageBlock:
        return _PageBlock(1, lambda: [build(shown)], shown.place)

    def _rows(self, shown: Shown) -> Iterator[_PageBlock]:
        for line, height in zip(shown.lines, shown.heights, strict=True):
            if line in shown.aired:
                yield _PageBlock(1, partial(self._air, shown, line), shown.place)
            below = self._from_a(shown, line, height)
            lines = height + len(below)
            yield _PageBlock(lines, partial(self._line_rows, shown, line, height, below), shown.place, line)

    def _from_a(self, shown: Shown, place: int, height: int) -> list[Row]:
        """Return what stands of A below a row: its values, and where they differ; nothing on a low terminal."""
        beside, at, extent = self._sight.beside_a, self._at, self._sight.extent
        is_on = self._sight.branch is None and (shown.place, place) == (at.card, at.line)
        if beside is None or self._is_low or not (extent or is_on):
            return []
        line, label = shown.card.lines[place], self._share.label
        pad = f"   {_pad(shown)}"
        found: list[Row] = []
        if extent > 1:
            drawn = beside.picture(shown, line, height, self._wishes, self._palette)
            names = ["A", *[""] * (height - 1)]
            found = [
                [(pad, ""), (f"{name:<{label - len(pad)}}", "a"), *self._marked(shown, strips, on=is_on)]
                for name, strips in zip(names, drawn, strict=False)
            ]
        strip = beside.strip(shown, line, self._area)
        return [*found, [(pad, ""), (f"{'from A':<{label - len(pad)}}", "dim"), *strip]] if strip else found

    def _counted(self, shown: Shown) -> PageLine:
        return PageLine(words.folded(shown.card, shown.folded, len(_pad(shown))), shown.place, once="fold", twice="")

    def _body(self, shown: Shown) -> PageLine:
        return PageLine(shortened(words.body(shown.card), self._width), shown.place)

    def _blank(self, shown: Shown) -> PageLine:
        return PageLine([], shown.place)

    def _is_on(self, shown: Shown) -> bool:
        return shown.place == self._at.card and self._sight.branch is None

    def _told(self, shown: Shown) -> PageLine:
        pad, room = "   " + _pad(shown), self._width - 5 - len(_pad(shown))
        lines, letters = [shown.card.lines[k] for k in shown.told], self._share.label - 5
        told = " · ".join(f"{line.name} {line.words}" for line in lines)
        brief = " · ".join(f"{clip(line.name, letters)} {line.brief or line.words}" for line in lines)
        row: Row = [(pad, ""), (told if len(told) <= room else clip_end(brief, room), "dim")]
        return PageLine(row, shown.place, shown.told[0])

    def _heading(self, shown: Shown) -> PageLine:
        card, width, is_on = shown.card, self._width, self._is_on(shown)
        count = words.count_of(card.facts, is_running=self._sight.is_running)
        if not shown.has_ending:
            count = [*count, ("  ", ""), *words.ended_in_short(card)]
        head: Row = [(GLYPHS["focus"] if is_on else " ", "accent"), (_pad(shown), "")]
        room, whole = max(width // 3, 12), printable(card.facts.layer.name)
        head.append((whole if len(whole) <= room else clip(card.name, room), "title-on" if is_on else "title"))
        head += self._found(card)
        rest = width - width_of(head) - width_of(count) - 4
        head.append((words.about(card.facts, rest - 2), "dim"))
        return PageLine(spread(head, [*count, (" ", "")], width), shown.place)

    def _found(self, card: Card) -> Row:
        """Return how many findings are about the loop of a card; two clicks lead to their list."""
        mine = findings_about(self._sight.findings, card)
        if not mine:
            return []
        from tui.screens.lists.findings import found_words  # few pages have any

        text, tone = found_words(mine)
        return [("  ", ""), (LinkText(text, Destination("view findings")), tone)] if text else []

    def _finding(self, shown: Shown) -> PageLine:
        """Return which finding the gravest about the selected loop is; two clicks lead to their list."""
        from tui.screens.lists.findings import finding_row

        pad = f" {_pad(shown)}"
        row = linked(
            finding_row(
                told_on(shown.card, self._sight.findings), self._width - len(pad) - 1, self._sight.findings_key
            ),
            Destination("view findings"),
        )
        return PageLine([(pad, ""), *row], shown.place, twice="")

    def _ending(self, shown: Shown) -> PageLine:
        card, pad = shown.card, _pad(shown)
        labels = {card.facts.rows[line.row].inner.id: line.labels for line in card.lines if line.labels}
        run = self._at.run if self._is_on(shown) else shown.runs[-1] if shown.runs else 0
        which = words.which_run(card, run) if len(shown.runs) == 1 else []
        room = self._width - 2 - len(pad)
        ended = words.ended(
            card, self._sight.overview, run, labels, room=room - width_of(which), link=self._link_of(card, run)
        )
        return PageLine([(f" {pad}", ""), *shortened([*which, *ended], room)], shown.place, twice="overview ending")

    def _link_of(self, card: Card, run: int) -> LinkOf:
        """Return where names of operations lead in what ended a run of a loop: to its last iteration."""
        compiled, program = self._sight.compiled, card.program
        ending = card.runs[run].ending if run < len(card.runs) else None
        if compiled is None or program is None or ending is None or ending.iteration < 0:
            return nowhere
        around = next((one for one in compiled.programs if one.path == program.path[:-1]), compiled.main)

        def link(site: LayerSite) -> Destination | None:
            is_inside = any((one.layer.id, one.layer.name) == (site.id, site.name) for one in program.operations)
            if not is_inside:
                return site_link(around, site, compiled)
            return moment_link(f"goto {address_of_site(card, site, run, ending.iteration, compiled)}")

        return link

    def _listed(self, shown: Shown) -> PageLine:
        """Return a card as one line: its name, one picture, its iterations, what was found."""
        card, label = shown.card, self._share.label
        row: Row = [(f"  {clip(card.name, label - 3)}".ljust(label), "title")]
        if shown.lines:
            line = card.lines[shown.lines[0]]
            drawn = self._pictures.of(shown, line, 1, self._wishes, self._palette, label)
            row += row_of(laid(drawn.lines[0], self._area))
        ending: Row = [("  ", ""), *words.count_of(card.facts, is_running=self._sight.is_running), ("  ", "")]
        born, found = words.found_in(card), self._found(card)
        told = [*born, *(found if born else found[1:])]
        ending += told or words.ended_in_short(card)
        room = self._width - width_of(row)
        if not told and width_of(ending) > max(room, self._width // 2 if room < 20 else 0):
            ending = ending[: -1 - len(words.ended_in_short(card))]  # rather the count alone than half a word
        if room < 20:  # without a column for it, words stand over the end of the picture
            ending = shortened(ending, self._width // 2)
            row = shortened(row, self._width - width_of(ending) - 1)
            row = spread(row, ending, self._width)
        else:
            row = [*row, *shortened(ending, room)]
        return PageLine(row, shown.place, shown.lines[0] if shown.lines else -1, columns=True)

    def _marked(self, shown: Shown, strips: Sequence[Strip], *, on: bool, are_words: bool = False) -> Row:
        """Return strips as cells with the mark of the cursor, which never crosses words."""
        area = self._area
        if are_words:  # nothing stands at the right of them
            area = max(area, self._width - self._share.label - 1)
            strips = [(start, clip_end(text, max(area - start, 1)), token) for start, text, token in strips]
        cells = laid(strips, area)
        end = max((start + len(text) for start, text, _ in strips), default=0) if are_words else 0
        for one in self._sight.a:
            of_a = axis_at([shown], one)
            slot = None if of_a is None or not of_a.slots else of_a.slots[of_a.index_of(one.iteration)]
            if slot is not None and slot.start >= end:
                put_rails(cells, slot, self._palette, is_selected=on, is_a=True)
        if self._is_on(shown):
            axis = self._sight.axis
            index = -1 if axis is None else axis.index_of(self._at.iteration)
            if axis is not None and index >= 0 and axis.slots[index].start >= end:
                put_rails(cells, axis.slots[index], self._palette, is_selected=on)
        return row_of(cells)

    def _strip(self, shown: Shown) -> PageLine:
        """Return the runs of the loop, as long as each is, with the one that is shown."""
        card, axis, pad = shown.card, shown.strip, _pad(shown)
        strips: list[Strip] = []
        run = card.runs[shown.runs[0]].number if shown.runs and shown.runs[0] < len(card.runs) else 0
        assert axis is not None
        if card.facts.lengths is not None:
            strips += RowPicture([card.facts.lengths], axis).lines(card.facts.lengths, axis, 1, self._palette)[0]
        cells = laid(strips, self._area)
        if axis.slots:
            slot = axis.slots[axis.index_of(run)]
            for at in range(slot.start, min(slot.start + slot.width, len(cells))):
                cells[at] = cells[at][0], "now" if self._is_on(shown) else "accent"
        room = self._share.label - 1 - len(pad)
        row: Row = [(f" {pad}", ""), (f"{f'its {card.facts.runs:,} runs':<{room}}", "dim"), *row_of(cells)]
        return PageLine(row, shown.place, strip=axis)

    def _ruler(self, shown: Shown) -> PageLine:
        is_on, pad, at = self._is_on(shown), _pad(shown), self._at
        strips: list[Strip] = []
        for run, axis in zip(shown.runs, shown.axes, strict=True):
            cursor = at.iteration if is_on and run == at.run and axis.slots else None
            strips += ruler_strips(axis, cursor)
            for now in self._sight.now:
                if (now.card, now.run) == (shown.place, run) and axis.slots:
                    slot = axis.slots[axis.index_of(now.iteration)]
                    strips.append((slot.start if slot.width > 3 else slot.start - 1, GLYPHS["now"], "accent"))
        room = self._share.label - 1 - len(pad)
        row: Row = [
            (f" {pad}", ""),
            (f"{shown.card.facts.iteration_word:<{room}}", "dim"),
            *row_of(laid(strips, self._area)),
        ]
        if self._share.value and is_on and self._count:
            row.append((f"  at {at.iteration:,}", "accent"))
        return PageLine(row, shown.place, columns=True)

    def _air(self, shown: Shown, line: int) -> list[PageLine]:
        lines, pad = shown.card.lines, _pad(shown)
        index = shown.lines.index(line)
        group = lines[line].group
        text = group.heading if lines[shown.lines[index - 1]].group is not group else ""
        row: Row = [(f"   {pad}", ""), (f"{text:<{self._share.label - 3 - len(pad)}}", "dim")]
        return [PageLine([*row, *self._marked(shown, [], on=False)], shown.place, columns=True)]

    # --- a row ---------------------------------------------------------------------------------------------------

    def _line_rows(self, shown: Shown, place: int, height: int, below: list[Row]) -> list[PageLine]:
        line = shown.card.lines[place]
        is_on = self._is_on(shown) and place == self._at.line
        letters = self._share.label - 4 - len(_pad(shown))
        drawn = self._pictures.of(shown, line, height, self._wishes, self._palette, letters)
        names = self._names(line, letters, height, drawn.scale, drawn.unit)
        beside = self._beside_picture(shown, line, height)
        found = []
        for y in range(height):
            row = self._label(shown, line, names[y] if y < len(names) else [], is_on=is_on, is_first=y == 0)
            row += self._marked(shown, drawn.lines[y], on=is_on, are_words=line.form is Form.WORDS)
            if y < len(beside):
                row += [("  ", ""), *beside[y]]
            found.append(PageLine(row, shown.place, place, columns=True))
        return [*found, *(PageLine(row, shown.place, place, columns=True) for row in below)]

    def _label(self, shown: Shown, line: Line, name: Row, *, is_on: bool, is_first: bool) -> Row:
        width = self._share.label
        row: Row = [(GLYPHS["focus"] if is_on else " ", "accent"), (_pad(shown), "")]
        tone = "bad" if line.is_born else "accent" if is_on else "dim"
        row += [((line.glyph if is_first else " ") + " ", tone), *name]
        row = shortened(row, width - 1)
        row.append((" " * (width - width_of(row)), ""))
        return [row[0], *overlaid(row[1:], "cursor")] if is_on and is_first else row

    def _names(self, line: Line, room: int, height: int, scale: str, unit: str) -> list[Row]:
        """Return the lines of a label: name and shape, scale, how many numbers stand in how many lines.

        What asks for the side of an If stays: without it the sides would be read as its output.
        """
        bold = "strong" if line.form is not Form.WORDS else ""
        asks = line.part is LinePart.CHOICE
        beside = " ".join(part for part in (line.shape, line.note) if part)
        name = clip(line.name, room - len(beside) - 1 if asks and height == 1 else room)
        if line.note and max(len(name), 9) + 1 + len(beside) > room:
            beside = line.note
        if asks and not name:
            rows: list[Row] = [[(beside, "dim")]]
        elif not asks and (self._width < 100 or (height == 1 and len(name) + len(beside) + 1 > room)):
            rows = [[(name, bold)]]
        elif len(name) + len(beside) + 1 > room and height > 1:
            rows = [[(name, bold)], [(beside, "dim")]]
        else:
            pad = max(min(9, room - len(beside) - 1), len(name))
            rows = [[(f"{name:<{pad}}", bold), (f" {beside}", "dim")]]
        rows += [[(text, "dim")] for text in (scale, unit) if text]
        return rows

    def _beside_picture(self, shown: Shown, line: Line, height: int) -> list[Row]:
        """Return what stands at the right of a row: the value at the cursor in few numbers."""
        at, width, card = self._at, self._share.value, shown.card
        if not width or not self._is_on(shown) or line.form is Form.WORDS or not self._count:
            return []
        history, values = value_at(card, line, at, self._wishes)
        if line.form is Form.TRUTH:
            run = card.runs[at.run]
            holds = at.iteration < run.iterations - 1 or bool(run.condition)
            if history is not None and values is not None:
                holds = bool(values[0])
            yes, no = ("then", "else") if line.part is LinePart.CHOICE else ("true", "false")
            span = None if history is None else history.bin_of(at.iteration)
            some = "" if span is None or not holds else f" in some of {span[0]:,}–{span[1] - 1:,}"
            return [shortened([(yes if holds else no, ""), (some, "dim")], width - 1)]
        if history is None or values is None:
            return []
        strongest = words.strongest_of(history, at.iteration)
        if line.part is LinePart.GROWTH:
            return [_named([(growth_at(card, line, at, values), "")], strongest, width)]
        found = history.at(at.iteration)
        rows = (
            []
            if found is None
            else words.value_lines(
                line, history, values, found, width, height, way_in(history, way_of(self._wishes, card, line))
            )
        )
        if rows and strongest and (values.size == 1 or height == 1):
            rows = [_named(rows[0], strongest, width)]
        elif strongest:
            rows = [_named([], strongest, width), *rows][:height]
        place = next((text for text in words.place_of_slice(card, line, at.run, at.iteration) if len(text) < width), "")
        if place and rows:
            rows.insert(1 if values.size == 1 else 0, [(place, "dim")])
        if height == 1 and len(rows) > 1 and width_of(rows[0]) + width_of(rows[1]) + 2 <= width:
            return [[*rows[0], ("  ", ""), *rows[1]]]
        return [shortened(row, width - 1) for row in rows]


def findings_about(found: Sequence[Finding], card: Card) -> Sequence[Finding]:
    """Return the errors and warnings about the loop of a card, the gravest first."""
    if not any(one.spot.loop is not None for one in found):
        return ()
    from tui.screens.lists.findings import findings_of  # few pages have any

    return findings_of(found, card.facts.layer)


def _named(row: Row, strongest: Sequence[str], width: int) -> Row:
    """Return numbers at the cursor with what they are the largest of, in as many words as have room."""
    gap = "  " if row else ""
    short = strongest[-1] if strongest else ""
    text = next((one for one in strongest if width_of(row) + len(gap) + len(one) < width), short)
    return [*row, (f"{gap}{text}", "dim")] if text else row


def _pad(shown: Shown) -> str:
    return "  " * min(shown.depth, 3)


def told_on(card: Card, found: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings about the loop of a card but for births of NaN and Inf: what was found begins with these."""
    return [one for one in findings_about(found, card) if not one.is_birth]
