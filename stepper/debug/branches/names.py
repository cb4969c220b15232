"""Names of branches that are given."""

from __future__ import annotations

from typing import Final

ORIGINAL: Final = "original"
"""The branch with which a run begins."""
