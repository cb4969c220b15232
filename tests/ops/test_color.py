"""Colour conversion of bytes pixel by pixel, and planes that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.errors import KernelError
from stepper.ops.images import i420_to_bgr, i420_to_rgb, nv12_to_bgr, nv12_to_rgb

_random = np.random.default_rng(13)
LIGHT = _random.integers(0, 256, (1, 4, 6, 1), np.uint8)
BLUE, RED = (_random.integers(0, 256, (1, 2, 3, 1), np.uint8) for _ in range(2))


def pixel(y: int, x: int) -> list[int]:
    light, blue, red = (
        int(plane) for plane in (LIGHT[0, y, x, 0], BLUE[0, y // 2, x // 2, 0], RED[0, y // 2, x // 2, 0])
    )
    white = 1.164 * (light - 16)
    channels = [
        white + 1.596 * (red - 128),
        white - 0.391 * (blue - 128) - 0.813 * (red - 128),
        white + 2.018 * (blue - 128),
    ]
    return [round(min(max(channel, 0.0), 255.0)) for channel in channels]


def test_all_forms_of_an_image_give_the_same_pixels() -> None:
    expected = np.array([[pixel(y, x) for x in range(6)] for y in range(4)], np.uint8)[None]
    both = np.concatenate([BLUE, RED], axis=3)
    i420 = np.concatenate([LIGHT.ravel(), BLUE.ravel(), RED.ravel()]).reshape(1, 6, 6, 1)
    nv12 = np.concatenate([LIGHT.ravel(), both.ravel()]).reshape(1, 6, 6, 1)
    images = [i420_to_rgb(LIGHT, BLUE, RED), i420_to_rgb(i420), nv12_to_rgb(LIGHT, both), nv12_to_rgb(nv12)]
    turned = [i420_to_bgr(LIGHT, BLUE, RED), i420_to_bgr(i420), nv12_to_bgr(LIGHT, both), nv12_to_bgr(nv12)]
    for image in [*images, *(other[..., ::-1] for other in turned)]:
        np.testing.assert_array_equal(image, expected)


@pytest.mark.parametrize("shape", [(1, 5, 4, 1), (1, 6, 3, 1), (1, 6, 4, 2), (6, 4)])
def test_an_image_that_is_not_two_thirds_light_is_refused(shape: tuple[int, ...]) -> None:
    for kernel in (nv12_to_rgb, i420_to_rgb):
        with pytest.raises(KernelError):
            kernel(np.zeros(shape, np.uint8))


def test_planes_of_other_sizes_are_refused() -> None:
    with pytest.raises(KernelError, match="planes"):
        nv12_to_rgb(LIGHT, BLUE)
    with pytest.raises(KernelError, match="planes"):
        i420_to_rgb(LIGHT, BLUE, LIGHT)
    with pytest.raises(KernelError, match="three"):
        i420_to_rgb(LIGHT, BLUE)
