"""What was measured, as tables: of the files in `docs/measured`, which `python -m tests.benchmarks` writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from docs.tables import Lines, cell, table

FOLDER = Path(__file__).parent / "measured"
BENCHMARKS = FOLDER / "benchmarks.json"

Report = Mapping[str, Any]


def benchmarks(path: Path = BENCHMARKS) -> Lines:
    """Return all that a file of benchmarks holds: for each a heading and tables of ratios or of times."""
    found = json.loads(path.read_text(encoding="utf-8"))
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    yield from (f"On two cores, with {versions}.", "")
    for name, one in found["benchmarks"].items():
        yield from (f"### {one['sentence']}", "", f"`python -m tests.benchmarks.{name}`", "")
        for kind, group in groupby(one["reports"], _kind):
            reports = list(group)
            yield from _figures(reports) if kind[0] == "figures" else _ratios(reports)


def _kind(report: Report) -> tuple[str, ...]:
    """Return what reports have in common that make one table."""
    return ("figures", report["title"]) if "figures" in report else (report["base"], *sorted(report["ratios"]))


def _ratios(reports: Sequence[Report]) -> Iterator[str]:
    """Yield a table with a row for each report: the milliseconds of the base, the ratios of the others to it."""
    base = reports[0]["base"]
    others = [name for name in reports[0]["ratios"] if name != base]
    rows = (
        (cell(one["title"]), f"{one['milliseconds'][base]:.3g} ms", *(_ratio(one["ratios"][name]) for name in others))
        for one in reports
    )
    yield from table(("", cell(base), *map(cell, others)), rows)


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _figures(reports: Iterable[Report]) -> Iterator[str]:
    """Yield a table of times that stand beside limits, without what other processes took."""
    for report in reports:
        rows = (
            (
                cell(one["title"]),
                f"{one['own_median']:.1f} ms",
                f"{one['own_nearly_all']:.1f} ms",
                _limit(one["limits"]),
            )
            for one in report["figures"]
        )
        yield from table((cell(report["title"]), "median", "95 %", "limits"), rows)


def _limit(limits: Sequence[float | None]) -> str:
    return " and ".join(f"{limit:.4g} ms" for limit in dict.fromkeys(limits) if limit is not None) or "none"
