"""All benchmarks, one after another, each in a process of its own: `python -m tests.benchmarks [NAME ...]`.

    python -m tests.benchmarks --quick                                       # do they work
    python -m tests.benchmarks --json docs/measured/benchmarks.json          # then: python -m docs.reference
    python -m tests.benchmarks loops operations --table                      # these two, as Markdown

A file that is there keeps what it has of benchmarks that are not named. How exact `why` is and how small `reduce` makes
models is asked by `tests.benchmarks.causes` and `tests.benchmarks.reductions`, which measure no time.
"""

from __future__ import annotations

import argparse
import ast
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from docs.measured import benchmarks

NAMES: Final = (
    "loops",
    "debugging",
    "adapting",
    "linear",
    "recording",
    "overview",
    "comparing",
    "checking",
    "capturing",
    "sweeping",
    "operations",
    "fallback",
    "reading",
    "startup",
    "terminal",
)
SECONDS: Final = 900
_PACKAGES: Final = ("numpy", "openvino", "onnxruntime", "onnx")


def sentence(name: str) -> str:
    """What a benchmark measures, as the first line of its module says it."""
    text = ast.get_docstring(ast.parse(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].partition(": `python")[0].rstrip(".:")


def versions() -> dict[str, str]:
    """Python and the packages that have a share in the figures, as far as they are installed."""
    found = {"Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def measured(name: str, *, quick: bool, seconds: float) -> list[dict[str, Any]] | str:
    """The reports of one benchmark, or why there are none."""
    command = [sys.executable, "-m", f"tests.benchmarks.{name}", "--json", *(["--quick"] if quick else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"took more than {seconds:g} seconds"
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Measure, write and print; the exit code: 1 where a benchmark failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the measurements")
    parser.add_argument("--table", action="store_true", help="print them as Markdown")
    parser.add_argument("--quick", action="store_true", help="small models and few rounds: figures for no one")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="the limit of each (default: %(default)s)")
    given = parser.parse_args(words)
    if unknown := [name for name in given.names if name not in NAMES]:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(NAMES)}")
    before = json.loads(given.json.read_text(encoding="utf-8")) if given.json and given.json.exists() else {}
    found: dict[str, Any] = before.get("benchmarks", {})
    has_failed = False
    for name in given.names or NAMES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        reports = measured(name, quick=given.quick, seconds=given.seconds)
        if isinstance(reports, str):
            print(f"{name}: {reports}", file=sys.stderr)
            has_failed = True
        elif reports:
            found[name] = {"sentence": sentence(name), "reports": reports}
    kept = {name: found[name] for name in NAMES if name in found}
    text = json.dumps({"versions": versions(), "benchmarks": kept}, indent=1) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        target = given.json or Path(folder) / "benchmarks.json"
        target.write_text(text, encoding="utf-8")
        if given.table or not given.json:
            print("\n".join(benchmarks(target)))
    return has_failed


if __name__ == "__main__":
    sys.exit(main())
