"""Cases of the random numbers that need no state, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

ROWS = np.array([[0.1, 0.6, 0.3, 2.0], [5.0, 1.0, 5.0, 0.5]], np.float32)
THREE = np.array(3, np.int32)

CASES = [
    Case(f"multinomial_{again}_{log}_{op_seed}", "Multinomial", 13, [ROWS, THREE], attributes, constant={1})
    for again in ("true", "false")
    for log in ("true", "false")
    for op_seed in ("0", "9")
    for attributes in [
        {"convert_type": "i32", "with_replacement": again, "log_probs": log, "global_seed": "4", "op_seed": op_seed}
    ]
]
