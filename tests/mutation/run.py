"""Examine many mutants: `python -m tests.mutation.run --what operands --count 5000 [--seed 0]`.

`--models FOLDER` adds the models below a folder to those of the project. Exit code 1 for a fault.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib.util import find_spec

from tests.mutation.bases import MORE_MODELS
from tests.mutation.workers import WHAT, Series, counted, describe


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--what",
        choices=[one for one in WHAT if find_spec(f"tests.mutation.{one}")],
        default="models",
        help="what is damaged",
    )
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; one alone: --count 1")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--models", metavar="FOLDER", help="more models, in the folder and those below it")
    parser.add_argument("--unclear", action="store_true", help="show errors that speak of Python, not of the model")
    parser.add_argument("--all", action="store_true", help="show every outcome")
    options = parser.parse_args()
    if options.models is not None:
        os.environ[MORE_MODELS] = options.models  # the processes inherit it
    begin = time.monotonic()
    found = []
    series = Series(options.what, range(options.seed, options.seed + options.count), options.processes)
    for seed, outcome in series.outcomes():
        found.append((seed, outcome))
        if outcome.is_fault or options.all or (options.unclear and outcome.kind == "unclear"):
            print(f"--- seed {seed} ({describe(options.what, seed)}): {outcome.kind}\n{outcome.text}", flush=True)
    took = time.monotonic() - begin
    print(f"{len(found)} mutants of {options.what} in {took:.0f} s, at most {series.peak} MB: {counted(found)}")
    return int(any(outcome.is_fault for _, outcome in found))


if __name__ == "__main__":
    sys.exit(main())
