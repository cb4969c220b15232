"""Let each call of the system that writes fail once: `python -m tests.faults.run [--every N] [SUBJECT ...]`.

Exit code 1 where a file was lost, is neither old nor new, or a command ended in anything but one sentence.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COMPILER = shutil.which("cc") or shutil.which("gcc")
IS_SUPPORTED = COMPILER is not None and sys.platform == "linux"


def results(names: Sequence[str] = (), every: int = 1) -> Iterator[dict[str, Any]]:
    """Yield what was found for each subject and kind of call."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "failing_calls.so"
        source = Path(__file__).with_name("failing_calls.c")
        assert COMPILER is not None
        subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tests.faults.inject", str(library), str(every), *names]
        found = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        with found as process:
            assert process.stdout is not None
            for line in process.stdout:
                yield json.loads(line)
        assert not process.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only each N-th call")
    parser.add_argument("names", nargs="*", metavar="SUBJECT")
    options = parser.parse_args()
    faults = wrong = 0
    for found in results(options.names, options.every):
        print(f"{found['subject']}: {found['call']}: {found['faults']} faults, {len(found['wrong'])} wrong", flush=True)
        for number, texts in found["wrong"].items():
            print(f"  {number}: {'; '.join(texts)}", flush=True)
        faults, wrong = faults + found["faults"], wrong + len(found["wrong"])
    print(f"{faults} faults, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
