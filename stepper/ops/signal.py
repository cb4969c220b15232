"""Fourier transforms; a complex tensor has a last axis of two, the real and the imaginary part.

Source: the pages DFT-7, IDFT-7, RDFT-9, IRDFT-9, STFT-15 and ISTFT-16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from stepper.element_types import Array, DType, Ints
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, integers, normalize_axis, shape_text, single_integer
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel


@kernel("DFT", 7)
def dft(data: Array, axes: Any, signal_size: Any = None) -> Array:
    """Return the discrete Fourier transform over `axes`, each cut or filled up with zeros to its signal size first."""
    signal = _as_complex(data)
    sizes, over = _sizes(signal.shape, axes, signal_size)
    return _as_pairs(np.fft.fftn(signal, sizes, over), data.dtype)


@kernel("IDFT", 7)
def idft(data: Array, axes: Any, signal_size: Any = None) -> Array:
    """Return the inverse of DFT, divided by the number of elements."""
    signal = _as_complex(data)
    sizes, over = _sizes(signal.shape, axes, signal_size)
    return _as_pairs(np.fft.ifftn(signal, sizes, over), data.dtype)


@kernel("RDFT", 9)
def rdft(data: Array, axes: Any, signal_size: Any = None) -> Array:
    """DFT of a real tensor; of the last of `axes` only the first half, which tells the rest."""
    sizes, over = _sizes(data.shape, axes, signal_size)
    return _as_pairs(np.fft.rfftn(widened(data), sizes, over), data.dtype)


@kernel("IRDFT", 9)
def irdft(data: Array, axes: Any, signal_size: Any = None) -> Array:
    """Return the inverse of RDFT: a real tensor; the last of `axes` has 2 (n - 1) elements unless its size is given."""
    signal = _as_complex(data)
    sizes, over = _sizes(signal.shape, axes, signal_size, halved=True)
    return narrowed(np.fft.irfftn(signal, sizes, over), data.dtype)


@kernel("STFT", 15)
def stft(signal: Array, window: Array, frame_size: Any, frame_step: Any, *, transpose_frames: bool = False) -> Array:
    """RDFT of each frame of a signal [..., length], weighted by the window: [..., frames, frequencies, 2]."""
    size, step = _frame(frame_size, frame_step, window)
    if signal.ndim not in (1, 2) or signal.shape[-1] < size:
        raise KernelError(f"a signal of shape {shape_text(signal.shape)} has no frame of {size}")
    frames = sliding_window_view(widened(signal), size, axis=-1)[..., ::step, :]
    ensure_allocatable(frames.shape, np.complex64)
    spectrum = np.fft.rfft(frames * _centered(window, size))
    return _as_pairs(np.swapaxes(spectrum, -1, -2) if transpose_frames else spectrum, signal.dtype)


@kernel("ISTFT", 16)
def istft(
    data: Array,
    window: Array,
    frame_size: Any,
    frame_step: Any,
    signal_length: Any = None,
    *,
    center: bool = False,
    normalized: bool = False,
) -> Array:
    """Return the signal [..., length] whose STFT with transposed frames is `data` [..., frequencies, frames, 2]."""
    size, step = _frame(frame_size, frame_step, window)
    spectrum = _as_complex(data)
    if spectrum.ndim in (2, 3):
        spectrum = np.swapaxes(spectrum, -1, -2)
    if spectrum.ndim not in (2, 3) or spectrum.shape[-1] != size // 2 + 1 or spectrum.shape[-2] < 1:
        expected = f"[...,{size // 2 + 1},frames,2]"
        raise KernelError(f"the data has the shape {shape_text(data.shape)}, for frames of {size} expected {expected}")
    count = spectrum.shape[-2]
    full = (count - 1) * step + size
    ensure_allocatable((*spectrum.shape[:-2], full), np.float32)
    weights = _centered(window, size)
    frames = np.fft.irfft(spectrum, size) * weights * (np.sqrt(np.float32(size)) if normalized else np.float32(1))
    signal = _overlapped(frames, step, full)
    norm = _overlapped(np.broadcast_to(weights**2, (count, size)), step, full)
    signal = np.where(norm > np.finfo(np.float32).tiny, signal / norm, 0)
    start = size // 2 if center else 0
    length = full - 2 * start if signal_length is None else _positive(signal_length, "signal_length")
    ensure_allocatable((*signal.shape[:-1], length), signal.dtype)
    part = signal[..., start : start + length]
    return narrowed(np.pad(part, [(0, 0)] * (signal.ndim - 1) + [(0, length - part.shape[-1])]), data.dtype)


def _as_complex(data: Array) -> Array:
    """Return the complex tensor that the pairs of the last axis hold."""
    if data.ndim < 2 or data.shape[-1] != 2:
        raise KernelError(f"a complex tensor ends in an axis of 2, this one has the shape {shape_text(data.shape)}")
    wide = np.ascontiguousarray(widened(data))
    return wide.view(np.result_type(wide.dtype, np.complex64))[..., 0]


def _as_pairs(values: Array, dtype: DType) -> Array:
    return narrowed(np.stack([values.real, values.imag], axis=-1), dtype)


def _sizes(shape: Sequence[int], axes: Any, signal_size: Any, halved: bool = False) -> tuple[Ints, Ints]:
    """Return the signal size per axis (the data's size for -1), and the axes from the front."""
    over = tuple(normalize_axis(axis, len(shape)) for axis in integers(axes))
    if not over or len(set(over)) != len(over):
        raise KernelError(f"the axes {integers(axes)} must be at least one, and different ones")
    sizes = [shape[axis] for axis in over]
    if halved:
        sizes[-1] = 2 * (sizes[-1] - 1)
    if signal_size is not None:
        wanted = integers(signal_size)
        if len(wanted) != len(over):
            raise KernelError(f"{len(wanted)} signal sizes do not fit {len(over)} axes")
        sizes = [size if want == -1 else want for size, want in zip(sizes, wanted, strict=True)]
    if min(sizes) < 1:
        raise KernelError(f"a Fourier transform needs at least one element along each axis, the sizes are {sizes}")
    result = list(shape)
    for axis, size in zip(over, sizes, strict=True):
        result[axis] = max(size, result[axis])
    ensure_allocatable(result, np.complex64)
    return tuple(sizes), over


def _positive(value: Any, name: str) -> int:
    number = single_integer(value, name)
    if number < 1:
        raise KernelError(f"{name} must be positive, it is {number}")
    return number


def _frame(frame_size: Any, frame_step: Any, window: Array) -> tuple[int, int]:
    """Size of a frame and distance to the next."""
    size, step = _positive(frame_size, "frame_size"), _positive(frame_step, "frame_step")
    if window.ndim != 1 or not 1 <= len(window) <= size:
        raise KernelError(f"a window of shape {shape_text(window.shape)} does not fit frames of {size}")
    ensure_allocatable((size,), np.complex64)
    return size, step


def _centered(window: Array, size: int) -> Array:
    """Return the window in the middle of a frame, zeros around it."""
    before = (size - len(window)) // 2
    return np.pad(widened(window), (before, size - len(window) - before))


def _overlapped(frames: Array, step: int, length: int) -> Array:
    """Return the sum [..., length] of the frames [..., n, size], each `step` after the one before."""
    count, size = frames.shape[-2:]
    signal = np.zeros((*frames.shape[:-2], length), frames.dtype)
    positions: Any = (..., np.arange(count)[:, None] * step + np.arange(size))
    np.add.at(signal, positions, frames)
    return signal
