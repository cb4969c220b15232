"""Examine many mutants: `python -m tests.mutation.run --count 5000 [--seed 0] [--unclear]`; exit code 1 for a fault."""

from __future__ import annotations

import argparse
import sys
import time

from tests.mutation.workers import counted, describe, outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; one alone: --count 1")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--unclear", action="store_true", help="show errors that speak of Python, not of the model")
    parser.add_argument("--all", action="store_true", help="show every outcome")
    options = parser.parse_args()
    begin = time.monotonic()
    found = []
    for seed, outcome in outcomes(range(options.seed, options.seed + options.count), options.processes):
        found.append((seed, outcome))
        if outcome.is_fault or options.all or (options.unclear and outcome.kind == "unclear"):
            print(f"--- seed {seed} ({describe(seed)}): {outcome.kind}\n{outcome.text}", flush=True)
    print(f"{len(found)} mutants in {time.monotonic() - begin:.0f} s: {counted(found)}")
    return int(any(outcome.is_fault for _, outcome in found))


if __name__ == "__main__":
    sys.exit(main())
