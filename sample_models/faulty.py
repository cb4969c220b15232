"""The sample with a fault: the time mixing of RWKV as it reads in the paper, where one token makes exp overflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import openvino.opset13 as ops
from building import Body, Value, constant, loop, model, parameter
from sample import Array, Sample

TOKENS, CHANNELS = 12, 8
OUTLIER, LOUD = 7, 3
"""The token whose key is too large for exp in f32, and the channel in which it is."""
TOO_LARGE = 89.2
"""Its key; the largest number of which f32 has the exponential is 88.72."""


@dataclass(frozen=True)
class Weights:
    """A layer of time mixing: each token is mixed with the one before it, each channel forgets at its own rate."""

    key: Array
    value: Array
    receptance: Array
    output: Array
    mix: Array
    decay: Array
    bonus: Array


def weights() -> Weights:
    """Weights of the usual size. The bonus is negative, so that a token speaks less now than later."""
    rng = np.random.default_rng(7)
    key, value, receptance, output = (rng.normal(0, 0.4, (CHANNELS, CHANNELS)).astype(np.float32) for _ in range(4))
    key[:, LOUD] *= 4
    channels = np.linspace(0, 1, CHANNELS, dtype=np.float32)
    decay = np.exp(-np.exp(-3 + 3 * channels)).astype(np.float32)
    return Weights(key, value, receptance, output, (0.5 + 0.4 * channels)[None], decay[None], (-3 - 4 * channels)[None])


def tokens(layer: Weights) -> Array:
    """Embedded tokens, one of which points where the loud channel's key listens, as outliers of trained models do."""
    found = np.random.default_rng(11).normal(0, 1, (TOKENS, CHANNELS))
    direction = layer.key[:, LOUD] * layer.mix[0]
    before = found[OUTLIER - 1] * (1 - layer.mix[0]) @ layer.key[:, LOUD]
    missing = TOO_LARGE - before - found[OUTLIER] @ direction
    found[OUTLIER] += missing * direction / (direction @ direction)
    return np.asarray(found.astype(np.float32))


def rwkv_overflow() -> Sample:
    """Time mixing: a numerator and a denominator are carried, both sums of exponentials without a running maximum."""
    layer = weights()
    embedded = parameter("embedded", [-1, CHANNELS])
    length = ops.gather(
        ops.shape_of(embedded, name="shape"),
        constant("first", 0, np.int64),
        constant("axis", 0, np.int64),
        name="length",
    )
    token, token_before = parameter("token", [1, CHANNELS]), parameter("token_before", [1, CHANNELS])
    numerator, denominator = parameter("numerator", [1, CHANNELS]), parameter("denominator", [1, CHANNELS])
    parts = time_mixing(layer, token, token_before, numerator, denominator)
    nothing = np.zeros((1, CHANNELS))
    last, one = constant("last_place", [-1], np.int64), constant("one", [1], np.int64)
    padded = ops.concat([constant("no_token", nothing), embedded], 0, name="padded")
    all_before = ops.slice(padded, constant("start", [0], np.int64), last, one, name="embedded_before")
    body = Body(
        carried=[
            (numerator, constant("no_numerator", nothing), parts["numerator_next"]),
            (denominator, constant("no_denominator", nothing), parts["denominator_next"]),
        ],
        sliced=[(token, embedded), (token_before, all_before)],
    )
    body.keep_going = constant("keep_going", True, np.bool_)
    body.concatenated = [parts["mixed"], parts["wkv"]]
    mixed, wkv = loop("time_mixing", length, constant("true", True, np.bool_), body)
    values = tokens(layer)
    healthy = stable(layer, values)
    return Sample(
        model("rwkv_overflow", [embedded], {"mixed": mixed, "wkv": wkv}),
        {"embedded": values},
        overflown(healthy),
        healthy=healthy,
    )


def time_mixing(
    layer: Weights, token: Value, token_before: Value, numerator: Value, denominator: Value
) -> dict[str, Value]:
    """The body: what is carried, and what leaves it."""
    shifted = ops.add(
        ops.multiply(token, constant("mix", layer.mix), name="token_part"),
        ops.multiply(token_before, constant("mix_before", 1 - layer.mix), name="before_part"),
        name="shifted",
    )
    key, value, wish = (
        ops.matmul(shifted, constant(f"{name}_weight", getattr(layer, name)), False, False, name=name)
        for name in ("key", "value", "receptance")
    )
    receptance = ops.sigmoid(wish, name="receptance_gate")
    exp_key = ops.exp(key, name="exp_key")
    exp_bonus = ops.exp(ops.add(key, constant("bonus", layer.bonus), name="key_with_bonus"), name="exp_bonus")
    above = ops.add(numerator, ops.multiply(exp_bonus, value, name="weighted_now"), name="numerator_now")
    wkv = ops.divide(above, ops.add(denominator, exp_bonus, name="denominator_now"), name="wkv")
    gated = ops.multiply(receptance, wkv, name="gated")
    mixed = ops.matmul(gated, constant("output_weight", layer.output), False, False, name="mixed")
    decay = constant("decay", layer.decay)
    kept, weighted = ops.multiply(numerator, decay, name="kept"), ops.multiply(exp_key, value, name="weighted")
    return {
        "mixed": mixed,
        "wkv": wkv,
        "numerator_next": ops.add(kept, weighted, name="numerator_next"),
        "denominator_next": ops.add(
            ops.multiply(denominator, decay, name="kept_weight"), exp_key, name="denominator_next"
        ),
    }


def stable(layer: Weights, embedded: Array) -> dict[str, Array]:
    """What the layer means: for each token a softmax over all tokens up to it, by distance, in f64."""
    x = embedded.astype(np.float64)
    before = np.vstack([np.zeros((1, CHANNELS)), x[:-1]])
    shifted = x * layer.mix + before * (1 - layer.mix)
    key, value, wish = (shifted @ part.astype(np.float64) for part in (layer.key, layer.value, layer.receptance))
    rows = []
    for now in range(len(x)):
        distance = np.arange(now - 1, -1, -1)[:, None]
        score = np.vstack([key[:now] + distance * np.log(layer.decay.astype(np.float64)), key[now] + layer.bonus])
        weight = np.exp(score - score.max(axis=0))
        rows.append((weight / weight.sum(axis=0) * value[: now + 1]).sum(axis=0))
    wkv = np.array(rows)
    mixed = (wkv / (1 + np.exp(-wish))) @ layer.output
    return {"mixed": mixed.astype(np.float32), "wkv": wkv.astype(np.float32)}


def overflown(healthy: dict[str, Array]) -> dict[str, Array]:
    """What f32 makes of it: after the outlier inf / inf in its channel, and NaN in all that this enters."""
    mixed, wkv = healthy["mixed"].copy(), healthy["wkv"].copy()
    mixed[OUTLIER + 1 :] = wkv[OUTLIER + 1 :, LOUD] = np.nan
    return {"mixed": mixed, "wkv": wkv}
