"""Operations without a kernel: those that the engine carries out, and those that are left to OpenVINO."""

from __future__ import annotations

from typing import Final

STRUCTURAL: Final = frozenset({"Parameter", "Constant", "Result", "If", "Loop", "TensorIterator"})
"""Types that the engine carries out; they compute nothing of their own."""

WITHOUT_KERNEL: Final[dict[tuple[str, int], str]] = {}
"""(Type, definition version) of each operation that has no kernel, and why. At present every operation has one."""
