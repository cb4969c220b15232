"""Cases of the activation functions, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

X = np.array([[[-20.0, -2.5, -1.5], [-0.5, 0.0, 0.25]], [[0.5, 0.75, 1.5], [2.5, 6.0, 20.0]]], np.float32)
ONE_INPUT = {"Relu": 1, "Sigmoid": 1, "HSigmoid": 5, "HSwish": 4, "Swish": 4, "Mish": 4, "SoftPlus": 4, "SoftSign": 9}
IDENTITY = {"Identity": 16, "Gelu": 2}
SLOPES = {"channel": [0.5, 2.0], "last": [0.1, 0.2, 0.3], "one": [0.25]}
INTEGERS = np.array([-300, -3, -2, 0, 3, 4, 300], np.int32)


def number(value: float) -> np.ndarray:
    return np.array(value, np.float32)


CASES = [
    *(Case(t, t, version, [X]) for t, version in (ONE_INPUT | IDENTITY).items()),
    *(Case(f"{t}_f16", t, version, [X.astype(np.float16)], rtol=2e-3) for t, version in ONE_INPUT.items()),
    *(Case(f"{t}_scalar", t, version, [number(-1.5)]) for t, version in ONE_INPUT.items()),
    *(Case(f"prelu_{name}", "PRelu", 1, [X, np.array(slope, np.float32)]) for name, slope in SLOPES.items()),
    Case("prelu_shaped", "PRelu", 1, [X, np.array([[[0.5], [2.0]]], np.float32)]),
    *(Case(f"elu_{alpha}", "Elu", 1, [X], {"alpha": alpha}) for alpha in ("1.0", "0.5")),
    Case("selu", "Selu", 1, [X, number(1.67), number(1.05)], constant={1, 2}),
    Case("hard_sigmoid", "HardSigmoid", 1, [X, number(0.3), number(0.4)], constant={1, 2}),
    Case("swish_beta", "Swish", 4, [X, number(0.5)]),
    *(Case(f"gelu_{mode}", "Gelu", 7, [X], {"approximation_mode": mode}) for mode in ("ERF", "TANH")),
    Case("clamp", "Clamp", 1, [X], {"min": "-1.25", "max": "1.0"}),
    Case("clamp_integers", "Clamp", 1, [INTEGERS], {"min": "-2.7", "max": "3.3"}),
    Case("clamp_bytes", "Clamp", 1, [np.array([0, 5, 255], np.uint8)], {"min": "-10", "max": "1e9"}),
    *(Case(f"softmax1_{axis}", "Softmax", 1, [X], {"axis": axis}) for axis in ("0", "1", "2")),
    *(Case(f"softmax8_{axis}", "Softmax", 8, [X], {"axis": axis}) for axis in ("-1", "1", "-3")),
    *(Case(f"log_softmax_{axis}", "LogSoftmax", 5, [X], {"axis": axis}) for axis in ("-1", "0", "1")),
    Case("softmax_none", "Softmax", 8, [X[:0]]),
    Case("softmax_large", "Softmax", 8, [np.array([[1000.0, 999.0], [-1000.0, 0.0]], np.float32)]),
]
