"""Measuring side by side: all candidates in turn, several rounds, the best of each; and printing ratios."""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

Seconds = dict[str, float]

Report = dict[str, Any]
"""One measurement: title, base, and by candidate the ratios to the base and the milliseconds; perhaps more."""

Reports = list[Report]

Measure = Callable[..., Reports]
"""What a benchmark measures: of the folder that its files go into, `quick`, and perhaps `models`."""


class Share(NamedTuple):
    """What a process had of the processors so far, in seconds: how long its threads ran, and waited to be let run."""

    ran: float
    waited: float


def share(process: int | str = "self") -> Share:
    """As Linux counts it; elsewhere nothing has waited."""
    ran = waited = 0
    for task in Path(f"/proc/{process}/task").glob("*/schedstat"):
        fields = task.read_text().split()
        ran, waited = ran + int(fields[0]), waited + int(fields[1])
    return Share(ran / 1e9, waited / 1e9)


def own_time(clock: float, before: Share, after: Share) -> float:
    """Seconds by the clock without those in which other processes had the processor; never less than was computed."""
    return min(clock, max(clock - (after.waited - before.waited), after.ran - before.ran))


def processor_time() -> float:
    """Seconds that this process computed, all of its threads, and those that it started and that have ended."""
    parts = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in parts)


def side_by_side(
    candidates: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = processor_time
) -> Seconds:
    """The best time of each candidate. They take turns, so that a busy moment of the machine strikes all alike.

    What a process that lives on does for a candidate is seen by the clock alone (`time.perf_counter`).
    """
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, call in candidates.items():
            begin = clock()
            result = call()
            best[name] = min(best[name], clock() - begin)
            del result  # not before: freeing a large model takes its time too
    return best


def report(title: str, seconds: Seconds, base: str) -> Report:
    """The measurement as ratios to one candidate."""
    ratios = {name: round(value / seconds[base], 3) for name, value in seconds.items()}
    milliseconds = {name: float(f"{value * 1000:.4g}") for name, value in seconds.items()}
    return {"title": title, "base": base, "ratios": ratios, "milliseconds": milliseconds}


def print_tables(reports: Reports) -> None:
    """All measurements, a table for each."""
    for entry in reports:
        print(f"\n{entry['title']} (ratios to: {entry['base']})")
        ratios, milliseconds = entry["ratios"], entry["milliseconds"]
        for name, ratio in ratios.items():
            print(f"  {name:<44} {ratio:8.2f}   {milliseconds[name]:12.4g} ms")


def main(
    description: str | None, measure: Measure, show: Callable[[Reports], None] = print_tables, models: str | None = None
) -> None:
    """The command of a benchmark: measure, and print tables or, with `--json`, one JSON list.

    With `--quick` it is only tried: small models, few rounds. `models` is what it calls models that may be named.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--quick", action="store_true", help="small models and few rounds: figures for no one")
    if models is not None:
        parser.add_argument("models", nargs="*", type=Path, metavar=models)
    given = vars(parser.parse_args())
    as_json = given.pop("json")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), **given)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        show(found)
