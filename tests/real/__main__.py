"""Networks that nobody here wrote, each in a process of its own: `python -m tests.real [NAME ...] --folder DIR`.

    python -m tests.real --folder DIR --json docs/measured/real_models.json       # then: python -m docs.reference
    python -m tests.real silero_v6_ifless --folder DIR

What is not in the folder is fetched into it: packages by `pip download`, some hundred megabytes for all of them. A file
of results that is there keeps those of networks that are not named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from docs.measured import real_models
from tests.real.measuring import Row
from tests.real.recipes import BY_NAME, FetchError, Recipe

SECONDS: Final = 420


def measured(recipe: Recipe, folder: Path, seconds: float) -> dict[str, Any]:
    """The row of a network, which says so where its process found no end or a bad one."""
    row = Row(recipe.name, str(recipe.source))
    try:
        recipe.source.fetch(folder, recipe.name)
        command = [sys.executable, "-m", "tests.real.measuring", recipe.name, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except FetchError as error:
        row.trouble = str(error)
    except subprocess.TimeoutExpired:
        row.trouble = f"took more than {seconds:g} seconds"
    else:
        if done.returncode == 0:
            found: dict[str, Any] = json.loads(done.stdout)
            return found
        row.trouble = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return asdict(row)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, write and print; the exit code: 1 where a network has a trouble."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.real", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BY_NAME)} (default: all)")
    parser.add_argument("--folder", type=Path, required=True, help="where they are, and are fetched into")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="the limit of each (default: %(default)s)")
    given = parser.parse_args(words)
    if unknown := [name for name in given.names if name not in BY_NAME]:
        parser.error(f"no network is called {unknown[0]}; there are {', '.join(BY_NAME)}")
    before = json.loads(given.json.read_text(encoding="utf-8")) if given.json and given.json.exists() else []
    found = {row["name"]: row for row in before}
    folder = given.folder.resolve()
    chosen = given.names or list(BY_NAME)
    for name in chosen:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found[name] = measured(BY_NAME[name], folder, given.seconds)
    text = json.dumps([found[name] for name in BY_NAME if name in found], indent=1) + "\n"
    with tempfile.TemporaryDirectory() as temporary:
        target = given.json or Path(temporary) / "real_models.json"
        target.write_text(text, encoding="utf-8")
        print("\n".join(real_models(target)))
    return any(found[name]["trouble"] for name in chosen)


if __name__ == "__main__":
    sys.exit(main())
