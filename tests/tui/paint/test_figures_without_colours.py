"""Without colours a sign is seen in cells of any width."""

from __future__ import annotations

import pytest
from stepper_tui.paint.rows import figure
from stepper_tui.theme import in_ascii


@pytest.mark.parametrize("width", [1, 2, 3])
def test_below_zero_is_told_from_above(width: int) -> None:
    above = [figure(level, width) for level in range(1, 10)]
    below = [figure(-level, width) for level in range(1, 10)]
    assert above == list("123456789")
    assert len(set(below)) == 9 and not set(above) & set(below)
    assert all(len(text) <= width for text in above + below)
    assert not set(above) & {in_ascii(text) for text in below} and "?" not in "".join(map(in_ascii, below))
