"""The pane of the overview: cards on one axis of time, a cursor by row and iteration, the selected value below."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final
from weakref import WeakKeyDictionary

import numpy as np
from msgspec.structs import replace
from textual import events
from textual.widget import Widget

from stepper.debug.causes.cause import NonFiniteKind
from stepper.debug.overview.facts import Overview, RowKind, RunState, branches_outside
from stepper.debug.overview.programs import program_around
from stepper.errors import StepperError, UsageError
from stepper.tensors.histories import ValueHistory, bucket_begins
from stepper.tensors.pictures import Form
from stepper.wording import counted
from tui.keys.keymap import key_for
from tui.paint.links import Destination, linked
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, shortened, spread, width_of
from tui.pictures.drawing import WAYS, column, first_bad, form_on, has_ways, next_scale, next_way
from tui.screens.overview import around
from tui.screens.overview.around import has_sequences
from tui.screens.overview.arrangement import LOW, ListedCards, Shown, Wishes, arranged, is_as_whole, lines_used, widths
from tui.screens.overview.branches import MOST_ABOVE, branch_detail, branches_shown
from tui.screens.overview.cards import LinePart
from tui.screens.overview.cursor import (
    NOWHERE,
    Place,
    beside,
    bounded,
    findings,
    first_picture,
    first_place,
    iterations_at,
    line_at,
    moments,
    on_row,
    passed,
    place_of,
    places_of_run,
    run_near,
)
from tui.screens.overview.detail import detail, failure_detail
from tui.screens.overview.lines import cards_of, input_letters
from tui.screens.overview.links import (
    NO_LINKS,
    PortLine,
    address,
    condition_address,
    layer_address_in,
    line_to_port,
    port_links,
    value_address,
)
from tui.screens.overview.page import Page, PageLine, Sight, axis_at, told_on
from tui.screens.overview.row_pictures import RowPictures, value_at
from tui.worker.requests import GoOnWithOverview, ShowOverview

if TYPE_CHECKING:
    from stepper.debug.iterations.far_runs import LoopOfRun
    from stepper.debug.story.facts import StoryQuestion
    from stepper.element_types import Array
    from stepper.engine.program import CompiledModel, Program
    from tui.screens.overview.beside_a import BesideA
    from tui.screens.overview.cards import Card, Line, RowKey
    from tui.state import State
    from tui.worker.driver import Driver

_TALL: Final = 50
"""Lines of the terminal from which on the values of A stand below those of now."""
_YOUNG: Final = 1.0
"""Seconds of a run in which nothing is drawn beside its cards, which still grow."""


_kept_wishes: Final[WeakKeyDictionary[Driver, Wishes]] = WeakKeyDictionary()
"""What was chosen for the rows of a run, also when the screen is opened anew."""


class OverviewPane(Pane):
    """Everything that is known of the run, iterations from left to right."""

    DEFAULT_CSS = "OverviewPane { height: 1fr; padding: 0; }"
    kind: ClassVar[str] = "overview"
    shows_handed_on: ClassVar[bool] = True
    follows_selection: ClassVar[bool] = False
    help_text: ClassVar[str] = (
        "Each loop is a card; column k is what iteration k made: verdict, back edges, outputs, slices.\n"
        "What entered the loop stands once at the left. Zero is the ground; N and I are NaN and Inf.\n"
        "The moment of the debugger stays where it is until Enter goes to the cursor's."
    )

    def __init__(self, host: Host, share: Callable[[], None], *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._share = share
        self.needed = self.used = sys.maxsize
        """Lines that everything takes, as tall as the rows may be."""
        self._shared: tuple[int, int, Program | None] = sys.maxsize, sys.maxsize, None
        self.overview: Overview | None = None
        self._cards: list[Card] = []
        self._compiled: CompiledModel | None = None
        """The model of which the cards are; that of the driver may be opened in another form by now."""
        self._letters: dict[int, tuple[str, ...]] = {}
        self._links = NO_LINKS
        self._listed: ListedCards
        self._at = NOWHERE
        self._branch: int | None = None
        """The If outside of loops at which the cursor is, by its index; None: it is on a card."""
        self._is_placed = self._is_at_failure = self._is_chosen = False
        self._tick = 0
        self._follows = True
        self._reads = False
        self._driver: Driver | None = None
        """The driver that was asked for the facts."""
        self._wishes = Wishes(set(), {}, {}, {})
        self._pictures = RowPictures()
        self._shown: list[Shown] = []
        self._visible: list[PageLine] = []

    # --- what is known -------------------------------------------------------------------------------------------

    def _have_shown(self) -> None:
        """Have the facts shown, and the run made unless that was ruled out."""
        if not self.host.driver.is_closed:
            self.host.driver.adjust(ShowOverview(True, self.host.runs is not False))

    def on_unmount(self) -> None:
        """Nobody looks any longer."""
        if self.host.driver.is_open and not self.host.driver.is_closed:
            self.host.driver.adjust(ShowOverview(False, False))

    def update(self, state: State) -> None:
        """The run may be another one, as after an edit; then it is made anew."""
        labels, self.state = self.state.labels, state
        known, driver = state.overview, self.host.driver
        if state.view is not None and driver is not self._driver:
            if self._driver is not None:  # another run, perhaps of another form of the model
                self._is_placed = False
            self._driver = driver
            self._wishes = _kept_wishes.setdefault(driver, self._wishes)
            self.call_after_refresh(self._have_shown)  # the screen is painted first
        if known is not None:
            self._take(known, driver.compiled, is_other=labels != state.labels)
        elif self.is_without_run:
            self.call_after_refresh(self._read_file)
        self._go_with_moment()
        self.changed()

    @property
    def is_without_run(self) -> bool:
        """True if inputs are to be chosen before there is a run."""
        return self.host.inputs is not None and self.state.view is None and not self.host.driver.is_open

    def _read_file(self) -> None:
        """Have what the file says shown, when it is to be seen: not below the inputs."""
        if self.screen.is_current and self.is_without_run and not self._reads:
            self._reads = True
            self.run_worker(self._read, thread=True, exit_on_error=False)

    def _read(self) -> None:
        """Find out, in a thread, what the file says; what is wrong with that is said when the model is to be run."""
        from stepper.debug.overview.runs import overview_without_run  # few models are opened without inputs
        from stepper.engine.compiler import compile_model

        choices = self.host.inputs
        assert choices is not None
        with suppress(StepperError):
            compiled = compile_model(choices.opening.model)
            self.app.call_from_thread(self._take_file, compiled, overview_without_run(compiled))

    def _take_file(self, compiled: CompiledModel, overview: Overview) -> None:
        """Show the cards of a model that does not run yet."""
        if self.is_without_run:
            self._take(overview, compiled)
            self.changed()
            self.host.show_keys()

    def _go_with_moment(self) -> None:
        """Put the cursor where the debugger has moved to, if that is in a loop: once the run has come there."""
        if self._tick_now == self._tick:
            return
        now = next(iter(self._now), None)
        if now is not None:
            is_same = now.card == self._at.card
            self._at = bounded(self._cards, now._replace(line=self._at.line) if is_same else now)
            # While the run goes on, what a row shows may still become a picture: it is placed anew when more is known.
            is_known = self.overview is not None and self.overview.state is not RunState.RUNNING
            self._is_placed, self._is_at_failure, self._follows = self._is_placed or is_known, False, False
        is_young = self.state.iteration is not None and not self.is_at_end
        if now is not None or not is_young:
            self._tick = self._tick_now

    @property
    def _tick_now(self) -> int:
        return 0 if self.state.stop is None else self.state.stop.tick

    @property
    def is_at_end(self) -> bool:
        """True if the run that is shown has come to its end."""
        return self.overview is not None and self.overview.state in (RunState.FINISHED, RunState.FAILED)

    def run(self) -> None:
        """Have the run made, or go on with it."""
        self._follows = True
        self.host.driver.adjust(GoOnWithOverview())

    def grew(self, overview: Overview) -> None:
        """More is known."""
        self._take(overview, self.host.driver.compiled)
        self._go_with_moment()
        self.changed()

    def _take(self, overview: Overview, compiled: CompiledModel, *, is_other: bool = False) -> None:
        if overview is self.overview and not is_other:
            return
        before = self.overview  # no picture need have been shown while it ran
        ran = before is not None and (before.state is RunState.RUNNING or overview.ticks > before.ticks)
        goes_on = self._follows and (overview.state is RunState.RUNNING or (ran and self._is_placed))
        self.overview, key = overview, self._key
        self._pictures.clear()
        labels, self._compiled = self.state.labels, compiled
        self._cards = cards_of(overview, compiled, labels)
        self._letters = input_letters(overview, compiled, labels)
        self._links = port_links(overview, self._cards)
        self._listed = ListedCards(overview, self._cards)
        if self._is_placed:
            self._at = self._with_row(key)
        elif self._cards and overview.state is not RunState.NOT_RUN:
            self._at = first_place(self._cards, self._now)
            self._is_placed = overview.looked_through and overview.state is not RunState.RUNNING
            self._is_at_failure = overview.failure is not None
        elif overview.state is not RunState.NOT_RUN:
            self._is_at_failure = overview.failure is not None and not self._is_chosen
        self._at = bounded(self._cards, self._at)
        outside = branches_outside(overview)
        if self._branch not in outside or (self._cards and not self._is_chosen):
            self._branch = None if self._cards else next(iter(outside), None)
        if goes_on:
            newest = max(len(self._cards[self._at.card].runs) - 1, 0) if self._cards else 0
            self._at = self._at._replace(run=newest)
            self._at = self._at._replace(iteration=max(iterations_at(self._cards, self._at) - 1, 0))

    def _with_row(self, key: RowKey) -> Place:
        """Return the cursor on the row of this key, which may stand elsewhere now that more is known."""
        at, cards = self._at, self._cards
        if at.card >= len(cards):
            return at
        card = cards[at.card]
        return at._replace(line=next((k for k, line in enumerate(card.lines) if card.key(line) == key), at.line))

    # --- the cursor ----------------------------------------------------------------------------------------------

    @property
    def at(self) -> Place:
        """The cursor."""
        return self._at

    @property
    def cards(self) -> Sequence[Card]:
        """The cards, in their order."""
        return self._cards

    @property
    def _now(self) -> list[Place]:
        return list(moments(self._cards, self.state))

    def put(self, at: Place, *, follows: bool = False) -> None:
        """Put the cursor there, as near as there is such a place; where it `follows`, it goes on with the run."""
        self._at, self._branch = bounded(self._cards, at), None if self._cards else self._branch
        self._follows, self._is_placed, self._is_at_failure, self._is_chosen = follows, True, False, True
        self._tick = self._tick_now
        self.changed()
        self.host.show_keys()

    def move(self, way: str, count: int) -> None:
        """Move the cursor: up and down by rows, left and right by columns, back and on by iterations, home, end."""
        at, cards = self._at, self._cards
        if way in ("up", "down"):
            self._move_rows(count if way == "down" else -count)
        elif way in ("left", "right"):
            self.put(beside(cards, axis_at(self._shown, at), at, count if way == "right" else -count))
        elif way in ("back", "on"):
            there = bounded(cards, passed(cards, at, at.iteration + (count if way == "on" else -count)))
            if there == at:
                raise UsageError(self._why_no_further(is_on=way == "on"))
            self.put(there)
        else:
            is_end = way == "end"
            follows = is_end and self.overview is not None and self.overview.state is RunState.RUNNING
            self.put(at._replace(iteration=iterations_at(cards, at) - 1 if is_end else 0), follows=follows)

    @property
    def why_no_moment(self) -> str:
        """Why there is no moment under the cursor."""
        if not self.is_without_run and (self.overview is None or self.overview.state is RunState.NOT_RUN):
            key = key_for("overview run", self.kind, self.host.keymap)
            return "the model is not run yet" + (f": {key.shown} runs it" if key is not None else "")
        return "no iteration ran here"

    def _why_no_further(self, *, is_on: bool) -> str:
        """Return why the cursor stays at the first, or the last iteration."""
        count = iterations_at(self._cards, self._at)
        if not count:
            return self.why_no_moment
        if not is_on:
            return f"there is no {self._cards[self._at.card].facts.iteration_word} before 0"
        so_far = "" if self.is_at_end else " so far"
        card = self._cards[self._at.card]
        word = card.facts.iteration_word
        return f"there is no {word} {count:,}: {card.name} ran {counted(count, word)}{so_far}"

    def _move_rows(self, by: int) -> None:
        rows = [(one.place, line) for one in self._shown for line in one.lines]
        branches = [(-1, one) for one in branches_outside(self.overview)] if self.overview is not None else []
        rows = [*branches, *rows] if len(branches) <= MOST_ABOVE else [*rows, *branches]
        if not rows:
            self.move_card(by)
            return
        here = (self._at.card, self._at.line) if self._branch is None else (-1, self._branch)
        index = rows.index(here) if here in rows else 0
        card, line = rows[max(0, min(index + by, len(rows) - 1))]
        if card < 0:
            self._select_branch(line)
        else:
            self._select(card, line)

    def _select_branch(self, index: int) -> None:
        """Put the cursor on an If outside of loops."""
        self._branch, self._is_placed, self._is_at_failure, self._is_chosen = index, True, False, True
        self._follows = False
        self.changed()

    @property
    def _branch_address(self) -> str:
        """The address of the If at the cursor; empty where there is none, or it did not run."""
        return self._address_in_branch(of_condition=False)

    def _address_in_branch(self, *, of_condition: bool) -> str:
        overview, compiled = self.overview, self._compiled
        if self._branch is None or overview is None or compiled is None or not overview.branches[self._branch].runs:
            return ""
        facts, program = overview.branches[self._branch], program_around(overview, self._branch, compiled)
        site = facts.verdict.layer if of_condition and facts.verdict is not None else facts.layer
        layer = None if program is None else program.graph.by_id.get(site.id)
        return "" if program is None or layer is None else layer_address_in(program, layer, 0, compiled)

    def _select(self, card: int, line: int) -> None:
        self.put(on_row(self._cards, self._at, card, line))

    @property
    def has_other_cards(self) -> bool:
        """True if there is a card beside the one of the cursor."""
        return len(self._cards) > 1

    def move_card(self, by: int) -> bool:
        """Select the next card, or the one before; False where there is none other."""
        order = [one.place for one in self._shown]
        if len(order) < 2 or self._at.card not in order:
            return False
        place = order[(order.index(self._at.card) + by) % len(order)]
        self._select(place, first_picture(self._cards[place]))
        return True

    def put_on_row(self, card: int, line: int) -> None:
        """Put the cursor on a row of the card of a loop, by the index of that."""
        place = next((at for at, one in enumerate(self._cards) if one.index == card and line < len(one.lines)), None)
        if place is None:
            raise UsageError("there is no such row")
        self._select(place, line)

    def line_to_port(self, place: int, *, output: bool) -> PortLine:
        """Return the line that goes to an output of the model, or opens an input, by its place. UsageError."""
        if self._compiled is None:
            raise UsageError("the model is not read yet")
        return line_to_port(self._compiled, place, output=output)

    def put_on_failure(self) -> None:
        """Select the error that ended the run, if there is one."""
        self._is_at_failure = self.overview is not None and self.overview.failure is not None

    def seek(self, *, backward: bool) -> bool:
        """Put the cursor to the next NaN or Inf in time, after all to an error; False if there is none."""
        failed = self.overview is not None and self.overview.failure is not None
        found = [*findings(self._cards, all_kinds=True), *([None] if failed else [])]
        here = None if self._is_at_failure else self._at
        outside = len(found) - 1 if backward else 0
        index = found.index(here) + (-1 if backward else 1) if here in found else outside
        if not 0 <= index < len(found):
            return False
        target = found[index]
        if target is not None:
            self.put(target)
        self._is_at_failure = target is None
        self.changed()
        return True

    # --- what the keys change ------------------------------------------------------------------------------------

    def zoom_by(self, by: int) -> None:
        """Give the selected row more lines, or fewer."""
        taller = self._wishes.taller
        taller[self._key] = max(-64, min(taller.get(self._key, 0) + by, 64))
        self.changed()

    def look_on(self, direction: int) -> None:
        """Show the selected row by another number of several, or with another scale (-1)."""
        key, wishes = self._key, self._wishes
        if direction > 0:
            values = self._values_with_ways
            if values is None:
                raise UsageError("an iteration of this row is one number: nothing else can stand for it")
            wishes.ways[key] = next_way(values, wishes.ways.get(key))
        else:
            if not self.has_scale:
                raise UsageError("this row has no scale: its values are written")
            wishes.scales[key] = next_scale(wishes.scales.get(key))
        self.changed()

    @property
    def _values_with_ways(self) -> ValueHistory | None:
        """The values of the selected row, where several numbers of an iteration become one."""
        at, cards = self._at, self._cards
        line = line_at(cards, at)
        if line is None or line.form is Form.WORDS or line.part not in (LinePart.VALUE, LinePart.OUTCOME):
            return None
        return next((one for one in cards[at.card].histories(line) if has_ways(one)), None)

    @property
    def has_scale(self) -> bool:
        """True if the selected row is drawn by a scale."""
        at, cards = self._at, self._cards
        line = line_at(cards, at)
        axis = axis_at(self._shown, at)
        if line is None or axis is None or line.part in (LinePart.GROWTH, LinePart.CHOICE):
            return False
        return form_on(line.form, line.labels, cards[at.card].histories(line), axis) in (Form.BARS, Form.PICTURE)

    @property
    def idle(self) -> tuple[str, ...]:
        """Commands that do nothing for the selected row."""
        found = () if self._values_with_ways is not None else ("look next",)
        return found if self.has_scale else (*found, "look previous")

    def fold(self) -> str:
        """Show the rows of the card that are only counted; where all are shown open the sequences, or close them."""
        card, unfolded, overview = self._at.card, self._wishes.unfolded, self.overview
        has_folded = any(one.folded for one in self._shown if one.place == card)
        if overview is not None and not has_folded and has_sequences(overview):
            unfolded.discard(card)
            self.host.perform("overview sequences", echo=False)
            return ""
        is_whole = all(len(one.lines) == len(one.card.lines) for one in self._shown if one.place == card)
        if is_whole and card not in unfolded:
            return "nothing folds here: all rows of the card are shown"
        unfolded.symmetric_difference_update({card})
        self.changed()
        return ""

    @property
    def _key(self) -> RowKey:
        line = line_at(self._cards, self._at)
        return (-1, -1, 0) if line is None else self._cards[self._at.card].key(line)

    def question(self, *, ends: bool) -> StoryQuestion | None:
        """Return what is asked about: where a value comes from, or why the loop of the cursor ended; None: none ran.

        The value is the first NaN until a cell is chosen, then a cell that is not finite; else the first NaN or Inf
        that was born, and without one the cell. Of a loop that has not ended it is asked why its condition is true.
        """
        from stepper.debug.story.facts import StoryQuestion

        at, cards, compiled = self._at, self._cards, self.host.driver.compiled
        if self._asks_failure(ends=ends):
            return StoryQuestion(fails=True, tick=self._last_tick)
        if not cards or self._branch is not None:
            asked = "" if ends or (self._branch is not None and self._is_chosen) else self._first_birth()
            asked = asked or self._address_in_branch(of_condition=ends)
            return StoryQuestion(asked, tick=self._last_tick) if asked else None
        if not iterations_at(cards, at):  # it has a beginning to ask for alone
            facts = cards[at.card].facts
            return StoryQuestion(facts.layer.name, ends=True, tick=self._last_tick) if ends and facts.runs else None
        card, line = cards[at.card], line_at(cards, at)
        birth = None if self._is_chosen and self._is_bad_here else self._first_birth()
        asked = "" if line is None else condition_address(card, line, at.run, at.iteration, compiled)
        own = asked or ("" if line is None else value_address(card, line, at.run, at.iteration, compiled))
        place = birth or own or address(card, line, at.run, at.iteration, compiled)
        is_constant = line is not None and line.kind is RowKind.CONDITION and card.made_by(line) is None
        goes_on = self._verdict_so_far(card) if ends else ""
        if goes_on:
            return StoryQuestion(goes_on, tick=self._last_tick)
        if ends or self._is_last_verdict(line) or (is_constant and not birth):
            run = address(card, None, at.run, 0, compiled).rpartition("@")[0]
            return StoryQuestion(run or card.facts.layer.name, ends=True, tick=self._last_tick)
        return StoryQuestion(place, tick=self._last_tick)

    def _verdict_so_far(self, card: Card) -> str:
        """Return the condition of the loop in the iteration of the cursor, where it has not ended; else empty."""
        at = self._at
        verdict = next((line for line in card.lines if line.kind is RowKind.CONDITION), None)
        if verdict is None or card.runs[at.run].ending is not None or card.made_by(verdict) is None:
            return ""
        return value_address(card, verdict, at.run, at.iteration, self.host.driver.compiled)

    def _asks_failure(self, *, ends: bool) -> bool:
        """True if the error that ended the run is asked about: it is selected, or ended the loop of the cursor."""
        at, cards, overview = self._at, self._cards, self.overview
        if overview is None or overview.failure is None or overview.failure.place is None:
            return False
        runs = cards[at.card].runs if at.card < len(cards) else ()
        is_ended_by_it = ends and at.run < len(runs) and runs[at.run].ending is None
        return self._is_at_failure or is_ended_by_it or not cards

    def _is_last_verdict(self, line: Line | None) -> bool:
        """True if the cursor is on the verdict of a condition that ended its loop."""
        at, cards = self._at, self._cards
        is_last = self._is_chosen and at.iteration + 1 == iterations_at(cards, at)
        return is_last and line is not None and line.kind is RowKind.CONDITION

    def _first_birth(self) -> str:
        """Return the address of the first NaN that was born, or else Inf; empty where none is known."""
        births = () if self.overview is None else self.overview.births
        if not births:
            return ""
        cause = next((one.cause for one in births if one.cause.kind is NonFiniteKind.NAN), births[0].cause)
        from stepper.debug.causes.locations import address_at

        found = address_at(cause.location, self.host.driver.compiled)
        return "" if found is None else str(replace(found, index=cause.element))

    @property
    def _is_bad_here(self) -> bool:
        """True if there is a NaN or Inf in the cell of the cursor."""
        at, cards = self._at, self._cards
        line = line_at(cards, at)
        history = None if line is None else cards[at.card].history(line, at.run)
        if history is None or first_bad(history) is None:
            return False
        numbers = column(history, at.iteration, at.iteration + 1, WAYS[0])
        return numbers is not None and not bool(np.isfinite(numbers).all())

    @property
    def _last_tick(self) -> int | None:
        """The last tick of what has run."""
        return None if self.overview is None else self.overview.ticks

    def lines_to_open(self) -> tuple[str, ...]:
        """Return the lines that go to the moment of the cursor; none where there is none."""
        overview = self.overview
        if self._is_at_failure and overview is not None:
            return f"goto tick {overview.ticks}", "step"  # which fails once more
        if self._branch is not None and (self._is_chosen or overview is None or not overview.births):
            return (f"goto {self._branch_address}",) if self._branch_address else ()
        if not self._cards and overview is not None and overview.births:
            return (f"goto tick {overview.births[0].tick}",)
        return (f"goto {self.moment}",) if self.moment else ()

    @property
    def moment(self) -> str:
        """The address of the cursor: a value in its iteration, else the iteration; empty where there is none."""
        at, cards = self._at, self._cards
        if self._branch is not None:
            return self._branch_address
        if not cards or not iterations_at(cards, at):
            return ""
        return address(cards[at.card], line_at(cards, at), at.run, at.iteration, self.host.driver.compiled)

    @property
    def first_iteration(self) -> str:
        """The address of the first iteration of the run of the loop that the cursor is in; empty where none ran."""
        at, cards = self._at, self._cards
        if not cards or not iterations_at(cards, at):
            return ""
        return address(cards[at.card], None, at.run, 0, self.host.driver.compiled)

    @property
    def run_looked_at(self) -> LoopOfRun | None:
        """The run of the loop that the cursor is in."""
        from stepper.debug.iterations.far_runs import LoopOfRun  # the first picture has no use for it

        at, cards = self._at, self._cards
        program = cards[at.card].program if cards and iterations_at(cards, at) else None
        return None if program is None else LoopOfRun(program, tuple(cards[at.card].runs[at.run].outer))

    @property
    def iteration_looked_at(self) -> tuple[Program, tuple[int, ...]] | None:
        """The body of the loop of the cursor, and its iterations from the outside inwards."""
        at, cards = self._at, self._cards
        program = cards[at.card].program if cards and iterations_at(cards, at) else None
        return None if program is None else (program, (*cards[at.card].runs[at.run].outer, at.iteration))

    @property
    def chosen_address(self) -> str:
        """The value of the cursor, in its iteration."""
        at, cards = self._at, self._cards
        if self._branch is not None:
            return self._branch_address
        line = line_at(cards, at)
        if line is None or self._is_at_failure or not iterations_at(cards, at):
            return ""
        return value_address(cards[at.card], line, at.run, at.iteration, self.host.driver.compiled)

    @property
    def chosen_array(self) -> Array | None:
        """The value of the cursor; None of more elements, or iterations, than are kept one by one."""
        history, numbers = self._numbers_at_cursor
        if history is None or numbers is None or not history.is_whole or history.bin_of(self._at.iteration):
            return None
        return numbers.reshape(history.shape)

    @property
    def chosen_element(self) -> tuple[int, ...] | None:
        """The element that stands out in that value; of many the first of the bucket that stands out."""
        history, numbers = self._numbers_at_cursor
        if history is None or numbers is None:
            return None
        from stepper.tensors.surveys import standing_out  # the first picture has no use for it

        if history.is_whole:
            return standing_out(numbers.reshape(history.shape))
        begins = bucket_begins(history.elements)
        return tuple(map(int, np.unravel_index(begins[standing_out(numbers)[0]], history.shape)))

    @property
    def _numbers_at_cursor(self) -> tuple[ValueHistory | None, Array | None]:
        at, cards = self._at, self._cards
        line = None if self._is_at_failure or self._branch is not None else line_at(cards, at)
        if line is None or line.part not in (LinePart.VALUE, LinePart.OUTCOME):
            return None, None
        return value_at(cards[at.card], line, at, self._wishes)

    # --- the mouse -----------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor, a second one goes there; on a name in a sentence to what it names."""
        named = self.destination_under(event)
        if named is not None:
            if event.chain >= 2 and not named.at_once:
                self.post_line(named.line)
            return
        if not 0 <= event.y < len(self._visible):
            return
        target = self._visible[event.y]
        if target.branch >= 0:
            self._select_branch(target.branch)
        elif target.card >= 0:
            self._click_card(target, event)
        if event.chain == 1 and target.once:
            self.host.perform(target.once, echo=False)
        if event.chain >= 2 and target.strip is None and target.twice and max(target.branch, target.card) >= 0:
            self.host.perform(target.twice)

    def _click_card(self, target: PageLine, event: events.Click) -> None:
        """Put the cursor to what stands in a line of a card, in the column of a click."""
        if target.line >= 0:
            self._select(target.card, target.line)
        else:
            self._select(target.card, self._at.line if target.card == self._at.card else 0)
        if target.columns or target.strip is not None:
            self._put_at(target, event.x - widths(*self.app.size).label)

    def _put_at(self, target: PageLine, x: int) -> None:
        """Put the cursor to the iteration, or on a strip of runs to the run, in a column of the pictures."""
        if target.strip is not None:
            slot = target.strip.slot_at(x)
            if slot is not None:
                self.put(run_near(self._cards, self._at, slot.first))
            return
        for shown in self._shown:
            if shown.place == target.card:
                for run, axis in zip(shown.runs, shown.axes, strict=True):
                    slot = axis.slot_at(x)
                    if slot is not None:
                        self.put(self._at._replace(run=run, iteration=slot.first))

    # --- the page ------------------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        """Paint with another theme."""
        super().notify_style_update()
        self._pictures.clear()

    def scroll_rows(self, by: int) -> None:
        """Move the cursor by rows."""
        self._move_rows(1 if by > 0 else -1)

    def visible_lines(self, width: int, height: int) -> list[Row]:
        """Return the page, scrolled so that the selected row is in sight, and below it what was found and the value."""
        overview = self.overview
        if overview is None:
            self._visible = []
            return [[]] * height
        size = (self.app.size.width, self.app.size.height)
        is_low = size[1] < LOW
        top = self._above(overview, width, is_low=is_low)
        rule: list[Row] = [] if is_low else [[("─" * width, "ghost")]]
        known = self.state.lists.findings
        told = around.against(self.state.a)
        told += around.found(overview, self._cards, short=is_low, links=self._links, findings=known)
        found = [shortened(row, width - 1) for row in told]
        outputs = [] if is_low else [around.after(overview, self._cards, width, self._links)]
        beside_a = self._beside_a()
        more = 0 if is_low or beside_a is None or not beside_a.is_beside(self._at) else 2  # strip, and value of A
        lower = len(found) + len(rule) + (1 if is_low else 2) + more
        # Rows are as tall as they were without the body below, which gets what they leave.
        content = self.parent if isinstance(self.parent, Widget) and self.screen.maximized is None else self
        whole = max(height, content.size.height)
        room = whole - len(top) - lower - len(outputs)
        for_branches = room // 2 if self._cards else room - 1
        branches = branches_shown(overview, self._branch, for_branches, is_low=is_low)
        used = sum(one.height for one in branches)
        room -= used if len(branches) <= MOST_ABOVE else min(used, room // 3)
        card = self._cards[self._at.card] if self._branch is None and self._at.card < len(self._cards) else None
        room -= card is not None and bool(told_on(card, self.state.lists.findings))
        self._shown, extent = self._arranged(overview, size, room, beside_a)
        sight = Sight(
            overview,
            self._shown,
            self._at,
            self._now,
            size,
            self._places_of_a(),
            self._compiled,
            beside_a,
            self.state.lists.findings,
            extent,
            self._findings_key,
            branches,
            self._branch,
        )
        page = Page(sight, self._wishes, self._pictures, self.palette, width)
        if self._is_at_failure and overview.failure is not None:
            selected = failure_detail(overview.failure, width, is_low=is_low)
        elif self._branch is not None:
            selected = branch_detail(overview.branches[self._branch], width, is_low=is_low)
        else:
            selected = detail(sight, self._cards, self._wishes, width, follows=self._follows)
        selected = [linked(row, Destination("overview open")) for row in selected]
        bottom = [*found, *rule, *selected]
        space = height - len(top) - len(bottom)
        self._share_room(len(top) + page.count + len(outputs) + len(bottom), page.used)
        is_cut = page.count + len(outputs) > space > 2
        space -= is_cut
        first = self._scrolled(page, len(outputs), space)
        visible = page.lines(first, space)
        visible += [PageLine(row) for row in outputs][: space - len(visible)]
        if is_cut:
            visible += [PageLine([])] * (space - len(visible)) + [PageLine(page.hidden(first, space))]
            space += 1
        visible += [PageLine([])] * (space - len(visible))
        self._visible = [*(PageLine(row) for row in top), *visible, *(PageLine(row) for row in bottom)][:height]
        return [one.row for one in self._visible]

    def _share_room(self, needed: int, used: int) -> None:
        """Have what lies blank used for the body of the loop of the cursor, where that changes."""
        self.needed, self.used, known = needed, used, self._shared
        self._shared = needed, used, self.program
        if self._shared != known:
            self.call_after_refresh(self._share)

    @property
    def program(self) -> Program | None:
        """The body of the loop of the cursor, of a model without loops its own graph; None while the run is young."""
        at, cards, overview = self._at, self._cards, self.overview
        if overview is None or self.is_without_run:
            return None
        if overview.state is RunState.RUNNING and overview.seconds < _YOUNG:
            return None
        if not cards and self._compiled is not None:
            return self._compiled.main
        return cards[at.card].program if at.card < len(cards) else None

    def _arranged(
        self, overview: Overview, size: tuple[int, int], room: int, beside_a: BesideA | None
    ) -> tuple[list[Shown], int]:
        """Return the cards in so many lines, and where A is drawn: as far as that costs no row or small picture."""

        def in_lines(lines: int) -> list[Shown]:
            return arranged(
                overview, self._cards, self._at, size, lines, self._wishes, self._listed, plain_look=self.look.plain
            )

        shown = in_lines(room)
        if beside_a is None or size[1] < LOW:
            return shown, 0
        from tui.screens.overview.beside_a import AExtent  # the first picture has no A

        strips = beside_a.lines_more(shown, self._at, AExtent.STRIPS)
        shares = {
            AExtent.PICTURES: (room * 3 // 4, room * 5 // 8, room // 2) if size[1] >= _TALL else (),
            AExtent.STRIPS: (room + 1 - strips,),
        }
        for extent, lines in ((extent, lines) for extent, some in shares.items() for lines in some):
            tried = in_lines(lines)
            used = lines_used(tried, is_low=False) + beside_a.lines_more(tried, self._at, extent)
            if used <= room + 1 and all(is_as_whole(one, other) for one, other in zip(tried, shown, strict=True)):
                return tried, extent
        return shown, AExtent.SELECTED

    @property
    def _findings_key(self) -> str:
        key = key_for("view findings", self.kind, self.host.keymap)
        return "" if key is None else key.shown

    def _beside_a(self) -> BesideA | None:
        """Return A beside the run, where there is one."""
        a = self.state.a
        if a is None:
            return None
        from tui.screens.overview.beside_a import BesideA  # the first picture has no A

        state, now = self.state, self._now or self._runs_of_a()
        if not now and (a.spread is None or not a.spread.is_of_runs):
            state = state.inside  # outside of loops it is the run of the loop that is looked at from there
            now = list(places_of_run(self._cards, state, 0))
        return BesideA(self, state, now, self._cards)

    def _places_of_a(self) -> list[Place]:
        """Return where A is marked: not in the iteration of now itself."""
        a = self.state.a
        if a is not None and a.is_in_this_run and self._now:
            return [place._replace(iteration=at) for place in self._now for at in self.state.iterations_of_a]
        return self._place_of_a()

    def _place_of_a(self) -> list[Place]:
        """Return the iteration that A is, where it is one of a loop that is shown; else nothing."""
        found = None if self.state.a is None else place_of(self._cards, self.state.a.moment)
        return [] if found is None else [found]

    def _runs_of_a(self) -> list[Place]:
        """Return all runs of the loop of A, each of whose iterations is held against it from outside of the loop."""
        return [one._replace(run=run) for one in self._place_of_a() for run in range(len(self._cards[one.card].runs))]

    def _scrolled(self, page: Page, more: int, space: int) -> int:
        """Return the first line of the page in sight: the selected row is, and as few lines move as may be."""
        count = page.count + more
        if count <= space:
            self.top = 0
            return 0
        begin, end = page.selected()
        self.top = max(min(self.top, begin - 1), end - space, 0)
        self.top = max(min(self.top, begin, count - space), 0)
        return self.top

    def _above(self, overview: Overview, width: int, *, is_low: bool) -> list[Row]:
        inputs = self.host.inputs if self.is_without_run else None
        right = around.status(overview, short=is_low) if inputs is None else around.lacking(inputs, width // 2)
        room = width - width_of(right) - 2
        left = shortened(around.before(overview, self._letters, room, short=is_low, links=self._links), room)
        row = spread(left, right, width)
        return [row] if is_low else [[], row, []]
