"""Random walks with pauses, edits, branches and kills, beside undisturbed ones: `python -m tests.debug.walks 500`.

Each walk is a list of steps. One debugger carries them out undisturbed, another one is paused at random moments of the
engine and told the same again; a third is a process that is killed somewhere, whose session is then restored and walks
on. After each step all must stand at the same place, bit for bit, with the same sentences, breakpoints and hits; at the
end a fresh run to the same moment, with the same edits, must be in the same state, too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason, Stop
from stepper.debug.timeline import ORIGINAL
from stepper.errors import StepperError
from stepper.session.autosave import Autosave
from stepper.session.session_files import restore_session
from tests.debug.debugged import sample, state_of
from tests.debug.pausing import is_pending, pause_after

ROOT = Path(__file__).parents[2]
MODELS = ("while_loop", "nested_loop", "for_with_condition", "do_while_loop", "growing_tensor", "onnx_moving_average")
STEPS = 24
_PAUSES = 4

Step = tuple[str, Any]

MOVES: dict[str, Callable[[Debugger, Any], Stop]] = {
    "step": lambda debugger, count: debugger.step(count),
    "next": lambda debugger, count: debugger.next(count),
    "finish": lambda debugger, _: debugger.finish(),
    "until": lambda debugger, expression: debugger.until(expression),
    "goto_iteration": lambda debugger, number: debugger.goto_iteration(number),
    "reverse_finish": lambda debugger, _: debugger.reverse_finish(),
}
"""Counted from where the run stands: a pause in one cannot be made up for by the same once more."""
GOALS: dict[str, Callable[[Debugger, Any], Stop]] = {
    "continue": lambda debugger, _: debugger.continue_(),
    "last": lambda debugger, _: debugger.last(),
    "first": lambda debugger, _: debugger.first(),
    "goto_tick": lambda debugger, tick: debugger.goto_tick(tick),
    "reverse_continue": lambda debugger, _: debugger.reverse_continue(),
    "reverse_step": lambda debugger, count: debugger.reverse_step(count),
    "reverse_next": lambda debugger, count: debugger.reverse_next(count),
}
"""The same once more leads there."""
BACKWARD = frozenset({"reverse_continue", "reverse_step", "reverse_next", "reverse_finish"})


@dataclass
class Walk:
    """The steps of one walk, which depend on its seed alone."""

    seed: int
    name: str = ""
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        random = Random(self.seed)
        self.name = random.choice(MODELS)
        for _ in range(STEPS):
            what = random.choices(
                [*MOVES, *GOALS, "break", "when", "delete", "set", "branch", "mark", "find"],
                [3, 3, 1, 2, 3, 1, 4, 1, 1, 4, 5, 4, 3, 3, 2, 1, 4, 2, 1, 1],
            )[0]
            self.steps.append((what, self._argument(what, random)))

    @staticmethod
    def _argument(what: str, random: Random) -> Any:
        if what in ("until", "when", "find"):
            return random.choice(["iter == 2", "iter > 4", "iter % 3 == 1", "iter == 90"])
        if what in ("set", "break"):
            return random.random(), random.choice([0, 1, 3, -2, 40]), random.choice([0, 0, 2])
        if what == "branch":
            return random.choice([ORIGINAL, "a", "b", "c"])
        if what == "goto_iteration":
            return random.choice([0, 1, 2, 3, 7, 50, -1, -2])
        if what == "goto_tick":
            return random.choice([random.randrange(60), random.randrange(1500)])
        return random.choice([1, 2, 5, 40]) if what in ("reverse_step", "step") else random.choice([1, 2, 4])

    def debugger(self) -> Debugger:
        debugger = sample(self.name, max_iterations=200)  # a changed value can make a loop endless
        debugger.breakpoints.sink = lambda _line: None
        return debugger


def carried_out(debugger: Debugger, step: Step) -> str:
    """Carry out a step; the error, or what there is to compare beside the state."""
    what, argument = step
    try:
        if what in MOVES or what in GOALS:
            return seen({**MOVES, **GOALS}[what](debugger, argument))
        if what == "break":
            debugger.break_at(f"`{chosen(debugger, argument[0])}`", hit=argument[2])
        elif what == "when":
            debugger.break_when(argument)
        elif what == "delete":
            debugger.breakpoints.delete()
        elif what == "set":
            debugger.set_value(f"`{chosen(debugger, argument[0])}`", argument[1])
        elif what == "branch":
            debugger.branch(argument)
        elif what == "find":
            return repr(debugger.find(argument, "all", until=3000))
    except StepperError as error:
        return str(error)
    return ""


def chosen(debugger: Debugger, part: float) -> str:
    """One of the values that the innermost frame has computed now."""
    frame = debugger.frame
    names = [
        frame.program.graph.by_id[layer].name
        for (layer, _output), slot in frame.program.slots.items()
        if frame.is_current(slot) and frame.program.template[slot] is None
    ]
    return names[int(part * len(names))] if names else "nothing"


def seen(stop: Stop) -> str:
    return repr((stop.tick, stop.reason, stop.place, stop.details))


def picture(debugger: Debugger) -> tuple[Any, ...]:
    """All that two debuggers must agree on."""
    breaks = [(one.number, one.description) for one in debugger.breakpoints]
    branches = [(branch.name, branch.tick, branch.edited_at) for branch in debugger.branches]
    return debugger.branches.name, debugger.machine.tick, state_of(debugger.timeline), breaks, branches


def disturbed(debugger: Debugger, step: Step, goal: int, random: Random) -> tuple[str, int]:
    """Carry out a step with pauses on the way; what it gave (empty where that was put right), and how many pauses."""
    what, pauses = step[0], 0
    begun = picture(debugger)
    looks = random.choice([0, 1, 3, 10, 40, 150, 600])
    for _ in range(_PAUSES if what in GOALS else 1):
        pause_after(debugger, looks)
        told = carried_out(debugger, step)
        if is_pending(debugger) or debugger.stop.reason is not Reason.PAUSED:
            return told, pauses
        pauses += 1
        looks *= 2
        if what in BACKWARD:
            assert picture(debugger) == begun, "a paused search backward keeps the present"
    if what in GOALS:
        return carried_out(debugger, step), pauses
    with suppress(StepperError):
        debugger.goto_tick(goal)
    return "", pauses


def walked(seed: int) -> int:
    """One walk beside the same one with pauses; how many there were."""
    walk, random = Walk(seed), Random(-seed - 1)
    calm, hectic = walk.debugger(), walk.debugger()
    paused = 0
    for number, step in enumerate(walk.steps):
        what = f"seed {seed} ({walk.name}), step {number}: {step}"
        before = calm.stop
        expected = carried_out(calm, step)
        if step[0] in MOVES or step[0] in GOALS:
            told, pauses = disturbed(hectic, step, calm.machine.tick, random)
            paused += pauses
        else:
            told = carried_out(hectic, step)
        if told:
            assert told == expected, f"{what}\n{told}\n{expected}"
        assert picture(hectic) == picture(calm), f"{what}, from {before.tick}"
    assert not calm.timeline.warnings and not hectic.timeline.warnings
    assert state_of(fresh(walk, calm).timeline) == state_of(calm.timeline), f"seed {seed}: not as a fresh run"
    return paused


def fresh(walk: Walk, debugger: Debugger) -> Debugger:
    """A new run that goes straight to the present of another, with the edits of its branch."""
    other = walk.debugger()
    for tick, edits in sorted(debugger.branches.edits(debugger.branches.name).items()):
        if tick <= debugger.machine.tick:
            other.goto_tick(tick)
            for edit in edits:
                other.timeline.edit(edit)
    other.goto_tick(debugger.machine.tick)
    return other


# --- kills ----------------------------------------------------------------------------------------------------------


def child(seed: int, file: Path) -> None:
    """Walk, keeping the session up, until somebody kills us; the number of each step that is saved is printed."""
    walk = Walk(seed)
    debugger, autosave = walk.debugger(), Autosave(file=file)
    autosave.restore(debugger)
    autosave.keep_up(debugger)
    for number, step in enumerate(walk.steps):
        carried_out(debugger, step)
        assert not autosave.keep_up(debugger, due=True)
        print(number, flush=True)


def killed(seed: int, folder: Path) -> None:
    """A walk in a process that is killed; restored, it is where that was after its last step, and walks on so."""
    walk, random, file = Walk(seed), Random(seed), folder / f"{seed}.session"
    last = random.randrange(len(walk.steps))
    command = [sys.executable, "-m", "tests.debug.walks", "--child", str(seed), str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        saved = next((int(line) for line in process.stdout if int(line) == last), None)
        process.kill()
    assert saved == last, f"seed {seed}: the walk ended by itself"
    calm, restored = walk.debugger(), walk.debugger()
    if file.exists():
        restore_session(restored, file)
    after = -1
    for number, step in enumerate(walk.steps):
        carried_out(calm, step)
        if number >= last and after < 0 and picture(restored) == picture(calm):
            after = number
        elif after >= 0:
            carried_out(restored, step)
            assert picture(restored) == picture(calm), f"seed {seed}, after the kill, step {number}: {step}"
    assert after >= 0, f"seed {seed}: killed after step {last}, and restored elsewhere"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--child", nargs=2, metavar=("SEED", "FILE"))
    options = parser.parse_args()
    if options.child:
        child(int(options.child[0]), Path(options.child[1]))
        return
    seeds = range(options.first, options.first + options.count)
    with tempfile.TemporaryDirectory() as folder:
        pauses = 0
        for number, seed in enumerate(seeds):
            pauses += walked(seed)
            if number % 5 == 0:
                killed(seed, Path(folder))
    print(f"{len(seeds)} walks of {STEPS} steps, {pauses} pauses, {(len(seeds) + 4) // 5} kills: no difference")


if __name__ == "__main__":
    main()
