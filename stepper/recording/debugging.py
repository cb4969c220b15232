"""A debugged run that is recorded: stops at breakpoints, and the file ends where it stopped.

A machine has one watcher. The `RecordingWatcher` is both: it asks about breakpoints first and hands on to the recorder
what lies at or before the stop. For a breakpoint may be asked late, when the iteration in which it stops has been
closed already; the run then goes back to the stop, and what came after it has not happened and is in no file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from stepper.debug.breakpoints.breakpoint import BreakDescription, Breakpoint
from stepper.debug.breakpoints.watcher import BreakpointWatcher
from stepper.debug.debugger import DEFAULT_MEMORY, Debugger
from stepper.debug.stop import Stop
from stepper.engine.frames import Event, Frame
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from stepper.engine.program import Partner
from stepper.engine.run import LoopLog
from stepper.errors import StepperError
from stepper.recording.opening import open_recording, resume
from stepper.recording.recorder import Recorder


class RecordingWatcher(BreakpointWatcher):
    """The watcher of a run that is debugged and recorded. What a replay comes by again is not recorded twice."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder.machine)
        self._recorder = recorder
        self._recorded = recorder.machine.tick

    def watch(self, owners: Iterable[Breakpoint]) -> None:
        """Ask about these breakpoints; every iteration is of interest to the recorder."""
        super().watch(owners)
        self.watches_iterations = True

    def iteration_watch(self, frame: Frame) -> Callable[[Frame], bool]:
        """Return what records an iteration; every one is of interest."""
        return self.after_iteration

    def after_iteration(self, frame: Frame) -> bool:
        """Record an iteration that has been closed, unless the stop is before its end. Return True to stop."""
        stops, tick = super().after_iteration(frame), self.machine.tick
        if tick > self._recorded and (not stops or self.found_at == tick):
            self._recorded = tick
            self._recorder.after_iteration(frame)
        return stops


@contextlib.contextmanager
def recorded(debugger: Debugger, recorder: Recorder) -> Iterator[None]:
    """Allow `continue_recorded` in a block, and no other verb; close the file at its end."""
    plain = debugger.watcher
    _watch_with(debugger, RecordingWatcher(recorder))
    try:
        with recorder:
            yield
    finally:
        _watch_with(debugger, plain)


def _watch_with(debugger: Debugger, watcher: BreakpointWatcher) -> None:
    debugger.watcher = debugger.timeline.watcher = debugger.machine.watcher = watcher
    debugger.breakpoints.watched_by(watcher)


def continue_recorded(debugger: Debugger, recorder: Recorder, *, for_good: bool = False) -> Stop:
    """Go on to the next stop of a breakpoint, to a pause or to the end; the file then goes up to there.

    `for_good`: nothing follows, and the file gets what the iterations under way have computed, too.
    """

    def hear(event: Event) -> bool:
        recorder.after(event)
        return False

    stop = debugger.continue_(hear)
    if debugger.machine.finished:
        recorder.finish()
    else:
        recorder.halt(for_good=for_good)
    return stop


def resume_debugged(
    path: str | Path,
    breaks: Iterable[BreakDescription],
    model: str | Path | None = None,
    inputs: Mapping[str | int, Any] | None = None,
    *,
    max_iterations: int | None = None,
    memory: int = DEFAULT_MEMORY,
    partner: Partner | None = None,
) -> tuple[Debugger, Recorder, LoopLog]:
    """Resume as `resume` does, with a debugger that stands where the recording ends; its past is the whole run.

    The names in breakpoints are seen from the start of the run, as when it began; their hits are counted from here.
    """
    with open_recording(path) as recording:
        recorded_inputs = recording.inputs()
    recorder, log = resume(path, model, inputs, max_iterations=max_iterations, partner=partner)
    machine = recorder.machine
    machine.keep_values = True  # a breakpoint may be asked when the operations after it have run
    bound = bind_inputs(machine.compiled.model, dict(enumerate(recorded_inputs.values())))
    present = machine.snapshot()
    machine.restore(Machine(machine.compiled, bound, states=machine.initial_states).snapshot())
    debugger = Debugger.of(machine, bound, memory=memory)
    try:
        for description in breaks:
            debugger.breakpoints.add(description)
    except StepperError:
        recorder.close()
        raise
    debugger.timeline.stand(present)
    debugger.watcher.counted()
    recorder.realign()
    return debugger, recorder, log
