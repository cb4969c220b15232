"""The sweep's side of its processes: each runs the inputs of chunks, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from stepper.element_types import Array
from stepper.processes.process_messages import RUNNING
from stepper.processes.server import Announce, Service, serve
from stepper.sweep.sweep_inputs import let_end
from stepper.sweep.sweeping import SweepChunk, sweep_chunk


class SweepService(Service):
    """Performs chunks. The process ends where an operation in it does not come to its end."""

    acts = SweepChunk

    def __init__(self, announce: Announce) -> None:
        self._announce = announce
        let_end()

    def perform(self, act: SweepChunk, arrays: list[Array]) -> tuple[Any, Sequence[Array]]:
        """Return the rows of a chunk."""
        self._announce(RUNNING)
        given = iter(arrays)
        fixed, states = dict(zip(act.fixed, given, strict=False)), dict(zip(act.states, given, strict=False))
        return sweep_chunk(replace(act.job, reader=replace(act.job.reader, fixed=fixed, states=states)), act.inputs), ()


def main() -> None:
    """Serve until the other side is gone."""
    serve(SweepService)
