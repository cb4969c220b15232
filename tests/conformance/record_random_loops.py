"""Record what the runtime computes for random loops: `python tests/conformance/record_random_loops.py --count 600`.

Everything goes into one archive whose bytes depend only on the generator and the runtime: for each seed that is kept
`<seed>.xml`, `<seed>.bin` and `<seed>.npz` (`in_<k>`: the k-th Parameter, `out_<k>`: the k-th Result, in the order of
the file), and `index.json`, which says of each seed what its model shows and how many iterations each loop made.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path

PROJECT = Path(__file__).parents[2]
sys.path.insert(0, str(PROJECT))

from tests.conformance.candidates import Verdict, collect  # noqa: E402

ARCHIVE = Path(__file__).parent / "recorded" / "random_loops.zip"
LONGEST_AGO = (1980, 1, 1, 0, 0, 0)


def record(count: int, folder: Path) -> tuple[list[Verdict], list[Verdict]]:
    """Examine the seeds from 0 on until `count` are kept; those kept and those dropped."""
    kept: list[Verdict] = []
    dropped: list[Verdict] = []
    verdicts = collect(0, 2 * count, folder)
    for verdict in verdicts:
        (dropped if verdict.reason else kept).append(verdict)
        if len(kept) == count:
            verdicts.close()
            break
    return kept, dropped


def write_archive(archive: Path, folder: Path, kept: list[Verdict]) -> None:
    """Put the files of the kept seeds and their index into one archive, without a trace of when."""
    index = {str(v.seed): {"description": v.description, "kinds": v.kinds, "iterations": v.iterations} for v in kept}
    members = {"index.json": json.dumps(index, indent=0).encode()}
    for verdict in kept:
        for suffix in (".xml", ".bin", ".npz"):
            members[f"{verdict.seed}{suffix}"] = (folder / f"{verdict.seed}{suffix}").read_bytes()
    archive.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name, content in sorted(members.items()):
            entry = zipfile.ZipInfo(name, LONGEST_AGO)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, content)


def report(kept: list[Verdict], dropped: list[Verdict]) -> None:
    """Print what was dropped and why, and what the kept models show."""
    for verdict in dropped:
        print(f"dropped {verdict.seed}: {verdict.reason}: {verdict.detail[-300:]}")
    print(f"{len(kept)} kept, {len(dropped)} dropped: {dict(Counter(verdict.reason for verdict in dropped))}")
    shown = Counter(kind for verdict in kept for kind in verdict.kinds)
    for name, number in sorted(shown.items()):
        print(f"{number:5} {name}")


def main() -> None:
    """Record as many models as the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=600, help="how many models to keep")
    parser.add_argument("--archive", type=Path, default=ARCHIVE, help="where to write them")
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        kept, dropped = record(arguments.count, Path(folder))
        write_archive(arguments.archive, Path(folder), kept)
    report(kept, dropped)
    size = arguments.archive.stat().st_size
    print(f"{arguments.archive.name}: {size / 1e6:.2f} MB in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
