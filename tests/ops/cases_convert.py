"""Cases of conversion between element types, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

FLOATS = np.array([[-100.9, -1.5, -0.5, 0.0], [0.3, 1.5, 2.99, 100.2]], np.float32)
INTEGERS = np.array([-(2**31), -300, -1, 0, 1, 127, 128, 255, 256, 2**31 - 1], np.int32)
TARGETS = ("boolean", "f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16")
FROM_INTEGERS = ("f32", "f64", "i8", "i16", "i64", "u8", "u16", "u32")
LIKE = np.array([1], np.int8)


def promote(**attributes: str) -> dict[str, str]:
    return {"promote_unsafe": "true"} | attributes


PAIRS = {
    "int_float": (np.int32, np.float32),
    "bool_int": (np.bool_, np.int32),
    "mixed_signs": (np.uint8, np.int8),
    "widths": (np.float16, np.float32),
    "beyond_i64": (np.int64, np.uint64),
}

CASES = [
    *(Case(f"f32_to_{name}", "Convert", 1, [FLOATS], {"destination_type": name}) for name in TARGETS),
    *(Case(f"i32_to_{name}", "Convert", 1, [INTEGERS], {"destination_type": name}) for name in FROM_INTEGERS),
    Case("like", "ConvertLike", 1, [FLOATS, LIKE]),
    *(
        Case(f"promote_{name}", "ConvertPromoteTypes", 14, [np.ones((2, 2), a), np.zeros(2, b)], promote(), outputs=2)
        for name, (a, b) in PAIRS.items()
    ),
    Case(
        "promote_scalar_gives_way",
        "ConvertPromoteTypes",
        14,
        [np.array(3, np.int64), np.ones(2, np.uint8)],
        promote(pytorch_scalar_promotion="true"),
        outputs=2,
    ),
]
