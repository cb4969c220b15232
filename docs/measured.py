"""What was measured, as tables: of the files in `docs/measured`, written by `tests.benchmarks` and `tests.real`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from docs.tables import Lines, cell, table

FOLDER = Path(__file__).parent / "measured"
BENCHMARKS = FOLDER / "benchmarks.json"
REAL_MODELS = FOLDER / "real_models.json"

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
            yield from _TABLES[kind[0]](reports)


def _kind(report: Report) -> tuple[str, ...]:
    """Return what reports have in common that make one table."""
    if "figures" in report:
        return "figures", report["title"]
    return "cells" if "row" in report else "ratios", report["base"], *sorted(report["ratios"])


def _ratios(reports: Sequence[Report]) -> Iterator[str]:
    """Yield a table with a row for each report: the milliseconds of the base, the ratios of the others to it."""
    base = reports[0]["base"]
    others = [name for name in reports[0]["ratios"] if name != base]
    rows = (
        (cell(one["title"]), _time(one["milliseconds"][base]), *(_ratio(one["ratios"][name]) for name in others))
        for one in reports
    )
    yield from table(("", cell(base), *map(cell, others)), rows)


def _cells(reports: Sequence[Report]) -> Iterator[str]:
    """Yield a table of one ratio each, by the rows and columns that the reports name."""
    columns = list(dict.fromkeys(one["column"] for one in reports))
    rows: dict[str, dict[str, float]] = {}
    for one in reports:
        rows.setdefault(one["row"], {})[one["column"]] = _other(one)
    cells = ((name, *(_ratio(found[column]) for column in columns)) for name, found in rows.items())
    yield from table((f"ratio to {reports[0]['base']}", *columns), cells)


def _other(report: Report) -> float:
    """Return the ratio of the only candidate that is not the base."""
    (found,) = (ratio for name, ratio in report["ratios"].items() if name != report["base"])
    return float(found)


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.3g} ms" if milliseconds < 1000 else f"{milliseconds:,.0f} ms"


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


_TABLES: Final = {"figures": _figures, "cells": _cells, "ratios": _ratios}


# --- real networks ---------------------------------------------------------------------------------------------------


def real_models(path: Path = REAL_MODELS) -> Lines:
    """Return the networks of a file of results: those that were run, then the troubles of those that were not."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    run = [row for row in rows if row["ours"] is not None]
    head = ("network", "from", "layers", "loops", "opens in", "run", "beside OpenVINO")
    head += ("largest difference", "`compare` (beside reading and the first run)", "drawn", "stepped there and back")
    yield from table(head, map(_network, run))
    for row in rows:
        if row["trouble"]:
            yield f"* {row['name']} ({cell(row['source'])}): {cell(row['trouble'])}"
    yield ""


def _network(row: Report) -> tuple[str, ...]:
    """Return a network as a row of the table."""
    compared = "" if row["compared"] is None else f"{row['comparing']:.1f} s ({_ratio(row['compared'])})"
    return (
        row["name"],
        cell(row["source"]),
        f"{row['layers']:,}",
        str(row["loops"]),
        _time(row["opening"]),
        _time(row["ours"]),
        _ratio(row["ours"] / row["openvino"]),
        f"{row['difference']:.1e}" if row["difference"] else "none",
        f"{compared}, a mismatch" if row["has_mismatch"] else compared,
        _answer(row["is_drawn"]),
        _answer(row["is_stepped"]),
    )


def _answer(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"
