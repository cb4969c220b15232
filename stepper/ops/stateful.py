"""Operations with a state: variables and random numbers."""

from __future__ import annotations

from typing import Literal

import numpy as np

from stepper import element_types
from stepper.element_types import F32, Array, DType, ElementType, is_floating
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, integers, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel

Alignment = Literal["tensorflow", "pytorch"]

_MANTISSA_BITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_RESERVED_PER_NUMBER = 256  # TensorFlow moves on by this for every number that it has delivered


@kernel("RandomUniform", 8, stateful=True)
def random_uniform(
    drawn: int | None,
    shape: Array,
    low: Array,
    high: Array,
    *,
    output_type: ElementType,
    global_seed: int = 0,
    op_seed: int = 0,
    alignment: Alignment = "tensorflow",
) -> tuple[Array, int]:
    """Return numbers from [low, high); each further run continues TensorFlow's sequence, PyTorch's begins anew."""
    dims = integers(shape)
    if any(dim < 0 for dim in dims):
        raise KernelError(f"a tensor cannot have the shape {shape_text(dims)}")
    dtype = output_type.dtype
    if output_type.name not in ("i32", "i64", *_MANTISSA_BITS):
        raise KernelError(f"RandomUniform cannot make numbers of type {output_type}")
    ensure_allocatable([*dims, 16])
    count = int(np.prod(dims, dtype=np.int64))
    words_each = 2 if dtype.itemsize == 8 and not _one_word_is_enough(low, high, alignment) else 1
    start = drawn or 0
    if alignment == "tensorflow":
        words = philox(global_seed, op_seed, start, count * words_each)
    else:
        raw = np.random.RandomState(global_seed & 0xFFFFFFFF).bytes(4 * (count * words_each))
        words = np.frombuffer(raw, "<u4").astype(np.uint64)
    convert = _to_real if is_floating(dtype) else _to_integer
    numbers = convert(words.reshape(-1, words_each), low.reshape(()), high.reshape(()), dtype, alignment)
    return numbers.reshape(dims), start + _RESERVED_PER_NUMBER * count


def _one_word_is_enough(low: Array, high: Array, alignment: Alignment) -> bool:
    """PyTorch draws 32 bits for an i64 whose range does not ask for more."""
    integer = low.dtype.kind in "iu"
    return alignment == "pytorch" and integer and max(low.item(), high.item()) <= int(_WORD)


def _to_real(words: Array, low: Array, high: Array, dtype: DType, alignment: Alignment) -> Array:
    """Return the low bits of each as a fraction of [0, 1), laid onto the range: the mantissa's, PyTorch one more."""
    bits = _MANTISSA_BITS[element_types.of_dtype(dtype).name] + (alignment == "pytorch")
    mantissa = _joined(words) & np.uint64(2**bits - 1)
    low, high = widened(low), widened(high)
    fraction = mantissa.astype(low.dtype) / low.dtype.type(2**bits)
    return narrowed(fraction * (high - low) + low, dtype)


def _to_integer(words: Array, low: Array, high: Array, dtype: DType, alignment: Alignment) -> Array:
    extent = high.item() - low.item()
    if extent <= 0:
        raise KernelError(f"the range of RandomUniform is empty: from {low} up to, not including, {high}")
    drawn = _joined(words[:, ::-1] if alignment == "tensorflow" else words)
    return ((drawn % np.uint64(extent)).astype(np.int64) + low.astype(np.int64)).astype(dtype)


def _joined(words: Array) -> Array:
    """Return one number for each row of one or two words, the first word being the upper half."""
    joined: Array = words[:, 0] if words.shape[1] == 1 else (words[:, 0] << _HALF) | words[:, 1]
    return joined


def philox(key: int, counter: int, start: int, count: int) -> Array:
    """Return `count` words of the sequence of Philox 4x32-10, from block `start` on; a block has four words."""
    n = np.arange(-(-count // 4), dtype=np.uint64) + np.uint64(start & (2**64 - 1))
    block = [n & _WORD, n >> _HALF, *(np.full_like(n, half) for half in _halves(counter))]
    k0, k1 = _halves(key)
    for _ in range(10):
        first, second = block[0] * np.uint64(0xD2511F53), block[2] * np.uint64(0xCD9E8D57)
        block = [
            (second >> _HALF) ^ block[1] ^ np.uint64(k0),
            second & _WORD,
            (first >> _HALF) ^ block[3] ^ np.uint64(k1),
            first & _WORD,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(block, axis=1).reshape(-1)[:count]


def _halves(value: int) -> tuple[int, int]:
    """Return the lower and the upper 32 of 64 bits."""
    return value & 0xFFFFFFFF, (value >> 32) & 0xFFFFFFFF


@kernel("Multinomial", 13)
def multinomial(
    probabilities: Array,
    num_samples: Array,
    *,
    convert_type: ElementType,
    with_replacement: bool = False,
    log_probs: bool = False,
    global_seed: int = 0,
    op_seed: int = 0,
) -> Array:
    """Classes drawn for each row of probabilities, by their cumulative sum; without replacement each class once."""
    if probabilities.ndim != 2 or num_samples.size != 1:
        shapes = f"{shape_text(probabilities.shape)} and {shape_text(num_samples.shape)}"
        raise KernelError(f"Multinomial has inputs of shapes {shapes}, [rows,classes] and one number are needed")
    (rows, classes), count = probabilities.shape, int(num_samples.item())
    if count < 0 or not classes or (count > classes and not with_replacement):
        raise KernelError(f"{count} samples cannot be drawn from {classes} classes")
    ensure_allocatable([rows, count, 16])
    wide = widened(probabilities)
    distribution = np.cumsum(np.exp(wide) if log_probs else wide, axis=1, dtype=wide.dtype)
    distribution /= np.maximum(distribution[:, -1:], np.finfo(wide.dtype).tiny)
    # F32 numbers from [0, 1] out of the Mersenne Twister of C++ with these seeds.
    generator = np.random.MT19937()
    key = np.array(_seed_sequence([seed & 0xFFFFFFFF for seed in (global_seed, op_seed)], 624), np.uint32)
    generator.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 624}}
    draws = np.divide(generator.random_raw(rows * count).astype(np.float32), np.float32(0xFFFFFFFF)).reshape(
        rows, count
    )
    chosen = (_with_replacement if with_replacement else _without_replacement)(distribution, draws)
    return chosen.astype(convert_type.dtype)


def _with_replacement(distribution: Array, draws: Array) -> Array:
    """Return for each draw the first class whose cumulative probability reaches it."""
    chosen = [np.searchsorted(row, some) for row, some in zip(distribution, draws, strict=True)]
    classes: Array = np.minimum(np.array(chosen, np.int64).reshape(draws.shape), distribution.shape[1] - 1)
    return classes


def _without_replacement(distribution: Array, draws: Array) -> Array:
    """Return draws; each drawn class leaves the distribution, which is then rescaled to 1."""
    rows, classes = np.arange(len(distribution)), np.arange(distribution.shape[1])
    chosen = np.zeros(draws.shape, np.int64)
    for k in range(draws.shape[1]):
        chosen[:, k] = choice = np.argmax(draws[:, k : k + 1] <= distribution, axis=1)
        before = np.where(choice > 0, distribution[rows, choice - 1], 0)
        probability = (distribution[rows, choice] - before)[:, None].astype(distribution.dtype)
        distribution = (distribution - probability * (classes >= choice[:, None])) / (1 - probability)
    return chosen


def _seed_sequence(seeds: list[int], length: int) -> list[int]:
    """Return the words of `std::seed_seq` (C++ standard, [rand.util.seedseq]), for 623 of them or more."""
    words = [0x8B8B8B8B] * length
    p, q = (length - 11) // 2, (length - 11) // 2 + 11
    for k in range(max(len(seeds) + 1, length)):
        r = 1664525 * _mixed(words[k % length] ^ words[(k + p) % length] ^ words[k - 1])
        r2 = r + (len(seeds) if k == 0 else k % length + (seeds[k - 1] if k <= len(seeds) else 0))
        words[(k + p) % length] = (words[(k + p) % length] + r) & 0xFFFFFFFF
        words[(k + q) % length] = (words[(k + q) % length] + r2) & 0xFFFFFFFF
        words[k % length] = r2 & 0xFFFFFFFF
    for k in range(length):
        r = 1566083941 * _mixed((words[k] + words[(k + p) % length] + words[k - 1]) & 0xFFFFFFFF)
        r2 = r - k
        words[(k + p) % length] ^= r & 0xFFFFFFFF
        words[(k + q) % length] ^= r2 & 0xFFFFFFFF
        words[k] = r2 & 0xFFFFFFFF
    return words


def _mixed(word: int) -> int:
    return word ^ (word >> 27)


# ReadValue and Assign: variables that live from one inference to the next.
#
# Source: the operation sets' pages of ReadValue-3, ReadValue-6, Assign-3 and Assign-6. The machine keeps the state
# under the attribute `variable_id`; a variable begins as ReadValue's input, or (ReadValue-6 without one) as zeros.


@kernel("ReadValue", 3, stateful=True)
def read_value_3(state: Array | None, initial: Array, *, variable_id: str) -> tuple[Array, Array]:
    """Return the variable's value; at the first inference the initial one."""
    value = initial if state is None else state
    return value, value


@kernel("ReadValue", 6, stateful=True)
def read_value_6(
    state: Array | None,
    initial: Array | None = None,
    *,
    variable_id: str,
    variable_shape: tuple[str, ...] = (),
    variable_type: ElementType | None = None,
) -> tuple[Array, Array]:
    """Return the variable's value; at first the initial one, or zeros (unknown dimensions 0)."""
    if state is not None:
        return state, state
    if initial is None:
        if any(not size.isdecimal() and size not in ("?", "-1") for size in variable_shape):
            raise KernelError(f"the shape of variable '{variable_id}' is {','.join(variable_shape)}, no list of sizes")
        shape = [int(size) if size.isdecimal() else 0 for size in variable_shape]
        ensure_allocatable(shape, (variable_type or F32).dtype)
        initial = np.zeros(shape, (variable_type or F32).dtype)
    return initial, initial


@kernel("Assign", 3, 6, stateful=True)
def assign(state: Array | None, value: Array, *, variable_id: str) -> tuple[Array, Array]:
    """Give the variable a new value, which the next inference reads; the value passes through."""
    return value, value
