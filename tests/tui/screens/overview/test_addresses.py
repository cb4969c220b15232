"""Where Enter leads from a value of the overview: to that value, in the cursor's iteration of every loop around it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stepper.debug.overview.facts import RowKind
from tests.debug.debugged import ALL_RUNS, run_named
from tests.tui.driven import Driven, drive
from tui.screens.overview.cards import LinePart
from tui.screens.overview.lines import cards_of
from tui.screens.overview.links import address, short_address, value_address
from tui.screens.overview.pane import OverviewPane


@ALL_RUNS
def test_the_address_of_a_value_is_its_moment_at_every_depth_of_loops(name: str, tmp_path: Path) -> None:
    debugger = run_named(name, tmp_path)
    compiled = debugger.machine.compiled
    cards = cards_of(debugger.run_overview(), compiled, {})
    for card in cards:
        for line in card.lines:
            for run, activation in enumerate(card.runs):
                last = activation.iterations - 1
                for iteration in {0, last // 2, last} if last >= 0 else ():
                    debugger.goto(address(card, line, run, iteration, compiled))
                    loops = [frame.activation for frame in debugger.machine.stack[1:] if frame.activation is not None]
                    around = [one.iteration for one in loops if hasattr(one.plan, "merged")]
                    assert around == [*activation.outer, iteration], (card.name, line.name)
                    if line.part is not LinePart.VALUE or line.kind is RowKind.CONDITION:
                        continue
                    known, named = activation.values[line.row], value_address(card, line, run, iteration, compiled)
                    if named and known is not None and known.is_whole and not known.shapes:
                        values = known.over(iteration, iteration + 1)
                        told = short_address(cards, card, line, run, iteration)
                        for one in (named, *((told,) if line.kind is RowKind.BACK_EDGE else ())):
                            assert values is not None and np.array_equal(
                                np.asarray(debugger.value(one)).reshape(-1), values, equal_nan=True
                            ), one


def test_enter_on_what_an_inner_loop_gives_stands_after_it_in_the_iteration_of_the_cursor() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        pane = driven.pane("overview")
        assert isinstance(pane, OverviewPane)
        line = next(k for k, one in enumerate(pane.cards[0].lines) if one.name == "swaps_in_pass")
        for iteration in (2, 1, 0):
            pane.put(pane.at._replace(card=0, line=line, run=0, iteration=iteration))
            await driven.press("enter")
            assert [frame.iteration for frame in driven.state.frames[1:]] == [iteration]
            frame, cursor = driven.state.frame, driven.state.cursor
            assert frame is not None and cursor is not None
            assert frame.layers[cursor].name == "pairs_of_neighbours"
            await driven.press("0")

    drive("nested_loop", script, size=(120, 40), starts_up=True, runs=True)
