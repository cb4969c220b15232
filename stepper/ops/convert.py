"""Conversion between element types: Convert, quantization, and strings from bytes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import ml_dtypes
import numpy as np

from stepper import element_types
from stepper.element_types import (
    BOOLEAN,
    ELEMENT_TYPES,
    F32,
    STRING_DTYPE,
    Array,
    DType,
    ElementType,
    is_floating,
    is_of_numpy,
)
from stepper.errors import KernelError
from stepper.ops.elementwise import AutoBroadcast, aligned
from stepper.ops.operands import ensure_allocatable, integers, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel

DType = DType
Conversion = Callable[[Any], Any]

# the 16 values of nf4: quantiles of the normal distribution, scaled to [-1, 1] (Dettmers et al., QLoRA, appendix E)
_NF4 = np.array(
    [
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
        -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
        0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ],
    np.float32,
)  # fmt: skip
_NF4_BOUNDS = (_NF4[1:] + _NF4[:-1]) / 2
_F8E8M0 = ELEMENT_TYPES["f8e8m0"].dtype


def _convert_settled(*, destination_type: ElementType) -> Conversion:
    """Return Convert with the type settled."""
    target = destination_type.dtype
    return lambda x: x if x.dtype is target else _conversion(x.dtype, target)(x)


@kernel("Convert", 1, prepared=_convert_settled)
def convert(x: Array, *, destination_type: ElementType) -> Array:
    """Return x in the type that the attribute names."""
    return converted(x, destination_type.dtype)


@kernel("ConvertLike", 1)
def convert_like(x: Array, like: Array) -> Array:
    """Return x in the type of the other input."""
    return converted(x, like.dtype)


@kernel("ConvertPromoteTypes", 14)
def convert_promote_types(
    a: Array,
    b: Array,
    *,
    promote_unsafe: bool = False,
    pytorch_scalar_promotion: bool = False,
    u64_integer_promotion_target: ElementType = F32,
) -> tuple[Array, Array]:
    """Return both in one type that holds the values of both; `promote_unsafe` allows one that does so nearly."""
    first, second = element_types.of(a), element_types.of(b)
    scalar_gives_way = pytorch_scalar_promotion and (a.ndim == 0) != (b.ndim == 0)
    if first == second or BOOLEAN in (first, second):
        common: ElementType | None = second if first == BOOLEAN else first
    elif is_floating(first.dtype) != is_floating(second.dtype):
        real, integer = (first, second) if is_floating(first.dtype) else (second, first)
        common = real if promote_unsafe or real.bits >= 2 * integer.bits else None
    elif scalar_gives_way:
        common = _dimensioned(*((second, first) if a.ndim == 0 else (first, second)), promote_unsafe)
    elif is_floating(first.dtype):
        common = _common_float(first, second, promote_unsafe)
    else:
        common = _common_integer(first, second, promote_unsafe, u64_integer_promotion_target)
    if common is None:
        raise KernelError(f"{first} and {second} have no common type that is safe, and promote_unsafe is false")
    return converted(a, common.dtype), converted(b, common.dtype)


def _dimensioned(tensor: ElementType, scalar: ElementType, unsafe: bool) -> ElementType | None:
    """Return the type of the tensor that is not a scalar; it is safe if the scalar's values are among its own."""
    same_sign = _signed(tensor) == _signed(scalar)
    safe = tensor.bits >= scalar.bits if same_sign else _signed(tensor) and 2 * tensor.bits >= scalar.bits
    return tensor if unsafe or safe else None


def _common_float(first: ElementType, second: ElementType, unsafe: bool) -> ElementType | None:
    if first.bits != second.bits:
        return max(first, second, key=lambda each: each.bits)
    if not unsafe:
        return None
    return ELEMENT_TYPES["f16"] if first.bits == 8 else F32


def _common_integer(
    first: ElementType, second: ElementType, unsafe: bool, beyond_i64: ElementType
) -> ElementType | None:
    """Return the narrowest integer type for both; of mixed signs a signed type twice as wide as the unsigned."""
    if _signed(first) == _signed(second):
        return max(first, second, key=lambda each: each.bits)
    signed, unsigned = (first, second) if _signed(first) else (second, first)
    if not unsafe and 2 * unsigned.bits > signed.bits:
        return None
    if unsigned.bits > 32:
        return beyond_i64
    return ELEMENT_TYPES[f"i{max(2 * unsigned.bits, signed.bits, 4)}"]


def _signed(element_type: ElementType) -> bool:
    return not element_type.name.startswith("u")


def converted(x: Array, dtype: DType) -> Array:
    """Return `x` in another element type, itself where it has that type already."""
    result: Array = _conversion(x.dtype, dtype)(x)
    return result


@functools.cache
def _conversion(source: DType, target: DType) -> Conversion:
    """Return the conversion from one dtype to another: to a type that numpy computes with, then on to the target."""
    if source == target:
        return lambda x: x
    if element_types.STRING_DTYPE in (source, target):
        raise KernelError("a string can neither be converted nor converted to")
    decode, plain = _decoder(source)
    encode = _encoder(plain, target)
    return (lambda x: encode(decode(x))) if decode else encode


def _decoder(source: DType) -> tuple[Conversion | None, DType]:
    """Return the conversion of a type that numpy does not compute with to one that it does, and that type."""
    if source.names:
        (name,) = source.names
        if name == "nf4":
            return (lambda x: _NF4[x[name]]), _NF4.dtype
        return (lambda x: x[name]), source[name]
    if is_of_numpy(source):
        return None, source
    plain = np.dtype(np.float32 if is_floating(source) else np.int8)
    return (lambda x: x.astype(plain)), plain


def _encoder(plain: DType, target: DType) -> Conversion:
    """Return the conversion of a tensor of one of numpy's own types to the target type."""
    if target == np.bool_:
        return lambda x: x != 0
    if is_floating(target):
        return _to_float(plain, target)
    if target.names == ("nf4",):
        return lambda x: np.searchsorted(_NF4_BOUNDS, np.nan_to_num(x)).astype(np.uint8).view(target)
    if is_of_numpy(target):
        return _to_integer(plain, target)
    bits = element_types.of_dtype(target).bits
    to_byte = _to_integer(plain, np.dtype(np.uint8))
    if target.names:
        return lambda x: np.asarray(to_byte(x) & (2**bits - 1)).view(target)
    return lambda x: (to_byte(x) & (2**bits - 1)).astype(target)


def _to_integer(plain: DType, target: DType) -> Conversion:
    if plain.kind != "f":
        return lambda x: x.astype(target)
    if target == np.uint64:
        return _float_to_u64
    way = np.dtype(np.int64 if target.itemsize == 8 or target == np.uint32 else np.int32)
    return (lambda x: x.astype(target)) if way == target else (lambda x: x.astype(way).astype(target))


def _float_to_u64(x: Any) -> Any:
    upper = x >= 2.0**63
    lower = np.where(upper, x - 2.0**63, x).astype(np.int64).astype(np.uint64)
    return np.where(upper, lower + np.uint64(2**63), lower)


def _to_float(plain: DType, target: DType) -> Conversion:
    if target == _F8E8M0:
        return _to_f8e8m0
    if target.itemsize >= 4 or plain.itemsize <= 2 or (plain.kind == "f" and target == np.float16):
        return lambda x: x.astype(target)
    if plain == np.float32:
        return lambda x: x.astype(target)
    if target == np.float16:  # numpy goes from integers to f16 by way of f32, which would round twice
        return lambda x: x.astype(np.float64).astype(target)
    return lambda x: _to_odd_f32(x.astype(np.float64)).astype(target)


def _to_odd_f32(x: Any) -> Any:
    """Return f64 in f32, an inexact value to the neighbour with the odd mantissa: rounding again then does no harm."""
    near = np.asarray(x.astype(np.float32))
    inexact = np.isfinite(near) & (near != x)
    bits = near.view(np.uint32) - (inexact & (np.absolute(near) > np.absolute(x)))
    return np.where(inexact, bits | np.uint32(1), bits).astype(np.uint32).view(np.float32)


def _to_f8e8m0(x: Any) -> Any:
    """Return the power of two nearest to x, ties to an even exponent; the least one for what is not positive."""
    mantissa, exponent = np.frexp(x.astype(np.float64))
    code = exponent + 126
    code = code + ((mantissa > 0.75) | ((mantissa == 0.75) & (code % 2 == 1)))
    code = np.where(x > 0, np.clip(np.where(np.isinf(x), 254, code), 0, 254), np.where(np.isnan(x), 255, 0))
    return code.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)


# Quantisation and back within one operation: what a low-precision type would make of the values.
#
# Source: the operation sets' pages FakeQuantize and FakeConvert.

# the type and its greatest number
_F8 = {"f8e4m3": (ml_dtypes.float8_e4m3fn, 448), "f8e5m2": (ml_dtypes.float8_e5m2, 57344)}


@kernel("FakeQuantize", 1)
def fake_quantize(
    x: Array,
    input_low: Array,
    input_high: Array,
    output_low: Array,
    output_high: Array,
    *,
    levels: int,
    auto_broadcast: AutoBroadcast = "numpy",
) -> Array:
    """Return the input range in `levels` equal steps laid onto the output range; what lies outside goes to its ends."""
    if levels < 2:
        raise KernelError(f"FakeQuantize has {levels} levels, at least 2 are needed")
    wide = widened(x)
    ranges = (widened(aligned(x, each, auto_broadcast)[1]) for each in (input_low, input_high, output_low, output_high))
    low, high, out_low, out_high = ranges
    step = np.rint((wide - low) / (high - low) * (levels - 1)) / (levels - 1)
    inside = step * (out_high - out_low) + out_low
    above = np.where(wide > np.maximum(low, high), out_high, inside)
    return narrowed(np.where(wide <= np.minimum(low, high), out_low, above), x.dtype)


@kernel("FakeConvert", 13)
def fake_convert(
    x: Array,
    scale: Array,
    shift: Array | None = None,
    *,
    destination_type: Literal["f8e4m3", "f8e5m2"] = "f8e4m3",
) -> Array:
    """Return (f8(x scale - shift) + shift) / scale, where f8 rounds to 8-bit floats and saturates."""
    wide_scale = widened(scale)
    moved = widened(x) * wide_scale
    offset = widened(shift) if shift is not None else wide_scale.dtype.type(0)
    return narrowed((_through_f8(moved - offset, destination_type) + offset) / wide_scale, x.dtype)


def _through_f8(x: Array, name: str) -> Array:
    target, greatest = _F8[name]
    return np.clip(x, -greatest, greatest).astype(target).astype(x.dtype)


# String tensors as three numeric ones and back: where each string begins and ends among the bytes of all, in UTF-8.
#
# Source: the operation sets' pages of StringTensorPack and StringTensorUnpack.


@kernel("StringTensorPack", 15)
def string_tensor_pack(begins: Array, ends: Array, symbols: Array) -> Array:
    """Return the strings symbols[begins[i]:ends[i]]."""
    text, starts, stops = symbols.tobytes(), integers(begins), integers(ends)
    if begins.shape != ends.shape:
        raise KernelError(f"begins {shape_text(begins.shape)} and ends {shape_text(ends.shape)} differ in shape")
    if starts and not 0 <= min(starts + stops) <= max(starts + stops) <= len(text):
        raise KernelError(f"a string begins or ends outside the {len(text)} symbols")
    ensure_allocatable((sum(max(0, stop - start) for start, stop in zip(starts, stops, strict=True)),))
    try:
        strings = [text[start:stop].decode() for start, stop in zip(starts, stops, strict=True)]
    except UnicodeDecodeError as error:
        raise KernelError(f"a string is not UTF-8: {error}") from None
    return np.array(strings, STRING_DTYPE).reshape(begins.shape)


@kernel("StringTensorUnpack", 15)
def string_tensor_unpack(data: Array) -> tuple[Array, Array, Array]:
    """Begins, ends (i32) and the bytes of all strings, in order."""
    encoded = [str(string).encode() for string in data.reshape(-1)]
    ends = np.cumsum([len(string) for string in encoded], dtype=np.int32)
    begins = np.concatenate([np.zeros(1, np.int32), ends])[:-1]
    symbols = np.frombuffer(b"".join(encoded), np.uint8)
    return begins.reshape(data.shape), ends.reshape(data.shape), symbols
