"""Cases of fake quantisation, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

X = np.linspace(-1.3, 2.2, 24, dtype=np.float32).reshape(1, 3, 2, 4)
RANGES = [np.array(each, np.float32) for each in (-1.0, 2.0, -0.5, 1.5)]
CHANNELS = [np.array(each, np.float32).reshape(1, 3, 1, 1) for each in ([-1, 0, 0.5], [1, 2, 1], [-2, 0, 1], [2, 1, 3])]
VALUES = np.array([0.0, 0.3, -1.7, 17.3, 200.0, 1000.0, -1e6, 1e-3], np.float32)
SCALE = np.array(2.0, np.float32)
SHIFT = np.array(0.5, np.float32)

CASES = [
    *(
        Case(f"levels_{n}", "FakeQuantize", 1, [X, *RANGES], {"levels": n}, constant={1, 2, 3, 4})
        for n in ("2", "5", "256")
    ),
    Case("channels", "FakeQuantize", 1, [X, *CHANNELS], {"levels": "16"}, constant={1, 2, 3, 4}),
    *(
        Case(f"{name}_{len(rest)}", "FakeConvert", 13, [VALUES, *rest], {"destination_type": name}, constant={1, 2})
        for name in ("f8e4m3", "f8e5m2")
        for rest in ([SCALE], [SCALE, SHIFT])
    ),
]
