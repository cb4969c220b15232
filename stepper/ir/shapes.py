"""Shapes as a file declares them: `1,2`, `?,3`, `-1`, `2..8`, `..5`, `1..`, and `...` for a shape of any rank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

_BOUNDS: Final = re.compile(r"(\d*)\.\.(\d*)")
LARGEST_DIMENSION: Final = 2**63 - 1


class Dimension(NamedTuple):
    """The sizes that one dimension may have: from `least` to `most` (None: unbounded)."""

    least: int
    most: int | None

    def __str__(self) -> str:
        if self.least == self.most:
            return str(self.least)
        if self.most is None:
            return f"{self.least}.." if self.least else "?"
        return f"{self.least or ''}..{self.most}"


class PartialShape(Struct, frozen=True):
    """A shape of which dimensions, or the rank itself (`dimensions` is None), may be open."""

    dimensions: tuple[Dimension, ...] | None

    @staticmethod
    def parse(text: str) -> PartialShape:
        """Read the `shape` attribute of a Parameter; ValueError for a text that is none."""
        return _parse(text)

    @staticmethod
    def of_dims(dims: Sequence[int]) -> PartialShape:
        """From the <dim> numbers of a port, -1 for an open one."""
        return _of_dims(tuple(dims))

    def accepts(self, shape: Sequence[int]) -> bool:
        """Return True if a tensor of `shape` may stand here."""
        if self.dimensions is None:
            return True
        return len(shape) == len(self.dimensions) and all(
            dimension.least <= size and (dimension.most is None or size <= dimension.most)
            for dimension, size in zip(self.dimensions, shape, strict=True)
        )

    @property
    def static(self) -> tuple[int, ...] | None:
        """The shape where nothing of it is open, else None."""
        return None if self.dimensions is None else _static(self.dimensions)

    def __str__(self) -> str:
        return "[...]" if self.dimensions is None else f"[{','.join(map(str, self.dimensions))}]"


@lru_cache(maxsize=1024)
def _static(dimensions: tuple[Dimension, ...]) -> tuple[int, ...] | None:
    if any(dimension.least != dimension.most for dimension in dimensions):
        return None
    return tuple(dimension.least for dimension in dimensions)


@lru_cache(maxsize=1024)
def _of_dims(dims: tuple[int, ...]) -> PartialShape:
    return PartialShape(tuple(Dimension(0, None) if dim < 0 else Dimension(dim, dim) for dim in dims))


@lru_cache(maxsize=1024)
def _parse(text: str) -> PartialShape:
    text = text.strip().removeprefix("[").removesuffix("]").strip()
    if text == "...":
        return PartialShape(None)
    return PartialShape(tuple(_dimension(part.strip()) for part in text.split(",")) if text else ())


def _dimension(text: str) -> Dimension:
    if text in ("?", "-1"):
        return Dimension(0, None)
    if match := _BOUNDS.fullmatch(text):
        least, most = (int(part) if part else None for part in match.groups())
        if most is not None and most < (least or 0):
            raise ValueError(f"{text} is empty")
        return Dimension(_checked(least or 0), None if most is None else _checked(most))
    return Dimension(_checked(int(text)), _checked(int(text)))


def _checked(size: int) -> int:
    if not 0 <= size <= LARGEST_DIMENSION:
        raise ValueError(f"{size} is not a dimension")
    return size
