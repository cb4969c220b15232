"""What changes in several panes at once is painted at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from textual.geometry import Offset, Region
from textual.widget import Widget


class Together:
    """Lines of several panes that change with one key, painted as one: each widget that is refreshed by itself costs
    Textual three messages, more than its lines do."""

    def __init__(self) -> None:
        self._regions: list[Region] = []
        self._is_open = False

    def take(self, pane: Widget, regions: Sequence[Region]) -> bool:
        """Paint these parts of a pane with the others; whether they are many at once just now."""
        if self._is_open:
            offset = pane.content_region.offset
            self._regions += [region.translate(offset) for region in regions]
        return self._is_open

    @contextmanager
    def painted_by(self, widget: Widget) -> Iterator[None]:
        """Collect what changes inside of the block, and have it painted for this widget, which stands for all."""
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False
            regions, self._regions = self._regions, []
            if regions:
                x, y = widget.content_region.offset
                widget.refresh(*(region.translate(Offset(-x, -y)) for region in regions))


def runs(lines: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Lines in order as runs of them: the first, and the one behind the last."""
    for _, run in groupby(enumerate(lines), lambda pair: pair[1] - pair[0]):
        found = [line for _, line in run]
        yield found[0], found[-1] + 1
