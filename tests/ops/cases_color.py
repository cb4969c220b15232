"""Cases of colour conversion, recorded from the runtime; floats, since bytes round differently at ties."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

_random = np.random.default_rng(12)


def plane(height: int, width: int, channels: int = 1) -> np.ndarray:
    return _random.integers(0, 256, (2, height, width, channels)).astype(np.float32)


LIGHT, BOTH, BLUE, RED = plane(4, 6), plane(2, 3, 2), plane(2, 3), plane(2, 3)

CASES = [
    *(Case(f"nv12_{order}", f"NV12to{order}", 8, [plane(6, 4)], atol=1e-3) for order in ("RGB", "BGR")),
    *(Case(f"i420_{order}", f"I420to{order}", 8, [plane(6, 4)], atol=1e-3) for order in ("RGB", "BGR")),
    *(Case(f"nv12_{order}_planes", f"NV12to{order}", 8, [LIGHT, BOTH], atol=1e-3) for order in ("RGB", "BGR")),
    *(Case(f"i420_{order}_planes", f"I420to{order}", 8, [LIGHT, BLUE, RED], atol=1e-3) for order in ("RGB", "BGR")),
]
