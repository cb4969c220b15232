"""Cases of Fourier transforms, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.bound import i64
from tests.ops.recording import Case

_random = np.random.default_rng(10)
PAIRS = _random.standard_normal((2, 3, 4, 2)).astype(np.float32)
REAL = PAIRS[..., 0].copy()
SOUND = _random.standard_normal((2, 17)).astype(np.float32)
WINDOW = np.array([0.3, 0.9, 1.0, 0.7, 0.2], np.float32)
SPECTRUM = _random.standard_normal((2, 4, 5, 2)).astype(np.float32)


def transform(name: str, type: str, data: np.ndarray, axes: np.ndarray, *sizes: np.ndarray) -> Case:
    version = 9 if "R" in type else 7
    return Case(name, type, version, [data, axes, *sizes], constant={1, 2} if sizes else {1})


def short(name: str, signal: np.ndarray, window: np.ndarray, size: int, step: int, transpose: str) -> Case:
    inputs = [signal, window, np.array(size), np.array(step)]
    return Case(name, "STFT", 15, inputs, {"transpose_frames": transpose}, constant={2, 3})


def back(name: str, data: np.ndarray, size: int, step: int, *length: np.ndarray, **attributes: str) -> Case:
    inputs = [data, WINDOW, np.array(size), np.array(step), *length]
    return Case(name, "ISTFT", 16, inputs, attributes, constant=set(range(2, len(inputs))))


CASES = [
    *(transform(f"{type}_two_axes".lower(), type, PAIRS, i64(2, 0)) for type in ("DFT", "IDFT")),
    *(transform(f"{type}_sizes".lower(), type, PAIRS, i64(-1, 1), i64(7, 2)) for type in ("DFT", "IDFT")),
    *(transform(f"{type}_size_kept".lower(), type, PAIRS, i64(0, 1), i64(-1, 4)) for type in ("DFT", "IDFT")),
    transform("rdft_two_axes", "RDFT", REAL, i64(0, 2)),
    transform("rdft_other_order", "RDFT", REAL, i64(-1, 1)),
    transform("rdft_sizes", "RDFT", REAL, i64(1, 2), i64(2, 3)),
    transform("irdft_two_axes", "IRDFT", PAIRS, i64(0, 2)),
    transform("irdft_odd_size", "IRDFT", PAIRS, i64(0, -1), i64(2, 5)),
    short("stft", SOUND, WINDOW, 6, 2, "true"),
    short("stft_one_signal", SOUND[0], WINDOW, 5, 3, "false"),
    back("istft", SPECTRUM, 6, 2),
    back("istft_center", SPECTRUM, 7, 3, center="true", normalized="true"),
    back("istft_cut", SPECTRUM[0], 6, 2, np.array(9), center="true", normalized="false"),
    back("istft_filled_up", SPECTRUM[0], 6, 4, np.array(30), center="false", normalized="true"),
]
