"""Cases of the matrix products and of attention, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from stepper.element_types import Array
from tests.ops.recording import Case

_random = np.random.default_rng(1)


def f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


A, B = f(2, 3), f(3, 4)
I = np.arange(6, dtype=np.int32).reshape(2, 3)  # noqa: E741 - an integer twin of A
Q, K, V = f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 6)
SEEN = np.array([[[[1, 1, 0, 0, 1], [0, 1, 1, 1, 1], [0, 0, 0, 0, 1]]]], np.bool_)
INVERTIBLE = (f(2, 3, 3) + 3 * np.eye(3)).astype(np.float32)

CASES = [
    Case("matmul", "MatMul", 1, [A, B]),
    Case("matmul_transposed", "MatMul", 1, [f(3, 2), f(4, 3)], {"transpose_a": "true", "transpose_b": "true"}),
    Case("matmul_batches", "MatMul", 1, [f(2, 1, 3, 4), f(5, 4, 2)]),
    Case("matmul_row", "MatMul", 1, [f(3), B], {"transpose_a": "true"}),
    Case("matmul_column", "MatMul", 1, [A, f(3)]),
    Case("matmul_of_vectors", "MatMul", 1, [f(3), f(3)]),
    Case("matmul_of_integers", "MatMul", 1, [I, I], {"transpose_b": "true"}),
    Case("matmul_f16", "MatMul", 1, [A.astype(np.float16), B.astype(np.float16)], rtol=1e-3),
    *(
        Case(f"einsum_{number}", "Einsum", 7, inputs, {"equation": equation})
        for number, (equation, inputs) in enumerate(
            [
                ("ij,jk->ik", [A, B]),
                ("kii->ki", [f(2, 3, 3)]),
                ("Ab,bc", [f(2, 4), f(4, 5)]),
                ("a...b,b...->a...", [f(2, 3, 4), f(4, 3)]),
                ("ab,bcd,bc->ca", [f(2, 5), f(5, 3, 6), f(5, 3)]),
            ]
        )
    ),
    Case("grouped_rows", "GroupedMatMul", 17, [f(6, 3), f(3, 2, 3), np.array([1, 1, 6], np.int32)], constant={1}),
    Case("inverse", "Inverse", 14, [INVERTIBLE], {"adjoint": "false"}),
    Case("inverse_adjoint", "Inverse", 14, [INVERTIBLE], {"adjoint": "true"}),
    Case("attention", "ScaledDotProductAttention", 13, [Q, K, V], {"causal": "false"}),
    Case("attention_causal", "ScaledDotProductAttention", 13, [Q, K, V], {"causal": "true"}),
    Case("attention_mask", "ScaledDotProductAttention", 13, [Q, K, V, SEEN], {"causal": "false"}),
    Case("attention_bias", "ScaledDotProductAttention", 13, [Q, K, V, f(1, 1, 3, 5)], {"causal": "false"}),
    Case(
        "attention_scale",
        "ScaledDotProductAttention",
        13,
        [Q, K, V, f(1, 1, 3, 5), np.array(0.3, np.float32)],
        {"causal": "false"},
    ),
    Case(
        "attention_sink",
        "ScaledDotProductAttention",
        13,
        [Q, K, V, f(1, 1, 3, 5), np.array(0.3, np.float32), f(1, 1, 3, 1)],
        {"causal": "false"},
    ),
]
