"""Random numbers: the examples of the specification, and what must hold of every sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stepper.element_types import ELEMENT_TYPES, Array
from stepper.errors import KernelError, TensorTooLarge
from stepper.ops import registry
from stepper.ops.stateful import multinomial, random_uniform
from tests.tables import each_row

REALS = ("f16", "bf16", "f32", "f64")
ROWS = np.array([[0.1, 0.6, 0.3], [5.0, 0.0, 5.0]], np.float32)


def draw(
    shape: list[int], name: str = "f32", low: float = 0, high: float = 1, state: int | None = None, **seeds: Any
) -> Any:
    dtype = ELEMENT_TYPES[name].dtype
    bounds = (np.array(bound).astype(dtype) for bound in (low, high))
    return random_uniform(state, np.array(shape), *bounds, output_type=ELEMENT_TYPES[name], **seeds)


def test_the_examples_of_the_specification() -> None:
    reals, _ = draw([3, 3], global_seed=150, op_seed=10)
    expected = [
        [0.7011236, 0.30539632, 0.93931055],
        [0.9456035, 0.11694777, 0.50770056],
        [0.5197197, 0.22727466, 0.991374],
    ]
    np.testing.assert_allclose(reals, expected, rtol=1e-6)
    doubles, _ = draw([2, 2], "f64", 2, 10, global_seed=80, op_seed=100)
    np.testing.assert_allclose(doubles, [[5.65927959, 4.23122376], [2.67008206, 2.36423758]], rtol=1e-8)
    integers, _ = draw([2, 3], "i32", 50, 100, global_seed=80, op_seed=100)
    assert integers.tolist() == [[65, 70, 56], [59, 82, 92]]


def test_pytorch_draws_from_the_mersenne_twister() -> None:
    words = np.random.RandomState(5).randint(0, 2**32, 6, dtype=np.uint32).tolist()
    reals, _ = draw([6], alignment="pytorch", global_seed=5)
    assert reals.tolist() == [word % 2**24 / 2**24 for word in words]
    small, _ = draw([6], "i64", -3, 10, alignment="pytorch", global_seed=5)
    assert small.tolist() == [word % 13 - 3 for word in words]
    large, _ = draw([3], "i64", 0, 2**40, alignment="pytorch", global_seed=5)
    assert large.tolist() == [((a << 32) + b) % 2**40 for a, b in zip(words[::2], words[1::2], strict=True)]


@each_row("alignment", ["tensorflow", "pytorch"])
@each_row("name", [*REALS, "i32", "i64"])
def test_numbers_have_their_type_and_lie_in_their_range(name: str, alignment: str) -> None:
    numbers, _ = draw([40, 5], name, -2, 6, alignment=alignment, op_seed=3)
    assert (numbers.dtype, numbers.shape) == (ELEMENT_TYPES[name].dtype, (40, 5))
    assert -2 <= numbers.min() < 0 and 4 < numbers.max() < (6.01 if name in REALS else 6)


def test_a_further_run_continues_the_sequence_of_tensorflow_only() -> None:
    first, state = draw([5], op_seed=1)
    second, _ = draw([5], op_seed=1, state=state)
    assert not np.array_equal(first, second)
    again = [draw([5], alignment="pytorch", global_seed=1, state=state)[0] for state in (None, 7)]
    np.testing.assert_array_equal(*again)


def test_a_run_can_be_repeated_even_without_seeds() -> None:
    np.testing.assert_array_equal(draw([4])[0], draw([4])[0])


def test_the_kernel_is_stateful_with_one_output() -> None:
    kernel = registry.find("RandomUniform", 8)
    assert kernel is not None and kernel.stateful and not kernel.several_outputs


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(KernelError, match="range of RandomUniform is empty"):
        draw([2], "i32", 3, 3)
    with pytest.raises(KernelError, match=r"shape \[2,-1\]"):
        draw([2, -1])
    with pytest.raises(TensorTooLarge):
        draw([2**40])
    with pytest.raises(KernelError, match="type string"):
        random_uniform(None, np.array([1]), ROWS[0, 0], ROWS[0, 1], output_type=ELEMENT_TYPES["string"])


def sample(count: int, rows: Array = ROWS, **attributes: Any) -> Array:
    return multinomial(rows, np.array(count), convert_type=ELEMENT_TYPES["i64"], op_seed=5, **attributes)


def test_classes_are_drawn_as_often_as_they_are_probable() -> None:
    classes = sample(20_000, with_replacement=True)
    shares = [np.bincount(row, minlength=3) / 20_000 for row in classes]
    np.testing.assert_allclose(shares, ROWS / ROWS.sum(1, keepdims=True), atol=0.02)
    np.testing.assert_array_equal(classes, sample(20_000, np.log(ROWS + 1e-30), with_replacement=True, log_probs=True))


def test_without_replacement_no_class_comes_twice() -> None:
    rows = np.random.RandomState(0).rand(50, 4).astype(np.float32)
    assert all(len(set(row)) == 3 for row in sample(3, rows).tolist())


def test_multinomial_refuses_what_it_cannot_draw() -> None:
    with pytest.raises(KernelError, match="4 samples cannot be drawn from 3 classes"):
        sample(4)
    with pytest.raises(KernelError, match="-1 samples"):
        sample(-1, with_replacement=True)
    with pytest.raises(KernelError, match=r"\[rows,classes\]"):
        sample(1, ROWS[0])
