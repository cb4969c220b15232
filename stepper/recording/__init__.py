"""Record a run into an SQLite file while it runs, and resume it from the file, bit for bit.

    with record(machine, inputs, "run.sqlite") as recorder:       # statistics of all values, carried values, snapshots.
        recorder.run()
    with open_recording("run.sqlite") as recording:               # also while it is being written, and after a crash.
        recording.query("SELECT iteration, max FROM statistics WHERE name = 'h_next' ORDER BY tick")
    recorder, log = resume("run.sqlite")                          # from the last snapshot.

The file file.py describes the contents, for everybody who can write SQL.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepper.recording.origin import Amount, Iterations, RecordingOptions
    from stepper.recording.reading import Recording
    from stepper.recording.recorder import Pace, Recorder, open_recording, record, resume

__all__ = [
    "Amount",
    "Iterations",
    "Pace",
    "Recorder",
    "Recording",
    "RecordingOptions",
    "open_recording",
    "record",
    "resume",
]

_HOMES = {
    **dict.fromkeys(("Amount", "RecordingOptions", "Iterations"), "origin"),
    **dict.fromkeys(("Pace", "Recorder", "open_recording", "record", "resume"), "recorder"),
    "Recording": "reading",
}
"""Loaded when they are called for: a debugger that records nothing starts without SQLite and these modules."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
