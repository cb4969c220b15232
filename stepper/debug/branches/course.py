"""Which way a run goes, as something to compare: states keep it, and know whether what they saw still holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepper.debug.branches.edits import Edit


class RunCourse:
    """Which way a run goes, made of its edits; equal to another one of the very same edits, whatever its branch."""

    __slots__ = ("_edits",)

    def __init__(self, edits: Mapping[int, tuple[Edit, ...]] | None = None) -> None:
        self._edits = tuple(sorted((edits or {}).items(), key=lambda made: made[0]))

    @property
    def _key(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Identities stand for edits, which are kept here: a value set anew to the same is another edit."""
        return tuple((tick, tuple(map(id, made))) for tick, made in self._edits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunCourse) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)
