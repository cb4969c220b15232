"""Prior boxes: boxes of given sizes about every position of a feature map.

Source: the pages PriorBox-1, -8, PriorBoxClustered-1 and ExperimentalDetectronPriorGridGenerator-6.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.operands import check_positive, ensure_allocatable, integers, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel

Floats = tuple[float, ...]


@kernel("PriorBox", 1, 8)
def prior_box(
    output_size: Array,
    image_size: Array,
    *,
    min_size: Floats = (),
    max_size: Floats = (),
    aspect_ratio: Floats = (),
    flip: bool = False,
    clip: bool = False,
    step: float = 0.0,
    offset: float = 0.0,
    variance: Floats = (),
    scale_all_sizes: bool = True,
    fixed_ratio: Floats = (),
    fixed_size: Floats = (),
    density: Floats = (),
    min_max_aspect_ratios_order: bool = True,
) -> Array:
    """Return the boxes [x1, y1, x2, y2] in parts of the image, and in a second row their variances.

    The order (an attribute of PriorBox-8): least, greatest, ratios, or least, ratios, greatest.
    """
    ratios, fixed = _ratios(aspect_ratio, flip), (fixed_size, fixed_ratio, density)
    settings = (step, offset, clip, variance, scale_all_sizes)
    order = min_max_aspect_ratios_order
    return _prior_boxes(output_size, image_size, (min_size, max_size, ratios), fixed, settings, order)


@kernel("PriorBoxClustered", 1)
def prior_box_clustered(
    output_size: Array,
    image_size: Array,
    *,
    width: Floats,
    height: Floats,
    clip: bool = True,
    step: float = 0.0,
    step_w: float = 0.0,
    step_h: float = 0.0,
    offset: float = 0.0,
    variance: Floats = (),
) -> Array:
    """PriorBox with the widths and heights of the boxes given one by one."""
    if len(width) != len(height):
        raise KernelError(f"{len(width)} widths and {len(height)} heights do not make boxes")
    (rows, columns), (image_height, image_width) = _pair(output_size), _pair(image_size)
    across, down = step_w or step, step_h or step
    if across == down == 0:
        across, down = image_width / max(columns, 1), image_height / max(rows, 1)
    sizes = np.array([width, height], np.float32).T.reshape(-1, 2)
    template = np.concatenate([np.zeros_like(sizes), sizes / 2], axis=1)
    boxes = _boxes(template, _centers(rows, columns, down, across, offset), image_height, image_width)
    return _with_variances(np.clip(boxes, 0, 1) if clip else boxes, variance)


@kernel("ExperimentalDetectronPriorGridGenerator", 6)
def prior_grid_generator(
    priors: Array,
    feature_map: Array,
    image: Array,
    *,
    flatten: bool = False,
    h: int = 0,
    w: int = 0,
    stride_x: float = 0.0,
    stride_y: float = 0.0,
) -> Array:
    """Return each prior box [x1, y1, x2, y2] moved to the centre of each cell of the map: [h, w, priors, 4]."""
    if priors.ndim != 2 or priors.shape[1] != 4 or feature_map.ndim != 4 or image.ndim != 4:
        shapes = ", ".join(shape_text(value.shape) for value in (priors, feature_map, image))
        raise KernelError(f"the shapes {shapes} do not fit: expected [priors,4] and two tensors of rank 4")
    rows, columns = h or feature_map.shape[2], w or feature_map.shape[3]
    ensure_allocatable((rows, columns, len(priors), 4), np.float32)
    check_positive(h=rows, w=columns)
    centers = _centers(rows, columns, stride_y or image.shape[2] / rows, stride_x or image.shape[3] / columns, 0.5)
    boxes = narrowed(widened(priors) + np.tile(centers, 2).reshape(rows, columns, 1, 4), priors.dtype)
    return boxes.reshape(-1, 4) if flatten else boxes


def _pair(size: Array) -> tuple[int, int]:
    """Height and width."""
    numbers = integers(size)
    if len(numbers) != 2 or min(numbers) < 0:
        raise KernelError(f"a size must be a height and a width, it is {numbers}")
    return numbers[0], numbers[1]


def _ratios(aspect_ratio: Floats, flip: bool) -> list[float]:
    """Return the different aspect ratios besides 1, each followed by its inverse where they are to be flipped."""
    check_positive(aspect_ratio=aspect_ratio)
    ratios = [1.0]
    for ratio in aspect_ratio:
        if all(abs(ratio - known) >= 1e-6 for known in ratios):
            ratios += [ratio, 1 / ratio] if flip else [ratio]
    return [ratio for ratio in ratios if abs(ratio - 1) >= 1e-6]


def _prior_boxes(
    output_size: Array,
    image_size: Array,
    sizes: tuple[Floats, Floats, list[float]],
    fixed: tuple[Floats, Floats, Floats],
    settings: tuple[float, float, bool, Floats, bool],
    greatest_before_ratios: bool,
) -> Array:
    (rows, columns), (height, width) = _pair(output_size), _pair(image_size)
    (least, greatest, ratios), (step, offset, clip, variance, scale_all_sizes) = sizes, settings
    if not scale_all_sizes:
        least, step = tuple(size * height for size in least), height / max(rows, 1) if step == -1 else step * height
    check_positive(min_size=least, max_size=greatest, fixed_ratio=fixed[1], density=fixed[2])
    around = _fixed_template(*fixed, ratios)
    template = np.concatenate([around, _template(least, greatest, ratios, scale_all_sizes, greatest_before_ratios)])
    if step == 0:
        centers = _centers(rows, columns, height / max(rows, 1), width / max(columns, 1), 0.5)
    else:
        centers = _centers(rows, columns, step, step, offset)
    boxes = _boxes(template, centers, height, width)
    # Boxes of a fixed size never reach over the image, whatever `clip` says.
    inner = boxes[:, : len(around)]
    np.maximum(inner[..., :2], 0, out=inner[..., :2])
    np.minimum(inner[..., 2:], 1, out=inner[..., 2:])
    count = _boxes_of_cell(sizes, fixed, scale_all_sizes)
    return _with_variances(_fitted(np.clip(boxes, 0, 1) if clip else boxes, count), variance)


def _boxes_of_cell(
    sizes: tuple[Floats, Floats, list[float]], fixed: tuple[Floats, Floats, Floats], scale_all_sizes: bool
) -> int:
    """Return the number of boxes of each cell that the shape of the output allows for."""
    (least, greatest, ratios), (fixed_size, fixed_ratio, density) = sizes, fixed
    shapes = len(ratios) + 1
    count = shapes * len(least) + len(greatest) if scale_all_sizes else shapes + len(least) - 1
    if fixed_size:
        count = shapes * len(fixed_size)
    return count + sum((len(fixed_ratio) or shapes) * (int(times) ** 2 - 1) for times in density)


def _fitted(boxes: Array, count: int) -> Array:
    """Return the boxes in one list of `count` for each cell: cut, or filled with zeros.

    So the runtime does it; the numbers differ only with several fixed ratios and with sizes that do not pair up.
    """
    cells = len(boxes)
    ensure_allocatable((2, cells, max(count, 0), 4), np.float32)
    flat = boxes.reshape(-1, 4)[: cells * max(count, 0)]
    return np.pad(flat, ((0, cells * max(count, 0) - len(flat)), (0, 0)))


def _template(
    least: Floats, greatest: Floats, ratios: list[float], scale_all_sizes: bool, greatest_before_ratios: bool
) -> Array:
    """Return [0, 0, half width, half height] of the boxes of each size, in their order."""
    halves: list[tuple[float, float]] = []
    for number, size in enumerate(least):
        mean = [(math.sqrt(size * greatest[number]) / 2,) * 2] if number < len(greatest) else []
        of_ratios: list[tuple[float, float]] = []
        if scale_all_sizes or number == len(least) - 1:
            base = size if scale_all_sizes else least[0]
            of_ratios = [(base / 2 * math.sqrt(ratio), base / 2 / math.sqrt(ratio)) for ratio in ratios]
        halves += [(size / 2, size / 2), *((*mean, *of_ratios) if greatest_before_ratios else (*of_ratios, *mean))]
    sizes = np.array(halves, np.float32).reshape(-1, 2)
    return np.concatenate([np.zeros_like(sizes), sizes], axis=1)


def _fixed_template(fixed_size: Floats, fixed_ratio: Floats, density: Floats, ratios: list[float]) -> Array:
    """Return [x, y, half width, half height] of the boxes of fixed sizes, `density` squared each, in a grid."""
    if fixed_size and len(density) < len(fixed_size) and (density or fixed_ratio or ratios):
        raise KernelError(f"{len(density)} densities do not fit {len(fixed_size)} fixed sizes")
    found = [np.zeros((0, 4), np.float32)]
    for size, count in zip(fixed_size, density, strict=False):
        check_positive(fixed_size=size, density=int(count))
        whole, times = int(size), int(count)
        ensure_allocatable((times, times, 4), np.float32)
        shift = int(size / times)
        line = np.arange(times, dtype=np.float64) * shift + shift / 2 - whole // 2
        halves = [] if fixed_ratio else [(whole / 2, whole / 2)]
        halves += [(size / 2 * math.sqrt(ratio), size / 2 / math.sqrt(ratio)) for ratio in fixed_ratio or ratios]
        for half in halves:
            y, x = np.meshgrid(line, line, indexing="ij")
            grid = np.stack([x, y, np.full_like(x, half[0]), np.full_like(x, half[1])], axis=-1)
            found.append(grid.reshape(-1, 4).astype(np.float32))
    return np.concatenate(found)


def _centers(rows: int, columns: int, down: float, across: float, offset: float) -> Array:
    """Return the points [rows * columns, 2] (x, y) in the middle of each cell."""
    ensure_allocatable((rows, columns, 2), np.float32)
    x = (np.arange(columns, dtype=np.float32) + np.float32(offset)) * np.float32(across)
    y = (np.arange(rows, dtype=np.float32) + np.float32(offset)) * np.float32(down)
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def _boxes(template: Array, centers: Array, height: int, width: int) -> Array:
    """Return the boxes [cells, template, 4] about each centre, in parts of the image."""
    ensure_allocatable((2, len(centers), len(template), 4), np.float32)
    middle, half = centers[:, None] + template[:, :2], template[:, 2:]
    size: Any = np.array([width, height] * 2, np.float32)
    return np.asarray(np.concatenate([middle - half, middle + half], axis=-1) / size, np.float32)


def _with_variances(boxes: Array, variance: Floats) -> Array:
    """Return the boxes as one row, and a row with their variances (one for all coordinates, or four)."""
    if len(variance) not in (0, 1, 4):
        raise KernelError(f"the attribute 'variance' has {len(variance)} numbers, expected none, one or four")
    variances = np.broadcast_to(np.array(variance or (0.1,), np.float32), boxes.shape)
    return np.stack([boxes.ravel(), variances.ravel()])
