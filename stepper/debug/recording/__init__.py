"""Runs that survive: a run recorded into one SQLite file while it goes on, and resumed from it, bit for bit.

    with record(machine, inputs, "run.sqlite") as recorder:       # statistics of all values, carried values, snapshots
        recorder.run()
    with open_recording("run.sqlite") as recording:               # also while it is being written, and after a crash
        recording.query("SELECT iteration, max FROM statistics WHERE name = 'h_next' ORDER BY tick")
    recorder, log = resume("run.sqlite")                          # from the last snapshot

What is in the file is described in schema.py, for everybody who can write SQL.
"""

from stepper.debug.recording.choice import Amount, Choice, Iterations
from stepper.debug.recording.opening import open_recording, record, resume
from stepper.debug.recording.reading import Recording
from stepper.debug.recording.recorder import Pace, Recorder

__all__ = ["Amount", "Choice", "Iterations", "Pace", "Recorder", "Recording", "open_recording", "record", "resume"]
