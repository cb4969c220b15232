"""Search over the passes of a compilation: few of them are run, those that tell where results begin to differ.

Passes come in windows, as many as may lie on the disk. Where the model after the last of a window still computes the
same, no pass of it is run; else halving finds the first that differs, the first with a large error, and the first
after which the model cannot be run. A change that a later pass of the same window takes back is so not seen.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from stepper.compare.passes.passes import PassEffect, PassJudge, PassReport
from stepper.openvino.partner import TracedPass

_MOST_BYTES: Final = 2**30
"""Of models that lie on the disk at once."""

_LARGE: Final = 10.0
"""How many times a difference must grow for a second pass to be named."""


class PassSearch(Struct):
    """Passes that were run, of `total`, in their order; and which of them count.

    `first` is the first after which results differ, `large` the one after which most of the difference is there, where
    that is another one, `refused` the first after which the model cannot be run.
    """

    total: int = 0
    reports: list[PassReport] = field(default_factory=list)
    first: PassReport | None = None
    large: PassReport | None = None
    refused: PassReport | None = None


def search(passes: Iterable[TracedPass], judge: PassJudge, told: Callable[[TracedPass], None]) -> PassSearch:
    """Return where results begin to differ; `told` hears of each pass as it comes."""
    found = PassSearch()
    with tempfile.TemporaryDirectory(prefix="stepper-passes-") as folder:
        for kept in _windows(passes, Path(folder), told):
            found.total += len(kept)
            _Window(kept, judge, found).look()
    found.reports.sort(key=lambda report: report.number)
    return found


def growth(reports: Iterable[PassReport]) -> PassReport | None:
    """Return the report of many after which most of the difference is there; None where it is the first."""
    different = [report for report in reports if report.verdict is PassEffect.DIFFERENT]
    largest = max((report.distance for report in different), default=0.0)
    if not different or largest < _LARGE * different[0].distance or different[0].distance >= largest / 2:
        return None
    return next(report for report in different if report.distance >= largest / 2)


def _windows(
    passes: Iterable[TracedPass], folder: Path, told: Callable[[TracedPass], None]
) -> Iterator[list[TracedPass]]:
    """Yield passes, whose files are kept until the next are taken, as many as may be."""
    kept: list[TracedPass] = []
    size = 0
    for traced in passes:
        told(traced)
        path = folder / f"{traced.number}.xml"
        for suffix in (".bin", ".xml"):
            with contextlib.suppress(FileNotFoundError):
                size += traced.path.with_suffix(suffix).stat().st_size
                traced.path.with_suffix(suffix).replace(path.with_suffix(suffix))
        kept.append(traced._replace(path=path))
        if size > _MOST_BYTES:
            yield kept
            for file in folder.iterdir():
                file.unlink()
            kept, size = [], 0
    if kept:
        yield kept


class _Window:
    """The passes of one window; each is run once at most, and those over other models are left out."""

    def __init__(self, passes: list[TracedPass], judge: PassJudge, found: PassSearch) -> None:
        self._passes, self._judge, self._found = passes, judge, found
        self._known: dict[int, PassReport | None] = {}

    def look(self) -> None:
        """Look at the last pass after which the model can be run; where results differ, at those before."""
        end = self._last_runnable()
        if end < 0:
            return
        last = self._report(end)
        if last.verdict is not PassEffect.DIFFERENT:
            return
        found = self._found
        if found.first is None:
            found.first = self._report(self._first(0, end, lambda report: report.verdict is PassEffect.DIFFERENT))
        before = found.large or found.first
        if last.distance >= _LARGE * before.distance and before.distance < last.distance / 2:
            found.large = self._report(self._first(0, end, lambda report: report.distance >= last.distance / 2))

    def _last_runnable(self) -> int:
        """Return the index of the last pass after which the model can be run; -1 for none."""
        end = self._existing(len(self._passes) - 1)
        if end < 0 or self._report(end).verdict is not PassEffect.NOT_RUN:
            return end
        begin = next(index for index in range(len(self._passes)) if self._reported(index) is not None)
        is_refused = self._report(begin).verdict is PassEffect.NOT_RUN  # as after all passes of a later window
        refused = begin if is_refused else self._first(0, end, lambda report: report.verdict is PassEffect.NOT_RUN)
        self._found.refused = self._found.refused or self._report(refused)
        return self._existing(refused - 1)

    def _first(self, low: int, high: int, holds: Callable[[PassReport], bool]) -> int:
        """Return the first index from which on something holds, which it does at `high`."""
        while low < high:
            middle = self._existing((low + high) // 2)
            if middle < low:
                low = (low + high) // 2 + 1
            elif holds(self._report(middle)):
                high = middle
            else:
                low = middle + 1
        return self._existing(high)

    def _existing(self, index: int) -> int:
        """Return the index, or the nearest before it, of a pass over the model itself; -1 for none."""
        while index >= 0 and self._reported(index) is None:
            index -= 1
        return index

    def _report(self, index: int) -> PassReport:
        report = self._reported(index)
        assert report is not None, "it is over the model itself"
        return report

    def _reported(self, index: int) -> PassReport | None:
        if index not in self._known:
            self._known[index] = found = self._judge.report(self._passes[index])
            if found is not None:
                self._found.reports.append(found)
        return self._known[index]
