"""The words of a sweep: its report, a histogram of iterations and operations, and the line of progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stepper.sweep.rows import SweepOutcome
from stepper.sweep.summary import IterationCount, LoopSpread, PlaceCount, SweepSummary
from stepper.sweep.sweeping import SweepProgress
from stepper.wording import counted, excerpt

_MOST_COLUMNS: Final = 8
_MOST_PLACES: Final = 20
_MOST_LENGTHS: Final = 6
_MOST_LOOPS: Final = 12
_MOST_NUMBERS: Final = 8
_LONGEST: Final = 60

_OTHERS: Final = {
    SweepOutcome.ERROR: "error",
    SweepOutcome.LIMIT: "limit",
    SweepOutcome.UNREADABLE: "unreadable",
    SweepOutcome.KILLED: "killed",
}


def report_lines(summary: SweepSummary, file: str) -> list[str]:
    """Return the report of a sweep; `file` is named in the command that opens an input."""
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in summary.outcomes.items())
    left = "" if summary.done == summary.count else f" ({summary.count - summary.done:,} not done yet)"
    lines = [f"{counted(summary.done, 'input')}{left}: {counts or 'nothing yet'}"]
    lines += _histogram(summary.places)
    lines += _loop_lines(summary)
    first = summary.places[0].first if summary.places else summary.unusual[0] if summary.unusual else None
    if first is not None:
        lines.append(f"open one: stepper sweep {file} --open {first}")
    return lines


def place_title(place: PlaceCount) -> str:
    """Return what shows, and in which layer: `nan in Divide 'wkv'`."""
    what = place.what if place.outcome not in _OTHERS else " ".join(dict.fromkeys((_OTHERS[place.outcome], place.what)))
    layer = f"{place.type} '{excerpt(place.operation, _LONGEST)}'" if place.operation or place.type else ""
    return f"{what} in {layer}" if layer else what


def _histogram(places: Sequence[PlaceCount]) -> list[str]:
    if not places:
        return []
    shown = places[:_MOST_PLACES]
    columns = _columns(shown)
    heads = [*(title for title, _ in columns), "inputs", "first"]
    table = [
        (
            place_title(place),
            [*(_sum(place.iterations, low, high) for _, (low, high) in columns), f"{place.inputs:,}", str(place.first)],
        )
        for place in shown
    ]
    width = max(len(title) for title, _ in table)
    widths = [max(len(head), *(len(cells[index]) for _, cells in table)) for index, head in enumerate(heads)]
    by = ", by iteration" if any(title != "-" for title, _ in columns) else ""
    lines = [f"what shows{by}", _line("", heads, width, widths)]
    lines += [_line(title, cells, width, widths) for title, cells in table]
    if len(places) > len(shown):
        lines.append(f"  and {counted(len(places) - len(shown), 'more place')}")
    return lines


def _line(title: str, cells: Sequence[str], width: int, widths: Sequence[int]) -> str:
    return f"  {title:{width}}  {'  '.join(f'{cell:>{size}}' for cell, size in zip(cells, widths, strict=True))}"


Span = tuple[int | None, int | None]


def _columns(places: Sequence[PlaceCount]) -> list[tuple[str, Span]]:
    """Return titles and ranges of iterations: each iteration, or as many ranges as there is room for."""
    known = sorted({one.iteration for place in places for one in place.iterations if one.iteration is not None})
    outside = any(one.iteration is None for place in places for one in place.iterations)
    found: list[tuple[str, Span]] = [("-", (None, None))] if outside else []
    if len(known) <= _MOST_COLUMNS:
        return found + [(f"{number:,}", (number, number)) for number in known]
    low, high = known[0], known[-1]
    step = -(-(high - low + 1) // _MOST_COLUMNS)
    bounds = [(begin, min(begin + step - 1, high)) for begin in range(low, high + 1, step)]
    return found + [(f"{begin:,}-{end:,}" if begin < end else f"{begin:,}", (begin, end)) for begin, end in bounds]


def _sum(counts: Sequence[IterationCount], low: int | None, high: int | None) -> str:
    if low is None or high is None:
        total = sum(one.inputs for one in counts if one.iteration is None)
    else:
        total = sum(one.inputs for one in counts if one.iteration is not None and low <= one.iteration <= high)
    return f"{total:,}" if total else "."


def _loop_lines(summary: SweepSummary) -> list[str]:
    if not summary.loops:
        return []
    lines = ["iterations of runs that came to their end"]
    lines += [f"  {_spread(one)}" for one in summary.loops[:_MOST_LOOPS]]
    if len(summary.loops) > _MOST_LOOPS:
        lines.append(f"  and {counted(len(summary.loops) - _MOST_LOOPS, 'more loop')}")
    if summary.unusual:
        numbers = ", ".join(str(number) for number in summary.unusual[:_MOST_NUMBERS])
        more = ", ..." if len(summary.unusual) > _MOST_NUMBERS else ""
        lines.append(f"  unlike most: {counted(len(summary.unusual), 'input')} ({numbers}{more})")
    return lines


def _spread(spread: LoopSpread) -> str:
    path = spread.path.removeprefix("model > ")
    if len(spread.lengths) == 1:
        only = spread.lengths[0]
        return f"{path}: {only.iterations:,} with each of {counted(only.inputs, 'input')}"
    shown = spread.lengths[:_MOST_LENGTHS]
    parts = [f"{one.iterations:,} with {counted(one.inputs, 'input')}" for one in shown]
    fewest = min(one.iterations for one in spread.lengths)
    most = max(one.iterations for one in spread.lengths)
    rest = f", ... ({fewest:,} to {most:,})" if len(spread.lengths) > len(shown) else ""
    return f"{path}: {', '.join(parts)}{rest}"


def progress_text(progress: SweepProgress) -> str:
    """Return how far a sweep has come, in one line."""
    share = 100 * progress.done // max(progress.count, 1)
    text = f"{progress.done:,} of {progress.count:,} ({share} %)"
    if progress.left is not None:
        text += f", {progress.rate:,.0f} a second, {_left(progress.left)} left"
    found = [
        f"{count:,} {outcome}" for outcome, count in progress.outcomes.items() if outcome is not SweepOutcome.NOTHING
    ]
    return f"{text}; {', '.join(found)}" if found else text


def _left(seconds: float) -> str:
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
