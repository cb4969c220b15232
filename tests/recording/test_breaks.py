"""A run that is recorded and stops at breakpoints: what the file holds at each stop, and what becomes of the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepper.debug.breakpoints.breakpoint import BreakDescription, BreakKind
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason, Stop
from stepper.errors import LimitReached
from stepper.recording import Recorder, RecordingOptions, open_recording, record, resume
from stepper.recording.recorder import continue_recorded, recorded, resume_debugged
from tests.recording.recorded import Case, outputs_of, sample, sample_names, tables

_MOST_STOPS = 9


def at_operations(subject: Case, offset: int) -> list[BreakDescription]:
    """At every fourth operation of every graph; half of them with a hit count, which is asked for late."""
    found = []
    for program in subject.compiled.programs:
        level = "::".join(f"`{layer.name}`" for layer in program.path) or "model"
        if program.path and program.path[-1].type == "If":
            is_then = program.path[-1].bodies[0].graph is program.graph
            level += "::then" if is_then else "::else"
        for number, operation in enumerate(program.operations[offset::4]):
            found.append(BreakDescription(BreakKind.AT, f"{level}::id={operation.layer.id}", hit=number % 2))
    return found


def about_values(*texts: str) -> list[BreakDescription]:
    return [BreakDescription(BreakKind.WHEN, text) for text in texts]


def stops(path: Path, first: Debugger, recorder: Recorder, wanted: list[BreakDescription]) -> Iterator[Stop]:
    """Stop after stop, each in a debugger of its own that goes on from the file; in the end without breakpoints."""
    debugger = first
    for description in wanted:
        debugger.breakpoints.add(description)
    for _ in range(_MOST_STOPS):
        with recorded(debugger, recorder):
            stop = continue_recorded(debugger, recorder)
        assert not debugger.timeline.warnings
        yield stop
        if stop.reason is Reason.END:
            return
        debugger, recorder, _log = resume_debugged(path, wanted)
    recorder.close()
    with resume(path)[0] as recorder:
        assert recorder.run()


def breaks(subject: Case) -> Iterator[list[BreakDescription]]:
    yield from (at_operations(subject, offset) for offset in range(3))
    yield about_values("cond", "end")
    yield about_values("stuck", "shape", "nan")


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("name", sample_names())
def test_the_file_ends_with_the_stop_and_goes_on_to_the_same(tmp_path: Path, name: str) -> None:
    subject = sample(name)
    whole = tmp_path / "whole.sqlite"
    expected = outputs_of(subject.recorded(whole))
    everything = dict(tables(whole))
    for number, wanted in enumerate(breaks(subject)):
        path = tmp_path / f"{number}.sqlite"
        machine = subject.machine()
        debugger = Debugger.of(machine, subject.inputs)
        recorder = record(machine, subject.inputs, path, RecordingOptions.parse("all"))
        undisturbed = Debugger.of(subject.machine(), subject.inputs)
        for description in wanted:
            undisturbed.breakpoints.add(description)
        for stop in stops(path, debugger, recorder, wanted):
            alone = undisturbed.continue_()
            assert (stop.tick, stop.reason, stop.place) == (alone.tick, alone.reason, alone.place)
            for view, rows in tables(path):
                before = [row for row in everything[view] if row[0] <= stop.tick]
                assert rows == before, f"{view} at {stop}"
        assert dict(tables(path)) == everything
        with open_recording(path) as recording:
            assert outputs_of(recording.restored().machine) == expected


def test_a_limit_ends_a_run_with_breakpoints_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    subject = sample("for_loop")
    machine = subject.machine(max_iterations=4)
    debugger = Debugger.of(machine, subject.inputs)
    debugger.breakpoints.add(BreakDescription(BreakKind.WHEN, "nan"))
    recorder = record(machine, subject.inputs, path, RecordingOptions.parse("all"))
    with pytest.raises(LimitReached), recorded(debugger, recorder):
        continue_recorded(debugger, recorder)
    assert machine.watcher is debugger.watcher is not None
    with open_recording(path) as recording:
        assert recording.query("SELECT max(iteration) FROM iterations") == [(3,)]
    with resume(path, max_iterations=100)[0] as recorder:
        assert recorder.run()
    assert outputs_of(recorder.machine) == subject.outputs()
