"""The model of the sheet: frames, their rows and table in the worker, the cursor, filter and order."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.causes.cause_texts import word_of
from stepper.debug.loop_runs import address_in_run
from stepper.debug.overview.overview_facts import Birth
from stepper.debug.provenance.operation_at import address_at, program_of
from stepper.debug.story.story_facts import Story, StoryQuestion
from stepper.debug.table.columns import SheetColumn, SheetRequest, SheetSort, SheetView
from stepper.debug.table.row_sets import RowSet, RowsFound, SheetFrame, SheetQuestion, frames_around, same_outer
from stepper.debug.table.sheets import Sheet, SheetLook
from stepper.diagnosis.rule import Finding
from stepper.diagnosis.texts import sentence
from stepper.element_types import Indices
from stepper.engine.program import CompiledModel, Program
from stepper.errors import UsageError
from stepper.ir.model import Layer
from stepper.query.address_resolution import Target, resolve
from stepper.query.address_syntax import Address, parse_address
from stepper.query.known_names import Hit, found_in_all_levels
from stepper_tui.paint.rows import layer_name, printable
from stepper_tui.screens.sheet.questions import (
    CheckFilter,
    CopySheet,
    FoundCell,
    GoInside,
    InspectCell,
    InspectedCell,
    LookAt,
    OpenedSheet,
    OpenSheet,
    PlaceOf,
    ReadOn,
    SaveSheet,
    SearchSheet,
)
from stepper_tui.state import ShowAgain, State
from stepper_tui.worker.driver import Driver

if TYPE_CHECKING:
    from stepper.debug.moments.spread import SpreadCells
    from stepper_tui.app import StepperApp

_GIVEN = ("Parameter", "Result", "Loop", "TensorIterator")
_PLAIN = (RowSet.CARRIED, RowSet.ALL)
_OFF = "off"
_NEWEST = 2**40
"""A place in time that is behind any: the cursor stays at the last that is known."""
_CONDITION = re.compile(r"[<>=!]|^(nan|inf)\b|^\[", re.IGNORECASE)
_FIRST = OpenSheet(None)
_MORE = 40
"""Links that are looked for beyond those of a path."""
_BESIDE = 6
"""Rows above and below those in sight that are asked for, too."""


class SheetLevel(Struct, eq=False):
    """Rows that were opened, those that are `coming` until a part of them is seen; `asks`: others are on their way.

    The cursor is at a `place` in time, counted among those that pass, and on a `row`.

    It goes to the `wanted` place as soon as that is read. `top` is the first row in sight, `first` the first place
    that is wide.
    """

    opened: OpenedSheet | None = None
    coming: OpenedSheet | None = None
    look: SheetLook | None = None
    asks: bool = False
    place: int = 0
    wanted: int | None = None
    row: int = 0
    top: int = 0
    first: int = -1
    sort: SheetSort | None = None
    filter: str = ""
    problem: str = ""

    @property
    def aim(self) -> int:
        """The place of the cursor, also where it is not read yet."""
        return self.place if self.wanted is None else self.wanted


def any_run(program: Program) -> SheetFrame:
    """Return the frame of a graph in the first run of the loops around it."""
    return SheetFrame(program, (None,) * max(len(program.path) - 1, 0))


def birth_address(birth: Birth, compiled: CompiledModel) -> str:
    """Return the address of the element in which a NaN or Inf first appears; empty for an input."""
    address = address_at(birth.cause.location, compiled)
    return "" if address is None else str(replace(address, index=birth.cause.element))


class SheetModel:
    """Content of the panes of the sheet. Whoever changes anything has them painted: `changed` is called.

    `looked` is called when the closer look at the cell of the cursor is known.
    """

    def __init__(
        self, host: StepperApp, changed: Callable[[], None], looked: Callable[[], None], say: Callable[[str, str], None]
    ) -> None:
        self._host, self._changed, self._looked, self._say = host, changed, looked, say
        self._begin(OpenSheet(None))
        self.room, self.window = 20, (0, 1)
        self.bounds: Indices = ()
        """Bounds of the narrow parts of time; `room`: rows in sight, `window`: places in time that are wide."""

    def _begin(self, first: OpenSheet) -> None:
        self.levels = [SheetLevel(wanted=_NEWEST)]
        self._inspected: tuple[object, InspectedCell] | None = None
        self.is_moved = False
        """True if the cursor was moved since the run was: the run follows it when it is to go on."""
        self._is_placed = False
        """True if it was put where the run stands, and not to a finding since."""
        self._follows_birth = True
        self._asked: tuple[object, ...] | None = None
        self._inspecting: tuple[object, ...] | None = None
        self._is_reading, self._sought = False, ""
        self.is_expected = True
        """True while an answer is on its way without which the next key would mean something else."""

    @property
    def _driver(self) -> Driver:
        return self._host.driver

    # --- what is there -----------------------------------------------------------------------------------------------

    @property
    def level(self) -> SheetLevel:
        """The rows in front."""
        return self.levels[-1]

    @property
    def view(self) -> SheetView | None:
        """The part of the table that is known; None before the first answer."""
        return None if self.level.look is None else self.level.look.view

    @property
    def found(self) -> RowsFound | None:
        """The rows, and where they come from."""
        return None if self.level.opened is None else self.level.opened.found

    @property
    def found_in_view(self) -> RowsFound | None:
        """The rows that the known part is of; None while that is still of other rows."""
        view, found = self.view, self.found
        return found if view is not None and found is not None and view.topic is found.topic else None

    @property
    def story(self) -> Story | None:
        """The path that the rows show."""
        return None if self.found is None else self.found.story

    @property
    def frame(self) -> SheetFrame | None:
        """The graph whose values stand in the rows."""
        return None if self.found is None else self.found.question.frame

    @property
    def path(self) -> Sequence[SheetFrame]:
        """The frames from the model's own graph inwards."""
        return () if self.frame is None else frames_around(self.frame, self._driver.compiled)

    @property
    def at(self) -> SheetColumn | None:
        """The row of the cursor."""
        view = self.view
        return None if view is None or self.level.row >= len(view.columns) else view.columns[self.level.row]

    @property
    def _layer_of_row(self) -> Layer | None:
        view, column = self.view, self.at
        return None if view is None or column is None else view.topic.values[column.value].target.layer

    @property
    def layer_here(self) -> int | None:
        """The operation of the row of the cursor, by its layer's id."""
        layer = self._layer_of_row
        return None if layer is None else layer.id

    @property
    def iteration(self) -> int | None:
        """The iteration of the cursor, if it is known."""
        view, level = self.view, self.level
        if view is None:
            return None
        if 0 <= level.place - view.top < len(view.iterations):
            return view.iterations[level.place - view.top]
        is_plain = level.sort is None and not level.filter
        return level.place + view.begin if is_plain and level.place < view.passed else None

    @property
    def number(self) -> object:
        """The number in the cell of the cursor; None: there is none."""
        view = self.view
        numbers = () if view is None else view.numbers.get(self.level.row, ())
        place = 0 if view is None else self.level.place - view.top
        return numbers[place] if 0 <= place < len(numbers) else None

    @property
    def is_none(self) -> bool:
        """True if the run of the loop had no iteration."""
        return self.view is not None and self.view.complete and not self.view.total

    # --- opening -----------------------------------------------------------------------------------------------------

    def open(self, first: OpenSheet = _FIRST) -> None:
        """Have the first rows of a run made."""
        self._begin(first)
        self._open(first, self.level)

    def show(self, request: OpenSheet) -> None:
        """Show other rows; Esc comes back."""
        view, iteration = self.view, self.iteration
        cursor = None if view is None or iteration is None else (view.topic.body, iteration)
        self._open(replace(request, cursor=cursor), SheetLevel())

    def _open(
        self,
        request: OpenSheet,
        level: SheetLevel,
        then: Callable[[], None] = lambda: None,
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        self.is_expected, root = True, self.levels[0]
        self._is_placed = self._is_placed and request.story is None

        level.asks = True

        def opened(found: OpenedSheet | UsageError) -> None:
            level.asks = False
            if self.levels[0] is not root:
                return  # other rows were asked for since
            if isinstance(found, UsageError):
                self.is_expected = False
                if otherwise is not None:
                    otherwise()
                    return
                if level.opened is None and level is self.levels[0]:
                    level.problem = str(found)
                else:
                    self._say(str(found), "bad")
                self._changed()
                return
            is_first, level.coming, level.problem = level.opened is None, found, ""
            if level not in self.levels:
                self.levels.append(level)
            is_first |= found.found.story is not None or found.found.changes is not None
            if is_first and found.iteration is not None:
                level.wanted = max(found.iteration - found.sheet.topic.begin, 0)
            then()
            if found.found.changes is not None:
                self._driver.adjust(ShowAgain())  # what differs is known now, for the headline, too
            self.refresh(anew=True)
            self._read()

        asked = "" if request.story is None else f"why {request.story.address}"
        self._driver.ask(request, opened, line=asked or f"sheet {request.text}" * bool(request.text))

    def show_next_rows(self) -> None:
        """Show the next set of rows that there is."""
        sets = list(RowSet)
        if self.found is not None:
            at = sets.index(self.found.question.rows)
            self._show_first([*sets[at + 1 :], *sets[:at]])

    def _show_first(self, sets: Sequence[RowSet]) -> None:
        """Show the first of these sets that has any rows."""
        if sets:
            self.show_rows(sets[0], lambda: self._show_first(sets[1:]))

    def show_rows(self, rows: RowSet, otherwise: Callable[[], None] | None = None) -> None:
        """Show another set of rows of this frame; of what the cursor is on its path or elements."""
        frame = self.frame
        if frame is None:
            return
        if rows not in (RowSet.WHY, RowSet.ELEMENTS):
            self._replace(SheetQuestion(frame, rows), otherwise)
            return

        address = str(self.address()) if rows is RowSet.WHY else self._value_here
        self._replace(SheetQuestion(frame, rows, address), otherwise)

    def _replace(self, question: SheetQuestion, otherwise: Callable[[], None] | None = None) -> None:
        level, before = self.level, self.at
        name = "" if before is None else self._name_here

        def keep() -> None:
            level.top, level.wanted = 0, level.place if level.wanted is None else level.wanted
            self._wanted_row = "" if question.rows in (RowSet.WHY, RowSet.CHANGED) else name

        level.sort = None
        self._open(OpenSheet(question), level, keep, otherwise)

    def ask(self, question: StoryQuestion) -> None:
        """Show the path that answers a question why."""
        self.level.sort, self.level.filter = None, ""
        self._open(OpenSheet(None, story=question), self.level)

    def widen(self, by: int) -> None:
        """Follow more operands of the value of the cursor on its path, or fewer."""
        story, found = self.story, self.found
        if story is None or found is None or found.question.story is None:
            raise UsageError("no path stands in the rows (o)")
        asked, name = found.question.story, self._name_here
        link = next((one for one in story.links if story.rows[one.row].name == name and one.column >= 0), None)
        if link is None:
            raise UsageError("the value of the cursor is not on the path")
        wider = dict(asked.wider)
        wider[link.key] = wider.get(link.key, 0) + by
        links = asked.links + (_MORE if story.pending and by > 0 else 0)
        self.ask(replace(asked, wider=tuple(sorted(wider.items())), links=links))

    @property
    def _name_here(self) -> str:
        view, column = self.view, self.at
        return "" if view is None or column is None else view.topic.values[column.value].name

    _wanted_row: str = ""
    _wanted_layer: Layer | None = None
    _finding: int | None = None
    _plain: RowSet = RowSet.CARRIED
    """The set of all values of a graph that was shown last, to which Esc comes back from the others."""

    def go_into(self) -> bool:
        """Go into the loop or the If of the row, of a tensor show its elements; False for a single number."""
        frame, column, view, iteration = self.frame, self.at, self.view, self.iteration
        if frame is None or column is None or view is None or iteration is None:
            raise UsageError("there is no value here")
        layer = view.topic.values[column.value].target.layer
        if layer.bodies:
            place = 0 if layer.is_loop else self.level.place
            self._driver.ask(GoInside(frame, layer.id, iteration), partial(self._went_into, place))
        elif column.index is None:
            self._push(SheetQuestion(frame, RowSet.ELEMENTS, self._value_here), self.level.place)
        return bool(layer.bodies) or column.index is None

    def _went_into(self, place: int, frame: SheetFrame) -> None:
        rows = self.found.question.rows if self.found is not None else RowSet.ALL
        self._push(SheetQuestion(frame, rows if rows in (RowSet.CARRIED, RowSet.ALL) else RowSet.ALL), place)

    def _push(self, question: SheetQuestion, place: int) -> None:
        self._open(OpenSheet(question), SheetLevel(wanted=place))

    def go_out(self) -> bool:
        """Go out of what was gone into; False on the outermost graph."""
        if len(self.levels) > 1:
            self.levels.pop()
            self.refresh(anew=True)
            self._changed()
            return True
        found, around, layer = self.found, self.path[:-1], self._layer_of_row
        if found is not None and found.question.rows not in _PLAIN:
            self._come_to(found.question.frame, self._plain, layer, self.iteration or 0)
            return True
        if not around:
            return False
        inner = self.path[-1]
        place = max(inner.outer[-1] or 0, 0) if inner.outer and around[-1].program.path else 0
        self._come_to(around[-1], RowSet.ALL, inner.program.path[-1], place)
        return True

    def _come_to(self, frame: SheetFrame, rows: RowSet, layer: Layer | None, place: int) -> None:
        """Show the rows of a frame, the cursor on the row of a layer."""
        self.levels = [SheetLevel(wanted=place)]
        self._wanted_layer = layer
        self._open(OpenSheet(SheetQuestion(frame, rows)), self.level)

    # --- reading -----------------------------------------------------------------------------------------------------

    def refresh(self, *, anew: bool = False) -> None:
        """Ask for the part that is seen, unless that was asked for; `anew`: the run stands elsewhere, or grew."""
        level = self.level
        opened = level.coming or level.opened
        if opened is None:
            return
        first, end = self.window
        request = SheetRequest(
            top=first,
            rows=end - first,
            columns=tuple(range(max(level.top - _BESIDE, 0), level.top + self.room + _BESIDE)),
            sort=level.sort,
            filter=level.filter,
            detail=level.row if level.coming is None else level.coming.found.row,
            bins=self.bounds,
        )
        key = (id(level), request)
        if anew or key != self._asked:
            self._asked = key
            self._driver.ask(
                LookAt(opened.sheet, request, self.iteration), lambda look: self._seen(level, opened, look)
            )

    def _seen(self, level: SheetLevel, opened: OpenedSheet, look: SheetLook) -> None:
        if opened is not (level.coming or level.opened):
            return  # others are coming
        if level.coming is not None:
            level.opened, level.coming, level.row = opened, None, opened.found.row
            if opened.found.question.rows in _PLAIN:
                self._plain = opened.found.question.rows
        level.look, self.is_expected = look, not (look.view.columns or look.view.complete)
        if level is not self.level:
            return
        if self._wanted_layer is not None and look.view.columns:
            level.row, self._wanted_layer = self._row_of(self._wanted_layer) or 0, None
        if self._wanted_row and look.view.columns:
            wanted, self._wanted_row = self._wanted_row, ""
            columns, values = look.view.columns, look.view.topic.values
            level.row = next((k for k, one in enumerate(columns) if values[one.value].name == wanted), level.row)
        last, aim = look.view.passed - 1, level.aim
        level.place = max(0, min(aim, last))
        level.wanted = aim if aim > last and not look.view.complete else None
        level.row = max(0, min(level.row, len(look.view.columns) - 1))
        self._changed()
        self._inspect()

    def _read(self) -> None:
        opened = self.level.coming or self.level.opened
        if self._is_reading or opened is None:
            return
        self._is_reading = True
        self._driver.ask(ReadOn(opened.sheet), self._has_read, gives_way=True)

    def _has_read(self, more: bool) -> None:
        self._is_reading = False
        self.refresh(anew=True)
        if more:
            self._read()

    def run_moved(self, state: State, *, by_iteration: bool) -> None:
        """Put the cursor where the run stands; a movement `by_iteration` leaves it in its row, where it has one."""
        self._is_placed = True
        self.is_moved, self._inspecting = False, None
        frame, level = (state.frames[-1] if state.frames else None), self.level
        if frame is None or level.opened is None:
            self.changed_course()
            return
        outer = tuple(one.iteration for one in state.frames[1:-1])
        inside = [one.iteration for one in state.frames[1:] if one.iteration is not None]
        place = inside[-1] if inside else 0
        layer = frame.layers[frame.moment] if 0 <= frame.moment < len(frame.layers) else None
        row, found, own = self._row_of(layer), level.opened.found, self.frame
        is_here = own is not None and own.program is frame.program and same_outer(own.outer, outer)
        is_plain = not level.sort and not level.filter
        stays = row is not None or by_iteration or level.asks or found.question.rows is RowSet.ELEMENTS
        if is_here and is_plain and stays:
            level.wanted = max(place - found.topic.begin, 0)
            level.row = level.row if row is None or by_iteration else row
            self.refresh(anew=True)
            return
        rows = found.question.rows if by_iteration and found.question.rows is RowSet.CARRIED else RowSet.ALL
        self._come_to(SheetFrame(frame.program, outer), rows, layer, place)

    def _row_of(self, layer: Layer | None) -> int | None:
        """Return the row of an operation, by its layer; of several the one of the cursor."""
        view = self.view
        if view is None or layer is None:
            return None
        rows = [k for k, one in enumerate(view.columns) if view.topic.values[one.value].target.layer is layer]
        return self.level.row if self.level.row in rows else next(iter(rows), None)

    def changed_course(self) -> None:
        """Read anew: the run takes another course, or has come further."""
        self._inspecting, level = None, self.level
        level.wanted = level.place if level.wanted is None else level.wanted
        self.refresh(anew=True)
        self._read()

    def look_again(self) -> None:
        """Look closely at the cell of the cursor again: more is known of the run."""
        self._inspecting = None
        self._inspect()

    def findings_known(self, findings: Sequence[Finding]) -> None:
        """Go to the first finding of the run, if the cursor has not moved, and no NaN or Inf comes first."""
        told = (one for one in findings if one.address and one.iterations and not one.is_birth)
        shown = [one for one in told if one.spot.layer is not None and one.spot.layer.type not in _GIVEN]
        if shown and self._follows_birth and not self.is_moved and self.view is not None and len(self.levels) == 1:
            self._follows_birth = self._is_placed = False
            self.go_to_address(shown[0].address)
            self.is_moved = False

    def births_known(self, births: Sequence[Birth]) -> None:
        """Have rows of operations in which NaN and Inf first appear; a cursor that has not moved goes to the first."""
        found, compiled = self.found, self._driver.compiled
        if found is None or not births or found.question.rows is not RowSet.CARRIED or len(self.levels) > 1:
            return
        first = births[0].cause.location
        program = program_of(first, compiled)
        if self.is_moved or not self._follows_birth or first.operation is None:
            self.show_rows(RowSet.CARRIED)
            return
        self._follows_birth = self._is_placed = False
        outer = tuple(one.iteration for one in first.path[:-1])
        layer = program.graph.by_id[first.operation.id]
        self._come_to(SheetFrame(program, outer), RowSet.CARRIED, layer, first.iteration or 0)

    @property
    def inspected(self) -> InspectedCell | None:
        """The cell of the cursor, looked at closely; None before that is known."""
        found = self._inspected
        return None if found is None or found[0] != self._cell_here else found[1]

    @property
    def _cell_here(self) -> tuple[int, int, int] | None:
        """The key of the cell of the cursor; None where it has no number."""
        opened, iteration = self.level.opened, self.iteration
        if opened is None or self.at is None or iteration is None or self.number is None:
            return None
        return id(opened), self.level.row, iteration

    def _inspect(self) -> None:
        opened, key = self.level.opened, self._cell_here
        if opened is None or key is None or key == self._inspecting:
            return
        self._inspecting = key

        def seen(found: InspectedCell | None) -> None:
            if key != self._inspecting:
                return
            if found is None:  # something else went first
                self._inspecting = None
                self._inspect()
            else:
                self._inspected = key, found
                self._looked()

        self._driver.ask(InspectCell(opened.sheet, *key[1:]), seen, gives_way=True)

    # --- the cursor --------------------------------------------------------------------------------------------------

    def move(self, down: int, across: int) -> None:
        """Move the cursor by so many rows, and places in time."""
        level, view = self.level, self.view
        if view is None:
            return
        level.row = max(0, min(level.row + down, len(view.columns) - 1))
        aim = max(0, (level.place if level.wanted == _NEWEST else level.aim) + across)
        level.place = max(0, min(aim, view.passed - 1))
        is_pending = level.wanted is not None and level.place < aim
        level.wanted = _NEWEST if across >= _NEWEST else aim if is_pending else None
        self.is_moved = True
        self._say("", "dim")
        self._changed()
        self.refresh()
        self._inspect()

    def go_to(self, place: int, row: int | None = None) -> None:
        """Put the cursor on a place in time, and a row."""
        level = self.level
        level.place, level.wanted, level.row = place, None, level.row if row is None else row
        self.move(0, 0)

    # --- order, filter, search ---------------------------------------------------------------------------------------

    def sort(self, *, descending: bool, row: int | None = None) -> None:
        """Order the iterations by the row of the cursor; if that is how it is, as they ran."""
        level = self.level
        wanted = SheetSort(level.row if row is None else row, descending)
        if wanted == level.sort:
            level.sort = None
            self._keep_iteration()
        else:
            level.sort, level.place = wanted, 0
            self.refresh(anew=True)

    def filter(self, text: str) -> None:
        """Show only the iterations in which a condition holds; all of them where it is empty, or `off`.

        A condition that cannot be read changes nothing.
        """
        level, opened = self.level, self.level.opened
        wanted = "" if text.strip().lower() == _OFF else text

        def put(_checked: None = None) -> None:
            level.filter = wanted
            self._keep_iteration()

        if wanted and opened is not None:
            self._driver.ask(CheckFilter(opened.sheet, wanted), put)
        else:
            put()

    def _keep_iteration(self) -> None:
        level, iteration = self.level, self.iteration
        self.refresh(anew=True)
        if iteration is not None and level.opened is not None:
            question = PlaceOf(level.opened.sheet, iteration, level.sort, level.filter)
            self._driver.ask(question, lambda place: self.go_to(place or 0))

    def search(self, text: str, *, backward: bool = False) -> None:
        """Go to an operation by name or type, of any graph, or to the next iteration where a condition holds.

        Empty: what was sought last.
        """
        level, column = self.level, self.at
        self._sought = text or self._sought
        if not self._sought or level.opened is None:
            raise UsageError("nothing was sought yet: / seeks a name, a type, or a condition such as > 5 or x[0] > 5")
        hits = [] if _CONDITION.search(self._sought) else found_in_all_levels(self._driver.compiled, self._sought)
        if hits:
            self._go_to_hit(hits, backward=backward, is_new=bool(text))
            return
        name = "" if column is None else column.name
        after, begin = level.place, _NEWEST if backward else -1
        question = SearchSheet(level.opened.sheet, self._sought, name, after, level.sort, level.filter, backward)

        def found(cell: FoundCell) -> None:
            if cell.column is None and cell.place is None:  # nothing further: from the other end
                self._driver.ask(replace(question, after=begin), self._found)
            else:
                self._found(cell)

        self._driver.ask(question, found)

    def _go_to_hit(self, hits: list[Hit], *, backward: bool, is_new: bool) -> None:
        """Go to the one that follows the cursor; a new search prefers those of that very name."""
        compiled, sought = self._driver.compiled, self._sought
        view, column = self.view, self.at
        here = None if view is None or column is None else view.topic.values[column.value].target
        order = {id(program): place for place, program in enumerate(compiled.programs)}
        frame = self.frame
        present = (-1, -1)
        if here is not None:  # which may be in another graph than the frame, as a step of a path
            present = order[id(here.program)], here.program.indices.get(here.layer.id, -1)
        exact = [hit for hit in hits if is_new and sought in (hit.layer.name, hit.result, layer_name(hit.layer))]
        listed = sorted(exact or hits, key=lambda hit: (order[id(hit.program)], hit.index))
        places = [(order[id(hit.program)], hit.index) for hit in listed]
        behind = [k for k, place in enumerate(places) if (place < present if backward else place > present)]
        at = (behind[-1] if backward else behind[0]) if behind else (len(listed) - 1 if backward else 0)
        hit = listed[at]
        is_here = frame is not None and frame.program is hit.program
        inside = frame if frame is not None and is_here else any_run(hit.program)
        self._come_to(inside, RowSet.ALL, hit.layer, (self.iteration if is_here else 0) or 0)
        self._say(f"{hits.index(hit) + 1:,} of {len(hits):,}: {printable(hit.layer.name)}, {hit.layer.type}", "dim")

    def go_to_difference(self, cells: SpreadCells) -> None:
        """Go to the first difference from a reference, if the cursor has not moved."""
        if not self.is_moved:
            self._follows_birth = self._is_placed = False
            self._come_to(SheetFrame(cells.program, cells.outer), RowSet.CHANGED, None, 0)

    def seek_finding(self, *, backward: bool) -> None:
        """Go to the next place where something was found: where NaN or Inf begins, or a rule does not hold."""
        state, compiled = self._host.state, self._driver.compiled
        births = () if state.overview is None else state.overview.births
        found = [(one.tick, birth_address(one, compiled), word_of(one.cause.kind)) for one in births]
        found += [
            (one.tick, one.address, sentence(one)) for one in state.lists.findings if one.address and not one.is_birth
        ]
        if not found:
            checked = ", ".join(state.lists.checked)
            self._say(f"nothing was found{f'; checked: {checked}' if checked else ''}", "dim")
            return
        found.sort(key=lambda one: one[0])
        at = 0 if backward else -1
        if self._finding is not None:
            at = self._finding
        elif self.at is not None and self.iteration is not None:
            targets = [self._target(one) for one in (self.moment, *(one for _tick, one, _told in found))]
            here, *places = [(target.layer, target.iterations) for target in targets]
            at = places.index(here) if here in places else at
        at = (at + (-1 if backward else 1)) % len(found)
        self._finding = at
        _, address, told = found[at]
        self.go_to_address(address)
        self._say(f"{at + 1:,} of {len(found):,}: {told}", "edit")

    def go_to_address(self, address: str) -> None:
        """Put the cursor on a value in an iteration, wherever the run stands. UsageError for what is no address."""
        found, own, target = self.found, self.frame, self._target(address)
        steps = [one if isinstance(one, int) else None for one in target.iterations]
        frame, inside = SheetFrame(target.program, tuple(steps[:-1])), [one for one in steps if one is not None]
        place, row, rows = (inside[-1] if inside else 0), self._row_of(target.layer), RowSet.CARRIED
        is_here = own is not None and own.program is frame.program and same_outer(own.outer, frame.outer)
        if is_here and found is not None and row is not None and self.level.sort is None and not self.level.filter:
            self.level.wanted, self.level.row = max(place - found.topic.begin, 0), row
            self.refresh(anew=True)
        else:
            rows = RowSet.ALL if is_here or row is None else rows
            self._come_to(frame, rows, target.layer, place)
        self.is_moved = True

    def _target(self, address: str) -> Target:
        """Return the value that an address means, without an element. UsageError for what is no address."""
        return resolve(replace(parse_address(address), index=()), self._driver.compiled)

    def go_to_body(self, program: Program) -> None:
        """Show the rows of a graph."""
        self._come_to(any_run(program), RowSet.CARRIED, None, 0)

    def _found(self, found: FoundCell) -> None:
        if found.column is not None or found.place is not None:
            self.go_to(self.level.place if found.place is None else found.place, found.column)
        else:
            self._say(f"nothing further: {self._sought}", "dim")

    # --- what leaves it ----------------------------------------------------------------------------------------------

    def copy(self, then: Callable[[str], None]) -> None:
        """Have the rows as CSV, an iteration a line."""
        level = self.level
        self._driver.ask(CopySheet(self._sheet(), self._all_rows(), level.sort, level.filter), then)

    def save(self, path: str, then: Callable[[int], None]) -> None:
        """Have the rows written into a file, an iteration a line."""
        level = self.level
        self._driver.ask(SaveSheet(self._sheet(), path, self._all_rows(), level.sort, level.filter), then)

    def _all_rows(self) -> Indices:
        return tuple(range(0 if self.view is None else len(self.view.columns)))

    def address(self) -> Address:
        """Return the address of the cell of the cursor. UsageError where there is none."""
        view, column, iteration = self.view, self.at, self.iteration
        if view is None or column is None or iteration is None:
            raise UsageError("there is no value here")
        body = view.topic.body
        made = address_in_run(
            view.topic.values[column.value].address, body, view.outer, iteration if body.path else None
        )
        return replace(made, index=column.index or ())

    @property
    def _value_here(self) -> str:
        """The address of the value of the cursor over all iterations. UsageError where there is none."""
        return str(replace(self.address(), iterations=None, index=()))

    @property
    def moment(self) -> str:
        """The address of the moment of the cursor, without an element."""
        return str(replace(self.address(), index=()))

    def lead(self) -> tuple[str, ...]:
        """Return the line that has the run go to the cursor, which follows it from there, also before it has moved."""
        line = self.line_to_moment
        self.is_moved, self._is_placed = False, True
        return line

    @property
    def line_to_moment(self) -> tuple[str, ...]:
        """The line that has the run go to the cursor; none where it stands there."""
        state, iteration, wanted = self._host.state, self.iteration, self.level.wanted
        if not self.is_moved and wanted is not None and wanted < _NEWEST:
            return ()  # the cursor is on its way to where the run stands
        frame = state.frames[-1] if state.frames else None
        if self._is_placed and not self.is_moved:
            return ()  # it was put where the run stands
        if frame is not None and self.frame is not None and frame.program is self.frame.program:
            is_there = 0 <= frame.moment < len(frame.layers) and frame.layers[frame.moment].id == self.layer_here
            if is_there and frame.iteration in (None, iteration):
                return ()
        return (f"goto {self.moment}",)

    def _sheet(self) -> Sheet:
        if self.level.opened is None:
            raise UsageError("the sheet is not read yet")
        return self.level.opened.sheet
