"""Measuring side by side: all candidates in turn, several rounds, the best of each; and printing ratios."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

Seconds = dict[str, float]


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


def side_by_side(
    candidates: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> Seconds:
    """The best time of each candidate. They take turns, so that a busy moment of the machine strikes all alike."""
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, call in candidates.items():
            begin = clock()
            result = call()
            best[name] = min(best[name], clock() - begin)
            del result  # not before: freeing a large model takes its time too
    return best


def report(title: str, seconds: Seconds, base: str) -> dict[str, object]:
    """The measurement as ratios to one candidate."""
    ratios = {name: round(value / seconds[base], 3) for name, value in seconds.items()}
    milliseconds = {name: float(f"{value * 1000:.4g}") for name, value in seconds.items()}
    return {"title": title, "base": base, "ratios": ratios, "milliseconds": milliseconds}


def print_reports(reports: list[dict[str, object]], *, as_json: bool) -> None:
    """All measurements, as tables or as one JSON list."""
    if as_json:
        print(json.dumps(reports, indent=2))
        return
    for entry in reports:
        print(f"\n{entry['title']} (ratios to: {entry['base']})")
        ratios, milliseconds = entry["ratios"], entry["milliseconds"]
        assert isinstance(ratios, dict) and isinstance(milliseconds, dict)
        for name, ratio in ratios.items():
            print(f"  {name:<44} {ratio:8.2f}   {milliseconds[name]:12.4g} ms")


def json_wanted(description: str | None) -> bool:
    """Whether the command line of a benchmark asks for JSON, its only option."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return bool(parser.parse_args().json)
