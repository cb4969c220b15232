"""`@-1` in an address is the last iteration that the loop runs, wherever the run stands.

The sample sorts five numbers by passes: pass N looks at 4 - N pairs, and the third pass, the last, changes nothing.
"""

from __future__ import annotations

import pytest

from stepper.debug.story.story_texts import why_lines
from stepper.errors import UsageError
from tests.debug.debugged import sample, state_of
from tests.tables import each_row

LAST_OF = (("passes@-1::values_next@-1", 2, 1), ("passes@-2::values_next@-1", 1, 2), ("passes@0::values_next@-4", 0, 0))


@each_row(("address", "outer", "inner"), LAST_OF)
@each_row("tick", [0, 60])
def test_a_movement_goes_there(address: str, outer: int, inner: int, tick: int) -> None:
    debugger = sample("nested_loop")
    debugger.goto_tick(tick)
    debugger.goto(address)
    activations = [frame.activation for frame in debugger.machine.stack[1:]]
    assert [one.iteration for one in activations if one is not None] == [outer, inner]
    stop = debugger.stop
    debugger.goto_tick(tick)
    assert debugger.goto(f"passes@{outer}::values_next@{inner}").tick == stop.tick


@each_row(("address", "outer", "inner"), LAST_OF)
def test_why_uses_and_a_story_mean_that_element(address: str, outer: int, inner: int) -> None:
    debugger = sample("nested_loop")
    debugger.goto("passes@0::values_next@1")
    before, state = debugger.machine.tick, state_of(debugger.timeline)
    counted = f"passes@{outer}::values_next@{inner}[0]"
    lines, wanted = (why_lines(debugger.why(one, tries=False)) for one in (f"{address}[0]", counted))
    assert lines[1:] == wanted[1:]
    assert debugger.machine.tick == before and state_of(debugger.timeline) == state
    debugger.last()
    assert debugger.uses(f"{address}[0]").uses == debugger.uses(counted).uses
    assert debugger.story(f"{address}[0]").links == debugger.story(counted).links


def test_the_iterations_that_have_run_so_far_are_not_all() -> None:
    debugger = sample("rwkv_overflow")
    debugger.goto("wkv@3")
    assert why_lines(debugger.why("wkv@-1[0,0]", tries=False))[0].startswith("why time_mixing::wkv@11[0,0]")


def test_a_moment_is_held_against_it() -> None:
    debugger = sample("rwkv_overflow")
    debugger.goto("wkv@3")
    moment = debugger.pin("wkv@-2")
    assert moment is not None and moment.iteration == 10


@each_row("verb", ["goto", "why", "uses"])
def test_there_is_none_before_the_first(verb: str) -> None:
    debugger = sample("rwkv_overflow")
    with pytest.raises(UsageError, match=r"there is no iteration @-13: 'time_mixing' runs 12 iterations"):
        getattr(debugger, verb)("wkv@-13")


def test_a_run_that_goes_on_says_what_knows_it() -> None:
    debugger = sample("rwkv_overflow")
    with pytest.raises(UsageError, match=r"@-1 counts from the end.* goto, print and why know it"):
        debugger.run_to("wkv@-1")
