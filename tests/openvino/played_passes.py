"""A process in the place of OpenVINO's that writes models as its passes do: as many as the device says.

It says how it goes, too, as in `12:ends`: `ends`, `fails`, `slow`, `hangs` or `crashes`.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from stepper.openvino.runtime import CompileFile, OpenVINOAct
from stepper.processes import process_messages
from stepper.processes.process_messages import COMPILING, Completed, Rejected, StageBegan


def main() -> None:
    """Answer the one request that comes."""
    found = process_messages.read_request(sys.stdin.buffer, OpenVINOAct)
    assert found is not None and isinstance(found[0].act, CompileFile)
    act = found[0].act
    count, _, way = act.runtime.device.partition(":")
    process_messages.write(sys.stdout.buffer, StageBegan(COMPILING))
    (Path(act.folder) / "pid").write_text(str(os.getpid()))
    for number in range(int(count)):
        for suffix, content in ((".bin", b"weights" * 100), (".xml", b"<net/>")):
            (Path(act.folder) / f"Model7_{number:03}_ov::pass::Some{suffix}").write_bytes(content)
        if way == "slow":
            time.sleep(0.001)
    if way == "hangs":
        time.sleep(60)
    if way == "crashes":
        os.abort()
    failed = Rejected("", "Exception from src/a.cpp:1:\nIt is too large.")
    process_messages.write(sys.stdout.buffer, failed if way == "fails" else Completed())
    sys.stdin.buffer.read()
